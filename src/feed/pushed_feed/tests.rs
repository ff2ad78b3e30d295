//! Push from upstream: what is asked, what is answered, and what is trusted. The names end with rows
//! of UPSTREAM.

use super::*;
use everfeed_adapters::{Cloud, Link, Metadata};
use url::{Url, form_urlencoded};

const HUB: &str = "https://hub.example/";
const FEED: &str = "https://blog.example/feed";
const START: u64 = 1_000_000;

fn at(secs: u64) -> Stamp {
    Stamp::from_secs(START + secs)
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn path(token: &str) -> PushPath {
    PushPath {
        token: Secret::new(token),
        secret: Some(Secret::new("hush")),
    }
}

fn named(hub: &str) -> NamedPush {
    NamedPush {
        topics: vec![FEED.to_owned()],
        hubs: vec![hub.to_owned()],
        ..NamedPush::default()
    }
}

/// A feed, and the callbacks that it gives out: `p1`, `p2` and so on.
struct World {
    feed: PushedFeed,
    paths: u32,
    root: Url,
}

impl World {
    fn of(named: NamedPush) -> Self {
        Self {
            feed: PushedFeed::new(named, at(0)),
            paths: 0,
            root: url("https://feeds.example/in/"),
        }
    }

    /// The form of the request that is due.
    fn errand(&mut self, secs: u64) -> Option<Vec<(String, String)>> {
        let root = CallbackRoot { url: &self.root };
        let paths = &mut self.paths;
        let errand = self.feed.errand(root, at(secs), || {
            *paths += 1;
            path(&format!("p{paths}"))
        })?;
        let form = form_urlencoded::parse(errand.form.as_bytes());
        Some(form.into_owned().collect())
    }

    /// The value of a parameter of the request that is due.
    fn asks(&mut self, secs: u64, name: &str) -> Option<String> {
        let form = self.errand(secs)?;
        form.into_iter().find(|(own, _)| own == name).map(|it| it.1)
    }

    fn verify(&mut self, secs: u64, token: &str, topic: &str, lease_secs: u64) -> bool {
        let question = CallbackQuestion::Verify {
            mode: HubMode::Subscribe,
            topic,
            lease_secs: Some(lease_secs),
        };
        self.feed.asked(token, &question, at(secs))
    }

    fn end(&mut self, secs: u64, end: RequestEnd) {
        let to = PushService::Hub {
            url: self.feed.hubs[0].url.clone(),
            topic: self.feed.hubs[0].topic.clone(),
        };
        self.feed.ended(&to, &end, at(secs));
    }

    /// Subscribed at the hub, by the callback `p1`, for so many seconds.
    fn subscribed(lease_secs: u64) -> Self {
        let mut world = Self::of(named(HUB));
        world.errand(0).unwrap();
        assert!(world.verify(1, "p1", FEED, lease_secs));
        world
    }

    fn next_secs(&self) -> u64 {
        self.feed.next_at().secs_since(at(0))
    }

    fn is_expected(&self, secs: u64, token: &str) -> bool {
        let received = self.feed.received(token, at(secs));
        matches!(received, PushReception::Expected { .. })
    }
}

fn metadata(links: &[(&str, &str)]) -> Metadata {
    let links = links.iter().map(|(rel, href)| Link {
        rel: (*rel).to_owned(),
        href: (*href).to_owned(),
        ..Link::default()
    });
    Metadata {
        links: links.collect(),
        ..Metadata::default()
    }
}

#[track_caller]
fn check_named(headers: &[&str], links: &[(&str, &str)], topic: &str, hubs: &[&str]) {
    let found = NamedPush::of(
        headers,
        &metadata(links),
        &url("https://blog.example/feed?x=1"),
    );
    assert_eq!(found.hubs, hubs);
    assert_eq!(found.topics.first().map(String::as_str), Some(topic));
}

#[test]
fn headers_name_hub_and_topic_before_the_document_does_u_1() {
    let document = [
        ("hub", "https://doc.example/"),
        ("self", "https://doc.example/self"),
    ];
    let header = "</hub>; rel=\"hub\", <https://blog.example/self>; rel=self";
    check_named(
        &[header],
        &document,
        "https://blog.example/self",
        &["https://blog.example/hub"],
    );
    check_named(
        &[],
        &document,
        "https://doc.example/self",
        &["https://doc.example/"],
    );
    // Without a name of its own, a feed is known by where it was found.
    check_named(
        &[],
        &document[..1],
        "https://blog.example/feed?x=1",
        &["https://doc.example/"],
    );
}

#[test]
fn hubs_with_https_go_first_and_two_are_asked_u_1() {
    let links = [
        ("hub", "http://a.example/"),
        ("hub", "http://pubsubhubbub.appspot.com/"),
        ("hub", "https://c.example/"),
        ("hub", "https://c.example/#again"),
        ("hub", "javascript:alert(1)"),
        ("hub", "https://user:pass@d.example/"),
        ("self", FEED),
    ];
    check_named(
        &[],
        &links,
        FEED,
        &["https://pubsubhubbub.appspot.com/", "https://c.example/"],
    );
}

#[test]
fn a_feed_of_youtube_has_a_hub_though_it_names_none_and_two_names() {
    let landed = url("https://www.youtube.com/feeds/videos.xml?channel_id=UC1");
    let of_table = NamedPush::of(&[], &metadata(&[("self", FEED)]), &landed);
    assert!(of_table.is_by_table);
    assert_eq!(
        of_table.hubs,
        ["https://pubsubhubbub.appspot.com/subscribe"]
    );
    let both = [
        "https://www.youtube.com/xml/feeds/videos.xml?channel_id=UC1",
        "https://www.youtube.com/feeds/videos.xml?channel_id=UC1",
    ];
    assert_eq!(of_table.topics, both);
    let mut world = World::of(of_table);
    assert_eq!(world.asks(0, "hub.topic").as_deref(), Some(both[0]));
    // Not verified within an hour: it may be known by the other name, then by the first again.
    assert_eq!(world.asks(3600, "hub.topic").as_deref(), Some(both[1]));
    assert!(!world.verify(3700, "p2", both[0], 1000));
    assert_eq!(world.errand(7200), None);
    let next = world.next_secs();
    assert!(next > 7200, "it waits");
    assert_eq!(world.asks(next, "hub.topic").as_deref(), Some(both[0]));
    assert!(world.verify(next + 1, "p3", both[0], 1000));
    let other = NamedPush::of(
        &[],
        &metadata(&[]),
        &url("https://www.youtube.com/other?channel_id=UC1"),
    );
    assert_eq!(other, NamedPush::default());
}

#[test]
fn a_request_says_all_that_any_version_wants_to_know_u_2() {
    let mut world = World::of(named(HUB));
    let expect = [
        ("hub.callback", "https://feeds.example/in/p1"),
        ("hub.mode", "subscribe"),
        ("hub.topic", FEED),
        ("hub.verify", "async"),
        ("hub.lease_seconds", "864000"),
        ("hub.secret", "hush"),
    ];
    let expect = expect.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(world.errand(0).unwrap(), expect);
    assert_eq!(world.errand(10), None, "it is asked once");
}

#[test]
fn a_hub_without_https_gets_no_secret_u_6() {
    let mut world = World::of(named("http://hub.example/"));
    let form = world.errand(0).unwrap();
    assert!(
        form.iter().all(|(name, _)| name != "hub.secret"),
        "{form:?}"
    );
    assert!(world.verify(1, "p1", FEED, 1000));
    let expected = world.feed.received("p1", at(2));
    assert!(matches!(
        expected,
        PushReception::Expected { secret: None, .. }
    ));
}

#[test]
fn only_what_was_asked_for_is_confirmed_u_4() {
    let mut world = World::of(named(HUB));
    assert!(!world.verify(0, "p1", FEED, 1000), "nothing was asked");
    world.errand(0).unwrap();
    assert!(!world.verify(1, "p2", FEED, 1000), "another token");
    assert!(
        !world.verify(1, "p1", "https://blog.example/feed/", 1000),
        "another topic"
    );
    let unsubscribe = CallbackQuestion::Verify {
        mode: HubMode::Unsubscribe,
        topic: FEED,
        lease_secs: None,
    };
    assert!(!world.feed.asked("p1", &unsubscribe, at(1)));
    assert!(world.verify(1, "p1", FEED, 1000));
    assert!(world.verify(2, "p1", FEED, 1000), "our yes may be lost");
    assert!(!world.feed.asked("p1", &unsubscribe, at(3)));
}

#[test]
fn a_lease_is_renewed_at_two_thirds_by_another_path_u_3_u_5() {
    let mut world = World::subscribed(90_000);
    assert_eq!(world.next_secs(), 60_001);
    assert_eq!(world.errand(60_000), None);
    let callback = world.asks(60_001, "hub.callback");
    assert_eq!(callback.as_deref(), Some("https://feeds.example/in/p2"));
    assert!(
        !world.verify(60_002, "p2", "https://other.example/", 90_000),
        "another topic"
    );
    assert!(world.verify(60_010, "p2", FEED, 90_000));
    // The old path is answered until its lease ends.
    assert!(world.is_expected(60_011, "p1") && world.is_expected(60_011, "p2"));
    assert!(!world.is_expected(94_000, "p1") && world.is_expected(94_000, "p2"));
    // No lease is longer than two weeks, and none is renewed all the time.
    let check = |lease_secs: u64, next: u64| {
        assert_eq!(
            World::subscribed(lease_secs).next_secs(),
            next + 1,
            "{lease_secs}"
        );
    };
    check(1 << 40, 14 * 86_400 / 3 * 2);
    check(0, 300);
}

#[test]
fn a_hub_that_verifies_late_is_believed_and_one_that_never_does_is_asked_less_often() {
    let mut world = World::of(named(HUB));
    let mut sent = Vec::new();
    for _ in 0..40 {
        let secs = world.next_secs();
        sent.extend(world.errand(secs).map(|_| secs));
    }
    let gaps: Vec<u64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        gaps.is_sorted() && *gaps.last().unwrap() == 3600 + 86_400,
        "{gaps:?}"
    );
    assert_eq!(world.paths, 1, "all by one path");
    let secs = *sent.last().unwrap() + 50_000;
    assert!(world.verify(secs, "p1", FEED, 86_400));
    assert_eq!(
        (world.feed.hubs[0].failures, world.feed.hubs[0].why.clone()),
        (0, None)
    );
}

