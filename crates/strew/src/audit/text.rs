//! An audit for people: the worst domain first, one line for all that survives.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anstyle::Style;
use strew_manifest::printable::printable_line;
use strew_model::Span;
use strew_scenario::audit::values::{Audit, Case, Cause, CauseCode, Endpoints, Event, Row};
use strew_view::away::Headroom;
use strew_view::loss::LossVerdict;
use strew_view::time_text::length_text;
use strew_view::usage::{bytes_short, cpu_short};

use crate::context::Context;
use crate::text::{count, drawn};

/// How it is written.
pub(super) struct Look<'a> {
    pub(super) context: &'a Context,
    /// The most workloads of a domain.
    pub(super) top: usize,
    /// True if changes were looked for.
    pub(super) looked: bool,
}

/// A workload in all events of one set of domains.
struct Line<'a> {
    row: &'a Row,
    /// The events in which it is as bad, and whether only some seeds show that.
    events: Vec<(Event, bool)>,
    /// Their causes, each once, with its events.
    causes: Vec<(Vec<Event>, &'a Cause)>,
    /// Why its drain never ends.
    blocked: Option<&'a str>,
    /// The seeds that were played.
    n_seeds: u64,
}

impl<'a> Line<'a> {
    fn add_cause(&mut self, event: Event, row: &'a Row) {
        let Some(cause) = &row.cause else { return };
        let mut known = self.causes.iter_mut();
        match known.find(|(_, known)| *known == cause) {
            Some((events, _)) => events.push(event),
            None => self.causes.push((vec![event], cause)),
        }
    }

    fn verdict(&self) -> LossVerdict {
        self.row.judged()
    }

    /// `loss, shift (some seeds)`; if chance decides in all events, the numbers say so.
    fn events_text(&self) -> String {
        let is_certain = self.events.iter().any(|(_, is_chance)| !is_chance);
        let each = self
            .events
            .iter()
            .map(|(event, is_chance)| match is_chance {
                true if is_certain => format!("{} (some seeds)", event.name()),
                _ => event.name().to_owned(),
            });
        each.collect::<Vec<_>>().join(", ")
    }

    /// True for a pod without a workload, of which there may be many.
    fn is_bare(&self) -> bool {
        let code = self.row.cause.as_ref().map(|cause| cause.code);
        code == Some(CauseCode::BarePod)
    }

    fn is_hurt(&self) -> bool {
        self.row.is_hurt() || self.blocked.is_some()
    }
}

/// What a line tells.
#[derive(PartialEq)]
struct Told<'a> {
    object: String,
    verdict: String,
    numbers: String,
    events: Vec<Event>,
    causes: Vec<&'a str>,
    blocked: Option<&'a str>,
}

/// All events of one set of domains.
struct Group<'a> {
    domains: String,
    /// The sets of domains that it is about.
    n_sets: usize,
    cases: Vec<&'a Case>,
    /// The worst first.
    lines: Vec<Line<'a>>,
}

impl<'a> Group<'a> {
    fn of(cases: Vec<&'a Case>, n_seeds: u64) -> Self {
        let mut worst: BTreeMap<String, Line<'a>> = BTreeMap::new();
        for case in &cases {
            for row in &case.workloads {
                let of = row.of();
                let blocked = case.blocked.iter().find(|blocked| blocked.object == of);
                let blocked = blocked.map(|blocked| blocked.why.as_str());
                let line = worst.entry(of).or_insert_with(|| Line {
                    row,
                    events: Vec::new(),
                    causes: Vec::new(),
                    blocked: None,
                    n_seeds,
                });
                if row.judged() < line.row.judged() {
                    (line.row, line.events, line.causes) = (row, Vec::new(), Vec::new());
                }
                if row.judged() == line.row.judged() {
                    line.events.push((case.event, row.seeds < n_seeds));
                    if shortage(row) > shortage(line.row) {
                        line.row = row;
                    }
                    line.add_cause(case.event, row);
                }
                line.blocked = line.blocked.or(blocked);
            }
        }
        let mut lines: Vec<Line<'a>> = worst.into_values().collect();
        lines.sort_by_key(|line| (!line.is_hurt(), line.verdict(), line.row.of()));
        let domains = cases
            .first()
            .map_or(&[][..], |case| case.domains.as_slice());
        Self {
            domains: domains.join(" and "),
            n_sets: 1,
            cases,
            lines,
        }
    }

