//! The tables of the database, and their migrations.

use postgres::Client;

use crate::error::ArchiveError;
use crate::postgres::connection::DatabaseResult as _;

/// The statements that lead from each version of the tables to the next one.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// The lock for changes of tables.
const LOCK: i64 = 0x7468_7264_6c69_6e65;

/// Creates the tables or brings them to the current version. Without `create`, the tables must exist.
pub(super) fn prepare(client: &mut Client, create: bool) -> Result<(), ArchiveError> {
    let exists = "select to_regclass('threadline.version') is not null";
    let exists: bool = client.query_one(exists, &[]).action("read")?.get(0);
    let version = "select version from threadline.version";
    if exists {
        let version: i32 = client.query_one(version, &[]).action("read")?.get(0);
        match usize::try_from(version).unwrap_or(0) {
            current if current == MIGRATIONS.len() => return Ok(()),
            newer if newer > MIGRATIONS.len() => return Err(ArchiveError::NewerDatabase),
            _ => {}
        }
    } else if !create {
        return Err(ArchiveError::NoDatabase);
    }
    let encoding: String = client.query_one("show server_encoding", &[]).action("read")?.get(0);
    if encoding != "UTF8" {
        return Err(ArchiveError::Database {
            action: "use",
            reason: format!("its encoding is {encoding}, and must be UTF8"),
            is_conflict: false,
        });
    }
    let mut transaction = client.transaction().action("change")?;
    transaction.execute("select pg_advisory_xact_lock($1)", &[&LOCK]).action("lock")?;
    let create = "create schema if not exists threadline;
        create table if not exists threadline.version (version int not null);
        insert into threadline.version select 0 where not exists (select from threadline.version)";
    transaction.batch_execute(create).action("create tables in")?;
    // Another process may have changed them meanwhile.
    let version: i32 = transaction.query_one(version, &[]).action("read")?.get(0);
    for migration in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        transaction.batch_execute(migration).action("create tables in")?;
    }
    let current = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    transaction.execute("update threadline.version set version = $1", &[&current]).action("change")?;
    transaction.commit().action("change")
}

/// Creates the index of the search, unless it exists or another process creates it. Without the extension
/// `pg_trgm`, the search reads the whole table.
pub(super) fn build_indexes(client: &mut Client) -> Result<(), ArchiveError> {
    let state = "select to_regclass('threadline.messages_text') is not null,
        (select relowner from pg_class where oid = 'threadline.messages'::regclass)
            = (select oid from pg_roles where rolname = current_user)";
    let state = client.query_one(state, &[]).action("read")?;
    let (exists, is_owner): (bool, bool) = (state.get(0), state.get(1));
    if exists || !is_owner {
        return Ok(());
    }
    if client.batch_execute("create extension if not exists pg_trgm").is_err() {
        return Ok(());
    }
    let locked: bool = client.query_one("select pg_try_advisory_lock($1)", &[&LOCK]).action("lock")?.get(0);
    if !locked {
        return Ok(());
    }
    // The extension may be in any schema.
    let operators =
        "select quote_ident(n.nspname) from pg_opclass c join pg_namespace n on n.oid = c.opcnamespace
        where c.opcname = 'gin_trgm_ops'";
    let operators: String = client.query_one(operators, &[]).action("read")?.get(0);
    let built = client.batch_execute(&format!(
        "create index if not exists messages_text on threadline.messages using gin (text {operators}.gin_trgm_ops)"
    ));
    client.execute("select pg_advisory_unlock($1)", &[&LOCK]).action("unlock")?;
    built.action("index")?;
    client.batch_execute("analyze threadline.messages, threadline.usage, threadline.files").action("analyse")
}
