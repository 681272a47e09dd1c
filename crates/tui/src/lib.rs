//! The interactive terminal of `threadline chat`.
//!
//! The conversation is printed once into the normal scrollback; below it, a few lines are drawn again: the
//! end of the reply, running tools, the composer and a status line. [`run_screen`] starts three threads. One
//! reads keys, one runs the [`Agent`](threadline_agent::Agent), and the caller's thread changes a model and
//! draws it. Keys overtake messages of the agent in the queue between them, and text is rendered on the
//! agent's thread, so that typing does not wait for output.

#![allow(clippy::disallowed_methods, reason = "a front end reads the clock")]

mod approval;
mod command;
mod composer;
mod config;
mod host;
mod inline_screen;
mod input;
mod line_budget;
mod message;
mod model;
mod narrator;
mod page;
mod permission_rule;
mod plain_screen;
mod queue;
mod queued_input;
mod recent;
mod screen;
mod terminal;
mod theme;
mod view;
mod worker;

pub use config::{ScreenConfig, ScreenEnd};
pub use host::ScreenHost;
pub use permission_rule::{RulePlace, ScreenRule};
pub use screen::run_screen;
pub use theme::Theme;
