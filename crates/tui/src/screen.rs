//! The loop of the screen: takes events, changes the model, draws.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyEventKind};
use tempfile::TempPath;
use threadline_agent::AgentConfig;
use threadline_cancel::CancelToken;
use threadline_term::{TermText, TextLabel, text};

use crate::approval::apply_suggestion;
use crate::composer::{EnteredPrompt, PromptHistory};
use crate::config::{ScreenConfig, ScreenEnd};
use crate::host::{ScreenHost, status_facts};
use crate::inline_screen::{Frame, InlineScreen};
use crate::input::{InputGate, start_input, start_signals};
use crate::line_budget::LineBudget;
use crate::message::AgentMessage;
use crate::model::{Effect, Model, RewindScope, now_millis};
use crate::page::SharedPage;
use crate::permission_rule::{RulePlace, ScreenRule, add_to_session};
use crate::plain_screen::{PlainScreen, start_lines};
use crate::queue::{EventQueue, InputEvent, ScreenEvent};
use crate::queued_input::QueuedEntry;
use crate::terminal::{RawTerminal, suspend};
use crate::view::frame;
use crate::worker::{Worker, WorkerCommand, WorkerSetup};

/// The shortest time between two frames, except after a key.
const FRAME_TIME: Duration = Duration::from_millis(16);
/// The shortest time between two parts of a long output.
const PART_TIME: Duration = Duration::from_millis(8);
/// How long a background command that is stopped may take to end by itself.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How long the end of a session may take.
const LONGEST_END: Duration = Duration::from_secs(10);
/// A turn that took longer than this ends with a signal.
const LONG_TURN: Duration = Duration::from_secs(10);

/// Runs the screen until the person leaves.
///
/// # Errors
///
/// If the terminal cannot be used.
pub fn run_screen(config: ScreenConfig) -> io::Result<ScreenEnd> {
    let (width, rows) = crossterm::terminal::size()?;
    let terminal = if config.is_plain { None } else { Some(RawTerminal::enter()?) };
    let page = Arc::new(SharedPage::new(usize::from(width), config.color, config.links));
    let queue = Arc::new(EventQueue::default());
    let gate = Arc::new(InputGate::default());
    start_signals(&queue)?;
    if config.is_plain {
        start_lines(&queue)?;
    } else {
        start_input(&queue, &gate)?;
        gate.open();
    }
    let cwd = config.agent.paths.cwd.clone();
    let history = PromptHistory::read(config.history, &cwd);
    let mut model =
        Model::new(Arc::clone(&page), usize::from(rows), config.agent.permissions.clone(), history);
    model.is_demo = config.is_demo;
    model.may_bypass = config.may_bypass;
    model.theme = config.theme;
    model.facts.model.clone_from(&config.agent.model);
    if config.has_vi_keys {
        model.composer.vi = Some(Default::default());
    }
    model.finished = banner(&page, &config.agent, config.is_demo);
    for note in &config.notes {
        model.note(TextLabel::Warning, note);
    }
    let is_new = matches!(config.agent.start, threadline_agent::SessionStart::New { .. });
    let setup = WorkerSetup {
        config: config.agent,
        client: config.client,
        prices: config.prices,
        host: Arc::clone(&config.host),
        queue: Arc::clone(&queue),
        page: Arc::clone(&page),
        queued: Arc::clone(&model.queued),
    };
    let worker = Worker::start(setup)?;
    let mut screen = Screen {
        inline: InlineScreen::new(io::stdout(), usize::from(width)),
        lines: LineBudget::default(),
        plain: config.is_plain.then(|| PlainScreen::new(io::stdout())),
        terminal,
        page,
        queue,
        gate,
        model,
        worker,
        host: config.host,
        cwd,
        editor: config.editor,
        has_bell: config.has_bell,
        turn: None,
        end: None,
        is_closed: false,
        is_new,
        images: Vec::new(),
    };
    if let Some(prompt) = config.prompt.filter(|prompt| !prompt.trim().is_empty()) {
        let prompt = EnteredPrompt { shown: prompt.clone(), text: prompt, images: Vec::new() };
        let effects = screen.model.submit(prompt, Instant::now());
        screen.perform(effects);
    }
    let end = screen.run();
    screen.close();
    end
}

