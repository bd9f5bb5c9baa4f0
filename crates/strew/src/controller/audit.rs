//! The controller `audit`: its flags, and the results of an audit as series of metrics.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use strew_kube::controller::audit::{Metric, Series, Settings};
use strew_manifest::duration::GoDuration;
use strew_scenario::audit::values::{Audit, Blocked, Case, Event, Row};
use strew_view::loss::LossVerdict;

use crate::audit::of_cluster;
use crate::failure::Failure;

/// The flags of the audit.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "The audit")]
pub(super) struct AuditTimerArgs {
    /// The pause between two audits; at least 10s
    #[arg(long, value_name = "DURATION", value_parser = pause, default_value = "10m")]
    audit_every: Duration,
    /// The topology key whose domains are lost [default: topology.kubernetes.io/zone]
    #[arg(long, value_name = "KEY")]
    audit_by: Option<String>,
    /// The most series about workloads, budgets and domains; of more, the worst are served
    #[arg(long, value_name = "N", default_value = "2000")]
    audit_max_series: NonZeroUsize,
}

pub(super) fn pause(text: &str) -> Result<Duration, String> {
    let parsed = GoDuration::parse(text).map(GoDuration::to_std);
    parsed
        .filter(|span| span.as_secs() >= 10)
        .ok_or_else(|| "not a duration of 10 seconds or more, such as 10m".to_owned())
}

impl AuditTimerArgs {
    pub(super) fn settings(&self) -> Settings {
        let by = self.audit_by.clone();
        Settings {
            every: self.audit_every,
            max_series: self.audit_max_series.get(),
            auditor: Arc::new(move |objects| {
                let audit = of_cluster(objects, by.as_deref());
                audit
                    .map(|audit| series(&audit))
                    .map_err(|failure| in_a_line(&failure))
            }),
        }
    }

    /// The settings, for `/configz`.
    pub(super) fn shown(&self) -> Value {
        json!({
            "everySeconds": self.audit_every.as_secs(),
            "by": self.audit_by,
            "maxSeries": self.audit_max_series,
        })
    }
}

/// A failure as one line of a log.
pub(super) fn in_a_line(failure: &Failure) -> String {
    let mut causes = crate::cluster::causes(failure.error().as_ref());
    causes.extend(failure.hint().map(str::to_owned));
    causes.join(": ")
}

/// How bad a series is; the worst is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Lost,
    NeverDrained,
    Outage,
    Degraded,
    OfDomain,
    Well,
}

/// All series of an audit, the worst first.
fn series(audit: &Audit) -> Vec<Series> {
    let mut ranked: Vec<(Rank, Series)> = Vec::new();
    for budget in &audit.stuck_budgets {
        let labels = vec![budget.namespace.clone(), budget.name.clone()];
        let metric = Metric::BudgetUnsatisfiable;
        ranked.push((Rank::NeverDrained, of(metric, labels, 1.0)));
    }
    let mut before: Option<&Case> = None;
    for case in &audit.cases {
        let domain = case.domains.join(",");
        // The room is that before the event, equal in all cases of a domain, which follow each other.
        if before.is_none_or(|before| before.domains != case.domains) {
            ranked.extend(headroom(&audit.by, &domain, case));
        }
        before = Some(case);
        let blocked = case.blocked.iter();
        ranked.extend(blocked.map(|blocked| deadlock(&audit.by, &domain, case, blocked)));
        for row in &case.workloads {
            ranked.extend(of_row(&audit.by, &domain, case.event, row));
        }
    }
    // Stable: the order of domains and workloads stays.
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, series)| series).collect()
}

fn of(metric: Metric, labels: Vec<String>, value: f64) -> Series {
    Series {
        metric,
        labels,
        value,
    }
}

fn headroom(by: &str, domain: &str, case: &Case) -> [(Rank, Series); 2] {
    let room = &case.headroom;
    let cores = (room.free_milli_cpu - room.needs_milli_cpu) as f64 / 1000.0;
    let bytes = (room.free_bytes - room.needs_bytes) as f64;
    [("cpu", cores), ("memory", bytes)].map(|(resource, amount)| {
        let labels = [by, domain, resource].map(str::to_owned).to_vec();
        (Rank::OfDomain, of(Metric::Headroom, labels, amount))
    })
}

