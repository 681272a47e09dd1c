//! Keys of the API from a program (`apiKeyHelper` in the settings).

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use threadline_api::KeySource;

/// The age of a key at which the program runs again.
pub(super) const DEFAULT_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Runs a program for each key.
pub(super) struct KeyHelper {
    command: String,
    lifetime: Duration,
    /// The current key, and when it was made.
    current: Mutex<Option<(Instant, String)>>,
}

impl KeyHelper {
    pub(super) fn new(command: String, lifetime: Duration) -> Self {
        Self { command, lifetime, current: Mutex::new(None) }
    }

    fn run(&self) -> Result<String, String> {
        let output = Command::new("/bin/sh")
            .args(["-c", &self.command])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot run the apiKeyHelper `{}`: {error}", self.command))?;
        if !output.status.success() {
            return Err(format!("the apiKeyHelper `{}` failed ({})", self.command, output.status));
        }
        let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if key.is_empty() {
            Err(format!("the apiKeyHelper `{}` printed no key", self.command))
        } else {
            Ok(key)
        }
    }
}

impl KeySource for KeyHelper {
    fn key(&self) -> Result<String, String> {
        let mut current = self.current.lock();
        if let Some((made, key)) = &*current
            && made.elapsed() < self.lifetime
        {
            return Ok(key.clone());
        }
        let key = self.run()?;
        *current = Some((Instant::now(), key.clone()));
        Ok(key)
    }

    fn reject(&self) {
        *self.current.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A helper that counts its runs in a file.
    fn helper(dir: &std::path::Path, lifetime: Duration) -> KeyHelper {
        let file = dir.join("runs");
        let command = format!("echo x >> {0}; echo key-$(wc -l < {0})", file.display());
        KeyHelper::new(command, lifetime)
    }

    #[test]
    fn a_key_is_used_until_it_expires_or_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let keys = helper(dir.path(), Duration::from_secs(3600));
        assert_eq!((keys.key().unwrap(), keys.key().unwrap()), ("key-1".into(), "key-1".into()));
        keys.reject();
        assert_eq!(keys.key().unwrap(), "key-2");
        let keys = helper(dir.path(), Duration::ZERO);
        assert_eq!((keys.key().unwrap(), keys.key().unwrap()), ("key-3".into(), "key-4".into()));
    }

    #[test]
    fn a_helper_that_fails_is_named() {
        let error = KeyHelper::new("exit 3".to_owned(), DEFAULT_LIFETIME).key().unwrap_err();
        assert_eq!(error, "the apiKeyHelper `exit 3` failed (exit status: 3)");
        let error = KeyHelper::new("true".to_owned(), DEFAULT_LIFETIME).key().unwrap_err();
        assert_eq!(error, "the apiKeyHelper `true` printed no key");
    }
}
