//! Golden files: values of every kind as today's version of it was ever written. They are read as
//! long as that version is, and never written over.
//!
//! A file is named `KIND-vVERSION-CASE.cbor`, and its value is the sample of that kind and case. A
//! field that is added to a kind is put into a new case; in the older ones it has its default.

use super::{
    item::{decode_item, encode_item},
    *,
};
use crate::{
    auth::{
        AccessToken, NewAccessToken, NewUser, PrincipalId, TokenNo, TokenUse, User, UserNo,
        password::LoginHash,
    },
    events::{AffectedFeeds, Cause, Event, EventKind, EventTopic, FaultOwner, Severity},
    feed::{
        absence::{
            AbsenceState, CheckResult, ConditionalTrust, ControlFinding, Coverage, DoubtReason,
            NextCheck, PageControl, PageFinding, PermalinkCheck, Recurrence, Suspect, SuspectBasis,
            WindowEvent, WindowItem,
            departures::{Departure, Departures},
            recent_tombstone::RecentTombstone,
            revival::{DocumentDates, Revivals},
        },
        archive::{
            ArchiveSuspect, ArchiveWalk, CountedPages, CounterPart, EndClaim, EndSign, EndStep,
            PageAddress, PageRetry, PreviousWalk, StagedBody, StagedPage, Strategy, WalkCounts,
            WalkFindings, WalkPhase, WalkTrail,
        },
        filter::Filter,
        group::{GroupMember, GroupPost, GroupRecord, Holder, MemberStage},
        history::{EndProof, History, PartialReason},
        item::{Content, Item, ItemDigests, ItemId, KeyHash, PublisherId, Reason, Witnesses},
        last_walk::LastWalk,
        legacy_document::{LegacyDocument, LegacySyntax},
        observation_record::{ObservationCounts, ObservationRecord},
        order::Order,
        part::PartRecord,
        reconcile::{
            Agreement, Correction, DeferredEdit, EntryPart, Evidence, MovedStretch, MovingEntry,
            PartMoves, RestlessPart, WindowEntry, WindowState,
        },
        record::{
            Completeness, FeedNo, FeedRecord, Gap, IdRule, IdScheme, ItemCounts, WindowFigures,
        },
        schedule::{
            DocumentFacts, FaultKind, FaultNote, Health, PermanentMove, PollState, Timetable,
            ValidatorPair,
        },
        view::{Deletions, View},
    },
    secret::Secret,
    store::{
        FoundFeeds, Subscription, SubscriptionNo,
        clock_guard::ClockGuard,
        conformance::{index_now::index_now, opml_lists::opml_list, pushed_feeds::pushed_feed},
        content_mark::ContentMark,
        subscriptions::{
            Algo, Attempts, CallbackTarget, CloudTarget, Dialect, Directive, Intent, Lease,
            LeaseTerms, Pending, Progress, PushWishes, Start, Target, WebhookTarget, XmppTarget,
        },
    },
};
use everfeed_adapters::{
    Attribute, Body, Category, Cloud, Date, Digest, Element, Enclosure, Entry, Generator,
    History as DocumentHistory, Image, IsPermaLink, Link, Metadata, Node, Paging, Person, Rhythm,
    Source, Text, TextKind,
    platforms::{Detected, Weight},
};
use std::{collections::BTreeSet, fmt::Debug, fs, path::PathBuf};

fn counted() -> CountedPages {
    let place = CounterPart::Query("start".into());
    CountedPages {
        place,
        at: 18,
        entries: true,
        start: 1,
        with: vec![("n".into(), "9".into())],
        step: 9,
    }
}

/// A sample, as it is written, and as a file of it reads.
struct Sample {
    kind: &'static str,
    version: u8,
    case: &'static str,
    bytes: Vec<u8>,
    shown: String,
    read: fn(&[u8]) -> Result<String, StoreError>,
}

fn sample<T: StoredKind + Debug>(case: &'static str, value: T) -> Sample {
    Sample {
        kind: T::NAME,
        version: T::VERSION,
        case,
        bytes: encode(&value).unwrap(),
        shown: format!("{value:?}"),
        read: |bytes| Ok(format!("{:?}", decode::<T>(T::NAME, bytes)?)),
    }
}

