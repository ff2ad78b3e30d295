//! The guard of the operator's listener: which requests are answered, by the site that they come
//! from and the token that they carry; not the answers.
//!
//! A browser on the operator's machine reaches loopback for every page that it shows. Such a
//! request names another site in `Origin` or `Sec-Fetch-Site`, or in `Host` where a name was made
//! to lead here.

use crate::{
    auth::Credentials,
    edge::{
        body::{self, Response},
        fields::list_value,
    },
    layers::{OwnMark, own_mark::passes},
    locks::lock,
    secret::AdminToken,
    serve::answers::accept,
};
use futures_util::future::{BoxFuture, FutureExt as _, ready};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE},
    uri::Authority,
};
use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower::Service;
use url::{Host, Url};

/// Lets the operator's requests pass, and refuses all others.
#[derive(Clone)]
pub struct AdminGuard<S> {
    inner: S,
    rules: Arc<GuardRules>,
    /// The mark of our own polls and deliveries, which are refused here.
    mark: Option<OwnMark>,
}

/// The rules of the guard.
#[derive(Debug)]
struct GuardRules {
    bound: IpAddr,
    token: Option<AdminToken>,
    log: Mutex<RefusalLog>,
}

/// The lines about refusals in the log: one a minute, and the number of those between, so that
/// nobody fills the log.
#[derive(Debug, Default)]
struct RefusalLog {
    last: Option<Instant>,
    unsaid: u64,
}

/// Time between two lines about refusals.
const LOG_EVERY: Duration = Duration::from_secs(60);

