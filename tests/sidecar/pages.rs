//! Autodiscovery links in the pages of an old site (`page_links`): right behind the tag of the head
//! and nowhere else; every other byte is that of the origin. Row: C-1.

use crate::{
    legacy::{AFTER, BEFORE, body, header},
    rig::{PATIENCE, Sidecar},
};
use std::time::Duration;
use tokio::time::timeout;

const LINK: &str = "<link rel=\"alternate\" type=\"application/atom+xml\" title=\"Old &amp; good\" \
    href=\"http://blog.example/feeds/site-feed-xml/classic.atom\"/>";
const SITE: &str = "feeds = [\"/feed.xml\"]\npage_links = true";
const TAG: &str = "<!DOCTYPE html><html><head data-x=\"a>b\">";
const REST: &str = "<meta charset=utf-8><title>x</title></head><body>\u{fc}</body></html>";

/// A blog whose paths name the headers of a page and what it holds.
async fn behind(site: &str) -> Sidecar {
    let sidecar = Sidecar::start(site, |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let page = format!("{TAG}{REST}");
            let late = format!("{TAG}{}{REST}", " ".repeat(900));
            let head_only = head.starts_with("HEAD ");
            let (lines, body): (&str, &str) = match head.split(' ').nth(1).unwrap() {
                "/feed.xml" => ("Content-Type: text/xml", &format!("{BEFORE}{AFTER}")),
                "/page" if head.contains("\"v1\"") && !head.contains("-") => ("304", ""),
                "/page" if head.to_lowercase().contains("if-none-match: \"v1\"\r\n") => ("304", ""),
                "/page" => ("Content-Type: text/html; charset=utf-8\r\nETag: \"v1\"\r\nContent-MD5: x", &page),
                "/weak" => ("Content-Type: TEXT/HTML\r\nETag: W/\"v1\"", &page),
                "/late" => ("Content-Type: text/html", &late),
                "/late-told" => ("Content-Type: text/html;charset=utf-8", &late),
                "/gzip" => ("Content-Type: text/html\r\nContent-Encoding: gzip", &page),
                "/kept" => ("Content-Type: text/html\r\nCache-Control: public, no-transform", &page),
                "/saved" => {
                    ("Content-Type: text/html\r\nContent-Disposition: Attachment; filename=\"a.html\"", &page)
                }
                "/shown" => ("Content-Type: text/html\r\nContent-Disposition: inline; filename=a.html", &page),
                "/xhtml" => ("Content-Type: application/xhtml+xml", &page),
                "/part" => ("Content-Type: text/html", "<p>no head</p><head></head>"),
                "/short" => ("Content-Type: text/html", "<!-- <head>"),
                "/empty" => ("Content-Type: text/html", ""),
                "/missing" => ("404", &page),
                "/pieces" => {
                    origin.write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                    for byte in page.bytes() {
                        origin.write([b"1\r\n", &[byte][..], b"\r\n"].concat()).await;
                    }
                    origin.write("0\r\n\r\n").await;
                    continue;
                }
                "/slow" => {
                    origin.write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 30\r\n\r\n<html>").await;
                    tokio::time::sleep(Duration::from_secs(4)).await;
                    origin.write("<head></head>12345678901").await;
                    continue;
                }
                _ => ("Content-Type: text/plain", &page),
            };
            if lines == "304" {
                origin.write("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n").await;
                continue;
            }
            let (status, lines) = if lines == "404" { ("404 No", "Content-Type: text/html") } else { ("200 OK", lines) };
            origin.write(format!("HTTP/1.1 {status}\r\n{lines}\r\nContent-Length: {}\r\n\r\n", body.len())).await;
            if !head_only {
                origin.write(body).await;
            }
        }
    })
    .await;
    let read = async {
        while !sidecar
            .get("/feeds/site-feed-xml")
            .await
            .starts_with("HTTP/1.1 200 ")
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, read).await.expect("it is served");
    sidecar
}

async fn ask(sidecar: &Sidecar, method: &str, target: &str, lines: &str) -> String {
    sidecar
        .exchange(format!(
            "{method} {target} HTTP/1.1\r\nHost: blog.example\r\n{lines}Connection: close\r\n\r\n"
        ))
        .await
}

