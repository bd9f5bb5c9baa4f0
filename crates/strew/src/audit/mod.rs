//! `strew audit`: what a cluster loses with each domain, how it comes back, why, and what would prevent it.
//!
//! Reading order: this file (arguments, what is asked), `work` (plays cases on all cores), `fixes` (changes that are
//! played, too), `at_once` (what is left in the instant of a loss), `text` (for people), `page` (the same in a browser),
//! `findings` (for pipelines), `patches` (files of changes), `compare` (two audits, or those of many clusters).

mod at_once;
pub(crate) mod compare;
mod findings;
mod fixes;
mod page;
mod patches;
mod text;
mod work;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use strew_apiserver::object::{Kind, Object};
use strew_manifest::read::nearest_label;
use strew_scenario::audit::at_once::Left;
use strew_scenario::audit::values::{Audit, Case, Event, Fix, KIND, Row};
use strew_scenario::audit::{ZONE_KEYS, domains, keys, questions, size};
use strew_scenario::run::Plan;
use strew_sim::Size;
use strew_view::loss::LossVerdict;

use crate::cluster::access::AccessArgs;
use crate::context::Context;
use crate::failure::{EXIT_INPUT, EXIT_NO, Failure};
use crate::inputs;
use crate::memory::Need;
use crate::output::{Format, serialized};
use crate::platform;
use crate::scenario::{self, Question, ScenarioArgs};
use crate::workloads::WorkloadArgs;
use crate::world::WorldArgs;
use crate::{destination, diagnostics, junit, sarif};
use strew_suite::report::API_VERSION;
use strew_suite::seeds::Seeds;
use strew_suite::shown::Choice;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM audit                                    the cluster of the current context, which is only read
  PROGRAM audit dump.json                          each zone lost, shifted, drained
  PROGRAM audit app.yaml --nodes 12 --zones 3      manifests on made-up nodes
  PROGRAM audit dump.json --by kubernetes.io/hostname --event drain
  PROGRAM audit dump.json --losing 2               pairs of zones
  PROGRAM audit dump.json --at-once                what is left in the instant of the loss; nothing is played
  PROGRAM audit dump.json --quorum                 a StatefulSet without its majority is LOST
  PROGRAM audit dump.json --fix --out-dir patches  a patch for each change that helps, all of them played
  PROGRAM audit dump.json -n shop --fail-on DEGRADED
  PROGRAM audit dump.json --html audit.html        a page for a browser
  PROGRAM audit dump.json -o json | jq '.cases[].workloads[] | select(.verdict == \"LOST\")'
  PROGRAM audit deploy/ -o sarif > strew.sarif     for code scanning

For each value of the key, three events are played in a simulated cluster until it is at rest:
  loss    its nodes stop; pods are evicted and made again elsewhere
  shift   its nodes are cordoned and its pods out of all endpoints, while they run on; then every workload is
          restarted, as by a rollout during the shift
  drain   its nodes are drained one by one by evictions, which budgets may refuse
The verdicts are those of the built-in story of strew simulate: LOST (at rest no pod is ready, or fewer than
before and than a budget asks for), OUTAGE (none for a while), DEGRADED (fewer than before), SURVIVES, UNKNOWN (none
was ready before, or another scheduler places them). Nothing but the files decides: what they do not have, such as an autoscaler, does not help.

Exit codes: 0 no workload is LOST, or as --fail-on says; 1 one is, or nothing could be judged; 2 wrong input, such
as a key that no node has, or no workload; 3 something outside failed.";

