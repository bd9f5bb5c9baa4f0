//! A block per topology spread constraint: its counts, and the verdict.

use strew_view::explanation::{
    Constraint, Constraints, Deduced, Domain, OtherReason, PodExplanation, SpreadOff, WithoutEffect,
};

use super::Page;
use super::table::{Cell, Table, Tone};
use crate::text::count;
use strew_view::natural_order::natural_order;

/// The number of rows of a table of domains beyond which equal domains share one.
const DOMAIN_ROWS_MAX: usize = 12;

/// The number of names that are listed; the rest is counted.
pub(super) const NAMES_MAX: usize = 4;

pub(super) fn constraints(explanation: &PodExplanation, out: &mut Page) {
    let constraints = &explanation.constraints;
    for constraint in constraints.hard.iter().chain(&constraints.soft) {
        block(constraint, constraints, out);
    }
}

/// The constraints without effect because the plugin is off; or that there is no constraint, with the reason why no
/// default applies.
pub(super) fn no_constraint(explanation: &PodExplanation, out: &mut Page) {
    let constraints = &explanation.constraints;
    if let Some(off) = &constraints.off
        && (!off.without_effect.is_empty() || off.points.len() == 2)
    {
        plugin_off(off, constraints, out);
        return;
    }
    if !constraints.hard.is_empty() || !constraints.soft.is_empty() {
        return;
    }
    out.heading("No topology spread constraint");
    let why = match &constraints.deduced {
        Some(deduced) => none_holds(deduced),
        None => "The pod has none of its own, and the scheduler has no defaults.".to_owned(),
    };
    out.wrapped(2, &why);
}

/// The part of the plugin that the profile disables, with the constraints that have no effect because of it.
fn plugin_off(off: &SpreadOff, constraints: &Constraints, out: &mut Page) {
    let (heading, left_out) = match off.points.as_slice() {
        [point] if point == "filter" => {
            ("PodTopologySpread does not filter", "the plugin's filter")
        }
        [point] if point == "score" => ("PodTopologySpread does not score", "the plugin's score"),
        _ => ("PodTopologySpread is off", "the plugin"),
    };
    out.heading(heading);
    let profile = &off.profile;
    out.wrapped(
        2,
        &match off.without_effect.len() {
            0 => format!(
                "The profile {profile:?} leaves out {left_out}: no constraint has an effect."
            ),
            _ => format!("The profile {profile:?} leaves out {left_out}. Without effect:"),
        },
    );
    let whose = match constraints.origin.as_str() {
        "Pod" => "constraint",
        _ => "default constraint",
    };
    for WithoutEffect {
        index,
        topology_key,
        max_skew,
        when_unsatisfiable,
    } in &off.without_effect
    {
        let n = index + 1;
        let text =
            format!("- {whose} {n}: {topology_key}, maxSkew {max_skew}, {when_unsatisfiable}");
        out.wrapped(2, &text);
    }
}

/// Why no default constraint applies.
fn none_holds(deduced: &Deduced) -> String {
    let no_owner = match &deduced.owner {
        None => "it has no controller".to_owned(),
        Some(owner) if owner.kind == "other" => {
            format!(
                "nothing is deduced from a controller of the kind of {:?}",
                owner.name
            )
        }
        Some(owner) => format!(
            "its {} {:?} is not there (a dump for this needs Services and controllers as well: \
             nodes,pods,svc,deploy,rs,sts,rc)",
            owner.kind, owner.name
        ),
    };
    format!(
        "The pod has none of its own, and {} a selector, which nothing gives: no Service selects the pod, and \
         {no_owner}.",
        match deduced.defaults {
            1 => "the scheduler's default needs".to_owned(),
            n => format!("the scheduler's {n} defaults need"),
        }
    )
}

