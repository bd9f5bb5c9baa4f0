//! Generated worlds under faults, by seed: `cargo xtask soak`.

use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use strew_sim::Diligence;
use strew_sim::auditor::Rule;
use strew_sim::chaos::{self, Figures, Parts, Verdict};

use xtask::top;

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct Soak {
    /// What kind of lives
    #[arg(long, value_enum, default_value_t = Of::Cluster)]
    of: Of,
    /// How many seeds to play
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them; without it, one made from the time of day
    #[arg(long)]
    from: Option<u64>,
    /// The first is made from the newest commit, so that each commit tries others
    #[arg(long, conflicts_with = "from")]
    from_commit: bool,
    /// Play one of N equal parts of the seeds, counted from 0, as strew simulate does
    #[arg(long, value_name = "I/N", requires = "from", value_parser = shard)]
    shard: Option<Shard>,
    /// How many at once; without it, as many as there are cores
    #[arg(long)]
    jobs: Option<usize>,
    /// Play this one only
    #[arg(long)]
    seed: Option<u64>,
    /// Begin no further seed after this number of seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Go on after a bad one; each is named, none is made small
    #[arg(long)]
    keep_going: bool,
}

/// The sentences of refusals that are printed.
const REFUSALS_SHOWN: usize = 10;

/// A part of the seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shard {
    index: u64,
    of: u64,
}

fn shard(text: &str) -> Result<Shard, String> {
    let numbers = text.split_once('/');
    let numbers = numbers.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((index, of)) if index < of => Ok(Shard { index, of }),
        _ => Err("no shard such as 0/7: counted from 0".to_owned()),
    }
}

impl Shard {
    /// The first seed of its part, and how many.
    fn part(self, from: u64, n_seeds: u64) -> (u64, u64) {
        let at = |index: u64| u128::from(n_seeds) * u128::from(index) / u128::from(self.of);
        let at = |index: u64| u64::try_from(at(index)).unwrap_or(n_seeds);
        let (start, end) = (at(self.index), at(self.index + 1));
        (from.saturating_add(start), end - start)
    }
}

#[test]
fn shards_are_all_seeds() {
    let parts = (0..7).map(|i| shard(&format!("{i}/7")).unwrap().part(100, 23));
    let seeds: Vec<u64> = parts.flat_map(|(from, n)| from..from + n).collect();
    assert_eq!(seeds, (100..123).collect::<Vec<u64>>());
    assert!(shard("7/7").is_err());
}

/// Kinds of lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Of {
    /// Workloads on nodes
    Cluster,
    /// Jobs that come and go among them
    Churn,
    /// Placements on a hub
    Placement,
    /// WorkloadSpreads, their webhook and their controller
    #[value(name = "workloadspread")]
    WorkloadSpread,
    /// The same, with replicas of the webhook that register themselves in one of three
    Registration,
    /// Workloads on nodes that are drained, with budgets by zone
    Zones,
    /// Deployments that ask to stay spread, and are scaled
    Keep,
    /// Plans of evictions that are made and carried out
    Rebalance,
}

impl Of {
    /// The kind as an argument.
    fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// A story of one kind.
enum Tale {
    Cluster(chaos::Story),
    Placement(chaos::placement::HubStory),
    /// A kind of life that is small enough without a story.
    Seeded(Of, u64),
}

impl Tale {
    fn generate(of: Of, seed: u64) -> Self {
        match of {
            Of::Cluster => Self::Cluster(chaos::generate(seed)),
            Of::Placement => Self::Placement(chaos::placement::generate(seed)),
            Of::Churn => Self::Cluster(chaos::generate_churn(seed)),
            Of::WorkloadSpread => Self::Cluster(chaos::generate_spreads(seed)),
            Of::Registration => Self::Cluster(chaos::generate_registrations(seed)),
            Of::Zones => Self::Cluster(chaos::generate_zones(seed)),
            Of::Keep | Of::Rebalance => Self::Seeded(of, seed),
        }
    }

    fn play(&self, parts: &Parts) -> Verdict {
        match self {
            Self::Cluster(story) => chaos::play(story, parts),
            Self::Placement(story) => chaos::placement::play(story, parts, Diligence::AsDecided),
            Self::Seeded(Of::Rebalance, seed) => {
                strew_scenario::rebalance::chaos::play(*seed, parts)
            }
            Self::Seeded(_, seed) => chaos::keep::play(*seed, parts),
        }
    }

    fn shrink(&self, rule: Rule, parts: &Parts) -> Self {
        match self {
            Self::Cluster(story) => Self::Cluster(chaos::shrink(story, rule, parts)),
            Self::Placement(story) => {
                let diligence = Diligence::AsDecided;
                let small = chaos::placement::shrink(story, rule, parts, diligence);
                Self::Placement(small)
            }
            Self::Seeded(of, seed) => Self::Seeded(*of, *seed),
        }
    }
}

impl std::fmt::Display for Tale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cluster(story) => story.fmt(f),
            Self::Placement(story) => story.fmt(f),
            Self::Seeded(of, seed) => writeln!(f, "# {} of seed {seed}", of.name()),
        }
    }
}

/// What all threads share.
struct Shared {
    of: Of,
    next: AtomicU64,
    end: u64,
    stop: AtomicBool,
    deadline: Option<Instant>,
    keep_going: bool,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    n_seeds: u64,
    figures: Figures,
    bad: Vec<(u64, Verdict)>,
}

