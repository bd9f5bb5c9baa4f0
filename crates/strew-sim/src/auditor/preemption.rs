//! Checks a preemption against the facts at the moment of its decision. Source: spec/scheduler §3.16.

use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_scheduler::Profile;
use strew_scheduler::machine::Hold;

use super::verdict::{Beside, profile_of, takes};

/// Checks that a pod may preempt its victims: it fits on no node, the victims are on the node and have a lower
/// priority, the pod fits there without them, and it does not fit if one of them stays.
///
/// # Errors
/// The first condition that does not hold, in words.
pub(crate) fn judge(mut cluster: Cluster, profiles: &[Profile], hold: &Hold) -> Result<(), String> {
    cluster.refresh_order();
    let pod = cluster.find_pod(&hold.pod).ok_or("no such pod was told")?;
    let at = cluster
        .find_node(hold.node)
        .ok_or("no such node was told")?;
    let profile = profile_of(&cluster, profiles, pod)?;
    let priority = cluster.spec_of(pod).priority;
    if cluster.pod(pod).node.is_some() {
        return Err("the pod is on a node".to_owned());
    }
    let mut victims = Vec::new();
    for uid in &hold.victims {
        let victim = cluster.find_pod(uid).ok_or("a victim is not known")?;
        let name = &cluster.pod(victim).name;
        if cluster.pod(victim).node != Some(at) {
            return Err(format!("{name} is not on the node"));
        }
        if cluster.spec_of(victim).priority >= priority {
            return Err(format!("{name} is as important"));
        }
        victims.push(victim);
    }
    for node in (0..cluster.node_rows()).map(NodeIdx::from) {
        if takes(&mut cluster, profile, pod, node, Beside::Perhaps).is_ok() {
            let name = cluster.names.text(cluster.node(node).name());
            return Err(format!("{name} takes the pod as it is"));
        }
    }
    // A terminating pod of lower priority may be among the victims without being counted; both ways of counting are
    // allowed (spec/scheduler §1.7).
    let leaves = |&other: &PodIdx| {
        cluster.class_of(other).key.terminating && cluster.spec_of(other).priority < priority
    };
    if cluster.node(at).pods().iter().any(leaves) {
        return Ok(());
    }
    victims.iter().for_each(|&victim| cluster.unbind(victim));
    takes(&mut cluster, profile, pod, at, Beside::Surely)
        .map_err(|text| format!("even without its victims: {text}"))?;
    for victim in victims {
        cluster.bind(victim, at);
        if takes(&mut cluster, profile, pod, at, Beside::Perhaps).is_ok() {
            return Err(format!("{} need not go", cluster.pod(victim).name));
        }
        cluster.unbind(victim);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use strew_cluster::{NodeFact, PodFact, PodHistory, PodSpec};
    use strew_model::{Labels, Resources, well_known};

    use super::*;
    use crate::auditor::verdict;
    use crate::chaos::Parts;

    /// A cluster with nodes `a` and `b`, each with one core.
    struct TwoNodes {
        cluster: Cluster,
        profiles: Vec<Profile>,
    }

    impl TwoNodes {
        fn new() -> Self {
            let blueprint = Parts::real().scheduler;
            let mut cluster = Cluster::new();
            cluster.names = blueprint.names;
            for name in ["a", "b"] {
                let name = cluster.names.intern(name);
                cluster.set_node(NodeFact {
                    name,
                    labels: Labels::default(),
                    taints: [].into(),
                    unschedulable: false,
                    allocatable: Resources::of(1000, 0),
                    pods_max: 10,
                    images: [].into(),
                });
            }
            let profiles = blueprint.profiles;
            Self { cluster, profiles }
        }

        /// Adds a pod; `>a` as its place nominates it to node `a`.
        fn add(&mut self, uid: &str, priority: i32, cpu: i64, place: &str) {
            let names = &mut self.cluster.names;
            let mut place = |mark: &str| match place.strip_prefix(mark) {
                Some(node) if !node.is_empty() => Some(names.intern(node)),
                _ => None,
            };
            let nominated = place(">");
            let node = place("").filter(|_| nominated.is_none());
            let scheduler_name = names.intern("default-scheduler");
            let requests = Resources::of(cpu, 0);
            self.cluster.set_pod(PodFact {
                uid: uid.into(),
                name: uid.into(),
                namespace: well_known::DEFAULT_NAMESPACE,
                labels: Labels::default(),
                owner: None,
                terminating: false,
                node,
                spec: PodSpec {
                    priority,
                    scheduler_name,
                    used: requests.clone(),
                    requests,
                    ..PodSpec::default()
                },
                history: PodHistory {
                    nominated,
                    ..PodHistory::default()
                },
            });
        }
    }

    #[test]
    fn a_preemption_without_need_is_found_out() {
        let cases: [(&str, &[&str], i32, Option<&str>); 6] = [
            ("a", &["low"], 500, None),
            ("a", &["low", "small"], 500, Some("small need not go")),
            (
                "a",
                &["small"],
                500,
                Some("even without its victims: cpu: 1300 of 1000"),
            ),
            ("a", &["other"], 500, Some("other is not on the node")),
            ("b", &["high"], 500, Some("high is as important")),
            ("a", &["low"], 100, Some("a takes the pod as it is")),
        ];
        for (node, victims, cpu, expected) in cases {
            let mut world = TwoNodes::new();
            world.add("low", 0, 700, "a");
            world.add("small", 0, 100, "a");
            world.add("high", 1000, 600, "b");
            world.add("other", 0, 100, "b");
            world.add("new", 1000, i64::from(cpu) + 100, "");
            let hold = Hold {
                pod: "new".into(),
                node: world.cluster.names.intern(node),
                victims: victims.iter().map(|&uid| uid.into()).collect(),
            };
            let found = judge(world.cluster, &world.profiles, &hold);
            assert_eq!(found.err().as_deref(), expected, "{node} {victims:?}");
        }
    }

    #[test]
    fn a_bind_into_room_that_was_made_for_others_is_found_out() {
        for (nominated, priority, expected) in [
            ("", 0, None),
            (">b", 0, None),
            (">a", 0, Some("beside 1 nominated pods: cpu: 1200 of 1000")),
            (
                ">a",
                1000,
                Some("beside 1 nominated pods: cpu: 1200 of 1000"),
            ),
            (">a", 1001, None),
        ] {
            let mut world = TwoNodes::new();
            world.add("waits", 1000, 600, nominated);
            world.add("new", priority, 600, "");
            let at = world.cluster.names.intern("a");
            let found = verdict::judge(world.cluster, &world.profiles, "new", at);
            assert_eq!(found.err().as_deref(), expected, "{nominated} {priority}");
        }
    }
}
