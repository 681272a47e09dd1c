//! Restrictions apply to a thread and its children, so each test restricts a thread of its own.

#![cfg(target_os = "linux")]

use std::net::TcpStream;
use std::process::Command;

use crate::{SandboxPolicy, SandboxSupport, restrict};

/// Runs a function in a restricted thread.
fn sandboxed<T: Send + 'static>(policy: SandboxPolicy, run: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(move || {
        restrict(&policy).unwrap();
        run()
    })
    .join()
    .unwrap()
}

#[test]
fn writes_outside_of_the_folders_are_refused() {
    if !SandboxSupport::probe().restricts_writes {
        return;
    }
    let inside = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let (inside_path, outside_path) = (inside.path().to_owned(), outside.path().to_owned());
    std::fs::write(outside_path.join("file"), "old").unwrap();
    std::os::unix::fs::symlink(&outside_path, inside_path.join("link")).unwrap();
    let policy = SandboxPolicy { writable: vec![inside_path.clone()], allows_network: true };
    sandboxed(policy, move || {
        std::fs::write(inside_path.join("new"), "x").unwrap();
        std::fs::create_dir(inside_path.join("folder")).unwrap();
        std::fs::write("/dev/null", "x").unwrap();
        let refused = [
            std::fs::write(outside_path.join("new"), "x"),
            std::fs::write(outside_path.join("file"), "x"),
            std::fs::write(inside_path.join("link/new"), "x"),
            std::fs::remove_file(outside_path.join("file")),
            std::fs::create_dir(outside_path.join("folder")),
            std::fs::rename(inside_path.join("new"), outside_path.join("moved")),
            std::fs::hard_link(inside_path.join("new"), outside_path.join("linked")),
        ];
        for (i, result) in refused.into_iter().enumerate() {
            assert!(result.is_err(), "case {i}");
        }
        let status =
            Command::new("sh").arg("-c").arg(format!("echo x > {}/child", outside_path.display())).status();
        assert!(!status.unwrap().success());
        assert_eq!(std::fs::read_to_string(outside_path.join("file")).unwrap(), "old");
    });
    assert!(!outside.path().join("child").exists());
}

#[test]
fn sockets_to_other_machines_are_refused() {
    if !SandboxSupport::probe().restricts_network {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let writable = vec![std::env::temp_dir()];
    let open = SandboxPolicy { writable: writable.clone(), allows_network: true };
    assert!(sandboxed(open, move || TcpStream::connect(address).is_ok()));
    let closed = SandboxPolicy { writable, allows_network: false };
    sandboxed(closed, move || {
        assert!(TcpStream::connect(address).is_err());
        assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err());
        assert!(std::net::TcpListener::bind("[::1]:0").is_err());
        assert!(std::os::unix::net::UnixStream::pair().is_ok());
    });
}

#[test]
fn missing_protections_are_named() {
    let policy = |allows_network| SandboxPolicy { writable: Vec::new(), allows_network };
    let support =
        |restricts_writes, restricts_network| SandboxSupport { restricts_writes, restricts_network };
    assert_eq!(support(true, true).missing(&policy(false)), None);
    assert_eq!(support(true, false).missing(&policy(true)), None);
    assert!(support(true, false).missing(&policy(false)).unwrap().contains("network"));
    assert!(support(false, true).missing(&policy(false)).unwrap().contains("writes"));
}
