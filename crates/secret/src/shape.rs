//! Secrets that are recognized by more than a prefix: private keys, passwords in URLs, headers and commands.
//!
//! The file is long because it is a table of many small rules, each followed by the function that checks it.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use regex::Regex;

use crate::alphabet::Alphabet;
use crate::form::begins_word;
use crate::{assignment, heuristics, printed};

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
        find: ShapeFinder::One(private_key),
    },
    SecretShape {
        kind: "private-key",
        description: "a private key",
        anchors: &["private-lines: "],
        find: ShapeFinder::One(putty_key),
    },
    SecretShape {
        kind: "jwt",
        description: "a JSON web token",
        anchors: &["eyj"],
        find: ShapeFinder::One(jwt),
    },
    SecretShape {
        kind: "password",
        description: "a password in a URL",
        anchors: &["://"],
        find: ShapeFinder::One(address),
    },
    SecretShape {
        kind: "authorization",
        description: "an Authorization header",
        anchors: &["bearer ", "bearer%20"],
        find: ShapeFinder::One(bearer),
    },
    SecretShape {
        kind: "authorization",
        description: "an Authorization header",
        anchors: &["basic "],
        find: ShapeFinder::One(basic),
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
        find: ShapeFinder::One(windows_user),
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
        find: ShapeFinder::One(discord),
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
        find: ShapeFinder::One(mailchimp),
    },
    SecretShape {
        kind: "airtable-token",
        description: "an Airtable token",
        anchors: &["pat"],
        find: ShapeFinder::One(airtable),
    },
    SecretShape {
        kind: "resend-key",
        description: "a Resend key",
        anchors: &["re_"],
        find: ShapeFinder::One(resend),
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
        find: ShapeFinder::One(private_key_end),
    },
    SecretShape {
        kind: "aws-secret-key",
        description: "an AWS secret access key",
        anchors: &["akia", "asia"],
        find: ShapeFinder::One(aws_secret),
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
        find: ShapeFinder::One(listed_login),
    },
    SecretShape {
        kind: "cookie",
        description: "a cookie",
        anchors: &["\"value\"", "value\\\""],
        find: ShapeFinder::One(named_value),
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
        find: ShapeFinder::Several(inserted_passwords),
    },
    SecretShape {
        kind: "password",
        description: "a password in a form",
        anchors: &["<input ", "<meta "],
        find: ShapeFinder::One(form_field),
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
        find: ShapeFinder::One(docker_auth),
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
        find: ShapeFinder::Several(cookies),
    },
    SecretShape {
        kind: "password",
        description: "a Redis password",
        anchors: &["requirepass ", "masterauth ", "auth "],
        find: ShapeFinder::One(redis_password),
    },
    SecretShape {
        kind: "npm-token",
        description: "an npm registry login",
        anchors: &["_auth="],
        find: ShapeFinder::One(npm_login),
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
        find: ShapeFinder::One(url_key),
    },
    SecretShape {
        kind: "password",
        description: "a .pgpass password",
        anchors: &[
            ":5432:", ":5433:", ":5434:", ":5435:", ":5439:", ":6543:", ":15432:", ":25060:", ":26257:",
            ":54321:", ":54322:", ":6432:", ":*:",
        ],
        find: ShapeFinder::One(pgpass),
    },
    SecretShape {
        kind: "azure-devops-token",
        description: "an Azure DevOps token",
        anchors: &["azure", "devops", "_pat", "pat=", "pat:", "pat ", "visualstudio.com"],
        find: ShapeFinder::One(azure_token),
    },
    SecretShape {
        kind: "password",
        description: "a password on a command line",
        anchors: &["pass:", "password:"],
        find: ShapeFinder::One(pass_source),
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
        find: ShapeFinder::One(piped),
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
        find: ShapeFinder::One(literal),
    },
    SecretShape {
        kind: "password",
        description: "a configured secret",
        anchors: &["configure set ", "config set ", "config:set ", "secret set ", "secrets set ", "env add "],
        find: ShapeFinder::One(configured),
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
        find: ShapeFinder::Several(json_web_key),
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
        find: ShapeFinder::One(windows_share),
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
        find: ShapeFinder::One(device_password),
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
        find: ShapeFinder::One(printed_password),
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
        find: ShapeFinder::One(typed_password),
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
        find: ShapeFinder::One(data_source),
    },
    SecretShape {
        kind: "password",
        description: "a password on standard input",
        anchors: &["<<<"],
        find: ShapeFinder::One(here_string),
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
                let secret = secret.filter(|secret| is_varied_password(secret.as_str()));
                secret
                    .map(|secret| at.start + secret.start()..at.start + secret.end())
                    .into_iter()
                    .for_each(found);
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
    let mut end = text.len().min(start + REACH);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[start..end]
}

