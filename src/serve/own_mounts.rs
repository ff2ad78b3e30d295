//! Our own mounts: the hub, and the feeds with their list and descriptions; which path leads where, not the answers.

use super::{
    body::{self, Body, Response},
    context::ServeContext,
    discovery,
    mount::{Handler, Mount},
    pull,
    rescue::Refusal,
};
use crate::render::Endpoint;
use bytes::Bytes;
use http::{Method, Request, request::Parts};
use std::{convert::Infallible, sync::Arc};
use tower::{ServiceExt as _, util::BoxCloneSyncService};

/// Answers requests to the hub, their forms read.
pub type HubService = BoxCloneSyncService<Request<Bytes>, http::Response<Bytes>, Infallible>;

/// The mounts of our own paths. The last takes all that is left, and knows what is not there.
pub fn own_mounts(context: Arc<ServeContext>, hub: HubService) -> Vec<Mount> {
    let is_hub = {
        let context = context.clone();
        move |request: &Parts| {
            let endpoint = context.readers.site().endpoint(request.uri.path());
            matches!(endpoint, Some(Endpoint::Hub | Endpoint::HubOf(_)))
        }
    };
    vec![Mount::own(is_hub, HubForms(hub)), Mount::own(|_| true, FeedPages(context))]
}

/// The hub behind its forms.
#[derive(Clone)]
struct HubForms(HubService);

impl Handler for HubForms {
    async fn handle(&self, request: &Parts, body: Body) -> Result<Response, Refusal> {
        let form = body::read_form(request, body).await?;
        match self.0.clone().oneshot(Request::from_parts(request.clone(), form)).await {
            Ok(response) => Ok(response.map(body::whole)),
            Err(never) => match never {},
        }
    }
}

/// The feeds, their list and their descriptions. Nothing of a request's body is read.
#[derive(Clone)]
struct FeedPages(Arc<ServeContext>);

impl Handler for FeedPages {
    async fn handle(&self, request: &Parts, _: Body) -> Result<Response, Refusal> {
        let context = &*self.0;
        let Some(endpoint) = context.readers.site().endpoint(request.uri.path()) else {
            return Err(context.unknown("there is nothing here"));
        };
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(Refusal::method("GET, HEAD, OPTIONS"));
        }
        match endpoint {
            Endpoint::List => discovery::list(context, request).await,
            Endpoint::About(name) => discovery::about(context, request, &name).await,
            Endpoint::Negotiated(name) => pull::smart(context, request, &name, None).await,
            Endpoint::Page(name, form) if form.is_classic() => {
                pull::classic(context, request, &name, form).await
            }
            Endpoint::Page(name, form) => pull::smart(context, request, &name, Some(form)).await,
            Endpoint::Hub | Endpoint::HubOf(_) => Err(context.unknown("there is no hub here")),
        }
    }
}
