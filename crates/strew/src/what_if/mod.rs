//! `--what-if`: changes of the cluster, and their results.

mod text;
mod turned;

use anyhow::anyhow;
use strew_cluster::{Cluster, NodeIdx, PodIdx, SpreadConstraint};
use strew_model::{Effect, Taint, well_known};
use strew_plan::{Change, Member, Part};
use strew_view::world::World;

use crate::failure::Failure;
use crate::parts;

pub(crate) use text::write;
pub(crate) use turned::{Becomes, Turned, TurnedPod, carry_out};

/// The help of `--what-if`.
pub(crate) const HELP: &str = "lose=, drain=, cordon=, uncordon=NODES, taint=NODES:KEY[=VALUE]:EFFECT, untaint=NODES:KEY[:EFFECT], label=NODES:KEY=VALUE, unlabel=NODES:KEY, delete=PODS, move=POD:NODE, maxSkew=KEY:N, minDomains=KEY:N, soften=KEY, drop=KEY";

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// As written.
    pub(crate) text: String,
    verb: Verb,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verb {
    Nodes(NodeVerb, Vec<Part>),
    Delete(Vec<PodName>),
    Move(PodName, String),
    Constraint(String, Edit),
}

/// The change of a hard constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    MaxSkew(i32),
    MinDomains(i32),
    Soften,
    Drop,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NodeVerb {
    Lose,
    Drain,
    Cordon,
    Uncordon,
    Taint(String, String, Effect),
    Untaint(String, Option<Effect>),
    Label(String, String),
    Unlabel(String),
}

/// `[NAMESPACE/]NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PodName {
    namespace: Option<String>,
    name: String,
}

/// Reads the value of `--what-if`.
pub(crate) fn asked(text: &str) -> Result<Asked, String> {
    let (verb, rest) = text.split_once('=').unwrap_or((text, ""));
    let (subject, argument) = match rest.split_once(':') {
        Some((subject, argument)) => (subject, Some(argument)),
        None => (rest, None),
    };
    let nodes = |verb| Part::parse_list(subject).map(|parts| Verb::Nodes(verb, parts));
    let verb = match (verb, argument) {
        ("lose", None) => nodes(NodeVerb::Lose)?,
        ("drain", None) => nodes(NodeVerb::Drain)?,
        ("cordon", None) => nodes(NodeVerb::Cordon)?,
        ("uncordon", None) => nodes(NodeVerb::Uncordon)?,
        ("taint", Some(taint)) => {
            let (key, effect) = taint
                .rsplit_once(':')
                .ok_or("a taint is KEY[=VALUE]:EFFECT")?;
            let (key, value) = key.split_once('=').unwrap_or((key, ""));
            nodes(NodeVerb::Taint(
                key.to_owned(),
                value.to_owned(),
                effect_of(effect)?,
            ))?
        }
        ("untaint", Some(taint)) => {
            let (key, effect) = taints(taint, effect_of)?;
            nodes(NodeVerb::Untaint(key, effect))?
        }
        ("label", Some(label)) => {
            let (key, value) = label.split_once('=').ok_or("a label is KEY=VALUE")?;
            nodes(NodeVerb::Label(key.to_owned(), value.to_owned()))?
        }
        ("unlabel", Some(key)) => nodes(NodeVerb::Unlabel(key.to_owned()))?,
        ("delete", None) => {
            let pods: Result<_, String> = subject.split(',').map(pod_name).collect();
            Verb::Delete(pods?)
        }
        ("maxSkew", Some(n)) => Verb::Constraint(subject.to_owned(), Edit::MaxSkew(positive(n)?)),
        ("minDomains", Some(n)) => {
            Verb::Constraint(subject.to_owned(), Edit::MinDomains(positive(n)?))
        }
        ("soften", None) => Verb::Constraint(subject.to_owned(), Edit::Soften),
        ("drop", None) => Verb::Constraint(subject.to_owned(), Edit::Drop),
        ("move", Some(node)) => Verb::Move(pod_name(subject)?, node.to_owned()),
        _ => {
            return Err(format!(
                "known are {HELP}; NODES are names or KEY/VALUE, with commas between"
            ));
        }
    };
    Ok(Asked {
        text: text.to_owned(),
        verb,
    })
}

fn positive(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|&n| n > 0);
    number.ok_or_else(|| format!("{text:?} is no number above 0"))
}

/// Reads the taints to remove: `KEY[:EFFECT]`; of each effect if none is given.
pub(crate) fn taints<E>(
    text: &str,
    effect_of: impl Fn(&str) -> Result<E, String>,
) -> Result<(String, Option<E>), String> {
    let (key, effect) = match text.split_once(':') {
        Some((key, effect)) => (key, Some(effect_of(effect)?)),
        None => (text, None),
    };
    Ok((key.to_owned(), effect))
}

fn effect_of(text: &str) -> Result<Effect, String> {
    let known = [
        Effect::NoSchedule,
        Effect::PreferNoSchedule,
        Effect::NoExecute,
    ];
    let found = known.into_iter().find(|effect| effect.name() == text);
    found.ok_or_else(|| format!("{text:?} is no effect: NoSchedule, PreferNoSchedule, NoExecute"))
}

fn pod_name(text: &str) -> Result<PodName, String> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, text),
    };
    match name.is_empty() {
        true => Err("a pod is [NAMESPACE/]NAME".to_owned()),
        false => Ok(PodName {
            namespace,
            name: name.to_owned(),
        }),
    }
}

