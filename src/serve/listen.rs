//! A listener and its connections, ended in order; not what they are asked.

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use std::{
    convert::Infallible,
    sync::{
        Arc,
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
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::{BoxError, Service, ServiceBuilder};

/// Seconds that a consumer may take to send the head of a request; a connection without one is idle as long.
const HEAD_SECS: u64 = 30;
/// Seconds that a consumer may go without reading what it asked for.
const STALL_SECS: u64 = 30;
/// Pause after the system refused a connection, as it does when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop`, then lets every connection finish what it is doing. Whoever calls bounds that wait.
pub async fn serve<S, B>(listener: TcpListener, service: S, connections_max: usize, stop: CancellationToken)
where
    S: Service<Request<Incoming>, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    let connections = TaskTracker::new();
    loop {
        let accept = async {
            let place = places.clone().acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                // Answers are small and written whole: waiting for more to send would only delay them.
                let _ = stream.set_nodelay(true);
                let (service, stop) = (service.clone(), stop.clone());
                connections.spawn(async move {
                    converse(stream, service, stop).await;
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
async fn converse<I, S, B>(stream: I, service: S, stop: CancellationToken)
where
    I: AsyncRead + AsyncWrite + Send + 'static,
    S: Service<Request<Incoming>, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    let asked = Arc::new(AtomicBool::new(false));
    let asks = asked.clone();
    let service = ServiceBuilder::new()
        .map_request(move |request: Request<Incoming>| {
            asks.store(true, Ordering::Relaxed);
            request
        })
        .service(service);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(Duration::from_secs(STALL_SECS)));
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(HEAD_SECS));
    // A peer that has gone without a word is found out by the ping.
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(HEAD_SECS));
    let connection =
        builder.serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    // Until the first bytes tell HTTP/1 from HTTP/2, no timer of either runs.
    let speechless = async {
        tokio::time::sleep(Duration::from_secs(HEAD_SECS)).await;
        if asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
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

    async fn listening(
        count: usize,
        stop: &CancellationToken,
    ) -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address, tokio::spawn(serve(listener, bytes(count), 1, stop.clone())))
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

    /// Seconds after which a consumer is hung up on that says this and no more, and what it was answered.
    async fn patience(says: &str) -> (u64, String) {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let slow = tower::service_fn(|request| async {
            tokio::time::sleep(Duration::from_secs(300)).await;
            bytes(3).call(request).await
        });
        let talk = tokio::spawn(converse(ours, slow, CancellationToken::new()));
        let started = Instant::now();
        theirs.write_all(says.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let end = tokio::time::timeout(Duration::from_secs(3600), theirs.read_to_string(&mut answer)).await;
        end.expect("it is hung up on").unwrap();
        talk.await.unwrap();
        (started.elapsed().as_secs(), answer)
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