#[test]
fn a_hub_that_fails_is_asked_again_when_it_wants_to_and_a_refusal_waits_for_a_day_u_2() {
    let failed = |retry_after_secs| RequestEnd::Failed {
        why: "503".to_owned(),
        retry_after_secs,
    };
    let mut world = World::of(named(HUB));
    world.errand(0).unwrap();
    world.end(1, failed(None));
    assert_eq!(world.next_secs(), 301);
    world.errand(301).unwrap();
    world.end(302, failed(Some(7200)));
    assert_eq!(world.next_secs(), 7502);
    // It took the request all the same.
    assert!(world.verify(400, "p1", FEED, 90_000));
    let mut world = World::subscribed(90_000);
    world.errand(60_001).unwrap();
    world.end(
        60_002,
        RequestEnd::Refused {
            why: "422".to_owned(),
        },
    );
    assert_eq!(world.next_secs(), 60_002 + 86_400);
    assert!(world.is_expected(70_000, "p1"), "the lease in force stays");
    assert!(world.feed.pushed_by(at(70_000)).is_some());
    assert!(world.feed.pushed_by(at(90_002)).is_none());
}

#[test]
fn a_denial_ends_the_subscription_for_a_day_and_longer_each_time_u_10() {
    let deny = |topic, reason| CallbackQuestion::Denied { topic, reason };
    let mut world = World::subscribed(90_000);
    assert!(
        !world
            .feed
            .asked("p1", &deny(Some("https://other.example/"), None), at(5))
    );
    assert!(!world.feed.asked("p9", &deny(Some(FEED), None), at(5)));
    assert!(
        world
            .feed
            .asked("p1", &deny(Some(FEED), Some("no more")), at(5))
    );
    assert!(world.feed.pushed_by(at(6)).is_none() && !world.is_expected(6, "p1"));
    assert_eq!(world.next_secs(), 5 + 86_400);
    assert!(
        world.feed.hubs[0]
            .why
            .as_ref()
            .unwrap()
            .ends_with(": no more")
    );
    let mut waits = Vec::new();
    for n in 2..9 {
        let secs = world.next_secs();
        world.errand(secs).unwrap();
        let token = format!("p{n}");
        assert!(world.feed.asked(&token, &deny(None, None), at(secs)));
        waits.push((world.next_secs() - secs) / 86_400);
    }
    assert_eq!(waits, [2, 4, 8, 16, 30, 30, 30]);
}

