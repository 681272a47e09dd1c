//! Commands that run in the background of the conversation.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::cancel::CancelToken;
use crate::process::{Exit, KillSignal, exit_of, kill_group, spawn, wait_for_exit};

/// The commands of a session that run or have ended without being reported. Dropping it kills all of them.
#[derive(Debug, Default)]
pub struct BackgroundTasks {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    tasks: Mutex<Vec<Task>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Task {
    id: String,
    tool_use_id: String,
    command: String,
    description: String,
    output_file: PathBuf,
    process: u32,
    /// Whether it runs in the foreground of a call. Such tasks are not reported.
    is_foreground: bool,
    /// Whether a person moved it to the background, so that its call ends.
    is_released: bool,
    exit: Option<Exit>,
    stopped: bool,
    /// Whether its end is not reported, because the person stopped it.
    is_silent: bool,
}

/// The state of a background command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// It runs.
    Running,
    /// It ended with code 0.
    Completed,
    /// It ended with another code or by a signal.
    Failed,
    /// It was stopped.
    Killed,
}

impl TaskStatus {
    /// Returns the name in results and notifications.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

/// A background command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedTask {
    /// The id of the task.
    pub id: String,
    /// The id of the call that started it.
    pub tool_use_id: String,
    /// The description of the call, or the command.
    pub description: String,
    /// The file with its output.
    pub output_file: PathBuf,
    /// How it ended.
    pub status: TaskStatus,
    /// Its exit code.
    pub exit_code: i32,
}

impl FinishedTask {
    /// Returns how the task ended, in one sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        let end = match self.status {
            TaskStatus::Failed => format!("failed with exit code {}", self.exit_code),
            TaskStatus::Killed => "was stopped".to_owned(),
            TaskStatus::Completed | TaskStatus::Running => {
                format!("completed (exit code {})", self.exit_code)
            }
        };
        format!("Background command \"{}\" {end}", self.description)
    }

    /// Returns the message about the end of the task for the model.
    #[must_use]
    pub fn notification(&self) -> String {
        format!(
            "<task-notification>\n<task-id>{}</task-id>\n<tool-use-id>{}</tool-use-id>\n<output-file>{}</output-file>\n\
             <status>{}</status>\n<summary>{}</summary>\n</task-notification>",
            self.id,
            self.tool_use_id,
            self.output_file.display(),
            self.status.name(),
            self.summary()
        )
    }
}

/// Moves foreground commands to the background and stops background commands, from another
/// thread.
#[derive(Debug, Clone)]
pub struct BackgroundSwitch {
    shared: Arc<Shared>,
}

impl BackgroundSwitch {
    /// Ends all calls with a foreground command; the commands continue in the background. Returns whether
    /// there was one.
    pub fn release_all(&self) -> bool {
        let mut tasks = self.shared.tasks.lock();
        let mut waiting =
            tasks.iter_mut().filter(|task| task.is_foreground && task.exit.is_none()).peekable();
        let has_waiting = waiting.peek().is_some();
        waiting.for_each(|task| task.is_released = true);
        drop(tasks);
        self.shared.changed.notify_all();
        has_waiting
    }

    /// Ends a background command without waiting for it: SIGTERM at once, and SIGKILL if it still runs after
    /// `grace`. Its end is not reported. Returns whether it was running.
    pub fn stop(&self, id: &str, grace: Duration) -> bool {
        {
            let mut tasks = self.shared.tasks.lock();
            let running = |task: &&mut Task| task.id == id && !task.is_foreground && task.exit.is_none();
            let Some(task) = tasks.iter_mut().find(running) else { return false };
            (task.stopped, task.is_silent) = (true, true);
            task.signal(KillSignal::Terminate);
        }
        let (shared, id) = (Arc::clone(&self.shared), id.to_owned());
        let kill = move || {
            if shared.wait_while(deadline_in(grace), |tasks| is_running(tasks, &id)) {
                shared.signal(&id, KillSignal::Kill);
            }
        };
        // Without the thread, the command has got its signal at least.
        let _ = std::thread::Builder::new().name("command-stop".to_owned()).spawn(kill);
        true
    }
}

