//! Properties of any sequence of operations, on random programs; single operations are tested
//! beside.

use super::{
    commits::missing_one,
    rig::{
        NAMESPACE, Rig, START, add, all, commit, delete, edit, guid, id, ids, key, revive, title,
    },
    subscriptions::{lease, new},
};
use crate::{
    clock::Clock as _,
    feed::{
        absence::{AbsenceState, WindowEvent},
        archive::History,
        filter::Filter,
        item::{Content, Item, ItemId, Reason},
        moment::Moment,
        observation_record::{ObservationCounts, ObservationRecord},
        order::{Axis, Order},
        page::{Numbering, Page, PageQuery},
        position::Position,
        reconcile::{Change, WindowEntry, WindowState},
        record::FeedNo,
        schedule::{Pause, PollState},
    },
    store::{
        Archives, StoreError, Subscription, SubscriptionNo,
        subscriptions::{Acknowledged, Attempts, Progress},
    },
};
use everfeed_adapters::{Digest, Metadata, Text};
use proptest::{collection::vec, prelude::*, sample::select};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Debug, Write as _},
    sync::Arc,
};
use tokio::runtime::{Builder, Runtime};

/// Entries that random programs speak of.
const ENTRIES: u32 = 8;

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// Something that happens to an entry; what it means depends on whether the entry is there, live or
/// gone.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write(u32),
    Remove(u32),
}

fn act() -> impl Strategy<Value = Act> {
    let entry = 0..ENTRIES;
    prop_oneof![3 => entry.clone().prop_map(Act::Write), 1 => entry.prop_map(Act::Remove)]
}

/// The entries so far, so that programs are mostly sensible.
#[derive(Default)]
struct Entries {
    live: BTreeSet<u32>,
    gone: BTreeSet<u32>,
}

