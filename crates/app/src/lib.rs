//! What threadline can do, for any front end.
//!
//! An [`App`] is the person's sessions, prices and state. A front end resolves flags and environment variables into
//! an [`AppConfig`], calls the app, and renders what it returns. Nothing here prints, reads the environment or exits.

#![warn(missing_docs)]

mod config;
mod error;

pub use config::{App, AppConfig};
pub use error::AppError;
