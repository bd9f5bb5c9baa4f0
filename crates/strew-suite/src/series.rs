//! The counts of the page at each instant: pods of every workload by state and by domain, as lines that change the
//! state of the lines before. The page computes no sums.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};
use strew_apiserver::object::{Kind, Name, Object, Pod, WorkloadSpread};
use strew_apiserver::server::Cursor;
use strew_sim::Simulation;
use strew_view::fleet;
use strew_view::moment::Frame;
use strew_view::natural_order::natural_order;
use strew_view::skews::Skews;

use crate::clock::clock;
use crate::ledgers::Ledgers;

/// The lines so far.
#[derive(Default)]
pub struct Series {
    lines: String,
    seen: Option<Cursor>,
    /// The workload and the state of each pod.
    pods: HashMap<Name, (usize, State)>,
    workloads: BTreeMap<usize, Totals>,
    /// The last written numbers of each workload.
    told_totals: HashMap<usize, Totals>,
    /// The last written counts of each workload and key.
    told: HashMap<(usize, String), BTreeMap<String, i32>>,
    ledgers: Ledgers,
    /// The last written rows of a hub, by key.
    fleet: BTreeMap<String, Value>,
}

/// What a hub's Placements and clusters are made of.
const HUB: [&str; 3] = ["Placement", "PlacementDecision", "ManagedCluster"];

/// The states of pods on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Pending,
    Starting,
    Ready,
    Terminating,
}

/// Pods of a workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    pending: i64,
    ready: i64,
    terminating: i64,
}

impl Totals {
    fn add(&mut self, state: State, n: i64) {
        match state {
            State::Pending => self.pending += n,
            State::Terminating => self.terminating += n,
            State::Ready => self.ready += n,
            State::Starting => {}
        }
    }
}

impl Series {
    /// Follows a simulation from its start.
    pub fn follow(&mut self, simulation: &Simulation, frame: &mut Frame, skews: &Skews) {
        self.seen = Some(simulation.server().listen());
        let tables = simulation.server().tables();
        let mut touched = BTreeSet::new();
        for spread in tables.of::<WorkloadSpread>().iter() {
            self.ledgers.set_spread(&spread.meta.name, Some(spread));
        }
        for pod in tables.of::<Pod>().iter() {
            self.ledgers.set_pod(&pod.meta.name, Some(pod));
            self.set(simulation, frame, pod, &mut touched);
        }
        self.write_fleet(simulation);
        self.write(simulation, frame, skews, touched);
    }

    /// An instant is over, in which the counts of these workloads changed.
    pub fn observe(
        &mut self,
        simulation: &Simulation,
        frame: &mut Frame,
        skews: &Skews,
        counted: BTreeSet<usize>,
    ) {
        let mut touched = counted;
        let mut is_hub_touched = false;
        let Some(mut seen) = self.seen.take() else {
            return;
        };
        while let Some(change) = simulation.server().next_change(&mut seen) {
            let name = &change.key.name;
            is_hub_touched |= HUB.contains(&change.key.kind.name());
            match &change.new {
                Some(Object::Pod(pod)) => {
                    self.ledgers.set_pod(name, Some(pod));
                    self.set(simulation, frame, pod, &mut touched);
                }
                None if change.is_of(&Kind::Pod) => {
                    self.ledgers.set_pod(name, None);
                    self.take(name, &mut touched);
                }
                Some(Object::WorkloadSpread(spread)) => {
                    self.ledgers.set_spread(name, Some(spread));
                }
                None if change.is_of(&Kind::WorkloadSpread) => self.ledgers.set_spread(name, None),
                _ => {}
            }
        }
        self.seen = Some(seen);
        if is_hub_touched {
            self.write_fleet(simulation);
        }
        self.write(simulation, frame, skews, touched);
    }

    /// Why a pod stays Pending at the end of this step.
    pub fn why(&mut self, step: usize, mut why: Value) {
        why["type"] = "why".into();
        why["step"] = step.into();
        self.line(&why);
    }

