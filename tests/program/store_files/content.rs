//! Something to put into a store, with every field in use, and all that a store answers as text; no
//! tests.

use everfeed::{
    auth::{NewAccessToken, NewUser, PrincipalId, TokenNo, TokenUse, UserNo, password::LoginHash},
    clock::Manual,
    feed::{
        absence::{AbsenceState, CheckResult, Coverage, WindowEvent},
        archive::{
            ArchiveSuspect, ArchiveWalk, History as Reach, LastWalk, OwnOrigins as Origins,
            PageAddress, PartialReason, StagedBody, StagedPage, StagingChange, WalkRules,
            WalkedDocument as Shown,
        },
        item::{Item, ItemDigests, ItemId, KeyHash, PublisherId, Reason},
        observation_record::{ObservationCounts, ObservationRecord},
        order::Order,
        page::PageQuery,
        reconcile::{
            Change, DeferredEdit, Delete, Evidence, Put, PutKind, WindowEntry, WindowState,
        },
        record::{FeedNo, FeedRecord, IdRule},
        schedule::{
            DocumentFacts, FaultKind, FaultNote, Health, Pause, PermanentMove, PollState, Repeat,
            Timetable, ValidatorPair,
        },
        stamp::Stamp,
        view::View,
    },
    secret::Secret,
    store::{
        Archives, Commit, Store, Subscription,
        subscriptions::{
            Algo, Attempts, CallbackTarget, Dialect, Intent, Lease, LeaseTerms, NewSubscription,
            Pending, Progress, PushWishes, Start, Target,
        },
    },
};
use everfeed_adapters::{
    Attribute, Body, Category, Cloud, Date, Digest, Element, Enclosure, Entry, Generator, History,
    Image, Key, Link, Metadata, Node, Paging, Person, Rhythm, Source, Text, TextKind,
    platforms::{Detected, Weight},
};
use std::{fmt::Write as _, sync::Arc};
use url::Url;

/// 2026-06-01T00:00:00Z.
pub(crate) const START: Stamp = Stamp::from_secs(1_780_272_000);

const NAMESPACE: &str = "example.org/feed";

pub(crate) fn clock() -> Arc<Manual> {
    Arc::new(Manual::at(START.micros()))
}

pub(crate) fn key(n: u32) -> KeyHash {
    KeyHash::of(NAMESPACE, &Key::Id(guid(n)).stripped())
}

pub(crate) fn id(n: u32) -> ItemId {
    key(n).item_id()
}

fn guid(n: u32) -> String {
    format!("http://example.org/?p={n}")
}

pub(crate) fn commit(record: &FeedRecord, changes: Vec<Change>) -> Commit {
    Commit {
        changes,
        ready: true,
        ..Commit::nothing(record)
    }
}

pub(crate) async fn register(store: &dyn Store) -> FeedRecord {
    store.register("blog", NAMESPACE).await.unwrap()
}

pub(crate) fn put(kind: PutKind, n: u32) -> Change {
    let digest = Digest::of(&n.to_be_bytes());
    Change::Put(Put {
        kind,
        id: id(n),
        iri: guid(n),
        keys: vec![key(n)],
        entry: Arc::new(entry(n)),
        published_us: Some(1_000_000_000_000_000 + i64::from(n)),
        digests: ItemDigests {
            raw: digest,
            content: digest,
            version: 1,
        },
        witnesses: Vec::new(),
    })
}

fn date(raw: &str, at_us: i64) -> Option<Date> {
    Some(Date {
        raw: raw.into(),
        at_us: Some(at_us),
    })
}

fn link(rel: &str) -> Link {
    Link {
        href: format!("http://example.org/{rel}"),
        rel: rel.into(),
        media_type: Some("text/html".into()),
        title: Some("a link".into()),
        hreflang: Some("en".into()),
        length: Some("12".into()),
    }
}

fn person() -> Person {
    Person {
        name: Some("Ann".into()),
        email: Some("ann@example.org".into()),
        uri: None,
        byline: Some("ann@example.org (Ann)".into()),
    }
}

fn category() -> Category {
    Category {
        term: "news".into(),
        scheme: Some("http://example.org/tags".into()),
        label: Some("News".into()),
    }
}

