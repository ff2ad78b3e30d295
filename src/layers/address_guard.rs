//! Which addresses a request may go to. Checks what stands in the URL and picks the class of
//! connection; the addresses behind a name are checked by the resolver of that class, at connect
//! time.
//!
//! Two classes, because a sidecar's own blog is usually at a private address and everything that a
//! document or a redirect names must not be.

use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::future::{FutureExt, ready};
use tower::{Layer, Service, layer::layer_fn};
use url::{Host, Origin, Url};

use super::error::Refused;
use super::public_address::is_public;
use super::{Exchange, FetchError, Reply, Request};

/// Lets a request pass to the configured origin wherever that is, and elsewhere only to public
/// addresses on ports 80, 443 and from 1024 (PUSH.md D-P6).
#[derive(Debug, Clone)]
pub struct AddressGuard<S> {
    inner: S,
    reach: AddressReach,
}

/// The addresses that a stack may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressReach {
    /// The origin in [`Trusted`], if the request carries one, and the public internet.
    TrustedOrPublic,
    /// Anywhere: the operator said so.
    Anywhere,
}

/// Request extension: the one origin that the operator configured. It goes along through all
/// redirects, so it is the URL of each hop that decides and not where the hop came from. Without
/// it, only public addresses will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted(Origin);

impl Trusted {
    /// Trusts scheme, host and port of `url`, and nothing else on that host.
    pub fn origin_of(url: &Url) -> Self {
        Self(url.origin())
    }
}

/// Request extension, set by the guard for the service that makes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// Named by the operator: any address.
    Configured,
    /// Named by a document, a redirect or a subscriber: public addresses only.
    Derived,
}

impl<S> AddressGuard<S> {
    /// Keeps requests within `reach`.
    pub fn layer(reach: AddressReach) -> impl Layer<S, Service = Self> {
        layer_fn(move |inner| Self { inner, reach })
    }
}

impl<S: Exchange> Service<Request> for AddressGuard<S> {
    type Response = Reply;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Reply, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match admit(&request, self.reach) {
            Ok(class) => {
                request.extensions_mut().insert(class);
                self.inner.call(request).boxed()
            }
            Err(error) => ready(Err(error)).boxed(),
        }
    }
}

/// The class of the connection that this request may have.
fn admit(request: &Request, reach: AddressReach) -> Result<AddressClass, FetchError> {
    let url = url_of(request.uri())?;
    let trusted = request
        .extensions()
        .get::<Trusted>()
        .is_some_and(|trusted| trusted.0 == url.origin());
    if trusted || reach == AddressReach::Anywhere {
        return Ok(AddressClass::Configured);
    }
    let port = url.port_or_known_default().ok_or(FetchError::BadUrl)?;
    if !matches!(port, 80 | 443 | 1024..) {
        return Err(Refused::Port(port).into());
    }
    // A literal address never meets the resolver, so it is checked here. `Url` has already turned
    // the decimal, octal, hexadecimal and shortened spellings of v4 into the one form.
    let public = match url.host() {
        Some(Host::Ipv4(v4)) => is_public(v4.into()),
        Some(Host::Ipv6(v6)) => is_public(v6.into()),
        Some(Host::Domain(_)) => true,
        None => return Err(FetchError::BadUrl),
    };
    if public {
        Ok(AddressClass::Derived)
    } else {
        Err(Refused::Address.into())
    }
}

/// The request's address in the normal form that is also the one dialled.
pub(super) fn url_of(uri: &http::Uri) -> Result<Url, FetchError> {
    let url = Url::parse(&uri.to_string()).map_err(|_| FetchError::BadUrl)?;
    if matches!(url.scheme(), "http" | "https") {
        Ok(url)
    } else {
        Err(FetchError::BadUrl)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::get;
    use super::*;

    /// `trusted` is the configured URL, empty for none.
    fn class(url: &str, trusted: &str, reach: AddressReach) -> Result<AddressClass, String> {
        let mut request = get(url);
        if let Ok(trusted) = Url::parse(trusted) {
            request
                .extensions_mut()
                .insert(Trusted::origin_of(&trusted));
        }
        admit(&request, reach).map_err(|error| error.to_string())
    }

    fn check_refused(url: &str) {
        let refused =
            class(url, "http://blog.example/", AddressReach::TrustedOrPublic).unwrap_err();
        assert_eq!(
            refused,
            FetchError::from(Refused::Address).to_string(),
            "{url}"
        );
    }

    #[test]
    fn a_derived_literal_address_must_be_public_in_every_spelling() {
        check_refused("http://127.0.0.1/");
        check_refused("http://2130706433/");
        check_refused("http://0x7f.1/");
        check_refused("http://0177.0.0.1/");
        check_refused("http://127.1:8080/");
        check_refused("http://127.0.0.1./");
        check_refused("http://[::1]/");
        check_refused("http://[::ffff:127.0.0.1]/");
        check_refused("http://[64:ff9b::7f00:1]/");
        check_refused("http://[2002:7f00:1::]/");
        check_refused("http://169.254.169.254/latest/meta-data/");
        assert_eq!(
            class("http://8.8.8.8/", "", AddressReach::TrustedOrPublic),
            Ok(AddressClass::Derived)
        );
        assert_eq!(
            class("http://134744072/", "", AddressReach::TrustedOrPublic),
            Ok(AddressClass::Derived)
        );
    }

    #[test]
    fn the_configured_origin_may_be_anywhere_and_nothing_else_on_its_host() {
        let own = "http://127.0.0.1:8081/rss.xml";
        let reach = AddressReach::TrustedOrPublic;
        assert_eq!(
            class("http://127.0.0.1:8081/rss.xml", own, reach),
            Ok(AddressClass::Configured)
        );
        assert_eq!(
            class("http://127.0.0.1:8081/archive/2", own, reach),
            Ok(AddressClass::Configured)
        );
        assert!(class("http://127.0.0.1:8079/metrics", own, reach).is_err());
        assert!(class("https://127.0.0.1:8081/rss.xml", own, reach).is_err());
        assert_eq!(
            class("http://public.example/", own, reach),
            Ok(AddressClass::Derived)
        );
    }

    #[test]
    fn a_derived_url_cannot_name_the_port_of_another_service() {
        for port in [22, 25, 110, 1023] {
            let url = format!("http://public.example:{port}/");
            let refused = class(&url, "", AddressReach::TrustedOrPublic).unwrap_err();
            assert_eq!(refused, FetchError::from(Refused::Port(port)).to_string());
        }
        for port in [80, 443, 1024, 8080] {
            let url = format!("http://public.example:{port}/");
            assert_eq!(
                class(&url, "", AddressReach::TrustedOrPublic),
                Ok(AddressClass::Derived)
            );
        }
    }

    #[test]
    fn an_operator_who_allows_private_callbacks_gets_them() {
        assert_eq!(
            class("http://10.0.0.7:81/cb", "", AddressReach::Anywhere),
            Ok(AddressClass::Configured)
        );
    }

    #[test]
    fn only_http_and_https_are_spoken() {
        for url in ["ftp://public.example/", "/relative"] {
            assert_eq!(
                class(url, "", AddressReach::Anywhere),
                Err(FetchError::BadUrl.to_string()),
                "{url}"
            );
        }
    }
}
