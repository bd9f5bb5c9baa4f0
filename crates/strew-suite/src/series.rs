//! The counts of the page at each instant: pods of every workload by state and by domain, as lines that change the
//! state of the lines before. The page computes no sums.
//!
//! Of a run that is too large to be seen pod by pod, the page has sums at the end of each step instead (`sums`), and the
//! counts at intervals that grow with their number.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use serde_json::{Map, Value, json};
use strew_apiserver::object::{Kind, Name, Node, Object, Pod, WorkloadSpread};
use strew_apiserver::server::Cursor;
use strew_model::Span;
use strew_sim::Simulation;
use strew_view::moment::Frame;
use strew_view::natural_order::natural_order;
use strew_view::skews::Skews;
use strew_view::view::View;
use strew_view::workload::WorkloadName;
use strew_view::{fleet, heat};

use crate::clock::clock;
use crate::ledgers::Ledgers;

/// The lines so far.
#[derive(Default)]
pub struct Series {
    lines: String,
    /// The lines that a large run has otherwise; of a large run none.
    marks: Vec<Mark>,
    /// The topology keys of the marks.
    keys: Vec<String>,
    seen: Option<Cursor>,
    /// The workload and the state of each pod.
    pods: HashMap<Name, (usize, State)>,
    workloads: BTreeMap<usize, Totals>,
    /// The last written numbers of each workload.
    told_totals: HashMap<usize, Totals>,
    /// The last written counts of each workload and key.
    told: HashMap<(usize, String), BTreeMap<String, i32>>,
    /// The last written skews of keys with many domains.
    told_skews: HashMap<(usize, String), i32>,
    ledgers: Ledgers,
    /// The last written rows of a hub, by key.
    fleet: BTreeMap<String, Value>,
    /// The last written names of nodes, and what they have.
    nodes: (Vec<String>, Vec<i64>),
    /// The sums at the start and at the end of each step, as JSON.
    sums: Vec<String>,
    is_large: bool,
    /// Of a large run: what changed since counts were written, and when they are written next.
    waiting: BTreeSet<usize>,
    next: Span,
    n_lines: usize,
}

/// A line that a large run does not have, or without counts.
struct Mark {
    /// The line in the text.
    text: Range<usize>,
    /// `None` for the room of nodes.
    spread: Option<Spread>,
}

/// The counts of a workload by a key have changed.
#[derive(Clone, Copy)]
struct Spread {
    at: Span,
    workload: usize,
    /// The index of the key.
    by: usize,
    skew: i32,
}

/// With more pods at one time, or with more lines of the log, a run is large: a browser would need more than 50 ms for a
/// step of the slider, or its page more than 2 MB.
const PODS_MAX: usize = 20_000;
const LINES_MAX: usize = 250_000;

/// The counts of a large run are written once in a second of the simulation; after as many lines as these once in two,
/// then once in four.
const INTERVAL: Span = Span(1_000_000_000);
const LINES_PER_INTERVAL: usize = 10_000;

