//! The explanation of archives, from what a store remembers of them.

use crate::app::explain::*;
use crate::{
    clock::Manual,
    feed::{
        archive::{ArchiveSuspect as ByWalks, History, LastWalk, PartialReason},
        item::{ItemDigests as Digests, Reason},
        reconcile::{Change, Put, PutKind, ended_in_archives},
    },
    store::{Archives, Commit, memory::Memory, traits::*},
};
use everfeed_adapters::{Entry, Text};

const START: Stamp = Stamp::from_secs(1_780_272_000);

fn add(key: KeyHash) -> Change {
    let entry = Entry {
        title: Some(Text::plain("a post")),
        ..Entry::default()
    };
    let (id, iri) = (key.item_id(), "tag:x,2005:1".to_owned());
    let (kind, seen) = (PutKind::Added, Digests::default());
    Change::Put(Put {
        kind,
        id,
        iri,
        keys: vec![key],
        entry: Arc::new(entry),
        published_us: None,
        digests: seen,
        witnesses: Vec::new(),
    })
}

fn commit(
    record: &FeedRecord,
    changes: Vec<Change>,
    missed: Vec<ByWalks>,
    walked: LastWalk,
) -> Commit {
    Commit {
        changes,
        last: Some(WindowState {
            archive_suspects: missed,
            ..WindowState::default()
        }),
        ready: true,
        archives: Some(Archives {
            history: History::Complete,
            unstage: None,
            walked: Some(walked),
        }),
        ..Commit::nothing(record)
    }
}

#[tokio::test]
async fn an_item_that_walks_miss_is_told_with_what_is_still_needed_and_then_with_the_proof() {
    let store = Arc::new(Memory::new(Arc::new(Manual::at(START.micros()))));
    let text = "[server]\npublic_url = \"http://feeds.example\"\n[[feed]]\nname = \"blog\"\nurl = \"http://blog.example/\"\n";
    let feeds = Config::parse("test", text).unwrap().feed;
    let record = store.register("blog", "blog").await.unwrap();
    let catalog = Catalog::new(crate::catalog::observe(&*store, feeds).await.unwrap());
    let explainer = Explainer {
        store: store.clone(),
        catalog,
        platforms: Arc::new(Platforms::embedded().clone()),
    };
    let key = KeyHash::of("blog", "x");
    let seen = ByWalks {
        id: key.item_id(),
        since: START,
        last_seen: Stamp::from_secs(START.secs() - 9),
        walks: 1,
    };
    let walked = LastWalk {
        missed: 1,
        pages: 7,
        remark: Some("odd".into()),
        ..LastWalk::at_once(History::Partial(PartialReason::Circle), START)
    };
    let record = store
        .commit(commit(&record, vec![add(key)], vec![seen], walked))
        .await
        .unwrap()
        .feed;
    let id = key.item_id().to_string();
    let told = explainer
        .explain("blog", Some(&id), |_| None)
        .await
        .unwrap()
        .unwrap();
    let (day, next) = (START.rfc3339(), START.plus_secs(86_400).rfc3339());
    assert_eq!(told.history, "complete");
    // The distance to the test's own clock stands behind each time.
    let without_distance = |line: &String| {
        let (before, rest) = line.split_once(" (").unwrap_or((line, ""));
        format!(
            "{before}{}",
            rest.split_once(')').map_or("", |(_, rest)| rest)
        )
    };
    assert_eq!(
        told.archives
            .iter()
            .map(without_distance)
            .collect::<Vec<_>>(),
        [
            format!("last read until {day}; pages: 7; partial (its archives lead in a circle)"),
            "odd".into(),
            format!("read again from {next} on")
        ]
    );
    let item = told.item.unwrap();
    assert_eq!(item.state, ItemState::Missed);
    let missed = item.missed.unwrap();
    assert_eq!(
        (missed.since, missed.walks, missed.not_before),
        (day.clone(), (1, 2), Some(next))
    );

    let gone = Change::Delete(ended_in_archives(ByWalks { walks: 2, ..seen }, START));
    let walked = LastWalk::at_once(History::Complete, START);
    store
        .commit(commit(&record, vec![gone], Vec::new(), walked))
        .await
        .unwrap();
    let told = explainer
        .explain("blog", Some(&id), |_| None)
        .await
        .unwrap()
        .unwrap();
    let item = told.item.unwrap();
    assert_eq!((item.state, item.missed), (ItemState::Deleted, None));
    let proof = &item.evidence[0];
    assert_eq!(proof.reason, Reason::AbsentArchive.code());
    let missed = proof.missed.clone().unwrap();
    assert_eq!(
        (missed.since, missed.walks, missed.not_before),
        (day, (2, 2), None)
    );
}

