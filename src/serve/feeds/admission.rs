//! Admission: who sends a request, and whether the sender may have what it asks for; decided before
//! anything of the answer is made. Not the answer.

use super::{
    context::ServeContext,
    noted_request::{RequestNote, is_reading},
};
use crate::{
    auth::{AuthVerdict, Credentials, Principal},
    catalog::{CatalogSnapshot, RegisteredFeed},
    edge::{
        body::Response,
        client_address::{OverTls, PeerAddress, client_address, is_trusted},
        fields::{set, text},
    },
    feed::{record::FeedNo, stamp::Stamp},
    readers::Coding,
    render::{Endpoint, Site, jsonp},
    secret::Secret,
    serve::answers::{
        accept, answer_memory::Repeatable, refusal::Refusal, validators::if_unchanged,
    },
};
use bytes::Bytes;
use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, REFERRER_POLICY},
    request::Parts,
};
use std::{
    net::IpAddr,
    sync::{Arc, Weak},
};

/// The sender of a request that is admitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The principal; `None` where nobody needs to be known.
    pub(super) principal: Option<Principal>,
    /// The site below the secret by which the request came: its links work by themselves.
    pub(crate) site: Option<Arc<Site>>,
    /// True for an answer that is for the caller alone.
    pub(crate) is_private: bool,
    /// The feed that is asked for by its name, and read; `None` where none is.
    pub(crate) feed: Option<AdmittedFeed>,
    /// The catalog by which everybody may have what is asked for; of what is not for everybody,
    /// none.
    pub(super) open_in: Weak<CatalogSnapshot>,
}

/// A feed that a caller may read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmittedFeed {
    /// The feed of the name.
    pub(crate) named: FeedNo,
    /// The feed that the caller reads under that name: the same, or a part of it (SF-131).
    pub(crate) read: FeedNo,
}

impl AdmittedFeed {
    /// The feed of a name for somebody who may read it; `None` for somebody who may not.
    fn of(
        catalog: &CatalogSnapshot,
        feed: &RegisteredFeed,
        principal: Option<&Principal>,
    ) -> Option<Self> {
        Some(Self {
            named: feed.no,
            read: catalog.read_by(feed, principal)?,
        })
    }
}

impl Caller {
    /// True for a caller who reads a part of the feed that is asked for.
    pub(crate) fn reads_part(&self) -> bool {
        self.feed.is_some_and(|feed| feed.read != feed.named)
    }

    /// Keeps a private answer out of shared caches, and its URL, which may be its secret, out of
    /// the requests of others.
    fn mark(&self, response: &mut Response) {
        if self.is_private {
            let headers = response.headers_mut();
            let stored = text(headers, &CACHE_CONTROL).unwrap_or("no-store");
            let private = format!("private, {stored}");
            set(headers, CACHE_CONTROL, private);
            headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
    }
}

/// A request that its caller may make, and what it is answered from.
pub(crate) struct AdmittedRequest<'a> {
    pub(crate) context: &'a Arc<ServeContext>,
    pub(crate) request: &'a Parts,
    pub(crate) caller: Caller,
    /// The feed that is read, be it served or gone; `None` where none is.
    pub(super) reads: Option<FeedNo>,
}

impl<'a> AdmittedRequest<'a> {
    /// Our URLs as the caller knows them.
    pub(crate) fn site(&self) -> &Site {
        match &self.caller.site {
            Some(site) => site,
            None => self.context.readers.site(),
        }
    }

