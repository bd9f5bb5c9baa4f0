//! What a test's thread logs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

/// The lines that were logged.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Lines of this thread at every level, while the guard lives.
    pub(crate) fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let guard = log.take_this_thread();
        (log, guard)
    }

    /// Takes what this thread logs from now on, while the guard lives.
    pub(crate) fn take_this_thread(&self) -> tracing::subscriber::DefaultGuard {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(self.clone())
            .with_ansi(false)
            .without_time()
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        let bytes = self.0.lock().expect("no test panics while it logs");
        String::from_utf8(bytes.clone()).expect("logs are text")
    }

    /// The first line that contains a text.
    pub(crate) fn line(&self, text: &str) -> String {
        let all = self.text();
        let line = all.lines().find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("no {text:?} in:\n{all}"))
            .to_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("as above").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
