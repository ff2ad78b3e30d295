//! Polls a publisher through the pipeline that polls in earnest, over a store in memory, and keeps
//! the score.

use super::{
    document::{Document, PostWords, START_SECS, post_at},
    publisher::{Answer, Held, Page, Publisher},
    scenario::Scenario,
    score::{Score, Told},
};
use bytes::Bytes;
use everfeed::{
    clock::Manual,
    feed::{
        absence::Coverage,
        filter::Filter,
        history::History,
        item::{Content, Item, ItemId},
        order::Order,
        page::PageQuery,
        position::Position,
        schedule::{self, PollState, ValidatorPair},
        stamp::Stamp,
    },
    ingest::{
        Context, FeedSpec, Fetched, RecordSettings, Upstream,
        checks::Check,
        polls::{Poll, PollSaving},
        upstream::DocumentReply,
    },
    layers::{self, ClientConfig, FetchError, Governor, client::upstream_over},
    notify::Notify,
    store::{memory::Memory, traits::*},
};
use everfeed_adapters::{Entry, Text};
use futures_util::future::BoxFuture;
use http::{Response, header};
use http_body_util::{BodyExt as _, Full};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio_util::sync::CancellationToken;
use url::Url;

const DAYS: u64 = 90;
const URL: &str = "http://blog.example/feed";

/// Watches a publisher, without asking for pages and then the same one with that.
pub(crate) async fn watch(scenario: &Scenario, seed: u64) -> Score {
    let with_pages = watch_so(scenario, seed, true).await;
    Score {
        with_pages: with_pages.by_absence,
        ..watch_so(scenario, seed, false).await
    }
}

async fn watch_so(scenario: &Scenario, seed: u64, permalink_checks: bool) -> Score {
    let publisher = Arc::new(Mutex::new(Publisher::new(*scenario, seed)));
    let mut watcher = Watcher::new(publisher, permalink_checks).await;
    for hour in 0..DAYS * 24 {
        watcher.publisher().live();
        if hour % scenario.poll_hours == 0 {
            watcher.poll(scenario.poll_hours).await;
        }
    }
    watcher.converge(scenario.poll_hours).await;
    watcher.score().await
}

/// Watches a publisher for some days and records everything. Returns what became of each item:
/// `live`, or the reason of its tombstone.
pub(crate) async fn recorded(
    scenario: &Scenario,
    seed: u64,
    days: u64,
    record: RecordSettings,
) -> BTreeMap<ItemId, &'static str> {
    let publisher = Arc::new(Mutex::new(Publisher::new(*scenario, seed)));
    let mut watcher = Watcher::new(publisher, true).await;
    watcher.feed.record = Some(record);
    for hour in 0..days * 24 {
        watcher.publisher().live();
        if hour % FAILING_HOURS == FAILING_HOURS - 1 {
            watcher.fail().await;
        } else if hour % scenario.poll_hours == 0 {
            watcher.poll(scenario.poll_hours).await;
        }
    }
    let page = watcher
        .store
        .page(watcher.query("", Filter::All))
        .await
        .unwrap();
    let end = |item: &Arc<Item>| match &item.content {
        Content::Live(_) => "live",
        Content::Gone { reason, .. } => reason.code(),
    };
    page.items.iter().map(|item| (item.id, end(item))).collect()
}

/// Hours between two polls that fail, where everything is recorded.
const FAILING_HOURS: u64 = 37;

struct Watcher {
    publisher: Arc<Mutex<Publisher>>,
    /// Requests for pages so far.
    asked: Arc<Mutex<usize>>,
    upstream: Upstream,
    context: Context,
    store: Arc<Memory>,
    clock: Arc<Manual>,
    feed: FeedSpec,
    state: PollState,
    cursor: String,
    /// The last document, and the hour in which it came.
    held: Option<(f64, Document)>,
    /// The post that an item is, and true while it lives.
    items: HashMap<ItemId, (u32, bool)>,
    /// Items that are missed.
    missed: Vec<u32>,
    /// Posts that documents showed, before the last one and with it.
    shown: [HashSet<u32>; 2],
    /// Gap markers so far.
    gaps: usize,
    by_absence: Judge,
}

