use threadline_term::{TableColumn, TextLabel, table};
use threadline_view::wire::SettingObject;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Show the settings that apply, and where each comes from
///
/// Settings are read from $XDG_CONFIG_HOME/threadline/config.toml. Options and environment
/// variables take precedence. All settings are optional:
///
///   homes = ["~/.claude"]         folders with sessions
///   time_zone = "Europe/Berlin"   zone in which times are shown
///   prices = "~/prices.json"      prices that override the built-in ones
///   theme = "dark"                colours of pages: auto, light or dark
///   pager = "less -FRX"           pager for long output
///   redact = true                 mask secrets in what is shown
///   redact_rules = "rules.txt"    additional rules, as in `edit redact --rules`
///   redact_allow = "allow.txt"    exceptions, as in `edit redact --allow`
///   resume_with = "claude"        program of `resume`
///   archive_key = "~/key.txt"     key file of encrypted archives
///   files_limit = 500             megabytes of copies that `setup files` keeps
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ConfigArgs {}

pub(crate) fn run(cx: &Context, _args: &ConfigArgs) -> Result<CommandOutcome, CommandError> {
    let mut answer = cx.ui.output();
    if cx.json {
        for setting in &cx.settings {
            let source = setting.source.to_string();
            let value = setting.value.as_deref();
            answer.json(&SettingObject { name: setting.name, value, source: &source })?;
        }
        answer.finish()?;
        return Ok(CommandOutcome::Done);
    }
    let page = cx.ui.page();
    if let Some(path) = &cx.user.path {
        let state = if path.is_file() { "" } else { " (does not exist)" };
        writeln!(answer, "{}", page.paint(TextLabel::Dim, format!("{}{state}", path.display())))?;
    }
    let columns = [
        TableColumn { can_shrink: false, ..TableColumn::text("setting") },
        TableColumn { min_width: 20, ..TableColumn::text("value") },
        TableColumn { can_shrink: false, ..TableColumn::text("from") },
    ];
    let row = |setting: &crate::config::AppliedSetting| {
        let value = setting.value.clone().unwrap_or_else(|| "–".to_owned());
        vec![setting.name.to_owned(), value, setting.source.to_string()]
    };
    let rows: Vec<Vec<String>> = cx.settings.iter().map(row).collect();
    answer.text(&table(page, &columns, &rows))?;
    answer.finish()?;
    Ok(CommandOutcome::Done)
}
