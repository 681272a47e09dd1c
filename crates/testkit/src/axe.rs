//! axe-core, an accessibility checker that runs in the browser.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version that is installed. A newer one may report more.
const VERSION: &str = "4.14.0";

/// Returns the script of axe-core.
///
/// It is installed from npm into the target folder at the first call. `THREADLINE_AXE` names another
/// `axe.min.js`. If neither works, prints that the test is skipped and returns `None`; the caller then
/// returns.
pub fn axe_script() -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "the only place that reads these variables")]
    let (named, target) = (std::env::var_os("THREADLINE_AXE"), std::env::var_os("CARGO_TARGET_DIR"));
    if let Some(path) = named {
        let script = std::fs::read_to_string(&path);
        return Some(script.unwrap_or_else(|error| panic!("THREADLINE_AXE: {}: {error}", path.display())));
    }
    let target = target.map_or_else(|| crate::shared::workspace().join("target"), PathBuf::from);
    let folder = target.join(format!("axe-core-{VERSION}"));
    let script = || std::fs::read_to_string(folder.join("node_modules/axe-core/axe.min.js")).ok();
    let found = script().or_else(|| {
        install(&target, &folder);
        script()
    });
    if found.is_none() {
        crate::report_skipped(
            "no axe-core: `npm install axe-core` failed (or set THREADLINE_AXE to its axe.min.js)",
        );
    }
    found
}

/// Installs the package next to `folder`, and then moves it there: another test may be installing it, too.
fn install(target: &Path, folder: &Path) {
    let _ = std::fs::create_dir_all(target);
    let Ok(staging) = tempfile::Builder::new().prefix("axe-core-").tempdir_in(target) else { return };
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(staging.path());
    npm.arg(format!("axe-core@{VERSION}")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if npm.status().is_ok_and(|status| status.success()) {
        let _ = std::fs::rename(staging.keep(), folder);
    }
}