    fn hurt(&self) -> impl Iterator<Item = &Line<'a>> {
        self.lines.iter().filter(|line| line.is_hurt())
    }

    /// What is told of it.
    fn told(&self) -> Vec<Told<'_>> {
        let of = |line: &'_ Line<'a>| {
            let causes = line.causes.iter().map(|(_, cause)| cause.text.as_str());
            Told {
                object: line.row.of(),
                verdict: line.row.verdict.clone(),
                numbers: numbers(line),
                events: line.events.iter().map(|(event, _)| *event).collect(),
                causes: causes.collect(),
                blocked: line.blocked,
            }
        };
        self.hurt().map(of).collect()
    }

    fn n(&self, verdict: LossVerdict) -> usize {
        let hurt = self.hurt();
        hurt.filter(|line| line.verdict() == verdict).count()
    }
}

/// How bad the numbers of a verdict are: the fewest pods at rest, on the way, and for the longest time.
fn shortage(row: &Row) -> (Reverse<u32>, Reverse<u32>, u64) {
    let without = row.seconds_without_ready;
    (Reverse(row.ready), Reverse(row.fewest), without)
}

/// The text.
pub(super) fn write(audit: &Audit, look: &Look<'_>) -> String {
    let mut by_domains: Vec<(&[String], Vec<&Case>)> = Vec::new();
    for case in &audit.cases {
        match by_domains
            .iter_mut()
            .find(|(domains, _)| *domains == case.domains)
        {
            Some((_, cases)) => cases.push(case),
            None => by_domains.push((&case.domains, vec![case])),
        }
    }
    let groups = by_domains
        .into_iter()
        .map(|(_, cases)| Group::of(cases, audit.seeds));
    let mut groups: Vec<Group<'_>> = groups.collect();
    groups.sort_by_key(|group| {
        let rank = |verdict| Reverse(group.n(verdict));
        let hurt = [
            LossVerdict::Lost,
            LossVerdict::Outage,
            LossVerdict::Degraded,
        ]
        .map(rank);
        (hurt, Reverse(group.hurt().count()))
    });
    let groups = merged(groups);
    let mut out = String::new();
    let (bad, good): (Vec<_>, Vec<_>) = groups
        .iter()
        .partition(|group| group.hurt().next().is_some());
    for group in &bad {
        write_group(&mut out, group, audit, look);
    }
    if !good.is_empty() {
        let names: Vec<&str> = good.iter().map(|group| group.domains.as_str()).collect();
        let dot = &look.context.terminal.styles.good;
        let text = match audit.workloads {
            0 => format!("{}: no workload was judged", names.join(", ")),
            _ => format!(
                "{}: nothing is lost{}",
                listed(&names),
                but_unknown(&groups)
            ),
        };
        let _ = writeln!(out, "{dot}{}{dot:#}", printable_line(&text));
    }
    write_single(&mut out, &groups, look);
    write_headroom(&mut out, audit);
    write_survivors(&mut out, audit, &groups, look);
    write_fixes(&mut out, audit, look);
    drawn(out, &look.context.terminal)
}

