//! A scripted publisher, the house that polls it every hour over the real client stack, and a
//! consumer that follows `since=last_cursor`; no sockets, and no time but the one that is set.

use super::document::Document;
use bytes::Bytes;
use everfeed::{
    clock::{Clock as _, Manual},
    feed::{
        absence::{self, WindowEvent},
        item::{Content, Item, ItemId},
        order::Order,
        page::PageQuery,
        position::Position,
        schedule::PollState,
        stamp::Stamp,
    },
    ingest::{Context, FeedSpec, PollSettings, Upstream, checks::Check, polls::Poll},
    layers::{self, ClientConfig, FetchError, Governor, client::upstream_over},
    notify::Notify,
    store::{Store, memory::Memory},
};
use everfeed_adapters::Digest;
use futures_util::future::BoxFuture;
use http::{Response, header};
use http_body_util::{BodyExt as _, Full};
use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use url::Url;

/// 2026-02-01, after all letters.
const START_SECS: u64 = 1_769_904_000;

/// URL of the feed.
pub(crate) const URL: &str = "http://blog.example/index.xml";

/// A feed that is polled.
pub(crate) struct Blog {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) notify: Arc<Notify>,
    pub(crate) clock: Arc<Manual>,
    pub(crate) feed: FeedSpec,
    publisher: Arc<Mutex<Publisher>>,
    context: Context,
    upstream: Upstream,
    state: PollState,
    /// The last name of each item, and whether it was alive.
    known: HashMap<ItemId, (String, bool)>,
    cursor: String,
    /// The last observation and the number of gap markers that were told of.
    told: (u64, usize),
}

/// The publisher's machine.
struct Publisher {
    document: Document,
    /// The URL to which the feed has moved for good.
    moved_to: Option<String>,
    /// Status and text of pages, by the name of the post; of any other a page that says nothing.
    pages: HashMap<String, (u16, String)>,
    /// Requests for the document without validators so far.
    audits: usize,
}

impl Blog {
    /// A feed whose first document was read. Pages of missing posts are not asked for.
    pub(crate) async fn of(document: Document) -> Self {
        Self::named("blog", document, false).await
    }

    /// A feed of which also the pages of missing posts are asked for.
    pub(crate) async fn probed(document: Document) -> Self {
        Self::named("blog", document, true).await
    }

    async fn named(name: &str, document: Document, permalink_checks: bool) -> Self {
        let publisher = Publisher {
            document,
            moved_to: None,
            pages: HashMap::new(),
            audits: 0,
        };
        let publisher = Arc::new(Mutex::new(publisher));
        let clock = Arc::new(Manual::at(START_SECS * 1_000_000));
        let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
        let many = NonZeroU32::new(1_000_000).unwrap();
        let answering = publisher.clone();
        let wire = tower::service_fn(move |request: layers::Request| {
            let reply = answering.lock().unwrap().answer(&request).map(whole);
            Box::pin(async { Ok(reply) }) as BoxFuture<'static, Result<layers::Reply, FetchError>>
        });
        let client = upstream_over(&ClientConfig::default(), Governor::new(many, many), wire);
        let upstream = Upstream::new(
            client,
            Url::parse("https://me.example/").unwrap(),
            clock.clone(),
        );
        let notify = Arc::new(Notify::new());
        let context = Context::new(store.clone(), notify.clone(), clock.clone());
        let context = Context {
            jitter: || 0.0,
            ..context
        };
        let no = store.register(name, name).await.unwrap().no;
        let mut feed = FeedSpec::new(no, name, Url::parse(URL).unwrap());
        feed.poll = PollSettings {
            min_secs: Some(3600),
            max_secs: 3600,
        };
        feed.deletions.permalink_checks = permalink_checks;
        let state = PollState::unpolled(URL);
        let (known, cursor, told) = (HashMap::new(), String::new(), (0, 0));
        let mut blog = Self {
            store,
            notify,
            clock,
            feed,
            publisher,
            context,
            upstream,
            state,
            known,
            cursor,
            told,
        };
        let first = blog.poll().await;
        assert!(
            first.split(' ').all(|word| word.starts_with('+')),
            "{first}"
        );
        blog
    }

    /// The next poll finds this document.
    pub(crate) async fn shows(&mut self, document: Document) -> String {
        self.publisher.lock().unwrap().document = document;
        self.clock.advance(Duration::from_secs(3600));
        self.poll().await
    }

    /// So many polls more find the same.
    pub(crate) async fn stays(&mut self, hours: usize) -> String {
        let mut told = Vec::new();
        for hour in 1..=hours {
            self.clock.advance(Duration::from_secs(3600));
            let now = self.poll().await;
            if !now.is_empty() {
                told.push(format!("{hour} h: {now}"));
            }
        }
        told.join("; ")
    }

    /// Nobody polls for so long.
    pub(crate) fn sleeps(&self, hours: u64) {
        self.clock.advance(Duration::from_secs(hours * 3600));
    }

    /// Sets the page of a post.
    pub(crate) fn page(&self, name: &str, status: u16, text: &str) {
        self.publisher
            .lock()
            .unwrap()
            .pages
            .insert(format!("/{name}.html"), (status, text.to_owned()));
    }

    /// Sets the status of the front page.
    pub(crate) fn front_page(&self, status: u16) {
        self.publisher
            .lock()
            .unwrap()
            .pages
            .insert("/".to_owned(), (status, String::new()));
    }

    /// From now on the feed answers elsewhere, and says so where it was.
    pub(crate) fn moves_to(&self, url: &str) {
        self.publisher.lock().unwrap().moved_to = Some(url.to_owned());
    }

    /// Requests for the document without validators so far.
    pub(crate) fn audits(&self) -> usize {
        self.publisher.lock().unwrap().audits
    }

