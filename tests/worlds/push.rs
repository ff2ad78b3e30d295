//! Consumers that are pushed: their subscriptions, and their callbacks, which take a push as
//! `docs/consumers/push.md` says; and what must be true of every push.

use super::{
    consumer::{Consumer, SharedConsumer, pull},
    everfeed_life::{Life, ROOT},
    mirror::{Told, t_of, text},
    mistakes::{ConsumerMistake, made},
    network::{Fate, broken, travel},
    plan::{HOUR, SECOND, Way, What},
    world::World,
};
use bytes::Bytes;
use everfeed::{
    hub::Callbacks,
    layers::{ConnectFault, FetchError, Request},
};
use futures_util::future::BoxFuture;
use http::{Method, Response};
use http_body_util::Full;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Duration,
};
use tokio::time::sleep;
use tower::util::BoxCloneSyncService;
use url::{Url, form_urlencoded};

/// Items in a push at most.
pub(crate) const PUSH_ITEMS_MAX: usize = 3;

/// The callbacks of all consumers, which outlive everfeed.
#[derive(Clone)]
pub(crate) struct CallbackSide {
    /// By their numbers.
    pub(crate) consumers: Vec<(usize, SharedConsumer)>,
    chains: Arc<Mutex<BTreeMap<usize, Chain>>>,
}

/// A subscription as its callback knows it.
#[derive(Default)]
pub(crate) struct Chain {
    /// Time at which its lease ends, in milliseconds; 0 before it was confirmed.
    lease_until_ms: u64,
    /// Position with which it was asked for, until that is confirmed.
    asked_from: Option<String>,
    /// True where its pushes would begin elsewhere than where its consumer is: that asks again.
    begins_elsewhere: bool,
    /// Cursors that everfeed may know to be acknowledged.
    acknowledged: BTreeSet<String>,
    /// The last of them, and the life of everfeed that heard it.
    last: Option<(u32, String)>,
    /// The latest cursor that a push followed on: everfeed had it on its disk.
    kept: String,
    /// Pushes under way now.
    under_way: usize,
    pub(crate) pushes: usize,
    pub(crate) pulls: usize,
}

impl CallbackSide {
    pub(crate) fn of(consumers: Vec<(usize, SharedConsumer)>) -> Self {
        Self {
            consumers,
            chains: Arc::default(),
        }
    }

    pub(crate) fn chain<T>(&self, no: usize, work: impl FnOnce(&mut Chain) -> T) -> T {
        let mut chains = self
            .chains
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        work(chains.entry(no).or_default())
    }

    /// Has a subscription be asked for anew where it may be lost. The others are pushed by those that
    /// they have.
    pub(crate) fn begin_rest(&self, world: &World) {
        let now_ms = world.now_ms();
        let mut chains = self
            .chains
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        for chain in chains.values_mut() {
            if may_lose_subscriptions(world) || chain.lease_until_ms < now_ms + 5 * HOUR {
                chain.lease_until_ms = 0;
            }
        }
    }

    /// The way to callbacks in one life of everfeed.
    pub(crate) fn service(
        &self,
        world: &Arc<World>,
        life: &Arc<OnceLock<Weak<Life>>>,
    ) -> Callbacks {
        let (side, world, life) = (self.clone(), world.clone(), life.clone());
        BoxCloneSyncService::new(tower::service_fn(move |request: Request| {
            let (side, world, life) = (side.clone(), world.clone(), life.clone());
            Box::pin(async move { side.asked(world, life, request).await })
                as BoxFuture<'static, Result<Response<Bytes>, FetchError>>
        }))
    }

