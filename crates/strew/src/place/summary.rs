//! Many Placements at a glance: which are short, which are uneven, what moves.

use strew_placement::facts::status::ConditionType;
use strew_view::fleet::is_good;
use strew_view::placement::PlacementView;

use super::difference::Difference;
use super::text::{ROWS_MAX, Shown};
use crate::explain_text::Page;
use crate::explain_text::table::{Cell, Table};
use crate::text::count;

/// Up to this number of Placements need no summary.
const FEW: usize = 3;

/// The text above many Placements.
pub(super) fn write(shown: &[Shown<'_>], page: &mut Page) {
    if shown.len() <= FEW {
        return;
    }
    if !page.text.is_empty() {
        page.line(0, "");
    }
    let of = |is: &dyn Fn(&PlacementView) -> bool| {
        let views = shown.iter().map(|(decided, _)| &decided.view);
        views.filter(|view| is(view)).count()
    };
    let misconfigured = of(&|v| v.is_misconfigured());
    let short = of(&|v| v.is_short() && !v.is_misconfigured());
    let uneven = of(&|v| v.is_uneven() && !v.is_short() && !v.is_misconfigured());
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
    let views = shown.iter().map(|(decided, _)| &decided.view);
    let trouble: Vec<&PlacementView> = views.filter(|view| view.is_trouble()).collect();
    if !trouble.is_empty() {
        let header = [("PLACEMENT", false), ("CLUSTERS", true), ("WHY", false)];
        let mut table = Table::new(header.into());
        for view in trouble.iter().take(ROWS_MAX) {
            table.row(vec![
                Cell::plain(view.label()),
                Cell::plain(got(view, view.clusters().count())),
                Cell::plain(why(view)),
            ]);
        }
        table.write(2, page);
        if trouble.len() > ROWS_MAX {
            page.line(2, &format!("… and {} more", trouble.len() - ROWS_MAX));
        }
    }
    moves(shown, page);
}

/// `3 of 4`, or `3` where all clusters are asked for.
pub(super) fn got(view: &PlacementView, n: usize) -> String {
    match view.wanted() {
        Some(wanted) => format!("{n} of {wanted}"),
        None => n.to_string(),
    }
}

/// The most important condition.
fn why(view: &PlacementView) -> String {
    let first = [
        ConditionType::Misconfigured,
        ConditionType::SpreadSatisfied,
        ConditionType::Satisfied,
    ];
    let conditions = first.into_iter().filter_map(|kind| view.condition(kind));
    let told = conditions.into_iter().find(|condition| !is_good(condition));
    told.map_or_else(String::new, |condition| {
        let line = condition.message.lines().next().unwrap_or_default();
        format!("{}: {line}", condition.reason)
    })
}

fn moves(shown: &[Shown<'_>], page: &mut Page) {
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
