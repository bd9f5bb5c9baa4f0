//! Replicas of admission around one object, and an API server that takes its time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use strew_model::{Labels, Prng, Span};
use strew_workloadspread::admission::{Answer, Effect, Input, Limits, Outcome, RequestId, Verdict};
use strew_workloadspread::{NoPatches, Status};

use crate::world::*;

pub(crate) fn ahead() -> Limits {
    Limits {
        gather_within: Span::from_millis(80),
        ahead: Span::from_secs(4),
        ..Limits::default()
    }
}

/// Replicas of admission around one object, millisecond by millisecond.
pub(crate) struct Replicas {
    pub(crate) servers: Vec<Server>,
    pub(crate) object: strew_workloadspread::WorkloadSpread,
    pub(crate) told: VecDeque<(u64, strew_workloadspread::WorkloadSpread)>,
    pub(crate) due: Vec<(u64, usize, Effect)>,
    pub(crate) now_ms: u64,
    pub(crate) asked_at: BTreeMap<RequestId, u64>,
    /// Milliseconds that each request waited.
    pub(crate) waited: Vec<u64>,
    pub(crate) by_subset: BTreeMap<String, u64>,
    /// What stands for pods that were admitted.
    pub(crate) admitted: BTreeSet<Arc<str>>,
    pub(crate) refused: u64,
    pub(crate) writes: u64,
    pub(crate) conflicts: u64,
    pub(crate) web: strew_workloadspread::WorkloadFact,
    pub(crate) pace: Pace,
    /// While the API server is down, nobody hears from it; of what is on its way, some is carried out.
    pub(crate) down: Option<Prng>,
    /// Watches tell nothing before.
    pub(crate) deaf_until: u64,
}

/// How many milliseconds an API server takes.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) read: u64,
    pub(crate) write: u64,
    /// Until watches tell of a write.
    pub(crate) news: u64,
}

pub(crate) const QUICK: Pace = Pace {
    read: 3,
    write: 5,
    news: 4,
};

pub(crate) const BUSY: Pace = Pace {
    read: 100,
    write: 300,
    news: 100,
};

impl Replicas {
    pub(crate) fn new(n: usize, subsets: Vec<strew_workloadspread::Subset>) -> Self {
        Self::of(n, 10_000, subsets)
    }

    /// Of a target that asks for so many pods.
    pub(crate) fn of(n: usize, pods: i64, subsets: Vec<strew_workloadspread::Subset>) -> Self {
        let words = words();
        let web = workload(words.web(), pods);
        let object = spread(words.web(), subsets);
        let server = |at: usize| {
            let mut server = Server::seeded(
                &words,
                object.clone(),
                std::slice::from_ref(&web),
                ahead(),
                at as u64,
            );
            server.now = secs(1000);
            server
        };
        Self {
            servers: (0..n).map(server).collect(),
            object,
            told: VecDeque::new(),
            due: Vec::new(),
            now_ms: 0,
            asked_at: BTreeMap::new(),
            waited: Vec::new(),
            by_subset: BTreeMap::new(),
            admitted: BTreeSet::new(),
            refused: 0,
            writes: 0,
            conflicts: 0,
            web,
            pace: QUICK,
            down: None,
            deaf_until: 0,
        }
    }

    pub(crate) fn ask(&mut self, at: usize, name: Option<&str>) {
        let id = self.asked_at.len() as u64;
        self.asked_at.insert(RequestId(id), self.now_ms);
        self.servers[at].ask(create(id, asked(&self.web, name, Labels::default()), None));
    }

    /// So many pods come to the first replica, one in so many milliseconds.
    pub(crate) fn come(&mut self, n: usize, gap_ms: u64) {
        for _ in 0..n {
            self.ask(0, None);
            self.pass(gap_ms);
        }
    }

    /// Somebody else changes the object.
    pub(crate) fn change(
        &mut self,
        change: impl FnOnce(&mut strew_workloadspread::WorkloadSpread),
    ) {
        change(&mut self.object);
        self.object.version += 1;
        self.told
            .push_back((self.now_ms + self.pace.news, self.object.clone()));
    }

