//! Passwords on command lines: `curl -u user:…`, `mysql -p…`, `redis-cli -a …`, `docker login -p …`.
//!
//! The flag that takes a password depends on the program, so the words after its name are split as a shell
//! does, up to the end of the command.

use std::ops::Range;

use memchr::memmem;

use crate::heuristics;

/// A program that takes a password on its command line.
struct PasswordProgram {
    /// The start of the command, in lower case.
    name: &'static str,
    /// Flags that take their value as the next word or after an `=`.
    flags: &'static [&'static str],
    /// Flags with a directly attached value.
    attached: &'static [&'static str],
    /// Flags that take a user and a password, and the separator of the two.
    pairs: &'static [&'static str],
    between: char,
}

const fn program(name: &'static str, flags: &'static [&'static str]) -> PasswordProgram {
    PasswordProgram { name, flags, attached: &[], pairs: &[], between: ':' }
}

static PROGRAMS: &[PasswordProgram] = &[
    PasswordProgram {
        pairs: &["-u", "-U", "--user", "--proxy-user"],
        ..program("curl ", &["--pass", "--proxy-pass", "--oauth2-bearer"])
    },
    PasswordProgram { attached: &["-p"], ..program("mysql", &["--password", "--password1"]) },
    PasswordProgram { attached: &["-p"], ..program("mariadb", &["--password", "--password1"]) },
    PasswordProgram { attached: &["-p"], ..program("mycli ", &["--password", "--pass"]) },
    program("redis-cli ", &["-a", "--pass"]),
    program("valkey-cli ", &["-a", "--pass"]),
    PasswordProgram {
        attached: &["-p"],
        ..program(" login ", &["-p", "--password", "--client-secret", "-t", "--token"])
    },
    PasswordProgram { attached: &["-p"], ..program("sshpass ", &["-p"]) },
    PasswordProgram { attached: &["-w"], ..program("ldap", &["-w", "--bindpassword"]) },
    PasswordProgram { attached: &["-p"], ..program("mongo", &["-p", "--password"]) },
    PasswordProgram { attached: &["-P"], ..program("sqlcmd ", &["-P"]) },
    PasswordProgram { attached: &["-P"], ..program("bcp ", &["-P"]) },
    PasswordProgram { attached: &["-P"], ..program("unzip ", &["-P"]) },
    PasswordProgram { attached: &["-P"], ..program("zip ", &["-P", "--password"]) },
    PasswordProgram { attached: &["-p"], ..program("7z ", &[]) },
    PasswordProgram { attached: &["-p"], ..program("7za ", &[]) },
    program("gpg ", &["--passphrase"]),
    program("gpg2 ", &["--passphrase"]),
    program("wget ", &["--password", "--http-password", "--ftp-password", "--proxy-password"]),
    program("keytool ", &["-storepass", "-keypass", "-deststorepass", "-srcstorepass"]),
    program("jarsigner ", &["-storepass", "-keypass"]),
    program("clickhouse-client ", &["--password"]),
    program("influx ", &["-t", "--token", "-p", "--password"]),
    program("svn ", &["--password"]),
    program("twine ", &["-p", "--password"]),
    program("smbpasswd ", &["-w"]),
    PasswordProgram { pairs: &["-a", "--auth"], ..program("http ", &[]) },
    PasswordProgram { pairs: &["-a", "--auth"], ..program("https ", &[]) },
    PasswordProgram { pairs: &["-a", "--auth"], ..program("xh ", &[]) },
    PasswordProgram { pairs: &["-a", "--auth"], ..program("xhs ", &[]) },
    PasswordProgram { pairs: &["-u", "--user"], between: ',', ..program("lftp ", &["--password"]) },
    PasswordProgram { pairs: &["-U", "--user"], between: '%', ..program("smbclient ", &["--password"]) },
    PasswordProgram { attached: &["/p:"], ..program("xfreerdp ", &[]) },
    program("mosquitto_", &["-P", "--pw"]),
    program("evil-winrm ", &["-p", "--password"]),
    program("snmp", &["-A", "-X"]),
    PasswordProgram { attached: &["-p", "-hp"], ..program("rar ", &[]) },
    PasswordProgram { attached: &["-p"], ..program("unrar ", &[]) },
    PasswordProgram { attached: &["/pass:"], ..program("cmdkey ", &[]) },
    PasswordProgram { attached: &["-p:"], ..program("winrs ", &["-p"]) },
    PasswordProgram { attached: &["-P"], ..program("isql ", &["-P"]) },
    PasswordProgram { attached: &["-P"], ..program("tsql ", &["-P"]) },
    PasswordProgram { attached: &["-P"], ..program("ipmitool ", &["-P"]) },
    program("psexec ", &["-p"]),
    program("schtasks ", &["/rp"]),
    program("rdesktop ", &["-p"]),
    program("crackmapexec ", &["-p", "--password"]),
    program("nxc ", &["-p", "--password"]),
    program("cqlsh ", &["-p", "--password"]),
    program("cypher-shell ", &["-p", "--password"]),
    program("couchbase-cli ", &["-p", "--password"]),
    program("snowsql ", &["-p"]),
    program("az ", &["-p", "--password", "--client-secret", "--account-key", "--sas-token"]),
    program("nuget ", &["-p", "--password", "-Password", "-k", "--api-key", "-ApiKey"]),
    program("swaks ", &["-ap", "--auth-password"]),
    program("qpdf ", &["--password"]),
    program("useradd ", &["-p", "--password"]),
    program("usermod ", &["-p", "--password"]),
    program("openssl ", &["-k", "-K"]),
    program("x11vnc ", &["-passwd"]),
    program("winrm ", &["-p", "--password"]),
    program("ssh-keygen ", &["-N", "-P"]),
    program("add-generic-password ", &["-w"]),
    program("add-internet-password ", &["-w"]),
    program("secret set ", &["--value"]),
    program("restic ", &["--password"]),
    program("vncserver ", &["-passwd"]),
    program("sshfs ", &["-p"]),
];

/// Returns the strings that commands start with.
pub(crate) fn anchors() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|program| program.name)
}

