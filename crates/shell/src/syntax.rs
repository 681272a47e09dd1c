//! The syntax tree of a script, and its parser.
//!
//! The parser knows the grammar of bash as far as files depend on it: lists, pipelines, compound commands,
//! words with their quotes, redirections, here-documents. It takes time linear in the length of the text,
//! because nesting is limited.

use std::rc::Rc;

/// The deepest nesting of commands, substitutions and here-documents.
const MAX_DEPTH: usize = 48;
/// The most commands in a script. More are a sign of generated text, and take much memory.
const MAX_COMMANDS: usize = 10_000;
/// The most words in a script.
const MAX_WORDS: usize = 200_000;

/// Commands that run one after another.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<Item>,
}

/// Pipelines that are connected with `&&` and `||`.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Connector, Pipeline)>,
    pub(crate) is_background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connector {
    And,
    Or,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) is_negated: bool,
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) kind: CommandKind,
    pub(crate) redirects: Vec<Redirect>,
    /// Whether its errors go to the next command: `|&`.
    pub(crate) pipes_errors: bool,
}

#[derive(Debug)]
pub(crate) enum CommandKind {
    Simple(SimpleCommand),
    Subshell(List),
    Group(List),
    If {
        /// Conditions with what they guard.
        branches: Vec<(List, List)>,
        otherwise: Option<List>,
    },
    /// `while`, `until`, and `for ((…))`, whose condition is empty.
    While {
        condition: List,
        body: List,
    },
    For {
        variable: String,
        /// `None` for the arguments of the script, and for `select`.
        words: Option<Vec<Word>>,
        body: List,
    },
    Case {
        words: Vec<Word>,
        branches: Vec<List>,
    },
    Function {
        name: String,
        body: Rc<Command>,
    },
    /// `[[ … ]]`
    Condition(Vec<Word>),
    /// `((…))`, as written.
    Arithmetic(String),
}

#[derive(Debug, Default)]
pub(crate) struct SimpleCommand {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
}

#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// The new value, or the values of an array.
    pub(crate) words: Vec<Word>,
    /// Whether the variable is a plain one that gets exactly this value.
    pub(crate) is_plain: bool,
}

#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) descriptor: Descriptor,
    pub(crate) operator: RedirectOperator,
    pub(crate) target: RedirectTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Descriptor {
    Default,
    Number(u32),
    /// `{name}>`
    Named,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectOperator {
    /// `<`
    Read,
    /// `>` and `>|`
    Write,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `<&`
    DuplicateInput,
    /// `>&`
    DuplicateOutput,
    /// `&>`
    WriteAll,
    /// `&>>`
    AppendAll,
    /// `<<<`
    HereString,
    HereDocument,
}

#[derive(Debug)]
pub(crate) enum RedirectTarget {
    Word(Word),
    /// An index of [`Script::documents`].
    Document(usize),
}

/// A word with what the shell replaces in it.
#[derive(Debug, Default)]
pub(crate) struct Word {
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Debug)]
pub(crate) enum Piece {
    Text {
        text: String,
        is_quoted: bool,
    },
    /// `~` at the start.
    Home,
    Variable {
        name: String,
        is_quoted: bool,
    },
    /// `$(…)`
    Substitution {
        list: List,
        is_quoted: bool,
    },
    /// `<(…)` and `>(…)`
    Process(List),
    /// An expansion that is not followed, as written.
    Expansion(String),
}

/// A parsed command line.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) list: List,
    /// The texts of here-documents.
    pub(crate) documents: Vec<Word>,
}

/// The text is not a script, or a limit is exceeded.
#[derive(Debug)]
pub(crate) struct Unparsed;

type Result<T> = std::result::Result<T, Unparsed>;

