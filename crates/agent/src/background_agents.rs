//! Sub-agents that run while the session continues.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use threadline_cancel::CancelToken;

use crate::cost::ModelUsageTotals;
use crate::sub_agent::{SubAgentReport, SubAgentSource, SubAgentUsage};

/// A sub-agent that has ended in the background.
#[derive(Debug)]
pub(crate) struct FinishedAgent {
    pub(crate) source: Arc<SubAgentSource>,
    pub(crate) text: String,
    pub(crate) is_success: bool,
    pub(crate) usage: SubAgentUsage,
    pub(crate) totals: ModelUsageTotals,
    pub(crate) output_file: PathBuf,
}

impl FinishedAgent {
    /// Returns the status and the summary in a few words.
    pub(crate) fn summary(&self) -> (&'static str, String) {
        let description = &self.source.description;
        if self.is_success {
            ("completed", format!("Agent \"{description}\" finished"))
        } else {
            ("failed", format!("Agent \"{description}\" failed"))
        }
    }

    /// Returns the message for the model.
    pub(crate) fn notification(&self) -> String {
        let (status, summary) = self.summary();
        let usage = self.usage;
        format!(
            "<task-notification>\n<task-id>{}</task-id>\n<tool-use-id>{}</tool-use-id>\n<output-file>{}</output-file>\n\
             <status>{status}</status>\n<summary>{summary}</summary>\n<note>A task-notification fires each time this \
             agent stops with no live background children of its own. The user can send it another message and resume \
             it, so the same task-id may notify more than once.</note>\n<result>{}</result>\n\
             <usage><subagent_tokens>{}</subagent_tokens><tool_uses>{}</tool_uses><duration_ms>{}</duration_ms></usage>\n\
             </task-notification>",
            self.source.agent_id,
            self.source.tool_use_id,
            self.output_file.display(),
            self.text,
            usage.total_tokens,
            usage.tool_uses,
            usage.duration.as_millis().max(1),
        )
    }
}

/// A message of a sub-agent in the background.
pub(crate) enum BackgroundMessage {
    Report(SubAgentReport),
    Finished(Box<FinishedAgent>),
    /// The session was interrupted.
    Woken,
}

/// The sub-agents in the background. Their threads end when the session is dropped.
pub(crate) struct BackgroundAgents {
    sender: Sender<BackgroundMessage>,
    receiver: Mutex<Receiver<BackgroundMessage>>,
    /// Started, and their end not received yet.
    running: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Cancels all of them.
    cancel: CancelToken,
    /// The sub-agents that have ended, if that was not reported to the model yet.
    finished: Mutex<VecDeque<FinishedAgent>>,
}

impl BackgroundAgents {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel();
        Self {
            sender,
            receiver: Mutex::new(receiver),
            running: AtomicUsize::new(0),
            threads: Mutex::default(),
            cancel: CancelToken::new(),
            finished: Mutex::default(),
        }
    }

    /// Runs a sub-agent in a thread. It is given a token that ends with the session, and a sink for reports.
    pub(crate) fn start(
        &self,
        run: impl FnOnce(&CancelToken, &(dyn Fn(SubAgentReport) + Sync)) -> FinishedAgent + Send + 'static,
    ) {
        let (sender, cancel) = (self.sender.clone(), self.cancel.clone());
        self.running.fetch_add(1, Ordering::SeqCst);
        let thread = std::thread::spawn(move || {
            // The receiver is gone when the session has ended; the messages are not needed then.
            let finished = run(&cancel, &|report| drop(sender.send(BackgroundMessage::Report(report))));
            drop(sender.send(BackgroundMessage::Finished(Box::new(finished))));
        });
        self.threads.lock().push(thread);
    }

    pub(crate) fn has_running(&self) -> bool {
        self.running.load(Ordering::SeqCst) > 0
    }

    /// Returns the next message, if there is one already.
    pub(crate) fn try_next(&self) -> Option<BackgroundMessage> {
        self.receiver.lock().try_recv().ok()
    }

    /// Waits for the next message, or until the session is interrupted.
    pub(crate) fn next(&self, cancel: &CancelToken) -> Option<BackgroundMessage> {
        let sender = self.sender.clone();
        let _guard = cancel.on_cancel(move || drop(sender.send(BackgroundMessage::Woken)));
        self.receiver.lock().recv().ok()
    }

    /// Keeps a finished sub-agent until its end is reported to the model.
    pub(crate) fn add_finished(&self, agent: FinishedAgent) {
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.finished.lock().push_back(agent);
    }

    pub(crate) fn take_finished(&self) -> Option<FinishedAgent> {
        self.finished.lock().pop_front()
    }

    /// Ends all sub-agents and waits for their threads.
    pub(crate) fn end_all(&self) {
        self.cancel.cancel();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A thread that panicked has printed why.
            let _ = thread.join();
        }
    }
}

impl Drop for BackgroundAgents {
    fn drop(&mut self) {
        self.end_all();
    }
}
