//! Reload: the configuration is read again while requests are answered and long polls are held.
//! None fails, none is cut; what cannot be meant changes nothing.

use crate::EVERFEED;
use everfeed::{
    app::{App, ReloadRefused},
    config::ConfigSource,
};
use http::Method;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use testkit::{
    client::{Answer, ask, get},
    place::{self, Place, Told, run},
    publisher::{Publisher, ok, rss},
    wait::{PATIENCE, until},
};
use tokio::{
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};

/// A place with a configuration that can be rewritten, and the publisher that its feeds lead to.
struct Site {
    place: Place,
    publisher: Publisher,
}

impl Site {
    /// A site of which everfeed itself says where it listens.
    async fn new() -> Self {
        Self::at(Place::unbound()).await
    }

    async fn at(place: Place) -> Self {
        let publisher = Publisher::start().await;
        publisher.says(rss(3));
        Self { place, publisher }
    }

    fn file(&self) -> PathBuf {
        self.place.file()
    }

    /// Writes a configuration with these feeds: a name and further lines each.
    fn write(&self, feeds: &[(&str, &str)]) {
        self.write_with("", feeds);
    }

    fn write_with(&self, server: &str, feeds: &[(&str, &str)]) {
        let feeds = feeds.iter().map(|(name, lines)| {
            let url = self.publisher.url(&format!("/{name}.xml"));
            place::feed(name, &url, lines)
        });
        let server = format!("{server}public_url = \"http://feeds.example\"");
        self.place.configure(&server, &feeds.collect::<String>());
    }

    async fn start(&self) -> App {
        let source = ConfigSource {
            file: self.file(),
            environment: Vec::new(),
        };
        App::start_with(source.load().unwrap(), Some(source))
            .await
            .unwrap()
    }
}

/// Waits until a feed is answered with this status.
async fn answers(at: SocketAddr, name: &str, status: u16) {
    let target = format!("/feeds/{name}.json?max=1");
    until(&format!("{name} is answered {status}"), async || {
        get(at, &target).await.status == status
    })
    .await;
}

async fn status(app: &App) -> Value {
    get(app.admin_address(), "/status").await.json()
}

async fn metric(app: &App, name: &str) -> String {
    let all = get(app.admin_address(), "/metrics").await.text();
    let line = all
        .lines()
        .find_map(|line| line.strip_prefix(name).map(str::trim).map(str::to_owned));
    line.unwrap_or_else(|| panic!("{name} is not in {all}"))
}

/// Waits until so many requests are held.
async fn holds(app: &App, waiters: usize) {
    until(&format!("{waiters} requests are held"), async || {
        status(app).await["waiters"] == waiters
    })
    .await;
}

async fn head(at: SocketAddr, name: &str) -> String {
    let newest = get(at, &format!("/feeds/{name}.json?order=-modified&max=1")).await;
    let page: Value = serde_json::from_slice(&newest.body).unwrap();
    page["last_cursor"].as_str().unwrap().to_owned()
}

