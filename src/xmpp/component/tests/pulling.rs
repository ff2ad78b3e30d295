//! Pull: discovery, and items by Result Set Management, over the same pages as HTTP.

use super::rig::{ALICE, Answer, Rig, SERVICE, config, error};
use crate::{
    feed::{order::Order, reconcile::Change},
    readers::testing::{ReaderRig, add, add_titled, delete, edit, id},
    xmpp::{
        Config,
        component::{
            disco::{GENERATION_FIELD, URI_FIELD},
            element::Element,
            ns, shim,
        },
    },
};
use everfeed_adapters::{Body, Text, TextKind};
use std::sync::Arc;

/// The cursors of all items in an order of change or of first sight.
async fn cursors(rig: &Rig, order: Order) -> Vec<String> {
    let page = rig.all(order).await;
    let items = page.items.iter();
    items
        .map(|item| {
            let t = if order == Order::CREATED {
                item.created
            } else {
                item.modified
            };
            format!("cursor:{}", page.record.cursor(t, item.id).unwrap())
        })
        .collect()
}

/// A post whose text no stanza takes.
fn long_post(n: u32) -> Change {
    let Change::Put(mut put) = add(n) else {
        unreachable!("a post is put");
    };
    Arc::make_mut(&mut put.entry).content = Some(Body {
        text: Text::plain("x".repeat(60_000)),
        ..Body::default()
    });
    Change::Put(put)
}

fn vars(query: &Element) -> Vec<String> {
    let features = query.elements().filter(|child| child.name() == "feature");
    features
        .map(|it| it.attribute("var").unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_service_and_its_nodes_say_what_they_are() {
    // XMPP-10, XMPP-11, XMPP-12, XMPP-61, XMPP-62.
    let mut rig = Rig::of(3).await;
    rig.readers.entitle("My <b>blog").await;
    let info = format!("<query xmlns='{}'/>", ns::DISCO_INFO);
    let service = rig.get(&info).await;
    let query = service.child(ns::DISCO_INFO, "query").unwrap();
    let identity = query.elements().next().unwrap();
    assert_eq!(identity.attribute("category"), Some("pubsub"));
    assert_eq!(identity.attribute("type"), Some("service"));
    let features = vars(query);
    for wanted in [
        ns::DISCO_INFO,
        ns::DISCO_ITEMS,
        ns::PUBSUB,
        ns::RSM,
        ns::SHIM,
        ns::PING,
        "http://jabber.org/protocol/pubsub#rsm",
        "http://jabber.org/protocol/pubsub#access-open",
        "http://jabber.org/protocol/pubsub#subscribe",
    ] {
        assert!(features.iter().any(|it| it == wanted), "{wanted}");
    }
    assert!(
        !features.iter().any(|it| it.ends_with("last-published")),
        "XMPP-57"
    );
    let node = rig.get(&info.replace("/>", " node='blog'/>")).await;
    let query = node.child(ns::DISCO_INFO, "query").unwrap();
    assert_eq!(query.attribute("node"), Some("blog"));
    assert_eq!(
        query.elements().next().unwrap().attribute("type"),
        Some("leaf")
    );
    let form = query.child(ns::DATA_FORM, "x").unwrap();
    let field = |name: &str| {
        let mut fields = form.elements();
        let field = fields.find(|it| it.attribute("var") == Some(name));
        field
            .and_then(|it| it.elements().next())
            .map(Element::text)
            .unwrap_or_default()
    };
    assert_eq!(
        field("FORM_TYPE"),
        "http://jabber.org/protocol/pubsub#meta-data"
    );
    assert_eq!(field("pubsub#title"), "My <b>blog");
    assert_eq!(field("pubsub#type"), ns::SOCIAL_FEED);
    assert_eq!(field("pubsub#access_model"), "open");
    assert_eq!(field("pubsub#num_subscribers"), "0");
    // XMPP-61.
    assert_eq!(field(URI_FIELD), format!("xmpp:{SERVICE}?;node=blog"));
    assert_eq!(field(GENERATION_FIELD), "0");
    assert_eq!(field("pubsub#notify_retract"), "1");
    assert_eq!(field("pubsub#max_items"), "max");
    let headers = rig
        .get(&info.replace("/>", &format!(" node='{}'/>", ns::SHIM)))
        .await;
    let headers = vars(headers.child(ns::DISCO_INFO, "query").unwrap());
    for name in shim::NAMES {
        assert!(headers.contains(&format!("{}#{name}", ns::SHIM)), "{name}");
    }
    let unknown = rig.get(&info.replace("/>", " node='none'/>")).await;
    assert_eq!(error(&unknown), "cancel item-not-found");
}

#[tokio::test(start_paused = true)]
async fn the_list_holds_a_node_for_each_feed_and_the_list_of_a_node_its_items() {
    // XMPP-13, XMPP-14.
    let mut rig = Rig::of(3).await;
    let asked = format!("<query xmlns='{}'/>", ns::DISCO_ITEMS);
    let list = rig.get(&asked).await;
    let query = list.child(ns::DISCO_ITEMS, "query").unwrap();
    let items: Vec<_> = query.elements().filter(|it| it.name() == "item").collect();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].attribute("jid"), Some(SERVICE));
    assert_eq!(items[0].attribute("node"), Some("blog"));
    assert_eq!(items[0].attribute("name"), Some("blog"));
    let beyond = asked.replace(
        "/>",
        &format!(
            "><set xmlns='{}'><max>1</max><after>blog</after></set></query>",
            ns::RSM
        ),
    );
    let beyond = rig.get(&beyond).await;
    let query = beyond.child(ns::DISCO_ITEMS, "query").unwrap();
    assert_eq!(query.elements().filter(|it| it.name() == "item").count(), 0);
    let of_node = rig.get(&asked.replace("/>", " node='blog'/>")).await;
    let query = of_node.child(ns::DISCO_ITEMS, "query").unwrap();
    let items = query.elements().filter(|it| it.name() == "item");
    let told: Vec<_> = items
        .map(|it| {
            (
                it.attribute("name").unwrap().to_owned(),
                it.attribute("node").is_some(),
            )
        })
        .collect();
    assert_eq!(told, [(id(1), false), (id(2), false), (id(3), false)]);
    rig.withdraw();
    let empty = rig.get(&asked).await;
    assert_eq!(error(&empty), "");
    let query = empty.child(ns::DISCO_ITEMS, "query").unwrap();
    assert_eq!(query.elements().filter(|it| it.name() == "item").count(), 0);
}

