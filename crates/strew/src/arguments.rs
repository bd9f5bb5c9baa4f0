//! The command line: its arguments, and the command that they select.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

#[cfg(not(feature = "cluster"))]
use crate::cluster;
use crate::context::Context;
use crate::failure::Failure;
use crate::terminal::{self, Terminal};
use crate::{
    audit, complete, defaults, diff, explain, import, lint, mcp, merge, place, rebalance,
    reference, schema, simulate, snapshot, version,
};
#[cfg(feature = "cluster")]
use crate::{controller, install, scheduler, sweep, ui, uninstall, webhook};
use strew_suite::dump;

/// Pods over failure domains: where they go, why, and what would change it.
#[derive(Parser, Debug)]
#[command(
    name = "strew",
    version,
    propagate_version = true,
    max_term_width = 100
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Flags of every command.
#[derive(Args, Debug, Clone)]
struct Global {
    /// Colour the output
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    color: When,
    /// Draw with ASCII characters only
    #[arg(long, global = true, help_heading = "Global options")]
    ascii: bool,
    /// Print more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    verbose: u8,
    /// Print only the result
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Global options"
    )]
    quiet: bool,
}

/// When to colour.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// On a terminal, unless NO_COLOR is set; with CLICOLOR_FORCE everywhere
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl When {
    /// For both streams.
    fn choice(self) -> anstream::ColorChoice {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
    }
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Put the pods of manifests or of a cluster dump onto nodes, and show how they spread
    Simulate(simulate::SimulateArgs),
    /// Add up the summaries that simulate --shard wrote on several machines
    Merge(merge::MergeArgs),
    /// Print a Job that plays many seeds on many machines, or collect its results
    #[cfg(feature = "cluster")]
    Sweep(sweep::SweepArgs),
    /// Lose, shift and drain every zone: what is lost, and what would prevent it
    Audit(audit::AuditArgs),
    /// Evict pods until they are spread evenly again: a plan, simulated step by step
    Rebalance(rebalance::RebalanceArgs),
    /// Print policies that add default constraints to pods, or report what would change
    Defaults(defaults::DefaultsArgs),
    /// Explain why a pod is on its node, or why it is Pending
    Explain(explain::ExplainArgs),
    /// Find probable mistakes in manifests, with fixes that were tried
    Lint(lint::LintArgs),
    /// Serve the Model Context Protocol to an assistant, on standard input and output
    Mcp(mcp::McpArgs),
    /// Show what changes between two versions of manifests, or between two reports
    Diff(diff::DiffArgs),
    /// Make a Scenario of a recorded cluster, for simulate
    Import(import::ImportArgs),
    /// Choose clusters for Placements, and spread them over regions and zones
    Place(place::PlaceArgs),
    /// Write the objects of a cluster that decide into a file, for simulate and explain
    Snapshot(snapshot::SnapshotArgs),
    /// Serve a page for a browser on this machine: a cluster as it is, live or recorded, or what is played
    #[cfg(feature = "cluster")]
    Ui(ui::UiArgs),
    /// Schedule the pods of a cluster, in place of kube-scheduler or beside it
    #[cfg(feature = "cluster")]
    Scheduler(scheduler::SchedulerArgs),
    /// Run the controllers of WorkloadSpreads and Placements
    #[cfg(feature = "cluster")]
    Controller(controller::ControllerArgs),
    /// Run the webhook that puts pods into the subsets of their WorkloadSpreads
    #[cfg(feature = "cluster")]
    Webhook(webhook::WebhookArgs),
    /// Print manifests that install strew in a cluster
    #[cfg(feature = "cluster")]
    Install(install::InstallArgs),
    /// Print what to delete to uninstall a part of strew, in a safe order
    #[cfg(feature = "cluster")]
    Uninstall(uninstall::UninstallArgs),
    /// Print the JSON schema of a kind that strew reads or writes
    Schema(schema::SchemaArgs),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the version, and the version of Kubernetes whose decisions are matched
    Version(version::VersionArgs),
}

