//! Decides about reviews of evictions, one budget at a time.
//!
//! A grant is answered when its claim is written. Reviews for one domain that wait share a write. After a conflict, or
//! an answer that was lost, the budget is read and the reviews are decided again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::time::{Instant, Span};
use strew_model::{Holds, Interner, Labels, Marks, Symbol};

use crate::HOLD;
use crate::claim::Claim;
use crate::effect::{Answer, Effect, EffectId, Outcome};
use crate::facts::{Ask, BudgetFact, BudgetKey, Input, PodRow, RequestId};
use crate::rule::{Away, Place, PodState, Situation, Verdict, decide, is_whole};

/// How often a review is decided again after a conflict before its client is asked to try again.
const ATTEMPTS_MAX: u32 = 5;

/// The pause after a claim could not be taken out.
const PAUSE: Span = Span::from_secs(60);

/// The number of new strings after which unused ones are freed.
const SWEEP_MIN: usize = 512;

/// What the machine has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Reviews about pods of no annotated budget, or of pods that are away themselves.
    pub passed: u64,
    /// Granted evictions.
    pub granted: u64,
    /// Refused evictions.
    pub refused: u64,
    /// Evictions left to the plain budget because no claim could be written.
    pub open: u64,
}

/// The machine.
#[derive(Debug, Default)]
pub struct Zones {
    names: Interner,
    budgets: BTreeMap<BudgetKey, Row>,
    pods: BTreeMap<Symbol, BTreeMap<Box<str>, PodRow>>,
    nodes: FxHashMap<Symbol, (Labels, bool)>,
    /// Budgets about which there may be something to decide.
    ready: BTreeSet<BudgetKey>,
    effects: VecDeque<Effect>,
    n_effects: u64,
    /// The budgets of effects without an outcome.
    pending: BTreeMap<EffectId, BudgetKey>,
    counters: Counters,
    now: Instant,
}

/// A budget.
#[derive(Debug)]
struct Row {
    fact: BudgetFact,
    /// Since when the claim is known. Another replica's clock plays no part.
    seen: Instant,
    /// True if the claim was looked at since it is old enough to be taken out.
    is_looked_at: bool,
    /// Until then no claim is taken out, since the API server refused that.
    stays_until: Instant,
    waiting: VecDeque<Waiting>,
    state: State,
}

#[derive(Debug)]
struct Waiting {
    ask: Ask,
    attempts: u32,
}

/// What is under way.
#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Writing(Batch),
    Reading,
}

/// A write under way.
#[derive(Debug)]
struct Batch {
    claim: Option<Claim>,
    granted: Vec<Waiting>,
}

impl Zones {
    /// A machine without facts, with symbols of this interner.
    pub fn new(names: Interner) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// The strings of facts.
    pub fn names(&self) -> &Interner {
        &self.names
    }

    /// The strings of facts.
    pub fn names_mut(&mut self) -> &mut Interner {
        &mut self.names
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// True if there is an annotated budget.
    pub fn has_budgets(&self) -> bool {
        !self.budgets.is_empty()
    }

    /// True if there is an annotated budget in this namespace.
    pub fn has_budgets_in(&self, namespace: &str) -> bool {
        let namespace = self.names.get(namespace);
        namespace.is_some_and(|namespace| self.keys_in(namespace).next().is_some())
    }

    /// Takes an input. A time before the last one counts as the last one.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.now = self.now.max(now);
        match input {
            Input::Asked(ask) => self.asked(ask),
            Input::GivenUp(id) => self.give_up(id),
            Input::Budget(key, fact) => self.set_budget(key, fact),
            Input::Pod(namespace, name, row) => {
                let pods = self.pods.entry(namespace).or_default();
                match row {
                    Some(row) => drop(pods.insert(name, *row)),
                    None => drop(pods.remove(&name)),
                }
                self.look_at_claims_of(Some(namespace));
            }
            Input::Node(name, row) => {
                let before = match row.clone() {
                    Some(row) => self.nodes.insert(name, row),
                    None => self.nodes.remove(&name),
                };
                if before != row {
                    self.look_at_claims_of(None);
                }
            }
            Input::Outcome(id, outcome) => self.outcome(id, outcome),
            Input::Tick => {}
        }
        self.look_at_old_claims();
        self.sweep_if_due();
    }

