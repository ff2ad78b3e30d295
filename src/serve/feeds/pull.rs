//! A pull: from a GET on a feed to its page, held if it asked for that; the page itself comes from
//! the readers.

use super::{
    admission::{AdmittedFeed, AdmittedRequest},
    delta,
};
use crate::{
    edge::{
        body::{self, Response},
        fields::{list_value, set, text},
    },
    feed::{
        cursor::Toc, filter::Filter, lineage::GENERATION, order::Order, page::DEGRADED,
        record::Head, stamp::Stamp, view::View,
    },
    readers::{ReadRequest, Rendered},
    render::{self, ArchiveAddress, ClassicQuery, PositionLocation, Query, Representation},
    serve::answers::{
        accept,
        refusal::Refusal,
        validators::{AnswerValidators, not_modified, tag_of},
    },
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{
        ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
        IF_NONE_MATCH, LAST_MODIFIED, LINK, LOCATION, VARY,
    },
};
use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};
use tokio::time::Instant;

/// `Cache-Control` of what never changes: a year, the longest that caches know (RFC 8246).
const LASTING: &str = "max-age=31536000, immutable";

/// Items on a page when the consumer does not say (SF-20).
pub(super) const ITEMS_DEFAULT: usize = 50;

/// A page of a Smart Feed; without a representation on the negotiated URL.
pub(crate) async fn smart(
    asked: &AdmittedRequest<'_>,
    name: &str,
    named: Option<Representation>,
) -> Result<Response, Refusal> {
    let mut query = Query::parse(asked.query())?;
    asked.check_script(query.callback.as_deref())?;
    let feed = asked.feed(name)?;
    let accept = list_value(&asked.request.headers, &ACCEPT);
    let representation = named
        .or_else(|| accept::representation(accept.as_deref(), query.callback.is_some()))
        .ok_or_else(Refusal::unacceptable)?;
    let has_range = !query.since.is_empty() || !query.until.is_empty();
    if named.is_none()
        && representation.is_page()
        && !has_range
        && !Query::names_order(asked.query())
    {
        // People look for what is new.
        query.order = Order::MODIFIED_REVERSE;
    }
    let items_max = asked.context.readers.config().page_items_max;
    let max = query.max.unwrap_or(ITEMS_DEFAULT).min(items_max);
    let view = View::all(feed.read, query.order).filtered(query.filter.clone());
    let reading = ReadRequest::page(view, representation, &query.since, &query.until, max)?;
    let answer = PullAnswer {
        is_negotiated: named.is_none(),
        ..PullAnswer::of(asked, name, reading)
    };
    asked.context.check_ready(feed).await?;
    if !query.is_personal() {
        return answer.shared().await;
    }
    let body = read_or_hold(asked, feed, &query, &answer.reading).await;
    // Much may have changed while it was held.
    asked.check_still()?;
    answer.personal(&*body?, query.callback.as_deref()).await
}

/// A view for ordinary readers.
pub(crate) async fn classic(
    asked: &AdmittedRequest<'_>,
    name: &str,
    representation: Representation,
) -> Result<Response, Refusal> {
    let query = ClassicQuery::parse(asked.query())?;
    let callback = query.callback.as_deref();
    asked.check_script(callback)?;
    let feed = asked.feed(name)?;
    let readers = &asked.context.readers;
    let window = readers.config().classic_items;
    let max = query.max.unwrap_or(window).min(window);
    let reading = ReadRequest::newest(feed.read, query.filter, representation, max, None);
    let answer = PullAnswer::of(asked, name, reading);
    asked.context.check_ready(feed).await?;
    if callback.is_none() {
        return answer.shared().await;
    }
    let body = readers.read(&answer.reading).await?;
    answer.personal(&body, callback).await
}