/// Arguments of `strew audit`.
#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Manifests or dumps: files, folders, or - for standard input; without files a live cluster, which is only read
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// The topology key whose domains are lost
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// How many domains are lost at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    losing: u8,
    /// What happens to them [default: all three]
    #[arg(long, value_name = "EVENT", value_delimiter = ',')]
    event: Vec<EventArg>,
    /// Tell what is left in the instant of each loss, and play nothing: no verdict, and no way back
    #[arg(long, conflicts_with_all = ["event", "fix", "out_dir"])]
    at_once: bool,
    /// Call a StatefulSet LOST if fewer than the majority of its pods are ready at rest
    #[arg(long)]
    quorum: bool,
    /// The verdict that fails the command, and those that are worse. A drain that never ends counts as DEGRADED; an
    /// OUTAGE of what asks for one pod never counts
    #[arg(
        long,
        value_name = "VERDICT",
        default_value = "LOST",
        ignore_case = true
    )]
    fail_on: FailOn,
    /// Look for the smallest changes that help, and play them [default: if the cluster is small]
    #[arg(long)]
    fix: bool,
    /// Look for no changes, even if the cluster is small: the verdicts come sooner
    #[arg(long, conflicts_with_all = ["fix", "out_dir"])]
    no_fix: bool,
    /// Write each change that helps as a patch into this folder
    #[arg(long, value_name = "FOLDER")]
    out_dir: Option<PathBuf>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<AuditFormat>,
    /// Write the result into this file, completely or not at all, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write a page for a browser: each verdict with its causes and the way back
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
    #[command(flatten)]
    workloads: WorkloadArgs,
    /// If more workloads of a domain are hurt than this, show the worst
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// The number of cases at the same time [default: the number of cores]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    world: WorldArgs,
}

/// The values of `--event`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum EventArg {
    Loss,
    Shift,
    Drain,
}

/// The values of `--fail-on`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
#[value(rename_all = "UPPER")]
enum FailOn {
    Lost,
    Outage,
    Degraded,
    /// Exit code 0 once all is played, whatever it shows
    Never,
}

impl FailOn {
    /// The least bad verdict that fails, or that of an error among findings.
    fn verdict(self) -> LossVerdict {
        match self {
            Self::Lost | Self::Never => LossVerdict::Lost,
            Self::Outage => LossVerdict::Outage,
            Self::Degraded => LossVerdict::Degraded,
        }
    }
}

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum AuditFormat {
    /// Kind Audit
    Json,
    /// The same as YAML
    Yaml,
    /// A test case for each finding, as CI systems read them
    Junit,
    /// A result for each finding, at its workload, as code scanning reads them
    Sarif,
    /// The changes that help, as patches
    Patch,
}

impl AuditFormat {
    /// The format of errors.
    fn of_errors(self) -> Format {
        match self {
            Self::Json | Self::Patch => Format::Json,
            Self::Yaml => Format::Yaml,
            Self::Junit => Format::Junit,
            Self::Sarif => Format::Sarif,
        }
    }
}

pub(crate) fn run(args: &AuditArgs, context: &Context) -> Result<u8, Failure> {
    let names = args.world.names(&args.files);
    audited(args, &names, context).inspect_err(|failure| {
        let first_file = names.first().map_or("", String::as_str);
        let output = args.output.map(AuditFormat::of_errors);
        diagnostics::print_failure("audit", failure, output, first_file);
    })
}

