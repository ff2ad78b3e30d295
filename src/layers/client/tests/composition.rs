//! Promises of the order of the layers, with no network below and the clock paused.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::layers::address_guard::{AddressClass, Trusted};
use crate::layers::client::*;
use crate::layers::error::{ConnectFault, Refused};
use crate::layers::testing::{answering, body_of, get, stalling_body};
use crate::layers::{Fault, Landing, Reply, Validators};

type Log = Arc<Mutex<Vec<Request>>>;

/// An upstream stack over `answer`, and all requests that reached the wire.
fn stack<F>(config: &ClientConfig, answer: F) -> (Client, Log)
where
    F: Fn(&Request) -> Result<Reply, FetchError> + Clone + Send + Sync + 'static,
{
    let log = Log::default();
    let wire = log.clone();
    let service = answering(move |request: Request| {
        wire.lock().unwrap().push(request.clone());
        answer(&request)
    });
    (upstream_over(config, Governor::default(), service), log)
}

fn redirect_to(location: &str) -> Result<Reply, FetchError> {
    Ok(http::Response::builder()
        .status(302)
        .header("location", location)
        .body(body_of(&[]))
        .unwrap())
}

fn trusting(url: &str) -> Request {
    let mut request = get(url);
    request
        .extensions_mut()
        .insert(Trusted::origin_of(&url.parse().unwrap()));
    request
}

#[tokio::test(start_paused = true)]
async fn redirects_are_counted_by_the_governor_like_any_request() {
    let (client, log) = stack(&ClientConfig::default(), |request| {
        match request.uri().path() {
            "/end" => Ok(http::Response::new(body_of(&["<rss/>"]))),
            _ => redirect_to("/end"),
        }
    });
    let start = Instant::now();
    // Five calls with one redirect each are the ten of the burst; the sixth waits twice.
    for _ in 0..5 {
        client.send(get("http://a.example/start")).await.unwrap();
    }
    assert_eq!(
        (log.lock().unwrap().len(), start.elapsed().as_secs()),
        (10, 0)
    );
    client.send(get("http://a.example/start")).await.unwrap();
    assert_eq!(
        (
            log.lock().unwrap().len(),
            start.elapsed().as_secs_f64().round()
        ),
        (12, 2.0)
    );
}

