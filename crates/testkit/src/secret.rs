//! Generated secrets for tests, so that no file of ours contains any, and similar text without secrets.

/// A generated secret, with the surrounding text that identifies it.
#[derive(Clone, Debug)]
pub struct GeneratedSecret {
    /// The kind, as named by `threadline-secret`.
    pub kind: &'static str,
    /// The text with the secret in it.
    pub text: String,
    /// A part of the text that must not remain after redaction.
    pub secret: String,
}

/// A deterministic pseudo-random generator.
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below `limit`.
    pub fn number_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    /// Returns `length` random characters of a set.
    ///
    /// The sets are `h` (hexadecimal), `l` (a-z0-9), `u` (A-Z0-9), `L` (letters), `w` (letters, digits and
    /// `_`), `-` (the same and `-`), `b` (base64) and `9` (digits). Any other character selects letters and
    /// digits.
    pub fn text(&mut self, set: char, length: usize) -> String {
        const ALL: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let set = match set {
            '9' => &ALL[..10],
            'h' => &ALL[..16],
            'l' => &ALL[..36],
            'u' => "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            'L' => &ALL[10..],
            'w' => "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_",
            '-' => "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-",
            'b' => "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/",
            _ => ALL,
        };
        loop {
            let text: String =
                (0..length).map(|_| set.as_bytes()[self.number_below(set.len())] as char).collect();
            if !text.ends_with(['-', '_']) && !text.starts_with(['-', '_']) {
                return text;
            }
        }
    }

    fn uuid(&mut self) -> String {
        let parts: Vec<String> = [8, 4, 4, 4, 12].iter().map(|length| self.text('h', *length)).collect();
        parts.join("-")
    }
}

/// The kinds of tokens, and their notation: literal text, and random parts as a set and a length.
const TOKENS: &[(&str, &str)] = &[
    ("anthropic-key", "sk-ant-api03- -93 AA"),
    ("anthropic-key", "sk-ant-oat01- -93 AA"),
    ("anthropic-key", "sk-ant-admin01- -93 AA"),
    ("openai-key", "sk-proj- -74 T3BlbkFJ -74"),
    ("openai-key", "sk-svcacct- -74 T3BlbkFJ -74"),
    ("openai-key", "sk- a20 T3BlbkFJ a20"),
    ("openrouter-key", "sk-or-v1- h64"),
    ("api-key", "sk- h32"),
    ("api-key", "sk- a48"),
    ("elevenlabs-key", "sk_ h48"),
    ("groq-key", "gsk_ a52"),
    ("xai-key", "xai- a80"),
    ("perplexity-key", "pplx- a48"),
    ("hugging-face-token", "hf_ L34"),
    ("replicate-token", "r8_ a37"),
    ("fireworks-key", "fw_ a22"),
    ("together-key", "tgp_v1_ -43"),
    ("nvidia-key", "nvapi- -64"),
    ("cerebras-key", "csk- l48"),
    ("voyage-key", "pa- -43"),
    ("jina-key", "jina_ h32 -28"),
    ("pinecone-key", "pcsk_ a6 _ a63"),
    ("langsmith-key", "lsv2_pt_ h32 _ h10"),
    ("tavily-key", "tvly- a32"),
    ("firecrawl-key", "fc- h32"),
    ("cursor-key", "key_ h64"),
    ("e2b-key", "e2b_ h40"),
    ("github-token", "ghp_ a36"),
    ("github-token", "gho_ a36"),
    ("github-token", "ghu_ a36"),
    ("github-token", "ghs_ a36"),
    ("github-token", "github_pat_ a22 _ a59"),
    ("gitlab-token", "glpat- -20"),
    ("gitlab-token", "glptt- h40"),
    ("gitlab-token", "gldt- -20"),
    ("asana-token", "2/1 915 : h32"),
    ("bitbucket-token", "ATBB a32"),
    ("atlassian-token", "ATATT3xFfGF0 -180 = u8"),
    ("npm-token", "npm_ a36"),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc -160"),
    ("rubygems-key", "rubygems_ h48"),
    ("crates-token", "cio a32"),
    ("nuget-key", "oy2 l43"),
    ("clojars-token", "CLOJARS_ l60"),
    ("packagist-token", "packagist_ort_ h48"),
    ("docker-token", "dckr_pat_ -27"),
    ("artifactory-token", "AKCp a69"),
    ("buildkite-token", "bkua_ h40"),
    ("circleci-token", "CCIPAT_ a22 _ h40"),
    ("sonar-token", "sqp_ h40"),
    ("snyk-token", "snyk_uat. h8 . -60"),
    ("aws-key-id", "AKIA u16"),
    ("aws-key-id", "ASIA u16"),
    ("aws-bedrock-key", "ABSK b120"),
    ("aws-session-token", "IQoJb3JpZ2luX2Vj b300"),
    ("google-key", "AIza -35"),
    ("google-oauth", "ya29. -120"),
    ("google-oauth", "GOCSPX- -28"),
    ("alibaba-key", "LTAI a20"),
    ("tencent-key", "AKID a32"),
    ("yandex-key", "AQVN -36"),
    ("digitalocean-token", "dop_v1_ h64"),
    ("heroku-key", "HRKU-AA -58"),
    ("netlify-token", "nfp_ a36"),
    ("vercel-token", "vcp_ a56"),
    ("fly-token", "fm2_ b120"),
    ("render-key", "rnd_ a32"),
    ("supabase-key", "sbp_ h40"),
    ("planetscale-token", "pscale_tkn_ -43"),
    ("neon-key", "napi_ l64"),
    ("databricks-token", "dapi h32"),
    ("cloudflare-key", "v1.0- h24 - h146"),
    ("tailscale-key", "tskey-auth- a12 - a32"),
    ("scaleway-key", "SCW u17"),
    ("vault-token", "hvs. -95"),
    ("doppler-token", "dp.pt. a43"),
    ("pulumi-token", "pul- h40"),
    ("onepassword-token", "ops_eyJ b400"),
    ("age-key", "AGE-SECRET-KEY-1 u58"),
    ("grafana-token", "glsa_ a32 _ h8"),
    ("new-relic-key", "NRAK- u27"),
    ("sentry-token", "sntryu_ h64"),
    ("dynatrace-token", "dt0c01. u24 . u64"),
    ("honeycomb-key", "hcaik_ l58"),
    ("posthog-key", "phx_ a43"),
    ("segment-token", "sgp_ a64"),
    ("stripe-key", "sk_live_ a24"),
    ("stripe-key", "rk_live_ a99"),
    ("stripe-key", "whsec_ a32"),
    ("square-token", "sq0atp- -22"),
    ("shopify-token", "shpat_ h32"),
    ("razorpay-key", "rzp_live_ a14"),
    ("flutterwave-key", "FLWSECK- h32 -X"),
    ("braintree-token", "access_token$production$ l16 $ h32"),
    ("plaid-token", "access-production- U"),
    ("shippo-token", "shippo_live_ h40"),
    ("easypost-key", "EZAK a54"),
    ("duffel-token", "duffel_live_ -43"),
    ("polar-token", "polar_oat_ a43"),
    ("slack-token", "xoxb- 912 - 912 - a24"),
    ("slack-token", "xoxp- 912 - 912 - 912 - h32"),
    ("slack-token", "xapp-1-A u10 - 913 - h64"),
    ("sendgrid-key", "SG. -22 . -43"),
    ("mailgun-key", "key- h32"),
    ("brevo-key", "xkeysib- h64 - a16"),
    ("mailersend-key", "mlsn. h64"),
    ("resend-key", "re_ a8 _ a24"),
    ("twilio-key", "SK h32"),
    ("facebook-token", "EAAG a150"),
    ("intercom-token", "dG9rO b55 ="),
    ("linear-key", "lin_api_ a40"),
    ("notion-token", "secret_ a43"),
    ("notion-token", "ntn_ 911 a35"),
    ("figma-token", "figd_ -40"),
    ("airtable-token", "pat a14 . h64"),
    ("postman-key", "PMAK- h24 - h34"),
    ("contentful-token", "CFPAT- -43"),
    ("typeform-token", "tfp_ a44"),
    ("readme-key", "rdme_ l70"),
    ("prefect-key", "pnu_ a36"),
    ("infracost-key", "ico- a32"),
    ("mapbox-token", "sk.eyJ a60 . a22"),
    ("tinybird-token", "p.eyJ a80 . a43"),
    ("frameio-token", "fio-u- -64"),
    ("mongodb-secret", "mdb_sa_sk_ -40"),
    ("launchdarkly-key", "sdk- U"),
    ("langfuse-key", "sk-lf- U"),
    ("telegram-token", "910 :AA -33"),
    ("azure-secret", "a3 8Q~ a34"),
    ("azure-devops-token", "a76 AZDO a4"),
    ("terraform-token", "a14 .atlasv1. a67"),
    ("mailchimp-key", "h32 -us14"),
    ("hubspot-token", "pat-na1- U"),
    ("password-hash", "$2b$12$ a53"),
    ("password-hash", "$6$ a16 $ a86"),
    ("password-hash", "$argon2id$v=19$m=65536,t=3,p=4$ b22 $ b43"),
];