fn block(constraint: &Constraint, constraints: &Constraints, out: &mut Page) {
    let hard = constraint.when_unsatisfiable == "DoNotSchedule";
    let kind = if hard { "hard" } else { "soft" };
    let n = constraint.index + 1;
    let whose = match constraints.origin.as_str() {
        "SystemDefaults" => format!("Default constraint {n} (built into the scheduler)"),
        "ListDefaults" => format!("Default constraint {n} (of the scheduler's configuration)"),
        _ => format!("Constraint {n}"),
    };
    let mut heading = format!(
        "{whose}, {kind}: {}, maxSkew {}",
        constraint.topology_key, constraint.max_skew
    );
    if let Some(min_domains) = constraint.min_domains {
        heading += &format!(", minDomains {min_domains}");
    }
    if constraint.node_affinity_policy != "Honor" {
        heading += ", nodeAffinityPolicy Ignore";
    }
    if constraint.node_taints_policy != "Ignore" {
        heading += ", nodeTaintsPolicy Honor";
    }
    out.heading(&heading);
    out.wrapped(2, &counted(constraint, constraints));
    for warning in &constraint.warnings {
        out.wrapped(2, &format!("! {warning}"));
    }
    if hard {
        minimum(constraint, out);
    } else if let Some(weight) = constraint.weight {
        let what = match constraint.topology_key.as_str() {
            "kubernetes.io/hostname" => "nodes are scored",
            _ if weight.size == 1 => "domain among the nodes that take the pod",
            _ => "domains among the nodes that take the pod",
        };
        out.line(
            2,
            &format!(
                "weight: ln({} + 2) = {:.3} ({} {what})",
                weight.size, weight.weight, weight.size
            ),
        );
    }
    if !constraint.domains.is_empty() {
        domain_table(constraint, hard, out);
    }
    left_out(constraint, hard, out);
}

/// The pods that count.
fn counted(constraint: &Constraint, constraints: &Constraints) -> String {
    let mut text = match constraint.selector.as_str() {
        "<none>" | "{}" => "counts no pod".to_owned(),
        selector => format!("counts pods with {selector}"),
    };
    if !constraint.others.is_empty() {
        let (all, of_others) = counts(constraint);
        let own = all.saturating_sub(of_others);
        text += &format!(": {own} of its own, {}", others(constraint));
    }
    for merged in &constraint.match_label_keys {
        text += &match &merged.value {
            Some(value) => format!("; matchLabelKeys merged {}={value}", merged.key),
            None => format!(
                "; matchLabelKeys {}: the pod lacks it, nothing merged",
                merged.key
            ),
        };
    }
    if let Some(deduced) = &constraints.deduced {
        let mut from: Vec<String> = deduced
            .services
            .iter()
            .map(|s| format!("Service {s}"))
            .collect();
        let used = deduced.owner.iter().filter(|o| o.used);
        from.extend(used.map(|o| format!("{} {}", o.kind, o.name)));
        if !from.is_empty() {
            text += &format!("; deduced from {}", from.join(", "));
        }
        let missing = deduced
            .owner
            .iter()
            .filter(|o| !o.used && o.kind != "other");
        for owner in missing {
            text += &format!(
                "; its {} {:?} is not there, and its selector would narrow it",
                owner.kind, owner.name
            );
        }
    }
    text
}

/// How many pods count, and how many of them are of other workloads.
fn counts(constraint: &Constraint) -> (usize, usize) {
    let all = constraint.domains.iter().map(|domain| domain.pods);
    let all = usize::try_from(all.sum::<i32>()).unwrap_or(0);
    (all, constraint.others.iter().map(|other| other.pods).sum())
}

/// `11 of deployment/cart`.
fn others(constraint: &Constraint) -> String {
    let others = constraint.others.iter();
    let others = others.map(|other| {
        format!(
            "{} of {}/{}",
            other.pods,
            other.kind.to_lowercase(),
            other.name
        )
    });
    let others: Vec<String> = others.collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    names(&others)
}