impl RefusalLog {
    /// The number of refusals since the last line, when the next one is due.
    fn due(&mut self, now: Instant) -> Option<u64> {
        if self
            .last
            .is_some_and(|last| now.duration_since(last) < LOG_EVERY)
        {
            self.unsaid += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

/// The pages that tell nothing that a token must protect: probes and counters, for whoever reaches
/// the listener.
const OPEN_PAGES: [&str; 3] = ["/live", "/ready", "/metrics"];

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl<S> AdminGuard<S> {
    /// Guards a service that listens at an address. Beyond loopback, or where there is a token, a
    /// request carries it.
    pub fn new(inner: S, bound: IpAddr, token: Option<AdminToken>) -> Self {
        Self {
            inner,
            rules: Arc::new(GuardRules {
                bound: bound.to_canonical(),
                token,
                log: Mutex::default(),
            }),
            mark: None,
        }
    }

    /// The same, which knows our own polls by this mark.
    #[must_use]
    pub fn knowing(self, mark: OwnMark) -> Self {
        Self {
            mark: Some(mark),
            ..self
        }
    }
}

impl GuardRules {
    /// The refusal of a request, in one line.
    fn refuse(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<(StatusCode, &'static str)> {
        let forbidden = |why| Some((StatusCode::FORBIDDEN, why));
        let is_open =
            OPEN_PAGES.contains(&uri.path()) && matches!(*method, Method::GET | Method::HEAD);
        let sites = headers.get_all(FETCH_SITE);
        if sites
            .iter()
            .any(|site| !matches!(site.as_bytes(), b"none" | b"same-origin"))
        {
            return forbidden("refused: a page of another site asks (Sec-Fetch-Site)");
        }
        let host = match host(uri, headers) {
            NamedHost::One(host) => Some(host),
            NamedHost::None => None,
            NamedHost::Contradicting => return forbidden("refused: give one Host"),
        };
        if headers
            .get_all(ORIGIN)
            .iter()
            .any(|origin| !is_own_origin(origin, host.as_ref()))
        {
            return forbidden("refused: a page of another site asks (Origin)");
        }
        let is_local = self.bound.is_loopback();
        match &host {
            Some(host) if is_local && !self.is_own(host.host()) => {
                return forbidden(
                    "refused: this is not the Host of the operator's listener. Ask for localhost, or the address of admin_listen",
                );
            }
            None if !is_open => return forbidden("refused: give one Host"),
            _ => {}
        }
        match &self.token {
            _ if is_open => None,
            Some(token) if carries(headers, token) => None,
            Some(_) => Some((
                StatusCode::UNAUTHORIZED,
                "refused: send server.admin_token (Authorization: Bearer, or the password of Basic)",
            )),
            None if is_local => None,
            None => forbidden(
                "refused: admin_listen is beyond loopback and there is no server.admin_token; \
                 only /live, /ready and /metrics answer without",
            ),
        }
    }

    /// True for a host that only this machine, or the listener itself, goes by.
    fn is_own(&self, host: &str) -> bool {
        match Host::parse(host.strip_suffix('.').unwrap_or(host)) {
            Ok(Host::Domain(name)) => name == "localhost",
            Ok(Host::Ipv4(v4)) => v4.is_loopback() || IpAddr::V4(v4) == self.bound,
            Ok(Host::Ipv6(v6)) => {
                let canonical = IpAddr::V6(v6).to_canonical();
                canonical.is_loopback() || canonical == self.bound
            }
            Err(_) => false,
        }
    }
}

/// True for a request with one `Authorization` that carries the token: as Bearer (RFC 6750), or as the
/// password of Basic (RFC 7617) beside any user name, as browsers send it.
fn carries(headers: &HeaderMap, token: &AdminToken) -> bool {
    match Credentials::of(headers) {
        Credentials::Bearer(given) => token.is(given.reveal().as_bytes()),
        Credentials::Basic { password, .. } => token.is(password.reveal().as_bytes()),
        _ => false,
    }
}

/// The challenge of a browser, which then asks its user for the token. Programs get no Basic: they
/// would ask somebody who is not there.
const BASIC_CHALLENGE: &str = "Basic realm=\"everfeed operator\", charset=\"UTF-8\"";

/// The host that a request names.
enum NamedHost {
    None,
    One(Authority),
    Contradicting,
}

fn host(uri: &Uri, headers: &HeaderMap) -> NamedHost {
    let named = headers
        .get_all(HOST)
        .iter()
        .map(|value| value.to_str().ok().map(str::to_owned));
    let named: Option<Vec<String>> = named
        .chain(uri.authority().map(|it| Some(it.to_string())))
        .collect();
    match named.as_deref() {
        Some([]) => NamedHost::None,
        Some([first, others @ ..]) if headers.get_all(HOST).iter().count() <= 1 => {
            let is_same = others.iter().all(|other| other.eq_ignore_ascii_case(first));
            match first.to_ascii_lowercase().parse::<Authority>() {
                Ok(authority) if is_same && !first.contains('@') => NamedHost::One(authority),
                _ => NamedHost::Contradicting,
            }
        }
        _ => NamedHost::Contradicting,
    }
}

/// True for the origin of a page that this listener served itself.
fn is_own_origin(origin: &HeaderValue, host: Option<&Authority>) -> bool {
    let origin = origin
        .to_str()
        .ok()
        .and_then(|origin| Url::parse(origin).ok());
    let origin = origin.filter(|origin| matches!(origin.scheme(), "http" | "https"));
    let (Some(origin), Some(host)) = (origin, host) else {
        return false;
    };
    let usual = if origin.scheme() == "https" { 443 } else { 80 };
    origin.host_str() == Some(host.host())
        && origin.port() == host.port_u16().filter(|port| *port != usual)
}

impl<S, B> Service<Request<B>> for AdminGuard<S>
where
    S: Service<Request<B>, Response = Response, Error = Infallible, Future: Send + 'static>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_ours = |mark: &&OwnMark| {
            mark.is_on(request.headers()) || mark.is_on_delivery(request.headers())
        };
        if let Some(mark) = self.mark.as_ref().filter(is_ours) {
            let mut answer = refusal(
                StatusCode::LOOP_DETECTED,
                "everfeed sent this request to itself",
            );
            mark.put_on(answer.headers_mut());
            return ready(Ok(answer)).boxed();
        }
        // Whoever reaches a site would be the operator where its origin leads here.
        if passes(request.headers()) > 0 {
            let why = "refused: this came through the proxy of a site. The site's origin leads to the \
                       operator's listener; correct site.origin";
            return ready(Ok(refusal(StatusCode::LOOP_DETECTED, why))).boxed();
        }
        let is_browser = accept::prefers_page(list_value(request.headers(), &ACCEPT).as_deref());
        let refused = |status, why| {
            let mut refused = refusal(status, why);
            if status == StatusCode::UNAUTHORIZED && is_browser {
                let challenge = HeaderValue::from_static(BASIC_CHALLENGE);
                refused.headers_mut().append(WWW_AUTHENTICATE, challenge);
            }
            refused
        };
        match self
            .rules
            .refuse(request.method(), request.uri(), request.headers())
        {
            None => self.inner.call(request).boxed(),
            Some((status, why)) => {
                let due = lock(&self.rules.log).due(Instant::now());
                let more = match due {
                    Some(0) => String::new(),
                    Some(unsaid) => format!("; {unsaid} more since the last such line"),
                    None => return ready(Ok(refused(status, why))).boxed(),
                };
                tracing::warn!(
                    status = status.as_u16(),
                    "A request to the operator's listener was refused: {why}{more}. This is said once a minute at most"
                );
                ready(Ok(refused(status, why))).boxed()
            }
        }
    }
}

fn refusal(status: StatusCode, why: &str) -> Response {
    let mut response = Response::new(body::whole(format!("{why}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use http_body_util::BodyExt as _;
    use tower::{ServiceExt as _, service_fn};

    const TOKEN: &str = "0123456789abcdef";

    /// The status of a request to a guard bound there; it is one line.
    async fn ask(bound: &str, token: Option<&str>, path: &str, headers: &[(&str, &str)]) -> u16 {
        let inner = service_fn(|_: Request<()>| ready(Ok(Response::new(body::whole("fine\n")))));
        let token = token.map(AdminToken::new);
        let guard = AdminGuard::new(inner, bound.parse().unwrap(), token);
        let method = if path.starts_with("/clock") {
            Method::POST
        } else {
            Method::GET
        };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = guard.oneshot(request.body(()).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text.iter().filter(|b| **b == b'\n').count(), 1, "{text:?}");
        status
    }

    #[tokio::test]
    async fn pages_of_other_sites_get_nothing_read_or_done() {
        for path in [
            "/status",
            "/metrics",
            "/live",
            "/explain/blog",
            "/feeds/blog",
            "/clock/accept",
        ] {
            for (foreign, more) in [
                ("host", "evil.example"),
                ("host", "evil.example:8079"),
                ("host", "localhost.evil.example"),
                ("host", "127.0.0.1.evil.example"),
                ("host", "192.0.2.1"),
                ("host", "x@localhost"),
                ("origin", "http://evil.example"),
                ("origin", "http://localhost:3000"),
                ("origin", "null"),
                ("origin", "http://localhost.evil.example"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "same-site"),
            ] {
                let own = ("host", "localhost:8079");
                let headers = if foreign == "host" {
                    vec![(foreign, more)]
                } else {
                    vec![own, (foreign, more)]
                };
                assert_eq!(
                    ask("127.0.0.1", None, path, &headers).await,
                    403,
                    "{path} {foreign}: {more}"
                );
            }
            let twice = [("host", "localhost"), ("host", "localhost")];
            assert_eq!(ask("127.0.0.1", None, path, &twice).await, 403, "{path}");
        }
        let absolute = "http://evil.example/status";
        assert_eq!(
            ask("127.0.0.1", None, absolute, &[("host", "localhost")]).await,
            403
        );
        assert_eq!(ask("127.0.0.1", None, "/status", &[]).await, 403);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_a_line_a_minute_in_the_log_with_the_number_of_all_others() {
        let mut log = RefusalLog::default();
        assert_eq!(log.due(Instant::now()), Some(0));
        for _ in 0..500 {
            assert_eq!(log.due(Instant::now()), None);
        }
        tokio::time::advance(LOG_EVERY).await;
        assert_eq!(
            (log.due(Instant::now()), log.due(Instant::now())),
            (Some(500), None)
        );
    }

    #[tokio::test]
    async fn the_operator_on_the_machine_is_answered() {
        for host in [
            "127.0.0.1:8079",
            "localhost:8079",
            "LOCALHOST",
            "localhost.",
            "[::1]:9",
            "127.0.0.2",
        ] {
            assert_eq!(
                ask("127.0.0.1", None, "/status", &[("host", host)]).await,
                200,
                "{host}"
            );
        }
        let page = [
            ("host", "localhost:8079"),
            ("origin", "http://localhost:8079"),
            ("sec-fetch-site", "same-origin"),
        ];
        assert_eq!(ask("127.0.0.1", None, "/clock/accept", &page).await, 200);
        let proxied = [("host", "127.0.0.1:8079"), ("via", "1.1 cdn, 1.1 everfeed")];
        for path in ["/status", "/metrics", "/reload"] {
            assert_eq!(ask("127.0.0.1", None, path, &proxied).await, 508, "{path}");
        }
        let of_another = [("host", "localhost:8079"), ("via", "1.1 nginx")];
        assert_eq!(ask("127.0.0.1", None, "/status", &of_another).await, 200);
        let typed = [("host", "localhost:8079"), ("sec-fetch-site", "none")];
        assert_eq!(ask("::1", None, "/status", &typed).await, 200);
    }

    #[tokio::test]
    async fn beyond_loopback_a_token_is_needed_but_for_probes_and_counters() {
        let named = ("host", "everfeed:8079");
        let bearer = format!("Bearer {TOKEN}");
        for bound in ["0.0.0.0", "::", "192.0.2.7"] {
            for path in ["/live", "/ready", "/metrics"] {
                assert_eq!(
                    ask(bound, None, path, &[named]).await,
                    200,
                    "{bound} {path}"
                );
                assert_eq!(ask(bound, None, path, &[]).await, 200, "{bound} {path}");
            }
            for path in ["/status", "/explain/blog", "/clock/accept"] {
                assert_eq!(
                    ask(bound, None, path, &[named]).await,
                    403,
                    "{bound} {path}"
                );
                assert_eq!(
                    ask(bound, None, path, &[named, ("authorization", &bearer)]).await,
                    403
                );
                let token = Some(TOKEN);
                assert_eq!(
                    ask(bound, token, path, &[named]).await,
                    401,
                    "{bound} {path}"
                );
                assert_eq!(
                    ask(
                        bound,
                        token,
                        path,
                        &[named, ("authorization", "Bearer 0123456789abcdeg")]
                    )
                    .await,
                    401
                );
                assert_eq!(
                    ask(bound, token, path, &[named, ("authorization", TOKEN)]).await,
                    401
                );
                assert_eq!(
                    ask(bound, token, path, &[named, ("authorization", &bearer)]).await,
                    200
                );
                let foreign = [
                    named,
                    ("authorization", &bearer),
                    ("origin", "http://evil.example"),
                ];
                assert_eq!(ask(bound, token, path, &foreign).await, 403);
            }
        }
        assert_eq!(
            ask(
                "127.0.0.1",
                Some(TOKEN),
                "/status",
                &[("host", "localhost")]
            )
            .await,
            401,
            "where there is one"
        );
    }

    /// The answer to a request that carries this and accepts that.
    async fn answer(headers: &[(&str, &str)]) -> Response {
        let inner = service_fn(|_: Request<()>| ready(Ok(Response::new(body::whole("fine\n")))));
        let token = Some(AdminToken::new(TOKEN));
        let guard = AdminGuard::new(inner, "127.0.0.1".parse().unwrap(), token);
        let mut request = Request::builder().uri("/overview");
        for (name, value) in [("host", "localhost")].iter().chain(headers) {
            request = request.header(*name, *value);
        }
        guard.oneshot(request.body(()).unwrap()).await.unwrap()
    }

    fn basic(user: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    }

    #[tokio::test]
    async fn a_browser_is_asked_for_the_token_and_sends_it_as_a_password() {
        let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        let challenges = async |headers: &[(&str, &str)]| {
            let refused = answer(headers).await;
            assert_eq!(refused.status(), 401, "{headers:?}");
            let all = refused.headers().get_all(WWW_AUTHENTICATE).iter();
            all.map(|one| one.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(challenges(&[browser]).await, ["Bearer", BASIC_CHALLENGE]);
        for program in [("accept", "application/json"), ("accept", "*/*")] {
            assert_eq!(challenges(&[program]).await, ["Bearer"]);
        }
        for user in ["", "anybody", "ü"] {
            let given = basic(user, TOKEN);
            let given = [browser, ("authorization", &*given)];
            assert_eq!(answer(&given).await.status(), 200, "{user}");
        }
        let (other, reversed) = (basic("", "0123456789abcdeg"), basic(TOKEN, ""));
        for wrong in [&*other, &*reversed, "Basic", "Basic !", "Basic Og=="] {
            challenges(&[browser, ("authorization", wrong)]).await;
        }
        let good = basic("", TOKEN);
        let twice = [("authorization", &*good), ("authorization", &*good)];
        challenges(&twice).await;
        // A browser sends a password that it knows along with requests of pages of other sites.
        for foreign in [
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "cross-site"),
        ] {
            let given = [browser, ("authorization", &*good), foreign];
            assert_eq!(answer(&given).await.status(), 403, "{foreign:?}");
        }
    }
}