/// The groups, those with equal lines as one.
fn merged(groups: Vec<Group<'_>>) -> Vec<Group<'_>> {
    let mut all: Vec<Group<'_>> = Vec::new();
    for group in groups {
        let is_same =
            |other: &&mut Group<'_>| group.hurt().next().is_some() && group.told() == other.told();
        match all.iter_mut().find(is_same) {
            Some(other) => {
                let hurt = group.lines.iter().filter(|line| line.is_hurt());
                for (line, same) in other.lines.iter_mut().zip(hurt) {
                    let events = line.events.iter_mut().zip(&same.events);
                    events.for_each(|((_, is_chance), (_, also))| *is_chance |= also);
                }
                other.domains.push_str(", ");
                other.domains.push_str(&group.domains);
                other.n_sets += 1;
                other.cases.extend(group.cases);
                other
                    .lines
                    .extend(group.lines.into_iter().filter(|line| !line.is_hurt()));
            }
            None => all.push(group),
        }
    }
    all
}

/// The most names that a line lists.
const NAMES_MAX: usize = 12;

pub(super) fn listed(names: &[&str]) -> String {
    let some: Vec<&str> = names.iter().take(NAMES_MAX).copied().collect();
    match names.len() > NAMES_MAX {
        true => format!("{} and {} more", some.join(", "), names.len() - NAMES_MAX),
        false => some.join(", "),
    }
}

fn write_group(out: &mut String, group: &Group<'_>, audit: &Audit, look: &Look<'_>) {
    let styles = &look.context.terminal.styles;
    let ask = |n: usize| if n == 1 { "it asks" } else { "they ask" };
    let n = |verdict| group.n(verdict);
    let blocked = group.hurt().filter(|line| line.blocked.is_some()).count();
    let parts = [
        (n(LossVerdict::Lost), "down for good".to_owned()),
        (n(LossVerdict::Outage), "down for a while".to_owned()),
        (
            n(LossVerdict::Degraded),
            format!("with fewer pods than {} for", ask(n(LossVerdict::Degraded))),
        ),
        (blocked, "in the way of a drain that never ends".to_owned()),
    ];
    let parts = parts.iter().filter(|(n, _)| *n > 0);
    let parts: Vec<String> = parts.map(|(n, text)| format!("{n} {text}")).collect();
    let title = styles.title;
    let each = if group.n_sets > 1 {
        " (each alone)"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "{title}{}{title:#}{each}: of {}, {}",
        printable_line(&group.domains),
        count(audit.workloads, "workload"),
        parts.join(", ")
    );
    let (bare, hurt): (Vec<&Line<'_>>, Vec<&Line<'_>>) =
        group.hurt().partition(|line| line.is_bare());
    let (hurt, likewise) = folded(&hurt);
    let shown = &hurt[..hurt.len().min(look.top)];
    let width = |text: fn(&Row) -> String| {
        let widths = shown.iter().map(|line| text(line.row).chars().count());
        widths.max().unwrap_or(0)
    };
    let (names, kinds) = (width(name), width(|row| row.kind.clone()));
    if !bare.is_empty() {
        let names: Vec<String> = bare.iter().map(|line| name(line.row)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let bad = styles.bad;
        let _ = writeln!(
            out,
            "  {bad}✗{bad:#} {} without a workload: nothing makes {} again, and kubectl drain refuses {} without --force: {}",
            count(bare.len(), "pod"),
            if bare.len() == 1 { "it" } else { "them" },
            if bare.len() == 1 {
                "its node"
            } else {
                "their nodes"
            },
            printable_line(&listed(&names))
        );
    }
    for line in shown {
        let (mark, style) = mark(line, styles);
        let row = line.row;
        let is_well = matches!(line.verdict(), LossVerdict::Survives | LossVerdict::Unknown);
        let events = match is_well {
            true => String::new(),
            false => line.events_text(),
        };
        let _ = writeln!(
            out,
            "  {style}{mark}{style:#} {:names$}  {:kinds$}  {:8}  {:18}  {}",
            printable_line(&name(row)),
            row.kind,
            row.verdict,
            events,
            printable_line(&numbers(line)),
        );
        for (events, cause) in line.causes.iter().filter(|_| row.is_hurt()) {
            let when = match events.len() == line.events.len() {
                true => String::new(),
                false => format!("{}: ", in_a_row(events)),
            };
            let _ = writeln!(out, "      {when}{}", printable_line(&cause.text));
        }
        if let Some(blocked) = line.blocked {
            let _ = writeln!(
                out,
                "      its drain never ends: {}",
                printable_line(blocked)
            );
        }
    }
    for lines in likewise {
        write_likewise(out, &lines, look);
    }
    if hurt.len() > shown.len() {
        let more = hurt.len() - shown.len();
        let _ = writeln!(
            out,
            "    and {} more (--top {})",
            count(more, "workload"),
            hurt.len()
        );
    }
    let empty = { group.cases.iter() }
        .flat_map(|case| &case.services)
        .filter(|service| service.at_once == 0)
        .map(Endpoints::text);
    let empty: BTreeSet<String> = empty.collect();
    let empty: Vec<&str> = empty.iter().map(String::as_str).collect();
    if !empty.is_empty() {
        let _ = writeln!(
            out,
            "    Services without an endpoint at once: {}",
            printable_line(&listed(&empty))
        );
    }
}

/// If more workloads than this have one verdict for one cause, the first are lines of their own.
const LIKEWISE_MAX: usize = 5;
const LIKEWISE_SHOWN: usize = 3;

/// Lines to write one by one, and lines with the verdict and the cause of others, to write as one each.
fn folded<'g, 'a>(lines: &[&'g Line<'a>]) -> (Vec<&'g Line<'a>>, Vec<Vec<&'g Line<'a>>>) {
    let mut alike: Vec<Vec<&Line<'_>>> = Vec::new();
    let mut alone = Vec::new();
    let key = |line: &Line<'_>| {
        let code = line.row.cause.as_ref().map(|cause| cause.code);
        (line.verdict(), code, line.events.clone())
    };
    for &line in lines {
        let same = |other: &Line<'_>| key(other) == key(line);
        let n_alike = lines.iter().filter(|other| same(other)).count();
        let n_before = alone
            .iter()
            .filter(|other: &&&Line<'_>| same(other))
            .count();
        let is_folded = line.row.cause.is_some() && line.blocked.is_none();
        if !is_folded || n_alike <= LIKEWISE_MAX || n_before < LIKEWISE_SHOWN {
            alone.push(line);
            continue;
        }
        match alike
            .iter_mut()
            .find(|lines| lines.first().is_some_and(|first| same(first)))
        {
            Some(lines) => lines.push(line),
            None => alike.push(vec![line]),
        }
    }
    (alone, alike)
}

/// `and 9 more LOST likewise: no constraint over zone spreads them: batch/a 0 of 5, batch/b 0 of 2`
fn write_likewise(out: &mut String, lines: &[&Line<'_>], look: &Look<'_>) {
    let Some(first) = lines.first() else { return };
    let (mark, style) = mark(first, &look.context.terminal.styles);
    let why = first.row.cause.as_ref().map_or("", |cause| {
        let why = cause.text.split_once(": ");
        let why = why.map_or(cause.text.as_str(), |(_, why)| why);
        // The numbers behind it are those of one workload.
        why.split_once(" (").map_or(why, |(why, _)| why)
    });
    let named = lines.iter().map(|line| {
        let row = line.row;
        format!("{} {} of {}", name(row), row.ready, row.wanted)
    });
    let named: Vec<String> = named.collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let _ = writeln!(
        out,
        "  {style}{mark}{style:#} and {} more {} likewise, {why}: {}",
        lines.len(),
        first.row.verdict,
        printable_line(&listed(&named))
    );
}

fn mark(line: &Line<'_>, styles: &crate::terminal::Styles) -> (&'static str, Style) {
    match line.verdict() {
        LossVerdict::Lost => ("✗", styles.bad),
        _ => ("!", styles.warning),
    }
}

/// `loss, drain`
fn in_a_row(events: &[Event]) -> String {
    let names: Vec<&str> = events.iter().map(|event| event.name()).collect();
    names.join(", ")
}

fn name(row: &Row) -> String {
    match row.namespace.as_str() {
        "default" | "" => row.name.clone(),
        namespace => format!("{namespace}/{}", row.name),
    }
}

fn length(seconds: u64) -> String {
    length_text(Span::from_secs(seconds))
}

/// What is left, in a few words, and in how many seeds if chance decides.
fn numbers(line: &Line<'_>) -> String {
    let left = left(line);
    match line.events.iter().all(|(_, is_chance)| *is_chance) {
        true if line.row.seeds < line.n_seeds => {
            format!("{left} (in {} of {} seeds)", line.row.seeds, line.n_seeds)
        }
        _ => left,
    }
}

fn left(line: &Line<'_>) -> String {
    let row = line.row;
    let at_rest = format!("{} of {}", row.ready, row.wanted);
    let events: Vec<Event> = line.events.iter().map(|(event, _)| *event).collect();
    match (line.verdict(), events.as_slice()) {
        (LossVerdict::Lost | LossVerdict::Degraded, _) => {
            let budget = row
                .budgets
                .iter()
                .find(|budget| budget.healthy < budget.asks);
            match budget {
                Some(budget) => {
                    format!("{at_rest}, budget {} asks for {}", budget.name, budget.asks)
                }
                None => at_rest,
            }
        }
        (LossVerdict::Outage, [Event::Shift]) if row.at_once > 0 => {
            format!(
                "none for {} while it is restarted, then {at_rest}",
                length(row.seconds_without_ready)
            )
        }
        (LossVerdict::Outage, [Event::Shift]) => {
            format!("none serves until it is restarted, then {}", at_rest)
        }
        (LossVerdict::Outage, _) => {
            format!(
                "none for {}, then {at_rest}",
                length(row.seconds_without_ready)
            )
        }
        _ => format!("{at_rest}, at least {}", row.fewest),
    }
}

/// One line for what asks for one pod: it can be no better than an outage.
fn write_single(out: &mut String, groups: &[Group<'_>], look: &Look<'_>) {
    // What is hurt by another domain stands there.
    let hurt = workloads_of(groups, |line| line.is_hurt());
    let lines = groups.iter().flat_map(|group| &group.lines);
    let single = lines.filter(|line| {
        let is_out = line.verdict() == LossVerdict::Outage && line.row.wanted == 1;
        is_out && !hurt.contains(&line.row.of())
    });
    let single: Vec<&Row> = single.map(|line| line.row).collect();
    let names: BTreeSet<String> = single.iter().map(|row| name(row)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(longest) = single.iter().map(|row| row.seconds_without_ready).max() else {
        return;
    };
    let dim = look.context.terminal.styles.dim;
    let _ = writeln!(
        out,
        "{dim}-{dim:#} {} of one pod {} out for up to {}: {}",
        count(names.len(), "workload"),
        if names.len() == 1 { "is" } else { "are" },
        length(longest),
        printable_line(&listed(&names))
    );
}

/// The headroom of the tightest loss.
fn write_headroom(out: &mut String, audit: &Audit) {
    let mut seen: Vec<&[String]> = Vec::new();
    let mut told = Vec::new();
    for case in &audit.cases {
        if seen.contains(&case.domains.as_slice()) {
            continue;
        }
        seen.push(&case.domains);
        told.push(case);
    }
    let tightness = |case: &&&Case| {
        let room = &case.headroom;
        let cpu = room.free_milli_cpu.saturating_sub(room.needs_milli_cpu);
        let memory = room.free_bytes.saturating_sub(room.needs_bytes);
        (!room.is_short(), cpu.min(memory >> 20))
    };
    let short: Vec<&&Case> = told
        .iter()
        .filter(|case| case.headroom.is_short())
        .collect();
    let shown = match short.is_empty() {
        true => told.iter().min_by_key(tightness).into_iter().collect(),
        false => short,
    };
    for case in shown.into_iter().take(NAMES_MAX) {
        let domains = case.domains.join(" and ");
        let _ = writeln!(out, "{}", headroom_text(&domains, &case.headroom));
    }
}

/// `headroom: losing a needs 34 CPU elsewhere, 20 are free`
pub(super) fn headroom_text(domains: &str, room: &Headroom) -> String {
    let cpu_is_short = room.needs_milli_cpu > room.free_milli_cpu;
    let memory_is_short = room.needs_bytes > room.free_bytes;
    let are = if room.free_milli_cpu == 1000 {
        "is"
    } else {
        "are"
    };
    let cpu = format!(
        "{} CPU elsewhere, {} {are} free",
        cpu_short(room.needs_milli_cpu),
        cpu_short(room.free_milli_cpu),
    );
    let memory = format!(
        "{} memory elsewhere, {} are free",
        bytes_short(room.needs_bytes),
        bytes_short(room.free_bytes)
    );
    let text = match (cpu_is_short, memory_is_short) {
        (_, false) => cpu,
        (false, true) => memory,
        (true, true) => format!("{cpu}, and {memory}"),
    };
    format!("headroom: losing {} needs {text}", printable_line(domains))
}

/// The workloads with a line of which this is true.
fn workloads_of(groups: &[Group<'_>], is: fn(&Line<'_>) -> bool) -> BTreeSet<String> {
    let lines = groups.iter().flat_map(|group| &group.lines);
    lines
        .filter(|line| is(line))
        .map(|line| line.row.of())
        .collect()
}

fn unknown(groups: &[Group<'_>]) -> BTreeSet<String> {
    workloads_of(groups, |line| line.verdict() == LossVerdict::Unknown)
}

/// Why workloads are UNKNOWN: strew plays no scheduler of theirs, or none of their pods was ready.
fn whys_unknown(groups: &[Group<'_>]) -> Vec<(&'static str, BTreeSet<String>)> {
    let mut whys: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    let lines = groups.iter().flat_map(|group| &group.lines);
    for line in lines.filter(|line| line.verdict() == LossVerdict::Unknown) {
        let code = line.row.cause.as_ref().map(|cause| cause.code);
        let why = match code {
            Some(CauseCode::UnknownController) => {
                "since their controllers are not in the files, and may make others"
            }
            Some(_) => "since strew plays no scheduler of theirs",
            None => "since no pod was ready before",
        };
        whys.entry(why).or_default().insert(line.row.of());
    }
    whys.into_iter().collect()
}

/// The number of workloads that could not be judged; empty if there is none.
fn but_unknown(groups: &[Group<'_>]) -> String {
    match unknown(groups).len() {
        0 => String::new(),
        n => format!(
            ", but {} could not be judged (UNKNOWN)",
            count(n, "workload")
        ),
    }
}

fn write_survivors(out: &mut String, audit: &Audit, groups: &[Group<'_>], look: &Look<'_>) {
    let hurt = workloads_of(groups, |line| {
        line.is_hurt() || line.verdict() == LossVerdict::Outage
    });
    let unknown = unknown(groups);
    let n_survive = {
        let all = workloads_of(groups, |_| true);
        all.difference(&hurt)
            .filter(|name| !unknown.contains(*name))
            .count()
    };
    let events: BTreeSet<&str> = audit.cases.iter().map(|case| case.event.name()).collect();
    let events: Vec<&str> = Event::ALL
        .into_iter()
        .map(Event::name)
        .filter(|name| events.contains(name))
        .collect();
    if n_survive > 0 {
        let good = look.context.terminal.styles.good;
        let _ = writeln!(
            out,
            "{good}✓{good:#} {} {} every {}{}",
            count(n_survive, "workload"),
            if n_survive == 1 {
                "survives"
            } else {
                "survive"
            },
            events.join(", every "),
            match audit.seeds {
                1 => String::new(),
                n => format!(" in all {n} seeds"),
            }
        );
    }
    for (why, of) in whys_unknown(groups) {
        let names: Vec<&str> = of.iter().map(String::as_str).collect();
        let dim = look.context.terminal.styles.dim;
        let _ = writeln!(
            out,
            "{dim}?{dim:#} {} UNKNOWN, {why}: {}",
            count(of.len(), "workload"),
            printable_line(&listed(&names))
        );
    }
    if audit.nodes_without_key > 0 {
        let _ = writeln!(
            out,
            "note: {} without {}: nothing happens to {}",
            count(audit.nodes_without_key, "node"),
            audit.by,
            if audit.nodes_without_key == 1 {
                "it"
            } else {
                "them"
            }
        );
    }
    if audit.domains.len() == 1 {
        let _ = writeln!(
            out,
            "note: {} has one domain: without it {}",
            audit.by,
            match audit.nodes_without_key {
                0 => "nothing is left",
                _ => "only nodes without the label are left",
            }
        );
    }
    for case in audit.cases.iter().filter(|case| !case.at_rest) {
        let _ = writeln!(
            out,
            "note: not at rest after the {} of {}: its numbers are those after {}",
            case.event.name(),
            printable_line(&case.domains.join(" and ")),
            length(case.seconds)
        );
    }
}

fn write_fixes(out: &mut String, audit: &Audit, look: &Look<'_>) {
    let is_hurt = |case: &Case| !case.blocked.is_empty() || case.workloads.iter().any(Row::is_hurt);
    if !audit.cases.iter().any(is_hurt) {
        return;
    }
    let program = look.context.program;
    if !look.looked {
        let _ = writeln!(
            out,
            "\n{program} audit --fix looks for the smallest changes that help, and plays them"
        );
        return;
    }
    if audit.fixes.is_empty() {
        let _ = writeln!(
            out,
            "\nNo change that was played helps: strew tries constraints, replicas, budgets, cordoned nodes and more nodes"
        );
        return;
    }
    let together = match audit.fixes.len() {
        1 => "played again with it",
        _ => "played alone, and all together",
    };
    let _ = writeln!(
        out,
        "\nSmallest changes ({together}; -o patch prints them, --out-dir writes files):"
    );
    let widths = audit.fixes.iter().map(|fix| fix.of.chars().count());
    let width = widths.max().unwrap_or(0);
    for (number, fix) in audit.fixes.iter().enumerate() {
        let to = match (fix.from.as_str(), fix.to.as_str()) {
            ("BLOCKED", "SURVIVES") => "the drain ends".to_owned(),
            (from, to) => format!("{from} -> {to}"),
        };
        let _ = writeln!(
            out,
            "  {} {:width$}  {}  {to}",
            number + 1,
            printable_line(&fix.of),
            printable_line(&fix.change)
        );
    }
}
