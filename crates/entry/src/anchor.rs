//! Anchors: the names of the blocks of a log in addresses, output and pages.

/// Returns the anchor of the `block_idx`th block of a line: `m42`, `m42.2`. Logs only grow, so an anchor
/// never changes.
pub fn anchor(line_no: u64, block_idx: usize) -> String {
    if block_idx == 0 { format!("m{line_no}") } else { format!("m{line_no}.{}", block_idx + 1) }
}
