//! The pages of a site, on their way to its origin: whatever would make one of our users known to
//! the old server stays here; not how requests are passed on.

use crate::{
    auth::AuthVerdict,
    edge::body::{MountService, Response, ServeBody},
    serve::{answers::refusal::Refusal, feeds::context::ServeContext, routing::mount::answer_of},
};
use futures_util::future::BoxFuture;
use http::{Request, request::Parts};
use http_body::Body as _;
use std::{convert::Infallible, sync::Arc};
use tower::util::BoxCloneSyncService;

/// The way to the origins of sites, for requests without credentials of ours.
pub(crate) fn site_pages(context: Arc<ServeContext>, origin: MountService) -> MountService {
    let pages = move |request: Request<ServeBody>| {
        let (context, origin) = (context.clone(), origin.clone());
        // Boxed: the proxy is a large future, and most requests end here.
        let answer: BoxFuture<'static, Result<Response, Infallible>> = Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            if let Err(refusal) = context.without_own_credentials(&mut parts).await {
                return Ok(refusal.respond(&parts));
            }
            let guard = context.feed_guard(&mut parts, !body.is_end_stream());
            let asked = guard.is_some().then(|| parts.clone());
            let answer = answer_of(&origin, Request::from_parts(parts, body)).await;
            let Some((guard, asked)) = guard.zip(asked) else {
                return Ok(answer);
            };
            let refused = || {
                guard
                    .refusal(&context.readers.site().list())
                    .respond(&asked)
            };
            Ok(guard.unless_feed(answer).await.unwrap_or_else(refused))
        });
        answer
    };
    BoxCloneSyncService::new(tower::service_fn(pages))
}

impl ServeContext {
    /// Makes a request one that may be passed on: credentials of ours are taken out of its head.
    /// One whose address is a secret of ours, or holds one, is refused: it can be meant for nobody
    /// else.
    async fn without_own_credentials(&self, request: &mut Parts) -> Result<(), Refusal> {
        let target = request
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        if self.readers.site().is_below_secret(request.uri.path())
            || self.gate.auth.holds_token(target)
        {
            return Err(self.unknown("there is nothing here"));
        }
        let client = self.client(request);
        self.gate
            .auth
            .take_out_own(&mut request.headers, client)
            .await
            .map_err(|verdict| match verdict {
                AuthVerdict::SlowDown { secs } => Refusal::slow_down(secs),
                _ => Refusal::busy(),
            })
    }
}
