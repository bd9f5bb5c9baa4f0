//! Deterministic names and uids.

use std::fmt;

use strew_model::Prng;

/// Letters and digits that form no words. Source: `k8s.io/apimachinery/pkg/util/rand`.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const N_SUFFIX_CHARS: usize = 5;
const N_SUFFIXES: u64 = 27u64.pow(N_SUFFIX_CHARS as u32);
/// Prime to 27, so that counting in such steps visits every suffix once; near the golden section of `N_SUFFIXES`, so
/// that consecutive suffixes look different.
const STRIDE: u64 = 8_868_101;

/// The longest prefix of a generated name: 63 less the suffix. Source: `k8s.io/apiserver/pkg/storage/names`.
const N_BASE_CHARS_MAX: usize = 58;

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
            name.push(char::from(ALPHABET[(rest % 27) as usize]));
            rest /= 27;
        }
        name
    }
}

/// A name with a random suffix from `dice`.
pub fn generated_name(base: &str, dice: &mut Prng) -> String {
    let suffix = (0..N_SUFFIX_CHARS).map(|_| char::from(*dice.pick(ALPHABET)));
    base.chars().take(N_BASE_CHARS_MAX).chain(suffix).collect()
}

/// A number in the form in which upstream writes hashes into names: in decimal, with each digit mapped into the
/// alphabet. Source: `rand.SafeEncodeString`.
pub(super) fn safe_encode(number: u32) -> String {
    let digits = number.to_string();
    let encode = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    digits.bytes().map(encode).collect()
}

/// A uid for an object without one, the same in every run.
pub(super) fn uid(kind: &str, namespace: &str, name: &str) -> String {
    let text = format!("{kind}/{namespace}/{name}");
    let (high, low) = (fnv_1a_64(1, text.as_bytes()), fnv_1a_64(2, text.as_bytes()));
    let groups = Groups(high, low);
    groups.to_string()
}

struct Groups(u64, u64);

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(high, low) = *self;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}

/// Source: the FNV reference; the constants are those of FNV-1a with 32 bits.
pub(super) fn fnv_1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

fn fnv_1a_64(seed: u64, bytes: &[u8]) -> u64 {
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

    #[test]
    fn hashes_look_like_upstreams() {
        assert_eq!(fnv_1a_32(b"foobar"), 0xbf9c_f968);
        assert_eq!(safe_encode(1_234_567_890), "56789bcdf4");
        let uid = uid("Pod", "default", "web");
        let lengths: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
    }
}
