//! Secrets that commands print, and that nothing but the command identifies: `printenv DB_PASSWORD`,
//! `terraform output -raw db_password`, `gh auth token`, `openssl rand -hex 32`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::{assignment, heuristics};

/// A command that prints a secret if its output is one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPrinter {
    /// It prints a stored secret, which a person may have made up.
    Stored,
    /// It generates one, which is long.
    Generated,
    /// It prints a part of something, such as the value of a key, so the word must look like a secret.
    Selected,
}

/// Longer commands are scripts, whose output is more than a secret.
const MAX_COMMAND: usize = 1000;

/// The longest output that is a secret.
const MAX_OUTPUT: usize = 4 << 10;

/// The name of a secret: of a variable, a key or a file.
const NAME: &str = r"[\w.\[\]'/~-]*(?:password|passwd|passphrase|_pwd|_?pass|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|_key|\.key|_pat|_pw|_auth)s?(?:[_-]?(?:base|prod|production|dev|staging|live|value|raw|[0-9]+))?(?:\.(?:txt|key))?";

/// Commands that print a stored secret. `NAME` is the name of a secret, `...` other words of the command.
const STORED: &[&str] = &[
    r"(?:terraform|tofu)\b...\boutput (?:-\S+ )*NAME\b",
    r"pulumi (?:config get|stack output) (?:-\S+ )*NAME\b",
    r"printenv (?:-\S+ )*NAME\b",
    r#"(?:echo|printf)(?: -\S+| ['"]?%s(?:\\n)?['"]?)* ['"]?\$\{?NAME\}?['"]?\s*(?:$|[;|&)'"\n])"#,
    r"vault (?:kv get|read)\b... -field[= ]",
    r"vault print token\b",
    r"secretsmanager get-secret-value\b",
    r"ssm get-parameters?\b...--with-decryption\b",
    r"(?:kubectl|oc|k)\b...\bget secrets?\b[^;&\n]*(?:jsonpath|go-template|base64|\.data)",
    r"(?:kubectl|oc)\b...\bcreate token\b",
    r"oc whoami (?:-t|--show-token)\b",
    r"gh auth token\b",
    r"gcloud\b...\bprint-(?:access|identity)-token\b",
    r"az\b...\bget-access-token\b",
    r"heroku (?:auth:token\b|config:get (?:-\S+ )*NAME\b)",
    r"ecr get-login-password\b",
    r"op (?:read|item get)\b",
    r"(?:gopass|pass) (?:show|cat)\b",
    r"pass [\w@.-]+/\S+",
    r"lpass show\b",
    r"bw get (?:password|totp)\b",
    r"security find-(?:generic|internet)-password\b",
    r"secret-tool lookup\b",
    r"keyring get\b",
    r"chamber read\b",
    r"doppler secrets get\b",
    r"gcloud secrets versions access\b",
    r"az (?:keyvault secret show|acr credential show|storage account keys list)\b",
    r"sops\b... (?:-d|--decrypt|decrypt)\b",
    r"ansible-vault (?:view|decrypt)\b",
    r"argocd admin initial-password\b",
    r"wg show \S+ (?:private-key|preshared-keys)\b",
    r"(?:cat|head|tail|more|less|bat)\b... \S*(?:/run/secrets/\S+|NAME|initialAdminPassword)(?:\s|[;|&]|$)",
];

/// Commands that generate a secret.
const GENERATED: &[&str] = &[
    r"wg (?:genkey|genpsk)\b",
    r"openssl rand\b",
    r"(?:pwgen|apg|makepasswd|mkpasswd|xkcdpass)\b",
    r"(?:rails|rake|bin/rails) secret\b",
    r"mix phx\.gen\.secret\b",
    r"artisan key:generate --show\b",
    r"secrets\.token_(?:hex|urlsafe)\(",
    r"randomBytes\(",
    r"/dev/u?random\b",
];

/// Commands that print a part of a file or of a configuration.
const SELECTED: &[&str] =
    &[r"(?:jq|yq|awk|cut|sed|grep|config get|config --get|configure get|getent)\b[^\n]*?\bNAME\b"];

static STORED_COMMANDS: LazyLock<Regex> = LazyLock::new(|| commands(STORED));
static GENERATED_COMMANDS: LazyLock<Regex> = LazyLock::new(|| commands(GENERATED));
static SELECTED_COMMANDS: LazyLock<Regex> = LazyLock::new(|| commands(SELECTED));

