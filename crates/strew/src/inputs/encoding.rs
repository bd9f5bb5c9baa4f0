//! UTF-16, which `>` of Windows PowerShell writes.

/// The text as UTF-8 if it begins with the byte order mark of UTF-16 and is valid; other bytes as they are.
pub(super) fn as_utf8(bytes: Vec<u8>) -> Vec<u8> {
    let unit = match mark_of(&bytes) {
        Some(Mark::Little) => u16::from_le_bytes,
        Some(Mark::Big) => u16::from_be_bytes,
        None => return bytes,
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().skip(1).map(|pair| unit(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    match text {
        Ok(text) if rest.is_empty() => text.into_bytes(),
        _ => bytes,
    }
}

/// True if the bytes begin as UTF-16, where NUL is part of most characters.
pub(super) fn is_utf16(bytes: &[u8]) -> bool {
    mark_of(bytes).is_some()
}

/// The byte order mark of UTF-16.
enum Mark {
    Little,
    Big,
}

fn mark_of(bytes: &[u8]) -> Option<Mark> {
    match bytes {
        [0xff, 0xfe, ..] => Some(Mark::Little),
        [0xfe, 0xff, ..] => Some(Mark::Big),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_same_in_both_orders() {
        let units = || "\u{feff}a: ö 😀\r\n".encode_utf16();
        let little = units().flat_map(u16::to_le_bytes).collect();
        let big = units().flat_map(u16::to_be_bytes).collect();
        assert_eq!(as_utf8(little), "a: ö 😀\r\n".as_bytes());
        assert_eq!(as_utf8(big), "a: ö 😀\r\n".as_bytes());
    }

    #[test]
    fn other_bytes_stay() {
        let half_a_character = b"\xff\xfe\x3d\xd8".to_vec();
        let half_a_unit = b"\xff\xfea\x00:".to_vec();
        let utf8 = "\u{feff}a: 1".as_bytes().to_vec();
        for bytes in [half_a_character, half_a_unit, utf8, vec![0xff], Vec::new()] {
            assert_eq!(as_utf8(bytes.clone()), bytes);
        }
    }
}
