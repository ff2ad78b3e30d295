//! One connection, from its first request to its last, and the times and sizes that it must keep
//! to; not what it is asked.

use super::{
    body::{PLAIN_TEXT, Streamed, short_of},
    heads::{GateHandle, RequestGate, check_decoded},
    request_body::RequestBody,
    unread::{CountedBody, Unread, length},
};
use crate::layers::members;
use bytes::Bytes;
use futures_util::future::Either;
use http::{
    HeaderValue, Method, Request, StatusCode, Version,
    header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, RETRY_AFTER},
};
use http_body::Body as _;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service, ServiceExt as _};

/// Seconds that a connection may be idle between two requests.
const IDLE_SECS: u64 = 30;
/// Seconds that a consumer may go without reading 64 KiB of what it asked for, or all that is left
/// of it.
const STALL_SECS: u64 = 30;
/// Seconds between two looks at what was read.
const STALL_CHECK_SECS: u64 = 10;
/// Time for which an answer waits at most until those before it on its connection were read.
const ROOM_WAIT: Duration = Duration::from_secs(10);
/// Streams of an HTTP/2 connection at once.
const STREAMS_MAX: u32 = 128;
/// Streams that the peer of an HTTP/2 connection may reset before they were accepted; more end it
/// (rapid reset).
const RESETS_MAX: usize = 32;
/// Bytes of the heads that are read ahead of their requests; those of one head are counted in
/// `heads`.
const READ_AHEAD_BYTES: usize = 64 << 10;
/// Bytes of the headers of a request of HTTP/2.
const HTTP_2_HEADER_BYTES_MAX: u32 = 64 << 10;

/// A connection that was accepted.
pub(super) struct Connection {
    /// Answers that its peer has not read.
    pub(super) unread: Arc<Unread>,
    /// Bytes of answers that its peer may leave unread.
    pub(super) bytes_max: usize,
    /// True to keep the case of header names, for whoever stands behind a proxy; it costs a little
    /// with every request.
    pub(super) keeps_header_case: bool,
    /// Dropped when the stream is, which may outlive HTTP on it (101).
    pub(super) place: Box<dyn Send>,
}

impl Connection {
    /// Answers the requests on a stream until the peer has no more, or `stop`.
    pub(super) async fn converse<I, S, B>(self, stream: I, service: S, stop: CancellationToken)
    where
        I: AsyncRead + AsyncWrite + Send + 'static,
        S: Service<Request<RequestBody>, Response = http::Response<B>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
        B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
    {
        let (unread, bytes_max) = (self.unread, self.bytes_max);
        // What a future holds across a wait stays in it for as long as the connection does: each
        // step has a future of its own, and that of HTTP/2 a place of its own in memory.
        let Some((stream, is_http2)) = begun(stream, self.place, &unread, &stop).await else {
            return;
        };
        let asked = Arc::new(AtomicBool::new(false));
        let (asks, counts, gate) = (asked.clone(), unread.clone(), stream.handle());
        // Not by way of tower, which would clone everything here once more with every request.
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            asks.store(true, Ordering::Relaxed);
            // Its connection is not idle until the answer is there.
            let is_asked = counts.asked();
            let (number, gate, unread, service) =
                (gate.begin(), gate.clone(), counts.clone(), service.clone());
            // The library leaves the body of such an answer out in HTTP/1 alone.
            let is_head_alone =
                request.version() == Version::HTTP_2 && request.method() == Method::HEAD;
            async move {
                let _is_asked = is_asked;
                let counted = unread.clone();
                let mut answer = answer(request, number, service, &gate, counted, bytes_max).await;
                if is_head_alone {
                    answer = without_body(answer, unread);
                }
                gate.answered(number, answer.status() == StatusCode::SWITCHING_PROTOCOLS);
                Ok::<_, Infallible>(answer)
            }
        });
        let stream = TokioIo::new(stream);
        let mut connection = pin!(if is_http2 {
            Either::Right(Box::pin(http2_builder().serve_connection(stream, service)))
        } else {
            let connection =
                http1_builder(self.keeps_header_case).serve_connection(stream, service);
            Either::Left(connection.with_upgrades())
        });
        let watched = async {
            for looks in 1_u64.. {
                tokio::time::sleep(Duration::from_secs(STALL_CHECK_SECS)).await;
                if looks == IDLE_SECS / STALL_CHECK_SECS && !asked.load(Ordering::Relaxed) {
                    return ("asked for nothing", IDLE_SECS);
                }
                // Writing alone is no progress: the pings of HTTP/2 leave while its answers do not.
                if unread
                    .stalled()
                    .is_some_and(|stalled| stalled >= Duration::from_secs(STALL_SECS))
                {
                    return ("read nothing of its answers", STALL_SECS);
                }
            }
            std::future::pending().await
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = unread.is_cut() => return,
            (why, secs) = watched => {
                tracing::debug!("A connection {why} in {secs} seconds");
                return;
            }
            () = stop.cancelled() => {
                match connection.as_mut().as_pin_mut() {
                    Either::Left(connection) => connection.graceful_shutdown(),
                    Either::Right(connection) => {
                        connection.get_mut().as_mut().graceful_shutdown();
                    }
                }
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = %error, "A connection ended early: {error}");
        }
    }
}

