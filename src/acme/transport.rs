//! Requests to an authority, by our own client stack with its limits, in place of the HTTP client
//! of the ACME library; not what they ask.

use super::fault::NoProblemDocument;
use crate::layers::{Client, FetchError, parse_retry_after};
use crate::locks::lock;
use bytes::Bytes;
use http::{
    HeaderValue, Request, Response,
    header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

/// Sends the requests of the ACME library.
#[derive(Clone)]
pub(super) struct Transport {
    client: Client,
    user_agent: HeaderValue,
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// `Retry-After` of the last answer.
    wait: Arc<Mutex<Option<Duration>>>,
}

impl Transport {
    pub(super) fn new(
        client: Client,
        user_agent: HeaderValue,
        now: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Self {
        Self {
            client,
            user_agent,
            now: Arc::new(now),
            wait: Arc::default(),
        }
    }

    /// The time for which the authority asked us to wait in its last answer.
    pub(super) fn wait(&self) -> Option<Duration> {
        *lock(&self.wait)
    }

    async fn send(self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let (mut head, body) = request.into_parts();
        head.headers.insert(USER_AGENT, self.user_agent.clone());
        let body = body
            .collect()
            .await
            .map(|body| body.to_bytes())
            .unwrap_or_default();
        let sent = self.client.send(Request::from_parts(head, body)).await;
        let answer = sent.map_err(|error: FetchError| Error::Other(Box::new(error)))?;
        let wait = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| parse_retry_after(value, (self.now)()));
        *lock(&self.wait) = wait;
        let kind = answer
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        let (status, is_json) = (answer.status(), kind.contains("json"));
        if (status.is_client_error() || status.is_server_error()) && !is_json {
            return Err(Error::Other(Box::new(NoProblemDocument(status))));
        }
        let (head, body) = answer.into_parts();
        Ok(BytesResponse::from(Response::from_parts(
            head,
            Full::new(body),
        )))
    }
}

impl HttpClient for Transport {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        Box::pin(self.clone().send(request))
    }
}