    /// The next effect; `None`: nothing to do before the next input or [`next_wake`](Self::next_wake).
    pub fn poll_effect(&mut self) -> Option<Effect> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            let key = self.ready.pop_first()?;
            self.run(&key);
        }
    }

    /// When a claim is old enough to be taken out; `None`: no claim waits for its time.
    pub fn next_wake(&self) -> Option<Instant> {
        let claimed = self
            .budgets
            .values()
            .filter(|row| row.fact.claim.is_some() && !row.is_looked_at);
        claimed.map(|row| row.seen + HOLD).min()
    }

    // === facts ===

    fn keys_in(&self, namespace: Symbol) -> impl Iterator<Item = &BudgetKey> {
        let first = BudgetKey {
            namespace,
            name: "".into(),
        };
        let keys = self.budgets.range(first..).map(|(key, _)| key);
        keys.take_while(move |key| key.namespace == namespace)
    }

    /// The newest version wins: a watch may be behind the machine's own writes.
    fn set_budget(&mut self, key: BudgetKey, fact: Option<Box<BudgetFact>>) {
        let Some(fact) = fact else {
            if let Some(row) = self.budgets.remove(&key) {
                let in_flight = match row.state {
                    State::Writing(batch) => batch.granted,
                    State::Idle | State::Reading => Vec::new(),
                };
                for waiting in row.waiting.into_iter().chain(in_flight) {
                    self.answer(waiting.ask.id, Answer::Pass);
                }
            }
            self.ready.remove(&key);
            return;
        };
        match self.budgets.get_mut(&key) {
            Some(row) if row.fact.uid == fact.uid && row.fact.version >= fact.version => {}
            Some(row) => {
                if row.fact.claim != fact.claim {
                    row.see(self.now);
                }
                row.fact = *fact;
                self.ready.insert(key);
            }
            None => {
                let row = Row {
                    fact: *fact,
                    seen: self.now,
                    is_looked_at: false,
                    stays_until: Instant::default(),
                    waiting: VecDeque::new(),
                    state: State::Idle,
                };
                self.budgets.insert(key, row);
            }
        }
    }

    /// The claims of a namespace may have served; `None`: those of all.
    fn look_at_claims_of(&mut self, namespace: Option<Symbol>) {
        let claimed = self.budgets.iter().filter(|(key, row)| {
            row.fact.claim.is_some() && namespace.is_none_or(|namespace| namespace == key.namespace)
        });
        self.ready.extend(claimed.map(|(key, _)| key.clone()));
    }

    /// Later a claim waits for pods, and is looked at when they change.
    fn look_at_old_claims(&mut self) {
        let now = self.now;
        for (key, row) in &mut self.budgets {
            let is_due = row.fact.claim.is_some() && row.seen + HOLD <= now;
            if is_due && !row.is_looked_at {
                row.is_looked_at = true;
                self.ready.insert(key.clone());
            }
        }
    }

    // === reviews ===

    fn asked(&mut self, ask: Ask) {
        let pod = self.pods.get(&ask.namespace);
        let pod = pod.and_then(|pods| pods.get(&ask.pod));
        let selects = |pod: &PodRow, key: &&BudgetKey| {
            !pod.labels.is_empty() && self.budgets[*key].fact.selector.matches(&pod.labels)
        };
        let found: Option<Vec<BudgetKey>> = pod.map(|pod| {
            let keys = self.keys_in(ask.namespace);
            keys.filter(|key| selects(pod, key)).cloned().collect()
        });
        // The API server refuses an eviction from several budgets by itself.
        match found.as_deref() {
            Some([key]) => {
                if let Some(row) = self.budgets.get_mut(key) {
                    row.waiting.push_back(Waiting { ask, attempts: 0 });
                }
                self.ready.insert(key.clone());
            }
            _ => self.answer(ask.id, Answer::Pass),
        }
    }

    fn give_up(&mut self, id: RequestId) {
        for row in self.budgets.values_mut() {
            row.waiting.retain(|waiting| waiting.ask.id != id);
            if let State::Writing(batch) = &mut row.state {
                batch.granted.retain(|waiting| waiting.ask.id != id);
            }
        }
    }

    fn answer(&mut self, id: RequestId, answer: Answer) {
        let counters = &mut self.counters;
        let counter = match &answer {
            Answer::Pass => &mut counters.passed,
            Answer::Granted => &mut counters.granted,
            Answer::Open => &mut counters.open,
            Answer::Refused(_) => &mut counters.refused,
        };
        *counter += 1;
        self.effects.push_back(Effect::Answer(id, answer));
    }

    /// Decides about the reviews of a budget, and whether its claim has served.
    fn run(&mut self, key: &BudgetKey) {
        let Some(row) = self.budgets.get_mut(key) else {
            return;
        };
        if !matches!(row.state, State::Idle) {
            return;
        }
        let waiting = std::mem::take(&mut row.waiting);
        let row = &self.budgets[key];
        let pods = self.pods_of(key.namespace, &row.fact);
        let situation = Situation {
            pods: &pods,
            missing: row.fact.expected.saturating_sub(present(&pods)),
            claim: row.fact.claim.as_ref(),
            is_held: row.fact.claim.is_some() && self.now < row.seen + HOLD,
        };
        let turn = Turn::of(
            situation,
            row,
            self.names.text(row.fact.topology_key),
            waiting,
            key,
        );
        let is_done =
            row.fact.claim.is_some() && self.now >= row.stays_until && is_whole(&situation);
        let claim = match turn.claim {
            Some(claim) => Some(Some(claim)),
            None => is_done.then_some(None),
        };
        let (uid, version) = (Arc::clone(&row.fact.uid), row.fact.version);
        for (id, answer) in turn.answers {
            self.answer(id, answer);
        }
        let Some(claim) = claim else { return };
        let id = self.effect_of(key);
        self.effects.push_back(Effect::WriteClaim {
            id,
            key: key.clone(),
            uid,
            version,
            claim: claim.clone(),
        });
        if let Some(row) = self.budgets.get_mut(key) {
            row.state = State::Writing(Batch {
                claim,
                granted: turn.granted,
            });
        }
    }

    /// The pods that a budget selects.
    fn pods_of<'a>(&'a self, namespace: Symbol, fact: &BudgetFact) -> Vec<PodState<'a>> {
        let pods = self.pods.get(&namespace).into_iter().flatten();
        let selected =
            pods.filter(|(_, pod)| !pod.labels.is_empty() && fact.selector.matches(&pod.labels));
        selected
            .map(|(name, pod)| {
                let node = pod.node.map(|node| self.nodes.get(&node));
                let (place, of_node) = match node {
                    None => (Place::Nowhere, Some(Away::Pending)),
                    Some(None) => (Place::Nowhere, Some(Away::NodeGone)),
                    Some(Some((labels, is_ready))) => {
                        let domain = labels.get(fact.topology_key);
                        let domain = domain.map(|domain| self.names.text(domain));
                        (Place::In(domain), (!is_ready).then_some(Away::NodeNotReady))
                    }
                };
                PodState {
                    name,
                    uid: &pod.uid,
                    place,
                    away: pod.away.into_iter().chain(of_node).min(),
                }
            })
            .collect()
    }

    // === outcomes ===

    fn effect_of(&mut self, key: &BudgetKey) -> EffectId {
        self.n_effects += 1;
        let id = EffectId(self.n_effects);
        self.pending.insert(id, key.clone());
        id
    }

    fn outcome(&mut self, id: EffectId, outcome: Outcome) {
        let Some(key) = self.pending.remove(&id) else {
            return;
        };
        let Some(row) = self.budgets.get_mut(&key) else {
            return;
        };
        let state = std::mem::take(&mut row.state);
        self.ready.insert(key.clone());
        match (state, outcome) {
            (State::Writing(batch), Outcome::Written(version)) => {
                // A watch may have shown a newer state already.
                if row.fact.version < version {
                    row.fact.version = version;
                    row.fact.claim = batch.claim;
                }
                row.see(self.now);
                for waiting in batch.granted {
                    self.answer(waiting.ask.id, Answer::Granted);
                }
            }
            (State::Writing(batch), Outcome::Conflict | Outcome::Lost) => {
                self.again(&key, batch.granted);
                self.read(&key);
            }
            (State::Writing(batch), Outcome::Gone) => {
                for waiting in batch.granted {
                    self.answer(waiting.ask.id, Answer::Pass);
                }
            }
            (State::Writing(batch), Outcome::Failed | Outcome::Read(_)) => {
                row.stays_until = self.now + PAUSE;
                for waiting in batch.granted {
                    self.answer(waiting.ask.id, Answer::Open);
                }
            }
            (State::Reading, Outcome::Read(fact)) => self.set_budget(key, fact),
            (State::Reading, Outcome::Gone) => self.set_budget(key, None),
            (State::Reading, _) => {
                let waiting = std::mem::take(&mut row.waiting);
                for waiting in waiting {
                    self.answer(waiting.ask.id, Answer::Open);
                }
            }
            (State::Idle, _) => {}
        }
    }

    /// Reviews are decided again, before those that came since, unless that was tried often enough.
    fn again(&mut self, key: &BudgetKey, granted: Vec<Waiting>) {
        let mut busy = Vec::new();
        if let Some(row) = self.budgets.get_mut(key) {
            for mut waiting in granted.into_iter().rev() {
                waiting.attempts += 1;
                match waiting.attempts < ATTEMPTS_MAX {
                    true => row.waiting.push_front(waiting),
                    false => busy.push(waiting.ask.id),
                }
            }
        }
        for id in busy {
            let text = format!(
                "The disruption budget {} is being written by others.",
                key.name
            );
            self.answer(id, Answer::Refused(text.into()));
        }
    }

    fn read(&mut self, key: &BudgetKey) {
        let id = self.effect_of(key);
        let key = key.clone();
        if let Some(row) = self.budgets.get_mut(&key) {
            row.state = State::Reading;
        }
        self.effects.push_back(Effect::Read { id, key });
    }

    // === memory ===

    fn sweep_if_due(&mut self) {
        if !self.names.is_sweep_due(SWEEP_MIN) {
            return;
        }
        self.pods.retain(|_, pods| !pods.is_empty());
        let mut marks = self.names.marks();
        for (key, row) in &self.budgets {
            key.namespace.mark(&mut marks);
            row.mark(&mut marks);
        }
        for (namespace, pods) in &self.pods {
            namespace.mark(&mut marks);
            pods.values().for_each(|pod| pod.mark(&mut marks));
        }
        #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
        for (name, (labels, _)) in &self.nodes {
            name.mark(&mut marks);
            labels.mark(&mut marks);
        }
        self.ready
            .iter()
            .for_each(|key| key.namespace.mark(&mut marks));
        self.pending
            .values()
            .for_each(|key| key.namespace.mark(&mut marks));
        self.effects
            .iter()
            .for_each(|effect| effect.mark(&mut marks));
        self.names.sweep(&marks);
    }
}

