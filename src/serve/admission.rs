//! Admission: who sends a request, and whether the sender may have what it asks for; decided before
//! anything of the answer is made. Not the answer.

use super::{answer_memory::Repeatable, context::ServeContext, refusal::Refusal};
use crate::{
    auth::{AuthVerdict, Credentials, Principal},
    catalog::{CatalogSnapshot, shown_to},
    edge::fields::{set, text},
    edge::{
        body::Response,
        client_address::{OverTls, PeerAddress, client_address, is_trusted},
    },
    feed::{filter::Filter, record::FeedNo},
    render::{Endpoint, Site},
    secret::Secret,
};
use bytes::Bytes;
use http::{
    HeaderName, HeaderValue,
    header::{CACHE_CONTROL, REFERRER_POLICY},
    request::Parts,
};
use std::{
    net::IpAddr,
    sync::{Arc, Weak},
};

/// The sender of a request that is admitted.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    /// The principal; `None` where nobody needs to be known.
    pub(super) principal: Option<Principal>,
    /// The site below the secret by which the request came: its links work by themselves.
    pub(super) site: Option<Arc<Site>>,
    /// True for an answer that is for the caller alone.
    pub(super) is_private: bool,
    /// The part of the feed that the caller may see: every reading for the caller is within it
    /// (SF-131).
    pub(super) shows: Filter,
    /// The catalog by which everybody may have what is asked for; of what is not for everybody,
    /// none.
    pub(super) open_in: Weak<CatalogSnapshot>,
}

impl Caller {
    /// The site whose URLs the answer prints.
    pub(super) fn site<'a>(&'a self, context: &'a ServeContext) -> &'a Site {
        self.site
            .as_deref()
            .unwrap_or_else(|| context.readers.site())
    }

    /// The items that are asked for, as far as the caller may see them.
    pub(super) fn within(&self, asked: Filter) -> Filter {
        asked.within(&self.shows)
    }

    /// Marks an answer as one that may be given again while everybody may have it and there is the
    /// body. One that is not for everybody is not marked.
    pub(super) fn mark_repeatable(
        &self,
        context: &ServeContext,
        response: &mut Response,
        body: impl Fn() -> Option<Bytes> + Send + Sync + 'static,
    ) {
        let (catalog, open_in) = (context.gate.catalog.clone(), self.open_in.clone());
        if catalog.is_in_force(&open_in) {
            let body = move || catalog.is_in_force(&open_in).then(&body).flatten();
            response.extensions_mut().insert(Repeatable::new(body));
        }
    }

    /// Keeps a private answer out of shared caches, and its URL, which may be its secret, out of
    /// the requests of others.
    pub(super) fn mark(&self, mut response: Response) -> Response {
        if self.is_private {
            let headers = response.headers_mut();
            let stored = text(headers, &CACHE_CONTROL).unwrap_or("no-store");
            let private = format!("private, {stored}");
            set(headers, CACHE_CONTROL, private);
            headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
        response
    }
}

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

impl ServeContext {
    /// Admits a request for a page of ours, or refuses it.
    ///
    /// While there is a private feed, nobody unknown is told which names there are: whatever is not
    /// public is 401. A user who may not read a feed finds none of that name.
    pub(super) async fn admit(
        &self,
        request: &Parts,
        endpoint: &Endpoint,
    ) -> Result<Caller, Refusal> {
        let catalog = self.gate.catalog.snapshot();
        let no_such_feed = || self.unknown("there is no such feed");
        if let Some(token) = self.readers.site().secret(request.uri.path()) {
            let principal = self.bearer_of(request, &token).await?;
            let shows = match endpoint.name().map(|name| catalog.feed(name)) {
                Some(feed) => feed
                    .and_then(|feed| shown_to(feed, Some(&principal)))
                    .ok_or_else(no_such_feed)?,
                None => Filter::All,
            };
            let site = Some(Arc::new(self.readers.site().below_secret(&token)));
            return Ok(Caller {
                principal: Some(principal),
                site,
                is_private: true,
                shows,
                open_in: Weak::new(),
            });
        }
        let Some(name) = endpoint.name() else {
            let principal = if catalog.has_private() {
                self.identify(request).await?
            } else {
                None
            };
            return Ok(Caller {
                is_private: principal.is_some(),
                principal,
                ..Caller::default()
            });
        };
        let feed = catalog.feed(name);
        if feed.is_some_and(|feed| !feed.settings.is_private()) || !catalog.has_private() {
            return Ok(Caller {
                open_in: Arc::downgrade(&catalog),
                ..Caller::default()
            });
        }
        // Of a feed that shows nobody unknown a part of it, somebody known may see more.
        let principal = self.identify(request).await?;
        match feed.and_then(|feed| shown_to(feed, principal.as_ref())) {
            Some(shows) => Ok(Caller {
                principal,
                site: None,
                is_private: true,
                shows,
                open_in: Weak::new(),
            }),
            None if principal.is_none() => Err(self.unauthenticated(request)),
            None => Err(no_such_feed()),
        }
    }

