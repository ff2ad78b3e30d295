//! Each path of the operator's listener, over a made-up application.

use super::*;
use http::header::{ETAG, IF_NONE_MATCH};
use http_body_util::BodyExt as _;
use prometheus_client::metrics::gauge::Gauge;

struct FakeInsight {
    ready: Result<(), String>,
}

impl OwnInsight for FakeInsight {
    fn page(&self, _: FeedRange) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>> {
        Box::pin(async { Ok(None) })
    }

    fn status(&self, _: FeedRange) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async { Ok("{\"waiters\":3}".into()) })
    }

    fn readers(&self, range: FeedRange) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move { Ok(format!("{{\"name\":{:?}}}", range.name.unwrap_or_default())) })
    }

    fn live(&self) -> Result<(), String> {
        match &self.ready {
            Err(why) if why.contains("room") => Err(why.clone()),
            _ => Ok(()),
        }
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.ready.clone() })
    }

    fn gauges(&self, mut counters: Registry) -> BoxFuture<'_, Result<Registry, String>> {
        let held = Gauge::<i64>::default();
        held.set(3);
        counters.register("held_requests", "Requests held now", held);
        Box::pin(async { Ok(counters) })
    }

    fn reload(&self) -> BoxFuture<'_, OperatorAnswer> {
        let answer = match &self.ready {
            Ok(()) => OperatorAnswer::Done("added    feed.blog\n".into()),
            Err(why) => OperatorAnswer::Misconfigured(why.clone()),
        };
        Box::pin(async { answer })
    }

    fn check(&self) -> BoxFuture<'_, OperatorAnswer> {
        self.reload()
    }
}

impl Insight for FakeInsight {
    fn explain<'a>(
        &'a self,
        feed: &'a str,
        item: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move { Ok((feed == "blog").then(|| format!("{{\"item\":{item:?}}}"))) })
    }

    fn accept_clock(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn back_up<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move { Ok(format!("{file} holds 7 values")) })
    }

    fn accept_url<'a>(&'a self, feed: &'a str) -> BoxFuture<'a, OperatorAnswer> {
        self.poll(feed, true)
    }

    fn poll<'a>(&'a self, feed: &'a str, now: bool) -> BoxFuture<'a, OperatorAnswer> {
        Box::pin(async move {
            match (feed, now) {
                ("blog", true) => OperatorAnswer::Done("blog: 1 new".into()),
                ("blog", false) => OperatorAnswer::NotNow("blog: gone".into()),
                ("bad", _) => OperatorAnswer::UpstreamFailed("bad: 500".into()),
                ("slow", _) => OperatorAnswer::Away("slow: not yet".into()),
                _ => OperatorAnswer::Unknown("no such feed".into()),
            }
        })
    }

    fn change_accounts(&self, command: AccountCommand) -> BoxFuture<'_, AccountAnswer> {
        Box::pin(async move {
            match command {
                AccountCommand::ListUsers(_) => AccountAnswer::Done("there are no users\n".into()),
                _ => AccountAnswer::Refused("there is no such user".into()),
            }
        })
    }

    fn subscribers(&self, command: SubscriberCommand) -> BoxFuture<'_, OperatorAnswer> {
        Box::pin(async move {
            match command {
                SubscriberCommand::List { .. } => {
                    OperatorAnswer::Done("{\"subscribers\":[]}".into())
                }
                SubscriberCommand::End(7) => OperatorAnswer::Done("it has ended".into()),
                _ => OperatorAnswer::Unknown("there is no such subscription".into()),
            }
        })
    }

    fn registry(&self, command: RegistryCommand) -> BoxFuture<'_, RegistryAnswer> {
        Box::pin(async move {
            match command {
                RegistryCommand::Remove(_) => RegistryAnswer::Removed,
                RegistryCommand::Put { json, .. } => RegistryAnswer::Added(json),
                other => RegistryAnswer::Told(format!("{other:?}")),
            }
        })
    }

    fn events<'a>(
        &'a self,
        form: EventForm,
        range: &'a EventRange,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move { Ok(format!("{form:?} {}", range.max)) })
    }

    fn forget<'a>(&'a self, feed: &'a str, item: Option<&'a str>) -> BoxFuture<'a, OperatorAnswer> {
        Box::pin(async move {
            match feed {
                "blog" if item == Some("http://x/?p=1") => {
                    OperatorAnswer::Done("item `http://x/?p=1` of feed `blog`".into())
                }
                "blog" => OperatorAnswer::NotNow("feed `blog` is configured".into()),
                "old" => OperatorAnswer::Done("feed `old` is forgotten\n".into()),
                _ => OperatorAnswer::Unknown("no such feed".into()),
            }
        })
    }
}

