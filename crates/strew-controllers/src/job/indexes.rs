//! Sets of completion indexes, as an Indexed Job's status writes them: `1,3-5,7`.

use std::collections::BTreeSet;
use std::fmt;

/// Completion indexes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Indexes(BTreeSet<u32>);

impl Indexes {
    /// Parses the text of a status or a policy. Leaves out indexes from `completions` on, and invalid parts.
    pub(super) fn parse(text: &str, completions: u32) -> Self {
        let mut all = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
                all.extend((first..completions).take_while(|&index| index <= last));
            }
        }
        Self(all)
    }

    pub(super) fn insert(&mut self, index: u32) -> bool {
        self.0.insert(index)
    }

    pub(super) fn contains(&self, index: u32) -> bool {
        self.0.contains(&index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// The number of indexes.
    pub(super) fn total(&self) -> i32 {
        i32::try_from(self.0.len()).unwrap_or(i32::MAX)
    }
}

impl FromIterator<u32> for Indexes {
    fn from_iter<I: IntoIterator<Item = u32>>(indexes: I) -> Self {
        Self(indexes.into_iter().collect())
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.iter().copied().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if(|&next| Some(next) == last.checked_add(1)) {
                last = next;
            }
            write!(f, "{comma}{first}")?;
            comma = ",";
            match last - first {
                0 => {}
                1 => write!(f, ",{last}")?,
                _ => write!(f, "-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_ranges_of_three_and_more() {
        for (text, expected, n) in [
            ("", "", 0),
            ("4", "4", 1),
            ("0-1", "0,1", 2),
            ("1,3-5,7", "1,3-5,7", 5),
            ("2,1,0", "0-2", 3),
            ("7-99", "7-9", 3),
            ("5-2,x,-1,3", "3", 1),
            ("0-4294967295", "0-9", 10),
        ] {
            let indexes = Indexes::parse(text, 10);
            assert_eq!(indexes.to_string(), expected, "{text}");
            assert_eq!(indexes.total(), n, "{text}");
        }
    }
}