impl Row {
    /// Notes that its claim is a new one.
    fn see(&mut self, now: Instant) {
        self.seen = now;
        self.is_looked_at = false;
    }
}

impl Holds for Row {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            fact,
            seen: _,
            is_looked_at: _,
            stays_until: _,
            waiting,
            state,
        } = self;
        fact.topology_key.mark(marks);
        fact.selector.mark(marks);
        let in_flight = match state {
            State::Writing(batch) => batch.granted.as_slice(),
            State::Idle | State::Reading => &[],
        };
        for waiting in waiting.iter().chain(in_flight) {
            waiting.ask.namespace.mark(marks);
        }
    }
}

impl Holds for PodRow {
    fn mark(&self, marks: &mut Marks) {
        self.labels.mark(marks);
        self.node.mark(marks);
    }
}

/// Pods that are there: a pod that is being deleted is lacking already, as its replacement is not created yet or counts
/// by itself.
fn present(pods: &[PodState<'_>]) -> u32 {
    let there = pods.iter().filter(|pod| pod.away != Some(Away::Deleted));
    u32::try_from(there.count()).unwrap_or(u32::MAX)
}

/// The decisions about the reviews of a budget.
#[derive(Default)]
struct Turn {
    answers: Vec<(RequestId, Answer)>,
    granted: Vec<Waiting>,
    claim: Option<Claim>,
}

impl Turn {
    /// Decides about each review: the first one that can be granted determines the domain, and as many share its claim
    /// as the plain budget allows.
    fn of(
        situation: Situation<'_>,
        row: &Row,
        topology_key: &str,
        waiting: VecDeque<Waiting>,
        key: &BudgetKey,
    ) -> Self {
        let mut turn = Self::default();
        for waiting in waiting {
            let Ask { id, is_dry_run, .. } = waiting.ask;
            let claimed = turn.claim.as_ref();
            let situation = Situation {
                claim: claimed.or(situation.claim),
                is_held: claimed.is_some() || situation.is_held,
                ..situation
            };
            let asked = situation
                .pods
                .iter()
                .find(|pod| *pod.name == *waiting.ask.pod);
            let verdict = asked.map_or(Verdict::Pass, |asked| decide(&situation, asked));
            match verdict {
                Verdict::Pass => turn.answers.push((id, Answer::Pass)),
                Verdict::Refuse(refusal) => {
                    let text = refusal.text(&key.name, topology_key);
                    turn.answers.push((id, Answer::Refused(text.into())));
                }
                Verdict::Grant(_)
                    if turn.granted.len() >= usize::try_from(row.fact.allowed).unwrap_or(0) =>
                {
                    let text = format!(
                        "The disruption budget {} does not allow evicting pods currently.",
                        key.name
                    );
                    turn.answers.push((id, Answer::Refused(text.into())));
                }
                Verdict::Grant(_) if is_dry_run => turn.answers.push((id, Answer::Pass)),
                Verdict::Grant(claim) => {
                    turn.claim = Some(claim);
                    turn.granted.push(waiting);
                }
            }
        }
        turn
    }
}
