//! How soon status and deletion costs are correct: a client polls its workload each second, and checks them once, when
//! the workload is ready.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};
use xtask_lab::lab::{now, until};

use super::{MARKER, costs, costs_of, is_active, is_at_rest, limit, rows_of, scale, scheduler};
use crate::bench_live::figures::median;
use crate::e2e::follow::Follow;
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of};

/// How often the client polls.
const POLL: Duration = Duration::from_secs(1);

/// The number of tries in full size; otherwise a third of it.
const TRIES: usize = 20;

/// The time from the last pod Ready to the right status.
const RIGHT_WITHIN: Duration = Duration::from_millis(100);

const DEPLOYMENT: &str = "deployment/web";

/// The result that a client must find: `(subset, replicas, missing)` and `(subset, cost, pods)`.
struct Expected<'a> {
    spread: &'a str,
    rows: &'a [(&'a str, i64, i64)],
    costs: &'a [(&'a str, i64, usize)],
}

/// A scale-up, an edit of `maxReplicas`, a scale-down and an adoption, again and again: each time status and costs are
/// right when the client first finds the workload ready.
pub(crate) fn prompt(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(2)?;
    stage.apply("ws-prompt.yaml")?;
    let n_tries = if stage.is_full { TRIES } else { TRIES / 3 };
    let mut watched = Watched::start(stage)?;
    let (mut late, mut wrong) = (Vec::new(), Vec::new());
    for i in 0..n_tries {
        late.push(play(stage, i, &mut watched, &mut wrong)?);
    }
    let ms: Vec<f64> = late.iter().map(|late| late.as_secs_f64() * 1e3).collect();
    let most = ms.iter().copied().fold(0.0, f64::max);
    println!(
        "  from the last of 6 pods Ready to the right status: {:.0} ms in the middle, {most:.0} ms at most, of {n_tries} tries",
        median(ms)
    );
    ensure!(
        wrong.is_empty(),
        "{} of {}: {}",
        wrong.len(),
        4 * n_tries,
        wrong.join("; ")
    );
    let is_prompt = late.iter().all(|late| *late <= RIGHT_WITHIN);
    ensure!(is_prompt, "the right status after {late:?}");
    Ok(())
}

/// One try: how long after the last pod Ready the status was right, and what the client found wrong.
fn play(
    stage: &Stage,
    i: usize,
    watched: &mut Watched,
    wrong: &mut Vec<String>,
) -> anyhow::Result<Duration> {
    let mut look = |what: &str, expected: &Expected<'_>| -> anyhow::Result<()> {
        until_ready(stage)?;
        let found = differences(stage, expected)?;
        wrong.extend(found.map(|found| format!("{what} {i}: {found}")));
        Ok(())
    };
    let first = format!("first-{i}");
    create(stage, &first, [("own", Some(3)), ("elastic", Some(3))])?;
    super::until_observed(stage, &first)?;
    let mut expected = Expected {
        spread: &first,
        rows: &[("own", 3, 0), ("elastic", 3, 0)],
        costs: &[("own", 200, 3), ("elastic", 100, 3)],
    };
    watched.clear();
    scale(stage, DEPLOYMENT, 6)?;
    look("scale-up", &expected)?;
    let late = watched.lateness(6, expected.rows)?;

    limit(stage, &first, 0, json!(1))?;
    expected.costs = &[("own", 200, 1), ("own", -100, 2), ("elastic", 100, 3)];
    look("edit", &expected)?;

    scale(stage, DEPLOYMENT, 4)?;
    expected.rows = &[("own", 1, 0), ("elastic", 3, 0)];
    expected.costs = &[("own", 200, 1), ("elastic", 100, 3)];
    look("scale-down", &expected)?;

    // Another WorkloadSpread, for which all pods are unknown.
    stage.run(&["delete", "workloadspread", &first])?;
    let second = format!("second-{i}");
    create(stage, &second, [("elastic", Some(2)), ("own", None)])?;
    expected.spread = &second;
    expected.rows = &[("elastic", 3, 0), ("own", 1, -1)];
    expected.costs = &[("elastic", 200, 2), ("elastic", -100, 1), ("own", 100, 1)];
    look("adoption", &expected)?;

    stage.run(&["delete", "workloadspread", &second])?;
    scale(stage, DEPLOYMENT, 0)?;
    until("all pods go", SOON, PAUSE, || {
        Ok(stage.pods()?.is_empty().then_some(()))
    })?;
    Ok(late)
}