fn foreign() -> Element {
    let attribute = Attribute {
        ns: String::new(),
        prefix: String::new(),
        name: "lat".into(),
        value: "45.256".into(),
    };
    let inner = Element {
        name: "inner".into(),
        ..Element::default()
    };
    Element {
        ns: "http://www.georss.org/georss".into(),
        prefix: "georss".into(),
        name: "point".into(),
        attributes: vec![attribute],
        children: vec![Node::Text("45.256 -71.92".into()), Node::Element(inner)],
    }
}

fn entry(n: u32) -> Entry {
    Entry {
        id: Some(guid(n)),
        is_permalink: None,
        title: Some(Text::plain(format!("Entry {n}"))),
        summary: Some(Text::html("<p>short</p>")),
        content: Some(Body {
            text: Text {
                kind: TextKind::Xhtml,
                value: "<p>long</p>".into(),
                language: Some("en".into()),
                base: Some("http://example.org/".into()),
            },
            media_type: Some("image/svg+xml".into()),
            src: Some("http://example.org/src".into()),
        }),
        links: vec![link("alternate")],
        authors: vec![person()],
        contributors: vec![person()],
        categories: vec![category()],
        enclosures: vec![Enclosure {
            url: "http://example.org/a.mp3".into(),
            media_type: Some("audio/mpeg".into()),
            length: Some("1000".into()),
            title: None,
            is_illustration: false,
        }],
        published: date("Mon, 01 Jun 2026 00:00:00 GMT", 1_780_272_000_000_000),
        updated: date("never", -1),
        rights: Some(Text::plain("CC0")),
        comments: Some("http://example.org/comments".into()),
        language: Some("en".into()),
        source: (n != 2).then(|| {
            // What is deleted names its source today, and did not when the golden file was made.
            Box::new(Source {
                id: Some("tag:elsewhere".into()),
                title: Some(Text::plain("Elsewhere")),
                subtitle: Some(Text::html("<i>far</i>")),
                links: vec![link("self")],
                authors: vec![person()],
                contributors: vec![person()],
                categories: vec![category()],
                generator: Some(Generator {
                    name: Some("Planet".into()),
                    version: Some("2.0".into()),
                    uri: Some("http://planet.example/".into()),
                }),
                icon: Some("http://elsewhere.example/icon.png".into()),
                logo: Some("http://elsewhere.example/logo.png".into()),
                rights: Some(Text::plain("CC0")),
                updated: date("then", 0),
                foreign: vec![foreign()],
            })
        }),
        foreign: vec![foreign()],
    }
}

fn head() -> Metadata {
    Metadata {
        id: Some("tag:example.org,2005:blog".into()),
        title: Some(Text::plain("A blog")),
        description: Some(Text::html("of <b>ours</b>")),
        links: vec![link("alternate"), link("self")],
        authors: vec![person()],
        contributors: vec![person()],
        categories: vec![category()],
        language: Some("en".into()),
        rights: Some(Text::plain("CC0")),
        generator: Some(Generator {
            name: Some("Movable Type".into()),
            version: Some("3.2".into()),
            uri: Some("http://www.sixapart.com/movabletype/".into()),
        }),
        image: Some(Image {
            url: "http://example.org/logo.png".into(),
            title: Some("A blog".into()),
            link: Some("http://example.org/".into()),
            width: Some("88".into()),
            height: Some("31".into()),
            description: Some("the logo".into()),
        }),
        icon: Some("http://example.org/icon.png".into()),
        updated: date("now", 1),
        published: date("then", 0),
        rhythm: Rhythm {
            ttl_mins: Some(60),
            skip_hours: vec![3],
            skip_days: vec![6],
            update_secs: Some(3600),
        },
        history: History {
            stateful: Some(true),
            prev: Some("http://x/".into()),
            complete: true,
            archive: true,
        },
        paging: Paging {
            total_items: Some(100),
            first_index: Some(1),
            page_items: Some(25),
        },
        cloud: Some(Cloud {
            domain: "rpc.example.org".into(),
            port: Some(80),
            path: Some("/RPC2".into()),
            register_procedure: Some("notify".into()),
            protocol: Some("xml-rpc".into()),
        }),
        foreign: vec![foreign()],
    }
}

