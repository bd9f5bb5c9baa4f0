//! `strew explain` without a name: all Pending pods by cause, and what explaining them costs a look at their class.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use serde::Serialize;
use serde_json::Value;
use strew_apiserver::object::{Name, Pod};
use strew_manifest::kinds::{self, Pods};
use strew_model::time::{Instant, Span};
use strew_scenario::expect::workloads;
use strew_scenario::format::ObjectTarget;
use strew_scheduler::Explanation;
use strew_scheduler::explain::Whereabouts;
use strew_view::blocked::Blocked;
use strew_view::cluster_state::ClusterState;
use strew_view::explanation::API_VERSION;
use strew_view::moment::Frame;

use super::moment::now_in;
use super::newest::newest;
use super::{ExplainArgs, cause, life, look};
use crate::context::Context;
use crate::failure::{EXIT_NO, Failure};
use crate::output::serialized;
use crate::progress::Progress;
use crate::recorded::Refusals;
use crate::scenario::{Seen, When};
use crate::terminal;
use crate::text::{count, eviction, short_key, widest};
use strew_suite::label_query::LabelQuery;
use strew_suite::shown::Choice;

/// All Pending pods of a cluster by cause, as `strew explain -o json` without a name writes it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingPods {
    api_version: &'static str,
    kind: &'static str,
    summary: Sums,
    /// Those that no node takes now first, then the most pods, then the oldest.
    items: Vec<Group>,
    /// Workloads that ask for more pods than there are, as far as a refusal at creation is known.
    unmade: Vec<Unmade>,
    /// The namespaces, kinds and names of workloads that lack pods, where nothing is recorded and a quota or a LimitRange
    /// may be the reason.
    #[serde(skip)]
    open: BTreeSet<[String; 3]>,
}

/// A workload whose pods are refused at creation.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Unmade {
    /// The workload's namespace.
    namespace: String,
    /// Its kind.
    workload_kind: String,
    /// Its name.
    workload_name: String,
    /// How many pods it lacks.
    lacks: usize,
    /// How many it asks for.
    wanted: usize,
    /// Why they were refused.
    reason: String,
}

/// Numbers of the pods that were looked at.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Sums {
    /// Pods on no node that are not being deleted.
    pending: usize,
    /// Their workloads.
    workloads_with_pending: usize,
    /// Pods on nodes.
    on_nodes: usize,
    /// The workloads of these.
    workloads_on_nodes: usize,
}

/// Pending pods of one workload with one cause.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Group {
    /// The workload's namespace.
    namespace: String,
    /// The workload's kind; `Pod` for a pod of its own.
    workload_kind: String,
    /// The workload's name.
    workload_name: String,
    /// How many pods.
    pods: usize,
    /// Why they are on no node.
    cause: String,
    /// True if a node would take them now, and nothing else keeps them from one.
    fits_now: bool,
    /// kube-scheduler's sentence about the first of them; empty if it has none now.
    message: String,
    /// How long the oldest exists, in seconds.
    oldest_seconds: u64,
    /// The pods, the oldest first.
    names: Vec<String>,
}

/// The JSON schema of the list.
pub(crate) fn schema() -> Value {
    schemars::schema_for!(PendingPods).to_value()
}

/// As things are in the files if they have pods; otherwise when the manifests are deployed; or at a moment.
pub(super) fn explain(
    args: &ExplainArgs,
    files: &[String],
    context: &Context,
) -> Result<u8, Failure> {
    if !args.what_if.is_empty() {
        let error = anyhow!("--what-if is about one pod or workload");
        return Err(Failure::input(error).with_hint("name it, for example: deployment/web"));
    }
    let names = args.names(files)?;
    let inputs = args.inputs(&names, context)?;
    let taken = inputs.iter().filter_map(|input| newest(&input.bytes)).max();
    let Some(life) = life(args, &names, inputs, context)? else {
        return Ok(2);
    };
    let refusals = Refusals::of(life.objects());
    let progress = Progress::new(context.quiet);
    let query = args.selector.as_deref().map(LabelQuery::parse);
    let query = query.transpose()?;
    let choice = Choice {
        namespace: args.namespace.clone(),
        query: query.clone(),
        top: usize::MAX,
    };
    let at = |when| {
        // A dump is as old as the newest time in it.
        let taken = taken.filter(|_| when == When::Start);
        look(&life, when, &progress, |seen, frame| {
            let now = taken.unwrap_or(seen.now);
            listed(seen, frame, &choice, &refusals, now)
        })
    };
    let mut list = match args.at {
        Some(time) => at(When::At(time))??,
        None => match at(When::Start)? {
            Ok(start) if start.is_empty() => at(When::End)??,
            start => start?,
        },
    };
    // A refusal that nothing records shows when the controllers are played.
    if args.at.is_none() && !list.open.is_empty() {
        list.take_unmade(at(When::End)??);
    }
    progress.finish();
    let text = match args.format() {
        Some(format) => serialized(&list, format)?,
        None => list.text(args, files, context),
    };
    let text = match context.terminal.unicode {
        true => text,
        false => terminal::ascii(&text),
    };
    terminal::print(&text)?;
    Ok(
        match args.fails(list.summary.pending > 0 || !list.unmade.is_empty()) {
            true => EXIT_NO,
            false => 0,
        },
    )
}