    /// All lines of JSON.
    pub fn finish(self) -> String {
        self.lines
    }

    fn line(&mut self, line: &Value) {
        self.lines.push_str(&line.to_string());
        self.lines.push('\n');
    }

    fn set(
        &mut self,
        simulation: &Simulation,
        frame: &mut Frame,
        pod: &Pod,
        touched: &mut BTreeSet<usize>,
    ) {
        let name = &pod.meta.name;
        let state = match () {
            () if pod.is_finished() => return self.take(name, touched),
            () if pod.meta.is_terminating() => State::Terminating,
            () if pod.node.is_none() => State::Pending,
            () if pod.is_ready() => State::Ready,
            () => State::Starting,
        };
        let workload = match self.pods.get(name) {
            Some((_, known)) if *known == state => return,
            Some((workload, _)) => *workload,
            None => frame.workloads.of_live(simulation.server().tables(), pod),
        };
        self.take(name, touched);
        self.workloads.entry(workload).or_default().add(state, 1);
        self.pods.insert(name.clone(), (workload, state));
        touched.insert(workload);
    }

    fn take(&mut self, name: &Name, touched: &mut BTreeSet<usize>) {
        if let Some((workload, state)) = self.pods.remove(name) {
            self.workloads.entry(workload).or_default().add(state, -1);
            touched.insert(workload);
        }
    }

    /// The Placements and clusters that are not as they were written last.
    fn write_fleet(&mut self, simulation: &Simulation) {
        let rows = fleet::rows(simulation.server().tables());
        let at = clock(simulation.elapsed());
        let before = std::mem::take(&mut self.fleet);
        let gone = before.keys().filter(|key| !rows.contains_key(*key));
        let new = rows
            .iter()
            .filter(|(key, row)| before.get(*key) != Some(*row));
        let changed = new.map(|(key, row)| (key, Some(row)));
        for (key, row) in changed.chain(gone.map(|key| (key, None))) {
            self.line(&json!({"at": at, "type": "fleet", "of": key, "row": row}));
        }
        self.fleet = rows;
    }

    fn write(
        &mut self,
        simulation: &Simulation,
        frame: &Frame,
        skews: &Skews,
        touched: BTreeSet<usize>,
    ) {
        let at = clock(simulation.elapsed());
        let ledgers = self.ledgers.lines(&at);
        ledgers.iter().for_each(|line| self.line(line));
        for &workload in &touched {
            let name = &frame.workloads.list[workload].name;
            let key = format!("{} {}/{}", name.kind, name.namespace, name.name);
            let totals = self.workloads.get(&workload).copied().unwrap_or_default();
            if self.told_totals.insert(workload, totals) != Some(totals) {
                self.line(&json!({
                    "at": at,
                    "type": "workload",
                    "of": key,
                    "ready": totals.ready,
                    "pending": totals.pending,
                    "terminating": totals.terminating,
                }));
            }
            for now in skews.now(workload) {
                let place = (workload, now.key.to_owned());
                let known = self.told.entry(place).or_default();
                let mut domains: Vec<(&str, i32)> = now.domains;
                domains.sort_by(|a, b| natural_order(a.0, b.0));
                let counts = domains.iter().map(|(domain, n)| ((*domain).to_owned(), *n));
                let counts: BTreeMap<String, i32> = counts.collect();
                let mut changed = Map::new();
                for (domain, n) in &domains {
                    if known.get(*domain) != Some(n) {
                        changed.insert((*domain).to_owned(), (*n).into());
                    }
                }
                for gone in known.keys().filter(|domain| !counts.contains_key(*domain)) {
                    changed.insert(gone.clone(), Value::Null);
                }
                if !changed.is_empty() {
                    *known = counts;
                    self.line(&json!({
                        "at": at,
                        "type": "spread",
                        "of": key,
                        "by": now.key,
                        "changed": changed,
                        "skew": now.skew,
                    }));
                }
            }
        }
    }
}
