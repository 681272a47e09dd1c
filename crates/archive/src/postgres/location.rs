//! The address of a database, and the password for it.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use postgres::config::{Config, Host, SslMode};

use crate::archive::StorageOptions;

/// The address of an archive in a database: `postgres://USER@HOST:PORT/DATABASE`.
///
/// Neither its text nor its debug output contains the password.
#[derive(Clone)]
pub struct PostgresLocation {
    text: String,
    config: Config,
    has_password: bool,
    /// A file with certificates to accept besides the usual ones.
    pub(super) root_certificates: Option<String>,
    /// Whether a push creates the indexes of the search.
    pub(super) builds_indexes: bool,
    /// The time to wait until the server has accepted a connection.
    pub(super) answer_timeout: Duration,
}

/// The default port of the server.
const PORT: u16 = 5432;

/// The time to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time to wait for a server that does not answer. A connection to a machine that was switched off is
/// closed after twice this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

impl PostgresLocation {
    /// Parses an address. Returns the reason if it is not one, without any part of the address.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (base, parameters) = text.split_once('?').unwrap_or((text, ""));
        let mut url = base.to_owned();
        let (mut root_certificates, mut builds_indexes) = (None, true);
        for (name, value) in parameters.split('&').filter_map(|pair| pair.split_once('=')) {
            let value = match (name, value) {
                ("sslrootcert", file) => {
                    root_certificates = Some(file.to_owned());
                    continue;
                }
                ("search_index", "off" | "on") => {
                    builds_indexes = value == "on";
                    continue;
                }
                // Certificates are always checked.
                ("sslmode", "verify-ca" | "verify-full") => "require",
                ("sslmode", "allow") => "prefer",
                _ => value,
            };
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&format!("{name}={value}"));
        }
        let mut config: Config = url.parse().map_err(|error: postgres::Error| {
            // The source names the parameter, and never a value.
            std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
        })?;
        if config.get_hosts().is_empty() {
            return Err("the host is missing".to_owned());
        }
        let has_password = config.get_password().is_some();
        config.application_name("threadline");
        let given = config.get_connect_timeout().copied();
        let answer_timeout = given.unwrap_or(ANSWER_TIMEOUT);
        config.connect_timeout(given.unwrap_or(CONNECT_TIMEOUT)).tcp_user_timeout(ANSWER_TIMEOUT);
        if !parameters.contains("keepalives") {
            config.keepalives_idle(ANSWER_TIMEOUT).keepalives_interval(CONNECT_TIMEOUT);
        }
        Ok(Self {
            text: text.to_owned(),
            config,
            has_password,
            root_certificates,
            builds_indexes,
            answer_timeout,
        })
    }

    /// Returns whether the address contains a password. Such an address must not be stored.
    pub fn has_password(&self) -> bool {
        self.has_password
    }

    /// Returns the configuration of a connection. A password that the address does not contain is taken from
    /// `PGPASSWORD`, or from the file that `PGPASSFILE` names.
    pub(super) fn config(&self, options: &StorageOptions) -> Config {
        let mut config = self.config.clone();
        if config.get_user().is_none()
            && let Some(user) = options.get("PGUSER")
        {
            config.user(user);
        }
        if !self.has_password {
            let own = options.get("PGPASSWORD").filter(|password| !password.is_empty()).cloned();
            let stored = || self.stored_password(Path::new(options.get("PGPASSFILE")?), &config);
            if let Some(password) = own.or_else(stored) {
                config.password(password);
            }
        }
        config
    }

    /// Finds the password in a file with lines `host:port:database:user:password`. A file that others can
    /// read is ignored, as other programs do.
    fn stored_password(&self, file: &Path, config: &Config) -> Option<String> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(file).ok()?.permissions().mode();
            if mode & 0o077 != 0 {
                return None;
            }
        }
        let text = std::fs::read_to_string(file).ok()?;
        let (host, port) = self.host_and_port();
        let host = if host.starts_with('/') { "localhost".to_owned() } else { host };
        let user = config.get_user().unwrap_or_default();
        let wanted = [&*host, &port.to_string(), self.database(), user];
        text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let fields = password_fields(line);
            let [known @ .., password] = &fields[..] else { return None };
            let matches = known.len() == wanted.len()
                && known.iter().zip(wanted).all(|(known, wanted)| known == "*" || known == wanted);
            matches.then(|| password.clone())
        })
    }

    fn host_and_port(&self) -> (String, u16) {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            _ => String::new(),
        };
        (host, self.config.get_ports().first().copied().unwrap_or(PORT))
    }

    fn database(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or_default()
    }

    /// Returns whether connections may be encrypted.
    pub(super) fn uses_tls(&self) -> bool {
        self.config.get_ssl_mode() != SslMode::Disable
    }
}

/// Splits a line at colons; a backslash escapes the next character.
fn password_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(ch) = chars.next() {
        match (ch, fields.len()) {
            ('\\', _) => fields.iter_mut().last().into_iter().for_each(|field| field.extend(chars.next())),
            (':', 1..5) => fields.push(String::new()),
            (ch, _) => fields.iter_mut().last().into_iter().for_each(|field| field.push(ch)),
        }
    }
    fields
}

impl fmt::Display for PostgresLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = self.host_and_port();
        let user = self.config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        match host.starts_with('/') {
            true => write!(f, "postgres://{user}/{}?host={host}&port={port}", self.database()),
            false => write!(f, "postgres://{user}{host}:{port}/{}", self.database()),
        }
    }
}

impl fmt::Debug for PostgresLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for PostgresLocation {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PostgresLocation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        let location = PostgresLocation::parse("postgres://ada:s3cret@db.example:5433/logs").unwrap();
        assert!(location.has_password());
        assert_eq!(location.to_string(), "postgres://ada@db.example:5433/logs");
        assert!(!format!("{location:?}").contains("s3cret"));
        for text in
            ["postgres://ada:s3cret@h/x?port=s3cret", "postgres://ada:s3cret@h/x?wrong=s3cret", "postgres://"]
        {
            let error = PostgresLocation::parse(text).unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn addresses_with_sockets_and_modes_of_encryption() {
        let socket = PostgresLocation::parse("postgres://ada@/logs?host=/run/pg&port=6000").unwrap();
        assert_eq!(socket.to_string(), "postgres://ada@/logs?host=/run/pg&port=6000");
        let strict = "postgres://ada@h/logs?sslmode=verify-full&sslrootcert=/ca.pem&search_index=off";
        let strict = PostgresLocation::parse(strict).unwrap();
        assert_eq!(strict.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(strict.root_certificates.as_deref(), Some("/ca.pem"));
        assert!(!strict.builds_indexes && strict.uses_tls());
    }

    #[test]
    #[cfg(unix)]
    fn the_password_file_is_used_if_only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pgpass");
        std::fs::write(&file, "# note\nother:*:*:*:no\nh:5432:lo\\:gs:ada:p\\:w\\\\d\n").unwrap();
        let location = PostgresLocation::parse("postgres://ada@h/lo%3Ags").unwrap();
        let text = file.to_string_lossy().into_owned();
        let options = StorageOptions::from([("PGPASSFILE".to_owned(), text)]);
        let password = || location.config(&options).get_password().map(<[u8]>::to_vec);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(password(), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(password().as_deref(), Some(&b"p:w\\d"[..]));
    }
}
