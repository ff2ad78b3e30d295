//! Streams of events: what a browser with an `EventSource` is told, in which order, and from where
//! it goes on.
//!
//! Rows: SF-3, SF-91; D-8, D-10; HTML section 9.2.

use super::rig::{Answer, Opened, Site};
use crate::{
    auth::{
        AccessSettings, Accounts,
        testing::{ALICE, BOB, accounts},
    },
    catalog::RegistrationProgress,
    edge::client_address::PeerAddress,
    feed::{
        order::Order,
        reconcile::{Change, Put, PutKind},
    },
    readers::testing::{add, delete, edit, id, revive},
    serve::{
        Config,
        routing::{router::Router, stack::stack},
    },
    telemetry::Metrics,
};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tower::ServiceExt as _;

/// Events as a browser reads them from the lines of a stream (HTML section 9.2.6).
#[derive(Clone, Debug, Default)]
struct EventSource {
    last_id: String,
    retry_ms: Option<u64>,
    comments: usize,
    events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq)]
struct Event {
    kind: String,
    id: String,
    data: String,
}

impl EventSource {
    fn read(&mut self, text: &str) {
        assert!(text.ends_with("\n\n"), "no event is cut: {text:?}");
        for block in text.split_terminator("\n\n") {
            let (mut kind, mut data) = (String::from("message"), Vec::new());
            for line in block.split('\n') {
                let (field, value) = line.split_once(':').unwrap_or((line, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                match field {
                    "" => self.comments += 1,
                    "id" => value.clone_into(&mut self.last_id),
                    "event" => value.clone_into(&mut kind),
                    "data" => data.push(value),
                    "retry" => self.retry_ms = Some(value.parse().unwrap()),
                    other => panic!("{other} is no field"),
                }
            }
            if !data.is_empty() {
                self.events.push(Event {
                    kind,
                    id: self.last_id.clone(),
                    data: data.join("\n"),
                });
            }
        }
    }

    fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Kinds and items.
    fn told(&mut self) -> Vec<(String, String)> {
        let item = |event: &Event| {
            let item: Value = serde_json::from_str(&event.data).unwrap();
            item["id"].as_str().unwrap_or_default().to_owned()
        };
        self.take()
            .iter()
            .map(|event| (event.kind.clone(), item(event)))
            .collect()
    }
}

fn messages(numbers: &[u32]) -> Vec<(String, String)> {
    numbers
        .iter()
        .map(|n| ("message".to_owned(), id(*n)))
        .collect()
}

/// A stream, and the events that a browser reads from it.
struct Listening {
    opened: Opened,
    source: EventSource,
}

impl Listening {
    async fn to(site: &Site, target: &str, headers: &[(&str, &str)]) -> Self {
        let opened = site.open(target, headers).await;
        assert_eq!(opened.status, 200, "{target}");
        let mut listening = Self {
            opened,
            source: EventSource::default(),
        };
        listening.listen().await;
        listening
    }

    /// Reads what is there now; the number of writes that it took, `None` at the end of the stream.
    async fn listen(&mut self) -> Option<usize> {
        self.listen_for(Duration::from_millis(1)).await
    }

    async fn listen_for(&mut self, time: Duration) -> Option<usize> {
        let mut writes = 0;
        let end = tokio::time::sleep(time);
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                frame = self.opened.frame() => match frame {
                    Some(bytes) => {
                        writes += 1;
                        self.source.read(std::str::from_utf8(&bytes).unwrap());
                    }
                    None => return None,
                },
                () = &mut end => return Some(writes),
            }
        }
    }
}

async fn head(site: &Site) -> String {
    site.page("order=-modified&max=1").await["last_cursor"]
        .as_str()
        .unwrap()
        .to_owned()
}

const EVENTS: (&str, &str) = ("accept", "text/event-stream");

