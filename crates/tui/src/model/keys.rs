//! Keys and commands.

use std::path::PathBuf;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use threadline_permission::{PermissionMode, RuleEffect};
use threadline_term::{TermText, TextLabel, text};

use super::approval_state::{ApprovalAnswer, ApprovalState};
use super::dialog::DialogAnswer;
use super::{Dialog, DoubleKey, Effect, Model, NOTICE_TIME, RunningTurn, now_millis};
use crate::approval::Choice;
use crate::command::{COMMANDS, KEYS, ScreenCommand};
use crate::composer::{ComposerAction, EnteredPrompt};
use crate::permission_rule::is_rule;
use crate::theme::Theme;

impl Model {
    /// The columns of the composer's text.
    pub(crate) fn composer_width(&self) -> usize {
        self.page.get().width.unwrap_or(80).saturating_sub(3).max(4)
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, key: KeyEvent, now: Instant) -> Vec<Effect> {
        if !self.approvals.is_empty() && key.code != KeyCode::BackTab {
            return self.approval_key(key);
        }
        if let Some(dialog) = &mut self.dialog {
            let answer = dialog.handle_key(key);
            return self.dialog_answer(answer);
        }
        if let Some(effects) = self.global_key(key, now) {
            return effects;
        }
        let action = self.composer.handle_key(key, self.composer_width());
        let mut effects = match action {
            ComposerAction::Enter(prompt) => self.entered(prompt, now),
            ComposerAction::Used | ComposerAction::Unused => Vec::new(),
        };
        if std::mem::take(&mut self.composer.source.wants_files) {
            effects.push(Effect::ListFiles);
        }
        effects
    }

    fn dialog_answer(&mut self, answer: DialogAnswer) -> Vec<Effect> {
        if answer == DialogAnswer::Pending {
            return Vec::new();
        }
        if let DialogAnswer::CheckRule(rule) = answer {
            if is_rule(&rule.text, &self.permissions) {
                self.dialog = Some(Dialog::rule_place(rule));
            } else if let Some(dialog) = &mut self.dialog {
                dialog.about =
                    vec!["This is not a rule. Examples: WebFetch, Bash(make *), Read(~/notes/**)".to_owned()];
            }
            return Vec::new();
        }
        self.dialog = None;
        match answer {
            DialogAnswer::Rewind(uuid, scope) => vec![Effect::Rewind(uuid, scope)],
            DialogAnswer::StopTask(id) => self.stop_task(id),
            DialogAnswer::ShowRules(effect) => vec![Effect::ShowRules(effect)],
            DialogAnswer::AddRule(rule) => vec![Effect::AddRule(rule)],
            DialogAnswer::RemoveRule(rule) => vec![Effect::RemoveRule(rule)],
            DialogAnswer::Pending | DialogAnswer::Close | DialogAnswer::CheckRule(_) => Vec::new(),
        }
    }

    /// Handles a line that was typed on a screen for screen readers: a prompt, or the answer to a question.
    pub(crate) fn handle_line(&mut self, line: &str, now: Instant) -> Vec<Effect> {
        if let Some(dialog) = &mut self.dialog {
            let key = dialog.line_key(line);
            return self.handle_key(KeyEvent::new(key, KeyModifiers::NONE), now);
        }
        if let Some(state) = self.approvals.front_mut() {
            if state.reason.is_some() {
                let reason = line.to_owned();
                return self.answer(ApprovalAnswer::Refuse(reason));
            }
            if state.takes_several() && line.trim().chars().any(|ch| ch.is_ascii_digit()) {
                return self.several_options(line);
            }
            let key = line.trim().chars().next().map_or(KeyCode::Esc, KeyCode::Char);
            let effects = self.approval_key(KeyEvent::new(key, KeyModifiers::NONE));
            if self.approvals.front().is_some_and(|state| state.reason.is_some()) {
                self.note(TextLabel::Dim, "Type a reason for the model; an empty line stops the turn.");
            }
            return effects;
        }
        if line.trim().is_empty() {
            return Vec::new();
        }
        let prompt = EnteredPrompt { shown: line.to_owned(), text: line.to_owned(), images: Vec::new() };
        self.entered(prompt, now)
    }

