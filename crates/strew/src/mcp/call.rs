//! A call: a command of strew in a process of its own, which can be killed at any time, within bounds of time, memory,
//! input and output. Its first run gives the text for people, its second the result for programs; equal input gives
//! equal answers.

use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::tools::{Asked, File, Tool, error};
use crate::platform::real_path;
use crate::text::count;

/// The bounds of a call.
pub(super) struct Limits {
    /// The folder below which paths must be, without links in it; `None`: no path is read.
    pub(super) root: Option<PathBuf>,
    pub(super) time: Duration,
    /// The largest number of bytes of files.
    pub(super) input: u64,
    /// The largest number of bytes of a result.
    pub(super) output: u64,
    /// The largest estimated memory of a simulation, in bytes.
    pub(super) memory: u64,
    /// The program.
    pub(super) program: PathBuf,
}

/// The events that a call waits for.
#[derive(Debug)]
pub(super) enum Event {
    /// The call was cancelled.
    Cancelled,
    /// The process has closed a stream; this is the kept part.
    Written(Stream, Kept),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// The kept part of a stream.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    /// The number of bytes in all.
    n_all: u64,
}

/// Why a call has no result.
enum NoResult {
    Cancelled,
    /// The message for the client.
    Failed(String),
}

impl From<std::io::Error> for NoResult {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(format!("strew could not be run: {error}"))
    }
}

/// Makes a call and returns the result of `tools/call`; `None` if it was cancelled. `sender` sends into `events`.
pub(super) fn run(
    asked: &Asked,
    limits: &Limits,
    sender: &Sender<Event>,
    events: &Receiver<Event>,
) -> Option<Value> {
    match made(asked, limits, sender, events) {
        Ok(result) => Some(result),
        Err(NoResult::Cancelled) => None,
        Err(NoResult::Failed(what)) => Some(error(&what)),
    }
}

fn made(
    asked: &Asked,
    limits: &Limits,
    sender: &Sender<Event>,
    events: &Receiver<Event>,
) -> Result<Value, NoResult> {
    check_size(&asked.files, limits)?;
    let paths = asked.paths.iter().map(|path| below(limits, path));
    let paths: Vec<PathBuf> = paths.collect::<Result<_, NoResult>>()?;
    let folder = Folder::with(&asked.files)?;
    #[allow(
        clippy::disallowed_methods,
        reason = "how long a call may take is real time; no result depends on it"
    )]
    let began = Instant::now();
    let process = Process {
        asked,
        limits,
        folder: folder.as_ref().map(|folder| folder.path.as_path()),
        paths: &paths,
        until: began + limits.time,
    };
    let people = process.run(false, sender, events)?;
    let max = limits.output;
    // What lint finds is its result, errors of the files among it; a failure of its own is on stderr.
    let is_found = asked.tool == Tool::Lint && people.code == 2 && people.err.n_all == 0;
    if people.code > 1 && !is_found {
        let mut text = people.err.text(max);
        if text.is_empty() {
            text = people.out.text(max);
        }
        return Ok(error(&text));
    }
    let programs = process.run(true, sender, events)?;
    if programs.out.n_all > max {
        let n = programs.out.n_all;
        let narrower = narrower(asked.tool);
        return Err(NoResult::Failed(format!(
            "the result has {n} bytes, more than {max} (strew mcp --max-output allows more): {narrower}. In words:\n{}",
            people.out.text(max)
        )));
    }
    let structured: Value = serde_json::from_slice(&programs.out.bytes).map_err(|_| {
        let why = programs.err.text(max);
        NoResult::Failed(format!("the command wrote no JSON: {why}"))
    })?;
    let mut text = people.out.text(max);
    // Notes about assumptions are part of an answer.
    let notes = people.err.text(max);
    if !notes.is_empty() {
        text = format!("{notes}{text}");
    }
    Ok(json!({
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": false,
    }))
}

/// Hints for a smaller result.
fn narrower(tool: Tool) -> &'static str {
    match tool {
        Tool::Simulate => "until, namespace, selector or fewer seeds make it smaller",
        Tool::Explain => "fewer nodes make it smaller",
        Tool::Lint => "fewer files make it smaller",
        Tool::Audit => "namespace and events make it smaller",
        Tool::Place => "namespace makes it smaller",
    }
}

fn check_size(files: &[File], limits: &Limits) -> Result<(), NoResult> {
    let n: u64 = files.iter().map(|file| file.content.len() as u64).sum();
    match n > limits.input {
        false => Ok(()),
        true => Err(NoResult::Failed(format!(
            "the files have {n} bytes, more than {} (strew mcp --max-input allows more)",
            limits.input
        ))),
    }
}

/// A path of a call, which must be below the root after links are followed.
fn below(limits: &Limits, path: &str) -> Result<PathBuf, NoResult> {
    let Some(root) = &limits.root else {
        return Err(NoResult::Failed(format!(
            "path {path:?}: no path is read without strew mcp --root FOLDER; give files as text"
        )));
    };
    let real = real_path(&root.join(path));
    match real.ok().filter(|real| real.starts_with(root)) {
        Some(real) => Ok(real),
        None => Err(NoResult::Failed(format!(
            "path {path:?}: there is no such file below the folder of --root"
        ))),
    }
}

/// A temporary folder with the texts of a call; it is removed on drop.
struct Folder {
    path: PathBuf,
}

/// The number of folders so far, so that each has a name of its own.
static FOLDERS: AtomicU64 = AtomicU64::new(0);

