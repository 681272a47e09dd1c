//! Lists of a server: its tools, prompts and resources, within limits.

use rmcp::model::{PaginatedRequestParams, Prompt, Resource, Tool};
use rmcp::service::{Peer, RoleClient, ServiceError};

/// The most entries of a list that are used.
const MAX_ENTRIES: usize = 1_000;
/// The most pages of a list that are requested.
const MAX_PAGES: usize = 100;

/// Requests the pages of a list until the last one.
macro_rules! list {
    ($name:ident, $request:ident, $entries:ident, $entry:ty) => {
        pub(crate) async fn $name(peer: &Peer<RoleClient>) -> Result<Vec<$entry>, ServiceError> {
            let mut entries = Vec::new();
            let mut cursor = None;
            for _ in 0..MAX_PAGES {
                let params = PaginatedRequestParams::default().with_cursor(cursor);
                let page = peer.$request(Some(params)).await?;
                entries.extend(page.$entries);
                cursor = page.next_cursor;
                if cursor.is_none() || entries.len() >= MAX_ENTRIES {
                    break;
                }
            }
            entries.truncate(MAX_ENTRIES);
            Ok(entries)
        }
    };
}

list!(list_tools, list_tools, tools, Tool);
list!(list_prompts, list_prompts, prompts, Prompt);
list!(list_resources, list_resources, resources, Resource);
