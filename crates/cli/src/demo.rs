//! The built-in demo sessions, unpacked into the cache directory.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use etcetera::BaseStrategy;
use flate2::read::DeflateDecoder;
use threadline_entry::{LineReader, key, walk};
use threadline_store::{read_file, replace_own_file};

use crate::error::CommandError;

/// The names and sizes of the files.
const FILES: &[(&str, usize)] = include!(concat!(env!("OUT_DIR"), "/demo_files.rs"));

/// The contents of the files, one after another.
const CONTENTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/demo_files.deflate"));

/// Returns the folder with the demo sessions. Missing or changed files are written again.
pub(crate) fn unpack_home() -> Result<PathBuf, CommandError> {
    let cache = etcetera::choose_base_strategy().map(|base| base.cache_dir().join("threadline")).ok();
    let place = cache.filter(|cache| fs::create_dir_all(cache).is_ok());
    let home = match place {
        Some(cache) => cache.join("demo"),
        None => tempfile::tempdir()?.keep(),
    };
    let mut contents = DeflateDecoder::new(CONTENTS);
    let mut bytes = Vec::new();
    for (name, size) in FILES {
        bytes.resize(*size, 0);
        contents.read_exact(&mut bytes)?;
        write_if_changed(&home.join(name), &bytes)?;
    }
    Ok(home)
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    if read_file(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    replace_own_file(path, bytes)?;
    // Lists are sorted by modification time, so it is set to the last timestamp in the file.
    if let Some(modified) = last_timestamp(bytes) {
        File::options().append(true).open(path)?.set_modified(modified)?;
    }
    Ok(())
}

fn last_timestamp(bytes: &[u8]) -> Option<SystemTime> {
    let mut last = None;
    let mut lines = LineReader::new(bytes);
    while let Ok(Some(line)) = lines.next() {
        let found = walk::pick(line.bytes, [key::TIMESTAMP]).and_then(|[moment]| moment?.as_str());
        last = last.max(found.and_then(|text| text.parse::<jiff::Timestamp>().ok()));
    }
    let millis = u64::try_from(last?.as_millisecond()).ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis))
}