/// A task as TaskOutput shows it.
#[derive(Debug, Clone)]
pub(crate) struct TaskView {
    pub(crate) description: String,
    pub(crate) output_file: PathBuf,
    pub(crate) status: TaskStatus,
    pub(crate) exit_code: Option<i32>,
}

/// A command to start.
pub(crate) struct NewTask<'a> {
    pub(crate) tool_use_id: &'a str,
    pub(crate) command: &'a str,
    pub(crate) description: &'a str,
    pub(crate) tasks_dir: &'a Path,
}

impl BackgroundTasks {
    /// Returns an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a handle with which a person moves commands to the background.
    #[must_use]
    pub fn switch(&self) -> BackgroundSwitch {
        BackgroundSwitch { shared: Arc::clone(&self.shared) }
    }

    /// Returns whether a background command is running.
    #[must_use]
    pub fn has_running(&self) -> bool {
        self.shared.tasks.lock().iter().any(|task| !task.is_foreground && task.exit.is_none())
    }

    /// Returns the ids of the background commands that are running.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        let tasks = self.shared.tasks.lock();
        tasks.iter().filter(|task| !task.is_foreground && task.exit.is_none()).map(|t| t.id.clone()).collect()
    }

    /// Removes and returns the background commands that have ended, each once.
    #[must_use]
    pub fn take_finished(&self) -> Vec<FinishedTask> {
        let mut tasks = self.shared.tasks.lock();
        let is_finished = |task: &mut Task| !task.is_foreground && task.exit.is_some();
        let finished = tasks.extract_if(.., is_finished);
        finished.filter(|task| !task.is_silent).map(|task| task.finished()).collect()
    }

    /// Blocks until a background command ends, none is running, the time is over, or the token is cancelled.
    /// Returns the commands that have ended.
    #[must_use]
    pub fn wait_finished(&self, timeout: Duration, cancel: &CancelToken) -> Vec<FinishedTask> {
        let _guard = self.wake_on_cancel(cancel);
        self.shared.wait_while(deadline_in(timeout), |tasks| {
            let mut background = tasks.iter().filter(|task| !task.is_foreground);
            !cancel.is_cancelled()
                && background.clone().count() > 0
                && background.all(|task| task.exit.is_none())
        });
        self.take_finished()
    }

    /// Kills a background command and removes it. Returns its command line, or `None` if there is no such
    /// task.
    pub fn stop(&self, id: &str, grace: Duration) -> Option<String> {
        let command = {
            let mut tasks = self.shared.tasks.lock();
            let task = tasks.iter_mut().find(|task| task.id == id && !task.is_foreground)?;
            task.stopped = true;
            task.command.clone()
        };
        self.kill(id, grace);
        self.remove(id);
        Some(command)
    }

    /// Kills every command, also those in the foreground, and removes them.
    pub fn kill_all(&self, grace: Duration) {
        let ids: Vec<_> = {
            let mut tasks = self.shared.tasks.lock();
            tasks.iter_mut().for_each(|task| task.stopped = true);
            tasks.iter().for_each(|task| task.signal(KillSignal::Terminate));
            tasks.iter().map(|task| task.id.clone()).collect()
        };
        self.shared.wait_while(Instant::now() + grace, |tasks| tasks.iter().any(|task| task.exit.is_none()));
        for id in ids {
            self.kill(&id, Duration::ZERO);
            self.remove(&id);
        }
    }

    /// Starts a command with its output in a new file of `tasks_dir`, and returns the id of the task.
    ///
    /// A thread waits for the process, so that its end is seen at once. The output goes to a file, not to a
    /// pipe: memory is bounded, and descendants that outlive the command cannot block it.
    pub(crate) fn start(&self, new: &NewTask<'_>, command: &mut Command) -> io::Result<(String, PathBuf)> {
        create_private_dir(new.tasks_dir)?;
        let (id, output_file, output) = new_output_file(new.tasks_dir)?;
        let mut child = match spawn(command, output) {
            Ok(child) => child,
            Err(error) => {
                let _ = fs::remove_file(&output_file);
                return Err(error);
            }
        };
        self.shared.tasks.lock().push(Task {
            id: id.clone(),
            tool_use_id: new.tool_use_id.to_owned(),
            command: new.command.to_owned(),
            description: new.description.to_owned(),
            output_file: output_file.clone(),
            process: child.id(),
            is_foreground: true,
            is_released: false,
            exit: None,
            stopped: false,
            is_silent: false,
        });
        let shared = Arc::clone(&self.shared);
        let process = child.id();
        let waiter = move || {
            wait_for_exit(&child);
            // Reaped under the lock: a signal is sent only while the process id is valid.
            let mut tasks = shared.tasks.lock();
            let exit = child.wait().map_or(Exit::Code(1), exit_of);
            if let Some(task) = tasks.iter_mut().find(|task| task.process == process && task.exit.is_none()) {
                task.exit = Some(exit);
            }
            drop(tasks);
            shared.changed.notify_all();
        };
        if let Err(error) = std::thread::Builder::new().name("command".to_owned()).spawn(waiter) {
            // Its end would not be noticed.
            self.shared.signal(&id, KillSignal::Kill);
            self.remove(&id);
            return Err(error);
        }
        Ok((id, output_file))
    }

    /// Waits until a command ends or is released, the time is over, or the token is cancelled; calls `poll`
    /// in between.
    pub(crate) fn wait(
        &self,
        id: &str,
        timeout: Duration,
        cancel: &CancelToken,
        poll: &mut dyn FnMut(),
    ) -> Option<Exit> {
        let _guard = self.wake_on_cancel(cancel);
        let deadline = deadline_in(timeout);
        loop {
            let step = deadline.min(Instant::now() + POLL_INTERVAL);
            self.shared.wait_while(step, |tasks| {
                !cancel.is_cancelled() && is_running(tasks, id) && !is_released(tasks, id)
            });
            poll();
            let (exit, is_released) = {
                let tasks = self.shared.tasks.lock();
                let exit = tasks.iter().find(|task| task.id == id).and_then(|task| task.exit);
                (exit, is_released(&tasks, id))
            };
            if exit.is_some() || is_released || cancel.is_cancelled() || Instant::now() >= deadline {
                return exit;
            }
        }
    }

    /// Whether a person moved the command to the background, so that its call ends.
    pub(crate) fn is_released(&self, id: &str) -> bool {
        is_released(&self.shared.tasks.lock(), id)
    }

    /// Turns a command that a call waited for into a background command, and watches the size of its output.
    pub(crate) fn detach(&self, id: &str, max_output: u64) {
        let mut tasks = self.shared.tasks.lock();
        let Some(task) = tasks.iter_mut().find(|task| task.id == id) else { return };
        (task.is_foreground, task.is_released) = (false, false);
        let (id, path, shared) = (id.to_owned(), task.output_file.clone(), Arc::clone(&self.shared));
        drop(tasks);
        let watcher = move || {
            while shared.wait_while(Instant::now() + WATCH_INTERVAL, |tasks| is_running(tasks, &id)) {
                if file_size(&path) > max_output {
                    shared.signal(&id, KillSignal::Kill);
                }
            }
        };
        let _ = std::thread::Builder::new().name("command-output".to_owned()).spawn(watcher);
    }

    /// Returns a background task.
    pub(crate) fn view(&self, id: &str) -> Option<TaskView> {
        let tasks = self.shared.tasks.lock();
        tasks.iter().find(|task| task.id == id && !task.is_foreground).map(Task::view)
    }

    /// Waits until a background task ends and returns it.
    pub(crate) fn wait_view(&self, id: &str, timeout: Duration, cancel: &CancelToken) -> Option<TaskView> {
        self.wait(id, timeout, cancel, &mut || {});
        self.view(id)
    }

    /// Removes a task; its output file stays.
    pub(crate) fn remove(&self, id: &str) {
        self.shared.tasks.lock().retain(|task| task.id != id);
    }

    /// Ends a command: SIGTERM, and SIGKILL if it still runs after `grace`.
    pub fn kill(&self, id: &str, grace: Duration) {
        if !grace.is_zero() {
            self.shared.signal(id, KillSignal::Terminate);
            self.shared.wait_while(Instant::now() + grace, |tasks| is_running(tasks, id));
        }
        self.shared.signal(id, KillSignal::Kill);
        self.shared.wait_while(Instant::now() + REAP_TIME, |tasks| is_running(tasks, id));
    }

    fn wake_on_cancel(&self, cancel: &CancelToken) -> crate::cancel::CancelGuard {
        let shared = Arc::clone(&self.shared);
        cancel.on_cancel(move || {
            // The lock makes sure that no waiter is between its check and its wait.
            drop(shared.tasks.lock());
            shared.changed.notify_all();
        })
    }
}

