//! Systems without a sandbox.

use std::path::PathBuf;

use crate::{SandboxError, SandboxSupport};

pub(crate) fn probe() -> SandboxSupport {
    SandboxSupport { restricts_writes: false, restricts_network: false }
}

pub(crate) fn restrict_writes(_: &[PathBuf]) -> Result<(), SandboxError> {
    Ok(())
}

pub(crate) fn restrict_network() -> Result<(), SandboxError> {
    Ok(())
}