impl Folder {
    /// `None` if there is no text.
    fn with(files: &[File]) -> Result<Option<Self>, NoResult> {
        if files.is_empty() {
            return Ok(None);
        }
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("strew-mcp-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // It fails if the folder exists already.
        std::fs::create_dir(&path)?;
        let folder = Self { path };
        for file in files {
            let name = checked(&file.name)?;
            let path = folder.path.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            if path.exists() {
                return Err(NoResult::Failed(format!("two files are called {name:?}")));
            }
            std::fs::write(&path, &file.content)?;
        }
        Ok(Some(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // There is no way to report an error here.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A file's name that stays in its folder.
fn checked(name: &str) -> Result<&str, NoResult> {
    let is_inner = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_good = !name.is_empty()
        && !name.starts_with('-')
        && !name.chars().any(char::is_control)
        && Path::new(name).components().all(is_inner);
    match is_good {
        true => Ok(name),
        false => Err(NoResult::Failed(format!(
            "file name {name:?}: a name such as web.yaml or deploy/web.yaml is wanted"
        ))),
    }
}

/// A running command.
struct Process<'a> {
    asked: &'a Asked,
    limits: &'a Limits,
    folder: Option<&'a Path>,
    paths: &'a [PathBuf],
    until: Instant,
}

/// How it ended.
struct Ended {
    code: i32,
    out: Kept,
    err: Kept,
}

impl Process<'_> {
    fn command(&self, for_programs: bool) -> Command {
        let mut command = Command::new(&self.limits.program);
        command
            .arg(self.asked.tool.name())
            .arg("--color=never")
            .arg(format!("--max-input={}", self.limits.input))
            .args(&self.asked.options);
        if self.asked.tool.bounds_memory() {
            command.arg(format!("--max-memory={}", self.limits.memory));
        }
        if for_programs {
            command.arg("--output=json");
        }
        // All further words are arguments.
        command.arg("--");
        command.args(&self.asked.target);
        command.args(self.asked.files.iter().map(|file| &file.name));
        command.args(self.paths);
        if let Some(folder) = self.folder {
            command.current_dir(folder);
        }
        command
            .env("LC_ALL", "C.UTF-8")
            .env_remove("COLUMNS")
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end, to its timeout, or until the call is cancelled.
    fn run(
        &self,
        for_programs: bool,
        sender: &Sender<Event>,
        events: &Receiver<Event>,
    ) -> Result<Ended, NoResult> {
        let mut child = self.command(for_programs).spawn()?;
        let max = self.limits.output;
        if let Some(out) = child.stdout.take() {
            keep(Stream::Out, out, max, sender.clone());
        }
        if let Some(err) = child.stderr.take() {
            keep(Stream::Err, err, max, sender.clone());
        }
        let waited = self.wait(events);
        if waited.is_err() {
            end(&mut child);
            // Both streams end with the process; later events belong to another run.
        }
        let status = child.wait()?;
        let [out, err] = waited?;
        match status.code() {
            Some(code) => Ok(Ended { code, out, err }),
            None => Err(NoResult::Failed(format!("the command was ended: {status}"))),
        }
    }

    /// The kept parts of both streams.
    fn wait(&self, events: &Receiver<Event>) -> Result<[Kept; 2], NoResult> {
        let (mut out, mut err) = (None, None);
        loop {
            if let (Some(_), Some(_)) = (&out, &err) {
                return Ok([out.unwrap_or_default(), err.unwrap_or_default()]);
            }
            #[allow(
                clippy::disallowed_methods,
                reason = "how long a call may take is real time; no result depends on it"
            )]
            let left = self.until.saturating_duration_since(Instant::now());
            match events.recv_timeout(left) {
                Ok(Event::Written(Stream::Out, kept)) => out = Some(kept),
                Ok(Event::Written(Stream::Err, kept)) => err = Some(kept),
                Ok(Event::Cancelled) => return Err(NoResult::Cancelled),
                Err(_) => {
                    let seconds = self.limits.time.as_secs_f64();
                    return Err(NoResult::Failed(format!(
                        "no result within {seconds} s (strew mcp --time-limit allows more): fewer seeds, pods or nodes \
                         take less, and until ends a simulation early"
                    )));
                }
            }
        }
    }
}

/// Kills a process, which may have ended.
fn end(child: &mut Child) {
    // It fails only if the process is gone.
    let _ = child.kill();
}

/// Reads a stream to its end, and keeps at most `max` bytes.
fn keep(stream: Stream, mut from: impl Read + Send + 'static, max: u64, sender: Sender<Event>) {
    std::thread::spawn(move || {
        let mut kept = Kept::default();
        let mut block = [0; 1 << 14];
        // A stream with a read error counts as closed.
        while let Ok(n @ 1..) = from.read(&mut block) {
            kept.n_all += n as u64;
            let room = max.saturating_sub(kept.bytes.len() as u64);
            let n = n.min(usize::try_from(room).unwrap_or(usize::MAX));
            kept.bytes.extend_from_slice(&block[..n]);
        }
        // The receiver is gone if the call has ended.
        let _ = sender.send(Event::Written(stream, kept));
    });
}

impl Kept {
    /// As text, with a note if it was cut.
    fn text(&self, max: u64) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let n_cut = self.n_all.saturating_sub(self.bytes.len() as u64);
        match n_cut {
            0 => text.into_owned(),
            n => {
                let more = count(usize::try_from(n).unwrap_or(usize::MAX), "more byte");
                let text = text.trim_end_matches('\u{fffd}');
                format!("{text}\n… cut: {more} than the {max} of strew mcp --max-output\n")
            }
        }
    }
}