async fn ask(ready: Result<(), String>, method: Method, path: &str) -> (u16, String) {
    let admin = Admin::starting(Arc::default(), Metrics::default());
    admin.open(Arc::new(FakeInsight { ready }));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(String::new())
        .unwrap();
    let response = admin.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn an_unready_house_is_alive_and_says_why_it_is_not_ready() {
    let broken = Err("the clock jumped".to_owned());
    assert_eq!(ask(broken.clone(), Method::GET, "/live").await.0, 200);
    assert_eq!(
        ask(broken, Method::GET, "/ready").await,
        (503, "the clock jumped\n".into())
    );
    assert_eq!(ask(Ok(()), Method::GET, "/ready").await.0, 200);
    let full = Err("no room on the disk".to_owned());
    assert_eq!(
        ask(full, Method::GET, "/live").await,
        (503, "no room on the disk\n".into())
    );
}

#[tokio::test]
async fn an_item_of_a_feed_is_explained_by_any_of_its_names() {
    let (status, body) = ask(
        Ok(()),
        Method::GET,
        "/explain/blog?item=http%3A%2F%2Fx%2F%3Fp%3D1",
    )
    .await;
    assert_eq!(
        (status, &*body),
        (200, "{\"item\":Some(\"http://x/?p=1\")}\n")
    );
    assert_eq!(
        ask(Ok(()), Method::GET, "/explain/blog").await.1,
        "{\"item\":None}\n"
    );
    assert_eq!(ask(Ok(()), Method::GET, "/explain/other").await.0, 404);
    assert_eq!(ask(Ok(()), Method::POST, "/explain/blog").await.0, 405);
}

#[tokio::test]
async fn status_is_json_and_metrics_are_gauges_of_it() {
    let told = ask(Ok(()), Method::GET, "/status").await;
    assert_eq!(told, (200, "{\"waiters\":3}\n".into()));
    let (status, text) = ask(Ok(()), Method::GET, "/metrics").await;
    assert!(
        status == 200 && text.contains("everfeed_held_requests 3"),
        "{text}"
    );
}

#[tokio::test]
async fn readers_are_listed_as_json_for_all_feeds_or_one() {
    let told = ask(Ok(()), Method::GET, "/readers?name=blog").await;
    assert_eq!(told, (200, "{\"name\":\"blog\"}\n".into()));
    assert_eq!(ask(Ok(()), Method::GET, "/readers?max=none").await.0, 400);
    assert_eq!(ask(Ok(()), Method::POST, "/readers").await.0, 405);
}

#[tokio::test]
async fn events_are_read_in_two_forms_and_a_range_that_is_none_is_refused() {
    let get = async |path: &str| ask(Ok(()), Method::GET, path).await;
    assert_eq!(get("/events.atom").await, (200, "Atom 100".into()));
    assert_eq!(get("/events.json?max=3").await, (200, "Json 3".into()));
    assert_eq!(get("/events.json?max=none").await.0, 400);
    assert_eq!(get("/events").await.0, 404);
    assert_eq!(ask(Ok(()), Method::POST, "/events.atom").await.0, 405);
}

#[tokio::test]
async fn a_status_that_is_the_same_is_not_sent_again() {
    let admin = Admin::starting(Arc::default(), Metrics::default());
    admin.open(Arc::new(FakeInsight { ready: Ok(()) }));
    let get = || Request::builder().uri("/status?max=5");
    let first = admin
        .clone()
        .oneshot(get().body(String::new()).unwrap())
        .await
        .unwrap();
    let tag = first.headers()[ETAG].clone();
    for (known, status) in [
        (tag.clone(), 304),
        (HeaderValue::from_static("\"other\""), 200),
    ] {
        let request = get()
            .header(IF_NONE_MATCH, known)
            .body(String::new())
            .unwrap();
        let again = admin.clone().oneshot(request).await.unwrap();
        assert_eq!(
            (again.status().as_u16(), &again.headers()[ETAG]),
            (status, &tag)
        );
        let body = again.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.is_empty(), status == 304);
    }
}

#[tokio::test]
async fn a_refused_method_is_told_which_would_do_and_nothing_is_kept() {
    // RFC 9110 section 15.5.6.
    for (method, path, allow) in [
        (Method::PUT, "/status", "GET, HEAD"),
        (Method::GET, "/clock/accept", "POST"),
        (Method::GET, "/poll/blog", "POST"),
        (Method::PUT, "/reload", "POST"),
        (Method::GET, "/backup", "POST"),
        (Method::POST, "/explain/blog", "GET, HEAD"),
        (Method::PUT, "/feeds", "GET, HEAD, POST"),
        (Method::POST, "/feeds/a", "GET, HEAD, PUT, DELETE"),
    ] {
        let admin = Admin::starting(Arc::default(), Metrics::default());
        admin.open(Arc::new(FakeInsight { ready: Ok(()) }));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(String::new())
            .unwrap();
        let response = admin.oneshot(request).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()[ALLOW]),
            (405, &allow.parse().unwrap())
        );
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    }
}

#[tokio::test]
async fn a_reload_says_what_changed_or_why_it_is_refused() {
    assert_eq!(
        ask(Ok(()), Method::POST, "/reload").await,
        (200, "added    feed.blog\n".into())
    );
    let bad = Err("ever.toml: feed: found no feed".to_owned());
    assert_eq!(ask(bad.clone(), Method::POST, "/reload").await.0, 422);
    assert_eq!(ask(Ok(()), Method::GET, "/reload").await.0, 405);
}