    /// Marks the options with the numbers in a line, and sends them.
    fn several_options(&mut self, line: &str) -> Vec<Effect> {
        for digit in line.chars().filter(char::is_ascii_digit) {
            self.approval_key(KeyEvent::new(KeyCode::Char(digit), KeyModifiers::NONE));
        }
        match self.approvals.front() {
            Some(state) if !state.marked.is_empty() && state.reason.is_none() => {
                self.answer(ApprovalAnswer::SendMarked)
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn handle_paste(&mut self, text: &str) -> Vec<Effect> {
        if let Some(reason) = self.approvals.front_mut().and_then(|state| state.reason.as_mut()) {
            reason.insert(&text.replace(['\n', '\r'], " "));
        } else if self.approvals.is_empty() {
            match &mut self.dialog {
                None => self.composer.paste(text),
                Some(Dialog { input: Some(input), .. }) => input.insert(&text.replace(['\n', '\r'], " ")),
                Some(_) => {}
            }
        }
        if std::mem::take(&mut self.composer.source.wants_files) {
            vec![Effect::ListFiles]
        } else {
            Vec::new()
        }
    }

    fn entered(&mut self, prompt: EnteredPrompt, now: Instant) -> Vec<Effect> {
        let millis = now_millis();
        let session = self.facts.id.clone();
        if let Err(error) = self.composer.history.add(&prompt.shown, millis, &session) {
            self.notify(&format!("The history was not written: {error}"), now);
        }
        if let Some(draft) = self.stash.take() {
            self.composer.put_back(&draft);
        }
        self.submit(prompt, now)
    }

    /// Whether this is the second press of a key within a short time.
    fn is_second(&mut self, key: DoubleKey, now: Instant) -> bool {
        let last = self.last_key.take();
        let is_second = last.is_some_and(|(last, at)| last == key && now.duration_since(at) < NOTICE_TIME);
        if !is_second {
            self.last_key = Some((key, now));
        }
        is_second
    }

    fn global_key(&mut self, key: KeyEvent, now: Instant) -> Option<Vec<Effect>> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_free = self.composer.completion.is_none() && self.composer.search.is_none();
        Some(match key.code {
            KeyCode::Char('c') if control && is_free => self.ctrl_c(now),
            KeyCode::Char('d') if control && self.composer.area.is_empty() => {
                if self.is_second(DoubleKey::CtrlD, now) {
                    vec![Effect::Leave]
                } else {
                    self.notify("Press Ctrl-D again to leave", now);
                    Vec::new()
                }
            }
            KeyCode::Char('z') if control => vec![Effect::Suspend],
            KeyCode::Char('l') if control => vec![Effect::Redraw],
            KeyCode::Char('o') if control && (self.is_demo || self.context == 0) => {
                self.notify("There is no session to show yet.", now);
                Vec::new()
            }
            KeyCode::Char('o') if control => vec![Effect::ShowSession],
            KeyCode::Char('g') if control && is_free => vec![Effect::EditDraft],
            KeyCode::Char('v') if control && is_free && !self.has_vi_normal() => vec![Effect::PasteImage],
            KeyCode::Char('b')
                if control && self.turn.as_ref().is_some_and(RunningTurn::has_running_command) =>
            {
                vec![Effect::MoveToBackground]
            }
            KeyCode::Char('s') if control && is_free => {
                self.stash_draft(now);
                Vec::new()
            }
            KeyCode::Up if self.composer.area.is_empty() && !self.queued.is_empty() => {
                for prompt in self.queued.take_all().into_iter().rev() {
                    self.composer.put_back(&prompt.shown);
                }
                Vec::new()
            }
            KeyCode::Char('t') if control && self.composer.area.is_empty() => {
                self.shows_todos = !self.shows_todos;
                Vec::new()
            }
            KeyCode::BackTab => {
                self.next_mode();
                Vec::new()
            }
            KeyCode::Esc if is_free => return self.escape(now),
            _ => return None,
        })
    }

    fn has_vi_normal(&self) -> bool {
        self.composer.vi.as_ref().is_some_and(|vi| vi.is_normal)
    }

    /// Stashes the draft, or restores the stashed one.
    fn stash_draft(&mut self, now: Instant) {
        if !self.composer.area.is_empty() {
            self.stash = Some(self.composer.area.take());
            self.composer.update_completion();
        } else if let Some(draft) = self.stash.take() {
            self.composer.put_back(&draft);
        } else {
            self.notify("There is no draft to put aside.", now);
        }
    }

    fn ctrl_c(&mut self, now: Instant) -> Vec<Effect> {
        if !self.composer.area.is_empty() {
            self.composer.clear();
            self.last_key = Some((DoubleKey::CtrlC, now));
            self.notify("Ctrl-_ brings the text back. Press Ctrl-C again to leave", now);
            return Vec::new();
        }
        if self.is_second(DoubleKey::CtrlC, now) {
            return vec![Effect::Leave];
        }
        self.notify("Press Ctrl-C again to leave", now);
        if self.turn.is_some() { self.interrupt() } else { Vec::new() }
    }

    fn escape(&mut self, now: Instant) -> Option<Vec<Effect>> {
        let has_vi = self.composer.vi.is_some() && !self.composer.area.is_empty();
        if self.turn.as_ref().is_some_and(|turn| !turn.is_cancelled) {
            return Some(self.interrupt());
        }
        if has_vi {
            return None;
        }
        if !self.composer.area.is_empty() {
            if self.is_second(DoubleKey::Esc, now) {
                self.composer.clear();
            } else {
                self.notify("Press Esc again to clear; Ctrl-_ brings the text back", now);
            }
            return Some(Vec::new());
        }
        if self.is_second(DoubleKey::Esc, now) {
            return Some(self.run_command(ScreenCommand::Rewind, "", now));
        }
        self.notify("Press Esc again to return to an earlier prompt", now);
        Some(Vec::new())
    }

    /// Interrupts the turn. Prompts in the queue are sent then. If the queue and the composer are empty,
    /// a prompt without a reply returns to the composer.
    fn interrupt(&mut self) -> Vec<Effect> {
        let is_idle = self.composer.area.is_empty() && self.queued.is_empty();
        if let Some(turn) = &mut self.turn {
            turn.is_cancelled = true;
            self.queued.set_takes_back(is_idle && turn.unanswered.is_some());
        }
        vec![Effect::Interrupt]
    }

    fn next_mode(&mut self) {
        let next = match self.permissions.mode() {
            PermissionMode::Default | PermissionMode::DontAsk => PermissionMode::AcceptEdits,
            PermissionMode::AcceptEdits => PermissionMode::Plan,
            PermissionMode::Plan if self.may_bypass => PermissionMode::BypassPermissions,
            PermissionMode::Plan | PermissionMode::BypassPermissions => PermissionMode::Default,
        };
        self.permissions.set_mode(next);
    }

    fn approval_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(state) = self.approvals.front_mut() else { return Vec::new() };
        let answer = state.handle_key(key);
        self.answer(answer)
    }

    fn answer(&mut self, answer: ApprovalAnswer) -> Vec<Effect> {
        match answer {
            ApprovalAnswer::Pending => Vec::new(),
            ApprovalAnswer::Refuse(label)
                if !label.trim().is_empty()
                    && self.approvals.front().is_some_and(ApprovalState::is_question) =>
            {
                let joined = self.approvals.front().map(|state| state.joined_answer(Some(&label)));
                self.choose_option(joined.unwrap_or(label))
            }
            ApprovalAnswer::SendMarked => {
                let joined = self.approvals.front().map(|state| state.joined_answer(None));
                self.choose_option(joined.unwrap_or_default())
            }
            ApprovalAnswer::Refuse(reason) => {
                if let Some(state) = self.approvals.pop_front() {
                    state.approval.refuse(&reason);
                }
                if reason.trim().is_empty() {
                    // The turn ends; the other calls of the reply are refused with it.
                    self.refuse_all();
                }
                Vec::new()
            }
            ApprovalAnswer::Choose(choice) => self.choose(choice),
        }
    }

    fn refuse_all(&mut self) {
        for state in self.approvals.drain(..) {
            state.approval.refuse("");
        }
    }

    fn choose_option(&mut self, label: String) -> Vec<Effect> {
        self.choose(Choice::Option { question: 0, label, description: String::new() })
    }

    fn choose(&mut self, choice: Choice) -> Vec<Effect> {
        let Some(mut state) = self.approvals.pop_front() else { return Vec::new() };
        // The time of a call begins with its permission.
        let calls = self.turn.iter_mut().flat_map(|turn| &mut turn.calls);
        calls.filter(|call| call.id == state.approval.id).for_each(|call| call.start = Instant::now());
        match choice {
            Choice::Yes => state.approval.allow(None),
            Choice::Always(suggestion) => {
                state.approval.allow(None);
                return vec![Effect::ApplySuggestion(suggestion)];
            }
            Choice::Approve(mode) => {
                self.permissions.set_mode(mode);
                state.approval.allow(None);
            }
            Choice::Option { label, .. } => {
                let questions = state.approval.questions();
                let question = questions.get(state.answers.len()).map(|question| question.text.clone());
                state.answers.push((question.unwrap_or_default(), label));
                (state.selected, state.reason) = (0, None);
                state.marked.clear();
                if state.answers.len() < questions.len() {
                    self.approvals.push_front(state);
                } else {
                    let input = state.approval.answered_input(&state.answers);
                    state.approval.allow(input);
                }
            }
            Choice::Edit => {
                self.approvals.push_front(state);
                return vec![Effect::EditApproval];
            }
            Choice::No => self.approvals.push_front(state),
        }
        Vec::new()
    }

    /// Runs a command of the screen.
    pub(super) fn run_command(
        &mut self,
        command: ScreenCommand,
        arguments: &str,
        now: Instant,
    ) -> Vec<Effect> {
        match command {
            ScreenCommand::Exit => return vec![Effect::Leave],
            ScreenCommand::Help => self.print_help(),
            ScreenCommand::Agents => self.print_list("Kinds of sub-agents", &self.facts.agents.clone()),
            ScreenCommand::Mcp => self.print_list("MCP servers", &self.facts.mcp.clone()),
            ScreenCommand::Memory => {
                let files: Vec<String> =
                    self.facts.memory.iter().map(|path| path.display().to_string()).collect();
                self.print_list("Memory files", &files);
            }
            ScreenCommand::Status => self.print_status(),
            ScreenCommand::Permissions => return vec![Effect::ShowRules(RuleEffect::Allow)],
            ScreenCommand::Todos => {
                self.shows_todos = !self.shows_todos;
                if self.todos.is_empty() {
                    self.note(TextLabel::Dim, "The list of things to do is empty.");
                }
            }
            ScreenCommand::Vim => {
                self.composer.vi = if self.composer.vi.is_some() { None } else { Some(Default::default()) };
                let state = if self.composer.vi.is_some() { "on" } else { "off" };
                self.note(TextLabel::Dim, &format!("vi keys are {state}."));
            }
            ScreenCommand::Theme => self.change_theme(arguments),
            ScreenCommand::Tasks if self.tasks.is_empty() => {
                self.note(TextLabel::Dim, "No command runs in the background.");
            }
            ScreenCommand::Tasks => self.dialog = Some(Dialog::tasks(&self.tasks)),
            ScreenCommand::Model if arguments.is_empty() => {
                let model = self.facts.model.clone();
                self.note(
                    TextLabel::Dim,
                    &format!(
                        "The model is {model}. /model NAME changes it: opus, sonnet, haiku, or a full name."
                    ),
                );
            }
            ScreenCommand::Model => return vec![Effect::SetModel(arguments.to_owned())],
            ScreenCommand::Rename if arguments.is_empty() => {
                self.note(TextLabel::Warning, "A title is missing: /rename TITLE");
            }
            ScreenCommand::Rename => return vec![Effect::Rename(arguments.to_owned())],
            ScreenCommand::Export => {
                let file = Some(arguments).filter(|file| !file.is_empty()).map(PathBuf::from);
                return vec![Effect::Export(file)];
            }
            ScreenCommand::Resume => return vec![Effect::PickSession],
            ScreenCommand::Rewind if self.is_demo => self.notify("A demonstration is not saved.", now),
            ScreenCommand::Rewind => return vec![Effect::ListRewindPoints],
        }
        Vec::new()
    }

    fn change_theme(&mut self, name: &str) {
        match Theme::parse(name) {
            Some(theme) => {
                self.theme = theme;
                self.note(TextLabel::Dim, &format!("The theme is {}.", theme.name()));
            }
            None => {
                let names: Vec<&str> = Theme::ALL.iter().map(|(name, _)| *name).collect();
                let current = self.theme.name();
                self.note(
                    TextLabel::Dim,
                    &format!("The theme is {current}. /theme NAME: {}", names.join(", ")),
                );
            }
        }
    }

    fn print_list(&mut self, title: &str, items: &[String]) {
        let page = self.page.get();
        self.finished.extend([TermText::new(), page.paint(TextLabel::Strong, title)]);
        if items.is_empty() {
            self.finished.push(page.paint(TextLabel::Dim, "  none"));
        }
        let lines = items.iter().flat_map(|item| page.wrap(item, 2)).map(|line| text!("  {line}"));
        self.finished.extend(lines);
    }

    fn print_table<'a>(&mut self, title: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) {
        let page = self.page.get();
        let rows: Vec<(&str, &str)> = rows.collect();
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        self.finished.extend([TermText::new(), page.paint(TextLabel::Strong, title)]);
        for (name, about) in rows {
            let name = page.paint(TextLabel::Tool, format!("{name:<width$}"));
            self.finished.push(text!("  {name}  {}", page.paint(TextLabel::Dim, about)));
        }
    }

