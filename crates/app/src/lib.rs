//! What threadline can do, for any front end.
//!
//! An [`App`] is the person's sessions, prices and state. A front end resolves flags and environment variables into
//! an [`AppConfig`], calls the app, and renders what it returns. Nothing here prints, reads the environment or exits.

#![warn(missing_docs)]

mod config;
mod error;
mod find;
mod load;
mod prices;

pub use config::{App, AppConfig};
pub use error::AppError;
pub use load::{
    LineObserver, LoadedSession, MAX_KEPT_OUTPUT, agent, cwd, kept_output, load_unpriced, logs_below,
    read_agents, read_session,
};
pub use prices::price_list;
