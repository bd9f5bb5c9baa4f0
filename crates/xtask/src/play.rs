//! Makes the page in which strew runs as WebAssembly, and tries it in a browser: `cargo xtask play`.
//!
//! The result, `target/play/index.html`, is one file that needs no network and no server; the notices of others are beside
//! it.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use crate::clients::NOT_INSTALLED;
use crate::dist::{NOTICES, notices_of_browser};
use crate::platforms::{TARGET_OF_BROWSER, program_of_browser};
use crate::web::{TYPES, has_packages, is_done, is_tested};

/// Options of `cargo xtask play`.
#[derive(Args)]
pub(crate) struct Play {
    /// Take the program that was built last; only the page around it is made anew
    #[arg(long)]
    built: bool,
    /// Try the page in a real browser (needs chromium), and compare its answers with this machine's program
    #[arg(long)]
    test: bool,
}

/// The folder that is published: the page, and the notices that licences of others ask for.
const OUT: &str = "target/play";

/// Builds the program and the page, and tests it if asked to.
///
/// Exit code 1 if a check failed, [`NOT_INSTALLED`] if something that it needs is not installed.
pub(crate) fn run(top: &Path, options: &Play) -> anyhow::Result<ExitCode> {
    let folder = top.join("web");
    if !has_packages(&folder)? {
        return Ok(ExitCode::from(NOT_INSTALLED));
    }
    let program = match program_of_browser(top, options.built)? {
        Ok(program) => program.display().to_string(),
        Err(missing) => {
            println!("not built: {}", missing.join("; "));
            return Ok(ExitCode::from(NOT_INSTALLED));
        }
    };
    let out = top.join(OUT);
    std::fs::create_dir_all(&out)?;
    std::fs::write(out.join(NOTICES), notices_of_browser(TARGET_OF_BROWSER)?)?;
    let page = out.join("index.html").display().to_string();
    let build = ["node", "build-play.mjs", &program, &page];
    for words in [TYPES, &build] {
        if !is_done(&folder, words)? {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(match !options.test || is_tested(&folder, &TESTS)? {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

const TESTS: [&str; 1] = ["test/play.test.mjs"];
