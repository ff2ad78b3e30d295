//! The mark by which this everfeed knows its own requests when they come back to it (RFC 8586); not a proxy's count of steps.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header of the mark. Networks of delivery pass it on unchanged.
pub const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");

/// The mark of one application: nobody else has it, another everfeed on the same machine included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnMark(HeaderValue);

impl OwnMark {
    /// A mark that no other application has.
    pub fn random() -> Self {
        let number: u64 = rand::random();
        let text = format!("everfeed-{number:016x}");
        Self(HeaderValue::try_from(text).expect("hex digits can stand in a header"))
    }

    /// Puts the mark on a request, or on the answer to one.
    pub fn put_on(&self, headers: &mut HeaderMap) {
        headers.append(CDN_LOOP, self.0.clone());
    }

    /// True for headers that carry the mark, among those of others.
    pub fn is_on(&self, headers: &HeaderMap) -> bool {
        let steps =
            headers.get_all(CDN_LOOP).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        steps.map(<[u8]>::trim_ascii).any(|step| step == self.0.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_known_among_those_of_others() {
        let (own, other) = (OwnMark::random(), OwnMark::random());
        let mut headers = HeaderMap::new();
        assert!(!own.is_on(&headers));
        other.put_on(&mut headers);
        assert!(!own.is_on(&headers));
        own.put_on(&mut headers);
        assert!(own.is_on(&headers));
        let joined = format!("cdn, {}", own.0.to_str().unwrap());
        let headers = HeaderMap::from_iter([(CDN_LOOP, HeaderValue::try_from(joined).unwrap())]);
        assert!(own.is_on(&headers));
    }
}
