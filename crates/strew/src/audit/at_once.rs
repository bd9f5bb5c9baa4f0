//! `strew audit --at-once`: what each loss leaves in its instant; nothing is played.

use std::fmt::Write;

use anyhow::anyhow;
use strew_manifest::printable::printable_line;
use strew_scenario::audit::at_once::{AuditAtOnce, Instant, KIND, Left, instants};
use strew_scenario::audit::values::Endpoints;
use strew_suite::report::API_VERSION;

use super::text::{headroom_text, listed};
use super::{AuditFormat, Base};
use crate::context::Context;
use crate::failure::{EXIT_NO, Failure};
use crate::output::{Format, serialized};
use crate::text::{count, drawn};

/// What is left, of the workloads that are shown.
///
/// # Errors
/// No pod is ready: there is nothing to lose.
pub(super) fn audit(
    base: &Base<'_>,
    is_shown: impl Fn(&Left) -> bool,
) -> Result<AuditAtOnce, Failure> {
    let (mut cases, workloads) = instants(base.plan, &base.questions, base.seeds.first);
    if workloads == 0 {
        let error = anyhow!("no pod is ready in the files, and --at-once plays nothing");
        return Err(
            Failure::input(error).with_hint("without --at-once manifests are deployed first")
        );
    }
    for case in &mut cases {
        case.workloads.retain(&is_shown);
    }
    Ok(AuditAtOnce {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        by: base.key.clone(),
        domains: base.domains.clone(),
        nodes_without_key: base.n_without,
        workloads,
        cases,
    })
}

/// The output in a format.
///
/// # Errors
/// The format is of findings or patches, and there are none.
pub(super) fn written(
    audit: &AuditAtOnce,
    output: Option<AuditFormat>,
    top: usize,
    context: &Context,
) -> Result<String, Failure> {
    match output {
        None => Ok(drawn(text(audit, top, context), &context.terminal)),
        Some(AuditFormat::Json) => serialized(audit, Format::Json),
        Some(AuditFormat::Yaml) => serialized(audit, Format::Yaml),
        Some(_) => {
            let error = anyhow!("--at-once gives no verdicts: it is written as text, json or yaml");
            Err(Failure::input(error))
        }
    }
}

/// The exit code: 1 if a workload of several pods has none left, or no majority where that is asked for.
pub(super) fn exit(audit: &AuditAtOnce) -> u8 {
    let mut left = audit.cases.iter().flat_map(|case| &case.workloads);
    match left.any(Left::is_down) {
        true => EXIT_NO,
        false => 0,
    }
}

fn text(audit: &AuditAtOnce, top: usize, context: &Context) -> String {
    let mut out = String::new();
    for case in &audit.cases {
        write_case(&mut out, audit, case, top, context);
    }
    for case in &audit.cases {
        if case.headroom.is_short() {
            let domains = case.domains.join(" and ");
            let _ = writeln!(out, "{}", headroom_text(&domains, &case.headroom));
        }
    }
    out.push_str(
        "Nothing was played: whether and when they come back says strew audit without --at-once\n",
    );
    out
}

fn write_case(
    out: &mut String,
    audit: &AuditAtOnce,
    case: &Instant,
    top: usize,
    context: &Context,
) {
    let styles = &context.terminal.styles;
    let domains = case.domains.join(" and ");
    let n = |is_meant: fn(&Left) -> bool| case.workloads.iter().filter(|w| is_meant(w)).count();
    let parts = [
        (n(|left| left.at_once == 0), "with no ready pod left"),
        (n(|left| left.quorum.is_some()), "without a majority"),
        (n(|left| !left.budgets.is_empty()), "below a budget"),
        (case.workloads.len(), "with fewer ready pods"),
    ];
    let parts = parts.iter().filter(|(n, _)| *n > 0);
    let parts: Vec<String> = parts.map(|(n, text)| format!("{n} {text}")).collect();
    let of = count(audit.workloads, "workload");
    if parts.is_empty() {
        let good = styles.good;
        let _ = writeln!(
            out,
            "{good}{}{good:#}: of {of}, none loses a pod",
            printable_line(&domains)
        );
        return;
    }
    let title = styles.title;
    let _ = writeln!(
        out,
        "{title}{}{title:#} at once: of {of}, {}",
        printable_line(&domains),
        parts.join(", ")
    );
    let is_told =
        |left: &&Left| left.at_once == 0 || left.quorum.is_some() || !left.budgets.is_empty();
    let told: Vec<&Left> = case.workloads.iter().filter(is_told).collect();
    let shown = &told[..told.len().min(top)];
    let widths = shown.iter().map(|left| name(left).chars().count());
    let width = widths.max().unwrap_or(0);
    for left in shown {
        let (mark, style) = match left.is_down() {
            true => ("✗", styles.bad),
            false => ("!", styles.warning),
        };
        let mut numbers = format!("{} of {} left", left.at_once, left.before);
        if let Some(quorum) = left.quorum {
            let _ = write!(numbers, ", {quorum} are its majority");
        }
        for budget in &left.budgets {
            let (name, asks) = (&budget.name, budget.asks);
            let _ = write!(numbers, ", budget {name} asks for {asks}");
        }
        let _ = writeln!(
            out,
            "  {style}{mark}{style:#} {:width$}  {:11}  {}",
            printable_line(&name(left)),
            left.kind,
            printable_line(&numbers),
        );
    }
    if told.len() > shown.len() {
        let more = count(told.len() - shown.len(), "workload");
        let _ = writeln!(out, "    and {more} more (--top {})", told.len());
    }
    let empty = case.services.iter().filter(|service| service.at_once == 0);
    let empty: Vec<String> = empty.map(Endpoints::text).collect();
    let empty: Vec<&str> = empty.iter().map(String::as_str).collect();
    if !empty.is_empty() {
        let _ = writeln!(
            out,
            "    Services without an endpoint: {}",
            printable_line(&listed(&empty))
        );
    }
}

fn name(left: &Left) -> String {
    named(&left.namespace, &left.name)
}

/// `shop/web`; in namespace `default`, `web`.
fn named(namespace: &str, name: &str) -> String {
    match namespace {
        "default" | "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

/// The JSON schema of kind AuditAtOnce.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(AuditAtOnce).to_value()
}
