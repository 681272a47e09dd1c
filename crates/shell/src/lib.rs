//! Shell commands as text: parsed, never run.
//!
//! [`file_effects`] returns what a command line does to files, as far as its text says. It does not look at
//! any file: the caller applies the [steps](ShellStep) to the texts that it knows.
//!
//! ```
//! use threadline_shell::{ShellEffect, StepCondition, file_effects};
//!
//! let effects = file_effects("cd src && printf 'a\\n%s\\n' b > list.txt", "/work", None);
//! let [step] = &effects.steps[..] else { panic!("there is one step") };
//! assert_eq!(step.condition, StepCondition::IfSucceeded);
//! let (path, text) = ("/work/src/list.txt".to_owned(), "a\nb\n".to_owned());
//! assert_eq!(step.effect, ShellEffect::Write { path, text });
//! ```
//!
//! # Caveats
//!
//! - The text is that of bash with GNU programs. `echo` with escapes has no known text, because zsh and bash
//!   differ; `sed -i ''` is understood as that of macOS.
//! - A program of which nothing is known may change any file ([`OtherChanges::Any`]). Builds and tests are
//!   assumed to change no source file.
//! - Any text is accepted: a command that cannot be parsed, or is nested too deep, may change any file. The
//!   time is linear in the length of the command, except that loops over literal words are followed for
//!   each word, up to a fixed number of commands.
//!
//! # Parsing for a check
//!
//! With the feature `command-line`, `command_line::parse` takes a command apart for a check before it runs:
//! simple commands, their words and redirections. It knows a closed list of syntax, and reports everything
//! else.

mod effect;
mod path;
mod pattern;
mod powershell;
mod program;
mod sed;
mod syntax;
mod text;
mod walk;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}

#[cfg(feature = "command-line")]
pub mod command_line;

pub use effect::{
    CommandEffects, GitSource, GitStep, OtherChanges, ShellEffect, ShellStep, StepCondition, TextPart,
};
pub use path::normalize;
pub use powershell::powershell_effects;
pub use program::names_editor;
pub use sed::SedScript;

/// Returns what a command does to files, as far as its text says. `cwd` is the folder that it runs in,
/// `home` the value of `$HOME`.
pub fn file_effects(command: &str, cwd: &str, home: Option<&str>) -> CommandEffects {
    walk::effects(command, cwd, home)
}
