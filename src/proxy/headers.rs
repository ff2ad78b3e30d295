//! Headers on their way through us: those of one connection are taken out, and those that tell of
//! the way are put in (RFC 9110 sections 7.6 and 7.8, RFC 7239); not where a request goes.

use super::fault::ProxyFault;
use crate::edge::fields::text;
use crate::layers::{
    members,
    own_mark::{VIA_NAME, passes},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version,
    header::{
        CONNECTION, CONTENT_LENGTH, COOKIE, FORWARDED, HOST, MAX_FORWARDS, PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
    },
    request::Parts,
};
use std::net::IpAddr;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Headers that speak of one connection, whether or not `Connection` names them.
const HOP_BY_HOP: [HeaderName; 8] = [
    // No header of HTTP: CGI would take it for the proxy that its programs are to use.
    HeaderName::from_static("proxy"),
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TRANSFER_ENCODING,
    UPGRADE,
    HTTP2_SETTINGS,
];

/// Headers that say through whom a request came, beside those whose names begin with
/// [`WAY_PREFIX`]: the standard one, and those that proxies and networks of delivery use. Of those
/// that an untrusted client sends, nothing is believed.
const WAY: [&str; 10] = [
    "cf-connecting-ip",
    "fastly-client-ip",
    "forwarded",
    "front-end-https",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-real-ip",
    "x-url-scheme",
];
const WAY_PREFIX: &str = "x-forwarded-";

/// Headers that `Connection` cannot take out: the request would mean something else without them.
const KEPT: [HeaderName; 3] = [HOST, CONTENT_LENGTH, http::header::AUTHORIZATION];

/// The one protocol to which connections change.
const WEB_SOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// Times that a request may have passed through an everfeed.
const PASSES_MAX: usize = 3;

/// The other end of the connection that a request came by; an extension of the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProxyPeer {
    /// Its address.
    pub address: Option<IpAddr>,
    /// True for a proxy that the operator trusts: what it says of the way is kept.
    pub is_trusted: bool,
    /// True when readers speak `https` to us.
    pub is_secure: bool,
    /// The client whose request it is: the peer, or whom trusted proxies name.
    pub client: Option<IpAddr>,
    /// True when that address may stand for many clients.
    pub is_many: bool,
}

/// True for a request that has passed through everfeeds so often that it goes round.
pub(super) fn goes_round(headers: &HeaderMap) -> bool {
    passes(headers) >= PASSES_MAX
}

/// Counts a step of a request that may take a few only (RFC 9110 section 7.6.2); the fault of one
/// that has taken all of them.
pub(super) fn take_a_step(request: &mut Parts) -> Result<(), ProxyFault> {
    if !matches!(request.method, Method::OPTIONS | Method::TRACE) {
        return Ok(());
    }
    let steps = text(&request.headers, &MAX_FORWARDS).and_then(|steps| steps.parse::<u64>().ok());
    match steps {
        Some(0) => Err(ProxyFault::NotPassedOn(
            "Max-Forwards is 0, and this proxy has nothing to say itself",
        )),
        Some(steps) => {
            let steps = HeaderValue::from(steps - 1);
            request.headers.insert(MAX_FORWARDS, steps);
            Ok(())
        }
        None => Ok(()),
    }
}

/// The protocol that a request asks to change to: WebSocket, by HTTP/1.1. In another one, such as
/// HTTP/2 (`h2c`), further requests would pass beside everything that is decided here.
pub(super) fn upgrade(headers: &HeaderMap, version: Version) -> Option<HeaderValue> {
    // Limit: no other protocol is passed on, and no WebSocket by HTTP/2 (RFC 8441).
    let is_asked = version == Version::HTTP_11
        && has(headers, &CONNECTION, "upgrade")
        && is_web_socket(headers);
    is_asked.then_some(WEB_SOCKET)
}

/// True for headers that offer WebSocket in `Upgrade` (RFC 6455 section 4.1), whatever else they
/// offer.
pub(super) fn is_web_socket(headers: &HeaderMap) -> bool {
    has(headers, &UPGRADE, "websocket")
}