fn commands(patterns: &[&str]) -> Regex {
    let all = patterns.join("|").replace("NAME", NAME).replace("...", r"(?:[^|;&\n]*)");
    #[expect(clippy::unwrap_used, reason = "the patterns are ours, and tests compile them")]
    Regex::new(&format!(r#"(?i)(?:^|[\s;|&('"`$/.])(?:{all})"#)).unwrap()
}

impl SecretPrinter {
    /// Returns how a shell command prints a secret; `None` if it prints something else.
    pub fn of_command(command: &str) -> Option<Self> {
        if command.len() > MAX_COMMAND {
            return None;
        }
        let all = [
            (&STORED_COMMANDS, Self::Stored),
            (&GENERATED_COMMANDS, Self::Generated),
            (&SELECTED_COMMANDS, Self::Selected),
        ];
        all.into_iter().find(|(commands, _)| commands.is_match(command)).map(|(_, printer)| printer)
    }

    /// Returns the secret that the output of the command consists of.
    pub(crate) fn secret_in(self, output: &str) -> Option<Range<usize>> {
        if output.len() > MAX_OUTPUT {
            return None;
        }
        let word = output.trim();
        let is_plain = word.len() >= 8
            && word.bytes().all(|byte| byte.is_ascii_graphic())
            && !word.contains("://")
            && !is_file(word)
            && heuristics::is_password(word);
        let is_secret = is_plain
            && match self {
                Self::Stored => word.bytes().any(|byte| byte.is_ascii_digit()) || is_secret_like(word),
                Self::Generated => word.len() >= 16,
                Self::Selected => !word.contains([':', '(', '{', '"', ',']) && is_secret_like(word),
            };
        let start = output.len() - output.trim_start().len();
        is_secret.then(|| start..start + word.len())
    }
}

/// Returns whether a word looks like a secret rather than a name.
fn is_secret_like(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_made =
        heuristics::is_varied(word) || heuristics::is_random(bytes) || heuristics::is_scrambled(bytes);
    is_made && !heuristics::is_placeholder_value(word) || assignment::is_phrase(word, false)
}

/// Returns whether a word is the name of a file.
fn is_file(word: &str) -> bool {
    let is_path = word.contains('/') && !heuristics::is_random(word.as_bytes());
    let extension = word.rsplit_once('.').map_or("", |(_, extension)| extension);
    is_path || (1..=5).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Returns the secret that a command of an interactive shell printed on the next line. `at` is a part of the
/// command, which a prompt precedes: `ada@loom:~$ gh auth token`.
pub(crate) fn find_after_prompt(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static PROMPT: LazyLock<Regex> = LazyLock::new(|| {
        #[expect(clippy::unwrap_used, reason = "the pattern is ours, and tests compile it")]
        Regex::new(r"^\s{0,8}(?:[^\s$#%>❯]{1,60}(?:[ :][^\n$#%>❯]{0,80})?)?[$#%>❯] ").unwrap()
    });
    const REACH: usize = 400;
    let from = text.floor_char_boundary(at.start.saturating_sub(REACH));
    let start = text[from..at.start].rfind('\n').map_or(from, |newline| from + newline + 1);
    let rest = &text[at.start..text.floor_char_boundary(at.end + MAX_COMMAND)];
    let (command, output) = rest.split_once('\n')?;
    let line = &text[start..at.start + command.len()];
    let prompt = PROMPT.find(line)?;
    let printer = SecretPrinter::of_command(&line[prompt.end()..])?;
    let output_start = at.start + command.len() + 1;
    let output = output.split('\n').next().unwrap_or_default();
    printer.secret_in(output).map(|range| output_start + range.start..output_start + range.end)
}

#[cfg(test)]
mod tests {
    use super::SecretPrinter;

    fn printed<'o>(command: &str, output: &'o str) -> Option<&'o str> {
        SecretPrinter::of_command(command)?.secret_in(output).map(|range| &output[range])
    }

    #[test]
    fn the_output_of_commands_that_print_a_secret_is_one() {
        for command in [
            "terraform output -raw db_password",
            "cd infra && terraform -chdir=prod output -raw rds_password 2>/dev/null",
            "printenv DB_PASSWORD",
            "docker exec db printenv POSTGRES_PASSWORD",
            "echo \"$DB_PASSWORD\"",
            "echo ${API_KEY}",
            "vault kv get -field=password secret/db",
            "aws secretsmanager get-secret-value --secret-id db --query SecretString --output text",
            "kubectl -n loom get secret db -o jsonpath='{.data.password}' | base64 -d",
            "gh auth token",
            "op read op://loom/db/password",
            "pass show db/prod",
            "bw get password db",
            "cat /run/secrets/db_password",
            "cat config/master.key",
            "jq -r .db.password config.json",
            "grep DB_PASSWORD .env | cut -d= -f2",
        ] {
            for secret in ["Weft-42-wArp", "shuttle7-prod", "kQ8zR4tVbN2xLm7p"] {
                let output = format!("{secret}\n");
                assert_eq!(printed(command, &output), Some(secret), "{command}");
            }
        }
        for command in
            ["openssl rand -base64 18", "wg genkey", "pwgen -s 24 1", "head -c 18 /dev/urandom | base64"]
        {
            assert_eq!(printed(command, "kQ8zR4tVbN2/Lm7p+s5d"), Some("kQ8zR4tVbN2/Lm7p+s5d"), "{command}");
        }
    }

    #[test]
    fn other_output_is_no_secret() {
        for (command, output) in [
            ("echo $PATH_TO_X", "kQ8zR4tVbN2xLm7p"),
            ("cat README.md", "kQ8zR4tVbN2xLm7p"),
            ("terraform output -raw vpc_id", "vpc-0a1b2c3d4e5f"),
            ("printenv DB_PASSWORD", ""),
            ("printenv DB_PASSWORD", "changeme"),
            ("echo $DB_PASSWORD", "the password is empty"),
            ("gh auth token", "no oauth token found"),
            ("cat .secrets/db_password", "cat: .secrets/db_password: No such file"),
            ("grep -rl password src", "src/auth/v2/login2.rs"),
            ("grep -c token log2", "42000000"),
            ("grep -o 'token[A-Za-z0-9]*' x", "tokenKind2Of3"),
            ("jq -r .token.type x.json", "authorization"),
            ("openssl rand -hex 2", "a1b2"),
            ("grep token lexer.rs", "Token::Ident2,"),
        ] {
            assert_eq!(printed(command, output), None, "{command}");
        }
    }
}
