//! One question to an everfeed that runs on this machine, and what is told where none answers; not a
//! client for anything else.

use crate::{
    config::{self, Config, ConfigError},
    secret::AdminToken,
};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{
    Method, Request, StatusCode, Uri,
    header::{AUTHORIZATION, HOST},
    uri::PathAndQuery,
};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};
use tokio::net::TcpStream;

/// The largest answer, bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The everfeed that runs on this machine, if one does, at the operator's address of its
/// configuration.
pub(super) struct Running {
    pub(super) address: SocketAddr,
    token: Option<AdminToken>,
}

impl Running {
    /// The one of a configuration.
    pub(super) fn of(config: &Config) -> Self {
        Self {
            address: config.server.admin_listen,
            token: config.server.admin_token.clone(),
        }
    }

    /// The one of a file, which is read for the address of the process only: it may have mistakes.
    pub(super) fn in_file(file: &Path) -> Self {
        let (address, token) = Config::admin_contact(file, config::environment());
        Self { address, token }
    }

    /// Asks for a path with its query, and reads the whole answer.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
    ) -> anyhow::Result<(StatusCode, String)> {
        self.send(method, path, Bytes::new()).await
    }

    /// The same with a body.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, String)> {
        let url = format!("http://{}{path}", self.address);
        send(method, &url, self.token.as_ref(), body).await
    }

    /// Gives a command by its path, and tells the answer; `None` where nobody answers, and the
    /// command is for the store itself. A refusal is an error.
    pub(super) async fn command(
        &self,
        method: Method,
        path: &str,
    ) -> anyhow::Result<Option<String>> {
        match self.ask(method, path).await {
            Ok((status, text)) if status.is_success() => Ok(Some(text)),
            Ok((_, text)) => bail!("{}", text.trim()),
            Err(_) => Ok(None),
        }
    }

    /// Context of an error that comes from the store file, because nobody answered.
    pub(super) fn absent(&self) -> String {
        let address = self.address;
        format!("everfeed is not running (nothing answers at {address}); its store file")
    }
}

/// A text as a step of a path or a value of a query.
pub(super) fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}

/// The same host and port; of an address that means every interface, this machine.
fn reachable(authority: &str) -> String {
    let Ok(mut address) = authority.parse::<SocketAddr>() else {
        return authority.to_owned();
    };
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address.to_string()
}

/// Failure to connect, because nothing listens there.
#[derive(Debug, thiserror::Error)]
#[error("everfeed is not running (nothing listens on {0})")]
pub(super) struct NotRunning(String);

/// The error of a command that nobody answers at `address`, which was read of `file`. A file that
/// cannot be read does not tell the address either, so its mistake comes first.
pub(super) fn unanswered(file: &Path, address: &SocketAddr, why: &anyhow::Error) -> anyhow::Error {
    let nobody = if why.is::<NotRunning>() {
        format!("{why}")
    } else {
        format!("the everfeed at {address} does not answer: {why:#}")
    };
    match Config::load(file, config::environment()) {
        Ok(_) => anyhow::anyhow!(nobody),
        Err(mistake) => Unanswered {
            nobody: if Config::names_admin_listen(file, config::environment()) {
                nobody
            } else {
                // The address may be one of its mistakes.
                "A running everfeed goes on as before. Mend the file, then ask again".to_owned()
            },
            mistake,
        }
        .into(),
    }
}

/// Nobody answers, and the file that tells who would is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{mistake}\n{nobody}")]
pub(super) struct Unanswered {
    mistake: ConfigError,
    nobody: String,
}

/// Asks, and reads the whole answer. `url` is plain http with host and port; `token` is
/// `server.admin_token`.
pub(super) async fn ask(
    method: Method,
    url: &str,
    token: Option<&AdminToken>,
) -> anyhow::Result<(StatusCode, String)> {
    send(method, url, token, Bytes::new()).await
}

async fn send(
    method: Method,
    url: &str,
    token: Option<&AdminToken>,
    body: Bytes,
) -> anyhow::Result<(StatusCode, String)> {
    let uri: Uri = url.parse().context("a URL that cannot be read")?;
    let authority = reachable(uri.authority().context("a URL without a host")?.as_str());
    let stream = match TcpStream::connect(&authority).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(NotRunning(authority).into());
        }
        connected => connected.with_context(|| format!("{authority} cannot be reached"))?,
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, authority);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token.header());
    }
    let request = request.body(Full::new(body))?;
    let answer = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        Ok::<_, anyhow::Error>((head.status, text))
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
    fn where_nobody_answers_the_mistake_of_the_file_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("everfeed.toml");
        let address = "127.0.0.1:8079".parse().unwrap();
        let check = |text: &str, expect: &[&str], is_mistake: bool| {
            std::fs::write(&file, text).unwrap();
            let told = unanswered(&file, &address, &anyhow::anyhow!("reset"));
            assert_eq!(told.is::<Unanswered>(), is_mistake, "{text:?}");
            let told = format!("{told:#}");
            for part in expect {
                assert!(told.contains(part), "{text:?}: {told}");
            }
            told
        };
        let told = check("x = [\n", &["everfeed.toml", "goes on as before"], true);
        assert!(!told.contains("8079"), "{told}");
        let listens = "[server]\nadmin_listen = \"127.0.0.1:8079\"\n";
        let mistaken = format!("{listens}waiters = 3\n");
        check(
            &mistaken,
            &["waiters", "127.0.0.1:8079 does not answer"],
            true,
        );
        let good = format!("{listens}[[feed]]\nname = \"a\"\nurl = \"http://127.0.0.1:1/\"\n");
        check(&good, &["127.0.0.1:8079 does not answer", "reset"], false);
    }

    #[test]
    fn an_address_of_every_interface_is_asked_on_this_machine() {
        let check = |authority: &str, expect: &str| assert_eq!(reachable(authority), expect);
        check("0.0.0.0:8079", "127.0.0.1:8079");
        check("[::]:8079", "[::1]:8079");
        check("192.168.1.5:8079", "192.168.1.5:8079");
        check("blog.example:80", "blog.example:80");
    }
}
