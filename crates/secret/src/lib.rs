//! Finds secrets and personal data in plain text, and replaces them with stable placeholders.
//!
//! [`Rules`] recognizes tokens by their prefix, private keys, and passwords in URLs, headers, command lines
//! and assignments. The input is decoded text; the caller decodes JSON strings. A [`Replacer`] replaces each
//! secret with a placeholder. Equal secrets get the same placeholder, and a placeholder is never mistaken for
//! a secret.
//!
//! ```
//! use threadline_secret::{Replacer, Rules};
//!
//! let rules = Rules::new();
//! let token = ["gh", "p_", "k3Jd82hVnq0PzLw7", "Yt5RmXc1BfAe9UgS6oHi"].concat();
//! let text = format!("push with {token}, then {token} again");
//!
//! let found = rules.find(&text);
//! assert_eq!(found[0].kind, "github-token");
//! assert_eq!(&text[found[0].range.clone()], token);
//!
//! let mut replacer = Replacer::new(&rules);
//! let name = "[secret:github-token:1]";
//! assert_eq!(replacer.replace(&text), format!("push with {name}, then {name} again"));
//! ```
//!
//! Throughput is about a hundred megabytes per second: one automaton searches for the prefixes of all rules
//! at once, and only its matches are examined further.

#![warn(missing_docs)]

mod alphabet;
mod assignment;
mod bitcoin;
mod column;
mod command;
mod custom_rule;
mod deobfuscate;
mod form;
mod heuristics;
mod known_secrets;
mod mask;
mod odd_word;
mod personal;
mod phrase;
mod printed;
mod prose;
mod replacer;
mod rules;
mod shape;
mod table;

pub use custom_rule::RuleError;
pub use known_secrets::KnownSecrets;
pub use mask::mask;
pub use printed::SecretPrinter;
pub use replacer::Replacer;
pub use rules::{MAX_ROUNDS, Rules, SecretMatch};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
