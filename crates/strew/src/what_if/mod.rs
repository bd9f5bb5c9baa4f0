//! `--what-if`: changes of the cluster, and their results.

mod beside;
mod text;
mod turned;

use anyhow::anyhow;
use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_model::{Taint, well_known};
use strew_plan::written::{
    ClusterVerb, ConstraintEdit, LabelEdit, MemberVerb, ObjectName, TaintEdit,
};
use strew_plan::{Change, Member, Part, Transaction};

use crate::failure::Failure;
use crate::parts;

pub(crate) use beside::Beside;
pub(crate) use text::write;
pub(crate) use turned::{Becomes, Turned, TurnedPod, carry_out};

/// The help of `--what-if`.
pub(crate) fn help() -> String {
    format!(
        "Explain the state after a change, and show what else changes: {}; NODES are names or KEY=VALUE, with commas \
         between; maxSkew, minDomains, soften and drop are about the workload's hard constraint on a topology key, scale \
         and spread (a further one) about the workload, budget about the disruptions that are allowed",
        ClusterVerb::HELP
    )
}

/// A change of a cluster, or of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked<V = ClusterVerb> {
    /// As written.
    pub(crate) text: String,
    pub(crate) verb: V,
}

impl<V> Asked<V> {
    /// The value of `--what-if` with what it was read as; of an unknown verb, the error names `verbs` and `members`.
    pub(crate) fn of(
        text: &str,
        read: Result<V, Option<String>>,
        (verbs, members): (&str, &str),
    ) -> Result<Self, String> {
        let known =
            || format!("known are {verbs}; {members} are names or KEY=VALUE, with commas between");
        let verb = read.map_err(|why| why.unwrap_or_else(known))?;
        let text = text.to_owned();
        Ok(Self { text, verb })
    }
}

/// Reads the value of `--what-if`.
pub(crate) fn asked(text: &str) -> Result<Asked, String> {
    Asked::of(text, ClusterVerb::parse(text), (ClusterVerb::HELP, "NODES"))
}

impl Asked {
    /// The changes of the cluster as it is now; pods and budgets are searched in the namespace first.
    ///
    /// # Errors
    /// A node, a domain, a pod, a constraint or a budget that does not exist.
    fn changes(
        &self,
        trial: &mut Transaction<'_>,
        namespace: Option<&str>,
        subject: &[PodIdx],
    ) -> Result<Vec<Change>, Failure> {
        match &self.verb {
            ClusterVerb::Nodes(MemberVerb::Lose, parts) => lose(parts, trial),
            ClusterVerb::Nodes(verb, parts) => {
                let nodes = nodes(parts, trial.cluster())?;
                let change = |node| node_change(verb, node, trial);
                Ok(nodes.into_iter().filter_map(change).collect())
            }
            ClusterVerb::Delete(pods) => {
                let pod = |name: &ObjectName| find_pod(name, trial.cluster(), namespace);
                let pods: Result<Vec<PodIdx>, Failure> = pods.iter().map(pod).collect();
                let changes = pods?.into_iter().map(|pod| Change::DeletePod { pod });
                Ok(changes.collect())
            }
            ClusterVerb::Move(pod, node) => {
                let pod = find_pod(pod, trial.cluster(), namespace)?;
                let node = nodes(&[Part::Named(node.clone())], trial.cluster())?;
                let changes = node.into_iter().map(|to| Change::MovePod { pod, to });
                Ok(changes.collect())
            }
            ClusterVerb::Constraint(key, edit) => {
                Ok(vec![constraint_change(*edit, key, trial, subject)?])
            }
            ClusterVerb::Scale(to) => Ok(vec![Change::Scale { to: *to }]),
            ClusterVerb::Budget(budget, allowed) => {
                let there = budget.namespace.as_deref().or(namespace);
                let there = there.unwrap_or("default");
                let (namespace, name) = (trial.intern(there), trial.intern(&budget.name));
                let change = Change::AllowDisruptions {
                    namespace,
                    name,
                    allowed: *allowed,
                };
                match trial.has_budget(namespace, name) {
                    true => Ok(vec![change]),
                    false => Err(missing("budget", &budget.name, there)),
                }
            }
        }
    }
}

/// The loss of nodes and domains.
fn lose(parts: &[Part], trial: &mut Transaction<'_>) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    for part in parts {
        let nodes = nodes(std::slice::from_ref(part), trial.cluster())?;
        match part {
            Part::Domain { key, value } => changes.push(Change::LoseDomain {
                key: trial.intern(key),
                value: trial.intern(value),
            }),
            Part::Named(_) => {
                changes.extend(nodes.into_iter().map(|node| Change::LoseNode { node }))
            }
        }
    }
    Ok(changes)
}