/// Keeps the score of one way of judging.
#[derive(Default)]
struct Judge {
    told: Told,
    /// Deletions that were found, by their number.
    found: HashSet<usize>,
}

impl Judge {
    /// A post is said to be gone.
    fn tell(&mut self, post: u32, publisher: &Publisher) {
        let deletion = publisher.deletions.iter().rposition(|(id, _)| *id == post);
        match deletion.filter(|_| !publisher.is_alive(post)) {
            Some(deletion) if self.found.insert(deletion) => {
                self.told.found += 1;
                self.told
                    .hours
                    .push(publisher.hour - publisher.deletions[deletion].1);
            }
            Some(_) => {}
            None => self.told.false_ones += 1,
        }
    }
}

/// Hours for which a post must have stood as it is, and polls after them, until it is served so,
/// whatever held an edit back.
const REST_HOURS: u64 = 24;
const REST_POLLS: u64 = 2;

/// Pages that can be asked for in an hour at most, one a minute.
const PAGES_AN_HOUR: u64 = 60;

impl Watcher {
    async fn new(publisher: Arc<Mutex<Publisher>>, permalink_checks: bool) -> Self {
        let clock = Arc::new(Manual::at(START_SECS * 1_000_000));
        let store = Arc::new(Memory::new(clock.clone()));
        let notify = Arc::new(Notify::new());
        let context = Context {
            jitter: || 0.0,
            ..Context::new(store.clone(), notify, clock.clone())
        };
        let no = store.register("blog", URL).await.unwrap().no;
        let mut feed = FeedSpec::new(no, "blog", Url::parse(URL).unwrap());
        feed.deletions.permalink_checks = permalink_checks;
        let state = PollState::unpolled(URL);
        let (cursor, held, items, missed) = (String::new(), None, HashMap::new(), Vec::new());
        let (by_absence, shown, gaps) = (Judge::default(), Default::default(), 0);
        let asked = Arc::new(Mutex::new(0));
        let upstream = upstream(&publisher, &asked, clock.clone());
        Self {
            publisher,
            asked,
            upstream,
            context,
            store,
            clock,
            feed,
            state,
            cursor,
            held,
            items,
            missed,
            shown,
            gaps,
            by_absence,
        }
    }