/// A connection whose peer has begun to ask: the way to read its requests, and true for HTTP/2. `None`
/// when it asked for nothing, or is to end.
async fn begun<I: AsyncRead + AsyncWrite>(
    stream: I,
    place: Box<dyn Send>,
    unread: &Unread,
    stop: &CancellationToken,
) -> Option<(RequestGate<TimeoutStream<I>>, bool)> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(Duration::from_secs(STALL_SECS)));
    let mut stream = RequestGate::new(stream, place);
    // Looked at here and not by the library, which would read the first bytes alone and then need
    // twice the memory for the rest.
    let first = tokio::select! {
        first = stream.begins_as_http2() => first,
        () = unread.is_cut() => return None,
        () = tokio::time::sleep(Duration::from_secs(IDLE_SECS)) => {
            tracing::debug!("A connection asked for nothing in {IDLE_SECS} seconds");
            return None;
        }
        () = stop.cancelled() => return None,
    };
    // An error is met by the library, too.
    Some((stream, first.unwrap_or(false)))
}

/// The limits of HTTP/1.
fn http1_builder(keeps_header_case: bool) -> http1::Builder {
    let mut builder = http1::Builder::new();
    // Limit: a client that closes its half gets no answer (hyper closes).
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(IDLE_SECS))
        .max_buf_size(READ_AHEAD_BYTES)
        // A proxied site sees names of headers as its readers spell them.
        .preserve_header_case(keeps_header_case);
    builder
}

/// The limits of HTTP/2.
fn http2_builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        // A peer that has gone without a word is found out by the ping.
        .keep_alive_interval(Duration::from_secs(IDLE_SECS))
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_header_list_size(HTTP_2_HEADER_BYTES_MAX);
    builder
}

type CountedAnswer<B> = http::Response<CountedBody<Pin<Box<B>>>>;

/// The answer to a request, or the refusal of one that is malformed: also of one whose body turned
/// out to be while it was read.
async fn answer<S, B>(
    request: Request<Incoming>,
    number: u64,
    service: S,
    gate: &GateHandle,
    unread: Arc<Unread>,
    bytes_max: usize,
) -> CountedAnswer<B>
where
    S: Service<Request<RequestBody>, Response = http::Response<B>, Error = Infallible>,
    B: http_body::Body<Data = Bytes, Error = BoxError>,
{
    let version = request.version();
    let refused = |unread| {
        let fault = gate.fault(number)?;
        tracing::debug!("Refused a request: {fault}");
        Some(closing(refusal(fault.status(), fault, unread), version))
    };
    if let Some(refusal) = refused(unread.clone()) {
        return refusal;
    }
    if let Some(why) = other_host(&request) {
        return refusal(StatusCode::BAD_REQUEST, why, unread);
    }
    // The bytes of HTTP/1 were checked on their way here.
    if request.version() == Version::HTTP_2
        && let Err(fault) = check_decoded(&request)
    {
        return refusal(fault.status(), fault, unread);
    }
    if expects_more(&request) {
        let why = "the only expectation that is met here is 100-continue";
        let refusal = refusal(StatusCode::EXPECTATION_FAILED, why, unread);
        if request.body().is_end_stream() {
            return refusal;
        }
        return closing(refusal, version);
    }
    let is_head = request.method() == Method::HEAD;
    let expects = request.headers().contains_key(EXPECT);
    let (request, left) = RequestBody::watch(without_empty_port(request));
    let Ok(answer) = service.oneshot(request).await;
    if let Some(refusal) = refused(unread.clone()) {
        return refusal;
    }
    let answer = counted(answer, unread, bytes_max).await;
    // In HTTP/1.0 the end of such an answer is that of its connection.
    let has_no_end = version == Version::HTTP_10 && !is_head && !has_length(&answer);
    if has_no_end || !left.is_done(expects).await {
        return closing(answer, version);
    }
    answer
}

