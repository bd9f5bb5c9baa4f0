//! What tests and the command `cargo xtask` share: a real control plane on this machine ([`lab`]).

pub mod lab;
