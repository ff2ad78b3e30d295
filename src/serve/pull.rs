//! A pull: from a GET on a feed to its page, held if it asked for that; the page itself comes from
//! the readers.

use super::{
    accept,
    admission::Caller,
    context::ServeContext,
    delta,
    refusal::Refusal,
    validators::{AnswerValidators, not_modified},
};
use crate::edge::fields::{list_value, set, text};
use crate::{
    edge::body::{self, Response},
    feed::{cursor::Toc, filter::Filter, record::Head, stamp::Stamp, view::View},
    readers::{self, Coding, ReadError, ReadRequest, Rendered},
    render::{self, ArchivePlace, ClassicQuery, PositionPlace, Query, Representation},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{
        ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
        CONTENT_TYPE, ETAG, IF_NONE_MATCH, LAST_MODIFIED, LINK, LOCATION, VARY,
    },
    request::Parts,
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
pub(super) async fn smart(
    context: &ServeContext,
    request: &Parts,
    caller: &Caller,
    (name, named): (&str, Option<Representation>),
) -> Result<Response, Refusal> {
    let mut query = Query::parse(request.uri.query().unwrap_or_default())?;
    query.callback = script_for(query.callback, caller)?;
    let feed = context.feed(name)?;
    let accept = list_value(&request.headers, &ACCEPT);
    let chosen =
        named.or_else(|| accept::representation(accept.as_deref(), query.callback.is_some()));
    let representation = chosen.ok_or_else(Refusal::unacceptable)?;
    let view = View::all(feed, query.order).filtered(caller.within(query.filter.clone()));
    let max = query
        .max
        .unwrap_or(ITEMS_DEFAULT)
        .min(context.readers.config().page_items_max);
    let reading = ReadRequest::page(
        view.clone(),
        representation,
        (&query.since, &query.until),
        max,
    )?;
    let reading = reading.seen_from(caller.site.clone());
    let negotiated = named.is_none();
    let answer = PullAnswer {
        context,
        request,
        caller,
        name,
        view,
        representation,
        negotiated,
    };
    context.check_ready(feed).await?;
    if query.is_personal() {
        let body = read_or_hold(context, (request, caller), &query, &reading).await?;
        // Much may have changed while it was held.
        context.check_still(request, caller, feed)?;
        return answer.personal(&body, query.callback.as_deref()).await;
    }
    answer.shared(&reading).await
}

/// A view for ordinary readers.
pub(super) async fn classic(
    context: &ServeContext,
    request: &Parts,
    caller: &Caller,
    (name, representation): (&str, Representation),
) -> Result<Response, Refusal> {
    let query = ClassicQuery::parse(request.uri.query().unwrap_or_default())?;
    let callback = script_for(query.callback, caller)?;
    let feed = context.feed(name)?;
    let window = context.readers.config().classic_items;
    let max = query.max.unwrap_or(window).min(window);
    let reading = ReadRequest::classic(feed, representation, max);
    let reading = reading.filtered(caller.within(query.filter));
    let reading = reading.seen_from(caller.site.clone());
    let view = reading.view().clone();
    context.check_ready(feed).await?;
    let answer = PullAnswer {
        context,
        request,
        caller,
        name,
        view,
        representation,
        negotiated: false,
    };
    match callback {
        Some(_) => {
            answer
                .personal(&*context.readers.read(&reading).await?, callback.as_deref())
                .await
        }
        None => answer.shared(&reading).await,
    }
}

/// The part of a feed that a caller may see, at the address of the old feed and in its syntax. The
/// publisher's document holds the rest, too.
pub(super) async fn old_part(
    context: &ServeContext,
    request: &Parts,
    caller: &Caller,
    (name, representation): (&str, Representation),
    own_url: &str,
) -> Result<Response, Refusal> {
    let feed = context.feed(name)?;
    let reading =
        ReadRequest::classic(feed, representation, context.readers.config().classic_items);
    let reading = reading
        .filtered(caller.within(Filter::All))
        .at(Some(own_url.into()));
    let view = reading.view().clone();
    context.check_ready(feed).await?;
    let answer = PullAnswer {
        context,
        request,
        caller,
        name,
        view,
        representation,
        negotiated: true,
    };
    answer.shared(&reading).await
}

/// The function that a script is handed to. Its name is never echoed (D-12), and private feeds come
/// to none.
fn script_for(callback: Option<String>, caller: &Caller) -> Result<Option<String>, Refusal> {
    if callback
        .as_deref()
        .is_some_and(|name| !render::jsonp::is_callback(name))
    {
        return Err(Refusal::bad("`callback` must be the name of a function"));
    }
    if caller.is_private && callback.is_some() {
        return Err(Refusal::no_script());
    }
    Ok(callback)
}

/// An archive of a view for ordinary readers. By the name of its present version it may be kept for
/// ever; by the name of a former one it is what it is now, and not to be kept.
pub(super) async fn archive(
    context: &ServeContext,
    request: &Parts,
    caller: &Caller,
    (name, representation, place): (&str, Representation, ArchivePlace),
) -> Result<Response, Refusal> {
    let feed = context.feed(name)?;
    let reading = ReadRequest::archive(feed, representation, place).seen_from(caller.site.clone());
    let reading = reading.filtered(caller.within(Filter::All));
    let view = reading.view().clone();
    context.check_ready(feed).await?;
    if !place.is_versioned() {
        return Ok(sent_to(&context.readers.present_archive(&reading).await?));
    }
    let body = context.readers.read(&reading).await?;
    let answer = PullAnswer {
        context,
        request,
        caller,
        name,
        view,
        representation,
        negotiated: false,
    };
    let mut response = answer
        .lasting(
            &body,
            &caller.site(context).archive(name, representation, place),
        )
        .await;
    if body.is_lasting {
        let changed =
            httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(place.changed.secs()));
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
    context: &ServeContext,
    (request, caller): (&Parts, &Caller),
    query: &Query,
    reading: &ReadRequest,
) -> Result<Arc<Rendered>, Refusal> {
    let Some(timeout) = context.waiters.hold(&request.method, query) else {
        return Ok(context.readers.read(reading).await?);
    };
    let deadline = Instant::now() + timeout;
    match context
        .waiters
        .enter(context.client(request), reading.view().feed)
    {
        Ok(_place) => Ok(read_held(context, caller, reading, deadline).await?),
        Err(busy) => {
            // Whoever need not wait takes no place, and catches up however many wait.
            let body = context.readers.read(reading).await?;
            if context.readers.is_due(reading, &body, deadline) {
                Ok(body)
            } else {
                Err(busy)
            }
        }
    }
}

/// Holds a request until there is something to read, until its deadline, or until its caller may
/// not read its feed any more.
async fn read_held(
    context: &ServeContext,
    caller: &Caller,
    reading: &ReadRequest,
    deadline: Instant,
) -> Result<Arc<Rendered>, ReadError> {
    let stop = context.stop.child_token();
    let (mut catalog, mut accounts) = (context.gate.catalog.watch(), context.gate.auth.watch());
    let held = context.readers.read_held(reading, deadline, &stop);
    tokio::pin!(held);
    while context.still_admits(caller, reading.view().feed) {
        tokio::select! {
            body = &mut held => return body,
            Ok(()) = catalog.changed() => {}
            Ok(()) = accounts.changed() => {}
        }
    }
    stop.cancel();
    held.await
}

/// Parts of a response, apart from the body.
struct PullAnswer<'a> {
    context: &'a ServeContext,
    request: &'a Parts,
    caller: &'a Caller,
    name: &'a str,
    view: View,
    representation: Representation,
    negotiated: bool,
}

