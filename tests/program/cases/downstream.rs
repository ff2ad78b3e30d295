//! A deletion as a consumer sees it over HTTP, for each reason code (POLLING 2.7): a tombstone
//! whose T is the moment at which it was found out, JSON `verb: delete` with the code, RFC 6721 in
//! Atom, and nothing in the views of ordinary readers.

use super::{
    blog::Blog,
    document::{Document, atom, rss},
};
use bytes::Bytes;
use everfeed::{
    catalog::{Catalog, CatalogSnapshot, FeedSettings, ReadGate, RegisteredFeed},
    clock::Clock,
    layers::OwnMark,
    readers::{Config, Readers},
    render::Site,
    serve::{
        self,
        answers::first_seen::FirstSeen,
        feeds::{context::ServeContext, long_poll::Waiters},
        hub_forms::HubService,
        own_mounts::{PushInletParts, own_mounts},
        routing::{router::Router, stack::stack},
    },
    telemetry::Metrics,
};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use std::{convert::Infallible, sync::Arc};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use url::Url;

/// The answer to a GET on the feed's site.
async fn get(blog: &Blog, target: &str) -> String {
    let site = Arc::new(Site::new(
        &Url::parse("https://feeds.example/").unwrap(),
        "",
    ));
    let clock: Arc<dyn Clock> = blog.clock.clone();
    let readers = Readers::new(
        blog.store.clone(),
        blog.notify.clone(),
        clock.clone(),
        site,
        Config::default(),
    );
    let hub = HubService::new(tower::service_fn(|request: Request<Bytes>| async move {
        Ok::<_, Infallible>(Response::new(request.into_body()))
    }));
    let settings = FeedSettings::new("blog", Url::parse("http://blog.example/index.xml").unwrap());
    let feed = RegisteredFeed::new(blog.feed.no, settings);
    let context = ServeContext {
        readers: Arc::new(readers),
        store: blog.store.clone(),
        gate: ReadGate::without_users(
            Catalog::new(CatalogSnapshot::new([feed], [])),
            clock.clone(),
        ),
        clock,
        config: serve::Config::default(),
        own_calls: OwnMark::default(),
        first_seen: FirstSeen::default(),
        readership: Arc::default(),
        takes_cloud: false,
        waiters: Waiters::new(&serve::Config::default()),
        stop: CancellationToken::new(),
    };
    let service = stack(
        Router::new(own_mounts(
            Arc::new(context),
            hub,
            PushInletParts::none(),
            None,
        )),
        Metrics::default(),
    );
    let request = Request::get(target).body(Full::<Bytes>::default()).unwrap();
    let answer = service
        .oneshot(request)
        .await
        .unwrap_or_else(|never| match never {});
    assert_eq!(answer.status(), 200, "{target}");
    let body = answer
        .into_body()
        .collect()
        .await
        .map_err(|error| error.to_string())
        .unwrap()
        .to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// The views of all outputs when `v` is the only tombstone of a feed, found out just now, for this
/// reason.
async fn check(blog: &Blog, code: &str) {
    let page: Value =
        serde_json::from_str(&get(blog, "/feeds/blog.json?since=cursor:").await).unwrap();
    let is_tombstone = |item: &&Value| item["verb"] == "delete";
    let tombstones: Vec<&Value> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_tombstone)
        .collect();
    let [tombstone] = tombstones[..] else {
        panic!("{code}: {tombstones:?}")
    };
    assert_eq!(
        (&tombstone["deleted"], tombstone["reason"].as_str()),
        (&Value::Bool(true), Some(code))
    );
    // The publisher's own word says nothing of when an item was last seen.
    let last_seen = tombstone["last_seen"].as_str();
    assert_eq!(
        last_seen.is_some(),
        code != "explicit",
        "{code}: {tombstone}"
    );
    let first_missing = tombstone["first_missing"].as_str().expect(code);
    assert!(
        last_seen < Some(first_missing)
            && first_missing[..19] <= tombstone["updated"].as_str().unwrap()[..19]
    );
    assert!(
        !tombstone.to_string().contains("What there is to say"),
        "{code}: it is stripped: {tombstone}"
    );
    assert_eq!(
        page["totalItems"].as_u64(),
        Some(page["items"].as_array().unwrap().len() as u64),
        "it counts"
    );

    // T is when it was found out, not when the publisher did it: behind every other item.
    let found_out = i64::try_from(blog.clock.now_us() / 1_000_000).unwrap();
    let now = super::document::rfc3339(found_out);
    assert_eq!(
        tombstone["updated"].as_str().map(|at| at[..19].to_owned()),
        Some(now[..19].to_owned()),
        "{code}"
    );
    assert!(
        page["last_cursor"]
            .as_str()
            .unwrap()
            .starts_with(&found_out.to_string()),
        "{code}: {page}"
    );

    let document = get(blog, "/feeds/blog.atom?since=cursor:").await;
    let (_, stone) = document.split_once("<at:deleted-entry ").expect(code);
    let (stone, _) = stone.split_once("</at:deleted-entry>").unwrap();
    assert!(
        stone.contains("ref=\"http://blog.example/?p=v\""),
        "{code}: {stone}"
    );
    assert!(
        stone.contains(&format!("when=\"{}", &now[..19])),
        "{code}: {stone}"
    );
    assert!(
        stone.contains(&format!("<at:comment>{code}</at:comment>")),
        "{code}: {stone}"
    );
    assert_eq!(
        document.matches("<fo:deleted>true</fo:deleted>").count(),
        1,
        "{code}"
    );
    let told = format!("<fo:first_missing>{first_missing}</fo:first_missing>");
    assert_eq!(
        document.matches(&told).count(),
        2,
        "{code}: for those who know RFC 6721, and for all others"
    );

    for view in ["classic.rss", "classic.atom"] {
        let shown = get(blog, &format!("/feeds/blog/{view}")).await;
        assert!(
            !shown.contains("p=v") && !shown.contains("delete"),
            "{code}: {view} shows {shown}"
        );
        assert!(shown.contains("p=w"), "{code}: {view} shows what is left");
    }
}

