//! A bare hyper server that answers whatever it is asked with bytes from memory: the limit of
//! serving, and a publisher.

use anyhow::Result;
use bytes::Bytes;
use everfeed::threads::ServingThreads;
use http::{HeaderValue, Response, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// The server. It takes no more connections when it is dropped.
pub(crate) struct Bare {
    pub(crate) address: SocketAddr,
    says: Arc<RwLock<Bytes>>,
    task: JoinHandle<()>,
}

impl Bare {
    /// Serves these bytes on loopback as this type, on the present runtime.
    pub(crate) async fn serve(content_type: &'static str, says: Bytes) -> Result<Self> {
        Self::serve_on(ServingThreads::default(), content_type, says).await
    }

    /// The same on threads as those of everfeed.
    pub(crate) async fn serve_on(
        threads: ServingThreads,
        content_type: &'static str,
        says: Bytes,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let says = Arc::new(RwLock::new(says));
        let said = says.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // As everfeed does.
                let _ = stream.set_nodelay(true);
                let Ok(stream) = stream.into_std() else {
                    continue;
                };
                let said = said.clone();
                let service = service_fn(move |_| {
                    let body = said.read().unwrap_or_else(PoisonError::into_inner).clone();
                    let mut response = Response::new(Full::new(body));
                    response
                        .headers_mut()
                        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
                    async move { Ok::<_, Infallible>(response) }
                });
                let mut builder = http1::Builder::new();
                builder.timer(TokioTimer::new());
                threads.next().spawn(async move {
                    if let Ok(stream) = TcpStream::from_std(stream) {
                        let _ = builder
                            .serve_connection(TokioIo::new(stream), service)
                            .await;
                    }
                });
            }
        });
        Ok(Self {
            address,
            says,
            task,
        })
    }

    /// The answer from now on.
    pub(crate) fn says(&self, bytes: Bytes) {
        *self.says.write().unwrap_or_else(PoisonError::into_inner) = bytes;
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.task.abort();
    }
}
