//! A listener and its connections, ended in order; not what they are asked.

use super::{
    body::Streamed,
    client_address::PeerAddress,
    connection::{CountedBody, Unread, length},
};
use crate::byte_budget::ByteBudget;
use bytes::Bytes;
use http::{
    HeaderValue, Request, StatusCode, Version,
    header::{CACHE_CONTROL, CONTENT_TYPE, HOST, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Semaphore,
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};

/// Seconds that a consumer may take to send the head of a request; a connection without one is idle as long.
const HEAD_SECS: u64 = 30;
/// Seconds that a consumer may go without reading 64 KiB of what it asked for, or all that is left of it.
const STALL_SECS: u64 = 30;
/// Seconds between two looks at what was read.
const STALL_CHECK_SECS: u64 = 10;
/// Time that a consumer may go without reading while others wait for the memory that its answers hold.
const STALL_WHILE_SHORT: Duration = Duration::from_secs(2);
/// Pause between two looks for connections that hold memory that others wait for.
const SHORT_CHECK: Duration = Duration::from_secs(1);
/// Part of the memory for answers that those on one connection may hold.
const CONNECTION_SHARE: usize = 8;
/// Time for which an answer waits at most until those before it on its connection were read.
const ROOM_WAIT: Duration = Duration::from_secs(10);
/// Streams of an HTTP/2 connection at once.
const STREAMS_MAX: u32 = 128;
/// Streams that the peer of an HTTP/2 connection may reset before they were accepted; more end it (rapid reset).
const RESETS_MAX: usize = 32;
/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Pause after the system refused a connection, as it does when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Limits of a listener.
#[derive(Clone, Debug)]
pub struct ListenerLimits {
    /// Connections at once; one more waits to be accepted.
    pub connections_max: usize,
    /// Bytes of answers on one connection that its peer has not read.
    pub connection_bytes_max: usize,
    /// The memory of all answers: while it is short, connections that do not read are ended.
    pub budget: Arc<ByteBudget>,
    /// True to end the oldest connection that asks for nothing when another one comes and there are as many as may be.
    pub idle_give_way: bool,
}

impl ListenerLimits {
    /// Limits for so many connections and so many bytes of answers.
    pub fn new(connections_max: usize, answers_bytes_max: usize, budget: Arc<ByteBudget>) -> Self {
        Self {
            connections_max,
            connection_bytes_max: answers_bytes_max / CONNECTION_SHARE,
            budget,
            idle_give_way: false,
        }
    }
}

/// Connections that are open.
#[derive(Default)]
struct Connections(Mutex<HashMap<u64, Arc<Unread>>>);

impl Connections {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<u64, Arc<Unread>>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the oldest connection that asks for nothing.
    fn let_idle_go(&self) {
        self.with(|open| {
            let idle = open.iter().filter(|(_, unread)| unread.is_idle());
            if let Some((_, oldest)) = idle.min_by_key(|(number, _)| **number) {
                oldest.cut();
            }
        });
    }

    /// Ends the connections that read nothing while others wait for memory.
    async fn give_way(&self, budget: &ByteBudget) {
        loop {
            tokio::time::sleep(SHORT_CHECK).await;
            if budget.is_short() {
                let is_stalled =
                    |unread: &Unread| unread.stalled().is_some_and(|stalled| stalled >= STALL_WHILE_SHORT);
                let cut = self.with(|open| {
                    open.values().filter(|unread| is_stalled(unread)).map(|unread| unread.cut()).count()
                });
                if cut > 0 {
                    tracing::warn!(
                        connections = cut,
                        "Memory for answers is short: ended connections that did not read theirs: {cut}"
                    );
                }
            }
        }
    }
}

/// Serves until `stop`, then lets every connection finish what it is doing. Whoever calls bounds that wait.
pub async fn serve<S, B>(listener: TcpListener, service: S, limits: ListenerLimits, stop: CancellationToken)
where
    S: Service<Request<Incoming>, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS)));
    let connections = TaskTracker::new();
    let open = Arc::new(Connections::default());
    let giving_way = {
        let (open, budget) = (open.clone(), limits.budget.clone());
        async move { open.give_way(&budget).await }
    };
    let _giving_way = AbortOnDropHandle::new(tokio::spawn(giving_way));
    let mut number = 0;
    loop {
        let accept = async {
            if limits.idle_give_way {
                let accepted = listener.accept().await;
                if places.available_permits() == 0 {
                    open.let_idle_go();
                }
                (accepted, places.clone().acquire_owned().await)
            } else {
                let place = places.clone().acquire_owned().await;
                (listener.accept().await, place)
            }
        };
        let (accepted, place) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Answers are small and written whole: waiting for more to send would only delay them.
                let _ = stream.set_nodelay(true);
                let (stop, open, unread) = (stop.clone(), open.clone(), Unread::new());
                let bytes_max = limits.connection_bytes_max;
                number += 1;
                open.with(|open| open.insert(number, unread.clone()));
                let peer = PeerAddress(peer.ip());
                let service = ServiceBuilder::new()
                    .map_request(move |mut request: Request<Incoming>| {
                        request.extensions_mut().insert(peer);
                        request
                    })
                    .service(service.clone());
                connections.spawn(async move {
                    converse(stream, service, (unread, bytes_max), stop).await;
                    open.with(|open| open.remove(&number));
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(error = %error, "Could not accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// One connection, from its first request to its last.
async fn converse<I, S, B>(
    stream: I,
    service: S,
    (unread, bytes_max): (Arc<Unread>, usize),
    stop: CancellationToken,
) where
    I: AsyncRead + AsyncWrite + Send + 'static,
    S: Service<Request<Incoming>, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    let asked = Arc::new(AtomicBool::new(false));
    let asks = asked.clone();
    let counts = unread.clone();
    let service = tower::service_fn(move |request: Request<Incoming>| {
        asks.store(true, Ordering::Relaxed);
        let (unread, service) = (counts.clone(), service.clone());
        async move {
            // Its connection is not idle until the answer is there.
            let _asked = unread.asked();
            if let Some(why) = bad_host(&request) {
                return Ok(refused(StatusCode::BAD_REQUEST, why, unread));
            }
            let Ok(answer) = service.oneshot(request).await;
            Ok::<_, Infallible>(counted(answer, unread, bytes_max).await)
        }
    });
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(Duration::from_secs(STALL_SECS)));
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(HEAD_SECS))
        .max_buf_size(HEAD_BYTES_MAX)
        // A proxied site sees names of headers as its readers spell them.
        .preserve_header_case(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        // A peer that has gone without a word is found out by the ping.
        .keep_alive_interval(Duration::from_secs(HEAD_SECS))
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX));
    let connection = builder
        .serve_connection_with_upgrades(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    // Until the first bytes tell HTTP/1 from HTTP/2, no timer of either runs.
    let speechless = async {
        tokio::time::sleep(Duration::from_secs(HEAD_SECS)).await;
        if asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    // Writing alone is no progress: the pings of HTTP/2 leave while its answers do not.
    let stalled = async {
        loop {
            tokio::time::sleep(Duration::from_secs(STALL_CHECK_SECS)).await;
            if unread.stalled().is_some_and(|stalled| stalled >= Duration::from_secs(STALL_SECS)) {
                break;
            }
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = unread.is_cut() => return,
        () = stalled => {
            tracing::debug!("A connection read nothing of its answers in {STALL_SECS} seconds");
            return;
        }
        () = speechless => {
            tracing::debug!("A connection asked for nothing in {HEAD_SECS} seconds");
            return;
        }
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "A connection ended early: {error}");
    }
}

/// An answer whose body is counted as unread; 503 when those before it on its connection are not read.
async fn counted<B>(
    answer: http::Response<B>,
    unread: Arc<Unread>,
    bytes_max: usize,
) -> http::Response<CountedBody<Pin<Box<B>>>>
where
    B: http_body::Body<Data = Bytes, Error = BoxError>,
{
    let is_streamed = answer.extensions().get::<Streamed>().is_some();
    let bytes = if is_streamed { 0 } else { length(answer.body()) };
    if unread.has_room(bytes, bytes_max, ROOM_WAIT).await {
        let count = if is_streamed { CountedBody::streamed } else { CountedBody::new };
        return answer.map(|body| count(Box::pin(body), unread));
    }
    let mut response = refused(
        StatusCode::SERVICE_UNAVAILABLE,
        "the answers before this one on the same connection were not read\n",
        unread,
    );
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(ROOM_WAIT.as_secs()));
    response
}

/// Fault of a request whose host is not one: readers of it could take different ones for the host (RFC 9112 section 3.2).
fn bad_host(request: &Request<Incoming>) -> Option<&'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => Some("a request has one Host\n"),
        (None, None) if request.version() == Version::HTTP_11 => Some("a request of HTTP/1.1 has a Host\n"),
        _ => None,
    }
}

