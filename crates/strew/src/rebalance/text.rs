//! A plan for people: the sum first, then the evictions in their order, then what is left uneven and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use strew_manifest::printable::printable_line;
use strew_scenario::rebalance::values::{
    ConstraintCounts, DomainCount, PlannedConstraint, PlannedEffect, PlannedStep, RebalancePlan,
    WorkloadNote,
};

use crate::context::Context;
use crate::text::{count, drawn, short_key};

/// How it is written.
pub(super) struct Look<'a> {
    pub(super) context: &'a Context,
    /// The most evictions, and the most constraints.
    pub(super) top: usize,
    /// With nodes.
    pub(super) wide: bool,
}

/// The most domains of a constraint that are listed.
const DOMAINS_MAX: usize = 8;

pub(super) fn write(plan: &RebalancePlan, look: &Look<'_>) -> String {
    let mut out = String::new();
    write_sum(&mut out, plan, look);
    write_steps(&mut out, plan, look);
    write_outcomes(&mut out, plan, look);
    write_left(&mut out, plan, look);
    write_next(&mut out, plan, look);
    drawn(out, &look.context.terminal)
}

fn write_sum(out: &mut String, plan: &RebalancePlan, look: &Look<'_>) {
    let styles = &look.context.terminal.styles;
    let sums = &plan.summary;
    let kind = match sums.soft {
        true => "constraint",
        false => "hard constraint",
    };
    write_notes(out, plan, look);
    if sums.workloads == 0 {
        if sums.other_scheduler + sums.not_enforced == 0 {
            let hint = match sums.soft {
                true => "",
                false => " (--soft looks at soft ones and the cluster's defaults)",
            };
            let _ = writeln!(
                out,
                "no workload has a {kind} over domains: nothing to do{hint}"
            );
        }
        return;
    }
    let n_others = sums.without_domain.max(sums.off_nodes);
    let of = match sums.workloads.saturating_sub(n_others) {
        0 if sums.uneven_before == 0 => return,
        n if n == sums.workloads || sums.uneven_before > 0 => count(sums.workloads, "workload"),
        n => format!("{n} of {}", count(sums.workloads, "workload")),
    };
    if sums.uneven_before == 0 {
        let (s, dim) = (&styles.good, &styles.dim);
        let _ = writeln!(
            out,
            "{s}✓{s:#} nothing to do: every {kind} of {of} is kept {dim}(workloads without one are left out){dim:#}"
        );
    } else {
        write_result(out, plan, look, &of);
    }
    if sums.placed_first > 0 {
        let pods = count(sums.placed_first, "Pending pod");
        let _ = match plan.steps.is_empty() {
            true if sums.uneven_before > 0 && sums.uneven_after == 0 => Ok(()),
            true => writeln!(out, "the scheduler places {pods} now, without an eviction"),
            false => writeln!(out, "before them the scheduler places {pods}"),
        };
    }
}

