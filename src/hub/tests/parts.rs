//! Subscribers who see a part of a feed (SF-131): what they are pushed is decided at each push.

use super::rig::{CALLBACK, Rig, TOPIC};
use crate::{
    auth::{
        AccessSettings,
        testing::{ALICE, BOB},
    },
    catalog::ShowRule,
    feed::filter::Filter,
};

fn rule(access: AccessSettings, words: &str) -> ShowRule {
    ShowRule {
        access,
        filter: Filter::of(&[("q", words)]).unwrap(),
    }
}

fn named(name: &str) -> AccessSettings {
    AccessSettings::Named([name.to_owned()].into())
}

async fn subscribe(rig: &Rig, token: Option<&str>, topic: &str, callback: &str) -> u16 {
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", topic),
        ("hub.callback", callback),
    ];
    rig.ask_as(token, &form).await
}

#[tokio::test(start_paused = true)]
async fn each_subscriber_is_pushed_what_its_principal_sees() {
    let rig = Rig::new().await;
    rig.add_all(1..=3).await;
    rig.show(&[rule(named("alice"), ""), rule(named("bob"), "open")]);
    assert_eq!(subscribe(&rig, None, TOPIC, CALLBACK).await, 401);
    assert_eq!(
        subscribe(&rig, Some(ALICE), TOPIC, "http://alice.example/").await,
        202
    );
    assert_eq!(
        subscribe(&rig, Some(BOB), TOPIC, "http://bob.example/").await,
        202
    );
    let classic = "http://feeds.example:8080/feeds/blog/classic.rss";
    assert_eq!(
        subscribe(&rig, Some(BOB), classic, "http://bob.example/rss").await,
        202
    );
    let words = "http://feeds.example:8080/feeds/blog.json?order=modified&q=zzsecret";
    assert_eq!(
        subscribe(&rig, Some(BOB), words, "http://bob.example/json").await,
        202
    );
    rig.wait(1).await;
    rig.net.taken();
    rig.edit(1, "zzsecret").await;
    rig.edit(2, "An open post").await;
    rig.edit(3, "zzsecret and open").await;
    rig.wait(1).await;
    let pushes = rig.net.pushes();
    let to = |url: &str| -> String {
        pushes
            .iter()
            .filter(|call| call.url == url)
            .map(|call| String::from_utf8_lossy(&call.body).into_owned())
            .collect()
    };
    assert!(
        to("http://alice.example/").contains("<title>zzsecret</title>"),
        "{}",
        to("http://alice.example/")
    );
    for url in ["http://bob.example/", "http://bob.example/rss"] {
        let body = to(url);
        assert!(
            body.contains("An open post") && body.contains("zzsecret and open"),
            "{url}: {body}"
        );
        assert!(
            !body.contains(">zzsecret<") && !body.contains("p=1&"),
            "{url}: {body}"
        );
    }
    let filtered = to("http://bob.example/json");
    assert!(
        filtered.contains("zzsecret and open") && !filtered.contains("p=1&"),
        "{filtered}"
    );
    let told = to("http://bob.example/");
    let hidden = crate::readers::testing::id(1);
    assert!(
        !told.contains("left-view") && !told.contains(&hidden),
        "what was never in the part has not left it: {told}"
    );
    let link = pushes
        .iter()
        .find(|call| call.url == "http://bob.example/")
        .unwrap()
        .header("link")
        .to_owned();
    assert!(
        link.contains(&format!("<{TOPIC}>; rel=\"self\"")),
        "{link}: the part is nobody's business"
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscription_begins_at_the_last_item_that_its_principal_sees() {
    let rig = Rig::new().await;
    rig.add(1).await;
    rig.edit(1, "open").await;
    rig.show(&[rule(named("alice"), ""), rule(named("bob"), "open")]);
    let begins_at = async |token, callback: &str| {
        assert_eq!(subscribe(&rig, Some(token), TOPIC, callback).await, 202);
        rig.wait(1).await;
        let asked = rig.net.taken();
        let asked = asked
            .iter()
            .find(|call| call.param("hub.challenge").is_some());
        asked
            .expect("it is verified")
            .param("hub.cursor")
            .expect("the hub tells where it begins")
    };
    let seen = begins_at(BOB, "http://bob.example/1").await;
    rig.add_all(2..=4).await;
    rig.wait(1).await;
    rig.net.taken();
    assert_eq!(begins_at(BOB, "http://bob.example/2").await, seen);
    assert_ne!(begins_at(ALICE, "http://alice.example/").await, seen);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_becomes_another_counts_from_the_next_push_on() {
    let rig = Rig::new().await;
    rig.show(&[rule(AccessSettings::Users, "")]);
    assert_eq!(subscribe(&rig, Some(BOB), TOPIC, CALLBACK).await, 202);
    rig.wait(1).await;
    rig.net.taken();
    let pushed = async || {
        rig.wait(1).await;
        rig.net
            .pushes()
            .iter()
            .map(|call| String::from_utf8_lossy(&call.body).into_owned())
            .collect::<String>()
    };
    rig.add(1).await;
    assert!(pushed().await.contains("Post 1"));
    rig.show(&[rule(named("bob"), "open"), rule(AccessSettings::Users, "")]);
    rig.add(2).await;
    assert!(!pushed().await.contains("Post 2"));
    rig.edit(2, "open").await;
    assert!(pushed().await.contains(">open<"));
    let rig2 = rig.killed().await;
    rig2.net.taken();
    rig2.add(3).await;
    rig2.wait(1).await;
    assert!(
        rig2.net
            .pushes()
            .iter()
            .all(|call| !String::from_utf8_lossy(&call.body).contains("Post 3"))
    );
    rig2.show(&[rule(named("alice"), "")]);
    rig2.wait(1).await;
    assert!(rig2.subs().await.is_empty(), "no rule names its principal");
    let denied = rig2.net.taken();
    assert!(
        denied
            .iter()
            .any(|call| call.param("hub.mode").as_deref() == Some("denied")),
        "{denied:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_gets_another_part_is_pushed_it_from_its_beginning() {
    let rig = Rig::new().await;
    rig.show(&[rule(named("bob"), "open")]);
    assert_eq!(subscribe(&rig, Some(BOB), TOPIC, CALLBACK).await, 202);
    rig.wait(1).await;
    rig.net.taken();
    let said = std::cell::RefCell::new(Vec::new());
    let pushed = async || {
        rig.wait(1).await;
        let pushes = rig.net.pushes();
        let cursors = pushes.iter().map(|call| call.header("smart-feed-cursor"));
        said.replace(cursors.map(str::to_owned).collect());
        pushes
            .iter()
            .map(|call| String::from_utf8_lossy(&call.body).into_owned())
            .collect::<String>()
    };
    rig.add_all(1..=2).await;
    assert_eq!(pushed().await, "", "nothing that is hidden makes a push");
    rig.edit(1, "open").await;
    assert!(pushed().await.contains(">open<"));
    // Another filter for the same readers is a change of what they have.
    rig.show(&[rule(named("bob"), "post")]);
    let changed = pushed().await;
    assert!(
        changed.contains("Post 2") && changed.contains("left-view"),
        "{changed}"
    );
    assert!(!changed.contains(">open<"), "{changed}");
    assert_eq!(*said.borrow(), [""], "what they hold is of this part");
    rig.show(&[rule(named("bob"), "")]);
    let all = pushed().await;
    assert!(all.contains("Post 2") && all.contains(">open<"), "{all}");
    assert_eq!(
        *said.borrow(),
        ["reset"],
        "what they hold is of another part"
    );
    rig.show(&[rule(named("bob"), "open")]);
    let part = pushed().await;
    assert!(
        part.contains(">open<") && !part.contains("Post 2") && !part.contains("left-view"),
        "{part}"
    );
    assert_eq!(*said.borrow(), ["reset"]);
}

// World 6: the position passed what the filter hid, and nobody was told.
#[tokio::test(start_paused = true)]
async fn who_gets_another_part_is_told_so_where_a_filter_shows_nothing_of_it() {
    let rig = Rig::new().await;
    rig.add_all(1..=3).await;
    rig.show(&[rule(named("bob"), "post")]);
    let topic = "http://feeds.example:8080/feeds/blog.json?order=modified&q=2";
    assert_eq!(subscribe(&rig, Some(BOB), topic, CALLBACK).await, 202);
    rig.wait(1).await;
    rig.net.taken();
    rig.show(&[rule(named("bob"), ""), rule(named("alice"), "post")]);
    rig.wait(1).await;
    rig.net.taken();
    rig.edit(1, "open").await;
    rig.wait(1).await;
    rig.net.taken();
    rig.show(&[rule(named("bob"), "open")]);
    rig.wait(1).await;
    let pushes = rig.net.pushes();
    let told = pushes.iter().map(|push| push.header("smart-feed-cursor"));
    assert_eq!(told.collect::<Vec<_>>(), ["reset"]);
    rig.edit(3, "open 2").await;
    rig.wait(1).await;
    let next = rig.net.pushes().remove(0);
    assert_eq!(next.prev(), pushes[0].last(), "the chain goes on there");
    assert_eq!(next.header("smart-feed-cursor"), "");
}
