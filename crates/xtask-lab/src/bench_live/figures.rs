//! Medians, quantiles, and a table with bounds.

use std::fmt;

/// The middle figure, or the mean of the two in the middle.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let n = figures.len();
    match n {
        0 => f64::NAN,
        n if n % 2 == 1 => figures[n / 2],
        n => f64::midpoint(figures[n / 2 - 1], figures[n / 2]),
    }
}

/// The smallest figure that this share of all does not exceed (nearest rank).
pub(crate) fn quantile(figures: &[f64], share: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// A table of Markdown, for docs/benchmarks.md.
pub(super) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    is_met: bool,
}

impl Table {
    pub(super) fn new(head: &[&str]) -> Self {
        let mut head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
        head.push("asked".to_owned());
        Self {
            head,
            rows: Vec::new(),
            is_met: true,
        }
    }

    /// A row with a bound.
    pub(super) fn row(&mut self, cells: &[&str], asked: &str, is_met: bool) {
        let missed = if is_met { "" } else { ": MISSED" };
        self.push(cells, format!("{asked}{missed}"));
        self.is_met &= is_met;
    }

    /// A row without a bound.
    pub(super) fn note(&mut self, cells: &[&str]) {
        self.push(cells, String::new());
    }

    fn push(&mut self, cells: &[&str], asked: String) {
        let cells = cells.iter().map(|&cell| cell.to_owned());
        self.rows.push(cells.chain([asked]).collect());
    }

    /// Whether all bounds are met.
    pub(super) fn is_met(&self) -> bool {
        self.is_met
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        writeln!(f, "{}", line(&self.head))?;
        writeln!(f, "|{}", "---|".repeat(self.head.len()))?;
        self.rows
            .iter()
            .try_for_each(|row| writeln!(f, "{}", line(row)))
    }
}

#[test]
fn a_quantile_is_one_of_the_figures() {
    let figures: Vec<f64> = (1..=200).rev().map(f64::from).collect();
    assert_eq!(quantile(&figures, 0.5), 100.0);
    assert_eq!(quantile(&figures, 0.99), 198.0);
    assert_eq!(quantile(&[7.0], 0.99), 7.0);
    assert!(quantile(&[], 0.5).is_nan());
    assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(vec![4.0, 1.0]), 2.5);
}

#[test]
fn a_missed_bound_is_said() {
    let mut table = Table::new(&["", "strew"]);
    table.row(&["a", "1"], "at most 2", true);
    table.note(&["b", "9"]);
    assert!(table.is_met());
    table.row(&["c", "3"], "at most 2", false);
    assert!(!table.is_met());
    assert_eq!(
        table.to_string(),
        "|  | strew | asked |\n|---|---|---|\n| a | 1 | at most 2 |\n| b | 9 |  |\n| c | 3 | at most 2: MISSED |\n"
    );
}