/// The Pending pods of the chosen workloads.
///
/// # Errors
/// No workload matches, although there are some.
fn listed(
    seen: Seen<'_>,
    frame: &mut Frame,
    choice: &Choice,
    refusals: &Refusals<'_>,
    now: Instant,
) -> Result<PendingPods, Failure> {
    let (mut world, _) = now_in(seen, frame);
    if !world.workloads.is_empty() {
        choice.check(&world.workloads)?;
    }
    let tables = seen.moment.tables;
    let mut sums = Sums::default();
    let (mut unmade, mut open) = (Vec::new(), BTreeSet::new());
    let limited: BTreeSet<String> = { tables.all_plain() }
        // By these the API server refuses pods.
        .filter(|plain| matches!(plain.object.kind(), "ResourceQuota" | "LimitRange"))
        .map(|plain| plain.meta.name.namespace.to_string())
        .collect();
    let mut known: BTreeMap<(usize, usize), Told> = BTreeMap::new();
    let mut groups: BTreeMap<(usize, Told), Vec<(Span, usize)>> = BTreeMap::new();
    for workload in 0..world.workloads.len() {
        if !choice.means(&world.workloads[workload]) {
            continue;
        }
        let members = world.members[workload].clone();
        let members = members.into_iter().filter(|&m| !world.pods[m].is_leaving);
        let stored = |member: usize| {
            let pod = &world.pods[member];
            let name = Name::new(pod.namespace.clone(), pod.name.clone());
            tables.get::<Pod>(&name).cloned()
        };
        let members = members.map(|member| (member, stored(member)));
        let (on_nodes, pending): (Vec<_>, Vec<_>) = members.partition(|(member, pod)| {
            world.node_of(*member).is_some() && !cause::is_astray(&world, *member, pod.as_deref())
        });
        let n_made = on_nodes.len() + pending.len();
        match lacks(seen, &world, workload, n_made, refusals) {
            Some(lacking) if lacking.reason.is_empty() => {
                open.extend(limited.contains(&lacking.namespace).then(|| lacking.of()));
            }
            lacking => unmade.extend(lacking),
        }
        sums.on_nodes += on_nodes.len();
        sums.workloads_on_nodes += usize::from(!on_nodes.is_empty());
        sums.pending += pending.len();
        sums.workloads_with_pending += usize::from(!pending.is_empty());
        for (entry, stored) in pending {
            let pod = &world.pods[entry];
            let stored = stored.as_deref();
            let age = stored.map_or(Span::default(), |stored| now.since(stored.meta.created));
            let class = world.cluster.pod(pod.pod).class.index();
            let is_astray = stored.is_some_and(|stored| stored.node.is_some());
            // Pods of one class are decided in one way, unless a node is kept for one of them.
            let is_nominated = stored.is_some_and(|stored| stored.status.nominated.is_some());
            let told = match known.get(&(workload, class)) {
                Some(known) if !is_astray && !is_nominated => known.clone(),
                _ => {
                    let told = told(&mut world, entry, stored);
                    if !is_astray && !is_nominated {
                        known.insert((workload, class), told.clone());
                    }
                    told
                }
            };
            groups
                .entry((workload, told))
                .or_default()
                .push((age, entry));
        }
    }
    let groups = groups.into_iter();
    let mut items: Vec<Group> = groups
        .map(|((workload, told), pods)| group(&world, workload, told, pods))
        .collect();
    items.sort_by(|a, b| {
        let key = |group: &Group| (group.fits_now, Reverse((group.pods, group.oldest_seconds)));
        key(a).cmp(&key(b))
    });
    Ok(PendingPods {
        api_version: API_VERSION,
        kind: "PendingPods",
        summary: sums,
        items,
        unmade,
        open,
    })
}

