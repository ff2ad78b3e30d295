//! Listeners and their connections, ended in order; not what they are asked.

use super::{
    client_address::{OverTls, PeerAddress},
    connection::Connection,
    listener::{Handshake, Listener},
    request_body::RequestBody,
    socket::MovedStream,
    unread::Unread,
};
use crate::locks::lock;
use crate::{byte_budget::ByteBudget, threads::ServingThreads};
use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, header::STRICT_TRANSPORT_SECURITY};
use std::{
    collections::HashMap,
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use tower::{BoxError, Service, ServiceBuilder};

/// Time that a consumer may go without reading while others wait for the memory that its answers
/// hold.
const STALL_WHILE_SHORT: Duration = Duration::from_secs(2);
/// Pause between two looks for connections that hold memory that others wait for.
const SHORT_CHECK: Duration = Duration::from_secs(1);
/// Part of the memory for answers that those on one connection may hold.
const CONNECTION_SHARE: usize = 8;
/// Pause between two looks for a connection that asks for nothing, while another one waits for its
/// place.
const IDLE_CHECK: Duration = Duration::from_millis(100);
/// Time for which a consumer may ask for nothing while others wait: a request may be on its way, or
/// a handshake.
const IDLE_LEAST: Duration = Duration::from_secs(1);
/// Pause after the system refused a connection, as it does when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Asks if the case of header names is to be kept on a connection that comes now.
pub type KeepsHeaderCase = Arc<dyn Fn() -> bool + Send + Sync>;

/// Limits of a listener.
#[derive(Clone)]
pub struct ListenerLimits {
    /// Connections at once. For one more the oldest one that asks for nothing is ended; where there
    /// is none, it waits.
    pub connections_max: usize,
    /// Time for which a connection may ask for nothing while others wait for its place.
    pub idle_least: Duration,
    /// Bytes of answers on one connection that its peer has not read.
    pub connection_bytes_max: usize,
    /// The memory of all answers: while it is short, connections that do not read are ended.
    pub budget: Arc<ByteBudget>,
    /// Keeps the case of header names, for a site behind us.
    pub keeps_header_case: KeepsHeaderCase,
}

impl ListenerLimits {
    /// Limits for so many connections and so many bytes of answers.
    pub fn new(connections_max: usize, answers_bytes_max: usize, budget: Arc<ByteBudget>) -> Self {
        Self {
            connections_max,
            idle_least: IDLE_LEAST,
            connection_bytes_max: answers_bytes_max / CONNECTION_SHARE,
            budget,
            keeps_header_case: Arc::new(|| false),
        }
    }
}

/// Connections that are open.
#[derive(Default)]
struct Connections(Mutex<HashMap<u64, Arc<Unread>>>);

impl Connections {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<u64, Arc<Unread>>) -> T) -> T {
        act(&mut lock(&self.0))
    }

    /// Ends the oldest connection that asked for nothing for this long. It counts no more from now
    /// on: the next call ends another one.
    fn let_idle_go(&self, least: Duration) {
        self.with(|open| {
            let idle = open
                .iter()
                .filter(|(_, unread)| unread.is_idle_for(least))
                .map(|(number, _)| *number)
                .min();
            if let Some(oldest) = idle.and_then(|number| open.remove(&number)) {
                oldest.cut();
            }
        });
    }

    // Decides: Which connections give way when memory runs short?
    /// Ends the connections that read nothing while others wait for memory.
    async fn give_way(&self, budget: &ByteBudget) {
        loop {
            tokio::time::sleep(SHORT_CHECK).await;
            if budget.is_short() {
                let is_stalled =
                    |unread: &&Arc<Unread>| unread.stalled() >= Some(STALL_WHILE_SHORT);
                let cut = self.with(|open| {
                    let stalled = open.values().filter(is_stalled);
                    stalled.map(|unread| unread.cut()).count()
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

/// A connection that is among those that are open, until it is dropped.
struct OpenConnection {
    open: Arc<Connections>,
    number: u64,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.open.with(|open| open.remove(&self.number));
    }
}

/// Serves until `stop`, each connection on one of the threads, then lets every one finish what it
/// is doing. Whoever calls bounds that wait.
pub async fn serve<S, B>(
    listeners: impl IntoIterator<Item = Listener>,
    service: S,
    limits: ListenerLimits,
    threads: Arc<ServingThreads>,
    stop: CancellationToken,
) where
    S: Service<Request<RequestBody>, Response = http::Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    let open = Arc::new(Connections::default());
    let giving_way = {
        let (open, budget) = (open.clone(), limits.budget.clone());
        async move { open.give_way(&budget).await }
    };
    let _giving_way = AbortOnDropHandle::new(tokio::spawn(giving_way));
    let places = limits.connections_max.min(Semaphore::MAX_PERMITS);
    let reception = Reception {
        places: Arc::new(Semaphore::new(places)),
        limits,
        threads,
        open,
        numbers: AtomicU64::new(0),
        tasks: TaskTracker::new(),
        stop,
    };
    let receive = |listener| reception.receive(listener, &service);
    join_all(listeners.into_iter().map(receive)).await;
    reception.tasks.close();
    reception.tasks.wait().await;
}

/// The connections of some listeners, which share their limits.
struct Reception {
    limits: ListenerLimits,
    threads: Arc<ServingThreads>,
    places: Arc<Semaphore>,
    open: Arc<Connections>,
    numbers: AtomicU64,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Reception {
    /// A place: that of the oldest connection that asks for nothing, when there is no other, as
    /// soon as there is one.
    async fn place_of_an_idle_one(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        loop {
            if self.places.available_permits() == 0 {
                self.open.let_idle_go(self.limits.idle_least);
            }
            if let Ok(place) = timeout(IDLE_CHECK, self.places.clone().acquire_owned()).await {
                return place;
            }
        }
    }

    /// Accepts the connections of a listener until the stop.
    async fn receive<S, B>(&self, listener: Listener, service: &S)
    where
        S: Service<Request<RequestBody>, Response = http::Response<B>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
        B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
    {
        loop {
            let accept = async {
                (
                    listener.socket.accept().await,
                    self.place_of_an_idle_one().await,
                )
            };
            let (accepted, place) = tokio::select! {
                () = self.stop.cancelled() => break,
                accepted = accept => accepted,
            };
            let moved = accepted.and_then(|(stream, peer)| Ok((MovedStream::take(stream)?, peer)));
            match moved {
                Ok((stream, peer)) => {
                    let number = self.numbers.fetch_add(1, Ordering::Relaxed);
                    let unread = Unread::new();
                    self.open.with(|open| open.insert(number, unread.clone()));
                    let among_open = OpenConnection {
                        open: self.open.clone(),
                        number,
                    };
                    let connection = Connection {
                        unread,
                        bytes_max: self.limits.connection_bytes_max,
                        keeps_header_case: (self.limits.keeps_header_case)(),
                        place: Box::new(place),
                    };
                    let (handshake, service) = (listener.handshake.clone(), service.clone());
                    let stop = self.stop.clone();
                    let talk = talk(stream, connection, peer, handshake, service, stop);
                    let talk = async move {
                        talk.await;
                        drop(among_open);
                    };
                    self.tasks.spawn_on(talk, &self.threads.next());
                }
                Err(error) => {
                    tracing::warn!(error = %error, "Could not accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// One connection, from its handshake on.
async fn talk<S, B>(
    stream: MovedStream,
    connection: Connection,
    peer: IpAddr,
    handshake: Arc<Handshake>,
    service: S,
    stop: CancellationToken,
) where
    S: Service<Request<RequestBody>, Response = http::Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    let stream = match stream.settle() {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(error = %error, "Could not take a connection over: {error}");
            return;
        }
    };
    let ready = tokio::select! {
        ready = handshake.complete(stream, peer) => ready,
        () = connection.unread.is_cut() => return,
        () = stop.cancelled() => return,
    };
    let ready = match ready {
        Ok(ready) => ready,
        Err(error) => {
            tracing::debug!(error = %error, peer.address = %peer, "A connection from {peer} failed: {error}");
            return;
        }
    };
    let service = ServiceBuilder::new()
        .map_request(move |mut request: Request<RequestBody>| {
            let extensions = request.extensions_mut();
            extensions.insert(PeerAddress(ready.client));
            if ready.is_over_tls {
                extensions.insert(OverTls);
            }
            request
        })
        .map_response(move |mut response: http::Response<B>| {
            if let Some(hsts) = handshake.hsts() {
                response
                    .headers_mut()
                    .insert(STRICT_TRANSPORT_SECURITY, hsts.clone());
            }
            response
        })
        .service(service);
    connection.converse(ready.stream, service, stop).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::{
        body::{self, Response},
        unread::CountedBody,
    };
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
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

    fn limits(connections_max: usize) -> ListenerLimits {
        ListenerLimits::new(
            connections_max,
            usize::MAX,
            Arc::new(ByteBudget::new(usize::MAX)),
        )
    }

    async fn listening(
        count: usize,
        stop: &CancellationToken,
    ) -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (
            address,
            tokio::spawn(serve(
                [listener.into()],
                bytes(count),
                limits(1),
                Arc::default(),
                stop.clone(),
            )),
        )
    }

    #[tokio::test]
    async fn a_shutdown_ends_idle_connections_and_the_listener() {
        let stop = CancellationToken::new();
        let (address, served) = listening(3, &stop).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
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
            stream
                .write_all(format!("{head}connection: close\r\n\r\n").as_bytes())
                .await
                .unwrap();
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
        let (first, mut second) = (
            TcpStream::connect(address).await.unwrap(),
            TcpStream::connect(address).await.unwrap(),
        );
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
        let limits = ListenerLimits {
            idle_least: Duration::ZERO,
            ..limits(4)
        };
        let served = tokio::spawn(serve(
            [listener.into()],
            bytes(3),
            limits,
            Arc::default(),
            stop.clone(),
        ));
        let mut idle = Vec::new();
        // Some have never asked for anything, some were answered and keep their connection.
        for number in 0..100 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if number % 2 == 0 {
                stream
                    .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
                    .await
                    .unwrap();
            }
            idle.push(stream);
        }
        let mut asks = TcpStream::connect(address).await.unwrap();
        asks.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        let read =
            tokio::time::timeout(Duration::from_secs(20), asks.read_to_string(&mut answer)).await;
        read.expect("answered at once").unwrap();
        assert!(answer.ends_with("xxx"), "{answer}");
        stop.cancel();
        drop(idle);
        served.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_do_not_read_give_way_while_memory_is_short() {
        let (open, budget) = (Arc::new(Connections::default()), ByteBudget::new(1024));
        let [stalled, done] = [Unread::new(), Unread::new()];
        let body = CountedBody::new(Box::pin(body::whole("unread")), stalled.clone());
        open.with(|open| open.extend([(1, stalled.clone()), (2, done.clone())]));
        let held = budget.try_lease(1024).unwrap();
        let look = Duration::from_secs(60);
        assert!(
            tokio::time::timeout(look, open.give_way(&budget))
                .await
                .is_err()
        );
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
}
