//! Secrets that are recognized by more than a prefix: private keys, passwords in URLs, headers and commands.
//!
//! The file is long because it is a table of many small rules. The modules contain the functions of the rules
//! that a pattern cannot express.

mod key;
mod login;
mod shell;
mod token;
mod web;

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::alphabet::Alphabet;
use crate::{heuristics, printed};

pub(crate) use self::token::discord_token;

/// A secret with a shape: the anchors that indicate it, and how it is found around them.
pub(crate) struct SecretShape {
    pub(crate) kind: &'static str,
    pub(crate) description: &'static str,
    pub(crate) anchors: &'static [&'static str],
    pub(crate) find: ShapeFinder,
}

/// Finds several secrets around an anchor.
type FindAll = fn(&str, Range<usize>, &mut dyn FnMut(Range<usize>));

/// How a shape is found around an anchor.
pub(crate) enum ShapeFinder {
    /// With a function that examines the text around the anchor.
    One(fn(&str, Range<usize>) -> Option<Range<usize>>),
    /// With a pattern, matched at the start of the word that contains the anchor. Its first group, if any, is
    /// the secret.
    Word(Alphabet, LazyLock<Regex>),
    /// With a pattern, matched at the anchor. Its first group that matches is the secret, if it looks like a
    /// key or mixes kinds of characters: code and prose have words at the same place.
    Varied(LazyLock<Regex>),
    /// With a function that may find several secrets around the anchor.
    Several(FindAll),
}

/// The maximum number of bytes examined after an anchor.
const REACH: usize = 20_000;

/// The maximum number of bytes examined before and after the type of a JSON web key.
const KEY_REACH: usize = 4_000;

/// The maximum number of bytes examined for short secrets.
const SHORT_REACH: usize = 600;

macro_rules! word {
    ($alphabet:ident, $pattern:literal) => {
        ShapeFinder::Word(Alphabet::$alphabet, LazyLock::new(|| regex($pattern)))
    };
}

macro_rules! varied {
    ($pattern:literal) => {
        ShapeFinder::Varied(LazyLock::new(|| regex($pattern)))
    };
}

#[expect(clippy::unwrap_used, reason = "the patterns are ours, and a test compiles every one of them")]
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

