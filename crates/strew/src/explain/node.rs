//! `strew explain node/NAME`: its pods, its free resources, the constraints that count it, and why it refuses Pending
//! pods.

use anyhow::anyhow;
use serde::Serialize;
use strew_cluster::NodeIdx;
use strew_view::natural_order::natural_order;
use strew_view::spread::rule;
use strew_view::usage::{bytes_short, bytes_text, cpu_short, cpu_text, of_nodes, taints};
use strew_view::view::View;
use strew_view::world::World;
use strew_wire::explanation::{API_VERSION, PodExplanation};

use super::target::closest;
use super::{ExplainArgs, life, look};
use crate::context::Context;
use crate::explain_text::Page;
use crate::explain_text::paint::Paint;
use crate::explain_text::table::{Cell, Table};
use crate::failure::Failure;
use crate::output::serialized;
use crate::progress::Progress;
use crate::scenario::When;
use crate::terminal;
use crate::text::{count, short_key, time_text};

/// The names of the kind Node.
pub(super) const NODE: &[&str] = &["no", "node", "nodes"];

/// In the state of the files if they have pods; otherwise when the manifests are deployed; or at a moment.
pub(super) fn explain(
    args: &ExplainArgs,
    name: &str,
    files: &[String],
    context: &Context,
) -> Result<u8, Failure> {
    let names = args.names(files)?;
    let inputs = args.inputs(&names, context)?;
    let Some(life) = life(args, &names, inputs, args.format(), context)? else {
        return Ok(2);
    };
    let progress = Progress::new(context.quiet);
    let view = |when| {
        look(&life, when, &progress, |seen, frame| {
            View::of(seen.moment, frame, None)
        })
    };
    let (view, moment) = match args.at {
        Some(at) => (
            view(When::At(at))?,
            format!("explained as things are after {}", time_text(at)),
        ),
        None => match view(When::Start)? {
            start if start.world.pods.is_empty() => (
                view(When::End)?,
                "explained as things are at the end".to_owned(),
            ),
            start => (start, "explained as things are in the files".to_owned()),
        },
    };
    progress.finish();
    let explanation = NodeExplanation::of(view, name).map_err(|known| {
        let failure = Failure::input(anyhow!("there is no node {name:?}"));
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        match closest(name, &known) {
            close if close.is_empty() => failure,
            close => failure.with_hint(format!("did you mean {}?", close.join(", "))),
        }
    })?;
    let text = match args.format() {
        Some(format) => serialized(&explanation, format)?,
        None => {
            let mut page = Page {
                text: String::new(),
                // The output stream removes the styles if they are not wanted.
                paint: Paint::new(true),
                width: context.terminal.width,
            };
            explanation.text(&mut page);
            let dim = context.terminal.styles.dim;
            page.text += &format!("\n{dim}({moment}){dim:#}\n");
            match context.terminal.unicode {
                true => page.text,
                false => terminal::ascii(&page.text),
            }
        }
    };
    terminal::print(&text)?;
    Ok(0)
}

/// A node with its pods, resources and constraints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeExplanation {
    api_version: &'static str,
    kind: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    unschedulable: bool,
    taints: Vec<String>,
    resources: Vec<Amounts>,
    pods: Vec<OnNode>,
    constraints: Vec<Counting>,
    pending: Vec<Judged>,
}

/// A resource of the node; exact amounts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Amounts {
    name: String,
    free: String,
    requested: String,
    allocatable: String,
}

/// A pod on the node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OnNode {
    namespace: String,
    name: String,
    workload: String,
    cpu: String,
    memory: String,
}

/// The counts of a workload's constraints and topology on the node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counting {
    workload: String,
    topology_key: String,
    /// `DoNotSchedule maxSkew 1`
    constraint: String,
    /// The node's domain; `None` if it lacks the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    /// True if pods on the node, and the node's domain, are counted.
    counts: bool,
    /// The pods in that domain.
    pods: i32,
    skew: i32,
}

/// Pending pods that wait for the same reason.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Judged {
    /// The first of them.
    pod: String,
    n_pods: usize,
    /// Why the node refuses it; absent if the node would take it.
    causes: Vec<String>,
}