/// Runs a command line and returns the exit code.
pub(crate) fn run(args: Vec<OsString>) -> u8 {
    let program = program_name(args.first());
    if args.get(1).is_some_and(|word| word == complete::WORD) {
        let answer = complete::answer(command(program), &args[2..]);
        // The write fails only if the reader is gone.
        let _ = terminal::print(&answer);
        return 0;
    }
    if args.get(1).is_some_and(|word| word == reference::WORD) {
        return reference::run(command("strew"), &args[2..]);
    }
    #[cfg(not(feature = "cluster"))]
    if let Some(failure) = args
        .get(1)
        .and_then(|word| cluster::missing(word.to_str()?))
    {
        return Terminal::new(false).report(&failure);
    }
    let matches = match command(program).try_get_matches_from(&args) {
        Ok(matches) => matches,
        Err(error) if is_help(&error) => {
            let grouped = grouped(command(program), program).try_get_matches_from(args);
            return usage_exit(&grouped.err().unwrap_or(error));
        }
        Err(error) => return usage_exit(&error),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return usage_exit(&error),
    };
    cli.global.color.choice().write_global();
    let context = Context {
        terminal: Terminal::new(cli.global.ascii),
        program,
        quiet: cli.global.quiet,
        verbose: cli.global.verbose,
    };
    let done = match cli.command {
        Command::Simulate(args) => simulate::run(&args, &context),
        Command::Merge(args) => merge::run(&args, &context),
        #[cfg(feature = "cluster")]
        Command::Sweep(args) => sweep::run(&args, &context),
        Command::Audit(args) => audit::run(&args, &context),
        Command::Rebalance(args) => rebalance::run(&args, &context),
        Command::Defaults(args) => defaults::run(&args, &context),
        Command::Explain(args) => explain::run(&args, &context),
        Command::Lint(args) => lint::run(&args, &context),
        Command::Mcp(args) => mcp::run(&args, &context),
        Command::Diff(args) => diff::run(&args, &context),
        Command::Import(args) => import::run(&args, &context),
        Command::Place(args) => place::run(&args, &context),
        Command::Snapshot(args) => snapshot::run(&args, &context),
        #[cfg(feature = "cluster")]
        Command::Ui(args) => ui::run(&args, &context),
        #[cfg(feature = "cluster")]
        Command::Scheduler(args) => scheduler::run(&args, &context),
        #[cfg(feature = "cluster")]
        Command::Controller(args) => controller::run(&args, &context),
        #[cfg(feature = "cluster")]
        Command::Webhook(args) => webhook::run(&args, &context),
        #[cfg(feature = "cluster")]
        Command::Install(args) => install::run(&args, &context),
        #[cfg(feature = "cluster")]
        Command::Uninstall(args) => uninstall::run(&args, &context),
        Command::Schema(args) => schema::run(&args, &context),
        Command::Completion { shell } => complete(shell, program),
        Command::Version(args) => version::run(&args),
    };
    done.unwrap_or_else(|failure: Failure| context.terminal.report(&failure))
}

/// kubectl runs plugins under the name `kubectl-NAME`.
fn program_name(arg: Option<&OsString>) -> &'static str {
    let stem = arg.and_then(|arg| Path::new(arg).file_stem());
    match stem.is_some_and(|stem| stem == "kubectl-strew") {
        true => "kubectl strew",
        false => "strew",
    }
}

fn command(program: &'static str) -> clap::Command {
    let examples = |text: &str| {
        let text = text.replace("RESOURCES", dump::RESOURCES);
        text.replace("PROGRAM", program)
    };
    let command = Cli::command();
    // A subcommand that is changed goes to the end of the list: all are, in their order.
    let names: Vec<String> = command
        .get_subcommands()
        .map(|c| c.get_name().to_owned())
        .collect();
    #[cfg(feature = "cluster")]
    let command = with_examples_of_clusters(command, &examples);
    let command = with_examples(command, &examples);
    names
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |c| c))
        .bin_name(program)
}

/// The commands as the help of the program lists them. A program without a cluster has fewer.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Ask, of files or of a cluster",
        &[
            "simulate", "explain", "ui", "lint", "audit", "diff", "place",
        ],
    ),
    ("Make it even", &["rebalance", "defaults"]),
    (
        "Many seeds, recorded days",
        &["sweep", "merge", "snapshot", "import"],
    ),
    (
        "Run in a cluster",
        &["scheduler", "controller", "webhook", "install", "uninstall"],
    ),
    (
        "For programs and shells",
        &["mcp", "schema", "completion", "version"],
    ),
];