/// Finds a PEM private key: `-----BEGIN … PRIVATE KEY-----`, base64, `-----END … PRIVATE KEY-----`.
///
/// The body may be escaped, quoted, or have line numbers. A truncated key ends with its last line.
fn private_key(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"^-----BEGIN (?:(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----")
    });
    static BODY: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:\s|\\[nrt]|["'`,+|>→-]|[0-9]{1,6}(?:→|\t|: )|[A-Za-z][A-Za-z-]*: [^\n\\]*|[A-Za-z0-9+/=]{1,})+"#,
        )
    });
    let rest = reach(text, at.start);
    let head = HEAD.find(rest)?.end();
    // Any further `-----` ends the key. This keeps the cost of many headers linear.
    let rule = rest[head..].find("-----").map(|rule| head + rule);
    let closed = rule.filter(|rule| rest[*rule..].starts_with("-----END ")).and_then(|rule| {
        let tail = &rest[rule + 9..];
        let end = tail.find("-----").filter(|end| *end < 50)?;
        Some(rule + 9 + end + 5)
    });
    let open = || Some(head + BODY.find(&rest[head..rule.unwrap_or(rest.len())])?.end());
    let end = closed.or_else(open)?;
    let runs = rest.as_bytes()[head..end].split(|byte| !Alphabet::Base64.has(*byte) || *byte == b'=');
    let body: usize = runs
        .filter(|run| run.len() >= 16)
        .map(|run| if heuristics::distinct(run) >= 8 { run.len() } else { 0 })
        .sum();
    (body >= 48).then(|| at.start..at.start + end)
}

/// Finds the last lines of a private key whose first lines were not printed: base64 before `-----END`.
fn private_key_end(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static TAIL: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"));
    TAIL.find(near(text, at.start))?;
    let bytes = &text.as_bytes()[at.start.saturating_sub(KEY_REACH)..at.start];
    let is_part = |byte: &u8| Alphabet::Base64.has(*byte) || byte.is_ascii_whitespace();
    let length = bytes.iter().rev().take_while(|byte| is_part(byte)).count();
    let start = at.start - length;
    // The key begins with its own header.
    if text[..start].ends_with('-') || length == bytes.len() && start > 0 {
        return None;
    }
    let body = text[start..at.start].trim_start();
    let is_key = body.lines().next().is_some_and(|line| line.len() >= 40)
        && heuristics::is_random(body.lines().next().unwrap_or_default().as_bytes());
    is_key.then(|| at.start - body.len()..at.start)
}

/// Finds the secret access key beside the id of an AWS key: 40 characters of base64.
fn aws_secret(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    const LENGTH: usize = 40;
    const ID: usize = 20;
    let bytes = text.as_bytes();
    let id = bytes.get(at.start..at.start + ID)?;
    if !begins_word(bytes, at.start) || Alphabet::Upper.run(id) != ID {
        return None;
    }
    let end = bytes.len().min(at.start + ID + 160);
    let mut from = at.start + ID;
    while from < end {
        let length = Alphabet::Base64.run(&bytes[from..bytes.len().min(from + LENGTH + 1)]);
        let word = &bytes[from..from + length];
        let has = |kind: fn(&u8) -> bool| word.iter().any(kind);
        if length == LENGTH
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_digit)
            && heuristics::is_random(word)
        {
            return Some(from..from + LENGTH);
        }
        from += length.max(1);
    }
    None
}

/// Finds the password in a line of two or more quoted words, such as those of PgBouncer and of pppd: `"ada"
/// "…"`.
fn listed_login(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static REST: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"^" (?:\* )?"([^\s"'\\<${}]{8,64})"(?: \*)?[ \t]*(?:\n|$)"#));
    let from = text.floor_char_boundary(at.start.saturating_sub(64));
    let user =
        text[from..at.start].rsplit('\n').next()?.trim_start_matches(|letter: char| !letter.is_ascii());
    let user =
        user.trim_start_matches(|letter: char| letter.is_ascii_digit() || b" \t".contains(&(letter as u8)));
    let user = user.trim_start_matches('→').strip_prefix('"')?;
    if user.is_empty() || user.contains(['"', ' ']) {
        return None;
    }
    let value = REST.captures(near(text, at.start))?.get(1)?;
    is_varied_password(value.as_str()).then(|| at.start + value.start()..at.start + value.end())
}

/// Finds a random value with the name of a cookie: `{"name": "session", "value": "…"}`, or of an account key.
fn named_value(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static VALUE: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"^"?value\\*"\s*:\s*\\*"([A-Za-z0-9_.%+/=~-]{16,600})\\*""#));
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"(?i)"(?:name\\*"\s*:\s*\\*"[^"]*(?:sess|sid\b|jwt|cookie|auth)[^"]*|keyName\\*"\s*:\s*\\*"key[12])\\*"[^{}]*$"#,
        )
    });
    let value = VALUE.captures(near(text, at.start))?.get(1)?;
    if !heuristics::is_random(value.as_str().as_bytes()) {
        return None;
    }
    let before = &text[text.floor_char_boundary(at.start.saturating_sub(200))..at.start];
    NAME.is_match(before).then(|| at.start + value.start()..at.start + value.end())
}

