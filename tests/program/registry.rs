//! The registry of feeds, the whole program: feeds come and go while it runs, beside the file, its
//! groups and its sites; what cannot stand beside another is refused, and what cannot be read stops
//! nothing.

use everfeed::{
    app::App,
    clock::System,
    config::ConfigSource,
    store::{
        RegistryChange,
        redb::{Config, Redb},
        traits::*,
    },
};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{
    client::{Answer, ask, get},
    place::{Place, feed},
    publisher::{Publisher, ok, rss},
    wait::until,
};

/// A place, and the publisher of all feeds.
struct World {
    place: Place,
    publisher: Publisher,
}

impl World {
    async fn new() -> Self {
        let publisher = Publisher::start().await;
        publisher.says(rss(3));
        Self {
            place: Place::unbound(),
            publisher,
        }
    }

    fn url(&self, name: &str) -> String {
        self.publisher.url(&format!("/{name}.xml"))
    }

    /// Writes a file with these feeds, and further lines.
    fn write(&self, feeds: &[&str], lines: &str) {
        let feeds = feeds.iter().map(|name| feed(name, &self.url(name), ""));
        let rest = feeds.collect::<String>() + lines;
        let server = "public_url = \"http://feeds.example\"";
        self.place.configure(server, &rest);
    }

    fn source(&self) -> ConfigSource {
        ConfigSource {
            file: self.place.file(),
            environment: Vec::new(),
        }
    }

    async fn try_start(&self) -> Result<App, String> {
        let source = self.source();
        let config = source.load().map_err(|error| error.to_string())?;
        let app = App::start_with(config, Some(source)).await;
        app.map_err(|error| format!("{error:#}"))
    }

    async fn start(&self) -> App {
        self.try_start().await.unwrap()
    }

    /// The keys of a feed, as JSON.
    fn entry(&self, name: &str) -> Value {
        json!({ "url": self.url(name), "import": { "pages_max": 0 } })
    }

    /// Changes the registry of a store that nobody serves.
    async fn tamper(&self, changes: Vec<RegistryChange>) {
        let path = self.place.path("everfeed.redb");
        let store = Redb::open(&path, &Config::default(), Arc::new(System)).unwrap();
        store.change_registry(changes).await.unwrap();
        store.close().await.unwrap();
    }
}

async fn send(app: &App, method: Method, target: &str, body: &str) -> Answer {
    ask(app.admin_address(), method, target, &[], body)
        .await
        .unwrap()
}

async fn put(app: &App, name: &str, keys: &Value) -> Answer {
    send(
        app,
        Method::PUT,
        &format!("/feeds/{name}"),
        &keys.to_string(),
    )
    .await
}

async fn remove(app: &App, name: &str) -> Answer {
    send(app, Method::DELETE, &format!("/feeds/{name}"), "").await
}

/// The status of a refusal and the key of its first mistake.
fn mistake(answer: &Answer) -> (u16, String) {
    assert_eq!(
        answer.header("content-type"),
        "application/problem+json",
        "{}",
        answer.text()
    );
    let told = answer.json();
    assert_eq!(told["status"], answer.status);
    let key = told["errors"][0]["key"].as_str().unwrap_or_default();
    (answer.status, key.to_owned())
}

/// Names and sources of all feeds.
async fn sources(app: &App) -> Vec<(String, String)> {
    let page = send(app, Method::GET, "/feeds", "").await.json();
    let text = |feed: &Value, key: &str| feed[key].as_str().unwrap().to_owned();
    let feeds = page["feeds"].as_array().unwrap();
    let row = |feed: &Value| (text(feed, "name"), text(feed, "source"));
    feeds.iter().map(row).collect()
}

fn row(name: &str, source: &str) -> (String, String) {
    (name.to_owned(), source.to_owned())
}

/// Waits until a feed is answered with this status.
async fn answers(app: &App, name: &str, status: u16) {
    let target = format!("/feeds/{name}.json?max=1");
    until(&format!("{name} is answered {status}"), async || {
        get(app.address(), &target).await.status == status
    })
    .await;
}

async fn items(app: &App, name: &str) -> u64 {
    let page = get(app.address(), &format!("/feeds/{name}.json")).await;
    page.json()["totalItems"].as_u64().unwrap_or_default()
}

