//! The usage of nodes, as a table.

use super::Look;
use crate::explain_text::paint::Paint;
use crate::explain_text::table::{Cell, aligned};
use strew_view::usage::{self, NodeUsage, bytes_short, cpu_short, percent};
use strew_view::view::View;

/// The number of spaces between columns, as in kubectl.
const GAP: usize = 3;

/// A line per zone, or per node.
pub(super) fn nodes(out: &mut String, view: &View, look: &Look<'_>) {
    if view.nodes.is_empty() {
        return;
    }
    let zones;
    let (usages, first) = match look.wide {
        true => (&view.nodes, "NODE"),
        false => {
            zones = usage::of_zones(&view.nodes);
            (&zones, "ZONE")
        }
    };
    let mut rows = Vec::new();
    if look.headers {
        let second = if look.wide { "ZONE" } else { "NODES" };
        let header = [first, second, "CPU", "MEMORY", "PODS", "OTHER"];
        rows.push(header.map(str::to_owned).to_vec());
    }
    rows.extend(usages.iter().map(|usage| row(usage, look.wide)));
    // Other resources are rare.
    let has_other = rows
        .iter()
        .skip(usize::from(look.headers))
        .any(|row| !row[5].is_empty());
    if !has_other {
        rows.iter_mut().for_each(|row| row.truncate(5));
    }
    let rows: Vec<Vec<Cell>> = rows
        .into_iter()
        .map(|row| row.into_iter().map(Cell::plain).collect())
        .collect();
    let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
    for line in aligned(&rows, &[], GAP, Paint::new(false)) {
        out.push_str(&line);
        out.push('\n');
    }
}

fn row(usage: &NodeUsage, wide: bool) -> Vec<String> {
    let of = |name: &str, text: fn(i64) -> String| {
        let (used, has) = usage.of(name);
        let percent = percent(used, has);
        format!("{}/{} ({percent}%)", text(used), text(has))
    };
    let second = match wide {
        true => usage.zone.clone().unwrap_or_else(|| "<none>".to_owned()),
        false => usage.n_nodes.to_string(),
    };
    let other = usage.others().map(|(name, used, has)| {
        let percent = percent(used, has);
        format!("{name} {used}/{has} ({percent}%)")
    });
    let other: Vec<String> = other.collect();
    let cordoned = if usage.unschedulable {
        " (cordoned)"
    } else {
        ""
    };
    vec![
        format!("{}{cordoned}", usage.name),
        second,
        of("cpu", cpu_short),
        of("memory", bytes_short),
        of("pods", |n| n.to_string()),
        other.join(", "),
    ]
}