#[tokio::test(start_paused = true)]
async fn an_item_is_an_event_with_the_cursor_behind_it_and_the_data_of_a_page() {
    let site = Site::of(1..=3).await;
    site.rig
        .change(vec![delete(2), edit(1, "new\r\ntitle\u{2028}")])
        .await;
    for order in ["modified", "created"] {
        let mut stream =
            Listening::to(&site, &format!("/feeds/blog.events?order={order}"), &[]).await;
        let page = site.page(&format!("order={order}")).await;
        let items = page["items"].as_array().unwrap();
        let events = stream.source.take();
        assert_eq!(events.len(), items.len());
        for (n, (event, item)) in events.iter().zip(items).enumerate() {
            assert_eq!(serde_json::from_str::<Value>(&event.data).unwrap(), *item);
            assert!(page_holds(&site, order, item, &event.data).await);
            assert_eq!(
                event.kind,
                if item["verb"] == "delete" {
                    "delete"
                } else {
                    "message"
                }
            );
            let up_to = site.page(&format!("order={order}&max={}", n + 1)).await;
            assert_eq!(event.id, up_to["last_cursor"].as_str().unwrap());
        }
        assert!((1000..=5000).contains(&stream.source.retry_ms.unwrap()));
        let header = |name: &str| {
            stream
                .opened
                .headers
                .get(name)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(header("content-type"), "text/event-stream");
        assert_eq!(
            (header("cache-control"), header("x-accel-buffering")),
            ("no-store".into(), "no".into())
        );
        assert_eq!(header("access-control-allow-origin"), "*");
    }
}

/// True where the bytes of an event stand in a page.
async fn page_holds(site: &Site, order: &str, item: &Value, data: &str) -> bool {
    assert!(item.is_object());
    site.get(&format!("/feeds/blog.json?order={order}"))
        .await
        .text()
        .contains(data)
}

#[tokio::test(start_paused = true)]
async fn the_changes_of_a_burst_come_at_once_and_in_one_write() {
    let site = Site::of(1..=3).await;
    let since = head(&site).await;
    let target = format!("/feeds/blog.events?since=cursor:{since}");
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(Listening::to(&site, &target, &[]).await);
    }
    assert_eq!(site.held(), 50);
    let before = site.rig.store.pages();
    tokio::time::advance(Duration::from_secs(7)).await;
    site.rig.change((4..=40).map(add).collect()).await;
    for stream in &mut streams {
        assert_eq!(stream.listen().await, Some(1));
        assert_eq!(
            stream.source.told(),
            messages(&(4..=40).collect::<Vec<_>>())
        );
    }
    // The changes, and a look at what comes after them.
    assert_eq!(
        site.rig.store.pages(),
        before + 2,
        "one read and one rendering for all"
    );
    site.rig.change(vec![edit(1, "again"), delete(2)]).await;
    assert_eq!(streams[0].listen().await, Some(1));
    let told = streams[0].source.told();
    assert_eq!(
        told,
        [("message".to_owned(), id(1)), ("delete".to_owned(), id(2))]
    );
    drop(streams);
    assert_eq!(site.held(), 0, "places are given back");
}

