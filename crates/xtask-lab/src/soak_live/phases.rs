//! The phases of a run.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::runtime::Runtime;
use xtask_lab::lab::{now, until};

use super::faults;
use super::observer::{Done, Log, Observer};
use super::parts::Parts;
use super::report::{CALM, Report, Row};
use super::tenants::{HOSTILE, Tenants};
use super::victim::{ScaleUp, Victim};
use crate::bench_live::figures::{median, quantile};
use crate::e2e::stage::{PAUSE, Stage};

/// An attack or a fault.
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// Its description, one line.
    pub(super) story: &'static str,
    act: Act,
    /// Its bar.
    pub(super) asks: Asks,
}

/// The bar for the speed of a phase. All pods, all probes and memory are judged in each phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// 100 pods as soon as in quiet times.
    Speed,
    /// 100 pods as soon as in quiet times, or 2 s later, in the slowest scale-up.
    Promptness,
    /// 100 pods as soon as in the named phase.
    SpeedBeside(&'static str),
    /// Speed is not judged.
    NoSpeed,
    /// Nothing is judged: the phase measures what an attack does to the control plane alone.
    Nothing,
}

enum Act {
    Nothing,
    /// The arguments of `cargo xtask attack`; scale-ups go on while it does.
    Attack(fn(&Field<'_>) -> Vec<String>),
    /// A function that runs before the scale-up.
    Fault(fn(&mut Field<'_>) -> anyhow::Result<()>),
}

const fn attack(
    name: &'static str,
    story: &'static str,
    args: fn(&Field<'_>) -> Vec<String>,
) -> Phase {
    Phase {
        name,
        story,
        act: Act::Attack(args),
        asks: Asks::Speed,
    }
}

/// An attack without credentials.
const fn strangers(
    name: &'static str,
    story: &'static str,
    args: fn(&Field<'_>) -> Vec<String>,
) -> Phase {
    Phase {
        asks: Asks::Promptness,
        ..attack(name, story, args)
    }
}

/// Controllers and kubelets need their time after a fault: the time until all pods are ready is printed, and not
/// judged.
const fn fault(
    name: &'static str,
    story: &'static str,
    act: fn(&mut Field<'_>) -> anyhow::Result<()>,
) -> Phase {
    Phase {
        name,
        story,
        act: Act::Fault(act),
        asks: Asks::NoSpeed,
    }
}

/// The attack with large pods, past strew.
const CONTROL: &str = "pods-control";

/// In the order in which they are played.
pub(super) const PHASES: &[Phase] = &[
    attack(
        "sockets-scheduler",
        "450 sockets that say nothing on the scheduler's port",
        |field| held("sockets", field.pages("scheduler"), 450),
    ),
    attack(
        "sockets-webhook",
        "450 sockets that say nothing on the port of the webhook's probes",
        |field| held("sockets", field.pages("webhook"), 450),
    ),
    attack(
        "sessions",
        "1,100 idle TLS connections on the hooks' port, and the API server must connect anew",
        |field| held("sessions", field.parts.hooks_port, 1_100),
    ),
    attack(
        "values",
        "four clients that send 8 MiB of [[0],[0],… in a loop",
        |field| held("values", field.parts.hooks_port, 4),
    ),
    attack(
        "headers",
        "20 connections of HTTP/2 with as many streams as they get, of 15 KiB of headers each",
        |field| held("headers", field.parts.hooks_port, 20),
    ),
    attack(
        "stalled",
        "64 chunked bodies of which one byte comes",
        |field| held("stalled", field.parts.hooks_port, 64),
    ),
    strangers(
        "unfinished",
        "four peers with 512 connections, two bodies of one byte on each that never end",
        |field| strange(field, "unfinished", 512, 4, HOSTILE),
    ),
    strangers(
        "reviews",
        "one peer that sends small reviews of pods under a WorkloadSpread, 8,192 at once, each of another user",
        |field| strange(field, "reviews", 128, 1, HOSTILE),
    ),
    strangers(
        "validations",
        "one peer that sends reviews of new WorkloadSpreads, 1,024 at once",
        |field| strange(field, "validations", 32, 1, HOSTILE),
    ),
    Phase {
        asks: Asks::Nothing,
        ..attack(
            CONTROL,
            "valid pods of 9,000 terms that are no concern of strew's, at full speed",
            |field| field.tenants.past_strew(9_000),
        )
    },
    Phase {
        asks: Asks::NoSpeed,
        ..attack(
            "pods-bound",
            "the same, bound by strew's scheduler, past the webhook",
            |field| field.tenants.without_owner(9_000),
        )
    },
    Phase {
        asks: Asks::SpeedBeside(CONTROL),
        ..attack(
            "pods-large",
            "the same under a WorkloadSpread with simulated scheduling",
            |field| field.tenants.hostile(9_000),
        )
    },
    attack(
        "pods-many",
        "pods of 64 terms there, the most that simulated scheduling judges",
        |field| field.tenants.hostile(64),
    ),
    Phase {
        asks: Asks::NoSpeed,
        ..attack(
            "churn",
            "100 pods a second, each with its own labels and a term on them; all go before the next thousand",
            |field| field.tenants.churn(100),
        )
    },
    fault(
        "watches-cut",
        "all connections to the API server end, 10 times",
        faults::cut,
    ),
    fault(
        "server-frozen",
        "SIGSTOP of the API server",
        faults::server_frozen,
    ),
    fault("store-frozen", "SIGSTOP of etcd", faults::store_frozen),
    fault(
        "server-killed",
        "kill -9 of the API server",
        faults::server_killed,
    ),
    fault("store-killed", "kill -9 of etcd", faults::store_killed),
    fault(
        "leader-stopped",
        "SIGSTOP of the scheduler that leads, for longer than its lease",
        faults::leader_stopped,
    ),
    Phase {
        name: CALM,
        story: "nothing, after all that",
        act: Act::Nothing,
        asks: Asks::Speed,
    },
];

/// The time after which an attack that has begun is at full speed.
const UNDER_WAY_AFTER: Duration = Duration::from_secs(2);

/// An attack that is over ends within this time: it yields to everything else on the machine.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// The number of quiet times before a phase that it is compared with.
const QUIET_TIMES: usize = 3;

/// The cluster, the processes and the measurements so far.
pub(super) struct Field<'a> {
    pub(super) stage: &'a mut Stage,
    pub(super) parts: Parts,
    pub(super) observer: Observer,
    tenants: Tenants,
    victim: Victim,
    runtime: Runtime,
    /// Seconds that quiet scale-ups took, the newest last.
    quiet: Vec<f64>,
    /// The most MiB that each process had in quiet times, before anything was done to it.
    quiet_memory: Vec<f64>,
}

impl<'a> Field<'a> {
    /// Starts all processes and plays quiet scale-ups, of which the first are not counted.
    pub(super) fn prepare(stage: &'a mut Stage) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let parts = Parts::start(stage)?;
        let tenants = Tenants::prepare(stage)?;
        let victim = runtime.block_on(Victim::connect(&stage.lab, &stage.namespace))?;
        let observer = Observer::start(&parts, runtime.handle());
        let mut field = Self {
            stage,
            parts,
            observer,
            tenants,
            victim,
            runtime,
            quiet: Vec::new(),
            quiet_memory: Vec::new(),
        };
        field.begin("quiet");
        for _ in 0..QUIET_TIMES {
            field.quiet_scale_up()?;
        }
        field.quiet.clear();
        field.observer.forget_peaks()?;
        for _ in 0..QUIET_TIMES {
            field.quiet_scale_up()?;
        }
        let taken = field.observer.taken()?;
        field.quiet_memory = taken.iter().map(|taken| taken.peak).collect();
        Ok(field)
    }

    /// The port of a process' pages.
    fn pages(&self, name: &str) -> u16 {
        let part = self.parts.all.iter().find(|part| part.name == name);
        part.map_or(0, |part| part.pages)
    }

    /// Plays a phase, and once more if it breaks a bar.
    pub(super) fn play(
        &mut self,
        phase: &Phase,
        attack: Duration,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        for is_last in [false, true] {
            let mut row = self.play_once(phase, attack)?;
            if let Asks::SpeedBeside(other) = phase.asks {
                row.compare_with(report.newest(other));
            }
            let is_met = row.is_met();
            println!("{row}");
            report.push(row, is_met || is_last);
            if is_met {
                break;
            }
        }
        Ok(())
    }

    fn play_once(&mut self, phase: &Phase, attack: Duration) -> anyhow::Result<Row> {
        self.begin("quiet");
        self.quiet_scale_up()?;
        let newest = self.quiet.len().saturating_sub(QUIET_TIMES);
        let quiet = median(self.quiet[newest..].to_vec());
        self.begin(phase.name);
        self.observer.forget_peaks()?;
        let begin = self.observer.at();
        let before = self.observer.taken()?;
        let (scale_ups, attacked) = match phase.act {
            Act::Nothing => (vec![self.scale_up()?], String::new()),
            Act::Attack(args) => {
                let args = args(self);
                self.under_attack(&args, attack)?
            }
            Act::Fault(act) => {
                act(self)?;
                (vec![self.scale_up()?], String::new())
            }
        };
        let seconds = self.observer.at() - begin;
        let after = self.observer.taken()?;
        self.parts.expect_running()?;
        let log = self.observer.log();
        let (answered, asked, longest_probe) = log.probes_since(begin);
        let cpu = before.iter().zip(&after);
        let waits: Vec<f64> = scale_ups.iter().flat_map(|s| s.waits.clone()).collect();
        Ok(Row {
            name: phase.name,
            asks: phase.asks,
            n_scale_ups: scale_ups.len(),
            ready: scale_ups.iter().map(|s| s.ready).min().unwrap_or(0),
            seconds: match phase.asks {
                // One refused burst must not hide behind quick ones.
                Asks::Promptness => scale_ups.iter().map(|s| s.seconds).fold(0.0, f64::max),
                _ => median(scale_ups.iter().map(|s| s.seconds).collect()),
            },
            quiet,
            late_max: 0.0,
            wait: quantile(&waits, 0.99),
            answered,
            asked,
            longest_probe,
            names: log.names.clone(),
            quiet_memory: self.quiet_memory.clone(),
            peaks: after.iter().map(|taken| taken.peak).collect(),
            finals: after.iter().map(|taken| taken.resident).collect(),
            cpu: cpu.map(|(b, a)| (a.cpu - b.cpu) / seconds).collect(),
            attacked,
        })
    }

    /// Scale-ups while an attack goes on; what the attack came to.
    fn under_attack(
        &mut self,
        args: &[String],
        at_least: Duration,
    ) -> anyhow::Result<(Vec<ScaleUp>, String)> {
        let begin = now();
        // Under it for as long as it is looked at.
        let mut attack = start(args)?;
        until(
            "the attack is under way",
            2 * UNDER_WAY_AFTER,
            PAUSE,
            || Ok((begin.elapsed() >= UNDER_WAY_AFTER).then_some(())),
        )?;
        // The API server keeps its connections for long; under attack it must get new ones.
        self.parts.hooks.cut();
        let mut scale_ups = Vec::new();
        while scale_ups.is_empty() || begin.elapsed() < at_least {
            scale_ups.push(self.scale_up()?);
        }
        // It says what it did, and ends.
        drop(attack.stdin.take());
        let ended = until("the end of the attack", ENDS_WITHIN, PAUSE, || {
            Ok(attack.try_wait()?)
        });
        let status = ended.inspect_err(|_| drop(attack.kill()))?;
        ensure!(status.success(), "the attack failed ({status}): {args:?}");
        let mut said = String::new();
        let output = attack.stdout.take().context("it was piped")?;
        std::io::BufReader::new(output).read_to_string(&mut said)?;
        Tenants::sweep(self.stage)?;
        Ok((scale_ups, said.trim().to_owned()))
    }

    fn quiet_scale_up(&mut self) -> anyhow::Result<()> {
        let up = self.scale_up()?;
        let what = "of 100 pods are ready in quiet times";
        ensure!(up.ready == super::victim::PODS, "{} {what}", up.ready);
        self.quiet.push(up.seconds);
        Ok(())
    }

    fn scale_up(&mut self) -> anyhow::Result<ScaleUp> {
        let up = self.runtime.block_on(self.victim.scale_up());
        self.observer.log().scale_ups.push(Done {
            at: self.observer.at(),
            seconds: up.seconds,
            wait: quantile(&up.waits, 0.99),
        });
        self.runtime.block_on(self.victim.scale_down())?;
        self.stage.lab.expect_running()?;
        Ok(up)
    }

    fn begin(&self, phase: &str) {
        let at = self.observer.at();
        self.observer.log().phases.push((at, phase.to_owned()));
    }

    /// The observations so far.
    pub(super) fn log(&self) -> Log {
        self.observer.log().clone()
    }

    /// Ends all processes.
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.runtime.shutdown_background();
        Tenants::clear(self.stage)?;
        self.stage.api = None;
        Ok(())
    }
}

fn held(attack: &str, port: u16, connections: u32) -> Vec<String> {
    vec![
        attack.to_owned(),
        format!("--port={port}"),
        format!("--connections={connections}"),
    ]
}

/// Connections to the hooks' port, from other addresses than the API server's.
fn strange(
    field: &Field<'_>,
    attack: &str,
    connections: u32,
    peers: u32,
    namespace: &str,
) -> Vec<String> {
    let mut args = held(attack, field.parts.hooks_port, connections);
    args.push("--from=127.0.0.2".to_owned());
    args.push(format!("--peers={peers}"));
    args.push(format!("--namespace={namespace}"));
    args
}

/// This program as an attacker that yields to all others.
fn start(args: &[String]) -> anyhow::Result<Child> {
    Command::new("nice")
        .args(["-n", "19"])
        .arg(std::env::current_exe()?)
        .args(["attack", "--seconds=3600"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting an attack")
}