#[test]
fn a_feed_that_is_not_polled_any_more_is_unsubscribed_and_its_path_says_gone_u_11() {
    let mut world = World::subscribed(90_000);
    world.feed.leave(at(10));
    assert_eq!(world.asks(10, "hub.mode").as_deref(), Some("unsubscribe"));
    assert!(world.is_expected(11, "p1"), "until the hub makes sure");
    assert!(
        !world.verify(11, "p1", FEED, 90_000),
        "it is not subscribed again"
    );
    let meant = CallbackQuestion::Verify {
        mode: HubMode::Unsubscribe,
        topic: FEED,
        lease_secs: None,
    };
    assert!(world.feed.asked("p1", &meant, at(12)) && world.feed.asked("p1", &meant, at(13)));
    assert_eq!(world.feed.received("p1", at(14)), PushReception::Left);
    assert!(!world.feed.is_over());
    assert_eq!(world.feed.next_at(), Stamp::MAX);
    // A hub that does not answer is asked three times.
    let mut world = World::subscribed(10 * 86_400);
    world.feed.leave(at(10));
    let mut tries = 0;
    while world.feed.next_at() < Stamp::MAX {
        let secs = world.next_secs();
        tries += u32::from(world.errand(secs).is_some());
    }
    assert_eq!(tries, 3);
    world.feed.leave(at(20 * 86_400));
    assert!(world.feed.is_over());
}

