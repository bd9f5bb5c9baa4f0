//! strew spreads workloads over failure domains, says why, and proves it before you ship.
//!
//! This crate is arguments and wiring: files in, reports out. Reading order: [`arguments`], [`inputs`] and [`nodes`]
//! (what there is), [`configuration`] (who decides), [`scenario`] (what is played, of a file or the story),
//! [`strew_view`] (a moment of it as plain values), [`spread_explain`] (what WorkloadSpreads say of a pod), [`report`]
//! (for programs), [`text`] (for people), [`html`] (what happened, as a page), [`sarif`] (findings, for code scanning),
//! [`simulate`], [`merge`], [`sweep`], [`explain`], [`lint`], [`diff`], [`import`], [`place`], [`snapshot`], [`install`],
//! [`uninstall`], [`schema`], [`mcp`], [`scheduler`], [`controller`] and [`webhook`] (the commands), [`process`] (what
//! those share that go on until a signal), [`cluster`] (one that is there), [`complete`] (what a shell asks),
//! [`explain_output`], [`what_if`] (changes that are asked about), [`parts`] (nodes and domains that a person names),
//! [`terminal`] and [`destination`] (where output goes), [`digest`], [`failure`], [`mod@reference`] (docs/commands.md).

mod arguments;
mod cluster;
mod complete;
mod configuration;
mod controller;
mod destination;
mod diff;
mod digest;
mod explain;
mod explain_output;
mod explain_text;
mod failure;
mod html;
mod import;
mod inputs;
mod install;
mod label_query;
mod lint;
mod mcp;
mod memory;
mod merge;
mod nodes;
mod parts;
mod place;
mod process;
mod progress;
mod recorded;
mod reference;
mod report;
mod sarif;
mod scenario;
mod scheduler;
mod schema;
mod shown;
mod simulate;
mod snapshot;
mod spread_explain;
mod storage;
mod sweep;
mod terminal;
mod text;
mod uninstall;
mod version;
mod webhook;
mod what_if;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(arguments::run(std::env::args_os().collect()))
}
