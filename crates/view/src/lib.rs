//! Plain data for showing: what a person wants to see of a session, without width, colour or markup.
//!
//! [`transcript()`] is a session as a conversation, [`Inventory`] is what its lines hold, and [`wire`]
//! is our public JSON.

#![warn(missing_docs)]

mod inventory;
mod transcript;
pub mod wire;

pub use inventory::{Counts, Drift, Inventory};
pub use threadline_session::{Input, Outcome, Round};
pub use transcript::{
    AgentView, Body, CallView, Item, Tokens, Transcript, TurnView, anchor, subject, transcript,
};
