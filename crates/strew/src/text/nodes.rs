//! The usage of nodes, as a table.

use std::fmt::Write;

use super::Look;
use strew_view::usage::{self, Usage, bytes_short, cpu_short, percent};
use strew_view::view::View;
use strew_view::world::World;

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
    rows.extend(
        usages
            .iter()
            .map(|usage| row(&view.world, usage, look.wide)),
    );
    // Other resources are rare.
    let has_other = rows
        .iter()
        .skip(usize::from(look.headers))
        .any(|row| !row[5].is_empty());
    if !has_other {
        rows.iter_mut().for_each(|row| row.truncate(5));
    }
    table(out, &rows);
}

fn row(world: &World, usage: &Usage, wide: bool) -> Vec<String> {
    let (used, has) = (&usage.requested, &usage.allocatable);
    let of = |used: String, has: String, percent: i64| format!("{used}/{has} ({percent}%)");
    let second = match wide {
        true => usage.zone.clone().unwrap_or_else(|| "<none>".to_owned()),
        false => usage.n_nodes.to_string(),
    };
    let other = usage.scalars(world);
    let other: Vec<String> = other
        .into_iter()
        .map(|(name, used, has)| format!("{name} {used}/{has} ({}%)", percent(used, has)))
        .collect();
    let n_pods = usage.n_pods as i64;
    let cordoned = if usage.unschedulable {
        " (cordoned)"
    } else {
        ""
    };
    vec![
        format!("{}{cordoned}", usage.name),
        second,
        of(
            cpu_short(used.cpu_milli),
            cpu_short(has.cpu_milli),
            percent(used.cpu_milli, has.cpu_milli),
        ),
        of(
            bytes_short(used.memory),
            bytes_short(has.memory),
            percent(used.memory, has.memory),
        ),
        of(
            n_pods.to_string(),
            usage.pods_max.to_string(),
            percent(n_pods, usage.pods_max),
        ),
        other.join(", "),
    ]
}

/// Columns three spaces apart, as in kubectl.
fn table(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}   ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
