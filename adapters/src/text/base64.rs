//! Base64 as Atom 0.3 allowed it for any text (RFC 4648 section 4); reading only.

/// The bytes, if the text is base64 and nothing else; white space is passed over, padding may be missing.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let digits = digits.strip_suffix(b"==").or_else(|| digits.strip_suffix(b"=")).unwrap_or(&digits);
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for four in digits.chunks(4) {
        let mut bits = 0_u32;
        for digit in four {
            bits = (bits << 6) | value(*digit)?;
        }
        // A last group of two digits holds one byte, of three digits two bytes; one digit alone holds nothing.
        bits <<= 6 * (4 - four.len());
        let [_, all @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(&all[..four.len().checked_sub(1).filter(|count| *count > 0)?]);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_is_read_with_and_without_padding() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9\n vYg", "foob")]
        {
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for text in ["Z", "Zm9vY", "not base64", "Zg=a", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
