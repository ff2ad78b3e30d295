//! Sends whoever asks by HTTP to the same URL by HTTPS; but a certificate authority gets its
//! answer.

use super::{
    body::{self, Response},
    fields::text,
};
use crate::acme::HeldCertificate;
use http::{
    HeaderValue, Request, StatusCode,
    header::{HOST, LOCATION},
};
use std::{convert::Infallible, sync::Arc};
use tower::Service;
use url::Url;

/// The default port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// A service that answers every request with 308, but those for an open challenge of `held`.
/// `public_url` is ours, whose port counts if it is one of HTTPS; else `port` does.
pub fn redirecting<B: Send + 'static>(
    public_url: &Url,
    port: u16,
    held: Option<Arc<HeldCertificate>>,
) -> impl Service<Request<B>, Response = Response, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    let port = if public_url.scheme() == "https" {
        public_url.port_or_known_default().unwrap_or(HTTPS_PORT)
    } else {
        port
    };
    let own_host = public_url.host_str().unwrap_or_default().to_owned();
    tower::service_fn(move |request: Request<B>| {
        let challenge = held
            .as_ref()
            .and_then(|held| held.challenge_document(request.uri().path()));
        let response = match challenge {
            Some(document) => body::short(StatusCode::OK, "application/octet-stream", document),
            None => redirect(&request, &own_host, port),
        };
        async move { Ok(response) }
    })
}

fn redirect<B>(request: &Request<B>, own_host: &str, port: u16) -> Response {
    let host = text(request.headers(), &HOST).or_else(|| {
        request
            .uri()
            .authority()
            .map(|authority| authority.as_str())
    });
    let host = host.map_or(own_host, without_port);
    let port = if port == HTTPS_PORT {
        String::new()
    } else {
        format!(":{port}")
    };
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    // A target in absolute form may have no path, and the one of OPTIONS is no path.
    let (slash, path) = match path.chars().next() {
        Some('/') => ("", path),
        Some('?') => ("/", path),
        _ => ("/", ""),
    };
    let location = HeaderValue::try_from(format!("https://{host}{port}{slash}{path}"));
    let words = "this is served by https only\n";
    let mut response = body::plain(StatusCode::PERMANENT_REDIRECT, words);
    response.headers_mut().insert(
        LOCATION,
        location.unwrap_or_else(|_| HeaderValue::from_static("/")),
    );
    response
}

/// A host without the port behind it.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::OpenChallenge;
    use tower::ServiceExt as _;

    #[tokio::test]
    async fn an_open_challenge_is_answered_here() {
        let held = Arc::new(HeldCertificate::default());
        let challenge = OpenChallenge::Document {
            token: "t".to_owned(),
            document: "t.x".to_owned(),
        };
        held.answer(&[challenge]).unwrap();
        let public_url = Url::parse("https://h/").unwrap();
        let service = redirecting(&public_url, 443, Some(held));
        for (target, status) in [
            ("/.well-known/acme-challenge/t", StatusCode::OK),
            ("http://h/.well-known/acme-challenge/t", StatusCode::OK),
            (
                "/.well-known/acme-challenge/u",
                StatusCode::PERMANENT_REDIRECT,
            ),
            ("/", StatusCode::PERMANENT_REDIRECT),
        ] {
            let answer = service
                .clone()
                .oneshot(Request::get(target).body(()).unwrap())
                .await
                .unwrap();
            assert_eq!(answer.status(), status, "{target}");
        }
    }

    #[tokio::test]
    async fn the_same_url_is_asked_for_by_https() {
        for (public_url, port, host, target, expect) in [
            ("https://h/", 8443, Some("h"), "/a?b=c", "https://h/a?b=c"),
            (
                "https://h/",
                8443,
                Some("other.example:80"),
                "/",
                "https://other.example/",
            ),
            (
                "https://h:444/",
                8443,
                Some("h:80"),
                "//x",
                "https://h:444//x",
            ),
            (
                "http://h/",
                8443,
                Some("[::1]:80"),
                "/",
                "https://[::1]:8443/",
            ),
            ("http://h/", 443, Some("[::1]"), "/", "https://[::1]/"),
            ("https://h/", 443, None, "/a", "https://h/a"),
            ("https://h/", 443, Some("h"), "http://h?x", "https://h/?x"),
            ("https://h/", 443, Some("h"), "*", "https://h/"),
        ] {
            let mut request = Request::post(target);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            let public_url = Url::parse(public_url).unwrap();
            let answer = redirecting(&public_url, port, None)
                .oneshot(request.body(()).unwrap())
                .await
                .unwrap();
            assert_eq!(answer.status(), StatusCode::PERMANENT_REDIRECT);
            assert_eq!(answer.headers()[LOCATION], expect, "{target}");
        }
    }
}
