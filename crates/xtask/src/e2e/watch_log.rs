//! What a watch has told of a namespace's pods, from the first to the last: `kubectl get pods --watch`, begun anew when
//! the API server ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::Context;
use xtask::lab::now;

use super::stage::Stage;

/// A pod, as long as it was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) name: String,
    /// Every node that it was on: never more than one.
    pub(super) nodes: BTreeSet<String>,
    /// When it was first seen on one.
    pub(super) bound: Option<Instant>,
}

/// Watches until it is dropped.
pub(super) struct WatchLog {
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
    child: Arc<Mutex<Option<Child>>>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl WatchLog {
    /// Of the case's namespace.
    pub(super) fn start(stage: &Stage) -> anyhow::Result<Self> {
        let line = "--output=jsonpath={.metadata.uid} {.metadata.name} {.spec.nodeName}{\"\\n\"}";
        let namespace = format!("--namespace={}", stage.namespace);
        let mut command = stage
            .kubectl()
            .command(&["get", "pods", "--watch", line, &namespace]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let child = Arc::new(Mutex::new(None));
        let is_over = Arc::new(AtomicBool::new(false));
        let (to_seen, to_child, told) = (seen.clone(), child.clone(), is_over.clone());
        let reader = std::thread::Builder::new().name("watch".to_owned());
        let reader = reader.spawn(move || {
            // kubectl ends by itself when the API server is gone; the next one begins with a list.
            while !told.load(Ordering::Acquire) {
                let Ok(mut kubectl) = command.spawn() else {
                    return;
                };
                let output = kubectl.stdout.take();
                *lock(&to_child) = Some(kubectl);
                // Told between the look and the start: nobody would end this one.
                if told.load(Ordering::Acquire) {
                    end(&to_child);
                }
                let lines = output.into_iter().flat_map(|o| BufReader::new(o).lines());
                for line in lines.map_while(Result::ok) {
                    take_in(&mut lock(&to_seen), &line);
                }
                end(&to_child);
            }
        });
        Ok(Self {
            seen,
            child,
            is_over,
            reader: Some(reader.context("starting a watch")?),
        })
    }

    /// Each pod that was ever there, by uid.
    pub(super) fn seen(&self) -> BTreeMap<String, Seen> {
        lock(&self.seen).clone()
    }

    /// How many pods other than these have been on a node.
    pub(super) fn n_bound_beside(&self, known: &BTreeSet<String>) -> usize {
        let seen = lock(&self.seen);
        let others = seen.iter().filter(|(uid, _)| !known.contains(*uid));
        others.filter(|(_, pod)| pod.bound.is_some()).count()
    }

    /// When pods were first seen on a node, from this moment on, in order.
    pub(super) fn bound_after(&self, moment: Instant) -> Vec<Instant> {
        let seen = lock(&self.seen);
        let bound = seen.values().filter_map(|pod| pod.bound);
        let mut bound: Vec<Instant> = bound.filter(|&at| at > moment).collect();
        bound.sort_unstable();
        bound
    }
}

impl Drop for WatchLog {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        end(&self.child);
        if let Some(reader) = self.reader.take() {
            // It cannot panic, and nobody is left to tell.
            let _ = reader.join();
        }
    }
}

fn take_in(seen: &mut BTreeMap<String, Seen>, line: &str) {
    let mut words = line.split(' ');
    let (Some(uid), Some(name)) = (words.next(), words.next()) else {
        return;
    };
    let pod = seen.entry(uid.to_owned()).or_default();
    name.clone_into(&mut pod.name);
    if let Some(node) = words.next().filter(|node| !node.is_empty()) {
        pod.nodes.insert(node.to_owned());
        pod.bound.get_or_insert_with(now);
    }
}

fn end(child: &Mutex<Option<Child>>) {
    if let Some(mut child) = lock(child).take() {
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn lines_of_a_watch_are_pods_with_their_nodes() {
    let mut seen = BTreeMap::new();
    for line in ["u p-1 ", "v p-2 n", "u p-1 n", "u p-1 n", ""] {
        take_in(&mut seen, line);
    }
    let nodes = |uid: &str| {
        seen[uid]
            .nodes
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (seen.len(), nodes("u"), nodes("v")),
        (2, vec!["n"], vec!["n"])
    );
    assert!(seen["u"].bound >= seen["v"].bound);
    assert_eq!(seen["v"].name, "p-2");
}
