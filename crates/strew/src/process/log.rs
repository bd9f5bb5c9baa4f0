//! The log of a process.

use std::io::{self, Write};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use strew_manifest::printable::printable_line;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::context::Context;
use crate::failure::Failure;

/// The level and format of the log.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "What it tells")]
pub(crate) struct LogArgs {
    /// The level of the log: 0 to 3 what an operator needs, 4 and 5 every decision, 6 and more everything
    #[arg(long, value_name = "N", default_value_t = 2)]
    v: u8,
    /// The format of the log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    logging_format: LogFormat,
}

/// The values of `--logging-format`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum LogFormat {
    /// One line per event, for people
    Text,
    /// One object per event, for programs
    Json,
}

/// The filter for a level of `--v`.
fn directives(v: u8) -> &'static str {
    match v {
        // kube logs each failed request; strew logs it once, with its meaning.
        0..=3 => "warn,kube_client=off,strew=info,strew_kube=info,strew_runtime=info",
        4..=5 => "info,strew=debug,strew_kube=debug,strew_runtime=debug",
        _ => "debug,strew=trace,strew_kube=trace,strew_runtime=trace",
    }
}

/// Sets up the log on standard error. `RUST_LOG` takes precedence over the flags.
pub(crate) fn start(args: &LogArgs, context: &Context) -> Result<(), Failure> {
    let directives = match context.quiet {
        true => "warn,kube_client=off",
        false => directives(args.v.max(context.verbose * 2 + 2)),
    };
    let filter = EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(directives));
    let log = subscriber(filter, args.logging_format, std::io::stderr);
    let done = log.try_init();
    strew_kube::panics::install();
    done.map_err(|error| Failure::outside(anyhow!("the log cannot be started: {error}")))
}

/// The layer that writes lines.
fn subscriber<W: Write + 'static>(
    filter: EnvFilter,
    format: LogFormat,
    to: impl Fn() -> W + Send + Sync + 'static,
) -> Box<dyn tracing::Subscriber + Send + Sync> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false);
    match format {
        LogFormat::Text => {
            let lines = move || Lines(to());
            Box::new(builder.with_target(false).with_writer(lines).finish())
        }
        // Strings in JSON are escaped already.
        LogFormat::Json => Box::new(builder.with_writer(to).json().flatten_event(true).finish()),
    }
}

/// Writes each event as one line of printable text: names and messages of objects may hold any characters.
struct Lines<W>(W);

impl<W: Write> Write for Lines<W> {
    /// A complete event: events are written at once.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        writeln!(self.0, "{}", printable_line(text))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The filter for a level of `--v`.
    fn logged(v: u8, format: LogFormat, f: impl FnOnce()) -> String {
        let written = Written::default();
        let to = written.clone();
        let log = subscriber(EnvFilter::new(directives(v)), format, move || to.clone());
        tracing::subscriber::with_default(log, f);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn decisions_are_told_from_4_on() {
        for (v, is_told) in [(0, false), (3, false), (4, true), (5, true), (6, true)] {
            let decide = || tracing::debug!(target: "strew::decision", pod = "shop/web-1", "bind");
            let text = logged(v, LogFormat::Text, decide);
            assert_eq!(
                text.contains("bind pod=\"shop/web-1\""),
                is_told,
                "{v}: {text}"
            );
        }
    }

    #[test]
    fn an_event_is_one_line_of_text_whatever_names_hold() {
        let name = "web\nERROR fake \x1b[31m\u{9b}\u{202e}";
        let warn = || tracing::warn!(pod = %format_args!("shop/{name}"), "refused: {name}");
        let text = logged(2, LogFormat::Text, warn);
        let line = text.strip_suffix('\n').unwrap();
        assert_eq!(printable_line(line), line);
        assert!(line.contains("pod=shop/web\\u{a}ERROR fake"), "{line}");
        let json = logged(2, LogFormat::Json, warn);
        assert_eq!(json.lines().count(), 1);
        let event: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(event["pod"], format!("shop/{name}"));
    }
}