/// The word of a note, whether it is known that something is wrong, and the sentence after the number of workloads.
type Noted = (&'static str, bool, fn(usize) -> String);

/// What notes say of workloads, in this order.
const NOTED: [Noted; 4] = [
    ("otherScheduler", false, |n| {
        let (have, their) = have(n);
        format!(
            "with a hard constraint {have} a scheduler that is not simulated: where {their} pods would go is not known"
        )
    }),
    ("offNodes", false, |n| {
        let (have, their) = have(n);
        format!(
            "{have} pods on nodes that are not there: whether {their} constraints are kept is not known"
        )
    }),
    ("notEnforced", false, |n| {
        let (have, _) = have(n);
        format!("with a hard constraint {have} a scheduler whose profile does not enforce it")
    }),
    ("withoutDomain", true, |n| {
        let (have, _) = have(n);
        format!("{have} a hard constraint without a domain")
    }),
];

fn have(n: usize) -> (&'static str, &'static str) {
    match n {
        1 => ("has", "its"),
        _ => ("have", "their"),
    }
}

/// What is to be said of workloads beside their counts, each kind with its workloads.
fn write_notes(out: &mut String, plan: &RebalancePlan, look: &Look<'_>) {
    let styles = &look.context.terminal.styles;
    for (reason, is_wrong, sentence) in NOTED {
        let notes: Vec<&WorkloadNote> = plan.notes.iter().filter(|n| n.reason == reason).collect();
        let of: BTreeSet<String> = notes.iter().map(|note| name(note)).collect();
        if of.is_empty() {
            continue;
        }
        let s = styles.bad;
        let sign = if is_wrong { '✗' } else { '?' };
        let lacks_label = |note: &&WorkloadNote| note.message.starts_with("no node has the label");
        let more = match (is_wrong, notes.iter().all(lacks_label)) {
            (false, _) => "",
            (true, true) => ": no node that it counts has its label, so new pods get no node",
            (true, false) => ", so new pods get no node",
        };
        let n = count(of.len(), "workload");
        let _ = writeln!(out, "{s}{sign}{s:#} {n} {}{more}", sentence(of.len()));
        for note in notes.iter().take(look.top) {
            let _ = writeln!(out, "    {}: {}", name(note), note.message);
        }
        write_more(out, notes.len().saturating_sub(look.top), "workload", look);
    }
}

fn name(note: &WorkloadNote) -> String {
    let (namespace, kind) = (&note.namespace, note.workload_kind.to_lowercase());
    printable_line(&format!("{namespace}/{kind}/{}", note.workload_name)).into_owned()
}

/// What comes of constraints that are not kept now.
fn write_result(out: &mut String, plan: &RebalancePlan, look: &Look<'_>, of: &str) {
    let styles = &look.context.terminal.styles;
    let sums = &plan.summary;
    let (before, after) = (sums.uneven_before, sums.uneven_after);
    let evictions = count(sums.evictions, "eviction");
    let make = if sums.evictions == 1 { "makes" } else { "make" };
    let simulated = "each simulated with those before it; budgets kept, nothing more Pending";
    let are = if before == 1 { "is" } else { "are" };
    let (good, bad) = (styles.good, styles.bad);
    let _ = match (sums.evictions, after) {
        (0, 0) => {
            let they = if before == 1 { "it is" } else { "they are" };
            writeln!(
                out,
                "{good}✓{good:#} {before} of {of} {are} uneven now; the scheduler places {}, and then {they} even",
                count(sums.placed_first, "Pending pod")
            )
        }
        (0, _) => writeln!(
            out,
            "{bad}✗{bad:#} {before} of {of} {are} uneven, and {}",
            why_nothing(plan)
        ),
        (_, 0) => writeln!(
            out,
            "{good}✓{good:#} {evictions} {make} {before} of {of} even again ({simulated})"
        ),
        _ => {
            let even = before.saturating_sub(after);
            let stay = if after == 1 { "stays" } else { "stay" };
            writeln!(
                out,
                "{bad}✗{bad:#} {evictions} {make} {even} of {} even again, and {after} {stay} uneven ({simulated})",
                count(before, "uneven workload"),
            )
        }
    };
}

/// Why a plan has no eviction.
fn why_nothing(plan: &RebalancePlan) -> &'static str {
    let left = || plan.constraints.iter().flat_map(|c| &c.left);
    let is = |reasons: &[&str]| left().any(|pods| reasons.contains(&&*pods.reason));
    match () {
        () if is(&["maxEvictions"]) => "--max-evictions allows no eviction",
        () if is(&["notSettled", "order"]) => "nothing is evicted before it is settled",
        () => "no eviction helps",
    }
}