    /// Refuses a caller who may not read a feed any more, or another part of it than before.
    pub(super) fn check_still(
        &self,
        request: &Parts,
        caller: &Caller,
        feed: FeedNo,
    ) -> Result<(), Refusal> {
        let is_there = self.gate.catalog.snapshot().feed_no(feed).is_some();
        match self.still_shows(caller, feed) {
            Some(shows) if shows == caller.shows => Ok(()),
            Some(_) => Err(Refusal::busy()),
            None if is_there => Err(self.unauthenticated(request)),
            None => Ok(()),
        }
    }

    /// True while a caller may read the same part of a feed.
    pub(super) fn still_admits(&self, caller: &Caller, feed: FeedNo) -> bool {
        self.still_shows(caller, feed)
            .is_some_and(|shows| shows == caller.shows)
    }

    fn still_shows(&self, caller: &Caller, feed: FeedNo) -> Option<Filter> {
        self.gate.shows_to_sender(caller.principal.as_ref(), feed)
    }

    /// The principal behind a request to the hub; `None` for nobody known.
    pub(super) async fn sender(&self, request: &Parts) -> Result<Option<Principal>, Refusal> {
        match self.readers.site().secret(request.uri.path()) {
            Some(token) => self.bearer_of(request, &token).await.map(Some),
            None if self.gate.catalog.snapshot().has_private() => self.identify(request).await,
            None => Ok(None),
        }
    }

    /// 401, with the schemes that would do.
    pub(super) fn unauthenticated(&self, request: &Parts) -> Refusal {
        Refusal::unauthenticated(self.takes_basic(request))
    }

    /// The principal whose secret stands in the path.
    async fn bearer_of(&self, request: &Parts, token: &str) -> Result<Principal, Refusal> {
        let credentials = Credentials::SecretUrl(Secret::new(token));
        match self
            .gate
            .auth
            .check(&credentials, self.client(request))
            .await
        {
            AuthVerdict::Known(principal) => Ok(principal),
            AuthVerdict::SlowDown { secs } => Err(Refusal::slow_down(secs)),
            AuthVerdict::Busy => Err(Refusal::busy()),
            AuthVerdict::Refused | AuthVerdict::Anonymous => {
                Err(self.unknown("there is nothing here"))
            }
        }
    }

    /// The principal whose credentials a request carries; `None` where it carries none.
    async fn identify(&self, request: &Parts) -> Result<Option<Principal>, Refusal> {
        let credentials = Credentials::of(&request.headers);
        if matches!(credentials, Credentials::Basic { .. }) && !self.takes_basic(request) {
            return Err(Refusal::plain_http());
        }
        match self
            .gate
            .auth
            .check(&credentials, self.client(request))
            .await
        {
            AuthVerdict::Anonymous => Ok(None),
            AuthVerdict::Known(principal) => Ok(Some(principal)),
            AuthVerdict::Refused => Err(self.unauthenticated(request)),
            AuthVerdict::SlowDown { secs } => Err(Refusal::slow_down(secs)),
            AuthVerdict::Busy => Err(Refusal::busy()),
        }
    }

    /// The address of the client behind a request, as far as it is known.
    pub(super) fn client(&self, request: &Parts) -> Option<IpAddr> {
        client_address(&request.extensions, &request.headers, &self.trust.proxies)
    }

    /// True where nobody on the way reads a password: TLS ends here, the peer is this machine, or a
    /// trusted proxy says that its client used TLS (U-2, U-3).
    fn takes_basic(&self, request: &Parts) -> bool {
        let peer = request
            .extensions
            .get::<PeerAddress>()
            .map(|peer| peer.0.to_canonical());
        let is_local = peer.is_none_or(|peer| peer.is_loopback());
        let is_proxy = peer.is_none_or(|peer| is_trusted(peer, &self.trust.proxies));
        let said = request
            .headers
            .get_all(FORWARDED_PROTO)
            .iter()
            .next_back()
            .filter(|_| is_proxy);
        let said = said.and_then(|value| value.to_str().ok()?.rsplit(',').next());
        self.trust.basic_over_http
            || request.extensions.get::<OverTls>().is_some()
            || said.map_or(is_local, |scheme| {
                scheme.trim().eq_ignore_ascii_case("https")
            })
    }
}