impl Asked {
    /// The changes for a world, with the number of nodes; pods are searched in the namespace first.
    ///
    /// # Errors
    /// A node, a domain or a pod that does not exist.
    fn changes(
        &self,
        world: &mut World,
        namespace: Option<&str>,
        subject: &[PodIdx],
    ) -> Result<(Vec<Change>, usize), Failure> {
        match &self.verb {
            Verb::Nodes(verb, parts) => {
                let nodes = nodes(parts, &world.cluster)?;
                let change = |&node: &NodeIdx| verb.change(node, &mut world.cluster);
                let changes: Vec<Change> = nodes.iter().map(change).collect();
                Ok((changes, nodes.len()))
            }
            Verb::Delete(pods) => {
                let pod = |name: &PodName| name.find(world, namespace);
                let pods: Result<Vec<PodIdx>, Failure> = pods.iter().map(pod).collect();
                let changes = pods?.into_iter().map(|pod| Change::DeletePod { pod });
                Ok((changes.collect(), 0))
            }
            Verb::Move(pod, node) => {
                let pod = pod.find(world, namespace)?;
                let node = nodes(&[Part::Named(node.clone())], &world.cluster)?;
                let changes = node.into_iter().map(|to| Change::MovePod { pod, to });
                Ok((changes.collect(), 0))
            }
            Verb::Constraint(key, edit) => Ok((vec![edit.change(key, world, subject)?], 0)),
        }
    }
}

impl Edit {
    /// The change of the subject's hard constraint on a topology key.
    fn change(self, key: &str, world: &mut World, subject: &[PodIdx]) -> Result<Change, Failure> {
        let World {
            cluster,
            schedulers,
            ..
        } = world;
        let pod = subject
            .first()
            .ok_or_else(|| Failure::input(anyhow!("there is no pod")))?;
        let class = cluster.pod(*pod).class;
        let engine = schedulers.engine(cluster, class);
        let constraints = engine
            .plan(cluster, class)
            .spread
            .effective
            .constraints
            .clone();
        let name = |c: &SpreadConstraint| cluster.names.text(c.key).to_owned();
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
        Ok(match self {
            Self::MaxSkew(to) => Change::MaxSkew {
                constraint,
                from: now.max_skew,
                to,
            },
            Self::MinDomains(to) => Change::MinDomains {
                constraint,
                from: now.min_domains.unwrap_or(1),
                to,
            },
            Self::Soften => Change::ScheduleAnyway { constraint },
            Self::Drop => Change::DropConstraint { constraint },
        })
    }
}

impl NodeVerb {
    fn change(&self, node: NodeIdx, cluster: &mut Cluster) -> Change {
        let names = &mut cluster.names;
        match self {
            Self::Lose => Change::LoseNode { node },
            Self::Drain => Change::DrainNode { node },
            Self::Cordon => Change::Cordon { node },
            Self::Uncordon => Change::Uncordon { node },
            Self::Taint(key, value, effect) => Change::TaintNode {
                node,
                taint: Taint {
                    key: names.intern(key),
                    value: names.intern(value),
                    effect: *effect,
                },
            },
            Self::Untaint(key, effect) => Change::UntaintNode {
                node,
                key: names.intern(key),
                effect: *effect,
            },
            Self::Label(key, value) => {
                let (key, value) = (names.intern(key), names.intern(value));
                Change::LabelNode {
                    node,
                    key,
                    value,
                    is_topology: key != well_known::HOSTNAME,
                }
            }
            Self::Unlabel(key) => Change::UnlabelNode {
                node,
                key: names.intern(key),
            },
        }
    }
}

impl PodName {
    fn find(&self, world: &World, namespace: Option<&str>) -> Result<PodIdx, Failure> {
        let namespace = self.namespace.as_deref().or(namespace).unwrap_or("default");
        let mut pods = world.pods.iter();
        let found = pods.find(|pod| *pod.name == self.name && *pod.namespace == *namespace);
        found.map(|entry| entry.pod).ok_or_else(|| {
            Failure::input(anyhow!(
                "there is no pod {:?} in namespace {namespace:?}",
                self.name
            ))
            .with_hint("a pod of another namespace is named by NAMESPACE/NAME")
        })
    }
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
        domain: "zone is named by KEY/VALUE, for example topology.kubernetes.io/zone/a",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubectl_and_faults_do() {
        let verb = |text: &str| asked(text).map(|asked| asked.verb).ok();
        let named = |name: &str| vec![Part::Named(name.to_owned())];
        assert_eq!(
            verb("lose=n1"),
            Some(Verb::Nodes(NodeVerb::Lose, named("n1")))
        );
        assert_eq!(
            verb("taint=n1:example.com/dedicated=db:NoExecute"),
            Some(Verb::Nodes(
                NodeVerb::Taint(
                    "example.com/dedicated".to_owned(),
                    "db".to_owned(),
                    Effect::NoExecute
                ),
                named("n1")
            ))
        );
        assert_eq!(
            verb("untaint=n1:dedicated"),
            Some(Verb::Nodes(
                NodeVerb::Untaint("dedicated".to_owned(), None),
                named("n1")
            ))
        );
        let pod = PodName {
            namespace: Some("shop".to_owned()),
            name: "web-1".to_owned(),
        };
        assert_eq!(
            verb("move=shop/web-1:n2"),
            Some(Verb::Move(pod, "n2".to_owned()))
        );
        for wrong in [
            "lose=",
            "lose",
            "taint=n1",
            "taint=n1:a:Never",
            "explode=n1",
            "delete=",
            "label=n1:a",
            "maxSkew=zone:0",
        ] {
            assert_eq!(verb(wrong), None, "{wrong}");
        }
    }
}