/// Plays the seeds; exit code 1 if any life broke a rule.
pub(crate) fn run(options: &Soak) -> anyhow::Result<ExitCode> {
    let begin = now();
    let (from, n_seeds) = match options.seed {
        Some(seed) => (seed, 1),
        None if options.from_commit => (of_commit()?, options.seeds),
        None => (options.from.unwrap_or_else(time_of_day), options.seeds),
    };
    let (from, n_seeds) = match options.shard {
        Some(shard) => shard.part(from, n_seeds),
        None => (from, n_seeds),
    };
    println!("soak: seeds {from}..{}", from.saturating_add(n_seeds));
    let shared = Shared {
        of: options.of,
        next: AtomicU64::new(from),
        end: from.saturating_add(n_seeds),
        stop: AtomicBool::new(false),
        deadline: options.seconds.map(|s| begin + Duration::from_secs(s)),
        keep_going: options.keep_going,
        found: Mutex::new(Found::default()),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.unwrap_or(cores).max(1);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| work(&shared, begin));
        }
    });
    let mut found = shared
        .found
        .into_inner()
        .map_err(|_| anyhow::anyhow!("a life panicked"))?;
    found.bad.sort_by_key(|(seed, _)| *seed);
    print_figures(&found, begin.elapsed());
    for (seed, verdict) in &found.bad {
        for violation in &verdict.violations {
            println!("seed {seed}: {violation}");
        }
    }
    let Some((seed, verdict)) = found.bad.first() else {
        if found.figures.is_refused() {
            eprintln!(
                "soak: the API server refuses more than 1 % of the objects and actions of these lives"
            );
            return Ok(ExitCode::FAILURE);
        }
        return Ok(ExitCode::SUCCESS);
    };
    if !options.keep_going {
        print_smaller(options.of, *seed, verdict);
    }
    Ok(ExitCode::FAILURE)
}

fn work(shared: &Shared, begin: Instant) {
    let parts = Parts::real();
    loop {
        let seed = shared.next.fetch_add(1, Ordering::Relaxed);
        let is_late = shared.deadline.is_some_and(|at| now() >= at);
        if seed >= shared.end || is_late || shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let verdict = Tale::generate(shared.of, seed).play(&parts);
        let Ok(mut found) = shared.found.lock() else {
            return;
        };
        found.n_seeds += 1;
        found.figures.add(&verdict.figures);
        if found.n_seeds.is_multiple_of(500) {
            let seconds = begin.elapsed().as_secs();
            let n_bad = found.bad.len();
            eprintln!("soak: {} seeds, {n_bad} bad, {seconds} s", found.n_seeds);
        }
        if let Some(first) = verdict.violations.first() {
            eprintln!("soak: seed {seed}: {first}");
            shared.stop.fetch_or(!shared.keep_going, Ordering::Relaxed);
            found.bad.push((seed, verdict));
        }
    }
}

fn print_figures(found: &Found, took: Duration) {
    let figures = &found.figures;
    println!("seeds      {:>12}", found.n_seeds);
    println!("instants   {:>12}", figures.instants);
    println!("steps      {:>12}", figures.steps);
    println!("writes     {:>12}", figures.writes);
    println!("binds      {:>12}", figures.binds);
    println!("judged     {:>12}", figures.judged);
    println!("circles    {:>12}", figures.circles);
    println!("placed     {:>12}", figures.placed);
    println!("decisions  {:>12}", figures.decisions);
    println!("choices    {:>12}", figures.choices);
    println!("scaled     {:>12}", figures.scaled);
    println!("asked      {:>12}", figures.asked);
    let mut refused: Vec<_> = figures.refused.iter().collect();
    refused.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    for (sentence, n) in refused.into_iter().take(REFUSALS_SHOWN) {
        println!("refused    {n:>12}  {sentence}");
    }
    for (kind, n) in &figures.faults {
        println!("fault      {n:>12}  {kind}");
    }
    for (kind, n) in &figures.webhook_hits {
        println!("webhook    {n:>12}  {kind}");
    }
    println!("bad seeds  {:>12}", found.bad.len());
    println!("seconds    {:>12.1}", took.as_secs_f64());
}

/// The story made small, and how to see it again.
fn print_smaller(of: Of, seed: u64, verdict: &Verdict) {
    let Some(first) = verdict.violations.first() else {
        return;
    };
    eprintln!("soak: making seed {seed} smaller");
    let parts = Parts::real();
    let small = Tale::generate(of, seed).shrink(first.rule, &parts);
    println!();
    print!("{small}");
    for violation in small.play(&parts).violations {
        println!("# {violation}");
    }
    println!("# again: cargo xtask soak --of {} --seed {seed}", of.name());
}

/// From the newest commit's name: the same seeds wherever it is checked.
pub(crate) fn of_commit() -> anyhow::Result<u64> {
    let git = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(top())
        .output()
        .context("git tells the newest commit")?;
    let name = String::from_utf8_lossy(&git.stdout);
    let digits = name.get(..12).context("there is no commit")?;
    u64::from_str_radix(digits, 16).with_context(|| format!("{digits} is no commit"))
}

/// New seeds each time: whole seconds since 1970, in thousands of seeds.
#[expect(
    clippy::disallowed_methods,
    reason = "new seeds each time; the first is printed"
)]
fn time_of_day() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since
        .map_or(0, |since| since.as_secs())
        .saturating_mul(1000)
}

#[expect(
    clippy::disallowed_methods,
    reason = "automation tells how long its work takes"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::Of;

    #[test]
    fn every_kind_of_life_can_be_asked_for_and_named_again() {
        let values = Of::value_variants().iter();
        let values = values.filter_map(|of| of.to_possible_value());
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        assert_eq!(
            names,
            [
                "cluster",
                "churn",
                "placement",
                "workloadspread",
                "registration",
                "zones",
                "keep",
                "rebalance"
            ]
        );
    }
}
