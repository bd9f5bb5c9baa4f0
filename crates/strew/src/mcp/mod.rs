//! `strew mcp`: a server of the Model Context Protocol on standard input and output, for assistants. Four tools, which
//! only read.
//!
//! Reading order: [`lines`] (input), [`protocol`] (requests and answers), [`tools`] (the tools), [`call`] (a command of
//! strew in a process of its own, within bounds).
//!
//! The protocol is implemented here and not taken from the crate rmcp: only four methods on one stream would be used,
//! and rmcp brings chrono (which only CEL may use) and a second implementation of SHA-256.
//!
//! Source: Model Context Protocol, revision 2025-06-18: Lifecycle, Transports (stdio), Tools, Cancellation.

mod call;
mod lines;
mod protocol;
mod tools;

use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};
use strew_manifest::duration::GoDuration;

use crate::context::Context;
use crate::failure::Failure;
use crate::inputs::bytes;
use crate::platform::real_path;
use call::{Event, Limits};
use lines::{Line, Lines};
use protocol::{Incoming, Request, failed};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM mcp                                        files come as text in the arguments of a call
  PROGRAM mcp --root .                               calls may also name files below this folder
  PROGRAM mcp --time-limit 2m --max-output 1Mi
  claude mcp add strew -- strew mcp --root .         for example; docs/mcp.md has other programs

It speaks on standard input and output only, opens no connection, and writes no file but copies of a call's own
texts in a temporary folder, which go with the call. Tools: simulate, explain, audit, lint, place.

Exit codes: 0 the input ended; 2 wrong usage; 3 the output could not be written.";

/// Arguments of `strew mcp`.
#[derive(Args, Debug)]
pub(crate) struct McpArgs {
    /// Allow calls to name files and folders below this folder; without it, files are passed only as text
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
    /// The longest time of a call
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = time_limit)]
    time_limit: Duration,
    /// The largest size of the files of a call
    #[arg(long, value_name = "SIZE", default_value = "8Mi", value_parser = bytes)]
    max_input: u64,
    /// The largest size of a result
    #[arg(long, value_name = "SIZE", default_value = "256Ki", value_parser = bytes)]
    max_output: u64,
    /// Do not begin a simulation that is estimated to need more memory
    #[arg(long, value_name = "SIZE", default_value = "1Gi", value_parser = bytes)]
    max_memory: u64,
}

/// The largest number of calls at the same time; more are refused.
const CALLS_MAX: usize = 4;

fn time_limit(text: &str) -> Result<Duration, String> {
    let duration = GoDuration::parse(text).filter(|duration| *duration > GoDuration::ZERO);
    let duration = duration.ok_or_else(|| "no duration such as 30s or 2m".to_owned());
    duration.map(GoDuration::to_std)
}

pub(crate) fn run(args: &McpArgs, _: &Context) -> Result<u8, Failure> {
    let root = args.root.as_ref().map(|root| {
        let real = real_path(root).ok().filter(|real| real.is_dir());
        real.ok_or_else(|| Failure::input(anyhow!("--root {}: no such folder", root.display())))
    });
    let limits = Limits {
        root: root.transpose()?,
        time: args.time_limit,
        input: args.max_input,
        output: args.max_output,
        memory: args.max_memory,
        program: std::env::current_exe().map_err(Failure::outside)?,
    };
    let server = Arc::new(Server {
        limits,
        calls: Mutex::default(),
        output: Mutex::new(None),
    });
    let stdin = BufReader::new(std::io::stdin());
    // Texts are escaped in a message, and take more than their bytes.
    let message_max = usize::try_from(args.max_input.saturating_mul(2)).unwrap_or(usize::MAX);
    let mut calls = Vec::new();
    for line in Lines::new(stdin, message_max.saturating_add(MESSAGE_FRAME)) {
        let line = line.map_err(Failure::outside)?;
        calls.extend(server.take(line));
        calls.retain(|call: &std::thread::JoinHandle<()>| !call.is_finished());
        if server.is_deaf() {
            break;
        }
    }
    // The client is gone: running calls are cancelled.
    server.cancel_all();
    for call in calls {
        // A call that panicked has printed a message.
        let _ = call.join();
    }
    match lock(&server.output).take() {
        Some(error) => Err(Failure::outside(error)),
        None => Ok(0),
    }
}