/// The number that is subtracted, with the reason.
fn minimum(constraint: &Constraint, out: &mut Page) {
    let existing = constraint.domains_existing.unwrap_or(0);
    let min_domains = constraint.min_domains.unwrap_or(1);
    if i64::from(existing) < i64::from(min_domains) {
        let why = match existing {
            0 => "no domain exists".to_owned(),
            1 => format!("only 1 domain of minDomains {min_domains} exists"),
            n => format!("only {n} domains of minDomains {min_domains} exist"),
        };
        out.wrapped(2, &format!("minimum: 0, since {why}"));
        return;
    }
    let emptiest: Vec<&str> = by_name(&constraint.domains)
        .into_iter()
        .filter(|d| d.emptiest)
        .map(|d| d.value.as_str())
        .collect();
    out.wrapped(
        2,
        &format!(
            "minimum: {}, in {}",
            constraint.minimum.unwrap_or(0),
            names(&emptiest)
        ),
    );
}

/// `a, b, c, d and 12 more`.
pub(super) fn names(names: &[&str]) -> String {
    let quoted = |name: &&str| match name.is_empty() {
        true => "\"\"".to_owned(),
        false => (*name).to_owned(),
    };
    let shown: Vec<String> = names.iter().take(NAMES_MAX).map(quoted).collect();
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn domain_table(constraint: &Constraint, hard: bool, out: &mut Page) {
    let rows = folded(&constraint.domains);
    let table = |long: bool, beside: bool| {
        let mut header = vec![("domain", false), ("pods", true), ("nodes", true)];
        if hard {
            header.extend([("sum", false), ("verdict", false)]);
        } else {
            header.push(("", false));
        }
        let mut table = Table::new(header);
        for group in rows.iter().take(DOMAIN_ROWS_MAX) {
            table.row(domain_row(group, hard, long, beside));
            if !beside {
                table.note(notes(group[0]).join("; "));
            }
        }
        table
    };
    // What fits into the width: the sum in words or in digits, notes beside the verdict or below it.
    let forms = [(true, true), (false, true), (true, false)];
    let fits = |&(long, beside): &(bool, bool)| table(long, beside).width() + 2 <= out.width;
    let (is_long, beside) = forms.into_iter().find(fits).unwrap_or((false, false));
    table(is_long, beside).write(2, out);
    if let Some(more) = rows.len().checked_sub(DOMAIN_ROWS_MAX).filter(|&n| n > 0) {
        let hidden: usize = rows[DOMAIN_ROWS_MAX..].iter().map(Vec::len).sum();
        out.line(
            2,
            &format!(
                "... and {} of {}",
                count(hidden, "more domain"),
                count(more, "other kind")
            ),
        );
    }
    if hard && !is_long {
        let legend = "sum: pods there + this pod (if it counts) - minimum, against maxSkew";
        let legend = out.paint.dim(legend);
        out.line(2, &legend);
    }
}

/// Numbers sort by value: `rack-2` before `rack-10`.
fn by_name(domains: &[Domain]) -> Vec<&Domain> {
    let mut domains: Vec<&Domain> = domains.iter().collect();
    domains.sort_by(|a, b| natural_order(&a.value, &b.value));
    domains
}

/// The domains, each in a row of its own if they are few; equal ones together if they are many; refused ones last.
fn folded(domains: &[Domain]) -> Vec<Vec<&Domain>> {
    let domains = by_name(domains);
    if domains.len() <= DOMAIN_ROWS_MAX {
        return domains.into_iter().map(|d| vec![d]).collect();
    }
    let alike = |a: &Domain, b: &Domain| {
        a.pods == b.pods
            && a.nodes == b.nodes
            && a.eligible_nodes == b.eligible_nodes
            && a.usable_nodes == b.usable_nodes
            && a.skew == b.skew
            && a.other_reasons == b.other_reasons
    };
    let mut groups: Vec<Vec<&Domain>> = Vec::new();
    for domain in domains {
        match groups.iter_mut().find(|g| alike(g[0], domain)) {
            Some(group) => group.push(domain),
            None => groups.push(vec![domain]),
        }
    }
    let refused = |d: &Domain| d.skew.as_ref().is_some_and(|s| !s.allowed);
    groups.sort_by_key(|g| (refused(g[0]), g[0].pods, std::cmp::Reverse(g.len())));
    groups
}

fn domain_row(group: &[&Domain], hard: bool, long: bool, beside: bool) -> Vec<Cell> {
    let domain = group[0];
    let name = match (group.len(), domain.value.as_str()) {
        (1, "") => "\"\"".to_owned(),
        (1, value) => value.to_owned(),
        (n, value) => format!("{value} and {} more like it", n - 1),
    };
    let nodes = match domain.eligible_nodes == domain.nodes {
        true => domain.nodes.to_string(),
        false => format!("{} of {} count", domain.eligible_nodes, domain.nodes),
    };
    let mut cells = vec![
        Cell::plain(name),
        Cell::plain(domain.pods),
        Cell::plain(nodes),
    ];
    let notes = if beside { notes(domain) } else { Vec::new() };
    let Some(skew) = domain.skew.as_ref().filter(|_| hard) else {
        cells.push(Cell::plain(notes.join("; ")));
        return cells;
    };
    if domain.eligible_nodes == 0 {
        // The domain has no part in the sum.
        let note = match notes.is_empty() {
            true => "not counted".to_owned(),
            false => notes.join("; "),
        };
        cells.extend([Cell::plain("-"), Cell::plain(note)]);
        return cells;
    }
    let sum = if long { &skew.sum } else { &skew.short_sum };
    cells.push(Cell::plain(sum));
    let (verdict, tone) = match (skew.allowed, domain.open_nodes) {
        (true, 0) => ("allowed, but no node takes it", Tone::Plain),
        (true, _) => ("allowed", Tone::Good),
        (false, _) => ("refused", Tone::Bad),
    };
    let verdict = match (notes.is_empty(), skew.allowed && domain.open_nodes == 0) {
        (true, _) => verdict.to_owned(),
        (false, true) => format!("allowed, but {}", notes.join("; ")),
        (false, false) => format!("{verdict}; {}", notes.join("; ")),
    };
    cells.push(Cell::of(verdict, tone));
    cells
}

/// Notes about a domain.
fn notes(domain: &Domain) -> Vec<String> {
    let mut notes = Vec::new();
    if domain.eligible_nodes == 0 {
        notes.push("does not exist for this constraint".to_owned());
    } else if domain.usable_nodes == 0 {
        notes.push("exists only through nodes that the pod cannot use".to_owned());
    }
    // If a soft constraint counts, a hard refusal matters only if no node is left.
    if domain.skew.is_none() && domain.open_nodes > 0 {
        return notes;
    }
    let reasons = domain.other_reasons.iter().take(2);
    let reasons = reasons.map(|OtherReason { reason, nodes }| format!("{nodes} {reason}"));
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    notes.extend(Some(reasons).filter(|r| !r.is_empty()));
    notes
}

fn left_out(constraint: &Constraint, hard: bool, out: &mut Page) {
    if !constraint.nodes_without_key.is_empty() {
        let lacking = constraint.nodes_without_key.iter();
        let mut nodes: Vec<&str> = lacking.map(String::as_str).collect();
        nodes.sort_by(|a, b| natural_order(a, b));
        let then = if hard { "refused" } else { "not counted" };
        let n = nodes.len();
        let (node, lack) = if n == 1 {
            ("node", "lacks")
        } else {
            ("nodes", "lack")
        };
        out.wrapped(
            2,
            &format!("{n} {node} {lack} the label ({then}): {}", names(&nodes)),
        );
    }
    if constraint.nodes_left_out > 0 {
        out.wrapped(
            2,
            &format!(
                "not counted: {} with this label, but without that of another hard constraint",
                nodes(constraint.nodes_left_out)
            ),
        );
    }
}

/// `1 node`, `2 nodes`.
pub(super) fn nodes(n: usize) -> String {
    format!("{n} node{}", if n == 1 { "" } else { "s" })
}