    fn print_help(&mut self) {
        self.print_table("Keys", KEYS.iter().copied());
        let names: Vec<(String, String)> =
            COMMANDS.iter().map(|(name, about, _)| (format!("/{name}"), (*about).to_owned())).collect();
        self.print_table("Commands", names.iter().map(|(name, about)| (&**name, &**about)));
        let own: Vec<(String, String)> =
            self.facts.commands.iter().map(|(name, about)| (format!("/{name}"), about.clone())).collect();
        if !own.is_empty() {
            self.print_table("Your commands and skills", own.iter().map(|(name, about)| (&**name, &**about)));
        }
    }

    fn print_status(&mut self) {
        let mode = self.permissions.mode().name();
        let facts = &self.facts;
        let rows = [
            ("Session", facts.id.clone()),
            ("Log", facts.log.display().to_string()),
            ("Model", facts.model.clone()),
            ("Mode", mode.to_owned()),
            ("Sandbox", facts.sandbox.clone()),
            ("Tools", facts.tools.to_string()),
            ("MCP servers", facts.mcp.len().to_string()),
            ("Memory files", facts.memory.len().to_string()),
            ("Theme", self.theme.name().to_owned()),
        ];
        self.print_table("Status", rows.iter().map(|(name, value)| (*name, &**value)));
    }
}