/// The answer to HEAD: it says how long the body would be, and has none (RFC 9110 section 9.3.2).
fn without_body<B>(answer: CountedAnswer<B>, unread: Arc<Unread>) -> CountedAnswer<B>
where
    B: http_body::Body<Data = Bytes, Error = BoxError>,
{
    let bytes = answer.body().size_hint().exact().filter(|bytes| *bytes > 0);
    let mut answer = answer.map(|_| CountedBody::whole(Bytes::new(), unread));
    if let Some(bytes) = bytes {
        answer
            .headers_mut()
            .entry(CONTENT_LENGTH)
            .or_insert(bytes.into());
    }
    answer
}

/// True for an answer whose length is known before its end.
fn has_length<B>(answer: &CountedAnswer<B>) -> bool
where
    B: http_body::Body<Data = Bytes, Error = BoxError>,
{
    answer.headers().contains_key(CONTENT_LENGTH) || answer.body().size_hint().exact().is_some()
}

/// A request whose `Host` has no port where it has an empty one, which means the same (RFC 3986
/// section 6.2.3).
fn without_empty_port<B>(mut request: Request<B>) -> Request<B> {
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.as_bytes().strip_suffix(b":"));
    if let Some(Ok(host)) = host.map(HeaderValue::from_bytes) {
        request.headers_mut().insert(HOST, host);
    }
    request
}

/// An answer whose body is counted as unread; 503 when those before it on its connection are not
/// read.
async fn counted<B>(
    answer: http::Response<B>,
    unread: Arc<Unread>,
    bytes_max: usize,
) -> CountedAnswer<B>
where
    B: http_body::Body<Data = Bytes, Error = BoxError>,
{
    let is_streamed = answer.extensions().get::<Streamed>().is_some();
    let bytes = if is_streamed {
        0
    } else {
        length(answer.body())
    };
    if unread.has_room(bytes, bytes_max, ROOM_WAIT).await {
        let count = if is_streamed {
            CountedBody::streamed
        } else {
            CountedBody::new
        };
        return answer.map(|body| count(Box::pin(body), unread));
    }
    let why = "the answers before this one on the same connection were not read";
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, why, unread);
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(ROOM_WAIT.as_secs()));
    response
}

/// Fault of a request of HTTP/2 that names two hosts, or none: one reader would take the one,
/// another the other (RFC 9113 section 8.3.1).
fn other_host(request: &Request<Incoming>) -> Option<&'static str> {
    if request.version() != Version::HTTP_2 {
        return None;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    match (request.uri().authority(), hosts.next(), hosts.next()) {
        (_, _, Some(_)) => Some("a request has one Host"),
        (None, None, None) => Some("a request has an :authority"),
        (Some(authority), Some(host), None)
            if !authority
                .as_str()
                .as_bytes()
                .eq_ignore_ascii_case(host.as_bytes()) =>
        {
            Some("the Host differs from the :authority")
        }
        _ => None,
    }
}

/// True for a request that expects anything but to be asked for its body (RFC 9110 section 10.1.1).
/// HTTP/1.0 has no expectations.
fn expects_more(request: &Request<Incoming>) -> bool {
    let mut expected = members(request.headers(), &EXPECT);
    request.version() > Version::HTTP_10
        && expected.any(|what| !what.is_empty() && !what.eq_ignore_ascii_case(b"100-continue"))
}

/// A refusal in a line.
fn refusal<B>(
    status: StatusCode,
    line: impl std::fmt::Display,
    unread: Arc<Unread>,
) -> CountedAnswer<B>
where
    B: http_body::Body<Data = Bytes, Error = BoxError>,
{
    let line = Bytes::from(format!("{line}\n"));
    short_of(status, PLAIN_TEXT, CountedBody::whole(line, unread))
}

