//! Pages of archives that wait for their commit, and walks; not what a commit does to items.

use super::rig::{Rig, START, add, commit, delete, guid, key};
use crate::{
    feed::{
        archive::{
            ArchiveWalk, History, LastWalk, OwnOrigins, PageAddress, PartialReason, StagedBody,
            StagedPage, StagedWalk, StagingChange, WalkRules, WalkedDocument,
        },
        item::Reason,
        reconcile::{Change, Delete},
        record::FeedNo,
    },
    store::{Archives, Commit, StoreError},
};
use everfeed_adapters::{Digest, Link, Metadata};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use std::io::{Read as _, Write as _};
use url::Url;

on_every_store![
    a_page_and_how_far_the_walk_is_are_kept_together,
    committed_pages_leave_their_traces_until_the_walk_ends,
    a_refused_commit_leaves_the_staged_pages,
    pages_of_an_unknown_feed_are_refused,
    staged_pages_show_nothing_of_what_was_forgotten,
];

pub(crate) fn walk() -> ArchiveWalk {
    let feed = Url::parse("http://example.org/feed").unwrap();
    let rules = WalkRules {
        reach: OwnOrigins::new(feed.clone(), vec![]),
        pages_max: 9,
        bytes_max: 1 << 20,
        page_gap_secs: 1,
    };
    let href = "http://example.org/a".into();
    let links = vec![Link {
        href,
        rel: "prev-archive".into(),
        ..Link::default()
    }];
    let metadata = Metadata {
        links,
        ..Metadata::default()
    };
    let keys = [key(1)];
    let seen = WalkedDocument {
        asked: feed.as_str(),
        landed: feed.as_str(),
        body: Digest([1; 16]),
        bytes: 1,
        keys: &keys,
        metadata: &metadata,
        is_built: false,
        damaged: false,
        mixed: false,
    };
    ArchiveWalk::begin(&feed, &seen, None, &rules, START).unwrap()
}

pub(crate) fn page(no: u32) -> StagedPage {
    StagedPage {
        no,
        address: PageAddress {
            url: format!("http://example.org/{no}"),
            landed: "http://example.org/x".into(),
            base_url: "http://example.org/x".into(),
        },
        content_type: None,
        content_language: Some("en".into()),
        read_at: START,
        body: Digest([7; 16]),
        keys: vec![key(no)],
        strong: 1,
        content: StagedBody::Waiting(vec![1, 2, 3]),
    }
}

/// The numbers of the pages, and whether each still has its bytes.
fn shown(staged: &StagedWalk) -> Vec<(u32, bool)> {
    staged
        .pages
        .iter()
        .map(|page| (page.no, page.waits()))
        .collect()
}

async fn a_page_and_how_far_the_walk_is_are_kept_together(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", "other").await.unwrap().no;
    assert_eq!(rig.staged(feed).await.unwrap(), StagedWalk::default());
    for no in [0, 1, 300] {
        rig.stage(feed, walk(), Some(page(no))).await.unwrap();
    }
    rig.stage(other, walk(), Some(page(5))).await.unwrap();
    let again = StagedPage {
        content: StagedBody::Waiting(vec![9]),
        ..page(1)
    };
    let further = walk().paced(9, START);
    rig.stage(feed, further.clone(), Some(again.clone()))
        .await
        .unwrap();
    rig.stage(other, further.clone(), None).await.unwrap();
    let rig = rig.reopen();
    let staged = rig.staged(feed).await.unwrap();
    assert_eq!(staged.pages, [page(0), again, page(300)]);
    assert_eq!(
        staged.walk,
        Some(further.token()),
        "what was seen is told again"
    );
    assert!(staged.recalled().unwrap().remembers());
    assert_eq!(rig.staged(other).await.unwrap().pages, [page(5)]);
    let further = further.token();
    assert_eq!(
        rig.walks(None, 9).await.unwrap(),
        [(feed, further.clone()), (other, further)]
    );
    assert_eq!(
        rig.feed(feed).await.unwrap().rev,
        0,
        "a staged page is no commit"
    );
}