#[test]
fn a_document_that_names_another_hub_moves_the_subscription_u_5() {
    let mut world = World::subscribed(90_000);
    world.feed.rename(named("https://new.example/"), at(100));
    let asked = [world.asks(100, "hub.mode"), world.asks(100, "hub.mode")];
    assert_eq!(asked.map(Option::unwrap), ["unsubscribe", "subscribe"]);
    assert_eq!(world.errand(101), None);
    assert_eq!(world.feed.hubs.len(), 2);
    // Named again before it was left.
    world.feed.rename(named(HUB), at(200));
    assert_eq!(world.asks(200, "hub.mode").as_deref(), Some("subscribe"));
    assert_eq!(
        world.feed.hubs.len(),
        1,
        "what was never verified needs no goodbye"
    );
}

#[test]
fn a_push_is_expected_at_the_path_of_its_hub_alone_u_7_u_8() {
    let world = World::subscribed(90_000);
    let PushReception::Expected {
        secret,
        is_named_by_feed,
    } = world.feed.received("p1", at(2))
    else {
        panic!()
    };
    assert_eq!(
        (secret, is_named_by_feed),
        (Some(Secret::new("hush")), true)
    );
    assert_eq!(world.feed.received("p2", at(2)), PushReception::Unknown);
    let by_table = NamedPush {
        is_by_table: true,
        ..named(HUB)
    };
    let mut world = World::of(by_table);
    world.errand(0).unwrap();
    // Before it is verified, a push is a hint at most.
    assert!(matches!(
        world.feed.received("p1", at(1)),
        PushReception::Expected { secret: None, .. }
    ));
    world.verify(1, "p1", FEED, 1000);
    assert!(matches!(
        world.feed.received("p1", at(2)),
        PushReception::Expected {
            is_named_by_feed: false,
            ..
        }
    ));
}

