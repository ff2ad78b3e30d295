//! Every URL that we print leads back to what it names, and every spelling that means the same
//! leads there too.

use super::{Endpoint, Query, Site, Topic};
use crate::{
    feed::{filter::Filter, order::Order, stamp::Stamp},
    render::{archived::ArchiveAddress, document::Audience, representation::Representation},
};
use proptest::{option, prelude::*, sample::select};
use url::Url;

fn site(public: &str, prefix: &str) -> Site {
    Site::new(&Url::parse(public).unwrap(), prefix)
}

fn any_representation() -> impl Strategy<Value = Representation> {
    select(Representation::all().collect::<Vec<_>>())
}

fn any_name() -> impl Strategy<Value = String> {
    "[a-z0-9][a-z0-9-]{0,10}"
}

fn any_endpoint() -> impl Strategy<Value = Endpoint> {
    prop_oneof![
        Just(Endpoint::List),
        Just(Endpoint::Outline),
        Just(Endpoint::OpenApi),
        Just(Endpoint::Hub),
        Just(Endpoint::Cloud),
        any_name().prop_map(Endpoint::HubOf),
        any_name().prop_map(Endpoint::About),
        any_name().prop_map(Endpoint::Negotiated),
        any_name().prop_map(Endpoint::Events),
        (any_name(), any_representation()).prop_map(|(name, form)| Endpoint::Page(name, form)),
        any_archive(),
    ]
}

fn any_archive() -> impl Strategy<Value = Endpoint> {
    let classic = select(Representation::of(Audience::Classic).collect::<Vec<_>>());
    (any_name(), classic, 1_u64.., any::<u64>(), any::<u64>()).prop_map(
        |(name, form, last, created, changed)| {
            let (created, changed) = (Stamp::from_micros(created), Stamp::from_micros(changed));
            Endpoint::Archive(
                name,
                form,
                ArchiveAddress {
                    last,
                    created,
                    changed,
                },
            )
        },
    )
}

/// A filter of any words, as somebody may write it.
fn any_filter() -> impl Strategy<Value = Filter> {
    let text = || prop_oneof![2 => Just(String::new()), 1 => "[\\PC]{1,12}"];
    let rest = (
        select(vec!["", "no", "only"]),
        select(vec!["", "enclosure"]),
        select(vec!["", "de", "de-AT", "ZH-hant"]),
    );
    (text(), text(), text(), rest).prop_map(|(q, author, category, (deleted, has, lang))| {
        let given = [
            ("q", &*q),
            ("author", &*author),
            ("category", &*category),
            ("deleted", deleted),
            ("has", has),
            ("lang", lang),
        ];
        Filter::of(&given).unwrap_or_default()
    })
}

fn any_query() -> impl Strategy<Value = Query> {
    let numbers = (option::of(1_usize..), option::of(any::<u64>()));
    let callback = option::of(".{1,8}");
    let orders = select(Order::ALL.to_vec());
    (
        ".{0,12}",
        ".{0,12}",
        numbers,
        (orders, any_filter()),
        callback,
    )
        .prop_map(
            |(since, until, (max, timeout_secs), (order, filter), callback)| Query {
                since,
                until,
                max,
                order,
                filter,
                timeout_secs,
                callback,
            },
        )
}

fn any_site() -> impl Strategy<Value = Site> {
    let public = select(vec![
        "http://127.0.0.1:8080",
        "https://Example.org/",
        "https://example.org/a/b/",
    ]);
    let prefix = select(vec!["", "/smart", "a/b/"]);
    (public, prefix).prop_map(|(public, prefix)| site(public, prefix))
}

proptest! {
    #[test]
    fn every_endpoint_that_is_printed_is_read_back(site in any_site(), endpoint in any_endpoint()) {
        let url = Url::parse(&site.print(&endpoint)).unwrap();
        let path = url.path().strip_prefix(site.public.path().trim_end_matches('/')).unwrap();
        prop_assert_eq!(site.endpoint(path), Some(endpoint));
    }

    #[test]
    fn every_query_that_is_printed_is_read_back(query in any_query(), form in any_representation()) {
        let url = Url::parse(&site("http://127.0.0.1", "").page("blog", form, &query)).unwrap();
        prop_assert_eq!(Query::parse(url.query().unwrap()), Ok(query));
    }

    #[test]
    fn every_base_url_is_the_topic_of_its_view(
        site in any_site(),
        name in any_name(),
        representation in any_representation(),
        order in select(Order::ALL.to_vec()),
    ) {
        let base = site.base(&name, representation, order);
        let order = if representation.is_classic() { Order::MODIFIED } else { order };
        let topic = Topic { name: name.clone(), order, filter: Filter::All, representation, secret: None };
        prop_assert_eq!(site.topic(&base), Some(topic.clone()));
        let base = site.below_secret("AbC-_9").base(&name, representation, order);
        prop_assert_eq!(site.topic(&base), Some(Topic { secret: Some("AbC-_9".into()), ..topic }));
    }
}

