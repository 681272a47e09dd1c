//! Optional vi keys of the composer: a small normal mode.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::text_area::TextArea;

/// The state of the vi keys.
#[derive(Debug, Default)]
pub(crate) struct ViKeys {
    /// Whether keys are commands, and not text.
    pub(crate) is_normal: bool,
    /// The operator that a movement will complete: `d` or `c`.
    operator: Option<char>,
}

impl ViKeys {
    /// Handles a key. Returns whether it was used; other keys mean the same as without vi keys.
    pub(crate) fn handle_key(&mut self, key: KeyEvent, area: &mut TextArea, width: usize) -> bool {
        if !self.is_normal {
            // Esc in an empty composer means something else.
            let leaves = key.code == KeyCode::Esc && !area.is_empty();
            if leaves {
                self.is_normal = true;
                area.move_to(area.previous().max(area.line_start()));
            }
            return leaves;
        }
        let KeyCode::Char(ch) = key.code else {
            self.operator = None;
            return false;
        };
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return false;
        }
        match self.operator.take() {
            Some(operator) => self.apply(operator, ch, area),
            None => self.command(ch, area, width),
        }
        true
    }

    fn command(&mut self, ch: char, area: &mut TextArea, width: usize) {
        if let Some(position) = movement(ch, area) {
            area.move_to(position);
            return;
        }
        match ch {
            'j' => drop(area.move_row(1, width)),
            'k' => drop(area.move_row(-1, width)),
            'd' | 'c' => self.operator = Some(ch),
            'x' => area.kill(area.cursor()..area.next()),
            'D' => area.kill(area.cursor()..area.line_end()),
            'C' => self.change(area.cursor()..area.line_end(), area),
            'S' => self.change(area.line_start()..area.line_end(), area),
            'p' => area.yank(),
            'u' => area.undo(),
            'i' => self.is_normal = false,
            'a' => self.insert_at(area.next(), area),
            'I' => self.insert_at(area.line_start(), area),
            'A' => self.insert_at(area.line_end(), area),
            'o' => {
                self.insert_at(area.line_end(), area);
                area.insert("\n");
            }
            'O' => {
                self.insert_at(area.line_start(), area);
                area.insert("\n");
                area.move_to(area.previous());
            }
            _ => {}
        }
    }

    fn apply(&mut self, operator: char, ch: char, area: &mut TextArea) {
        let range = if ch == operator {
            area.line_start()..area.line_end()
        } else {
            // `cw` changes to the end of the word, as in vi.
            let ch = if operator == 'c' && ch == 'w' { 'e' } else { ch };
            let Some(to) = movement(ch, area) else { return };
            let to = if ch == 'e' { area.word_end() } else { to };
            area.cursor().min(to)..area.cursor().max(to)
        };
        if operator == 'c' { self.change(range, area) } else { area.kill(range) }
    }

    fn change(&mut self, range: std::ops::Range<usize>, area: &mut TextArea) {
        area.kill(range);
        self.is_normal = false;
    }

    fn insert_at(&mut self, position: usize, area: &mut TextArea) {
        area.move_to(position);
        self.is_normal = false;
    }
}

fn movement(ch: char, area: &TextArea) -> Option<usize> {
    Some(match ch {
        'h' => area.previous().max(area.line_start()),
        'l' => area.next().min(area.line_end()),
        '0' | '^' => area.line_start(),
        '$' => area.line_end(),
        'b' => area.word_start(),
        'w' => {
            let end = area.word_end();
            let rest = &area.text()[end..];
            end + (rest.len() - rest.trim_start().len())
        }
        'e' => area.word_end(),
        'g' => 0,
        'G' => area.text().len(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str, keys: &str) -> String {
        let mut area = TextArea::default();
        area.insert(text);
        let mut vi = ViKeys { is_normal: true, operator: None };
        for ch in keys.chars() {
            let key = KeyEvent::new(KeyCode::Char(ch), KeyModifiers::NONE);
            if !vi.handle_key(key, &mut area, 40) {
                area.insert(&ch.to_string());
            }
        }
        area.text().to_owned()
    }

    #[test]
    fn commands_move_delete_and_change() {
        assert_eq!(keys("one two", "0dw"), "two");
        assert_eq!(keys("one two", "0cwsix"), "six two");
        assert_eq!(keys("one two", "bx"), "one wo");
        assert_eq!(keys("one two", "0D"), "");
        assert_eq!(keys("one", "0ia"), "aone");
        assert_eq!(keys("one", "obtwo"), "one\nbtwo");
        assert_eq!(keys("one\ntwo", "ggdd"), "\ntwo");
        assert_eq!(keys("one two", "0xxu"), "ne two");
    }
}
