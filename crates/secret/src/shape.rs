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
use std::sync::OnceLock;

use regex::Regex;

use self::ShapeFinder::{One, Pattern, Several};
use crate::alphabet::Alphabet::{self, Alnum, Dotted, Header, Hex, Url};
use crate::{heuristics, printed};

pub(crate) use self::token::discord_token;

/// A secret with a shape: the anchors that indicate it, and how it is found around them.
pub(crate) struct SecretShape {
    pub(crate) kind: &'static str,
    pub(crate) description: &'static str,
    pub(crate) anchors: &'static [&'static str],
    find: ShapeFinder,
}

/// Finds several secrets around an anchor.
type FindAll = fn(&str, Range<usize>, &mut dyn FnMut(Range<usize>));

/// How a shape is found around an anchor.
enum ShapeFinder {
    /// With a pattern. Its first group that matches is the secret, or the whole match if it has no groups.
    Pattern(ShapePattern),
    /// With a function that examines the text around the anchor.
    One(fn(&str, Range<usize>) -> Option<Range<usize>>),
    /// With a function that may find several secrets around the anchor.
    Several(FindAll),
}

/// A pattern, and a check of what it finds: code and prose have words at the same place.
struct ShapePattern {
    /// The characters of the word that contains the anchor, if the pattern is matched at its start. Otherwise
    /// it is matched at the anchor, and in a short part of the text.
    word: Option<Alphabet>,
    check: fn(&str) -> bool,
    pattern: &'static str,
    regex: OnceLock<Regex>,
}

const fn word(alphabet: Alphabet, check: fn(&str) -> bool, pattern: &'static str) -> ShapeFinder {
    ShapeFinder::Pattern(ShapePattern { word: Some(alphabet), check, pattern, regex: OnceLock::new() })
}

const fn anchored(check: fn(&str) -> bool, pattern: &'static str) -> ShapeFinder {
    ShapeFinder::Pattern(ShapePattern { word: None, check, pattern, regex: OnceLock::new() })
}

/// The maximum number of bytes examined after an anchor.
const REACH: usize = 20_000;

/// The maximum number of bytes examined before and after the type of a JSON web key.
const KEY_REACH: usize = 4_000;

/// The maximum number of bytes examined for short secrets.
const SHORT_REACH: usize = 600;

#[expect(clippy::unwrap_used, reason = "the patterns are ours, and a test compiles every one of them")]
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

/// A table with one row per rule: the anchors, and how the secret is found around them. Rows with the same
/// kind and description are grouped.
macro_rules! shapes {
    ($($kind:literal $description:literal { $([$($anchor:literal),+] $find:expr,)+ })*) => {
        pub(crate) const N_SHAPES: usize = [$($(stringify!($find),)+)*].len();

        pub(crate) static SHAPES: [SecretShape; N_SHAPES] = [
            $($(SecretShape {
                kind: $kind,
                description: $description,
                anchors: &[$($anchor),+],
                find: $find,
            },)+)*
        ];
    };
}

