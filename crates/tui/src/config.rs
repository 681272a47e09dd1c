//! The settings of a screen.

use std::path::PathBuf;
use std::sync::Arc;

use threadline_agent::AgentConfig;
use threadline_api::Client;
use threadline_usage::PriceBook;

use crate::host::ScreenHost;
use crate::theme::Theme;

/// The settings of a screen.
pub struct ScreenConfig {
    /// The session.
    pub agent: AgentConfig,
    /// The client of the API.
    pub client: Arc<Client>,
    /// The prices.
    pub prices: PriceBook,
    /// The program around the screen.
    pub host: Arc<dyn ScreenHost>,
    /// Whether to use colours.
    pub color: bool,
    /// Whether the terminal supports hyperlinks.
    pub links: bool,
    /// The colours.
    pub theme: Theme,
    /// The file with earlier prompts; `None` to remember them for this process only.
    pub history: Option<PathBuf>,
    /// A prompt that is sent at once.
    pub prompt: Option<String>,
    /// The editor.
    pub editor: String,
    /// Whether the composer has vi keys.
    pub has_vi_keys: bool,
    /// Whether lines are only appended, for screen readers.
    pub is_plain: bool,
    /// Whether the model is a script.
    pub is_demo: bool,
    /// Whether the mode that permits everything is offered.
    pub may_bypass: bool,
    /// Whether a long turn and a question ring the bell.
    pub has_bell: bool,
    /// Texts that are shown at the start.
    pub notes: Vec<String>,
}

/// Why the screen was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenEnd {
    /// The person left.
    Left,
    /// The session could not be opened or continued. The reason was printed.
    Failed,
    /// Continue the session in this log, as the person requested.
    Resume(PathBuf),
}
