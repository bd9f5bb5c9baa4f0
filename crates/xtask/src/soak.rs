//! Lives under faults, by seed: `cargo xtask soak`.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use strew_sim::chaos::{Figures, Parts, Story, Verdict, generate, generate_spreads, play, shrink};

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct Soak {
    /// What the stories are about
    #[arg(long, value_enum, default_value_t = Of::Cluster)]
    of: Of,
    /// How many seeds to play
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them; without it, one made from the time of day
    #[arg(long)]
    from: Option<u64>,
    /// How many at once; without it, as many as there are cores
    #[arg(long)]
    jobs: Option<usize>,
    /// Play this one only
    #[arg(long)]
    seed: Option<u64>,
    /// Begin no further seed after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Go on after a bad one; each is named, none is made small
    #[arg(long)]
    keep_going: bool,
}

/// What stories are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Of {
    /// Workloads of all kinds, drains, elections
    Cluster,
    /// WorkloadSpreads, their webhook and their controller
    #[value(name = "workloadspread")]
    WorkloadSpread,
}

impl Of {
    fn story(self, seed: u64) -> Story {
        match self {
            Self::Cluster => generate(seed),
            Self::WorkloadSpread => generate_spreads(seed),
        }
    }

    /// What the command line needs to say besides.
    fn flag(self) -> &'static str {
        match self {
            Self::Cluster => "",
            Self::WorkloadSpread => "--of workloadspread ",
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
        None => (options.from.unwrap_or_else(time_of_day), options.seeds),
    };
    eprintln!("soak: seeds {from}..{}", from.saturating_add(n_seeds));
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
        return Ok(ExitCode::SUCCESS);
    };
    if !options.keep_going {
        print_smaller(options.of, &options.of.story(*seed), verdict);
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
        let verdict = play(&shared.of.story(seed), &parts);
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
        if !verdict.violations.is_empty() {
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
    println!("choices    {:>12}", figures.choices);
    for (kind, n) in &figures.faults {
        println!("fault      {n:>12}  {kind}");
    }
    println!("bad seeds  {:>12}", found.bad.len());
    println!("seconds    {:>12.1}", took.as_secs_f64());
}

/// The story made small, and how to see it again.
fn print_smaller(of: Of, story: &Story, verdict: &Verdict) {
    let Some(first) = verdict.violations.first() else {
        return;
    };
    eprintln!("soak: making seed {} smaller", story.seed);
    let parts = Parts::real();
    let small = shrink(story, first.rule, &parts);
    println!();
    print!("{small}");
    for violation in play(&small, &parts).violations {
        println!("# {violation}");
    }
    let flag = of.flag();
    println!("# again: cargo xtask soak {flag}--seed {}", story.seed);
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
