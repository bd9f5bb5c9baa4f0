//! strew

#[allow(dead_code, reason = "the command that shows it is not wired yet")]
mod explain_text;

fn main() {}