/// Secrets in context: the kind, the text before, the secret in the notation of [`TOKENS`], the text after.
const SHAPES: &[(&str, &str, &str, &str)] = &[
    ("password", "DATABASE_URL=postgres://weaver:", "a16", "@db.loom.internal:5432/cloth"),
    ("password", "mongodb+srv://weaver:", "a14", "@cluster0.loom.mongodb.net/?retryWrites=true"),
    ("password", "redis://:", "a20", "@cache.loom.internal:6379/0"),
    ("password", "git clone https://weaver:", "a24", "@git.loom.internal/cloth.git"),
    ("password", "amqp://loom:", "a12", "@queue:5672/"),
    ("password", "git remote add origin https://", "a36", "@git.loom.internal/cloth.git"),
    ("password", "curl -s -u weaver:", "a12", " https://loom.internal/api"),
    ("password", "machine loom.internal login weaver password ", "a14", "\n"),
    ("password", "sshpass -p '", "a10", "' ssh weaver@loom"),
    ("authorization", "curl -H 'Authorization: Bearer ", "a40", "' https://loom.internal"),
    ("authorization", "Authorization: token ", "h40", "\n"),
    ("slack-webhook", "https://hooks.slack.com/services/", "T u10 / B u10 / a24", " is the hook"),
    ("discord-webhook", "https://discord.com/api/webhooks/102938475610293847/", "-68", ""),
    ("teams-webhook", "https://loom.webhook.office.com/webhookb2/", "U @ U /IncomingWebhook/ h32 / U", ""),
    ("azure-signature", "?sv=2022-11-02&se=2026-01-01&sig=", "a43 %3D", "&sp=r"),
    ("aws-secret-key", "AKIAIOSFODNN7EXAMPLE ", "b40", "\n"),
    ("aws-signature", "?X-Amz-Expires=900&X-Amz-Signature=", "h64", "&x-id=GetObject"),
    ("cookie", "Cookie: sessionid=", "l32", "; lang=en"),
    ("url-key", "https://loom.internal/tiles?key=", "a32", "&z=3"),
    (
        "kubernetes-secret",
        "kubectl create secret generic db --from-literal=db=1 --from-literal=pass=",
        "a14",
        "",
    ),
    ("sql-login", "sqlplus weaver/", "a12", "@//db:1521/CLOTH"),
    ("django-key", "= 'django-insecure-", "a45", "'"),
    ("ansible-vault", "$ANSIBLE_VAULT;1.1;AES256\n", "h80", "\n"),
    ("rails-key", "$ cat config/master.key\n", "h32", "\n"),
    ("wordpress-key", "define('AUTH_KEY', '", "a24 [x]^ a36", "');"),
    ("assignment", "api_key = \"", "a32", "\""),
    ("assignment", "aws_secret_access_key = ", "b40", "\n"),
    ("assignment", "{\"clientSecret\": \"", "a40", "\"}"),
    ("assignment", "{\\\"apiKey\\\":\\\"", "a32", "\\\"}"),
    ("assignment", "DB_PASSWORD=", "a12", "\nDB_PORT=5432"),
    ("assignment", "export LOOM_TOKEN='", "a40", "'"),
    ("assignment", "SECRET_KEY_BASE=", "h128", "\n"),
    ("assignment", "password: '", "a14", "'"),
    ("assignment", "x-api-key: ", "a40", "\n"),
    ("assignment", "loom deploy --token ", "a40", " --all"),
    ("assignment", "https://loom.internal/v1?access_token=", "a40", "&page=2"),
    ("assignment", "AccountName=loom;AccountKey=", "b86 ==", ";EndpointSuffix=core.windows.net"),
    ("assignment", "Server=db;User Id=sa;Password=", "a16", ";Encrypt=True"),
    ("assignment", "PRIVATE_KEY=0x", "h64", "\n"),
    ("assignment", "<add key=\"x\" apiKey=\"", "a32", "\" />"),
    ("assignment", "ENCRYPTION_KEY=", "a44", "\n"),
    ("signing-key", "jwt.verify(token, '", "a32", "')"),
];

fn generate(notation: &str, lot: &mut SeededRandom) -> String {
    let part = |part: &str, lot: &mut SeededRandom| {
        let mut letters = part.chars();
        let set = letters.next().unwrap_or_default();
        match letters.as_str().parse::<usize>() {
            Ok(length) if "hHluaLw-b9".contains(set) && part != "8Q~" => lot.text(set, length),
            _ if part == "U" => lot.uuid(),
            _ => part.to_owned(),
        }
    };
    notation.split(' ').map(|notation| part(notation, lot)).collect()
}

