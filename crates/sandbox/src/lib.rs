//! Restricts a process and everything that it starts: writes only below some folders (Landlock), and no
//! sockets to other machines (seccomp).
//!
//! [`restrict`] applies to the calling thread for good, so a program restricts itself right before it
//! executes another one. Reads are not restricted. Sockets of this machine (`AF_UNIX`) stay usable; a
//! service behind one can do more than the sandbox permits.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
use unsupported as system;

use std::path::PathBuf;

/// Permissions of a sandboxed process.
#[derive(Clone, Debug, Default)]
pub struct SandboxPolicy {
    /// The folders and files that it may write to.
    pub writable: Vec<PathBuf>,
    /// Whether it may use the network.
    pub allows_network: bool,
}

/// The protections that this system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// Whether writes can be restricted.
    pub restricts_writes: bool,
    /// Whether the network can be turned off.
    pub restricts_network: bool,
}

impl SandboxSupport {
    /// Returns the protections of this system, without restricting anything.
    #[must_use]
    pub fn probe() -> Self {
        system::probe()
    }

    /// Returns the protections of a policy that this system does not have, in words.
    #[must_use]
    pub fn missing(self, policy: &SandboxPolicy) -> Option<&'static str> {
        let needs_filter = !policy.allows_network;
        match (self.restricts_writes, self.restricts_network || !needs_filter) {
            (true, true) => None,
            (true, false) => Some("no sandbox for the network on this system"),
            (false, true) => Some("no sandbox for writes on this system"),
            (false, false) => Some("no sandbox on this system"),
        }
    }
}

/// Why a process could not be restricted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The rules for writes could not be applied.
    #[error("cannot restrict writes: {0}")]
    Writes(String),
    /// The filter for the network could not be applied.
    #[error("cannot turn off the network: {0}")]
    Network(String),
}

/// Restricts this thread and the programs that it starts, as far as the system supports it.
///
/// # Errors
/// Returns an error if a protection that the system has could not be applied.
pub fn restrict(policy: &SandboxPolicy) -> Result<(), SandboxError> {
    let support = SandboxSupport::probe();
    if support.restricts_writes {
        system::restrict_writes(&policy.writable)?;
    }
    if support.restricts_network && !policy.allows_network {
        system::restrict_network()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
