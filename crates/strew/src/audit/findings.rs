//! An audit as findings, for pipelines.

use std::collections::HashMap;

use strew_manifest::field::FieldPath;
use strew_manifest::finding::{FilePlace, Finding};
use strew_manifest::read::{Locator, Severity, read};
use strew_scenario::audit::values::Audit;
use strew_scenario::story::target;
use strew_view::loss::LossVerdict;

use super::AuditFormat;
use crate::inputs::{self, Input};

/// Where workloads are written.
#[derive(Default)]
pub(super) struct Places(HashMap<String, FilePlace>);

impl Places {
    /// The places of the objects of the files, if the format has places.
    pub(super) fn kept(format: Option<AuditFormat>, inputs: &[Input]) -> Self {
        if !matches!(format, Some(AuditFormat::Junit | AuditFormat::Sarif)) {
            return Self::default();
        }
        let sources = inputs::sources(inputs.to_vec());
        let mut locator = Locator::new(&sources);
        let reading = read(&sources);
        let each = reading.objects.iter().map(|located| {
            let place = locator.place(&located.origin, &FieldPath::root());
            let at = FilePlace {
                file: sources.file(place.file).name().to_owned(),
                line: place.line,
                column: place.column,
            };
            (target(&located.object), at)
        });
        Self(each.collect())
    }
}

/// A finding for each workload that an event hurts, and for each drain that never ends. Errors are those that fail the
/// command.
pub(super) fn of(audit: &Audit, fail_on: LossVerdict, places: &Places) -> Vec<Finding> {
    let severity = |fails: bool| match fails {
        true => Severity::Error,
        false => Severity::Warning,
    };
    let mut found = Vec::new();
    for case in &audit.cases {
        let (event, domains) = (case.event.name(), case.domains.join(", "));
        let bad = case.workloads.iter();
        for row in bad.filter(|row| row.is_hurt()) {
            let verdict = row.judged();
            let cause = row.cause.as_ref();
            let cause = cause.map_or(String::new(), |cause| format!(": {}", cause.text));
            let message = format!(
                "{event} of {domains}: {}, {}{cause}",
                verdict.name(),
                row.sum
            );
            let finding = Finding::new(severity(verdict <= fail_on), verdict.code(), message)
                .with_number("wanted", row.wanted.into())
                .with_number("atOnce", row.at_once.into())
                .with_number("ready", row.ready.into());
            found.push((row.of(), finding));
        }
        for blocked in &case.blocked {
            let message = format!("the drain of {domains} never ends: {}", blocked.why);
            let fails = severity(fail_on == LossVerdict::Degraded);
            let finding = Finding::new(fails, "drain-blocked", message);
            found.push((blocked.object.clone(), finding));
        }
    }
    let fix = |of: &str| audit.fixes.iter().find(|fix| fix.of == of);
    let each = found.into_iter().map(|(of, finding)| {
        let help = fix(&of).map(|fix| format!("{} (played: {})", fix.change, fix.to));
        let finding = Finding { help, ..finding };
        match places.0.get(&of) {
            Some(place) => finding.at(place.clone()).about(of),
            None => finding.about(of),
        }
    });
    Finding::in_order(each)
}
