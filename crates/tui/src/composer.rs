//! The composer: the prompt that is being typed, with history, completion and folded pastes.

mod completion;
mod history;
mod text_area;
mod vi;

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub(crate) use self::completion::{Completion, CompletionSource, list_files};
pub(crate) use self::history::PromptHistory;
pub(crate) use self::text_area::{TextArea, shown};
use self::vi::ViKeys;

/// A prompt that was entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnteredPrompt {
    /// The text as it was shown, with placeholders.
    pub(crate) shown: String,
    /// The text with pastes in full.
    pub(crate) text: String,
    /// The images, in the order of their placeholders.
    pub(crate) images: Vec<PathBuf>,
}

/// The result of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ComposerAction {
    /// The key was used.
    Used,
    /// The key has no meaning here.
    Unused,
    /// The prompt was entered.
    Enter(EnteredPrompt),
}

/// The composer.
#[derive(Debug, Default)]
pub(crate) struct Composer {
    pub(crate) area: TextArea,
    pub(crate) history: PromptHistory,
    pub(crate) completion: Option<Completion>,
    /// The words of a search in the history, and the position of the prompt that is shown.
    pub(crate) search: Option<HistorySearch>,
    pub(crate) vi: Option<ViKeys>,
    pub(crate) source: CompletionSource,
    pastes: Vec<Paste>,
}

/// A search in the history.
#[derive(Debug, Default)]
pub(crate) struct HistorySearch {
    pub(crate) words: String,
    pub(crate) found: Option<String>,
    position: usize,
    draft: String,
}

/// A paste that is shown as a placeholder.
#[derive(Clone, Debug)]
enum Paste {
    Text(String),
    Image(PathBuf),
}

impl Composer {
    pub(crate) fn new(history: PromptHistory) -> Self {
        Self { history, ..Self::default() }
    }

    /// Handles a key. `width` is the number of columns of the text.
    pub(crate) fn handle_key(&mut self, key: KeyEvent, width: usize) -> ComposerAction {
        if self.search.is_some() {
            return self.search_key(key);
        }
        if let Some(action) = self.completion_key(key) {
            return action;
        }
        if let Some(vi) = &mut self.vi
            && vi.handle_key(key, &mut self.area, width)
        {
            self.edited();
            return ComposerAction::Used;
        }
        let action = self.editing_key(key, width);
        let is_recall = matches!(key.code, KeyCode::Up | KeyCode::Down | KeyCode::Char('p' | 'n'))
            && self.history.is_recalling();
        if action == ComposerAction::Used && !is_recall {
            self.edited();
        }
        action
    }