/// A refusal in a line.
fn refused<B>(
    status: StatusCode,
    line: &'static str,
    unread: Arc<Unread>,
) -> http::Response<CountedBody<Pin<Box<B>>>>
where
    B: http_body::Body<Data = Bytes, Error = BoxError>,
{
    let mut response = http::Response::new(CountedBody::whole(Bytes::from_static(line.as_bytes()), unread));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::body::{self, Response};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::Instant,
    };

    /// Answers every request with so many bytes.
    fn bytes(
        count: usize,
    ) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static {
        tower::service_fn(move |_: Request<Incoming>| async move {
            Ok(Response::new(body::whole(vec![b'x'; count])))
        })
    }

    fn limits(connections_max: usize) -> ListenerLimits {
        ListenerLimits::new(connections_max, usize::MAX, Arc::new(ByteBudget::new(usize::MAX)))
    }

    async fn listening(
        count: usize,
        stop: &CancellationToken,
    ) -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address, tokio::spawn(serve(listener, bytes(count), limits(1), stop.clone())))
    }

    #[tokio::test]
    async fn a_shutdown_ends_idle_connections_and_the_listener() {
        let stop = CancellationToken::new();
        let (address, served) = listening(3, &stop).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = [0; 256];
        let read = stream.read(&mut answer).await.unwrap();
        assert!(answer[..read].starts_with(b"HTTP/1.1 200 OK\r\n"));
        stop.cancel();
        served.await.unwrap();
        assert_eq!(stream.read(&mut answer).await.unwrap_or(0), 0);
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn a_request_has_one_host() {
        let stop = CancellationToken::new();
        let (address, served) = listening(3, &stop).await;
        for (head, status) in [
            ("GET / HTTP/1.1\r\n", "400"),
            ("GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n", "400"),
            ("GET / HTTP/1.0\r\n", "200"),
            ("GET / HTTP/1.1\r\nhost: a\r\n", "200"),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer.split(' ').nth(1), Some(status), "{head:?}: {answer}");
            assert!(status == "200" || answer.ends_with("Host\n"), "{answer}");
        }
        stop.cancel();
        served.await.unwrap();
    }

    #[tokio::test]
    async fn one_connection_more_than_fit_waits_for_its_place() {
        let stop = CancellationToken::new();
        let (address, served) = listening(3, &stop).await;
        let ask = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let (first, mut second) =
            (TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap());
        second.write_all(ask).await.unwrap();
        drop(first);
        let mut answer = String::new();
        second.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("xxx"), "{answer}");
        stop.cancel();
        served.await.unwrap();
    }

    #[tokio::test]
    async fn connections_that_ask_for_nothing_keep_nobody_out() {
        let stop = CancellationToken::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ListenerLimits { idle_give_way: true, ..limits(4) };
        let served = tokio::spawn(serve(listener, bytes(3), limits, stop.clone()));
        let mut idle = Vec::new();
        for _ in 0..100 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut asks = TcpStream::connect(address).await.unwrap();
        asks.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        let read = tokio::time::timeout(Duration::from_secs(5), asks.read_to_string(&mut answer)).await;
        read.expect("answered at once").unwrap();
        assert!(answer.ends_with("xxx"), "{answer}");
        stop.cancel();
        drop(idle);
        served.await.unwrap();
    }

    /// Seconds after which a consumer is hung up on that says this and no more, and what it was answered.
    async fn patience(says: &str) -> (u64, String) {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let slow = tower::service_fn(|request| async {
            tokio::time::sleep(Duration::from_secs(300)).await;
            bytes(3).call(request).await
        });
        let unread = (Unread::new(), usize::MAX);
        let talk = tokio::spawn(converse(ours, slow, unread, CancellationToken::new()));
        let started = Instant::now();
        theirs.write_all(says.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let end = tokio::time::timeout(Duration::from_secs(3600), theirs.read_to_string(&mut answer)).await;
        end.expect("it is hung up on").unwrap();
        talk.await.unwrap();
        (started.elapsed().as_secs(), answer)
    }

    /// Seconds after which an HTTP/2 consumer is hung up on that answers pings and takes nothing of its answer.
    #[tokio::test(start_paused = true)]
    async fn pings_keep_no_connection_whose_answers_are_not_read() {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let unread = (Unread::new(), usize::MAX);
        tokio::spawn(converse(ours, bytes(1 << 20), unread, CancellationToken::new()));
        let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        client.timer(TokioTimer::new()).initial_stream_window_size(1000);
        let (mut asks, connection) = client.handshake(TokioIo::new(theirs)).await.unwrap();
        let connection = tokio::spawn(connection);
        let request = Request::get("http://x/").body(String::new()).unwrap();
        let started = Instant::now();
        let answer = asks.send_request(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let _ = tokio::time::timeout(Duration::from_secs(3600), connection).await.expect("it is hung up on");
        let secs = started.elapsed().as_secs();
        assert!((STALL_SECS..=STALL_SECS + STALL_CHECK_SECS).contains(&secs), "{secs}");
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_do_not_read_give_way_while_memory_is_short() {
        let (open, budget) = (Arc::new(Connections::default()), ByteBudget::new(1024));
        let [stalled, done] = [Unread::new(), Unread::new()];
        let body = CountedBody::new(Box::pin(body::whole("unread")), stalled.clone());
        open.with(|open| open.extend([(1, stalled.clone()), (2, done.clone())]));
        let held = budget.try_lease(1024).unwrap();
        let look = Duration::from_secs(60);
        assert!(tokio::time::timeout(look, open.give_way(&budget)).await.is_err());
        assert!(!stalled.was_cut(), "nobody waits for its memory");
        let asked = async {
            tokio::select! {
                _ = budget.lease(1, look) => {}
                () = open.give_way(&budget) => {}
                () = stalled.is_cut() => {}
            }
        };
        asked.await;
        assert!(stalled.was_cut() && !done.was_cut());
        drop((body, held));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_for_nothing_is_hung_up_on_and_whoever_waits_for_an_answer_is_not() {
        for nothing in ["", "P", "PRI * HTTP/2.0\r\n", "GET", "GET / HTTP/1.1\r\nhost: x\r\nx: "] {
            assert_eq!(patience(nothing).await, (HEAD_SECS, String::new()), "{nothing:?}");
        }
        let (secs, answer) = patience("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        // The answer, and then the time in which the next request might have come.
        assert_eq!((secs, answer.ends_with("xxx")), (300 + HEAD_SECS, true), "{answer}");
    }
}