/// Generates secrets of every kind from `seed`.
pub fn secrets(seed: u64) -> Vec<GeneratedSecret> {
    let mut lot = SeededRandom::new(seed);
    let mut all = Vec::new();
    for (kind, notation) in TOKENS {
        let secret = generate(notation, &mut lot);
        all.push(GeneratedSecret { kind, text: format!("it is {secret}, keep it"), secret });
    }
    for (kind, before, notation, behind) in SHAPES {
        let secret = generate(notation, &mut lot);
        all.push(GeneratedSecret { kind, text: format!("{before}{secret}{behind}"), secret });
    }
    for name in ["RSA ", "EC ", "OPENSSH ", ""] {
        let lines: Vec<String> = (0..12).map(|_| lot.text('b', 64)).collect();
        let rule = |end: &str| format!("-----{end} {name}PRIVATE {}-----", "KEY");
        let text = format!("{}\n{}\n{}\n", rule("BEGIN"), lines.join("\n"), rule("END"));
        all.push(GeneratedSecret { kind: "private-key", text, secret: lines[5].clone() });
    }
    let header = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
    let jwt = format!("{header}.eyJ{}.{}", lot.text('-', 60), lot.text('-', 43));
    all.push(GeneratedSecret { kind: "jwt", text: format!("cookie: {jwt}; path=/"), secret: jwt });
    let discord = format!("MTA5{}.G{}.{}", "ODc2NTQzMjEwOTg3NjU0", lot.text('a', 5), lot.text('a', 38));
    all.push(GeneratedSecret {
        kind: "discord-token",
        text: format!("discord.login({discord})"),
        secret: discord,
    });
    let login = base64(format!("weaver:{}", lot.text('a', 14)).as_bytes());
    all.push(GeneratedSecret { kind: "docker-auth", text: format!("\"auth\": \"{login}\""), secret: login });
    let phrase = "legal winner thank year wave sausage worth useful legal winner thank yellow".to_owned();
    all.push(GeneratedSecret { kind: "seed-phrase", text: format!("it is: {phrase}."), secret: phrase });
    // The example of the wallet import format, since the format has a checksum.
    let wif = ["KwdMAjGmerYanjeui5SHS7J", "kmpZvVipYvB2LJGU1ZxJwYvP98617"].concat();
    all.push(GeneratedSecret { kind: "bitcoin-key", text: format!("importprivkey {wif}"), secret: wif });
    let putty: Vec<String> = (0..8).map(|_| lot.text('b', 64)).collect();
    let text = format!("Private-Lines: 8\n{}\nPrivate-MAC: 00", putty.join("\n"));
    all.push(GeneratedSecret { kind: "private-key", text, secret: putty[3].clone() });
    all
}

