//! Every event of a watch: `kubectl get KIND --watch`, restarted when the API server ends it.

use std::io::BufReader;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context;
use serde_json::Value;

use xtask_lab::lab::Kubectl;

use super::stage::Stage;

/// Follows a kind until it is dropped, and keeps a value that it derives from the events.
pub(crate) struct Follow<T> {
    seen: Arc<Mutex<T>>,
    child: Arc<Mutex<Option<Child>>>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl<T: Default + Send + 'static> Follow<T> {
    /// Follows the kind in the case's namespace.
    pub(super) fn start(
        stage: &Stage,
        kind: &str,
        take_in: impl Fn(&mut T, &str, &Value) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let namespace = format!("--namespace={}", stage.namespace);
        Self::within(stage.kubectl(), kind, &namespace, take_in)
    }

    /// Calls `take_in` with each event: its type (`ADDED`, `MODIFIED`, `DELETED`) and the object. A restarted watch
    /// begins with the objects that exist, as `ADDED`. `scope` is `--namespace=NAME` or `--all-namespaces`.
    pub(crate) fn within(
        kubectl: &Kubectl,
        kind: &str,
        scope: &str,
        take_in: impl Fn(&mut T, &str, &Value) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let args = [
            "get",
            kind,
            "--watch",
            "--output-watch-events",
            "--output=json",
            scope,
        ];
        let mut command = kubectl.command(&args);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let seen = Arc::new(Mutex::new(T::default()));
        let child = Arc::new(Mutex::new(None));
        let is_over = Arc::new(AtomicBool::new(false));
        let (to_seen, to_child, told) = (seen.clone(), child.clone(), is_over.clone());
        let reader = std::thread::Builder::new().name("follow".to_owned());
        let reader = reader.spawn(move || {
            while !told.load(Ordering::Acquire) {
                let Ok(mut kubectl) = command.spawn() else {
                    return;
                };
                let output = kubectl.stdout.take();
                *lock(&to_child) = Some(kubectl);
                // The end came between the look and the start: nothing else would end this child.
                if told.load(Ordering::Acquire) {
                    end(&to_child);
                }
                let output = output.map(BufReader::new);
                let events = output.map(|o| serde_json::Deserializer::from_reader(o).into_iter());
                for event in events.into_iter().flatten().map_while(Result::ok) {
                    let event: Value = event;
                    let of_type = event["type"].as_str().unwrap_or_default();
                    take_in(&mut lock(&to_seen), of_type, &event["object"]);
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

    /// Changes the kept value.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut T)) {
        change(&mut lock(&self.seen));
    }

    /// Looks at the kept value.
    pub(super) fn look<A>(&self, look: impl FnOnce(&T) -> A) -> A {
        look(&lock(&self.seen))
    }
}

impl<T> Drop for Follow<T> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        end(&self.child);
        if let Some(reader) = self.reader.take() {
            // `take_in` may have panicked: the case has failed then.
            drop(reader.join());
        }
    }
}

fn end(child: &Mutex<Option<Child>>) {
    if let Some(mut child) = lock(child).take() {
        // The child may have ended by itself.
        drop(child.kill());
        drop(child.wait());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
