//! The scenarios that users read: each file of `scenarios/` is played, every variant over its seeds, and holds.

use std::ops::ControlFlow;
use std::path::PathBuf;

use strew_manifest::read::{NO_CONTROLLER, Sources, render};
use strew_scenario::format::{EVENT_REASONS, ExpectedResult, Step, Variant, load};
use strew_scenario::run::{Plan, Played, StepResult, Watcher, play, scheduler_of};
use strew_sim::Simulation;

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"))
}

/// What went wrong in a life, if anything.
fn breach(played: &Played) -> Option<String> {
    let steps = played.steps.iter();
    let refused = steps.flat_map(|step| {
        step.refused
            .iter()
            .map(move |refused| (step.began, refused))
    });
    let refused = refused
        .filter(|(_, refused)| refused.is_breach)
        .map(|(at, refused)| format!("{at:?}: {}: {}", refused.text, refused.why));
    let broken = played.steps.iter().flat_map(|step| {
        let broken = step.expectations.iter().filter(|outcome| !outcome.held);
        broken.map(move |o| {
            format!(
                "step {:?}, at {:?}: {}: {}",
                step.began, o.at, o.text, o.why
            )
        })
    });
    let always = played.always.iter().filter(|outcome| !outcome.held);
    let always = always.map(|o| {
        let cause = o.cause.as_deref().unwrap_or("?");
        format!("always, at {:?}: {}: {} ({cause})", o.at, o.text, o.why)
    });
    let all: Vec<String> = refused.chain(broken).chain(always).collect();
    (!all.is_empty()).then(|| all.join("\n    "))
}

/// Holds every reason of events against the list that claims about events are checked with.
struct Reasons;

impl Watcher for Reasons {
    fn step(
        &mut self,
        _: usize,
        _: &Step,
        _: &StepResult,
        simulation: &Simulation,
    ) -> ControlFlow<()> {
        for event in simulation.server().events().iter() {
            let reason = &*event.reason;
            assert!(EVENT_REASONS.contains(&reason), "{reason} is not listed");
        }
        ControlFlow::Continue(())
    }
}

fn judge(variant: &Variant, sources: &Sources) {
    let gates = &variant.scenario.feature_gates;
    let configure = match scheduler_of(sources, &variant.objects, gates) {
        Ok(configure) => configure,
        Err(errors) => panic!("{}", render(&errors, sources, false)),
    };
    let plan = Plan::new(&variant.scenario, &variant.objects, configure);
    let plan = plan.unwrap_or_else(|problems| panic!("{}: {problems:#?}", variant.name));
    let n_seeds = u64::from(variant.scenario.seeds.get());
    let broken: Vec<String> = (1..=n_seeds)
        .filter_map(|seed| {
            let played = play(&plan, seed, None, &mut Reasons).unwrap();
            breach(&played).map(|breach| format!("  seed {seed}:\n    {breach}"))
        })
        .collect();
    let (name, n) = (&variant.name, broken.len());
    match variant.expected {
        ExpectedResult::MustHold => {
            let told: Vec<String> = broken.into_iter().take(3).collect();
            let told = told.join("\n");
            assert_eq!(n, 0, "{name}: broke in {n} of {n_seeds} seeds\n{told}");
        }
        ExpectedResult::MustFail => assert_ne!(n, 0, "{name}: broke in none of {n_seeds} seeds"),
        ExpectedResult::MayFail => {}
    }
}

#[track_caller]
pub(crate) fn check(file: &str) {
    let mut sources = Sources::new();
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    assert!(
        text.starts_with("# "),
        "{file} does not say what it shows in a comment at its top"
    );
    sources.add(file, text);
    let loaded = load(&sources);
    // The steps of a scenario may make the pods that strew has no controller for.
    let mut said = loaded.diagnostics.clone();
    said.retain(|diagnostic| diagnostic.code != NO_CONTROLLER);
    assert!(said.is_empty(), "{}", render(&said, &sources, false));
    assert!(!loaded.variants.is_empty(), "{file} holds no scenario");
    for variant in &loaded.variants {
        judge(variant, &sources);
    }
}

/// A test for each file of a folder, and one that no file is forgotten.
macro_rules! library {
    ($folder:literal; $($name:ident: $file:literal,)*) => {
        $(#[test]
        fn $name() {
            $crate::library::check(concat!($folder, $file));
        })*

        #[test]
        fn no_scenario_is_without_a_test() {
            let mut found: Vec<String> = std::fs::read_dir($crate::library::folder().join($folder))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name.ends_with(".yaml"))
                .collect();
            found.sort();
            let mut known = vec![$($file),*];
            known.sort_unstable();
            assert_eq!(found, known);
        }
    };
}

/// Too large to be played with many seeds.
#[test]
fn a_zone_of_420_pods_is_drained() {
    check("../examples/large/drain-zone-420.yaml");
}

library! {
    "";
    a_horizontal_autoscaler_follows_the_day: "autoscaled-day.yaml",
    an_empty_group_grows_and_shrinks_again: "autoscaler-from-zero.yaml",
    a_cron_job_runs_every_five_minutes: "cron-job.yaml",
    a_daemon_set_is_updated_node_by_node: "daemon-set-update.yaml",
    the_operator_knows_hosts_and_racks: "default-constraints-racks.yaml",
    the_system_spreads_what_says_nothing: "default-constraints-system.yaml",
    two_zones_are_drained_one_at_a_time: "drain-two-zones.yaml",
    a_drain_waits_for_a_budget: "drain-with-budget.yaml",
    a_template_loses_what_its_gates_switch_off: "gated-templates.yaml",
    match_label_keys_go_with_their_gate: "match-label-keys-upgrade.yaml",
    an_autoscaler_brings_the_missing_domains: "min-domains-autoscaler.yaml",
    min_domains_goes_with_its_gate: "min-domains-upgrade.yaml",
    zones_are_even_in_5000_nodes: "multi-az-5000-nodes.yaml",
    zones_are_even_without_a_word: "multi-az.yaml",
    a_tainted_zone_is_a_domain_or_none: "node-taints-policies.yaml",
    room_is_made_for_the_important: "preemption.yaml",
    a_quota_refuses_pods: "quota.yaml",
    a_rollout_stays_even: "rollout-match-label-keys.yaml",
    a_bad_release_is_undone: "rollout-paused-undone.yaml",
    rollouts_converge_in_bad_weather: "rollout-under-faults.yaml",
    the_cheapest_pods_go_first: "scale-down-deletion-cost.yaml",
    it_stays_even_when_it_shrinks: "scale-down-kept.yaml",
    two_deployments_share_a_selector: "shared-selector.yaml",
    a_stateful_set_is_updated_from_the_top: "stateful-set-update.yaml",
    pods_wait_for_their_claims: "volumes-bound-later.yaml",
    disks_are_made_where_the_pods_go: "volumes-provisioned.yaml",
    one_pod_at_a_time_has_the_claim: "volumes-read-write-once-pod.yaml",
    pods_follow_their_volumes: "volumes-zone-bound.yaml",
    a_zone_comes_back_and_is_made_even: "zone-back.yaml",
    a_zone_is_lost_and_restored: "zone-lost-and-restored.yaml",
    a_zone_without_room_holds_back: "zone-without-capacity.yaml",
}
