//! Reads files and prints what is wrong with them: `cargo run --example read -- FILE…`.

use std::error::Error;

use strew_manifest::read::{Sources, read, render};

fn main() -> Result<(), Box<dyn Error>> {
    let mut sources = Sources::new();
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        sources.add(path, bytes);
    }
    let reading = read(&sources);
    print!("{}", render(&reading.diagnostics, &sources, false));
    println!("{} objects", reading.objects.len());
    Ok(())
}
