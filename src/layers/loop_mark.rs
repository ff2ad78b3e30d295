//! The mark on requests of our hub, by which every listener of this process knows them however they came back: through a name, a
//! proxy or another address. Not what is answered then.

use http::{HeaderMap, HeaderName, HeaderValue};

/// `CDN-Loop` (RFC 8586): those who pass a request on leave it as it is.
const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");

/// The mark of one process, made anew at each start.
#[derive(Clone, Debug)]
pub struct LoopMark(HeaderValue);

impl Default for LoopMark {
    fn default() -> Self {
        let id = hex::encode(rand::random::<[u8; 8]>());
        Self(HeaderValue::try_from(format!("everfeed-{id}")).expect("hexadecimal digits are visible"))
    }
}

impl LoopMark {
    /// Marks a request.
    pub fn put_on(&self, headers: &mut HeaderMap) {
        headers.insert(CDN_LOOP, self.0.clone());
    }

    /// True for a request that this process has marked.
    pub fn is_on(&self, headers: &HeaderMap) -> bool {
        let marks =
            headers.get_all(CDN_LOOP).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        marks.map(<[u8]>::trim_ascii).any(|mark| mark == self.0.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_known_by_its_own_process_alone_and_beside_others() {
        let (own, other) = (LoopMark::default(), LoopMark::default());
        let mut headers = HeaderMap::new();
        assert!(!own.is_on(&headers));
        own.put_on(&mut headers);
        assert!(own.is_on(&headers) && !other.is_on(&headers));
        let joined = format!("a-network, {}", headers[CDN_LOOP].to_str().unwrap());
        headers.insert(CDN_LOOP, joined.parse().unwrap());
        assert!(own.is_on(&headers));
    }
}