/// Finds the passwords of `INSERT INTO users (name, password) VALUES ('ada', '…')`.
fn inserted_passwords(text: &str, at: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
    static HEAD: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?i)^insert into [^\s(]{1,80}\s*\(([^()]{1,300})\)\s*values\s*\("));
    let rest = near(text, at.start);
    let Some(head) = HEAD.captures(rest) else { return };
    let names = head[1].to_ascii_lowercase();
    let is_name = |name: &str| {
        let name = name.trim_matches([' ', '"', '`', '[', ']', '\n']);
        name.ends_with("password")
            || name.ends_with("passwd")
            || name.ends_with("secret")
            || name.ends_with("token")
    };
    let start = at.start + head[0].len();
    // Values that contain a comma or a bracket are rare.
    let row = rest[head[0].len()..].split(')').next().unwrap_or_default();
    let mut from = start;
    for (name, value) in names.split(',').zip(row.split(',')) {
        let word = value.trim();
        let word = word.strip_prefix(['\'', '"']).and_then(|word| word.strip_suffix(['\'', '"']));
        if is_name(name)
            && let Some(word) = word
            && word.len() >= 8
            && (is_varied_password(word) || heuristics::is_generated(word))
        {
            let offset = value.len() - value.trim_start().len() + 1;
            found(from + offset..from + offset + word.len());
        }
        from += value.len() + 1;
    }
}

/// Finds the value of `<input type="password" value="…">`, and of other fields and `<meta>` elements that are
/// named like a secret.
fn form_field(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"(?i)\b(type|name|id|value|defaultValue|content)=(?:"([^"]*)"|'([^']*)'|\{?["'`]?([^\s"'>]+))"#,
        )
    });
    let rest = near(text, at.start);
    let tag = &rest[..rest.find('>').unwrap_or(rest.len())];
    let (mut is_secret, mut value) = (false, None);
    for found in ATTRIBUTE.captures_iter(tag) {
        let text = found.iter().skip(2).flatten().next()?;
        match &*found[1].to_ascii_lowercase() {
            "value" | "defaultvalue" | "content" => value = Some(text),
            "type" => is_secret |= text.as_str().eq_ignore_ascii_case("password"),
            _ => {
                let name = text.as_str().to_ascii_lowercase().replace('-', "_");
                is_secret |= [
                    "password",
                    "passwd",
                    "secret",
                    "api_key",
                    "apikey",
                    "api_token",
                    "access_token",
                    "auth_token",
                ]
                .iter()
                .any(|end| name.ends_with(end));
            }
        }
    }
    let value = value.filter(|_| is_secret)?;
    let is_real = value.len() >= 8
        && (is_varied_password(value.as_str()) || assignment::is_phrase(value.as_str(), false));
    is_real.then(|| at.start + value.start()..at.start + value.end())
}

/// Finds a PuTTY private key: `Private-Lines: 14` and lines of base64.
fn putty_key(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static BODY: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^Private-Lines: [0-9]+((?:\s|\\[nr]|[A-Za-z0-9+/=]{20,})+)"));
    let rest = reach(text, at.start);
    let body = BODY.captures(rest)?.get(1)?;
    (body.len() >= 40).then(|| at.start + body.start()..at.start + body.end())
}

/// Finds a JWT: three or five parts of base64, the first of which is JSON with an algorithm.
fn jwt(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"^(eyJ[A-Za-z0-9_-]{10,})\.([A-Za-z0-9_-]*)\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]+){0,2}")
    });
    if !begins_word(text.as_bytes(), at.start) || !text[at.clone()].starts_with("eyJ") {
        return None;
    }
    let found = TOKEN.captures(reach(text, at.start))?;
    let header = URL_SAFE_NO_PAD.decode(&found[1]).ok()?;
    let names = |bytes: &[u8], name: &str| bytes.windows(name.len()).any(|part| part == name.as_bytes());
    names(&header, "\"alg\"").then(|| at.start..at.start + found[0].len())
}

/// Finds the password of `scheme://user:password@host`, or the token of `scheme://token@host`.
fn address(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if at.start == 0 || !bytes[at.start - 1].is_ascii_alphanumeric() {
        return None;
    }
    let rest = &bytes[at.end..bytes.len().min(at.end + 600)];
    let stop = |byte: u8| {
        byte <= b' ' || byte >= 0x7F || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'|')
    };
    // An unencoded password may contain `?` or `#`. A path before the `@` means that there is no password.
    let until =
        |ends: &[u8]| rest.iter().position(|byte| stop(*byte) || ends.contains(byte)).unwrap_or(rest.len());
    let login = |length: usize| Some((length, rest[..length].iter().rposition(|byte| *byte == b'@')?));
    let (length, login) = login(until(b"/?#")).or_else(|| login(until(b"/")))?;
    let host = &rest[login + 1..length];
    if !host.first().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let (user, secret) = match rest[..login].iter().position(|byte| *byte == b':') {
        Some(colon) => (&text[at.end..at.end + colon], at.end + colon + 1..at.end + login),
        None => ("", at.end..at.end + login),
    };
    let password = &text[secret.clone()];
    // Several asterisks mask a password.
    let has_signs =
        password.bytes().any(|byte| matches!(byte, b'$' | b'{' | b'}' | b'(' | b')' | b'[' | b']' | b','));
    let plain = !password.contains("**") && (!has_signs || heuristics::is_generated(password));
    let real = if user.is_empty() && secret.start == at.end {
        heuristics::is_random(password.as_bytes()) && password.len() >= 20
    } else {
        // A short word may be an example: `ada:loom`.
        let is_word =
            heuristics::is_wordy(password.as_bytes()) && !password.bytes().any(|byte| byte.is_ascii_digit());
        let least = if is_word { 8 } else { 5 };
        password.len() >= least && password != user && !heuristics::is_dummy(password)
    };
    (plain && real).then_some(secret)
}

/// Finds the random token after `Bearer`.
fn bearer(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let token = Alphabet::Header.run(&text.as_bytes()[at.end..]);
    let range = at.end..at.end + token;
    let token = text[range.clone()].trim_end_matches('.');
    (token.len() >= 20 && heuristics::is_random(token.as_bytes()) && !heuristics::is_placeholder_value(token))
        .then(|| range.start..range.start + token.len())
}

/// Finds the base64 of `user:password` after `Basic`.
fn basic(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let token = Alphabet::Base64.run(&text.as_bytes()[at.end..]);
    let range = at.end..at.end + token;
    if token < 8 {
        return None;
    }
    let decoded = STANDARD.decode(&text[range.clone()]).ok()?;
    let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    let plain = decoded.iter().all(|byte| (b' '..0x7F).contains(byte));
    (plain && (!user.is_empty() || !password.is_empty()) && !heuristics::is_dummy(password)).then_some(range)
}

/// Finds the base64 of `user:password` in `"auth": "…"`.
fn docker_auth(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static VALUE: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"^["']auth\\*["']\s*:\s*\\*["']([A-Za-z0-9+/=_-]{8,})"#));
    let value = VALUE.captures(near(text, at.start))?.get(1)?;
    let range = at.start + value.start()..at.start + value.end();
    is_login(value.as_str()).then_some(range)
}

/// Finds the base64 of `user:password` in a line `_auth=…` of an `.npmrc`.
fn npm_login(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let is_start = text[..at.start].is_empty() || text[..at.start].ends_with(['\n', ' ', '\t']);
    let length = Alphabet::Base64.run(&text.as_bytes()[at.end..text.len().min(at.end + SHORT_REACH)]);
    let value = &text[at.end..at.end + length];
    (is_start && is_login(value)).then_some(at.end..at.end + length)
}

/// Finds the password in `requirepass …` of a configuration, or in the command `AUTH [user] …`.
fn redis_password(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:(?:requirepass|masterauth)[ \t]+|AUTH (?:[A-Za-z0-9_.-]+ )?)["']?([^\s"'\\]{6,})["']?\s*(?:\n|$|\\n)"#,
        )
    });
    let before = text[..at.start].trim_end_matches(' ');
    if !(before.is_empty() || before.ends_with(['\n', '>', '"', '\'']) || before.ends_with("\\n")) {
        return None;
    }
    let value = LINE.captures(near(text, at.start))?.get(1)?;
    let bytes = value.as_str().as_bytes();
    let is_mixed = bytes.iter().any(u8::is_ascii_digit) || heuristics::is_scrambled(bytes);
    let is_strong = is_mixed && heuristics::is_password(value.as_str());
    is_strong.then_some(at.start + value.start()..at.start + value.end())
}

