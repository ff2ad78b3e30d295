//! Headers that are lists; not what their members mean.

use http::{HeaderMap, HeaderName};

/// The members of a list, in all lines of a header, without the blanks around them.
pub fn members<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let lines = headers.get_all(name).into_iter();
    lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}