    pub(crate) fn query(&self) -> &'a str {
        self.request.uri.query().unwrap_or_default()
    }

    /// The content coding that the consumer prefers.
    pub(crate) fn coding(&self) -> Coding {
        accept::coding_for(self.request)
    }

    /// The feed that the caller was admitted to by its name; 410 for one that was served, and 503 for
    /// one that other nodes serve.
    pub(crate) fn feed(&self, name: &str) -> Result<AdmittedFeed, Refusal> {
        if let Some(feed) = self.caller.feed {
            return Ok(feed);
        }
        let catalog = self.context.gate.catalog.snapshot();
        if catalog.beside_worker().has(name) {
            return Err(Refusal::elsewhere());
        }
        if catalog.withdrawn(name).is_some() {
            if catalog.registry().contains(name) {
                return Err(Refusal::unread_entry());
            }
            return Err(Refusal::gone());
        }
        Err(self.context.unknown("there is no such feed"))
    }

    /// Refuses a script that is handed to no function. Its name is never echoed (D-12), and private
    /// feeds come to none.
    pub(super) fn check_script(&self, callback: Option<&str>) -> Result<(), Refusal> {
        match callback {
            Some(name) if !jsonp::is_callback(name) => {
                Err(Refusal::bad("`callback` must be the name of a function"))
            }
            Some(_) if self.caller.is_private => Err(Refusal::no_script()),
            _ => Ok(()),
        }
    }

    /// Refuses a caller who may not read a feed any more, or reads another part of it now.
    pub(super) fn check_still(&self) -> Result<(), Refusal> {
        let Some(feed) = self.caller.feed else {
            return Ok(());
        };
        let gate = &self.context.gate;
        let is_there = gate.catalog.snapshot().feed_no(feed.named).is_some();
        match gate.read_by_sender(self.caller.principal.as_ref(), feed.named) {
            Some(read) if read == feed.read => Ok(()),
            Some(_) => Err(Refusal::changing()),
            None if is_there && gate.auth.is_unheard() => Err(Refusal::unheard()),
            None if is_there => Err(self.context.unauthenticated(self.request)),
            None => Ok(()),
        }
    }

    /// Marks an answer as one that may be given again while everybody may have it and there is the
    /// body. One that is not for everybody is not marked.
    pub(crate) fn mark_repeatable(
        &self,
        response: &mut Response,
        body: impl Fn() -> Option<Bytes> + Send + Sync + 'static,
    ) {
        let catalog = self.context.gate.catalog.clone();
        let open_in = self.caller.open_in.clone();
        if catalog.is_in_force(&open_in) {
            let body = move || catalog.is_in_force(&open_in).then(&body).flatten();
            let note = self.noting_again(response.status());
            let again = Repeatable::new(body).noting(note);
            response.extensions_mut().insert(again);
        }
    }

    /// Notes this request, which was answered so, if it reads a feed.
    pub(crate) fn note(&self, status: StatusCode) {
        if let Some(note) = self.note_of(status) {
            let (headers, extensions) = (&self.request.headers, &self.request.extensions);
            note.put(self.context, headers, extensions);
        }
    }

    fn note_of(&self, status: StatusCode) -> Option<RequestNote> {
        RequestNote::of(self.reads?, self.request, status.as_u16())
    }

    /// Notes requests that are the same and get the same answer.
    fn noting_again(
        &self,
        status: StatusCode,
    ) -> impl Fn(&HeaderMap, &Extensions) + Send + Sync + 'static {
        let (note, context) = (self.note_of(status), Arc::clone(self.context));
        move |headers: &HeaderMap, extensions: &Extensions| {
            if let Some(note) = note {
                note.put(&context, headers, extensions);
            }
        }
    }

    /// The answer as the caller gets it, unless another state is asked for.
    pub(crate) fn finish(&self, mut response: Response) -> Result<Response, Refusal> {
        self.caller.mark(&mut response);
        let answer = if_unchanged(self.request, response)?;
        self.note(answer.status());
        Ok(answer)
    }
}

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