#[tokio::test(start_paused = true)]
async fn a_browser_goes_on_behind_the_last_event_that_it_saw() {
    let site = Site::of(1..=4).await;
    let mut first = Listening::to(&site, "/feeds/blog.events", &[]).await;
    let seen: Vec<String> = first
        .source
        .take()
        .into_iter()
        .map(|event| event.id)
        .collect();
    // It connects again with the URL by which it came first.
    let (old, new) = (
        format!("/feeds/blog.events?since=cursor:{}", seen[0]),
        seen[2].as_str(),
    );
    for (target, headers, expect) in [
        (old.as_str(), vec![], vec![2, 3, 4]),
        (&old, vec![("last-event-id", new)], vec![4]),
        (&old, vec![("last-event-id", "")], vec![2, 3, 4]),
        ("/feeds/blog.events", vec![("last-event-id", new)], vec![4]),
        (
            "/feeds/blog.events?since=nonsense%20cursor",
            vec![("last-event-id", new)],
            vec![4],
        ),
        ("/feeds/blog", vec![EVENTS, ("last-event-id", new)], vec![4]),
        ("/feeds/blog.events?since=time:2100-01-01", vec![], vec![]),
        (
            "/feeds/blog.events?since=time:2000-01-01",
            vec![],
            vec![1, 2, 3, 4],
        ),
    ] {
        let mut stream = Listening::to(&site, target, &headers).await;
        assert_eq!(
            stream.source.told(),
            messages(&expect),
            "{target} {headers:?}"
        );
    }
    let twice = [("last-event-id", new), ("last-event-id", new)];
    assert_eq!(
        site.get_with("/feeds/blog.events", &twice).await.status,
        400
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_part_goes_on_behind_any_event_and_never_in_the_whole_feed() {
    let site = Site::of(1..=4).await;
    site.rig
        .change((2..=4).map(|n| edit(n, "An open post")).collect())
        .await;
    site.show(&[("['alice']", ""), ("['bob']", "q=open")]);
    let (alice, bob) = (format!("Bearer {ALICE}"), format!("Bearer {BOB}"));
    let listen = async |by: &str, last: &str| {
        let headers = [("authorization", by), ("last-event-id", last)];
        let mut stream = Listening::to(&site, "/feeds/blog.events", &headers).await;
        stream.source.take()
    };
    let seen = listen(&bob, "").await;
    assert_eq!(seen.len(), 3);
    for (at, event) in seen.iter().enumerate() {
        assert_eq!(listen(&bob, &event.id).await, seen[at + 1..], "{at}");
        let whole = listen(&alice, &event.id).await;
        assert_eq!(whole[0].kind, "reset", "{at}");
        assert_eq!(whole.len(), 1 + 4, "{at}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_position_that_is_not_of_this_feed_is_told_as_a_reset() {
    // D-8, D-23.
    let site = Site::of(1..=3).await;
    let page = site.page("").await;
    let last = page["last_cursor"].as_str().unwrap().to_owned();
    let reset = |events: &[Event]| {
        let resets: Vec<_> = events
            .iter()
            .filter(|event| event.kind == "reset")
            .cloned()
            .collect();
        assert!(
            resets.iter().all(|event| *event == events[0]),
            "it comes first"
        );
        resets
            .first()
            .map(|event| serde_json::from_str::<Value>(&event.data).unwrap()["cursor"].clone())
    };
    for (id, expect, items) in [
        ("1990272000_0_1", Some("ahead"), 3),
        ("1000000000_0_1", Some("time"), 3),
        ("junk", Some("reset"), 3),
        (&"9".repeat(4000), Some("reset"), 3),
        (last.as_str(), None, 0),
    ] {
        let mut stream = Listening::to(&site, "/feeds/blog.events", &[("last-event-id", id)]).await;
        let events = stream.source.take();
        assert_eq!(
            reset(&events).as_ref().and_then(Value::as_str),
            expect,
            "{id}"
        );
        assert_eq!(events.len() - usize::from(expect.is_some()), items, "{id}");
        if expect.is_some() {
            // Whoever comes again from here is not told twice.
            assert_eq!(stream.source.last_id, last);
        }
    }
    // An edit of the item at the cursor is no reset.
    site.rig.change(vec![edit(3, "edited")]).await;
    let mut stream = Listening::to(&site, "/feeds/blog.events", &[("last-event-id", &last)]).await;
    assert_eq!(stream.source.told(), messages(&[3]));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_shows_that_it_lives_and_where_it_stands() {
    let site = Site::of(1..=3).await;
    let last = head(&site).await;
    let target = format!("/feeds/blog.events?since=cursor:{last}");
    let mut stream = Listening::to(&site, &target, &[]).await;
    assert_eq!(stream.listen_for(Duration::from_secs(101)).await, Some(4));
    assert_eq!(
        (stream.source.comments, stream.source.last_id.as_str()),
        (4, "")
    );
    // The position moves and no item is shown: its own spelling is given back to whoever spelt it
    // differently.
    let target = format!("/feeds/blog.events?since=cursor:0{last}");
    let mut stream = Listening::to(&site, &target, &[]).await;
    assert_eq!(stream.listen_for(Duration::from_secs(51)).await, Some(2));
    assert_eq!((stream.source.comments, &stream.source.last_id), (1, &last));
    assert!(stream.source.events.is_empty());
    // A stream that is not quiet says nothing beside its events.
    for n in 4..=9 {
        stream.listen_for(Duration::from_secs(20)).await;
        site.rig.change(vec![add(n)]).await;
    }
    assert_eq!(
        (stream.listen().await, stream.source.comments),
        (Some(1), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_filtered_stream_shows_its_items_and_passes_the_others_in_silence() {
    let site = Site::of(1..=3).await;
    let since = head(&site).await;
    let target = format!("/feeds/blog.events?q=wanted&since=cursor:{since}");
    let mut stream = Listening::to(&site, &target, &[]).await;
    site.rig
        .change(vec![add(4), edit_of_new(5, "wanted"), add(6)])
        .await;
    stream.listen().await;
    assert_eq!(stream.source.told(), messages(&[5]));
    // What was passed is known at the next sign of life at the latest.
    let last = head(&site).await;
    stream.listen_for(Duration::from_secs(26)).await;
    assert_eq!(stream.source.last_id, last);
    site.rig.change(vec![add(7)]).await;
    let last = head(&site).await;
    stream.listen_for(Duration::from_secs(26)).await;
    assert_eq!(
        (stream.source.told(), &stream.source.last_id),
        (vec![], &last)
    );
    // What leaves the view is deleted from it.
    site.rig.change(vec![edit(5, "something else")]).await;
    stream.listen().await;
    assert_eq!(stream.source.told(), [("delete".to_owned(), id(5))]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_before_its_first_sign_of_life_tells_where_it_stands() {
    let site = Site::of(1..=3).await;
    let since = head(&site).await;
    let target = format!("/feeds/blog.events?q=wanted&timeout=5&since=cursor:{since}");
    let mut stream = Listening::to(&site, &target, &[]).await;
    site.rig.change(vec![add(4)]).await;
    let last = head(&site).await;
    stream.listen_for(Duration::from_secs(6)).await;
    assert_eq!(
        (stream.source.told(), &stream.source.last_id),
        (vec![], &last)
    );
}

/// A new post with a title.
fn edit_of_new(n: u32, title: &str) -> Change {
    let Change::Put(put) = edit(n, title) else {
        unreachable!("an edit puts")
    };
    Change::Put(Put {
        kind: PutKind::Added,
        ..put
    })
}

#[tokio::test(start_paused = true)]
async fn a_mirror_that_is_cut_off_at_any_event_ends_as_the_feed() {
    let site = Site::of(1..=5).await;
    let (mut mirror, mut last) = (BTreeMap::new(), String::new());
    let (mut chance, mut n, mut alive) = (7_u32, 5, [true; 5]);
    let mut roll = |sides: u32| {
        chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (chance >> 16) % sides
    };
    for round in 0..200 {
        let mut changes = Vec::new();
        for _ in 0..roll(4) {
            let at = roll(6);
            changes.push(match alive.get_mut(at as usize) {
                Some(is_alive) => {
                    let was_alive = std::mem::replace(is_alive, !*is_alive);
                    if was_alive {
                        delete(at + 1)
                    } else {
                        revive(at + 1)
                    }
                }
                None => {
                    n += 1;
                    add(n)
                }
            });
        }
        if alive[2] {
            changes.push(edit(3, &format!("{round}")));
        }
        site.rig.change(changes).await;
        let headers = [("last-event-id", last.as_str())];
        let mut stream = Listening::to(&site, "/feeds/blog.events", &headers).await;
        let events = stream.source.take();
        let seen = if events.is_empty() {
            0
        } else {
            roll(u32::try_from(events.len()).unwrap() + 1)
        };
        for event in &events[..seen as usize] {
            assert_ne!(event.kind, "reset", "round {round}");
            let item: Value = serde_json::from_str(&event.data).unwrap();
            mirror.insert(item["id"].as_str().unwrap().to_owned(), item);
            last.clone_from(&event.id);
        }
    }
    let mut stream = Listening::to(&site, "/feeds/blog.events", &[("last-event-id", &last)]).await;
    for event in stream.source.take() {
        let item: Value = serde_json::from_str(&event.data).unwrap();
        mirror.insert(item["id"].as_str().unwrap().to_owned(), item);
    }
    let page = site.page("max=1000").await;
    let held = page["items"].as_array().unwrap();
    assert!(held.len() > 20 && held.len() == mirror.len());
    assert!(
        held.iter()
            .all(|item| mirror[item["id"].as_str().unwrap()] == *item)
    );
    assert_eq!(site.rig.all(Order::MODIFIED).await.items.len(), held.len());
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_asked_for_by_its_address_or_by_what_is_accepted() {
    let site = Site::of(1..=2).await;
    for (target, accept, expect) in [
        ("/feeds/blog.events", "*/*", "text/event-stream"),
        (
            "/feeds/blog.events",
            "application/json",
            "text/event-stream",
        ),
        ("/feeds/blog", "text/event-stream", "text/event-stream"),
        (
            "/feeds/blog",
            "TEXT/Event-Stream;q=0.9, */*;q=0.1",
            "text/event-stream",
        ),
        ("/feeds/blog", "text/event-stream, */*", "text/event-stream"),
        (
            "/feeds/blog",
            "text/event-stream;q=0, */*",
            "application/atom+xml; charset=utf-8",
        ),
        (
            "/feeds/blog",
            "application/json, text/event-stream",
            "application/json; charset=utf-8",
        ),
        ("/feeds/blog", "*/*", "application/atom+xml; charset=utf-8"),
        (
            "/feeds/blog.json",
            "text/event-stream",
            "application/json; charset=utf-8",
        ),
    ] {
        let opened = site.open(target, &[("accept", accept)]).await;
        assert_eq!(opened.headers["content-type"], expect, "{target} {accept}");
        if target == "/feeds/blog" {
            assert!(
                opened.headers["vary"]
                    .to_str()
                    .unwrap()
                    .starts_with("accept"),
                "{accept}"
            );
        }
    }
    let head = site.ask(Method::HEAD, "/feeds/blog.events", &[]).await;
    assert_eq!(
        (head.status, head.header("content-type"), head.body.len()),
        (200, "text/event-stream", 0)
    );
    assert_eq!(site.held(), 0, "a HEAD takes no place");
}

#[tokio::test(start_paused = true)]
async fn what_no_stream_can_be_is_refused() {
    let site = Site::of(1..=2).await;
    let status = async |target: &str| site.get(target).await.status;
    for query in [
        "until=time:2027-01-01",
        "max=5",
        "callback=f",
        "order=-modified",
        "order=-created",
        "order=published",
        "order=best",
        "deleted=maybe",
        "since=nonsense",
        "since=id:x",
        "since=cursor:&since=cursor:",
        "timeout=x",
    ] {
        assert_eq!(
            status(&format!("/feeds/blog.events?{query}")).await,
            400,
            "{query}"
        );
        let negotiated = site
            .get_with(&format!("/feeds/blog?{query}"), &[EVENTS])
            .await;
        assert_eq!(negotiated.status, 400, "{query}");
    }
    assert_eq!(status("/feeds/none.events").await, 404);
    assert_eq!(
        site.ask(Method::POST, "/feeds/blog.events", &[])
            .await
            .status,
        405
    );
    assert_eq!(
        Site::unread().await.get("/feeds/blog.events").await.status,
        503
    );
    site.withdraw();
    assert_eq!(status("/feeds/blog.events").await, 410);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_it_should_and_not_before() {
    let site = Site::of(1..=3).await;
    // After as many seconds as were asked for.
    let mut short = Listening::to(&site, "/feeds/blog.events?timeout=30", &[]).await;
    assert_eq!(short.listen_for(Duration::from_secs(29)).await, Some(1));
    assert_eq!(short.listen_for(Duration::from_secs(2)).await, None);
    // With the server, and with its feed.
    drop(short);
    for end in [Site::stop as fn(&Site), Site::withdraw] {
        let site = Site::of(1..=3).await;
        let mut stream = Listening::to(&site, "/feeds/blog.events", &[]).await;
        assert_eq!(stream.listen_for(Duration::from_secs(599)).await, Some(23));
        end(&site);
        assert_eq!(stream.listen().await, None);
        drop(stream);
        assert_eq!(
            (site.held(), site.rig.notify.watchers(site.rig.feed)),
            (0, 0),
            "nothing is left behind"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_private_stream_ends_with_the_right_to_read() {
    // SF-131.
    let site = Site::of(1..=3).await;
    let for_alice = || AccessSettings::Named(["alice".to_owned()].into());
    let authorization = format!("Bearer {ALICE}");
    let headers = [("authorization", authorization.as_str())];
    type Change = fn(&Site);
    let changes: [(Change, bool); 4] = [
        (|site| site.know(accounts(&[1])), true),
        (|site| site.know(Accounts::default()), true),
        (
            |site| site.protect(AccessSettings::Named(["bob".to_owned()].into())),
            true,
        ),
        (|site| site.know(accounts(&[3])), false),
    ];
    for (n, (change, ends)) in (10..).zip(changes) {
        site.know(accounts(&[]));
        site.protect(for_alice());
        assert_eq!(site.get("/feeds/blog.events").await.status, 401);
        assert_eq!(site.get_with("/feeds/blog", &[EVENTS]).await.status, 401);
        let mut stream = Listening::to(&site, "/feeds/blog.events", &headers).await;
        assert_eq!(stream.opened.headers["cache-control"], "private, no-store");
        stream.source.take();
        change(&site);
        let listened = stream.listen().await;
        assert_eq!(listened.is_none(), ends);
        site.rig.change(vec![add(n)]).await;
        stream.listen().await;
        assert_eq!(
            stream.source.told(),
            if ends { vec![] } else { messages(&[n]) }
        );
    }
}

async fn from(site: &Site, peer: &str, target: &str) -> Opened {
    let mut request = Request::builder()
        .uri(target)
        .body(Full::<Bytes>::default())
        .unwrap();
    request
        .extensions_mut()
        .insert(PeerAddress(peer.parse().unwrap()));
    site.open_any(request).await
}

#[tokio::test(start_paused = true)]
async fn streams_and_held_requests_share_their_places() {
    let setting = Config {
        waiters_max: 4,
        waiters_per_client_max: 2,
        ..Config::default()
    };
    let site = Site::set(setting).await;
    site.rig.change(vec![add(1)]).await;
    let since = head(&site).await;
    let poll = format!("/feeds/blog.json?since=cursor:{since}&timeout=100");
    let held = tokio::spawn(site.ask(Method::GET, &poll, &[]));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut one = from(&site, "192.0.2.1", "/feeds/blog.events").await;
    let two = from(&site, "192.0.2.1", "/feeds/blog.events").await;
    assert_eq!((two.status, site.held()), (200, 3));
    let third = from(&site, "192.0.2.1", "/feeds/blog.events").await;
    assert_eq!(
        (third.status, third.headers.contains_key("retry-after")),
        (429, true)
    );
    assert_eq!(
        from(&site, "192.0.2.1", &poll).await.status,
        429,
        "a held request is one of them"
    );
    let _other = from(&site, "192.0.2.2", "/feeds/blog.events").await;
    // The client with two gives way to one with none, and nobody with one does.
    let third = from(&site, "192.0.2.3", "/feeds/blog.events").await;
    assert_eq!((third.status, site.held()), (200, 4));
    let mut frames = 0;
    while one.frame().await.is_some() {
        frames += 1;
        assert!(frames < 3, "the stream ends");
    }
    let more = from(&site, "192.0.2.4", "/feeds/blog.events").await;
    assert_eq!(
        (more.status, more.headers.contains_key("retry-after")),
        (503, true)
    );
    drop(two);
    assert_eq!(
        from(&site, "192.0.2.1", "/feeds/blog.events").await.status,
        200
    );
    held.abort();
}

#[tokio::test(start_paused = true)]
async fn a_held_request_that_gives_way_is_answered_with_its_empty_page() {
    let setting = Config {
        waiters_max: 2,
        ..Config::default()
    };
    let site = Site::set(setting).await;
    site.rig.change(vec![add(1)]).await;
    let poll = format!("/feeds/blog.json?since=cursor:{}", head(&site).await);
    let began = tokio::time::Instant::now();
    let held = async {
        let status = from(&site, "2001:db8:7:1::1", &poll).await.status;
        (status, began.elapsed().as_secs())
    };
    let other = from(&site, "2001:db8:7:2::1", &poll);
    let honest = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        from(&site, "198.51.100.7", "/feeds/blog.events")
            .await
            .status
    };
    let (held, other, honest) = tokio::join!(held, other, honest);
    assert_eq!((held, other.status, honest), ((200, 1), 200, 200));
    assert_eq!(
        began.elapsed().as_secs(),
        55,
        "the other one is held to its end"
    );
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_comes_while_the_server_starts_comes_again() {
    let start = Arc::<RegistrationProgress>::default();
    let service = stack(Router::starting(start), Metrics::default());
    let ask = async |accept: &str| {
        let request = Request::get("/feeds/blog.events").header("accept", accept);
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    };
    let answer = ask("text/event-stream").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "text/event-stream")
    );
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    let mut source = EventSource::default();
    source.read(answer.text());
    assert!(source.retry_ms.is_some() && source.events.is_empty() && source.last_id.is_empty());
    let answer = ask("*/*").await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (503, "*")
    );
}
