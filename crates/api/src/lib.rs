//! The Messages API: requests, streaming, retries, errors, models.
//!
//! A [`Client`] sends a [`MessagesRequest`] and returns a [`Reply`]. Events of the stream are passed on while
//! they arrive. Blocks, events and fields that this crate does not know are kept as they were received, so
//! that a reply goes back to the API exactly as it came.
//!
//! All calls block. A [`CancelToken`](threadline_cancel::CancelToken) ends a call at any time by closing its
//! connection.
//!
//! ```no_run
//! use threadline_api::{ApiConfig, Auth, Client, Message, MessagesRequest, SystemBlock};
//! use threadline_cancel::CancelToken;
//!
//! let client = Client::new(ApiConfig::new(Auth::ApiKey("sk-...".to_owned())))?;
//! let mut request = MessagesRequest::new("claude-sonnet-4-5", 1024);
//! request.system.push(SystemBlock::new("You are terse."));
//! request.messages.push(Message::user_text("Hello"));
//! let reply = client.send(&request, &CancelToken::new(), &mut |_event| {})?;
//! println!("{}", reply.text());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod config;
mod error;
mod model;
mod raw_object;
mod reply;
mod request;
mod retry;
mod sse;
mod stream;
mod transport;

pub use client::{Client, ClientEvent};
pub use config::{ApiConfig, Auth, ConfigError, KeySource};
pub use error::{ApiError, ErrorKind};
pub use model::{ModelInfo, full_model_name, model_info};
pub use raw_object::RawObject;
pub use reply::{BlockKind, Reply, Usage};
pub use request::{Message, MessagesRequest, Role, SystemBlock, Thinking};
pub use retry::RetryPolicy;
pub use sse::{SseEvent, SseParser};
pub use stream::{Delta, StreamEvent};
pub use transport::{HttpTransport, Transport, TransportRequest, TransportResponse, tls_config};