fn item_sample(case: &'static str, value: Item) -> Sample {
    Sample {
        kind: Item::NAME,
        version: encode_item(&value).unwrap()[0],
        case,
        bytes: encode_item(&value).unwrap(),
        shown: format!("{value:?}"),
        read: |bytes| Ok(format!("{:?}", decode_item(AT, bytes)?)),
    }
}

const AT: Stamp = Stamp::from_secs(1_780_272_000);
const ID: ItemId = ItemId([7; 10]);
const KEY: KeyHash = KeyHash([8; 16]);
const DIGEST: Digest = Digest([9; 16]);

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn text(kind: TextKind) -> Text {
    Text {
        kind,
        value: "<b>ü</b>".into(),
        language: some("de"),
        base: some("http://example.org/"),
    }
}

fn person() -> Person {
    Person {
        name: some("Jo"),
        email: some("jo@example.org"),
        uri: some("http://jo.example/"),
        byline: some("by"),
    }
}

fn link() -> Link {
    Link {
        href: "http://example.org/1".into(),
        rel: "alternate".into(),
        media_type: some("text/html"),
        title: some("one"),
        hreflang: some("en"),
        length: some("12"),
    }
}

fn date() -> Date {
    Date {
        raw: "1 Jan 1970".into(),
        at_us: Some(-5),
    }
}

fn category() -> Category {
    Category {
        term: "tag".into(),
        scheme: some("http://tags.example/"),
        label: some("Tag"),
    }
}

fn generator() -> Generator {
    Generator {
        name: some("blog"),
        version: some("1.0"),
        uri: some("http://blog.example/"),
    }
}

fn element() -> Element {
    let attribute = Attribute {
        ns: "http://n/".into(),
        prefix: "n".into(),
        name: "a".into(),
        value: "v".into(),
    };
    let inner = Element {
        name: "inner".into(),
        ..Element::default()
    };
    Element {
        ns: "http://n/".into(),
        prefix: "n".into(),
        name: "outer".into(),
        attributes: vec![attribute],
        children: vec![Node::Text("t".into()), Node::Element(inner)],
    }
}

fn entry() -> Entry {
    let source = Source {
        id: some("urn:source"),
        title: Some(text(TextKind::Plain)),
        subtitle: Some(text(TextKind::Html)),
        links: vec![link()],
        authors: vec![person()],
        contributors: vec![person()],
        categories: vec![category()],
        generator: Some(generator()),
        icon: some("http://s/i"),
        logo: some("http://s/l"),
        rights: Some(text(TextKind::Xhtml)),
        updated: Some(date()),
        foreign: vec![element()],
    };
    Entry {
        id: some("tag:example.org,2005:1"),
        is_permalink: None,
        title: Some(text(TextKind::Plain)),
        summary: Some(text(TextKind::Html)),
        content: Some(Body {
            text: text(TextKind::Base64),
            media_type: some("image/png"),
            src: some("http://c/"),
        }),
        links: vec![link()],
        authors: vec![person()],
        contributors: vec![person()],
        categories: vec![category()],
        enclosures: vec![Enclosure {
            url: "http://e/".into(),
            media_type: some("a/b"),
            length: some("1"),
            title: some("t"),
            is_illustration: false,
        }],
        published: Some(date()),
        updated: Some(date()),
        rights: Some(text(TextKind::Xhtml)),
        comments: some("http://c/#comments"),
        language: some("en"),
        source: Some(Box::new(source)),
        foreign: vec![element()],
    }
}

fn metadata() -> Metadata {
    Metadata {
        id: some("urn:feed"),
        title: Some(text(TextKind::Plain)),
        description: Some(text(TextKind::Html)),
        links: vec![link()],
        authors: vec![person()],
        contributors: vec![person()],
        categories: vec![category()],
        language: some("en"),
        rights: Some(text(TextKind::Plain)),
        generator: Some(generator()),
        image: Some(Image {
            url: "http://i/".into(),
            title: some("t"),
            link: some("http://l/"),
            width: some("1"),
            height: some("2"),
            description: some("d"),
        }),
        icon: some("http://i/icon"),
        updated: Some(date()),
        published: Some(date()),
        rhythm: Rhythm {
            ttl_mins: Some(60),
            skip_hours: vec![1, 23],
            skip_days: vec![6],
            update_secs: Some(9),
        },
        history: DocumentHistory {
            stateful: Some(true),
            prev: some("http://p/"),
            complete: true,
            archive: true,
        },
        paging: Paging {
            total_items: Some(3),
            first_index: Some(1),
            page_items: Some(10),
        },
        cloud: Some(Cloud {
            domain: "c.example".into(),
            port: Some(80),
            path: some("/p"),
            register_procedure: some("r"),
            protocol: some("soap"),
        }),
        foreign: vec![element()],
    }
}

