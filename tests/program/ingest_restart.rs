//! The poller over real sockets and a store on disk, stopped and started again in the middle.

use crate::polling::{Polling, in_folder};
use everfeed::{
    clock::{Clock as _, System},
    feed::stamp::Stamp,
    notify::HintFate,
};
use testkit::{
    publisher::{Answer, Publisher, with_headers},
    wait::PATIENCE,
};
use tokio::time::timeout;

/// Waits until the feed holds so many items.
async fn wait_for(polling: &Polling, items: u64) {
    let watched = polling.notify.watch(polling.feed);
    let mut waiter = watched.expect("a poller announces its feeds");
    let reached = async {
        while polling.store.feed(polling.feed).await.unwrap().items.total < items {
            waiter.changed().await.unwrap();
        }
    };
    timeout(PATIENCE, reached).await.expect("the items come");
}

fn document(items: usize) -> Answer {
    let item = |n: usize| format!("<item><guid>{n}</guid><title>post {n}</title></item>");
    let items_text: String = (1..=items).rev().map(item).collect();
    let text =
        format!("<rss version=\"2.0\"><channel><title>blog</title>{items_text}</channel></rss>");
    with_headers(
        200,
        &[
            ("etag", &format!("\"{items}\"")),
            ("last-modified", "today"),
        ],
        text.as_bytes(),
    )
}

#[tokio::test]
async fn a_restart_forgets_nothing_and_asks_for_nothing_twice() {
    // FRB 010, 015, 016, 037.
    let folder = tempfile::tempdir().unwrap();
    let start = async |url: &str| Polling::start(in_folder(folder.path(), url).await).await;
    let publisher = Publisher::start().await;
    let url = publisher.url("/rss");
    publisher.says(document(2));
    let polling = start(&url).await;
    wait_for(&polling, 2).await;
    polling.stop().await;

    for items in 3..=5 {
        let polling = start(&url).await;
        let known = polling.poller.status(polling.feed).unwrap();
        assert_eq!(
            (
                known.health.failures,
                known.validators.and_then(|pair| pair.etag)
            ),
            (0, Some(format!("\"{}\"", items - 1)))
        );
        assert_eq!(
            publisher.requests().len(),
            items - 2,
            "a start polls nothing that is not due"
        );
        publisher.says(document(items));
        assert_eq!(
            polling
                .notify
                .hint(polling.feed, Stamp::from_micros(System.now_us())),
            HintFate::Taken
        );
        wait_for(&polling, items as u64).await;
        let request = publisher.requests().pop().unwrap();
        assert!(
            request.contains(&format!("if-none-match: \"{}\"\r\n", items - 1)),
            "{request}"
        );
        assert!(
            request.contains("if-modified-since: today\r\n"),
            "{request}"
        );
        polling.stop().await;
    }
}
