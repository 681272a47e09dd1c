//! The identity of this machine and of the user, for archives.

use std::io::{self, Write};
use std::path::Path;

use threadline_archive::Origin;
use threadline_store::{create_temporary, read_text_file};

use crate::env;

/// Returns the origin of the files of a home.
///
/// The id of the machine is random and kept in the state folder: names of machines are not unique.
pub(crate) fn origin(state_dir: &Path, home: &Path) -> io::Result<Origin> {
    let user = [env::USER, env::LOGNAME, env::USERNAME].into_iter().find_map(env::get);
    Ok(Origin {
        machine_id: machine_id(state_dir)?,
        machine: host_name(),
        user: user.unwrap_or_else(|| "unknown".to_owned()),
        home: std::path::absolute(home)?.to_string_lossy().into_owned(),
    })
}

fn machine_id(state_dir: &Path) -> io::Result<String> {
    let file = state_dir.join("machine-id");
    match read_text_file(&file) {
        Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::create_dir_all(state_dir)?;
    let id = uuid::Uuid::new_v4().to_string();
    // Another process may create it at the same time; then its id is used.
    let mut new = create_temporary(state_dir)?;
    new.write_all(format!("{id}\n").as_bytes())?;
    match new.persist_noclobber(&file) {
        Ok(_) => Ok(id),
        Err(_) => Ok(read_text_file(&file)?.trim().to_owned()),
    }
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    env::get(env::COMPUTERNAME).unwrap_or_else(|| "unknown".to_owned())
}
