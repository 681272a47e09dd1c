//! Secrets in plain text, as far as their form alone gives them away.
//!
//! Only forms that hardly anything else has are here, so that a finding can be trusted; what needs a closer
//! look (passwords, connection strings) is left to redaction.

use memchr::memmem;

/// A form of secret: its name, how it begins, and how many characters of a token follow at least.
struct Form {
    name: &'static str,
    start: &'static str,
    length: usize,
}

const FORMS: &[Form] = &[
    Form { name: "an Anthropic API key", start: "sk-ant-api03-", length: 80 },
    Form { name: "an Anthropic OAuth token", start: "sk-ant-oat01-", length: 80 },
    Form { name: "an OpenAI API key", start: "sk-proj-", length: 80 },
    Form { name: "a GitHub token", start: "ghp_", length: 36 },
    Form { name: "a GitHub token", start: "gho_", length: 36 },
    Form { name: "a GitHub token", start: "ghs_", length: 36 },
    Form { name: "a GitHub token", start: "github_pat_", length: 82 },
    Form { name: "a GitLab token", start: "glpat-", length: 20 },
    Form { name: "an AWS access key id", start: "AKIA", length: 16 },
    Form { name: "a Google API key", start: "AIza", length: 35 },
    Form { name: "a Slack token", start: "xoxb-", length: 40 },
    Form { name: "a Slack token", start: "xoxp-", length: 40 },
    Form { name: "a Stripe key", start: "sk_live_", length: 24 },
    Form { name: "an npm token", start: "npm_", length: 36 },
    Form { name: "a private key", start: "-----BEGIN RSA PRIVATE KEY-----", length: 0 },
    Form { name: "a private key", start: "-----BEGIN OPENSSH PRIVATE KEY-----", length: 0 },
    Form { name: "a private key", start: "-----BEGIN PRIVATE KEY-----", length: 0 },
    Form { name: "a private key", start: "-----BEGIN EC PRIVATE KEY-----", length: 0 },
];

/// The first secret that stands in a line, by its name. None of these forms is ever escaped in JSON.
pub(crate) fn secret_in(line: &str) -> Option<&'static str> {
    FORMS.iter().find(|form| holds(line.as_bytes(), form)).map(|form| form.name)
}

fn holds(line: &[u8], form: &Form) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    memmem::find_iter(line, form.start).any(|at| {
        let begins = at == 0 || !is_token(line[at - 1]);
        let rest = &line[at + form.start.len()..];
        let length = rest.iter().take_while(|byte| is_token(**byte)).count();
        // A key's own text follows its heading; a heading alone is somebody talking about keys.
        let whole = if form.length == 0 {
            key_follows(rest)
        } else {
            length >= form.length && is_mixed(&rest[..length])
        };
        begins && whole
    })
}

/// Whether lines of base 64 follow, as they do in a key.
fn key_follows(rest: &[u8]) -> bool {
    let rest = rest.strip_prefix(b"\\r").unwrap_or(rest);
    let rest = rest.strip_prefix(b"\\n").or_else(|| rest.strip_prefix(b"\n")).unwrap_or(rest);
    let body =
        rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')).count();
    body >= 60
}

/// Whether it looks drawn by lot: names have no digits, and examples one character over and over.
fn is_mixed(token: &[u8]) -> bool {
    let mut seen = [false; 256];
    for byte in token {
        seen[usize::from(*byte)] = true;
    }
    token.iter().any(u8::is_ascii_digit) && seen.iter().filter(|seen| **seen).count() >= 8
}

#[cfg(test)]
mod tests {
    use super::secret_in;

    #[test]
    fn secrets_are_known_by_their_form() {
        let random =
            "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzaB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz1234567890abcdefghijkl";
        assert_eq!(secret_in(&format!("key=sk-ant-api03-{random}AA")), Some("an Anthropic API key"));
        assert_eq!(secret_in(&format!("\"ghp_{}\"", &random[..36])), Some("a GitHub token"));
        assert_eq!(secret_in("AKIAIOSFODNN7EXAMPLE"), Some("an AWS access key id"));
        let key = format!("-----BEGIN PRIVATE KEY-----\\nMIIE{random}");
        assert_eq!(secret_in(&key), Some("a private key"));
    }

    #[test]
    fn talk_of_secrets_is_no_secret() {
        for text in [
            "set ANTHROPIC_API_KEY to sk-ant-api03-…",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "-----BEGIN PRIVATE KEY----- starts a key",
            "mkAKIAIOSFODNN7EXAMPLE",
            "npm_config_registry_of_this_very_machine",
        ] {
            assert_eq!(secret_in(text), None, "{text}");
        }
    }
}