/// The last answer on its connection, by the version of its request.
fn closing<B>(mut answer: CountedAnswer<B>, version: Version) -> CountedAnswer<B> {
    answer
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    if version == Version::HTTP_10 {
        // To an answer of HTTP/1.1 the library adds `keep-alive`.
        *answer.version_mut() = version;
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::body::{self, Response};
    use http_body_util::BodyExt as _;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::Instant,
    };

    /// Answers every request with so many bytes.
    fn bytes(
        count: usize,
    ) -> impl Service<Request<RequestBody>, Response = Response, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static {
        tower::service_fn(move |_: Request<RequestBody>| async move {
            Ok(Response::new(body::whole(vec![b'x'; count])))
        })
    }

    fn connection() -> Connection {
        Connection {
            unread: Unread::new(),
            bytes_max: usize::MAX,
            keeps_header_case: false,
            place: Box::new(()),
        }
    }

    /// Seconds after which a consumer is hung up on that says this and no more, and what it was
    /// answered.
    async fn patience(says: &str) -> (u64, String) {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let slow = tower::service_fn(|request| async {
            tokio::time::sleep(Duration::from_secs(300)).await;
            bytes(3).call(request).await
        });

        let talk = tokio::spawn(connection().converse(ours, slow, CancellationToken::new()));
        let started = Instant::now();
        theirs.write_all(says.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let end = tokio::time::timeout(
            Duration::from_secs(3600),
            theirs.read_to_string(&mut answer),
        )
        .await;
        end.expect("it is hung up on").unwrap();
        talk.await.unwrap();
        (started.elapsed().as_secs(), answer)
    }

    /// Seconds after which an HTTP/2 consumer is hung up on that answers pings and takes nothing of
    /// its answer.
    #[tokio::test(start_paused = true)]
    async fn pings_keep_no_connection_whose_answers_are_not_read() {
        let (ours, theirs) = tokio::io::duplex(1 << 20);

        tokio::spawn(connection().converse(ours, bytes(1 << 20), CancellationToken::new()));
        let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        client
            .timer(TokioTimer::new())
            .initial_stream_window_size(1000);
        let (mut asks, connection) = client.handshake(TokioIo::new(theirs)).await.unwrap();
        let connection = tokio::spawn(connection);
        let request = Request::get("http://x/").body(String::new()).unwrap();
        let started = Instant::now();
        let answer = asks.send_request(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let _ = tokio::time::timeout(Duration::from_secs(3600), connection)
            .await
            .expect("it is hung up on");
        let secs = started.elapsed().as_secs();
        assert!(
            (STALL_SECS..=STALL_SECS + STALL_CHECK_SECS).contains(&secs),
            "{secs}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn head_has_the_length_of_a_body_and_no_body_in_either_version() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(connection().converse(ours, bytes(1000), CancellationToken::new()));
        theirs
            .write_all(b"HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut told = String::new();
        theirs.read_to_string(&mut told).await.unwrap();
        assert!(
            told.contains("content-length: 1000\r\n") && told.ends_with("\r\n\r\n"),
            "{told}"
        );

        let (ours, theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(connection().converse(ours, bytes(1000), CancellationToken::new()));
        let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (mut asks, connection) = client.handshake(TokioIo::new(theirs)).await.unwrap();
        tokio::spawn(connection);
        for (method, expect) in [(Method::HEAD, 0), (Method::GET, 1000)] {
            let request = Request::builder()
                .method(&method)
                .uri("http://x/")
                .body(String::new())
                .unwrap();
            let answer = asks.send_request(request).await.unwrap();
            assert_eq!(answer.headers()[CONTENT_LENGTH], "1000", "{method}");
            let body = answer
                .into_body()
                .collect()
                .await
                .expect("nothing else comes");
            assert_eq!(body.to_bytes().len(), expect, "{method}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_for_nothing_is_hung_up_on_and_whoever_waits_for_an_answer_is_not() {
        assert_eq!(patience("").await, (IDLE_SECS, String::new()));
        for begun in [
            "P",
            "PRI * HTTP/2.0\r\n",
            "GET",
            "GET / HTTP/1.1\r\nhost: x\r\nx: ",
        ] {
            let (secs, answer) = patience(begun).await;
            assert!((20..25).contains(&secs), "{begun:?}: {secs}");
            assert!(
                answer.starts_with("HTTP/1.1 408 ") && answer.ends_with("within 20 seconds\n"),
                "{answer}"
            );
        }
        let (secs, answer) = patience("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        // The answer, and then the time in which the next request might have come.
        assert_eq!(
            (secs, answer.ends_with("xxx")),
            (300 + IDLE_SECS, true),
            "{answer}"
        );
    }

    /// Answers `Upgrade: echo` with 101 and sends back what comes then, everything else with its
    /// path.
    async fn echoing(mut request: Request<RequestBody>) -> Result<Response, Infallible> {
        let mut response = Response::new(body::whole(request.uri().path().to_owned()));
        if request
            .headers()
            .get(http::header::UPGRADE)
            .is_some_and(|to| to == "echo")
        {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let (mut read, mut write) = tokio::io::split(TokioIo::new(upgrade.await.unwrap()));
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
        Ok(response)
    }

    #[tokio::test(start_paused = true)]
    async fn what_follows_an_accepted_upgrade_passes_as_it_is() {
        let (held, place) = std::sync::mpsc::channel::<()>();
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let connection = Connection {
            place: Box::new(held),
            ..connection()
        };
        let talk = tokio::spawn(connection.converse(
            ours,
            tower::service_fn(echoing),
            CancellationToken::new(),
        ));
        // Some bytes come before the answer, some are a request that would be refused.
        theirs
            .write_all(b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: echo\r\n\r\n\0\xff raw")
            .await
            .unwrap();
        let mut answer = vec![0; 1024];
        let read = theirs.read(&mut answer).await.unwrap();
        assert!(
            answer[..read].starts_with(b"HTTP/1.1 101 "),
            "{}",
            answer[..read].escape_ascii()
        );
        theirs.write_all(b"GET \n\n").await.unwrap();
        let mut echo = answer[..read].to_vec();
        while !echo.ends_with(b"\0\xff rawGET \n\n") {
            let read = theirs.read(&mut answer).await.unwrap();
            assert!(read > 0, "{}", echo.escape_ascii());
            echo.extend_from_slice(&answer[..read]);
        }
        talk.await.unwrap();
        let is_held = || {
            !matches!(
                place.try_recv(),
                Err(std::sync::mpsc::TryRecvError::Disconnected)
            )
        };
        assert!(is_held(), "the connection outlives HTTP on it");
        drop(theirs);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn what_follows_an_upgrade_that_was_not_accepted_is_checked() {
        for (next, status) in [
            ("GET /2 HTTP/1.1\r\nhost: x\r\n\r\n", "200"),
            ("GET  /2 HTTP/1.1\r\n", "400"),
        ] {
            let (ours, mut theirs) = tokio::io::duplex(1024);
            tokio::spawn(connection().converse(
                ours,
                tower::service_fn(echoing),
                CancellationToken::new(),
            ));
            let first = "GET /1 HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n\r\n";
            theirs
                .write_all(format!("{first}{next}").as_bytes())
                .await
                .unwrap();
            let mut answers = String::new();
            theirs.read_to_string(&mut answers).await.unwrap();
            let statuses: Vec<_> = answers
                .split("HTTP/1.1 ")
                .skip(1)
                .map(|answer| &answer[..3])
                .collect();
            assert_eq!(statuses, ["200", status], "{answers}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_not_read_is_cut_and_holds_little_until_then() {
        const FRAME_BYTES: usize = 10_000;
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let made = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counts = made.clone();
        let endless = tower::service_fn(move |_: Request<RequestBody>| {
            let counts = counts.clone();
            let frames = futures_util::stream::repeat_with(move || {
                counts.fetch_add(FRAME_BYTES, Ordering::Relaxed);
                Ok::<_, BoxError>(http_body::Frame::data(Bytes::from(vec![b':'; FRAME_BYTES])))
            });
            let body = http_body_util::combinators::UnsyncBoxBody::new(
                http_body_util::StreamBody::new(frames),
            );
            let mut response = Response::new(body);
            response.extensions_mut().insert(Streamed);
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let talk = tokio::spawn(connection().converse(ours, endless, CancellationToken::new()));
        theirs
            .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        let started = Instant::now();
        tokio::time::timeout(Duration::from_secs(3600), talk)
            .await
            .expect("it is hung up on")
            .unwrap();
        assert!(
            started.elapsed().as_secs() <= STALL_SECS + STALL_CHECK_SECS,
            "{:?}",
            started.elapsed()
        );
        let made = made.load(Ordering::Relaxed);
        assert!(
            (1..=4 * READ_AHEAD_BYTES).contains(&made),
            "{made} bytes were made for nobody"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_gone_is_noticed_behind_a_request_that_is_refused() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let waits = tower::service_fn(|_| std::future::pending::<Result<Response, Infallible>>());
        let talk = tokio::spawn(connection().converse(ours, waits, CancellationToken::new()));
        theirs
            .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\nnonsense\r\n")
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(!talk.is_finished());
        drop(theirs);
        tokio::time::timeout(Duration::from_secs(1), talk)
            .await
            .expect("it is noticed")
            .unwrap();
    }

    /// An answer of unknown length.
    async fn endless(_: Request<RequestBody>) -> Result<Response, Infallible> {
        let frames = futures_util::stream::iter([Ok::<_, BoxError>(http_body::Frame::data(
            Bytes::from("xyz"),
        ))]);
        let body = http_body_util::combinators::UnsyncBoxBody::new(
            http_body_util::StreamBody::new(frames),
        );
        Ok(Response::new(body))
    }

    /// All that is answered to these bytes, while more may come.
    async fn told<S>(service: S, says: &str) -> String
    where
        S: Service<Request<RequestBody>, Response = Response, Error = Infallible, Future: Send>
            + Clone
            + Send
            + 'static,
    {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(connection().converse(ours, service, CancellationToken::new()));
        theirs.write_all(says.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let end = tokio::time::timeout(
            Duration::from_secs(3600),
            theirs.read_to_string(&mut answer),
        )
        .await;
        end.expect("it is hung up on").unwrap();
        answer
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_http_1_0_that_ends_by_closing_says_nothing_else() {
        // RFC 9112 sections 6.3 and 9.3.
        let ask = |line: &str| format!("{line}\r\nhost: x\r\nconnection: keep-alive\r\n\r\n");
        let answer = told(tower::service_fn(endless), &ask("GET / HTTP/1.0"))
            .await
            .to_lowercase();
        assert!(
            answer.starts_with("http/1.0 200 ") && answer.ends_with("\r\n\r\nxyz"),
            "{answer}"
        );
        assert!(
            !answer.contains("keep-alive") && answer.contains("connection: close\r\n"),
            "{answer}"
        );
        let known = told(bytes(3), &ask("GET / HTTP/1.0")).await;
        assert!(known.contains("connection: keep-alive\r\n"), "{known}");
        let chunked = told(tower::service_fn(endless), &ask("GET / HTTP/1.1")).await;
        assert!(
            !chunked.contains("connection: close") && chunked.ends_with("\r\n0\r\n\r\n"),
            "{chunked}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_leaves_its_request_unread_says_that_the_connection_ends() {
        // RFC 9112 section 9.6.
        let post =
            |head: &str, body: &str| format!("POST / HTTP/1.1\r\nhost: x\r\n{head}\r\n{body}");
        let next = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        let short = post("content-length: 5\r\n", "hello") + next;
        let chunked = post(
            "transfer-encoding: chunked\r\n",
            "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ) + next;
        let whole = post("content-length: 20000\r\n", &"x".repeat(20_000)) + next;
        for there in [short, chunked, whole] {
            let answers = told(bytes(3), &there).await;
            assert_eq!(answers.matches("xxx").count(), 2, "{answers}");
            assert!(!answers.contains("connection: close"), "{answers}");
        }
        let long = post("content-length: 200000\r\n", &"x".repeat(200_000)) + next;
        let late = post("content-length: 5\r\n", "");
        let expects = post("expect: 100-continue\r\ncontent-length: 5\r\n", "");
        let open = post("transfer-encoding: chunked\r\n", "2\r\nhe\r\n");
        let unmet = post("expect: x\r\ncontent-length: 5\r\n", "");
        for not_there in [long, late, expects, open, unmet] {
            let answers = told(bytes(3), &not_there).await;
            assert!(
                answers.starts_with("HTTP/1.1 200 OK\r\n") || answers.starts_with("HTTP/1.1 417 "),
                "{answers}"
            );
            assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
            assert!(answers.contains("connection: close\r\n"), "{answers}");
        }
    }
}