fn audited(args: &AuditArgs, names: &[String], context: &Context) -> Result<u8, Failure> {
    let choice = args.workloads.choice(usize::MAX)?;
    let inputs = args
        .world
        .inputs_or_cluster(names, &args.access, "audit", context)?;
    let page = args.html.as_ref().map(Path::new);
    for output in args.out.as_deref().into_iter().chain(page) {
        inputs::check_output(output, &inputs)?;
    }
    if scenario::is_in(&inputs) {
        let error = anyhow!("audit plays manifests and dumps, and a file holds a Scenario");
        return Err(Failure::input(error).with_hint("strew simulate plays Scenarios"));
    }
    let kept = findings::Places::kept(args.output, &inputs);
    let scenario = ScenarioArgs::default();
    let output = args.output.map(AuditFormat::of_errors);
    let question = asked_about(&scenario, &args.world, names, output, choice);
    let Some(ready) = scenario::ready(&question, inputs, context)? else {
        return Ok(EXIT_INPUT);
    };
    let Some((plan, seeds)) = ready.into_story() else {
        return Err(Failure::input(anyhow!("there is nothing to play")));
    };
    let base = Base::new(&args.asked(), &plan, seeds)?;
    match n_off_nodes(plan.objects()) {
        0 => {}
        n => diagnostics::say_note(&crate::text::off_nodes(n), context),
    }
    if args.at_once {
        let is_shown = |left: &Left| {
            question.choice.means_named(
                &plan.admitted().workloads.list,
                [&left.kind, &left.namespace, &left.name],
            )
        };
        let audit = at_once::audit(&base, is_shown)?;
        let text = at_once::written(&audit, args.output, args.top, context)?;
        destination::write(args.out.as_deref(), &text)?;
        return Ok(at_once::exit(&audit));
    }
    let cases = base.play(&args.world)?;
    let is_shown = |row: &Row| {
        question.choice.means_named(
            &plan.admitted().workloads.list,
            [&row.kind, &row.namespace, &row.name],
        )
    };
    let looks = args.fix
        || args.out_dir.is_some()
        || args.output == Some(AuditFormat::Patch)
        || (base.is_small() && !args.no_fix);
    let found = match looks {
        true => fixes::search(&base, &cases, &is_shown)?,
        false => fixes::Found::default(),
    };
    let audit = base.audit(cases, found.fixes, is_shown);
    if let Some(folder) = &args.out_dir {
        patches::write(folder, &audit)?;
    }
    let fail_on = args.fail_on.verdict();
    if let Some(path) = &args.html {
        page::write(path, &audit, names, exit(&audit, fail_on) != 0)?;
    }
    let first_file = names.first().map_or("<cluster>", String::as_str);
    let text = match args.output {
        None => text::write(
            &audit,
            &text::Look {
                context,
                top: args.top,
                looked: looks,
            },
        ),
        Some(AuditFormat::Json) => serialized(&audit, Format::Json)?,
        Some(AuditFormat::Yaml) => serialized(&audit, Format::Yaml)?,
        Some(AuditFormat::Patch) => patches::text(&audit)?,
        Some(AuditFormat::Junit) => {
            let found = findings::of(&audit, fail_on, &kept);
            junit::write(
                "strew audit",
                &[junit::of_findings(&found, first_file, false)],
            )
        }
        Some(AuditFormat::Sarif) => {
            let found = findings::of(&audit, fail_on, &kept);
            format!(
                "{:#}\n",
                sarif::log(&sarif::of_findings(&found, first_file))
            )
        }
    };
    destination::write(args.out.as_deref(), &text)?;
    Ok(match args.fail_on {
        FailOn::Never => 0,
        _ => exit(&audit, fail_on),
    })
}

/// The exit code: an audit that could judge nothing is no good news.
fn exit(audit: &Audit, fail_on: LossVerdict) -> u8 {
    let rows = || audit.cases.iter().flat_map(|case| &case.workloads);
    let fails = rows().any(|row| row.is_hurt() && row.judged() <= fail_on);
    let is_blocked = audit.cases.iter().any(|case| !case.blocked.is_empty());
    let is_unknown = rows().all(|row| row.judged() == LossVerdict::Unknown);
    match fails || is_unknown || (is_blocked && fail_on == LossVerdict::Degraded) {
        true => EXIT_NO,
        false => 0,
    }
}

