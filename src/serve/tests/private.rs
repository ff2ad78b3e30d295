//! Private feeds: nothing of them comes out to whom it is not for, by any way, and nothing of one
//! reader to another.
//!
//! Rows: SF-130, SF-131; LEGACY U-1, U-2, U-3, U-4, U-10.

use super::rig::{Answer, ROOT, Site};
use crate::{
    auth::{
        AccessSettings, Accounts,
        testing::{ALICE, ALICE_URL, BOB, accounts, accounts_with_another_password, basic},
    },
    edge::client_address::{OverTls, PeerAddress},
    readers::testing::add,
    telemetry::testing::Logged,
};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use std::time::Duration;

/// Every way to the feed `blog`.
const WAYS: [&str; 11] = [
    "/feeds/blog",
    "/feeds/blog.atom",
    "/feeds/blog.json?since=cursor:",
    "/feeds/blog.json?callback=f",
    "/feeds/blog.json?since=nonsense",
    "/feeds/blog.atom?order=best",
    "/feeds/blog/classic.rss",
    "/feeds/blog/archive/100-1-1.atom",
    "/feeds/blog.csv",
    "/feeds/blog/about",
    "/feeds/%62log",
];

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

async fn private(access: AccessSettings) -> Site {
    let site = Site::of(1..=3).await;
    site.protect(access);
    site
}

fn for_alice() -> AccessSettings {
    AccessSettings::Named(["alice".to_owned()].into())
}

async fn get_as(site: &Site, target: &str, authorization: &str) -> Answer {
    site.get_with(target, &[("authorization", authorization)])
        .await
}

/// An answer without what differs between any two requests.
fn shape(answer: &Answer) -> (u16, String, Vec<String>) {
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    headers.sort();
    (answer.status, answer.text().to_owned(), headers)
}