fn write_steps(out: &mut String, plan: &RebalancePlan, look: &Look<'_>) {
    let shown = || plan.steps.iter().take(look.top);
    let pod = |step: &PlannedStep| {
        printable_line(&format!("{}/{}", step.namespace, step.pod)).into_owned()
    };
    let width = shown()
        .map(|step| pod(step).chars().count())
        .max()
        .unwrap_or(0);
    let number_width = plan.steps.len().to_string().len();
    for (number, step) in shown().enumerate() {
        let mut effects = step.effects.iter().filter(|effect| is_told(effect, step));
        let first = effects
            .next()
            .map_or_else(String::new, |effect| effect_text(effect, step));
        let nodes = match look.wide {
            true => format!(
                "{} -> {}   ",
                printable_line(&step.from),
                printable_line(&step.to)
            ),
            false => String::new(),
        };
        let _ = writeln!(
            out,
            "  {:>number_width$} {:width$}   {nodes}{first}",
            number + 1,
            pod(step),
        );
        let indent = 2 + number_width + 1 + width + 3;
        for effect in effects {
            let _ = writeln!(out, "{:indent$}{}", "", effect_text(effect, step));
        }
    }
    write_more(
        out,
        plan.steps.len().saturating_sub(look.top),
        "eviction",
        look,
    );
}

fn write_more(out: &mut String, n: usize, noun: &str, look: &Look<'_>) {
    if n > 0 {
        let dim = look.context.terminal.styles.dim;
        let _ = writeln!(
            out,
            "  {dim}… and {} (-o wide shows all){dim:#}",
            count(n, &format!("more {noun}"))
        );
    }
}

/// True if it changes the skew, or is of the pod's own workload.
fn is_told(effect: &PlannedEffect, step: &PlannedStep) -> bool {
    effect.skew_before != effect.skew_after || is_of(effect, step)
}

fn is_of(effect: &PlannedEffect, step: &PlannedStep) -> bool {
    (&effect.workload_kind, &effect.workload_name) == (&step.workload_kind, &step.workload_name)
}

/// `zone-a 6 -> 5, zone-b 0 -> 1   skew 6 -> 4 over zone (maxSkew 1)`
fn effect_text(effect: &PlannedEffect, step: &PlannedStep) -> String {
    let change = |domain: &Option<DomainCount>, by: i32, none: &str| match domain {
        Some(DomainCount { domain, pods }) => {
            format!("{} {} -> {pods}", printable_line(domain), pods + by)
        }
        None => none.to_owned(),
    };
    let from = change(&effect.from, 1, "leaves a node that does not count");
    let to = change(&effect.to, -1, "comes back on a node that does not count");
    let (before, after) = (effect.skew_before, effect.skew_after);
    let skew = match before == after {
        true => format!("skew {after}"),
        false => format!("skew {before} -> {after}"),
    };
    let of = match is_of(effect, step) {
        true => String::new(),
        false => format!(
            " of {}/{}",
            effect.workload_kind.to_lowercase(),
            effect.workload_name
        ),
    };
    format!(
        "{from}, {to}   {skew} over {} (maxSkew {}){}",
        short_key(&effect.topology_key),
        effect.max_skew,
        printable_line(&of)
    )
}

/// The selectors of constraints by what they are called.
struct Titles(BTreeMap<String, BTreeSet<String>>);

impl Titles {
    fn of(plan: &RebalancePlan) -> Self {
        let mut titles: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for constraint in &plan.constraints {
            let selectors = titles.entry(short_title(constraint)).or_default();
            selectors.insert(constraint.selector.clone());
        }
        Self(titles)
    }

    /// `shop/deployment/web over zone, maxSkew 1`; with the pods that it counts if another constraint is called so.
    fn title(&self, constraint: &PlannedConstraint) -> String {
        let text = short_title(constraint);
        match self.0.get(&text).is_some_and(|all| all.len() > 1) {
            true => format!("{text}, of {}", printable_line(&constraint.selector)),
            false => text,
        }
    }
}

fn short_title(constraint: &PlannedConstraint) -> String {
    let soft = if constraint.hard {
        ""
    } else {
        ", ScheduleAnyway"
    };
    let default = if constraint.is_default {
        ", a default"
    } else {
        ""
    };
    let min_domains = constraint
        .min_domains
        .map_or_else(String::new, |n| format!(", minDomains {n}"));
    let text = format!(
        "{}/{}/{} over {}, maxSkew {}{min_domains}{soft}{default}",
        constraint.namespace,
        constraint.workload_kind.to_lowercase(),
        constraint.workload_name,
        short_key(&constraint.topology_key),
        constraint.max_skew
    );
    printable_line(&text).into_owned()
}