async fn committed_pages_leave_their_traces_until_the_walk_ends(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", "other").await.unwrap().no;
    for no in 0..3 {
        rig.stage(feed, walk(), Some(page(no))).await.unwrap();
        rig.stage(other, walk(), Some(page(no))).await.unwrap();
    }
    let say = |history, unstage| {
        Some(Archives {
            history,
            unstage,
            walked: None,
        })
    };
    for (unstage, history, expect) in [
        (
            None,
            History::Running,
            vec![(0, true), (1, true), (2, true)],
        ),
        (
            Some(StagingChange::Below(0)),
            History::Running,
            vec![(0, true), (1, true), (2, true)],
        ),
        (
            Some(StagingChange::Below(2)),
            History::Partial(PartialReason::Circle),
            vec![(0, false), (1, false), (2, true)],
        ),
        (
            Some(StagingChange::Without(2)),
            History::Complete,
            vec![(0, false), (1, false)],
        ),
        (
            Some(StagingChange::Since(1)),
            History::Complete,
            vec![(1, false)],
        ),
        (Some(StagingChange::Since(2)), History::Complete, vec![]),
    ] {
        let record = rig.feed(feed).await.unwrap();
        let archives = say(history.clone(), unstage);
        let receipt = rig
            .commit(Commit {
                archives,
                ..commit(&record, vec![])
            })
            .await
            .unwrap();
        assert_eq!(
            (
                receipt.feed.completeness.history,
                receipt.feed.completeness.last_walk
            ),
            (history, None)
        );
        let staged = rig.staged(feed).await.unwrap();
        assert_eq!(shown(&staged), expect, "{unstage:?}");
        assert!(
            staged.walk.is_some(),
            "how the archives were reached is remembered"
        );
    }
    let record = rig.feed(feed).await.unwrap();
    let given_up = Commit {
        archives: say(History::Unknown, Some(StagingChange::All)),
        ..commit(&record, vec![])
    };
    rig.commit(given_up).await.unwrap();
    assert_eq!(
        rig.staged(feed).await.unwrap(),
        StagedWalk::default(),
        "the walk goes, too"
    );
    let record = rig.feed(feed).await.unwrap();
    let walked = LastWalk {
        missed: 3,
        ..LastWalk::at_once(History::Complete, START)
    };
    let archives = Archives {
        history: History::Complete,
        unstage: None,
        walked: Some(walked.clone()),
    };
    let record = rig
        .commit(Commit {
            archives: Some(archives),
            ..commit(&record, vec![])
        })
        .await
        .unwrap()
        .feed;
    rig.commit(commit(&record, vec![add(1)])).await.unwrap();
    let rig = rig.reopen();
    let record = rig.feed(feed).await.unwrap();
    assert_eq!(
        (record.completeness.history, record.completeness.last_walk),
        (History::Complete, Some(walked)),
        "other commits leave it"
    );
    assert_eq!(
        shown(&rig.staged(other).await.unwrap()),
        [(0, true), (1, true), (2, true)]
    );
}

async fn a_refused_commit_leaves_the_staged_pages(rig: Rig) {
    let feed = rig.blog().await;
    rig.stage(feed, walk(), Some(page(0))).await.unwrap();
    let mut record = rig.feed(feed).await.unwrap();
    record.rev = 7;
    let archives = Some(Archives {
        history: History::Complete,
        unstage: Some(StagingChange::Since(1)),
        walked: None,
    });
    let refused = rig
        .commit(Commit {
            archives,
            ..commit(&record, vec![add(1)])
        })
        .await;
    assert!(matches!(refused, Err(StoreError::Conflict { found: 0 })));
    assert_eq!(shown(&rig.staged(feed).await.unwrap()), [(0, true)]);
    assert_eq!(
        rig.feed(feed).await.unwrap().completeness.history,
        History::Unknown
    );
}

async fn pages_of_an_unknown_feed_are_refused(rig: Rig) {
    rig.blog().await;
    let unknown = |error| matches!(error, StoreError::UnknownFeed(FeedNo(7)));
    assert!(unknown(
        rig.stage(FeedNo(7), walk(), None).await.unwrap_err()
    ));
    assert!(unknown(rig.staged(FeedNo(7)).await.unwrap_err()));
}

/// The bytes of a document as they are staged.
fn deflated(text: &str) -> StagedBody {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    StagedBody::Waiting(encoder.finish().unwrap())
}

fn inflated(page: &StagedPage) -> Option<String> {
    let StagedBody::Waiting(deflated) = &page.content else {
        return None;
    };
    let mut text = String::new();
    let mut decoder = DeflateDecoder::new(deflated.as_slice());
    decoder.read_to_string(&mut text).unwrap();
    Some(text)
}

async fn staged_pages_show_nothing_of_what_was_forgotten(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), add(2)]).await.unwrap();
    let item = |n: u32| {
        let guid = guid(n);
        format!("<item><guid>{guid}</guid><title>text {n}</title></item>")
    };
    let rss = |inside: &str| {
        format!("<rss version='2.0'><channel><title>t</title>{inside}</channel></rss>")
    };
    let staged = |no: u32, keys: &[u32], text: &str| StagedPage {
        keys: keys.iter().map(|n| key(*n)).collect(),
        content: deflated(text),
        ..page(no)
    };
    let both = rss(&(item(1) + &item(2)));
    let aside = rss(&format!("<!-- {} -->{}", item(1), item(2)));
    let whole = rss(&format!("<!-- kept -->{}", item(2)));
    let broken = staged(4, &[1], "<html>text 1");
    let pages = [
        staged(1, &[1, 2], &both),
        staged(2, &[2], &aside),
        staged(3, &[2], &whole),
        broken,
    ];
    for page in pages.clone() {
        rig.stage(feed, walk(), Some(page)).await.unwrap();
    }
    let Change::Delete(gone) = delete(1) else {
        unreachable!("a deletion")
    };
    let forget = Change::Delete(Delete {
        reason: Reason::Forgotten,
        ..gone
    });
    rig.change(feed, vec![forget]).await.unwrap();
    // What comes later is cut, too.
    let later = staged(5, &[1, 2], &both);
    rig.stage(feed, walk(), Some(later)).await.unwrap();
    let kept = rig.staged(feed).await.unwrap().pages;
    let texts: Vec<_> = kept.iter().map(inflated).collect();
    let without = Some(rss(&item(2)));
    assert_eq!(
        texts,
        [without.clone(), without.clone(), Some(whole), None, without],
        "the traces of one that cannot be cut stay"
    );
    assert_eq!(kept[2], pages[2], "byte for byte");
    let keys: Vec<_> = kept.iter().map(|page| page.keys.len()).collect();
    assert_eq!(keys, [2, 1, 1, 1, 2]);
}
