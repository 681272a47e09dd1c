//! Keeps the texts of files around shell calls of a chat, as the hook of `setup files` does for Claude Code.

use std::sync::Arc;

use threadline_agent::{ShellCall, ShellCallObserver};
use threadline_app::file_copies::{FileRecorder, RecordedCall, RecordedEvent};
use threadline_settings::{HookFeature, SettingsStack};

use super::ChatArgs;
use crate::commands::hook::file_recorder;
use crate::commands::hook_settings::program_word;
use crate::context::Context;

/// Returns the observer of shell calls. `None` if the session is not kept, or if its settings have the hook.
pub(super) fn observer(
    cx: &Context,
    args: &ChatArgs,
    settings: &SettingsStack,
) -> Option<Arc<dyn ShellCallObserver>> {
    let program = program_word().ok()?;
    let has_hook = |hooks: &str| {
        let settings = format!("{{\"hooks\":{hooks}}}");
        HookFeature::installed(&settings, &program).iter().any(|hook| hook.feature == HookFeature::FILES.name)
    };
    let is_kept = !args.no_session_persistence && !cx.is_demo;
    if !is_kept || settings.hooks().iter().any(|(_, hooks)| has_hook(hooks.get())) {
        return None;
    }
    let recorder = file_recorder(&cx.app, &cx.user.file)?;
    Some(Arc::new(ChatRecorder { recorder: Arc::new(recorder) }))
}

#[derive(Debug)]
struct ChatRecorder {
    recorder: Arc<FileRecorder>,
}

impl ChatRecorder {
    fn record(&self, event: RecordedEvent, call: &ShellCall<'_>) {
        let call = RecordedCall {
            session_id: call.session_id.clone(),
            event,
            tool_use_id: call.tool_use_id.to_owned(),
            agent_id: call.agent_id.map(str::to_owned),
            tool: call.tool.to_owned(),
            cwd: call.cwd.clone(),
            project: Some(call.project.to_owned()),
            command: call.command.clone(),
            log: Some(call.log.clone()),
        };
        // Copies are a help for later: without them, the chat goes on.
        let outcome = self.recorder.record(&call).unwrap_or_default();
        if outcome.is_over_limit {
            let recorder = Arc::clone(&self.recorder);
            std::thread::spawn(move || recorder.clean_up());
        }
    }
}

impl ShellCallObserver for ChatRecorder {
    fn before(&self, call: &ShellCall<'_>) {
        self.record(RecordedEvent::Before, call);
    }

    fn after(&self, call: &ShellCall<'_>) {
        self.record(RecordedEvent::After, call);
    }
}
