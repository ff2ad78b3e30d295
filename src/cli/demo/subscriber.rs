//! A subscriber of WebSub for the demo: it finds the hub by the links of a feed, subscribes, and
//! tells of every push; not one to copy, since it trusts everybody.

use crate::cli::output::outln;
use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, time::Duration};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;

/// The largest push that is read, bytes.
const PUSH_BYTES_MAX: usize = 4 << 20;
/// Time between two looks at a feed that does not say where its hub is yet.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Subscribes to the feed at a URL and prints what is pushed, until `stop`.
pub(super) async fn follow(feed: String, stop: CancellationToken) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .context("no free port")?;
    let callback = format!("http://{}/pushed", listener.local_addr()?);
    let receiving = receive(listener, stop.clone());
    let subscribing = subscribe(&feed, &callback, &stop);
    tokio::join!(receiving, subscribing).1
}

/// Finds the hub and the topic, and asks for the subscription.
async fn subscribe(feed: &str, callback: &str, stop: &CancellationToken) -> anyhow::Result<()> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let (hub, topic) = loop {
        let answer = client.get(feed).send().await?;
        if let Some(links) = links(answer.headers()) {
            break links;
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    };
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("hub.mode", "subscribe")
        .append_pair("hub.topic", &topic)
        .append_pair("hub.callback", callback)
        .finish();
    let request = client
        .post(&hub)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let answer = request.body(form).send().await?;
    ensure!(
        answer.status().is_success(),
        "the hub answered with {}",
        answer.status()
    );
    outln!("A subscriber found {hub} by the links of {topic}, and subscribed.\n");
    Ok(())
}

/// The hub and the topic that the links of an answer name.
fn links(headers: &HeaderMap) -> Option<(String, String)> {
    let link = headers.get(header::LINK)?.to_str().ok()?;
    let named = |rel: &str| {
        let found = link
            .split(',')
            .find(|link| link.contains(&format!("rel=\"{rel}\"")))?;
        Some(found.split_once('<')?.1.split_once('>')?.0.to_owned())
    };
    named("hub").zip(named("self"))
}

/// Confirms every verification, and prints what is pushed.
async fn receive(listener: TcpListener, stop: CancellationToken) {
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
        };
        let stop = stop.clone();
        tokio::spawn(async move {
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(30));
            tokio::select! {
                () = stop.cancelled() => {}
                _ = http.serve_connection(TokioIo::new(stream), service_fn(answer)) => {}
            }
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::POST {
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let challenge = form_urlencoded::parse(query).find(|(name, _)| name == "hub.challenge");
        let challenge = challenge
            .map(|(_, challenge)| challenge.into_owned())
            .unwrap_or_default();
        return Ok(Response::new(Full::from(challenge)));
    }
    let media_type = request.headers().get(header::CONTENT_TYPE).cloned();
    let media_type = media_type
        .as_ref()
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    if let Ok(body) = Limited::new(request.into_body(), PUSH_BYTES_MAX)
        .collect()
        .await
    {
        outln!(
            "          pushed   {}",
            told(&media_type, &String::from_utf8_lossy(&body.to_bytes()))
        );
    }
    Ok(Response::new(Full::default()))
}

/// A push, in a line: its media type, and the titles of its items.
fn told(media_type: &str, document: &str) -> String {
    let titles = document.split("<item>").skip(1).filter_map(|item| {
        let title = item.split_once("<title>")?.1.split_once("</title>")?.0;
        Some(format!("“{title}”"))
    });
    let media_type = media_type.split(';').next().unwrap_or_default();
    format!("{media_type}: {}", titles.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_and_pushes_told_in_a_line() {
        let mut headers = HeaderMap::new();
        assert_eq!(links(&headers), None);
        let link = "<http://a/rss.xml>; rel=\"self\", <http://a/hub>; rel=\"hub\"";
        headers.insert(header::LINK, link.parse().unwrap());
        assert_eq!(
            links(&headers),
            Some(("http://a/hub".to_owned(), "http://a/rss.xml".to_owned()))
        );
        let document = "<rss><channel><title>b</title><item><title>One</title></item><item><title>Two</title></item>";
        assert_eq!(
            told("application/rss+xml; charset=utf-8", document),
            "application/rss+xml: “One”, “Two”"
        );
    }
}