#[tokio::test]
async fn pages_get_links_behind_the_tag_of_their_head_and_everything_else_stays() {
    let sidecar = behind(SITE).await;
    let with_links = format!("{TAG}{LINK}{REST}");
    for page in ["/page", "/weak", "/shown"] {
        let got = sidecar.get(page).await;
        assert_eq!(body(&got), with_links, "{page}");
        assert_eq!(header(&got, "content-length"), with_links.len().to_string());
        assert_eq!(header(&got, "content-md5"), "");
        assert_eq!(header(&got, "vary"), "accept");
    }
    assert!(
        sidecar.get("/pieces").await.contains("\r\n0\r\n\r\n"),
        "it comes as it is made"
    );
    let pieces = testkit::client::ask(
        sidecar.app.address(),
        http::Method::GET,
        "/pieces",
        &[("accept", "*/*")],
        "",
    );
    assert_eq!(
        String::from_utf8_lossy(&pieces.await.unwrap().body),
        with_links
    );
    let late = format!("{TAG}{LINK}{}{REST}", " ".repeat(900));
    assert_eq!(body(&sidecar.get("/late-told").await), late);
    for (untouched, whole) in [
        ("/late", format!("{TAG}{}{REST}", " ".repeat(900))),
        ("/gzip", format!("{TAG}{REST}")),
        ("/kept", format!("{TAG}{REST}")),
        ("/saved", format!("{TAG}{REST}")),
        ("/xhtml", format!("{TAG}{REST}")),
        ("/missing", format!("{TAG}{REST}")),
        ("/text", format!("{TAG}{REST}")),
        ("/part", "<p>no head</p><head></head>".to_owned()),
        ("/short", "<!-- <head>".to_owned()),
        ("/empty", String::new()),
    ] {
        let got = sidecar.get(untouched).await;
        assert_eq!(body(&got), whole, "{untouched}");
        assert_eq!(
            header(&got, "content-length"),
            whole.len().to_string(),
            "{untouched}"
        );
    }
    assert_eq!(
        body(&sidecar.get("/slow").await),
        "<html><head></head>12345678901",
        "it is not waited for"
    );
    let part = ask(&sidecar, "GET", "/page", "Range: bytes=0-9\r\n").await;
    assert_eq!(
        body(&part),
        format!("{TAG}{REST}"),
        "a range is of the page as it is"
    );
    let head = ask(&sidecar, "HEAD", "/page", "").await;
    assert_eq!(
        (header(&head, "content-length"), header(&head, "etag")),
        ("", ""),
        "{head}"
    );
}

#[tokio::test]
async fn a_page_with_links_has_a_tag_of_its_own_and_comes_as_it_can_be_read() {
    let sidecar = behind(SITE).await;
    let got = sidecar.get("/page").await;
    let tag = header(&got, "etag").to_owned();
    assert!(tag.starts_with("\"v1-") && tag.ends_with('"'), "{tag}");
    let again = ask(
        &sidecar,
        "GET",
        "/page",
        &format!("If-None-Match: {tag}\r\n"),
    )
    .await;
    assert!(again.starts_with("HTTP/1.1 304 "), "{again}");
    assert_eq!(header(&again, "etag"), tag);
    assert!(
        sidecar.heads().last().unwrap().contains(": \"v1\"\r\n"),
        "{:?}",
        sidecar.heads().last()
    );
    let other_links = ask(
        &sidecar,
        "GET",
        "/page",
        "If-None-Match: \"v1-00000000\"\r\n",
    )
    .await;
    assert!(other_links.starts_with("HTTP/1.1 200 "), "{other_links}");
    assert!(header(&sidecar.get("/weak").await, "etag").starts_with("W/\"v1-"));
    let coding = |head: &str| head.to_lowercase().contains("accept-encoding: gzip");
    let browser = "Accept: text/html,*/*;q=0.8\r\nAccept-Encoding: gzip\r\n";
    ask(&sidecar, "GET", "/page", browser).await;
    assert!(
        !coding(sidecar.heads().last().unwrap()),
        "a page that is packed could not be read"
    );
    ask(
        &sidecar,
        "GET",
        "/style.css",
        "Accept: text/css\r\nAccept-Encoding: gzip\r\n",
    )
    .await;
    assert!(coding(sidecar.heads().last().unwrap()));
}

#[tokio::test]
async fn no_page_gets_links_unless_its_owner_wants_them_and_there_is_an_open_feed() {
    let sidecar = behind("feeds = [\"/feed.xml\"]").await;
    let got = sidecar.get("/page").await;
    assert_eq!(
        (body(&got), header(&got, "etag")),
        (format!("{TAG}{REST}").as_str(), "\"v1\"")
    );
    let without_feeds = Sidecar::start("page_links = true", |_, origin| {
        origin.always(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<head></head>",
        )
    })
    .await;
    assert_eq!(body(&without_feeds.get("/").await), "<head></head>");
}

#[tokio::test]
async fn feeds_of_comments_are_linked_behind_those_of_posts() {
    let site = "feeds = [\"/comments/feed.xml\", \"/feed.xml\"]\npage_links = true";
    let sidecar = Sidecar::start(site, |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let is_feed = head.contains("feed.xml");
            let media_type = if is_feed {
                "text/xml"
            } else {
                "text/html; charset=utf-8"
            };
            let body = if is_feed {
                format!("{BEFORE}{AFTER}")
            } else {
                "<head></head>".to_owned()
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {length}"
            );
            origin.write(format!("{head}\r\n\r\n{body}")).await;
        }
    })
    .await;
    let linked = async {
        loop {
            let page = sidecar.get("/").await;
            if let (Some(posts), Some(comments)) = (
                page.find("/feeds/site-feed-xml/"),
                page.find("/feeds/site-comments-feed-xml/"),
            ) {
                return posts < comments;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(timeout(PATIENCE, linked).await.expect("both are linked"));
}
