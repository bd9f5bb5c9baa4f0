//! Many Placements at a glance: which are short, which are uneven, what moves.

use strew_placement::facts::status::ConditionType;

use super::decide::{Decided, Outcome};
use super::difference::Difference;
use super::text::ROWS_MAX;
use crate::explain_text::Page;
use crate::explain_text::table::{Cell, Table};
use crate::text::count;

/// Up to this number of Placements need no summary.
const FEW: usize = 3;

/// True if a Placement is not as asked for.
pub(super) fn is_trouble(decided: &Decided) -> bool {
    decided.is_misconfigured() || decided.is_short() || decided.is_uneven()
}

/// The text above many Placements.
pub(super) fn write(outcome: &Outcome, shown: &[(&Decided, Option<&Difference>)], page: &mut Page) {
    if shown.len() <= FEW {
        return;
    }
    if !page.text.is_empty() {
        page.line(0, "");
    }
    let of = |is: &dyn Fn(&Decided) -> bool| shown.iter().filter(|(d, _)| is(d)).count();
    let misconfigured = of(&|d| d.is_misconfigured());
    let short = of(&|d| d.is_short() && !d.is_misconfigured());
    let uneven = of(&|d| d.is_uneven() && !d.is_short() && !d.is_misconfigured());
    let good = shown.len() - misconfigured - short - uneven;
    let mut parts = vec![format!("{good} as asked for")];
    let others = [
        (short, "short"),
        (uneven, "uneven"),
        (misconfigured, "misconfigured"),
    ];
    parts.extend(
        others
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| format!("{n} {word}")),
    );
    let title = page.paint.bold(&count(shown.len(), "Placement"));
    page.line(0, &format!("{title}: {}", parts.join(", ")));
    let trouble: Vec<&Decided> = shown
        .iter()
        .map(|(d, _)| *d)
        .filter(|d| is_trouble(d))
        .collect();
    if !trouble.is_empty() {
        let header = [("PLACEMENT", false), ("CLUSTERS", true), ("WHY", false)];
        let mut table = Table::new(header.into());
        for decided in trouble.iter().take(ROWS_MAX) {
            let n = decided.clusters().count();
            let clusters = match decided.fact.spec.number_of_clusters {
                Some(asked) => format!("{n} of {asked}"),
                None => n.to_string(),
            };
            let label = Cell::plain(outcome.label(decided));
            table.row(vec![
                label,
                Cell::plain(clusters),
                Cell::plain(why(decided)),
            ]);
        }
        table.write(2, page);
        if trouble.len() > ROWS_MAX {
            page.line(2, &format!("… and {} more", trouble.len() - ROWS_MAX));
        }
    }
    moves(shown, page);
}

/// The most important condition.
fn why(decided: &Decided) -> String {
    let first = [
        ConditionType::Misconfigured,
        ConditionType::SpreadSatisfied,
        ConditionType::Satisfied,
    ];
    let told = first.into_iter().find_map(|kind| {
        let condition = decided.condition(kind)?;
        let is_good = condition.status != (kind == ConditionType::Misconfigured);
        (!is_good).then_some(condition)
    });
    let line = |message: &str| message.lines().next().unwrap_or_default().to_owned();
    told.map_or_else(String::new, |condition| {
        format!("{}: {}", condition.reason.name(), line(&condition.message))
    })
}

fn moves(shown: &[(&Decided, Option<&Difference>)], page: &mut Page) {
    let differences = shown.iter().filter_map(|(_, difference)| *difference);
    let moving: Vec<&Difference> = differences.filter(|d| d.moves()).collect();
    if moving.is_empty() {
        return;
    }
    let gone: usize = moving.iter().map(|d| d.gone.len()).sum();
    let new: usize = moving.iter().map(|d| d.new.len()).sum();
    let placements = count(moving.len(), "Placement");
    let verb = if moving.len() == 1 { "moves" } else { "move" };
    page.line(
        2,
        &format!("{placements} {verb} clusters: {gone} gone, {new} new in all"),
    );
}
