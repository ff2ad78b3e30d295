//! Base64 as Atom has it for bytes, and 0.3 for any text (RFC 4648 section 4), with what its
//! writers got wrong.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The bytes, if the text is base64 and nothing else; white space is passed over, padding may be
/// missing.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    LENIENT.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_is_read_with_and_without_padding() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm8", "fo"),
            ("Zm9v", "foo"),
            ("Zm9\n vYg", "foob"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for text in ["Z", "Zm9vY", "not base64", "Zg=a", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