/// The maximum length of a command.
const LONGEST: usize = 2000;

/// Finds the passwords of the command that begins at `at`.
pub(crate) fn find(text: &str, at: Range<usize>, mut found: impl FnMut(Range<usize>)) {
    let name = text[at.clone()].to_ascii_lowercase();
    let Some(program) = PROGRAMS.iter().find(|program| program.name == name) else { return };
    let bytes = text.as_bytes();
    let begins = name.starts_with(' ')
        || at.start == 0
        || !(bytes[at.start - 1].is_ascii_alphanumeric() || matches!(bytes[at.start - 1], b'_' | b'.'))
        || text[..at.start].ends_with("\\n");
    if !begins {
        return;
    }
    let mut end = text.len().min(at.end + LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // Stops at the next command of the same name, which is handled separately. This keeps the total cost
    // linear.
    let own = memmem::find(&bytes[at.end..end], &bytes[at.clone()]).map_or(end, |next| at.end + next);
    let mut words = CommandWords { text, at: at.end, end: own };
    // Skips the rest of the name: `mysqldump`, `ldapsearch`.
    if !name.ends_with(' ') && bytes.get(at.end) != Some(&b' ') {
        words.next();
    }
    while let Some(word) = words.next() {
        let value = &text[word.clone()];
        let (flag, inline) = match value.split_once('=') {
            Some((flag, _)) if flag.starts_with('-') => (flag, Some(word.start + flag.len() + 1..word.end)),
            _ => (value, None),
        };
        let is_pair = program.pairs.contains(&flag) || is_bundle(program, flag);
        if is_pair || program.flags.contains(&flag) {
            let Some(range) = inline.map(|range| unquoted(text, range)).or_else(|| words.next()) else {
                return;
            };
            take(program, text, range, is_pair, &mut found);
        } else if let Some((flag, is_pair)) = attached(program, value) {
            let range = unquoted(text, word.start + flag..word.end);
            take(program, text, range, is_pair, &mut found);
        }
    }
}

/// Returns whether a word bundles short flags of curl, the last of which takes a value: `-su`.
fn is_bundle(program: &PasswordProgram, flag: &str) -> bool {
    program.name == "curl "
        && flag.len() > 2
        && flag.ends_with('u')
        && flag.strip_prefix('-').is_some_and(|flags| flags.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// Returns the length of the flag that a word begins with, if its value is attached, and whether the value is
/// a pair.
fn attached(program: &PasswordProgram, word: &str) -> Option<(usize, bool)> {
    let own = |flags: &[&str]| {
        flags.iter().find(|flag| word.len() > flag.len() && word.starts_with(**flag)).map(|flag| flag.len())
    };
    if let Some(length) = own(program.attached) {
        return Some((length, false));
    }
    let pairs: Vec<&str> = program.pairs.iter().copied().filter(|flag| flag.len() == 2).collect();
    own(&pairs).filter(|_| word.contains(program.between)).map(|length| (length, true))
}

fn take(
    program: &PasswordProgram,
    text: &str,
    range: Range<usize>,
    is_pair: bool,
    found: &mut impl FnMut(Range<usize>),
) {
    let value = &text[range.clone()];
    let secret = if is_pair {
        let Some((user, password)) = value.split_once(program.between) else { return };
        // A token is the user of some services, without a password.
        if password.is_empty() && user.len() >= 16 && heuristics::is_random(user.as_bytes()) {
            return found(range.start..range.start + user.len());
        }
        // In `curl -u user:password:x` the password contains a colon; `-u https://…` is not a password.
        if password.starts_with("//") || user == password {
            return;
        }
        range.start + user.len() + 1..range.end
    } else {
        range
    };
    let password = &text[secret.clone()];
    if !password.starts_with('-') && heuristics::is_password(password) {
        found(secret);
    }
}

/// Removes quotes around a value.
fn unquoted(text: &str, range: Range<usize>) -> Range<usize> {
    let value = &text[range.clone()];
    for quote in ["\\\"", "\"", "'"] {
        if let Some(inner) = value.strip_prefix(quote) {
            let inner = inner.strip_suffix(quote).unwrap_or(inner);
            return range.start + quote.len()..range.start + quote.len() + inner.len();
        }
    }
    range
}

/// The words of a command, without the quotes around them.
struct CommandWords<'t> {
    text: &'t str,
    at: usize,
    end: usize,
}

impl Iterator for CommandWords<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = &self.text.as_bytes()[..self.end];
        loop {
            match bytes.get(self.at)? {
                b' ' | b'\t' => self.at += 1,
                // A line continuation, also in JSON inside a JSON string.
                b'\\' if bytes[self.at..].starts_with(b"\\\n") => self.at += 2,
                b'\\' if bytes[self.at..].starts_with(b"\\\\n") => self.at += 3,
                b'\\' if bytes[self.at..].starts_with(b"\\\"") => break,
                b'\n' | b'\r' | b'|' | b';' | b'&' | b'<' | b'>' | b'`' | b')' | b'\\' => return None,
                _ => break,
            }
        }
        let start = self.at;
        // The open quote, and its offset.
        let mut quote: Option<(u8, usize)> = None;
        while let Some(&byte) = bytes.get(self.at) {
            match (quote, byte) {
                (None, b' ' | b'\t' | b'\n' | b'\r' | b'|' | b';' | b'&' | b'<' | b'>' | b'`') => break,
                (None, b'\\') if bytes[self.at..].starts_with(b"\\n") => break,
                (None, b'"' | b'\'') => quote = Some((byte, self.at)),
                (Some((open, _)), close) if open == close => quote = None,
                (Some(_), b'\n') => break,
                _ => {}
            }
            self.at += 1;
        }
        // A quote that is not closed ends a quoted command: `ssh host "mysql -p…"`.
        if let Some((_, opened)) = quote.filter(|(_, opened)| *opened > start) {
            (self.at, self.end) = (opened, opened);
        }
        Some(unquoted(self.text, start..self.at)).filter(|word| !word.is_empty() || self.at > start)
    }
}