/// Parses a script.
pub(crate) fn parse(source: &str) -> Result<Script> {
    if source.contains('\0') {
        return Err(Unparsed);
    }
    let mut parser =
        Parser { source, at: 0, depth: 0, commands: 0, words: 0, documents: Vec::new(), pending: Vec::new() };
    let list = parser.list()?;
    if parser.at < source.len() || !parser.pending.is_empty() {
        return Err(Unparsed);
    }
    Ok(Script { list, documents: parser.documents })
}

/// A here-document whose text has not been reached.
struct PendingDocument {
    index: usize,
    delimiter: String,
    is_quoted: bool,
    strips_tabs: bool,
}

struct Parser<'s> {
    source: &'s str,
    at: usize,
    depth: usize,
    commands: usize,
    words: usize,
    documents: Vec<Word>,
    pending: Vec<PendingDocument>,
}

/// Words that end a list.
const TERMINATORS: &[&str] = &["then", "else", "elif", "fi", "do", "done", "esac", "}"];

impl<'s> Parser<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at).copied()
    }

    fn peek_second(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at + 1).copied()
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn expect(&mut self, text: &str) -> Result<()> {
        if self.take(text) { Ok(()) } else { Err(Unparsed) }
    }

    /// Runs a part of the parser one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Unparsed);
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks, continued lines and comments.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_second() == Some(b'\n') => self.at += 2,
                Some(b'#') => {
                    self.at = self.rest().find('\n').map_or(self.source.len(), |end| self.at + end);
                }
                _ => return,
            }
        }
    }

    fn skip_lines(&mut self) -> Result<()> {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                // The text of a document at the very end may be missing.
                if self.peek().is_none() {
                    self.read_documents()?;
                }
                return Ok(());
            }
            self.newline()?;
        }
    }

    fn newline(&mut self) -> Result<()> {
        self.at += 1;
        self.read_documents()
    }

    /// Returns the next word if it has no quotes or expansions.
    fn plain_word(&self) -> &'s str {
        let rest = self.rest();
        let end = rest.find(|ch: char| ch.is_ascii_whitespace() || ";&|<>()".contains(ch));
        // Longer words are no reserved ones. The search does not go far for the same reason.
        &rest[..end.unwrap_or(rest.len())]
    }

    fn is_at(&self, reserved: &str) -> bool {
        let rest = self.rest();
        rest.starts_with(reserved)
            && rest[reserved.len()..]
                .chars()
                .next()
                .is_none_or(|ch| ch.is_ascii_whitespace() || ";&|<>()".contains(ch))
    }

    fn take_reserved(&mut self, reserved: &str) -> bool {
        let is_next = self.is_at(reserved);
        if is_next {
            self.at += reserved.len();
        }
        is_next
    }

    fn expect_reserved(&mut self, reserved: &str) -> Result<()> {
        self.skip_lines()?;
        if self.take_reserved(reserved) { Ok(()) } else { Err(Unparsed) }
    }

    fn list(&mut self) -> Result<List> {
        self.nested(Self::list_items)
    }

    fn list_items(&mut self) -> Result<List> {
        let mut list = List::default();
        loop {
            self.skip_lines()?;
            let is_end = matches!(self.peek(), None | Some(b')')) || self.rest().starts_with(";;");
            if is_end || TERMINATORS.iter().any(|word| self.is_at(word)) {
                return Ok(list);
            }
            let mut item = self.item()?;
            self.skip_blanks();
            match self.peek() {
                Some(b'&') if self.peek_second() != Some(b'&') => {
                    self.at += 1;
                    item.is_background = true;
                }
                Some(b';') if self.peek_second() != Some(b';') => {
                    // `;&` ends a branch of `case`.
                    if self.peek_second() == Some(b'&') {
                        list.items.push(item);
                        return Ok(list);
                    }
                    self.at += 1;
                }
                None | Some(b'\n' | b')' | b';') => {}
                // After a compound command, the word that ends the surrounding one may follow.
                Some(_) if TERMINATORS.iter().any(|word| self.is_at(word)) => {}
                Some(_) => return Err(Unparsed),
            }
            list.items.push(item);
        }
    }

    fn item(&mut self) -> Result<Item> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let connector = if self.take("&&") {
                Connector::And
            } else if self.take("||") {
                Connector::Or
            } else {
                return Ok(Item { first, rest, is_background: false });
            };
            self.skip_lines()?;
            rest.push((connector, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline> {
        let mut is_negated = false;
        loop {
            self.skip_blanks();
            if self.take_reserved("!") {
                is_negated = !is_negated;
            } else if self.take_reserved("time") {
                self.skip_blanks();
                self.take_reserved("-p");
            } else {
                break;
            }
        }
        let mut commands = Vec::new();
        loop {
            let mut command = self.command()?;
            self.skip_blanks();
            let is_pipe = self.peek() == Some(b'|') && self.peek_second() != Some(b'|');
            if is_pipe {
                self.at += 1;
                command.pipes_errors = self.take("&");
            }
            commands.push(command);
            if !is_pipe {
                return Ok(Pipeline { is_negated, commands });
            }
            self.skip_lines()?;
        }
    }

    fn command(&mut self) -> Result<Command> {
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            return Err(Unparsed);
        }
        let Some(kind) = self.nested(Self::compound)? else { return self.simple() };
        let mut redirects = Vec::new();
        if !matches!(kind, CommandKind::Function { .. }) {
            self.skip_blanks();
            while let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                self.skip_blanks();
            }
        }
        Ok(Command { kind, redirects, pipes_errors: false })
    }

    fn compound(&mut self) -> Result<Option<CommandKind>> {
        if self.rest().starts_with("((")
            && let Some(text) = self.arithmetic("((")
        {
            return Ok(Some(CommandKind::Arithmetic(text.to_owned())));
        }
        if self.take("(") {
            let list = self.list()?;
            self.expect(")")?;
            return Ok(Some(CommandKind::Subshell(list)));
        }
        if !matches!(self.peek(), Some(b'{' | b'[' | b'a'..=b'z')) {
            return self.function();
        }
        let kind = if self.take_reserved("{") {
            let list = self.list()?;
            self.expect_reserved("}")?;
            CommandKind::Group(list)
        } else if self.take_reserved("if") {
            self.if_command()?
        } else if self.take_reserved("while") || self.take_reserved("until") {
            let condition = self.list()?;
            CommandKind::While { condition, body: self.do_group()? }
        } else if self.take_reserved("for") {
            self.for_command(true)?
        } else if self.take_reserved("select") {
            self.for_command(false)?
        } else if self.take_reserved("case") {
            self.case_command()?
        } else if self.take_reserved("[[") {
            CommandKind::Condition(self.condition()?)
        } else {
            return self.function();
        };
        Ok(Some(kind))
    }

    fn if_command(&mut self) -> Result<CommandKind> {
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            let condition = self.list()?;
            self.expect_reserved("then")?;
            branches.push((condition, self.list()?));
            self.skip_lines()?;
            if self.take_reserved("elif") {
                continue;
            }
            if self.take_reserved("else") {
                otherwise = Some(self.list()?);
            }
            self.expect_reserved("fi")?;
            return Ok(CommandKind::If { branches, otherwise });
        }
    }

    fn do_group(&mut self) -> Result<List> {
        self.skip_lines()?;
        let (start, end) = if self.is_at("{") { ("{", "}") } else { ("do", "done") };
        self.expect_reserved(start)?;
        let body = self.list()?;
        self.expect_reserved(end)?;
        Ok(body)
    }

    fn for_command(&mut self, has_values: bool) -> Result<CommandKind> {
        self.skip_blanks();
        if self.rest().starts_with("((") {
            let text = self.arithmetic("((").ok_or(Unparsed)?.to_owned();
            self.skip_separator()?;
            let condition = Item {
                first: Pipeline {
                    is_negated: false,
                    commands: vec![Command {
                        kind: CommandKind::Arithmetic(text),
                        redirects: Vec::new(),
                        pipes_errors: false,
                    }],
                },
                rest: Vec::new(),
                is_background: false,
            };
            let condition = List { items: vec![condition] };
            return Ok(CommandKind::While { condition, body: self.do_group()? });
        }
        let variable = self.plain_word().to_owned();
        if !is_name(&variable) {
            return Err(Unparsed);
        }
        self.at += variable.len();
        self.skip_lines()?;
        let mut words = None;
        if self.take_reserved("in") {
            let mut values = Vec::new();
            self.skip_blanks();
            while !matches!(self.peek(), None | Some(b';' | b'\n' | b'&' | b'|' | b')' | b'(')) {
                values.push(self.word()?);
                self.skip_blanks();
            }
            words = Some(values);
        }
        self.skip_separator()?;
        let body = self.do_group()?;
        Ok(CommandKind::For { variable, words: words.filter(|_| has_values), body })
    }

    fn skip_separator(&mut self) -> Result<()> {
        self.skip_blanks();
        self.take(";");
        self.skip_lines()
    }

    fn case_command(&mut self) -> Result<CommandKind> {
        self.skip_blanks();
        let mut words = vec![self.word()?];
        self.expect_reserved("in")?;
        let mut branches = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take_reserved("esac") {
                return Ok(CommandKind::Case { words, branches });
            }
            self.take("(");
            loop {
                self.skip_blanks();
                words.push(self.word()?);
                self.skip_blanks();
                if !self.take("|") {
                    break;
                }
            }
            self.expect(")")?;
            branches.push(self.list()?);
            self.skip_blanks();
            let ends = [";;&", ";;", ";&"];
            if !ends.iter().any(|end| self.take(end)) {
                self.skip_lines()?;
                if !self.is_at("esac") {
                    return Err(Unparsed);
                }
            }
        }
    }

    /// Reads the words of `[[ … ]]`.
    fn condition(&mut self) -> Result<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take_reserved("]]") {
                return Ok(words);
            }
            match self.peek() {
                None => return Err(Unparsed),
                Some(b'<' | b'>' | b'(' | b')' | b'&' | b'|' | b';') => self.at += 1,
                Some(_) => words.push(self.word()?),
            }
        }
    }

    /// Reads a function, if there is one.
    fn function(&mut self) -> Result<Option<CommandKind>> {
        let start = self.at;
        let has_keyword = self.take_reserved("function");
        self.skip_blanks();
        let name = self.plain_word();
        let is_plain = !name.is_empty() && !name.contains(['$', '`', '"', '\'', '\\', '=', '#', '{', '}']);
        if !is_plain {
            self.at = start;
            return Ok(None);
        }
        self.at += name.len();
        self.skip_blanks();
        let mut has_parens = false;
        if self.take("(") {
            self.skip_blanks();
            has_parens = self.take(")");
        }
        if !has_keyword && !has_parens {
            self.at = start;
            return Ok(None);
        }
        self.skip_lines()?;
        let body = self.command()?;
        if matches!(body.kind, CommandKind::Simple(_)) {
            return Err(Unparsed);
        }
        Ok(Some(CommandKind::Function { name: name.to_owned(), body: Rc::new(body) }))
    }

    fn simple(&mut self) -> Result<Command> {
        let mut command = SimpleCommand::default();
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            match self.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                Some(b'(') => return Err(Unparsed),
                _ => {}
            }
            if command.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                command.assignments.push(assignment);
                continue;
            }
            command.words.push(self.word()?);
        }
        if command.words.is_empty() && command.assignments.is_empty() && redirects.is_empty() {
            return Err(Unparsed);
        }
        Ok(Command { kind: CommandKind::Simple(command), redirects, pipes_errors: false })
    }

    fn assignment(&mut self) -> Result<Option<Assignment>> {
        let rest = self.rest();
        let name_end = rest.find(|ch: char| !(ch.is_ascii_alphanumeric() || ch == '_')).unwrap_or(rest.len());
        let name = &rest[..name_end];
        if !is_name(name) {
            return Ok(None);
        }
        let after = &rest[name_end..];
        let mut end = name_end;
        let mut is_plain = true;
        if after.starts_with('[') {
            // A longer index is not looked for, so that this takes constant time.
            let index = after.bytes().take(200).take_while(|byte| *byte != b'\n');
            let Some(close) = index.into_iter().position(|byte| byte == b']') else { return Ok(None) };
            end += close + 1;
            is_plain = false;
        }
        if rest[end..].starts_with("+=") {
            end += 2;
            is_plain = false;
        } else if rest[end..].starts_with('=') {
            end += 1;
        } else {
            return Ok(None);
        }
        self.at += end;
        let mut words = Vec::new();
        if self.take("(") {
            is_plain = false;
            loop {
                self.skip_lines()?;
                match self.peek() {
                    Some(b')') => break,
                    None | Some(b';' | b'&' | b'|' | b'(') => return Err(Unparsed),
                    Some(b'<' | b'>') if self.peek_second() != Some(b'(') => return Err(Unparsed),
                    Some(_) => words.push(self.word()?),
                }
            }
            self.at += 1;
        } else {
            words.push(self.word()?);
        }
        Ok(Some(Assignment { name: name.to_owned(), words, is_plain }))
    }

    fn redirect(&mut self) -> Result<Option<Redirect>> {
        let start = self.at;
        let descriptor = self.descriptor();
        let operators = [
            ("<<<", RedirectOperator::HereString),
            ("<<", RedirectOperator::HereDocument),
            ("<&", RedirectOperator::DuplicateInput),
            ("<>", RedirectOperator::ReadWrite),
            ("&>>", RedirectOperator::AppendAll),
            ("&>", RedirectOperator::WriteAll),
            (">>", RedirectOperator::Append),
            (">&", RedirectOperator::DuplicateOutput),
            (">|", RedirectOperator::Write),
            (">", RedirectOperator::Write),
            ("<", RedirectOperator::Read),
        ];
        let is_process = self.rest().starts_with("<(") || self.rest().starts_with(">(");
        let found = operators.iter().find(|(text, _)| self.rest().starts_with(text));
        let Some((text, operator)) = found.filter(|_| !is_process) else {
            self.at = start;
            return Ok(None);
        };
        self.at += text.len();
        let target = if *operator == RedirectOperator::HereDocument {
            RedirectTarget::Document(self.document_start()?)
        } else {
            self.skip_blanks();
            let word = self.word()?;
            if word.pieces.is_empty() {
                return Err(Unparsed);
            }
            RedirectTarget::Word(word)
        };
        Ok(Some(Redirect { descriptor, operator: *operator, target }))
    }

    /// Reads the descriptor before an operator. The caller goes back if none follows.
    fn descriptor(&mut self) -> Descriptor {
        let bytes = self.source.as_bytes();
        let digits = bytes[self.at..].iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
        let after = bytes.get(self.at + digits);
        if digits > 0 && matches!(after, Some(b'<' | b'>')) {
            let number = self.source[self.at..self.at + digits].parse().unwrap_or(u32::MAX);
            self.at += digits;
            return Descriptor::Number(number);
        }
        if self.peek() == Some(b'{') {
            let word = self.plain_word();
            let name = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
            let after = bytes.get(self.at + word.len());
            if name.is_some_and(is_name) && matches!(after, Some(b'<' | b'>')) {
                self.at += word.len();
                return Descriptor::Named;
            }
        }
        Descriptor::Default
    }

    fn document_start(&mut self) -> Result<usize> {
        let strips_tabs = self.take("-");
        self.skip_blanks();
        let start = self.at;
        let word = self.word()?;
        let is_quoted = self.source[start..self.at].contains(['\'', '"', '\\']);
        let mut delimiter = String::new();
        for piece in &word.pieces {
            // Expansions are not done in a delimiter.
            let Piece::Text { text, .. } = piece else { return Err(Unparsed) };
            delimiter.push_str(text);
        }
        if word.pieces.is_empty() {
            return Err(Unparsed);
        }
        let index = self.documents.len();
        self.documents.push(Word::default());
        self.pending.push(PendingDocument { index, delimiter, is_quoted, strips_tabs });
        Ok(index)
    }

    /// Reads the texts of the here-documents that begin on the previous line.
    fn read_documents(&mut self) -> Result<()> {
        for pending in std::mem::take(&mut self.pending) {
            let mut text = String::new();
            let mut continues = false;
            loop {
                let rest = self.rest();
                if rest.is_empty() {
                    // The end of the script ends the last line too.
                    if !text.is_empty() && !text.ends_with('\n') {
                        text.push('\n');
                    }
                    break;
                }
                let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
                let mut line = &rest[..end];
                self.at += end;
                if pending.strips_tabs && !continues {
                    line = line.trim_start_matches('\t');
                }
                if !continues && line.strip_suffix('\n').unwrap_or(line) == pending.delimiter {
                    break;
                }
                text.push_str(line);
                // Where expansions are done, a backslash continues a line, and the next one is no delimiter.
                let body = line.strip_suffix('\n').unwrap_or(line);
                let backslashes = body.bytes().rev().take_while(|byte| *byte == b'\\').count();
                continues = !pending.is_quoted && backslashes % 2 == 1;
            }
            let word = if pending.is_quoted {
                Word { pieces: vec![Piece::Text { text, is_quoted: true }] }
            } else {
                self.inner(&text, |parser| parser.document_text())?
            };
            self.documents[pending.index] = word;
        }
        Ok(())
    }

    /// Parses another text with the same limits and here-documents.
    fn inner<T>(&mut self, source: &str, parse: impl FnOnce(&mut Parser<'_>) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Unparsed);
        }
        let mut inner = Parser {
            source,
            at: 0,
            depth: self.depth + 1,
            commands: self.commands,
            words: self.words,
            documents: std::mem::take(&mut self.documents),
            pending: Vec::new(),
        };
        let result = parse(&mut inner)?;
        if inner.at < source.len() || !inner.pending.is_empty() {
            return Err(Unparsed);
        }
        self.documents = inner.documents;
        self.commands = inner.commands;
        self.words = inner.words;
        Ok(result)
    }

    /// Reads the text of a here-document in which expansions are done.
    fn document_text(&mut self) -> Result<Word> {
        let mut word = Word::default();
        while self.peek().is_some() {
            self.quoted_piece(&mut word, "\\$`\n", &['\\', '$', '`'])?;
        }
        Ok(word)
    }

    fn word(&mut self) -> Result<Word> {
        self.words += 1;
        if self.words > MAX_WORDS {
            return Err(Unparsed);
        }
        let mut word = Word::default();
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' => break,
                b'<' | b'>' if self.peek_second() != Some(b'(') => break,
                b'<' | b'>' => {
                    self.at += 2;
                    let list = self.list()?;
                    self.expect(")")?;
                    word.pieces.push(Piece::Process(list));
                }
                b'\\' => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        Some('\n') => self.at += 1,
                        Some(ch) => {
                            self.at += ch.len_utf8();
                            word.push(ch.encode_utf8(&mut [0; 4]), true);
                        }
                        None => word.push("\\", true),
                    }
                }
                b'\'' => {
                    let text = self.single_quoted()?;
                    word.push(text, true);
                }
                b'"' => self.double_quoted(&mut word)?,
                b'$' => self.dollar(&mut word, false)?,
                b'`' => self.backtick(&mut word, false)?,
                b'~' if self.at == start => self.tilde(&mut word),
                _ => {
                    let rest = self.rest();
                    let first = rest.chars().next().map_or(1, char::len_utf8);
                    let special = |ch: char| " \t\n;&|()<>\\'\"$`".contains(ch);
                    let end = rest[first..].find(special).map_or(rest.len(), |end| first + end);
                    word.push(&rest[..end], false);
                    self.at += end;
                }
            }
        }
        Ok(word)
    }

    fn tilde(&mut self, word: &mut Word) {
        let next = self.peek_second();
        let is_home = next.is_none_or(|byte| b"/ \t\n;&|()<>".contains(&byte));
        self.at += 1;
        if is_home {
            word.pieces.push(Piece::Home);
            return;
        }
        // `~user`, `~+`, `~-`
        let name = self.plain_word();
        let name = &name[..name.find('/').unwrap_or(name.len())];
        let name = &name[..name.find(['\\', '\'', '"', '$', '`']).unwrap_or(name.len())];
        self.at += name.len();
        word.pieces.push(Piece::Expansion(format!("~{name}")));
    }

    fn single_quoted(&mut self) -> Result<&'s str> {
        let text = &self.rest()[1..];
        let end = text.find('\'').ok_or(Unparsed)?;
        self.at += end + 2;
        Ok(&text[..end])
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<()> {
        self.at += 1;
        word.push("", true);
        loop {
            match self.peek() {
                None => return Err(Unparsed),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => self.quoted_piece(word, "\"\\$`\n", &['"', '\\', '$', '`'])?,
            }
        }
    }

    /// Reads a piece of a text in double quotes or of a here-document. `escaped` are the characters before
    /// which a backslash is removed.
    fn quoted_piece(&mut self, word: &mut Word, escaped: &str, special: &[char]) -> Result<()> {
        match self.peek() {
            Some(b'\\') => {
                self.at += 1;
                match self.rest().chars().next() {
                    Some('\n') => self.at += 1,
                    Some(ch) if escaped.contains(ch) => {
                        self.at += ch.len_utf8();
                        word.push(ch.encode_utf8(&mut [0; 4]), true);
                    }
                    _ => word.push("\\", true),
                }
                Ok(())
            }
            Some(b'$') => self.dollar(word, true),
            Some(b'`') => self.backtick(word, true),
            _ => {
                let rest = self.rest();
                let end = rest.find(special).unwrap_or(rest.len());
                word.push(&rest[..end], true);
                self.at += end;
                Ok(())
            }
        }
    }

    fn dollar(&mut self, word: &mut Word, is_quoted: bool) -> Result<()> {
        let start = self.at;
        let next = self.peek_second();
        match next {
            Some(b'(') if self.rest().starts_with("$((") => match self.arithmetic("$((") {
                Some(text) => {
                    word.pieces.push(Piece::Expansion(format!("$(({text}))")));
                    Ok(())
                }
                None => self.substitution(word, is_quoted),
            },
            Some(b'(') => self.substitution(word, is_quoted),
            Some(b'{') => self.braced_expansion(word, is_quoted),
            Some(b'[') => Err(Unparsed),
            Some(b'\'') if !is_quoted => {
                self.at += 2;
                let text = self.ansi_c_string()?;
                word.push(&text, true);
                Ok(())
            }
            Some(b'"') if !is_quoted => {
                self.at += 1;
                self.double_quoted(word)
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let name = &self.rest()[1..];
                let end = name.find(|ch: char| !(ch.is_ascii_alphanumeric() || ch == '_'));
                let name = &name[..end.unwrap_or(name.len())];
                self.at += 1 + name.len();
                word.pieces.push(Piece::Variable { name: name.to_owned(), is_quoted });
                Ok(())
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.at += 2;
                let name = self.source[start + 1..self.at].to_owned();
                word.pieces.push(Piece::Variable { name, is_quoted });
                Ok(())
            }
            _ => {
                self.at += 1;
                word.push("$", true);
                Ok(())
            }
        }
    }

    fn substitution(&mut self, word: &mut Word, is_quoted: bool) -> Result<()> {
        self.at += 2;
        let pending = std::mem::take(&mut self.pending);
        let list = self.list()?;
        self.expect(")")?;
        if !std::mem::replace(&mut self.pending, pending).is_empty() {
            return Err(Unparsed);
        }
        word.pieces.push(Piece::Substitution { list, is_quoted });
        Ok(())
    }

    /// Reads `${…}`.
    fn braced_expansion(&mut self, word: &mut Word, is_quoted: bool) -> Result<()> {
        let inner = &self.rest()[2..];
        let end = inner.find(|ch: char| !(ch.is_ascii_alphanumeric() || ch == '_')).unwrap_or(inner.len());
        if end > 0 && inner[end..].starts_with('}') {
            word.pieces.push(Piece::Variable { name: inner[..end].to_owned(), is_quoted });
            self.at += end + 3;
            return Ok(());
        }
        let length = closing(inner.as_bytes(), b'{', b'}').ok_or(Unparsed)?;
        word.pieces.push(Piece::Expansion(format!("${{{}}}", &inner[..length])));
        self.at += length + 3;
        Ok(())
    }

    /// Reads `((…))` or `$((…))`. Returns `None` and reads nothing if it is a subshell in a subshell.
    fn arithmetic(&mut self, start: &str) -> Option<&'s str> {
        let inner = &self.rest()[start.len()..];
        let length = closing(inner.as_bytes(), b'(', b')')?;
        let text = &inner[..length];
        if !inner[length + 1..].starts_with(')') {
            return None;
        }
        self.at += start.len() + length + 2;
        Some(text)
    }

    fn backtick(&mut self, word: &mut Word, is_quoted: bool) -> Result<()> {
        self.at += 1;
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        loop {
            match chars.next() {
                None => return Err(Unparsed),
                Some((end, '`')) => {
                    self.at += end + 1;
                    break;
                }
                Some((_, '\\')) => match chars.next() {
                    Some((_, ch @ ('`' | '\\' | '$'))) => text.push(ch),
                    Some((_, '"')) if is_quoted => text.push('"'),
                    Some((_, ch)) => text.extend(['\\', ch]),
                    None => return Err(Unparsed),
                },
                Some((_, ch)) => text.push(ch),
            }
        }
        let list = self.inner(&text, |parser| parser.list())?;
        word.pieces.push(Piece::Substitution { list, is_quoted });
        Ok(())
    }

    /// Reads the rest of `$'…'`.
    fn ansi_c_string(&mut self) -> Result<String> {
        let rest = self.rest();
        let mut end = 0;
        let bytes = rest.as_bytes();
        while bytes.get(end).is_some_and(|byte| *byte != b'\'') {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        if end >= bytes.len() {
            return Err(Unparsed);
        }
        self.at += end + 1;
        crate::text::unescape_ansi_c(&rest[..end]).ok_or(Unparsed)
    }
}

impl Word {
    fn push(&mut self, new: &str, new_is_quoted: bool) {
        if let Some(Piece::Text { text, is_quoted }) = self.pieces.last_mut()
            && *is_quoted == new_is_quoted
        {
            text.push_str(new);
            return;
        }
        self.pieces.push(Piece::Text { text: new.to_owned(), is_quoted: new_is_quoted });
    }
}

/// Returns the offset of the bracket that closes the one before a text. Brackets in quotes do not count.
fn closing(text: &[u8], open: u8, close: u8) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    let mut is_quoted = false;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\'' if !is_quoted => at += 1 + text[at + 1..].iter().position(|byte| *byte == b'\'')?,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            _ if byte == open => depth += 1,
            _ if byte == close && depth == 0 => return Some(at),
            _ if byte == close => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}