/// The posts of a feed for ordinary readers, at the address of the old feed and in its syntax.
pub(crate) async fn at_old_address(
    asked: &AdmittedRequest<'_>,
    name: &str,
    representation: Representation,
    own_url: &str,
) -> Result<Response, Refusal> {
    let feed = asked.feed(name)?;
    let max = asked.context.readers.config().classic_items;
    let own_url = Some(own_url.into());
    let reading = ReadRequest::newest(feed.read, Filter::All, representation, max, own_url);
    asked.context.check_ready(feed).await?;
    let answer = PullAnswer {
        is_negotiated: true,
        ..PullAnswer::of(asked, name, reading)
    };
    answer.shared().await
}

/// An archive of a view for ordinary readers. By the name of its present version it may be kept for
/// ever; by the name of a former one it is what it is now, and not to be kept.
pub(crate) async fn archive(
    asked: &AdmittedRequest<'_>,
    name: &str,
    representation: Representation,
    place: ArchiveAddress,
) -> Result<Response, Refusal> {
    let readers = &asked.context.readers;
    let feed = asked.feed(name)?;
    let reading = ReadRequest::archive(feed.read, representation, place);
    let answer = PullAnswer::of(asked, name, reading);
    asked.context.check_ready(feed).await?;
    if !place.is_versioned() {
        return Ok(sent_to(&readers.present_archive(&answer.reading).await?));
    }
    let body = readers.read(&answer.reading).await?;
    let own_url = asked.site().archive(name, representation, place);
    let mut response = answer.lasting(&body, &own_url).await;
    if body.is_lasting {
        let changed = UNIX_EPOCH + Duration::from_secs(place.changed.secs());
        let changed = httpdate::fmt_http_date(changed);
        set(response.headers_mut(), LAST_MODIFIED, changed);
    }
    Ok(response)
}

/// An answer that sends to another address for now.
fn sent_to(url: &str) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let headers = response.headers_mut();
    set(headers, LOCATION, url);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

async fn read_or_hold(
    asked: &AdmittedRequest<'_>,
    feed: AdmittedFeed,
    query: &Query,
    reading: &ReadRequest,
) -> Result<Arc<Rendered>, Refusal> {
    let context = asked.context;
    let Some(timeout) = context.waiters.hold(&asked.request.method, query) else {
        return Ok(context.readers.read(reading).await?);
    };
    let deadline = Instant::now() + timeout;
    let client = context.client(asked.request);
    let place = match context.waiters.enter(client, feed.named) {
        Ok(place) => place,
        Err(busy) => {
            // Whoever need not wait takes no place, and catches up however many wait.
            let body = context.readers.read(reading).await?;
            return if context.readers.is_due(reading, &body, deadline) {
                Ok(body)
            } else {
                Err(busy)
            };
        }
    };
    // Held until there is something to read, until the deadline, until it gives way to another, or
    // until the caller may not read the feed any more.
    let stop = context.stop.child_token();
    let held = context.readers.read_held(reading, deadline, &stop);
    tokio::pin!(held);
    tokio::select! {
        biased;
        body = &mut held => return Ok(body?),
        () = context.until_not_admitted(&asked.caller) => stop.cancel(),
        () = place.ended() => stop.cancel(),
    }
    Ok(held.await?)
}

/// Parts of a response, apart from the body.
struct PullAnswer<'a> {
    asked: &'a AdmittedRequest<'a>,
    name: &'a str,
    reading: ReadRequest,
    /// True where the representation was chosen by what the consumer accepts.
    is_negotiated: bool,
}

impl<'a> PullAnswer<'a> {
    fn of(asked: &'a AdmittedRequest<'a>, name: &'a str, reading: ReadRequest) -> Self {
        Self {
            asked,
            name,
            reading: reading.seen_from(asked.caller.site.clone()),
            is_negotiated: false,
        }
    }

