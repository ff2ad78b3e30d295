//! Push: one item a message, in order, and a chain of cursors that shows what was left out.

use super::rig::{ALICE, Pushed, Rig, accounts, config, subscribe};
use crate::{
    auth::{AccessSettings, Accounts},
    catalog::ShowRule,
    feed::{filter::Filter, order::Order},
    readers::testing::{ReaderRig, add, add_titled, delete, edit, id},
};
use std::{collections::HashMap, time::Duration};
use tokio::time::sleep;

const BARE: &str = "alice@example.net";

/// The next pushes.
async fn pushes(rig: &mut Rig, count: usize) -> Vec<Pushed> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(rig.server.pushed().await);
    }
    all
}

/// Each begins where the one before it ended (XMPP-52).
fn is_chain(pushes: &[Pushed]) -> bool {
    pushes.windows(2).all(|two| two[1].previous == two[0].last)
}

#[tokio::test(start_paused = true)]
async fn an_item_a_message_with_the_cursors_of_the_feed() {
    // XMPP-50, XMPP-51, XMPP-52, XMPP-53, XMPP-54, XMPP-57; seed: XMPP Push.
    let mut rig = Rig::of(2).await;
    rig.subscribe("blog", ALICE).await;
    assert!(rig.server.is_quiet().await, "XMPP-57");
    let page = rig.all(Order::MODIFIED).await;
    rig.change(vec![add(3), edit(1, "again"), delete(2)]).await;
    let pushed = pushes(&mut rig, 3).await;
    let told: Vec<_> = pushed
        .iter()
        .map(|it| (it.kind.as_str(), it.id.clone(), it.has_entry))
        .collect();
    assert_eq!(
        told,
        [
            ("item", id(3), true),
            ("item", id(1), true),
            ("retract", id(2), false)
        ]
    );
    assert!(is_chain(&pushed));
    assert_eq!(
        pushed[0].previous.as_deref(),
        Some(page.last_cursor.as_str())
    );
    let page = rig.all(Order::MODIFIED).await;
    assert_eq!(pushed[2].last.as_deref(), Some(page.last_cursor.as_str()));
    assert!(
        pushed
            .iter()
            .all(|it| it.total.as_deref() == Some("3") && it.to == ALICE && it.node == "blog")
    );
    assert!(
        pushed
            .iter()
            .all(|it| it.anew.is_none() && it.generation.as_deref() == Some("0"))
    );
    assert!(rig.server.is_quiet().await);
    assert_eq!(rig.positions().await, [Some(page.last_cursor)]);
}