/// The lines at the start.
fn banner(page: &SharedPage, config: &AgentConfig, is_demo: bool) -> Vec<TermText> {
    let page = page.get();
    let cwd = &config.paths.cwd;
    let below_home = config.paths.user_home.as_deref().and_then(|home| cwd.strip_prefix(home).ok());
    let folder = below_home.map_or_else(|| cwd.display().to_string(), |rest| format!("~/{}", rest.display()));
    let mut lines =
        vec![page.paint(TextLabel::Strong, "threadline") + page.paint(TextLabel::Dim, format!("  {folder}"))];
    if is_demo {
        let note = "A scripted model answers; nothing leaves this machine and nothing is saved.";
        lines.push(page.paint(TextLabel::Dim, note));
    }
    lines
}

struct Screen {
    inline: InlineScreen<io::Stdout>,
    lines: LineBudget,
    /// The screen for screen readers, which is used instead.
    plain: Option<PlainScreen<io::Stdout>>,
    /// The terminal in raw mode.
    terminal: Option<RawTerminal>,
    page: Arc<SharedPage>,
    queue: Arc<EventQueue>,
    gate: Arc<InputGate>,
    model: Model,
    worker: Worker,
    host: Arc<dyn ScreenHost>,
    cwd: PathBuf,
    editor: String,
    has_bell: bool,
    /// Cancels the turn in progress.
    turn: Option<CancelToken>,
    /// Why the screen is being left, and since when.
    end: Option<(ScreenEnd, Instant)>,
    /// Whether the agent's thread has ended.
    is_closed: bool,
    is_new: bool,
    /// Images of the clipboard, which are removed at the end.
    images: Vec<TempPath>,
}

impl Screen {
    fn run(&mut self) -> io::Result<ScreenEnd> {
        let mut last_frame = Instant::now();
        let (mut is_changed, mut is_urgent, mut has_key) = (true, true, false);
        loop {
            let now = Instant::now();
            let is_over = self
                .end
                .as_ref()
                .is_some_and(|(_, since)| self.is_closed || now.duration_since(*since) > LONGEST_END);
            if is_changed && (is_urgent || is_over || now.duration_since(last_frame) >= FRAME_TIME) {
                self.draw(now, has_key)?;
                (is_changed, is_urgent, has_key) = (false, false, false);
                last_frame = now;
            }
            if !self.model.finished.is_empty() && !is_changed {
                // A long output is written in parts, with pauses for keys. The agent waits meanwhile, so that
                // the terminal and the processor are not always busy when a key arrives.
                if let Some(event) = self.queue.next_input(last_frame + PART_TIME) {
                    has_key = true;
                    self.input(event)?;
                }
                (is_changed, is_urgent) = (true, true);
                continue;
            }
            if let Some((end, _)) = self.end.as_ref().filter(|_| is_over) {
                return Ok(end.clone());
            }
            let change = if is_changed { Some(last_frame + FRAME_TIME) } else { self.model.next_change(now) };
            let end = self.end.as_ref().map(|(_, since)| *since + LONGEST_END);
            match self.queue.next(change.into_iter().chain(end).min()) {
                ScreenEvent::Input(event) => {
                    (is_urgent, has_key) = (true, true);
                    self.input(event)?;
                }
                ScreenEvent::Agent(message) => self.message(message)?,
                ScreenEvent::Deadline => {}
            }
            is_changed = true;
        }
    }

    /// Draws the frame, and finished lines above it, as many as the terminal takes in a short time.
    fn draw(&mut self, now: Instant, is_after_key: bool) -> io::Result<()> {
        let mut finished = std::mem::take(&mut self.model.finished);
        let lines = self.lines.lines(is_after_key);
        if self.end.is_none() && finished.len() > lines {
            self.model.finished = finished.split_off(lines);
        }
        if let Some(plain) = &mut self.plain {
            let drawn = plain.draw(&finished, &self.model);
            return if self.end.is_some() { Ok(()) } else { drawn };
        }
        self.inline.set_theme(self.model.theme);
        let frame = if self.end.is_some() { Frame::default() } else { frame(&self.model, now) };
        let start = Instant::now();
        let drawn = self.inline.draw(&finished, frame);
        self.lines.add_write(finished.len(), start.elapsed());
        match drawn {
            // A terminal that is gone does not keep the session from ending in order.
            Err(_) if self.end.is_some() => Ok(()),
            drawn => drawn,
        }
    }

