//! A secret as it may be shown.

/// The secret with all but a little of it hidden, so that its owner knows it and nobody else does.
///
/// Four characters of the beginning are shown where much more follows, and none of a short one.
pub fn mask(secret: &str) -> String {
    let line = secret.lines().next().unwrap_or_default();
    let length = secret.chars().count();
    let shown = if length >= 20 { 4 } else { 0 };
    let head: String = line.chars().take(shown).collect();
    format!("{head}… ({length} characters)")
}
