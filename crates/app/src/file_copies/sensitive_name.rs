//! Names of files with secrets, whose texts are never copied.

/// Whole names, in lower case.
const NAMES: &[&str] = &[
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".dockercfg",
    ".htpasswd",
    ".vault-token",
    "authorized_keys",
    "credentials",
    "credentials.json",
    "credentials.toml",
    ".credentials.json",
    "service-account.json",
    "secrets.json",
    "secrets.yml",
    "secrets.yaml",
    "secrets.toml",
    "token.json",
    "terraform.tfvars",
    "kubeconfig",
    "shadow",
    "wallet.dat",
];

/// Beginnings of names.
const PREFIXES: &[&str] = &[".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];

/// Ends of names.
const SUFFIXES: &[&str] = &[
    ".env",
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".pkcs12",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".asc",
    ".gpg",
    ".pgp",
    ".p8",
    ".tfstate",
    ".ovpn",
    ".agekey",
];

/// Folders whose files are all secret.
const FOLDERS: &[&str] = &[".ssh", ".gnupg", ".aws", ".kube", ".password-store"];

/// Returns whether the file with this path may contain secrets.
pub(super) fn is_sensitive_path(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    is_sensitive_name(name) || folder.split('/').any(|folder| FOLDERS.contains(&folder))
}

/// Returns whether a file with this name may contain secrets.
fn is_sensitive_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // Keys that others may read.
    if name.ends_with(".pub") {
        return false;
    }
    NAMES.contains(&&*name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys_and_variables_are_recognised() {
        for name in [".env", ".env.local", ".ENV", "prod.env", "id_rsa", "server.pem", "a.key", ".npmrc"] {
            assert!(is_sensitive_name(name), "{name}");
        }
        for name in ["env.rs", "keys.rs", "id_rsa.pub", "monkey", "README.md", "environment.ts"] {
            assert!(!is_sensitive_name(name), "{name}");
        }
        assert!(is_sensitive_path("home/.ssh/config") && !is_sensitive_path("ssh/config"));
    }
}
