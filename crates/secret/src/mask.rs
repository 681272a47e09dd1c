//! Masks a secret for display.

/// Masks a secret, so that its owner can recognize it but others learn nothing useful.
///
/// Shows the first four characters if the secret has at least 20, otherwise only its length.
pub fn mask(secret: &str) -> String {
    let line = secret.lines().next().unwrap_or_default();
    let length = secret.chars().count();
    let shown = if length >= 20 { 4 } else { 0 };
    let head: String = line.chars().take(shown).collect();
    format!("{head}… ({length} characters)")
}
