//! Names that the API server completes: `generateName`.

/// Letters and digits that form no words. Source: `k8s.io/apimachinery/pkg/util/rand`.
pub const SUFFIX_CHARS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The length of a suffix.
pub const N_SUFFIX_CHARS: usize = 5;
/// The longest prefix of a generated name: 63 less the suffix. Source: `k8s.io/apiserver/pkg/storage/names`.
pub const N_BASE_CHARS_MAX: usize = 58;

const N_SUFFIXES: u64 = 27u64.pow(N_SUFFIX_CHARS as u32);
/// Prime to 27, so that counting in such steps visits every suffix once; near the golden section of `N_SUFFIXES`, so
/// that consecutive suffixes look different.
const STRIDE: u64 = 8_868_101;

/// The source of generated suffixes: a counter, so that equal runs give equal names. The first 14,348,907 suffixes all
/// differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameSource {
    next: u64,
}

impl NameSource {
    /// Starts at a number derived from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            next: fnv_1a_64(seed, b"") % N_SUFFIXES,
        }
    }

    /// A name for `generateName: BASE`.
    pub fn generate(&mut self, base: &str) -> String {
        let mut name: String = base.chars().take(N_BASE_CHARS_MAX).collect();
        let mut rest = self.next;
        self.next = (self.next + STRIDE) % N_SUFFIXES;
        for _ in 0..N_SUFFIX_CHARS {
            name.push(char::from(SUFFIX_CHARS[(rest % 27) as usize]));
            rest /= 27;
        }
        name
    }
}

/// A hash of 64 bits that a seed changes. Source: the FNV reference, FNV-1a.
pub fn fnv_1a_64(seed: u64, bytes: &[u8]) -> u64 {
    let seeded = seed.to_le_bytes();
    let all = seeded.iter().chain(bytes);
    all.fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_hundred_thousand_names_are_different_and_the_same_each_time() {
        let draw = || {
            let mut names = NameSource::new(7);
            (0..100_000)
                .map(|_| names.generate("web-"))
                .collect::<Vec<_>>()
        };
        let unique: BTreeSet<String> = draw().into_iter().collect();
        assert_eq!(unique.len(), 100_000);
        assert_eq!(draw(), draw());
        assert_ne!(
            NameSource::new(1).generate(""),
            NameSource::new(2).generate("")
        );
    }

    #[test]
    fn long_bases_are_cut() {
        assert_eq!(NameSource::new(0).generate(&"x".repeat(100)).len(), 63);
    }
}