impl PullAnswer<'_> {
    /// A page that everybody may cache, with validators; 304 when the consumer has it (T-1, T-2).
    async fn shared(&self, reading: &ReadRequest) -> Result<Response, Refusal> {
        if self.view.filter.is_within() {
            return self.of_part(reading).await;
        }
        let head = self.context.readers.head(self.view.feed)?;
        let validators = self.validators(head);
        if head.ready && validators.are_fresh(&self.request.headers) {
            let mut response = not_modified();
            self.describe(response.headers_mut(), &validators);
            let (readers, feed) = (self.context.readers.clone(), self.view.feed);
            let is_right = move || readers.is_at(feed, head).then(Bytes::new);
            self.mark_repeatable(&mut response, &validators, is_right);
            return Ok(response);
        }
        if let Some(delta) = self.delta(reading, head).await? {
            return Ok(delta);
        }
        let body = self.context.readers.read(reading).await?;
        let mut response = self.coded(&body).await;
        // The feed may have moved on meanwhile.
        let validators = if body.head == head {
            validators
        } else {
            self.validators(body.head)
        };
        self.describe(response.headers_mut(), &validators);
        self.position(response.headers_mut(), &body);
        let (readers, key, coding) = (
            self.context.readers.clone(),
            (reading.clone(), body.head),
            self.coding(),
        );
        self.mark_repeatable(&mut response, &validators, move || {
            readers.at_hand(&key, coding)
        });
        Ok(response)
    }

    /// A page of a part of a feed. Its validator is made of its bytes: that of the feed would tell
    /// of changes elsewhere (SF-131).
    async fn of_part(&self, reading: &ReadRequest) -> Result<Response, Refusal> {
        let body = self.context.readers.read(reading).await?;
        let (crc, bytes, tail) = (
            crc32fast::hash(&body.body),
            body.body.len(),
            self.tag_tail(),
        );
        let etag = format!(
            "W/\"{crc:08x}.{bytes:x}.{tail}{}\"",
            accept::coding_tag(self.coding())
        );
        let validators = AnswerValidators {
            etag,
            modified: None,
        };
        let mut response = if validators.are_fresh(&self.request.headers) {
            not_modified()
        } else {
            self.coded(&body).await
        };
        self.describe(response.headers_mut(), &validators);
        self.position(response.headers_mut(), &body);
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
            self.caller.mark_repeatable(self.context, response, body);
        }
    }

    /// The items of the page that have changed since the state that the consumer holds (RFC 3229
    /// section 10.4.1), if it takes them alone. When they are more than a page, the tag is that of
    /// the state to which they lead.
    async fn delta(&self, reading: &ReadRequest, head: Head) -> Result<Option<Response>, Refusal> {
        let headers = &self.request.headers;
        if !delta::is_wanted(headers) {
            return Ok(None);
        }
        let Some(base) = delta::base(headers, &self.tag_tail(), head) else {
            return Ok(None);
        };
        let Some(changed) = reading.clone().changed_since(base.last_t) else {
            return Ok(None);
        };
        let body = self.context.readers.read(&changed).await?;
        let is_cut = body.more && !self.representation.is_classic();
        let last = Toc::parse(&body.last_cursor)
            .and_then(|toc| toc.t.stamp())
            .filter(|_| !self.view.order.reverse);
        let state = match last {
            _ if !is_cut => body.head,
            Some(last_t) => Head {
                last_t,
                ..body.head
            },
            None => return Ok(None),
        };
        let mut response = self.coded(&body).await;
        *response.status_mut() = StatusCode::IM_USED;
        let headers = response.headers_mut();
        self.describe(headers, &self.validators(state));
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
                let script =
                    render::jsonp::wrap(name, self.representation.media_type(), &body.body);
                let script = self.context.readers.held(script).await?;
                let mut response = Response::new(body::whole(script));
                let headers = response.headers_mut();
                headers.insert(
                    CONTENT_TYPE,
                    HeaderValue::from_static(render::jsonp::CONTENT_TYPE),
                );
                headers.insert(
                    "x-content-type-options",
                    HeaderValue::from_static("nosniff"),
                );
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.link(headers);
        self.position(headers, body);
        if let Some(degraded) = body.degraded {
            headers.insert(
                "smart-feed-cursor",
                HeaderValue::from_static(degraded.name()),
            );
        }
        Ok(response)
    }

    /// An archive, with validators made of its bytes.
    async fn lasting(&self, body: &Rendered, own_url: &str) -> Response {
        let etag = format!(
            "W/\"{:08x}.{:x}\"",
            crc32fast::hash(&body.body),
            body.body.len()
        );
        let known = list_value(&self.request.headers, &IF_NONE_MATCH);
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
        let coding = self.coding();
        let mut response = Response::new(body::whole(body.coded(coding).await));
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static(self.representation.content_type()),
        );
        if let Some(token) = coding.token() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(token));
        }
        if let Some(policy) = self.representation.content_security_policy() {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        }
        response
    }

    /// Validators and links, alike on 200 and 304 (RFC 9110 section 15.4.5).
    fn describe(&self, headers: &mut HeaderMap, validators: &AnswerValidators) {
        validators.write(headers);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        self.link(headers);
    }

    /// The links, and what the choice of representation depended on.
    fn link(&self, headers: &mut HeaderMap) {
        let site = self.caller.site(self.context);
        let link = site.link_header(
            self.name,
            self.representation,
            (self.view.order, &self.view.filter),
        );
        set(headers, LINK, link);
        // T-3.
        let vary = match (self.negotiated, delta::is_wanted(&self.request.headers)) {
            (true, false) => "accept, accept-encoding",
            (false, false) => "accept-encoding",
            (true, true) => "accept, accept-encoding, a-im, if-none-match",
            (false, true) => "accept-encoding, a-im, if-none-match",
        };
        headers.insert(VARY, HeaderValue::from_static(vary));
    }

    /// The position of a page whose syntax has no place for it (V-3).
    fn position(&self, headers: &mut HeaderMap, body: &Rendered) {
        let is_told = self.representation.position_place() == PositionPlace::Body;
        if is_told || self.representation.is_classic() {
            return;
        }
        set(headers, "smart-feed-last-cursor", &body.last_cursor);
        if let (Some(link), Some(next)) = (text(headers, &LINK), &body.next) {
            let link = format!("{link}, <{next}>; rel=\"next\"");
            set(headers, LINK, link);
        }
    }

    /// The validators of the view in this state of its feed.
    fn validators(&self, head: Head) -> AnswerValidators {
        AnswerValidators {
            etag: self.etag(head),
            modified: self.last_modified_secs(head),
        }
    }

    /// The validator of a view: its visible state, its form and coding, the build that renders it,
    /// and the configuration that shows in it. Weak, since an edit of a page's surroundings alone
    /// need not change it.
    fn etag(&self, head: Head) -> String {
        let (t, metadata_t) = (head.last_t.micros(), head.metadata_t.micros());
        format!(
            "W/\"{t:x}.{metadata_t:x}.{}{}\"",
            self.tag_tail(),
            accept::coding_tag(self.coding())
        )
    }

    /// Part of the validator that does not change with the feed.
    fn tag_tail(&self) -> String {
        let (form, order, filter) = (
            self.representation.etag(),
            self.view.order,
            self.view.filter.tag(),
        );
        format!(
            "{form}{order}{filter}.{}.{:x}",
            render::REVISION,
            self.setting()
        )
    }

    /// The coding that the consumer prefers.
    fn coding(&self) -> Coding {
        accept::coding(list_value(&self.request.headers, &ACCEPT_ENCODING).as_deref())
    }

    /// A checksum of what a document shows of our configuration: after a change of it, no copy is
    /// fresh. The feed is in it, too: the state of another one is no base of a delta.
    fn setting(&self) -> u32 {
        let readers = &self.context.readers;
        let readers::Config {
            page_items_max,
            page_bytes_max,
            classic_items,
            ..
        } = readers.config();
        // Below a secret, other links.
        let (feed, root) = (self.view.feed, self.caller.site(self.context).hub());
        crc32fast::hash(
            format!("{feed} {root} {page_items_max} {page_bytes_max} {classic_items}").as_bytes(),
        )
    }

    /// The second of the last change, once it is over: until then another change may carry the same
    /// date. None where not everything is shown: who sees which part changes without the feed.
    fn last_modified_secs(&self, head: Head) -> Option<u64> {
        if self.view.filter.is_within() {
            return None;
        }
        let now = Stamp::from_micros(self.context.clock.now_us());
        let changed = head.last_t.max(head.metadata_t);
        (changed > Stamp::ZERO && changed.secs() < now.secs()).then(|| changed.secs())
    }
}
