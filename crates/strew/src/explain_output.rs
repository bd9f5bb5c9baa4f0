//! An explanation, written out.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use strew_cluster::PodIdx;
use strew_manifest::finding::Finding;
use strew_wire::explanation::{CountedWorkload, Owner, PodExplanation};

use crate::context::Context;
use crate::explain::Explained;
use crate::explain_text::{TextStyle, explain_text};
use crate::failure::Failure;
use crate::output::{Format, serialized};
use crate::recorded::Recorded;
use crate::report::PreemptionReport;
use crate::spread_explain::PodSpread;
use crate::terminal;
use crate::text::eviction;
use crate::what_if;

/// `PodExplanation`, as `-o json` writes it.
#[derive(schemars::JsonSchema)]
#[schemars(rename = "PodExplanation", rename_all = "camelCase")]
#[expect(dead_code, reason = "the shape of a value")]
struct Written {
    #[schemars(flatten)]
    explanation: PodExplanation,
    /// The moment of the explanation.
    moment: String,
    /// The results of the changes of `--what-if`.
    turned: Option<what_if::Turned>,
    /// The node that preemption would free, with the victims.
    preemption: Option<PreemptionReport>,
    /// What the named workload lacks of the pods that it asks for, if the pod that is explained has a node.
    workload_lacks: Option<String>,
    /// What the cluster recorded for the pod.
    recorded: Option<Recorded>,
    /// The pod's WorkloadSpread.
    workload_spread: Option<PodSpread>,
    /// What a person should know about the files.
    findings: Vec<Finding>,
}

/// The JSON schema of an explanation.
pub(crate) fn schema() -> Value {
    schemars::schema_for!(Written).to_value()
}

/// The explanation as text, JSON or YAML.
pub(crate) fn write(
    explained: Explained,
    spread: Option<PodSpread>,
    findings: &[Finding],
    output: Option<Format>,
    context: &Context,
) -> Result<String, Failure> {
    let (what_if, cluster) = (explained.what_if.as_ref(), &explained.world.cluster);
    let mut wire = PodExplanation::of(&explained.explanation, what_if, cluster);
    if let Some(deduced) = &mut wire.constraints.deduced
        && deduced.owner.is_none()
    {
        deduced.owner = missing_owner(&explained);
    }
    for (constraint, tree) in { wire.constraints.hard.iter_mut() }.zip(&explained.explanation.hard)
    {
        constraint.others = others(&explained, &tree.counted);
    }
    if let Some(format) = output {
        let mut value = serde_json::to_value(&wire).map_err(Failure::outside)?;
        if let Value::Object(fields) = &mut value {
            // The line about the moment, besides the sentences of the explanation.
            let moment = json!(explained.moment.name());
            fields.shift_insert(3.min(fields.len()), "moment".to_owned(), moment);
            if let Some(turned) = &explained.turned {
                let turned = serde_json::to_value(turned).map_err(Failure::outside)?;
                fields.shift_insert(4.min(fields.len()), "turned".to_owned(), turned);
            }
            if let Some(eviction) = &explained.eviction {
                let preemption = serde_json::to_value(PreemptionReport::from(eviction));
                let preemption = preemption.map_err(Failure::outside)?;
                let after = fields.keys().position(|name| name == "message");
                let after = after.map_or(fields.len(), |place| place + 1);
                fields.shift_insert(after, "preemption".to_owned(), preemption);
            }
            if let Some((_, lacks)) = &explained.lacks {
                fields.insert("workloadLacks".to_owned(), json!(lacks));
            }
            if let Some(recorded) = &explained.recorded {
                let recorded = serde_json::to_value(recorded).map_err(Failure::outside)?;
                fields.insert("recorded".to_owned(), recorded);
            }
            if let Some(spread) = &spread {
                let spread = serde_json::to_value(spread).map_err(Failure::outside)?;
                fields.insert("workloadSpread".to_owned(), spread);
            }
            fields.insert("findings".to_owned(), json!(findings));
        }
        return serialized(&value, format);
    }
    let style = TextStyle {
        width: context.terminal.width,
        // The output stream removes the styles if they are not wanted.
        colour: true,
    };
    let dim = context.terminal.styles.dim;
    let aside = explained.eviction.as_ref();
    let aside = aside.map(|e| format!("It {}.", eviction::plan(e)));
    let recorded = explained.recorded.as_ref();
    let text = explain_text(&wire, aside.as_deref(), recorded, style);
    // The verdict comes first, the moment last.
    let spread = spread.map_or(String::new(), |spread| format!("\n{}", spread.text()));
    let turned = explained.turned.as_ref().map(what_if::write);
    let turned = turned.map_or(String::new(), |turned| format!("\n{turned}"));
    let lacks = explained.lacks.as_ref();
    let lacks = lacks.map_or(String::new(), |(workload, lacks)| {
        format!("{workload}: {lacks}\nOne of its pods that have a node:\n\n")
    });
    let text = format!(
        "{lacks}{text}{spread}{turned}\n{dim}({}){dim:#}\n",
        explained.heading()
    );
    Ok(match context.terminal.unicode {
        true => text,
        false => terminal::ascii(&text),
    })
}

/// The workloads of these pods but for the explained pod's own, those with most pods first.
fn others(explained: &Explained, counted: &[PodIdx]) -> Vec<CountedWorkload> {
    let world = &explained.world;
    let own = world.pods[explained.entry].workload;
    if world.workloads[own].name.kind == "Pod" {
        // A pod of its own has no others to be told apart from.
        return Vec::new();
    }
    let counted: HashSet<PodIdx> = counted.iter().copied().collect();
    let mut pods: BTreeMap<usize, usize> = BTreeMap::new();
    for entry in world
        .pods
        .iter()
        .filter(|entry| counted.contains(&entry.pod))
    {
        *pods.entry(entry.workload).or_default() += 1;
    }
    pods.remove(&own);
    let of_workload = |(workload, pods): (usize, usize)| {
        let name = &world.workloads[workload].name;
        CountedWorkload {
            kind: name.kind.clone(),
            name: name.name.clone(),
            pods,
        }
    };
    let mut others: Vec<CountedWorkload> = pods.into_iter().map(of_workload).collect();
    others.sort_by_key(|other| std::cmp::Reverse(other.pods));
    others
}

/// The controller of a pod that is not among the objects: its reference was removed, because otherwise the garbage
/// collector would delete the pod.
fn missing_owner(explained: &Explained) -> Option<Owner> {
    let world = &explained.world;
    let entry = &world.pods[explained.entry];
    let workload = &world.workloads[entry.workload].name;
    let (kind, name) = match (workload.kind.as_str(), &entry.revision) {
        ("Pod", _) => return None,
        ("Deployment", Some(hash)) => ("ReplicaSet", format!("{}-{hash}", workload.name)),
        (kind @ ("ReplicaSet" | "StatefulSet" | "ReplicationController"), _) => {
            (kind, workload.name.clone())
        }
        _ => ("other", workload.name.clone()),
    };
    Some(Owner {
        kind: kind.to_owned(),
        name,
        used: false,
    })
}
