//! Polls a publisher through the pipeline that polls in earnest, over a store in memory, and keeps the score.

use crate::{
    document::{Document, START_SECS, tag, title},
    publisher::{Answer, Held, Page, Publisher},
    scenario::Scenario,
    score::{Score, Told},
};
use bytes::Bytes;
use everfeed::{
    clock::Manual,
    feed::{
        absence::CheckResult,
        item::{Item, ItemId},
        order::Order,
        page::PageQuery,
        position::Position,
        schedule::{self, PollState, ValidatorPair},
        stamp::Stamp,
    },
    ingest::{
        Context, DeletionSettings, FeedSpec, Fetched,
        checks::Check,
        polls::{Poll, PollSaving},
        upstream::Reply,
    },
    notify::Notify,
    store::{memory::Memory, traits::*},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use url::Url;

const DAYS: u64 = 90;
const URL: &str = "http://blog.example/feed";

/// Watches a publisher, without asking for pages and then the same one with that.
pub(crate) async fn watch(scenario: &Scenario, seed: u64) -> Score {
    let with_pages = watch_so(scenario, seed, true).await;
    Score { with_pages: with_pages.by_absence, ..watch_so(scenario, seed, false).await }
}

async fn watch_so(scenario: &Scenario, seed: u64, permalink_checks: bool) -> Score {
    let mut publisher = Publisher::new(*scenario, seed);
    let mut watcher = Watcher::new(permalink_checks).await;
    for hour in 0..DAYS * 24 {
        publisher.live();
        if hour % scenario.poll_hours == 0 {
            watcher.poll(&mut publisher).await;
        }
    }
    watcher.converge(&mut publisher).await;
    watcher.score(&mut publisher).await
}

struct Watcher {
    context: Context,
    store: Arc<Memory>,
    clock: Arc<Manual>,
    feed: FeedSpec,
    state: PollState,
    cursor: String,
    /// The last document, and the hour in which it came.
    held: Option<(f64, Document)>,
    /// Which post an item is, and whether it lives.
    items: HashMap<ItemId, (u32, bool)>,
    /// Items that are missed.
    missed: Vec<u32>,
    by_absence: Judge,
}

/// Keeps the score of one way of judging.
#[derive(Default)]
struct Judge {
    told: Told,
    /// DeletionSettings that were found, by their number.
    found: HashSet<usize>,
}

impl Judge {
    /// A post is said to be gone.
    fn tell(&mut self, post: u32, publisher: &Publisher) {
        let deletion = publisher.deletions.iter().rposition(|(id, _)| *id == post);
        match deletion.filter(|_| !publisher.is_alive(post)) {
            Some(deletion) if self.found.insert(deletion) => {
                self.told.found += 1;
                self.told.hours.push(publisher.hour - publisher.deletions[deletion].1);
            }
            Some(_) => {}
            None => self.told.false_ones += 1,
        }
    }
}

impl Watcher {
    async fn new(permalink_checks: bool) -> Self {
        let clock = Arc::new(Manual::at(START_SECS * 1_000_000));
        let store = Arc::new(Memory::new(clock.clone()));
        let notify = Arc::new(Notify::new());
        let context = Context { jitter: || 0.0, ..Context::new(store.clone(), notify, clock.clone()) };
        let no = store.register("blog", URL).await.unwrap().no;
        let usual = FeedSpec::new(no, "blog", Url::parse(URL).unwrap());
        let feed = FeedSpec { deletions: DeletionSettings { permalink_checks, ..usual.deletions }, ..usual };
        let state = PollState::unpolled(URL);
        let (cursor, held, items, missed) = (String::new(), None, HashMap::new(), Vec::new());
        let by_absence = Judge::default();
        Self { context, store, clock, feed, state, cursor, held, items, missed, by_absence }
    }

    fn now(publisher: &Publisher) -> Stamp {
        Stamp::from_secs(START_SECS + publisher.hour as u64 * 3600)
    }

    /// Asks for the document as the poller would: without validators when that is due.
    async fn poll(&mut self, publisher: &mut Publisher) {
        let plan = self.state.plan(self.feed.deletions.audit_secs, Self::now(publisher));
        let held = self.held.as_ref().filter(|_| plan.conditional);
        let reply = match publisher.answer(held.map(|(hour, document)| Held { hour: *hour, document })) {
            Answer::Unchanged => Reply::Unchanged(answer(true)),
            Answer::Document(document) => self.document(document, plan.conditional, publisher.hour),
        };
        self.take(reply, publisher).await;
    }

    fn document(&mut self, document: Document, conditional: bool, hour: f64) -> Reply {
        let fetched = Fetched {
            answer: answer(conditional),
            body: Bytes::from(document.render()),
            content_type: None,
            content_language: None,
            headers: Box::default(),
            base_url: URL.to_owned(),
            resource: None,
            is_part: false,
        };
        self.held = Some((hour, document));
        Reply::Document(fetched)
    }

    async fn take(&mut self, reply: Reply, publisher: &mut Publisher) {
        self.clock.set(Self::now(publisher).micros());
        let polled = Poll::new(&self.context, &self.feed, &self.state).answered(reply).await;
        self.state = polled.state;
        assert_eq!(self.state.health.fault, None, "every document of this publisher can be read");
        if polled.saving == PollSaving::Committed {
            self.follow(publisher).await;
        }
        if self.feed.deletions.permalink_checks {
            self.ask(publisher).await;
        }
    }

    /// Asks for every page that is due.
    async fn ask(&mut self, publisher: &mut Publisher) {
        let now = Self::now(publisher);
        while let Some(id) = self.due(now).await {
            let said = match publisher.page(self.items[&id].0) {
                Page::Shown => CheckResult::Shown,
                Page::Gone => CheckResult::Gone,
                Page::Missing => CheckResult::NotFound,
                Page::Error => CheckResult::Nothing,
            };
            Check::new(&self.context, &self.feed, &self.state).answered(id, said).await.unwrap();
            self.follow(publisher).await;
        }
    }

    async fn due(&self, now: Stamp) -> Option<ItemId> {
        self.store.known(self.feed.no, Vec::new()).await.unwrap().window.absence.due_check(now)
    }

    /// Reads what changed, as a consumer does.
    async fn follow(&mut self, publisher: &mut Publisher) {
        let page = self.store.page(self.query(&self.cursor, false)).await.unwrap();
        self.cursor = page.last_cursor;
        for item in page.items {
            let known = self.items.get(&item.id).copied();
            let post = post(&item).or(known.map(|(post, _)| post)).expect("what ends was there before");
            self.items.insert(item.id, (post, !item.is_gone()));
            if item.is_gone() {
                self.by_absence.tell(post, publisher);
            }
        }
        let known = self.store.known(self.feed.no, Vec::new()).await.unwrap();
        let suspects = known.window.absence.suspects();
        self.missed = suspects.filter_map(|row| Some(self.items.get(&row.id)?.0)).collect();
    }

    fn query(&self, since: &str, live_only: bool) -> PageQuery {
        PageQuery {
            feed: self.feed.no,
            order: Order::MODIFIED,
            since: (!since.is_empty()).then(|| Position::of_cursor(since)),
            until: None,
            max: usize::MAX,
            bytes_max: usize::MAX,
            live_only,
        }
    }

    /// Asks once more, without validators and on a day when nothing goes wrong: what the publisher shows is there, in its
    /// newest version. Some publishers hide an edit from validators until then.
    async fn converge(&mut self, publisher: &mut Publisher) {
        publisher.live();
        let document = publisher.undisturbed();
        let posts = document.posts.clone();
        let reply = self.document(document, false, publisher.hour);
        self.take(reply, publisher).await;
        let page = self.store.page(self.query("", true)).await.unwrap();
        let told = |item: &Arc<Item>| {
            let entry = item.entry()?;
            Some((entry.title.as_ref()?.value.clone(), entry.categories.first()?.term.clone()))
        };
        let live: HashSet<(String, String)> = page.items.iter().filter_map(told).collect();
        for shown in posts {
            let expect = (title(shown.id), tag(shown.version));
            assert!(live.contains(&expect), "the store lacks {expect:?}");
        }
    }

    async fn score(self, publisher: &mut Publisher) -> Score {
        let mut live: HashMap<u32, usize> = HashMap::new();
        self.items
            .values()
            .filter(|(_, lives)| *lives)
            .for_each(|(post, _)| *live.entry(*post).or_default() += 1);
        let missed: HashSet<u32> = self.missed.into_iter().collect();
        let is_past_the_end = |(number, (post, _)): (usize, &(u32, f64))| {
            let is_found = self.by_absence.found.contains(&number);
            !is_found && !publisher.is_alive(*post) && live.contains_key(post) && !missed.contains(post)
        };
        Score {
            deletions: publisher.deletions.len(),
            past_the_end: publisher.deletions.iter().enumerate().filter(|row| is_past_the_end(*row)).count(),
            twice: live.values().map(|items| items - 1).sum(),
            by_absence: self.by_absence.told,
            with_pages: Told::default(),
        }
    }
}

fn answer(conditional: bool) -> schedule::Answer {
    schedule::Answer {
        asked: URL.to_owned(),
        conditional,
        // What they are does not matter: the publisher knows what it answered last.
        validators: Some(ValidatorPair {
            etag: Some("\"held\"".to_owned()),
            last_modified: None,
            url: URL.to_owned(),
        }),
        ..schedule::Answer::default()
    }
}

/// Which post an item is.
fn post(item: &Item) -> Option<u32> {
    item.entry()?.title.as_ref()?.value.strip_prefix("Post ")?.parse().ok()
}