#[test]
fn a_walk_is_told_with_what_it_waits_for_until_when_and_how_its_end_was_proven() {
    use crate::feed::archive::{
        ArchiveWalk, EndProof, OwnOrigins, WalkReply, WalkRules, WalkedDocument,
    };
    let feed = url::Url::parse("http://blog.example/rss").unwrap();
    let rules = WalkRules {
        reach: OwnOrigins::new(feed.clone(), vec![]),
        pages_max: 9,
        bytes_max: 1 << 20,
        page_gap_secs: 2,
    };
    let page = |href: Option<&str>| {
        let link = |href: &str| everfeed_adapters::Link {
            href: href.to_owned(),
            rel: "prev-archive".to_owned(),
            ..everfeed_adapters::Link::default()
        };
        everfeed_adapters::Metadata {
            links: href.map(link).into_iter().collect(),
            ..everfeed_adapters::Metadata::default()
        }
    };
    let seen = |landed, metadata, keys, body: &[u8]| WalkedDocument {
        asked: landed,
        landed,
        body: everfeed_adapters::Digest::of(body),
        bytes: 1,
        keys,
        metadata,
        is_built: false,
        damaged: false,
        mixed: false,
    };
    let (live, keys) = (
        page(Some("http://blog.example/a")),
        [KeyHash::of("blog", "1")],
    );
    let mut walk = ArchiveWalk::begin(
        &feed,
        &seen(feed.as_str(), &live, &keys, b"live"),
        None,
        &rules,
        START,
    )
    .unwrap();
    let import = crate::catalog::settings::ImportSettings::default();
    let mut record = FeedRecord::new(crate::feed::record::FeedNo(1), "blog", "blog");
    let told = |walk: &ArchiveWalk, record: &FeedRecord| {
        archives::archives(record, Some(walk), &import, START.plus_secs(10))
            .pop()
            .unwrap()
    };
    let at = |secs: u64| START.plus_secs(secs).rfc3339();
    assert_eq!(
        told(&walk, &record),
        format!("the next page at {} (8 seconds ago)", at(2))
    );
    walk.answer(
        WalkReply::Missing { status: 404 },
        &rules,
        START.plus_secs(10),
    );
    assert_eq!(
        told(&walk, &record),
        format!(
            "a page of the archives is missing (404); it is asked for again at {} (in 60 seconds)",
            at(70)
        )
    );
    let (last, keys) = (page(None), [KeyHash::of("blog", "2")]);
    let last = seen("http://blog.example/a", &last, &keys, b"last");
    walk.answer(WalkReply::Page(last), &rules, START.plus_secs(70));
    assert!(
        told(&walk, &record).contains("whether it is the last is asked again at"),
        "{}",
        told(&walk, &record)
    );
    assert_eq!(
        under_way(&record, &walk, START),
        Some(
            archives::archives(&record, Some(&walk), &import, START)
                .pop()
                .unwrap()
        )
    );
    walk.answer(WalkReply::Page(last), &rules, START.plus_secs(140));
    assert_eq!(
        (walk.history(), walk.proof()),
        (History::Complete, Some(&EndProof::LastArchive))
    );
    record.completeness.last_walk = Some(LastWalk::of(&walk, START.plus_secs(140)));
    let lines = archives::archives(&record, Some(&walk), &import, START.plus_secs(7400));
    assert_eq!(
        lines[0],
        format!(
            "last read until {} (2 hours ago) by archives that name one another; pages: 1; complete: the last archive names \
             none before it, asked twice",
            at(140)
        )
    );
    assert_eq!(under_way(&record, &walk, START), None);
}