fn item(content: Content) -> Item {
    Item {
        id: ID,
        iri: "tag:example.org,2005:1".into(),
        modified: AT,
        created: Stamp::from_secs(5),
        revived: Some(Stamp::from_secs(6)),
        published_us: Some(-3),
        content,
        tombstone_count: 2,
        publisher_id: None,
        digests: ItemDigests {
            raw: DIGEST,
            content: DIGEST,
            version: 3,
        },
    }
}

fn item_with_guid() -> Item {
    let is_permalink = Some(IsPermaLink::Unstated);
    let entry = Entry {
        id: some("post-1"),
        is_permalink,
        ..Entry::default()
    };
    let publisher_id = Some(PublisherId {
        text: some("post-1"),
        is_permalink,
        ..PublisherId::default()
    });
    Item {
        publisher_id,
        ..item(Content::Live(Arc::new(entry)))
    }
}

fn forgotten_item() -> Item {
    let publisher_id = PublisherId::of_forgotten(Some(Witnesses::of(&entry())));
    assert!(publisher_id.is_some());
    Item {
        publisher_id,
        ..item(Content::Gone {
            reason: Reason::Forgotten,
            first_missing: None,
            last_seen: None,
        })
    }
}

fn suspect() -> Suspect {
    Suspect {
        since: AT,
        last_seen: AT,
        counted_at: AT,
        count: 2,
        audited: true,
        strong: true,
        behind: 3,
        backfilled: true,
        permalink_check: PermalinkCheck {
            next: NextCheck::At(AT),
            last: Some((AT, CheckResult::NotFound)),
            asked: 4,
            silent: 1,
            finding: PageFinding::NotFoundSince(AT),
        },
        basis: SuspectBasis::PageBeforeFew,
    }
}

fn missing_row() -> WindowItem {
    WindowItem {
        id: ID,
        dated: Some(1),
        tombstone_count: 1,
        is_weak: false,
        suspect: Some(suspect()),
    }
}

fn archive_suspect() -> ArchiveSuspect {
    ArchiveSuspect {
        id: ID,
        since: AT,
        last_seen: AT,
        walks: 2,
    }
}

/// A window in which numbers move that count what readers do.
fn counting_window() -> WindowState {
    WindowState {
        restless: vec![RestlessPart {
            part: EntryPart::Title,
            by_turns: false,
            since: AT,
            moved_at: AT,
            is_count: true,
        }],
        moving: vec![MovingEntry {
            id: ID,
            moved_at: AT,
            forms: vec![DIGEST],
            parts: vec![PartMoves {
                part: EntryPart::Title,
                count: 4,
                by_turns: false,
                is_count: true,
                has_fallen: true,
            }],
        }],
        ..WindowState::default()
    }
}

/// A window with everything that is remembered of churn, of corrected posts, of posts that left
/// without a sign and of deleted ones that were shown again.
fn busy_window() -> WindowState {
    let stretch = MovedStretch {
        part: EntryPart::Content,
        start: 3,
        end: 5,
        given: DIGEST,
        since: AT,
        sightings: 2,
        moves: 1,
        is_whole: true,
    };
    WindowState {
        deferred: vec![DeferredEdit {
            id: ID,
            key: KEY,
            until: AT,
            entry: Arc::new(entry()),
            published_us: None,
            digests: ItemDigests {
                raw: DIGEST,
                content: DIGEST,
                version: 3,
            },
            stretches: vec![stretch],
            shown_since: None,
            shown_polls: 0,
        }],
        corrections: vec![Correction {
            id: ID,
            at: AT,
            agreement: Agreement::Title,
        }],
        restless: vec![RestlessPart {
            part: EntryPart::Links,
            by_turns: true,
            since: AT,
            moved_at: AT,
            is_count: false,
        }],
        moving: vec![MovingEntry {
            id: ID,
            moved_at: AT,
            forms: vec![DIGEST],
            parts: vec![PartMoves {
                part: EntryPart::Title,
                count: 4,
                by_turns: true,
                is_count: false,
                has_fallen: false,
            }],
        }],
        absence: AbsenceState {
            departures: Departures {
                rows: vec![Departure {
                    id: ID,
                    tombstone_count: 1,
                    last_seen: AT,
                    since: AT,
                    check: suspect().permalink_check,
                    is_proven: false,
                }],
                is_unordered: true,
                day: AT,
                asked: 12,
            },
            revivals: Revivals {
                waiting: vec![(ID, AT)],
                refuted: 2,
                refuted_at: AT,
                newest: DocumentDates {
                    made_us: Some(1),
                    modified_us: Some(2),
                    updated_us: Some(3),
                },
            },
            recurrence: Recurrence {
                seen: [AT].into(),
                ended: [(ID, true)].into(),
                doubted: Some((AT, DoubtReason::Revived)),
                off: Some(AT),
            },
            ..AbsenceState::default()
        },
        ..WindowState::default()
    }
}

