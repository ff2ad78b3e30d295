//! Debian's Prometheus: the alert rules of `deploy/` pass their own tests, and the queries of
//! Grafana's board find data in a Prometheus that scrapes everfeed. `tests/run` installs it.

use crate::EVERFEED;
use http::Method;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use testkit::{
    client,
    place::{self, Place, Running, free_address, run},
    publisher::{Publisher, rss, with_headers},
    wait::comes,
};

/// Login `x` with the password `y`, whom nobody knows.
const STRANGER: &str = "Basic eDp5";

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy")
        .join(file)
}

#[test]
fn each_alert_rule_fires_when_it_should_and_is_silent_when_not() {
    for (words, file) in [
        (["check", "config"], "prometheus/prometheus.yml"),
        (["test", "rules"], "prometheus/everfeed.rules.test.yml"),
    ] {
        let told = run(Command::new("promtool").args(words).arg(deploy(file)), b"");
        assert_eq!(told.code, 0, "{file}: {}", told.all());
        assert!(told.all().contains("SUCCESS"), "{file}: {}", told.all());
    }
}

/// Starts a Prometheus that scrapes everfeed each second.
fn prometheus(place: &Place) -> (SocketAddr, Running) {
    let text = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\nscrape_configs:\n  \
         - {{ job_name: everfeed, static_configs: [{{ targets: [\"{}\"] }}] }}\n",
        place.operator
    );
    place.write("prometheus.yml", &text);
    let address = free_address();
    let mut command = Command::new("prometheus");
    command
        .arg("--config.file=prometheus.yml")
        .arg("--storage.tsdb.path=series")
        .arg(format!("--web.listen-address={address}"))
        .current_dir(place.folder());
    (address, place.start_logging("prometheus.log", &mut command))
}

/// Collects the queries of a board.
fn queries(board: &Value, found: &mut Vec<String>) {
    match board {
        Value::Object(object) => {
            let is_of_panel = object.contains_key("refId");
            let query = object.get("expr").and_then(Value::as_str);
            found.extend(query.filter(|_| is_of_panel).map(str::to_owned));
            object.values().for_each(|value| queries(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| queries(value, found)),
        _ => {}
    }
}

/// A query as Grafana would send it, with everything chosen.
fn filled(query: &str) -> String {
    query
        .replace("$__rate_interval", "1m")
        .replace("$job", ".*")
        .replace("$instance", ".*")
        .replace("$feed", ".*")
}

/// The words of a query that name metrics of everfeed.
fn metrics(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("everfeed_"))
}

/// What Prometheus answers; null if it does not, or refuses the query.
async fn asked(prometheus: SocketAddr, path: &str, query: &str) -> Value {
    let mut target = url::form_urlencoded::Serializer::new(format!("{path}?"));
    target.append_pair("query", query);
    let answer = client::ask(prometheus, Method::GET, &target.finish(), &[], "").await;
    answer.map_or(Value::Null, |answer| answer.json()["data"].take())
}

/// The names of all metrics that Prometheus has.
async fn names(prometheus: SocketAddr) -> BTreeSet<String> {
    let names = asked(prometheus, "/api/v1/label/__name__/values", "").await;
    serde_json::from_value(names).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queries_of_the_board_find_data() {
    let posts = Arc::new(AtomicUsize::new(3));
    let count = posts.clone();
    let blog = Publisher::of(move |asked| match asked.path() {
        "/down.xml" => with_headers(500, &[], ""),
        _ if asked.is_post() => with_headers(200, &[], ""),
        _ => rss(count.load(Ordering::Relaxed)),
    })
    .await;
    let place = Place::free();
    let feeds = [
        place::feed("blog", &blog.url("/rss.xml"), ""),
        place::feed("diary", &blog.url("/diary.xml"), "access = \"private\""),
        place::feed("down", &blog.url("/down.xml"), ""),
    ];
    let rest = format!(
        "{}[[site]]\nhost = \"blog.example.org\"\norigin = \"{}\"\nfeeds = [\"/rss.xml\"]\n\
         [[webhook]]\nurl = \"{}\"\nfeed = \"blog\"\nsecret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n",
        feeds.concat(),
        blog.url("").trim_end_matches('/'),
        blog.url("/hook"),
    );
    place.configure("", &rest);
    let _everfeed = place.start(&mut place.command(EVERFEED, &["serve"]));
    place.answers("/feeds/blog.json", 200).await;
    let (prometheus, _running) = prometheus(&place);

    // What is counted: a push, and a password that is refused.
    posts.store(4, Ordering::Relaxed);
    let polled = place.run(EVERFEED, &["poll", "blog", "--now"]);
    assert!(polled.all().contains("1 new"), "{}", polled.all());
    let headers = [("authorization", STRANGER)];
    let diary = "/feeds/diary.json";
    let refused = client::ask(place.consumers, Method::GET, diary, &headers, "").await;
    assert_eq!(refused.map(|answer| answer.status), Some(401));

    let board = std::fs::read(deploy("grafana/everfeed.json")).unwrap();
    let mut all = Vec::new();
    queries(&serde_json::from_slice(&board).unwrap(), &mut all);
    // Queries of metrics that are there, and what is not there without XMPP, ACME or a database.
    let due = async || {
        let names = names(prometheus).await;
        let is_there = |query: &&String| metrics(query).all(|name| names.contains(name));
        all.iter().filter(is_there).cloned().collect::<Vec<_>>()
    };
    let unanswered = async || {
        let mut unanswered = Vec::new();
        for query in due().await {
            let found = asked(prometheus, "/api/v1/query", &filled(&query)).await;
            if found["result"].as_array().is_none_or(Vec::is_empty) {
                unanswered.push(query);
            }
        }
        unanswered
    };
    let is_pushed = async || names(prometheus).await.contains("everfeed_pushes_total");
    assert!(comes(is_pushed).await, "{}", place.read("prometheus.log"));
    let is_answered = comes(async || unanswered().await.is_empty()).await;
    assert!(is_answered, "{:#?}", unanswered().await);
    let due = due().await.len();
    assert!(due >= 40, "{due} of {} queries were asked", all.len());
}
