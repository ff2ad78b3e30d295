//! Headers that say what a consumer accepts, read (RFC 9110 section 12.4.2); not what it gets.

/// The media ranges of an `Accept` header that can be parsed, with their quality in thousandths.
pub(crate) fn media_ranges(accept: &str) -> Vec<(String, u16)> {
    let token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&b))
    };
    let range = |text: &str| {
        text.split_once('/')
            .is_some_and(|(kind, subtype)| token(kind) && token(subtype))
    };
    accept
        .split(',')
        .map(weighted)
        .filter(|(name, _)| range(name))
        .collect()
}

/// A name in lower case and its quality in thousandths; a quality that cannot be read counts as 1.
pub(crate) fn weighted(part: &str) -> (String, u16) {
    let mut bits = part.split(';').map(str::trim);
    let name = bits.next().unwrap_or_default().to_ascii_lowercase();
    for bit in bits {
        let (key, value) = bit.split_once('=').unwrap_or((bit, ""));
        if key.trim().eq_ignore_ascii_case("q")
            && let Some(quality) = thousandths(value.trim())
        {
            return (name, quality);
        }
    }
    (name, 1000)
}

/// `0`, `0.333`, `1.000` (RFC 9110 section 12.4.2).
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{fraction:0<3}").parse().ok()?;
    match whole {
        "0" => Some(fraction),
        "1" if fraction == 0 => Some(1000),
        _ => None,
    }
}
