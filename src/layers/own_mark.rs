//! The mark by which this everfeed knows its own requests when they come back to it (RFC 8586); not
//! a proxy's count of steps.

use super::{FetchError, Request, members};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header::VIA};
use tower::{Service, ServiceBuilder, util::BoxCloneSyncService};

/// The header of the mark. Networks of delivery pass it on unchanged.
pub const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");

/// The name of every everfeed in `Via`, which its proxy adds to what it passes on.
pub const VIA_NAME: &str = "everfeed";

/// Number of times that a request has passed through the proxy of an everfeed.
pub fn passes(headers: &HeaderMap) -> usize {
    members(headers, &VIA)
        .filter(|step| step.ends_with(VIA_NAME.as_bytes()))
        .count()
}

/// The end of the mark on a request to a callback: a parameter of the step.
const DELIVERY: &[u8] = b"; delivery";

/// The mark of one application: nobody else has it, another everfeed on the same machine included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnMark(HeaderValue);

impl Default for OwnMark {
    fn default() -> Self {
        Self::random()
    }
}

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

    /// Puts the mark on a request to a callback. Such a one is passed on where we stand before the
    /// server that it is for.
    fn put_on_delivery(&self, headers: &mut HeaderMap) {
        let mut value = self.0.as_bytes().to_vec();
        value.extend_from_slice(DELIVERY);
        headers.append(
            CDN_LOOP,
            HeaderValue::from_bytes(&value).expect("both parts can stand in a header"),
        );
    }

    /// True for headers that carry the mark, among those of others.
    pub fn is_on(&self, headers: &HeaderMap) -> bool {
        self.has_step(headers, b"")
    }

    /// True for headers that carry the mark of a request to a callback.
    pub fn is_on_delivery(&self, headers: &HeaderMap) -> bool {
        self.has_step(headers, DELIVERY)
    }

    fn has_step(&self, headers: &HeaderMap, end: &[u8]) -> bool {
        members(headers, &CDN_LOOP).any(|step| step.strip_suffix(end) == Some(self.0.as_bytes()))
    }
}

/// The way to callbacks, which knows an answer of this everfeed itself by the mark.
pub fn marked_callbacks<S>(
    client: S,
    mark: OwnMark,
) -> BoxCloneSyncService<Request, Response<Bytes>, FetchError>
where
    S: Service<Request, Response = Response<Bytes>, Error = FetchError, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let sent = mark.clone();
    let service = ServiceBuilder::new()
        .map_request(move |mut request: Request| {
            sent.put_on_delivery(request.headers_mut());
            request
        })
        .map_result(
            move |answer: Result<Response<Bytes>, FetchError>| match answer {
                Ok(answer) if mark.is_on(answer.headers()) => Err(FetchError::LeadsBack),
                other => other,
            },
        )
        .service(client);
    BoxCloneSyncService::new(service)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::Fault;
    use tower::ServiceExt as _;

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
        assert!(own.is_on(&headers) && !own.is_on_delivery(&headers));
    }

    #[tokio::test]
    async fn a_callback_that_is_answered_here_leads_back() {
        let own = OwnMark::random();
        for (answers_itself, leads_back) in [(true, true), (false, false)] {
            let mark = own.clone();
            let here = tower::service_fn(move |request: Request| {
                assert!(mark.is_on_delivery(request.headers()) && !mark.is_on(request.headers()));
                let mut answer = Response::new(Bytes::new());
                if answers_itself {
                    mark.put_on(answer.headers_mut());
                }
                std::future::ready(Ok::<_, FetchError>(answer))
            });
            let answer = marked_callbacks(here, own.clone())
                .oneshot(Request::default())
                .await;
            assert_eq!(matches!(answer, Err(FetchError::LeadsBack)), leads_back);
        }
        let error = FetchError::LeadsBack;
        assert_eq!(
            (error.fault(), error.may_pass()),
            (Fault::Configuration, false)
        );
    }
}