    /// A page that everybody may cache, with validators; 304 when the consumer has it (T-1, T-2).
    async fn shared(&self) -> Result<Response, Refusal> {
        let readers = self.asked.context.readers.clone();
        let feed = self.reading.view().feed;
        let head = readers.head(feed)?;
        let validators = self.validators(head);
        if head.ready && validators.are_fresh(&self.asked.request.headers) {
            let mut response = not_modified();
            self.describe(response.headers_mut(), &validators, head);
            let is_right = move || readers.is_at(feed, head).then(Bytes::new);
            self.mark_repeatable(&mut response, &validators, is_right);
            return Ok(response);
        }
        if let Some(delta) = self.delta(head).await? {
            return Ok(delta);
        }
        let body = readers.read(&self.reading).await?;
        let mut response = self.coded(&body).await;
        // The feed may have moved on meanwhile.
        let validators = if body.head == head {
            validators
        } else {
            self.validators(body.head)
        };
        self.describe(response.headers_mut(), &validators, body.head);
        self.position(response.headers_mut(), &body);
        let (key, coding) = ((self.reading.clone(), body.head), self.asked.coding());
        let at_hand = move || readers.at_hand(&key, coding);
        self.mark_repeatable(&mut response, &validators, at_hand);
        Ok(response)
    }

    /// Marks an answer that is for everybody as one that may be given again, while the catalog is
    /// as it is and there is the body. One without a date is to have one soon.
    fn mark_repeatable(
        &self,
        response: &mut Response,
        validators: &AnswerValidators,
        body: impl Fn() -> Option<Bytes> + Send + Sync + 'static,
    ) {
        if validators.modified.is_some() {
            self.asked.mark_repeatable(response, body);
        }
    }

    /// The items of the page that have changed since the state that the consumer holds (RFC 3229
    /// section 10.4.1), if it takes them alone. When they are more than a page, the tag is that of
    /// the state to which they lead.
    async fn delta(&self, head: Head) -> Result<Option<Response>, Refusal> {
        let headers = &self.asked.request.headers;
        if !delta::is_wanted(headers) {
            return Ok(None);
        }
        // A state of a former generation may hold what this one does not know.
        let base = delta::base(headers, &self.tag_tail(), head);
        let Some(base) = base.filter(|base| base.last_t >= head.generation) else {
            return Ok(None);
        };
        let Some(changed) = self.reading.clone().changed_since(base.last_t) else {
            return Ok(None);
        };
        let body = self.asked.context.readers.read(&changed).await?;
        let mut state = body.head;
        if body.more && !self.reading.representation().is_classic() {
            let last = Toc::parse(&body.last_cursor).and_then(|toc| toc.t.stamp());
            match last {
                Some(last_t) if !self.reading.view().order.reverse => state.last_t = last_t,
                _ => return Ok(None),
            }
        }
        let mut response = self.coded(&body).await;
        *response.status_mut() = StatusCode::IM_USED;
        let headers = response.headers_mut();
        self.describe(headers, &self.validators(state), state);
        headers.insert("im", HeaderValue::from_static("feed"));
        // Of several tags the consumer must learn which one counted (RFC 3229 section 10.5.1).
        set(headers, "delta-base", base.tag);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, im"));
        Ok(Some(response))
    }

