//! Counters of the machine, beside those of its queue and its engines.

use std::borrow::Cow;
use std::collections::BTreeMap;

use strew_model::Span;

use super::catalogue;
use super::family::{Family, Info, Kind, Value};
use super::histogram::Histogram;
use super::{Point, Status, Stopwatch};

/// The result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attempt {
    Scheduled,
    Unschedulable,
    Error,
}

impl Attempt {
    fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Unschedulable => "unschedulable",
            Self::Error => "error",
        }
    }
}

/// Pods with at least this many attempts share one label. Source: kube-scheduler, `getAttemptsLabel`.
const MANY_ATTEMPTS: u32 = 15;

/// The machine's counts.
#[derive(Default)]
pub(crate) struct Counters {
    clock: Option<Stopwatch>,
    /// By result and profile index.
    attempts: BTreeMap<(Attempt, usize), u64>,
    durations: BTreeMap<(Attempt, usize), Histogram>,
    algorithm: Option<Histogram>,
    points: BTreeMap<(Point, Status, usize), Histogram>,
    sli: BTreeMap<u32, Histogram>,
    attempts_of_pods: Option<Histogram>,
    pub(crate) after_flush: u64,
    pub(crate) preemptions: u64,
    victims: Option<Histogram>,
    /// By whether they succeeded.
    executions: BTreeMap<bool, Histogram>,
    events: BTreeMap<&'static str, Histogram>,
}

fn of(info: &'static Info) -> Histogram {
    match info.kind {
        Kind::Histogram(buckets) => Histogram::new(buckets),
        _ => unreachable!("{} is a histogram in the catalogue", info.name),
    }
}

// === what the machine does with it ===

impl Counters {
    pub(crate) fn measure_with(&mut self, clock: Stopwatch) {
        self.clock = Some(clock);
    }

    /// The clock's reading; `None` without a clock.
    pub(crate) fn read(&self) -> Option<u64> {
        self.clock.map(|clock| clock())
    }

    fn since(&self, begun: Option<u64>) -> Option<u64> {
        Some(self.read()?.saturating_sub(begun?))
    }

    /// An attempt that began at `begun` has ended.
    pub(crate) fn attempt(&mut self, result: Attempt, profile: usize, begun: Option<u64>) {
        let key = (result, profile);
        *self.attempts.entry(key).or_default() += 1;
        if let Some(took) = self.since(begun) {
            let histogram = self.durations.entry(key);
            histogram
                .or_insert_with(|| of(&catalogue::SCHEDULING_ATTEMPT_DURATION))
                .observe(took);
        }
    }

    /// A decision that began at `begun` was made.
    pub(crate) fn decided(&mut self, begun: Option<u64>) {
        if let Some(took) = self.since(begun) {
            let histogram = &mut self.algorithm;
            histogram
                .get_or_insert_with(|| of(&catalogue::SCHEDULING_ALGORITHM_DURATION))
                .observe(took);
        }
    }

    /// An extension point that began at `begun` has ended.
    pub(crate) fn passed(
        &mut self,
        point: Point,
        status: Status,
        profile: usize,
        begun: Option<u64>,
    ) {
        if let Some(took) = self.since(begun) {
            self.took(point, status, profile, Span(took));
        }
    }

    /// An extension point has taken this long.
    pub(crate) fn took(&mut self, point: Point, status: Status, profile: usize, took: Span) {
        let histogram = self.points.entry((point, status, profile));
        histogram
            .or_insert_with(|| of(&catalogue::EXTENSION_POINT_DURATION))
            .observe(took.0);
    }

    /// A pod was bound after `attempts` attempts, this long after it first entered the active queue.
    pub(crate) fn bound(&mut self, attempts: u32, waited: Span) {
        let histogram = self.sli.entry(attempts.min(MANY_ATTEMPTS));
        histogram
            .or_insert_with(|| of(&catalogue::POD_SCHEDULING_SLI_DURATION))
            .observe(waited.0);
        let histogram = &mut self.attempts_of_pods;
        histogram
            .get_or_insert_with(|| of(&catalogue::POD_SCHEDULING_ATTEMPTS))
            .observe(attempts.into());
    }