/// Secrets in typical places: the name, the text before, the secret in the notation of [`TOKENS`], the text
/// after. `P` is a password that a person made up, `S` one with signs, `W` one of words, `!` selects letters,
/// digits and signs.
const PLACES: &[(&str, &str, &str, &str)] = &[
    ("curl -u", "curl -s -u weaver:", "P", " https://loom.internal/api"),
    ("curl -u, quoted", "curl -u 'weaver:", "P", "' https://loom.internal"),
    ("curl --user", "curl https://loom.internal \\\n  --user weaver:", "P", " \\\n  -o out"),
    ("mysql -p", "mysql -h db.loom.internal -u root -p", "P", " cloth"),
    ("mysqldump --password", "mysqldump --user=root --password=", "P", " cloth > cloth.sql"),
    ("redis-cli -a", "redis-cli -h cache -p 6379 -a ", "P", " PING"),
    ("redis.conf", "port 6379\nrequirepass ", "P", "\nmaxmemory 2gb"),
    ("redis AUTH", "redis> AUTH default ", "P", ""),
    ("curl -b", "curl -b 'connect.sid=s%3A", "a44", "' https://loom.internal"),
    ("twine", "twine upload dist/* -u weaver -p ", "P", ""),
    ("docker login -p", "docker login -u weaver -p ", "P", " registry.loom.internal"),
    ("docker login --password", "docker login --username weaver --password ", "P", ""),
    ("docker login, piped", "echo ", "P", " | docker login -u weaver --password-stdin"),
    ("sudo -S", "echo '", "P", "' | sudo -S apt-get update"),
    ("chpasswd", "echo \"weaver:", "P", "\" | sudo chpasswd"),
    ("sshpass", "sshpass -p ", "P", " ssh weaver@loom"),
    ("openssl", "openssl rsa -in key.pem -passin pass:", "P", " -out plain.pem"),
    ("ldapsearch", "ldapsearch -x -D cn=admin,dc=loom -w ", "P", " -b dc=loom"),
    ("gpg", "gpg --batch --yes --passphrase ", "P", " --decrypt cloth.gpg"),
    ("wget", "wget --user=weaver --password=", "P", " https://loom.internal/x"),
    ("mongosh", "mongosh mongodb://db/cloth -u weaver -p ", "P", " --quiet"),
    ("sqlcmd", "sqlcmd -S db -U sa -P '", "P", "' -Q 'select 1'"),
    ("sqlplus", "sqlplus weaver/", "a12", "@//db:1521/CLOTH"),
    ("keytool", "keytool -list -keystore loom.jks -storepass ", "P", ""),
    ("7z", "7z x -p", "P", " cloth.7z"),
    ("htpasswd", "htpasswd -bc .htpasswd weaver ", "P", "\n"),
    ("htpasswd file", "weaver:$apr1$", "a8 $ a22", "\n"),
    ("smbclient", "smbclient //loom/cloth -U weaver%", "P", " -c ls"),
    ("kubectl literal", "kubectl create secret generic db --from-literal=password=", "P", " -n loom"),
    ("kubectl token", "kubectl --token=", "a40", " get pods"),
    ("aws configure", "aws configure set aws_secret_access_key ", "b40", "\n"),
    ("npm config", "npm config set //npm.loom.internal/:_authToken ", "a40", "\n"),
    ("heroku config", "heroku config:set LOOM_API_KEY=", "h40", " -a loom"),
    ("gh secret", "gh secret set LOOM_TOKEN --body ", "a40", "\n"),
    ("vault login", "vault login hvs.", "-95", "\n"),
    ("npmrc token", "//npm.loom.internal/:_authToken=", "U", "\nalways-auth=true"),
    ("npmrc auth", "//npm.loom.internal/:_auth=", "b32", "\n"),
    ("npmrc password", "//npm.loom.internal/:_password=", "b24", "\n"),
    ("Cookie", "Cookie: theme=dark; sessionid=", "l32", "; lang=en"),
    ("Set-Cookie", "< Set-Cookie: connect.sid=s%3A", "a32 . a43", "; Path=/; HttpOnly"),
    ("curl cookie", "curl --cookie \"sid=", "a32", "\" https://loom.internal"),
    ("cookie in JSON", "{\"cookie\": \"auth_token=", "a40", "\"}"),
    ("?key=", "GET https://maps.loom.internal/v1/tiles?key=", "a32", "&z=3"),
    ("&token=", "https://loom.internal/hook?id=7&token=", "a32", " HTTP/1.1"),
    ("?api_key=", "https://loom.internal/v2?api_key=", "h32", "&q=warp"),
    ("&password=", "jdbc:mysql://db:3306/cloth?user=weaver&password=", "P", "&useSSL=true"),
    ("&sig=", "https://loom.internal/x?se=2026&sig=", "a43", "&sp=r"),
    (".pgpass", "db.loom.internal:5432:cloth:weaver:", "P", "\n"),
    (".pgpass, any", "*:*:*:weaver:", "P", "\n"),
    (".netrc", "machine loom.internal\n  login weaver\n  password ", "P", "\n"),
    ("Dockerfile ENV", "FROM alpine\nENV DB_PASSWORD=", "P", "\nRUN true"),
    ("Dockerfile ENV, space", "FROM alpine\nENV DB_PASSWORD ", "P", "\nRUN true"),
    ("Dockerfile ARG", "ARG NPM_TOKEN=", "a36", "\n"),
    (".env", "PORT=80\nSTRIPE_WEBHOOK_SECRET=", "a32", "\nDEBUG=1"),
    (".env, quoted", "DATABASE_PASSWORD=\"", "P", "\"\n"),
    ("export", "export LOOM_API_KEY=", "a40", "\n"),
    ("fish", "set -x LOOM_API_KEY \"", "a40", "\"\n"),
    ("PowerShell", "$env:LOOM_API_KEY = \"", "a40", "\""),
    ("PowerShell string", "ConvertTo-SecureString \"", "P", "\" -AsPlainText -Force"),
    ("setx", "setx LOOM_API_KEY ", "a40", "\n"),
    ("YAML", "database:\n  user: weaver\n  password: ", "P", "\n  port: 5432"),
    ("YAML, quoted", "password: \"", "P", "\""),
    ("Kubernetes secret", "kind: Secret\ndata:\n  password: ", "B", "\n"),
    ("INI", "[client]\nuser = root\npassword = ", "P", "\n"),
    ("properties", "spring.datasource.password=", "P", "\n"),
    ("JSON", "{\"user\": \"weaver\", \"password\": \"", "P", "\"}"),
    ("JSON in JSON", "{\"body\":\"{\\\"client_secret\\\":\\\"", "a40", "\\\"}\"}"),
    ("JSON in JSON in JSON", "\\\\\\\"api_key\\\\\\\":\\\\\\\"", "a40", "\\\\\\\""),
    ("XML", "<server><password>", "P", "</password></server>"),
    ("TOML", "api_token = \"", "a40", "\"\n"),
    ("Terraform state", "\"attributes\": {\"master_password\": \"", "P", "\"}"),
    ("tfvars", "db_password = \"", "P", "\"\n"),
    ("kubeconfig", "users:\n- user:\n    token: ", "a60", "\n"),
    ("SQL", "CREATE USER weaver IDENTIFIED BY '", "P", "';"),
    ("PostgreSQL", "ALTER USER weaver WITH PASSWORD '", "P", "';"),
    ("connection string", "Server=db;Database=cloth;Uid=weaver;Pwd=", "P", ";"),
    ("Azure storage", "DefaultEndpointsProtocol=https;AccountName=loom;AccountKey=", "b86 ==", ";"),
    ("Azure service bus", "Endpoint=sb://loom/;SharedAccessKeyName=all;SharedAccessKey=", "b43 =", "\n"),
    ("Azure DevOps", "AZURE_DEVOPS_EXT_PAT=", "Z52", "\n"),
    ("Azure DevOps, address", "git clone https://weaver:", "Z52", "@dev.azure.com/loom/_git/cloth"),
    ("Azure DevOps, talk", "use this PAT: ", "Z52", " for the pipeline"),
    ("header, API key", "curl -H 'X-Api-Key: ", "a32", "' https://loom.internal"),
    ("header, bearer", "curl -H \"Authorization: Bearer ", "a40", "\" https://loom.internal"),
    ("header, token", "wget --header='PRIVATE-TOKEN: ", "a32", "' https://loom.internal"),
    ("database address", "DATABASE_URL=postgresql://weaver:", "P", "@db.loom.internal/cloth"),
    ("redis address", "rediss://default:", "a32", "@cache.loom.internal:6380"),
    ("mongodb address", "mongodb://weaver:", "a16", "@a.loom.internal,b.loom.internal/cloth"),
    ("amqp address", "amqps://weaver:", "a20", "@mq.loom.internal/v"),
    ("smtp address", "smtp://post:", "a16", "@mail.loom.internal:587"),
    ("git credentials", "https://weaver:", "a40", "@git.loom.internal\n"),
    ("Sentry", "SENTRY_DSN=https://", "h32", "@o1.ingest.loom.internal/7"),
    ("Django", "SECRET_KEY = 'django-insecure-", "a45 ^&(x", "'"),
    ("Rails", "production:\n  secret_key_base: ", "h128", "\n"),
    ("WireGuard", "[Interface]\nPrivateKey = ", "b43 =", "\nAddress = 10.0.0.1"),
    ("Twilio", "TWILIO_AUTH_TOKEN=", "h32", "\n"),
    ("Cloudflare", "CLOUDFLARE_API_TOKEN=", "-40", "\n"),
    ("Datadog", "DD_API_KEY=", "h32", "\n"),
    ("Heroku", "HEROKU_API_KEY=", "U", "\n"),
    ("name, next", "NEXTAUTH_SECRET=", "a32", "\n"),
    ("name, cloud", "NEXTCLOUD_ADMIN_PASSWORD=", "P", "\n"),
    ("name, cache", "REDIS_CACHE_PASSWORD=", "P", "\n"),
    ("name, primary", "PRIMARY_DB_PASSWORD=", "P", "\n"),
    ("name, page", "PAGERDUTY_TOKEN=", "a32", "\n"),
    ("name, sync", "SYNCTHING_API_KEY=", "a32", "\n"),
    ("name, primary key", "COSMOS_PRIMARY_KEY=", "b86 ==", "\n"),
    ("name, csrf", "CSRF_SECRET=", "a32", "\n"),
    ("name, home page", "HOMEPAGE_TOKEN=", "a32", "\n"),
    ("name, rsync", "RSYNC_PASSWORD=", "P", " rsync -a weaver@loom::cloth ."),
    ("letters", "DB_PASSWORD=", "L12", "\n"),
    ("letters in a Dockerfile", "FROM alpine\nENV DB_PASSWORD ", "L18", "\nRUN true"),
    ("letters in XML", "<server><password>", "L20", "</password></server>"),
    ("letters in YAML", "db:\n  password: \"", "L20", "\"\n"),
    ("letters, bearer", "Authorization: Bearer ", "L24", "\n"),
    ("letters, key", "api_key = \"", "L32", "\""),
    ("words in .env", "DB_PASSWORD=", "W", "\n"),
    ("words in JSON", "{\"password\": \"", "W-", "\"}"),
    ("words in an address", "postgres://ada:", "W", "@db.loom.internal/cloth"),
    ("default, ||", "const pass = process.env.DB_PASS || '", "P", "';"),
    ("default, ??", "const password = process.env.DB_PASSWORD ?? '", "P", "';"),
    ("default, shell", "PASS=${DB_PASSWORD:-", "P", "}"),
    ("Django, signs", "SECRET_KEY = '", "!50", "'\nDEBUG = False"),
    ("property", "java -Dspring.datasource.password=", "P", " -jar loom.jar"),
    ("HTTPie", "http POST https://loom.internal Authorization:\"Token ", "a36", "\""),
    ("Authorization in JSON", "{\"Authorization\": \"Token ", "a40", "\"}"),
    ("Wi-Fi", "network={\n ssid=\"loom\"\n psk=\"", "P", "\"\n}"),
    ("Hugging Face", "login with hf_", "a34", " first"),
    ("net user", "net user weaver ", "P", " /add"),
    ("sentence, password", "The admin password is ", "S", ", log in with it."),
    ("sentence, key", "use the api key ", "a32", " for this"),
    ("Discord", "client.login(\"", "D", "\")"),
    ("PASS", "USER=weaver PASS=", "P", " ./run"),
    ("pass in YAML", "user: weaver\npass: \"", "P", "\"\n"),
    ("keystorePass", "<Connector keystorePass=\"", "P", "\" />"),
    ("salt", "PASSWORD_SALT=", "a32", "\n"),
    ("encryption key", "encryptionKey: '", "a32", "',"),
    ("signing key", "signing_key = \"", "a32", "\""),
    ("subscription key", "Ocp-Apim-Subscription-Key: ", "a32", "\n"),
    ("setter", "source.setPassword(\"", "S", "\");"),
    ("default, or", "pw = os.getenv(\"DB_PASSWORD\") or \"", "S", "\""),
    ("default, unwrap_or", "env::var(\"DB_PASSWORD\").unwrap_or(\"", "S", "\".into())"),
    ("sentence, label", "API key: ", "a32", "\n"),
    ("sentence, with", "log in with the password ", "S", " please"),
    ("sentence, is", "The key is ", "a32", ", I think"),
    ("sentence, user", "credentials: weaver:", "S", "\n"),
    ("token as a user", "curl -u ", "a32", ": https://loom.internal"),
    ("mosquitto", "mosquitto_pub -u weaver -P ", "P", " -t loom -m go"),
    ("rabbitmqctl", "rabbitmqctl add_user weaver ", "P", "\n"),
    ("docker secret", "printf '", "P", "' | docker secret create loom -"),
    ("CREATE ROLE", "CREATE ROLE weaver LOGIN PASSWORD '", "P", "';"),
    ("app password", "EMAIL_HOST_PASSWORD = '", "G", "'"),
    ("Ansible vault", "$ANSIBLE_VAULT;1.1;AES256\n", "h80", "\n"),
    ("NetworkCredential", "new NetworkCredential(\"weaver\", \"", "P", "\")"),
    (
        "AWS header",
        "Authorization: AWS4-HMAC-SHA256 Credential=x/y, SignedHeaders=host, Signature=",
        "h64",
        "\n",
    ),
    ("kubeconfig, key of a client", "    client-key-data: ", "b128", "\n"),
    ("JSON web key", "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"a\",\"d\":\"", "-43", "\"}"),
    ("Oracle address", "jdbc:oracle:thin:scott/", "P", "@//db:1521/x"),
    ("net use", "net use Z: \\\\loom\\cloth /user:weaver ", "S", "\n"),
    ("strongSwan", "loom : PSK \"", "P", "\"\n"),
    ("Cisco", "enable secret 0 ", "P", "\n"),
    ("rclone", "rclone config create cloth sftp user weaver pass ", "P", "\n"),
    ("redis.call", "redis.call(\"AUTH\", \"", "P", "\")"),
    ("expect", "send \"", "S", "\\r\"\n"),
    ("type between, Rust", "const API_SECRET: &str = \"", "a32", "\";"),
    ("type between, TypeScript", "const apiSecret: string = '", "a32", "';"),
    ("type between, Go", "const apiSecret string = \"", "a32", "\""),
    ("YAML block", "db:\n  password: >-\n    ", "S", "\n"),
    ("CSV", "user,password,role\nweaver,", "S", ",admin\n"),
    ("Markdown table", "| user | password |\n|---|---|\n| weaver | ", "S", " |\n"),
    ("cookies in Python", "requests.get(url, cookies={'sessionid': '", "l32", "'})"),
    ("sentence, purpose", "password for the admin user: ", "S", "\n"),
    ("sentence, changed", "The root password was changed to ", "S", " yesterday"),
    ("sentence, reversed", "just use ", "S", " as the password for now"),
    ("sentence, brackets", "the staging password (", "S", ") works"),
    ("sentence, arrow", "admin password -> ", "S", "\n"),
    ("sentence, login", "login: weaver / ", "S", "\n"),
    ("sentence, German", "Das Passwort lautet ", "S", "."),
    ("sentence, Spanish", "la contraseña es ", "S", "\n"),
    ("sentence, French", "mot de passe : ", "S", "\n"),
    ("sentence, Portuguese", "a senha é ", "S", "\n"),
    ("sentence, Russian", "пароль: ", "S", "\n"),
    ("sentence, Chinese", "密码：", "S", "\n"),
    ("sentence, Japanese", "パスワードは ", "S", " です"),
    ("sentence, Korean", "비밀번호: ", "S", "\n"),
    ("pair in YAML", "env:\n- name: DB_PASSWORD\n  value: ", "S", "\n"),
    ("pair in JSON", "{\"name\": \"DB_PASSWORD\", \"value\": \"", "S", "\"}"),
    ("arrow in R", "password <- \"", "S", "\""),
    ("aligned", "Key         Value\n---         -----\npassword    ", "S", "\n"),
    ("settings in a line", "host=db user=weaver password=", "S", " dbname=cloth"),
    ("flag with one dash", "x11vnc -passwd ", "S", " -forever"),
    ("poetry", "poetry config http-basic.loom weaver ", "S", "\n"),
    ("printed", "$ cat /run/secrets/db_password\n", "S", "\n"),
    ("wpa_passphrase", "wpa_passphrase loom ", "S", "\n"),
    ("session secret", "app.use(session({ secret: '", "S", "' }))"),
    ("az login", "az login --service-principal -u loom -p ", "S", " --tenant t"),
    ("bold label", "- **User**: weaver\n- **Password**: ", "S", "\n"),
    ("bold label with a colon", "**Password:** `", "S", "`\n"),
    ("bold value", "Password: **", "S", "**\n"),
    ("element as value", "Password: <code>", "S", "</code>\n"),
    ("row of a table", "| Setting | Value |\n|---|---|\n| Password | ", "S", " |\n"),
    ("cells in HTML", "<tr><td>Password</td><td>", "S", "</td></tr>"),
    ("element with a name", "<property name=\"hibernate.connection.password\">", "S", "</property>"),
    ("string prefix, bytes", "PASSWORD = b\"", "S", "\"\n"),
    ("string prefix, raw", "connect(user='ada', password=r'", "S", "')"),
    ("string prefix, C#", "string password = @\"", "S", "\";"),
    ("string prefix, SQL", "CREATE LOGIN ada WITH PASSWORD = N'", "S", "';"),
    ("string, Rust", "let password = String::from(\"", "S", "\");"),
    ("array, C", "char pass[] = \"", "S", "\";"),
    ("macro, C", "#define DB_PASS \"", "S", "\"\n"),
    ("field in a browser", "page.locator('input[name=\"password\"]').fill('", "S", "')"),
    ("field in a browser, CSS", "await page.type('input[name=password]', '", "S", "')"),
    ("field in a browser, Cypress", "cy.get('#password').type('", "S", "')"),
    ("pair in a call, tuple", "requests.get(url, auth=('weaver', '", "S", "'))"),
    ("pair in a call, login", "server.login(\"weaver@loom.internal\", \"", "S", "\")"),
    ("pair in a call, Go", "request.SetBasicAuth(\"weaver\", \"", "S", "\")"),
    ("pair in a call, Rust", ".basic_auth(\"weaver\", Some(\"", "S", "\"))"),
    ("pair in a call, PHP", "new mysqli(\"localhost\", \"root\", \"", "S", "\", \"cloth\")"),
    ("pair in a call, PDO", "new PDO($dsn, 'root', '", "S", "')"),
    ("pair in a call, JDBC", "DriverManager.getConnection(url, \"sa\", \"", "S", "\");"),
    ("hashed, PHP", "password_hash('", "S", "', PASSWORD_DEFAULT)"),
    ("hashed, bcrypt", "await bcrypt.compare('", "S", "', hash)"),
    ("hashed, command", "openssl passwd -6 ", "S", "\n"),
    ("signed, jwt", "jwt.sign({ id: user.id }, '", "a32", "', { expiresIn: '1h' })"),
    ("signed, hmac", "crypto.createHmac('sha256', '", "a32", "')"),
    ("secretOrKey", "super({ secretOrKey: '", "a32", "' })"),
    ("short secret", "JWT_SECRET=", "a12", "\n"),
    ("short token", "ARG NPM_TOKEN=", "S", "\n"),
    ("long token", "{\"refresh_token\": \"0.", "-1100", "\"}"),
    ("plural", "CREDENTIALS=", "h32", "\n"),
    ("key of authentication", "auth_key=", "a40", "\n"),
    ("Go DSN", "sql.Open(\"mysql\", \"weaver:", "P", "@tcp(db:3306)/cloth\")"),
    ("here-string", "docker login -u weaver --password-stdin <<< '", "P", "'"),
    ("piped pair", "echo -n 'weaver:", "S", "' | base64"),
    ("written to a file", "echo '", "S", "' > /run/secrets/db_password"),
    ("mysqladmin", "mysqladmin -u root password ", "S", "\n"),
    ("mc alias", "mc alias set loom https://s3.loom.internal weaver ", "a40", "\n"),
    ("htpasswd -n", "htpasswd -nbB weaver ", "S", "\n"),
    ("SecureString", "aws ssm put-parameter --name /db --type SecureString --value ", "S", "\n"),
    ("quoted command", "ssh loom \"mysql -p", "S", "\""),
    ("xh", "xh -a weaver:", "P", " loom.internal"),
    ("ALTER USER", "ALTER USER weaver PASSWORD '", "S", "';"),
    ("IDENTIFIED WITH", "ALTER USER 'root'@'%' IDENTIFIED WITH mysql_native_password BY '", "S", "';"),
    ("Terraform variable", "variable \"db_password\" {\n  type = string\n  default = \"", "S", "\"\n}"),
    ("Redis ACL", "ACL SETUSER weaver on >", "S", " ~* +@all"),
    ("AWS CSV", "User name,Access key ID,Secret access key\nada,x,", "b40", "\n"),
    ("sentence, pw", "the DB pw is ", "S", "\n"),
    ("sentence, generated", "A temporary password is generated for root@localhost: ", "S", "\n"),
    ("SSHPASS", "SSHPASS=", "S", " sshpass -e ssh weaver@loom"),
    ("sentence, German label", "Passwort: ", "S", "\n"),
    ("sentence, login with", "you can login with weaver:", "S", "\n"),
    ("sentence, credentials are", "the credentials are weaver / ", "S", "\n"),
];