/// Returns whether base64 decodes to a user and a password.
fn is_login(base64: &str) -> bool {
    let decoded = STANDARD.decode(base64).or_else(|_| URL_SAFE_NO_PAD.decode(base64.trim_end_matches('=')));
    let Some(decoded) = decoded.ok().and_then(|decoded| String::from_utf8(decoded).ok()) else {
        return false;
    };
    let Some((user, password)) = decoded.split_once(':') else { return false };
    decoded.bytes().all(|byte| (b' '..0x7F).contains(&byte))
        && (!user.is_empty() || !password.is_empty())
        && !heuristics::is_dummy(password)
}

/// Finds cookies in `Cookie: a=…; b=…`, `Set-Cookie: a=…; Path=/` and `curl -b a=…`: random values, and
/// passwords in session cookies.
fn cookies(text: &str, at: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"(?i)^(?:cookies?(?:\\*["'])?\]?(?:\s*[:=,]\s*|\s+)[\[]?| -b )(?:\\*["'])?"#)
    });
    let rest = near(text, at.start);
    let Some(head) = HEAD.find(rest) else { return };
    // After a flag, the value follows a space; in prose, a space means nothing.
    let by_space = !head.as_str().contains([':', '=', ',']);
    let is_flag = match head.as_str().starts_with(' ') {
        true => {
            let from = text.floor_char_boundary(at.start.saturating_sub(SHORT_REACH));
            text[from..=at.start].lines().next_back().is_some_and(|line| line.contains("curl "))
        }
        false => text[..at.start].ends_with("--"),
    };
    if by_space && !is_flag {
        return;
    }
    cookie_dictionary(text, at.start + head.end(), found);
    let line = rest[head.end()..].split(['\n', '"', '\'', '\\']).next().unwrap_or_default();
    let mut from = at.start + head.end();
    for part in line.split(';') {
        let place = from;
        from += part.len() + 1;
        let Some((name, value)) = part.split_once('=') else { continue };
        let start = place + name.len() + 1;
        let value = value.trim_end();
        let lower = name.trim().to_ascii_lowercase();
        let is_attribute =
            ["path", "domain", "expires", "max-age", "samesite", "priority"].contains(&&*lower);
        let is_session =
            ["sess", "sid", "auth", "token", "jwt", "login", "remember", "secret", "cookie", "csrf"]
                .iter()
                .any(|word| lower.contains(word));
        let bytes = value.as_bytes();
        let plain =
            bytes.iter().all(|byte| (b'!'..0x7F).contains(byte)) && !value.contains(['$', '{', '<', '(']);
        let real = value.len() >= 16 && heuristics::is_random(bytes)
            || is_session
                && value.len() >= 8
                && heuristics::is_password(value)
                && bytes.iter().any(u8::is_ascii_digit);
        if !is_attribute
            && plain
            && real
            && !heuristics::is_placeholder_value(value)
            && !lower.starts_with("_ga")
        {
            found(start..start + value.len());
        }
    }
}

