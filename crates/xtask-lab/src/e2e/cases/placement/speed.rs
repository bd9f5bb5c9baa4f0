//! A large hub: the time from a change to the last PlacementDecision, and writes without a change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;
use xtask_lab::lab::{now, until};

use super::{bind_all, cluster, clusters_of, placement};
use crate::e2e::follow::Follow;
use crate::e2e::stage::{PAUSE, Stage, name_of};

const N_CLUSTERS: usize = 2000;

const N_PLACEMENTS: usize = 200;

/// The number of teams that placements choose by; each team has every hundredth cluster.
const N_TEAMS: usize = 100;

/// The longest time from a label's change to the last decision about it.
const REACHED_WITHIN: Duration = Duration::from_secs(1);

const DONE_WITHIN: Duration = Duration::from_secs(600);

/// What a watch of PlacementDecisions has seen.
#[derive(Default)]
struct Told {
    clusters: BTreeMap<String, BTreeSet<String>>,
    /// Each event since the last look: its time, and its object.
    events: Vec<(Instant, String)>,
}

/// One label change on a hub of 2,000 clusters with 200 placements.
pub(crate) fn speed(stage: &mut Stage) -> anyhow::Result<()> {
    let _controllers = stage.hub(1, &[])?;
    bind_all(stage)?;
    let labelled = |number: usize, team: usize| {
        let labels = json!({"team": format!("t-{team:02}"), "zone": format!("z-{}", number % 7)});
        cluster(&format!("c-{number:04}"), labels, json!([]))
    };
    let all = (0..N_CLUSTERS).map(|number| labelled(number, number % N_TEAMS));
    stage.apply_all(all.collect())?;
    let mut told = Follow::<Told>::start(stage, "placementdecisions", |told, _, decision| {
        let name = name_of(decision).to_owned();
        let clusters = clusters_of(decision).map(str::to_owned).collect();
        told.clusters.insert(name.clone(), clusters);
        told.events.push((now(), name));
    })?;
    let of_team = |number: usize| {
        let labels = json!({"team": format!("t-{:02}", number % N_TEAMS)});
        let spec = json!({
            "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}],
            "spreadPolicy": {"spreadConstraints": [{"topologyKey": "zone", "topologyKeyType": "Label"}]},
        });
        placement(&format!("p-{number:03}"), spec)
    };
    stage.apply_all((0..N_PLACEMENTS).map(of_team).collect())?;
    let each = N_CLUSTERS / N_TEAMS;
    until("all placements are decided", DONE_WITHIN, 5 * PAUSE, || {
        let n = told.look(|told| {
            told.clusters
                .values()
                .filter(|held| held.len() == each)
                .count()
        });
        Ok((n == N_PLACEMENTS).then_some(()))
    })?;
    // Writes that are under way end first.
    until("nothing more is told", DONE_WITHIN, 10 * PAUSE, || {
        let n = told.look(|told| told.events.len());
        told.change(|told| told.events.clear());
        Ok((n == 0).then_some(()))
    })?;
    // From team 0 to team 1: two placements each lose and get it.
    let begin = now();
    stage.apply_all(vec![labelled(0, 1)])?;
    let applied = begin.elapsed();
    let is_done = |told: &Told| {
        let has = |number: usize| {
            let name = format!("p-{number:03}-decision-1");
            told.clusters
                .get(&name)
                .is_some_and(|held| held.contains("c-0000"))
        };
        !has(0) && !has(100) && has(1) && has(101)
    };
    until("the change is everywhere", DONE_WITHIN, PAUSE / 10, || {
        Ok(told.look(is_done).then_some(()))
    })?;
    let last = told.look(|told| told.events.iter().map(|(at, _)| *at).max());
    let reached = last.map_or(Duration::ZERO, |last| last - begin);
    println!(
        "  the last decision was told {:.2} s after kubectl began, which took {:.2} s itself",
        reached.as_secs_f64(),
        applied.as_secs_f64()
    );
    // The controller writes nothing else, then or later.
    let until_then = now() + 20 * PAUSE;
    until("a while", DONE_WITHIN, PAUSE, || {
        Ok((now() > until_then).then_some(()))
    })?;
    let written: BTreeSet<String> =
        told.look(|told| told.events.iter().map(|(_, name)| name.clone()).collect());
    let meant = [0, 1, 100, 101].map(|number| format!("p-{number:03}-decision-1"));
    ensure!(written.iter().eq(meant.iter()), "written: {written:?}");
    if cfg!(debug_assertions) {
        println!("  not judged: build xtask with --release");
        return Ok(());
    }
    ensure!(
        reached <= REACHED_WITHIN + applied,
        "{reached:?} to the last decision"
    );
    Ok(())
}
