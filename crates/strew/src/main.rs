//! strew spreads workloads over failure domains, says why, and proves it before you ship.
//!
//! This crate is arguments and wiring: files in, reports out. Reading order: [`arguments`], [`inputs`] and [`nodes`]
//! (what there is), [`configuration`] and [`schedulers`] (who decides), [`load`] (objects, admitted), [`setup`] (a
//! simulated cluster of them), [`story`] (what it lives through) and [`skews`] (how uneven it was on the way), [`live`]
//! (a moment of it as a [`world`]), [`view`], [`spread`] and [`usage`] (the moment as values, in [`natural_order`]),
//! [`blocked`] (why a pod is nowhere), [`spread_explain`] (what WorkloadSpreads say of it), [`report`] (for programs),
//! [`text`] (for people), [`simulate`], [`explain`], [`lint`], [`diff`], [`import`], [`place`], [`snapshot`],
//! [`install`], [`scheduler`], [`controller`] and [`webhook`] (the commands), [`process`] (what those share that go on until a signal), [`cluster`]
//! (one that is there), [`scenario`] (files with a Scenario), [`html`] (what happened, as a page), [`explain_output`],
//! [`terminal`], [`failure`].

mod arguments;
mod blocked;
mod cluster;
mod configuration;
mod controller;
mod diff;
mod explain;
mod explain_output;
mod explain_text;
mod failure;
mod html;
mod import;
mod inputs;
mod install;
mod label_query;
mod life;
mod lint;
mod live;
mod load;
mod natural_order;
mod nodes;
mod place;
mod process;
mod progress;
mod report;
mod scenario;
mod scheduler;
mod schedulers;
mod setup;
mod simulate;
mod skews;
mod snapshot;
mod spread;
mod spread_explain;
mod story;
mod terminal;
mod text;
mod typename;
mod usage;
mod version;
mod view;
mod webhook;
mod workload;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(arguments::run(std::env::args_os().collect()))
}