    /// The feed's memory for the sake of what is missing.
    pub(crate) async fn absence(&self) -> absence::AbsenceState {
        self.store
            .known(self.feed.no, Vec::new())
            .await
            .unwrap()
            .window
            .absence
    }

    pub(crate) fn now(&self) -> Stamp {
        Stamp::from_micros(self.clock.now_us())
    }

    async fn poll(&mut self) -> String {
        let stop = CancellationToken::new();
        let polled = Poll::new(&self.context, &self.feed, &self.state)
            .run(&self.upstream, &stop)
            .await
            .expect("nobody stops it");
        self.state = polled.state;
        while let Some(at) = self
            .store
            .feed(self.feed.no)
            .await
            .unwrap()
            .window
            .next_check_at
            && at <= self.now()
        {
            Check::new(&self.context, &self.feed, &self.state)
                .run(&self.upstream, &stop)
                .await
                .unwrap();
        }
        let mut told = self.events().await;
        told.extend(self.changes().await);
        told.join(" ")
    }

    /// Events of the window as a whole.
    async fn events(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        if self.state.health.failures > 0 {
            told.push("refused".to_owned());
        }
        let observations = self.store.observations(self.feed.no).await.unwrap();
        let last = self.told.0;
        for (number, observed) in observations
            .into_iter()
            .filter(|(number, _)| *number > last)
        {
            self.told.0 = number;
            told.extend(
                observed
                    .events
                    .iter()
                    .filter_map(|event| word(*event))
                    .map(str::to_owned),
            );
        }
        let gaps = self
            .store
            .feed(self.feed.no)
            .await
            .unwrap()
            .completeness
            .gaps
            .len();
        told.extend((self.told.1..gaps).map(|_| "gap".to_owned()));
        self.told.1 = gaps;
        told
    }

    /// The changes that a consumer reads behind its cursor.
    async fn changes(&mut self) -> Vec<String> {
        let since = (!self.cursor.is_empty()).then(|| Position::of_cursor(&self.cursor));
        let query = PageQuery {
            since,
            ..PageQuery::all(self.feed.no, Order::MODIFIED)
        };
        let page = self.store.page(query).await.unwrap();
        self.cursor = page.last_cursor;
        let told = page.items.iter().map(|item| self.change(item)).collect();
        for item in page.items {
            let name = name(&item).unwrap_or_else(|| self.known[&item.id].0.clone());
            self.known.insert(item.id, (name, !item.is_gone()));
        }
        told
    }

    fn change(&self, item: &Item) -> String {
        let before = self.known.get(&item.id);
        match (&item.content, before, name(item)) {
            (Content::Gone { reason, .. }, Some((name, _)), _) => {
                format!("-{name} {}", reason.code())
            }
            (Content::Gone { .. }, None, _) => "a tombstone of what nobody saw".to_owned(),
            (Content::Live(_), before, name) => {
                let sign = match before {
                    None => '+',
                    Some((_, true)) => '*',
                    Some((_, false)) => '^',
                };
                format!("{sign}{}", name.unwrap_or_default())
            }
        }
    }
}

fn whole(body: Vec<u8>) -> layers::Body {
    Full::new(Bytes::from(body))
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Gaps are told of by their markers.
fn word(event: WindowEvent) -> Option<&'static str> {
    match event {
        WindowEvent::Gap
        | WindowEvent::Rebaselined
        | WindowEvent::QuarantineEnded
        | WindowEvent::QuarantineDecided => None,
        WindowEvent::Quarantined => Some("held"),
        WindowEvent::DailyLimit => Some("capped"),
        WindowEvent::Doubted => Some("doubted"),
        WindowEvent::AbsenceOff => Some("disbelieved"),
        WindowEvent::Reformatted => Some("reformatted"),
        WindowEvent::Pinned => Some("sticky"),
    }
}

/// The last word of the title.
fn name(item: &Item) -> Option<String> {
    let title = &item.entry()?.title.as_ref()?.value;
    Some(
        title
            .split_whitespace()
            .last()
            .unwrap_or_default()
            .to_owned(),
    )
}

impl Publisher {
    fn answer(&mut self, request: &layers::Request) -> Response<Vec<u8>> {
        let url = request.uri().to_string();
        if let Some(to) = self
            .moved_to
            .as_ref()
            .filter(|to| url == URL && **to != url)
        {
            return Response::builder()
                .status(301)
                .header(header::LOCATION, to)
                .body(Vec::new())
                .unwrap();
        }
        if url != URL && self.moved_to.as_ref() != Some(&url) {
            let (status, text) = self
                .pages
                .get(request.uri().path())
                .cloned()
                .unwrap_or((200, String::new()));
            let answer = Response::builder()
                .status(status)
                .header(header::CONTENT_TYPE, "text/html");
            return answer.body(text.into_bytes()).unwrap();
        }
        let document = &self.document;
        let own = format!("\"{}\"", Digest::of(&document.body));
        let etag = document.etag.unwrap_or(&own);
        let asked = request.headers().get(header::IF_NONE_MATCH);
        self.audits += usize::from(asked.is_none());
        let answer = Response::builder().header(header::ETAG, etag);
        match (asked, &document.delta) {
            (Some(asked), _) if asked == etag => answer.status(304).body(Vec::new()),
            (Some(_), Some((status, part))) => {
                let answer = answer
                    .status(*status)
                    .header(header::CONTENT_TYPE, document.content_type);
                let answer = if *status == 226 {
                    answer.header("im", "feed")
                } else {
                    answer
                };
                answer.body(part.clone())
            }
            _ => answer
                .status(200)
                .header(header::CONTENT_TYPE, document.content_type)
                .body(document.body.clone()),
        }
        .unwrap()
    }
}