    /// Inserts a paste, folded if it is long. The same paste again expands it. The path of an image is
    /// attached.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let path = PathBuf::from(text.trim().trim_matches(['\'', '"']).replace("\\ ", " "));
        let is_image = path.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| {
            IMAGE_TYPES.iter().any(|(known, _)| extension.eq_ignore_ascii_case(known))
        });
        if let Some(search) = &mut self.search {
            search.words.push_str(text.lines().next().unwrap_or_default());
        } else if is_image && !text.trim().contains('\n') && path.is_file() {
            self.attach(Paste::Image(path));
        } else if let Some(folded) = self.folded_before_cursor(&text) {
            self.area.delete(folded);
            self.area.insert(&text);
        // A long paste is folded.
        } else if text.matches('\n').count() > 2 || text.chars().count() > 800 {
            self.attach(Paste::Text(text));
        } else {
            self.area.insert(&text);
        }
        self.edited();
    }

    /// Returns the position of the placeholder of this text, if it is before the cursor.
    fn folded_before_cursor(&self, text: &str) -> Option<std::ops::Range<usize>> {
        let end = self.area.cursor();
        let before = &self.area.text()[..end];
        let is_same = |i: &usize| matches!(&self.pastes[*i], Paste::Text(paste) if paste == text);
        let placeholders = (0..self.pastes.len()).filter(is_same).map(|i| self.placeholder(i));
        let placeholder = placeholders.into_iter().find(|placeholder| before.ends_with(&**placeholder))?;
        Some(end - placeholder.len()..end)
    }

    /// Attaches an image.
    pub(crate) fn attach_image(&mut self, path: PathBuf) {
        self.attach(Paste::Image(path));
        self.edited();
    }

    fn attach(&mut self, paste: Paste) {
        self.pastes.push(paste);
        let number = self.pastes.len();
        let placeholder = self.placeholder(number - 1);
        self.area.insert(&placeholder);
    }

    fn placeholder(&self, i: usize) -> String {
        match &self.pastes[i] {
            Paste::Text(text) => match text.matches('\n').count() {
                0 => format!("[Pasted text #{}]", i + 1),
                lines => format!("[Pasted text #{} +{lines} lines]", i + 1),
            },
            Paste::Image(_) => format!("[Image #{}]", i + 1),
        }
    }

    /// Takes the prompt.
    pub(crate) fn take(&mut self) -> EnteredPrompt {
        let shown = self.area.take();
        let mut text = shown.clone();
        let mut images = Vec::new();
        for (i, paste) in self.pastes.iter().enumerate() {
            let placeholder = self.placeholder(i);
            match paste {
                Paste::Text(paste) => text = text.replace(&placeholder, paste),
                Paste::Image(path) if shown.contains(&placeholder) => images.push(path.clone()),
                Paste::Image(_) => {}
            }
        }
        self.completion = None;
        self.history.stop();
        EnteredPrompt { shown, text, images }
    }

    /// Puts a text into the composer, before a draft that is there.
    pub(crate) fn put_back(&mut self, text: &str) {
        let draft = self.area.text().to_owned();
        let text = if draft.trim().is_empty() { text.to_owned() } else { format!("{text}\n{draft}") };
        self.area.set(&text);
        self.completion = None;
    }

    /// Remembers the draft in the history of this process and empties the composer.
    pub(crate) fn clear(&mut self) {
        self.area.take();
        self.completion = None;
        self.history.stop();
    }

    fn edited(&mut self) {
        self.history.stop();
        self.update_completion();
    }

    /// Computes the completions for the text before the cursor.
    pub(crate) fn update_completion(&mut self) {
        let selected = self.completion.take().map(|completion| completion.selected_label().to_owned());
        self.completion = self.source.complete(self.area.text(), self.area.cursor());
        if let (Some(completion), Some(label)) = (&mut self.completion, selected) {
            completion.select_label(&label);
        }
    }

    fn completion_key(&mut self, key: KeyEvent) -> Option<ComposerAction> {
        let completion = self.completion.as_mut()?;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => completion.move_by(-1),
            KeyCode::Down => completion.move_by(1),
            KeyCode::Char('p') if control => completion.move_by(-1),
            KeyCode::Char('n') if control => completion.move_by(1),
            KeyCode::Esc => self.completion = None,
            KeyCode::Tab => self.accept_completion(),
            KeyCode::Enter if key.modifiers.is_empty() => {
                let is_command = completion.is_command;
                self.accept_completion();
                if is_command {
                    self.completion = None;
                    return Some(ComposerAction::Enter(self.take()));
                }
            }
            _ => return None,
        }
        Some(ComposerAction::Used)
    }

    fn accept_completion(&mut self) {
        let Some(completion) = self.completion.take() else { return };
        let Some(item) = completion.selected() else { return };
        self.area.replace(completion.range.clone(), &item.insert);
        if !completion.is_command {
            self.update_completion();
        }
    }

    fn search_key(&mut self, key: KeyEvent) -> ComposerAction {
        let Some(search) = &mut self.search else { return ComposerAction::Unused };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => {
                let found = self.history.search(&search.words, search.position);
                if let Some((position, prompt)) = found {
                    (search.position, search.found) = (position, Some(prompt.to_owned()));
                }
                return ComposerAction::Used;
            }
            KeyCode::Esc => {
                self.search = None;
                return ComposerAction::Used;
            }
            KeyCode::Char('c' | 'g') if control => {
                self.search = None;
                return ComposerAction::Used;
            }
            KeyCode::Enter | KeyCode::Tab | KeyCode::Right | KeyCode::Left => {
                let found = self.search.take().and_then(|search| search.found);
                if let Some(found) = found {
                    self.area.set(&found);
                }
                return ComposerAction::Used;
            }
            KeyCode::Backspace => drop(search.words.pop()),
            KeyCode::Char(ch) if !control => search.words.push(ch),
            _ => return ComposerAction::Used,
        }
        let found = self.history.search(&search.words, usize::MAX);
        search.position = found.map_or(usize::MAX, |(position, _)| position);
        search.found = found.map(|(_, prompt)| prompt.to_owned());
        ComposerAction::Used
    }

    fn editing_key(&mut self, key: KeyEvent, width: usize) -> ComposerAction {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        let area = &mut self.area;
        match key.code {
            KeyCode::Enter if alt || shift || control => area.insert("\n"),
            KeyCode::Char('j') if control => area.insert("\n"),
            KeyCode::Enter => {
                let at = area.cursor();
                if area.text()[..at].ends_with('\\') {
                    area.replace(at - 1..at, "\n");
                } else if area.text().trim().is_empty() {
                    return ComposerAction::Used;
                } else {
                    return ComposerAction::Enter(self.take());
                }
            }
            KeyCode::Left if control || alt => area.move_to(area.word_start()),
            KeyCode::Right if control || alt => area.move_to(area.word_end()),
            KeyCode::Char('b') if alt => area.move_to(area.word_start()),
            KeyCode::Char('f') if alt => area.move_to(area.word_end()),
            KeyCode::Left => area.move_to(area.previous()),
            KeyCode::Right => area.move_to(area.next()),
            KeyCode::Char('b') if control => area.move_to(area.previous()),
            KeyCode::Char('f') if control => area.move_to(area.next()),
            KeyCode::Home => area.move_to(area.line_start()),
            KeyCode::End => area.move_to(area.line_end()),
            KeyCode::Char('a') if control => area.move_to(area.line_start()),
            KeyCode::Char('e') if control => area.move_to(area.line_end()),
            KeyCode::Up => self.move_up(width),
            KeyCode::Down => self.move_down(width),
            KeyCode::Char('p') if control => self.move_up(width),
            KeyCode::Char('n') if control => self.move_down(width),
            KeyCode::Backspace if control || alt => area.kill(area.word_start()..area.cursor()),
            KeyCode::Backspace => self.delete_back(),
            KeyCode::Char('h') if control => self.delete_back(),
            KeyCode::Delete => area.delete(area.cursor()..area.next()),
            KeyCode::Char('d') if control && !area.is_empty() => area.delete(area.cursor()..area.next()),
            KeyCode::Char('d') if alt => area.kill(area.cursor()..area.word_end()),
            KeyCode::Char('k') if control => {
                let end = area.line_end();
                let end = if end == area.cursor() { area.next() } else { end };
                area.kill(area.cursor()..end);
            }
            KeyCode::Char('u') if control => area.kill(area.line_start()..area.cursor()),
            KeyCode::Char('w') if control => area.kill(area.token_start()..area.cursor()),
            KeyCode::Char('y') if control => area.yank(),
            KeyCode::Char('t') if control && !area.is_empty() => area.transpose(),
            KeyCode::Char('_' | '/' | '7') if control => area.undo(),
            KeyCode::Char('r') if control => {
                let draft = area.text().to_owned();
                self.search = Some(HistorySearch { draft, position: usize::MAX, ..HistorySearch::default() });
            }
            KeyCode::Tab => self.update_completion(),
            KeyCode::Char(ch) if !control && !alt => {
                let mut buffer = [0; 4];
                area.insert(ch.encode_utf8(&mut buffer));
            }
            _ => return ComposerAction::Unused,
        }
        ComposerAction::Used
    }

    /// Removes the character before the cursor, or a whole placeholder.
    fn delete_back(&mut self) {
        let end = self.area.cursor();
        let before = &self.area.text()[..end];
        let placeholders = (0..self.pastes.len()).map(|i| self.placeholder(i));
        let length = placeholders.into_iter().find(|text| before.ends_with(&**text)).map(|text| text.len());
        let start = length.map_or_else(|| self.area.previous(), |length| end - length);
        self.area.delete(start..end);
    }

    fn move_up(&mut self, width: usize) {
        if self.area.move_row(-1, width) {
            return;
        }
        let draft = self.area.text().to_owned();
        if let Some(prompt) = self.history.previous(&draft) {
            let prompt = prompt.to_owned();
            self.area.set(&prompt);
        }
    }

    fn move_down(&mut self, width: usize) {
        if self.area.move_row(1, width) {
            return;
        }
        if let Some(prompt) = self.history.next() {
            self.area.set(&prompt);
        }
    }
}

