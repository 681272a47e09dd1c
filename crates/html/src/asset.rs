//! The stylesheet and the script of an exported page, and the content security policy that allows only these
//! two.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::markup::Markup;
use crate::site::PageTheme;

pub(crate) const STYLE: &str = include_str!("../assets/page.css");
pub(crate) const SCRIPT: &str = include_str!("../assets/page.js");

/// Adds everything up to the body. Without `script`, the policy blocks all scripts.
pub(crate) fn head(out: &mut Markup, title: &str, theme: PageTheme, script: bool) {
    out.lit("<!doctype html>\n").lit(theme.html_tag()).lit("<head>\n<meta charset=\"utf-8\">\n");
    out.lit("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'sha256-");
    out.text(&hash(STYLE)).lit("'; script-src ");
    if script {
        out.lit("'sha256-").text(&hash(SCRIPT)).lit("'");
    } else {
        out.lit("'none'");
    }
    out.lit("; base-uri 'none'; form-action 'none'\">\n");
    out.lit("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.lit("<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n");
    out.lit(concat!("<meta name=\"generator\" content=\"threadline ", env!("CARGO_PKG_VERSION"), "\">\n"));
    out.lit("<link rel=\"icon\" href=\"data:,\">\n<title>").text(title).lit("</title>\n<style>").lit(STYLE);
    out.lit("</style>\n</head>\n");
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}