impl ServeContext {
    /// Admits a request for a page of ours, or refuses it.
    ///
    /// While there is a private feed, nobody unknown is told which names there are: whatever is not
    /// public is 401. A user who may not read a feed finds none of that name.
    pub(crate) async fn admit<'a>(
        self: &'a Arc<Self>,
        request: &'a Parts,
        endpoint: &Endpoint,
    ) -> Result<AdmittedRequest<'a>, Refusal> {
        let caller = self.caller(request, endpoint).await?;
        let reads = match caller.feed {
            _ if !is_reading(endpoint) => None,
            Some(feed) => Some(feed.named),
            None => {
                let catalog = self.gate.catalog.snapshot();
                endpoint.name().and_then(|name| catalog.withdrawn(name))
            }
        };
        Ok(AdmittedRequest {
            context: self,
            request,
            caller,
            reads,
        })
    }

    // Decides: Who sends a request, and is it admitted?
    async fn caller(&self, request: &Parts, endpoint: &Endpoint) -> Result<Caller, Refusal> {
        let catalog = self.gate.catalog.snapshot();
        let feed = endpoint.name().and_then(|name| catalog.feed(name));
        let read_by = |principal: Option<&Principal>| {
            feed.and_then(|feed| AdmittedFeed::of(&catalog, feed, principal))
        };
        if let Some(token) = self.readers.site().secret(request.uri.path()) {
            let principal = self.bearer_of(request, &token).await?;
            let feed = read_by(Some(&principal));
            if endpoint.name().is_some() && feed.is_none() {
                return Err(self.unknown("there is no such feed"));
            }
            return Ok(Caller {
                principal: Some(principal),
                site: Some(Arc::new(self.readers.site().below_secret(&token))),
                is_private: true,
                feed,
                open_in: Weak::new(),
            });
        }
        if endpoint.name().is_none() {
            let principal = self.sender(request).await?;
            return Ok(Caller {
                is_private: principal.is_some(),
                principal,
                ..Caller::default()
            });
        }
        if feed.is_some_and(|feed| !feed.settings.is_private()) || !catalog.has_private() {
            return Ok(Caller {
                feed: read_by(None),
                open_in: Arc::downgrade(&catalog),
                ..Caller::default()
            });
        }
        // Of a feed that shows nobody unknown a part of it, somebody known may see more.
        let principal = self.identify(request).await?;
        match read_by(principal.as_ref()) {
            Some(feed) => Ok(Caller {
                principal,
                is_private: true,
                feed: Some(feed),
                ..Caller::default()
            }),
            None if principal.is_none() => Err(self.unauthenticated(request)),
            None => Err(self.unknown("there is no such feed")),
        }
    }

    /// Refuses a feed whose first document is not in, with the time at which it is asked for.
    pub(crate) async fn check_ready(&self, feed: AdmittedFeed) -> Result<(), Refusal> {
        if self.readers.head(feed.read).is_ok_and(|head| head.ready) {
            return Ok(());
        }
        if self.readers.head(feed.named)?.ready {
            return Err(Refusal::changing());
        }
        let polled = self.store.poll(feed.named).await?.unwrap_or_default();
        let now = Stamp::from_micros(self.clock.now_us());
        let fails = polled.health.fault.is_some();
        let secs = if fails {
            polled.timetable.next_at.secs_since(now)
        } else {
            0
        };
        Err(Refusal::not_ready(secs, fails))
    }

    /// Waits until a caller may not read the same feed any more.
    pub(super) async fn until_not_admitted(&self, caller: &Caller) {
        let mut catalog = self.gate.catalog.watch();
        let mut accounts = self.gate.auth.watch();
        let principal = caller.principal.as_ref();
        while let Some(feed) = caller.feed
            && self.gate.read_by_sender(principal, feed.named) == Some(feed.read)
        {
            tokio::select! {
                Ok(()) = catalog.changed() => {}
                Ok(()) = accounts.changed() => {}
            }
        }
    }

    /// The principal behind a request for no feed; `None` for nobody known.
    pub(crate) async fn sender(&self, request: &Parts) -> Result<Option<Principal>, Refusal> {
        match self.readers.site().secret(request.uri.path()) {
            Some(token) => self.bearer_of(request, &token).await.map(Some),
            None if self.gate.catalog.snapshot().has_private() => self.identify(request).await,
            None => Ok(None),
        }
    }

    /// 401, with the schemes that would do.
    pub(crate) fn unauthenticated(&self, request: &Parts) -> Refusal {
        Refusal::unauthenticated(self.takes_basic(request))
    }

    /// The principal whose secret stands in the path.
    async fn bearer_of(&self, request: &Parts, token: &str) -> Result<Principal, Refusal> {
        let credentials = Credentials::SecretUrl(Secret::new(token));
        let unknown = || self.unknown("there is nothing here");
        let principal = self.principal(request, &credentials, unknown).await?;
        principal.ok_or_else(unknown)
    }

    /// The principal whose credentials a request carries; `None` where it carries none.
    async fn identify(&self, request: &Parts) -> Result<Option<Principal>, Refusal> {
        let credentials = Credentials::of(&request.headers);
        if matches!(credentials, Credentials::Basic { .. }) && !self.takes_basic(request) {
            return Err(Refusal::plain_http());
        }
        let refused = || self.unauthenticated(request);
        self.principal(request, &credentials, refused).await
    }

    async fn principal(
        &self,
        request: &Parts,
        credentials: &Credentials,
        refused: impl Fn() -> Refusal,
    ) -> Result<Option<Principal>, Refusal> {
        let verdict = self.gate.auth.check(credentials, self.client(request));
        match verdict.await {
            AuthVerdict::Anonymous => Ok(None),
            AuthVerdict::Known(principal) => Ok(Some(principal)),
            AuthVerdict::Refused => Err(refused()),
            AuthVerdict::SlowDown { secs } => Err(Refusal::slow_down(secs)),
            AuthVerdict::Busy => Err(Refusal::busy()),
            AuthVerdict::Unheard => Err(Refusal::unheard()),
        }
    }

    /// The address of the client behind a request, as far as it is known.
    pub(crate) fn client(&self, request: &Parts) -> Option<IpAddr> {
        client_address(
            &request.extensions,
            &request.headers,
            &self.config.trusted_proxies,
        )
    }

    // Decides: Is a password taken over this connection?
    /// True where nobody on the way reads a password: TLS ends here, the peer is this machine, or a
    /// trusted proxy says that its client used TLS (U-2, U-3).
    fn takes_basic(&self, request: &Parts) -> bool {
        if self.config.basic_over_http || request.extensions.get::<OverTls>().is_some() {
            return true;
        }
        let peer = request
            .extensions
            .get::<PeerAddress>()
            .map(|peer| peer.0.to_canonical());
        let is_local = peer.is_none_or(|peer| peer.is_loopback());
        let is_proxy = peer.is_none_or(|peer| is_trusted(peer, &self.config.trusted_proxies));
        if !is_proxy {
            return is_local;
        }
        let said = request.headers.get_all(FORWARDED_PROTO).iter().next_back();
        let said = said.and_then(|value| value.to_str().ok()?.rsplit(',').next());
        let Some(scheme) = said else {
            return is_local;
        };
        scheme.trim().eq_ignore_ascii_case("https")
    }
}
