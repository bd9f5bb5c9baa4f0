//! Faults and crashes: what goes wrong, and for how long.

use strew_model::Span;

use super::diagnostics;
use super::problems::Problems;
use super::ratio::Ratio;
use super::value::{At, Fields};
use super::vocabulary::{
    BIND_FAULT, CLOCK_FAULT, COMPONENTS, CONFLICT_FAULT, CRASH, FAULT, OUTAGE,
    SECOND_SCHEDULER_FAULT, WATCH_FAULT,
};

/// A fault that begins with its step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Watches misbehave.
    Watch {
        /// Events arrive this much later.
        delay: Span,
        /// The share of events that arrive twice.
        repeat: Ratio,
        /// The share of events after which the watch breaks.
        cut: Ratio,
        /// Its duration.
        lasts: Span,
    },
    /// Writes are refused with conflicts.
    Conflict {
        /// The share of writes that are refused.
        rate: Ratio,
        /// Its duration.
        lasts: Span,
    },
    /// Bindings are slow or fail.
    Bind {
        /// Each binding takes this long.
        slow: Span,
        /// The share of bindings that fail.
        fail: Ratio,
        /// Its duration.
        lasts: Span,
    },
    /// The clock jumps forward.
    Clock {
        /// By this much.
        jump: Span,
    },
    /// A second scheduler runs beside the first.
    SecondScheduler {
        /// Its duration.
        lasts: Span,
    },
}

/// A component that a crash can stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The scheduler.
    Scheduler,
    /// strew's admission webhook.
    Webhook,
    /// strew's controller of WorkloadSpreads.
    Controller,
    /// Kubernetes' controllers.
    Controllers,
}

/// A crash: the component stops, and starts again without any state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// The component.
    pub component: Component,
    /// How long the component is down.
    pub lasts: Span,
}

/// In the order of [`COMPONENTS`].
const ALL: [Component; 4] = [
    Component::Scheduler,
    Component::Webhook,
    Component::Controller,
    Component::Controllers,
];

/// The outage of a crash that gives none.
const OUTAGE_DEFAULT: Span = Span::from_secs(1);

/// Reads `crash`: a list of components, or an object of components with their outages.
pub(super) fn crashes(at: &At<'_>, problems: &mut Problems) -> Vec<Crash> {
    let mut found = Vec::new();
    if !at.value.is_object() {
        for at in at.one_or_many(problems) {
            if let Some(index) = at.choice(COMPONENTS, problems) {
                let (component, lasts) = (ALL[index], OUTAGE_DEFAULT);
                found.push(Crash { component, lasts });
            }
        }
        return found;
    }
    let Some(fields) = at.fields(&CRASH, problems) else {
        return found;
    };
    // `scheduler:` without a value is a crash, with the default outage.
    for (name, value) in at.value.as_object().into_iter().flatten() {
        let Some(index) = COMPONENTS.iter().position(|known| known == name) else {
            continue;
        };
        let component = ALL[index];
        let path = fields.path().child(COMPONENTS[index]);
        let lasts = match value.is_null() {
            true => Some(OUTAGE_DEFAULT),
            false => outage(&At { value, path }, problems),
        };
        found.extend(lasts.map(|lasts| Crash { component, lasts }));
    }
    if found.is_empty() && fields.value().as_object().is_some_and(|o| o.is_empty()) {
        problems.add(&at.path, diagnostics::without_effect("crash", COMPONENTS));
    }
    found
}

fn outage(at: &At<'_>, problems: &mut Problems) -> Option<Span> {
    let fields = at.fields(&OUTAGE, problems)?;
    match fields.get("for") {
        Some(lasts) => positive(&lasts, problems),
        None => Some(OUTAGE_DEFAULT),
    }
}

/// Reads `fault`.
pub(super) fn faults(at: &At<'_>, problems: &mut Problems) -> Vec<Fault> {
    let Some(fields) = at.fields(&FAULT, problems) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (kind, at) in fields.present() {
        found.extend(fault(kind, &at, problems));
    }
    if fields.value().as_object().is_some_and(|o| o.is_empty()) {
        let kinds: Vec<&str> = FAULT.names().collect();
        problems.add(&at.path, diagnostics::without_effect("fault", &kinds));
    }
    found
}

fn fault(kind: &str, at: &At<'_>, problems: &mut Problems) -> Option<Fault> {
    match kind {
        "watch" => {
            let fields = at.fields(&WATCH_FAULT, problems)?;
            needs_one_of(&fields, at, &["delay", "repeat", "cut"], problems);
            let delay = span_or_none(&fields, "delay", problems);
            let repeat = ratio_or_none(&fields, "repeat", problems);
            let cut = ratio_or_none(&fields, "cut", problems);
            let lasts = lasts(&fields, problems)?;
            Some(Fault::Watch {
                delay,
                repeat,
                cut,
                lasts,
            })
        }
        "conflict" => {
            let fields = at.fields(&CONFLICT_FAULT, problems)?;
            let rate = fields.required("rate", problems);
            let rate = rate.and_then(|rate| rate.ratio(problems));
            let lasts = lasts(&fields, problems)?;
            rate.map(|rate| Fault::Conflict { rate, lasts })
        }
        "bind" => {
            let fields = at.fields(&BIND_FAULT, problems)?;
            needs_one_of(&fields, at, &["slow", "fail"], problems);
            let slow = span_or_none(&fields, "slow", problems);
            let fail = ratio_or_none(&fields, "fail", problems);
            let lasts = lasts(&fields, problems)?;
            Some(Fault::Bind { slow, fail, lasts })
        }
        "clock" => {
            let fields = at.fields(&CLOCK_FAULT, problems)?;
            let jump = positive(&fields.required("jump", problems)?, problems)?;
            Some(Fault::Clock { jump })
        }
        "secondScheduler" => {
            let fields = at.fields(&SECOND_SCHEDULER_FAULT, problems)?;
            let lasts = lasts(&fields, problems)?;
            Some(Fault::SecondScheduler { lasts })
        }
        other => {
            debug_assert!(false, "{other} is in the vocabulary, and nothing reads it");
            None
        }
    }
}

fn lasts(fields: &Fields<'_>, problems: &mut Problems) -> Option<Span> {
    positive(&fields.required("for", problems)?, problems)
}

fn positive(at: &At<'_>, problems: &mut Problems) -> Option<Span> {
    let span = at.span(problems)?;
    if span == Span(0) {
        problems.add(&at.path, diagnostics::no_time());
        return None;
    }
    Some(span)
}

fn needs_one_of(fields: &Fields<'_>, at: &At<'_>, names: &[&'static str], problems: &mut Problems) {
    if names.iter().all(|name| fields.get(name).is_none()) {
        problems.add(&at.path, diagnostics::without_effect("this fault", names));
    }
}

fn span_or_none(fields: &Fields<'_>, name: &'static str, problems: &mut Problems) -> Span {
    let span = fields.get(name).and_then(|at| at.span(problems));
    span.unwrap_or_default()
}

fn ratio_or_none(fields: &Fields<'_>, name: &'static str, problems: &mut Problems) -> Ratio {
    let ratio = fields.get(name).and_then(|at| at.ratio(problems));
    ratio.unwrap_or(Ratio::ZERO)
}