// Decides: Which headers does an origin get?
/// Makes the headers of a request those that the origin gets.
pub(super) fn towards_origin(parts: &mut Parts, peer: ProxyPeer) {
    let upgrade = upgrade(&parts.headers, parts.version);
    let wants_trailers = has(&parts.headers, &TE, "trailers");
    let host = parts.uri.authority().map(|host| host.as_str());
    let host = host.and_then(|host| HeaderValue::from_str(host.trim_end_matches(':')).ok());
    let headers = &mut parts.headers;
    take_out_hop_by_hop(headers);
    headers.remove(TE);
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
    // The target goes before the header (RFC 9112 section 3.2.2), and HTTP/2 has nothing else.
    if let Some(host) = host {
        headers.insert(HOST, host);
    }
    // HTTP/2 may part cookies; HTTP/1.1 has one line (RFC 9113 section 8.2.3).
    join(headers, &COOKIE, "; ");
    say_the_way(headers, peer);
    add_via(headers, parts.version);
}

// Decides: Which answers of an origin have no clear end?
/// The fault of an answer whose body has no one end: its framing is hop-by-hop, and what would go
/// on is cut, or holds what is no part of it (RFC 9112 section 6.3).
pub(super) fn framing_fault(headers: &HeaderMap) -> Option<&'static str> {
    let mut codings = headers
        .get_all(TRANSFER_ENCODING)
        .iter()
        .map(|coding| coding.as_bytes().trim_ascii());
    let coding = codings.next()?;
    if headers.contains_key(CONTENT_LENGTH) {
        Some("its answer has Content-Length and Transfer-Encoding")
    } else if codings.next().is_some() || !coding.eq_ignore_ascii_case(b"chunked") {
        Some("its answer has another Transfer-Encoding than chunked")
    } else {
        None
    }
}

// Decides: Which headers of an origin does a reader get?
/// Makes the headers of an answer those that the reader gets. Those of an upgrade stay, and those
/// by which one is demanded (RFC 9110 section 15.5.22).
pub(super) fn towards_reader(headers: &mut HeaderMap, version: Version, status: StatusCode) {
    let is_about_upgrade = matches!(
        status,
        StatusCode::SWITCHING_PROTOCOLS | StatusCode::UPGRADE_REQUIRED
    );
    let upgrade = headers.get(UPGRADE).filter(|_| is_about_upgrade).cloned();
    take_out_hop_by_hop(headers);
    headers.remove(TE);
    say_the_length_once(headers);
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
    add_via(headers, version);
}

fn take_out_hop_by_hop(headers: &mut HeaderMap) {
    let named = members(headers, &CONNECTION).filter_map(|name| HeaderName::try_from(name).ok());
    let taken: Vec<_> = named
        .filter(|name| !KEPT.contains(name) && *name != TE)
        .collect();
    for name in taken.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers.remove(CONNECTION);
}

/// Makes one length of several that are the same; others the library has refused.
fn say_the_length_once(headers: &mut HeaderMap) {
    let mut lengths = members(headers, &CONTENT_LENGTH);
    let (Some(length), Some(_)) = (lengths.next(), lengths.next()) else {
        return;
    };
    let length = HeaderValue::from_bytes(length);
    drop(lengths);
    if let Ok(length) = length {
        headers.insert(CONTENT_LENGTH, length);
    }
}

/// True when a list has a member, in any case.
fn has(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    members(headers, name).any(|member| member.eq_ignore_ascii_case(wanted.as_bytes()))
}

fn say_the_way(headers: &mut HeaderMap, peer: ProxyPeer) {
    if !peer.is_trusted {
        let is_spelt = |name: &str| name.starts_with(WAY_PREFIX) || WAY.contains(&name);
        let is_way = |name: &&HeaderName| match name.as_str() {
            // CGI makes one name of hyphens and underscores.
            name if name.contains('_') => is_spelt(&name.replace('_', "-")),
            name => is_spelt(name),
        };
        let said: Vec<HeaderName> = headers.keys().filter(is_way).cloned().collect();
        for name in said {
            headers.remove(name);
        }
    }
    let proto = if peer.is_secure { "https" } else { "http" };
    let host = headers.get(HOST).cloned();
    // Most proxies speak of the way in `X-Forwarded-For` alone: a server that reads the standard
    // one learns the same.
    if !headers.contains_key(FORWARDED)
        && let Some(way) = forwarded_of(headers)
    {
        headers.insert(FORWARDED, way);
    }
    let said = headers.contains_key(X_FORWARDED_FOR) || headers.contains_key(FORWARDED);
    if let Some(address) = peer.address {
        let address = address.to_canonical();
        append(headers, &X_FORWARDED_FOR, &address.to_string());
        let mut step = format!("for={}", node(address));
        // What a trusted proxy said of the host and the scheme of its client stands before.
        if !said {
            let host = host.as_ref().and_then(|host| host.to_str().ok());
            if let Some(host) = host.filter(|host| is_quotable(host)) {
                step.push_str(&format!(";host=\"{host}\""));
            }
            step.push_str(&format!(";proto={proto}"));
        }
        append(headers, &FORWARDED, &step);
    }
    headers
        .entry(X_FORWARDED_PROTO)
        .or_insert(HeaderValue::from_static(proto));
    if let Some(host) = host {
        headers.entry(X_FORWARDED_HOST).or_insert(host);
    }
}

