//! The results of changes as text.

use std::fmt::Write as _;

use super::turned::{Becomes, Turned, TurnedPod, TurnedSkew};
use crate::text::count;

/// The largest number of pods of one kind that are listed.
const PODS_SHOWN: usize = 10;

/// The changes, with the pods and skews that changed.
pub(crate) fn write(turned: &Turned) -> String {
    let mut text = String::new();
    let changes = turned.changes.iter().map(|changed| match changed.nodes {
        0 => changed.change.clone(),
        // What a loss is: nodes that stop keep their objects for a while, and constraints go on counting them.
        n if changed.change.starts_with("lose") => {
            format!("{} ({} deleted)", changed.change, count(n, "node"))
        }
        n => format!("{} ({})", changed.change, count(n, "node")),
    });
    let changes: Vec<String> = changes.collect();
    let _ = writeln!(text, "After {}:", changes.join(", "));
    let groups = [
        (Becomes::Placed, false, "pod", "on another node"),
        (Becomes::Pending, false, "pod", "Pending"),
        (Becomes::Placed, true, "new pod", "on a node"),
        (Becomes::Pending, true, "new pod", "Pending"),
        (
            Becomes::Gone,
            false,
            "pod",
            "gone, no controller makes another",
        ),
        (
            Becomes::Kept,
            false,
            "pod",
            "kept from leaving: the drain does not end",
        ),
    ];
    for (becomes, is_new, noun, words) in groups {
        let pods: Vec<&TurnedPod> = turned
            .pods
            .iter()
            .filter(|p| p.becomes == becomes && p.is_new == is_new)
            .collect();
        if pods.is_empty() {
            continue;
        }
        let _ = writeln!(text, "  {} {words}", count(pods.len(), noun));
        for pod in pods.iter().take(PODS_SHOWN) {
            let _ = writeln!(text, "    {}", pod_line(pod));
        }
        if pods.len() > PODS_SHOWN {
            let _ = writeln!(text, "    … and {} more", pods.len() - PODS_SHOWN);
        }
    }
    if let Some(not_made) = &turned.not_made {
        let pods = count(not_made.pods, "new pod");
        let _ = writeln!(text, "  {pods} not made: {}", not_made.why);
    }
    if turned.pods.is_empty() && turned.not_made.is_none() {
        text.push_str("  no pod moves\n");
    }
    for skew in &turned.skews {
        let _ = writeln!(text, "  {}", skew_line(skew));
    }
    for service in &turned.services {
        let _ = writeln!(
            text,
            "  Service {}/{} leads to {} instead of {}",
            service.namespace,
            service.name,
            count(service.after, "pod"),
            service.before,
        );
    }
    text
}

fn pod_line(pod: &TurnedPod) -> String {
    let mut line = format!("{}/{}", pod.namespace, pod.name);
    if !pod.is_new {
        let from = pod.from.as_deref().unwrap_or("Pending");
        let _ = write!(line, "  {from}");
    }
    match pod.to.as_ref().filter(|_| pod.from != pod.to) {
        Some(to) if pod.is_new => drop(write!(line, "  {to}")),
        Some(to) => drop(write!(line, " -> {to}")),
        None => {}
    }
    if let Some(message) = &pod.message {
        let _ = write!(line, ": {message}");
    }
    line
}

fn skew_line(skew: &TurnedSkew) -> String {
    let number = |skew: Option<i32>| skew.map_or_else(|| "no domain".to_owned(), |n| n.to_string());
    format!(
        "skew of {}/{} over {}: {} -> {} (maxSkew {}, {}{})",
        skew.namespace,
        skew.workload,
        skew.topology_key,
        number(skew.before),
        number(skew.after),
        skew.max_skew,
        if skew.hard { "hard" } else { "soft" },
        if skew.is_default { ", a default" } else { "" },
    )
}