    fn publisher(&self) -> MutexGuard<'_, Publisher> {
        self.publisher.lock().unwrap()
    }

    fn now(&self) -> Stamp {
        Stamp::from_secs(START_SECS + self.publisher().hour as u64 * 3600)
    }

    /// Asks for the document as the poller would: without validators when that is due.
    async fn poll(&mut self, hours: u64) {
        let plan = self.state.plan(self.feed.deletions.audit_secs, self.now());
        let held = self.held.as_ref().filter(|_| plan.conditional);
        let answered = self
            .publisher
            .lock()
            .unwrap()
            .answer(held.map(|(hour, document)| Held {
                hour: *hour,
                document,
            }));
        let reply = match answered {
            Answer::Unchanged => DocumentReply::Unchanged(answer(true)),
            Answer::Document(document) => self.document(document, plan.conditional),
        };
        self.by_absence.told.requests += 1;
        self.take(reply, hours).await;
    }

    fn document(&mut self, document: Document, conditional: bool) -> DocumentReply {
        let fetched = Fetched {
            memory: None,
            answer: answer(conditional),
            body: Bytes::from(document.render()),
            content_type: None,
            content_language: None,
            headers: Box::default(),
            base_url: URL.to_owned(),
            resource: None,
            address: None,
            coverage: Coverage::of_whole(conditional),
        };
        let [before, last] = &mut self.shown;
        before.extend(last.drain());
        last.extend(document.posts.iter().map(|post| post.id));
        let hour = self.publisher().hour;
        self.held = Some((hour, document));
        DocumentReply::Document(fetched)
    }

    /// A poll that nobody answers.
    async fn fail(&mut self) {
        self.clock.set(self.now().micros());
        let failure = schedule::Failure::ours("nobody answers");
        let reply = DocumentReply::Failed {
            failure,
            host: None,
        };
        self.state = Poll::new(&self.context, &self.feed, &self.state)
            .answered(reply)
            .await
            .state;
        self.follow().await;
    }

    async fn take(&mut self, reply: DocumentReply, hours: u64) {
        self.clock.set(self.now().micros());
        let polled = Poll::new(&self.context, &self.feed, &self.state)
            .answered(reply)
            .await;
        self.state = polled.state;
        assert_eq!(
            self.state.health.fault, None,
            "every document of this publisher can be read"
        );
        if polled.saving == PollSaving::Committed {
            self.follow().await;
        }
        if self.feed.deletions.permalink_checks {
            self.ask(hours).await;
        }
    }

    /// Asks for every page that is due, as many as there is time for.
    async fn ask(&mut self, hours: u64) {
        let stop = CancellationToken::new();
        for _ in 0..PAGES_AN_HOUR * hours {
            let due = self
                .store
                .feed(self.feed.no)
                .await
                .unwrap()
                .window
                .next_check_at;
            if due.is_none_or(|at| at > self.now()) {
                return;
            }
            Check::new(&self.context, &self.feed, &self.state)
                .run(&self.upstream, &stop)
                .await
                .unwrap();
            self.follow().await;
        }
    }

    /// Reads what changed, as a consumer does.
    async fn follow(&mut self) {
        let page = self
            .store
            .page(self.query(&self.cursor, Filter::All))
            .await
            .unwrap();
        self.cursor = page.last_cursor;
        for item in page.items {
            let known = self.items.get(&item.id).copied();
            let post = post(&item)
                .or(known.map(|(post, _)| post))
                .expect("what ends was there before");
            let lives = !item.is_gone();
            if lives && known.is_some_and(|(_, lived)| lived) {
                self.by_absence.told.edits += 1;
            }
            if lives && known.is_some_and(|(_, lived)| !lived) {
                self.by_absence.told.resurrected += 1;
                let is_back = self.publisher.lock().unwrap().is_alive(post);
                self.by_absence.told.falsely_revived += usize::from(!is_back);
            }
            self.items.insert(item.id, (post, lives));
            if !lives {
                self.by_absence.tell(post, &self.publisher.lock().unwrap());
            }
        }
        let known = self.store.known(self.feed.no, Vec::new()).await.unwrap();
        let suspects = known.window.absence.suspects();
        self.missed = suspects
            .filter_map(|row| Some(self.items.get(&row.id)?.0))
            .collect();
        // Only so many markers are kept, so that their number may stay: the last one tells.
        let record = self.store.feed(self.feed.no).await.unwrap();
        let now = self.now();
        let is_new = record
            .completeness
            .gaps
            .last()
            .is_some_and(|gap| gap.at == now)
            && self.gaps != now.micros() as usize;
        if is_new && !self.shown[0].is_disjoint(&self.shown[1]) {
            self.gaps = now.micros() as usize;
            self.by_absence.told.false_gaps += 1;
        }
    }

    fn query(&self, since: &str, filter: Filter) -> PageQuery {
        PageQuery {
            since: (!since.is_empty()).then(|| Position::of_cursor(since)),
            filter,
            ..PageQuery::all(self.feed.no, Order::MODIFIED)
        }
    }

    /// The publisher rests: nothing is edited, and nothing goes wrong. After a day and two polls each
    /// post that it shows is served in its newest version. The first poll comes without validators,
    /// from which some publishers hide an edit.
    async fn converge(&mut self, poll_hours: u64) {
        self.publisher().live();
        let document = self.publisher().undisturbed();
        let polls = REST_HOURS.div_ceil(poll_hours) + REST_POLLS;
        for n in 0..=polls {
            let plan = self.state.plan(self.feed.deletions.audit_secs, self.now());
            let reply = if n > 0 && plan.conditional {
                DocumentReply::Unchanged(answer(true))
            } else {
                self.document(document.clone(), false)
            };
            self.take(reply, poll_hours).await;
            if n < polls {
                self.publisher().hour += poll_hours as f64;
            }
        }
        self.by_absence.told.stale = self.lacking(&document).await;
        self.by_absence.told.lost = self.lost().await;
    }

    /// Posts that the publisher has and the store never had, although it says that the history is
    /// complete.
    async fn lost(&self) -> usize {
        let record = self.store.feed(self.feed.no).await.unwrap();
        if record.completeness.history != History::Complete {
            return 0;
        }
        let had: HashSet<u32> = self.items.values().map(|(post, _)| *post).collect();
        let publisher = self.publisher();
        publisher.living().filter(|id| !had.contains(id)).count()
    }

    /// Posts of a document that the store lacks in this version.
    async fn lacking(&self, document: &Document) -> usize {
        let page = self.store.page(self.query("", Filter::Live)).await.unwrap();
        let live: HashSet<(u32, PostWords)> = page
            .items
            .iter()
            .filter_map(|item| Some((post(item)?, words(item.entry()?))))
            .collect();
        let shown = document.posts.iter();
        shown
            .map(|shown| (shown.id, document.words(shown)))
            .filter(|expect| !live.contains(expect))
            .count()
    }

    async fn score(mut self) -> Score {
        self.by_absence.told.requests += *self.asked.lock().unwrap();
        let publisher = self.publisher.lock().unwrap();
        let mut live: HashMap<u32, usize> = HashMap::new();
        self.items
            .values()
            .filter(|(_, lives)| *lives)
            .for_each(|(post, _)| *live.entry(*post).or_default() += 1);
        let missed: HashSet<u32> = self.missed.into_iter().collect();
        let is_past_the_end = |(number, (post, _)): (usize, &(u32, f64))| {
            let is_found = self.by_absence.found.contains(&number);
            !is_found
                && !publisher.is_alive(*post)
                && live.contains_key(post)
                && !missed.contains(post)
        };
        Score {
            deletions: publisher.deletions.len(),
            edits: publisher.edits,
            past_the_end: publisher
                .deletions
                .iter()
                .enumerate()
                .filter(|row| is_past_the_end(*row))
                .count(),
            twice: live.values().map(|items| items - 1).sum(),
            by_absence: self.by_absence.told,
            with_pages: Told::default(),
        }
    }
}

