//! Floods of requests by strangers: nobody else is shut out, and no third party is flooded by us.

use super::rig::{CALLBACK, Call, Reply, Rig, TOPIC};
use crate::{
    feed::{record::FeedNo, stamp::Stamp},
    hub::{Config, ProcessAddresses},
    layers::{
        FetchError,
        error::{NameFault, Refused},
    },
    notify::{DelayCause, HintDelay, HintDelays},
};
use std::{sync::Arc, time::Duration};

const HOUR_SECS: u64 = 3600;

fn is_flooded(call: &Call) -> bool {
    call.url.contains("flood.example")
}

/// The most calls in any hour.
fn most_an_hour(calls: &[Call]) -> usize {
    let within =
        |first: &Call, call: &Call| call.at >= first.at && call.at_secs < first.at_secs + HOUR_SECS;
    calls
        .iter()
        .map(|first| calls.iter().filter(|call| within(first, call)).count())
        .max()
        .unwrap_or_default()
}

// 2,000 requests of 20 clients whose callbacks answer 500; before, every newcomer got 503 for
// hours.
#[tokio::test(start_paused = true)]
async fn a_flood_of_callbacks_that_confirm_nothing_shuts_nobody_out() {
    let rig = Rig::new().await;
    let known = "http://flood.example/known";
    assert_eq!(rig.ask_from([198, 51, 100, 1], known).await, 202);
    rig.wait(1).await;
    rig.net.on(|call| {
        if is_flooded(call) && !call.url.contains("known") {
            Reply::status(500)
        } else {
            Reply::willing(call)
        }
    });
    rig.net.taken();
    for n in 0..2000u32 {
        let client = u8::try_from(n % 20).unwrap();
        rig.ask_from([192, 0, 2, client], &format!("http://flood.example/{n}"))
            .await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let pending = rig.counts().pending;
    assert!(
        pending <= 500,
        "callbacks of one host have a quarter of the room: {pending}"
    );
    // Newcomers: of a client of the flood, and of others.
    for (n, client) in [[192, 0, 2, 1], [198, 51, 100, 2], [198, 51, 100, 3]]
        .into_iter()
        .enumerate()
    {
        let active = rig.counts().active;
        assert_eq!(
            rig.ask_from(client, &format!("http://newcomer-{n}.example/"))
                .await,
            202
        );
        rig.wait(1).await;
        assert_eq!(rig.counts().active, active + 1, "verified at once");
    }
    // A callback that is subscribed at the flooded host renews at once, too.
    rig.net.taken();
    assert_eq!(rig.ask_from([192, 0, 2, 1], known).await, 202);
    rig.wait(1).await;
    let questions: Vec<String> = rig.net.taken().into_iter().map(|call| call.url).collect();
    assert!(
        questions.iter().any(|url| url.contains("known")),
        "{questions:?}"
    );
    // Nothing goes on for ever.
    rig.wait(10 * HOUR_SECS).await;
    assert_eq!((rig.counts().pending, rig.counts().active), (0, 4));
}

/// Checks that questions were sent for more than an hour, and never more than a dozen in one.
fn check_a_dozen(rig: &Rig) {
    let calls = rig.net.taken();
    let most = most_an_hour(&calls);
    assert!(
        calls.len() > 12 && most <= 12,
        "{} in all, {most} an hour",
        calls.len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_dozen_questions_an_hour_reach_an_address_that_confirms_none() {
    let rig = Rig::with(Config {
        callbacks_private: true,
        ..Config::default()
    })
    .await;
    rig.net.on_verify(|_| Reply::status(500));
    let spellings = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ];
    for n in 0..200u8 {
        let host = spellings[usize::from(n) % spellings.len()];
        rig.ask_from([192, 0, 2, n], &format!("http://{host}:9000/{n}"))
            .await;
    }
    rig.wait(4 * HOUR_SECS).await;
    check_a_dozen(&rig);

    // Names that lead to one address are one address; their case and a dot at the end do not
    // matter.
    let rig = Rig::new().await;
    rig.net.on_verify(|_| Reply::status(500));
    for n in 0..200u8 {
        let name = [
            "same-a.example",
            "SAME-b.example",
            "same-c.example.",
            "same-a.example.",
        ][usize::from(n) % 4];
        rig.ask_from([192, 0, 2, n], &format!("http://{name}/{n}"))
            .await;
    }
    rig.wait(4 * HOUR_SECS).await;
    check_a_dozen(&rig);
}

#[tokio::test(start_paused = true)]
async fn wrong_callbacks_of_others_shut_nobody_out_at_an_address_that_has_confirmed() {
    let rig = Rig::new().await;
    assert_eq!(
        rig.ask_from([192, 0, 2, 1], "http://aggregator.example/mine")
            .await,
        202
    );
    rig.wait(1).await;
    rig.net.on(|call| {
        if call.url.contains("wrong") {
            Reply::status(500)
        } else {
            Reply::willing(call)
        }
    });
    for n in 0..60 {
        rig.ask_from(
            [192, 0, 2, 2],
            &format!("http://aggregator.example/wrong/{n}"),
        )
        .await;
    }
    rig.wait(1).await;
    assert_eq!(
        rig.ask_from([192, 0, 2, 3], "http://aggregator.example/theirs")
            .await,
        202
    );
    rig.wait(10).await;
    assert_eq!(rig.counts().active, 2);
    // Many clients together fill what there is in an hour; whoever comes with the first of its own
    // is asked all the same.
    for n in 0..400u16 {
        let client = [198, 51, 100, (n % 40) as u8];
        rig.ask_from(
            client,
            &format!("http://aggregator.example/wrong/of-many/{n}"),
        )
        .await;
    }
    rig.wait(60).await;
    rig.net.taken();
    rig.wait(60).await;
    assert_eq!(
        rig.net.taken().len(),
        0,
        "there is no more room for the wrong ones"
    );
    assert_eq!(
        rig.ask_from([192, 0, 2, 4], "http://aggregator.example/newcomer")
            .await,
        202
    );
    rig.wait(10).await;
    assert_eq!(rig.counts().active, 3);
}

#[tokio::test(start_paused = true)]
async fn one_client_uses_up_half_of_the_questions_to_an_address_that_confirms_none() {
    let rig = Rig::new().await;
    rig.net.on(|call| {
        if call.url.contains("wrong") {
            Reply::status(500)
        } else {
            Reply::willing(call)
        }
    });
    for n in 0..60 {
        rig.ask_from([192, 0, 2, 2], &format!("http://new.example/wrong/{n}"))
            .await;
    }
    rig.wait(10).await;
    assert_eq!(
        rig.ask_from([192, 0, 2, 3], "http://new.example/theirs")
            .await,
        202
    );
    rig.wait(10).await;
    assert_eq!(rig.counts().active, 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_confirms_meets_no_limit_on_questions() {
    let rig = Rig::new().await;
    for n in 0..100u8 {
        assert_eq!(
            rig.ask_from(
                [192, 0, 2, n / 50],
                &format!("http://aggregator.example/{n}")
            )
            .await,
            202
        );
    }
    rig.wait(3).await;
    assert_eq!(rig.counts().active, 100);
}

// 71 requests in 20 s, each of which was a question at once.
#[tokio::test(start_paused = true)]
async fn a_callback_that_confirms_is_asked_at_a_pace_however_often_somebody_subscribes_it() {
    let questions = |rig: &Rig| {
        rig.net
            .taken()
            .iter()
            .filter(|call| !call.is_push())
            .count()
    };
    let topics: [fn(u32) -> String; 2] = [|_| TOPIC.to_owned(), |n| format!("{TOPIC}&q=word{n}")];
    for (topic, most) in topics.into_iter().zip([13, 51]) {
        let rig = Rig::new().await;
        for n in 0..71u32 {
            let topic = topic(n);
            let mode = if n % 3 == 2 {
                "unsubscribe"
            } else {
                "subscribe"
            };
            rig.ask(&[
                ("hub.mode", mode),
                ("hub.topic", &topic),
                ("hub.callback", CALLBACK),
            ])
            .await;
            tokio::time::sleep(Duration::from_millis(282)).await;
        }
        let asked = questions(&rig);
        assert!((8..=most).contains(&asked), "{asked} questions in 20 s");
        // Others are not kept waiting, and what was asked last is asked about in the end.
        assert_eq!(
            rig.ask_from([192, 0, 2, 9], "http://newcomer.example/")
                .await,
            202
        );
        rig.wait(1).await;
        assert!(
            rig.net
                .taken()
                .iter()
                .any(|call| call.url.contains("newcomer.example"))
        );
        assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
        rig.wait(120).await;
        assert_eq!(
            rig.subs()
                .await
                .iter()
                .filter(|(sub, _)| sub.pending.is_some())
                .count(),
            0
        );
        let is_active =
            |sub: &crate::store::Subscription| sub.topic == TOPIC && sub.lease.is_some();
        assert!(rig.subs().await.iter().any(|(sub, _)| is_active(sub)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_leads_to_the_operators_listener_is_not_asked() {
    let resolved = Rig::new().await;
    let callback = "http://inside.example:8079/";
    let address = resolved.address_of("inside.example").await;
    let own = ProcessAddresses {
        closed: vec![(address, 8079).into()],
        ..ProcessAddresses::default()
    };
    let rig = resolved
        .beside(
            Config {
                callbacks_private: true,
                ..Config::default()
            },
            own,
        )
        .await;
    for verify in ["sync", "async"] {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", TOPIC),
            ("hub.callback", callback),
            ("hub.verify", verify),
        ];
        let (status, text) = rig.ask(&form).await;
        assert_eq!(status, if verify == "sync" { 409 } else { 202 }, "{text}");
        assert!(
            verify != "sync" || text.contains("never a callback"),
            "{text}"
        );
        rig.wait(60).await;
        assert_eq!(
            (rig.net.taken().len(), rig.counts().pending),
            (0, 0),
            "{verify}"
        );
    }
    assert_eq!(
        rig.ask_from([192, 0, 2, 1], "http://inside.example:8078/")
            .await,
        202
    );
    rig.wait(1).await;
    assert_eq!(rig.counts().active, 1, "another port is another place");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_tell_names_inside_from_names_that_do_not_exist() {
    let inside = || Reply::fail(FetchError::Refused(Refused::Address));
    let nowhere = || {
        Reply::fail(FetchError::Resolve(
            NameFault::Unknown,
            "no such name".into(),
        ))
    };
    let mut seen = Vec::new();
    for reply in [inside as fn() -> Reply, nowhere] {
        let mut answers = Vec::new();
        for verify in ["sync", "sync,async", "async", ""] {
            let rig = Rig::new().await;
            rig.net.on_verify(move |_| reply());
            answers.push(rig.ask_to("subscribe", &[("hub.verify", verify)]).await);
            rig.wait(60).await;
            answers.push((u16::try_from(rig.counts().pending).unwrap(), String::new()));
        }
        seen.push(answers);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0][0].0, 409);
}

#[tokio::test(start_paused = true)]
async fn one_topic_in_many_spellings_is_one_subscription_and_each_spelling_is_paid_for() {
    let rig = Rig::new().await;
    let base = "http://feeds.example:8080/feeds/";
    let spelt = |n: usize| match n % 4 {
        0 => format!("{base}blog.atom?{}", "&".repeat(n)),
        1 => format!("{base}%62log.atom{}", "/".repeat(n)),
        2 => format!("{base}blog.atom{}", "/".repeat(n)),
        _ => format!("{base}blog.ato%6D{}?order=modified", "/".repeat(n)),
    };
    let topics: Vec<String> = (0..20).map(spelt).collect();
    let mut form = vec![
        ("hub.mode", "subscribe"),
        ("hub.callback", "http://reader.example/"),
        ("hub.verify", "async"),
    ];
    form.extend(topics.iter().map(|topic| ("hub.topic", topic.as_str())));
    assert_eq!(rig.ask(&form).await.0, 202);
    rig.wait(1).await;
    assert_eq!((rig.subs().await.len(), rig.net.taken().len()), (1, 1));
    let long = format!(
        "http://feeds.example:8080/feeds/blog.atom?order={}",
        "x".repeat(2048)
    );
    for (topic, status) in [
        ("http://feeds.example:8080/feeds/blog.atom?utm=1", 404),
        (long.as_str(), 400),
    ] {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic),
            ("hub.callback", "http://reader.example/"),
        ];
        let (refused, text) = rig.ask(&form).await;
        assert_eq!(
            (refused, text.contains("hub.topic")),
            (status, true),
            "{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn hints_beyond_the_budget_wait_and_are_told_why_and_may_be_turned_off() {
    let rig = Rig::new().await;
    let hint = [
        ("hub.mode", "publish"),
        ("hub.url", "http://old.example/rss.xml"),
    ];
    let mut taken = 0;
    let (status, text) = loop {
        let (status, text) = rig.ask(&hint).await;
        if status != 204 {
            break (status, text);
        }
        taken += 1;
        rig.notify.hint_heard(rig.feed);
        rig.notify.hint_ended(rig.feed, false);
    };
    assert_eq!((taken, status), (9, 202));
    assert!(
        text.contains("the hints before this one brought nothing new")
            && text.contains("This hint waits until then"),
        "{text}"
    );
    let answer = rig.ask_at("/hub", &hint).await;
    assert!(
        answer.status() == 202 && !answer.headers().contains_key("retry-after"),
        "the hint that waits is no refusal: {answer:?}"
    );

    #[derive(Debug)]
    struct Paused;

    impl HintDelays for Paused {
        fn delay(&self, _: FeedNo, now: Stamp) -> Option<HintDelay> {
            let (until, since) = (now.plus_secs(600), Some(Stamp::from_secs(1_780_272_000)));
            Some(HintDelay {
                until,
                since,
                cause: DelayCause::HostPause,
            })
        }
    }

    let rig = Rig::new().await;
    rig.notify.delay_hints(Arc::new(Paused));
    let (status, text) = rig.ask(&hint).await;
    assert_eq!(status, 202);
    assert!(
        text.contains("in 600 s: its host asked to be left alone"),
        "{text}"
    );
    assert!(
        text.contains(", since 2026-06-01T00:00:00Z. This hint waits until then"),
        "{text}"
    );

    let rig = Rig::with(Config {
        publish_hints: false,
        ..Config::default()
    })
    .await;
    let (status, text) = rig.ask(&hint).await;
    assert_eq!(
        (status, text.contains("takes no publish hints")),
        (403, true)
    );
}
