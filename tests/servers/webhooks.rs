//! Webhooks of the whole program: each change of a publisher is one message, and the libraries of
//! Standard Webhooks verify it. `tests/run` installs them.

use crate::EVERFEED;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use testkit::{
    place::{self, Place},
    publisher::{Asked, Publisher, rss, with_headers},
};

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The folder into which `tests/run` installs the libraries.
pub(crate) fn verifiers() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join(target.unwrap_or_else(|| "target".into()));
    let folder = folder.join("verifiers");
    assert!(
        folder.join("python/standardwebhooks").exists()
            && folder.join("node_modules/standardwebhooks").exists(),
        "the libraries are not in {}: tests/run installs them",
        folder.display()
    );
    folder
}

/// The folder of Python's packages into which `tests/run` installs this one.
pub(crate) fn packages(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join(target.unwrap_or_else(|| "target".into()));
    let folder = folder.join("verifiers/python");
    assert!(
        folder.join(name).exists(),
        "{name} is not in {}: tests/run installs it",
        folder.display()
    );
    folder
}

pub(crate) fn script(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/webhooks");
    folder.join(name)
}

/// Verdict of a library on all messages: their number, or the reason of its refusal.
pub(crate) fn told(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A message as the libraries take it.
pub(crate) fn message(asked: &Asked) -> Value {
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers = names.map(|name| (name.to_owned(), json!(asked.header(name))));
    json!({
        "headers": Value::Object(headers.into_iter().collect()),
        "body": String::from_utf8(asked.body.clone()).unwrap(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_libraries_of_standard_webhooks_verify_each_message_and_refuse_a_changed_one() {
    let verifiers = verifiers();
    let posts = Arc::new(AtomicUsize::new(3));
    let count = posts.clone();
    let publisher = Publisher::of(move |_| rss(count.load(Ordering::Relaxed))).await;
    let taken: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let takes = taken.clone();
    let hook = Publisher::of(move |asked| {
        let mut takes = takes.lock().unwrap_or_else(PoisonError::into_inner);
        takes.push(asked.clone());
        with_headers(200, &[], "")
    })
    .await;
    let place = Place::free();
    let webhook = format!(
        "[[webhook]]\nurl = \"{}\"\nfeed = \"blog\"\nsecret = \"{SECRET}\"\n",
        hook.url("/changes")
    );
    let feed = place::feed("blog", &publisher.url("/rss"), "");
    place.configure("", &format!("{feed}{webhook}"));
    let _running = place.start(&mut place.command(EVERFEED, &["serve"]));
    place.answers("/feeds/blog.json", 200).await;
    posts.store(5, Ordering::Relaxed);
    let polled = place.run(EVERFEED, &["poll", "blog", "--now"]);
    assert!(polled.all().contains("2 new"), "{}", polled.all());
    let messages = || {
        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.iter().map(message).collect::<Vec<Value>>()
    };
    place
        .until("both changes are told", async || messages().len() >= 2)
        .await;
    let all = messages();
    assert_eq!(all.len(), 2, "{all:?}");
    let body: Value = serde_json::from_str(all[0]["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["type"], "post.created");

    let file = place.path("messages.json");
    place.write("messages.json", &serde_json::to_string(&all).unwrap());
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", verifiers.join("python"));
    python.arg(script("verify.py")).arg(&file).arg(SECRET);
    assert_eq!(told(python.output().unwrap()), "2");
    let mut node = Command::new("node");
    node.env("NODE_PATH", verifiers.join("node_modules"));
    node.arg(script("verify.js")).arg(&file).arg(SECRET);
    assert_eq!(told(node.output().unwrap()), "2");
    let listed = place.run(EVERFEED, &["subscribers", "list"]);
    assert!(listed.all().contains("webhook"), "{}", listed.all());
}
