//! Push from upstream.

use super::rig::{Rig, START};
use crate::{
    feed::{
        pushed_feed::{
            CloudAddress, HubMode, NamedPush, PushAsked, PushLease, PushPath, PushTally,
            PushedFeed, UpstreamCloud, UpstreamHub,
        },
        record::FeedNo,
    },
    secret::Secret,
    store::StoreError,
};

on_every_store![
    a_row_is_kept_replaced_and_removed,
    rows_are_listed_by_pages,
    a_row_goes_with_its_feed_and_does_not_come_back,
];

/// A row in which every field says something.
pub(in crate::store) fn pushed_feed() -> PushedFeed {
    let path = |token: &str| PushPath {
        token: Secret::new(token),
        secret: Some(Secret::new("hush")),
    };
    let lease = |token: &str| PushLease {
        path: path(token),
        since: START,
        until: START.plus_secs(86_400),
    };
    let address = CloudAddress {
        is_https: true,
        domain: "cloud.example".to_owned(),
        port: 5337,
        path: "/pleaseNotify".to_owned(),
    };
    PushedFeed {
        named: NamedPush {
            topics: vec!["http://blog.example/feed".to_owned()],
            hubs: vec!["https://hub.example/".to_owned()],
            cloud: Some(address.clone()),
            is_by_table: true,
        },
        hubs: vec![UpstreamHub {
            url: "https://hub.example/".to_owned(),
            topic: "http://blog.example/feed".to_owned(),
            is_named: true,
            lease: Some(lease("a")),
            former: Some(lease("b")),
            asked: Some(PushAsked {
                path: path("c"),
                mode: HubMode::Unsubscribe,
                at: START,
                is_late: true,
            }),
            next_at: START.plus_secs(60),
            failures: 2,
            refusals: 1,
            why: Some("503".to_owned()),
        }],
        cloud: Some(UpstreamCloud {
            address,
            url: "http://blog.example/feed".to_owned(),
            path: Some(path("d")),
            since: Some(START),
            registered_at: Some(START.plus_secs(5)),
            next_at: START.plus_secs(70),
            failures: 1,
            why: Some("no answer".to_owned()),
        }),
        tally: PushTally {
            last_push: Some(START.plus_secs(6)),
            pushes: 3,
            misses: 1,
            untold_since: Some(START.plus_secs(7)),
        },
        root: Some("https://feeds.example/in/".to_owned()),
    }
}

async fn a_row_is_kept_replaced_and_removed(rig: Rig) {
    let blog = rig.blog().await;
    assert_eq!(rig.pushed_feeds(None, 9).await.unwrap(), []);
    rig.keep_pushed_feed(blog, Some(pushed_feed()))
        .await
        .unwrap();
    let rig = rig.reopen();
    assert_eq!(
        rig.pushed_feeds(None, 9).await.unwrap(),
        [(blog, pushed_feed())]
    );
    let next = PushedFeed::default();
    rig.keep_pushed_feed(blog, Some(next.clone()))
        .await
        .unwrap();
    assert_eq!(rig.pushed_feeds(None, 9).await.unwrap(), [(blog, next)]);
    rig.keep_pushed_feed(blog, None).await.unwrap();
    rig.keep_pushed_feed(blog, None).await.unwrap();
    assert_eq!(rig.reopen().pushed_feeds(None, 9).await.unwrap(), []);
}

async fn rows_are_listed_by_pages(rig: Rig) {
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        let no = rig.register(name, name).await.unwrap().no;
        rig.keep_pushed_feed(no, Some(pushed_feed())).await.unwrap();
        all.push(no);
    }
    let page = rig.pushed_feeds(Some(all[0]), 1).await.unwrap();
    assert_eq!(page, [(all[1], pushed_feed())]);
    assert_eq!(rig.pushed_feeds(Some(all[2]), 9).await.unwrap(), []);
}

async fn a_row_goes_with_its_feed_and_does_not_come_back(rig: Rig) {
    let blog = rig.blog().await;
    rig.keep_pushed_feed(blog, Some(pushed_feed()))
        .await
        .unwrap();
    assert!(rig.forget(blog).await.unwrap());
    assert_eq!(rig.pushed_feeds(None, 9).await.unwrap(), []);
    rig.keep_pushed_feed(blog, Some(pushed_feed()))
        .await
        .unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.pushed_feeds(None, 9).await.unwrap(), []);
    let never = rig.keep_pushed_feed(FeedNo(99), Some(pushed_feed())).await;
    assert!(
        matches!(never, Err(StoreError::UnknownFeed(_))),
        "{never:?}"
    );
}
