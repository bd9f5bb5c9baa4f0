//! Deterministic names and uids.

use std::fmt;

use strew_manifest::names::{N_BASE_CHARS_MAX, N_SUFFIX_CHARS, SUFFIX_CHARS, fnv_1a_64};
use strew_model::Prng;

/// A name with a random suffix from `dice`.
pub fn generated_name(base: &str, dice: &mut Prng) -> String {
    let suffix = (0..N_SUFFIX_CHARS).map(|_| char::from(*dice.pick(SUFFIX_CHARS)));
    base.chars().take(N_BASE_CHARS_MAX).chain(suffix).collect()
}

/// A number in the form in which upstream writes hashes into names: in decimal, with each digit mapped into the
/// alphabet. Source: `rand.SafeEncodeString`.
pub(super) fn safe_encode(number: u32) -> String {
    let digits = number.to_string();
    let encode = |digit: u8| char::from(SUFFIX_CHARS[usize::from(digit) % SUFFIX_CHARS.len()]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_look_like_upstreams() {
        assert_eq!(fnv_1a_32(b"foobar"), 0xbf9c_f968);
        assert_eq!(safe_encode(1_234_567_890), "56789bcdf4");
        let uid = uid("Pod", "default", "web");
        let lengths: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
    }
}