#[tokio::test(start_paused = true)]
async fn explicit() {
    let deleted = "<at:deleted-entry xmlns:at=\"http://purl.org/atompub/tombstones/1.0\" \
                   ref=\"http://blog.example/?p=v\" when=\"2026-01-30T00:00:00Z\"/></feed>";
    let mut blog = Blog::of(atom("zyxwvuts")).await;
    assert_eq!(
        blog.shows(atom("zyxwuts").with("</feed>", deleted)).await,
        "-v explicit"
    );
    check(&blog, "explicit").await;
}

/// "`left-complete-feed` must be distinguishable from `gone`: a top ten exit is not a deletion"
#[tokio::test(start_paused = true)]
async fn left_complete_feed() {
    let complete = |letters: &str| -> Document {
        let head = "<fh:complete xmlns:fh=\"http://purl.org/syndication/history/1.0\"/>\n<entry>";
        atom(letters).with("\n<entry>", head)
    };
    let mut blog = Blog::of(complete("zyxwvuts")).await;
    assert_eq!(blog.shows(complete("zyxwuts")).await, "");
    assert_eq!(blog.stays(23).await, "23 h: -v left-complete-feed");
    check(&blog, "left-complete-feed").await;
}

#[tokio::test(start_paused = true)]
async fn absent_bracketed() {
    let mut blog = Blog::of(rss("zyxwvuts")).await;
    assert_eq!(blog.shows(rss("zyxwutsr")).await, "+r");
    assert_eq!(blog.stays(23).await, "23 h: -v absent-bracketed");
    check(&blog, "absent-bracketed").await;
}

#[tokio::test(start_paused = true)]
async fn gone() {
    let mut blog = Blog::probed(rss("zyxwvuts")).await;
    blog.page("v", 410, "");
    assert_eq!(blog.shows(rss("zyxwutsr")).await, "+r -v gone", "at once");
    check(&blog, "gone").await;
}