#[tokio::test]
async fn a_poll_that_is_asked_for_tells_what_came_of_it() {
    let poll = async |path: &str| ask(Ok(()), Method::POST, path).await;
    assert_eq!(poll("/poll/blog?now").await, (200, "blog: 1 new\n".into()));
    assert_eq!(poll("/poll/%62log").await, (409, "blog: gone\n".into()));
    assert_eq!(poll("/poll/bad").await.0, 502);
    assert_eq!(poll("/poll/slow").await.0, 503);
    assert_eq!(poll("/poll/other").await.0, 404);
    assert_eq!(ask(Ok(()), Method::GET, "/poll/blog").await.0, 405);
}

#[tokio::test]
async fn a_changed_url_is_accepted_by_a_post_and_a_configuration_checked_by_a_get() {
    assert_eq!(
        ask(Ok(()), Method::POST, "/accept/blog").await,
        (200, "blog: 1 new\n".into())
    );
    assert_eq!(ask(Ok(()), Method::POST, "/accept/other").await.0, 404);
    assert_eq!(ask(Ok(()), Method::GET, "/accept/blog").await.0, 405);
    assert_eq!(ask(Ok(()), Method::GET, "/check").await.0, 200);
    assert_eq!(ask(Err("bad".into()), Method::GET, "/check").await.0, 422);
    assert_eq!(ask(Ok(()), Method::POST, "/check").await.0, 405);
}

#[tokio::test]
async fn a_backup_needs_the_whole_path_of_its_file() {
    let made = ask(Ok(()), Method::POST, "/backup?file=%2Fvar%2Fb.redb").await;
    assert_eq!(made, (200, "/var/b.redb holds 7 values\n".into()));
    assert_eq!(
        ask(Ok(()), Method::POST, "/backup?file=b.redb").await.0,
        400
    );
    assert_eq!(ask(Ok(()), Method::POST, "/backup").await.0, 400);
    assert_eq!(ask(Ok(()), Method::GET, "/backup?file=%2Fb").await.0, 405);
}

#[tokio::test]
async fn users_and_tokens_are_changed_by_commands_that_can_be_meant() {
    assert_eq!(
        ask(Ok(()), Method::GET, "/users").await,
        (200, "there are no users\n".into())
    );
    assert_eq!(ask(Ok(()), Method::DELETE, "/users/alice").await.0, 409);
    assert_eq!(
        ask(Ok(()), Method::POST, "/users/alice?login=plain")
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn subscriptions_are_listed_as_json_and_ended_by_their_numbers() {
    let listed = ask(Ok(()), Method::GET, "/subscribers?host=a.example").await;
    assert_eq!(listed, (200, "{\"subscribers\":[]}\n".into()));
    let of = async |method, path: &str| ask(Ok(()), method, path).await.0;
    assert_eq!(of(Method::DELETE, "/subscribers/7").await, 200);
    assert_eq!(of(Method::DELETE, "/subscribers/8").await, 404);
    assert_eq!(of(Method::POST, "/subscribers/8/retry").await, 404);
    assert_eq!(of(Method::DELETE, "/subscribers").await, 400);
}

#[tokio::test]
async fn only_a_feed_that_is_not_configured_is_forgotten() {
    assert_eq!(
        ask(Ok(()), Method::POST, "/forget/%6Fld").await,
        (200, "feed `old` is forgotten\n".into())
    );
    assert_eq!(ask(Ok(()), Method::POST, "/forget/blog").await.0, 409);
    let (status, text) = ask(
        Ok(()),
        Method::POST,
        "/forget/blog?item=http%3A%2F%2Fx%2F%3Fp%3D1",
    )
    .await;
    assert_eq!(
        (status, text.contains("item `http://x/?p=1` of feed `blog`")),
        (200, true),
        "{text}"
    );
    assert_eq!(ask(Ok(()), Method::POST, "/forget/other").await.0, 404);
    assert_eq!(ask(Ok(()), Method::GET, "/forget/old").await.0, 405);
}

#[tokio::test]
async fn feeds_are_registered_by_put_and_removed_by_delete() {
    let put = ask(Ok(()), Method::PUT, "/feeds/a").await;
    assert_eq!(put, (201, "\n".into()));
    let removed = ask(Ok(()), Method::DELETE, "/feeds/a").await;
    assert_eq!(removed, (204, String::new()));
    assert_eq!(ask(Ok(()), Method::GET, "/feeds").await.0, 200);
    assert_eq!(ask(Ok(()), Method::PUT, "/feeds").await.0, 405);
}

#[tokio::test]
async fn what_is_not_there_is_404_and_what_is_not_done_is_405() {
    assert_eq!(ask(Ok(()), Method::GET, "/feedsx").await.0, 404);
    assert_eq!(ask(Ok(()), Method::POST, "/status").await.0, 405);
    assert_eq!(ask(Ok(()), Method::GET, "/clock/accept").await.0, 405);
    assert_eq!(ask(Ok(()), Method::POST, "/clock/accept").await.0, 200);
}
