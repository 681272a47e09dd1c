//! Findings in little memory.

use std::borrow::Cow;

use foldhash::HashMap;
use threadline_entry::{Code, Finding, Position, Severity};

/// Findings whose messages are stored in one text. A log may have several of them per line.
#[derive(Debug, Default)]
pub struct FindingList {
    findings: Vec<PackedFinding>,
    text: String,
    /// The positions in `text` of the messages that are literals, by address.
    literals: HashMap<(usize, usize), usize>,
}

/// A finding. Positions in the log and in the text of the messages have 48 bits.
#[derive(Clone, Copy, Debug)]
struct PackedFinding {
    /// 0 if the finding does not concern one line.
    line_no: u32,
    offset_low: u32,
    message_low: u32,
    message_length: u32,
    offset_high: u16,
    message_high: u16,
    code: Code,
    severity: Severity,
}

impl PackedFinding {
    fn byte_offset(&self) -> u64 {
        u64::from(self.offset_high) << 32 | u64::from(self.offset_low)
    }

    fn message_start(&self) -> usize {
        usize::from(self.message_high) << 32 | self.message_low as usize
    }
}

impl FindingList {
    /// Appends a finding.
    pub(crate) fn push(&mut self, finding: &Finding) {
        let Finding { code, severity, at, message } = finding;
        let start = match message {
            Cow::Borrowed(literal) => {
                let key = (literal.as_ptr().addr(), literal.len());
                let end = self.text.len();
                *self.literals.entry(key).or_insert_with(|| {
                    self.text.push_str(literal);
                    end
                })
            }
            Cow::Owned(message) => {
                let end = self.text.len();
                self.text.push_str(message);
                end
            }
        };
        let offset = at.map_or(0, |at| at.byte_offset);
        self.findings.push(PackedFinding {
            line_no: at.map_or(0, |at| at.line_no as u32),
            offset_low: offset as u32,
            message_low: start as u32,
            message_length: message.len() as u32,
            offset_high: (offset >> 32) as u16,
            message_high: (start >> 32) as u16,
            code: *code,
            severity: *severity,
        });
    }

    /// Sorts the findings by their positions and codes, and releases unused capacity.
    pub(crate) fn sort(&mut self) {
        self.findings.shrink_to_fit();
        self.text.shrink_to_fit();
        self.findings.sort_by_key(|finding| (finding.line_no > 0, finding.byte_offset(), finding.code));
    }

    /// Returns whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns the codes of the findings, in file order.
    pub fn codes(&self) -> impl Iterator<Item = Code> {
        self.findings.iter().map(|finding| finding.code)
    }

    /// Returns the findings, in file order. Each of them has a copy of its message.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Finding> {
        self.findings.iter().map(|finding| Finding {
            code: finding.code,
            severity: finding.severity,
            at: (finding.line_no > 0)
                .then(|| Position { line_no: finding.line_no.into(), byte_offset: finding.byte_offset() }),
            message: self.text[finding.message_start()..][..finding.message_length as usize]
                .to_owned()
                .into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_returns_its_findings_in_file_order() {
        let at = |line_no: u64| Position { line_no, byte_offset: (line_no << 33) + 7 };
        let findings = [
            Finding { at: None, ..Finding::new(Code::Retention, at(1), "literal") },
            Finding::new(Code::OrphanCall, at(2), String::from("the call of Bash has no result")),
            Finding::new(Code::MissingField, at(2), "literal").as_note(),
            Finding::new(Code::MissingField, at(2), "other literal"),
            Finding::new(Code::Secret, at(3), String::new()),
        ];
        let mut list = FindingList::default();
        for idx in [4, 2, 3, 1, 0] {
            list.push(&findings[idx]);
        }
        list.sort();
        assert_eq!(list.iter().collect::<Vec<_>>(), findings);
        assert_eq!(list.text, "literalother literalthe call of Bash has no result");
        assert!(!list.is_empty() && list.codes().eq(findings.map(|finding| finding.code)));
        assert!(size_of::<PackedFinding>() <= 24, "{}", size_of::<PackedFinding>());
    }
}
