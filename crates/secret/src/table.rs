//! The table of tokens that are recognized by their prefix.
//!
//! One line per form, grouped by issuer. Lengths are those documented by the issuer or used by scanners. If
//! there are none, they are a little less than observed. Public keys (`pk_live_`, `phc_`) are not secrets and
//! not included.

use crate::alphabet::Alphabet::{
    Alnum, AnyHex, Base64, Base64Url, Braintree, Cookie, Dotted, Hex, Hyphened, Lower, Upper, Url, Word,
};
use crate::form::TokenForm;

macro_rules! forms {
    ($($kind:literal $what:literal { $($start:literal $alphabet:ident $least:literal..$most:tt),+ $(,)? })*) => {
        pub(crate) static FORMS: &[TokenForm] = &[
            $($(TokenForm::new($kind, $what, $start, $alphabet, ($least, $most)),)+)*
        ];
    };
}

forms! {
    // Models.
    "anthropic-key" "an Anthropic key" {
        "sk-ant-api03-" Url 80..120, "sk-ant-admin01-" Url 80..120, "sk-ant-oat01-" Url 80..120,
        "sk-ant-ort01-" Url 80..120, "sk-ant-sid01-" Url 80..140, "sk-ant-sid02-" Url 80..140,
    }
    "openai-key" "an OpenAI key" {
        "sk-proj-" Url 40..200, "sk-svcacct-" Url 40..200, "sk-admin-" Url 40..200, "sk-None-" Url 40..200,
    }
    "openrouter-key" "an OpenRouter key" { "sk-or-v1-" Hex 64..64 }
    "langfuse-key" "a Langfuse secret key" { "sk-lf-" Hyphened 36..36 }
    "api-key" "an API key" { "sk-" Alnum 32..64 }
    "elevenlabs-key" "an ElevenLabs key" { "sk_" Hex 48..48 }
    "groq-key" "a Groq key" { "gsk_" Alnum 48..60 }
    "xai-key" "an xAI key" { "xai-" Alnum 70..90 }
    "perplexity-key" "a Perplexity key" { "pplx-" Alnum 40..60 }
    "hugging-face-token" "a Hugging Face token" { "hf_" Alnum 34..40, "api_org_" Alnum 34..34 }
    "replicate-token" "a Replicate token" { "r8_" Alnum 37..40 }
    "fireworks-key" "a Fireworks key" { "fw_" Alnum 22..24 }
    "together-key" "a Together key" { "tgp_v1_" Url 40..48 }
    "nvidia-key" "an NVIDIA key" { "nvapi-" Url 60..70 }
    "cerebras-key" "a Cerebras key" { "csk-" Lower 48..52 }
    "voyage-key" "a Voyage key" { "pa-" Url 43..43 }
    "jina-key" "a Jina key" { "jina_" Url 55..65 }
    "pinecone-key" "a Pinecone key" { "pcsk_" Word 60..80 }
    "langsmith-key" "a LangSmith key" { "lsv2_pt_" Word 43..43, "lsv2_sk_" Word 43..43 }
    "tavily-key" "a Tavily key" { "tvly-" Url 32..40 }
    "firecrawl-key" "a Firecrawl key" { "fc-" Hex 32..32 }
    "cursor-key" "a Cursor key" { "key_" Hex 64..64 }
    "e2b-key" "an E2B key" { "e2b_" Hex 40..40 }

    // Forges and packages.
    "github-token" "a GitHub token" {
        "ghp_" Alnum 36..40, "gho_" Alnum 36..40, "ghu_" Alnum 36..40, "ghs_" Alnum 36..40, "ghr_" Alnum 36..76,
        "github_pat_" Word 82..82,
    }
    "gitlab-token" "a GitLab token" {
        "glpat-" Dotted 20..60, "gldt-" Dotted 20..60, "glrt-" Dotted 20..60, "glrtr-" Dotted 20..60, "glptt-" Hex 40..40,
        "glft-" Dotted 20..60, "glsoat-" Dotted 20..60, "glcbt-" Dotted 20..60, "glimt-" Dotted 20..60, "glagent-" Dotted 40..60,
        "gloas-" Hex 64..64, "glffct-" Dotted 20..60, "GR1348941" Url 20..20,
    }
    "bitbucket-token" "a Bitbucket token" { "ATBB" Alnum 32..36, "ATCTT3xFfG" Base64Url 60..400 }
    "atlassian-token" "an Atlassian token" { "ATATT3xFfG" Base64Url 60..400, "ATTA" Hex 64..72 }
    "npm-token" "an npm token" { "npm_" Alnum 36..36 }
    "pypi-token" "a PyPI token" { "pypi-AgEIcHlwaS5vcmc" Url 50..1000, "pypi-AgENdGVzdC5weXBpLm9yZw" Url 50..1000 }
    "rubygems-key" "a RubyGems key" { "rubygems_" Hex 48..48 }
    "crates-token" "a crates.io token" { "cio" Alnum 32..32 }
    "nuget-key" "a NuGet key" { "oy2" Lower 43..43 }
    "clojars-token" "a Clojars token" { "CLOJARS_" Lower 60..60 }
    "packagist-token" "a Packagist token" { "packagist_ort_" Hex 40..80, "packagist_out_" Hex 40..80, "packagist_uut_" Hex 40..80 }
    "docker-token" "a Docker token" { "dckr_pat_" Url 27..27, "dckr_oat_" Url 32..32 }
    "artifactory-token" "an Artifactory token" { "AKCp" Alnum 69..73, "cmVmdGtuO" Base64 50..60 }
    "buildkite-token" "a Buildkite token" { "bkua_" Hex 40..40 }
    "circleci-token" "a CircleCI token" { "CCIPAT_" Word 40..80, "CCIPRJ_" Word 40..80 }
    "sonar-token" "a SonarQube token" { "sqp_" Hex 40..40, "squ_" Hex 40..40, "sqa_" Hex 40..40 }
    "snyk-token" "a Snyk token" { "snyk_uat." Dotted 40..120, "snyk_sat." Dotted 40..120 }

    // Clouds and hosting.
    "aws-key-id" "an AWS access key id" { "AKIA" Upper 16..16, "ASIA" Upper 16..16, "ABIA" Upper 16..16, "ACCA" Upper 16..16 }
    "aws-bedrock-key" "an AWS Bedrock key" { "ABSK" Base64 109..269, "bedrock-api-key-" Base64 60..3000 }
    "aws-session-token" "an AWS session token" { "FwoGZXIvYXdz" Base64 200..3000, "IQoJb3JpZ2luX2Vj" Base64 200..3000 }
    "google-key" "a Google API key" { "AIza" Url 35..35 }
    "google-oauth" "a Google OAuth token" { "ya29." Url 60..2000, "GOCSPX-" Url 28..28, "1//0" Url 40..120 }
    "alibaba-key" "an Alibaba Cloud key" { "LTAI" Alnum 16..26 }
    "tencent-key" "a Tencent Cloud key" { "AKID" Alnum 32..32 }
    "yandex-key" "a Yandex key" { "AQVN" Url 36..38, "y0_" Url 55..62 }
    "digitalocean-token" "a DigitalOcean token" { "dop_v1_" Hex 64..64, "doo_v1_" Hex 64..64, "dor_v1_" Hex 64..64 }
    "heroku-key" "a Heroku key" { "HRKU-AA" Url 58..58 }
    "netlify-token" "a Netlify token" { "nfp_" Alnum 36..40 }
    "vercel-token" "a Vercel token" { "vcp_" Alnum 24..64, "vck_" Alnum 24..64, "vca_" Alnum 24..64, "vci_" Alnum 24..64, "vercel_blob_rw_" Word 30..60 }
    "fly-token" "a Fly.io token" { "fo1_" Url 43..43, "fm1r_" Base64 80..2000, "fm2_" Base64 80..2000 }
    "render-key" "a Render key" { "rnd_" Alnum 28..36 }
    "supabase-key" "a Supabase key" { "sbp_" Hex 40..40, "sb_secret_" Url 30..40 }
    "planetscale-token" "a PlanetScale token" { "pscale_tkn_" Dotted 32..64, "pscale_pw_" Dotted 32..64, "pscale_oauth_" Dotted 32..64 }
    "neon-key" "a Neon key" { "napi_" Lower 60..66 }
    "databricks-token" "a Databricks token" { "dapi" Hex 32..32, "dose" Hex 32..32 }
    "cloudflare-key" "a Cloudflare key" { "v1.0-" Url 171..171 }
    "tailscale-key" "a Tailscale key" { "tskey-" Url 20..90 }
    "scaleway-key" "a Scaleway key" { "SCW" Upper 17..17 }

    // Secret managers and personal keys.
    "vault-token" "a Vault token" { "hvs." Url 24..200, "hvb." Url 90..300, "hvr." Url 90..300 }
    "doppler-token" "a Doppler token" {
        "dp.pt." Alnum 40..44, "dp.st." Dotted 40..64, "dp.ct." Alnum 40..44, "dp.sa." Alnum 40..44, "dp.scim." Alnum 40..44, "dp.audit." Alnum 40..44,
    }
    "pulumi-token" "a Pulumi token" { "pul-" Hex 40..40 }
    "onepassword-token" "a 1Password token" { "ops_eyJ" Base64 200..2000 }
    "age-key" "an age key" { "AGE-SECRET-KEY-1" Upper 58..58 }

    // Monitoring.
    "grafana-token" "a Grafana token" { "glsa_" Word 41..41, "glc_eyJ" Base64 32..400 }
    "new-relic-key" "a New Relic key" { "NRAK-" Upper 27..27, "NRII-" Url 32..32, "NRSP-" Url 32..64 }
    "sentry-token" "a Sentry token" { "sntrys_" Cookie 60..400, "sntryu_" Hex 64..64 }
    "dynatrace-token" "a Dynatrace token" { "dt0c01." Dotted 89..89, "dt0s16." Dotted 80..90, "dt0s01." Dotted 80..90 }
    "honeycomb-key" "a Honeycomb key" { "hcaik_" Lower 58..58, "hcbik_" Lower 58..58, "hcxik_" Lower 58..58 }
    "posthog-key" "a PostHog key" { "phx_" Alnum 40..60, "phs_" Alnum 40..60 }
    "segment-token" "a Segment token" { "sgp_" Alnum 64..64 }

    // Payments and commerce.
    "stripe-key" "a Stripe key" {
        "sk_live_" Alnum 16..250, "sk_test_" Alnum 16..250, "rk_live_" Alnum 16..250, "rk_test_" Alnum 16..250,
        "whsec_" Base64 32..64,
    }
    "square-token" "a Square token" { "sq0atp-" Url 22..22, "sq0csp-" Url 43..43, "EAAA" Url 60..60 }
    "shopify-token" "a Shopify token" { "shpat_" AnyHex 32..32, "shpca_" AnyHex 32..32, "shppa_" AnyHex 32..32, "shpss_" AnyHex 32..32 }
    "razorpay-key" "a Razorpay key" { "rzp_live_" Alnum 14..24 }
    "flutterwave-key" "a Flutterwave key" { "FLWSECK-" Url 32..50, "FLWSECK_TEST-" Url 32..50 }
    "braintree-token" "a Braintree token" { "access_token$production$" Braintree 49..49 }
    "plaid-token" "a Plaid token" { "access-production-" Hyphened 36..36, "access-sandbox-" Hyphened 36..36 }
    "shippo-token" "a Shippo token" { "shippo_live_" Hex 40..40, "shippo_test_" Hex 40..40 }
    "easypost-key" "an EasyPost key" { "EZAK" Alnum 54..54, "EZTK" Alnum 54..54 }
    "duffel-token" "a Duffel token" { "duffel_live_" Url 43..43, "duffel_test_" Url 43..43 }
    "polar-token" "a Polar token" { "polar_oat_" Alnum 40..60, "polar_pat_" Alnum 40..60 }

    // Mail, messaging, social media.
    "slack-token" "a Slack token" {
        "xoxb-" Url 40..120, "xoxp-" Url 40..120, "xoxa-" Url 40..120, "xoxr-" Url 40..200, "xoxs-" Url 40..200, "xoxc-" Url 40..120,
        "xoxd-" Cookie 60..400, "xoxe-" Url 40..250, "xoxe.xoxp-" Url 40..250, "xoxe.xoxb-" Url 40..250, "xapp-1-" Url 40..120,
    }
    "sendgrid-key" "a SendGrid key" { "SG." Dotted 66..66 }
    "mailgun-key" "a Mailgun key" { "key-" Hex 32..32 }
    "brevo-key" "a Brevo key" { "xkeysib-" Url 81..81, "xsmtpsib-" Url 81..81 }
    "mailersend-key" "a MailerSend key" { "mlsn." Hex 64..64 }
    "twilio-key" "a Twilio key" { "SK" Hex 32..32 }
    "facebook-token" "a Facebook token" { "EAACEdEose0cBA" Alnum 20..300, "EAAG" Alnum 100..300, "EAAB" Alnum 100..300 }
    "intercom-token" "an Intercom token" { "dG9rO" Base64 50..64 }

    // Productivity.
    "linear-key" "a Linear key" { "lin_api_" Alnum 40..40, "lin_oauth_" Hex 64..64 }
    "notion-token" "a Notion token" { "secret_" Alnum 43..43, "ntn_" Alnum 40..50 }
    "figma-token" "a Figma token" { "figd_" Url 40..44, "figu_" Url 40..60 }
    "postman-key" "a Postman key" { "PMAK-" Url 59..59 }
    "contentful-token" "a Contentful token" { "CFPAT-" Url 43..43 }
    "typeform-token" "a Typeform token" { "tfp_" Dotted 40..64 }
    "readme-key" "a ReadMe key" { "rdme_" Lower 70..70 }
    "prefect-key" "a Prefect key" { "pnu_" Alnum 36..36 }
    "infracost-key" "an Infracost key" { "ico-" Alnum 32..32 }
    "mapbox-token" "a Mapbox secret token" { "sk.eyJ" Dotted 60..200 }
    "tinybird-token" "a Tinybird token" { "p.eyJ" Dotted 60..300 }
    "frameio-token" "a Frame.io token" { "fio-u-" Url 64..64 }
    "mongodb-secret" "a MongoDB Atlas secret" { "mdb_sa_sk_" Url 40..40 }
    "launchdarkly-key" "a LaunchDarkly key" { "sdk-" Hyphened 36..36 }
}