impl Shared {
    /// Blocks while the condition is true, at most until the deadline. Returns whether it is still true.
    fn wait_while(&self, deadline: Instant, condition: impl Fn(&[Task]) -> bool) -> bool {
        let mut tasks = self.tasks.lock();
        while condition(&tasks) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            self.changed.wait_for(&mut tasks, left);
        }
        false
    }

    fn signal(&self, id: &str, signal: KillSignal) {
        self.tasks.lock().iter().filter(|task| task.id == id).for_each(|task| task.signal(signal));
    }
}

/// Returns the time after `timeout`; a year from now for times that cannot be represented.
fn deadline_in(timeout: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + Duration::from_secs(365 * 24 * 3600))
}

fn is_running(tasks: &[Task], id: &str) -> bool {
    tasks.iter().any(|task| task.id == id && task.exit.is_none())
}

fn is_released(tasks: &[Task], id: &str) -> bool {
    tasks.iter().any(|task| task.id == id && task.is_released)
}

/// The interval at which the output of a foreground command is read.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which the size of the output of a background command is checked.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The time that a killed process gets to disappear.
const REAP_TIME: Duration = Duration::from_secs(2);
/// The time that commands get to end when the session ends.
const DROP_GRACE: Duration = Duration::from_millis(200);

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        self.kill_all(DROP_GRACE);
    }
}