impl Entries {
    /// The change that an act means now.
    fn take(&mut self, act: Act) -> Option<Change> {
        match act {
            Act::Write(n) if self.gone.remove(&n) => {
                self.live.insert(n);
                Some(revive(n))
            }
            Act::Write(n) if self.live.insert(n) => Some(add(n)),
            Act::Write(n) => Some(edit(n, &"x".repeat(n as usize * 40))),
            Act::Remove(n) if self.live.remove(&n) => {
                self.gone.insert(n);
                Some(delete(n))
            }
            Act::Remove(_) => None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn pages_of_any_size_concatenate_to_the_feed_in_every_order(
        acts in vec(act(), 1..40),
        sizes in vec(1_usize..4, 1..5),
        bytes_max in select(&[0, 500, usize::MAX][..]),
    ) {
        runtime().block_on(async {
            let rig = Rig::memory();
            concatenate(&rig, &acts, &sizes, bytes_max).await;
        });
    }

    #[test]
    fn a_mirror_that_follows_its_cursor_converges(rounds in vec((vec(act(), 0..6), 1_usize..4), 1..20)) {
        runtime().block_on(async {
            let rig = Rig::memory();
            converge(rig, &rounds).await;
        });
    }

    #[test]
    fn a_mirror_of_a_filter_ends_with_what_it_shows(
        filter in select(filters()),
        rounds in vec((vec(act(), 0..6), 1_usize..4), 1..20),
    ) {
        runtime().block_on(async {
            let rig = Rig::memory();
            converge_filtered(&rig, &filter, &rounds).await;
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn pages_of_a_file_concatenate_too(
        acts in vec(act(), 1..40),
        sizes in vec(1_usize..4, 1..5),
        bytes_max in select(&[0, 500, usize::MAX][..]),
    ) {
        runtime().block_on(async {
            let rig = Rig::redb();
            concatenate(&rig, &acts, &sizes, bytes_max).await;
        });
    }

    #[test]
    fn a_mirror_of_a_file_converges_over_restarts(rounds in vec((vec(act(), 0..6), 1_usize..4), 1..12)) {
        runtime().block_on(async {
            let rig = Rig::redb();
            converge(rig, &rounds).await;
        });
    }

    #[test]
    fn the_file_answers_as_the_model_and_reopens_equal(program in vec(op(), 1..40)) {
        runtime().block_on(async {
            answers_as_the_model(Rig::redb(), &program).await;
        });
    }
}

#[cfg(feature = "postgres")]
proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn pages_of_a_database_concatenate_too(
        acts in vec(act(), 1..40),
        sizes in vec(1_usize..4, 1..5),
        bytes_max in select(&[0, 500, usize::MAX][..]),
    ) {
        runtime().block_on(async {
            let rig = Rig::postgres();
            concatenate(&rig, &acts, &sizes, bytes_max).await;
        });
    }

    #[test]
    fn a_mirror_of_a_database_converges_over_restarts(rounds in vec((vec(act(), 0..6), 1_usize..4), 1..12)) {
        runtime().block_on(async {
            let rig = Rig::postgres();
            converge(rig, &rounds).await;
        });
    }

    #[test]
    fn a_mirror_of_a_filter_of_a_database_ends_with_what_it_shows(
        filter in select(filters()),
        rounds in vec((vec(act(), 0..6), 1_usize..4), 1..12),
    ) {
        runtime().block_on(async {
            let rig = Rig::postgres();
            converge_filtered(&rig, &filter, &rounds).await;
        });
    }

    #[test]
    fn the_database_answers_as_the_model_and_reopens_equal(program in vec(op(), 1..40)) {
        runtime().block_on(async {
            answers_as_the_model(Rig::postgres(), &program).await;
        });
    }
}

#[cfg(feature = "postgres")]
proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    #[test]
    fn a_store_that_went_to_a_database_and_back_is_the_same(program in vec(op(), 10..40)) {
        runtime().block_on(async {
            let file = Rig::redb();
            for feed in ["feed0", "feed1"] {
                file.register(feed, NAMESPACE).await.unwrap();
            }
            let mut entries = Entries::default();
            for op in &program {
                run(&file, op, &mut entries).await;
            }
            let everything = dump(&file).await;
            let database = file.copied_to_database();
            assert_eq!(dump(&database).await, everything);
            assert_eq!(dump(&database.copied_to_file()).await, everything);
        });
    }
}

/// A store answers as the model does, and holds the same when it was opened again.
async fn answers_as_the_model(mut store: Rig, program: &[Op]) {
    let model = Rig::memory();
    for rig in [&model, &store] {
        rig.register("feed0", NAMESPACE).await.unwrap();
        rig.register("feed1", NAMESPACE).await.unwrap();
    }
    let (mut of_model, mut of_store) = (Entries::default(), Entries::default());
    for op in program {
        if matches!(op, Op::Reopen) {
            store = store.reopen();
        }
        let expect = run(&model, op, &mut of_model).await;
        assert_eq!(run(&store, op, &mut of_store).await, expect, "{op:?}");
    }
    let everything = dump(&model).await;
    assert_eq!(dump(&store).await, everything);
    assert_eq!(dump(&store.reopen()).await, everything);
}

async fn concatenate(rig: &Rig, acts: &[Act], sizes: &[usize], bytes_max: usize) {
    let feed = rig.blog().await;
    let mut entries = Entries::default();
    for acts in acts.chunks(3) {
        let changes = acts.iter().filter_map(|act| entries.take(*act)).collect();
        rig.change(feed, changes).await.unwrap();
    }
    for order in Order::ALL {
        for filter in [Filter::All, Filter::Live] {
            let live_only = filter == Filter::Live;
            let whole = rig
                .page(PageQuery {
                    filter: filter.clone(),
                    ..all(feed, order)
                })
                .await
                .unwrap();
            let sorted = |item: &Item| -> Moment {
                match order.axis {
                    Axis::Modified => item.modified.into(),
                    Axis::Created => item.created.into(),
                    Axis::Published => item.listed(),
                }
            };
            let stamps: Vec<_> = whole.items.iter().map(|item| sorted(item)).collect();
            // Several may share a date of publication.
            let may_share = order.axis == Axis::Published;
            let rising = |pair: &[Moment]| {
                ((pair[0] < pair[1]) != order.reverse && pair[0] != pair[1])
                    || (may_share && pair[0] == pair[1])
            };
            assert!(stamps.windows(2).all(rising), "{order}: {stamps:?}");
            let expect = entries.live.len() + if live_only { 0 } else { entries.gone.len() };
            assert_eq!(whole.items.len(), expect, "{order}");
            if filter == Filter::All && order.axis != Axis::Published {
                numbered(rig, order, &whole).await;
            }
            let query = PageQuery {
                filter,
                bytes_max,
                ..all(feed, order)
            };
            assert_eq!(paged(rig, query, sizes).await, ids(&whole), "{order}");
        }
    }
}

/// Each item is found by its number (XMPP-26).
async fn numbered(rig: &Rig, order: Order, whole: &Page) {
    for (at, item) in whole.items.iter().enumerate() {
        let query = PageQuery {
            numbering: Numbering::From(at as u64),
            max: 1,
            ..all(whole.record.no, order)
        };
        let page = rig.page(query).await.unwrap();
        assert_eq!(ids(&page), [item.id], "{order} {at}");
    }
}

/// The ids of all pages, one after the other.
async fn paged(rig: &Rig, mut query: PageQuery, sizes: &[usize]) -> Vec<ItemId> {
    let mut seen = Vec::new();
    for max in sizes.iter().cycle() {
        query.max = *max;
        let page = rig.page(query.clone()).await.unwrap();
        assert!(page.items.len() <= *max && page.degraded.is_none());
        if let Some(index) = page.index {
            assert_eq!(index, seen.len() as u64, "{query:?}");
        }
        seen.extend(ids(&page));
        if !page.more {
            break;
        }
        query.since = Some(Position::of_cursor(&page.last_cursor));
    }
    seen
}

/// A consumer: it reads a page after its cursor now and then, and believes it.
#[derive(Default)]
struct Mirror {
    items: BTreeMap<ItemId, Arc<Item>>,
    cursor: String,
}

impl Mirror {
    async fn pull(&mut self, rig: &Rig, feed: FeedNo, max: usize) -> Page {
        let since = Some(Position::of_cursor(&self.cursor));
        let page = rig
            .page(PageQuery {
                since,
                max,
                ..all(feed, Order::MODIFIED)
            })
            .await
            .unwrap();
        self.items
            .extend(page.items.iter().map(|item| (item.id, Arc::clone(item))));
        self.cursor.clone_from(&page.last_cursor);
        page
    }
}

async fn converge(mut rig: Rig, rounds: &[(Vec<Act>, usize)]) {
    let feed = rig.blog().await;
    let (mut entries, mut mirror) = (Entries::default(), Mirror::default());
    for (at, (acts, max)) in rounds.iter().enumerate() {
        let changes = acts.iter().filter_map(|act| entries.take(*act)).collect();
        rig.change(feed, changes).await.unwrap();
        mirror.pull(&rig, feed, *max).await;
        if at % 4 == 3 {
            rig = rig.reopen();
        }
    }
    while mirror.pull(&rig, feed, 3).await.more {}
    let whole = rig.list(feed, Order::MODIFIED, None).await;
    let expect = whole
        .items
        .iter()
        .map(|item| (item.id, Arc::clone(item)))
        .collect();
    assert_eq!(mirror.items, expect);
    assert_eq!(mirror.cursor, whole.last_cursor);
}

/// Filters of all kinds that tell the entries of random programs apart.
fn filters() -> Vec<Filter> {
    let of = |q, deleted| Filter::of(&[("q", q), ("deleted", deleted)]).unwrap();
    vec![
        Filter::All,
        Filter::Live,
        of("first", ""),
        of("again", "no"),
        of("", "no"),
        of("", "only"),
        of("none", ""),
    ]
}

/// DESIGN section 3: a mirror that drops what has left the view holds what the filter shows, with
/// the total that pages name.
async fn converge_filtered(rig: &Rig, filter: &Filter, rounds: &[(Vec<Act>, usize)]) {
    let feed = rig.blog().await;
    let mut entries = Entries::default();
    let mut mirror = BTreeMap::new();
    let mut cursor = String::new();
    for (acts, max) in rounds.iter().chain([&(Vec::new(), 3)]) {
        let changes = acts.iter().filter_map(|act| entries.take(*act)).collect();
        rig.change(feed, changes).await.unwrap();
        loop {
            let since = Some(Position::of_cursor(&cursor));
            let query = PageQuery {
                filter: filter.clone(),
                with_total: true,
                since,
                max: *max,
                ..all(feed, Order::MODIFIED)
            };
            let page = rig.page(query).await.unwrap();
            for item in &page.items {
                let has_left = matches!(
                    item.content,
                    Content::Gone {
                        reason: Reason::LeftView,
                        ..
                    }
                );
                if has_left {
                    mirror.remove(&item.id)
                } else {
                    mirror.insert(item.id, Arc::clone(item))
                };
            }
            cursor = page.scanned.unwrap_or(page.last_cursor);
            if !page.more {
                // Ordinary readers are told nothing of what is gone, so no mirror of theirs can
                // follow.
                if *filter != Filter::Live {
                    assert_eq!(page.total, Some(mirror.len() as u64), "{filter}");
                }
                break;
            }
        }
    }
    let whole = rig.list(feed, Order::MODIFIED, None).await;
    let shown = whole
        .items
        .iter()
        .filter(|item| filter.shows(item, &whole.record));
    let expect: BTreeMap<_, _> = shown.map(|item| (item.id, Arc::clone(item))).collect();
    if *filter != Filter::Live {
        assert_eq!(mirror, expect, "{filter}");
    }
}

/// An operation of a random program.
#[derive(Clone, Debug)]
enum Op {
    Register(u8, bool),
    Commit {
        feed: u8,
        acts: Vec<Act>,
        stale: bool,
        extras: u8,
    },
    Misfit(u32),
    Page {
        feed: u8,
        order: Order,
        since: Since,
        until: Since,
        max: usize,
        bytes_max: usize,
        filter: Filter,
    },
    Known(Vec<u32>),
    SavePolls {
        feed: u8,
        failures: u32,
        host: u8,
        until_secs: u64,
    },
    PutSub {
        feed: u8,
        callback: u8,
        no: u64,
    },
    DropSub(u64),
    Advance {
        no: u64,
        from: u8,
        to: u8,
    },
    Clock(u64),
    AcceptClock,
    Reopen,
}

/// A position that depends on what is there.
#[derive(Clone, Debug)]
enum Since {
    None,
    CursorOf(u32),
    Time(u64),
    Id(u32),
    Text(&'static str),
}

fn op() -> impl Strategy<Value = Op> {
    // The third is unknown unless a program registers it.
    let feed = || prop_oneof![6 => Just(0_u8), 3 => Just(1), 1 => Just(2)];
    let positions = || {
        prop_oneof![
            4 => Just(Since::None),
            4 => (0..ENTRIES).prop_map(Since::CursorOf),
            1 => (0_u64..60).prop_map(Since::Time),
            2 => (0..ENTRIES).prop_map(Since::Id),
            1 => select(&["", "x", "5", "5_0_1", "1780272000_0_7", "9999999999_0_1"][..]).prop_map(Since::Text),
        ]
    };
    let page = (
        feed(),
        select(&Order::ALL[..]),
        positions(),
        positions(),
        1_usize..6,
        select(&[0, 600, usize::MAX][..]),
        select(filters()),
    );
    prop_oneof![
        1 => (0_u8..3, any::<bool>()).prop_map(|(feed, same)| Op::Register(feed, same)),
        6 => (feed(), vec(act(), 0..5), prop::bool::weighted(0.1), any::<u8>())
            .prop_map(|(feed, acts, stale, extras)| Op::Commit { feed, acts, stale, extras }),
        1 => (0..ENTRIES).prop_map(Op::Misfit),
        8 => page.prop_map(|(feed, order, since, until, max, bytes_max, filter)| {
            Op::Page { feed, order, since, until, max, bytes_max, filter }
        }),
        1 => vec(0..ENTRIES, 0..4).prop_map(Op::Known),
        1 => (feed(), 0_u32..9, 0_u8..3, 0_u64..60).prop_map(|(feed, failures, host, until_secs)| {
            Op::SavePolls { feed, failures, host, until_secs }
        }),
        2 => (feed(), 0_u8..3, select(&[0, 0, 0, 1, 2][..])).prop_map(|(feed, callback, no)| Op::PutSub { feed, callback, no }),
        1 => (0_u64..4).prop_map(Op::DropSub),
        1 => (0_u64..4, 0_u8..2, 0_u8..2).prop_map(|(no, from, to)| Op::Advance { no, from, to }),
        2 => prop_oneof![4 => 0_u64..120, 1 => Just(402 * 86_400)].prop_map(Op::Clock),
        1 => Just(Op::AcceptClock),
        1 => Just(Op::Reopen),
    ]
}

/// The answer of an operation, as text: errors too must be the same.
async fn run(rig: &Rig, op: &Op, entries: &mut Entries) -> String {
    let no = |feed: u8| FeedNo(u32::from(feed) + 1);
    match op {
        Op::Register(feed, same) => {
            let namespace = if *same { NAMESPACE } else { "another" };
            said(rig.register(&format!("feed{feed}"), namespace).await)
        }
        Op::Commit {
            feed,
            acts,
            stale,
            extras,
        } => said(random_commit(rig, no(*feed), acts, *stale, *extras, entries).await),
        Op::Misfit(n) => said(
            rig.change(no(0), vec![delete(*n), revive(*n), revive(*n)])
                .await,
        ),
        Op::Page {
            feed,
            order,
            since,
            until,
            max,
            bytes_max,
            filter,
        } => {
            let feed = no(*feed);
            let since = position(rig, feed, *order, since).await;
            let until = position(rig, feed, *order, until).await;
            let (order, max, bytes_max, filter) = (*order, *max, *bytes_max, filter.clone());
            let query = PageQuery {
                feed,
                order,
                since,
                until,
                max,
                bytes_max,
                filter,
                with_total: true,
                numbering: Numbering::Told,
                is_last: false,
            };
            said(rig.page(query).await)
        }
        Op::Known(entries) => {
            let known = rig
                .known(no(0), entries.iter().copied().map(key).collect())
                .await;
            said(known.map(|known| {
                (
                    known.rev,
                    known.id_rule,
                    known.window,
                    known.items.into_iter().collect::<BTreeMap<_, _>>(),
                )
            }))
        }
        Op::SavePolls {
            feed,
            failures,
            host,
            until_secs,
        } => {
            let poll = {
                let mut state = PollState::default();
                state.health.failures = *failures;
                state
            };
            let pause = Pause {
                until: START.plus_secs(*until_secs),
                since: START,
            };
            let host = (format!("host{host}"), pause);
            said(rig.save_polls(vec![(no(*feed), poll)], vec![host]).await)
        }
        Op::PutSub {
            feed,
            callback,
            no: given,
        } => {
            let new = new(no(*feed), &format!("http://{callback}/"));
            if *given == 0 {
                return said(rig.subscribe(new).await);
            }
            let found = rig.subscription(SubscriptionNo(*given)).await.unwrap();
            let Some((held, _)) = found else {
                return String::new();
            };
            // Every other change is decided on terms that are not there any more.
            let rev = held.rev - u64::from(*callback) % 2;
            let changed = Subscription {
                rev,
                view: new.view,
                lease: Some(lease()),
                ..held
            };
            let progress = Progress {
                acked: Some("0".to_owned()),
                ..Progress::default()
            };
            said(rig.change_subscription(changed, Some(progress)).await)
        }
        Op::DropSub(sub) => said(rig.end_subscription(SubscriptionNo(*sub)).await),
        Op::Advance { no, from, to } => {
            let (from, to) = (from.to_string(), to.to_string());
            let attempts = Attempts {
                failed: 1,
                ..Attempts::default()
            };
            said(
                rig.save_attempts(vec![(SubscriptionNo(*no), attempts)])
                    .await,
            );
            let on_behalf_of = (*no > 1).then_some(3);
            let moved = Acknowledged {
                subscription: SubscriptionNo(*no),
                from,
                to,
                on_behalf_of,
                scanned: None,
                channel_t: None,
            };
            said(rig.acknowledge(vec![moved]).await)
        }
        Op::Clock(secs) => {
            // Backwards by up to a minute, too.
            rig.clock
                .set(rig.clock.now_us() + secs * 1_000_000 - 30_000_000);
            String::new()
        }
        Op::AcceptClock => said(rig.accept_clock().await),
        Op::Reopen => String::new(),
    }
}

fn said<T: Debug>(answer: Result<T, StoreError>) -> String {
    format!("{answer:?}")
}

/// A commit of sensible changes to the first feed, or of one new item to another; with more in it
/// now and then.
async fn random_commit(
    rig: &Rig,
    feed: FeedNo,
    acts: &[Act],
    stale: bool,
    extras: u8,
    entries: &mut Entries,
) -> Result<crate::store::Receipt, StoreError> {
    let mut record = rig.feed(feed).await?;
    record.rev += u64::from(stale);
    let mut tried = Entries {
        live: entries.live.clone(),
        gone: entries.gone.clone(),
    };
    let changes = match feed {
        FeedNo(1) => acts.iter().filter_map(|act| tried.take(*act)).collect(),
        _ => vec![add(100 + u32::try_from(record.items.total).unwrap())],
    };
    let mut commit = commit(&record, changes);
    commit.ready = extras & 1 == 1;
    let row = WindowEntry {
        key: key(1),
        id: id(1),
        raw: Digest::default(),
        dated: None,
        tombstone_count: 0,
        is_weak: false,
        changed_polls: 0,
        changing_since: None,
    };
    let absence = if extras & 4 == 4 {
        missing_one(START.plus_secs(u64::from(extras)))
    } else {
        AbsenceState::default()
    };
    commit.last = (extras & 2 == 2).then(|| WindowState {
        entries: acts.iter().map(|_| row).collect(),
        absence,
        ..WindowState::default()
    });
    commit.observed = (extras & 32 == 32).then(|| ObservationRecord {
        at: START,
        counts: ObservationCounts {
            entries: u32::from(extras),
            ..ObservationCounts::default()
        },
        events: if extras & 64 == 64 {
            vec![WindowEvent::Gap]
        } else {
            Vec::new()
        },
        ..ObservationRecord::default()
    });
    commit.archives = (extras & 128 == 128).then_some(Archives {
        history: if extras & 1 == 1 {
            History::Complete
        } else {
            History::Running
        },
        ..Archives::default()
    });
    let title = Some(Text::plain(format!("{}", extras & 4)));
    commit.metadata = (extras & 8 == 8).then(|| {
        Arc::new(Metadata {
            title,
            ..Metadata::default()
        })
    });
    commit.poll = (extras & 16 == 16).then(PollState::default);
    let done = rig.commit(commit).await;
    if done.is_ok() {
        *entries = tried;
    }
    done
}

async fn position(rig: &Rig, feed: FeedNo, order: Order, since: &Since) -> Option<Position> {
    match since {
        Since::None => None,
        Since::CursorOf(n) => {
            let max = *n as usize + 1;
            let page = rig
                .page(PageQuery {
                    max,
                    ..all(feed, order)
                })
                .await
                .ok()?;
            Some(Position::of_cursor(&page.last_cursor))
        }
        Since::Time(secs) => Position::parse(&format!("time:{}", START.plus_secs(*secs))).unwrap(),
        Since::Id(n) if n % 2 == 0 => Some(Position::Id(id(*n).to_string())),
        Since::Id(n) => Some(Position::Id(guid(*n))),
        Since::Text(text) => Some(Position::of_cursor(text)),
    }
}

/// Everything that a store can be asked for.
async fn dump(rig: &Rig) -> String {
    let mut text = String::new();
    let feeds = rig.feeds(None, usize::MAX).await.unwrap();
    for record in &feeds {
        let feed = record.no;
        for order in Order::ALL {
            writeln!(text, "{:?}", rig.page(all(feed, order)).await.unwrap()).unwrap();
        }
        for n in 0..ENTRIES {
            let known = rig.known(feed, vec![key(n)]).await.unwrap();
            let item = rig.item(feed, id(n)).await.unwrap();
            assert_eq!(known.items.get(&key(n)), item.as_ref());
            writeln!(
                text,
                "{:?} {:?}",
                item.as_deref().and_then(title),
                known.window
            )
            .unwrap();
            writeln!(text, "{:?}", rig.evidence(feed, id(n)).await.unwrap()).unwrap();
        }
        writeln!(
            text,
            "{:?}",
            rig.subscriptions(Some(feed), None, usize::MAX)
                .await
                .unwrap()
        )
        .unwrap();
        writeln!(text, "{:?}", rig.observations(feed).await.unwrap()).unwrap();
    }
    writeln!(text, "{:?}", rig.counts().await.unwrap()).unwrap();
    writeln!(
        text,
        "{feeds:?} {:?} {:?}",
        rig.polls(None, usize::MAX).await.unwrap(),
        rig.host_pauses(None, usize::MAX).await.unwrap()
    )
    .unwrap();
    writeln!(
        text,
        "{:?}",
        rig.subscriptions(None, None, usize::MAX).await.unwrap()
    )
    .unwrap();
    text
}