    async fn asked(
        &self,
        world: Arc<World>,
        life: Arc<OnceLock<Weak<Life>>>,
        request: Request,
    ) -> Result<Response<Bytes>, FetchError> {
        let no = request
            .uri()
            .path()
            .rsplit('/')
            .next()
            .and_then(|no| no.parse().ok());
        let no: usize = no.unwrap_or(usize::MAX);
        world.point("before a request to a callback").await;
        let is_push = request.method() == Method::POST;
        if is_push {
            self.check_push(&world, no, &request);
        }
        let _under_way = is_push.then(|| UnderWay::begin(self, &world, no));
        let way = format!("to consumer {no}");
        let fate = Fate::of(&world, &way);
        if fate == Fate::Lost {
            return Err(FetchError::Connect(ConnectFault::Refused, "refused".into()));
        }
        if is_push && world.is_troubled(&way, world.plan.trouble / 2) {
            // It is refused before anybody looks at it.
            let refusal = Response::builder().status(503).header("retry-after", "30");
            return Ok(refusal.body(Bytes::new()).unwrap());
        }
        let last = text(request.headers(), "smart-feed-last");
        // What is on its way arrives, also when everfeed waits for it no more.
        let acting = {
            let (side, world, way) = (self.clone(), world.clone(), way.clone());
            tokio::spawn(async move {
                travel(&world, &way, fate).await;
                let Some(life) = life.get().and_then(Weak::upgrade) else {
                    return status(503);
                };
                if fate == Fate::Doubled {
                    drop(side.act(&world, &life, no, &request).await);
                }
                side.act(&world, &life, no, &request).await
            })
        };
        let Ok(answer) = acting.await else {
            return Err(broken());
        };
        world.point("behind an answer of a callback").await;
        if fate == Fate::AnswerLost {
            return Err(broken());
        }
        if is_push && answer.status().is_success() {
            let life = world.state().life;
            self.chain(no, |chain| {
                chain.acknowledged.insert(last.clone());
                chain.last = Some((life, last));
            });
        }
        Ok(answer)
    }

    /// Checks the page in a push: it agrees with the headers, is no larger than it may be, and leads to
    /// no page behind it (SF-84).
    fn check_page(&self, world: &World, no: usize, request: &Request) {
        let Ok(page) = serde_json::from_slice::<Value>(request.body()) else {
            return world.fault(format!("push to consumer {no}: it is no JSON"));
        };
        let header = |name| Value::from(text(request.headers(), name));
        let agrees = page["prev_cursor"] == header("smart-feed-prev")
            && page["last_cursor"] == header("smart-feed-last");
        let items = page["items"].as_array().map_or(0, Vec::len);
        if !agrees || page.get("next").is_some() || items > PUSH_ITEMS_MAX {
            let page = String::from_utf8_lossy(request.body()).into_owned();
            world.fault(format!("push to consumer {no}: {items} items in {page}"));
        }
    }

    /// Checks a push as everfeed sends it: it follows on an acknowledged cursor, in one life on the
    /// last one.
    fn check_push(&self, world: &World, no: usize, request: &Request) {
        self.check_page(world, no, request);
        let prev = text(request.headers(), "smart-feed-prev");
        let last = text(request.headers(), "smart-feed-last");
        let told = Told::of(request.headers());
        let life = world.state().life;
        let fault = self.chain(no, |chain| {
            chain.pushes += 1;
            if told.cursor == "ahead" || told.cursor == "reset" {
                chain.acknowledged.insert(prev.clone());
                chain.kept.clear();
                return None;
            }
            if t_of(&prev) < t_of(&chain.kept) && !may_lose_subscriptions(world) {
                return Some(format!("prev is {prev:?}, and was {:?} before", chain.kept));
            }
            chain.kept.clone_from(&prev);
            if !chain.acknowledged.contains(&prev) {
                return Some(format!("prev {prev:?} was never acknowledged"));
            }
            match &chain.last {
                Some((of, known)) if *of == life && *known != prev => {
                    Some(format!("prev is {prev:?} after {known:?} was acknowledged"))
                }
                _ if t_of(&last) < t_of(&prev) => {
                    Some(format!("it goes from {prev} back to {last}"))
                }
                _ => None,
            }
        });
        if let Some(why) = fault {
            world.fault(format!("push to consumer {no}: {why}"));
        }
    }

