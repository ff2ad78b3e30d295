//! Kills `everfeed forget` at every moment of its work: what is forgotten is whole or gone, the next
//! start leaves nothing of what is gone in any file, and nothing else is lost.

use super::number;
use everfeed::{
    clock::System,
    feed::{
        item::{ItemDigests, KeyHash},
        reconcile::{Change, Put, PutKind},
    },
    store::{
        Commit,
        redb::{self, Redb},
        traits::*,
    },
};
use everfeed_adapters::{Body, Entry, Text};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Instant,
};

/// Items of the feed; the first is forgotten.
const ITEMS: usize = 100;

/// Words of the first item.
const WORDS: &str = "words-to-forget";

fn open(folder: &Path) -> Redb {
    let path = folder.join("everfeed.redb");
    Redb::open(&path, &redb::Config::default(), Arc::new(System)).unwrap()
}

fn key(n: usize) -> KeyHash {
    KeyHash::of("blog", &format!("post {n}"))
}

fn post(n: usize) -> Change {
    // A short item is not packed: its words stand in the file as they are.
    let content = (n > 0).then(|| Body {
        text: Text::plain("other words ".repeat(1000)),
        ..Body::default()
    });
    let entry = Entry {
        id: Some(format!("post {n}")),
        title: Some(Text::plain(WORDS)).filter(|_| n == 0),
        content,
        ..Entry::default()
    };
    Change::Put(Put {
        kind: PutKind::Added,
        id: key(n).item_id(),
        iri: format!("urn:post:{n}"),
        keys: vec![key(n)],
        entry: Arc::new(entry),
        published_us: None,
        digests: ItemDigests::default(),
        witnesses: Vec::new(),
    })
}

/// A folder with a store of one feed and a configuration of it.
async fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let record = store.register("blog", "blog").await.unwrap();
    let commit = Commit {
        changes: (0..ITEMS).map(post).collect(),
        ready: true,
        ..Commit::nothing(&record)
    };
    store.commit(commit).await.unwrap();
    store.close().await.unwrap();
    let config = "[server]\nlisten = \"127.0.0.1:0\"\npublic_url = \"http://127.0.0.1\"\nadmin_listen = \"127.0.0.1:1\"\n\
                  [store]\npath = \"everfeed.redb\"\n\
                  [[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:2/feed\"\nid_namespace = \"blog\"\n";
    std::fs::write(folder.path().join("everfeed.toml"), config).unwrap();
    folder
}

fn copy_of(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    copy
}

fn forget(folder: &Path) -> Child {
    let mut command = Command::new(crate::EVERFEED);
    command.args(["forget", "blog", &key(0).item_id().to_string(), "--config"]);
    command
        .arg(folder.join("everfeed.toml"))
        .env("RUST_LOG", "error")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("the binary starts")
}

/// Starts on what a kill has left, and holds it to what it promises. True when the item is gone.
async fn check(folder: &Path, when: &str) -> bool {
    let store = open(folder);
    assert_eq!(store.keeps_forgotten(), None, "{when}");
    let feed = store.feed_named("blog").await.unwrap().unwrap().no;
    for n in 1..ITEMS {
        let item = store.item(feed, key(n).item_id()).await.unwrap();
        assert!(item.is_some_and(|item| !item.is_gone()), "{when}: {n}");
    }
    let item = store.item(feed, key(0).item_id()).await.unwrap().unwrap();
    let is_gone = item.content.is_forgotten();
    assert!(is_gone || !item.is_gone(), "{when}");
    store.close().await.unwrap();
    drop(store);
    let mut holding: Vec<PathBuf> = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        assert!(!path.ends_with("everfeed.redb.anew"), "{when}");
        let bytes = std::fs::read(&path).unwrap();
        if memchr::memmem::find(&bytes, WORDS.as_bytes()).is_some() {
            holding.push(path);
        }
    }
    assert_eq!(holding.is_empty(), is_gone, "{when}: {holding:?}");
    is_gone
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forgotten_is_whole_or_gone_whenever_it_is_killed() {
    let kills = u32::try_from(number("EVERFEED_KILLS", 30))
        .unwrap()
        .min(1000);
    let prepared = prepared().await;
    let whole = copy_of(prepared.path());
    let begun = Instant::now();
    assert!(forget(whole.path()).wait().unwrap().success());
    let takes = begun.elapsed();
    assert!(check(whole.path(), "without a kill").await);
    let mut gone = 0;
    for n in 0..kills {
        let killed = copy_of(prepared.path());
        let mut child = forget(killed.path());
        let after = takes * n / kills;
        tokio::time::sleep(after).await;
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let when = format!("killed after {after:?} of {takes:?}");
        gone += u32::from(check(killed.path(), &when).await);
    }
    println!("{kills} kills of `forget` in {takes:?}: {gone} times the item was gone by then");
}