/// The memory of a feed that was shown deleted posts again, and that holds edits back.
fn agreeing_polls() -> PollState {
    PollState {
        url: "http://example.org/rss".into(),
        timetable: Timetable {
            next_at: AT,
            polled_at: Some(AT),
            unconditional_at: Some(AT),
            wants_audit: true,
            hinted_secs: Some(900),
            skip_days: vec![6],
            agrees_at: Some(AT),
            ..Timetable::default()
        },
        document: DocumentFacts {
            deferred_until: Some(AT),
            remark: some("odd"),
            broken_since: Some(AT),
            ..DocumentFacts::default()
        },
        ..PollState::default()
    }
}

fn samples() -> Vec<Sample> {
    let gone = Content::Gone {
        reason: Reason::Gone,
        first_missing: Some(AT),
        last_seen: Some(AT),
    };
    let record = FeedRecord {
        rev: 4,
        last_t: AT,
        items: ItemCounts {
            total: 9,
            live: 8,
            shortened: 0,
            bytes: None,
        },
        metadata: Arc::new(metadata()),
        metadata_t: Stamp::from_micros(2),
        ids: IdScheme {
            namespace: "example.org/feed".into(),
            rule: IdRule::IdAndLink,
        },
        completeness: Completeness {
            first_cursor: some("1_0_1"),
            history: History::Complete,
            last_walk: Some(LastWalk {
                began_at: AT,
                ended_at: AT,
                pages: 3,
                found: History::Running,
                missed: 1,
                remark: some("odd"),
                proof: None,
            }),
            gaps: vec![Gap {
                at: AT,
                event: WindowEvent::Gap,
                before: "1_0_1".into(),
                after: "2_0_2".into(),
            }],
            has_forgotten: false,
        },
        window: WindowFigures {
            quarantined_since: Some(AT),
            suspects: 1,
            deferred: 2,
            reformatted_at: Some(AT),
            next_check_at: Some(AT),
        },
        ..FeedRecord::new(FeedNo(3), "blog", "example.org/feed")
    };
    let shown = WindowItem {
        id: ID,
        dated: Some(5),
        tombstone_count: 1,
        is_weak: true,
        suspect: Some(suspect()),
    };
    let window = WindowState {
        entries: vec![WindowEntry {
            key: KEY,
            id: ID,
            raw: DIGEST,
            dated: Some(-5),
            tombstone_count: 1,
            is_weak: true,
            changed_polls: 25,
            changing_since: None,
        }],
        absence: AbsenceState {
            items: vec![shown],
            quarantined_since: Some(AT),
            conditional: ConditionalTrust {
                level: -2,
                lacked: None,
            },
            ..AbsenceState::default()
        },
        deferred: vec![DeferredEdit {
            id: ID,
            key: KEY,
            until: AT,
            entry: Arc::new(entry()),
            published_us: Some(1),
            digests: ItemDigests {
                raw: DIGEST,
                content: DIGEST,
                version: 3,
            },
            stretches: Vec::new(),
            shown_since: None,
            shown_polls: 0,
        }],
        reformatted_at: Some(AT),
        archive_suspects: vec![archive_suspect()],
        tombstones: Vec::new(),
        corrections: Vec::new(),
        restless: Vec::new(),
        moving: Vec::new(),
    };
    let many = WindowItem {
        suspect: Some(Suspect {
            basis: SuspectBasis::PageOfMany,
            ..suspect()
        }),
        ..missing_row()
    };
    let checked_window = WindowState {
        absence: AbsenceState {
            items: vec![many],
            quarantined_since: Some(AT),
            control: Some(PageControl {
                at: AT,
                finding: ControlFinding::NotFound,
                failing_since: Some(AT),
                failed: 2,
                alike: vec![(ID, 3)],
                landing: "http://example.org/1".into(),
            }),
            ..AbsenceState::default()
        },
        tombstones: vec![RecentTombstone {
            id: ID,
            ended_at: AT,
            next_at: AT,
            entry: Arc::new(entry()),
            published_us: Some(1),
            digests: ItemDigests {
                raw: DIGEST,
                content: DIGEST,
                version: 3,
            },
        }],
        ..WindowState::default()
    };
    let evidence = Evidence {
        reason: Reason::AbsentBracketed,
        observed_at: AT,
        when: some("yesterday"),
        comment: some("spam"),
        suspect: Some(suspect()),
        archive_suspect: Some(archive_suspect()),
    };
    let observation = ObservationRecord {
        at: AT,
        coverage: Coverage::Conditional,
        partial: some("cut"),
        again: true,
        counts: ObservationCounts {
            entries: 1,
            new: 2,
            edited: 3,
            revived: 4,
            missing: 5,
            suspects: 6,
            rolled_off: 7,
            gone: 8,
        },
        events: vec![WindowEvent::Reformatted, WindowEvent::Pinned],
        remark: some("odd"),
        page: Some((ID, CheckResult::Elsewhere)),
    };
    let poll = PollState {
        url: "http://example.org/rss".into(),
        validators: Some(ValidatorPair {
            etag: some("\"x\""),
            last_modified: None,
            url: "http://example.org/rss".into(),
        }),
        timetable: Timetable {
            next_at: AT,
            arrivals: vec![AT],
            skip_hours: vec![1, 2],
            ..Timetable::default()
        },
        health: Health {
            failures: 3,
            fault: Some(FaultNote {
                kind: FaultKind::Refused {
                    status: 503,
                    has_credentials: false,
                },
                since: AT,
            }),
            moved: Some(PermanentMove {
                url: "http://m/".into(),
                since: AT,
            }),
            ..Health::default()
        },
        document: DocumentFacts {
            body: Some(DIGEST),
            platform: Some(Detected {
                platform: "blogger".into(),
                why: "generator".into(),
                weight: Some(Weight::Strong),
            }),
            ..DocumentFacts::default()
        },
        url_change: None,
        named: None,
    };
    let walk = ArchiveWalk {
        started_at: AT,
        feed: "http://example.org/rss".into(),
        ways: vec![(
            Strategy::Pages { rel: "next".into() },
            "http://example.org/rss?page=2".into(),
        )],
        phase: WalkPhase::At("http://example.org/rss?page=3".into()),
        retry: Some(PageRetry {
            reason: PartialReason::Unreadable("500".into()),
            tries: 1,
            rounds: 2,
        }),
        next_at: AT,
        before: PreviousWalk::By(Strategy::Archives),
        counts: WalkCounts {
            pages: 3,
            on_way: 2,
            barren: 1,
            bytes: 1000,
            base: 4,
            kept: 2,
            way_from: 4,
            ..WalkCounts::default()
        },
        findings: WalkFindings {
            fits: true,
            doubtful: true,
            damaged: true,
            named: metadata(),
            flaw: Some(PartialReason::MissingPage { status: 404 }),
            ..WalkFindings::default()
        },
        trail: WalkTrail::default(),
    };
    let ending = ArchiveWalk {
        ways: vec![(
            Strategy::CountedPages(counted()),
            "http://example.org/rss?start=9".into(),
        )],
        phase: WalkPhase::Ending(
            EndClaim {
                url: "http://example.org/rss?start=18".into(),
                sign: EndSign::Missing { status: 404 },
            },
            EndStep::Check { no: 5, stride: 1 },
        ),
        retry: None,
        counts: WalkCounts {
            backs: 1,
            total: Some(9),
            ..walk.counts.clone()
        },
        findings: WalkFindings {
            held_whole: true,
            marked: true,
            lacks: Some(PartialReason::FewerThanSaid { total: 9, found: 8 }),
            holes: vec![
                (
                    "http://example.org/a".into(),
                    Some(PartialReason::PassedOver),
                ),
                ("http://example.org/b".into(), None),
            ],
            proof: Some(EndProof::Total { items: 9 }),
            ..walk.findings.clone()
        },
        ..walk.clone()
    };
    let guessing = ArchiveWalk {
        counts: WalkCounts {
            last: 2,
            requests: 17,
            guesses: 10,
            ..walk.counts.clone()
        },
        findings: WalkFindings {
            lacks: Some(PartialReason::UnlinkedPages),
            ..walk.findings.clone()
        },
        ..walk.clone()
    };
    let page = StagedPage {
        no: 5,
        address: PageAddress {
            url: "http://example.org/a".into(),
            landed: "http://example.org/b".into(),
            base_url: "https://example.org/b".into(),
        },
        content_type: some("text/xml"),
        content_language: some("en"),
        read_at: AT,
        body: DIGEST,
        keys: vec![KEY],
        strong: 1,
        content: StagedBody::Waiting(vec![1, 2, 3]),
    };
    let proven = FeedRecord {
        completeness: Completeness {
            last_walk: Some(LastWalk {
                proof: Some(EndProof::LastPage),
                ..LastWalk::at_once(History::Complete, AT)
            }),
            ..Completeness::default()
        },
        ..FeedRecord::new(FeedNo(3), "blog", "example.org/feed")
    };
    // Its file has an epoch, which is read over.
    let fenced = FeedRecord::new(FeedNo(3), "blog", "example.org/feed");
    let subscription = Subscription {
        no: SubscriptionNo(6),
        rev: 2,
        view: View::all(FeedNo(3), Order::CREATED_REVERSE),
        representation: "json".into(),
        topic: "https://f.example/feeds/blog.json".into(),
        target: Target::Callback(CallbackTarget {
            url: "https://r.example/cb".into(),
            topic_as_sent: "https://f.example/feeds/blog.json?".into(),
            dialect: Dialect::Legacy,
            secret: Some(Secret::new("hush")),
            algo: Algo::Sha384,
            verify_token: some("token"),
            wishes: PushWishes::default(),
        }),
        lease: Some(Lease {
            until: AT,
            terms: LeaseTerms {
                secs: 864_000,
                auto_refresh: true,
            },
        }),
        pending: Some(Pending {
            intent: Intent::Unsubscribe {
                target: Target::Callback(CallbackTarget {
                    url: "https://r.example/cb".into(),
                    topic_as_sent: "https://f.example/feeds/blog.json".into(),
                    dialect: Dialect::WebSub,
                    secret: None,
                    algo: Algo::Sha256,
                    verify_token: some("t"),
                    wishes: PushWishes::default(),
                }),
            },
            attempts: 1,
            next_try: AT,
            give_up_at: Stamp::MAX,
            start: Start::Given("1_0_1".into()),
            principal: None,
            scanned: None,
        }),
        principal: None,
    };
    let cloud = Target::Cloud(CloudTarget::new(
        "https://r.example/told",
        "https://f.example/feed.xml",
        true,
    ));
    let cloud = Subscription {
        target: cloud,
        pending: None,
        ..subscription.clone()
    };
    let xmpp = Subscription {
        target: Target::Xmpp(XmppTarget::new("alice@example.net/1", "feed?order=created")),
        pending: None,
        ..subscription.clone()
    };
    let called = Subscription {
        target: Target::Cloud(
            CloudTarget::new(
                "https://r.example/RPC2",
                "https://f.example/feed.xml",
                false,
            )
            .calling(some("river.told")),
        ),
        ..cloud.clone()
    };
    let principal = Some(PrincipalId {
        user: UserNo(4),
        token: Some(TokenNo(5)),
    });
    let pending = subscription.pending.clone().map(|pending| Pending {
        principal,
        ..pending
    });
    let private = Subscription {
        principal,
        pending,
        ..subscription.clone()
    };
    let wishing = Subscription {
        target: Target::Callback(CallbackTarget {
            url: "https://r.example/cb".into(),
            topic_as_sent: "https://f.example/feeds/blog/classic.atom".into(),
            dialect: Dialect::WebSub,
            secret: None,
            algo: Algo::Sha256,
            verify_token: None,
            wishes: PushWishes {
                deletions: Some(Deletions::Announce),
                ..PushWishes::default()
            },
        }),
        pending: subscription.pending.clone().map(|pending| Pending {
            scanned: some("2_0_1"),
            ..pending
        }),
        ..subscription.clone()
    };
    let overriding = Subscription {
        target: Target::Callback(CallbackTarget {
            url: "https://r.example/cb".into(),
            topic_as_sent: "https://f.example/feeds/blog/classic.atom".into(),
            dialect: Dialect::WebSub,
            secret: None,
            algo: Algo::Sha256,
            verify_token: None,
            wishes: PushWishes {
                deletions: None,
                overrides_method: true,
                ..PushWishes::default()
            },
        }),
        pending: subscription.pending.clone().map(|pending| Pending {
            scanned: some("2_0_1"),
            ..pending
        }),
        ..subscription.clone()
    };
    let directed = Subscription {
        target: Target::Callback(CallbackTarget {
            url: "https://r.example/cb".into(),
            topic_as_sent: "https://f.example/photo.jpg".into(),
            dialect: Dialect::WebSub,
            secret: None,
            algo: Algo::Sha256,
            verify_token: None,
            wishes: PushWishes {
                methods: Directive::ALL.into_iter().collect(),
                named: [Directive::Put].into_iter().collect(),
                heartbeat_secs: Some(3600),
                warning_secs: Some(86_400),
                ..PushWishes::default()
            },
        }),
        pending: None,
        ..subscription.clone()
    };
    let webhook = Subscription {
        target: Target::Webhook(WebhookTarget::new(
            "https://hook.example/",
            Secret::new("whsec_hush"),
        )),
        pending: None,
        ..subscription.clone()
    };
    let attempts = Attempts {
        failed: 3,
        next_try: AT,
        failure: some("refused"),
        since: None,
    };
    let progress = Progress {
        acked: some("1_0_1"),
        attempts,
        on_behalf_of: None,
        scanned: None,
        channel_t: None,
    };
    vec![
        item_sample("live", item(Content::Live(Arc::new(entry())))),
        item_sample("tombstone", item(gone)),
        item_sample("publisher-id", item_with_guid()),
        item_sample("forgotten", forgotten_item()),
        sample("full", record),
        sample(
            "new",
            FeedRecord::new(FeedNo(3), "blog", "example.org/feed"),
        ),
        sample("full", window),
        sample("checked", checked_window),
        sample("busy", busy_window()),
        sample("counts", counting_window()),
        sample("full", evidence),
        sample("full", observation),
        sample("full", poll),
        sample("agreeing", agreeing_polls()),
        sample("full", walk),
        sample("ending", ending),
        sample("guessing", guessing),
        sample("part", proven.new_part(FeedNo(9))),
        sample("proven", proven),
        sample("fenced", fenced),
        sample(
            "restored",
            FeedRecord::new(FeedNo(3), "blog", "example.org/feed").restored(AT),
        ),
        sample(
            "full",
            ContentMark {
                store: u64::MAX,
                commits: 40,
                last_t: AT,
                generation: AT,
            },
        ),
        sample("backup", AT),
        sample("full", page),
        sample("full", subscription),
        sample("private", private),
        sample("wishing", wishing),
        sample("webhook", webhook),
        sample("overriding", overriding),
        sample("directed", directed),
        sample("cloud", cloud),
        sample("xmpp", xmpp),
        sample(
            "xmpp",
            User {
                no: UserNo(6),
                kept: NewUser {
                    jid: Some("alice@example.net".into()),
                    ..new_user()
                },
            },
        ),
        sample("called", called),
        sample(
            "full",
            User {
                no: UserNo(4),
                kept: new_user(),
            },
        ),
        sample(
            "full",
            AccessToken {
                no: TokenNo(5),
                kept: new_token(),
            },
        ),
        sample(
            "readers",
            Progress {
                on_behalf_of: Some(40),
                ..progress.clone()
            },
        ),
        sample(
            "scanned",
            Progress {
                scanned: some("2_0_1"),
                ..progress.clone()
            },
        ),
        sample(
            "channel",
            Progress {
                channel_t: Some(AT),
                ..progress.clone()
            },
        ),
        sample("full", progress),
        sample("none", Progress::default()),
        sample(
            "full",
            LegacyDocument {
                body: b"<rss/>".to_vec(),
                digest: DIGEST,
                content_type: Some("text/xml".into()),
                last_modified: Some("Thu, 01 Jan 1970 00:00:00 GMT".into()),
                syntax: LegacySyntax::Atom,
                fetched_at: AT,
                etag: None,
            },
        ),
        sample(
            "full",
            GroupRecord {
                members: vec![
                    GroupMember {
                        feed: FeedNo(4),
                        url: "https://f.example/feeds/a.atom".into(),
                        stage: MemberStage::Joining {
                            after: Some((AT.into(), AT)),
                        },
                    },
                    GroupMember {
                        feed: FeedNo(5),
                        url: "u".into(),
                        stage: MemberStage::Joined,
                    },
                    GroupMember {
                        feed: FeedNo(6),
                        url: "u".into(),
                        stage: MemberStage::Leaving,
                    },
                ],
                part: None,
            },
        ),
        sample(
            "part",
            GroupRecord::of_part(
                FeedNo(3),
                PartRecord {
                    filter: Filter::of(&[("q", "red"), ("category", "news"), ("lang", "de")])
                        .unwrap(),
                    audience: "00ff".into(),
                    is_edited: true,
                },
            ),
        ),
        sample("empty", GroupPost::default()),
        sample(
            "full",
            GroupPost {
                key: Some(KEY),
                holders: vec![Holder {
                    feed: FeedNo(4),
                    item: ID,
                }],
            },
        ),
        sample(
            "full",
            FoundFeeds {
                paths: vec!["/feed.xml".into(), "/?feed=rss2".into()],
            },
        ),
        sample(
            "full",
            RegistryText {
                text: "{\"name\":\"blog\",\"url\":\"http://x/\"}".into(),
            },
        ),
        sample("full", pushed_feed()),
        sample("full", index_now()),
        sample("full", opml_list()),
        sample(
            "full",
            Event {
                at: AT,
                kind: EventKind::Began,
                cause: Cause::new(EventTopic::Feeds, "example.org down"),
                severity: Severity::Fault,
                whose: FaultOwner::Upstream,
                owner: "the publisher's".into(),
                since: AT,
                title: "12 feeds at example.org fail".into(),
                text: "the publisher answered 500 Internal Server Error".into(),
                remedy: "nothing".into(),
                feeds: AffectedFeeds {
                    names: vec!["a".into(), "b".into()],
                    total: 12,
                },
                joined_at: None,
            },
        ),
        sample(
            "full",
            ClockGuard {
                recorded: Some(AT),
                accepted: Some(AT),
            },
        ),
        sample("seven", 7_u32),
        sample("large", u64::MAX),
    ]
}

