//! What tests and the command `cargo xtask` share: a real control plane on this machine ([`lab`]), and
//! files that are made from the code ([`generated`]).

pub mod generated;
pub mod lab;