/// Finds the random values of a dictionary of cookies: `cookies={'sessionid': '…'}`.
fn cookie_dictionary(text: &str, start: usize, found: &mut dyn FnMut(Range<usize>)) {
    static PAIR: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"["'][A-Za-z0-9_.-]{1,64}\\*["']\s*(?::|=>)\s*\\*["']([!#-&(-\[\]-~]{16,})"#)
    });
    let Some(rest) = near(text, start).strip_prefix('{') else { return };
    let body = rest.split(['}', '\n']).next().unwrap_or_default();
    for value in PAIR.captures_iter(body).filter_map(|pair| pair.get(1)) {
        if heuristics::is_random(value.as_str().as_bytes()) {
            found(start + 1 + value.start()..start + 1 + value.end());
        }
    }
}

/// Finds a key in a URL: `?key=…` and similar.
fn url_key(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let length = Alphabet::Header.run(&text.as_bytes()[at.end..text.len().min(at.end + 600)]);
    let value = text[at.end..at.end + length].trim_end_matches('.');
    // A short code or session may identify a page; a key is long.
    let least = if text[at.start + 1..at.end].eq_ignore_ascii_case("key=") { 16 } else { 20 };
    let real = value.len() >= least
        && heuristics::is_random(value.as_bytes())
        && !heuristics::is_placeholder_value(value);
    let is_uuid = value.len() == 36 && Alphabet::Hyphened.run(value.as_bytes()) == 36;
    (real && !is_uuid).then(|| at.end..at.end + value.len())
}