#[tokio::test(start_paused = true)]
async fn pages_follow_each_other_with_the_cursors_of_http() {
    // XMPP-20 to XMPP-24, seed: XMPP Pull.
    let mut rig = Rig::of(7).await;
    rig.change(vec![edit(2, "again"), delete(5)]).await;
    let order = [1, 3, 4, 6, 7, 2, 5].map(id);
    let all = cursors(&rig, Order::MODIFIED).await;
    let first = rig.items("blog", "<max>3</max>").await;
    assert_eq!(first.items().attribute("node"), Some("blog"));
    assert_eq!(first.ids(), order[..3]);
    assert_eq!(
        (first.index(), first.told("count").as_deref()),
        (Some(0), Some("7"))
    );
    assert_eq!(
        (first.told("first").unwrap(), first.told("last").unwrap()),
        (all[0].clone(), all[2].clone())
    );
    let after = format!("<max>3</max><after>{}</after>", all[2]);
    let second = rig.items("blog", &after).await;
    assert_eq!(second.ids(), order[3..6]);
    assert_eq!(second.told("last").unwrap(), all[5]);
    let end = rig
        .items("blog", &format!("<max>3</max><after>{}</after>", all[5]))
        .await;
    assert_eq!((end.ids(), end.index()), (order[6..].to_vec(), Some(6)));
    // The end of every iterator (P9): no ends, but the count.
    let beyond = rig
        .items("blog", &format!("<after>{}</after>", all[6]))
        .await;
    assert!(
        beyond.ids().is_empty() && beyond.told("first").is_none() && beyond.told("last").is_none()
    );
    assert_eq!(beyond.told("count").as_deref(), Some("7"));
    // The last page, the page right before another, and a range.
    let last = rig.items("blog", "<max>2</max><before/>").await;
    assert_eq!((last.ids(), last.index()), (order[5..].to_vec(), Some(5)));
    let before = rig
        .items("blog", &format!("<max>2</max><before>{}</before>", all[5]))
        .await;
    assert_eq!(before.ids(), order[3..5]);
    assert_eq!(before.told("first").unwrap(), all[3]);
    let range = format!(
        "<max>2</max><after>{}</after><before>{}</before>",
        all[0], all[5]
    );
    assert_eq!(rig.items("blog", &range).await.ids(), order[1..3]);
    // XMPP-25.
    let count = rig.items("blog", "<max>0</max>").await;
    assert!(count.ids().is_empty() && count.told("first").is_none());
    assert_eq!(count.told("count").as_deref(), Some("7"));
    assert_eq!(
        rig.items("blog", "<max>99999999</max>").await.ids().len(),
        7
    );
    // Another spelling of the node is echoed as it is.
    let other = rig.items("blog?order=created", "<max>2</max>").await;
    assert_eq!(other.items().attribute("node"), Some("blog?order=created"));
    assert_eq!(other.ids(), [id(1), id(2)]);
    let created = cursors(&rig, Order::CREATED).await;
    assert_eq!(other.told("last").unwrap(), created[1]);
}