fn poll() -> PollState {
    let kind = FaultKind::Refused {
        status: 503,
        has_credentials: true,
    };
    PollState {
        url: "https://example.org/feed".into(),
        validators: Some(ValidatorPair {
            etag: Some("W/\"x\"".into()),
            last_modified: Some("Mon, 01 Jun 2026 00:00:00 GMT".into()),
            url: "https://example.org/feed".into(),
        }),
        timetable: Timetable {
            next_at: START.plus_secs(3600),
            polled_at: Some(START),
            unconditional_at: Some(START),
            wants_audit: true,
            arrivals: vec![START],
            hinted_secs: Some(3600),
            skip_hours: vec![3],
            skip_days: vec![6],
            agrees_at: None,
        },
        health: Health {
            good_at: Some(START),
            failures: 2,
            fault: Some(FaultNote { kind, since: START }),
            gone_at: Some(START),
            moved: Some(PermanentMove {
                url: "https://example.org/feed".into(),
                since: START,
            }),
            announced: None,
        },
        document: DocumentFacts {
            body: Some(Digest([9; 16])),
            repeat: Repeat::Unchanged,
            deferred_until: Some(START),
            remark: Some("odd".into()),
            broken_since: None,
            changed_running: 0,
            has_suspects: false,
            platform: Some(Detected {
                platform: "wordpress".into(),
                why: "the generator is WordPress".into(),
                weight: Some(Weight::Strong),
            }),
        },
        url_change: None,
        named: None,
    }
}

fn observed() -> ObservationRecord {
    ObservationRecord {
        at: START,
        coverage: Coverage::Conditional,
        partial: Some("cut".into()),
        again: true,
        counts: ObservationCounts {
            entries: 15,
            new: 1,
            edited: 2,
            revived: 3,
            missing: 4,
            suspects: 5,
            rolled_off: 6,
            gone: 7,
        },
        events: vec![
            WindowEvent::Quarantined,
            WindowEvent::Gap,
            WindowEvent::Reformatted,
        ],
        remark: Some("odd".into()),
        page: Some((id(1), CheckResult::NotFound)),
    }
}

fn target(dialect: Dialect, secret: Option<&str>, verify_token: Option<&str>) -> Target {
    Target::Callback(CallbackTarget {
        url: "https://reader.example/callback".into(),
        topic_as_sent: "https://feeds.example/feeds/blog.atom".into(),
        dialect,
        secret: secret.map(Secret::new),
        algo: Algo::usual(dialect),
        verify_token: verify_token.map(str::to_owned),
        wishes: PushWishes::default(),
    })
}

fn subscription(feed: FeedNo) -> NewSubscription {
    let leaving = target(Dialect::WebSub, None, None);
    NewSubscription {
        view: View::all(feed, Order::MODIFIED),
        representation: "atom".into(),
        topic: "https://feeds.example/feeds/blog.atom".into(),
        target: leaving.clone(),
        pending: Pending {
            intent: Intent::Unsubscribe { target: leaving },
            attempts: 1,
            next_try: START,
            give_up_at: Stamp::MAX,
            start: Start::Given("1_0_1".into()),
            principal: Some(PrincipalId {
                user: UserNo(1),
                token: Some(TokenNo(1)),
            }),
            scanned: None,
        },
    }
}

fn walk() -> ArchiveWalk {
    let rules = WalkRules {
        reach: Origins::new(Url::parse("http://example.org/feed").unwrap(), vec![]),
        pages_max: 1000,
        bytes_max: 1 << 20,
        page_gap_secs: 1,
    };
    let links = vec![link("prev-archive")];
    let live = Metadata {
        links,
        ..Metadata::default()
    };
    let seen = Shown {
        asked: "http://example.org/feed",
        landed: "http://example.org/feed",
        body: Digest([3; 16]),
        bytes: 100,
        keys: &[key(1)],
        metadata: &live,
        is_built: false,
        damaged: false,
        mixed: true,
    };
    ArchiveWalk::begin(
        &Url::parse("http://example.org/feed").unwrap(),
        &seen,
        None,
        &rules,
        START,
    )
    .unwrap()
}