/// Finds the password of `net user NAME PASSWORD /add`.
fn windows_user(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:\\*"[^"\n]+"|[^\s"]+)[ \t]+(?:\\*")?([^\s"/*%$\\][^\s"\\]{4,})(?:\\*")?([ \t]+/[A-Za-z])?"#,
        )
    });
    let command = COMMAND.captures(near(text, at.end))?;
    let password = command.get(1)?;
    let is_command = command.get(2).is_some() || heuristics::is_varied(password.as_str());
    let is_real = is_command && !heuristics::is_dummy(password.as_str());
    is_real.then(|| at.end + password.start()..at.end + password.end())
}

/// Finds the password of `net use Z: \\\\server\\share /user:NAME PASSWORD`, in either order.
fn windows_share(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let line = near(text, at.end).split(['\n', '\r', '|', '&']).next().unwrap_or_default();
    if !line.to_ascii_lowercase().contains("user") {
        return None;
    }
    let word = line.split([' ', '\t']).map(|word| word.trim_matches(['"', '\''])).find(|word| {
        let is_name = word.starts_with(['/', '\\', '-']) || word.contains(":\\") || word.ends_with(':');
        !is_name && heuristics::is_varied(word) && heuristics::is_password(word)
    })?;
    let start = at.end + line.find(word)?;
    Some(start..start + word.len())
}

/// Finds the password in `enable secret …` and similar lines of a configuration.
fn device_password(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let word = near(text, at.end).split(char::is_whitespace).next().unwrap_or_default();
    let is_real = word.len() >= 5 && heuristics::is_varied(word) && heuristics::is_password(word);
    is_real.then(|| at.end..at.end + word.len())
}

/// Finds the password that a script types: `send "…\\r"` of expect, `sendline("…")`, `tmux send-keys`.
fn typed_password(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let rest = near(text, at.end);
    let rest = if text[at.clone()].ends_with(' ') { rest.trim_start_matches(['"', '\'']) } else { rest };
    let start = at.end + near(text, at.end).len() - rest.len();
    let length = rest.find(['"', '\'', '\\', ' ', '\n', '$', '<', '{'])?;
    let word = &rest[..length];
    // After a prompt for a password: `expect "assword:"; send "…"`.
    let before = &text[text.floor_char_boundary(at.start.saturating_sub(80))..at.start];
    let is_asked = ["assword", "assphrase", "PIN"].iter().any(|prompt| before.contains(prompt));
    let is_real = (8..=64).contains(&length)
        && heuristics::is_password(word)
        && (is_asked
            || heuristics::is_varied(word)
                && word.bytes().any(|byte| byte.is_ascii_uppercase())
                && !word.contains(['/', '=', '.', ':']));
    is_real.then(|| start..start + length)
}

/// Finds a password that a command printed alone on the next line: `cat /run/secrets/db`, `pass show db`.
fn printed_password(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let rest = near(text, at.end);
    let (command, output) = rest.split_once('\n')?;
    let line = output.split('\n').next().unwrap_or_default();
    let word = line.trim();
    let is_real = (8..=100).contains(&word.len())
        && !word.contains(char::is_whitespace)
        && heuristics::is_varied(word)
        && heuristics::is_password(word)
        && !word.contains(['/', '=', ':', ',', '(']);
    let start = at.end + command.len() + 1 + (line.len() - line.trim_start().len());
    is_real.then(|| start..start + word.len())
}

/// Finds the private members of a JSON web key: `"kty": "RSA", …, "d": "…"`.
fn json_web_key(text: &str, at: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
    static MEMBER: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"["'](?:d|p|q|dp|dq|qi|k)\\*["']\s*:\s*\\*["']([A-Za-z0-9_-]{20,})"#));
    let from = text.floor_char_boundary(at.start.saturating_sub(KEY_REACH));
    let start = text[from..at.start].rfind('{').map_or(from, |brace| from + brace);
    let end = text.floor_char_boundary(at.end + KEY_REACH);
    // Another key begins with its own brace.
    let end = text[at.end..end].find(['{', '}']).map_or(end, |brace| at.end + brace);
    for member in MEMBER.captures_iter(&text[start..end]).filter_map(|found| found.get(1)) {
        if heuristics::distinct(member.as_str().as_bytes()) >= 8 {
            found(start + member.start()..start + member.end());
        }
    }
}

/// Finds the password in a line of a `.pgpass`: `host:port:database:user:password`.
fn pgpass(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"^[A-Za-z0-9.*_-]+:(?:[0-9]{2,5}|\*):[A-Za-z0-9.*_-]+:[A-Za-z0-9.*_@-]+:([^\s"'`\\]{5,})"#)
    });
    let start = word_start(text, at.start, Alphabet::Dotted);
    let start = if text[..at.start].ends_with('*') { at.start - 1 } else { start };
    let password = LINE.captures(near(text, start))?.get(1)?;
    heuristics::is_password(password.as_str()).then(|| start + password.start()..start + password.end())
}

/// Finds 52 characters of base32 on a line that mentions Azure or a PAT.
fn azure_token(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let end = bytes.len().min(at.end + 200);
    let is_digit = |byte: &u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
    let mut from = at.end;
    while from < end && bytes[from] != b'\n' {
        if !is_digit(&bytes[from]) {
            from += 1;
            continue;
        }
        let length = bytes[from..].iter().take(64).take_while(|byte| is_digit(byte)).count();
        let alone = begins_word(bytes, from)
            && !bytes.get(from + length).is_some_and(|byte| Alphabet::Word.has(*byte));
        if length == 52 && alone && heuristics::is_random(&bytes[from..from + 52]) {
            return Some(from..from + 52);
        }
        from += length;
    }
    None
}

/// Finds the password of `-passin pass:…`, and of similar options of other programs: `/pass:…`.
fn pass_source(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let before = text.as_bytes()[..at.start].last().copied()?;
    if !matches!(before, b' ' | b'/' | b'"' | b'\'') {
        return None;
    }
    let head = &text[text.floor_char_boundary(at.start.saturating_sub(40))..at.start];
    if before == b' ' && !head.trim_end().ends_with(|letter: char| letter.is_ascii_alphanumeric()) {
        return None;
    }
    let is_flag = before == b'/'
        || head.trim_end().rsplit(' ').next().is_some_and(|word| {
            word.starts_with('-') && word.contains("pass") || word == "-k" || word == "-K"
        });
    let rest = &text.as_bytes()[at.end..text.len().min(at.end + 200)];
    let length = rest
        .iter()
        .position(|byte| *byte <= b' ' || *byte >= 0x7F || matches!(byte, b'"' | b'\'' | b'`' | b'\\'));
    let range = at.end..at.end + length.unwrap_or(rest.len());
    (is_flag && heuristics::is_password(&text[range.clone()])).then_some(range)
}

/// Finds a piped password: `echo … | sudo -S`, `echo … | docker login --password-stdin`, `echo user:… |
/// chpasswd`; or one that is written to a file: `echo … > /run/secrets/db`.
fn piped(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static PIPE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:-n\s+|-e\s+|['"]?(?:%s(?:\\n)?)+['"]?\s+)*['"]?([^\s'"|]{5,})['"]?(?:\s+['"]?[^\s'"|]+['"]?)?\)?\s*\|\s*(?:sudo (?:-\S+ )*-S|su |kinit |(?:sudo )?(?:smb)?passwd|sshpass |(?:sudo )?chpasswd|[^\n|]{0,120}?(?:--password-stdin|--passphrase-fd|--pass-stdin|--with-token|docker secret create|secrets? (?:set|put|create|add)|secrets versions add|create secret|env add|luks(?:Open|Format|AddKey)|vault (?:kv put|write|login)|secret-tool store|pass insert|op item|gpg |openssl enc|age |sops |htpasswd|-S\b))"#,
        )
    });
    // Other texts are encoded or written as well, so the value decides.
    static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:-n\s+|-e\s+|['"]?%s(?:\\n)?['"]?\s+)*['"]?(?:[A-Za-z0-9_.@-]{2,40}:([^\s'"|]{5,})['"]?\s*\|\s*base64|([^\s'"|]{8,})['"]?\s*\|\s*(?:base64|(?:md5|sha[0-9]+)(?:sum)?|shasum|xxd|openssl (?:dgst|sha|base64))\b|([^\s'"|>]{8,})['"]?\s*>\s*[^\s|;&]*(?:passw|/secrets/|[_.]pass\b))"#,
        )
    });
    let rest = near(text, at.end);
    if let Some(written) = WRITTEN.captures(rest)
        && let Some(secret) = written.iter().skip(1).flatten().next()
        && is_varied_password(secret.as_str())
    {
        return Some(at.end + secret.start()..at.end + secret.end());
    }
    let value = PIPE.captures(rest)?;
    let secret = value.get(1)?;
    let range = at.end + secret.start()..at.end + secret.end();
    let range = match secret.as_str().split_once(':') {
        Some((user, _)) if value[0].contains("chpasswd") => range.start + user.len() + 1..range.end,
        _ => range,
    };
    heuristics::is_password(&text[range.clone()]).then_some(range)
}

/// Returns whether a value that may be a word of code or prose is a password or a key.
fn is_varied_password(value: &str) -> bool {
    let bytes = value.as_bytes();
    (heuristics::is_varied(value) || heuristics::is_random(bytes) || heuristics::is_scrambled(bytes))
        && heuristics::is_password(value)
        && !heuristics::is_fixture(value)
        && !heuristics::is_placeholder_value(value)
}

/// Finds the password in a data source name of Go: `user:password@tcp(host:3306)/database`.
fn data_source(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let before = &text[text.floor_char_boundary(at.start.saturating_sub(120))..at.start];
    let login = before.rsplit(|letter: char| letter.is_whitespace() || "\"'`=".contains(letter)).next()?;
    let (_, password) = login.split_once(':')?;
    heuristics::is_password(password).then(|| at.start - password.len()..at.start)
}

/// Finds a password in a here-string: `docker login --password-stdin <<< …`.
fn here_string(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static VALUE: LazyLock<Regex> = LazyLock::new(|| regex(r#"^\s?['"]?([^\s'"]{5,})"#));
    const READERS: &[&str] = &[
        "password-stdin",
        "with-token",
        "passphrase-fd",
        "secret put",
        "secret create",
        "passwd",
        "kinit",
        "sudo -S",
        "su -",
        "su ",
        "read -s",
        "-S",
        "cryptsetup",
        "vncpasswd",
        "secret-tool store",
        "secrets create",
    ];
    let before = &text[text.floor_char_boundary(at.start.saturating_sub(160))..at.start];
    let command = before.lines().next_back()?;
    READERS.iter().find(|reader| command.contains(**reader))?;
    let value = VALUE.captures(near(text, at.end))?.get(1)?;
    let mut start = value.start();
    if command.contains("chpasswd") {
        start += value.as_str().split_once(':').map_or(0, |(user, _)| user.len() + 1);
    }
    let range = at.end + start..at.end + value.end();
    heuristics::is_password(&text[range.clone()]).then_some(range)
}

/// Finds a Kubernetes secret: `--from-literal=password=…`.
fn literal(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static VALUE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:=|\s+)['"]?[A-Za-z0-9_.-]*(?i:pass|pwd|secret|token|key|cred|auth)[A-Za-z0-9_.-]*=['"]?([^\s'"\\]{5,})"#,
        )
    });
    let value = VALUE.captures(near(text, at.end))?.get(1)?;
    let range = at.end + value.start()..at.end + value.end();
    (heuristics::is_password(value.as_str()) || heuristics::is_random(value.as_str().as_bytes()))
        .then_some(range)
}

/// Finds a configured secret: `aws configure set aws_secret_access_key …`, `npm config set …:_authToken …`,
/// `heroku config:set KEY=…`.
fn configured(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static VALUE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:-\S+\s+)*\S*(?i:pass|pwd|secret|token|key|cred|auth)[^\s=]*(?:\s+|=)(?:--(?:body|value)[ =]|-b )?['"]?([^\s'"\\]{8,})"#,
        )
    });
    let value = VALUE.captures(near(text, at.end))?.get(1)?;
    let range = at.end + value.start()..at.end + value.end();
    let secret = value.as_str();
    (!secret.starts_with('-')
        && heuristics::is_password(secret)
        && secret.bytes().any(|byte| byte.is_ascii_digit()))
    .then_some(range)
}

/// Returns a short part of the text from `start`.
fn near(text: &str, start: usize) -> &str {
    let mut end = text.len().min(start + SHORT_REACH);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[start..end]
}

/// Finds a Discord token: three parts of base64, the first of which is a number, on a line that mentions
/// Discord.
fn discord(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"^[^\n]{0,80}?\b([MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})")
    });
    let mut end = text.len().min(at.start + 200);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let secret = TOKEN.captures(&text[at.start..end])?.get(1)?;
    let number = URL_SAFE_NO_PAD.decode(secret.as_str().split('.').next()?).ok()?;
    number.iter().all(u8::is_ascii_digit).then(|| at.start + secret.start()..at.start + secret.end())
}

/// Returns the Discord token whose first part is a run of base64, whatever surrounds it. Its parts are
/// random, and have the lengths of those of a token.
pub(crate) fn discord_token(text: &str, run: &Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if !(24..=28).contains(&run.len()) || !matches!(bytes[run.start], b'M' | b'N' | b'O') {
        return None;
    }
    let middle = bytes[run.end..].strip_prefix(b".")?;
    let n_middle = Alphabet::Url.run(&middle[..middle.len().min(7)]);
    let last = middle[n_middle..].strip_prefix(b".")?;
    let n_last = Alphabet::Url.run(&last[..last.len().min(64)]);
    let (first, last) = (&bytes[run.clone()], &last[..n_last]);
    let is_mixed = |part: &[u8]| {
        part.iter().any(u8::is_ascii_digit) && part.iter().any(u8::is_ascii_uppercase) && {
            heuristics::entropy(part) >= 3.4 && !heuristics::is_wordy(part)
        }
    };
    let is_token = n_middle == 6 && (27..=38).contains(&n_last) && is_mixed(last);
    (is_token && is_mixed(first)).then(|| run.start..run.end + 2 + n_middle + n_last)
}

/// Finds a Mailchimp key: `[0-9a-f]{32}-us12`.
fn mailchimp(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let digits = bytes[at.end..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = at.start.checked_sub(32)?;
    let token = Alphabet::Hex.run(&bytes[start..at.start]);
    let ends = !bytes.get(at.end + digits).is_some_and(|byte| Alphabet::Word.has(*byte));
    ((1..=2).contains(&digits) && token == 32 && begins_word(bytes, start) && ends)
        .then(|| start..at.end + digits)
}

/// Finds an Airtable token: `pat`, 14 characters, a dot, 64 hex digits.
fn airtable(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if bytes.get(at.end + 14) != Some(&b'.') || !text[at.clone()].starts_with("pat") {
        return None;
    }
    let id = Alphabet::Alnum.run(&bytes[at.end..]) == 14;
    (id && Alphabet::Hex.run(&bytes[at.end + 15..]) == 64).then(|| at.start..at.end + 79)
}

/// Finds a Resend key: `re_`, 8 characters, `_`, 24 characters.
fn resend(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if bytes.get(at.end + 8) != Some(&b'_') || !begins_word(bytes, at.start) {
        return None;
    }
    let token = Alphabet::Alnum.run(&bytes[at.end + 9..]);
    let id = Alphabet::Alnum.run(&bytes[at.end..]) == 8;
    let secret = at.start..at.end + 33;
    (id && token == 24
        && text[secret.clone()].starts_with("re_")
        && heuristics::is_random(&bytes[at.end..at.end + 33]))
    .then_some(secret)
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