/// The bytes of a message besides its texts.
const MESSAGE_FRAME: usize = 1 << 16;

/// The state that all calls share.
struct Server {
    limits: Limits,
    /// The cancellation of each running call, by the request's id as text.
    calls: Mutex<HashMap<String, Sender<Event>>>,
    /// The error after which nothing can be written. Locked while a message is written.
    output: Mutex<Option<std::io::Error>>,
}

/// A lock whose holder panicked guards valid values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Handles a message. A call runs in a thread of its own, which is returned.
    fn take(self: &Arc<Self>, line: Line) -> Option<std::thread::JoinHandle<()>> {
        let text = match line {
            Line::Text(text) => text,
            Line::TooLong(max) => {
                let what = format!("a message has more than {max} bytes (--max-input allows more)");
                self.send(&failed(&Value::Null, protocol::INVALID_REQUEST, &what));
                return None;
            }
        };
        let request = match protocol::parse(&text) {
            Incoming::Request(request) => request,
            Incoming::Cancelled(id) => {
                if let Some(call) = lock(&self.calls).get(&id.to_string()) {
                    // It may have ended already.
                    let _ = call.send(Event::Cancelled);
                }
                return None;
            }
            Incoming::Nothing => return None,
            Incoming::Wrong(answer) => {
                self.send(&answer);
                return None;
            }
        };
        match request.method.as_str() {
            "tools/call" => self.call(request),
            _ => {
                self.send(&protocol::answer(&request, tools::list));
                None
            }
        }
    }

    fn call(self: &Arc<Self>, request: Request) -> Option<std::thread::JoinHandle<()>> {
        let Request { id, params, .. } = request;
        let asked = match tools::parse(&params) {
            Ok(asked) => asked,
            Err(tools::Refusal::NoTool(what)) => {
                self.send(&failed(&id, protocol::INVALID_PARAMS, &what));
                return None;
            }
            Err(tools::Refusal::Arguments(what)) => {
                self.send(&protocol::done(&id, &tools::error(&what)));
                return None;
            }
        };
        let key = id.to_string();
        let (sender, events) = channel();
        {
            let mut calls = lock(&self.calls);
            let refusal = match (calls.len() < CALLS_MAX, calls.contains_key(&key)) {
                (true, false) => None,
                (false, _) => Some(format!("{CALLS_MAX} calls are under way: ask again later")),
                (_, true) => Some("a call with this id is under way".to_owned()),
            };
            if let Some(refusal) = refusal {
                drop(calls);
                self.send(&failed(&id, protocol::INVALID_REQUEST, &refusal));
                return None;
            }
            calls.insert(key.clone(), sender.clone());
        }
        let server = Arc::clone(self);
        let work = move || {
            let result = call::run(&asked, &server.limits, &sender, &events);
            lock(&server.calls).remove(&key);
            // A cancelled request has no answer.
            if let Some(result) = result {
                server.send(&protocol::done(&id, &result));
            }
        };
        Some(std::thread::spawn(work))
    }

    /// Writes a message.
    fn send(&self, message: &Value) {
        let mut failure = lock(&self.output);
        if failure.is_some() {
            return;
        }
        let mut out = std::io::stdout().lock();
        let text = format!("{message}\n");
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            *failure = Some(error);
        }
    }

    /// True if the client is gone.
    fn is_deaf(&self) -> bool {
        lock(&self.output).is_some()
    }

    fn cancel_all(&self) {
        #[allow(clippy::iter_over_hash_type, reason = "calls end in any order")]
        for call in lock(&self.calls).values() {
            // It may have ended already.
            let _ = call.send(Event::Cancelled);
        }
    }
}

/// The description of the server.
fn about() -> Value {
    json!({
        "serverInfo": {
            "name": "strew",
            "title": "strew: pods over failure domains",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "capabilities": {"tools": {}},
        "instructions": "Ask these tools instead of computing where Kubernetes puts pods. They decide exactly as \
                         kube-scheduler does, without a cluster: simulate (where do pods go, and what happens in a \
                         rollout or without a zone), explain (why is a pod Pending or where it is, and which single \
                         changes would place it), lint (mistakes in WorkloadSpreads and Placements), place (clusters \
                         for Placements of Open Cluster Management). Files are given as text; a dump of kubectl get -o \
                         json has the nodes of a cluster, and without nodes some are made up.",
    })
}