/// An address as `Forwarded` spells it (RFC 7239 section 6).
fn node(address: IpAddr) -> String {
    if address.is_ipv6() {
        format!("\"[{address}]\"")
    } else {
        address.to_string()
    }
}

/// The way that `X-Forwarded-For`, `-Host` and `-Proto` tell, as `Forwarded` tells it (RFC 7239
/// section 7.4): the host and the scheme are those of the first step. `None` when nothing is told,
/// or something that is no address.
fn forwarded_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let lines: Option<Vec<&str>> = headers
        .get_all(X_FORWARDED_FOR)
        .iter()
        .map(|line| line.to_str().ok())
        .collect();
    let lines = lines.filter(|lines| !lines.is_empty())?;
    let said = |name: &HeaderName| headers.get(name)?.to_str().ok();
    let mut way = String::new();
    for step in lines.iter().flat_map(|line| line.split(',')) {
        let address: IpAddr = step.trim().parse().ok()?;
        if way.is_empty() {
            way = format!("for={}", node(address));
            if let Some(host) = said(&X_FORWARDED_HOST).filter(|host| is_quotable(host)) {
                way.push_str(&format!(";host=\"{host}\""));
            }
            if let Some(proto @ ("http" | "https")) = said(&X_FORWARDED_PROTO) {
                way.push_str(&format!(";proto={proto}"));
            }
        } else {
            way.push_str(&format!(", for={}", node(address)));
        }
    }
    HeaderValue::try_from(way).ok()
}

fn is_quotable(host: &str) -> bool {
    !host.contains(['"', '\\'])
}

fn add_via(headers: &mut HeaderMap, version: Version) {
    let version = match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    };
    append(headers, &VIA, &format!("{version} {VIA_NAME}"));
}

/// Adds an element to a list that stands in one line.
fn append(headers: &mut HeaderMap, name: &HeaderName, element: &str) {
    join(headers, name, ", ");
    let list = match headers.get(name).map(HeaderValue::as_bytes) {
        Some(list) if !list.is_empty() => [list, b", ", element.as_bytes()].concat(),
        _ => element.as_bytes().to_vec(),
    };
    if let Ok(list) = HeaderValue::from_bytes(&list) {
        headers.insert(name.clone(), list);
    }
}

/// Makes several lines of a header one.
fn join(headers: &mut HeaderMap, name: &HeaderName, separator: &str) {
    let mut lines = headers.get_all(name).iter();
    if let (Some(_), Some(_)) = (lines.next(), lines.next()) {
        let lines = headers.get_all(name).iter();
        let all: Vec<&[u8]> = lines.map(HeaderValue::as_bytes).collect();
        if let Ok(joined) = HeaderValue::from_bytes(&all.join(separator.as_bytes())) {
            headers.insert(name.clone(), joined);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_older_headers_tell_is_told_in_the_standard_one() {
        // RFC 7239 section 7.4.
        let check = |lines: &[(&'static str, &str)], expect: Option<&str>| {
            let lines = lines.iter().map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            });
            let told = forwarded_of(&lines.collect());
            assert_eq!(told.as_ref().map(|way| way.to_str().unwrap()), expect);
        };
        let hop = ("x-forwarded-for", "192.0.2.1, 2001:db8::1");
        let [host, proto] = [
            ("x-forwarded-host", "b.example"),
            ("x-forwarded-proto", "https"),
        ];
        check(
            &[hop, host, proto],
            Some("for=192.0.2.1;host=\"b.example\";proto=https, for=\"[2001:db8::1]\""),
        );
        check(&[hop], Some("for=192.0.2.1, for=\"[2001:db8::1]\""));
        check(&[("x-forwarded-for", "192.0.2.1, unknown")], None);
        check(&[host, proto], None);
    }
}
