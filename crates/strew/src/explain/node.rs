//! `strew explain node/NAME`: its pods, its free resources, the constraints that count it, and why it refuses Pending
//! pods.

use anyhow::anyhow;
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Node};
use strew_manifest::conditions::node_ready;
use strew_view::explanation::{Counting, NodeExplanation};
use strew_view::view::View;

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
    let Some(life) = life(args, &names, inputs, context)? else {
        return Ok(2);
    };
    let progress = Progress::new(context.quiet);
    let view = |when| {
        look(&life, when, &progress, |seen, frame| {
            let not_ready = not_ready(seen.moment.tables, name);
            (View::of(seen.moment, frame, None), not_ready)
        })
    };
    let ((view, not_ready), moment) = match args.at {
        Some(at) => (
            view(When::At(at))?,
            format!("explained as things are after {}", time_text(at)),
        ),
        None => match view(When::Start)? {
            (start, _) if start.world.pods.is_empty() => (
                view(When::End)?,
                "explained as things are at the end".to_owned(),
            ),
            start => (start, "explained as things are in the files".to_owned()),
        },
    };
    progress.finish();
    let explanation = NodeExplanation::of(view, name, not_ready).map_err(|known| {
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
            write(&explanation, &mut page);
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

/// The status of the node's condition Ready if that is not True; `None` also if there is none.
fn not_ready(tables: &Tables, name: &str) -> Option<String> {
    let node = tables.get::<Node>(&Name::new("", name))?;
    let ready = node_ready(&node.status)?;
    (ready != "True").then(|| ready.to_owned())
}

/// For people.
fn write(node: &NodeExplanation, out: &mut Page) {
    let zone = node.zone.as_ref();
    let zone = zone.map_or(String::new(), |z| format!(" in {z}"));
    let free = node.resources.iter().map(|amounts| {
        format!(
            "{} of {} {} free",
            amounts.free, amounts.allocatable, amounts.name
        )
    });
    let free: Vec<String> = free.collect();
    let pods = count(node.pods.len(), "pod");
    let name = out.paint.bold(&node.name);
    out.wrapped(
        0,
        &format!("Node {name}{zone} has {pods}; {}.", free.join(", ")),
    );
    if node.unschedulable {
        out.line(0, "It is cordoned: only pods that tolerate that go to it.");
    }
    if let Some(status) = &node.not_ready {
        let is_tainted = node.taints.iter().any(|taint| {
            taint.starts_with("node.kubernetes.io/not-ready")
                || taint.starts_with("node.kubernetes.io/unreachable")
        });
        let then = match is_tainted {
            true => "",
            false => {
                ", and not tainted for it yet: the scheduler would still put pods on it, and its kubelet would not start them"
            }
        };
        out.wrapped(0, &format!("It is not Ready (Ready is {status}){then}."));
    }
    if !node.taints.is_empty() {
        out.wrapped(0, &format!("Taints: {}.", node.taints.join(", ")));
    }
    write_pending(node, out);
    if !node.constraints.is_empty() {
        out.heading("Spread constraints that look at it");
        for counting in &node.constraints {
            out.wrapped(2, &counting_text(counting));
        }
    }
    if !node.pods.is_empty() {
        out.heading("Pods on it");
        let header = [
            ("pod", false),
            ("of", false),
            ("cpu", true),
            ("memory", true),
        ];
        let mut table = Table::new(header.to_vec());
        for pod in &node.pods {
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

fn write_pending(node: &NodeExplanation, out: &mut Page) {
    if node.pending.is_empty() {
        return;
    }
    out.heading("Pending pods, and what it has against them");
    for judged in &node.pending {
        let more = match judged.n_pods {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let causes = match judged.causes.is_empty() {
            true if node.not_ready.is_some() => {
                "nothing that the scheduler looks at, though the node is not Ready".to_owned()
            }
            true => "nothing: it would take it".to_owned(),
            false => judged.causes.join("; "),
        };
        out.wrapped(2, &format!("{}{more}: {causes}", judged.pod));
    }
}

fn counting_text(counting: &Counting) -> String {
    let key = short_key(&counting.topology_key);
    let Counting {
        workload,
        constraint,
        ..
    } = counting;
    match (&counting.domain, counting.counts) {
        (None, _) => {
            format!(
                "{workload} by {key}, {constraint}: not counted, it has no label {}",
                counting.topology_key
            )
        }
        (Some(domain), false) => format!(
            "{workload} by {key}, {constraint}: not counted in {domain}, by node affinity or taints of its pods"
        ),
        (Some(domain), true) => format!(
            "{workload} by {key}, {constraint}: counted in {domain}, {} there, skew {}",
            count(usize::try_from(counting.pods).unwrap_or(0), "pod"),
            counting.skew
        ),
    }
}