/// The client stack over the pages of a publisher, and the count of its requests.
fn upstream(
    publisher: &Arc<Mutex<Publisher>>,
    asked: &Arc<Mutex<usize>>,
    clock: Arc<Manual>,
) -> Upstream {
    let (publisher, asked) = (publisher.clone(), asked.clone());
    let wire = tower::service_fn(move |request: layers::Request| {
        *asked.lock().unwrap() += 1;
        let Page {
            status,
            text,
            location,
        } = publisher
            .lock()
            .unwrap()
            .page(post_at(request.uri().path()));
        let mut reply = Response::builder()
            .status(status)
            .header(header::CONTENT_TYPE, "text/html");
        if let Some(location) = location {
            reply = reply.header(header::LOCATION, location);
        }
        let reply = reply.body(whole(text)).unwrap();
        Box::pin(async { Ok(reply) }) as BoxFuture<'static, Result<layers::Reply, FetchError>>
    });
    let many = NonZeroU32::new(1_000_000).unwrap();
    let client = upstream_over(&ClientConfig::default(), Governor::new(many, many), wire);
    Upstream::new(client, Url::parse("https://me.example/").unwrap(), clock)
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

fn whole(text: String) -> layers::Body {
    Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// The post that an item is.
fn post(item: &Item) -> Option<u32> {
    post_at(item.entry()?.permalink()?)
}

/// The words of a post as they are served.
fn words(entry: &Entry) -> PostWords {
    let value = |text: &Text| text.value.clone();
    let content = entry.content.as_ref().map(|body| &body.text);
    let text = content.or(entry.summary.as_ref());
    PostWords {
        title: entry.title.as_ref().map(value).unwrap_or_default(),
        text: text.map(value).unwrap_or_default(),
        tag: entry
            .categories
            .first()
            .map(|category| category.term.clone()),
    }
}