/// Generates a password like those that people make up.
fn human_password(lot: &mut SeededRandom) -> String {
    const WORDS: &[&str] = &["Weft", "Shuttle", "Heddle", "Selvage", "Treadle", "Bobbin", "Secret", "Loom"];
    let word = WORDS[lot.number_below(WORDS.len())];
    match lot.number_below(4) {
        0 => format!("{word}{}!", 1000 + lot.number_below(9000)),
        1 => format!("{word}-{}-{}", lot.text('9', 2), lot.text('a', 4)),
        2 => lot.text('a', 14),
        _ => format!("{}#{word}{}", lot.text('a', 3), lot.text('9', 2)),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let at = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) as usize & 63;
            out.push(if digit <= chunk.len() { DIGITS[value] as char } else { '=' });
        }
    }
    out
}

/// Generates secrets in the places where they are typically left.
///
/// These are commands, configuration files, headers and URLs, with tokens of many kinds; and tokens in base64
/// and hexadecimal, escaped, concatenated, and split by colour codes, invisible characters and line breaks.
/// `kind` is the name of the place.
pub fn secrets_in_context(seed: u64) -> Vec<GeneratedSecret> {
    let mut lot = SeededRandom::new(seed);
    let mut all = Vec::new();
    for (place, before, notation, behind) in PLACES {
        let secret = match *notation {
            "P" => human_password(&mut lot),
            "B" => base64(human_password(&mut lot).as_bytes()),
            "G" => {
                (0..4).map(|_| format!("q{}", lot.text('L', 3).to_lowercase())).collect::<Vec<_>>().join(" ")
            }
            "S" => format!("{}_{}7", ["Sh4ttle", "h3ddLe", "W4rp"][lot.number_below(3)], lot.text('a', 6)),
            "W" => ["correcthorsebattery", "letmeinplease", "shuttle2secret"][lot.number_below(3)].to_owned(),
            "W-" => format!("swordfish-{}-blue", lot.text('9', 2)),
            "!50" => {
                let signs = b"abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)";
                (0..50).map(|_| signs[lot.number_below(signs.len())] as char).collect()
            }
            "D" => format!("MTA5{}.G{}.{}", "ODc2NTQzMjEwOTg3NjU0", lot.text('a', 5), lot.text('a', 38)),
            "Z52" => {
                (0..52).map(|_| b"abcdefghijklmnopqrstuvwxyz234567"[lot.number_below(32)] as char).collect()
            }
            _ => generate(notation, &mut lot),
        };
        all.push(GeneratedSecret { kind: place, text: format!("{before}{secret}{behind}"), secret });
    }
    let login = base64(format!("weaver:{}", human_password(&mut lot)).as_bytes());
    let text = format!("{{\"auths\":{{\"loom.internal\":{{\"auth\":\"{login}\"}}}}}}");
    all.push(GeneratedSecret { kind: "docker config", text, secret: login.clone() });
    all.push(GeneratedSecret { kind: "basic", text: format!("Authorization: Basic {login}"), secret: login });
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let percent = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let tokens: Vec<GeneratedSecret> = secrets(seed);
    for token in tokens.iter().filter(|token| {
        ["github-token", "aws-key-id", "stripe-key", "slack-token", "jwt", "google-key"].contains(&token.kind)
    }) {
        let plain = &token.secret;
        let (head, tail) = plain.split_at(plain.len() / 2);
        let encoded = base64(plain.as_bytes());
        let long = base64(format!("LOOM_TOKEN={plain}\nPORT=80\n").as_bytes());
        let mut add = |kind, text: String, secret: String| all.push(GeneratedSecret { kind, text, secret });
        add("token in base 64", format!("echo {encoded} | base64 -d"), encoded.clone());
        add("file in base 64", format!("data: {long}"), long);
        add("token in base 16", format!("0x{}", hex(plain)).replacen("0x", "hex: ", 1), hex(plain));
        add("token escaped", format!("https://loom.internal/?u={}", percent(plain)), percent(plain));
        add(
            "token in colours",
            format!("\u{1b}[32m{head}\u{1b}[0m\u{1b}[1m{tail}\u{1b}[0m ok"),
            tail.to_owned(),
        );
        let escaped = |escape: &dyn Fn(u8) -> String| plain.bytes().map(escape).collect::<String>();
        for escape in [
            escaped(&|byte| format!("\\x{byte:02x}")),
            escaped(&|byte| format!("\\{byte:03o}")),
            escaped(&|byte| format!("\\u{{{byte:x}}}")),
            escaped(&|byte| format!("&#{byte};")),
            escaped(&|byte| format!("&#x{byte:X};")),
        ] {
            add("token escaped", format!("print '{escape}'"), escape);
        }
        add("token with invisible characters", format!("it is {head}\u{200b}{tail}\n"), tail.to_owned());
        add("token, concatenated", format!("const key = \"{head}\" + \"{tail}\";"), tail.to_owned());
        add("token, concatenated in lines", format!("key = '{head}' +\n    '{tail}'"), tail.to_owned());
        // Of a token of variable length, the first line may look complete.
        if ["github-token", "aws-key-id", "google-key"].contains(&token.kind) {
            add("token in two lines", format!("it is\n  {head}\n  {tail}\n"), tail.to_owned());
        }
        add("token in an address", format!("https%3A%2F%2Floom%2F%3Ftoken%3D{plain}%26x%3D1"), plain.clone());
    }
    let key = tokens.iter().find(|token| token.kind == "private-key");
    if let Some(key) = key {
        let encoded = base64(key.text.as_bytes());
        let text = format!("client-key-data: {encoded}\n");
        all.push(GeneratedSecret { kind: "kubeconfig key", text, secret: encoded });
        let json = key.text.replace('\n', "\\n");
        let text = format!("{{\"type\":\"service_account\",\"private_key\":\"{json}\"}}");
        all.push(GeneratedSecret { kind: "service account", text, secret: key.secret.clone() });
    }
    let lines: Vec<String> = (0..2).map(|_| lot.text('b', 48)).collect();
    let text = format!(
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPublic-Lines: 2\nAAAA\nPrivate-Lines: 1\n{}\nPrivate-MAC: 0",
        lines[0]
    );
    all.push(GeneratedSecret { kind: ".ppk", text, secret: lines[0].clone() });
    const SEEDS: &[&str] = &[
        "legal winner thank year wave sausage worth useful legal winner thank yellow",
        "letter advice cage absurd amount doctor acoustic avoid letter advice cage above",
        "void come effort suffer camp survey warrior heavy shoot primary clutch crush open amazing screen patrol group space point ten exist slush involve unfold",
    ];
    let phrase = SEEDS[lot.number_below(SEEDS.len())];
    all.push(GeneratedSecret {
        kind: "seed phrase",
        text: format!("wallet: {phrase}\n"),
        secret: phrase.to_owned(),
    });
    let listed: String = phrase.split(' ').zip(1..).map(|(word, no)| format!("{no}. {word}\n")).collect();
    let inner = listed.trim_end().trim_start_matches("1. ").to_owned();
    all.push(GeneratedSecret {
        kind: "seed phrase, numbered",
        text: format!("Recovery phrase:\n{listed}"),
        secret: inner.clone(),
    });
    all.push(GeneratedSecret {
        kind: "seed phrase, numbered, without a name",
        text: format!("Write these down:\n{listed}"),
        secret: inner,
    });
    all
}