#[test]
fn urls_stand_under_the_public_origin_and_the_prefix() {
    let check = |site: Site, root: &str| {
        assert_eq!(site.list(), format!("{root}/feeds"));
        assert_eq!(site.hub(), format!("{root}/hub"));
        assert_eq!(site.about("blog"), format!("{root}/feeds/blog/about"));
        assert_eq!(
            site.base("blog", Representation::JSON, Order::CREATED_REVERSE),
            format!("{root}/feeds/blog.json?order=-created")
        );
        assert_eq!(
            site.base("blog", Representation::CLASSIC_RSS, Order::MODIFIED),
            format!("{root}/feeds/blog/classic.rss")
        );
    };
    check(site("http://127.0.0.1:8080", ""), "http://127.0.0.1:8080");
    check(
        site("https://example.org/", "/smart/"),
        "https://example.org/smart",
    );
}

#[test]
fn every_url_below_a_secret_holds_it_and_leads_to_the_same_place() {
    // U-1.
    let site = site("https://example.org/blog/", "/smart");
    let secret = site.below_secret("T0k-en_");
    let root = "https://example.org/blog/smart/s/T0k-en_";
    assert_eq!(secret.list(), format!("{root}/feeds"));
    assert_eq!(secret.hub(), format!("{root}/hub"));
    assert_eq!(secret.negotiated("blog"), format!("{root}/feeds/blog"));
    let check = |path: &str, token: Option<&str>, endpoint: Option<Endpoint>| {
        assert_eq!(
            (site.secret(path).as_deref(), site.endpoint(path)),
            (token, endpoint),
            "{path}"
        );
    };
    check("/smart/s/abc/feeds", Some("abc"), Some(Endpoint::List));
    check(
        "/smart/s/abc/feeds.opml",
        Some("abc"),
        Some(Endpoint::Outline),
    );
    check("/smart/s/abc/hub", Some("abc"), Some(Endpoint::Hub));
    check(
        "/smart/%73/abc/feeds/blog/about",
        Some("abc"),
        Some(Endpoint::About("blog".into())),
    );
    check(
        "/smart/feeds/blog",
        None,
        Some(Endpoint::Negotiated("blog".into())),
    );
    for nothing in [
        "/smart/s/abc",
        "/smart/s/abc/",
        "/s/abc/feeds",
        "/smart/s/feeds",
        "/smart/s/a/s/b/feeds",
    ] {
        check(nothing, None, None);
    }
}

#[test]
fn a_page_with_a_range_is_printed_as_consumers_are_used_to_it() {
    // SF-53.
    let query = Query {
        since: "cursor:1_0_2".into(),
        max: Some(5),
        until: "time:9 ü".into(),
        ..Query::default()
    };
    assert_eq!(
        site("http://h", "").page("blog", Representation::ATOM, &query),
        "http://h/feeds/blog.atom?order=modified&since=cursor%3A1_0_2&max=5&until=time%3A9%20%C3%BC"
    );
}

#[test]
fn a_topic_is_known_by_its_other_spellings_too() {
    // HUB-8, HUBS 5.3.
    let site = site("http://example.org:8080/", "");
    let check = |url: &str, known: bool| assert_eq!(site.topic(url).is_some(), known, "{url}");
    check("http://EXAMPLE.org:8080/feeds/blog.atom", true);
    check(
        "https://example.org:8080/feeds/blog.atom/?order=created",
        true,
    );
    check("http://example.org:8080/feeds/blog", true);
    check(
        "http://example.org:8080/feeds/%62log%2eatom?%6frder=cre%61ted",
        true,
    );
    check(
        "http://example.org:8080/feeds/blog.atom%3Forder=created",
        false,
    );
    check("http://example.org:8080/feeds%2Fblog.atom", false);
    check("http://example.org:8080/feeds/blog.atom?order=best", false);
    check(
        "http://example.org:8080/feeds/blog.atom?since=cursor:",
        false,
    );
    check("http://example.org:8080/feeds/blog.atom?max=5", false);
    check("http://example.org:8080/feeds/blog.atom#x", false);
    check("http://example.com:8080/feeds/blog.atom", false);
    check("http://example.org/feeds/blog.atom", false);
    check("http://example.org:8080/other/blog.atom", false);
    check("http://example.org:8080/feeds/blog/about", false);
    check("http://example.org:8080/feeds.opml", false);
    check("ftp://example.org:8080/feeds/blog.atom", false);
    check("/feeds/blog.atom", false);
}

