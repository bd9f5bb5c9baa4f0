//! Shared by tests and `cargo xtask`: a real control plane on this machine ([`lab`]), and files that are made from the
//! code ([`generated`]).

pub mod generated;
pub mod lab;