pub(crate) static SHAPES: [SecretShape; 92] = [
    SecretShape {
        kind: "private-key",
        description: "a private key",
        anchors: &["-----begin "],
        find: ShapeFinder::One(key::private_key),
    },
    SecretShape {
        kind: "private-key",
        description: "a private key",
        anchors: &["private-lines: "],
        find: ShapeFinder::One(key::putty_key),
    },
    SecretShape {
        kind: "jwt",
        description: "a JSON web token",
        anchors: &["eyj"],
        find: ShapeFinder::One(token::jwt),
    },
    SecretShape {
        kind: "password",
        description: "a password in a URL",
        anchors: &["://"],
        find: ShapeFinder::One(web::address),
    },
    SecretShape {
        kind: "authorization",
        description: "an Authorization header",
        anchors: &["bearer ", "bearer%20"],
        find: ShapeFinder::One(web::bearer),
    },
    SecretShape {
        kind: "authorization",
        description: "an Authorization header",
        anchors: &["basic "],
        find: ShapeFinder::One(web::basic),
    },
    SecretShape {
        kind: "authorization",
        description: "an Authorization header",
        anchors: &["authorization"],
        find: word!(
            Url,
            r#"(?i)^(?:proxy-)?authorization(?:\\*["'])?\s*[:=,]\s*(?:\\*["'])?(?:(?:token|apikey|api-key|bot|ssws|key|genie[a-z]*) (?:token=)?)?([A-Za-z0-9_.~+/=-]{20,})"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a .netrc password",
        anchors: &["machine ", "default login "],
        find: word!(
            Url,
            r"^(?:machine\s+\S+\s+login\s+\S+|default\s+login\s+(?:[^a\s]|a[^n\s])\S*)\s+(?:account\s+\S+\s+)?password\s+([^\s\[]{6,})"
        ),
    },
    SecretShape {
        kind: "password",
        description: "a Wi-Fi password",
        anchors: &["psk=", "wpa_passphrase", "sae_password=", "wifi-sec.psk ", "security.psk "],
        find: word!(
            Dotted,
            r#"^(?:psk=|wpa_passphrase(?:=| \S+ )|sae_password=|[a-z0-9.-]*\.psk )["']?([^\s"'<$\[]{8,64})"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password on a command line",
        anchors: &["rabbitmqctl ", "rclone obscure "],
        find: word!(
            Hex,
            r#"^(?:rabbitmqctl (?:-\S+ )*(?:add_user|change_password|authenticate_user) \S+|rclone obscure) ['"]?([^\s'"$<-][^\s'"]{4,})"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a Windows password",
        anchors: &["net user "],
        find: ShapeFinder::One(login::windows_user),
    },
    SecretShape {
        kind: "slack-webhook",
        description: "a Slack webhook",
        anchors: &["hooks.slack.com/"],
        find: word!(Dotted, r"^hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{30,})"),
    },
    SecretShape {
        kind: "discord-webhook",
        description: "a Discord webhook",
        anchors: &["/api/webhooks/"],
        find: word!(Hex, r"^/api/webhooks/[0-9]{17,20}/([A-Za-z0-9_-]{60,80})"),
    },
    SecretShape {
        kind: "teams-webhook",
        description: "a Teams webhook",
        anchors: &["webhook.office.com/"],
        find: word!(Dotted, r"^[A-Za-z0-9.-]*webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{80,})"),
    },
    SecretShape {
        kind: "telegram-token",
        description: "a Telegram bot token",
        anchors: &[":aa"],
        find: word!(Alnum, r"^(?:bot)?([0-9]{8,10}:AA[A-Za-z0-9_-]{33})(?:[^A-Za-z0-9_-]|$)"),
    },
    SecretShape {
        kind: "discord-token",
        description: "a Discord bot token",
        anchors: &["discord", "bot "],
        find: ShapeFinder::One(token::discord),
    },
    SecretShape {
        kind: "azure-secret",
        description: "an Azure client secret",
        anchors: &["q~"],
        find: word!(Header, r"^[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?:[^A-Za-z0-9_~.-]|$)"),
    },
    SecretShape {
        kind: "azure-devops-token",
        description: "an Azure DevOps token",
        anchors: &["azdo"],
        find: word!(Alnum, r"^([A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})(?:[^A-Za-z0-9]|$)"),
    },
    SecretShape {
        kind: "azure-signature",
        description: "a signed Azure URL",
        anchors: &["sig="],
        find: word!(Alnum, r"^sig=([A-Za-z0-9%+/]{43,60}(?:=|%3[dD])?)(?:[^A-Za-z0-9%+/=]|$)"),
    },
    SecretShape {
        kind: "aws-signature",
        description: "a signed AWS URL",
        anchors: &["x-amz-signature="],
        find: word!(Url, r"^(?i:x-amz-signature)=([0-9a-f]{64})"),
    },
    SecretShape {
        kind: "terraform-token",
        description: "a Terraform token",
        anchors: &[".atlasv1."],
        find: word!(Dotted, r"^([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70})"),
    },
    SecretShape {
        kind: "openai-key",
        description: "an OpenAI key",
        anchors: &["t3blbkfj"],
        find: word!(Url, r"^(sk-[A-Za-z0-9_-]{16,}T3BlbkFJ[A-Za-z0-9_-]{16,})"),
    },
    SecretShape {
        kind: "mailchimp-key",
        description: "a Mailchimp key",
        anchors: &["-us"],
        find: ShapeFinder::One(token::mailchimp),
    },
    SecretShape {
        kind: "airtable-token",
        description: "an Airtable token",
        anchors: &["pat"],
        find: ShapeFinder::One(token::airtable),
    },
    SecretShape {
        kind: "resend-key",
        description: "a Resend key",
        anchors: &["re_"],
        find: ShapeFinder::One(token::resend),
    },
    SecretShape {
        kind: "password-hash",
        description: "a password hash",
        anchors: &["$2a$", "$2b$", "$2y$"],
        find: word!(Hex, r"^(\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53})(?:[^./A-Za-z0-9]|$)"),
    },
    SecretShape {
        kind: "password-hash",
        description: "a password hash",
        anchors: &["$5$", "$6$"],
        find: word!(
            Hex,
            r"^(\$[56]\$(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{8,16}\$[./A-Za-z0-9]{43,86})(?:[^./A-Za-z0-9]|$)"
        ),
    },
    SecretShape {
        kind: "password-hash",
        description: "a password hash",
        anchors: &["$argon2"],
        find: word!(
            Hex,
            r"^(\$argon2(?:id|i|d)\$v=[0-9]+\$[mtp=0-9,]+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,})"
        ),
    },
    SecretShape {
        kind: "password-hash",
        description: "a password hash",
        anchors: &["$y$", "$gy$", "pbkdf2_sha", "pbkdf2:sha", "scram-sha-256$", "scrypt:"],
        find: word!(
            Hex,
            r"^(\$g?y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{8,}\$[./A-Za-z0-9]{43}|pbkdf2[_:]sha(?:1|256|512)[:$][0-9]+\$[A-Za-z0-9+/=.]{8,}\$[A-Za-z0-9+/=]{28,}|SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]{16,}\$[A-Za-z0-9+/=]{40,}:[A-Za-z0-9+/=]{40,}|scrypt:[0-9]+:[0-9]+:[0-9]+\$[A-Za-z0-9]{8,}\$[0-9a-f]{64,})"
        ),
    },
    SecretShape {
        kind: "private-key",
        description: "a private key",
        anchors: &["-----end "],
        find: ShapeFinder::One(key::private_key_end),
    },
    SecretShape {
        kind: "aws-secret-key",
        description: "an AWS secret access key",
        anchors: &["akia", "asia"],
        find: ShapeFinder::One(key::aws_secret),
    },
    SecretShape {
        kind: "asana-token",
        description: "an Asana token",
        anchors: &["2/1", "1/1", "2/2", "2/3", "2/4", "2/5", "2/6", "2/7", "2/8", "2/9"],
        find: word!(Hex, r"^([12]/[0-9]{13,19}(?:/[0-9]{13,19})?:[0-9a-f]{32})(?:[^0-9A-Za-z]|$)"),
    },
    SecretShape {
        kind: "private-key",
        description: "a private key of an account",
        anchors: &["accounts: [", "accounts:["],
        find: word!(Hex, r#"^accounts:\s?\[\s*["'`]((?:0x)?[0-9a-fA-F]{64})["'`]"#),
    },
    SecretShape {
        kind: "cookie",
        description: "a cookie",
        anchors: &["\ttrue\t/\t", "\tfalse\t/\t"],
        find: varied!(r"^\t(?i:TRUE|FALSE)\t/\t(?i:TRUE|FALSE)\t[0-9]+\t[^\t\n]{1,80}\t([^\s]{16,})"),
    },
    SecretShape {
        kind: "password",
        description: "a configured password",
        anchors: &[
            "bindpw ",
            "_authtok = ",
            "rocommunity ",
            "rwcommunity ",
            "createuser ",
            "new value: ",
            "passdb ",
            "masterauth ",
        ],
        find: varied!(
            r#"(?i)^(?:bindpw|[a-z_]*_authtok\s*=|r[ow]community|createuser \S+ (?:md5|sha[0-9-]*)|new value:) ["']?([^\s"'<$]{6,})"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password in a file of logins",
        anchors: &["\" \"", "\" * \""],
        find: ShapeFinder::One(login::listed_login),
    },
    SecretShape {
        kind: "cookie",
        description: "a cookie",
        anchors: &["\"value\"", "value\\\""],
        find: ShapeFinder::One(web::named_value),
    },
    SecretShape {
        kind: "password",
        description: "a password in a call",
        anchors: &["userpwd", "credentials(", "userpassword(", "credentials.basic("],
        find: varied!(
            r#"(?i)^(?:userpwd["']?\s*(?:,|=>|=)\s*["'][^"':\s]{1,60}:|(?:[a-z.]+)\(\s*["'][^"'\n]{1,80}["'],\s*["'])([^"'\s]{8,})["']"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password on a command line",
        anchors: &[
            "bw login ",
            "user:password ",
            "upwd ",
            "chpasswd <<",
            "changeme/",
            "changeme|",
            "changeme#",
        ],
        find: varied!(
            r#"(?i)^(?:bw login \S+@\S+ |user:password \S+ |upwd \S+ |chpasswd <<-?\s?['"]?[a-z]+['"]?\n[a-z0-9_.-]+:|changeme[/|#])['"]?([^\s'"/$|]{8,})"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password of a mail server",
        anchors: &[":587 ", ":465 ", ":25 "],
        find: varied!(r#"^:[0-9]+ [A-Za-z0-9_.@+-]{2,64}:([^\s"']{8,64})\s*(?:\n|$)"#),
    },
    SecretShape {
        kind: "password",
        description: "a password in an SQL statement",
        anchors: &["insert into "],
        find: ShapeFinder::Several(login::inserted_passwords),
    },
    SecretShape {
        kind: "password",
        description: "a password in a form",
        anchors: &["<input ", "<meta "],
        find: ShapeFinder::One(web::form_field),
    },
    SecretShape {
        kind: "password",
        description: "a password in a call",
        anchors: &[
            "client(",
            ".connect(",
            "->connect(",
            ".begin(",
            "simple_bind_s(",
            "simple_bind(",
            "authenticate(",
            "await login(",
            "create_superuser(",
            "create_user(",
        ],
        find: varied!(
            r#"(?i)^[.a-z_>-]*(?: login)?\(\s*(?:["'][^"'\n]{0,120}["']|[A-Za-z0-9_.$]{1,40}),\s*(?:(?:["'][^"'\n]{0,80}["']|[0-9]{1,5}),\s*){0,2}["']([^"'\s/]{8,})["'](?:,\s*["'][A-Za-z0-9_-]{1,40}["'])?\s*\)"#
        ),
    },
    SecretShape {
        kind: "signing-key",
        description: "a key in a call",
        anchors: &[
            "fernet(",
            "createcipheriv(",
            "createdecipheriv(",
            "secretstring::new(",
            "secretstring::from(",
            "secret::new(",
            "plaintext(",
            "unsafeplaintext(",
            "hashlib.",
        ],
        find: varied!(
            r#"(?i)^(?:[a-z:]+|hashlib\.[a-z0-9_]+)\(\s*(?:["']aes-[a-z0-9-]+["'],\s*)?b?["']([^"'\s]{8,})["']"#
        ),
    },
    SecretShape {
        kind: "docker-auth",
        description: "a Docker registry login",
        anchors: &["\"auth", "'auth"],
        find: ShapeFinder::One(login::docker_auth),
    },
    SecretShape {
        kind: "npm-token",
        description: "an npm registry login",
        anchors: &[":_authtoken", ":_password", ":_auth"],
        find: word!(Hex, r#"(?i)^:_(?:authToken|password|auth)(?:\s*=\s*|\s+)["']?([A-Za-z0-9_.~+/=-]{8,})"#),
    },
    SecretShape {
        kind: "cookie",
        description: "a cookie",
        anchors: &["cookie", " -b "],
        find: ShapeFinder::Several(web::cookies),
    },
    SecretShape {
        kind: "password",
        description: "a Redis password",
        anchors: &["requirepass ", "masterauth ", "auth "],
        find: ShapeFinder::One(login::redis_password),
    },
    SecretShape {
        kind: "npm-token",
        description: "an npm registry login",
        anchors: &["_auth="],
        find: ShapeFinder::One(login::npm_login),
    },
    SecretShape {
        kind: "url-key",
        description: "a key in a URL",
        anchors: &[
            "?key=",
            "&key=",
            "?sig=",
            "&sig=",
            "?signature=",
            "&signature=",
            "?auth=",
            "&auth=",
            "?code=",
            "&code=",
            "?sid=",
            "&sid=",
            "?session=",
            "&session=",
            "?hmac=",
            "&hmac=",
            "?subscription-key=",
            "&subscription-key=",
            "?appid=",
            "&appid=",
            "?jwt=",
            "&jwt=",
        ],
        find: ShapeFinder::One(web::url_key),
    },
    SecretShape {
        kind: "password",
        description: "a .pgpass password",
        anchors: &[
            ":5432:", ":5433:", ":5434:", ":5435:", ":5439:", ":6543:", ":15432:", ":25060:", ":26257:",
            ":54321:", ":54322:", ":6432:", ":*:",
        ],
        find: ShapeFinder::One(login::pgpass),
    },
    SecretShape {
        kind: "azure-devops-token",
        description: "an Azure DevOps token",
        anchors: &["azure", "devops", "_pat", "pat=", "pat:", "pat ", "visualstudio.com"],
        find: ShapeFinder::One(token::azure_token),
    },
    SecretShape {
        kind: "password",
        description: "a password on a command line",
        anchors: &["pass:", "password:"],
        find: ShapeFinder::One(shell::pass_source),
    },
    SecretShape {
        kind: "password",
        description: "a password in an SQL statement",
        anchors: &[
            "identified by ",
            "with password ",
            "encrypted password ",
            "user password ",
            "login password ",
        ],
        find: word!(
            Hex,
            r#"(?i)^(?:identified by|(?:with|encrypted|user|login) password) ['"]([^'"\s]{5,})['"]"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a piped password",
        anchors: &["echo ", "printf "],
        find: ShapeFinder::One(shell::piped),
    },
    SecretShape {
        kind: "password",
        description: "a PowerShell password",
        anchors: &["convertto-securestring ", "networkcredential("],
        find: word!(
            Hex,
            r#"(?i)^(?:convertto-securestring (?:-string )?|networkcredential\(["'][^"']*["'],\s*)["']([^"'$]{5,})["']"#
        ),
    },
    SecretShape {
        kind: "kubernetes-secret",
        description: "a Kubernetes secret value",
        anchors: &["--from-literal"],
        find: ShapeFinder::One(shell::literal),
    },
    SecretShape {
        kind: "password",
        description: "a configured secret",
        anchors: &["configure set ", "config set ", "config:set ", "secret set ", "secrets set ", "env add "],
        find: ShapeFinder::One(shell::configured),
    },
    SecretShape {
        kind: "password",
        description: "an htpasswd password",
        anchors: &["htpasswd "],
        find: word!(
            Hex,
            r#"^htpasswd\s+(?:-[A-Za-z]*n[A-Za-z]*b[A-Za-z]*|-[A-Za-z]*b[A-Za-z]*n[A-Za-z]*|-[A-Za-z]*b[A-Za-z]*\s+(?:-\S+\s+)*\S+)\s+(?:-\S+\s+)*\S+\s+['"]?([^\s'"$]{5,})"#
        ),
    },
    SecretShape {
        kind: "password-hash",
        description: "a password hash",
        anchors: &["$apr1$", "$1$"],
        find: word!(Hex, r"^(\$(?:apr1|1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22})(?:[^./A-Za-z0-9]|$)"),
    },
    SecretShape {
        kind: "ansible-vault",
        description: "an Ansible vault",
        anchors: &["$ansible_vault;"],
        find: word!(Hex, r"^\$ANSIBLE_VAULT;[0-9.]+;[A-Z0-9]+(?:;[^\n\\]*)?((?:\s|\\[nr]|[0-9a-f]{16,})+)"),
    },
    SecretShape {
        kind: "django-key",
        description: "a Django secret key",
        anchors: &["django-insecure-"],
        find: word!(Url, r#"^django-insecure-[^\s'"\\]{20,}"#),
    },
    SecretShape {
        kind: "private-key",
        description: "a private key",
        anchors: &["---- begin ssh2 "],
        find: word!(
            Hex,
            r"^---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----((?:\s|\\[nr]|[A-Za-z-]+: [^\n\\]*|[A-Za-z0-9+/=]{16,})+)"
        ),
    },
    SecretShape {
        kind: "authorization",
        description: "an Authorization header",
        anchors: &["signature="],
        find: word!(Url, r#"(?i)^signature="?([0-9a-f]{64})(?:[^0-9a-f]|$)"#),
    },
    SecretShape {
        kind: "sql-login",
        description: "an sqlplus password",
        anchors: &["sqlplus ", "sqlldr ", "rman "],
        find: word!(
            Hex,
            r#"^(?:sqlplus|sqlldr|rman)\s+(?:-\S+\s+)*['"]?[A-Za-z0-9_$]+/['"]?([^\s'"@/$]{5,})['"]?@"#
        ),
    },
    SecretShape {
        kind: "private-key",
        description: "a private key",
        anchors: &["client-key-data", "client_key_data", "tls.key"],
        find: word!(
            Url,
            r#"^(?:client[-_]key[-_]data|tls\.key)\\*["']?\s*[:=]\s*\\*["']?([A-Za-z0-9+/=]{40,})"#
        ),
    },
    SecretShape {
        kind: "private-key",
        description: "a private key",
        anchors: &["\"kty"],
        find: ShapeFinder::Several(key::json_web_key),
    },
    SecretShape {
        kind: "rails-key",
        description: "a Rails master key",
        anchors: &["master.key", "production.key", "staging.key", "development.key"],
        find: word!(
            Hex,
            r"^(?:master|production|staging|development)\.key(?::\s*|\s*\n\s*(?:[0-9]+(?:→|\t))?)([0-9a-f]{32})(?:[^0-9A-Za-z]|$)"
        ),
    },
    SecretShape {
        kind: "wordpress-key",
        description: "a WordPress key",
        anchors: &["define("],
        find: word!(
            Hex,
            r#"(?i)^define\(\s*['"](?:(?:SECURE_)?AUTH|LOGGED_IN|NONCE)_(?:KEY|SALT)['"]\s*,\s*['"]([^'"\n]{30,})['"]"#
        ),
    },
    SecretShape {
        kind: "hubspot-token",
        description: "a HubSpot token",
        anchors: &["pat-na", "pat-eu", "pat-ap", "pat-au", "pat-ca"],
        find: word!(
            Hex,
            r"^(pat-[a-z]{2}[0-9]-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})"
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password in a URL",
        anchors: &["jdbc:oracle:"],
        find: word!(Hex, r#"^jdbc:oracle:[a-z0-9]+:[A-Za-z0-9_$]+/([^\s@/"']{5,})@"#),
    },
    SecretShape {
        kind: "password",
        description: "a Windows password",
        anchors: &["net use ", "new-smbmapping "],
        find: ShapeFinder::One(login::windows_share),
    },
    SecretShape {
        kind: "password",
        description: "a VPN password",
        anchors: &[": psk \"", ": eap \"", ": xauth \"", ": psk '", ": ntlm \""],
        find: word!(Hex, r#"(?i)^: (?:psk|eap|xauth|ntlm) ["']([^"'\s$<]{5,})["']"#),
    },
    SecretShape {
        kind: "password",
        description: "a password of a network device",
        anchors: &["secret 0 ", "secret 5 ", "secret 8 ", "secret 9 ", "password 0 ", "password 7 "],
        find: word!(Hex, r"^(?i:secret|password) [0-9] ([^\s<$]{5,})"),
    },
    SecretShape {
        kind: "password",
        description: "a password of a network device",
        anchors: &["enable secret ", "enable password ", "snmp-server community ", "pre-shared-key "],
        find: ShapeFinder::One(shell::device_password),
    },
    SecretShape {
        kind: "password",
        description: "a password on a command line",
        anchors: &["rclone config "],
        find: word!(
            Hex,
            r#"^rclone config (?:create|update|password) [^\n]{0,200}?\b(?:pass2?|password|token|secret_access_key|client_secret|key)[ =]['"]?([^\s'"$<]{5,})"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a Redis password",
        anchors: &["\"auth\"", "'auth'"],
        find: word!(
            Hex,
            r#"(?i)^["']auth["'],\s*(?:["'][A-Za-z0-9_.-]+["'],\s*)?["']([^\s"'\\$<]{6,})["']\s*[,)\]]"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a configured password",
        anchors: &["http-basic.", "pypi-token.", "bundle config ", "sonar.login="],
        find: word!(
            Hex,
            r#"^(?:http-basic\.\S+ \S+ |pypi-token\.\S+ |bundle config (?:set )?(?:--\S+ )*\S+ [^\s:/]+:|sonar\.login=)['"]?([^\s'"$<-][^\s'"]{5,})"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a printed password",
        anchors: &[
            "/run/secrets/",
            "pass show ",
            "base64 -d",
            "base64 --decode",
            "op read ",
            "find-generic-password",
            "get-secret-value",
            "secrets versions access",
        ],
        find: ShapeFinder::One(shell::printed_password),
    },
    SecretShape {
        kind: "password",
        description: "a printed password",
        anchors: &[
            "output -raw ",
            "printenv ",
            "echo $",
            "echo \"$",
            "echo ${",
            "echo \"${",
            "-field=",
            "-field ",
            " auth token",
            "pass show ",
            "print-access-token",
            "get-access-token",
            "get-secret-value",
            "get-parameter ",
            "get secret",
            "create token ",
            "genkey",
            "openssl rand ",
            "pwgen",
            "bw get ",
            "op read ",
            "secrets get ",
            "secret show ",
            "find-generic-password",
            "secret-tool lookup",
        ],
        find: ShapeFinder::One(printed::find_after_prompt),
    },
    SecretShape {
        kind: "password",
        description: "a typed password",
        anchors: &[
            "send \"",
            "send -- \"",
            "sendline(\"",
            "sendline('",
            "send_keys(\"",
            "send-keys ",
            "xdotool type ",
        ],
        find: ShapeFinder::One(shell::typed_password),
    },
    SecretShape {
        kind: "password",
        description: "a password in an SQL statement",
        anchors: &["alter user ", "alter role ", "create user ", "create role ", "sp_addlogin "],
        find: varied!(
            r#"(?i)^(?:(?:alter|create) (?:user|role) [^;\n]{1,120}?\b(?:password|by)|sp_addlogin\s+N?'[^'\n]*',)\s*N?['"]([^'"\s]{5,})['"]"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password in a call",
        anchors: &[
            "auth=(",
            "auth = (",
            "basicauth(",
            "basic_auth(",
            ".login(",
            ".auth(",
            "passwordauthentication(",
            "httpbasicauth(",
            "cx_oracle.connect(",
        ],
        find: varied!(
            r#"(?i)^[.a-z_= ]+\(\s*(?:["'][^"'\n]{1,80}["']|[A-Za-z0-9_.$]{1,40}),\s*(?:Some\()?["']([^"'\s]{5,})["']"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password in a call",
        anchors: &[
            "getconnection(",
            "mysqli(",
            "mysqli_connect(",
            "mysql_connect(",
            "mysql.connect(",
            "pdo(",
            "sequelize(",
            "ldap_bind(",
        ],
        find: varied!(
            r#"(?i)^[.a-z_]+\(\s*[^,()\n]{1,200},\s*["'][^"'\n]{1,80}["'],\s*["']([^"'\s]{5,})["']"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password in a call",
        anchors: &[
            "password_hash(",
            "hashpw(",
            "bcrypt.hash",
            "bcrypt.compare",
            "crypt.crypt(",
            "make_password(",
        ],
        find: varied!(r#"(?i)^[.a-z_]+\(\s*(?:[A-Za-z0-9_.$]{1,40},\s*)?b?["']([^"'\s]{5,})["']"#),
    },
    SecretShape {
        kind: "signing-key",
        description: "a signing key",
        anchors: &[
            "jwt.sign(",
            "jwt.verify(",
            "jwt.encode(",
            "jwt.decode(",
            "createhmac(",
            "hmac.new(",
            "cookieparser(",
        ],
        find: varied!(
            r#"(?i)^(?:(?:cookieparser|hmac\.new)\(\s*|(?:jwt\.[a-z]+|createhmac)\([^\n]{1,160}?,\s*)b?["']([^"'\s]{12,})["']"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password on a command line",
        anchors: &[
            "mysqladmin ",
            "mc alias set ",
            "openssl passwd ",
            "mkpasswd ",
            "hash-password ",
            "encrypt_string ",
            "cargo login ",
        ],
        find: varied!(
            r#"^(?:mysqladmin [^\n|;&]{0,100}?\bpassword|mc alias set \S+ \S+ \S+|openssl passwd(?: -salt \S+| -\S+)*|mkpasswd(?: -[mSR] \S+| -\S+)*|hash-password --plaintext|encrypt_string|cargo login) ['"]?([^\s'"$<-][^\s'"]{4,})"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a parameter of AWS",
        anchors: &["put-parameter "],
        find: varied!(
            r#"^put-parameter (?:[^|;&]{0,300}?SecureString[^|;&]{0,200}?--value[ =]['"]?([^\s'"$]{5,})|[^|;&]{0,300}?--value[ =]['"]?([^\s'"$]{5,})[^|;&]{0,200}?SecureString)"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a default of a Terraform variable",
        anchors: &["variable \""],
        find: varied!(
            r#"(?i)^variable "[^"\n]*(?:passw|secret|token|api_?key)[^"\n]*"\s*\{[^{}]{0,300}?\bdefault\s*=\s*"([^"\s$]{8,})""#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a Redis password",
        anchors: &["setuser ", "user "],
        find: varied!(
            r#"(?i)^(?:setuser \S+|user [A-Za-z0-9_-]+ (?:on|off|reset)) (?:\S+ ){0,8}?>([^\s"'\\]{5,})"#
        ),
    },
    SecretShape {
        kind: "password",
        description: "a password of a data source",
        anchors: &["@tcp(", "@unix("],
        find: ShapeFinder::One(login::data_source),
    },
    SecretShape {
        kind: "password",
        description: "a password on standard input",
        anchors: &["<<<"],
        find: ShapeFinder::One(shell::here_string),
    },
];

impl SecretShape {
    /// Finds the secrets around the anchor at `at`.
    pub(crate) fn find(&self, text: &str, at: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
        match &self.find {
            ShapeFinder::One(find) => find(text, at).into_iter().for_each(found),
            ShapeFinder::Several(find) => find(text, at, found),
            ShapeFinder::Varied(regex) => {
                let secret = regex
                    .captures(near(text, at.start))
                    .and_then(|found| found.iter().skip(1).flatten().next());
                if let Some(secret) = secret.filter(|secret| is_varied_password(secret.as_str())) {
                    found(at.start + secret.start()..at.start + secret.end());
                }
            }
            ShapeFinder::Word(alphabet, regex) => {
                self.word(text, at, *alphabet, regex).into_iter().for_each(found)
            }
        }
    }

    fn word(&self, text: &str, at: Range<usize>, alphabet: Alphabet, regex: &Regex) -> Option<Range<usize>> {
        let start = word_start(text, at.start, alphabet);
        let found = regex.captures(reach(text, start))?;
        let secret = found.get(1).or_else(|| found.get(0))?;
        let range = start + secret.start()..start + secret.end();
        let token = text[range.clone()].as_bytes();
        let is_mixed = token.iter().any(u8::is_ascii_digit) || heuristics::is_scrambled(token);
        let is_password = matches!(self.kind, "password" | "sql-login");
        (heuristics::distinct(token) >= 6 && is_mixed
            || is_password && !heuristics::is_dummy(&text[range.clone()]))
        .then_some(range)
    }
}

/// Returns the start of the word that contains `at`.
fn word_start(text: &str, at: usize, alphabet: Alphabet) -> usize {
    let word = text.as_bytes()[at.saturating_sub(120)..at].iter().rev();
    at - word.take_while(|byte| alphabet.has(**byte)).count()
}

/// Returns the text from `start`, up to the maximum length of a secret.
fn reach(text: &str, start: usize) -> &str {
    &text[start..text.floor_char_boundary(start + REACH)]
}

/// Returns whether a value that may be a word of code or prose is a password or a key.
fn is_varied_password(value: &str) -> bool {
    let bytes = value.as_bytes();
    (heuristics::is_varied(value) || heuristics::is_random(bytes) || heuristics::is_scrambled(bytes))
        && heuristics::is_password(value)
        && !heuristics::is_fixture(value)
        && !heuristics::is_placeholder_value(value)
}

/// Returns a short part of the text from `start`.
fn near(text: &str, start: usize) -> &str {
    &text[start..text.floor_char_boundary(start + SHORT_REACH)]
}

#[cfg(test)]
mod tests {
    use super::{SHAPES, ShapeFinder};

    #[test]
    fn every_pattern_compiles() {
        for shape in &SHAPES {
            if let ShapeFinder::Word(_, regex) | ShapeFinder::Varied(regex) = &shape.find {
                assert!(regex.as_str().starts_with(['^', '(']), "{}", shape.kind);
            }
        }
    }
}