/// A change of a node; `None` for its loss.
fn node_change(
    verb: &MemberVerb<strew_model::Effect>,
    node: NodeIdx,
    trial: &mut Transaction<'_>,
) -> Option<Change> {
    Some(match verb {
        MemberVerb::Lose => return None,
        MemberVerb::Drain => Change::DrainNode { node },
        MemberVerb::Cordon => Change::Cordon { node },
        MemberVerb::Uncordon => Change::Uncordon { node },
        MemberVerb::Shift => Change::Shift { node },
        MemberVerb::Taint(TaintEdit::Add { key, value, effect }) => Change::TaintNode {
            node,
            taint: Taint {
                key: trial.intern(key),
                value: trial.intern(value),
                effect: *effect,
            },
        },
        MemberVerb::Taint(TaintEdit::Remove { key, effect }) => Change::UntaintNode {
            node,
            key: trial.intern(key),
            effect: *effect,
        },
        MemberVerb::Label(LabelEdit::Set(key, value)) => {
            let (key, value) = (trial.intern(key), trial.intern(value));
            Change::LabelNode {
                node,
                key,
                value,
                is_topology: key != well_known::HOSTNAME,
            }
        }
        MemberVerb::Label(LabelEdit::Remove(key)) => Change::UnlabelNode {
            node,
            key: trial.intern(key),
        },
    })
}

/// The change of the subject's hard constraint on a topology key.
fn constraint_change(
    edit: ConstraintEdit,
    key: &str,
    trial: &mut Transaction<'_>,
    subject: &[PodIdx],
) -> Result<Change, Failure> {
    let pod = *{ subject.first() }.ok_or_else(|| Failure::input(anyhow!("there is no pod")))?;
    if let ConstraintEdit::Add(max_skew) = edit {
        let key = trial.intern(key);
        let constraint = trial.constraint_over(pod, key, max_skew);
        return Ok(Change::AddConstraint { constraint });
    }
    let constraints = trial.constraints(pod);
    let names = &trial.cluster().names;
    let name = |c: &strew_cluster::SpreadConstraint| names.text(c.key).to_owned();
    let mut each = constraints.iter().enumerate();
    let found = each.find(|(_, c)| c.hard && name(c) == key);
    let Some((constraint, now)) = found else {
        let error = anyhow!("the pods have no hard constraint on {key}");
        let known: Vec<String> = constraints.iter().filter(|c| c.hard).map(name).collect();
        let failure = Failure::input(error);
        return Err(match known.is_empty() {
            true => failure,
            false => failure.with_hint(format!("they have one on {}", known.join(", "))),
        });
    };
    Ok(match edit {
        ConstraintEdit::MaxSkew(to) => Change::MaxSkew {
            constraint,
            from: now.max_skew,
            to,
        },
        ConstraintEdit::MinDomains(to) => Change::MinDomains {
            constraint,
            from: now.min_domains.unwrap_or(1),
            to,
        },
        ConstraintEdit::Soften => Change::ScheduleAnyway { constraint },
        ConstraintEdit::Drop | ConstraintEdit::Add(_) => Change::DropConstraint { constraint },
    })
}

fn find_pod(
    name: &ObjectName,
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<PodIdx, Failure> {
    let namespace = name.namespace.as_deref().or(namespace).unwrap_or("default");
    let is_it = |(pod, row): &(PodIdx, &strew_cluster::PodRow)| {
        let there = cluster.names.text(cluster.class_of(*pod).key.namespace);
        *row.name == name.name && there == namespace
    };
    let found = cluster.pods().find(is_it);
    let (pod, _) = found.ok_or_else(|| missing("pod", &name.name, namespace))?;
    Ok(pod)
}

fn missing(kind: &str, name: &str, namespace: &str) -> Failure {
    let error = anyhow!("there is no {kind} {name:?} in namespace {namespace:?}");
    Failure::input(error).with_hint(format!(
        "a {kind} of another namespace is named by NAMESPACE/NAME"
    ))
}

struct Node<'a> {
    node: NodeIdx,
    cluster: &'a Cluster,
}

impl Member for Node<'_> {
    fn name(&self) -> &str {
        self.cluster.names.text(self.cluster.node(self.node).name())
    }

    fn domains(&self, key: &str) -> impl Iterator<Item = &str> {
        let names = &self.cluster.names;
        let fact = self.cluster.node(self.node).fact();
        let value = names
            .get(key)
            .zip(fact)
            .and_then(|(key, fact)| fact.labels.get(key));
        value.map(|value| names.text(value)).into_iter()
    }
}

/// The nodes that the parts name, without duplicates, in order.
fn nodes(parts: &[Part], cluster: &Cluster) -> Result<Vec<NodeIdx>, Failure> {
    const WORDS: parts::Words = parts::Words {
        noun: "node",
        place: "",
        source: "",
        domain: "zone is named by KEY=VALUE, for example topology.kubernetes.io/zone=a",
    };
    let rows = (0..cluster.node_rows()).map(NodeIdx::from);
    let there = rows.filter(|&node| cluster.node(node).fact().is_some());
    let all: Vec<Node<'_>> = there.map(|node| Node { node, cluster }).collect();
    let mut found = Vec::new();
    for part in parts {
        for member in parts::find(part, &all, &WORDS)? {
            if !found.contains(&member.node) {
                found.push(member.node);
            }
        }
    }
    Ok(found)
}
