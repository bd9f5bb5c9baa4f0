//! strew

fn main() {}