/// `zone-a 6 -> 2, zone-b 0 -> 2`: the domains that changed first.
fn domains(before: &ConstraintCounts, after: &ConstraintCounts) -> String {
    let both = after.domains.iter().map(|now| {
        let then = before.domains.iter().find(|then| then.domain == now.domain);
        (then.map_or(0, |then| then.pods), now)
    });
    let (changed, same): (Vec<_>, Vec<_>) = both.partition(|(then, now)| *then != now.pods);
    let all = [changed, same].concat();
    let n_left = all.len().saturating_sub(DOMAINS_MAX);
    let text = |(then, now): &(i32, &DomainCount)| {
        let name = printable_line(&now.domain).into_owned();
        match *then == now.pods {
            true => format!("{name} {then}"),
            false => format!("{name} {then} -> {}", now.pods),
        }
    };
    let mut texts: Vec<String> = all.iter().take(DOMAINS_MAX).map(text).collect();
    if n_left > 0 {
        texts.push(format!("{n_left} more"));
    }
    texts.join(", ")
}

fn skews(before: &ConstraintCounts, after: &ConstraintCounts) -> String {
    match before.skew == after.skew {
        true => format!("skew {}", after.skew),
        false => format!("skew {} -> {}", before.skew, after.skew),
    }
}

fn write_outcomes(out: &mut String, plan: &RebalancePlan, look: &Look<'_>) {
    let kept: Vec<_> = plan
        .constraints
        .iter()
        .filter(|c| c.after.moves == 0)
        .collect();
    if kept.is_empty() {
        return;
    }
    let titles = Titles::of(plan);
    out.push('\n');
    let good = look.context.terminal.styles.good;
    for constraint in kept.iter().take(look.top) {
        let (before, after) = (&constraint.before, &constraint.after);
        let _ = writeln!(
            out,
            "{good}✓{good:#} {}: {}; {}",
            titles.title(constraint),
            domains(before, after),
            skews(before, after)
        );
    }
    write_more(
        out,
        kept.len().saturating_sub(look.top),
        "kept constraint",
        look,
    );
}

fn write_left(out: &mut String, plan: &RebalancePlan, look: &Look<'_>) {
    let left: Vec<_> = plan
        .constraints
        .iter()
        .filter(|c| c.after.moves > 0)
        .collect();
    if left.is_empty() {
        return;
    }
    out.push_str("\nleft uneven\n");
    let titles = Titles::of(plan);
    let bad = look.context.terminal.styles.bad;
    for constraint in left.iter().take(look.top) {
        let (before, after) = (&constraint.before, &constraint.after);
        let _ = writeln!(
            out,
            "{bad}✗{bad:#} {}: {}; {}",
            titles.title(constraint),
            domains(before, after),
            skews(before, after)
        );
        let n_domains = constraint.after.domains.len();
        if let Some(min) = constraint.min_domains
            && usize::try_from(min).is_ok_and(|min| min > n_domains)
        {
            let _ = writeln!(
                out,
                "    minDomains needs {}, and {n_domains} exist: no eviction makes one more",
                count(usize::try_from(min).unwrap_or(0), "domain")
            );
        }
        for pods in &constraint.left {
            let _ = writeln!(out, "    {} {}", count(pods.pods, "pod"), pods.message);
        }
    }
    write_more(
        out,
        left.len().saturating_sub(look.top),
        "uneven constraint",
        look,
    );
}

/// What to do with the plan.
fn write_next(out: &mut String, plan: &RebalancePlan, look: &Look<'_>) {
    if plan.steps.is_empty() {
        return;
    }
    let dim = look.context.terminal.styles.dim;
    let _ = writeln!(
        out,
        "\n{dim}nothing was evicted: this is a plan; {} rebalance … -o yaml --out plan.yaml saves it{dim:#}",
        look.context.program
    );
}
