//! What programs of other platforms must answer: the same as the one of this machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, ensure};

use super::build::Features;
use super::platform::Platform;
use super::run::Runner;

/// A call of the program.
struct Call {
    arguments: &'static [&'static str],
    exit: i32,
    /// A part of what it says, on stdout or stderr.
    says: &'static str,
    of: Of,
}

/// Which programs are called, and what their answer is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Each program. All that it says is what this machine's program says.
    Each,
    /// Each program. The rest of what it says is the system's, or follows from its features.
    EachAlone,
    /// The program with these features.
    Features(Features),
    /// The program of this platform with these features.
    Platform(Platform, Features),
}

const FILES: Of = Of::Features(Features::Files);
const ALL: Of = Of::Features(Features::All);
const FILES_OF_WINDOWS: Of = Of::Platform(Platform::Windows, Features::Files);
const ALL_OF_WINDOWS: Of = Of::Platform(Platform::Windows, Features::All);

/// Written into [`FOLDER`] before the calls.
const FOLDER: &str = "target/platforms/input";

macro_rules! calls {
    ($($of:expr, $exit:literal, $says:literal: $($word:literal)+;)+) => {
        &[$(Call {
            arguments: &[$($word),+],
            exit: $exit,
            says: $says,
            of: $of,
        }),+]
    };
}

const CALLS: &[Call] = calls! {
    // README's first command.
    Of::Each, 0, "20 seeds played": "simulate" "examples/shop.yaml";
    Of::Each, 0, "\"kind\": \"SimulationReport\"": "simulate" "examples/shop.yaml" "-o" "json";
    Of::Each, 0, "16 placed": "simulate" "examples/shop.yaml" "--ascii" "--color=always" "--until" "deploy";
    Of::Each, 0, "Any one of these changes would place it": "explain" "deployment/web" "examples/tight.yaml";
    Of::Each, 0, "DEGRADED": "audit" "examples/shop.yaml";
    Of::Each, 0, "rollout-uneven": "lint" "--rules";
    // The rest are the names of its commands.
    Of::EachAlone, 0, "Register-ArgumentCompleter": "completion" "powershell";
    Of::Each, 0, "kube-scheduler v1.36.3": "version";
    Of::Each, 2, "unexpected argument": "simulate" "--nods" "3";
    // Folders: the order of files, and their names.
    Of::Each, 2, "--> examples/placement/": "lint" "examples" "--color=never";
    Of::Each, 2, "\"examples/placement/": "lint" "examples" "-o" "sarif";
    // Ends of lines, encodings, and a text that is nested deeper than stacks are deep.
    Of::Each, 1, "crlf.yaml:": "lint" "target/platforms/input/crlf.yaml";
    Of::Each, 1, "utf16.yaml:": "lint" "target/platforms/input/utf16.yaml";
    Of::Each, 2, "deep.yaml": "lint" "target/platforms/input/deep.yaml";
    // The rest of the sentence is the system's.
    Of::EachAlone, 3, "cannot read nowhere.yaml": "simulate" "nowhere.yaml";
    FILES, 2, "built without the feature `cluster`": "scheduler";
    FILES_OF_WINDOWS, 2, "\"examples/placement/": "lint" ".\\examples" "-o" "sarif";
    FILES_OF_WINDOWS, 1, "--> target/platforms/input/crlf.yaml:": "lint" "target\\platforms\\input\\crlf.yaml";
    ALL, 3, "does not answer": "snapshot" "--kubeconfig" "target/platforms/input/kubeconfig.yaml";
    ALL_OF_WINDOWS, 2, "runs on Linux and macOS only": "scheduler" "--kubeconfig" "target/platforms/input/kubeconfig.yaml";
    ALL_OF_WINDOWS, 2, "runs on Linux and macOS only": "webhook" "--kubeconfig" "target/platforms/input/kubeconfig.yaml";
    ALL_OF_WINDOWS, 2, "runs on Linux and macOS only": "controller" "--kubeconfig" "target/platforms/input/kubeconfig.yaml";
    ALL, 0, "kind: Deployment": "install" "scheduler" "--image" "example.com/strew:1";
};