    /// Acts on a request as the consumer does.
    async fn act(
        &self,
        world: &Arc<World>,
        life: &Arc<Life>,
        no: usize,
        request: &Request,
    ) -> Response<Bytes> {
        let Some((_, consumer)) = self.consumers.iter().find(|(of, _)| *of == no) else {
            return status(404);
        };
        let mut consumer = consumer.lock().await;
        let away = world.state().away_until_ms.get(&no).copied();
        if away.is_some_and(|until| world.now_ms() < until) {
            return status(503);
        }
        if request.method() == Method::POST {
            return self.take_push(world, life, &mut consumer, request).await;
        }
        self.answer_question(world, &consumer, request)
    }

    fn answer_question(
        &self,
        world: &World,
        consumer: &Consumer,
        request: &Request,
    ) -> Response<Bytes> {
        let no = consumer.plan.no;
        let url = Url::parse(&request.uri().to_string()).unwrap();
        let fields: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let mode = field("hub.mode");
        if mode == "denied" {
            world.trace(&format!(
                "consumer {no} is told that its subscription ended"
            ));
            self.chain(no, |chain| chain.lease_until_ms = 0);
            return status(200);
        }
        if mode != "subscribe" {
            return status(404);
        }
        let secs: u64 = field("hub.lease_seconds").parse().unwrap_or_default();
        let until_ms = world.now_ms() + secs * SECOND;
        // A subscription that ended unheard is no renewal, and begins at the head.
        let begins_at = field("hub.cursor");
        let begins_elsewhere = begins_at != consumer.mirror.cursor;
        self.chain(no, |chain| {
            chain.acknowledged.insert(begins_at);
            chain.lease_until_ms = until_ms;
            chain.begins_elsewhere = begins_elsewhere;
            if begins_elsewhere {
                chain.last = None;
                chain.kept.clear();
            }
            if let Some(from) = chain.asked_from.clone() {
                chain.acknowledged.insert(from);
                chain.last = None;
                chain.kept.clear();
            }
        });
        world.trace(&format!("consumer {no} confirms a lease of {secs} s"));
        let answer = Response::builder().header("x-hub-confirms", "cursor");
        answer.body(Bytes::from(field("hub.challenge"))).unwrap()
    }

    async fn take_push(
        &self,
        world: &World,
        life: &Life,
        consumer: &mut Consumer,
        request: &Request,
    ) -> Response<Bytes> {
        let no = consumer.plan.no;
        let prev = text(request.headers(), "smart-feed-prev");
        let last = text(request.headers(), "smart-feed-last");
        let told = Told::of(request.headers());
        let held = consumer.mirror.cursor.clone();
        let is_anew = matches!(told.cursor.as_str(), "ahead" | "reset");
        world.trace(&format!(
            "consumer {no} at {held} is pushed from {prev} to {last} {}",
            told.cursor
        ));
        if last == held && !is_anew && consumer.mirror.is_of(&told.generation) {
            return status(204);
        }
        // What is read anew ends with a pull: only that tells what is gone.
        let is_read_anew = consumer.mirror.is_reading_anew();
        if prev == held && !is_anew && !is_read_anew && consumer.mirror.is_of(&told.generation) {
            let Ok(page) = serde_json::from_slice::<Value>(request.body()) else {
                world.fault(format!("consumer {no} is pushed what is no JSON"));
                return status(500);
            };
            consumer.mirror.know(&told.generation);
            for item in page["items"].as_array().into_iter().flatten() {
                if let Err(why) = consumer.mirror.apply(item) {
                    world.fault(format!("consumer {no}: {why}"));
                }
            }
            consumer.mirror.cursor = last;
            consumer.check(world, life);
            return status(204);
        }
        if !is_anew && consumer.mirror.is_of(&told.generation) && t_of(&last) < t_of(&held) {
            return status(204);
        }
        self.chain(no, |chain| chain.pulls += 1);
        match pull(world, life, consumer, 0).await {
            Ok(()) => status(204),
            Err(_) if made(ConsumerMistake::ConfirmsUnread) => {
                consumer.mirror.cursor = last;
                status(204)
            }
            Err(_) => status(503),
        }
    }
}

