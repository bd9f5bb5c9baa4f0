//! Lines of a stream, each of bounded length.

use std::io::{self, BufRead};

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Without its end.
    Text(Vec<u8>),
    /// It had more bytes than this, and was skipped.
    TooLong(usize),
}

/// Reads lines.
pub(super) struct Lines<R> {
    from: R,
    max: usize,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(from: R, max: usize) -> Self {
        Self { from, max }
    }

    /// The next line; `None` at the end. At most `max` bytes of a long line are kept.
    fn read(&mut self) -> io::Result<Option<Line>> {
        let mut text = Vec::new();
        let mut is_too_long = false;
        let mut has_any = false;
        loop {
            let block = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                block => block?,
            };
            if block.is_empty() {
                break;
            }
            has_any = true;
            let end = block.iter().position(|byte| *byte == b'\n');
            let part = &block[..end.unwrap_or(block.len())];
            is_too_long |= text.len() + part.len() > self.max;
            if !is_too_long {
                text.extend_from_slice(part);
            }
            let n_used = part.len() + usize::from(end.is_some());
            self.from.consume(n_used);
            if end.is_some() {
                break;
            }
        }
        Ok(has_any.then_some(match is_too_long {
            true => Line::TooLong(self.max),
            false => Line::Text(text),
        }))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_costs_no_other() {
        let text = b"one\n\n0123456789\nlast" as &[u8];
        let small = io::BufReader::with_capacity(3, text);
        let lines: Vec<Line> = Lines::new(small, 4).map(Result::unwrap).collect();
        let text = |text: &str| Line::Text(text.into());
        assert_eq!(
            lines,
            [text("one"), text(""), Line::TooLong(4), text("last")]
        );
    }
}