#[tokio::test(start_paused = true)]
async fn before_the_first_item_ever_there_is_no_cursor() {
    // XMPP-51.
    let readers = ReaderRig::unread().await;
    let mut rig = Rig::before_stream(config(), readers);
    rig.accept().await;
    rig.subscribe("blog", BARE).await;
    rig.change(vec![]).await;
    assert!(rig.server.is_quiet().await);
    rig.change(vec![add(1)]).await;
    let first = rig.server.pushed().await;
    assert_eq!((first.id.as_str(), first.previous), (id(1).as_str(), None));
    assert!(first.last.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_node_says_what_is_pushed() {
    // Seed: parameters of a node; XMPP-58, the query of the node turns payloads off.
    let mut rig = Rig::of(1).await;
    for node in ["blog?order=created", "blog?payload=false", "blog?q=wanted"] {
        rig.subscribe(node, BARE).await;
    }
    rig.change(vec![edit(1, "again")]).await;
    let told = of_nodes(pushes(&mut rig, 2).await);
    let (hidden, bare) = (&told["blog?q=wanted"], &told["blog?payload=false"]);
    assert_eq!((bare.kind.as_str(), bare.has_entry), ("item", false));
    // It may have been wanted before the edit.
    assert_eq!(hidden.kind, "retract");
    assert!(rig.server.is_quiet().await);
    rig.change(vec![add_titled(2, "wanted")]).await;
    let told = of_nodes(pushes(&mut rig, 3).await);
    let wanted = told["blog?q=wanted"].clone();
    assert!(wanted.has_entry && told["blog?order=created"].has_entry);
    assert!(!told["blog?payload=false"].has_entry);
    // What a filter hides is passed, and the chain holds all the same.
    rig.change((3..=6).map(add).collect()).await;
    pushes(&mut rig, 8).await;
    rig.change(vec![add_titled(7, "wanted")]).await;
    let told = of_nodes(pushes(&mut rig, 3).await);
    let last = &told["blog?q=wanted"];
    assert_eq!(last.previous, wanted.last);
    assert_eq!(wanted.previous, hidden.last);
    let count = rig
        .items("blog?q=wanted", "<max>0</max>")
        .await
        .told("count");
    assert_eq!(last.total, count);
    assert!(rig.server.is_quiet().await);
}

/// One push of each node.
fn of_nodes(pushes: Vec<Pushed>) -> HashMap<String, Pushed> {
    pushes
        .into_iter()
        .map(|push| (push.node.clone(), push))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn who_was_away_is_sent_what_came_meanwhile_and_after_much_the_newest_alone() {
    // Position-based: what is written counts, and a gap shows in the cursor before it.
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    rig.subscribe("blog", ALICE).await;
    rig.change(vec![add(2)]).await;
    let before = pushes(&mut rig, 2).await;
    assert!(rig.server.is_quiet().await);
    drop(std::mem::replace(
        &mut rig.server,
        super::rig::Server::nobody(),
    ));
    rig.change((3..=102).map(add).collect()).await;
    rig.accept().await;
    let missed = pushes(&mut rig, 200).await;
    for jid in [BARE, ALICE] {
        let mine: Vec<_> = before
            .iter()
            .chain(&missed)
            .filter(|it| it.to == jid)
            .cloned()
            .collect();
        assert_eq!(mine.len(), 101, "{jid}");
        assert!(is_chain(&mine));
        let ids: Vec<_> = mine.iter().map(|it| it.id.clone()).collect();
        assert_eq!(ids, (2..=102).map(id).collect::<Vec<_>>());
    }
    assert!(rig.server.is_quiet().await);
    drop(std::mem::replace(
        &mut rig.server,
        super::rig::Server::nobody(),
    ));
    rig.change((103..=203).map(add).collect()).await;
    rig.accept().await;
    let newest = pushes(&mut rig, 2).await;
    assert!(newest.iter().all(|it| it.id == id(203)));
    let page = rig.items("blog", "<max>2</max><before/>").await;
    let previous = page.told("first").unwrap();
    assert_eq!(
        newest[0].previous.as_deref(),
        previous.strip_prefix("cursor:")
    );
    assert_ne!(newest[0].previous, missed[199].last, "the gap shows");
    assert!(rig.server.is_quiet().await);
    rig.change(vec![add(204)]).await;
    let next = pushes(&mut rig, 2).await;
    assert_eq!(next[0].previous, newest[0].last);
}

/// A rule that shows the readers of a name what a filter shows.
fn rule(name: &str, filter: Filter) -> ShowRule {
    ShowRule {
        access: AccessSettings::Named([name.to_owned()].into()),
        filter,
    }
}

#[tokio::test(start_paused = true)]
async fn who_gets_another_part_is_told_to_begin_anew() {
    // D-8, XMPP-52: a user is removed, and its address sees another part.
    let mut rig = Rig::of(0).await;
    let titles = ["open one", "closed", "open two"];
    rig.change((1..).zip(titles).map(|(n, it)| add_titled(n, it)).collect())
        .await;
    rig.know(accounts());
    let open = Filter::of(&[("q", "open")]).unwrap();
    rig.show(&[
        rule("bob", Filter::All),
        rule("xmpp:*@jabber.example", open),
    ]);
    let bob = "bob@jabber.example/x";
    rig.ask_as(bob, "set", &subscribe("blog", bob)).await;
    rig.change(vec![add_titled(4, "closed, too")]).await;
    let known = rig.server.pushed().await;
    assert_eq!((known.id.as_str(), known.anew.clone()), (&*id(4), None));
    rig.know(Accounts::default());
    let pushed = pushes(&mut rig, 2).await;
    assert!(rig.server.is_quiet().await);
    let told: Vec<_> = pushed
        .iter()
        .map(|it| (it.id.clone(), it.anew.as_deref()))
        .collect();
    assert_eq!(told, [(id(1), Some("reset")), (id(3), None)]);
    // It follows nothing that bob holds, not even the cursor that he was pushed last.
    assert_eq!(pushed[0].previous, None);
    assert!(is_chain(&pushed));
    // The answer to that cursor says the same, and its page is the first.
    let set = format!(
        "<pubsub xmlns='{}'><items node='blog'/><set xmlns='{}'><after>cursor:{}</after></set></pubsub>",
        crate::xmpp::component::ns::PUBSUB,
        crate::xmpp::component::ns::RSM,
        known.last.unwrap()
    );
    let page = super::rig::Answer::of(rig.ask_as(bob, "get", &set).await);
    assert_eq!(page.header("Smart-Feed-Cursor").as_deref(), Some("reset"));
    assert_eq!(page.ids(), [id(1), id(3)]);
    // From there on the chain goes on as ever.
    rig.change(vec![add_titled(5, "open three")]).await;
    let next = rig.server.pushed().await;
    assert_eq!((&next.previous, next.anew), (&pushed[1].last, None));
}

#[tokio::test(start_paused = true)]
async fn a_part_without_posts_says_so_with_its_first() {
    // D-8: what a filter hides in the new part does not make the word be forgotten.
    let mut rig = Rig::of(0).await;
    rig.change(vec![add_titled(1, "open"), add_titled(2, "closed")])
        .await;
    rig.know(accounts());
    let open = Filter::of(&[("q", "open")]).unwrap();
    rig.show(&[
        rule("bob", Filter::All),
        rule("xmpp:*@jabber.example", open),
    ]);
    let bob = "bob@jabber.example/x";
    rig.ask_as(bob, "set", &subscribe("blog?q=wanted", bob))
        .await;
    rig.know(Accounts::default());
    assert!(rig.server.is_quiet().await);
    rig.change(vec![add_titled(3, "open but not it")]).await;
    assert!(rig.server.is_quiet().await);
    rig.change(vec![add_titled(4, "open and wanted")]).await;
    let first = rig.server.pushed().await;
    assert_eq!(
        (first.id, first.anew.as_deref(), first.previous),
        (id(4), Some("reset"), None)
    );
}

#[tokio::test(start_paused = true)]
async fn after_much_in_another_part_the_newest_alone_says_so() {
    // D-8: the gap and the word are one message.
    let mut rig = Rig::of(0).await;
    rig.change((1..=150).map(|n| add_titled(n, "open")).collect())
        .await;
    rig.know(accounts());
    let open = Filter::of(&[("q", "open")]).unwrap();
    rig.show(&[
        rule("bob", Filter::All),
        rule("xmpp:*@jabber.example", open),
    ]);
    let bob = "bob@jabber.example/x";
    rig.ask_as(bob, "set", &subscribe("blog", bob)).await;
    rig.know(Accounts::default());
    let newest = rig.server.pushed().await;
    assert_eq!(
        (newest.id, newest.anew.as_deref(), newest.previous),
        (id(150), Some("reset"), None)
    );
    assert!(rig.server.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_who_follows_the_rule_of_the_seed_ends_with_the_feed() {
    // Seed: Updates/Synchronization via Push. What does not follow is read.
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    let mut known = rig
        .items("blog", "<max>1</max><before/>")
        .await
        .told("last")
        .unwrap();
    let mut held = vec![id(1)];
    for round in 0..4_u32 {
        if round == 2 {
            drop(std::mem::replace(
                &mut rig.server,
                super::rig::Server::nobody(),
            ));
        }
        let from = 2 + round * 120;
        rig.change((from..from + 120).map(add).collect()).await;
        if round == 2 {
            rig.accept().await;
        }
        let push = rig.server.pushed().await;
        assert!(rig.server.is_quiet().await, "120 are too many: one message");
        assert_ne!(push.previous.as_deref(), known.strip_prefix("cursor:"));
        loop {
            let page = rig.items("blog", &format!("<after>{known}</after>")).await;
            let Some(last) = page.told("last") else { break };
            held.extend(page.ids());
            known = last;
        }
        assert_eq!(push.last.as_deref(), known.strip_prefix("cursor:"));
    }
    assert_eq!(held, (1..=481).map(id).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn what_was_not_written_is_written_to_the_next_stream() {
    let mut rig = Rig::of(1).await;
    let jids: Vec<String> = (0..50).map(|n| format!("u{n}@example.net")).collect();
    for jid in &jids {
        rig.ask_as(jid, "set", &subscribe("blog", jid)).await;
    }
    // More than the pipe holds, and nobody reads it.
    rig.change((2..=40).map(|n| add_titled(n, &"x".repeat(500))).collect())
        .await;
    sleep(Duration::from_secs(1)).await;
    pushes(&mut rig, 10).await;
    drop(std::mem::replace(
        &mut rig.server,
        super::rig::Server::nobody(),
    ));
    rig.accept().await;
    let mut last_of = HashMap::new();
    for push in pushes(&mut rig, 39 * jids.len()).await {
        last_of.insert(push.to.clone(), push.id);
    }
    assert_eq!(last_of.len(), jids.len());
    assert!(last_of.values().all(|last| *last == id(40)));
    assert!(rig.server.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_delays_pushes_and_loses_none() {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    rig.readers.store.break_down(true);
    rig.change(vec![add(2)]).await;
    assert!(rig.server.is_quiet().await);
    rig.readers.store.break_down(false);
    let push = rig.server.pushed().await;
    assert_eq!(push.id, id(2));
}
