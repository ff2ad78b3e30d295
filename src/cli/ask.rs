//! One question to an everfeed that runs on this machine; not a client for anything else.

use crate::secret::AdminToken;
use anyhow::Context as _;
use bytes::Bytes;
use http::{
    Method, Request, StatusCode, Uri,
    header::{AUTHORIZATION, HOST},
};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpStream;

/// The largest answer, bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The same host and port; of an address that means every interface, this machine.
fn reachable(authority: &str) -> String {
    match authority.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() => {
            let here = if address.is_ipv4() {
                IpAddr::V4(Ipv4Addr::LOCALHOST)
            } else {
                Ipv6Addr::LOCALHOST.into()
            };
            SocketAddr::new(here, address.port()).to_string()
        }
        _ => authority.to_owned(),
    }
}

/// Asks, and reads the whole answer. `url` is plain http with host and port; `token` is
/// `server.admin_token`.
pub(super) async fn ask(
    method: Method,
    url: &str,
    token: Option<&AdminToken>,
) -> anyhow::Result<(StatusCode, String)> {
    let uri: Uri = url.parse().context("a URL that cannot be read")?;
    let authority = reachable(uri.authority().context("a URL without a host")?.as_str());
    let stream = TcpStream::connect(&authority)
        .await
        .with_context(|| format!("nobody listens on {authority}"))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let path = uri
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, authority);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token.header());
    }
    let request = request.body(Empty::<Bytes>::new())?;
    let answer = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| anyhow::anyhow!(error))?;
        Ok::<_, anyhow::Error>((
            head.status,
            String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        ))
    };
    tokio::pin!(answer);
    tokio::select! {
        answered = &mut answer => answered,
        ended = connection => {
            ended?;
            answer.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_every_interface_is_asked_on_this_machine() {
        let check = |authority: &str, expect: &str| assert_eq!(reachable(authority), expect);
        check("0.0.0.0:8079", "127.0.0.1:8079");
        check("[::]:8079", "[::1]:8079");
        check("192.168.1.5:8079", "192.168.1.5:8079");
        check("blog.example:80", "blog.example:80");
    }
}