/// Workloads whose Pending pods are judged: each costs a decision over all nodes.
const PENDING_MAX: usize = 20;

impl NodeExplanation {
    /// Of a node by its name; `Err`: the names of all nodes.
    pub(super) fn of(mut view: View, name: &str) -> Result<Self, Vec<String>> {
        let world = &mut view.world;
        let node = world.cluster.names.get(name);
        let node = node.and_then(|name| world.cluster.find_node(name));
        let usages = of_nodes(world);
        let usage = usages.iter().find(|usage| usage.name == name);
        let (Some(node), Some(usage)) = (node, usage) else {
            return Err(usages.into_iter().map(|usage| usage.name).collect());
        };
        let amounts = |name: &str, text: fn(i64) -> String| {
            let (used, has) = usage.of(name);
            Amounts {
                name: name.to_owned(),
                free: text(has.saturating_sub(used)),
                requested: text(used),
                allocatable: text(has),
            }
        };
        let number = |n: i64| n.to_string();
        let known = [
            ("cpu", cpu_text as fn(i64) -> String),
            ("memory", bytes_text),
            ("pods", number),
        ];
        let known = known.into_iter();
        let others = usage
            .others()
            .map(|(name, ..)| (name, number as fn(i64) -> String));
        let resources = known
            .chain(others)
            .map(|(name, text)| amounts(name, text))
            .collect();
        let taints = taints(world, node);
        let pods = pods_on(world, node);
        let constraints = counting(&mut view, node);
        let pending = judged(&mut view, name);
        Ok(Self {
            api_version: API_VERSION,
            kind: "NodeExplanation",
            name: name.to_owned(),
            zone: usage.zone.clone(),
            unschedulable: usage.unschedulable,
            taints,
            resources,
            pods,
            constraints,
            pending,
        })
    }

    /// For people.
    pub(super) fn text(&self, out: &mut Page) {
        let zone = self
            .zone
            .as_ref()
            .map_or(String::new(), |z| format!(" in {z}"));
        let free = self.resources.iter().map(|amounts| {
            format!(
                "{} of {} {} free",
                amounts.free, amounts.allocatable, amounts.name
            )
        });
        let free: Vec<String> = free.collect();
        let pods = count(self.pods.len(), "pod");
        let name = out.paint.bold(&self.name);
        out.wrapped(
            0,
            &format!("Node {name}{zone} has {pods}; {}.", free.join(", ")),
        );
        if self.unschedulable {
            out.line(0, "It is cordoned: only pods that tolerate that go to it.");
        }
        if !self.taints.is_empty() {
            out.wrapped(0, &format!("Taints: {}.", self.taints.join(", ")));
        }
        self.pending_text(out);
        if !self.constraints.is_empty() {
            out.heading("Spread constraints that look at it");
            for counting in &self.constraints {
                out.wrapped(2, &counting.text());
            }
        }
        if !self.pods.is_empty() {
            out.heading("Pods on it");
            let header = [
                ("pod", false),
                ("of", false),
                ("cpu", true),
                ("memory", true),
            ];
            let mut table = Table::new(header.to_vec());
            for pod in &self.pods {
                table.row(vec![
                    Cell::plain(format!("{}/{}", pod.namespace, pod.name)),
                    Cell::plain(&pod.workload),
                    Cell::plain(&pod.cpu),
                    Cell::plain(&pod.memory),
                ]);
            }
            table.write(2, out);
        }
    }

