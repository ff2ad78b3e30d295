//! Lists of feeds.

use super::rig::{Rig, START};
use crate::feed::{
    opml_list::{AbsentFeed, OpmlDocument, OpmlFault, OpmlList},
    schedule::{ValidatorPair, Whose},
};

on_every_store![a_row_of_a_list_is_kept_replaced_and_removed];

/// A row in which every field says something.
pub(in crate::store) fn opml_list() -> OpmlList {
    OpmlList {
        settings: "5f".to_owned(),
        documents: vec![OpmlDocument {
            url: "http://list.example/feeds.opml".to_owned(),
            validators: Some(ValidatorPair {
                etag: Some("\"1\"".to_owned()),
                last_modified: Some("Mon, 01 Jun 2026 00:00:00 GMT".to_owned()),
                url: "http://list.example/feeds.opml".to_owned(),
            }),
        }],
        read_at: Some(START.plus_secs(1)),
        good_at: Some(START.plus_secs(2)),
        whole_at: Some(START.plus_secs(3)),
        not_before: Some(START.plus_secs(4)),
        listed: 5,
        absent: vec![AbsentFeed {
            name: "ann".to_owned(),
            since: START.plus_secs(6),
            reads: 7,
        }],
        paused: vec!["bob".to_owned()],
        paused_at: Some(START.plus_secs(8)),
        failures: 9,
        fault: Some(OpmlFault {
            whose: Whose::Network,
            since: START.plus_secs(10),
            why: "no answer".to_owned(),
        }),
        skipped_total: 11,
        skipped: vec!["http://x/: its host is on this machine".to_owned()],
    }
}

async fn a_row_of_a_list_is_kept_replaced_and_removed(rig: Rig) {
    assert_eq!(rig.opml_list("one").await.unwrap(), None);
    rig.keep_opml_list("one", Some(opml_list())).await.unwrap();
    let next = OpmlList::default();
    rig.keep_opml_list("two", Some(next.clone())).await.unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.opml_list("one").await.unwrap(), Some(opml_list()));
    rig.keep_opml_list("one", Some(next.clone())).await.unwrap();
    assert_eq!(rig.opml_list("one").await.unwrap(), Some(next.clone()));
    rig.keep_opml_list("one", None).await.unwrap();
    rig.keep_opml_list("one", None).await.unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.opml_list("one").await.unwrap(), None);
    assert_eq!(rig.opml_list("two").await.unwrap(), Some(next));
}
