//! Tables without borders: columns two spaces apart, numbers to the right.

use std::borrow::Cow;

use super::Page;
use super::paint::Paint;
use crate::text::widest;

/// The style of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Dim,
    Good,
    Bad,
}

/// A cell.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

impl Cell {
    pub(crate) fn plain(text: impl ToString) -> Self {
        Self::of(text, Tone::Plain)
    }

    pub(crate) fn of(text: impl ToString, tone: Tone) -> Self {
        Self {
            text: text.to_string(),
            tone,
        }
    }

    /// A number, or a dim dash instead of none.
    pub(crate) fn number(number: Option<impl ToString>) -> Self {
        number.map_or_else(|| Self::of("-", Tone::Dim), Self::plain)
    }

    fn painted(&self, paint: Paint) -> String {
        match self.tone {
            Tone::Plain => self.text.clone(),
            Tone::Dim => paint.dim(&self.text),
            Tone::Good => paint.good(&self.text),
            Tone::Bad => paint.bad(&self.text),
        }
    }
}

/// Rows below a header; all rows have as many cells as the header. A row may have a note below it.
#[derive(Default)]
pub(crate) struct Table {
    header: Vec<(Cow<'static, str>, bool)>,
    rows: Vec<Vec<Cell>>,
    /// By the number of rows above it.
    notes: Vec<(usize, String)>,
}

impl Table {
    /// A table with these columns; `true`: numbers, aligned to the right.
    pub(crate) fn new(header: Vec<(impl Into<Cow<'static, str>>, bool)>) -> Self {
        let header = header.into_iter();
        Self {
            header: header.map(|(title, right)| (title.into(), right)).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A note below the last row.
    pub(crate) fn note(&mut self, text: String) {
        if !text.is_empty() {
            self.notes.push((self.rows.len(), text));
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// A further column, with a cell for each row; `right`: numbers, aligned to the right.
    pub(crate) fn column(
        &mut self,
        title: impl Into<Cow<'static, str>>,
        right: bool,
        cells: impl IntoIterator<Item = Cell>,
    ) {
        self.header.push((title.into(), right));
        for (row, cell) in cells.into_iter().enumerate() {
            match self.rows.get_mut(row) {
                Some(row) => row.push(cell),
                None => self.rows.push(vec![cell]),
            }
        }
    }

    fn titles(&self) -> Vec<Cell> {
        let titles = self.header.iter();
        titles
            .map(|(title, _)| Cell::of(title, Tone::Dim))
            .collect()
    }

    fn lines<'a>(&'a self, titles: &'a [Cell]) -> Vec<&'a [Cell]> {
        let rows = self.rows.iter().map(Vec::as_slice);
        std::iter::once(titles).chain(rows).collect()
    }

    /// The width of the widest line.
    pub(crate) fn width(&self) -> usize {
        let widths = widths(&self.lines(&self.titles()));
        widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    pub(crate) fn write(&self, indent: usize, out: &mut Page) {
        let rights: Vec<bool> = self.header.iter().map(|(_, right)| *right).collect();
        let lines = aligned(&self.lines(&self.titles()), &rights, GAP, out.paint);
        for (above, line) in lines.iter().enumerate() {
            out.line(indent, line);
            for (_, note) in self.notes.iter().filter(|(at, _)| *at == above) {
                out.wrapped(indent + 4, note);
            }
        }
    }
}

/// The number of spaces between columns.
const GAP: usize = 2;

/// The width of each column; the first row has as many cells as every other.
fn widths(rows: &[&[Cell]]) -> Vec<usize> {
    let n = rows.first().map_or(0, |row| row.len());
    let column = |i: usize| widest(rows.iter().map(|row| &row[i].text));
    (0..n).map(column).collect()
}

/// A line for each row, its cells in columns that are `gap` spaces apart; `rights`: which of them are aligned to the
/// right. Rows have as many cells as the first.
pub(crate) fn aligned(rows: &[&[Cell]], rights: &[bool], gap: usize, paint: Paint) -> Vec<String> {
    let widths = widths(rows);
    let line = |row: &&[Cell]| {
        let mut line = String::new();
        let Some(last) = row.iter().rposition(|cell| !cell.text.is_empty()) else {
            return line;
        };
        for (i, cell) in row[..=last].iter().enumerate() {
            let padding = " ".repeat(widths[i] - cell.text.chars().count());
            let text = cell.painted(paint);
            match (rights.get(i), i == last) {
                (Some(true), _) => line.extend([padding, text]),
                (_, true) => line.push_str(&text),
                (_, false) => line.extend([text, padding]),
            }
            if i != last {
                line.extend(std::iter::repeat_n(' ', gap));
            }
        }
        line
    };
    rows.iter().map(line).collect()
}