/// Makes a WorkloadSpread of the Deployment, with a subset for each pool: its name, and how many pods it takes.
fn create(stage: &Stage, name: &str, subsets: [(&str, Option<u32>); 2]) -> anyhow::Result<()> {
    let subset = |(pool, limit): (&str, Option<u32>)| {
        let term = json!({"key": "pool", "operator": "In", "values": [pool]});
        let mut subset =
            json!({"name": pool, "requiredNodeSelector": {"matchExpressions": [term]}});
        if let Some(limit) = limit {
            subset["maxReplicas"] = json!(limit);
        }
        subset
    };
    let spread = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": name},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "subsets": subsets.map(subset),
        },
    });
    // While a webhook has not yet seen that the earlier WorkloadSpread is gone, it refuses a second one of the same
    // target.
    let mut refused = Ok(());
    let made = until("a WorkloadSpread", SOON, PAUSE, || {
        refused = stage.apply_all(vec![spread.clone()]);
        Ok(refused.is_ok().then_some(()))
    });
    refused.and(made)
}

/// Polls the Deployment each second, after a first second, until it is ready.
fn until_ready(stage: &Stage) -> anyhow::Result<()> {
    let mut has_waited = false;
    until("the Deployment is ready", SOON, POLL, || {
        if !std::mem::replace(&mut has_waited, true) {
            return Ok(None);
        }
        let found = stage.get(DEPLOYMENT)?;
        let status = &found["status"];
        let number = |field: &str| status[field].as_u64().unwrap_or(0);
        let asked = found["spec"]["replicas"].as_u64().unwrap_or(0);
        let counts = ["replicas", "updatedReplicas", "readyReplicas"];
        let is_ready = status["observedGeneration"] == found["metadata"]["generation"]
            && counts.iter().all(|field| number(field) == asked);
        Ok(is_ready.then_some(()))
    })
}

/// What one look finds wrong; `None` if nothing.
fn differences(stage: &Stage, expected: &Expected<'_>) -> anyhow::Result<Option<String>> {
    let name = expected.spread;
    let spread = stage.get(&format!("workloadspread/{name}"))?;
    let mut pods = stage.pods()?;
    pods.retain(is_active);
    let status = &spread["status"];
    let is_other = |pod: &Value| {
        let marker = pod["metadata"]["annotations"][MARKER].as_str();
        let marker = marker.and_then(|text| serde_json::from_str::<Value>(text).ok());
        marker.is_none_or(|marker| marker["name"] != name)
    };
    let others: Vec<&str> = pods
        .iter()
        .filter(|pod| is_other(pod))
        .map(name_of)
        .collect();
    let found = costs_of(&pods);
    let is_right = status["observedGeneration"] == spread["metadata"]["generation"]
        && is_right(status, expected.rows)
        && found == costs(expected.costs)
        && others.is_empty();
    let described = || format!("{status}, costs {found:?}, not of {name}: {others:?}");
    Ok((!is_right).then(described))
}

fn is_right(status: &Value, rows: &[(&str, i64, i64)]) -> bool {
    let expected: Vec<Value> = rows.iter().map(|row| json!(row)).collect();
    is_at_rest(status) && rows_of(&status["subsetStatuses"]) == expected
}

/// When pods became ready, and statuses were written, by watches.
struct Watched {
    pods: Follow<Ready>,
    statuses: Follow<Vec<(Instant, Value)>>,
}

/// The pods that are ready.
#[derive(Default)]
struct Ready {
    names: BTreeSet<String>,
    /// When the last of them became ready.
    last: Option<Instant>,
}

impl Watched {
    fn start(stage: &Stage) -> anyhow::Result<Self> {
        let pods = Follow::start(stage, "pods", |ready: &mut Ready, _, pod| {
            let conditions = pod["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let is_ready = conditions.any(|c| c["type"] == "Ready" && c["status"] == "True");
            if is_ready && is_active(pod) && ready.names.insert(name_of(pod).to_owned()) {
                ready.last = Some(now());
            }
        })?;
        let statuses = Follow::start(
            stage,
            "workloadspreads",
            |statuses: &mut Vec<(Instant, Value)>, _, spread| {
                statuses.push((now(), spread["status"].clone()));
            },
        )?;
        Ok(Self { pods, statuses })
    }

    /// Forgets all events so far.
    fn clear(&mut self) {
        self.pods.change(|ready| *ready = Ready::default());
        self.statuses.change(Vec::clear);
    }

    /// How long after the last of `n` pods became ready the status said this, and said nothing else from then on.
    fn lateness(&self, n: usize, rows: &[(&str, i64, i64)]) -> anyhow::Result<Duration> {
        let right = || {
            self.statuses.look(|statuses| {
                let from_last = statuses.iter().rev();
                let right = from_last.take_while(|(_, status)| is_right(status, rows));
                right.last().map(|(at, _)| *at)
            })
        };
        until("the watches report all", SOON, PAUSE, || {
            let ready = self.pods.look(|ready| {
                let is_whole = ready.names.len() == n;
                ready.last.filter(|_| is_whole)
            });
            Ok(ready.zip(right()))
        })
        .map(|(ready, right)| right.saturating_duration_since(ready))
    }
}