/// Of a large run, keys with more domains have a skew, and no counts by domain.
const DOMAINS_MAX: usize = 100;

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
        self.is_large(simulation, frame, 0);
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

    /// Whether the run is too large to be seen pod by pod, `n_lines` being the lines of its log so far. Once true, it
    /// stays so.
    pub fn is_large(&mut self, simulation: &Simulation, frame: &Frame, n_lines: usize) -> bool {
        let n_nodes = || simulation.server().tables().of::<Node>().len();
        let is_large =
            n_lines > LINES_MAX || self.pods.len() > PODS_MAX || n_nodes() > heat::NODES_MAX;
        if is_large && !self.is_large {
            self.is_large = true;
            self.shorten(&|workload| id(&frame.workloads.list[workload].name));
        }
        self.is_large
    }

    /// Takes out what the page of a large run does not show: counts of many domains, and the room of nodes.
    fn shorten(&mut self, id: &dyn Fn(usize) -> String) {
        let many = self.told.extract_if(|_, counts| counts.len() > DOMAINS_MAX);
        let many: BTreeSet<String> = many.map(|((_, key), _)| key).collect();
        let mut skews = HashMap::new();
        let lines = std::mem::take(&mut self.lines);
        let marks = std::mem::take(&mut self.marks);
        let keys = std::mem::take(&mut self.keys);
        self.n_lines = 0;
        let mut copied = 0;
        for Mark { text, spread } in marks {
            let is_as_it_was = spread.is_some_and(|spread| !many.contains(&keys[spread.by]));
            if is_as_it_was {
                continue;
            }
            self.copy(&lines[copied..text.start]);
            copied = text.end;
            if let Some(spread) = spread {
                let place = (spread.workload, spread.by);
                if skews.insert(place, spread.skew) != Some(spread.skew) {
                    let of = id(spread.workload);
                    self.line(&spread.line(&of, &keys[spread.by], Map::new()));
                }
            }
        }
        self.copy(&lines[copied..]);
    }

    /// What is seen at the end of this step, or at the start (`None`): sums, and what is requested of each node.
    pub fn picture(
        &mut self,
        step: Option<usize>,
        simulation: &Simulation,
        view: &View,
        frame: &Frame,
        skews: &Skews,
    ) {
        let tables = simulation.server().tables();
        let waiting = std::mem::take(&mut self.waiting);
        self.next = Span(0);
        self.write(simulation, frame, skews, waiting);
        let heat = heat::of_view(view, tables);
        let workloads = view.world.workloads.iter().zip(&heat.workloads);
        let own: Map<String, Value> = workloads
            .filter(|(_, boxes)| !boxes.is_empty())
            .map(|(of, boxes)| (id(&of.name), json!(boxes)))
            .collect();
        let mut sums = json!(heat);
        sums["step"] = step.into();
        sums["own"] = own.into();
        self.sums.push(sums.to_string());
        if self.is_large {
            return;
        }
        let cpu = |amounts: &BTreeMap<String, i64>| amounts.get("cpu").copied().unwrap_or(0);
        let nodes = || view.nodes.iter();
        let requested: Vec<i64> = nodes().map(|node| cpu(&node.requested)).collect();
        let known = (
            nodes().map(|node| node.name.clone()).collect(),
            nodes().map(|node| cpu(&node.allocatable)).collect(),
        );
        let mut line = json!({"type": "room", "step": step, "requested": requested});
        if self.nodes != known {
            // One text: a packed page has its parts already, from the log.
            line["nodes"] = known.0.join(" ").into();
            line["allocatable"] = json!(known.1);
            self.nodes = known;
        }
        self.marked(&line, None);
    }

    /// Why a pod stays Pending at the end of this step.
    pub fn why(&mut self, step: usize, mut why: Value) {
        why["type"] = "why".into();
        why["step"] = step.into();
        self.line(&why);
    }

    /// All lines of JSON, and of a large run the list of its sums.
    pub fn finish(self) -> (String, Option<String>) {
        let sums = self.is_large.then(|| format!("[{}]", self.sums.join(",")));
        (self.lines, sums)
    }

    fn copy(&mut self, lines: &str) {
        self.n_lines += lines.lines().count();
        self.lines.push_str(lines);
    }

    /// Adds a line that a large run has otherwise.
    fn marked(&mut self, line: &Value, spread: Option<Spread>) {
        let start = self.lines.len();
        self.line(line);
        if !self.is_large {
            let text = start..self.lines.len();
            self.marks.push(Mark { text, spread });
        }
    }

    /// The index of a topology key.
    fn index(&mut self, key: &str) -> usize {
        let known = self.keys.iter().position(|known| known == key);
        known.unwrap_or_else(|| {
            self.keys.push(key.to_owned());
            self.keys.len() - 1
        })
    }

    fn line(&mut self, line: &Value) {
        self.n_lines += 1;
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
        mut touched: BTreeSet<usize>,
    ) {
        let time = simulation.elapsed();
        if self.is_large {
            self.waiting.append(&mut touched);
            if time < self.next {
                return;
            }
            touched = std::mem::take(&mut self.waiting);
            let doubled = (self.n_lines / LINES_PER_INTERVAL).min(20);
            self.next = Span(time.0.saturating_add(INTERVAL.0 << doubled));
        }
        let at = clock(time);
        let ledgers = self.ledgers.lines(&at);
        ledgers.iter().for_each(|line| self.line(line));
        for &workload in &touched {
            let key = id(&frame.workloads.list[workload].name);
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
                let mut domains: Vec<(&str, i32)> = now.domains;
                let spread = Spread {
                    at: time,
                    workload,
                    by: self.index(now.key),
                    skew: now.skew,
                };
                if self.is_large && domains.len() > DOMAINS_MAX {
                    if self.told_skews.insert(place, now.skew) != Some(now.skew) {
                        self.line(&spread.line(&key, now.key, Map::new()));
                    }
                    continue;
                }
                domains.sort_by(|a, b| natural_order(a.0, b.0));
                let known = self.told.entry(place).or_default();
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
                    self.marked(&spread.line(&key, now.key, changed), Some(spread));
                }
            }
        }
    }
}

impl Spread {
    /// The line of a workload and a key, with the counts that changed.
    fn line(&self, of: &str, by: &str, changed: Map<String, Value>) -> Value {
        json!({
            "at": clock(self.at),
            "type": "spread",
            "of": of,
            "by": by,
            "changed": changed,
            "skew": self.skew,
        })
    }
}

/// Kind, namespace and name: `Deployment shop/web`.
fn id(name: &WorkloadName) -> String {
    format!("{} {}/{}", name.kind, name.namespace, name.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_grows_large_loses_the_counts_of_many_domains_and_keeps_skews() {
        let mut series = Series::default();
        let by = [series.index("host"), series.index("zone")];
        let spread = |by: usize, skew: i32| Spread {
            at: Span(1_000_000_000),
            workload: 0,
            by,
            skew,
        };
        let line = |by: &str, changed: Value, skew: i32| json!({"at": "1s", "type": "spread", "of": "Deployment a/b", "by": by, "changed": changed, "skew": skew});
        let zone = line("zone", json!({"z": 1}), 1);
        let pods = json!({"at": "1s", "type": "workload", "of": "Deployment a/b", "ready": 1});
        let written = [
            (line("host", json!({"n-1": 1}), 1), Some(spread(by[0], 1))),
            (line("host", json!({"n-2": 1}), 1), Some(spread(by[0], 1))),
            (zone.clone(), Some(spread(by[1], 1))),
            (
                json!({"type": "room", "step": null, "requested": [0]}),
                None,
            ),
        ];
        { written.iter() }.for_each(|(line, spread)| series.marked(line, *spread));
        series.line(&pods);
        series.marked(&line("host", json!({"n-1": 2}), 2), Some(spread(by[0], 2)));
        let counts = |n: usize| (0..n).map(|i| (format!("n-{i}"), 1)).collect();
        series.told.insert((0, "host".to_owned()), counts(101));
        series.told.insert((0, "zone".to_owned()), counts(3));
        series.shorten(&|_| "Deployment a/b".to_owned());
        let lines = { series.lines.lines() }.map(serde_json::from_str::<Value>);
        let wanted = [
            line("host", json!({}), 1),
            zone,
            pods,
            line("host", json!({}), 2),
        ];
        assert_eq!(lines.collect::<Result<Vec<_>, _>>().unwrap(), wanted);
        assert_eq!(series.told.len(), 1);
        assert_eq!(series.n_lines, 4);
    }
}