fn staged(no: u32) -> StagedPage {
    StagedPage {
        no,
        address: PageAddress {
            url: "http://example.org/a".into(),
            landed: "http://example.org/b".into(),
            base_url: "https://example.org/b".into(),
        },
        content_type: Some("text/xml".into()),
        content_language: Some("en".into()),
        read_at: START,
        body: Digest([4; 16]),
        keys: vec![key(1)],
        strong: 1,
        content: StagedBody::Waiting(vec![1, 2, 3]),
    }
}

fn held() -> DeferredEdit {
    let Change::Put(Put {
        id,
        entry,
        published_us,
        digests: seen,
        ..
    }) = put(PutKind::Edited, 1)
    else {
        unreachable!()
    };
    DeferredEdit {
        id,
        key: key(1),
        until: START,
        entry,
        published_us,
        digests: seen,
        stretches: Vec::new(),
        shown_since: None,
        shown_polls: 0,
    }
}

fn missed() -> ArchiveSuspect {
    ArchiveSuspect {
        id: id(1),
        since: START,
        last_seen: START,
        walks: 1,
    }
}

/// Puts something into every table.
pub(crate) async fn fill(store: &dyn Store) {
    let feed = register(store).await;
    let added = (1..=3).map(|n| put(PutKind::Added, n)).collect();
    let row = WindowEntry {
        key: key(1),
        id: id(1),
        raw: Digest([1; 16]),
        dated: Some(5),
        tombstone_count: 1,
        is_weak: false,
        changed_polls: 25,
        changing_since: None,
    };
    let first = Commit {
        last: Some(WindowState {
            entries: vec![row],
            absence: AbsenceState::default(),
            deferred: vec![held()],
            reformatted_at: Some(START),
            archive_suspects: vec![missed()],
            tombstones: Vec::new(),
            corrections: Vec::new(),
            restless: Vec::new(),
            moving: Vec::new(),
        }),
        metadata: Some(Arc::new(head())),
        id_rule: IdRule::IdAndLink,
        poll: Some(poll()),
        observed: Some(observed()),
        ..commit(&feed, added)
    };
    let feed = store.commit(first).await.unwrap().feed;
    let reason = Reason::Explicit;
    let evidence = Evidence {
        reason,
        observed_at: START,
        when: Some("2026-06-01T00:00:00Z".into()),
        comment: Some("spam".into()),
        suspect: None,
        archive_suspect: Some(missed()),
    };
    let delete = |n| {
        let (first_missing, last_seen, evidence) = (Some(START), Some(START), evidence.clone());
        Change::Delete(Delete {
            id: id(n),
            reason,
            first_missing,
            last_seen,
            evidence,
        })
    };
    let changes = vec![
        put(PutKind::Edited, 1),
        delete(2),
        delete(3),
        put(PutKind::Revived, 3),
    ];
    let feed = store.commit(commit(&feed, changes)).await.unwrap().feed;
    for no in 0..=1 {
        store
            .stage(feed.no, walk(), Some(staged(no)))
            .await
            .unwrap();
    }
    let history = Reach::Partial(PartialReason::MissingPage { status: 404 });
    let walked = LastWalk {
        began_at: START,
        ended_at: START.plus_secs(60),
        pages: 1,
        found: history.clone(),
        missed: 1,
        remark: Some("odd".into()),
        proof: None,
    };
    let archives = Archives {
        history,
        unstage: Some(StagingChange::Below(1)),
        walked: Some(walked),
    };
    let feed = store
        .commit(Commit {
            archives: Some(archives),
            ..commit(&feed, vec![])
        })
        .await
        .unwrap()
        .feed;
    store
        .save_polls(
            vec![],
            vec![(
                "example.org".into(),
                Pause {
                    until: START.plus_secs(60),
                    since: START,
                },
            )],
        )
        .await
        .unwrap();
    let made = store.subscribe(subscription(feed.no)).await.unwrap();
    let lease = LeaseTerms {
        secs: 864_000,
        auto_refresh: true,
    };
    let lease = Some(Lease {
        until: START.plus_secs(864_000),
        terms: lease,
    });
    let target = target(Dialect::Legacy, Some("hush"), Some("token"));
    let active = Subscription {
        target,
        lease,
        ..made
    };
    let failure = Some("connection refused".into());
    let attempts = Attempts {
        failed: 3,
        next_try: START,
        failure,
        since: Some(START),
    };
    let progress = Progress {
        acked: Some("1_0_1".into()),
        attempts,
        on_behalf_of: None,
        scanned: None,
        channel_t: None,
    };
    store
        .change_subscription(active, Some(progress))
        .await
        .unwrap();
    let user = store.add_user(new_user()).await.unwrap().unwrap().no;
    let token = NewAccessToken {
        user,
        usage: TokenUse::Url,
        hash: [7; 32],
        created_us: START.micros(),
    };
    store.add_token(token).await.unwrap().unwrap();
}

