//! strew spreads workloads over failure domains, says why, and proves it before you ship.
//!
//! This crate is arguments and wiring: files in, reports out. Reading order: [`arguments`], [`inputs`] and [`nodes`]
//! (what there is), [`configuration`] and [`schedulers`] (who decides), [`load`] (objects, admitted), [`world`] (the
//! cluster of them), [`deploy`] (pods onto nodes), [`live`] (a moment of the simulated
//! cluster as a world), [`view`], [`spread`] and [`usage`] (the result as values, in
//! [`natural_order`]), [`report`] (for programs), [`text`] (for people), [`simulate`] and [`explain`] (the commands),
//! [`explain_output`], [`terminal`], [`failure`].

mod arguments;
mod configuration;
mod deploy;
mod explain;
mod explain_output;
mod explain_text;
mod failure;
mod inputs;
mod label_query;
#[allow(dead_code, reason = "scenarios will be the first to play")]
mod live;
mod load;
mod natural_order;
mod nodes;
mod progress;
mod report;
#[allow(dead_code, reason = "scenarios will be the first to play")]
mod schedulers;
mod simulate;
mod spread;
mod terminal;
mod text;
mod typename;
mod usage;
mod version;
#[allow(dead_code, reason = "scenarios will be the first to play")]
mod view;
#[allow(dead_code, reason = "scenarios will be the first to play")]
mod workload;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(arguments::run(std::env::args_os().collect()))
}