/// Makes all calls, and says all that is wrong.
pub(super) fn check(top: &Path, runner: &Runner, features: Features) -> anyhow::Result<()> {
    let native = xtask::program("strew", false)?;
    let folder = top.join(FOLDER);
    write_inputs(top, &folder)?;
    let mut wrong = Vec::new();
    let mut n_calls = 0;
    for call in CALLS {
        let is_called = match call.of {
            Of::Each | Of::EachAlone => true,
            Of::Features(of) => of == features,
            Of::Platform(platform, of) => platform == runner.platform() && of == features,
        };
        if is_called {
            n_calls += 1;
            wrong.extend(call.wrong(top, runner, &native)?);
        }
    }
    wrong.extend(wrong_fix(top, runner, &native)?);
    println!("{n_calls} calls and a fix, {} wrong", wrong.len());
    ensure!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    Ok(())
}

impl Call {
    /// What is wrong with the answer of the platform's program; `None` if nothing is.
    fn wrong(&self, top: &Path, runner: &Runner, native: &Path) -> anyhow::Result<Option<String>> {
        let (said, code) = said(runner.command(self.arguments), top)?;
        let command = self.arguments.join(" ");
        if code != Some(self.exit) {
            let exit = self.exit;
            return Ok(Some(format!(
                "strew {command}: exit code {code:?}, not {exit}\n{said}"
            )));
        }
        if !said.contains(self.says) {
            return Ok(Some(format!(
                "strew {command}: it lacks {:?}\n{said}",
                self.says
            )));
        }
        if self.of != Of::Each {
            return Ok(None);
        }
        let mut here = Command::new(native);
        here.args(self.arguments);
        let (expected, _) = self::said(here, top)?;
        let difference = difference(&expected, &said);
        Ok(difference.map(|line| format!("strew {command}: {line}")))
    }
}

/// The first line that differs; `None` if none does.
fn difference(expected: &str, said: &str) -> Option<String> {
    if expected == said {
        return None;
    }
    let mut pairs = expected.split('\n').zip(said.split('\n'));
    let pair = pairs.find(|(expected, said)| expected != said);
    Some(match pair {
        Some((here, there)) => format!("here and there:\n  {here:?}\n  {there:?}"),
        None => "one says more lines than the other".to_owned(),
    })
}

/// Stdout and stderr after it, and the exit code.
fn said(mut command: Command, top: &Path) -> anyhow::Result<(String, Option<i32>)> {
    let output: Output = command
        .current_dir(top)
        .env("LC_ALL", "C.UTF-8")
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .output()
        .with_context(|| format!("{command:?}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).with_context(|| format!("{command:?}"))?;
    Ok((text, output.status.code()))
}

/// How deep the text of `deep.yaml` is nested.
const DEPTH: usize = 100_000;

fn write_inputs(top: &Path, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let shop = fs::read_to_string(top.join("examples/shop.yaml"))?;
    let shop = shop.replace("matchLabelKeys", "# matchLabelKeys");
    let crlf = shop.replace('\n', "\r\n");
    let units = "\u{feff}".encode_utf16().chain(crlf.encode_utf16());
    let utf16: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    fs::write(folder.join("crlf.yaml"), &crlf)?;
    fs::write(folder.join("utf16.yaml"), utf16)?;
    fs::write(folder.join("deep.yaml"), "[".repeat(DEPTH))?;
    fs::write(
        folder.join("kubeconfig.yaml"),
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
         contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n",
    )?;
    Ok(())
}

/// Has both programs fix the same file with CRLF.
fn wrong_fix(top: &Path, runner: &Runner, native: &Path) -> anyhow::Result<Option<String>> {
    let name = format!("{FOLDER}/fixed.yaml");
    let (from, file) = (top.join(FOLDER).join("crlf.yaml"), top.join(&name));
    let arguments = ["lint", "--fix", name.as_str()];
    let mut texts = Vec::new();
    let mut here = Command::new(native);
    here.args(arguments);
    for command in [here, runner.command(&arguments)] {
        fs::copy(&from, &file)?;
        said(command, top)?;
        texts.push(fs::read_to_string(&file)?);
    }
    let is_fixed = texts[0] != fs::read_to_string(from)?;
    ensure!(is_fixed, "strew lint --fix changes {name} on this machine");
    let difference = difference(&texts[0], &texts[1]);
    Ok(difference.map(|line| format!("strew lint --fix {name}: {line}")))
}