    /// A page for one consumer: a range, a held answer, or a script.
    async fn personal(&self, body: &Rendered, callback: Option<&str>) -> Result<Response, Refusal> {
        let mut response = match callback {
            None => self.coded(body).await,
            Some(name) => {
                let media_type = self.reading.representation().media_type();
                let script = render::jsonp::wrap(name, media_type, &body.body);
                let script = self.asked.context.readers.held(script).await?;
                let mut response = Response::new(body::whole(script));
                let media_type = HeaderValue::from_static(render::jsonp::CONTENT_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, media_type);
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.link(headers);
        set(headers, GENERATION, body.head.generation.to_string());
        self.position(headers, body);
        if let Some(degraded) = body.degraded {
            set(headers, DEGRADED, degraded.name());
        }
        Ok(response)
    }

    /// An archive, with validators made of its bytes.
    async fn lasting(&self, body: &Rendered, own_url: &str) -> Response {
        let etag = format!("W/{}", tag_of(&body.body, ""));
        let known = list_value(&self.asked.request.headers, &IF_NONE_MATCH);
        let mut response = if known.is_some_and(|known| accept::names_tag(&known, &etag)) {
            not_modified()
        } else {
            self.coded(body).await
        };
        let headers = response.headers_mut();
        set(headers, ETAG, etag);
        let caching = if body.is_lasting { LASTING } else { "no-cache" };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        set(headers, LINK, format!("<{own_url}>; rel=\"self\""));
        response
    }

    /// The body in the coding that the consumer prefers.
    async fn coded(&self, body: &Rendered) -> Response {
        let (coding, representation) = (self.asked.coding(), self.reading.representation());
        let mut response = Response::new(body::whole(body.coded(coding).await));
        let headers = response.headers_mut();
        let content_type = HeaderValue::from_static(representation.content_type());
        headers.insert(CONTENT_TYPE, content_type);
        if let Some(token) = coding.token() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(token));
        }
        if let Some(policy) = representation.content_security_policy() {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        }
        response
    }

    /// Validators and links, alike on 200 and 304 (RFC 9110 section 15.4.5).
    fn describe(&self, headers: &mut HeaderMap, validators: &AnswerValidators, head: Head) {
        validators.write(headers);
        set(headers, GENERATION, head.generation.to_string());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        self.link(headers);
    }

    /// The links, and what the choice of representation depended on.
    fn link(&self, headers: &mut HeaderMap) {
        let (view, representation) = (self.reading.view(), self.reading.representation());
        let site = self.asked.site();
        let link = site.link_header(self.name, representation, view.order, &view.filter);
        set(headers, LINK, link);
        // T-3.
        let is_delta_wanted = delta::is_wanted(&self.asked.request.headers);
        let vary = match (self.is_negotiated, is_delta_wanted) {
            (true, false) => "accept, accept-encoding",
            (false, false) => "accept-encoding",
            (true, true) => "accept, accept-encoding, a-im, if-none-match",
            (false, true) => "accept-encoding, a-im, if-none-match",
        };
        headers.insert(VARY, HeaderValue::from_static(vary));
    }

    /// The position of a page whose syntax has no place for it (V-3).
    fn position(&self, headers: &mut HeaderMap, body: &Rendered) {
        let representation = self.reading.representation();
        let is_told = representation.position_place() == PositionLocation::Body;
        if is_told || representation.is_classic() {
            return;
        }
        set(headers, "smart-feed-last-cursor", &body.last_cursor);
        if let (Some(link), Some(next)) = (text(headers, &LINK), &body.next) {
            let link = format!("{link}, <{next}>; rel=\"next\"");
            set(headers, LINK, link);
        }
    }

    /// The validators of the view in this state of its feed: its visible state, its form and coding,
    /// the build that renders it, and the configuration that shows in it. The tag is weak, since an
    /// edit of a page's surroundings alone need not change it.
    fn validators(&self, head: Head) -> AnswerValidators {
        let coding = accept::coding_tag(self.asked.coding());
        AnswerValidators {
            etag: self
                .asked
                .context
                .readers
                .etag(&self.reading, head, &coding),
            modified: self.last_modified_secs(head),
        }
    }

    /// Part of the tag that does not change with the feed.
    fn tag_tail(&self) -> String {
        self.asked.context.readers.tag_tail(&self.reading)
    }

    /// The second of the last change, once it is over: until then another change may carry the same
    /// date. None for who reads a part: with other rights another feed is read here, which may have
    /// changed before.
    fn last_modified_secs(&self, head: Head) -> Option<u64> {
        if self.asked.caller.reads_part() {
            return None;
        }
        let now = Stamp::from_micros(self.asked.context.clock.now_us());
        let changed = head.last_t.max(head.metadata_t);
        (changed > Stamp::ZERO && changed.secs() < now.secs()).then(|| changed.secs())
    }
}