impl HistorySearch {
    /// The prompt that is shown.
    pub(crate) fn shown(&self) -> &str {
        self.found.as_deref().unwrap_or(&self.draft)
    }
}

/// File extensions of images that the API accepts, and their media types.
pub(crate) const IMAGE_TYPES: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn type_keys(composer: &mut Composer, keys: &str) {
        for ch in keys.chars() {
            composer.handle_key(KeyEvent::new(KeyCode::Char(ch), KeyModifiers::NONE), 40);
        }
    }

    fn press(composer: &mut Composer, code: KeyCode, modifiers: KeyModifiers) -> ComposerAction {
        composer.handle_key(KeyEvent::new(code, modifiers), 40)
    }

    #[test]
    fn enter_submits_and_a_backslash_makes_a_new_line() {
        let mut composer = Composer::default();
        type_keys(&mut composer, "a\\");
        assert_eq!(press(&mut composer, KeyCode::Enter, KeyModifiers::NONE), ComposerAction::Used);
        type_keys(&mut composer, "b");
        press(&mut composer, KeyCode::Enter, KeyModifiers::ALT);
        type_keys(&mut composer, "c");
        let ComposerAction::Enter(prompt) = press(&mut composer, KeyCode::Enter, KeyModifiers::NONE) else {
            panic!("not entered")
        };
        assert_eq!(prompt.text, "a\nb\nc");
        assert_eq!(press(&mut composer, KeyCode::Enter, KeyModifiers::NONE), ComposerAction::Used);
    }

    #[test]
    fn long_pastes_are_folded_and_removed_as_a_whole() {
        let mut composer = Composer::default();
        composer.paste("short\r\npaste ");
        let long = "line\n".repeat(50);
        composer.paste(&long);
        assert_eq!(composer.area.text(), "short\npaste [Pasted text #1 +50 lines]");
        assert_eq!(composer.take().text, format!("short\npaste {long}"));
        composer.paste(&long);
        press(&mut composer, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(composer.area.text(), "");
    }

    #[test]
    fn the_same_paste_again_expands_a_folded_one() {
        let mut composer = Composer::default();
        let long = "line\n".repeat(50);
        composer.paste(&long);
        composer.paste("other\n");
        composer.paste(&long);
        assert_eq!(composer.area.text(), "[Pasted text #1 +50 lines]other\n[Pasted text #2 +50 lines]");
        composer.paste(&long);
        assert_eq!(composer.area.text(), format!("[Pasted text #1 +50 lines]other\n{long}"));
        assert_eq!(composer.take().text, format!("{long}other\n{long}"));
    }

    #[test]
    fn the_draft_comes_back_after_earlier_prompts() {
        let mut history = PromptHistory::default();
        for prompt in ["one", "/two"] {
            history.add(prompt, 0, "s").unwrap();
        }
        let mut composer = Composer::new(history);
        type_keys(&mut composer, "draft");
        for (key, text) in
            [(KeyCode::Up, "/two"), (KeyCode::Up, "one"), (KeyCode::Down, "/two"), (KeyCode::Down, "draft")]
        {
            press(&mut composer, key, KeyModifiers::NONE);
            assert_eq!((composer.area.text(), &composer.completion), (text, &None));
        }
        press(&mut composer, KeyCode::Up, KeyModifiers::NONE);
        type_keys(&mut composer, "x");
        press(&mut composer, KeyCode::Down, KeyModifiers::NONE);
        assert_eq!(composer.area.text(), "/twox");
    }

    #[test]
    fn the_history_is_searched() {
        let mut history = PromptHistory::default();
        for prompt in ["fix the test", "write docs", "fix the build"] {
            history.add(prompt, 0, "s").unwrap();
        }
        let mut composer = Composer::new(history);
        press(&mut composer, KeyCode::Char('r'), KeyModifiers::CONTROL);
        type_keys(&mut composer, "fix");
        assert_eq!(composer.search.as_ref().unwrap().shown(), "fix the build");
        press(&mut composer, KeyCode::Char('r'), KeyModifiers::CONTROL);
        press(&mut composer, KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(composer.area.text(), "fix the test");
    }
}