#[tokio::test(start_paused = true)]
async fn retries_are_counted_by_the_governor_like_any_request() {
    let (client, log) = stack(&ClientConfig::default(), |_| {
        Err(FetchError::Connect(ConnectFault::Refused, "refused".into()))
    });
    let start = Instant::now();
    for _ in 0..6 {
        assert!(matches!(
            client.send(get("http://a.example/")).await,
            Err(FetchError::Connect(..))
        ));
    }
    assert_eq!(
        (
            log.lock().unwrap().len(),
            start.elapsed().as_secs_f64().round()
        ),
        (12, 2.0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_held_back_too_long_is_our_fault_and_says_when_to_come_again() {
    let (client, _) = stack(&ClientConfig::default(), |_| {
        Ok(http::Response::new(body_of(&[])))
    });
    let answers = join_all((0..40).map(|_| client.send(get("http://a.example/")))).await;
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(!refused.is_empty());
    for error in refused {
        assert_eq!(error.fault(), Fault::Ours, "{error:?}");
        assert!(
            error
                .wait()
                .is_some_and(|wait| wait <= Duration::from_secs(1))
                && error.may_pass()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_covers_hops_waits_and_body_together() {
    let (client, _) = stack(&ClientConfig::default(), |request| {
        match request.uri().path() {
            "/slow" => Ok(http::Response::new(stalling_body("<rss>"))),
            _ => redirect_to("/slow"),
        }
    });
    let start = Instant::now();
    let error = client.send(get("http://a.example/")).await.unwrap_err();
    assert!(matches!(error, FetchError::Timeout { .. }), "{error:?}");
    assert_eq!(
        (start.elapsed().as_secs(), error.fault()),
        (30, Fault::Peer)
    );
}

#[tokio::test(start_paused = true)]
async fn one_attempt_has_its_own_shorter_limit_up_to_the_head() {
    let silent =
        tower::service_fn(|_: Request| std::future::pending::<Result<Reply, FetchError>>());
    let client = upstream_over(&ClientConfig::default(), Governor::default(), silent);
    let start = Instant::now();
    let error = client.send(get("http://a.example/")).await.unwrap_err();
    assert!(
        matches!(error, FetchError::Timeout { after, .. } if after.as_secs() == 20),
        "{error:?}"
    );
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_into_the_private_network_is_refused_before_anything_is_sent() {
    for target in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://[::ffff:10.0.0.1]/",
        "http://10.1.1.1:8080/",
    ] {
        let (client, log) = stack(&ClientConfig::default(), move |_| redirect_to(target));
        let error = client.send(get("http://a.example/feed")).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Refused(Refused::Address)),
            "{target}: {error:?}"
        );
        assert_eq!(log.lock().unwrap().len(), 1, "{target}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_private_configured_origin_may_redirect_within_itself_and_nowhere_private_else() {
    let own = "http://127.0.0.1:8081/feed";
    let (client, log) = stack(&ClientConfig::default(), |request| {
        match request.uri().path() {
            "/feed" => redirect_to("/rss.xml"),
            _ => Ok(http::Response::new(body_of(&["<rss/>"]))),
        }
    });
    client.send(trusting(own)).await.unwrap();
    for request in log.lock().unwrap().iter() {
        assert_eq!(request.extensions().get(), Some(&AddressClass::Configured));
    }

    let (client, _) = stack(&ClientConfig::default(), |_| {
        redirect_to("http://127.0.0.1:8079/metrics")
    });
    assert!(matches!(
        client.send(trusting(own)).await,
        Err(FetchError::Refused(Refused::Address))
    ));

    let (client, log) = stack(&ClientConfig::default(), |request| {
        match request.uri().host() {
            Some("127.0.0.1") => redirect_to("https://public.example/feed"),
            _ => Ok(http::Response::new(body_of(&["<rss/>"]))),
        }
    });
    let answer = client.send(trusting(own)).await.unwrap();
    assert_eq!(
        answer.extensions().get::<Landing>().unwrap().url.as_str(),
        "https://public.example/feed"
    );
    assert_eq!(
        log.lock().unwrap()[1].extensions().get(),
        Some(&AddressClass::Derived)
    );
}

#[tokio::test(start_paused = true)]
async fn validators_meet_their_url_at_the_end_of_a_redirect() {
    let (client, log) = stack(&ClientConfig::default(), |request| {
        match request.uri().host() {
            Some("old.example") => redirect_to("https://new.example/feed"),
            _ if request.headers().contains_key("if-none-match") => Ok(http::Response::builder()
                .status(304)
                .body(body_of(&[]))
                .unwrap()),
            _ => Ok(http::Response::builder()
                .header("etag", "v1")
                .body(body_of(&["<rss/>"]))
                .unwrap()),
        }
    });
    let first = client.send(get("http://old.example/feed")).await.unwrap();
    let mut again = get("http://old.example/feed");
    again
        .extensions_mut()
        .insert(first.extensions().get::<Validators>().unwrap().clone());
    let second = client.send(again).await.unwrap();
    assert_eq!(second.status(), 304);
    let conditional: Vec<bool> = log
        .lock()
        .unwrap()
        .iter()
        .map(|r| r.headers().contains_key("if-none-match"))
        .collect();
    assert_eq!(conditional, [false, false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_callback_follows_no_redirect_and_keeps_no_more_than_its_first_bytes() {
    let wire = answering(|_| {
        let long: &'static str = Box::leak("x".repeat(100_000).into_boxed_str());
        let reply = http::Response::builder()
            .status(302)
            .header("location", "http://b.example/");
        Ok(reply.body(body_of(&[long])).unwrap())
    });
    let answer = callback_over(&ClientConfig::for_callbacks(), wire)
        .send(get("http://a.example/cb"))
        .await
        .unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.body().len()),
        (302, 64 << 10)
    );
}

#[tokio::test(start_paused = true)]
async fn a_private_callback_is_refused_unless_the_operator_allows_it() {
    let wire = answering(|_| Ok(http::Response::new(body_of(&[]))));
    let strict = ClientConfig::for_callbacks();
    let lax = ClientConfig {
        private_ok: true,
        ..strict.clone()
    };
    for url in [
        "http://127.0.0.1:9000/cb",
        "http://[::1]/cb",
        "http://192.168.0.9/cb",
        "http://a.example:22/cb",
    ] {
        let error = callback_over(&strict, wire.clone())
            .send(get(url))
            .await
            .unwrap_err();
        assert!(
            matches!(error, FetchError::Refused(_)) && !error.may_pass(),
            "{url}: {error:?}"
        );
        callback_over(&lax, wire.clone())
            .send(get(url))
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_answered_a_push_has_answered_whatever_becomes_of_the_body() {
    let cut = || {
        http::Response::builder()
            .header("content-length", "9")
            .body(body_of(&["1"]))
            .unwrap()
    };
    let bodies: [fn() -> Reply; 2] = [
        || http::Response::new(stalling_body("x")),
        || http::Response::builder().body(body_of(&["x"])).unwrap(),
    ];
    for reply in bodies.into_iter().chain([cut as fn() -> Reply]) {
        let wire = answering(move |_| Ok(reply()));
        let client = callback_over(&ClientConfig::for_callbacks(), wire);
        let start = Instant::now();
        let push = http::Request::post("http://a.example/cb")
            .body(Bytes::from_static(b"page"))
            .unwrap();
        assert_eq!(client.send(push).await.unwrap().status(), 200);
        assert!(
            start.elapsed().as_secs() < 1,
            "nobody waits for the end of it"
        );
    }
    // A question is answered by its body.
    let client = callback_over(
        &ClientConfig::for_callbacks(),
        answering(move |_| Ok(cut())),
    );
    assert!(matches!(
        client.send(get("http://a.example/cb")).await,
        Err(FetchError::Cut(..))
    ));
}
