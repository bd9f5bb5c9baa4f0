//! strew spreads workloads over failure domains, explains placements, and simulates them before they ship.
//!
//! This crate connects arguments to the other crates: files in, reports out. Reading order: [`arguments`], [`inputs`]
//! (the input), [`configuration`] (the file of the scheduler's), [`scenario`] (plays a Scenario, or the built-in story,
//! by [`strew_suite`]), [`strew_view`] (a moment as plain values), [`spread_explain`] (the WorkloadSpread of a pod),
//! [`text`] (for people), [`html`] (a page), [`sarif`] (for code scanning), [`simulate`], [`merge`], [`sweep`],
//! [`audit`], [`rebalance`], [`defaults`], [`explain`], [`lint`], [`diff`], [`import`], [`place`], [`snapshot`], [`install`], [`uninstall`], [`schema`], [`mcp`],
//! [`scheduler`], [`controller`] and [`webhook`] (the commands), [`process`] (shared by commands that run until a
//! signal), [`cluster`] (a live one), [`complete`] (shell completion), [`output`] (formats), [`manifest`] (objects for kubectl apply), [`diagnostics`], [`junit`],
//! [`explain_output`], [`what_if`] (changes of `--what-if`), [`parts`] (names of nodes and domains), [`terminal`] and
//! [`destination`] (where output goes), [`platform`] (what differs between operating systems), [`failure`], [`mod@reference`] (docs/commands.md).

#![cfg_attr(
    not(feature = "cluster"),
    allow(dead_code, reason = "commands of clusters use the rest")
)]

mod arguments;
mod audit;
mod cluster;
mod complete;
mod configuration;
mod context;
#[cfg(feature = "cluster")]
mod controller;
mod defaults;
mod destination;
mod diagnostics;
mod diff;
mod explain;
mod explain_output;
mod explain_text;
mod failure;
mod html;
mod import;
mod inputs;
#[cfg(feature = "cluster")]
mod install;
mod junit;
mod lint;
mod manifest;
mod mcp;
mod memory;
mod merge;
mod output;
mod parts;
mod place;
mod platform;
#[cfg(feature = "cluster")]
mod process;
mod progress;
mod rebalance;
mod recorded;
mod reference;
mod sarif;
mod scenario;
#[cfg(feature = "cluster")]
mod scheduler;
mod schema;
mod simulate;
mod snapshot;
mod spread_explain;
#[cfg(feature = "cluster")]
mod sweep;
mod terminal;
mod text;
#[cfg(feature = "cluster")]
mod ui;
#[cfg(feature = "cluster")]
mod uninstall;
mod version;
#[cfg(feature = "cluster")]
mod webhook;
mod what_if;
mod workloads;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(arguments::run(std::env::args_os().collect()))
}
