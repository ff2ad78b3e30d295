//! The directory of the keys that sign our requests to publishers, at its well-known path: also at
//! the host of a site, where all other paths of that kind are the site's.

use super::{
    answers::refusal::Refusal,
    routing::mount::{Handler, Mount},
};
use crate::{
    clock::Clock,
    edge::{
        body::{Response, ServeBody, plain},
        fields::set,
    },
    identity::{DIRECTORY_PATH, DIRECTORY_TYPE, Identity},
};
use http::{
    HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
    request::Parts,
};
use std::{fmt, sync::Arc};
use url::Url;

/// The mount of the directory of an identity, which is signed for the authority of `public_url` and
/// for no other one: a copy elsewhere proves nothing (U-43).
pub fn key_directory(identity: Arc<Identity>, public_url: &Url, clock: Arc<dyn Clock>) -> Mount {
    let host = public_url.host_str().unwrap_or_default();
    let authority = match public_url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let directory = KeyDirectory {
        identity,
        authority: authority.into(),
        clock,
    };
    Mount::own(|request| request.uri.path() == DIRECTORY_PATH, directory)
}

#[derive(Clone)]
struct KeyDirectory {
    identity: Arc<Identity>,
    authority: Arc<str>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for KeyDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.identity.fmt(f)
    }
}

impl Handler for KeyDirectory {
    async fn handle(&self, request: &Parts, _: ServeBody) -> Result<Response, Refusal> {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(Refusal::method(Self::METHODS));
        }
        let directory = self.identity.directory();
        let now_secs = self.clock.now_us() / 1_000_000;
        let signature = self
            .identity
            .sign_directory(&directory, &self.authority, now_secs);
        let mut response = plain(StatusCode::OK, directory);
        let headers = response.headers_mut();
        set(headers, CONTENT_TYPE, DIRECTORY_TYPE);
        // As long as the signature is good.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        for (name, value) in signature {
            headers.insert(name, value);
        }
        Ok(response)
    }
}
