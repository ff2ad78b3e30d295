//! A listener and its connections, ended in order; not what they are asked.

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::{BoxError, Service};

/// Seconds that a consumer may take to send the head of a request.
const HEAD_SECS: u64 = 30;
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
async fn converse<S, B>(stream: TcpStream, service: S, stop: CancellationToken)
where
    S: Service<Request<Incoming>, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    // Answers are small and written whole: waiting for more to send would only delay them.
    let _ = stream.set_nodelay(true);
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(HEAD_SECS));
    builder.http2().timer(TokioTimer::new());
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "A connection ended early: {error}");
    }
}
