//! Names with a random suffix, and hashes in names.

use strew_manifest::names::{N_BASE_CHARS_MAX, N_SUFFIX_CHARS, SUFFIX_CHARS};
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
    }
}
