//! An old server that sends its readers to its public name, at which everfeed stands: what it says
//! is asked of it, not of everfeed.

use super::rig::Sidecar;
use testkit::wait::until;

const FEED: &str = "<rss version=\"2.0\"><channel><title>b</title><item><guid>1</guid><title>One</title></item></channel></rss>";

#[tokio::test]
async fn a_feed_that_its_server_names_by_the_public_name_is_read_at_the_origin() {
    // As WordPress does: an absolute address, with a slash at the end.
    let sidecar = Sidecar::start("feeds = [\"/feed\"]", |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let answer = match head.split(' ').nth(1).unwrap() {
                "/feed" => {
                    "HTTP/1.1 301 Moved\r\nLocation: http://blog.example/feed/\r\nContent-Length: 0\r\n\r\n"
                        .to_owned()
                }
                _ => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{FEED}", FEED.len()),
            };
            origin.write(answer).await;
        }
    })
    .await;
    until("it is read and served", async || {
        sidecar.get("/feed").await.contains("rel=\"hub\"")
    })
    .await;
    let about = sidecar.get("/feeds/site-feed/about").await;
    assert!(about.contains("http://blog.example/feed\""), "{about}");
    assert!(
        !about.contains("127.0.0.1"),
        "readers cannot go there: {about}"
    );
    let polls = sidecar.polls();
    assert!(
        polls.iter().any(|poll| poll.starts_with("GET /feed/ ")),
        "{polls:?}"
    );
    assert!(
        polls
            .iter()
            .all(|poll| poll.contains("\r\nhost: blog.example\r\n")),
        "{polls:?}"
    );
}
