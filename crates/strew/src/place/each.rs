//! `--what-if lose-each=KEY`: every topology of a key lost in turn.

use serde::Serialize;
use serde_json::{Value, json};
use strew_view::placement::PlacementView;

use super::decide::Decided;
use super::difference::Difference;
use super::text::Look;
use crate::explain_text::Page;
use crate::explain_text::table::{Cell, Table, Tone};
use crate::text::count;

/// The effect of the loss of one topology.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Loss {
    key: String,
    value: String,
    /// Clusters that are lost.
    clusters: usize,
    /// Placements with fewer clusters than asked for, as `namespace/name`.
    short: Vec<String>,
    /// Placements that are not spread as asked for, and have enough clusters.
    uneven: Vec<String>,
    /// How each Placement changes.
    changes: Vec<Difference>,
}

impl Loss {
    /// The loss of `value`, with the results of the Placements that are shown.
    pub(super) fn of(
        (key, value): (&str, &str),
        clusters: usize,
        shown: Vec<(Decided, Option<Difference>)>,
    ) -> Self {
        let named = |is: &dyn Fn(&PlacementView) -> bool| -> Vec<String> {
            let views = shown.iter().map(|(decided, _)| &decided.view);
            views
                .filter(|view| is(view))
                .map(PlacementView::label)
                .collect()
        };
        Self {
            key: key.to_owned(),
            value: value.to_owned(),
            clusters,
            short: named(&PlacementView::is_short),
            uneven: named(&|view| view.is_trouble() && !view.is_short()),
            changes: shown.into_iter().filter_map(|(_, change)| change).collect(),
        }
    }

    /// True if a Placement is not as asked for then.
    pub(super) fn is_trouble(&self) -> bool {
        !self.short.is_empty() || !self.uneven.is_empty()
    }
}

/// The form for programs.
pub(super) fn list(losses: &[Loss]) -> Value {
    json!({
        "apiVersion": strew_view::explanation::API_VERSION,
        "kind": "PlacementLossList",
        "items": losses,
    })
}

/// The form for people.
pub(super) fn write(losses: &[Loss], n_placements: usize, look: &Look<'_>) -> String {
    let mut page = super::text::page(look);
    let keys: Vec<&str> = losses.iter().map(|loss| loss.key.as_str()).collect();
    let key = keys.first().copied().unwrap_or_default();
    let title = page
        .paint
        .bold(&format!("What if each {key} is lost in turn"));
    page.line(
        0,
        &format!("{title} ({})", count(n_placements, "Placement")),
    );
    let header = [
        ("LOST", false),
        ("CLUSTERS", true),
        ("SHORT", true),
        ("UNEVEN", true),
        ("GONE", true),
        ("NEW", true),
    ];
    let mut table = Table::new(header.into());
    for loss in losses {
        let gone: usize = loss.changes.iter().map(|change| change.gone.len()).sum();
        let new: usize = loss.changes.iter().map(|change| change.new.len()).sum();
        let number = |n: usize| Cell::of(n, if n == 0 { Tone::Dim } else { Tone::Bad });
        table.row(vec![
            Cell::plain(format!("{}={}", loss.key, loss.value)),
            Cell::plain(loss.clusters),
            number(loss.short.len()),
            number(loss.uneven.len()),
            Cell::plain(gone),
            Cell::plain(new),
        ]);
    }
    table.write(2, &mut page);
    for loss in losses {
        told(loss, &mut page);
    }
    super::text::finished(page, look)
}

/// The number of Placements that are shown per loss.
const NAMES_MAX: usize = 12;

fn told(loss: &Loss, page: &mut Page) {
    if !loss.is_trouble() {
        return;
    }
    page.heading(&format!("{}={}", loss.key, loss.value));
    for (word, names) in [("short", &loss.short), ("uneven", &loss.uneven)] {
        if !names.is_empty() {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let names = super::text::folded(&names, NAMES_MAX);
            page.wrapped(2, &format!("{word}: {names}"));
        }
    }
}
