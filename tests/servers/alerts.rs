//! Alerts of the whole program: one of several feeds breaks, and a mail that aiosmtpd takes tells whose
//! fault it is, since when and what to do; the libraries of Standard Webhooks verify the same at a
//! webhook. `tests/run` installs them.

use crate::{
    EVERFEED,
    webhooks::{SECRET, message, script, told, verifiers},
};
use http::Method;
use serde_json::Value;
use std::{
    process::Command,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use testkit::{
    client,
    place::{self, Place, free_address},
    publisher::{Asked, Publisher, rss, with_headers},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_feed_is_told_by_mail_and_webhook_with_whose_fault_since_when_and_what_to_do() {
    let verifiers = verifiers();
    let is_broken = Arc::new(AtomicBool::new(false));
    let breaks = is_broken.clone();
    let publisher = Publisher::of(move |asked| {
        if asked.path() == "/f7" && breaks.load(Ordering::Relaxed) {
            return with_headers(503, &[], "");
        }
        rss(3)
    })
    .await;
    let taken: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let takes = taken.clone();
    let hook = Publisher::of(move |asked| {
        let mut takes = takes.lock().unwrap_or_else(PoisonError::into_inner);
        takes.push(asked.clone());
        with_headers(200, &[], "")
    })
    .await;
    let place = Place::free();
    let mail_server = free_address();
    let mut mailbox = Command::new("python3");
    mailbox.env("PYTHONPATH", verifiers.join("python"));
    let mailbox_script = script("../alerts/mailbox.py");
    mailbox
        .arg(mailbox_script)
        .arg(mail_server.port().to_string());
    let _mailbox = place.start_logging("mailbox", mailbox.arg(place.folder()));
    place
        .until("the mail server is there", async || {
            place.read("mailbox").contains("ready")
        })
        .await;
    let mut text = String::new();
    for no in 0..10 {
        text += &place::feed(&format!("f{no}"), &publisher.url(&format!("/f{no}")), "");
    }
    text += &format!(
        "[[alert]]\nto = [\"me@example.org\"]\nfrom = \"everfeed@example.org\"\nsmtp = \"smtp://{mail_server}\"\n\
         [[alert]]\nurl = \"{}\"\nsecret = \"{SECRET}\"\n",
        hook.url("/alerts")
    );
    place.configure("", &text);
    let _running = place.start(&mut place.command(EVERFEED, &["serve"]));
    place.answers("/feeds/f7.json", 200).await;

    is_broken.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let asked = client::ask(place.operator, Method::POST, "/poll/f7?now", &[], "").await;
        assert_eq!(asked.unwrap().status, 502);
    }
    let lasting = Instant::now();
    place
        .until("the mail is there", async || {
            place.path("mail-1.eml").exists()
        })
        .await;
    assert!(
        lasting.elapsed() < Duration::from_secs(5),
        "{:?}",
        lasting.elapsed()
    );
    let mut read = Command::new("python3");
    read.arg(script("../alerts/read.py"))
        .arg(place.path("mail-1.eml"));
    let mail: Value = serde_json::from_str(&told(read.output().unwrap())).unwrap();
    let subject = mail["Subject"].as_str().unwrap();
    assert!(
        subject.starts_with("[everfeed] `f7` at 127.0.0.1"),
        "{subject}"
    );
    assert_eq!(mail["To"], "me@example.org");
    assert_eq!(mail["Auto-Submitted"], "auto-generated");
    assert_eq!(mail["defects"], serde_json::json!([]));
    let text = mail["text"].as_str().unwrap();
    for line in [
        "What is wrong: the publisher answered 503 Service Unavailable",
        "Whose fault: the fault is the publisher's",
        "Since: 20",
        "What to do: ",
        "Feeds: f7",
    ] {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
    let atom = client::ask(place.operator, Method::GET, "/events.atom", &[], "").await;
    let atom = String::from_utf8(atom.unwrap().body.to_vec()).unwrap();
    assert_eq!(atom.matches("<entry>").count(), 1, "{atom}");

    let messages = || {
        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.iter().map(message).collect::<Vec<Value>>()
    };
    place
        .until("the webhook is told", async || !messages().is_empty())
        .await;
    let all = serde_json::to_string(&messages()).unwrap();
    place.write("messages.json", &all);
    let file = place.path("messages.json");
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", verifiers.join("python"));
    python.arg(script("verify.py")).arg(&file).arg(SECRET);
    assert_eq!(told(python.output().unwrap()), "1");
    let mut node = Command::new("node");
    node.env("NODE_PATH", verifiers.join("node_modules"));
    node.arg(script("verify.js")).arg(&file).arg(SECRET);
    assert_eq!(told(node.output().unwrap()), "1");
}
