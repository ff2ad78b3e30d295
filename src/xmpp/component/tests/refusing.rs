//! Errors: each request that cannot be answered has the stanza of section 6 of the brief, and the
//! stream goes on.

use super::rig::{ALICE, Rig, SERVICE, accounts, error};
use crate::{
    auth::AccessSettings,
    catalog::ShowRule,
    feed::filter::Filter,
    readers::testing::{ReaderRig, add_titled, id},
    xmpp::component::{frames::STANZA_BYTES_MAX, ns},
};

fn pubsub(rest: &str) -> String {
    format!("<pubsub xmlns='{}'>{rest}</pubsub>", ns::PUBSUB)
}

#[tokio::test(start_paused = true)]
async fn every_error_has_its_stanza() {
    let mut rig = Rig::of(3).await;
    let rsm = |rest: &str| {
        pubsub(&format!(
            "<items node='blog'/><set xmlns='{}'>{rest}</set>",
            ns::RSM
        ))
    };
    let owner = |rest: &str| format!("<pubsub xmlns='{}'>{rest}</pubsub>", ns::PUBSUB_OWNER);
    let unsupported =
        |feature: &str| format!("cancel feature-not-implemented unsupported {feature}");
    for (kind, asked, expect) in [
        (
            "get",
            pubsub("<items node='none'/>"),
            "cancel item-not-found".to_owned(),
        ),
        (
            "get",
            pubsub("<items/>"),
            "modify bad-request nodeid-required".into(),
        ),
        (
            "set",
            pubsub("<subscribe jid='x'/>"),
            "modify bad-request nodeid-required".into(),
        ),
        ("get", rsm("<max>-1</max>"), "modify bad-request".into()),
        ("get", rsm("<index>x</index>"), "modify bad-request".into()),
        (
            "get",
            rsm("<after>urn:x</after>"),
            "modify bad-request".into(),
        ),
        (
            "get",
            rsm("<after>time:x</after>"),
            "modify bad-request".into(),
        ),
        (
            "get",
            rsm("<after>cursor:zzz</after>"),
            "modify bad-request".into(),
        ),
        (
            "get",
            rsm("<before>cursor:</before>"),
            "modify bad-request".into(),
        ),
        (
            "get",
            rsm("<after>cursor:1_2</after>"),
            "modify bad-request".into(),
        ),
        (
            "get",
            pubsub("<items node='blog?x=1'/>"),
            "cancel item-not-found".into(),
        ),
        (
            "get",
            pubsub("<items node='blog?max=1'/>"),
            "modify bad-request".into(),
        ),
        (
            "set",
            pubsub("<publish node='blog'/>"),
            unsupported("publish"),
        ),
        (
            "set",
            pubsub("<retract node='blog'/>"),
            unsupported("delete-items"),
        ),
        (
            "set",
            pubsub("<create node='x'/>"),
            unsupported("create-nodes"),
        ),
        ("set", pubsub("<configure/>"), unsupported("config-node")),
        (
            "get",
            pubsub("<options node='blog'/>"),
            unsupported("subscription-options"),
        ),
        (
            "get",
            pubsub("<affiliations/>"),
            unsupported("retrieve-affiliations"),
        ),
        (
            "get",
            owner("<configure node='blog'/>"),
            unsupported("config-node"),
        ),
        (
            "set",
            owner("<delete node='blog'/>"),
            unsupported("delete-nodes"),
        ),
        ("get", pubsub(""), "modify bad-request".into()),
        ("get", pubsub("<x/>"), "modify bad-request".into()),
        (
            "set",
            pubsub("<items node='blog'/>"),
            "modify bad-request".into(),
        ),
        (
            "get",
            "<query xmlns='jabber:iq:version'/>".into(),
            "cancel service-unavailable".into(),
        ),
        ("get", "<a/><b/>".into(), "modify bad-request".into()),
        ("get", String::new(), "modify bad-request".into()),
        (
            "get",
            format!("<ping xmlns='{}'/>", ns::PING),
            String::new(),
        ),
    ] {
        let answer = rig.ask_as(ALICE, kind, &asked).await;
        assert_eq!(error(&answer), expect, "{asked}");
        assert_eq!(answer.attribute("to"), Some(ALICE));
    }
    let many = "<item id='x'/>".repeat(101);
    let many = pubsub(&format!("<items node='blog'>{many}</items>"));
    assert_eq!(error(&rig.get(&many).await), "modify policy-violation");
    assert_eq!(rig.component.state().streams, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_or_means_nothing_ends_neither_stream_nor_process() {
    // XMPP-5, XMPP-6.
    let mut rig = Rig::of(3).await;
    let iq = |id: &str, rest: &str| {
        format!("<iq type='get' id='{id}' from='{ALICE}' to='{SERVICE}'>{rest}</iq>")
    };
    let attribute = format!("<a b='{}'/>", "x".repeat(300 << 10));
    let deep = format!("{}{}", "<d>".repeat(100_000), "</d>".repeat(100_000));
    for (at, large) in [attribute, "y".repeat(STANZA_BYTES_MAX), deep]
        .iter()
        .enumerate()
    {
        let id = format!("large{at}");
        rig.server.send(&iq(&id, large)).await;
        let answer = rig.server.answer(&id).await;
        assert_eq!(error(&answer), "modify policy-violation", "{at}");
    }
    for nothing in [
        format!("<iq type='result' id='1' from='{ALICE}' to='{SERVICE}'/>"),
        format!("<iq type='error' id='1' from='{ALICE}' to='{SERVICE}'><error/></iq>"),
        format!("<iq type='bogus' id='1' from='{ALICE}' to='{SERVICE}'/>"),
        format!("<message type='bogus' from='{ALICE}' to='{SERVICE}'><body>hello</body></message>"),
        format!("<message type='error' from='{ALICE}' to='{SERVICE}'/>"),
        format!("<presence type='subscribe' from='{ALICE}' to='{SERVICE}'/>"),
        "<iq type='get' id='1'/>".into(),
        "<iq type='get' id='1' from='@@' to='@@'><x/></iq>".into(),
        "<x xmlns='y'><z/></x>".into(),
        "\n \n".into(),
    ] {
        rig.server.send(&nothing).await;
    }
    assert!(rig.server.is_quiet().await);
    let other = format!(
        "<iq type='get' id='l' from='{ALICE}' to='x@{SERVICE}'><ping xmlns='{}'/></iq>",
        ns::PING
    );
    rig.server.send(&other.replace(" to='x@", " to='")).await;
    assert_eq!(error(&rig.server.answer("l").await), "");
    assert_eq!(rig.component.state().streams, 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_has_one_answer_however_long_its_id_is_and_wherever_it_goes() {
    // XMPP-2, XMPP-6.
    let mut rig = Rig::of(3).await;
    let ping = |id: &str, to: &str| {
        format!(
            "<iq type='get' id='{id}' from='{ALICE}' to='{to}'><ping xmlns='{}'/></iq>",
            ns::PING
        )
    };
    for (bytes, expect) in [
        (1_024, ""),
        (1_025, "modify policy-violation"),
        (60_000, "modify policy-violation"),
        (200 << 10, "modify policy-violation"),
    ] {
        let id = "i".repeat(bytes);
        rig.server.send(&ping(&id, SERVICE)).await;
        assert_eq!(error(&rig.server.answer(&id).await), expect, "{bytes}");
    }
    // One that an answer cannot hold is cut, and one that no stanza holds is left out.
    let quotes = "\"".repeat(200_000);
    rig.server.send(&ping(&quotes, SERVICE)).await;
    let answer = rig.server.next().await;
    let id = answer.attribute("id").unwrap();
    assert!(id.len() > 40_000 && quotes.starts_with(id), "{}", id.len());
    assert_eq!(error(&answer), "modify policy-violation");
    rig.server
        .send(&ping(&"i".repeat(300 << 10), SERVICE))
        .await;
    assert_eq!(
        error(&rig.server.answer("").await),
        "modify policy-violation"
    );
    // The rig's server takes no answer from another domain.
    for to in ["other.example", "x@other.example/y"] {
        rig.server.send(&ping("far", to)).await;
        let answer = rig.server.answer("far").await;
        assert_eq!(error(&answer), "cancel service-unavailable", "{to}");
    }
    assert!(rig.server.is_quiet().await);
    assert_eq!(rig.component.state().streams, 1);
}

#[tokio::test(start_paused = true)]
async fn one_address_that_floods_is_slowed_and_others_are_answered() {
    let mut rig = Rig::of(3).await;
    let ping = format!("<ping xmlns='{}'/>", ns::PING);
    let mut flood = String::new();
    for n in 0..300 {
        flood += &format!("<iq type='get' id='f{n}' from='{ALICE}' to='{SERVICE}'>{ping}</iq>");
    }
    rig.server.send(&flood).await;
    let mut refused = 0;
    for n in 0..300 {
        let answer = rig.server.next().await;
        let words = error(&answer);
        assert!(
            words.is_empty() || words == "wait resource-constraint",
            "{n}: {words}"
        );
        refused += usize::from(!words.is_empty());
    }
    assert!((190..300).contains(&refused), "{refused}");
    let bob = rig.ask_as("bob@example.net", "get", &ping).await;
    assert_eq!(error(&bob), "");
}

#[tokio::test(start_paused = true)]
async fn one_domain_that_floods_is_slowed_and_others_are_answered() {
    // Section 7 of the brief: flow. No address of it asks for more than its own share.
    let mut rig = Rig::of(3).await;
    let ping = format!("<ping xmlns='{}'/>", ns::PING);
    let mut refused = 0;
    for round in 0..15 {
        let mut flood = String::new();
        for n in 0..200 {
            flood += &format!(
                "<iq type='get' id='f{n}' from='u{round}-{n}@flood.example/x' to='{SERVICE}'>{ping}</iq>"
            );
        }
        rig.server.send(&flood).await;
        for _ in 0..200 {
            let words = error(&rig.server.next().await);
            assert!(
                words.is_empty() || words == "wait resource-constraint",
                "{words}"
            );
            refused += usize::from(!words.is_empty());
        }
        let bob = rig.ask_as("bob@example.net", "get", &ping).await;
        assert_eq!(error(&bob), "", "{round}");
    }
    assert!((1_900..3_000).contains(&refused), "{refused}");
    assert_eq!(rig.component.state().streams, 1);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_know_a_feed_is_told_what_there_is_not() {
    // SF-131, XMPP-56; section 6 of the brief: hide a private feed.
    let mut rig = Rig::of(3).await;
    rig.know(accounts());
    rig.protect(AccessSettings::Named(
        ["bob".to_owned(), "xmpp:*@friends.example".to_owned()].into(),
    ));
    let info = format!("<query xmlns='{}' node='blog'/>", ns::DISCO_INFO);
    let list = format!("<query xmlns='{}'/>", ns::DISCO_ITEMS);
    let items = pubsub("<items node='blog'/>");
    for (jid, is_in) in [
        (ALICE, false),
        ("alice@jabber.example/x", false),
        ("bob@jabber.example/x", true),
        ("BOB@Jabber.Example/x", true),
        ("anyone@friends.example", true),
        ("anyone@sub.friends.example", false),
    ] {
        let expect = if is_in { "" } else { "cancel item-not-found" };
        for asked in [&info, &items] {
            assert_eq!(
                error(&rig.ask_as(jid, "get", asked).await),
                expect,
                "{jid} {asked}"
            );
        }
        let bare = jid.split('/').next().unwrap();
        let subscribed = rig
            .ask_as(jid, "set", &super::rig::subscribe("blog", bare))
            .await;
        assert_eq!(error(&subscribed), expect, "{jid}");
        let listed = rig.ask_as(jid, "get", &list).await;
        let query = listed.child(ns::DISCO_ITEMS, "query").unwrap();
        let nodes = query.elements().filter(|it| it.name() == "item").count();
        assert_eq!(nodes, usize::from(is_in), "{jid}");
    }
    let service = rig
        .get(&format!("<query xmlns='{}'/>", ns::DISCO_INFO))
        .await;
    let text = service.written(ns::COMPONENT);
    assert!(String::from_utf8_lossy(&text).contains("access-whitelist"));
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_a_part_sees_its_items_alone() {
    // SF-131.
    let mut rig = Rig::of(0).await;
    rig.change(
        (1..=4)
            .map(|n| add_titled(n, if n == 2 { "open" } else { "closed" }))
            .collect(),
    )
    .await;
    rig.know(accounts());
    let rule = |name: &str, filter| ShowRule {
        access: AccessSettings::Named([name.to_owned()].into()),
        filter,
    };
    let open = Filter::of(&[("q", "open")]).unwrap();
    rig.show(&[rule("bob", Filter::All), rule("xmpp:me@x.example", open)]);
    let mut ids = async |jid: &str| {
        let answer = rig
            .ask_as(jid, "get", &pubsub("<items node='blog'/>"))
            .await;
        super::rig::Answer::of(answer).ids()
    };
    assert_eq!(ids("me@x.example/1").await, [id(2)]);
    assert_eq!(ids("bob@jabber.example").await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_not_read_yet_and_a_broken_store_are_said_to_pass() {
    let mut rig = Rig::before_stream(super::rig::config(), ReaderRig::unread().await);
    rig.accept().await;
    let items = pubsub("<items node='blog'/>");
    assert_eq!(error(&rig.get(&items).await), "wait resource-constraint");
    let mut rig = Rig::of(3).await;
    rig.readers.store.break_down(true);
    assert_eq!(error(&rig.get(&items).await), "wait internal-server-error");
    rig.readers.store.break_down(false);
    assert_eq!(error(&rig.get(&items).await), "");
}