    fn input(&mut self, event: InputEvent) -> io::Result<()> {
        let now = Instant::now();
        match event {
            InputEvent::Terminal(event) => {
                let effects = match event {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        if self.end.is_some() {
                            Vec::new()
                        } else {
                            self.model.handle_key(key, now)
                        }
                    }
                    Event::Paste(text) => self.model.handle_paste(&text),
                    Event::Resize(width, rows) => {
                        self.resize(usize::from(width), usize::from(rows));
                        Vec::new()
                    }
                    _ => Vec::new(),
                };
                self.perform(effects);
                if self.end.is_none() {
                    self.gate.open();
                }
            }
            InputEvent::Line(line) => {
                let effects = self.model.handle_line(&line, now);
                self.perform(effects);
            }
            InputEvent::Interrupt if self.plain.is_some() && self.model.turn.is_some() => self.interrupt(),
            InputEvent::Interrupt => self.leave(ScreenEnd::Left),
            InputEvent::Continued => {
                if let Some(terminal) = &self.terminal {
                    terminal.reset()?;
                }
                self.inline.restart();
            }
            InputEvent::Terminate => self.leave(ScreenEnd::Left),
            InputEvent::Files(files) => {
                self.model.composer.source.files = Some(files);
                self.model.composer.update_completion();
            }
            InputEvent::StatusLine(line) => self.model.status_line = Some(line),
            InputEvent::Image(Ok(image)) => {
                self.model.composer.attach_image(image.to_path_buf());
                self.images.push(image);
            }
            InputEvent::Image(Err(error)) => self.model.notify(&error, now),
        }
        Ok(())
    }

    fn resize(&mut self, width: usize, rows: usize) {
        self.page.set_width(width.max(1));
        self.model.rows = rows.max(1);
        self.inline.resize(width);
    }

    fn message(&mut self, message: AgentMessage) -> io::Result<()> {
        let now = Instant::now();
        let is_question = matches!(message, AgentMessage::Ask(_));
        let is_end = matches!(message, AgentMessage::TurnEnd(_));
        let is_opened = matches!(message, AgentMessage::Opened(_));
        if matches!(message, AgentMessage::Closed) {
            self.is_closed = true;
            if self.end.is_none() {
                self.end = Some((ScreenEnd::Left, now));
            }
        }
        let took = self.model.turn.as_ref().map(|turn| now.duration_since(turn.start));
        if is_question || is_end && took.is_some_and(|took| took > LONG_TURN) {
            self.ring(if is_question {
                "threadline waits for an answer"
            } else {
                "threadline has finished"
            })?;
        }
        if is_end {
            self.turn = None;
        }
        let effects = self.model.receive(message, now);
        self.perform(effects);
        if is_end || is_opened {
            self.update_status_line();
        }
        Ok(())
    }

    /// Rings the bell, and shows a notification where the terminal supports it.
    fn ring(&mut self, text: &str) -> io::Result<()> {
        if self.has_bell { self.inline.signal(&format!("\u{1b}]9;{text}\u{7}\u{7}")) } else { Ok(()) }
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.effect(effect);
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Prompt(prompt) => {
                let cancel = self.start_turn(&prompt.shown);
                self.worker.send(WorkerCommand::Prompt(prompt, cancel));
            }
            Effect::Queued(prompts) => {
                let shown: Vec<&str> = prompts.iter().map(|entry| &*entry.prompt.shown).collect();
                let cancel = self.start_turn(&shown.join("\n"));
                let prompts = prompts.iter().map(QueuedEntry::to_prompt).collect();
                self.worker.send(WorkerCommand::Queued(prompts, cancel));
            }
            Effect::Shell(command) => {
                let cancel = self.start_turn(&format!("!{command}"));
                self.worker.send(WorkerCommand::Shell(command, cancel));
            }
            Effect::Interrupt => self.interrupt(),
            Effect::MoveToBackground => {
                if let Some(switch) = &self.model.facts.background {
                    switch.release_all();
                }
            }
            Effect::PasteImage => self.paste_image(),
            Effect::Leave => self.leave(ScreenEnd::Left),
            Effect::Fail => self.leave(ScreenEnd::Failed),
            Effect::Suspend => self.suspend(),
            Effect::EditDraft => self.edit_draft(),
            Effect::EditApproval => self.edit_approval(),
            Effect::ApplySuggestion(suggestion) => {
                if let Err(error) = apply_suggestion(&suggestion, &self.model.permissions, &*self.host) {
                    self.model.note(TextLabel::Error, &format!("✗ The rule was not saved: {error}"));
                }
            }
            Effect::ShowRules(effect) => self.model.show_rules(effect, self.host.rules()),
            Effect::AddRule(rule) => self.add_rule(&rule),
            Effect::RemoveRule(rule) => self.remove_rule(&rule),
            Effect::SetModel(name) => {
                let (model, plan_model) = (self.host.model_name(&name), self.host.plan_model(&name));
                let in_plan_mode =
                    plan_model.as_ref().map(|plan| format!(", in plan mode {plan},")).unwrap_or_default();
                let note = format!("The model is {model}{in_plan_mode} from the next request on.");
                self.model.note(TextLabel::Dim, &note);
                self.worker.send(WorkerCommand::SetModel { model, plan_model });
            }
            Effect::Rename(title) => self.worker.send(WorkerCommand::Rename(title)),
            Effect::Export(file) => match self.host.export(&self.model.facts.log, file.as_deref()) {
                Ok(file) => self.model.note(TextLabel::Dim, &format!("Written to {}.", file.display())),
                Err(error) => self.model.note(TextLabel::Error, &format!("✗ {error}")),
            },
            Effect::Remember(note) => self.worker.send(WorkerCommand::Remember(note)),
            Effect::ListRewindPoints => self.worker.send(WorkerCommand::ListRewindPoints),
            Effect::Rewind(uuid, RewindScope::Summary(part)) => {
                let cancel = CancelToken::new();
                self.turn = Some(cancel.clone());
                self.model.start_turn(None, Instant::now());
                self.worker.send(WorkerCommand::Summarize { uuid, part, cancel });
            }
            Effect::Rewind(uuid, scope) => self.worker.send(WorkerCommand::Rewind {
                uuid,
                conversation: scope != RewindScope::Files,
                files: scope != RewindScope::Conversation,
            }),
            Effect::PickSession => self.pick_session(),
            Effect::StopTask(id) => {
                if let Some(switch) = &self.model.facts.background {
                    switch.stop(&id, STOP_GRACE);
                }
            }
            Effect::ShowSession => {
                let (host, log) = (Arc::clone(&self.host), self.model.facts.log.clone());
                let _ = self.lend(|| host.show_session(&log));
            }
            Effect::ListFiles => self.list_files(),
            Effect::Redraw => self.redraw(),
        }
    }

    /// Saves a rule and uses it from now on.
    fn add_rule(&mut self, rule: &ScreenRule) {
        let (place, effect) = (rule.place.label(), rule.effect.name());
        match self.host.add_rule(rule) {
            Ok(base) => {
                add_to_session(rule, &base, &self.model.permissions);
                self.model.note(TextLabel::Dim, &format!("Added {effect} {} to {place}.", rule.text));
            }
            Err(error) => self.model.note(TextLabel::Error, &format!("✗ The rule was not saved: {error}")),
        }
        self.model.show_rules(rule.effect, self.host.rules());
    }

    fn remove_rule(&mut self, rule: &ScreenRule) {
        let removed = if rule.place == RulePlace::Session { Ok(()) } else { self.host.remove_rule(rule) };
        let (place, effect) = (rule.place.label(), rule.effect.name());
        match removed {
            Ok(()) => {
                if rule.is_used {
                    self.model.permissions.update(|permissions| {
                        permissions.rules.remove(&rule.text, rule.effect);
                    });
                }
                self.model.note(TextLabel::Dim, &format!("Removed {effect} {} from {place}.", rule.text));
            }
            Err(error) => self.model.note(TextLabel::Error, &format!("✗ The rule was not removed: {error}")),
        }
        self.model.show_rules(rule.effect, self.host.rules());
    }

    fn start_turn(&mut self, prompt: &str) -> CancelToken {
        let cancel = CancelToken::new();
        self.turn = Some(cancel.clone());
        self.model.start_turn(Some(prompt.to_owned()), Instant::now());
        cancel
    }

    fn interrupt(&mut self) {
        match &self.turn {
            Some(turn) => turn.cancel(),
            // A turn of background work ends with the wait for it.
            None => self.worker.send(WorkerCommand::Wake),
        }
    }

    fn leave(&mut self, end: ScreenEnd) {
        if self.end.is_some() {
            return;
        }
        // A draft is found again in the history.
        let draft = self.model.composer.take();
        let session = self.model.facts.id.clone();
        let _ = self.model.composer.history.add(&draft.shown, now_millis(), &session);
        if let Some(turn) = &self.turn {
            turn.cancel();
        }
        for state in self.model.approvals.drain(..) {
            state.approval.refuse("");
        }
        self.worker.send(WorkerCommand::Finish);
        self.end = Some((end, Instant::now()));
    }

    fn suspend(&mut self) {
        let _ = self.lend(suspend);
    }

    /// Runs something that uses the terminal itself.
    fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        let Some(terminal) = &self.terminal else { return Ok(work()) };
        let _ = self.inline.clear_frame();
        let result = terminal.lend(work);
        self.inline.restart();
        result
    }

    fn redraw(&mut self) {
        let _ = self.inline.signal("\u{1b}[2J\u{1b}[H");
        self.inline.restart();
    }

    fn edit_draft(&mut self) {
        let draft = self.model.composer.area.text().to_owned();
        match self.edit(&draft, "md") {
            Ok(text) => self.model.composer.area.set(text.trim_end_matches('\n')),
            Err(error) => self.model.notify(&error, Instant::now()),
        }
    }

    fn edit_approval(&mut self) {
        let Some(state) = self.model.approvals.front() else { return };
        let Some(part) = state.approval.editable.clone() else { return };
        let edited = self.edit(&part.text, &part.extension);
        let Some(state) = self.model.approvals.pop_front() else { return };
        match edited {
            Ok(text) if text == part.text => self.model.approvals.push_front(state),
            Ok(text) => {
                let input = state.approval.edited_input(&text);
                state.approval.allow(input);
            }
            Err(error) => {
                self.model.approvals.push_front(state);
                self.model.notify(&error, Instant::now());
            }
        }
    }

    /// Opens a text in the editor. Returns it as it was saved.
    fn edit(&mut self, text: &str, extension: &str) -> Result<String, String> {
        let failed = |error: io::Error| format!("The editor could not be used: {error}");
        let suffix = if extension.is_empty() { String::new() } else { format!(".{extension}") };
        let mut file =
            tempfile::Builder::new().prefix("threadline-").suffix(&suffix).tempfile().map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        let mut words = self.editor.split_whitespace();
        let program = words.next().unwrap_or("vi").to_owned();
        let mut command = Command::new(&program);
        command.args(words).arg(file.path());
        let status = self.lend(|| command.status()).map_err(failed)?;
        match status {
            Ok(status) if status.success() => fs_err::read_to_string(file.path()).map_err(failed),
            Ok(_) => Err(format!("{program} failed; nothing was changed")),
            Err(error) => Err(format!("cannot run {program}: {error}; set EDITOR")),
        }
    }

    fn pick_session(&mut self) {
        let host = Arc::clone(&self.host);
        let picked = self.lend(|| host.pick_session());
        if let Ok(Some(log)) = picked {
            self.leave(ScreenEnd::Resume(log));
        }
    }

    fn list_files(&self) {
        let (queue, cwd) = (Arc::clone(&self.queue), self.cwd.clone());
        let list = move || queue.push_input(InputEvent::Files(crate::composer::list_files(&cwd)));
        // Without the thread, there are no completions.
        let _ = std::thread::Builder::new().name("files".to_owned()).spawn(list);
    }

    fn paste_image(&mut self) {
        self.model.notify("Reading the clipboard…", Instant::now());
        let (queue, host) = (Arc::clone(&self.queue), Arc::clone(&self.host));
        let read = move || queue.push_input(InputEvent::Image(host.clipboard_image()));
        let _ = std::thread::Builder::new().name("clipboard".to_owned()).spawn(read);
    }

    fn update_status_line(&self) {
        let facts = status_facts(&self.model, &self.cwd);
        let (queue, host) = (Arc::clone(&self.queue), Arc::clone(&self.host));
        let run = move || {
            if let Some(line) = host.status_line(&facts) {
                queue.push_input(InputEvent::StatusLine(line));
            }
        };
        let _ = std::thread::Builder::new().name("status line".to_owned()).spawn(run);
    }

    /// Removes the frame and prints how to continue.
    fn close(&mut self) {
        self.queue.close();
        self.gate.close();
        if self.plain.is_none() {
            let _ = self.inline.clear_frame();
        }
        let was_used = !self.is_new || self.model.context > 0;
        let is_left = matches!(self.end, Some((ScreenEnd::Left, _)));
        if is_left && was_used && !self.model.is_demo && !self.model.facts.id.is_empty() {
            let page = self.page.get();
            let id = &self.model.facts.id;
            let line =
                text!("{} threadline chat --resume {id}", page.paint(TextLabel::Dim, "Continue with:"));
            let _ = self.inline.signal(&format!("{}\r\n", line.as_str()));
        }
        if self.is_closed {
            self.worker.join();
        }
    }
}
