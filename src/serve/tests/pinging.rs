//! Pings on our own host, of feeds that are polled anywhere (UPSTREAM U-24); and callbacks that nobody
//! gave out.

use super::rig::{Answer, Site};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;

async fn post(site: &Site, target: &str, body: &str) -> Answer {
    let request = Request::post(target).header("content-type", "text/xml");
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    site.send(request.body(body).unwrap()).await
}

fn call(method: &str, parameters: &[&str]) -> String {
    let value = |value: &&str| format!("<param><value>{value}</value></param>");
    let parameters: String = parameters.iter().map(value).collect();
    format!(
        "<methodCall><methodName>{method}</methodName><params>{parameters}</params></methodCall>"
    )
}

/// The hub of the rig repeats what it is told.
const HINT: &str = "hub.url=https%3A%2F%2Fblog.example%2Frss.xml";

#[tokio::test]
async fn a_ping_names_a_feed_by_its_url_its_page_or_its_site_u_24() {
    let site = Site::of(1..=2).await;
    let ping = "weblogUpdates.ping";
    let (extended, cloud) = ("weblogUpdates.extendedPing", "rssCloud.ping");
    let feed = "https://blog.example/rss.xml";
    for (method, parameters, is_taken) in [
        (ping, &["Blog", "https://blog.example/"][..], true),
        (ping, &["Blog", "http://blog.example"], true),
        (
            ping,
            &["Blog", "https://blog.example/", "https://blog.example/post"],
            true,
        ),
        (ping, &["Blog", "https://other.example/"], false),
        (ping, &["Blog", "https://blog.example/elsewhere/"], false),
        (ping, &["Blog"], false),
        (
            extended,
            &["Blog", "https://x.example/", "https://x.example/1", feed],
            true,
        ),
        (cloud, &[feed], true),
        (cloud, &["https://blog.example/other.xml"], false),
    ] {
        let answer = post(&site, "/RPC2", &call(method, parameters)).await;
        let said = answer.text();
        assert_eq!(answer.status, 200, "{said}");
        let flag = if is_taken { "0" } else { "1" };
        let flag = format!("<boolean>{flag}</boolean>");
        assert!(said.contains(&flag), "{method} {parameters:?}: {said}");
        assert_eq!(
            said.replace("&amp;", "&").contains(HINT),
            is_taken,
            "{said}"
        );
    }
    let answer = post(&site, "/RPC2", &call("blogger.newPost", &["x"])).await;
    assert!(
        answer
            .text()
            .contains("there is no method blogger.newPost here")
    );
    let with_dtd = "<!DOCTYPE x [<!ENTITY a \"b\">]><methodCall><methodName>weblogUpdates.ping</methodName></methodCall>";
    let answer = post(&site, "/RPC2", with_dtd).await;
    assert!(
        answer.text().contains("no document type"),
        "{}",
        answer.text()
    );
    assert_eq!(site.get("/RPC2").await.status, 404);
}

#[tokio::test]
async fn a_ping_by_form_is_the_same_in_words() {
    let site = Site::of(1..=2).await;
    let taken = site
        .get("/pingSiteForm?name=Blog&url=https%3A%2F%2Fblog.example%2F")
        .await;
    assert!(
        taken.status == 200 && taken.text().contains(HINT),
        "{}",
        taken.text()
    );
    let body = "name=Blog&url=https%3A%2F%2Fblog.example%2F";
    let taken = post(&site, "/pingSiteForm", body).await;
    assert!(
        taken.status == 200 && taken.text().contains(HINT),
        "{}",
        taken.text()
    );
    for target in [
        "/pingSiteForm",
        "/pingSiteForm?url=nonsense",
        "/pingSiteForm?url=http%3A%2F%2Fx%2F",
    ] {
        assert_eq!(site.get(target).await.status, 400, "{target}");
    }
}

#[tokio::test]
async fn a_callback_that_nobody_gave_out_is_answered_like_any_path_with_nothing_u_3() {
    let site = Site::of(1..=2).await;
    let nothing = site.get("/in/nothing").await;
    let token = "0".repeat(32);
    let callback = format!("/in/{token}?hub.mode=subscribe&hub.challenge=x");
    for answer in [
        site.get(&callback).await,
        post(&site, &format!("/in/{token}"), "<rss/>").await,
    ] {
        assert_eq!((answer.status, &answer.body), (404, &nothing.body));
        assert_eq!(
            answer.header("content-type"),
            nothing.header("content-type")
        );
    }
}