fn deadlock(by: &str, domain: &str, case: &Case, blocked: &Blocked) -> (Rank, Series) {
    let mut rows = case.workloads.iter();
    // A pod that no workload owns, or that of a kind which is not judged, has no row.
    let (namespace, workload) = match rows.find(|row| row.of() == blocked.object) {
        Some(row) => (row.namespace.clone(), named(row)),
        None => (String::new(), blocked.object.clone()),
    };
    let labels = vec![namespace, workload, by.to_owned(), domain.to_owned()];
    let pods = blocked.pods as f64;
    (Rank::NeverDrained, of(Metric::DrainDeadlock, labels, pods))
}

/// `Deployment/web`, as in `strew_spread_skew`.
fn named(row: &Row) -> String {
    format!("{}/{}", row.kind, row.name)
}

/// The series of a workload: whether it survives, and what it suffers; none if that is unknown.
fn of_row(by: &str, domain: &str, event: Event, row: &Row) -> Vec<(Rank, Series)> {
    let verdict = row.judged();
    if verdict == LossVerdict::Unknown {
        return Vec::new();
    }
    let (rank, harm) = match verdict {
        _ if !row.is_hurt() => (Rank::Well, None),
        LossVerdict::Lost => (Rank::Lost, Some((Metric::Lost, 1.0))),
        LossVerdict::Outage => {
            let seconds = row.seconds_without_ready as f64;
            (Rank::Outage, Some((Metric::Outage, seconds)))
        }
        _ => {
            let lacks = f64::from(row.wanted.saturating_sub(row.ready));
            (Rank::Degraded, Some((Metric::Degraded, lacks)))
        }
    };
    let survives = f64::from(u8::from(verdict == LossVerdict::Survives));
    let both = harm.into_iter().chain([(Metric::Survives, survives)]);
    let labels = [&row.namespace, &named(row), by, domain, event.name()];
    both.map(|(metric, value)| {
        let labels = labels.map(str::to_owned).to_vec();
        (rank, of(metric, labels, value))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str, cpu: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("n-{name}"), "labels": {"topology.kubernetes.io/zone": name}},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "20"}}})
    }

    fn deployment(name: &str, replicas: u32, pod: &Value) -> Value {
        let mut spec = json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}]});
        if let (Value::Object(spec), Value::Object(pod)) = (&mut spec, pod.clone()) {
            spec.extend(pod);
        }
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}})
    }

    fn values(series: &[Series], metric: Metric, label: &str) -> Vec<f64> {
        let its = series.iter();
        let its = its.filter(|s| s.metric == metric && s.labels.iter().any(|l| l == label));
        its.map(|series| series.value).collect()
    }

    /// `pinned` can run in zone a alone, `web` anywhere; `web`'s budget allows no eviction.
    #[test]
    fn an_audit_is_served_as_series_the_worst_first() {
        let pinned = json!({"nodeSelector": {"topology.kubernetes.io/zone": "a"}});
        let objects = vec![
            zone("a", "4"),
            zone("b", "4"),
            zone("c", "4"),
            deployment("pinned", 2, &pinned),
            deployment("web", 3, &json!({})),
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "strict", "namespace": "shop"},
                "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}}),
        ];
        let audit = of_cluster(objects, None).expect("it is sound");
        let series = series(&audit);
        assert_eq!(series[0].metric, Metric::Lost, "{series:#?}");
        let labels = [
            "shop",
            "Deployment/pinned",
            "topology.kubernetes.io/zone",
            "a",
            "loss",
        ];
        assert_eq!(series[0].labels, labels);
        // Of three zones by three events, those of zone a hurt it.
        let survives = values(&series, Metric::Survives, "Deployment/pinned");
        assert_eq!(survives.len(), 9);
        assert!(survives.contains(&0.0) && survives.contains(&1.0));
        assert_eq!(
            values(&series, Metric::BudgetUnsatisfiable, "strict"),
            [1.0]
        );
        assert_eq!(
            values(&series, Metric::DrainDeadlock, "Deployment/web"),
            [1.0; 3]
        );
        // 12 cores; 2.5 are requested. Zone a has 1 or 1.5 of them.
        let headroom = values(&series, Metric::Headroom, "a");
        assert_eq!(headroom.len(), 2);
        assert!((4.0..8.0).contains(&headroom[0]), "{headroom:?}");
        let rank = |metric| series.iter().position(|series| series.metric == metric);
        assert!(rank(Metric::DrainDeadlock) < rank(Metric::Headroom));
    }

    #[test]
    fn a_cluster_that_cannot_be_audited_is_told_in_a_line() {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
        let web = deployment("web", 1, &json!({}));
        let failure = of_cluster(vec![node, web], None).expect_err("no node has the label");
        let text = in_a_line(&failure);
        assert!(
            text.starts_with("no node") && !text.contains('\n'),
            "{text}"
        );
    }
}
