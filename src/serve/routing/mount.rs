//! Mounts: services that answer side by side, each for the requests that it takes; not what they
//! answer.

use super::own_layers;
use crate::{
    edge::body::{MountService, Response, ServeBody},
    serve::answers::refusal::Refusal,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{HeaderValue, Method, Request, request::Parts};
use std::{convert::Infallible, fmt};
use tower::{Service, ServiceExt as _, util::BoxCloneSyncService};

/// A service and the requests that it takes.
pub struct Mount {
    takes: Box<dyn Fn(&Parts) -> bool + Send + Sync>,
    service: MountService,
    /// The service for OPTIONS.
    options: MountService,
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mount").finish_non_exhaustive()
    }
}

/// Answers requests, or refuses them.
pub(crate) trait Handler: Clone + Send + Sync + 'static {
    /// The methods that it takes, as in `Allow`.
    const METHODS: &'static str = "GET, HEAD, OPTIONS";

    /// The answer. The body is not read yet.
    fn handle(
        &self,
        request: &Parts,
        body: ServeBody,
    ) -> impl Future<Output = Result<Response, Refusal>> + Send;
}

/// The longest path with its query, bytes: room for a position by the longest id, and for a bound
/// on what readers that wait keep in memory.
const URI_BYTES_MAX: usize = 8 << 10;

impl Mount {
    /// A service that answers the requests for which `takes` is true, with no layers around it but
    /// its own.
    pub fn new(
        takes: impl Fn(&Parts) -> bool + Send + Sync + 'static,
        service: MountService,
    ) -> Self {
        let options = service.clone();
        Self {
            takes: Box::new(takes),
            service,
            options,
        }
    }

    /// A mount of our own paths, in the layers of those.
    pub(crate) fn own<H: Handler>(
        takes: impl Fn(&Parts) -> bool + Send + Sync + 'static,
        handler: H,
    ) -> Self {
        let service = own_layers::own(service_of(handler), H::METHODS);
        let options = own_layers::with_methods(&service, H::METHODS);
        Self {
            options,
            ..Self::new(takes, service)
        }
    }

    /// A mount of somebody else's paths, whose answers carry nothing that their owner did not say.
    pub(crate) fn bare(
        takes: impl Fn(&Parts) -> bool + Send + Sync + 'static,
        handler: impl Handler,
    ) -> Self {
        Self::new(takes, BoxCloneSyncService::new(service_of(handler)))
    }

    /// The service, for a request that it takes.
    pub(super) fn service_for(&self, request: &Parts) -> Option<MountService> {
        let service = if request.method == Method::OPTIONS {
            &self.options
        } else {
            &self.service
        };
        (self.takes)(request).then(|| service.clone())
    }
}

/// A handler as a service: long targets are refused, and refusals become answers.
fn service_of(
    handler: impl Handler,
) -> impl Service<Request<ServeBody>, Response = Response, Error = Infallible, Future: Send + 'static>
+ Clone
+ Send
+ Sync
+ 'static {
    tower::service_fn(move |request: Request<ServeBody>| {
        let handler = handler.clone();
        async move {
            let (mut parts, body) = request.into_parts();
            // Requests that may be held have positions in their query.
            if parts.uri.query().is_some() {
                detach(&mut parts);
            }
            let target = parts.uri.path_and_query().map_or("", |it| it.as_str());
            let answer = if target.len() > URI_BYTES_MAX {
                Err(Refusal::long(URI_BYTES_MAX))
            } else {
                handler.handle(&parts, body).await
            };
            Ok::<_, Infallible>(answer.unwrap_or_else(|refusal| refusal.respond(&parts)))
        }
    })
}

/// The answer of a service, which never fails.
pub(crate) fn answer_of<Q: Send + 'static, A: 'static>(
    service: &BoxCloneSyncService<Q, A, Infallible>,
    asked: Q,
) -> BoxFuture<'static, A> {
    let answer = service.clone().oneshot(asked);
    let given = |Ok(answer): Result<A, Infallible>| answer;
    answer.map(given).boxed()
}

/// Gives a head memory of its own. What hyper hands out are parts of the buffer (8 KiB) into which
/// it was read: a request that is held would keep that, and hyper would need another one.
fn detach(head: &mut Parts) {
    for value in head.headers.values_mut() {
        if let Ok(mut own) = HeaderValue::from_bytes(value.as_bytes()) {
            own.set_sensitive(value.is_sensitive());
            *value = own;
        }
    }
    if let Ok(own) = head.uri.to_string().parse() {
        head.uri = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::Uri;

    #[test]
    fn a_head_that_is_detached_says_the_same_and_keeps_nothing_of_the_buffer_it_was_read_into() {
        let read = Bytes::from(b"/feeds/blog.json?since=cursor:1 \"tag\" caf\xe9 secret".to_vec());
        let target = || Uri::from_maybe_shared(read.slice(..31)).unwrap();
        let mut head = Request::new(()).into_parts().0;
        head.uri = target();
        for (name, part) in [
            ("if-none-match", 32..37),
            ("x-name", 38..42),
            ("authorization", 43..49),
        ] {
            let mut value = HeaderValue::from_maybe_shared(read.slice(part)).unwrap();
            value.set_sensitive(name == "authorization");
            head.headers.append(name, value);
        }
        let before = head.headers.clone();
        detach(&mut head);
        assert_eq!((&head.headers, head.uri == target()), (&before, true));
        assert!(
            head.headers["authorization"].is_sensitive() && !head.headers["x-name"].is_sensitive()
        );
        drop(before);
        assert!(read.is_unique(), "nothing else holds the buffer");
    }
}