fn new_user() -> NewUser {
    NewUser {
        name: "alice".into(),
        login: LoginHash::stored("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA".into()),
        feed_password: Secret::new("hush"),
        hex_digest: true,
        created_us: START.micros(),
        jid: None,
    }
}

/// Leaves the digests and the permalink of a tombstone out, which an older everfeed did not keep.
fn leave_digests(item: &mut Arc<Item>) {
    if item.is_gone() && !item.content.is_forgotten() {
        let item = Arc::make_mut(item);
        let kept = item.publisher_id.take().map(|kept| PublisherId {
            witnesses: None,
            link: None,
            ..kept
        });
        item.publisher_id = kept.filter(|kept| *kept != PublisherId::default());
    }
}

/// Everything that a store answers, but the digests of tombstones and the bytes of items, which depend
/// on them. Secrets are compared, too, though `Debug` hides them.
pub(crate) async fn dump(store: &dyn Store) -> String {
    let mut text = String::new();
    let mut feeds = store.feeds(None, 9).await.unwrap();
    for feed in &mut feeds {
        feed.items.bytes = None;
    }
    for feed in &feeds {
        for order in Order::ALL {
            let mut page = store.page(whole(feed.no, order)).await.unwrap();
            page.items.iter_mut().for_each(leave_digests);
            Arc::make_mut(&mut page.record).items.bytes = None;
            writeln!(text, "{page:?}").unwrap();
        }
        for n in 1..=3 {
            let mut known = store.known(feed.no, vec![key(n)]).await.unwrap();
            known.items.values_mut().for_each(leave_digests);
            writeln!(
                text,
                "{known:?} {:?}",
                store.evidence(feed.no, id(n)).await.unwrap()
            )
            .unwrap();
        }
    }
    for feed in &feeds {
        writeln!(text, "{:?}", store.staged(feed.no).await.unwrap()).unwrap();
        writeln!(text, "{:?}", store.observations(feed.no).await.unwrap()).unwrap();
    }
    writeln!(text, "{:?}", store.walks(None, 9).await.unwrap()).unwrap();
    writeln!(
        text,
        "{feeds:?} {:?} {:?}",
        store.polls(None, 9).await.unwrap(),
        store.host_pauses(None, 9).await.unwrap()
    )
    .unwrap();
    for (sub, progress) in store.subscriptions(None, None, 9).await.unwrap() {
        let Target::Callback(callback) = &sub.target else {
            panic!("a callback, not {:?}", sub.target)
        };
        let secret = callback.secret.as_ref().map(Secret::reveal);
        writeln!(text, "{sub:?} {progress:?} {secret:?}").unwrap();
        let found = store
            .find_subscription(&sub.topic, sub.target.address())
            .await
            .unwrap();
        assert_eq!(found, Some((sub, progress)));
    }
    for user in store.users(None, 9).await.unwrap() {
        writeln!(
            text,
            "{user:?} {} {}",
            user.kept.login.reveal(),
            user.kept.feed_password.reveal()
        )
        .unwrap();
    }
    writeln!(text, "{:?}", store.tokens(None, 9).await.unwrap()).unwrap();
    text
}

pub(crate) fn whole(feed: FeedNo, order: Order) -> PageQuery {
    PageQuery::all(feed, order)
}