/// Reloads while long polls are held and requests come at this rate; every one of them must be
/// answered well.
async fn reload_under_load(long_polls: usize, requests_per_sec: u32, reloads: usize) {
    let site = Site::new().await;
    // Nothing is due while the test runs.
    site.write(&[("blog", ""), ("leaving", "")]);
    let app = site.start().await;
    let at = app.address();
    answers(at, "blog", 200).await;
    answers(at, "leaving", 200).await;
    let (cursor, leaving) = (head(at, "blog").await, head(at, "leaving").await);

    let mut held = JoinSet::new();
    for _ in 0..long_polls {
        let target = format!("/feeds/blog.json?since=cursor:{cursor}&timeout=300");
        held.spawn(async move { ask(at, Method::GET, &target, &[], "").await });
    }
    let target = format!("/feeds/leaving.json?since=cursor:{leaving}&timeout=300");
    let ended = tokio::spawn(async move { ask(at, Method::GET, &target, &[], "").await });
    holds(&app, long_polls + 1).await;

    let stop = Arc::new(AtomicBool::new(false));
    let until = stop.clone();
    let load = tokio::spawn(async move {
        let mut tick = interval(Duration::from_secs(1) / requests_per_sec);
        let mut asked = JoinSet::new();
        while !until.load(Ordering::Relaxed) {
            tick.tick().await;
            asked.spawn(async move {
                let begun = Instant::now();
                let answer = ask(
                    at,
                    Method::GET,
                    "/feeds/blog.json?timeout=0&max=10",
                    &[],
                    "",
                )
                .await;
                (answer.map(|answer| answer.status), begun.elapsed())
            });
        }
        asked.join_all().await
    });

    for n in 0..reloads {
        let poll = format!("poll = {{ min_secs = {}, max_secs = 86400 }}\n", 3600 + n);
        site.write(&[("blog", &poll), ("coming", "")]);
        let report = app.reload().await.unwrap();
        assert_eq!(report.changes.changed[0].keys, ["poll.min_secs"]);
        sleep(Duration::from_millis(100)).await;
    }
    // The feed that left ended its long poll with an empty page, and is gone; the one that came is
    // polled and served.
    let ended = ended.await.unwrap().expect("the long poll is answered");
    let page: Value = serde_json::from_slice(&ended.body).unwrap();
    assert_eq!(
        (ended.status, page["items"].as_array().unwrap().len()),
        (200, 0)
    );
    assert_eq!(get(at, "/feeds/leaving.json").await.status, 410);
    assert_eq!(get(at, "/feeds/leaving/about").await.status, 410);
    assert_eq!(
        status(&app).await["removed"],
        serde_json::json!(["leaving"])
    );
    assert_eq!(get(at, "/feeds/never.json").await.status, 404);
    answers(at, "coming", 200).await;
    holds(&app, long_polls).await;
    assert!(
        held.try_join_next().is_none(),
        "no long poll of another feed was ended"
    );

    stop.store(true, Ordering::Relaxed);
    let answered = load.await.unwrap();
    let bad: Vec<_> = answered
        .iter()
        .filter(|(status, _)| *status != Some(200))
        .collect();
    assert!(
        bad.is_empty(),
        "{} of {} requests failed: {bad:?}",
        bad.len(),
        answered.len()
    );

    // A changed URL is asked at once, and what it shows wakes everybody who waits.
    site.publisher.says(rss(4));
    site.write(&[
        (
            "blog",
            "aliases = [\"https://blog.example/\"]\npoll = { min_secs = 1, max_secs = 1 }\n",
        ),
        ("coming", ""),
    ]);
    app.reload().await.unwrap();
    let woken = timeout(PATIENCE, held.join_all())
        .await
        .expect("every long poll is answered");
    let whole = |answer: &Option<Answer>| {
        let page: Value = serde_json::from_slice(&answer.as_ref().unwrap().body).unwrap();
        answer.as_ref().unwrap().status == 200 && page["items"].as_array().unwrap().len() == 1
    };
    let good = woken.iter().filter(|answer| whole(answer)).count();
    assert_eq!(
        good, long_polls,
        "every long poll is answered with the new item"
    );
    let slowest = answered
        .iter()
        .map(|(_, took)| *took)
        .max()
        .unwrap_or_default();
    println!(
        "{reloads} reloads; requests: {}, failed: 0, slowest: {slowest:?}; long polls: {long_polls}, cut: 0, answered with the new item: {good}",
        answered.len()
    );
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_fails_no_request_and_cuts_no_long_poll() {
    reload_under_load(50, 50, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "for the figures: 200 requests a second and 1,000 long polls; run alone, with --nocapture"]
async fn a_reload_under_load() {
    reload_under_load(1000, 200, 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_leaves_the_configuration_in_force_and_is_told_everywhere() {
    let site = Site::new().await;
    site.write(&[("blog", "")]);
    let app = site.start().await;
    answers(app.address(), "blog", 200).await;
    assert_eq!(metric(&app, "everfeed_config_reload_success").await, "1");

    // A mistake in one feed: the other, a good one, is not taken in either.
    site.write(&[("blog", ""), ("new", ""), ("bad", "colour = 1\n")]);
    assert!(matches!(app.reload().await, Err(ReloadRefused::Config(_))));
    let told = ask(app.admin_address(), Method::POST, "/reload", &[], "")
        .await
        .unwrap();
    assert_eq!(told.status, 422);
    assert!(told.text().contains("colour"), "{}", told.text());
    assert_eq!(get(app.address(), "/feeds/new.json").await.status, 404);
    let config = status(&app).await["config"].clone();
    assert!(
        config["reload"]["error"]
            .as_str()
            .unwrap()
            .contains("colour"),
        "{config}"
    );
    assert_eq!(metric(&app, "everfeed_config_reload_success").await, "0");

    // Another namespace than the store remembers: nothing is registered, the new feed is not
    // either.
    site.write(&[("new", ""), ("blog", "id_namespace = \"other\"\n")]);
    assert!(matches!(
        app.reload().await,
        Err(ReloadRefused::Namespace(_))
    ));
    assert_eq!(get(app.address(), "/feeds/new.json").await.status, 404);
    assert_eq!(get(app.address(), "/feeds/blog.json").await.status, 200);

    // Keys that wait for the next start are named, also when nothing else changed.
    site.write_with("waiters_max = 7\n", &[("blog", "")]);
    let told = ask(app.admin_address(), Method::POST, "/reload", &[], "")
        .await
        .unwrap();
    assert_eq!(
        (told.status, &*told.text()),
        (
            200,
            "no feed changed\nrestart  server.waiters_max takes effect at the next start\n"
        )
    );
    let config = status(&app).await["config"].clone();
    assert_eq!(
        (
            &config["reload"]["error"],
            &config["waiting_for_restart"][0]
        ),
        (&Value::Null, &"server.waiters_max".into())
    );
    assert_eq!(metric(&app, "everfeed_config_reload_success").await, "1");
    app.stop().await.unwrap();
}

/// The words that `check`, `reload` and a start agree on, each with whether it takes the file in.
async fn verdicts(site: &Site, app: App) -> Vec<(bool, String)> {
    let mut told = Vec::new();
    let check = |site: &Site| {
        let checked = everfeed(&["check"], site);
        assert!(matches!(checked.code, 0 | 64), "{checked:?}");
        let is_good = checked.code == 0;
        let said = if is_good { checked.out } else { checked.err };
        (is_good, said)
    };
    told.push(check(site));
    let reloaded = ask(app.admin_address(), Method::POST, "/reload", &[], "")
        .await
        .unwrap();
    told.push((reloaded.status == 200, reloaded.text()));
    app.stop().await.unwrap();
    told.push(check(site));
    let source = ConfigSource {
        file: site.file(),
        environment: Vec::new(),
    };
    match App::start_with(source.load().unwrap(), Some(source)).await {
        Ok(app) => {
            told.push((true, String::new()));
            app.stop().await.unwrap();
        }
        Err(error) => told.push((false, format!("{error:#}"))),
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn check_reload_and_a_start_agree_on_a_changed_url() {
    let site = Site::at(Place::free()).await;
    let start = async |feeds: &[(&str, &str)]| {
        site.write(feeds);
        let app = site.start().await;
        for (name, _) in feeds {
            answers(app.address(), name, 200).await;
        }
        app
    };
    let change = |from: &str, to: &str| {
        let text = std::fs::read_to_string(site.file()).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(site.file(), text.replace(from, to)).unwrap();
    };
    let moved = "The url of feed `blog` has changed. Its items keep their ids. Nothing to do.";

    let app = start(&[("blog", "")]).await;
    let before = get(app.address(), "/feeds/blog.json").await.text();
    change("/blog.xml", "/new/place.xml");
    let told = verdicts(&site, app).await;
    assert!(told.iter().all(|(is_good, _)| *is_good), "{told:?}");
    assert!(
        told[0].1.contains(moved) && told[1].1.contains(moved),
        "{told:?}"
    );
    let app = site.start().await;
    assert_eq!(
        get(app.address(), "/feeds/blog.json").await.text(),
        before,
        "the same items under the same ids"
    );
    app.stop().await.unwrap();

    // Another feed at the address that `blog` has left would get ids that `blog` has.
    let app = start(&[("blog", "")]).await;
    change("/blog.xml", "/new/place.xml");
    assert_eq!(
        ask(app.admin_address(), Method::POST, "/reload", &[], "")
            .await
            .unwrap()
            .status,
        200
    );
    let file = std::fs::read_to_string(site.file()).unwrap();
    let url = site.publisher.url("/blog.xml");
    std::fs::write(
        site.file(),
        format!("{file}[[feed]]\nname = \"second\"\nurl = \"{url}\"\n"),
    )
    .unwrap();
    let told = verdicts(&site, app).await;
    assert!(
        told.iter()
            .all(|(is_good, said)| !is_good && said.contains("Feed `blog` holds")),
        "{told:?}"
    );

    // And a namespace that the operator names against the ids that are held is refused by all of
    // them.
    std::fs::write(site.file(), file).unwrap();
    let app = site.start().await;
    change(
        "name = \"blog\"\n",
        "name = \"blog\"\nid_namespace = \"mine\"\n",
    );
    let told = verdicts(&site, app).await;
    assert!(
        told.iter()
            .all(|(is_good, said)| !is_good && said.contains("leave id_namespace out")),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_of_a_changed_url_is_accepted_with_and_without_a_process() {
    let site = Site::at(Place::free()).await;
    site.write(&[("blog", "")]);
    let app = site.start().await;
    answers(app.address(), "blog", 200).await;
    let items = async |app: &App| {
        let page: Value =
            serde_json::from_slice(&get(app.address(), "/feeds/blog.json").await.body).unwrap();
        page["totalItems"].as_u64().unwrap()
    };
    let other = |guid: &str| {
        let text = format!(
            "<rss version=\"2.0\"><channel><title>other</title><item><guid>{guid}</guid></item></channel></rss>"
        );
        ok("application/rss+xml", text.as_bytes())
    };
    let move_to = |path: &str| {
        let text = std::fs::read_to_string(site.file()).unwrap();
        let start = text.find("url = \"http://127").unwrap();
        let end = start + text[start..].find('\n').unwrap();
        let line = format!("url = \"{}\"", site.publisher.url(path));
        std::fs::write(site.file(), [&text[..start], &line, &text[end..]].concat()).unwrap();
    };
    let asks = async |app: &App| {
        until("the question is asked", async || {
            let fault = status(app).await["feeds"][0]["fault"].clone();
            let text = fault["text"].as_str().unwrap_or_default();
            text.contains("another feed?") && fault["whose"] == "configuration"
        })
        .await;
    };
    site.publisher.says(other("x"));
    move_to("/second.xml");
    assert_eq!(
        ask(app.admin_address(), Method::POST, "/reload", &[], "")
            .await
            .unwrap()
            .status,
        200
    );
    asks(&app).await;
    assert_eq!(items(&app).await, 3);
    let accepted = everfeed(&["accept", "blog"], &site);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert_eq!(items(&app).await, 4);
    assert_eq!(
        everfeed(&["accept", "blog"], &site).code,
        1,
        "there is nothing to accept"
    );

    site.publisher.says(other("y"));
    move_to("/third.xml");
    app.stop().await.unwrap();
    let app = site.start().await;
    asks(&app).await;
    app.stop().await.unwrap();
    let accepted = everfeed(&["accept", "blog"], &site);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    let app = site.start().await;
    until("the document is taken", async || items(&app).await == 5).await;
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_comes_back_takes_up_its_memory() {
    let site = Site::new().await;
    site.write(&[("blog", ""), ("other", "")]);
    let app = site.start().await;
    let at = app.address();
    answers(at, "blog", 200).await;
    let cursor = head(at, "blog").await;
    let asked = |site: &Site| {
        site.publisher
            .requests()
            .iter()
            .filter(|head| head.contains("/blog.xml"))
            .count()
    };
    let polls = asked(&site);
    site.write(&[("other", "")]);
    app.reload().await.unwrap();
    assert_eq!(get(at, "/feeds/blog.json").await.status, 410);
    let list = get(at, "/feeds").await;
    assert!(!list.text().contains("/blog"), "{}", list.text());
    site.write(&[("blog", ""), ("other", "")]);
    app.reload().await.unwrap();
    assert_eq!(
        get(at, "/feeds/blog.json").await.status,
        200,
        "without waiting for another document"
    );
    assert_eq!(head(at, "blog").await, cursor);
    assert_eq!(asked(&site), polls, "it is not due, so it is not polled");
    app.stop().await.unwrap();

    // The same over a restart; and a feed is forgotten only when it is configured no more.
    site.write(&[("other", "")]);
    let app = site.start().await;
    assert_eq!(get(app.address(), "/feeds/blog.json").await.status, 410);
    let forget = async |name: &str| {
        let target = format!("/forget/{name}");
        ask(app.admin_address(), Method::POST, &target, &[], "")
            .await
            .unwrap()
            .status
    };
    assert_eq!((forget("other").await, forget("never").await), (409, 404));
    assert_eq!((forget("blog").await, forget("blog").await), (200, 404));
    assert_eq!(get(app.address(), "/feeds/blog.json").await.status, 404);
    // Registered anew, it is another feed: read from its publisher, with nothing of what was kept.
    site.write(&[("blog", ""), ("other", "")]);
    app.reload().await.unwrap();
    answers(app.address(), "blog", 200).await;
    assert_ne!(head(app.address(), "blog").await, cursor);
    app.stop().await.unwrap();

    // On a store that nobody serves.
    site.write(&[("other", "")]);
    let forgotten = everfeed(&["forget", "blog"], &site);
    for words in [
        "feed `blog` is forgotten",
        "was written anew without it",
        "not reached: backups",
    ] {
        assert!(forgotten.out.contains(words), "{words}: {forgotten:?}");
    }
    let configured = everfeed(&["forget", "other"], &site);
    assert_eq!(configured.code, 1, "{configured:?}");
}

fn everfeed(arguments: &[&str], site: &Site) -> Told {
    site.place.run(EVERFEED, arguments)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_and_the_signal_reload_a_running_process() {
    let site = Site::at(Place::free()).await;
    let at = site.place.consumers;
    site.write(&[("blog", "")]);
    let nobody = everfeed(&["reload"], &site);
    assert_eq!(nobody.code, 1);
    assert!(
        nobody
            .err
            .contains("everfeed is not running (nothing listens on 127.0.0.1:")
    );

    let mut serve = site.place.command(EVERFEED, &["serve"]);
    let mut running = site.place.start(serve.env("RUST_LOG", "error"));
    site.place.answers("/feeds/blog.json", 200).await;

    site.write(&[("blog", "platform = \"none\"\n"), ("new", "")]);
    let told = everfeed(&["reload"], &site);
    let expect = "added    feed.new\nchanged  feed.blog.platform\n";
    assert_eq!((told.code, told.out.as_str()), (0, expect));
    answers(at, "new", 200).await;

    std::fs::write(site.file(), "[server\n").unwrap();
    // The address of the process stands in the environment, since the file cannot be read.
    let mut command = site.place.command(EVERFEED, &["reload"]);
    let address = site.place.operator.to_string();
    let refused = run(command.env("EVERFEED__SERVER__ADMIN_LISTEN", address), b"");
    assert_eq!(refused.code, 64, "{refused:?}");

    site.write(&[("blog", "")]);
    running.signal(Signal::SIGHUP);
    answers(at, "new", 410).await;
    running.signal(Signal::SIGTERM);
    let ended = tokio::task::spawn_blocking(move || running.wait());
    assert!(ended.await.unwrap().success());
}

/// Feeds of a start that takes several batches.
const MANY: usize = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_start_with_many_feeds_answers_from_its_beginning_and_says_how_far_it_is() {
    let site = Site::at(Place::free()).await;
    let (consumers, operator) = (site.place.consumers, site.place.operator);
    let names: Vec<String> = (0..MANY).map(|n| format!("f{n}")).collect();
    let feeds: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    site.write(&feeds[..MANY - 1_000]);
    let source = ConfigSource {
        file: site.file(),
        environment: Vec::new(),
    };
    let config = source.load().unwrap();
    let starting = tokio::spawn(App::start_with(config, Some(source)));
    let (mut told, mut served) = (Vec::new(), Vec::new());
    while !starting.is_finished() {
        if let Some(answer) = ask(operator, Method::GET, "/ready", &[], "").await {
            assert_eq!(get(operator, "/live").await.status, 200);
            told.push((answer.status, answer.text()));
            let last = format!("/feeds/f{}", MANY - 1_001);
            let answer = get(consumers, &last).await;
            served.push((
                answer.status,
                !answer.header("retry-after").is_empty(),
                answer.text(),
            ));
        }
        tokio::task::yield_now().await;
    }
    let app = starting.await.unwrap().unwrap();
    let parts =
        |status: u16, text: &str| status == 503 && text.contains("of 4000 feeds are registered");
    assert!(
        told.iter().any(|(status, text)| parts(*status, text)),
        "{told:?}"
    );
    // Consumers wait a little for its end: whoever is told to come again is told when.
    assert!(
        served
            .iter()
            .all(|(status, again, _)| *status == 503 && *again || *status == 200),
        "{served:?}"
    );
    assert_eq!(get(operator, "/ready").await.status, 200);

    site.write(&feeds);
    let report = app.reload().await.unwrap();
    assert_eq!(
        (report.changes.added.len(), report.changes.removed.len()),
        (1_000, 0)
    );
    let last = format!("/feeds/f{}", MANY - 1);
    assert_ne!(get(consumers, &last).await.status, 404);
    app.stop().await.unwrap();
}
