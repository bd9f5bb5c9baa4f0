//! SHA-256.

use sha2::{Digest, Sha256};

/// The digest of all parts in lower case hexadecimal digits. The lengths are hashed, too, so that different lists of
/// parts have different digests.
pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut context = Sha256::new();
    for part in parts {
        context.update((part.len() as u64).to_be_bytes());
        context.update(part);
    }
    hexadecimal(&context.finalize())
}

/// The digest of a text in lower case hexadecimal digits.
pub fn of_text(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_standard() {
        // FIPS 180-2, B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_text("abc"), expected);
    }

    #[test]
    fn where_a_part_ends_matters() {
        let of = |parts: &[&str]| of_parts(parts.iter().map(|part| part.as_bytes()));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
    }
}
