//! Two audits compared (`strew diff`), and audits of many clusters in one list (`strew merge`).

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::anyhow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strew_manifest::printable::printable_line;
use strew_scenario::audit::values::{Audit, Event, KIND};
use strew_view::loss::LossVerdict;

use crate::failure::Failure;
use crate::text::count;
use strew_suite::report::API_VERSION;

/// A verdict that is not the same in both audits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Moved {
    /// The workload: `deployment/web`.
    pub(crate) of: String,
    /// What happens.
    pub(crate) event: Event,
    /// The domains that it happens to.
    pub(crate) domains: Vec<String>,
    /// The verdict of the first audit; `None` if the workload is not in it.
    pub(crate) before: Option<String>,
    /// The verdict of the second one.
    pub(crate) after: Option<String>,
    /// True if it is worse now.
    pub(crate) is_worse: bool,
}

/// What is different in two audits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditDiff<'a> {
    /// `sim.strew.dev/v1alpha1`
    api_version: &'a str,
    /// `AuditDiff`
    kind: &'a str,
    /// Verdicts that are not the same, the worse ones first.
    items: &'a [Moved],
}

impl<'a> AuditDiff<'a> {
    pub(crate) fn of(items: &'a [Moved]) -> Self {
        Self {
            api_version: API_VERSION,
            kind: "AuditDiff",
            items,
        }
    }
}

/// The audits of several clusters.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AuditList<'a> {
    /// `sim.strew.dev/v1alpha1`
    api_version: &'a str,
    /// `AuditList`
    kind: &'a str,
    /// By the names of clusters, which are in `cluster`.
    items: Vec<&'a Audit>,
}