impl AuditArgs {
    fn asked(&self) -> Asked<'_> {
        Asked {
            by: self.by.as_deref(),
            losing: usize::from(self.losing),
            events: self.events(),
            quorum: self.quorum,
            jobs: self.jobs,
        }
    }

    fn events(&self) -> Vec<Event> {
        if self.at_once {
            return vec![Event::Loss];
        }
        let is_asked = |event: &Event| {
            self.event.is_empty()
                || self.event.iter().any(|asked| match asked {
                    EventArg::Loss => *event == Event::Loss,
                    EventArg::Shift => *event == Event::Shift,
                    EventArg::Drain => *event == Event::Drain,
                })
        };
        Event::ALL.into_iter().filter(is_asked).collect()
    }
}

pub(crate) use at_once::schema as schema_at_once;

/// The JSON schema of kind Audit.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(Audit).to_value()
}

/// What is asked about a cluster.
struct Asked<'a> {
    /// The topology key; `None`: that of zones.
    by: Option<&'a str>,
    /// How many domains are lost at once.
    losing: usize,
    events: Vec<Event>,
    quorum: bool,
    /// How many cases are played at the same time; `None`: one for each core.
    jobs: Option<NonZeroUsize>,
}

/// Audits a cluster of these objects, by one case after the other; changes are not looked for.
///
/// # Errors
/// There is nothing to audit, or too little memory.
#[cfg(feature = "cluster")]
pub(crate) fn of_cluster(
    objects: Vec<serde_json::Value>,
    by: Option<&str>,
) -> Result<Audit, Failure> {
    let world = WorldArgs::default();
    let scenario = ScenarioArgs::default();
    let question = asked_about(&scenario, &world, &[], None, Choice::ALL);
    let ready = scenario::ready(&question, world.listed(objects)?, &Context::quiet())?;
    let Some((plan, seeds)) = ready.and_then(strew_suite::ready::Ready::into_story) else {
        return Err(Failure::input(anyhow!("there is nothing to play")));
    };
    let asked = Asked {
        by,
        losing: 1,
        events: Event::ALL.to_vec(),
        quorum: false,
        jobs: NonZeroUsize::new(1),
    };
    let base = Base::new(&asked, &plan, seeds)?;
    let cases = base.play(&world)?;
    Ok(base.audit(cases, Vec::new(), |_| true))
}

/// The question whose story is played.
fn asked_about<'a>(
    args: &'a ScenarioArgs,
    world: &'a WorldArgs,
    files: &'a [String],
    output: Option<Format>,
    choice: Choice,
) -> Question<'a> {
    Question {
        verb: Some("audit"),
        output,
        choice,
        ..Question::of(args, world, files)
    }
}

/// The cluster that all cases begin with, and the cases.
pub(crate) struct Base<'a> {
    plan: &'a Plan,
    seeds: Seeds,
    key: String,
    domains: Vec<strew_scenario::audit::values::Domain>,
    n_without: usize,
    questions: Vec<strew_scenario::audit::Question>,
    jobs: usize,
}

/// Pods and nodes that all runs may have together, where the number of seeds is free: a few seconds on two cores.
const PLAYED_MAX: u64 = 10_000;

/// As many of the seeds as cost little: one hides what chance may decide otherwise.
fn affordable(seeds: Seeds, size: Size, n_cases: usize) -> Seeds {
    let of_seed = (size.n_pods.saturating_add(size.n_nodes)).saturating_mul(n_cases as u64);
    let most = PLAYED_MAX / of_seed.max(1);
    Seeds::new(seeds.first, seeds.count.min(most).max(1))
}

/// Clusters up to this size are searched for changes without being asked.
const SMALL_MAX: u64 = 2_000;

impl<'a> Base<'a> {
    /// # Errors
    /// No node has the key, or there are too few domains.
    fn new(asked: &Asked<'_>, plan: &'a Plan, seeds: Seeds) -> Result<Self, Failure> {
        let key = key(asked.by, plan)?;
        let (domains, n_without) = domains(plan.objects(), &key);
        let at_once = asked.losing;
        if domains.len() < at_once {
            let error = anyhow!("--losing {at_once}: {key} has {} domains", domains.len());
            return Err(Failure::input(error));
        }
        let mut questions = questions(&key, &domains, &asked.events, at_once);
        for question in &mut questions {
            question.quorum = asked.quorum;
        }
        Ok(Self {
            plan,
            seeds: affordable(seeds, size(plan), questions.len()),
            questions,
            key,
            domains,
            n_without,
            jobs: platform::jobs(asked.jobs),
        })
    }

