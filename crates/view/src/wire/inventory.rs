//! JSON of the inventory.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{SCHEMA, moment};
use crate::inventory::{DriftCount, Inventory, NameCounts};

/// The output of `inspect`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct InventoryObject<'a> {
    pub schema: u32,
    pub files: u64,
    pub bytes: u64,
    pub lines: u64,
    pub bad_lines: u64,
    pub types: &'a NameCounts,
    pub system_subtypes: &'a NameCounts,
    pub progress_types: &'a NameCounts,
    pub attachment_types: &'a NameCounts,
    pub block_types: &'a NameCounts,
    pub stop_reasons: &'a NameCounts,
    pub models: &'a NameCounts,
    pub tools: NameCounts,
    pub versions: &'a NameCounts,
    pub messages: u64,
    pub turns: u64,
    pub errors: u64,
    pub tool_calls: u64,
    pub tool_results: u64,
    pub unanswered_calls: u64,
    pub orphan_results: u64,
    pub branches: u64,
    pub compactions: u64,
    pub sub_agents: u64,
    pub started_at: Option<String>,
    pub last_active_at: Option<String>,
    pub unknown: UnknownObject<'a>,
}

/// Types and keys that no lens defines.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct UnknownObject<'a> {
    pub types: BTreeMap<&'a str, DriftObject<'a>>,
    pub keys: BTreeMap<&'a str, DriftObject<'a>>,
}

/// The number of occurrences of an unknown name, and the versions that wrote it.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct DriftObject<'a> {
    pub count: u64,
    pub versions: Vec<&'a str>,
}

impl<'a> From<&'a Inventory> for InventoryObject<'a> {
    fn from(inventory: &'a Inventory) -> Self {
        let drifts = |from: &'a BTreeMap<String, DriftCount>| {
            let object = |drift: &'a DriftCount| DriftObject {
                count: drift.count,
                versions: drift.versions.iter().map(|v| &**v).collect(),
            };
            from.iter().map(|(name, drift)| (&**name, object(drift))).collect()
        };
        let session = inventory.session.clone().unwrap_or_default();
        Self {
            schema: SCHEMA,
            files: inventory.files,
            bytes: inventory.bytes,
            lines: inventory.lines,
            bad_lines: inventory.bad_lines,
            types: &inventory.types,
            system_subtypes: &inventory.system_subtypes,
            progress_types: &inventory.progress_types,
            attachment_types: &inventory.attachment_types,
            block_types: &inventory.block_types,
            stop_reasons: &inventory.stop_reasons,
            models: &inventory.models,
            versions: &inventory.versions,
            messages: inventory.messages,
            turns: session.turns,
            errors: session.errors,
            tool_calls: session.tool_calls(),
            tool_results: inventory.tool_results,
            unanswered_calls: inventory.unanswered_calls,
            orphan_results: inventory.orphan_results,
            branches: inventory.branches,
            compactions: inventory.compactions,
            sub_agents: session.agents,
            started_at: session.active.map(|(start, _)| moment(start)),
            last_active_at: session.active.map(|(_, end)| moment(end)),
            tools: session.tools,
            unknown: UnknownObject {
                types: drifts(&inventory.unknown_types),
                keys: drifts(&inventory.unknown_keys),
            },
        }
    }
}