#[tokio::test(start_paused = true)]
async fn every_order_pages_both_ways_over_all_items_once() {
    // XMPP-21, XMPP-24.
    let mut rig = Rig::of(9).await;
    rig.change(vec![edit(4, "x"), delete(8)]).await;
    for order in Order::ALL {
        let expect: Vec<_> = rig
            .all(order)
            .await
            .items
            .iter()
            .map(|it| it.id.to_string())
            .collect();
        let node = format!("blog?order={order}");
        let (mut forward, mut set) = (Vec::new(), "<max>2</max>".to_owned());
        loop {
            let page = rig.items(&node, &set).await;
            if page.ids().is_empty() {
                break;
            }
            forward.extend(page.ids());
            set = format!("<max>2</max><after>{}</after>", page.told("last").unwrap());
        }
        assert_eq!(forward, expect, "{order}");
        let (mut back, mut set) = (Vec::new(), "<max>2</max><before/>".to_owned());
        loop {
            let page = rig.items(&node, &set).await;
            if page.ids().is_empty() {
                break;
            }
            back.splice(0..0, page.ids());
            set = format!(
                "<max>2</max><before>{}</before>",
                page.told("first").unwrap()
            );
        }
        assert_eq!(back, expect, "{order} back");
    }
}

#[tokio::test(start_paused = true)]
async fn positions_are_those_of_the_seed() {
    // XMPP-27, XMPP-28.
    let mut rig = Rig::of(5).await;
    let all = cursors(&rig, Order::MODIFIED).await;
    let t = all[2]
        .trim_start_matches("cursor:")
        .split('_')
        .next()
        .unwrap()
        .to_owned();
    let inclusive = rig.items("blog", &format!("<after>time:{t}</after>")).await;
    assert_eq!(inclusive.ids(), [3, 4, 5].map(id));
    let damaged = rig
        .items("blog", &format!("<after>cursor:{t}_0_1</after>"))
        .await;
    assert_eq!(damaged.ids(), [3, 4, 5].map(id));
    let by_id = rig
        .items("blog?order=created", &format!("<after>{}</after>", id(3)))
        .await;
    assert_eq!(by_id.ids(), [4, 5].map(id));
    let typed = rig
        .items(
            "blog?order=created",
            &format!("<after>id:{}</after>", id(3)),
        )
        .await;
    assert_eq!(typed.ids(), by_id.ids());
    let gone = rig
        .items("blog?order=created", "<after>id:none</after>")
        .await;
    assert_eq!(gone.error(), "cancel item-not-found");
    let moving = rig
        .items("blog", &format!("<after>{}</after>", id(3)))
        .await;
    assert_eq!(moving.error(), "cancel feature-not-implemented");
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_cannot_be_applied_is_told_beside_the_set() {
    // D-8, XMPP-27: in the words of HTTP.
    let mut rig = Rig::of(5).await;
    let all = cursors(&rig, Order::MODIFIED).await;
    rig.change(vec![edit(2, "again")]).await;
    let damaged = format!("{}_0_1", all[2].split('_').next().unwrap());
    for (cursor, word) in [
        (all[2].as_str(), None),
        (all[1].as_str(), Some("moved")),
        (damaged.as_str(), Some("time")),
        ("cursor:1890000000_0_1", Some("ahead")),
        ("cursor:1780272000_1073741829_1", Some("reset")),
    ] {
        for set in [
            format!("<after>{cursor}</after>"),
            format!("<before>{cursor}</before>"),
            format!("<max>0</max><after>{cursor}</after>"),
        ] {
            let page = rig.items("blog", &set).await;
            assert_eq!(page.error(), "", "{set}");
            assert_eq!(page.header(shim::CURSOR).as_deref(), word, "{set}");
            assert_eq!(page.header(shim::GENERATION).as_deref(), Some("0"));
        }
        let list = format!(
            "<query xmlns='{}' node='blog'><set xmlns='{}'><after>{cursor}</after></set></query>",
            ns::DISCO_ITEMS,
            ns::RSM
        );
        let list = rig.get(&list).await.written(ns::COMPONENT);
        let is_told = word.is_some_and(|word| {
            String::from_utf8_lossy(&list).contains(&format!("Smart-Feed-Cursor\">{word}<"))
        });
        assert_eq!(is_told, word.is_some(), "{cursor}");
    }
    // Of another part the first page comes, and of another generation what follows its time.
    let reset = "<after>cursor:1780272000_1073741829_1</after>";
    assert_eq!(rig.items("blog", reset).await.ids().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_deletions_does_not_claim_the_social_feed_profile() {
    // XMPP-62: its notify_retract must be true.
    let mut rig = Rig::of(1).await;
    let metadata = async |rig: &mut Rig, node: &str| {
        let info = format!("<query xmlns='{}' node='{node}'/>", ns::DISCO_INFO);
        let info = rig.get(&info).await.written(ns::COMPONENT);
        let info = String::from_utf8(info.to_vec()).unwrap();
        let tells = info.contains("notify_retract\"><value>1<");
        assert_eq!(tells, info.contains(ns::SOCIAL_FEED), "{info}");
        assert!(
            tells || info.contains("notify_retract\"><value>0<"),
            "{info}"
        );
        tells
    };
    assert!(metadata(&mut rig, "blog").await);
    assert!(!metadata(&mut rig, "blog?deleted=no").await);
    rig.announce_nothing_gone();
    assert!(!metadata(&mut rig, "blog").await);
}

#[tokio::test(start_paused = true)]
async fn a_page_at_an_index_and_the_index_of_every_page() {
    // XMPP-22, XMPP-26.
    let mut rig = Rig::of(9).await;
    rig.change(vec![edit(2, "again"), delete(5)]).await;
    for node in ["blog", "blog?order=-modified", "blog?order=created"] {
        let all = rig.items(node, "").await;
        for (at, first) in all.ids().iter().enumerate() {
            let page = rig
                .items(node, &format!("<max>2</max><index>{at}</index>"))
                .await;
            assert_eq!(page.ids().first(), Some(first), "{node} {at}");
            assert_eq!(page.index(), Some(at as u64));
            // The same page by its cursor, and the page that ends there.
            let cursor = page.told("first").unwrap();
            let last = page.told("last").unwrap();
            let after = rig.items(node, &format!("<after>{last}</after>")).await;
            let expect = (at + page.ids().len()) as u64;
            assert_eq!(
                after.index(),
                Some(expect).filter(|it| *it < 9),
                "{node} {at}"
            );
            let before = rig
                .items(node, &format!("<max>2</max><before>{cursor}</before>"))
                .await;
            let expect = at.checked_sub(before.ids().len().max(1));
            assert_eq!(before.index(), expect.map(|it| it as u64), "{node} {at}");
        }
        for beyond in ["9", "10", "99999999999999999999"] {
            let page = rig.items(node, &format!("<index>{beyond}</index>")).await;
            assert!(page.ids().is_empty() && page.told("first").is_none());
            assert_eq!(page.told("count").as_deref(), Some("9"));
        }
        let last = rig.items(node, "<max>2</max><before/>").await;
        assert_eq!(last.index(), Some(7), "{node}");
    }
    // What a filter shows, and what stands by the publisher's dates, has no numbers.
    for node in ["blog?q=again", "blog?order=published"] {
        let page = rig.items(node, "<max>2</max><before/>").await;
        assert!(
            page.told("first").is_some() && page.index().is_none(),
            "{node}"
        );
        let page = rig.items(node, "<index>0</index>").await;
        assert_eq!(page.error(), "cancel feature-not-implemented", "{node}");
    }
}

#[tokio::test(start_paused = true)]
async fn items_are_asked_for_by_number_by_id_and_by_order() {
    // XMPP-29, XMPP-30, XMPP-31, XMPP-60.
    let mut rig = Rig::of(60).await;
    let pubsub = |rest: &str| format!("<pubsub xmlns='{}'>{rest}</pubsub>", ns::PUBSUB);
    let all = Answer::of(rig.get(&pubsub("<items node='blog'/>")).await);
    assert_eq!(
        (all.ids().len(), all.told("count").as_deref()),
        (50, Some("60"))
    );
    let newest = Answer::of(rig.get(&pubsub("<items node='blog' max_items='2'/>")).await);
    assert_eq!(newest.ids(), [59, 60].map(id));
    let set = format!("<set xmlns='{}'><max>1</max></set>", ns::RSM);
    let both = format!("{set}<items node='blog' max_items='2'/>");
    assert_eq!(Answer::of(rig.get(&pubsub(&both)).await).ids(), [id(1)]);
    let named = format!(
        "<items node='blog'><item id='{}'/><item id='x'/><item id='{}'/></items>",
        id(9),
        id(2)
    );
    let named = Answer::of(rig.get(&pubsub(&named)).await);
    assert_eq!(named.ids(), [id(9), id(2)]);
    let none = Answer::of(
        rig.get(&pubsub("<items node='blog'><item id='x'/></items>"))
            .await,
    );
    assert!(none.error().is_empty() && none.ids().is_empty());
    rig.change(vec![edit(1, "x")]).await;
    let order = format!(
        "<items node='blog'/><order xmlns='{}' by='creation'/>{set}",
        ns::ORDER_BY
    );
    assert_eq!(Answer::of(rig.get(&pubsub(&order)).await).ids(), [id(1)]);
    let order = order.replace("creation", "modification");
    assert_eq!(Answer::of(rig.get(&pubsub(&order)).await).ids(), [id(2)]);
    let newest = "<items node='blog' max_items='x'/>";
    assert_eq!(error(&rig.get(&pubsub(newest)).await), "modify bad-request");
}

#[tokio::test(start_paused = true)]
async fn an_item_is_one_atom_entry_and_a_tombstone_a_stripped_one() {
    // XMPP-32, XMPP-33, XMPP-54.
    const ATOM: &str = "http://www.w3.org/2005/Atom";
    let mut rig = Rig::of(2).await;
    rig.change(vec![delete(1)]).await;
    let page = rig.items("blog", "").await;
    for item in page.items().elements() {
        let entries: Vec<_> = item.elements().collect();
        assert_eq!(entries.len(), 1);
        for name in ["id", "title", "updated"] {
            assert!(entries[0].child(ATOM, name).is_some(), "{name}");
        }
        assert!(entries[0].is(ATOM, "entry"));
    }
    let gone = page.items().elements().last().unwrap();
    let entry = gone.elements().next().unwrap();
    assert_eq!(entry.child(ATOM, "title").unwrap().text(), "(deleted)");
    assert_eq!(
        page.told("count").as_deref(),
        Some("2"),
        "P7: tombstones count"
    );
    let readers = ReaderRig::unread().await;
    readers.change(vec![]).await;
    let mut empty = Rig::before_stream(config(), readers);
    empty.accept().await;
    let page = empty.items("blog", "").await;
    assert!(page.ids().is_empty() && page.told("first").is_none());
    assert_eq!(page.told("count").as_deref(), Some("0"));
}

#[tokio::test(start_paused = true)]
async fn whatever_a_feed_holds_is_well_formed_in_a_stanza() {
    // P6 of the brief: the server ends the stream of who sends it anything else. Our own server here
    // reads as strictly.
    let bad = [
        "\u{1}\u{b}\u{fffe}",
        "<!-- a comment --> &nbsp; &amp; ]]>",
        "<!DOCTYPE x [<!ENTITY y 'z'>]><x>&y;</x>",
        "<a:b xmlns:a='urn:x'><c/></a:b>",
        "</entry></item></items></pubsub></iq></stream:stream>",
        "<?xml version='1.0'?><?php echo 1 ?>",
    ];
    let mut rig = Rig::of(0).await;
    rig.subscribe("blog", ALICE).await;
    let post = |(n, text): (u32, &str)| {
        let Change::Put(mut put) = add_titled(n, text) else {
            unreachable!("a post is put");
        };
        Arc::make_mut(&mut put.entry).content = Some(Body {
            text: Text {
                value: text.into(),
                kind: TextKind::Html,
                ..Text::plain("")
            },
            ..Body::default()
        });
        Change::Put(put)
    };
    rig.change((1..).zip(bad).map(post).collect()).await;
    for _ in bad {
        assert!(rig.server.pushed().await.has_entry);
    }
    let page = rig.items("blog", "").await;
    assert_eq!(page.ids().len(), bad.len());
    let deep = add_titled(90, &"<b>".repeat(50_000));
    rig.change(vec![deep]).await;
    assert!(rig.server.pushed().await.has_entry);
    assert_eq!(rig.component.state().streams, 1);
}

#[tokio::test(start_paused = true)]
async fn a_filter_shows_its_items_and_counts_them() {
    let mut rig = Rig::of(0).await;
    let titles = (1..=6).map(|n| add_titled(n, if n % 2 == 0 { "even" } else { "odd" }));
    rig.change(titles.collect()).await;
    let page = rig.items("blog?q=even", "<max>2</max>").await;
    assert_eq!(page.ids(), [2, 4].map(id));
    assert_eq!(page.told("count").as_deref(), Some("3"));
    let last = rig.items("blog?q=even", "<max>1</max><before/>").await;
    assert_eq!(last.ids(), [id(6)]);
}

#[tokio::test(start_paused = true)]
async fn a_stanza_holds_what_servers_take_and_a_post_too_long_goes_without_its_text() {
    // Section 7 of the brief: the byte budget.
    let small = Config {
        stanza_bytes_max: 10_000,
        ..config()
    };
    let mut rig = Rig::with(small, 0).await;
    let long = |n| add_titled(n, &"long ".repeat(700));
    rig.change((1..=9).map(long).collect()).await;
    rig.change(vec![long_post(10), add(11)]).await;
    let (mut ids, mut set) = (Vec::new(), String::new());
    for _ in 0..20 {
        let page = rig.items("blog", &set).await;
        let bytes = page.iq.written(ns::COMPONENT).len();
        assert!(bytes < 12_000, "{bytes}");
        if page.ids().is_empty() {
            break;
        }
        ids.extend(page.ids());
        set = format!("<after>{}</after>", page.told("last").unwrap());
    }
    assert_eq!(ids, (1..=11).map(id).collect::<Vec<_>>());
    let back = rig.items("blog", "<before/>").await;
    assert_eq!(back.ids().last(), Some(&id(11)));
    let named = format!(
        "<pubsub xmlns='{}'><items node='blog'><item id='{}'/></items></pubsub>",
        ns::PUBSUB,
        id(10)
    );
    let named = rig.ask_as(ALICE, "get", &named).await;
    let text = String::from_utf8(named.written(ns::COMPONENT).to_vec()).unwrap();
    assert!(
        text.contains("The text of this post is left out here"),
        "{text}"
    );
}