#[tokio::test(start_paused = true)]
async fn nobody_unknown_learns_whether_there_is_a_private_feed() {
    let site = private(for_alice()).await;
    for way in WAYS {
        let there = site.get(way).await;
        let absent = site
            .get(&way.replace("blog", "none").replace("%62log", "%6eone"))
            .await;
        assert_eq!(there.status, 401, "{way}");
        assert_eq!(shape(&there), shape(&absent), "{way}");
        // Whoever is known and may not read it finds nothing, either.
        let (there, absent) = (
            get_as(&site, way, &bearer(BOB)).await,
            get_as(
                &site,
                &way.replace("blog", "none").replace("%62log", "%6eone"),
                &bearer(BOB),
            )
            .await,
        );
        assert_eq!(
            (there.status, shape(&there)),
            (404, shape(&absent)),
            "{way}"
        );
    }
    let challenges: Vec<_> = site
        .get("/feeds/blog")
        .await
        .headers
        .get_all("www-authenticate")
        .iter()
        .cloned()
        .collect();
    assert_eq!(challenges.len(), 3, "U-2, U-4: {challenges:?}");
    let hub = |name: &str| format!("/feeds/{name}/hub");
    assert_eq!(
        site.get(&hub("blog")).await.status,
        site.get(&hub("none")).await.status
    );
    assert_eq!(site.ask(Method::POST, "/feeds/blog", &[]).await.status, 405);
    assert_eq!(site.ask(Method::POST, "/feeds/none", &[]).await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn without_private_feeds_all_is_as_it_was_and_no_credentials_are_asked_for() {
    let site = Site::of(1..=3).await;
    assert_eq!(site.get("/feeds/none").await.status, 404);
    let answer = get_as(&site, "/feeds/blog", "Basic nonsense").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        (
            answer.header("cache-control"),
            answer.header("referrer-policy")
        ),
        ("no-cache", "")
    );
}

#[tokio::test(start_paused = true)]
async fn each_scheme_reads_and_what_is_answered_is_private() {
    // U-2, U-4, U-10.
    let site = private(AccessSettings::Users).await;
    for credentials in [bearer(ALICE), bearer(BOB), basic("alice")] {
        for way in [
            "/feeds/blog",
            "/feeds/blog.json?since=cursor:",
            "/feeds/blog/classic.rss",
            "/feeds/blog/about",
        ] {
            let answer = get_as(&site, way, &credentials).await;
            assert_eq!(answer.status, 200, "{way}");
            assert!(
                answer.header("cache-control").starts_with("private, no-"),
                "{way}"
            );
            assert_eq!(answer.header("referrer-policy"), "no-referrer");
        }
    }
    for wrong in [
        bearer("x"),
        basic("carol"),
        "Basic".to_owned(),
        bearer(ALICE_URL),
    ] {
        assert_eq!(
            get_as(&site, "/feeds/blog", &wrong).await.status,
            401,
            "{wrong}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_validator_helps_nobody_without_credentials() {
    let site = private(for_alice()).await;
    let etag = get_as(&site, "/feeds/blog", &bearer(ALICE))
        .await
        .header("etag")
        .to_owned();
    let with = async |credentials: &str| {
        let headers = [
            ("if-none-match", etag.as_str()),
            ("authorization", credentials),
        ];
        site.get_with("/feeds/blog", &headers).await
    };
    let fresh = with(&bearer(ALICE)).await;
    assert_eq!(
        (fresh.status, fresh.header("cache-control")),
        (304, "private, no-cache")
    );
    assert_eq!(with("Bearer wrong").await.status, 401);
    assert_eq!(with(&bearer(BOB)).await.status, 404);
    assert_eq!(
        site.get_with("/feeds/blog", &[("if-none-match", "*")])
            .await
            .status,
        401
    );
}

#[tokio::test(start_paused = true)]
async fn every_link_below_a_secret_holds_it_and_no_other_body_does() {
    // U-1.
    let site = private(for_alice()).await;
    let below = format!("/s/{ALICE_URL}");
    for (way, has_etag) in [
        ("/feeds/blog.atom?max=1", true),
        ("/feeds/blog.json?max=1&since=cursor:", false),
        ("/feeds/blog/classic.atom", true),
        ("/feeds/blog/about", true),
        ("/feeds", true),
    ] {
        // Whoever fills a cache first must not be seen by who comes later.
        let (before, secret, after) = (
            get_as(&site, way, &bearer(ALICE)).await,
            site.get(&format!("{below}{way}")).await,
            get_as(&site, way, &bearer(ALICE)).await,
        );
        assert_eq!(
            (before.status, secret.status, after.status),
            (200, 200, 200),
            "{way}"
        );
        assert_eq!(before.text(), after.text());
        let all = format!("{}{:?}", after.text(), after.headers);
        assert!(!all.contains(ALICE_URL), "{way}: {all}");
        let all = format!("{}{:?}", secret.text(), secret.headers);
        let ours = all.matches(&format!("{ROOT}/")).count();
        let below_secret = all.matches(&format!("{ROOT}{below}/")).count();
        assert!(ours > 0 && ours == below_secret, "{way}: {all}");
        assert!(secret.header("cache-control").starts_with("private"));
        assert_eq!(secret.header("referrer-policy"), "no-referrer");
        if has_etag {
            assert_ne!(secret.header("etag"), before.header("etag"), "{way}");
        }
    }
    // The next page, as it is linked.
    let page = site
        .get(&format!("{below}/feeds/blog.json?max=1"))
        .await
        .json();
    let next = page["next"].as_str().unwrap_or_else(|| panic!("{page}"));
    assert_eq!(site.get(next.strip_prefix(ROOT).unwrap()).await.status, 200);
    for wrong in [
        "/s/x/feeds/blog",
        "/s/x/feeds",
        &format!("/s/{ALICE}/feeds/blog"),
        "/s/x/hub",
    ] {
        let answer = site.get(wrong).await;
        assert_eq!(
            (answer.status, answer.header("www-authenticate")),
            (404, ""),
            "{wrong}"
        );
    }
    assert_eq!(site.get(&format!("{below}/feeds/none")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_private_feed_is_in_no_list_of_others() {
    let site = private(for_alice()).await;
    let names = async |headers: &[(&str, &str)]| {
        let list = site.get_with("/feeds", headers).await.json();
        (
            list["total"].as_u64().unwrap(),
            list["feeds"].as_array().unwrap().len(),
        )
    };
    let (alice, bob) = (bearer(ALICE), bearer(BOB));
    assert_eq!(names(&[]).await, (0, 0));
    assert_eq!(names(&[("authorization", &bob)]).await, (0, 0));
    assert_eq!(names(&[("authorization", &alice)]).await, (1, 1));
    assert_eq!(get_as(&site, "/feeds", "Bearer wrong").await.status, 401);
    let etag = get_as(&site, "/feeds", &alice)
        .await
        .header("etag")
        .to_owned();
    assert_eq!(
        site.get_with("/feeds", &[("if-none-match", &etag)])
            .await
            .status,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn no_script_gets_a_private_feed() {
    let site = private(for_alice()).await;
    for way in [
        "/feeds/blog.json?callback=f".to_owned(),
        format!("/s/{ALICE_URL}/feeds/blog.json?callback=f"),
    ] {
        let answer = get_as(&site, &way, &bearer(ALICE)).await;
        assert_eq!(answer.status, 403, "{}", answer.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_request_ends_with_the_right_to_read() {
    let site = private(for_alice()).await;
    type Change = fn(&Site);
    let changes: [(String, Change, u16); 8] = [
        (bearer(ALICE), |site| site.know(accounts(&[1])), 401),
        (bearer(ALICE), |site| site.know(Accounts::default()), 401),
        (
            bearer(ALICE),
            |site| site.protect(AccessSettings::Named(["bob".to_owned()].into())),
            401,
        ),
        (bearer(ALICE), |site| site.know(accounts(&[3])), 200),
        (
            bearer(ALICE),
            |site| site.know(accounts_with_another_password()),
            200,
        ),
        (
            basic("alice"),
            |site| site.know(accounts_with_another_password()),
            401,
        ),
        (basic("alice"), |site| site.know(accounts(&[1, 2, 3])), 200),
        // A revocation could not arrive: everfeed cannot reach its store.
        (bearer(ALICE), |site| site.hear(false), 503),
    ];
    for (number, (authorization, change, expect)) in (4..).zip(changes) {
        site.know(accounts(&[]));
        site.protect(for_alice());
        let page = get_as(&site, "/feeds/blog.json", &authorization)
            .await
            .json();
        let head = page["last_cursor"].as_str().unwrap();
        let target = format!("/feeds/blog.json?since=cursor:{head}&timeout=60");
        let headers = [("authorization", authorization.as_str())];
        let held = tokio::spawn(site.ask(Method::GET, &target, &headers));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(site.held(), 1);
        change(&site);
        tokio::time::sleep(Duration::from_secs(1)).await;
        if expect == 200 {
            assert!(!held.is_finished(), "it was about another");
            site.rig.change(vec![add(number)]).await;
        }
        assert_eq!(held.await.unwrap().status, expect);
    }
    let again = get_as(&site, "/feeds/blog.json", &bearer(ALICE)).await;
    assert_eq!(again.status, 503, "credentials are not taken for wrong");
    site.protect(AccessSettings::Public);
    assert_eq!(site.get("/feeds/blog.json").await.status, 200);
    site.protect(for_alice());
    site.hear(true);
    let again = get_as(&site, "/feeds/blog.json", &bearer(ALICE)).await;
    assert_eq!(again.status, 200);
}

#[tokio::test(start_paused = true)]
async fn passwords_are_not_taken_over_plain_http_from_elsewhere() {
    // U-2, U-3.
    let site = private(AccessSettings::Users).await;
    let from = async |peer: &str, proto: Option<&str>, authorization: Option<String>| {
        let mut request = Request::builder().uri("/feeds/blog");
        for (name, value) in [
            ("x-forwarded-proto", proto.map(str::to_owned)),
            ("authorization", authorization),
        ] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let mut request = request.body(Full::<Bytes>::default()).unwrap();
        request
            .extensions_mut()
            .insert(PeerAddress(peer.parse().unwrap()));
        let answer = site.send(request).await;
        (
            answer.status,
            answer.headers.get_all("www-authenticate").iter().count(),
        )
    };
    for (peer, proto, is_taken) in [
        ("127.0.0.1", None, true),
        ("::1", None, true),
        ("192.0.2.1", None, false),
        ("192.0.2.1", Some("https"), false),
        ("10.1.2.3", Some("https"), true),
        ("10.1.2.3", Some("http"), false),
        ("10.1.2.3", Some("https, http"), false),
        ("10.1.2.3", None, false),
    ] {
        let basic = from(peer, proto, Some(basic("alice"))).await;
        assert_eq!(
            basic.0,
            if is_taken { 200 } else { 403 },
            "{peer} {proto:?}"
        );
        assert_eq!(
            from(peer, proto, None).await,
            (401, if is_taken { 3 } else { 2 }),
            "{peer} {proto:?}"
        );
        assert_eq!(from(peer, proto, Some(bearer(ALICE))).await.0, 200);
    }
    // TLS that ends here needs nobody's word.
    let mut request = Request::builder()
        .uri("/feeds/blog")
        .header("authorization", basic("alice"));
    let extensions = request.extensions_mut().unwrap();
    extensions.insert(PeerAddress("192.0.2.1".parse().unwrap()));
    extensions.insert(OverTls);
    assert_eq!(
        site.send(request.body(Full::<Bytes>::default()).unwrap())
            .await
            .status,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn an_address_that_fails_too_often_is_told_to_wait() {
    let site = private(AccessSettings::Users).await;
    for _ in 0..10 {
        assert_eq!(
            get_as(&site, "/feeds/blog", "Bearer wrong").await.status,
            401
        );
    }
    let answer = get_as(&site, "/feeds/blog", "Bearer wrong").await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, "10"));
    assert_eq!(site.get("/s/wrong/feeds").await.status, 429);
    assert_eq!(
        get_as(&site, "/feeds/blog", &bearer(ALICE)).await.status,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn the_hub_is_told_who_sends_a_request() {
    let site = private(AccessSettings::Users).await;
    let form = |path: &str, authorization: Option<&str>| {
        let mut request =
            Request::post(path).header("content-type", "application/x-www-form-urlencoded");
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        site.send(request.body(Full::from("a=b")).unwrap())
    };
    let alice = bearer(ALICE);
    let who = async |path: &str, authorization: Option<&str>| {
        form(path, authorization)
            .await
            .header("x-sender")
            .to_owned()
    };
    assert_eq!(who("/hub", Some(&alice)).await, "alice");
    assert_eq!(who(&format!("/s/{ALICE_URL}/hub"), None).await, "alice");
    assert_eq!(who("/hub", None).await, "");
    let refused = form("/hub", Some("Bearer wrong")).await;
    assert_eq!(
        (
            refused.status,
            refused.headers.get_all("www-authenticate").iter().count()
        ),
        (401, 3)
    );
}

#[tokio::test(start_paused = true)]
async fn the_outline_names_private_feeds_to_their_readers_alone() {
    // U-1, SF-131.
    let site = private(for_alice()).await;
    let names_it = async |answer: Answer| {
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text().contains("/feeds/blog/")
    };
    assert!(!names_it(site.get("/feeds.opml").await).await);
    assert!(!names_it(get_as(&site, "/feeds.opml", &bearer(BOB)).await).await);
    let own = get_as(&site, "/feeds.opml", &bearer(ALICE)).await;
    assert!(
        own.header("cache-control").starts_with("private"),
        "{:?}",
        own.headers
    );
    assert!(names_it(own).await);
    let secret = site.get(&format!("/s/{ALICE_URL}/feeds.opml")).await;
    assert!(
        secret
            .text()
            .contains(&format!("{ROOT}/s/{ALICE_URL}/feeds/blog/classic.rss")),
        "{}",
        secret.text()
    );
    let script = get_as(&site, "/feeds?callback=f", &bearer(ALICE)).await;
    assert_eq!(script.status, 403);
}

#[tokio::test(start_paused = true)]
async fn what_everybody_was_given_nobody_unknown_gets_once_the_feed_is_private() {
    // SF-130; T-2.
    let site = Site::of(1..=3).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    let views = [
        "/feeds/blog",
        "/feeds/blog.json?max=2",
        "/feeds/blog/classic.rss",
    ];
    for (number, view) in (4..).zip(views) {
        let before = site.get(view).await;
        let tag = before.header("etag").to_owned();
        let copy = [("if-none-match", tag.as_str())];
        assert_eq!(
            (before.status, site.get_with(view, &copy).await.status),
            (200, 304),
            "{view}"
        );
        site.protect(for_alice());
        let refused = [
            site.get(view).await.status,
            site.get_with(view, &copy).await.status,
        ];
        assert_eq!(refused, [401, 401], "{view}");
        let hers = get_as(&site, view, &bearer(ALICE)).await;
        assert_eq!(
            (hers.status, hers.header("cache-control")),
            (200, "private, no-cache")
        );
        assert_eq!(
            site.get(view).await.status,
            401,
            "{view}: what she was given is hers"
        );
        site.protect(AccessSettings::Public);
        assert_eq!(site.get(view).await.body, before.body, "{view}");
        site.show(&[("['alice']", ""), ("'public'", "q=nowhere")]);
        assert_ne!(
            site.get(view).await.body,
            before.body,
            "{view}: everybody sees another part"
        );
        site.protect(AccessSettings::Public);
        site.rig.change(vec![add(number)]).await;
        tokio::time::advance(Duration::from_secs(2)).await;
        let after = site.get_with(view, &copy).await;
        assert_eq!(
            (after.status, after.body == before.body),
            (200, false),
            "{view}"
        );
        site.withdraw();
        assert_eq!(site.get(view).await.status, 410, "{view}");
        site.protect(AccessSettings::Public);
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_leaves_a_token_of_its_query_in_the_log() {
    let site = Site::of(1..=3).await;
    let logged = Logged::begin();
    for target in [
        "/feeds/blog.json?access_token=T0KEN",
        "/feeds/blog.atom?T0KEN",
        "/feeds/blog.atom?T0KEN=",
        "/feeds/blog?q=T0KEN&order=best",
        "/nothing?key=T0KEN",
        "/hub?hub.topic=https%3A%2F%2Ffeeds.example%2Frss%3Fkey%3DT0KEN",
        "/s/T0KEN/feeds/blog.json?key=T0KEN",
    ] {
        site.get(target).await;
    }
    let text = logged.text();
    assert!(text.contains("/feeds/blog.json?access_token=***"), "{text}");
    assert!(!text.contains("T0KEN"), "{text}");
}