/// A push that is under way. There is one at a time.
struct UnderWay {
    side: CallbackSide,
    no: usize,
}

impl UnderWay {
    fn begin(side: &CallbackSide, world: &World, no: usize) -> Self {
        let now = side.chain(no, |chain| {
            chain.under_way += 1;
            chain.under_way
        });
        if now > 1 {
            world.fault(format!("{now} pushes to consumer {no} are under way"));
        }
        Self {
            side: side.clone(),
            no,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.side.chain(self.no, |chain| chain.under_way -= 1);
    }
}

fn status(status: u16) -> Response<Bytes> {
    Response::builder()
        .status(status)
        .body(Bytes::new())
        .unwrap()
}

/// Subscribes where a lease lacks or ends soon, and waits a while.
pub(crate) async fn keep_subscribed(world: &World, life: &Life, consumer: &SharedConsumer) {
    let (no, view, feed, cursor, asks_secs) = {
        let consumer = consumer.lock().await;
        let Way::Push { lease_secs } = consumer.plan.way else {
            return;
        };
        let cursor = consumer.mirror.cursor.clone();
        (
            consumer.plan.no,
            consumer.view(),
            consumer.feed(),
            cursor,
            lease_secs,
        )
    };
    let side = life.callback_side();
    let now_ms = world.now_ms();
    let (until_ms, begins_elsewhere) =
        side.chain(no, |chain| (chain.lease_until_ms, chain.begins_elsewhere));
    let is_quiet = world.state().is_quiet;
    let asks_secs = if is_quiet { 10 * 86_400 } else { asks_secs };
    if until_ms > now_ms + asks_secs * SECOND / 4 && !begins_elsewhere {
        return sleep(Duration::from_secs(if is_quiet { 300 } else { 30 })).await;
    }
    // A subscription that was lost with an older copy begins where its consumer is.
    let may_be_lost = until_ms <= now_ms || begins_elsewhere || may_lose_subscriptions(world);
    let since = may_be_lost.then(|| cursor.clone());
    let form = form(
        no,
        &format!("{ROOT}/feeds/{feed}.json?{view}"),
        asks_secs,
        since.as_deref(),
    );
    side.chain(no, |chain| chain.asked_from = since);
    let request = http::Request::post("/hub")
        .header("host", "feeds.example")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Full::new(Bytes::from(form)))
        .unwrap();
    let answer = life.ask(&format!("consumer {no}"), request).await;
    let told = answer.as_ref().map_or(0, |answer| answer.status);
    world.trace(&format!("consumer {no} subscribes from {cursor:?}: {told}"));
    sleep(Duration::from_secs(60)).await;
}

/// The form of a request to subscribe.
fn form(no: usize, topic: &str, lease_secs: u64, since: Option<&str>) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("hub.mode", "subscribe")
        .append_pair("hub.topic", topic)
        .append_pair(
            "hub.callback",
            &format!("http://reader{no}.example/cb/{no}"),
        )
        .append_pair("hub.lease_seconds", &lease_secs.to_string());
    if let Some(since) = since {
        form.append_pair("hub.since", &format!("cursor:{since}"));
    }
    form.finish()
}

/// True in a world in which a subscription may be gone before its lease ends: with an older copy, or
/// with a lease that was granted while the clock was behind.
fn may_lose_subscriptions(world: &World) -> bool {
    let mut deeds = world.plan.deeds.iter();
    deeds.any(|deed| match deed.what {
        What::Restore { .. } => true,
        What::Clock { ahead_secs, .. } => ahead_secs < 0,
        _ => false,
    })
}