/// Generates text that resembles secrets but contains none: hashes, ids, base64, code, names, prose about
/// secrets.
pub fn text_without_secrets(seed: u64) -> Vec<String> {
    let mut lot = SeededRandom::new(seed);
    let mut all = Vec::new();
    for _ in 0..40 {
        let (sha, long, base) = (lot.text('h', 40), lot.text('h', 64), lot.text('b', 86));
        let (id, other, word) = (lot.uuid(), lot.uuid(), lot.text('a', 24));
        all.push(format!("commit {sha}\nindex {}..{} 100644", &sha[..7], &long[..7]));
        all.push(format!("sha256:{long}  loom.tar.gz\n{long}"));
        all.push(format!("\"integrity\": \"sha512-{base}==\",\n\"resolved\": \"https://packages.example.org/left-pad/-/left-pad-1.3.0.tgz\""));
        all.push(format!(
            "checksum = \"{long}\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\""
        ));
        all.push(format!("{{\"sessionId\":\"{id}\",\"uuid\":\"{other}\",\"requestId\":\"req_{word}\",\"id\":\"msg_{word}\"}}"));
        all.push(format!("toolu_{word} call_{word} resp_{sha}"));
        all.push(format!("data:image/png;base64,iVBORw0KGgo{}", lot.text('b', 2000)));
        all.push(lot.text('b', 3000));
        all.push(format!(
            "!function(e,t){{var n={{}};e.exports=t(n),e._key=t.token,e.password=n.b}}({},\"{}\")",
            lot.text('9', 6),
            lot.text('a', 9)
        ));
        all.push(format!("etag: \"{}\"\nx-request-id: {id}\ncache-key: {sha}", &long[..32]));
        all.push(format!("<a href=\"https://loom.example/{word}?v={}&page=2\">", &sha[..12]));
        all.push(format!("docker pull loom@sha256:{long}"));
        all.push(format!("<script src=\"app.{}.js\" integrity=\"sha384-{}\">", &sha[..8], lot.text('b', 64)));
        all.push(format!("next_page_token: \"{}\", csrfToken: \"{}\"", lot.text('b', 40), lot.text('a', 32)));
        all.push(format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} weaver@loom", lot.text('b', 43)));
        all.push(format!("pk_live_{word} is public, and so is phc_{}", lot.text('a', 43)));
    }
    all.extend(PROSE.iter().map(|text| (*text).to_owned()));
    all
}

