//! Tables without borders: columns two spaces apart, numbers to the right.

use std::borrow::Cow;

use super::Page;
use super::paint::Paint;

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

    fn width(&self) -> usize {
        self.text.chars().count()
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

    fn widths(&self) -> Vec<usize> {
        let column = |(i, (title, _)): (usize, &(Cow<'static, str>, bool))| {
            let cells = self.rows.iter().map(|row| row[i].width());
            cells.max().unwrap_or(0).max(title.chars().count())
        };
        self.header.iter().enumerate().map(column).collect()
    }

    /// The width of the widest line.
    pub(crate) fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
    }

    pub(crate) fn write(&self, indent: usize, out: &mut Page) {
        let widths = self.widths();
        let paint = out.paint;
        let titles = self.header.iter();
        let titles: Vec<Cell> = titles
            .map(|(title, _)| Cell::of(title, Tone::Dim))
            .collect();
        let lines = std::iter::once(&titles).chain(&self.rows);
        for (above, row) in lines.enumerate() {
            let mut line = String::new();
            let last = row.iter().rposition(|cell| !cell.text.is_empty());
            for (i, cell) in row.iter().enumerate() {
                if Some(i) > last {
                    break;
                }
                let padding = " ".repeat(widths[i] - cell.width());
                let text = cell.painted(paint);
                match (self.header[i].1, Some(i) == last) {
                    (true, _) => line.extend([padding, text]),
                    (false, true) => line.push_str(&text),
                    (false, false) => line.extend([text, padding]),
                }
                if Some(i) != last {
                    line.push_str("  ");
                }
            }
            out.line(indent, &line);
            for (_, note) in self.notes.iter().filter(|(at, _)| *at == above) {
                out.wrapped(indent + 4, note);
            }
        }
    }
}