/// What a workload lacks of the pods that it asks for; the reason is empty if no refusal is known.
fn lacks(
    seen: Seen<'_>,
    world: &ClusterState,
    workload: usize,
    n_made: usize,
    refusals: &Refusals<'_>,
) -> Option<Unmade> {
    let name = &world.workloads[workload].name;
    let target = ObjectTarget {
        type_name: kinds::of_kind(&name.kind)?,
        namespace: Some(name.namespace.clone()),
        name: name.name.clone(),
    };
    let (wanted, refused) = workloads::wanted((seen.moment.tables, seen.events), &target)?;
    let lacks = wanted.checked_sub(n_made).filter(|lacks| *lacks > 0)?;
    let recorded = || refusals.last(&name.namespace, &name.name);
    Some(Unmade {
        namespace: name.namespace.clone(),
        workload_kind: name.kind.clone(),
        workload_name: name.name.clone(),
        lacks,
        wanted,
        reason: recorded().or(refused).unwrap_or_default(),
    })
}

impl Unmade {
    /// The workload's namespace, kind and name.
    fn of(&self) -> [String; 3] {
        [&self.namespace, &self.workload_kind, &self.workload_name].map(String::clone)
    }
}

/// What is told of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    cause: String,
    fits_now: bool,
    /// kube-scheduler's sentence.
    message: String,
}

fn told(world: &mut ClusterState, entry: usize, stored: Option<&Pod>) -> Told {
    let pod = world.pods[entry].pod;
    let explanation: Explanation = world.schedulers.explain(&mut world.cluster, pod, None);
    let cause = cause::of(world, entry, &explanation, stored);
    let fits_now = cause.is_none();
    let is_pending = explanation.standing == Whereabouts::Pending;
    let blocked = is_pending.then(|| Blocked::now(world, pod)).flatten();
    let victims = blocked.and_then(|blocked| blocked.eviction);
    let cause = cause.map(|cause| match &victims {
        Some(victims) => format!("{cause}; it {}", eviction::plan(victims)),
        None => cause,
    });
    let cause = cause.unwrap_or_else(|| {
        let node = explanation.standing.would_go();
        let node = node.map_or("a node", |node| world.node_name(node));
        format!(
            "fits now, on {node}: the scheduler has not tried it since, does not run, or is configured otherwise"
        )
    });
    // Of a pod that a node would take, the sentence would be that of its placement.
    let message = match explanation.standing {
        Whereabouts::Pending | Whereabouts::Gated { .. } => explanation.sentence,
        Whereabouts::WouldGo { .. } | Whereabouts::Placed { .. } => String::new(),
    };
    Told {
        cause,
        fits_now,
        message,
    }
}

fn group(world: &ClusterState, workload: usize, told: Told, mut pods: Vec<(Span, usize)>) -> Group {
    pods.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let name = &world.workloads[workload].name;
    let oldest = pods.first().map_or(Span::default(), |first| first.0);
    Group {
        namespace: name.namespace.clone(),
        workload_kind: name.kind.clone(),
        workload_name: name.name.clone(),
        pods: pods.len(),
        cause: told.cause,
        fits_now: told.fits_now,
        message: told.message,
        oldest_seconds: oldest.0 / 1_000_000_000,
        names: pods
            .iter()
            .map(|(_, entry)| world.pods[*entry].name.to_string())
            .collect(),
    }
}

impl PendingPods {
    /// Takes over why pods are refused in the end, of workloads that lack pods for a reason that is not known.
    fn take_unmade(&mut self, end: Self) {
        let found = end.unmade.into_iter();
        self.unmade
            .extend(found.filter(|unmade| self.open.contains(&unmade.of())));
    }

    /// True if no pod was looked at.
    fn is_empty(&self) -> bool {
        self.summary.pending + self.summary.on_nodes == 0
    }

