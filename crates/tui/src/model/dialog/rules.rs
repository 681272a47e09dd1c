//! The dialogs of `/permissions`: lists of rules by effect, a new rule with its file, and the removal of one.

use threadline_permission::{PermissionMode, RuleEffect};

use super::{Dialog, DialogAnswer, DialogKind};
use crate::composer::TextArea;
use crate::permission_rule::{EFFECTS, RulePlace, ScreenRule};

impl Dialog {
    /// The rules with one effect. The first item adds a rule.
    pub(crate) fn rules(effect: RuleEffect, mode: PermissionMode, rules: Vec<ScreenRule>) -> Self {
        let tabs = EFFECTS.map(|other| {
            let name = other.name();
            if other == effect { format!("[{name}]") } else { name.to_owned() }
        });
        let mut items = vec!["Add a rule…".to_owned()];
        let width = rules.iter().map(|rule| rule.text.chars().count()).max().unwrap_or(0).min(40);
        items.extend(rules.iter().map(|rule| {
            let unused = if rule.is_used { "" } else { "; not used, the folder is not trusted" };
            format!("{:<width$}  {}{unused}", rule.text, rule.place.label())
        }));
        let about = match effect {
            RuleEffect::Allow => "Calls that match run without a question.",
            RuleEffect::Ask => "Calls that match need an answer, whatever else allows them.",
            RuleEffect::Deny => "Calls that match do not run.",
        };
        let title = format!("Permission rules  {}", tabs.join("  "));
        Self {
            about: vec![about.to_owned(), format!("The mode is {}.", mode.name())],
            keys: Some("←→ another list · Enter adds or removes · Esc closes"),
            ..Self::new(&title, items, DialogKind::Rules(effect, rules))
        }
    }

    /// The file for a new rule.
    pub(crate) fn rule_place(rule: ScreenRule) -> Self {
        let items = RulePlace::FILES.map(|place| {
            let about = match place {
                RulePlace::Local => "this folder, for you",
                RulePlace::Project => "this folder, for everyone who works on it",
                _ => "all folders, for you",
            };
            format!("{:<27}  {about}", place.label())
        });
        let title = format!("Where is the rule “{} {}” saved?", rule.effect.name(), rule.text);
        Self::new(&title, items.into(), DialogKind::RulePlace(rule))
    }

    fn new_rule(effect: RuleEffect) -> Self {
        let title = format!("New rule: {}", effect.name());
        Self {
            about: vec![
                "A tool, or a tool with a pattern: WebFetch, Bash(make *), Read(~/notes/**)".to_owned(),
            ],
            input: Some(TextArea::default()),
            keys: Some("Enter continues · Esc returns"),
            ..Self::new(&title, Vec::new(), DialogKind::NewRule(effect))
        }
    }

    fn remove_rule(rule: ScreenRule) -> Self {
        let title = format!("Remove the rule “{} {}”?", rule.effect.name(), rule.text);
        let items = vec!["Yes".to_owned(), "No".to_owned()];
        let about = vec![format!("It is from {}.", rule.place.label())];
        Self { about, selected: 1, ..Self::new(&title, items, DialogKind::RemoveRule(rule)) }
    }

    /// Shows the previous or the next list of rules.
    pub(super) fn turn_page(&self, is_forward: bool) -> DialogAnswer {
        let DialogKind::Rules(effect, _) = &self.kind else { return DialogAnswer::Pending };
        let at = EFFECTS.iter().position(|other| other == effect).unwrap_or(0);
        let step = if is_forward { 1 } else { EFFECTS.len() - 1 };
        DialogAnswer::ShowRules(EFFECTS[(at + step) % EFFECTS.len()])
    }

    /// Chooses in a dialog about rules.
    pub(super) fn choose_rule(&mut self) -> DialogAnswer {
        match &self.kind {
            DialogKind::Rules(effect, rules) => {
                match self.selected.checked_sub(1).and_then(|at| rules.get(at)) {
                    None => *self = Self::new_rule(*effect),
                    Some(rule) if rule.place.is_fixed() => {
                        self.about = vec![format!(
                            "This rule is from {}; it is not changed here.",
                            rule.place.label()
                        )];
                    }
                    Some(rule) => *self = Self::remove_rule(rule.clone()),
                }
                DialogAnswer::Pending
            }
            DialogKind::NewRule(effect) => {
                let text = self.input.as_ref().map(|input| input.text().trim().to_owned());
                match text.filter(|text| !text.is_empty()) {
                    Some(text) => DialogAnswer::CheckRule(ScreenRule::new(&text, *effect, RulePlace::Local)),
                    None => DialogAnswer::ShowRules(*effect),
                }
            }
            DialogKind::RulePlace(rule) => {
                let place = RulePlace::FILES.get(self.selected).copied().unwrap_or(RulePlace::Local);
                DialogAnswer::AddRule(ScreenRule { place, ..rule.clone() })
            }
            DialogKind::RemoveRule(rule) if self.selected == 0 => DialogAnswer::RemoveRule(rule.clone()),
            DialogKind::RemoveRule(rule) => DialogAnswer::ShowRules(rule.effect),
            _ => DialogAnswer::Close,
        }
    }
}
