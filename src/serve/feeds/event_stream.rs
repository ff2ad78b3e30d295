//! Server-sent events: from a GET to a stream of the changes of a feed, which lives until the
//! reader leaves, may not read any more, or the server stops; not what an event says.

use super::{
    admission::{AdmittedRequest, Caller},
    context::ServeContext,
    long_poll::WaiterPermit,
};
use crate::{
    edge::{
        body::{self, Response, ServeBody, Streamed},
        fields::set,
    },
    feed::{lineage::GENERATION, order::Axis, view::View},
    readers::{Pages, ReadRequest, Rendered},
    render::{Query, event_stream},
    serve::answers::refusal::Refusal,
};
use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method,
    header::{CACHE_CONTROL, CONTENT_TYPE, VARY},
    request::Parts,
};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use std::{
    ops::RangeInclusive,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tower::BoxError;

/// Pause after which a quiet stream says something: below the usual idle limit of proxies, 60 s,
/// with room for one that is lost.
const BEAT: Duration = Duration::from_secs(25);
/// Milliseconds after which browsers connect again: spread, so that those of a restarted server do
/// not come at once.
const RETRY_MS: RangeInclusive<u64> = 1_000..=5_000;
/// Events that are written at once at most.
const EVENTS_MAX: usize = 100;
/// The longest event id that is read, bytes; ours have 39 at most.
const EVENT_ID_BYTES_MAX: usize = 128;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Tells nginx to pass events on as they come.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The events of a feed.
pub(crate) async fn open(
    asked: &AdmittedRequest<'_>,
    name: &str,
    is_negotiated: bool,
) -> Result<Response, Refusal> {
    let (context, request) = (asked.context, asked.request);
    let query = Query::parse(asked.query())?;
    check(&query)?;
    let feed = asked.feed(name)?;
    let view = View::all(feed.read, query.order).filtered(query.filter.clone());
    let since = position(request, &query.since)?;
    let reading = ReadRequest::events(view, &since, EVENTS_MAX)?;
    context.check_ready(feed).await?;
    // What is wrong is told before the stream begins. Its first page is made by this, too.
    let first = context.readers.read(&reading).await?;
    let named = |mut response: Response| {
        set(
            response.headers_mut(),
            GENERATION,
            first.head.generation.to_string(),
        );
        response
    };
    if request.method == Method::HEAD {
        return Ok(named(response(body::whole(Bytes::new()), is_negotiated)));
    }
    let place = context.waiters.enter(context.client(request), feed.named)?;
    let end = end(
        context.clone(),
        asked.caller.clone(),
        query.timeout_secs,
        place.ended(),
    );
    let pages = context.readers.follow_position(reading, end)?;
    let body = EventBody::new(pages, place).boxed_unsync();
    Ok(named(response(body, is_negotiated)))
}

/// A stream that ends at once, for browsers that come while the server starts: after any other
/// answer they would never come again.
pub(crate) fn come_again() -> Response {
    let line = event_stream::retry(spread_retry());
    response(body::whole(line), false)
}

/// Refuses what a stream has not.
fn check(query: &Query) -> Result<(), Refusal> {
    if !query.until.is_empty() || query.max.is_some() || query.callback.is_some() {
        return Err(Refusal::bad(
            "a stream of events takes `since`, `order`, `timeout` and filters only",
        ));
    }
    if query.order.reverse || query.order.axis == Axis::Published {
        return Err(Refusal::bad(
            "a stream of events has the order modified or created",
        ));
    }
    Ok(())
}

/// The position to begin at. The last event that a browser saw goes before `since`: it connects
/// again with the URL by which it came first.
fn position(request: &Parts, since: &str) -> Result<String, Refusal> {
    let mut ids = request.headers.get_all(LAST_EVENT_ID).iter();
    let id = ids.next();
    if ids.next().is_some() {
        return Err(Refusal::bad("`Last-Event-ID` is given more than once"));
    }
    let Some(id) = id.filter(|id| !id.is_empty()) else {
        return Ok(since.to_owned());
    };
    let id = match id.to_str() {
        Ok(id) if id.len() <= EVENT_ID_BYTES_MAX => id.strip_prefix("cursor:").unwrap_or(id),
        // Whatever is not readable is a cursor of somebody else, and told as such.
        _ => "-",
    };
    Ok(format!("cursor:{id}"))
}

/// The end of a stream: the server stops, its reader has lost the right to read, or sees another
/// part of the feed now, or has asked for so many seconds, or its place is needed.
async fn end(
    context: Arc<ServeContext>,
    caller: Caller,
    timeout_secs: Option<u64>,
    gives_way: impl Future<Output = ()>,
) {
    let late = async {
        match timeout_secs {
            Some(secs) => tokio::time::sleep(Duration::from_secs(secs)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = context.stop.cancelled() => {}
        () = context.until_not_admitted(&caller) => {}
        () = late => {}
        () = gives_way => {}
    }
}

fn response(body: ServeBody, is_negotiated: bool) -> Response {
    let mut response = Response::new(body);
    response.extensions_mut().insert(Streamed);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(event_stream::CONTENT_TYPE),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    if is_negotiated {
        headers.insert(VARY, HeaderValue::from_static("accept"));
    }
    response
}

fn spread_retry() -> Duration {
    Duration::from_millis(rand::random_range(RETRY_MS))
}

/// Pages as events, with a sign of life between them.
struct EventBody {
    /// Lines before the first event.
    first: Option<Bytes>,
    pages: Pages,
    beat: Interval,
    /// A position to which the reader has come without an event, and which it was not told.
    passed: Option<String>,
    _place: WaiterPermit,
}

impl EventBody {
    fn new(pages: Pages, place: WaiterPermit) -> Self {
        let mut beat = interval_at(Instant::now() + BEAT, BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let first = Some(event_stream::retry(spread_retry()).into());
        Self {
            first,
            pages,
            beat,
            passed: None,
            _place: place,
        }
    }

    /// The events of a page; `None` for one without.
    fn take(&mut self, page: &Rendered) -> Option<Bytes> {
        self.passed.clone_from(&page.scanned);
        if page.body.is_empty() {
            let passed = page.scanned.as_ref().unwrap_or(&page.last_cursor);
            self.passed = Some(passed.clone()).filter(|cursor| !cursor.is_empty());
            return None;
        }
        self.beat.reset();
        Some(page.body.clone())
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let stream = &mut *self;
        if let Some(first) = stream.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        while let Poll::Ready(page) = stream.pages.as_mut().poll_next(cx) {
            match page {
                Some(Ok(page)) => {
                    if let Some(events) = stream.take(&page) {
                        return Poll::Ready(Some(Ok(Frame::data(events))));
                    }
                }
                Some(Err(error)) => {
                    // A browser comes again, and is told then.
                    tracing::debug!(error = %error, "A stream of events ends: {error}");
                    return Poll::Ready(None);
                }
                None => {
                    let position = stream
                        .passed
                        .take()
                        .map(|cursor| event_stream::position(&cursor).into());
                    return Poll::Ready(position.map(|position| Ok(Frame::data(position))));
                }
            }
        }
        ready!(stream.beat.poll_tick(cx));
        let sign = match stream.passed.take() {
            Some(cursor) => event_stream::position(&cursor).into(),
            None => Bytes::from_static(event_stream::COMMENT.as_bytes()),
        };
        Poll::Ready(Some(Ok(Frame::data(sign))))
    }
}