async fn status(app: &App) -> Value {
    get(app.admin_address(), "/status").await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_is_put_changed_shown_without_its_secrets_and_removed_with_its_items_kept() {
    let world = World::new().await;
    world.write(&["blog"], "");
    let app = world.start().await;
    let url = world.url("one").replace("//", "//me:hunter2@") + "?token=abc";
    let mut keys = json!({ "url": url, "import": { "pages_max": 0 } });
    let added = put(&app, "one", &keys).await;
    assert_eq!(added.status, 201, "{}", added.text());
    // It is there when it is answered; its first document may not be.
    let at_once = get(app.address(), "/feeds/one.json").await.status;
    assert!(matches!(at_once, 200 | 503), "{at_once}");
    answers(&app, "one", 200).await;
    assert_eq!(put(&app, "one", &keys).await.status, 200, "the same again");
    keys["poll"] = json!({ "min_secs": 4000 });
    assert_eq!(put(&app, "one", &keys).await.status, 200, "changed");

    let shown = send(&app, Method::GET, "/feeds/one", "").await;
    let masked = shown.json()["url"].as_str().unwrap().to_owned();
    assert!(masked.contains("***@") && masked.ends_with("token=***"));
    assert!(!shown.text().contains("hunter2"), "{}", shown.text());
    // What is shown is no entry: the secret would be lost.
    keys["url"] = masked.into();
    let refused = put(&app, "one", &keys).await;
    assert_eq!(mistake(&refused), (422, "feed.one.url".into()));

    let both = [row("blog", "file"), row("one", "registry")];
    assert_eq!(sources(&app).await, both);
    for (method, name, status) in [
        (Method::GET, "blog", 404),
        (Method::DELETE, "blog", 404),
        (Method::GET, "never", 404),
        (Method::DELETE, "never", 404),
        (Method::POST, "one", 405),
    ] {
        let answer = send(&app, method.clone(), &format!("/feeds/{name}"), "").await;
        assert_eq!(mistake(&answer), (status, String::new()), "{method} {name}");
    }
    let forget = async |app: &App| send(app, Method::POST, "/forget/one", "").await.status;
    assert_eq!(forget(&app).await, 409, "it is registered");
    let polls = || {
        let paths = world.publisher.paths();
        paths
            .iter()
            .filter(|path| path.starts_with("/one.xml"))
            .count()
    };
    let polled = polls();
    assert_eq!(items(&app, "one").await, 3);
    let removed = remove(&app, "one").await;
    assert_eq!((removed.status, removed.body.len()), (204, 0));
    answers(&app, "one", 410).await;
    assert_eq!(status(&app).await["removed"], json!(["one"]));
    app.stop().await.unwrap();

    // Registered again, it goes on where it stopped; and the entry outlives the process.
    let app = world.start().await;
    answers(&app, "one", 410).await;
    keys["url"] = url.into();
    assert_eq!(put(&app, "one", &keys).await.status, 201);
    assert_eq!(items(&app, "one").await, 3);
    assert_eq!(polls(), polled, "it is not due");
    app.stop().await.unwrap();
    let app = world.start().await;
    answers(&app, "one", 200).await;
    assert_eq!(status(&app).await["registry"]["entries"], 1);
    remove(&app, "one").await;
    assert_eq!(forget(&app).await, 200);
    answers(&app, "one", 404).await;
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_those_of_a_feed_of_the_file_and_name_their_keys() {
    let world = World::new().await;
    world.write(&["blog"], "");
    let app = world.start().await;
    let url = world.url("one");
    for (name, keys, expect) in [
        ("one", json!({}), (422, "feed.one.url")),
        ("one", json!({ "url": "ftp://x/" }), (422, "feed.one.url")),
        (
            "one",
            json!({ "url": url, "colour": 1 }),
            (422, "feed.one.colour"),
        ),
        (
            "one",
            json!({ "url": url, "poll": { "min_secs": "x" } }),
            (422, "feed.one.poll.min_secs"),
        ),
        (
            "one",
            json!({ "url": url, "platform": "none-such" }),
            (422, "feed.one.platform"),
        ),
        (
            "one",
            json!({ "url": url, "name": "two" }),
            (422, "feed.name"),
        ),
        ("One", json!({ "url": url }), (422, "feed.name")),
        ("one", json!([1]), (422, "feed.one")),
        (
            "one",
            json!({ "url": url, "categories": vec!["x".repeat(60); 400] }),
            (422, "feed.one"),
        ),
        // Its ids would be those of a feed of the file.
        (
            "one",
            json!({ "url": world.url("blog") }),
            (422, "feed.one.url"),
        ),
        ("blog", json!({ "url": url }), (409, "feed.blog.name")),
    ] {
        let refused = put(&app, name, &keys).await;
        assert_eq!(mistake(&refused), (expect.0, expect.1.into()), "{keys}");
    }
    let refused = send(&app, Method::PUT, "/feeds/one", "{").await;
    assert_eq!(mistake(&refused).0, 422);
    // What a parser of URLs would take out, and what would poll us.
    let (consumers, operator) = (app.address().port(), app.admin_address().port());
    let clean = url.clone();
    for bad in [
        clean.replace("one", "o\nne"),
        clean.replace("one", "o\r\nne"),
        clean.replace("one", "o\u{0}ne"),
        format!("{clean}\n"),
        format!("\t{clean}"),
        format!("http://127.0.0.1:{consumers}/feeds/blog"),
        format!("http://localhost.:{consumers}/"),
        format!("http://[::ffff:127.0.0.1]:{operator}/status"),
        format!("http://0.0.0.0:{operator}/"),
        "http://FEEDS.example./feeds/blog".to_owned(),
        "https://feeds.example/feeds/blog.rss?x".to_owned(),
    ] {
        for (keys, key) in [
            (json!({ "url": bad }), "feed.one.url"),
            (
                json!({ "url": clean, "aliases": [bad] }),
                "feed.one.aliases",
            ),
        ] {
            let refused = put(&app, "one", &keys).await;
            let (status, told) = mistake(&refused);
            assert!(status == 422 && told.starts_with(key), "{keys}: {told}");
        }
        let toml = format!("[[feed]]\nname = \"one\"\nurl = {}\n", json!(bad));
        let refused = send(&app, Method::POST, "/feeds", &toml).await;
        assert_eq!(mistake(&refused), (422, "feed.one.url".into()), "{toml}");
    }
    // A neighbour at another port of this machine is none of ours.
    assert!(clean.starts_with("http://127.0.0.1:"), "{clean}");

    // Of several, none is registered when one cannot be.
    let good = feed("one", &url, "");
    let toml = format!("{good}[[feed]]\nname = \"two\"\nurl = \"http://x/\"\ncolour = 1\n");
    let refused = send(&app, Method::POST, "/feeds", &toml).await;
    assert_eq!(mistake(&refused), (422, "feed.two.colour".into()));
    assert_eq!(refused.json()["errors"][0]["line"], 9);
    let toml = format!("{good}[server]\nlisten = \"127.0.0.1:1\"\n");
    let refused = send(&app, Method::POST, "/feeds", &toml).await;
    assert_eq!(mistake(&refused), (422, "server".into()));
    let twice = send(&app, Method::POST, "/feeds", &good.repeat(2)).await;
    assert_eq!(mistake(&twice), (422, "feed.name".into()));
    assert_eq!(sources(&app).await, [row("blog", "file")]);
    assert_eq!(status(&app).await["registry"]["entries"], 0);

    let applied = send(&app, Method::POST, "/feeds", &good).await;
    assert_eq!(applied.text(), "added    feed.one\n");
    let changed = feed("one", &url, "platform = \"none\"") + &feed("two", &world.url("two"), "");
    let applied = send(&app, Method::POST, "/feeds", &changed).await;
    let told = "changed  feed.one.platform\nadded    feed.two\n";
    assert_eq!(applied.text(), told);
    let applied = send(&app, Method::POST, "/feeds", &changed).await;
    let told = "same     feed.one\nsame     feed.two\n";
    assert_eq!(applied.text(), told);
    let same_ids = put(&app, "a", &world.entry("two")).await;
    assert_eq!(mistake(&same_ids), (422, "feed.a.url".into()));
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn puts_at_once_lose_nothing() {
    let world = World::new().await;
    world.write(&["blog"], "");
    let app = world.start().await;
    let names: Vec<String> = (0..12).map(|no| format!("f{no:02}")).collect();
    let puts = names.iter().map(|name| {
        let keys = world.entry(name);
        let app = &app;
        async move { put(app, name, &keys).await.status }
    });
    let told = futures_util::future::join_all(puts).await;
    assert!(told.iter().all(|status| *status == 201), "{told:?}");
    assert_eq!(sources(&app).await.len(), 13);
    app.stop().await.unwrap();
    let app = world.start().await;
    assert_eq!(sources(&app).await.len(), 13);
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_clashes_with_the_file_is_shadowed_and_stops_no_start() {
    let world = World::new().await;
    world.write(&["blog"], "");
    let app = world.start().await;
    for name in ["one", "two"] {
        assert_eq!(put(&app, name, &world.entry(name)).await.status, 201);
        answers(&app, name, 200).await;
    }
    // The file gets a feed of the same name, and one with the same address.
    let same = world.entry("two")["url"].as_str().unwrap().to_owned();
    let other = format!("[[feed]]\nname = \"other\"\nurl = \"{same}\"\n");
    world.write(&["blog", "one", "new"], &other);
    assert_eq!(send(&app, Method::POST, "/reload", "").await.status, 200);
    let check = async |app: &App| {
        for name in ["blog", "one", "new", "other"] {
            answers(app, name, 200).await;
        }
        let shadowed = status(app).await["registry"]["shadowed"].clone();
        let told = |at: usize, key: &str| shadowed[at][key].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (told(0, "name"), told(1, "name")),
            ("one".into(), "two".into())
        );
        assert!(
            told(0, "why").contains("everfeed feeds remove one"),
            "{shadowed}"
        );
        assert!(
            told(1, "why").contains("`other` with the same ids"),
            "{shadowed}"
        );
        let of_file = ["blog", "new", "one", "other"].map(|name| row(name, "file"));
        assert_eq!(sources(app).await, of_file);
        // A change that would bring a name into both is refused, and others go on.
        assert_eq!(put(app, "one", &world.entry("one")).await.status, 409);
        assert_eq!(put(app, "two", &world.entry("two")).await.status, 422);
    };
    check(&app).await;
    app.stop().await.unwrap();
    let app = world.start().await;
    check(&app).await;
    assert_eq!(put(&app, "three", &world.entry("three")).await.status, 201);

    // Once the file gives way, the entry counts again; and one may be removed while it is shadowed.
    assert_eq!(remove(&app, "one").await.status, 204);
    world.write(&["blog", "one"], "");
    assert_eq!(send(&app, Method::POST, "/reload", "").await.status, 200);
    answers(&app, "two", 200).await;
    let expect = [
        row("blog", "file"),
        row("one", "file"),
        row("three", "registry"),
        row("two", "registry"),
    ];
    assert_eq!(sources(&app).await, expect);
    assert_eq!(status(&app).await["registry"]["shadowed"], json!([]));
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_the_file_has_members_of_the_registry() {
    let world = World::new().await;
    let group = "[[group]]\nname = \"planet\"\nmembers = [\"blog\", \"one\"]\n\
                 [[group]]\nname = \"friends\"\nmembers = [\"blog\", \"category:friends\"]\n";
    world.write(&["blog"], "");
    let app = world.start().await;
    let mut keys = world.entry("one");
    keys["categories"] = json!(["friends"]);
    keys["id_namespace"] = "one".into();
    assert_eq!(put(&app, "one", &keys).await.status, 201);
    let friends =
        "[[feed]]\nname = \"other\"\nurl = \"http://127.0.0.1:1/\"\ncategories = [\"friends\"]\n";
    world.write(&["blog"], &format!("{friends}{group}"));
    let reloaded = send(&app, Method::POST, "/reload", "").await;
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    let has = async |app: &App, name: &str, expect: u64| {
        until(&format!("{name} has {expect} items"), async || {
            items(app, name).await == expect
        })
        .await;
    };
    has(&app, "planet", 6).await;
    has(&app, "friends", 6).await;
    // The members of a group are there: the file names one.
    let refused = remove(&app, "one").await;
    assert_eq!(mistake(&refused), (409, "group.planet.members[1]".into()));
    keys["access"] = "private".into();
    let refused = put(&app, "one", &keys).await;
    assert_eq!(mistake(&refused), (422, "group.friends.members[1]".into()));
    let refused = put(&app, "planet", &world.entry("x")).await;
    assert_eq!(mistake(&refused), (409, "feed.planet.name".into()));
    app.stop().await.unwrap();

    // The file alone names a feed that it lacks; with the registry it has all.
    let app = world.start().await;
    has(&app, "planet", 6).await;
    app.stop().await.unwrap();

    // An entry that cannot be read stops neither the others nor the group.
    let damaged = RegistryChange::Put {
        name: "one".to_owned(),
        text: "{\"url\":\"http://x/\",\"of_a_newer_everfeed\":1}".to_owned(),
    };
    let broken = RegistryChange::Put {
        name: "two".to_owned(),
        text: "no JSON".to_owned(),
    };
    world.tamper(vec![damaged, broken]).await;
    let app = world.start().await;
    answers(&app, "blog", 200).await;
    let unread = status(&app).await["registry"].clone();
    assert_eq!(unread["entries"], 2);
    assert_eq!(unread["unread"][0]["name"], "one");
    let why = unread["unread"][0]["why"].as_str().unwrap();
    assert!(why.contains("of_a_newer_everfeed"), "{why}");
    let listed = send(&app, Method::GET, "/feeds", "").await.json();
    assert_eq!(listed["unread"][1]["name"], "two");
    let one = get(app.address(), "/feeds/one.json").await;
    assert_eq!(one.status, 503, "it is not removed");
    assert!(!one.header("retry-after").is_empty());
    assert_eq!(status(&app).await["removed"], json!([]));
    let metrics = get(app.admin_address(), "/metrics").await.text();
    let gauge = "everfeed_registry_unread_entries 2";
    assert!(metrics.contains(gauge), "{metrics}");
    assert_eq!(
        send(&app, Method::POST, "/forget/one", "").await.status,
        409
    );
    assert_eq!(send(&app, Method::POST, "/reload", "").await.status, 200);
    // Put anew it goes on, and the other can be removed.
    keys["access"] = "public".into();
    assert_eq!(put(&app, "one", &keys).await.status, 201);
    assert_eq!(remove(&app, "two").await.status, 204);
    assert_eq!(items(&app, "one").await, 3);
    assert_eq!(status(&app).await["registry"]["unread"], json!([]));
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_may_be_the_feed_at_an_address_of_a_site() {
    let world = World::new().await;
    let origin = world.publisher.url("");
    let site = format!(
        "[[site]]\norigin = \"{origin}\"\nfeeds = [\"/one.xml\"]\nimport = {{ pages_max = 0 }}\n"
    );
    world.write(&["blog"], &site);
    let app = world.start().await;
    let of_site = [row("blog", "file"), row("site-one-xml", "site")];
    assert_eq!(sources(&app).await, of_site);
    let refused = put(&app, "site-one-xml", &world.entry("x")).await;
    assert_eq!(mistake(&refused), (409, "feed.site-one-xml.name".into()));
    // With the address of the site it is the site's feed, under its own name, as in the file.
    assert_eq!(put(&app, "one", &world.entry("one")).await.status, 201);
    let named = [row("blog", "file"), row("one", "registry")];
    assert_eq!(sources(&app).await, named);
    answers(&app, "one", 200).await;
    let old = get(app.address(), "/one.xml").await;
    assert_eq!(old.status, 200);
    app.stop().await.unwrap();
    let app = world.start().await;
    assert_eq!(sources(&app).await, named);
    assert_eq!(remove(&app, "one").await.status, 204);
    assert_eq!(sources(&app).await, of_site);
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_to_a_registered_feed_works_at_once_and_waits_while_it_is_removed() {
    let world = World::new().await;
    world.write(&["blog"], "[hub]\ncallbacks_private = true\n");
    let app = world.start().await;
    let mut keys = world.entry("one");
    keys["keep"] = json!({ "quota_bytes": 1_000_000 });
    assert_eq!(put(&app, "one", &keys).await.status, 201);
    answers(&app, "one", 200).await;
    let reader = Publisher::of(|asked| {
        let query = asked.path().split_once('?').map_or("", |parts| parts.1);
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let challenge = pairs.find(|(name, _)| *name == "hub.challenge");
        ok("text/plain", challenge.map_or("", |(_, value)| value))
    })
    .await;
    let topic = "http://feeds.example/feeds/one.atom?order=modified";
    let topic = topic.replace('?', "%3F").replace('=', "%3D");
    let callback = reader.url("/cb");
    let form =
        format!("hub.mode=subscribe&hub.verify=sync&hub.topic={topic}&hub.callback={callback}");
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let subscribe = async || {
        ask(app.address(), Method::POST, "/hub", &headers, &form)
            .await
            .unwrap()
            .status
    };
    assert_eq!(subscribe().await, 204);
    let pushes = || {
        let heads = reader.requests();
        heads
            .iter()
            .filter(|head| head.starts_with("POST "))
            .count()
    };
    let poll = async |app: &App| send(app, Method::POST, "/poll/one?now", "").await.status;
    world.publisher.says(rss(4));
    assert_eq!(poll(&app).await, 200);
    until("the change is pushed", async || pushes() == 1).await;

    assert_eq!(remove(&app, "one").await.status, 204);
    assert_eq!((poll(&app).await, subscribe().await), (404, 410));
    world.publisher.says(rss(5));
    assert_eq!(put(&app, "one", &keys).await.status, 201);
    assert_eq!(poll(&app).await, 200);
    until("the subscription goes on", async || pushes() == 2).await;
    // A quota holds from the next poll on.
    keys["keep"] = json!({ "quota_bytes": 1 });
    assert_eq!(put(&app, "one", &keys).await.status, 200);
    world.publisher.says(rss(6));
    poll(&app).await;
    assert_eq!(items(&app, "one").await, 5);
    keys["keep"] = json!({ "item_bytes_max": 1 });
    let refused = put(&app, "one", &keys).await;
    let key = "feed.one.keep.item_bytes_max";
    assert_eq!(mistake(&refused), (422, key.into()));
    app.stop().await.unwrap();
}