shapes! {
    "private-key" "a private key" {
        ["-----begin "] One(key::private_key),
        ["private-lines: "]
            word(Url, is_token, r"^Private-Lines: [0-9]+((?:\s|\\[nr]|[A-Za-z0-9+/=]{20,})+)"),
        ["-----end "] One(key::private_key_end),
        ["---- begin ssh2 "]
            word(Hex, is_token, r"^---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----((?:\s|\\[nr]|[A-Za-z-]+: [^\n\\]*|[A-Za-z0-9+/=]{16,})+)"),
        ["client-key-data", "client_key_data", "tls.key"]
            word(Url, is_token, r#"^(?:client[-_]key[-_]data|tls\.key)\\*["']?\s*[:=]\s*\\*["']?([A-Za-z0-9+/=]{40,})"#),
        ["\"kty"] Several(key::json_web_key),
    }
    "jwt" "a JSON web token" {
        ["eyj"] One(token::jwt),
    }
    "password" "a password in a URL" {
        ["://"] One(web::address),
        ["jdbc:oracle:"] word(Hex, is_chosen, r#"^jdbc:oracle:[a-z0-9]+:[A-Za-z0-9_$]+/([^\s@/"']{5,})@"#),
    }
    "authorization" "an Authorization header" {
        ["bearer ", "bearer%20"] One(web::bearer),
        ["basic "] One(web::basic),
        ["authorization"]
            word(Url, is_token, r#"(?i)^(?:proxy-)?authorization(?:\\*["'])?\s*[:=,]\s*(?:\\*["'])?(?:(?:token|apikey|api-key|bot|ssws|key|genie[a-z]*) (?:token=)?)?([A-Za-z0-9_.~+/=-]{20,})"#),
        ["signature="] word(Url, is_token, r#"(?i)^signature="?([0-9a-f]{64})(?:[^0-9a-f]|$)"#),
    }
    "password" "a .netrc password" {
        ["machine ", "default login "]
            word(Url, is_chosen, r"^(?:machine\s+\S+\s+login\s+\S+|default\s+login\s+(?:[^a\s]|a[^n\s])\S*)\s+(?:account\s+\S+\s+)?password\s+([^\s\[]{6,})"),
    }
    "password" "a Wi-Fi password" {
        ["psk=", "wpa_passphrase", "sae_password=", "wifi-sec.psk ", "security.psk "]
            word(Dotted, is_chosen, r#"^(?:psk=|wpa_passphrase(?:=| \S+ )|sae_password=|[a-z0-9.-]*\.psk )["']?([^\s"'<$\[]{8,64})"#),
    }
    "password" "a password on a command line" {
        ["rabbitmqctl ", "rclone obscure "]
            word(Hex, is_chosen, r#"^(?:rabbitmqctl (?:-\S+ )*(?:add_user|change_password|authenticate_user) \S+|rclone obscure) ['"]?([^\s'"$<-][^\s'"]{4,})"#),
        ["bw login ", "user:password ", "upwd ", "chpasswd <<", "changeme/", "changeme|", "changeme#"]
            anchored(is_varied_password, r#"(?i)^(?:bw login \S+@\S+ |user:password \S+ |upwd \S+ |chpasswd <<-?\s?['"]?[a-z]+['"]?\n[a-z0-9_.-]+:|changeme[/|#])['"]?([^\s'"/$|]{8,})"#),
        ["pass:", "password:"] One(shell::pass_source),
        ["rclone config "]
            word(Hex, is_chosen, r#"^rclone config (?:create|update|password) [^\n]{0,200}?\b(?:pass2?|password|token|secret_access_key|client_secret|key)[ =]['"]?([^\s'"$<]{5,})"#),
        ["mysqladmin ", "mc alias set ", "openssl passwd ", "mkpasswd ", "hash-password ", "encrypt_string ",
         "cargo login "]
            anchored(is_varied_password, r#"^(?:mysqladmin [^\n|;&]{0,100}?\bpassword|mc alias set \S+ \S+ \S+|openssl passwd(?: -salt \S+| -\S+)*|mkpasswd(?: -[mSR] \S+| -\S+)*|hash-password --plaintext|encrypt_string|cargo login) ['"]?([^\s'"$<-][^\s'"]{4,})"#),
    }
    "password" "a Windows password" {
        ["net user "] One(login::windows_user),
        ["net use ", "new-smbmapping "] One(login::windows_share),
    }
    "slack-webhook" "a Slack webhook" {
        ["hooks.slack.com/"]
            word(Dotted, is_token, r"^hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{30,})"),
    }
    "discord-webhook" "a Discord webhook" {
        ["/api/webhooks/"] word(Hex, is_token, r"^/api/webhooks/[0-9]{17,20}/([A-Za-z0-9_-]{60,80})"),
    }
    "teams-webhook" "a Teams webhook" {
        ["webhook.office.com/"]
            word(Dotted, is_token, r"^[A-Za-z0-9.-]*webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{80,})"),
    }
    "telegram-token" "a Telegram bot token" {
        [":aa"] word(Alnum, is_token, r"^(?:bot)?([0-9]{8,10}:AA[A-Za-z0-9_-]{33})(?:[^A-Za-z0-9_-]|$)"),
    }
    "discord-token" "a Discord bot token" {
        ["discord", "bot "]
            anchored(token::begins_with_number, r"^[^\n]{0,80}?\b([MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})"),
    }
    "azure-secret" "an Azure client secret" {
        ["q~"]
            word(Header, is_token, r"^[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?:[^A-Za-z0-9_~.-]|$)"),
    }
    "azure-devops-token" "an Azure DevOps token" {
        ["azdo"] word(Alnum, is_token, r"^([A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})(?:[^A-Za-z0-9]|$)"),
        ["azure", "devops", "_pat", "pat=", "pat:", "pat ", "visualstudio.com"] One(token::azure_token),
    }
    "azure-signature" "a signed Azure URL" {
        ["sig="] word(Alnum, is_token, r"^sig=([A-Za-z0-9%+/]{43,60}(?:=|%3[dD])?)(?:[^A-Za-z0-9%+/=]|$)"),
    }
    "aws-signature" "a signed AWS URL" {
        ["x-amz-signature="] word(Url, is_token, r"^(?i:x-amz-signature)=([0-9a-f]{64})"),
    }
    "terraform-token" "a Terraform token" {
        [".atlasv1."] word(Dotted, is_token, r"^([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70})"),
    }
    "openai-key" "an OpenAI key" {
        ["t3blbkfj"] word(Url, is_token, r"^(sk-[A-Za-z0-9_-]{16,}T3BlbkFJ[A-Za-z0-9_-]{16,})"),
    }
    "mailchimp-key" "a Mailchimp key" {
        ["-us"] word(Url, is_token, r"^([0-9a-f]{32}-us[0-9]{1,2})(?:[^A-Za-z0-9_]|$)"),
    }
    "airtable-token" "an Airtable token" {
        ["pat"] word(Alnum, is_token, r"^(pat[A-Za-z0-9]{14}\.[0-9a-f]{64})(?:[^0-9a-f]|$)"),
    }
    "resend-key" "a Resend key" {
        ["re_"] word(Url, is_token, r"^(re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24})(?:[^A-Za-z0-9]|$)"),
    }
    "password-hash" "a password hash" {
        ["$2a$", "$2b$", "$2y$"]
            word(Hex, is_token, r"^(\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53})(?:[^./A-Za-z0-9]|$)"),
        ["$5$", "$6$"]
            word(Hex, is_token, r"^(\$[56]\$(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{8,16}\$[./A-Za-z0-9]{43,86})(?:[^./A-Za-z0-9]|$)"),
        ["$argon2"]
            word(Hex, is_token, r"^(\$argon2(?:id|i|d)\$v=[0-9]+\$[mtp=0-9,]+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,})"),
        ["$y$", "$gy$", "pbkdf2_sha", "pbkdf2:sha", "scram-sha-256$", "scrypt:"]
            word(Hex, is_token, r"^(\$g?y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{8,}\$[./A-Za-z0-9]{43}|pbkdf2[_:]sha(?:1|256|512)[:$][0-9]+\$[A-Za-z0-9+/=.]{8,}\$[A-Za-z0-9+/=]{28,}|SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]{16,}\$[A-Za-z0-9+/=]{40,}:[A-Za-z0-9+/=]{40,}|scrypt:[0-9]+:[0-9]+:[0-9]+\$[A-Za-z0-9]{8,}\$[0-9a-f]{64,})"),
        ["$apr1$", "$1$"]
            word(Hex, is_token, r"^(\$(?:apr1|1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22})(?:[^./A-Za-z0-9]|$)"),
    }
    "aws-secret-key" "an AWS secret access key" {
        ["akia", "asia"] One(key::aws_secret),
    }
    "asana-token" "an Asana token" {
        ["2/1", "1/1", "2/2", "2/3", "2/4", "2/5", "2/6", "2/7", "2/8", "2/9"]
            word(Hex, is_token, r"^([12]/[0-9]{13,19}(?:/[0-9]{13,19})?:[0-9a-f]{32})(?:[^0-9A-Za-z]|$)"),
    }
    "private-key" "a private key of an account" {
        ["accounts: [", "accounts:["]
            word(Hex, is_token, r#"^accounts:\s?\[\s*["'`]((?:0x)?[0-9a-fA-F]{64})["'`]"#),
    }
    "cookie" "a cookie" {
        ["\ttrue\t/\t", "\tfalse\t/\t"]
            anchored(is_varied_password, r"^\t(?i:TRUE|FALSE)\t/\t(?i:TRUE|FALSE)\t[0-9]+\t[^\t\n]{1,80}\t([^\s]{16,})"),
        ["\"value\"", "value\\\""] One(web::named_value),
        ["cookie", " -b "] Several(web::cookies),
    }
    "password" "a configured password" {
        ["bindpw ", "_authtok = ", "rocommunity ", "rwcommunity ", "createuser ", "new value: ", "passdb ",
         "masterauth "]
            anchored(is_varied_password, r#"(?i)^(?:bindpw|[a-z_]*_authtok\s*=|r[ow]community|createuser \S+ (?:md5|sha[0-9-]*)|new value:) ["']?([^\s"'<$]{6,})"#),
        ["http-basic.", "pypi-token.", "bundle config ", "sonar.login="]
            word(Hex, is_chosen, r#"^(?:http-basic\.\S+ \S+ |pypi-token\.\S+ |bundle config (?:set )?(?:--\S+ )*\S+ [^\s:/]+:|sonar\.login=)['"]?([^\s'"$<-][^\s'"]{5,})"#),
    }
    "password" "a password in a file of logins" {
        ["\" \"", "\" * \""] One(login::listed_login),
    }
    "password" "a password in a call" {
        ["userpwd", "credentials(", "userpassword(", "credentials.basic("]
            anchored(is_varied_password, r#"(?i)^(?:userpwd["']?\s*(?:,|=>|=)\s*["'][^"':\s]{1,60}:|(?:[a-z.]+)\(\s*["'][^"'\n]{1,80}["'],\s*["'])([^"'\s]{8,})["']"#),
        ["client(", ".connect(", "->connect(", ".begin(", "simple_bind_s(", "simple_bind(", "authenticate(",
         "await login(", "create_superuser(", "create_user("]
            anchored(is_varied_password, r#"(?i)^[.a-z_>-]*(?: login)?\(\s*(?:["'][^"'\n]{0,120}["']|[A-Za-z0-9_.$]{1,40}),\s*(?:(?:["'][^"'\n]{0,80}["']|[0-9]{1,5}),\s*){0,2}["']([^"'\s/]{8,})["'](?:,\s*["'][A-Za-z0-9_-]{1,40}["'])?\s*\)"#),
        ["auth=(", "auth = (", "basicauth(", "basic_auth(", ".login(", ".auth(", "passwordauthentication(",
         "httpbasicauth(", "cx_oracle.connect("]
            anchored(is_varied_password, r#"(?i)^[.a-z_= ]+\(\s*(?:["'][^"'\n]{1,80}["']|[A-Za-z0-9_.$]{1,40}),\s*(?:Some\()?["']([^"'\s]{5,})["']"#),
        ["getconnection(", "mysqli(", "mysqli_connect(", "mysql_connect(", "mysql.connect(", "pdo(",
         "sequelize(", "ldap_bind("]
            anchored(is_varied_password, r#"(?i)^[.a-z_]+\(\s*[^,()\n]{1,200},\s*["'][^"'\n]{1,80}["'],\s*["']([^"'\s]{5,})["']"#),
        ["password_hash(", "hashpw(", "bcrypt.hash", "bcrypt.compare", "crypt.crypt(", "make_password("]
            anchored(is_varied_password, r#"(?i)^[.a-z_]+\(\s*(?:[A-Za-z0-9_.$]{1,40},\s*)?b?["']([^"'\s]{5,})["']"#),
    }
    "password" "a password of a mail server" {
        [":587 ", ":465 ", ":25 "]
            anchored(is_varied_password, r#"^:[0-9]+ [A-Za-z0-9_.@+-]{2,64}:([^\s"']{8,64})\s*(?:\n|$)"#),
    }
    "password" "a password in an SQL statement" {
        ["insert into "] Several(login::inserted_passwords),
        ["identified by ", "with password ", "encrypted password ", "user password ", "login password "]
            word(Hex, is_chosen, r#"(?i)^(?:identified by|(?:with|encrypted|user|login) password) ['"]([^'"\s]{5,})['"]"#),
        ["alter user ", "alter role ", "create user ", "create role ", "sp_addlogin "]
            anchored(is_varied_password, r#"(?i)^(?:(?:alter|create) (?:user|role) [^;\n]{1,120}?\b(?:password|by)|sp_addlogin\s+N?'[^'\n]*',)\s*N?['"]([^'"\s]{5,})['"]"#),
    }
    "password" "a password in a form" {
        ["<input ", "<meta "] One(web::form_field),
    }
    "signing-key" "a key in a call" {
        ["fernet(", "createcipheriv(", "createdecipheriv(", "secretstring::new(", "secretstring::from(",
         "secret::new(", "plaintext(", "unsafeplaintext(", "hashlib."]
            anchored(is_varied_password, r#"(?i)^(?:[a-z:]+|hashlib\.[a-z0-9_]+)\(\s*(?:["']aes-[a-z0-9-]+["'],\s*)?b?["']([^"'\s]{8,})["']"#),
    }
    "docker-auth" "a Docker registry login" {
        ["\"auth", "'auth"]
            anchored(login::is_login, r#"^["'](?i:auth)\\*["']\s*:\s*\\*["']([A-Za-z0-9+/=_-]{8,})"#),
    }
    "npm-token" "an npm registry login" {
        [":_authtoken", ":_password", ":_auth"]
            word(Hex, is_token, r#"(?i)^:_(?:authToken|password|auth)(?:\s*=\s*|\s+)["']?([A-Za-z0-9_.~+/=-]{8,})"#),
        ["_auth="] word(Url, login::is_login, r"^_auth=([A-Za-z0-9+/=]{8,})"),
    }
    "password" "a Redis password" {
        ["requirepass ", "masterauth ", "auth "] One(login::redis_password),
        ["\"auth\"", "'auth'"]
            word(Hex, is_chosen, r#"(?i)^["']auth["'],\s*(?:["'][A-Za-z0-9_.-]+["'],\s*)?["']([^\s"'\\$<]{6,})["']\s*[,)\]]"#),
        ["setuser ", "user "]
            anchored(is_varied_password, r#"(?i)^(?:setuser \S+|user [A-Za-z0-9_-]+ (?:on|off|reset)) (?:\S+ ){0,8}?>([^\s"'\\]{5,})"#),
    }
    "url-key" "a key in a URL" {
        ["?key=", "&key=", "?sig=", "&sig=", "?signature=", "&signature=", "?auth=", "&auth=", "?code=",
         "&code=", "?sid=", "&sid=", "?session=", "&session=", "?hmac=", "&hmac=", "?subscription-key=",
         "&subscription-key=", "?appid=", "&appid=", "?jwt=", "&jwt="]
            One(web::url_key),
    }
    "password" "a .pgpass password" {
        [":5432:", ":5433:", ":5434:", ":5435:", ":5439:", ":6543:", ":15432:", ":25060:", ":26257:",
         ":54321:", ":54322:", ":6432:", ":*:"]
            One(login::pgpass),
    }
    "password" "a piped password" {
        ["echo ", "printf "] One(shell::piped),
    }
    "password" "a PowerShell password" {
        ["convertto-securestring ", "networkcredential("]
            word(Hex, is_chosen, r#"(?i)^(?:convertto-securestring (?:-string )?|networkcredential\(["'][^"']*["'],\s*)["']([^"'$]{5,})["']"#),
    }
    "kubernetes-secret" "a Kubernetes secret value" {
        ["--from-literal"]
            anchored(is_password_or_key, r#"^(?i:--from-literal)(?:=|\s+)['"]?[A-Za-z0-9_.-]*(?i:pass|pwd|secret|token|key|cred|auth)[A-Za-z0-9_.-]*=['"]?([^\s'"\\]{5,})"#),
    }
    "password" "a configured secret" {
        ["configure set ", "config set ", "config:set ", "secret set ", "secrets set ", "env add "]
            anchored(is_password_with_digit, r#"^(?i:configure set|config[ :]set|secrets? set|env add) (?:-\S+\s+)*\S*(?i:pass|pwd|secret|token|key|cred|auth)[^\s=]*(?:\s+|=)(?:--(?:body|value)[ =]|-b )?['"]?([^\s'"\\-][^\s'"\\]{7,})"#),
    }
    "password" "an htpasswd password" {
        ["htpasswd "]
            word(Hex, is_chosen, r#"^htpasswd\s+(?:-[A-Za-z]*n[A-Za-z]*b[A-Za-z]*|-[A-Za-z]*b[A-Za-z]*n[A-Za-z]*|-[A-Za-z]*b[A-Za-z]*\s+(?:-\S+\s+)*\S+)\s+(?:-\S+\s+)*\S+\s+['"]?([^\s'"$]{5,})"#),
    }
    "ansible-vault" "an Ansible vault" {
        ["$ansible_vault;"]
            word(Hex, is_token, r"^\$ANSIBLE_VAULT;[0-9.]+;[A-Z0-9]+(?:;[^\n\\]*)?((?:\s|\\[nr]|[0-9a-f]{16,})+)"),
    }
    "django-key" "a Django secret key" {
        ["django-insecure-"] word(Url, is_token, r#"^django-insecure-[^\s'"\\]{20,}"#),
    }
    "sql-login" "an sqlplus password" {
        ["sqlplus ", "sqlldr ", "rman "]
            word(Hex, is_chosen, r#"^(?:sqlplus|sqlldr|rman)\s+(?:-\S+\s+)*['"]?[A-Za-z0-9_$]+/['"]?([^\s'"@/$]{5,})['"]?@"#),
    }
    "rails-key" "a Rails master key" {
        ["master.key", "production.key", "staging.key", "development.key"]
            word(Hex, is_token, r"^(?:master|production|staging|development)\.key(?::\s*|\s*\n\s*(?:[0-9]+(?:→|\t))?)([0-9a-f]{32})(?:[^0-9A-Za-z]|$)"),
    }
    "wordpress-key" "a WordPress key" {
        ["define("]
            word(Hex, is_token, r#"(?i)^define\(\s*['"](?:(?:SECURE_)?AUTH|LOGGED_IN|NONCE)_(?:KEY|SALT)['"]\s*,\s*['"]([^'"\n]{30,})['"]"#),
    }
    "hubspot-token" "a HubSpot token" {
        ["pat-na", "pat-eu", "pat-ap", "pat-au", "pat-ca"]
            word(Hex, is_token, r"^(pat-[a-z]{2}[0-9]-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})"),
    }
    "password" "a VPN password" {
        [": psk \"", ": eap \"", ": xauth \"", ": psk '", ": ntlm \""]
            word(Hex, is_chosen, r#"(?i)^: (?:psk|eap|xauth|ntlm) ["']([^"'\s$<]{5,})["']"#),
    }
    "password" "a password of a network device" {
        ["secret 0 ", "secret 5 ", "secret 8 ", "secret 9 ", "password 0 ", "password 7 "]
            word(Hex, is_chosen, r"^(?i:secret|password) [0-9] ([^\s<$]{5,})"),
        ["enable secret ", "enable password ", "snmp-server community ", "pre-shared-key "]
            anchored(is_varied_password, r"^(?i:enable (?:secret|password)|snmp-server community|pre-shared-key) (\S{5,})"),
    }
    "password" "a printed password" {
        ["/run/secrets/", "pass show ", "base64 -d", "base64 --decode", "op read ", "find-generic-password",
         "get-secret-value", "secrets versions access"]
            anchored(is_varied_password, r"^[^\n]*\n[ \t]*([^\s/=:,(]{8,100})[ \t\r]*(?:\n|$)"),
        ["output -raw ", "printenv ", "echo $", "echo \"$", "echo ${", "echo \"${", "-field=", "-field ",
         " auth token", "pass show ", "print-access-token", "get-access-token", "get-secret-value",
         "get-parameter ", "get secret", "create token ", "genkey", "openssl rand ", "pwgen", "bw get ",
         "op read ", "secrets get ", "secret show ", "find-generic-password", "secret-tool lookup"]
            One(printed::find_after_prompt),
    }
    "password" "a typed password" {
        ["send \"", "send -- \"", "sendline(\"", "sendline('", "send_keys(\"", "send-keys ", "xdotool type "]
            One(shell::typed_password),
    }
    "signing-key" "a signing key" {
        ["jwt.sign(", "jwt.verify(", "jwt.encode(", "jwt.decode(", "createhmac(", "hmac.new(",
         "cookieparser("]
            anchored(is_varied_password, r#"(?i)^(?:(?:cookieparser|hmac\.new)\(\s*|(?:jwt\.[a-z]+|createhmac)\([^\n]{1,160}?,\s*)b?["']([^"'\s]{12,})["']"#),
    }
    "password" "a parameter of AWS" {
        ["put-parameter "]
            anchored(is_varied_password, r#"^put-parameter (?:[^|;&]{0,300}?SecureString[^|;&]{0,200}?--value[ =]['"]?([^\s'"$]{5,})|[^|;&]{0,300}?--value[ =]['"]?([^\s'"$]{5,})[^|;&]{0,200}?SecureString)"#),
    }
    "password" "a default of a Terraform variable" {
        ["variable \""]
            anchored(is_varied_password, r#"(?i)^variable "[^"\n]*(?:passw|secret|token|api_?key)[^"\n]*"\s*\{[^{}]{0,300}?\bdefault\s*=\s*"([^"\s$]{8,})""#),
    }
    "password" "a password of a data source" {
        ["@tcp(", "@unix("] One(login::data_source),
    }
    "password" "a password on standard input" {
        ["<<<"] One(shell::here_string),
    }
}

impl SecretShape {
    /// Finds the secrets around the anchor at `at`.
    pub(crate) fn find(&self, text: &str, at: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
        match &self.find {
            One(find) => find(text, at).into_iter().for_each(found),
            Several(find) => find(text, at, found),
            Pattern(pattern) => pattern.find(text, at.start).into_iter().for_each(found),
        }
    }
}

impl ShapePattern {
    fn find(&self, text: &str, anchor: usize) -> Option<Range<usize>> {
        let (start, rest) = match self.word {
            Some(alphabet) => {
                let start = word_start(text, anchor, alphabet);
                (start, reach(text, start))
            }
            None => (anchor, near(text, anchor)),
        };
        let found = self.regex.get_or_init(|| regex(self.pattern)).captures(rest)?;
        let secret = found.iter().skip(1).flatten().next().or_else(|| found.get(0))?;
        (self.check)(secret.as_str()).then(|| start + secret.start()..start + secret.end())
    }
}

/// Returns whether a value is a token: it has several different characters, and digits or random letters.
fn is_token(value: &str) -> bool {
    let bytes = value.as_bytes();
    heuristics::distinct(bytes) >= 6
        && (bytes.iter().any(u8::is_ascii_digit) || heuristics::is_scrambled(bytes))
}

/// Returns whether a value is a token or a password that a person has chosen.
fn is_chosen(value: &str) -> bool {
    is_token(value) || !heuristics::is_dummy(value)
}

fn is_password_or_key(value: &str) -> bool {
    heuristics::is_password(value) || heuristics::is_random(value.as_bytes())
}

fn is_password_with_digit(value: &str) -> bool {
    heuristics::is_password(value) && value.bytes().any(|byte| byte.is_ascii_digit())
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
    use super::{SHAPES, ShapeFinder, regex};

    #[test]
    fn every_pattern_compiles() {
        for shape in &SHAPES {
            if let ShapeFinder::Pattern(pattern) = &shape.find {
                assert!(regex(pattern.pattern).as_str().starts_with(['^', '(']), "{}", shape.kind);
            }
        }
    }
}