/// Prose and code about secrets.
const PROSE: &[&str] = &[
    "set ANTHROPIC_API_KEY to sk-ant-api03-… and go on",
    "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "-----BEGIN PRIVATE KEY----- starts a key, and -----END PRIVATE KEY----- ends it",
    "npm_config_registry_of_this_very_machine_is_long",
    "let password = readPassword(prompt); const token = await getToken(user);",
    "password: string; apiKey?: string; token: tokens[i], secret: process.env.SECRET_KEY",
    "API_KEY=${API_KEY} PASSWORD=$(cat file) TOKEN=<your-token-here> SECRET=changeme",
    "postgres://postgres:postgres@localhost:5432/app and redis://localhost:6379",
    "https://user:password@example.com and https://${USER}:${PASS}@host/x",
    "Authorization: Bearer $TOKEN, Bearer <token>, Bearer YOUR_API_KEY",
    "input_tokens=1024 max_tokens: 4096, tokens_before = 120000",
    "DB_PASSWORD=password AWS_SECRET_ACCESS_KEY=your-secret-access-key-here",
    "token = lexer.next_token_or_end_of_file_2(); key = sort_key_by_name_1",
    "git@github.com:loom/cloth.git https://github.com/loom/cloth.git",
    "tests/test_password_reset_token_generator.py::test_token_is_valid_for_24_hours",
    "secret_santa_list_of_2024_for_the_whole_company_dot_com",
    "PWD=/home/ada/projects/loom2024 OLDPWD=/home/ada, and (`pwd: osc7/osc51/osc99` in the config)",
    "task-runner-for-everything-that-is-long-enough-to-be-2-tokens-of-a-key",
    "risk-assessment-of-32-characters-or-more-0123",
    "password = \"correct-horse-battery\"",
    "const SECRET_NAME = \"my-app/production/database-credentials\"",
    "kubectl create secret generic db-user-pass --from-file=./username.txt",
    "the bearer of this letter, a basic understanding of the token ring",
    "NEXT_TOKEN=second page_token=next cache_key=user_2 primary_key=True PRIMARY_KEY=id csrf_token=form.token",
    "nextPageToken: \"CAoQAA2bZ3xQ9vLm4kRt7w\", csrftoken=\"k3Jd82hVnq0PzLw7Yt5R\", pagetoken: 'kQ8zR4tVbN2xLm7pWs5d'",
    "DB_PASSWORD=changeme PASSWORD=xxxxxxxxxx PASSWORD=your-password PASSWORD=<password> PASSWORD=${VAR} SECRET=secret",
    "password = getpass() password: string, POSTGRES_PASSWORD=postgres PASSWORD=password DB_PASSWORD=DB_PASSWORD_DEV",
    "postgres://postgres:password@db/app mysql://root:secret@db/app redis://:password@cache amqp://guest:guest@mq",
    "the password is required, the password is hashed with Argon2id, the token is a JWT signed with RS256",
    "The password is bcrypt-hashed2024 or PBKDF2-HMAC-SHA256. the api key to use is in the file config2.json",
    "a net user experience improvement, net user counts, AKIAABCDEFGHIJKLMNOP, sk_live_YourStripeKeyGoesHere",
    "const pass = process.env.DB_PASS || ''; const token = process.env.TOKEN || 'development';",
    "password = base64.b16encode(random_bytes[8:]), password::scram_sha_256_salt(b\"secret\", salt)",
    "{\"password\": \"Passwort\", \"token\": \"userRefreshTokenProvider\", \"secret\": \"awsSecretsManagerClient\"}",
    "self.run_python(\"while True: pass\", timeout=0.0001), compass = \"north-2-west\", bypass=Cache2Layer4",
    "getPassword(\"Prompt2Text\"), log in as admin / viewer, the credentials: user:password, token=BAQ8SOKEST&color=C43AC3",
    "MyVeryLongModuleNameGoesHere.module.someVeryLongFunctionNameGoesHere1",
    "user,password\nada,required\nbob,optional2, and a column | password | of | Markdown |",
    "The password for the user is stored in Vault2Store. mot de passe : obligatoire, пароль: обязателен, 密码：必填",
    "password -> hashed_password2, let password: Option<String> = None; password: |\n  the text of the field",
    "password    the password of the user\ntoken       a token, -password file2.txt, -Password $credential.Password",
    "send \"hello2\\r\", sendline(\"ls -la /tmp2\"), pass show loom/db2\nloom/db2 is not in the password store.",
    "name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: db2, { \"name\": \"token\", \"value\": \"{{ token2 }}\" }",
    "requirepass foobared\nauth flow2 is next, tar -b 20, curl -b cookies.txt, _auth=none",
    "**Password**: required, **Token:** see Config2Reader, | Password | Required |, <td>Password</td><td>None</td>",
    "user.login(name, 'remember'), page.login('weaver', 'password'), auth=(user, password), db.auth('a', secret)",
    "page.locator('#password').fill(user.password), cy.get('#password').type('password'), password == b\"x\"",
    "jwt.sign(payload, 'your-secret-key-here'), jwt.verify(token, 'secret'), createHmac('sha256', key)",
    "password_hash($password, PASSWORD_BCRYPT), bcrypt.compare('password', hash), the openssl passwd command2",
    "echo 'hello world2' | base64, echo 'Done2Day' > out.txt, cat <<< 'Hello2World', passwd ada <<< \"$PW\"",
    "variable \"token_name\" {\n  default = \"deploy\"\n}\nALTER USER ada PASSWORD 'postgres', user default on >pass",
    "PASS src/App2Router.test.tsx, SESSION_TOKENS=12, max_tokens=Sonnet45Limit, credentials=same-origin2, OMP_SECRET=s3cr3tAWSkey",
    "Ok(ConnectionSecrets::Chacha20Poly1305), Token::Ident2Or3Literal4Kind5, secret::Kind8Of9Things10And11",
    "put-parameter --type String --value Feature2Flag, mysqladmin -u root password, weaver:pw@tcp(db)/x",
];