#[test]
fn a_hub_that_is_silent_three_times_is_not_trusted_until_its_renewal_u_12() {
    let mut world = World::subscribed(90_000);
    assert!(!world.feed.works(at(10)), "it has told of nothing yet");
    world.feed.tally.pushed(at(10));
    assert!(world.feed.works(at(11)));
    let poll = |world: &mut World, secs: u64| {
        world.feed.found_by_poll(Some(at(secs - 3600)), at(secs));
    };
    // What a push tells of soon before or after the poll is no miss.
    poll(&mut world, 5000);
    world.feed.tally.pushed(at(5300));
    poll(&mut world, 5400);
    assert_eq!(
        (world.feed.tally.misses, world.feed.works(at(7000))),
        (0, true)
    );
    for secs in [10_000, 20_000, 30_000] {
        poll(&mut world, secs);
        assert!(world.feed.works(at(secs + 900)));
    }
    assert!(!world.feed.works(at(30_901)) && world.feed.tally.is_silent(at(30_901)));
    world.errand(60_001).unwrap();
    assert!(world.verify(60_002, "p2", FEED, 90_000));
    assert!(
        !world.feed.works(at(60_003)),
        "it has to tell of news first"
    );
    world.feed.tally.pushed(at(60_004));
    assert!(world.feed.works(at(60_005)));
    // News from before the subscription are nobody's fault.
    let mut world = World::subscribed(90_000);
    world.feed.found_by_poll(None, at(2));
    world.feed.found_by_poll(Some(at(0)), at(2));
    assert_eq!(world.feed.tally, PushTally::default());
}

#[test]
fn at_another_public_url_everything_is_asked_anew() {
    let mut world = World::subscribed(90_000);
    world.feed.tally.pushed(at(10));
    let before = world.feed.clone();
    world
        .feed
        .move_to(CallbackRoot { url: &world.root }, at(20));
    assert_eq!(world.feed, before);
    world.root = url("https://new.example/in/");
    world
        .feed
        .move_to(CallbackRoot { url: &world.root }, at(20));
    assert!(!world.feed.works(at(21)) && !world.is_expected(21, "p1"));
    let callback = world.asks(21, "hub.callback");
    assert_eq!(callback.as_deref(), Some("https://new.example/in/p2"));
}

fn cloud(protocol: &str) -> Cloud {
    Cloud {
        domain: "cloud.example".to_owned(),
        port: Some(5337),
        path: Some("pleaseNotify".to_owned()),
        protocol: Some(protocol.to_owned()),
        ..Cloud::default()
    }
}

fn with_cloud(protocol: &str, hubs: &[&str]) -> NamedPush {
    let mut metadata = metadata(&[("self", FEED)]);
    metadata.links.extend(hubs.iter().map(|hub| Link {
        rel: "hub".to_owned(),
        href: (*hub).to_owned(),
        ..Link::default()
    }));
    metadata.cloud = Some(cloud(protocol));
    NamedPush::of(&[], &metadata, &url(FEED))
}

