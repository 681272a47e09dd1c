//! Checks that the official program `age` decrypts the objects of an encrypted archive, and that we decrypt
//! what it encrypts.
//!
//! `AGE` is the program; the default is `age` on the path.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::archive_check::{Client, copy_folder};

/// The first bytes of everything that zstd has compressed.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(crate) fn check_encryption(client: &Client<'_>) -> Result<(), String> {
    let age = std::env::var_os("AGE").unwrap_or_else(|| "age".into());
    if Command::new(&age).arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("encryption: skipped, age is not installed (set AGE)");
        return Ok(());
    }
    let home = client.work.join("encrypted-home");
    copy_folder(&threadline_testkit::demo().join("projects"), &home.join("projects"))?;
    let (key, folder) = (client.work.join("key.txt"), client.work.join("encrypted-archive"));
    let (key_text, url) = (key.to_string_lossy().into_owned(), format!("file:{}", folder.display()));
    let created = client.expect(&home, "encrypted", &["archive", "key", &key_text, "--json"])?;
    let created: Value = serde_json::from_str(&created).map_err(|error| error.to_string())?;
    let recipient = created["recipient"].as_str().unwrap_or_default();
    client.expect(&home, "encrypted", &["archive", "push", "--to", &url, "--key", &key_text])?;
    let mut objects = Vec::new();
    find_objects(&folder, &mut objects).map_err(|error| error.to_string())?;
    for object in &objects {
        let plain = decrypt(&age, &key, object)?;
        let is_expected = match object.ends_with("format") {
            true => plain.starts_with(b"threadline archive, encrypted\n"),
            false => plain.starts_with(&ZSTD_MAGIC),
        };
        if !is_expected {
            return Err(format!("age decrypts {} to something else", object.display()));
        }
        // The same object, as the official program encrypts it.
        let file = client.work.join("plain");
        fs::write(&file, plain).map_err(|error| error.to_string())?;
        let mut encrypt = Command::new(&age);
        encrypt.args(["-r", recipient, "-o"]).arg(object).arg(&file);
        if !encrypt.status().is_ok_and(|status| status.success()) {
            return Err("age does not encrypt for the recipient of the key".to_owned());
        }
    }
    client.expect(&home, "encrypted", &["archive", "verify", "--from", &url, "--key", &key_text])?;
    println!(
        "age decrypts all {} objects of an encrypted archive, and we decrypt those of age",
        objects.len()
    );
    Ok(())
}

fn decrypt(age: &OsString, key: &Path, object: &Path) -> Result<Vec<u8>, String> {
    let done = Command::new(age).arg("-d").arg("-i").arg(key).arg(object).output();
    let done = done.map_err(|error| error.to_string())?;
    match done.status.success() {
        true => Ok(done.stdout),
        false => Err(format!("{}: {}", object.display(), String::from_utf8_lossy(&done.stderr))),
    }
}

fn find_objects(folder: &Path, objects: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => find_objects(&path, objects)?,
            false => objects.push(path),
        }
    }
    Ok(())
}