    /// One preemption has this many victims.
    pub(crate) fn victims(&mut self, pods: usize) {
        let histogram = &mut self.victims;
        histogram
            .get_or_insert_with(|| of(&catalogue::PREEMPTION_VICTIMS))
            .observe(pods as u64);
    }

    /// All victims of one pod were asked to terminate.
    pub(crate) fn asked_victims(&mut self, well: bool, took: Span) {
        let histogram = self.executions.entry(well);
        histogram
            .or_insert_with(|| of(&catalogue::PREEMPTION_DURATION))
            .observe(took.0);
    }

    /// A fact that arrived at `begun` was handled.
    pub(crate) fn handled(&mut self, event: &'static str, begun: Option<u64>) {
        if let Some(took) = self.since(begun) {
            let histogram = self.events.entry(event);
            histogram
                .or_insert_with(|| of(&catalogue::EVENT_HANDLING_DURATION))
                .observe(took);
        }
    }
}

// === readings ===

/// A family with one histogram, which may be empty.
fn single(info: &'static Info, histogram: &Option<Histogram>) -> Family {
    let empty;
    let histogram = match histogram {
        Some(histogram) => histogram,
        None => {
            empty = of(info);
            &empty
        }
    };
    Family::of(info, Value::histogram(histogram))
}

impl Counters {
    /// The families; `profile` maps an index to a name. `points` takes the samples that belong to the engines' family.
    pub(crate) fn families(
        &self,
        profile: impl Fn(usize) -> Cow<'static, str>,
        points: &mut Family,
    ) -> Vec<Family> {
        for (&(point, status, place), histogram) in &self.points {
            let labels = [point.name().into(), status.into(), profile(place)];
            points.push(labels, Value::histogram(histogram));
        }
        let mut attempts = Family::new(&catalogue::SCHEDULE_ATTEMPTS);
        for (&(result, place), &count) in &self.attempts {
            attempts.push([result.name().into(), profile(place)], Value::Count(count));
        }
        let mut durations = Family::new(&catalogue::SCHEDULING_ATTEMPT_DURATION);
        let mut end_to_end = Family::new(&catalogue::E2E_SCHEDULING_DURATION);
        for (&(result, place), histogram) in &self.durations {
            for family in [&mut durations, &mut end_to_end] {
                let labels = [result.name().into(), profile(place)];
                family.push(labels, Value::histogram(histogram));
            }
        }
        let mut sli = Family::new(&catalogue::POD_SCHEDULING_SLI_DURATION);
        for (&attempts, histogram) in &self.sli {
            let label = match attempts {
                MANY_ATTEMPTS.. => format!("{MANY_ATTEMPTS}+"),
                few => few.to_string(),
            };
            sli.push([label.into()], Value::histogram(histogram));
        }
        let mut events = Family::new(&catalogue::EVENT_HANDLING_DURATION);
        for (&event, histogram) in &self.events {
            events.push([event.into()], Value::histogram(histogram));
        }
        let mut execution = Family::new(&catalogue::PREEMPTION_EXECUTION);
        let mut asked = Family::new(&catalogue::PREEMPTION_DURATION);
        for (&well, histogram) in &self.executions {
            let result = if well { "success" } else { "error" };
            execution.push([result.into()], Value::Count(histogram.count()));
            asked.push([result.into()], Value::histogram(histogram));
        }
        let count = |info, count| Family::of(info, Value::Count(count));
        vec![
            attempts,
            durations,
            end_to_end,
            single(&catalogue::SCHEDULING_ALGORITHM_DURATION, &self.algorithm),
            sli,
            single(&catalogue::POD_SCHEDULING_ATTEMPTS, &self.attempts_of_pods),
            count(&catalogue::POD_SCHEDULED_AFTER_FLUSH, self.after_flush),
            count(&catalogue::PREEMPTION_ATTEMPTS, self.preemptions),
            single(&catalogue::PREEMPTION_VICTIMS, &self.victims),
            asked,
            execution,
            events,
        ]
    }
}
