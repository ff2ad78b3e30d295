//! The pages of a site, on their way to its origin: whatever would make one of our users known to the old server stays here; not
//! how requests are passed on.

use super::{
    accept,
    body::{MountService, Response, ServeBody},
    context::ServeContext,
    private_site::unless_feed,
    refusal::Refusal,
};
use crate::{auth::AuthVerdict, readers::Coding};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, header::ACCEPT_ENCODING, request::Parts};
use std::{convert::Infallible, sync::Arc};
use tower::{ServiceExt as _, util::BoxCloneSyncService};

/// The way to the origins of sites, for requests without credentials of ours.
pub(super) fn site_pages(context: Arc<ServeContext>, origin: MountService) -> MountService {
    let pages = move |request: Request<ServeBody>| {
        let (context, origin) = (context.clone(), origin.clone());
        // Boxed: the proxy is a large future, and most requests end here.
        let answer: BoxFuture<'static, Result<Response, Infallible>> = Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            if let Err(refusal) = context.without_own_credentials(&mut parts).await {
                return Ok(refusal.respond(&parts));
            }
            let links = context.page_links(&mut parts).await;
            let hides_feeds = context.sites.of(&parts).is_some_and(|site| site.settings.access.is_private());
            let asked = hides_feeds.then(|| parts.clone());
            if hides_feeds {
                look_into(&mut parts.headers);
            }
            let sent: BoxFuture<'static, Result<Response, Infallible>> =
                Box::pin(origin.oneshot(Request::from_parts(parts, body)));
            let Ok(mut answer) = sent.await;
            if let Some(links) = links {
                answer = links.put_into(answer).await;
            }
            let Some(asked) = asked else { return Ok(answer) };
            let refused = || Refusal::private_feed(&context.readers.site().list()).respond(&asked);
            Ok(unless_feed(answer).await.unwrap_or_else(refused))
        });
        answer
    };
    BoxCloneSyncService::new(tower::service_fn(pages))
}

/// Lets an origin answer with what can be looked at: packed with gzip at most, if the reader takes that.
fn look_into(headers: &mut HeaderMap) {
    if headers.contains_key(ACCEPT_ENCODING) {
        let codings = accept::joined(headers, &ACCEPT_ENCODING).unwrap_or_default();
        let token = if accept::takes_coding(&codings, Coding::Gzip) { "gzip" } else { "identity" };
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(token));
    }
}

impl ServeContext {
    /// Makes a request one that may be passed on: credentials of ours are taken out of its head. One whose address is a secret
    /// of ours, or holds one, is refused: it can be meant for nobody else.
    async fn without_own_credentials(&self, request: &mut Parts) -> Result<(), Refusal> {
        let target = request.uri.path_and_query().map_or("/", |target| target.as_str());
        if self.readers.site().is_below_secret(request.uri.path()) || self.gate.auth.holds_token(target) {
            return Err(self.unknown("there is nothing here"));
        }
        let client = self.client(request);
        self.gate.auth.take_out_own(&mut request.headers, client).await.map_err(|verdict| match verdict {
            AuthVerdict::SlowDown { secs } => Refusal::slow_down(secs),
            _ => Refusal::busy(),
        })
    }
}
