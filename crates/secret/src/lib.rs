//! Secrets and personal data in plain text: found by their form, replaced by names that stay the same.
//!
//! [`Rules`] is a table of forms: tokens that are known by how they begin, keys between their rules, passwords
//! in addresses, headers and assignments. What it is given is decoded text; escapes are somebody else's matter.
//! A [`Replacer`] puts a name in the place of each secret: the same name for the same secret, a name that is
//! not taken for a secret itself.
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
//! assert_eq!(replacer.replace(&text), "push with [secret:github-token:1], then [secret:github-token:1] again");
//! ```
//!
//! It looks at some hundred megabytes a second: one automaton goes over the text for the beginnings of all
//! forms at once, and only where it stops is anything looked at closer.

#![warn(missing_docs)]

mod alphabet;
mod assignment;
mod command;
mod disguise;
mod form;
mod known;
mod look;
mod mask;
mod own;
mod personal;
mod phrase;
mod replacer;
mod rules;
mod shape;
mod table;

pub use known::Known;
pub use mask::mask;
pub use own::RuleError;
pub use replacer::{Replaced, Replacer};
pub use rules::{Found, Rules};