    /// The target asks for so many pods from now on, and all hear of it.
    pub(crate) fn scale(&mut self, pods: i64) {
        self.web.replicas = Some(pods);
        for server in &mut self.servers {
            server.tell(Input::WorkloadSet(Box::new(self.web.clone())));
        }
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now_ms += 1;
            self.step();
        }
    }

    /// The same, and the controller sees what there is once a second.
    pub(crate) fn pass_synced(&mut self, ms: u64) {
        for _ in 0..ms {
            self.pass(1);
            if self.now_ms.is_multiple_of(1_000) {
                self.sync();
            }
        }
    }

    pub(crate) fn step(&mut self) {
        let now = self.now_ms;
        for server in &mut self.servers {
            server.now = secs(1000) + Span::from_millis(now);
        }
        let is_deaf = self.down.is_some() || now < self.deaf_until;
        while !is_deaf && let Some((_, ws)) = self.told.pop_front_if(|(at, _)| *at <= now) {
            for server in &mut self.servers {
                server.tell(Input::SpreadSet(Box::new(ws.clone())));
            }
        }
        for (_, of, effect) in self
            .due
            .extract_if(.., |(at, ..)| *at <= now)
            .collect::<Vec<_>>()
        {
            let is_lost = self.down.is_some();
            let is_done = self.down.as_mut().is_none_or(|dice| dice.chance(1, 2));
            let (id, outcome) = match effect {
                Effect::ReadSpread { id, .. } | Effect::WriteStatus { id, .. } if !is_done => {
                    // Whether it was sent at all, some requests know.
                    match self.down.as_mut().is_some_and(|dice| dice.chance(1, 2)) {
                        true => (id, Outcome::Failed),
                        false => (id, Outcome::Lost),
                    }
                }
                Effect::ReadSpread { id, .. } => (id, Outcome::Read(Box::new(self.object.clone()))),
                Effect::WriteStatus { id, version, .. } if version != self.object.version => {
                    self.conflicts += 1;
                    (id, Outcome::Conflict)
                }
                Effect::WriteStatus { id, status, .. } => {
                    self.writes += 1;
                    self.change(|object| object.status = status);
                    (id, Outcome::Written(self.object.version))
                }
                Effect::Answer(_) => unreachable!("it is taken at once"),
            };
            let outcome = if is_lost && is_done {
                Outcome::Lost
            } else {
                outcome
            };
            self.servers[of].tell(Input::Outcome(id, outcome));
        }
        for of in 0..self.servers.len() {
            self.servers[of].tell(Input::Tick);
            while let Some(effect) = self.servers[of].machine.poll_effect(&mut NoPatches) {
                match effect {
                    Effect::Answer(answer) => self.answered(of, &answer),
                    Effect::ReadSpread { .. } => self.due.push((now + self.pace.read, of, effect)),
                    Effect::WriteStatus { .. } => {
                        self.due.push((now + self.pace.write, of, effect));
                    }
                }
            }
        }
    }

    pub(crate) fn answered(&mut self, of: usize, answer: &Answer) {
        self.waited
            .push(self.now_ms - self.asked_at[&answer.request]);
        let subset = match &answer.verdict {
            Verdict::Inject(injection) => {
                if let Some(uid) = &injection.marker.uid {
                    // The controller must see the pod before the ledger lets go of its slot.
                    let mut rows = self.object.status.rows("versionIgnored").iter();
                    let since = rows.find_map(|row| row.creating.get(uid));
                    let since = since.expect("whoever is admitted stands in the ledger");
                    assert!(self.servers[of].now < *since + Span::from_secs(18));
                    self.admitted.insert(uid.clone());
                }
                injection.marker.subset.to_string()
            }
            Verdict::Deny(_) => {
                // As its controller would.
                self.refused += 1;
                return self.ask(of, None);
            }
            _ => "none".to_owned(),
        };
        *self.by_subset.entry(subset).or_default() += 1;
    }

    /// The controller has seen all pods that were admitted.
    pub(crate) fn sync(&mut self) {
        let admitted = &self.admitted;
        let mut status = Status::clone(&self.object.status);
        for row in status.versioned.values_mut().flatten() {
            let before = row.creating.len();
            row.creating.retain(|id, _| !admitted.contains(id));
            row.replicas += (before - row.creating.len()) as i32;
        }
        if status != *self.object.status {
            self.change(|object| object.status = Arc::new(status));
        }
    }

    pub(crate) fn counts(&self) -> Vec<(&str, u64)> {
        self.by_subset
            .iter()
            .map(|(s, n)| (s.as_str(), *n))
            .collect()
    }

    /// What is missing, and how many pods stand there.
    pub(crate) fn entered(&self, at: usize) -> (i32, i64) {
        let row = &self.object.status.rows("versionIgnored")[at];
        (row.missing, row.expected())
    }
}
