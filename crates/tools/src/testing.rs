//! A project folder with everything that a call needs, for tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::background::BackgroundTasks;
use crate::cancel::CancelToken;
use crate::context::{FileObserver, ModelAccess, NoModel, ShellState, ToolContext};
use crate::file_state::FileStates;
use crate::limits::Limits;
use crate::output::{ResultContent, ToolOutput};
use crate::profile::Profile;
use crate::set::ToolSet;
use crate::tool::{Permit, validate};

pub(crate) struct Fixture {
    root: tempfile::TempDir,
    pub(crate) project: PathBuf,
    pub(crate) tools: ToolSet,
    pub(crate) shell: ShellState,
    pub(crate) files: FileStates,
    pub(crate) background: BackgroundTasks,
    pub(crate) cancel: CancelToken,
    pub(crate) limits: Limits,
    pub(crate) observed: ObservedPaths,
    pub(crate) model: Box<dyn ModelAccess>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

#[derive(Default)]
pub(crate) struct ObservedPaths(Mutex<Vec<PathBuf>>);

impl FileObserver for ObservedPaths {
    fn before_change(&self, path: &Path) {
        self.0.lock().push(path.to_owned());
    }
}

impl ObservedPaths {
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.0.lock().clone()
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with_profile(&Profile::V2_1_197)
    }

    pub(crate) fn with_profile(profile: &'static Profile) -> Self {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&project).unwrap();
        let environment =
            [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("SHELL", "/bin/bash"), ("HOME", "/nonexistent")];
        Self {
            tools: ToolSet::select(profile, |_, _| true),
            shell: ShellState::new(&project),
            files: FileStates::new(),
            background: BackgroundTasks::new(),
            cancel: CancelToken::new(),
            limits: Limits::default(),
            observed: ObservedPaths::default(),
            model: Box::new(NoModel),
            environment: environment.map(|(name, value)| (name.into(), value.into())).to_vec(),
            project,
            root,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project.join(name)
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn content(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// Gives a file a time of change that differs from that of any earlier Read.
    pub(crate) fn touch_later(&self, name: &str) {
        let file = std::fs::File::options().append(true).open(self.path(name)).unwrap();
        let later = file.metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(5);
        file.set_modified(later).unwrap();
    }

    /// Runs a call; `$CWD` in the input is the project.
    pub(crate) fn run(&self, tool: &str, input: &str) -> ToolOutput {
        let input = input.replace("$CWD", self.project.to_str().unwrap());
        let raw = RawValue::from_string(input).unwrap();
        let Some(tool) = self.tools.get(tool) else { return self.tools.unavailable(tool) };
        let input = match validate(tool, &raw, &self.shell.cwd()) {
            Ok(input) => input,
            Err(output) => return output,
        };
        let outside = self.root.path().canonicalize().unwrap();
        let context = ToolContext {
            cancel: &self.cancel,
            tool_use_id: "toolu_1",
            project: &self.project,
            additional_dirs: &[],
            home: None,
            shell: &self.shell,
            files: &self.files,
            observer: &self.observed,
            side_files: &outside.join("tool-results"),
            tasks_dir: &outside.join("tasks"),
            task_list_dir: &outside.join("task-list"),
            background: &self.background,
            environment: &self.environment,
            launcher: None,
            is_hidden: &|path| path.ends_with("denied.txt"),
            limits: &self.limits,
            model: &*self.model,
            progress: &|_| {},
        };
        tool.run(&input, &context, Permit::issue())
    }

    /// Runs a call and returns its content: errors begin with `ERR `; the root folder is `$ROOT` or `$CWD`.
    pub(crate) fn text(&self, tool: &str, input: &str) -> String {
        let output = self.run(tool, input);
        let text = match &output.content {
            ResultContent::Text(text) => text.clone(),
            ResultContent::Blocks(blocks) => blocks.iter().map(|block| block.get()).collect(),
        };
        let mark = if output.is_error { "ERR " } else { "" };
        self.masked(&format!("{mark}{text}"))
    }

    /// Runs a call and returns its record.
    pub(crate) fn record(&self, tool: &str, input: &str) -> String {
        let output = self.run(tool, input);
        self.masked(output.record.unwrap().get())
    }

    pub(crate) fn masked(&self, text: &str) -> String {
        let root = self.root.path().canonicalize().unwrap();
        text.replace(self.project.to_str().unwrap(), "$CWD").replace(root.to_str().unwrap(), "$ROOT")
    }
}
