//! Counts per domain as bars with numbers.

use std::fmt::Write;

use super::{Look, count, short_key, widest};
use crate::terminal::Terminal;
use strew_view::cluster_state::ClusterState;
use strew_view::domains::Domain;
use strew_view::spread::{Constraint, Spread};
use strew_view::values::{warning, when_unsatisfiable};
use strew_view::view::Summary;

/// The number of domains that get a bar each; of more, a line shows how many hold how much.
const BARS_MAX: usize = 8;

/// One key of a workload.
pub(super) fn spread_block(
    out: &mut String,
    world: &ClusterState,
    summary: &Summary,
    spread: &Spread,
    look: &Look<'_>,
) {
    let key = world.cluster.names.text(spread.key);
    let key = if look.wide { key } else { short_key(key) };
    let _ = write!(out, "  by {key}: skew {}", spread.skew);
    if let Some(before) = spread.skew_before.filter(|&before| before != spread.skew) {
        let _ = write!(out, " (was {before})");
    }
    let _ = write!(out, ", {}", constraint_text(world, spread, look));
    if spread.n_others > 0 {
        let _ = write!(
            out,
            "; {} of others count",
            count(spread.n_others as usize, "pod")
        );
    }
    out.push('\n');
    match spread.domains.len() {
        0 => out.push_str(
            "    no node counts: none has the labels of all constraints and passes the pods' node affinity\n",
        ),
        n if n <= BARS_MAX || look.wide => bars(out, world, spread, look),
        _ => histogram(out, world, spread),
    }
    out.push_str(&own_line(world, spread, "    "));
    if let Some(warning) = warning(summary, spread) {
        let style = look.terminal.styles.warning;
        let _ = writeln!(out, "    {style}warning{style:#}: {warning}");
    }
}

/// The workload's own pods, those of old revisions included, if the constraint counts other ones too, or not all of
/// them; empty otherwise.
pub(super) fn own_line(world: &ClusterState, spread: &Spread, indent: &str) -> String {
    let mut domains = spread.domains.occupied();
    if domains.all(|domain| domain.own == domain.count) {
        return String::new();
    }
    let mut out = format!("{indent}the workload's own pods: skew {}", spread.own_skew);
    if spread.domains.len() <= BARS_MAX {
        let each = spread.domains.iter();
        let each = each.map(|domain| format!("{} {}", domain_name(world, &domain), domain.own));
        let each: Vec<String> = each.collect();
        let _ = write!(out, ", {}", each.join(", "));
    }
    out.push('\n');
    out
}

fn constraint_text(world: &ClusterState, spread: &Spread, look: &Look<'_>) -> String {
    let Some(constraint) = &spread.constraint else {
        return "no constraint".to_owned();
    };
    let Constraint {
        is_default,
        hard,
        max_skew,
        min_domains,
        ..
    } = constraint;
    let mut text = String::new();
    if *is_default {
        text.push_str("(cluster default) ");
    }
    let _ = write!(text, "{} maxSkew {max_skew}", when_unsatisfiable(*hard));
    if let Some(min_domains) = min_domains {
        let _ = write!(text, " minDomains {min_domains}");
        if (spread.domains.len() as i64) < i64::from(*min_domains) {
            let _ = write!(text, " (there are {})", spread.domains.len());
        }
    }
    if !constraint.match_label_keys.is_empty() {
        let keys: Vec<&str> = constraint
            .match_label_keys
            .iter()
            .map(|&key| world.cluster.names.text(key))
            .collect();
        let _ = write!(text, " matchLabelKeys {}", keys.join(","));
    }
    if look.wide {
        let _ = write!(text, ", counting {}", constraint.selector);
    }
    if constraint.is_off {
        text.push_str(" (without effect: the plugin is off)");
    } else if spread.is_split {
        text.push_str(" (for pods of the same nodes)");
    } else if spread.skew > *max_skew {
        let bad = look.terminal.styles.bad;
        let _ = write!(text, " {bad}(exceeded){bad:#}");
    }
    text
}

fn bars(out: &mut String, world: &ClusterState, spread: &Spread, look: &Look<'_>) {
    let bar = |domain: Domain| Bar {
        name: world.cluster.names.text(domain.value),
        count: domain.count,
        more: domain.count - domain.before.unwrap_or(domain.count),
    };
    let bars: Vec<Bar<'_>> = spread.domains.iter().map(bar).collect();
    draw(out, &bars, 4, look.terminal);
}

/// A domain with its count.
pub(crate) struct Bar<'a> {
    pub(crate) name: &'a str,
    pub(crate) count: i32,
    /// Compared with before.
    pub(crate) more: i32,
}

/// A domain as text.
pub(super) fn domain_name<'a>(world: &'a ClusterState, domain: &Domain) -> &'a str {
    match world.cluster.names.text(domain.value) {
        "" => NO_LABEL,
        text => text,
    }
}

/// The domain of nodes without the label, if they count.
const NO_LABEL: &str = "<no label>";

impl<'a> Bar<'a> {
    fn label(&self) -> &'a str {
        match self.name {
            "" => NO_LABEL,
            text => text,
        }
    }
}

/// Draws one line per domain, with this indentation.
pub(crate) fn draw(out: &mut String, bars: &[Bar<'_>], indent: usize, terminal: &Terminal) {
    let name_width = widest(bars.iter().map(Bar::label));
    let highest = bars.iter().map(|bar| bar.count).max();
    let highest = highest.unwrap_or(0).max(0) as usize;
    // Two spaces, the name, two spaces, the bar, the number.
    let room = terminal
        .width
        .saturating_sub(name_width + 16 + indent)
        .clamp(8, 48);
    let style = terminal.styles.bar;
    let cell = if terminal.unicode { "█" } else { "#" };
    for one in bars {
        let count = one.count.max(0) as usize;
        let length = match highest {
            0 => 0,
            _ if highest * 2 <= room => count * 2,
            _ => (count * room).div_ceil(highest),
        };
        let bar = cell.repeat(length);
        let gap = if length == 0 { "" } else { " " };
        let _ = write!(
            out,
            "{:indent$}{:name_width$}  {style}{bar}{style:#}{gap}{}",
            "",
            one.label(),
            one.count
        );
        if one.more != 0 {
            let _ = write!(out, " ({:+})", one.more);
        }
        out.push('\n');
    }
}

/// How many domains hold how many pods, the fullest first.
fn histogram(out: &mut String, world: &ClusterState, spread: &Spread) {
    let noun = match short_key(world.cluster.names.text(spread.key)) {
        "hostname" => "node",
        _ => "domain",
    };
    let mut counts: Vec<i32> = spread.domains.iter().map(|d| d.count).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let groups = counts.chunk_by(|a, b| a == b);
    let each: Vec<String> = groups
        .map(|group| {
            let domains = count(group.len(), noun);
            match group[0] {
                0 => format!("{domains} empty"),
                held => format!("{domains} x{held}"),
            }
        })
        .collect();
    const GROUPS_SHOWN: usize = 6;
    let shown = match each.len() {
        n if n > GROUPS_SHOWN => {
            let head = each[..GROUPS_SHOWN - 2].join(", ");
            format!("{head}, …, {}", each[n - 1])
        }
        _ => each.join(", "),
    };
    let _ = writeln!(out, "    {shown}");
}