    fn text(&self, args: &ExplainArgs, files: &[String], context: &Context) -> String {
        let sums = &self.summary;
        let styles = &context.terminal.styles;
        let Some(first) = self.items.first() else {
            let pods = count(sums.on_nodes, "pod");
            let (of, are) = match sums.on_nodes {
                1 => ("1 workload".to_owned(), "is on a node"),
                _ => (count(sums.workloads_on_nodes, "workload"), "are on nodes"),
            };
            return format!(
                "{}no Pending pod: {pods} of {of} {are}\n",
                self.unmade_text(context)
            );
        };
        let (title, bad, dim) = (styles.title, styles.bad, styles.dim);
        let mut text = format!(
            "{title}{} of {}, by cause{title:#}\n",
            count(sums.pending, "Pending pod"),
            count(sums.workloads_with_pending, "workload")
        );
        let number = widest(self.items.iter().map(|item| item.pods.to_string()));
        let names: Vec<String> = self.items.iter().map(Group::name).collect();
        let name = widest(&names);
        let causes: Vec<String> = self.items.iter().map(|item| short(&item.cause)).collect();
        let longest = widest(&causes);
        // A column for the ages where it fits; otherwise each comes after its cause.
        let room = context.terminal.width.saturating_sub(number + name + 16);
        let column = if longest <= room { longest } else { 0 };
        for ((item, group), cause) in self.items.iter().zip(&names).zip(&causes) {
            let n = item.pods;
            let age = age_text(item.oldest_seconds);
            text += &format!(
                "  {bad}{n:>number$}{bad:#}  {group:<name$}  {cause:<column$}  {dim}oldest {age}{dim:#}\n"
            );
            if args.is_wide() {
                text += &item.wide(number + 4);
            }
        }
        text += &self.unmade_text(context);
        let files: Vec<&str> = args.all_files(files).collect();
        let files = files.iter().map(|file| format!(" {file}"));
        text += &format!(
            "{} explain {}{} says what would place them\n",
            context.program,
            first.target(),
            files.collect::<String>()
        );
        text
    }
}

impl PendingPods {
    /// The workloads whose pods are refused at creation; empty if there is none.
    fn unmade_text(&self, context: &Context) -> String {
        if self.unmade.is_empty() {
            return String::new();
        }
        let styles = &context.terminal.styles;
        let (title, bad) = (styles.title, styles.bad);
        let n: usize = self.unmade.iter().map(|unmade| unmade.lacks).sum();
        let are = if n == 1 { "was" } else { "were" };
        let mut text = format!(
            "{title}{} of {} {are} never made{title:#}\n",
            count(n, "pod"),
            count(self.unmade.len(), "workload")
        );
        for unmade in &self.unmade {
            let Unmade {
                namespace,
                workload_name,
                lacks,
                wanted,
                reason,
                ..
            } = unmade;
            text += &format!(
                "  {bad}{lacks}{bad:#}  {namespace}/{workload_name}  of {wanted}: {reason}\n"
            );
        }
        text
    }
}

impl Group {
    /// `shop/web`
    fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.workload_name)
    }

    /// `deployment/web -n shop`; the oldest pod where the kind is not one that can be named.
    fn target(&self) -> String {
        let row = kinds::of_kind(&self.workload_kind).filter(|row| row.pods != Pods::No);
        let target = match row {
            Some(_) => format!(
                "{}/{}",
                self.workload_kind.to_lowercase(),
                self.workload_name
            ),
            None => {
                let oldest = self.names.first().map_or("", String::as_str);
                format!("pod/{oldest}")
            }
        };
        match self.namespace.as_str() {
            "default" | "" => target,
            namespace => format!("{target} -n {namespace}"),
        }
    }

    /// kube-scheduler's sentence, and the pods.
    fn wide(&self, indent: usize) -> String {
        let space = " ".repeat(indent);
        let message = match self.message.as_str() {
            "" => String::new(),
            message => format!("{space}{message}\n"),
        };
        format!("{message}{space}{}\n", self.names.join(" "))
    }
}

/// A cause with the well-known labels in short: `zone` for `topology.kubernetes.io/zone`.
fn short(cause: &str) -> String {
    const KEYS: [&str; 3] = [
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "kubernetes.io/hostname",
    ];
    KEYS.iter().fold(cause.to_owned(), |cause, key| {
        cause.replace(key, short_key(key))
    })
}

/// An age as `kubectl get` writes it, in its largest unit: `41m`, `3h`, `5d`.
fn age_text(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let texts = [0, 119, 2_460, 7_200, 172_800].map(age_text);
        assert_eq!(texts, ["0s", "119s", "41m", "2h", "2d"]);
    }

    #[test]
    fn causes_have_short_keys() {
        let cause = "would exceed maxSkew 1 over topology.kubernetes.io/zone: a counts 0";
        assert_eq!(short(cause), "would exceed maxSkew 1 over zone: a counts 0");
    }
}
