//! A consumer and the ways in which it reads: it pulls, waits, or follows a stream. Pushes are in
//! `push.rs`.

use super::{
    everfeed_life::{GROUP, Life, feed_name},
    mirror::{Mirror, Next, Told, is_in},
    mistakes::{ConsumerMistake, made},
    plan::{ConsumerPlan, SECOND, Shown, Source, Way},
    world::World,
};
use bytes::Bytes;
use everfeed::edge::body::ServeBody;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Mutex, time::sleep};

/// A consumer, which outlives everfeed.
pub(crate) struct Consumer {
    pub(crate) plan: ConsumerPlan,
    pub(crate) mirror: Mirror,
}

/// A consumer that several tasks act for.
pub(crate) type SharedConsumer = Arc<Mutex<Consumer>>;

/// Pages after which a consumer that reads anew gives up for now.
const PAGES_MAX: usize = 500;

impl Consumer {
    pub(crate) fn new(plan: &ConsumerPlan) -> Self {
        Self {
            plan: plan.clone(),
            mirror: Mirror::default(),
        }
    }

    /// The name of the feed that it reads.
    pub(crate) fn feed(&self) -> String {
        name_of(self.plan.source)
    }

    /// Query of its view.
    pub(crate) fn view(&self) -> String {
        let filter = self
            .plan
            .filter
            .map(|category| format!("&category={}", category.name()));
        format!("order=modified{}", filter.unwrap_or_default())
    }

    /// Takes a page, and checks what it holds then.
    fn take(&mut self, world: &World, life: &Life, told: &Told, page: &Value) -> Option<Next> {
        let before = self.mirror.clone();
        let next = match self.mirror.take(told, page) {
            Ok(next) => next,
            Err(why) => {
                world.fault(format!("consumer {}: {why}", self.plan.no));
                return None;
            }
        };
        if self.crashes(world) {
            // What it holds is saved before the position, so that the page comes again.
            world.trace(&format!("consumer {} crashes", self.plan.no));
            let after = std::mem::replace(&mut self.mirror, before);
            if made(ConsumerMistake::CursorFirst) {
                self.mirror.cursor = after.cursor;
            } else if after.anew > self.mirror.anew && !after.is_reading_anew() {
                // It forgets items and position in one write.
                self.mirror.forget_all(Some(&told.generation));
            } else if !after.is_reading_anew() && !self.mirror.is_reading_anew() {
                self.mirror.items = after.items;
            }
        }
        self.check(world, life);
        Some(next)
    }

    /// Checks what it holds.
    pub(crate) fn check(&self, world: &World, life: &Life) {
        if let Err(why) = self.mirror.check(life, &self.feed(), self.plan.filter) {
            world.fault(format!("consumer {}: {why}", self.plan.no));
        }
    }

    fn crashes(&self, world: &World) -> bool {
        let crashing = &mut world.state().crashing;
        let before = crashing.len();
        crashing.retain(|no| *no != self.plan.no);
        crashing.len() < before
    }
}

/// The name of a feed that is read.
pub(crate) fn name_of(source: Source) -> String {
    match source {
        Source::Feed(no) => feed_name(no),
        Source::Group => GROUP.to_owned(),
    }
}

/// Reads until everything is read; an error says that it has to come again.
pub(crate) async fn pull(
    world: &World,
    life: &Life,
    consumer: &mut Consumer,
    timeout_secs: u64,
) -> Result<(), String> {
    let no = consumer.plan.no;
    let max = match consumer.plan.way {
        Way::Pull { max, .. } | Way::LongPoll { max, .. } => max,
        Way::Stream | Way::Push { .. } => 5,
    };
    for _ in 0..PAGES_MAX {
        let url = format!(
            "/feeds/{}.json?{}&max={max}&timeout={timeout_secs}&since=cursor:{}",
            consumer.feed(),
            consumer.view(),
            consumer.mirror.cursor
        );
        let configuration = world.state().configurations;
        let answer = life.ask(&format!("consumer {no}"), get(&url)).await;
        let answer = answer.map_err(|why| why.to_string())?;
        if answer.status != 200 {
            return Err(format!("status {}", answer.status));
        }
        let told = Told::of(&answer.headers);
        let Ok(page) = serde_json::from_slice::<Value>(&answer.body) else {
            world.fault(format!("consumer {no} gets a page that is no JSON"));
            return Err("no JSON".to_owned());
        };
        let items = page["items"].as_array().map_or(0, Vec::len);
        if items > 0 || !told.cursor.is_empty() {
            world.trace(&format!(
                "consumer {no} reads {items} items from {:?} to {} {}",
                consumer.mirror.cursor, page["last_cursor"], told.cursor
            ));
        }
        check_rights(world, consumer.plan.source, configuration, &page);
        if items as u64 > max {
            world.fault(format!(
                "consumer {no} asked for {max} items and gets {items}"
            ));
        }
        match consumer.take(world, life, &told, &page) {
            Some(Next::Page) => {}
            Some(Next::Wait) => return Ok(()),
            None => return Err("a rule does not hold".to_owned()),
        }
    }
    world.fault(format!("consumer {no} never comes to the end"));
    Err("no end".to_owned())
}

/// Checks that nothing is in a page that its reader may not see, unless the configuration has changed
/// meanwhile.
pub(crate) fn check_rights(world: &World, source: Source, configuration: u32, page: &Value) {
    let Source::Feed(no) = source else { return };
    let shown = {
        let state = world.state();
        if state.configurations != configuration || state.is_reloading {
            return;
        }
        state.configured.get(&no).copied()
    };
    let only = match shown {
        Some(Shown::All) => return,
        Some(Shown::Only(category)) => Some(category),
        Some(Shown::Nothing) | None => None,
    };
    let items = page["items"].as_array().into_iter().flatten();
    for item in items.filter(|item| item["deleted"] != Value::Bool(true)) {
        let title = item["object"]["displayName"].as_str().unwrap_or_default();
        if only.is_none_or(|only| !is_in(title, Some(only))) {
            world.fault(format!(
                "`{title}` of feed {no} is shown, and only {shown:?} may be"
            ));
        }
    }
}