/// The help lists the commands in groups: clap writes each group, and the whole list is hidden. Only help needs it: it
/// costs more than all else at the start.
fn grouped(command: clap::Command, program: &str) -> clap::Command {
    let group = |&(heading, names): &(&'static str, &[&str])| {
        let members = names
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        let mut group = Cli::command()
            .mut_args(|arg| arg.hide(true))
            .mut_subcommands(|inner| inner.hide(true))
            .disable_help_flag(true)
            .disable_version_flag(true)
            .disable_help_subcommand(true)
            .subcommand_help_heading(heading)
            .help_template("{all-args}");
        for member in members {
            group = group.mut_subcommand(member.get_name(), |inner| inner.hide(false));
        }
        group.render_help().ansi().to_string()
    };
    let groups: Vec<String> = GROUPS.iter().map(group).collect();
    command
        .override_usage(format!("{program} [OPTIONS] <COMMAND>"))
        .mut_subcommands(|inner| inner.hide(true))
        .before_help(groups.join("\n"))
        .help_template(
            "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}",
        )
}

/// Adds the examples of all other commands.
fn with_examples(command: clap::Command, examples: &dyn Fn(&str) -> String) -> clap::Command {
    command
        .after_help(examples(
            "Examples:
  PROGRAM simulate app.yaml --zones 3 --nodes 12    where would these pods go?
  PROGRAM explain pod/web-7 -n shop dump.json       why is this pod Pending?
  PROGRAM audit dump.json                           do we survive a lost zone, a shift, a drain?
  PROGRAM simulate scenarios/                       does every scenario hold, whatever the seed?
  PROGRAM import kwok record.yaml -o scenario.yaml  what would other nodes have made of that day?
  PROGRAM place placement.yaml fleet.yaml           which clusters does this Placement get?

Exit codes: 0 done; 1 the answer is no (something stays Pending); 2 wrong input or usage;
3 something outside failed; 130 interrupted.",
        ))
        .mut_subcommand("simulate", |c| c.after_help(examples(simulate::EXAMPLES)))
        .mut_subcommand("merge", |c| c.after_help(examples(merge::EXAMPLES)))
        .mut_subcommand("audit", |c| c.after_help(examples(audit::EXAMPLES)))
        .mut_subcommand("rebalance", |c| c.after_help(examples(rebalance::EXAMPLES)))
        .mut_subcommand("defaults", |c| c.after_help(examples(defaults::EXAMPLES)))
        .mut_subcommand("explain", |c| {
            c.after_help(examples(explain::EXAMPLES))
                .override_usage(examples("PROGRAM explain [OPTIONS] TYPE/NAME FILE..."))
        })
        .mut_subcommand("lint", |c| c.after_help(examples(lint::EXAMPLES)))
        .mut_subcommand("mcp", |c| c.after_help(examples(mcp::EXAMPLES)))
        .mut_subcommand("diff", |c| c.after_help(examples(diff::EXAMPLES)))
        .mut_subcommand("import", |c| c.after_help(examples(import::EXAMPLES)))
        .mut_subcommand("place", |c| c.after_help(examples(place::EXAMPLES)))
        .mut_subcommand("snapshot", |c| c.after_help(examples(snapshot::EXAMPLES)))
        .mut_subcommand("schema", |c| c.after_help(examples(schema::EXAMPLES)))
        .mut_subcommand("completion", |c| {
            c.after_help(examples(
                "Examples:
  source <(PROGRAM completion bash)
  PROGRAM completion fish > ~/.config/fish/completions/strew.fish",
            ))
        })
}

/// Adds the examples of commands that need a cluster.
#[cfg(feature = "cluster")]
fn with_examples_of_clusters(
    command: clap::Command,
    examples: &dyn Fn(&str) -> String,
) -> clap::Command {
    command
        .mut_subcommand("sweep", |c| c.after_help(examples(sweep::EXAMPLES)))
        .mut_subcommand("ui", |c| c.after_help(examples(ui::EXAMPLES)))
        .mut_subcommand("scheduler", |c| {
            c.after_help(examples(scheduler::EXAMPLES))
                .mut_arg("secure_port", |a| a.default_value("10259"))
        })
        .mut_subcommand("controller", |c| {
            c.after_help(examples(controller::EXAMPLES))
                .mut_arg("secure_port", |a| a.default_value("10261"))
        })
        .mut_subcommand("webhook", |c| {
            c.after_help(examples(webhook::EXAMPLES))
                .mut_arg("secure_port", |a| a.default_value("10262"))
        })
        .mut_subcommand("install", |c| c.after_help(examples(install::EXAMPLES)))
        .mut_subcommand("uninstall", |c| c.after_help(examples(uninstall::EXAMPLES)))
}

