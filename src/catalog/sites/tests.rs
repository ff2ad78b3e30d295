//! Sites by host, and the feeds of sites: their names, their addresses and who may read them.

use super::*;
use crate::{
    auth::access::AccessSettings,
    clock::Manual,
    store::{FoundFeeds, SiteStore as _, memory::Memory},
};

#[test]
fn a_request_is_for_the_site_of_its_host() {
    let site = |host: Option<&str>, port: u16| SiteSettings {
        host: host.map(str::to_owned),
        ..SiteSettings::new(Url::parse(&format!("http://127.0.0.1:{port}")).unwrap())
    };
    let check = |sites: &Sites, target: &str, named: Option<&str>, expect: Option<u16>| {
        let mut request = http::Request::get(target);
        if let Some(host) = named {
            request = request.header(HOST, host);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let found = sites
            .of(&parts)
            .and_then(|site| site.settings.origin.port());
        assert_eq!(found, expect, "{target} {named:?}");
    };
    let named = [
        site(Some("a.example"), 1),
        site(Some("b.example"), 2),
        site(Some("[::1]"), 3),
    ];
    let sites = Sites::new(&named);
    check(&sites, "/", Some("a.example"), Some(1));
    check(&sites, "/", Some("B.EXAMPLE.:80"), Some(2));
    check(&sites, "/", Some("[::1]:8080"), Some(3));
    check(&sites, "http://a.example/", Some("b.example"), Some(1));
    check(&sites, "/", Some("c.example"), None);
    check(&sites, "/", None, None);
    let with_any = [named.to_vec(), vec![site(None, 4)]].concat();
    let sites = Sites::new(&with_any);
    check(&sites, "/", Some("c.example"), Some(4));
    check(&sites, "/", None, Some(4));
    check(&sites, "/", Some("a.example"), Some(1));
}

#[tokio::test]
async fn what_was_found_joins_with_the_access_of_its_site_and_what_cannot_be_private_stays_out() {
    let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
    let public = Url::parse("http://blog.example/").unwrap();
    let site = SiteSettings::new(Url::parse("http://127.0.0.1:1").unwrap());
    let paths = ["/open.xml", "/closed.xml", "/?feed=rss2", "/?feed=atom"]
        .map(str::to_owned)
        .into();
    store
        .keep_found_feeds("http://blog.example/", FoundFeeds { paths })
        .await
        .unwrap();
    let feed = |name: &str, path: &str, access: AccessSettings| FeedSettings {
        access,
        ..FeedSettings::new(
            name,
            Url::parse("http://127.0.0.1:1")
                .unwrap()
                .join(path)
                .unwrap(),
        )
    };
    let known = vec![
        feed("closed", "/closed.xml", AccessSettings::Users),
        feed("hidden", "/?feed=atom", AccessSettings::Users),
    ];
    let placed = async |site: &SiteSettings| {
        let mut feeds = known.clone();
        join_found(&store, std::slice::from_ref(site), &public, &mut feeds)
            .await
            .unwrap();
        let row = |feed: FeedSettings| (feed.name, feed.legacy.is_some(), feed.access.is_private());
        feeds.into_iter().map(row).collect::<Vec<_>>()
    };
    let row = |name: &str, is_placed, is_private| (name.to_owned(), is_placed, is_private);
    let listed = [
        row("closed", true, true),
        row("hidden", false, true),
        row("site-open-xml", true, false),
        row("site-feed-rss2-1877d22b", true, false),
    ];
    assert_eq!(placed(&site).await, listed);
    let private = SiteSettings {
        access: AccessSettings::Users,
        ..site
    };
    let listed = [
        row("closed", true, true),
        row("hidden", false, true),
        row("site-open-xml", true, true),
    ];
    assert_eq!(placed(&private).await, listed);
}

#[tokio::test]
async fn no_address_of_a_private_feed_is_found_for_everybody() {
    let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
    let public = Url::parse("http://feeds.example/").unwrap();
    let site = |host: &str, port: u16| SiteSettings {
        host: Some(host.to_owned()),
        ..SiteSettings::new(Url::parse(&format!("http://127.0.0.1:{port}")).unwrap())
    };
    for host in ["a", "b", "c"] {
        let found = FoundFeeds {
            paths: vec!["/closed.xml".to_owned(), "/open.xml".to_owned()],
        };
        let root = format!("http://{host}.example/");
        store.keep_found_feeds(&root, found).await.unwrap();
    }
    let check = async |sites: &[SiteSettings], url: &str, alias: &str, expect: &[&str]| {
        let mut feeds = vec![FeedSettings {
            access: AccessSettings::Users,
            aliases: vec![Url::parse(alias).unwrap()],
            ..FeedSettings::new("closed", Url::parse(url).unwrap())
        }];
        join_found(&store, sites, &public, &mut feeds)
            .await
            .unwrap();
        let open = feeds.iter().filter(|feed| !feed.is_private());
        let mut open: Vec<&str> = open.map(|feed| feed.name.as_str()).collect();
        open.sort_unstable();
        assert_eq!(open, expect, "{url} {alias}");
    };
    let (a, b, c) = (
        site("a.example", 1),
        site("b.example", 1),
        site("c.example", 2),
    );
    let (of_a, of_b) = ("http://a.example/closed.xml", "http://b.example/closed.xml");
    let url = "http://127.0.0.1:1/closed.xml";
    for sites in [[a.clone(), b.clone()], [b.clone(), a.clone()]] {
        for alias in [of_a, of_b, "http://x.example/"] {
            check(&sites, url, alias, &["a-open-xml", "b-open-xml"]).await;
        }
    }
    let one = std::slice::from_ref(&a);
    for spelling in [
        "http://localhost:1/closed.xml",
        "http://[::1]:1/Closed.xml/",
        "http://user:pw@127.0.0.1:1//closed.xml?x=1",
        "http://127.0.0.1:9/elsewhere.xml",
        of_a,
    ] {
        check(one, spelling, of_a, &["a-open-xml"]).await;
    }
    let both = ["a-open-xml", "c-closed-xml", "c-open-xml"];
    check(&[a, c], url, of_a, &both).await;
    // Whoever reads the private one may read it there.
    let private = SiteSettings {
        access: AccessSettings::Users,
        ..b
    };
    check(&[private], "http://127.0.0.1:1/closed.xml/", of_a, &[]).await;
}

#[tokio::test]
async fn a_feed_of_a_site_keeps_its_name_whatever_sites_come_go_and_change_places() {
    let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
    let public = Url::parse("http://feeds.example/").unwrap();
    let site = |host: &str, feeds: SiteFeeds| SiteSettings {
        host: Some(host.to_owned()),
        feeds,
        ..SiteSettings::new(Url::parse("http://127.0.0.1:1").unwrap())
    };
    let found = |host: &str| site(host, SiteFeeds::default());
    let listed = |host: &str| site(host, SiteFeeds::Listed(vec!["/feed".into()]));
    for host in ["zero", "one", "two"] {
        let found = FoundFeeds {
            paths: vec!["/feed".to_owned()],
        };
        store
            .keep_found_feeds(&format!("http://blog.{host}.example/"), found)
            .await
            .unwrap();
    }
    let served = async |sites: &[SiteSettings]| {
        let mut feeds = vec![FeedSettings::new("other", Url::parse("http://x/").unwrap())];
        for number in 0..sites.len() {
            SiteSettings::join(
                sites,
                number,
                sites[number].feeds.listed(),
                &public,
                &mut feeds,
            );
        }
        join_found(&store, sites, &public, &mut feeds)
            .await
            .unwrap();
        let progress = crate::catalog::RegistrationProgress::default();
        let snapshot = crate::catalog::register(&store, feeds, &progress)
            .await
            .unwrap();
        let row = |feed: &Arc<crate::catalog::RegisteredFeed>| {
            (
                feed.settings.known_as().host_str().unwrap().to_owned(),
                feed.settings.name.clone(),
            )
        };
        snapshot
            .feeds()
            .map(row)
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let rows = |rows: &[(&str, &str)]| {
        let row = |(host, name): &(&str, &str)| ((*host).to_owned(), (*name).to_owned());
        rows.iter()
            .map(row)
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let (zero, one, two) = ("blog.zero.example", "blog.one.example", "blog.two.example");
    let other = ("x", "other");
    let both = rows(&[(one, "blog-feed"), (two, "blog-two-example-feed"), other]);
    assert_eq!(served(&[found(one), found(two)]).await, both);
    assert_eq!(
        served(&[found(two), found(one)]).await,
        both,
        "they have changed places"
    );
    assert_eq!(
        served(&[listed(two), listed(one)]).await,
        both,
        "and are listed"
    );
    let alone = rows(&[(two, "blog-two-example-feed"), other]);
    assert_eq!(served(&[found(two)]).await, alone, "the first has gone");
    let three = rows(&[
        (zero, "blog-zero-example-feed"),
        (one, "blog-feed"),
        (two, "blog-two-example-feed"),
        other,
    ]);
    assert_eq!(
        served(&[found(zero), found(one), found(two)]).await,
        three,
        "one comes before them"
    );
    let moved = rows(&[("blog.one.test", "blog-one-test-feed"), other]);
    assert_eq!(
        served(&[listed("blog.one.test")]).await,
        moved,
        "another host is another feed, and no mistake"
    );
}

#[tokio::test]
async fn the_feed_of_a_site_without_a_host_is_the_same_under_another_public_url() {
    let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
    let listed = SiteFeeds::Listed(vec!["/feed".into()]);
    let site = SiteSettings {
        feeds: listed,
        ..SiteSettings::new(Url::parse("http://127.0.0.1:1").unwrap())
    };
    let registered = async |public: &str| {
        let (sites, public) = (std::slice::from_ref(&site), Url::parse(public).unwrap());
        let mut feeds = Vec::new();
        SiteSettings::join(sites, 0, site.feeds.listed(), &public, &mut feeds);
        join_found(&store, sites, &public, &mut feeds)
            .await
            .unwrap();
        let progress = crate::catalog::RegistrationProgress::default();
        let snapshot = crate::catalog::register(&store, feeds, &progress)
            .await
            .unwrap();
        let feed = snapshot.feed("site-feed").unwrap();
        (
            feed.no,
            feed.settings.namespace(),
            feed.settings.known_as().to_string(),
        )
    };
    let (no, namespace, _) = registered("http://127.0.0.1:8080").await;
    let moved = registered("https://blog.example").await;
    assert_eq!(
        moved,
        (no, namespace, "https://blog.example/feed".to_owned())
    );
}

/// A feed as it is served: its name, its address, its former ones, and its namespace.
type Served = (String, String, Vec<String>, String);

/// Registers the listed feeds of sites, as a start does, beside feeds with tables of their own.
async fn started(store: &Memory, public: &str, text: &str) -> Vec<Served> {
    #[derive(serde::Deserialize)]
    struct Tables {
        #[serde(default)]
        site: Vec<SiteSettings>,
        #[serde(default)]
        feed: Vec<FeedSettings>,
    }
    let Tables { site, mut feed } = toml::from_str(text).unwrap();
    let public = Url::parse(public).unwrap();
    for (number, one) in site.iter().enumerate() {
        SiteSettings::join(&site, number, one.feeds.listed(), &public, &mut feed);
    }
    join_found(store, &site, &public, &mut feed).await.unwrap();
    // As a second look at the front page does: what is joined already changes nothing.
    let joined = feed.clone();
    join_found(store, &site, &public, &mut feed).await.unwrap();
    assert_eq!(feed, joined);
    let progress = crate::catalog::RegistrationProgress::default();
    let namespaces = crate::catalog::namespaces(store, &feed).await.unwrap();
    let rows = feed.iter().zip(namespaces).map(|(feed, namespace)| {
        let place = feed.legacy.iter();
        let former = place.flat_map(|place| &place.former);
        let former = former.map(|former| former.url.to_string()).collect();
        (
            feed.name.clone(),
            feed.known_as().to_string(),
            former,
            namespace,
        )
    });
    let rows = rows.collect();
    crate::catalog::register(store, feed, &progress)
        .await
        .unwrap();
    rows
}

fn row(name: &str, url: &str, former: &[&str], namespace: &str) -> Served {
    let former = former.iter().map(|url| (*url).to_owned()).collect();
    (
        name.to_owned(),
        url.to_owned(),
        former,
        namespace.to_owned(),
    )
}

fn site_at(host: &str, port: u16, feeds: &str) -> String {
    format!("[[site]]\nhost = \"{host}\"\norigin = \"http://127.0.0.1:{port}\"\nfeeds = {feeds}\n")
}

/// A store with one item in the feed of a name and a namespace.
async fn with_item(name: &str, namespace: &str) -> Memory {
    let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
    crate::catalog::testing::keep_item(&store, name, namespace).await;
    store
}

const PUBLIC: &str = "http://feeds.example/";

#[tokio::test]
async fn a_feed_with_a_given_name_keeps_its_ids_and_is_known_by_its_first_address() {
    let was = "a.example/rss.xml";
    let url = "http://a.example/rss.xml";
    let name = "a-rss-xml";
    let check = async |text: String, expect: Served| {
        let store = with_item(name, was).await;
        assert_eq!(started(&store, PUBLIC, &text).await, [expect], "{text}");
    };
    let moved = "[{ path = \"/new.xml\", name = \"a-rss-xml\" }]";
    let stays = "[{ path = \"/rss.xml\", name = \"a-rss-xml\" }]";
    // As it was, and named: the old server may be anywhere.
    for feeds in ["[\"/rss.xml\"]", stays] {
        for port in [1, 2] {
            check(site_at("a.example", port, feeds), row(name, url, &[], was)).await;
        }
    }
    // The path, the host, and both.
    let new = "http://a.example/new.xml";
    check(site_at("a.example", 1, moved), row(name, new, &[url], was)).await;
    let new = "http://b.example/rss.xml";
    check(site_at("b.example", 1, stays), row(name, new, &[url], was)).await;
    let new = "http://b.example/new.xml";
    check(site_at("b.example", 2, moved), row(name, new, &[url], was)).await;
    // Into a table of its own, at the site.
    let table = format!("[[feed]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:1/new.xml\"\n");
    let text = site_at("a.example", 1, "[\"/new.xml\"]") + &table;
    check(text, row(name, "http://a.example/new.xml", &[url], was)).await;
}

#[tokio::test]
async fn a_feed_goes_from_a_table_of_its_own_to_its_site_and_back() {
    let was = "127.0.0.1:1/rss.xml";
    let url = "http://a.example/rss.xml";
    let name = "a-rss-xml";
    let table = format!("[[feed]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:1/rss.xml\"\n");
    let listed = site_at("a.example", 1, "[\"/rss.xml\"]");
    let named = site_at(
        "a.example",
        1,
        "[{ path = \"/rss.xml\", name = \"a-rss-xml\" }]",
    );
    for text in [table.clone() + &listed, listed, named] {
        let store = with_item(name, was).await;
        // The address on this machine is no address of it.
        let expect = [row(name, url, &[], was)];
        assert_eq!(started(&store, PUBLIC, &text).await, expect, "{text}");
        assert_eq!(started(&store, PUBLIC, &text).await, expect, "{text}");
    }
    let store = with_item(name, "a.example/rss.xml").await;
    let expect = row(name, "http://127.0.0.1:1/rss.xml", &[], "a.example/rss.xml");
    assert_eq!(started(&store, PUBLIC, &table).await, [expect]);
}

#[tokio::test]
async fn another_feed_at_the_path_that_one_has_left_gets_ids_of_its_own_and_is_served_there() {
    let store = with_item("a-rss-xml", "a.example/rss.xml").await;
    let feeds = "[{ path = \"/new.xml\", name = \"a-rss-xml\" }, { path = \"/rss.xml\", name = \"comments\" }]";
    let text = site_at("a.example", 1, feeds);
    let expect = [
        row(
            "a-rss-xml",
            "http://a.example/new.xml",
            &[],
            "a.example/rss.xml",
        ),
        row(
            "comments",
            "http://a.example/rss.xml",
            &[],
            "a.example/rss.xml#comments",
        ),
    ];
    for _ in 0..2 {
        assert_eq!(started(&store, PUBLIC, &text).await, expect);
    }
}

#[tokio::test]
async fn a_feed_under_another_name_begins_without_items_and_hinders_no_start() {
    let store = with_item("a-rss-xml", "a.example/rss.xml").await;
    let text = site_at("a.example", 1, "[{ path = \"/rss.xml\", name = \"news\" }]");
    let expect = row(
        "news",
        "http://a.example/rss.xml",
        &[],
        "a.example/rss.xml#news",
    );
    for _ in 0..2 {
        assert_eq!(
            started(&store, PUBLIC, &text).await,
            std::slice::from_ref(&expect)
        );
    }
    // And back: the items were kept.
    let text = site_at("a.example", 1, "[\"/rss.xml\"]");
    let expect = row(
        "a-rss-xml",
        "http://a.example/rss.xml",
        &[],
        "a.example/rss.xml",
    );
    assert_eq!(started(&store, PUBLIC, &text).await, [expect]);
}

#[test]
fn a_feed_is_found_at_its_former_addresses_where_no_feed_is_now() {
    let public = Url::parse(PUBLIC).unwrap();
    let feeds = "[{ path = \"/new.xml\", name = \"one\", former = [\"/rss.xml\", \"/two.xml\", \"http://old.example/x\"] }, \"/two.xml\"]";
    #[derive(serde::Deserialize)]
    struct Tables {
        site: Vec<SiteSettings>,
    }
    let text = site_at("a.example", 1, feeds) + &site_at("old.example", 1, "[]");
    let Tables { site } = toml::from_str(&text).unwrap();
    let mut feeds = Vec::new();
    SiteSettings::join(&site, 0, site[0].feeds.listed(), &public, &mut feeds);
    let numbered = (1..).zip(feeds);
    let registered = numbered.map(|(no, feed)| {
        crate::catalog::RegisteredFeed::new(crate::feed::record::FeedNo(no), feed)
    });
    let snapshot = crate::catalog::CatalogSnapshot::new(registered, []);
    let check = |site: usize, path: &str, expect: Option<&str>| {
        let found = snapshot.at_place(site, path);
        assert_eq!(
            found.map(|feed| &*feed.settings.name),
            expect,
            "{site} {path}"
        );
    };
    check(0, "/new.xml", Some("one"));
    check(0, "/rss.xml", Some("one"));
    check(0, "/two.xml", Some("a-two-xml"));
    check(0, "/x", None);
    check(1, "/x", Some("one"));
    check(1, "/rss.xml", None);
    let topic = |url: &str| {
        snapshot
            .by_legacy_url(url)
            .map(|feed| feed.settings.name.clone())
    };
    for url in [
        "http://a.example/new.xml",
        "https://A.example/rss.xml",
        "http://old.example/x",
    ] {
        assert_eq!(topic(url).as_deref(), Some("one"), "{url}");
    }
    assert_eq!(
        topic("http://a.example/two.xml").as_deref(),
        Some("a-two-xml")
    );
    assert_eq!(topic("http://old.example/rss.xml"), None);
}
