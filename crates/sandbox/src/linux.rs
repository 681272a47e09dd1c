//! Landlock and seccomp.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::{SandboxError, SandboxSupport};

/// The newest version of Landlock whose file system rules are used.
const ABI: ABI = ABI::V5;

/// Devices that commands write to without changing anything.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

pub(crate) fn probe() -> SandboxSupport {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(landlock::ABI::V1))
        .and_then(Ruleset::create);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let has_seccomp = status.lines().any(|line| line.starts_with("Seccomp:"));
    SandboxSupport {
        restricts_writes: ruleset.is_ok(),
        restricts_network: has_seccomp && target_arch().is_some(),
    }
}

pub(crate) fn restrict_writes(writable: &[PathBuf]) -> Result<(), SandboxError> {
    let failed = |error: &dyn std::fmt::Display| SandboxError::Writes(error.to_string());
    let writes = AccessFs::from_write(ABI);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writes)
        .and_then(Ruleset::create)
        .map_err(|error| failed(&error))?;
    let devices = DEVICES.iter().map(Path::new);
    for path in writable.iter().map(PathBuf::as_path).chain(devices) {
        // A folder that does not exist cannot be written to.
        let Ok(fd) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { writes } else { writes & AccessFs::from_file(ABI) };
        ruleset = ruleset.add_rule(PathBeneath::new(fd, access)).map_err(|error| failed(&error))?;
    }
    ruleset.restrict_self().map_err(|error| failed(&error))?;
    Ok(())
}

fn target_arch() -> Option<TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}

/// Refuses sockets except those of this machine, and `io_uring`, which could create them as well.
pub(crate) fn restrict_network() -> Result<(), SandboxError> {
    let failed = |error: &dyn std::fmt::Display| SandboxError::Network(error.to_string());
    let Some(arch) = target_arch() else { return Ok(()) };
    let is_not = |family: i32| {
        let family = u64::try_from(family).unwrap_or_default();
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
            .map_err(|error| failed(&error))
    };
    let other = SeccompRule::new(vec![is_not(libc::AF_UNIX)?, is_not(libc::AF_NETLINK)?]);
    let other = other.map_err(|error| failed(&error))?;
    let rules = BTreeMap::from([(libc::SYS_socket, vec![other]), (libc::SYS_io_uring_setup, Vec::new())]);
    let refuse = SeccompAction::Errno(u32::try_from(libc::EACCES).unwrap_or(13));
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).map_err(|error| failed(&error))?;
    let program: BpfProgram = filter.try_into().map_err(|error: seccompiler::BackendError| failed(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(&error))
}
