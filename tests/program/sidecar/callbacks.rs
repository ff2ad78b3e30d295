//! Callbacks that lead back to everfeed: none at what it answers itself, and those that go on to
//! the old blog, whose own subscriber may be there. Row: PUSH D-P6.

use super::{
    legacy::{AFTER, BEFORE},
    rig::Sidecar,
};
use http::Method;
use testkit::client::{Answer, ask};

/// A blog that confirms every subscription, and takes what is posted to it.
async fn behind(more: &str) -> Sidecar {
    let site = format!("feeds = [\"/feed.xml\"]\n[hub]\n{more}");
    let sidecar = Sidecar::start(&site, |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let target = head.split(' ').nth(1).unwrap().to_owned();
            let challenge = target.split("hub.challenge=").nth(1).and_then(|rest| rest.split('&').next());
            let (media, body) = match challenge {
                Some(challenge) => ("text/plain", challenge.to_owned()),
                None if target == "/feed.xml" => ("text/xml", format!("{BEFORE}{AFTER}")),
                None => ("text/html", "a page".to_owned()),
            };
            let length = body.len();
            origin
                .write(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n{body}"
                ))
                .await;
        }
    })
    .await;
    sidecar.answers("/feeds/site-feed-xml", 200).await;
    sidecar
}

async fn subscribe(sidecar: &Sidecar, callback: &str) -> Answer {
    let callback = callback.replace('&', "%26");
    let form = format!(
        "hub.mode=subscribe&hub.verify=sync&hub.topic=http://blog.example/feed.xml&hub.callback={callback}"
    );
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    ask(sidecar.app.address(), Method::POST, "/hub", &headers, &form)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_everfeed_answers_itself_is_no_callback_and_the_blog_may_be_one() {
    let sidecar = behind("callbacks_private = true").await;
    let (operator, consumers) = (
        sidecar.app.admin_address().port(),
        sidecar.app.address().port(),
    );
    let hosts = [
        "127.0.0.1",
        "localhost",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "blog.example",
    ];
    for host in hosts {
        for own in [
            format!("http://{host}:{operator}/"),
            format!("http://{host}:{operator}/metrics?x=1"),
            format!("http://{host}:{consumers}/hub"),
            format!("http://{host}:{consumers}/feeds"),
            format!("http://{host}:{consumers}/feeds/site-feed-xml.atom?since="),
            format!("http://{host}:{consumers}/x/..//feeds/site-feed-xml/hub")
                .replace("..//", "../"),
            format!("http://{host}:{consumers}/%66eeds"),
            format!("http://{host}:{consumers}/s/secret/feeds"),
            format!("http://{host}:{consumers}/feed.xml"),
            format!("http://{host}:{consumers}/RPC2"),
            format!("http://{host}:{consumers}/pleaseNotify"),
        ] {
            let answer = subscribe(&sidecar, &own).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(answer.status, 400, "{own}: {text}");
            assert!(text.contains("everfeed answers itself"), "{own}: {text}");
        }
    }
    assert_eq!(sidecar.heads(), [""; 0]);
    let cloud =
        format!("port={operator}&path=/&protocol=http-post&url1=http://blog.example/feed.xml");
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = ask(
        sidecar.app.address(),
        Method::POST,
        "/pleaseNotify",
        &headers,
        &cloud,
    )
    .await
    .unwrap();
    assert!(
        String::from_utf8_lossy(&answer.body).contains("everfeed answers itself"),
        "{answer:?}"
    );

    // The blog's own subscriber, at the address of its site.
    let answer = subscribe(
        &sidecar,
        &format!("http://127.0.0.1:{consumers}/wp-json/websub?k=1"),
    )
    .await;
    assert_eq!(answer.status, 204, "{answer:?}");

    // Requests of the hub that came back by a name that nobody knows are known by their mark.
    let polls = sidecar.polls();
    let question = polls
        .iter()
        .find(|head| head.contains("hub.challenge"))
        .expect("it was asked");
    let mark = question
        .lines()
        .find(|line| line.starts_with("cdn-loop: everfeed-"))
        .expect("it is marked")
        .to_owned();
    for (target, status) in [
        ("/feeds", "421"),
        ("/hub", "421"),
        ("/feed.xml", "421"),
        ("/page", "200"),
    ] {
        for marked in [true, false] {
            let line = if marked {
                mark.as_str()
            } else {
                "cdn-loop: everfeed-0123456789abcdef"
            };
            let request = format!(
                "GET {target} HTTP/1.1\r\nHost: other.example\r\n{line}\r\nConnection: close\r\n\r\n"
            );
            let got = sidecar.exchange(request).await;
            assert_eq!(
                &got[9..12],
                if marked { status } else { "200" },
                "{target}: {got}"
            );
        }
    }
    let marked = [("cdn-loop", mark.split(": ").nth(1).unwrap())];
    let address = sidecar.app.admin_address();
    assert_eq!(
        ask(address, Method::GET, "/metrics", &marked, "")
            .await
            .unwrap()
            .status,
        508
    );
    assert_eq!(
        ask(address, Method::GET, "/metrics", &[], "")
            .await
            .unwrap()
            .status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_private_callbacks_nobody_learns_where_the_operator_listens() {
    let sidecar = behind("callbacks_private = false").await;
    let (operator, consumers) = (
        sidecar.app.admin_address().port(),
        sidecar.app.address().port(),
    );
    let mut told = Vec::new();
    for port in [operator, consumers, 9] {
        let answer = subscribe(&sidecar, &format!("http://127.0.0.1:{port}/page")).await;
        told.push((answer.status, answer.body));
    }
    assert!(
        told.iter().all(|it| *it == told[0]) && told[0].0 == 400,
        "{told:?}"
    );
}