/// The JSON schema of kind AuditDiff.
pub(crate) fn schema_of_diff() -> Value {
    schemars::schema_for!(AuditDiff<'_>).to_value()
}

/// The JSON schema of kind AuditList.
pub(crate) fn schema_of_list() -> Value {
    schemars::schema_for!(AuditList<'_>).to_value()
}

type Verdicts = BTreeMap<(String, Event, Vec<String>), (LossVerdict, String)>;

/// The verdict of each workload; a drain that never ends is one of its own.
fn verdicts(audit: &Audit) -> Verdicts {
    let mut all = Verdicts::new();
    for case in &audit.cases {
        for row in &case.workloads {
            let place = (row.of(), case.event, case.domains.clone());
            let blocked = case.blocked.iter().any(|blocked| blocked.object == place.0);
            let text = match blocked {
                true => format!("{}, its drain never ends", row.verdict),
                false => row.verdict.clone(),
            };
            all.insert(place, (row.judged(), text));
        }
    }
    all
}

/// True for what `strew audit -o json` writes.
pub(crate) fn is_audit(value: &Value) -> bool {
    value["kind"] == KIND && value["apiVersion"] == API_VERSION
}

/// What is different in two audits, the worst first.
///
/// # Errors
/// One is none of this version, or they are by other keys.
pub(crate) fn moved(before: &Value, after: &Value) -> Result<Vec<Moved>, Failure> {
    let (before, after) = (read(before)?, read(after)?);
    if before.by != after.by {
        let error = anyhow!("the audits are by {} and by {}", before.by, after.by);
        return Err(Failure::input(error).with_hint("--by KEY makes both by one key"));
    }
    let (old, new) = (verdicts(&before), verdicts(&after));
    let keys: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let each = keys.into_iter().filter_map(|place| {
        let (was, is) = (old.get(place), new.get(place));
        let text = |verdict: Option<&(LossVerdict, String)>| verdict.map(|(_, text)| text.clone());
        (text(was) != text(is)).then(|| Moved {
            of: place.0.clone(),
            event: place.1,
            domains: place.2.clone(),
            before: text(was),
            after: text(is),
            is_worse: match (was, is) {
                (Some(was), Some(is)) => (is.0, was.1.len()) < (was.0, is.1.len()),
                (None, Some(is)) => is.0 < LossVerdict::Survives,
                _ => false,
            },
        })
    });
    let mut moved: Vec<Moved> = each.collect();
    moved.sort_by_key(|moved| !moved.is_worse);
    Ok(moved)
}

fn read(value: &Value) -> Result<Audit, Failure> {
    serde_json::from_value(value.clone()).map_err(|error| {
        Failure::input(anyhow!(error).context("no audit of this version of strew"))
    })
}

/// The differences as text.
pub(crate) fn text(moved: &[Moved]) -> String {
    let n_worse = moved.iter().filter(|moved| moved.is_worse).count();
    let mut out = match moved.len() {
        0 => "no verdict is different\n".to_owned(),
        n => format!(
            "{} are different, {n_worse} of them worse\n",
            count(n, "verdict")
        ),
    };
    for one in moved {
        let mark = if one.is_worse { "✗" } else { "✓" };
        let none = "not there";
        let _ = writeln!(
            out,
            "  {mark} {}  {} of {}: {} -> {}",
            printable_line(&one.of),
            one.event.name(),
            printable_line(&one.domains.join(" and ")),
            one.before.as_deref().unwrap_or(none),
            one.after.as_deref().unwrap_or(none),
        );
    }
    out
}

/// Audits of several clusters.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    audits: BTreeMap<String, Audit>,
}

impl Fleet {
    /// Adds a file if it is an audit, or a list of audits, and says whether it is. The name of the cluster is that of the
    /// file.
    ///
    /// # Errors
    /// The audit is not of this version, or another one has its name.
    pub(crate) fn add(&mut self, name: &str, bytes: &[u8]) -> Result<bool, Failure> {
        let stem = std::path::Path::new(name).file_stem();
        let stem = stem.map_or(name.into(), |stem| stem.to_string_lossy());
        self.add_called(&stem, bytes)
    }

    /// As [`add`](Self::add); the name of the cluster is this one.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn add_called(&mut self, name: &str, bytes: &[u8]) -> Result<bool, Failure> {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            return Ok(false);
        };
        let audits = match value["kind"].as_str() {
            Some(KIND) => vec![read(&value)?],
            Some(LIST) => {
                let items = value["items"].as_array();
                let items = items.into_iter().flatten();
                items.map(read).collect::<Result<_, _>>()?
            }
            _ => return Ok(false),
        };
        for mut audit in audits {
            let cluster = audit.cluster.take().unwrap_or_else(|| name.to_owned());
            audit.cluster = Some(cluster.clone());
            if let Some(known) = self.audits.get(&cluster)
                && *known != audit
            {
                let error = anyhow!("two audits are called {cluster}, and they are not the same");
                return Err(Failure::input(error).with_hint("name each file after its cluster"));
            }
            self.audits.insert(cluster, audit);
        }
        Ok(true)
    }

    /// True if no audit was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.audits.is_empty()
    }

    /// True if a workload of a cluster is LOST.
    pub(crate) fn is_red(&self) -> bool {
        self.audits.values().any(|audit| counts(audit)[0] > 0)
    }

    /// Kind AuditList.
    pub(crate) fn list(&self) -> impl Serialize + '_ {
        AuditList {
            api_version: API_VERSION,
            kind: LIST,
            items: self.audits.values().collect(),
        }
    }

    /// A line for each cluster, the worst first.
    pub(crate) fn text(&self) -> String {
        let mut rows: Vec<_> = { self.audits.iter() }
            .map(|(name, audit)| (counts(audit), name, audit))
            .collect();
        rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let width = rows
            .iter()
            .map(|row| row.1.chars().count())
            .max()
            .unwrap_or(0);
        let mut out = String::new();
        for ([lost, outage, degraded, blocked], name, audit) in rows {
            let mark = match (lost, outage + degraded + blocked) {
                (1.., _) => "✗",
                (0, 1..) => "!",
                (0, 0) => "✓",
            };
            let _ = writeln!(
                out,
                "{mark} {:width$}  of {} by {}: {lost} LOST, {outage} OUTAGE, {degraded} DEGRADED, {blocked} in the way of a drain",
                printable_line(name),
                count(audit.workloads, "workload"),
                audit.by,
            );
        }
        out
    }
}

/// The kind of a list of audits.
const LIST: &str = "AuditList";

/// Workloads by their worst verdict: LOST, OUTAGE, DEGRADED; and those that keep a drain from its end.
fn counts(audit: &Audit) -> [usize; 4] {
    let mut worst: BTreeMap<String, LossVerdict> = BTreeMap::new();
    let mut blocked = std::collections::BTreeSet::new();
    for case in &audit.cases {
        for row in case.workloads.iter().filter(|row| row.is_hurt()) {
            let known = worst.entry(row.of()).or_insert(row.judged());
            *known = row.judged().min(*known);
        }
        blocked.extend(case.blocked.iter().map(|blocked| &blocked.object));
    }
    let n = |verdict| worst.values().filter(|known| **known == verdict).count();
    [
        n(LossVerdict::Lost),
        n(LossVerdict::Outage),
        n(LossVerdict::Degraded),
        blocked.len(),
    ]
}
