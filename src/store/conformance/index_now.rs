//! `IndexNow`.

use super::rig::{Rig, START};
use crate::{
    feed::{
        index_now::{IndexNow, IndexNowFault, IndexNowFaultKind, PostponedPage, UrlHash, UrlPing},
        item::ItemId,
        record::FeedNo,
    },
    secret::Secret,
};

on_every_store![a_row_of_a_site_is_kept_replaced_and_removed];

/// A row in which every field says something.
pub(in crate::store) fn index_now() -> IndexNow {
    IndexNow {
        key: Secret::new("0123456789abcdef"),
        since: START,
        cursors: vec![(FeedNo(7), START.plus_secs(1))],
        pings: vec![UrlPing {
            url: UrlHash([9; 8]),
            at: START.plus_secs(2),
            is_gone: true,
        }],
        postponed: vec![PostponedPage {
            feed: FeedNo(7),
            item: ItemId([3; 10]),
            until: START.plus_secs(3),
        }],
        next_at: START.plus_secs(4),
        failures: 5,
        fault: Some(IndexNowFault {
            kind: IndexNowFaultKind::Failing,
            since: START.plus_secs(6),
            why: "503".to_owned(),
        }),
        accepted: 8,
        accepted_at: Some(START.plus_secs(7)),
    }
}

async fn a_row_of_a_site_is_kept_replaced_and_removed(rig: Rig) {
    let (blog, other) = ("http://blog.example/", "http://other.example/");
    assert_eq!(rig.index_now(blog).await.unwrap(), None);
    rig.keep_index_now(blog, Some(index_now())).await.unwrap();
    let next = IndexNow::begin(Secret::new("k"), START);
    rig.keep_index_now(other, Some(next.clone())).await.unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.index_now(blog).await.unwrap(), Some(index_now()));
    rig.keep_index_now(blog, Some(next.clone())).await.unwrap();
    assert_eq!(rig.index_now(blog).await.unwrap(), Some(next.clone()));
    rig.keep_index_now(blog, None).await.unwrap();
    rig.keep_index_now(blog, None).await.unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.index_now(blog).await.unwrap(), None);
    assert_eq!(rig.index_now(other).await.unwrap(), Some(next));
}