fn is_help(error: &clap::Error) -> bool {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand};
    matches!(
        error.kind(),
        DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand
    )
}

fn usage_exit(error: &clap::Error) -> u8 {
    // The write fails only without a terminal.
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(2)
}

fn complete(shell: clap_complete::Shell, program: &'static str) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(program), "strew", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command("strew").debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        let command = command("strew");
        let mut names: Vec<&str> = command.get_subcommands().map(|c| c.get_name()).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        if cfg!(not(feature = "cluster")) {
            grouped.retain(|name| names.contains(name));
        }
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(names, grouped);
    }

    /// The lines of a document's code blocks for a shell; lines that end with a backslash are joined with the next one.
    fn shell_lines(document: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut is_shell = None;
        let mut before = String::new();
        for line in document.lines() {
            match (is_shell, line.strip_prefix("```")) {
                (None, Some(language)) => {
                    is_shell = Some(match language {
                        "sh" => Shell::All,
                        "text" | "console" => Shell::Prompts,
                        _ => Shell::None,
                    });
                }
                (Some(_), Some(_)) => is_shell = None,
                (Some(Shell::All), None) => match line.strip_suffix('\\') {
                    Some(part) => before.push_str(part),
                    None => lines.push(std::mem::take(&mut before) + line),
                },
                (Some(Shell::Prompts), None) => {
                    lines.extend(line.strip_prefix("$ ").map(str::to_owned));
                }
                _ => {}
            }
        }
        lines
    }

    #[derive(Clone, Copy)]
    enum Shell {
        All,
        /// Lines that begin with a dollar sign; the other ones are output.
        Prompts,
        None,
    }

    /// The words of the commands of a line, as a shell takes them.
    fn commands(line: &str) -> Vec<Vec<String>> {
        let mut commands = vec![Vec::new()];
        let (mut word, mut quote, mut is_word) = (String::new(), None, false);
        for c in line.chars().chain([' ']) {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
                (None, '#') if !is_word => break,
                (None, ' ') => {
                    if is_word {
                        let word = std::mem::take(&mut word);
                        match word.as_str() {
                            "|" | "&&" => commands.push(Vec::new()),
                            _ => commands.last_mut().unwrap().push(word),
                        }
                    }
                    is_word = false;
                }
                (_, c) => {
                    word.push(c);
                    is_word = true;
                }
            }
        }
        for command in &mut commands {
            let end = command.iter().position(|word| word.starts_with(['>', '<']));
            command.truncate(end.unwrap_or(command.len()));
        }
        commands
    }

    #[test]
    fn every_command_of_the_documents_is_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = std::fs::read_dir(root.join("docs")).unwrap();
        let docs = docs.map(|entry| entry.unwrap().path());
        let pages = docs.filter(|path| path.extension().is_some_and(|e| e == "md"));
        let mut n_commands = 0;
        for path in pages.chain([root.join("README.md")]) {
            let document = std::fs::read_to_string(&path).unwrap();
            // Its code blocks are those of --help, with placeholders instead of values.
            if path.ends_with("commands.md") {
                continue;
            }
            for line in shell_lines(&document) {
                for words in commands(&line) {
                    if words.first().is_none_or(|word| word != "strew") {
                        continue;
                    }
                    let words = words
                        .iter()
                        .map(|word| word.replace("$IMAGE", "strew:0.1.0"));
                    let parsed = command("strew").try_get_matches_from(words);
                    if let Err(error) = parsed {
                        panic!("{}: {line}\n{error}", path.display());
                    }
                    n_commands += 1;
                }
            }
        }
        assert!(n_commands > 30, "{n_commands} commands were found");
    }

    #[test]
    fn a_plugin_of_kubectl_says_so() {
        let name = |text: &str| program_name(Some(&OsString::from(text)));
        assert_eq!(name("/usr/local/bin/kubectl-strew"), "kubectl strew");
        assert_eq!(name("target/release/strew"), "strew");
    }
}