#[test]
fn a_cloud_is_asked_over_http_and_by_its_rules_u_20() {
    assert_eq!(with_cloud("xml-rpc", &[]), NamedPush::default());
    assert_eq!(with_cloud("soap", &[]), NamedPush::default());
    let address = |protocol: &str| with_cloud(protocol, &[]).cloud.unwrap().url();
    assert_eq!(
        address("http-post"),
        "http://cloud.example:5337/pleaseNotify"
    );
    assert_eq!(
        address("https-post"),
        "https://cloud.example:5337/pleaseNotify"
    );
    let mut world = World::of(with_cloud("http-post", &[]));
    let expect = [
        ("notifyProcedure", ""),
        ("protocol", "https-post"),
        ("port", "443"),
        ("path", "/in/p1"),
        ("url1", FEED),
        ("domain", "feeds.example"),
    ];
    let expect = expect.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(world.errand(0).unwrap(), expect);
}

#[test]
fn a_registration_is_renewed_after_a_day_and_holds_for_an_hour_more_u_21_u_22_u_23() {
    let mut world = World::of(with_cloud("http-post", &[]));
    let is_meant = |world: &mut World, token: &str, url: &str| {
        world
            .feed
            .asked(token, &CallbackQuestion::Register { url }, at(1))
    };
    assert!(!is_meant(&mut world, "p1", FEED));
    world.errand(0).unwrap();
    assert!(is_meant(&mut world, "p1", FEED));
    assert!(!is_meant(&mut world, "p1", "https://other.example/"));
    assert!(!is_meant(&mut world, "p2", FEED));
    assert!(world.feed.pushed_by(at(1)).is_none());
    world
        .feed
        .ended(&PushService::Cloud, &RequestEnd::Taken, at(2));
    assert!(matches!(
        world.feed.pushed_by(at(3)),
        Some(PushedBy::Cloud("cloud.example", _))
    ));
    assert_eq!(world.next_secs(), 86_402);
    assert!(world.is_expected(3, "p1") && !world.is_expected(3, "p2"));
    assert!(world.errand(86_402).is_some());
    let why = "200, success=false".to_owned();
    world.feed.ended(
        &PushService::Cloud,
        &RequestEnd::Refused { why },
        at(86_403),
    );
    assert_eq!(world.next_secs(), 86_403 + 300);
    assert!(world.feed.pushed_by(at(90_001)).is_some());
    assert!(world.feed.pushed_by(at(90_002)).is_none());
}

#[test]
fn a_cloud_is_asked_where_no_hub_does_what_it_should() {
    let mut world = World::of(with_cloud("http-post", &[HUB]));
    assert!(world.asks(0, "hub.mode").is_some());
    assert_eq!(world.errand(1), None, "the hub may do");
    world.end(
        2,
        RequestEnd::Refused {
            why: "422".to_owned(),
        },
    );
    assert!(world.asks(3, "url1").is_some());
}

#[test]
fn a_hub_that_is_being_left_pushes_nothing_of_the_feed_at_its_new_url() {
    let mut world = World::subscribed(864_000);
    world.feed.tally.pushed(at(10));
    assert!(world.feed.works(at(20)));
    assert_eq!(
        world.feed.standing(at(20)).unwrap().stage,
        PushStage::Working
    );
    // A document of another URL, which the same hub knows under another name.
    const MOVED: &str = "https://blog.example/moved";
    let moved = NamedPush {
        topics: vec![MOVED.to_owned()],
        ..named(HUB)
    };
    world.feed.rename(moved, at(30));
    assert!(world.is_expected(31, "p1") || world.feed.hubs.len() == 2);
    assert!(!world.feed.works(at(31)), "the old lease holds still");
    let standing = world.feed.standing(at(31)).unwrap();
    assert_eq!((standing.stage, standing.since), (PushStage::Asked, None));
    // The new subscription has to prove itself.
    let topics = [world.asks(31, "hub.topic"), world.asks(31, "hub.topic")];
    assert!(topics.contains(&Some(MOVED.to_owned())), "{topics:?}");
    assert!(world.verify(32, "p2", MOVED, 864_000));
    let standing = world.feed.standing(at(33)).unwrap();
    assert_eq!(standing.stage, PushStage::Subscribed);
    assert_eq!(standing.since, Some(at(32)));
    world.feed.tally.pushed(at(40));
    assert!(world.feed.works(at(41)));
}
