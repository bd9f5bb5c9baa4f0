//! An explanation, written out.

use serde_json::{Value, json};
use strew_manifest::finding::Finding;
use strew_view::explanation::{Owner, PodExplanation, State};

use crate::context::Context;
use crate::explain::{Explained, Moment, cause};
use crate::explain_text::{Beside, TextStyle, explain_text};
use crate::failure::Failure;
use crate::output::{Format, serialized};
use crate::recorded::Recorded;
use crate::spread_explain::PodSpread;
use crate::terminal;
use crate::text::eviction;
use crate::what_if;
use strew_view::blocked::Eviction;

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
    preemption: Option<Eviction>,
    /// The pod's workload: how many of its pods are Pending, and whether a rollout hangs.
    workload: Option<String>,
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
        constraint.others = cause::others(&explained.world, explained.entry, &tree.counted);
    }
    wire.summary.clone_from(&explained.cause);
    // Before its decision a pod is Pending as every pod is.
    let workload = (explained.moment != Moment::Decision)
        .then(|| cause::of_workload(&explained.world, explained.entry))
        .flatten();
    if explained.is_astray {
        // No scheduler has a word on it.
        wire.standing = State::Pending;
        wire.would_go_to = None;
        wire.message.clear();
        wire.message_now = None;
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
                let preemption = serde_json::to_value(eviction);
                let preemption = preemption.map_err(Failure::outside)?;
                let after = fields.keys().position(|name| name == "message");
                let after = after.map_or(fields.len(), |place| place + 1);
                fields.shift_insert(after, "preemption".to_owned(), preemption);
            }
            if let Some(workload) = &workload {
                fields.insert("workload".to_owned(), json!(workload));
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
    let beside = Beside {
        is_placed: explained.moment == Moment::Decision,
        aside: aside.as_deref(),
        workload: workload.as_deref(),
        recorded: explained.recorded.as_ref(),
    };
    let text = explain_text(&wire, &beside, style);
    // The verdict comes first, the moment last.
    let spread = spread.map_or(String::new(), |spread| format!("\n{}", spread.text()));
    let turned = explained.turned.as_ref().map(what_if::write);
    let turned = turned.map_or(String::new(), |turned| format!("\n{turned}"));
    let lacks = explained.lacks.as_ref();
    let lacks = lacks.map_or(String::new(), |(workload, lacks)| {
        let recorded = explained.lacks_recorded.as_deref();
        let recorded = recorded.map_or(String::new(), |recorded| format!("{recorded}\n"));
        format!("{workload}: {lacks}\n{recorded}One of its pods that have a node:\n\n")
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
