//! The hub behind the forms of its requests, which are read here, with its page for people; not what
//! the hub makes of requests.

use super::{
    answers::{
        accept,
        refusal::{self, PAGE_POLICY, Refusal},
    },
    feeds::context::ServeContext,
    routing::mount::{Handler, answer_of},
};
use crate::{
    edge::{
        body::{self, Response, ServeBody},
        fields::list_value,
    },
    render::html,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY},
    request::Parts,
};
use http_body_util::{BodyExt as _, Collected, LengthLimitError, Limited};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tower::{BoxError, util::BoxCloneSyncService};

/// Answers requests to the hub, their forms read.
pub type HubService = BoxCloneSyncService<Request<Bytes>, http::Response<Bytes>, Infallible>;

/// The hub behind its forms.
#[derive(Clone)]
pub(super) struct HubForms {
    pub(super) hub: HubService,
    pub(super) context: Arc<ServeContext>,
}

impl Handler for HubForms {
    const METHODS: &'static str = "GET, HEAD, POST, OPTIONS";

    async fn handle(&self, request: &Parts, body: ServeBody) -> Result<Response, Refusal> {
        let sender = self.context.sender(request).await?;
        let form = read_form(request, body).await?;
        let mut forwarded = Request::from_parts(request.clone(), form);
        if let Some(sender) = sender {
            // A request extension of that type is what the hub knows of its sender.
            forwarded.extensions_mut().insert(sender);
        }
        let mut response = answer_of(&self.hub, forwarded).await;
        let accepted = list_value(&request.headers, &ACCEPT);
        if request.method != Method::POST && response.status() == StatusCode::OK {
            let headers = response.headers_mut();
            headers.insert(VARY, HeaderValue::from_static("accept"));
            if accept::prefers_page(accepted.as_deref()) {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(html::CONTENT_TYPE));
                headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
                *response.body_mut() = html::hub(self.context.readers.site()).into();
            }
        }
        if response.status() == StatusCode::UNAUTHORIZED {
            // The hub knows no schemes.
            return Err(self.context.unauthenticated(request));
        }
        Ok(refusal::told(request, response).map(body::whole))
    }
}

/// The largest form, bytes: hub requests are small.
const FORM_BYTES_MAX: usize = 64 << 10;
/// Seconds in which it must be here.
const FORM_SECS: u64 = 30;

/// Reads the form of a POST whole; the body of other methods is not looked at.
pub(super) async fn read_form(request: &Parts, body: ServeBody) -> Result<Bytes, Refusal> {
    if request.method != Method::POST {
        return Ok(Bytes::new());
    }
    let whole: BoxFuture<'static, Result<Collected<Bytes>, BoxError>> =
        Box::pin(Limited::new(body, FORM_BYTES_MAX).collect());
    let in_time = tokio::time::timeout(Duration::from_secs(FORM_SECS), whole).await;
    match in_time.map_err(|_| Refusal::slow(FORM_SECS))? {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::too_large(FORM_BYTES_MAX)),
        Err(_) => Err(Refusal::bad("the request body broke off")),
    }
}