#[cfg(test)]
mod tests {
    use super::{anchors, find};

    fn found(text: &str) -> Vec<&str> {
        let mut all = Vec::new();
        let lower = text.to_ascii_lowercase();
        for anchor in anchors() {
            for (at, _) in lower.match_indices(anchor) {
                find(text, at..at + anchor.len(), |range| all.push(&text[range]));
            }
        }
        all
    }

    #[test]
    fn passwords_are_found_after_their_flags() {
        for text in [
            "curl -u ada:Weft-42-warp https://loom.internal",
            "curl -sS -o /dev/null -uada:Weft-42-warp https://loom.internal",
            "curl -su 'ada:Weft-42-warp' https://loom.internal",
            "curl https://loom.internal \\\n  -X POST \\\n  --user \"ada:Weft-42-warp\"",
            "mysql -h db -u root -pWeft-42-warp cloth",
            "mysql -pWeft-42-warp -u root cloth",
            "mysqldump --password='Weft-42-warp' cloth > cloth.sql",
            "redis-cli -h cache -a Weft-42-warp ping",
            "docker login -u ada -p Weft-42-warp registry.loom.internal",
            "docker login --username ada --password=Weft-42-warp",
            "sshpass -pWeft-42-warp ssh ada@loom",
            "ldapsearch -x -D cn=admin -w Weft-42-warp -b dc=loom",
            "mongosh --username ada -p 'Weft-42-warp' cloth",
            "7z x -pWeft-42-warp cloth.7z",
            "gpg --batch --passphrase Weft-42-warp -d cloth.gpg",
            "wget --user=ada --password=Weft-42-warp https://loom.internal",
            "smbclient //loom/cloth -U ada%Weft-42-warp",
            "ssh loom \"mysql -pWeft-42-warp\"",
            "ssh loom 'mysql -pWeft-42-warp'\nls",
        ] {
            assert_eq!(found(text), ["Weft-42-warp"], "{text}");
        }
    }

    #[test]
    fn other_arguments_are_not_found() {
        for text in [
            "curl -u $USER:$PASS https://x",
            "curl -u user:pass https://x",
            "curl -u ada https://x",
            "curl -u <user>:<password> x",
            "mysql -p cloth",
            "mysql -port 3306",
            "mysql -proot",
            "mysql --password",
            "redis-cli -a $REDIS_PASSWORD",
            "docker login -u ada --password-stdin",
            "docker login; ls -p Weft-42",
            "mkdir -p mysql && cp -pr a b9",
            "the ldap docs: use -w",
            "curl -sS https://x:8080/y -u",
            "",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