fn new_user() -> NewUser {
    NewUser {
        name: "alice".into(),
        login: LoginHash::stored("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA".into()),
        feed_password: Secret::new("hush"),
        hex_digest: true,
        created_us: AT.micros(),
        jid: None,
    }
}

fn new_token() -> NewAccessToken {
    NewAccessToken {
        user: UserNo(4),
        usage: TokenUse::Url,
        hash: [7; 32],
        created_us: AT.micros(),
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stored")
}

/// Cases with a field that is only read over now.
const WITH_UNUSED: [&str; 1] = ["fenced"];

fn file_name(sample: &Sample) -> String {
    format!("{}-v{}-{}.cbor", sample.kind, sample.version, sample.case)
}

#[test]
fn a_value_of_every_version_reads_back() {
    let samples = samples();
    let mut met = BTreeSet::new();
    for file in fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let (kind, rest) = name
            .strip_suffix(".cbor")
            .unwrap()
            .split_once("-v")
            .unwrap();
        let (version, case) = rest.split_once('-').unwrap();
        let sample = samples
            .iter()
            .find(|sample| (sample.kind, sample.case) == (kind, case));
        let sample = sample.unwrap_or_else(|| panic!("{name} has no sample"));
        let bytes = fs::read(&path).unwrap();
        assert_eq!((sample.read)(&bytes).unwrap(), sample.shown, "{name}");
        // How something is packed is the library's business.
        let is_packed = kind == Item::NAME && version != Item::VERSION.to_string();
        let is_as_written = !is_packed && !WITH_UNUSED.contains(&case);
        if version == sample.version.to_string() && is_as_written {
            assert_eq!(
                bytes, sample.bytes,
                "{name}: what is written now differs; a new version is needed"
            );
        }
        met.insert(name);
    }
    for sample in &samples {
        assert!(
            met.contains(&file_name(sample)),
            "{} is not there: write it",
            file_name(sample)
        );
    }
}

#[test]
#[ignore = "writes tests/golden/stored; by hand, for kinds, versions and cases that are new"]
fn write_the_golden_files_that_are_not_there() {
    fs::create_dir_all(folder()).unwrap();
    for sample in samples() {
        let path = folder().join(file_name(&sample));
        if !path.exists() {
            fs::write(path, sample.bytes).unwrap();
        }
    }
}