/// A request for a path.
pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    let request = Request::get(path).header("host", "feeds.example");
    request.body(Full::default()).unwrap()
}

/// Acts for a consumer, until everfeed ends.
pub(crate) async fn act(world: Arc<World>, life: Arc<Life>, consumer: SharedConsumer) {
    let (no, way) = {
        let consumer = consumer.lock().await;
        (consumer.plan.no, consumer.plan.way)
    };
    let begin_ms = world.draw(&format!("begin {no}"), |chance| chance.within(0, 5000));
    sleep(Duration::from_millis(begin_ms)).await;
    loop {
        let away = world
            .state()
            .away_until_ms
            .get(&no)
            .copied()
            .unwrap_or_default();
        world.until(away).await;
        let is_quiet = world.state().is_quiet;
        match way {
            Way::Pull { every_secs, .. } => {
                let pulled = pull(&world, &life, &mut *consumer.lock().await, 0).await;
                let every = if is_quiet { 600 } else { every_secs };
                sleep(Duration::from_secs(if pulled.is_ok() { every } else { 20 })).await;
            }
            Way::LongPoll { timeout_secs, .. } => {
                let timeout_secs = if is_quiet { 300 } else { timeout_secs };
                let waited = pull(&world, &life, &mut *consumer.lock().await, timeout_secs).await;
                sleep(Duration::from_secs(if waited.is_ok() { 0 } else { 20 })).await;
            }
            Way::Stream => {
                let ended = follow(&world, &life, &consumer).await;
                world.trace(&format!("consumer {no}: its stream ends: {ended:?}"));
                sleep(Duration::from_secs(if ended.is_ok() { 2 } else { 20 })).await;
            }
            Way::Push { .. } => super::push::keep_subscribed(&world, &life, &consumer).await,
        }
    }
}

/// Follows a stream of events until it ends.
async fn follow(world: &World, life: &Life, shared: &SharedConsumer) -> Result<(), String> {
    let (no, url) = {
        let consumer = shared.lock().await;
        let (feed, view) = (consumer.feed(), consumer.view());
        let cursor = &consumer.mirror.cursor;
        let url = format!("/feeds/{feed}.events?{view}&since=cursor:{cursor}");
        (consumer.plan.no, url)
    };
    let way = format!("consumer {no}");
    let answer = life
        .open(&way, get(&url))
        .await
        .map_err(|why| why.to_string())?;
    if answer.status() != 200 {
        return Err(format!("status {}", answer.status()));
    }
    let told = Told::of(answer.headers());
    {
        let mirror = &mut shared.lock().await.mirror;
        if !mirror.is_of(&told.generation) {
            world.trace(&format!("consumer {no} begins its stream anew"));
            mirror.forget_all(Some(&told.generation));
            return Ok(());
        }
        mirror.know(&told.generation);
    }
    let ends_at_ms = world.now_ms() + world.draw(&way, |chance| chance.within(10, 3600)) * SECOND;
    let mut body: ServeBody = answer.into_body();
    let mut events = Events::default();
    loop {
        let left = Duration::from_millis(ends_at_ms.saturating_sub(world.now_ms()));
        let Ok(frame) = tokio::time::timeout(left, body.frame()).await else {
            return Ok(());
        };
        let Some(Ok(frame)) = frame else {
            return Ok(());
        };
        let mut data = frame.into_data().unwrap_or_default();
        let breaks = world.is_troubled(&way, world.plan.trouble / 4);
        if breaks {
            // It breaks within these bytes.
            let cut = world.draw(&way, |chance| chance.below(data.len() as u64));
            data.truncate(cut as usize);
        }
        let consumer = &mut *shared.lock().await;
        let before = consumer.mirror.cursor.clone();
        if let Err(why) = events.take(&data, &mut consumer.mirror) {
            world.fault(format!("consumer {no}: {why}"));
            return Err(why);
        }
        if consumer.mirror.cursor != before {
            let cursor = &consumer.mirror.cursor;
            world.trace(&format!("consumer {no} streams to {cursor}"));
        }
        consumer.check(world, life);
        if breaks {
            return Ok(());
        }
    }
}

/// Events that come in, as a browser reads them.
#[derive(Default)]
struct Events {
    text: Vec<u8>,
}

impl Events {
    /// Takes bytes, and applies the events that are whole.
    fn take(&mut self, bytes: &[u8], mirror: &mut Mirror) -> Result<(), String> {
        self.text.extend_from_slice(bytes);
        while let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = self.text.drain(..end + 2).collect();
            let event = String::from_utf8_lossy(&event).into_owned();
            apply(&event, mirror)?;
        }
        Ok(())
    }
}

fn apply(event: &str, mirror: &mut Mirror) -> Result<(), String> {
    let field = |name: &str| {
        let mut lines = event.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    if let Some(data) = field("data") {
        let data: Value = serde_json::from_str(data).map_err(|why| why.to_string())?;
        if field("event") == Some("reset") {
            if data["cursor"] != "time" {
                mirror.forget_all(None);
            }
        } else {
            mirror.apply(&data)?;
        }
    }
    if let Some(cursor) = field("id") {
        cursor.clone_into(&mut mirror.cursor);
    }
    Ok(())
}