    fn pending_text(&self, out: &mut Page) {
        if self.pending.is_empty() {
            return;
        }
        out.heading("Pending pods, and what it has against them");
        for judged in &self.pending {
            let more = match judged.n_pods {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            let causes = match judged.causes.is_empty() {
                true => "nothing: it would take it".to_owned(),
                false => judged.causes.join("; "),
            };
            out.wrapped(2, &format!("{}{more}: {causes}", judged.pod));
        }
    }
}

impl Counting {
    fn text(&self) -> String {
        let key = short_key(&self.topology_key);
        let Self {
            workload,
            constraint,
            ..
        } = self;
        match (&self.domain, self.counts) {
            (None, _) => {
                format!(
                    "{workload} by {key}, {constraint}: not counted, it has no label {}",
                    self.topology_key
                )
            }
            (Some(domain), false) => format!(
                "{workload} by {key}, {constraint}: not counted in {domain}, by node affinity or taints of its pods"
            ),
            (Some(domain), true) => format!(
                "{workload} by {key}, {constraint}: counted in {domain}, {} there, skew {}",
                count(usize::try_from(self.pods).unwrap_or(0), "pod"),
                self.skew
            ),
        }
    }
}

fn pods_on(world: &World, node: NodeIdx) -> Vec<OnNode> {
    let entries = (0..world.pods.len()).filter(|&entry| world.node_of(entry) == Some(node));
    let mut pods: Vec<OnNode> = entries
        .map(|entry| {
            let pod = &world.pods[entry];
            let used = &world.cluster.spec_of(pod.pod).used;
            OnNode {
                namespace: pod.namespace.to_string(),
                name: pod.name.to_string(),
                workload: world.workloads[pod.workload].name.of(),
                cpu: cpu_short(used.cpu_milli),
                memory: bytes_short(used.memory),
            }
        })
        .collect();
    pods.sort_by(|a, b| {
        let by_namespace = a.namespace.cmp(&b.namespace);
        by_namespace.then_with(|| natural_order(&a.name, &b.name))
    });
    pods
}

/// The constraints of all workloads that have pods, with what they say of the node.
fn counting(view: &mut View, node: NodeIdx) -> Vec<Counting> {
    let mut all = Vec::new();
    for (workload, spreads) in view.spreads.iter().enumerate() {
        let world = &mut view.world;
        let first = world.members[workload].first();
        let Some(class) = first.map(|&entry| world.cluster.pod(world.pods[entry].pod).class) else {
            continue;
        };
        for spread in spreads {
            let Some(constraint) = spread.constraint.as_ref().filter(|c| !c.is_off) else {
                continue;
            };
            let rule = rule(world, class, spread.key);
            let cluster = &world.cluster;
            let row = cluster.node(node);
            let counts = rule.admits(row, cluster.tables(), &cluster.names);
            let value = row.fact().and_then(|fact| fact.labels.get(spread.key));
            let domain = value.and_then(|v| spread.domains.iter().find(|d| d.value == v));
            let action = match constraint.hard {
                true => "DoNotSchedule",
                false => "ScheduleAnyway",
            };
            all.push(Counting {
                workload: world.workloads[workload].name.of(),
                topology_key: cluster.names.text(spread.key).to_owned(),
                constraint: format!("{action} maxSkew {}", constraint.max_skew),
                domain: value.map(|value| cluster.names.text(value).to_owned()),
                counts,
                pods: domain.map_or(0, |domain| domain.count),
                skew: spread.skew,
            });
        }
    }
    all
}

/// What the node has against Pending pods, one of each group.
fn judged(view: &mut View, node: &str) -> Vec<Judged> {
    let groups = view.summaries.iter().flat_map(|summary| &summary.pending);
    let groups: Vec<(usize, usize)> = groups
        .filter_map(|group| Some((*group.entries.first()?, group.entries.len())))
        .take(PENDING_MAX)
        .collect();
    let world = &mut view.world;
    let judged = groups.into_iter().map(|(entry, n_pods)| {
        let pod = world.pods[entry].pod;
        let explanation = world.schedulers.explain(&mut world.cluster, pod, None);
        let wire = PodExplanation::of(&explanation, None, &world.cluster);
        let outright = wire
            .refused_outright
            .iter()
            .flat_map(|refusal| &refusal.reasons);
        let here = wire.refused.iter().filter(|refused| refused.name == node);
        let causes = here
            .flat_map(|refused| &refused.causes)
            .map(|cause| &cause.text);
        let entry = &world.pods[entry];
        Judged {
            pod: format!("{}/{}", entry.namespace, entry.name),
            n_pods,
            causes: outright.chain(causes).cloned().collect(),
        }
    });
    judged.collect()
}