#[test]
fn a_view_has_a_uri_over_xmpp_where_it_is_served_there() {
    // XMPP-61.
    let site = Site::new(&Url::parse("https://feeds.example/").unwrap(), "");
    let words = Filter::of(&[("author", "a b")]).unwrap();
    let uri = |site: &Site, order, filter: &Filter| site.xmpp("blog", order, filter);
    assert_eq!(uri(&site, Order::MODIFIED, &Filter::All), None);
    let site = site.with_xmpp(Some("feeds.example"));
    for (order, filter, expect) in [
        (Order::MODIFIED, &Filter::All, "blog"),
        (Order::CREATED, &Filter::All, "blog%3Forder%3Dcreated"),
        (
            Order::MODIFIED,
            &words,
            "blog%3Forder%3Dmodified%26author%3Da%2520b",
        ),
    ] {
        let expect = format!("xmpp:feeds.example?;node={expect}");
        assert_eq!(uri(&site, order, filter).as_deref(), Some(&*expect));
        let links = site.links("blog", Representation::ATOM, order, filter, None);
        assert_eq!(links.xmpp, Some(expect));
    }
}

// W-17: what was printed before leads to what is printed now, and is the same topic.
#[test]
fn a_former_root_leads_to_the_present_one() {
    let former = ["http://old.example/blog/smart", "https://was.example:8443/"];
    let former: Vec<Url> = former.iter().map(|url| Url::parse(url).unwrap()).collect();
    let site = site("https://feeds.example/x", "/p").with_former(&former);
    let moved = |url: &str| site.moved(&Url::parse(url).unwrap());
    let now = |rest: &str| Some(format!("https://feeds.example/x/p{rest}"));
    let page = "/feeds/blog.atom?order=modified&q=a%20b";
    for (url, expect) in [
        (format!("http://old.example/blog/smart{page}"), now(page)),
        (format!("https://OLD.example/blog/smart{page}"), now(page)),
        (format!("https://was.example:8443{page}"), now(page)),
        (
            "http://old.example/blog/smart/s/t0k/feeds/a.json".into(),
            now("/s/t0k/feeds/a.json"),
        ),
        ("http://old.example/blog/smart".into(), now("")),
        // Not ours, then or now.
        (
            "http://old.example/blog/smarter/feeds/blog.atom".into(),
            None,
        ),
        ("http://old.example/feeds/blog.atom".into(), None),
        ("http://old.example/blog/smart/about-me".into(), None),
        (format!("https://was.example{page}"), None),
        // At its place, whatever the front proxy took off.
        (format!("https://feeds.example/x/p{page}"), None),
        (format!("http://feeds.example/p{page}"), None),
    ] {
        assert_eq!(moved(&url), expect, "{url}");
    }
    let topic = |root: &str| site.topic(&format!("{root}/feeds/blog.atom?order=modified&q=a+b"));
    let known = topic("https://feeds.example/x/p");
    assert!(known.is_some());
    assert_eq!(topic("http://old.example/blog/smart"), known);
    assert_eq!(topic("https://was.example:8443"), known);
    assert_eq!(topic("https://other.example"), None);
    let spellings: Vec<String> = site
        .former_spellings("https://feeds.example/x/p/feeds/a.json?order=created")
        .collect();
    assert_eq!(
        spellings,
        [
            "http://old.example/blog/smart/feeds/a.json?order=created",
            "https://was.example:8443/feeds/a.json?order=created"
        ]
    );
    assert_eq!(
        site.former_spellings("http://blog.example/feed.xml")
            .count(),
        0
    );
}

#[test]
fn a_root_that_lost_a_part_of_its_path_leads_on_and_does_not_turn_round() {
    let former = [Url::parse("https://feeds.example/old").unwrap()];
    let site = site("https://feeds.example/", "").with_former(&former);
    let moved = |url: &str| site.moved(&Url::parse(url).unwrap());
    let now = "https://feeds.example/feeds/blog.atom";
    assert_eq!(
        moved("https://feeds.example/old/feeds/blog.atom").as_deref(),
        Some(now)
    );
    assert_eq!(moved(now), None);
}

#[test]
fn a_slash_behind_the_secret_of_readers_leads_to_the_same_page() {
    for prefix in ["", "/smart"] {
        let site = site("https://b.example", prefix);
        let secret = |path: &str| {
            site.readers_secret(&format!("{prefix}{path}"))
                .map(str::to_owned)
        };
        assert_eq!(secret("/readers/hush").as_deref(), Some("hush"));
        assert_eq!(secret("/readers/hush/").as_deref(), Some("hush"));
        assert_eq!(secret("/readers/hush//").as_deref(), Some("hush"));
        for other in [
            "/readers",
            "/readers/",
            "/readers//",
            "/reader/hush",
            "/readershush",
        ] {
            assert_eq!(secret(other), None, "{other}");
        }
    }
}