impl Task {
    fn signal(&self, signal: KillSignal) {
        if self.exit.is_none() {
            kill_group(self.process, signal);
        }
    }

    fn status(&self) -> TaskStatus {
        match self.exit {
            None => TaskStatus::Running,
            Some(_) if self.stopped => TaskStatus::Killed,
            Some(Exit::Code(0)) => TaskStatus::Completed,
            Some(_) => TaskStatus::Failed,
        }
    }

    fn exit_code(&self) -> Option<i32> {
        self.exit.map(|exit| match exit {
            Exit::Code(code) => code,
            Exit::Signal(_) => 1,
        })
    }

    fn view(&self) -> TaskView {
        TaskView {
            description: self.description.clone(),
            output_file: self.output_file.clone(),
            status: self.status(),
            exit_code: self.exit_code(),
        }
    }

    fn finished(self) -> FinishedTask {
        FinishedTask {
            status: self.status(),
            exit_code: self.exit_code().unwrap_or(1),
            id: self.id,
            tool_use_id: self.tool_use_id,
            description: self.description,
            output_file: self.output_file,
        }
    }
}

/// Returns the size of a file; 0 if there is none.
pub(crate) fn file_size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Creates a folder that only this user can enter.
fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Creates an empty output file with a new id.
fn new_output_file(dir: &Path) -> io::Result<(String, PathBuf, File)> {
    for _ in 0..16 {
        let id = format!("b{}", random_text(8)?);
        let path = dir.join(format!("{id}.output"));
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        match options.open(&path) {
            Ok(file) => return Ok((id, path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

/// Returns random lower-case letters and digits.
pub(crate) fn random_text(length: usize) -> io::Result<String> {
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect())
}