    /// Plays all cases.
    ///
    /// # Errors
    /// They need more memory than there is, or a run could not continue.
    fn play(&self, world: &WorldArgs) -> Result<Vec<Case>, Failure> {
        world.memory.check(Need {
            size: size(self.plan),
            n_at_once: self.jobs as u64,
            n_runs: self.seeds.count.saturating_mul(self.questions.len() as u64),
            n_kept: 0,
            n_steps: 1,
            is_page: false,
        })?;
        work::play_all(self, self.questions.iter(), &[])
    }

    /// The results, of the workloads that are shown.
    fn audit(&self, cases: Vec<Case>, fixes: Vec<Fix>, is_shown: impl Fn(&Row) -> bool) -> Audit {
        let mut audit = Audit {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            cluster: None,
            by: self.key.clone(),
            seed: self.seeds.first,
            seeds: self.seeds.count,
            workloads: 0,
            domains: self.domains.clone(),
            nodes_without_key: self.n_without,
            stuck_budgets: cases
                .first()
                .map_or_else(Vec::new, |case| case.stuck_budgets.clone()),
            cases,
            fixes,
        };
        for case in &mut audit.cases {
            case.workloads.retain(&is_shown);
            audit.workloads = audit.workloads.max(case.workloads.len());
        }
        audit
    }

    fn is_small(&self) -> bool {
        let size = size(self.plan);
        size.n_pods.saturating_add(size.n_nodes) <= SMALL_MAX
    }
}

/// How many pods are on nodes that are not among the objects.
fn n_off_nodes(objects: &[Object]) -> usize {
    let nodes = objects.iter().filter(|object| object.kind() == Kind::Node);
    let nodes: HashSet<&str> = nodes.map(|node| &*node.meta().name.name).collect();
    let is_off_nodes = |object: &&Object| match object {
        Object::Pod(pod) => {
            let node = pod.node.as_deref();
            !pod.is_finished() && node.is_some_and(|node| !nodes.contains(node))
        }
        _ => false,
    };
    objects.iter().filter(is_off_nodes).count()
}

/// The topology key: the given one, or zone by its present or its former name.
///
/// # Errors
/// No node has it.
fn key(given: Option<&str>, plan: &Plan) -> Result<String, Failure> {
    let known = keys(plan.objects());
    if known.is_empty() {
        let error = anyhow!("no node in the input has a label");
        return Err(Failure::input(error).with_hint("--nodes 12 --zones 3 makes nodes"));
    }
    let wanted = match given {
        Some(given) => vec![given],
        None => ZONE_KEYS.to_vec(),
    };
    if let Some(key) = wanted.iter().find(|key| known.contains_key(**key)) {
        return Ok((*key).to_owned());
    }
    let failure = Failure::input(match given {
        Some(given) => anyhow!("--by {given}: no node has this label"),
        None => anyhow!(
            "no node has the label {}: which domains are there to lose?",
            ZONE_KEYS[0]
        ),
    });
    let several = known.iter().filter(|(_, values)| values.len() > 1);
    let several: Vec<&str> = several.map(|(key, _)| key.as_str()).take(8).collect();
    let meant = given.and_then(|given| nearest_label(given, known.keys().map(String::as_str)));
    Err(match (meant, several.is_empty()) {
        (Some(meant), _) => failure.with_hint(format!("did you mean --by {meant}?")),
        (None, false) => {
            failure.with_hint(format!("--by KEY: nodes differ in {}", several.join(", ")))
        }
        (None, true) => failure,
    })
}
