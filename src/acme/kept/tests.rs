//! The same things kept in files, and in rows of a store that is a table in memory.

use super::*;
use crate::{
    acme::HeldCertificate,
    locks::lock,
    store::{Duty, Nodes, SealKey, StoreError, nodes::NodeRequest},
};
use std::{
    collections::HashMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{Arc, Mutex},
};

/// Sealed rows as a store has them, and how often it still refuses to write a certificate.
#[derive(Clone, Default)]
pub(in crate::acme) struct Table {
    pub(in crate::acme) rows: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    pub(in crate::acme) refusals: Arc<Mutex<usize>>,
}

impl Table {
    /// The place of a node with a key.
    pub(in crate::acme) fn kept(&self, key: &str) -> AcmeKept {
        let (nodes, mut engine) = Nodes::pair(Duty::Working);
        let table = self.clone();
        tokio::spawn(async move {
            while let Some(request) = engine.requests.recv().await {
                table.answer(request);
            }
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), key.repeat(32)).unwrap();
        let rows = nodes.sealed_rows(SealKey::read(file.path()).unwrap());
        AcmeKept::Rows(AcmeRows::new(
            rows,
            &Url::parse("https://ca.example/dir").unwrap(),
        ))
    }

    fn answer(&self, request: NodeRequest) {
        match request {
            NodeRequest::ReadSealed(name, answer) => {
                answer
                    .send(Ok(lock(&self.rows).get(&name).cloned()))
                    .unwrap();
            }
            NodeRequest::WriteSealed(name, value, answer) => {
                let mut refusals = lock(&self.refusals);
                if *refusals > 0 && name.ends_with(CERTIFICATE) {
                    *refusals -= 1;
                    answer
                        .send(Err(StoreError::Away("it is away".into())))
                        .unwrap();
                    return;
                }
                let mut rows = lock(&self.rows);
                match value {
                    Some(value) => rows.insert(name, value),
                    None => rows.remove(&name),
                };
                answer.send(Ok(())).unwrap();
            }
            request => panic!("{request:?}"),
        }
    }
}

#[tokio::test]
async fn files_are_for_their_owner_alone_and_an_authority_has_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let lets_encrypt = Url::parse("https://acme-v02.api.letsencrypt.org/directory").unwrap();
    let folder = AcmeFolder::open(&place.path().join("acme"), &lets_encrypt).unwrap();
    let kept = AcmeKept::Folder(folder);
    assert_eq!(
        (
            kept.certificate().await.unwrap(),
            kept.orders().await.unwrap()
        ),
        (None, vec![])
    );
    assert_eq!(kept.account::<String>().await.unwrap(), None);
    kept.keep_certificate("one").await.unwrap();
    kept.keep_certificate("two").await.unwrap();
    kept.keep_orders(&[1, 2]).await.unwrap();
    kept.keep_account(&"me").await.unwrap();
    assert_eq!(kept.way().await, None);
    kept.keep_way(ChallengeWay::Http).await.unwrap();
    assert_eq!(kept.way().await, Some(ChallengeWay::Http));
    let certificate = kept.certificate().await.unwrap();
    assert_eq!(certificate.as_deref(), Some("two"));
    assert_eq!(kept.orders().await.unwrap(), [1, 2]);
    let account = kept.account::<String>().await.unwrap();
    assert_eq!(account.as_deref(), Some("me"));
    let path = place
        .path()
        .join("acme/acme-v02.api.letsencrypt.org-directory");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for name in [CERTIFICATE, ACCOUNT, ORDERS, WAY] {
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
    assert_eq!(
        fs::read_dir(&path).unwrap().count(),
        4,
        "nothing else is left"
    );
    fs::write(path.join(ORDERS), "?").unwrap();
    assert!(kept.orders().await.unwrap().is_empty());
    fs::write(path.join(WAY), b"\xff").unwrap();
    assert_eq!(kept.way().await, None);
    kept.forget_account().await.unwrap();
    assert_eq!(kept.account::<String>().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn nodes_keep_the_same_in_rows_that_are_sealed() {
    let table = Table::default();
    let (one, other) = (table.kept("0f"), table.kept("0f"));
    other.check().await.unwrap();
    one.keep_orders(&[1, 2]).await.unwrap();
    one.keep_account(&"me").await.unwrap();
    one.keep_way(ChallengeWay::Http).await.unwrap();
    one.keep_certificate("PRIVATE KEY").await.unwrap();
    assert_eq!(other.orders().await.unwrap(), [1, 2]);
    assert_eq!(other.way().await, Some(ChallengeWay::Http));
    let account = other.account::<String>().await.unwrap();
    assert_eq!(account.as_deref(), Some("me"));
    let certificate = other.certificate().await.unwrap();
    assert_eq!(certificate.as_deref(), Some("PRIVATE KEY"));
    for (name, row) in &*lock(&table.rows) {
        assert!(name.starts_with("acme/ca.example-dir/"), "{name}");
        assert!(!row.windows(7).any(|part| part == b"PRIVATE"), "{name}");
    }
    one.forget_account().await.unwrap();
    assert_eq!(other.account::<String>().await.unwrap(), None);
    // A node with another key is refused before it does anything.
    let refused = table.kept("f0").check().await.unwrap_err().to_string();
    assert!(refused.contains("sealed with another key"), "{refused}");
    // Nobody exchanges rows.
    let mut rows = lock(&table.rows).clone();
    let swapped = rows.remove("acme/ca.example-dir/orders.json").unwrap();
    rows.insert("acme/ca.example-dir/certificate.pem".into(), swapped);
    *lock(&table.rows) = rows;
    let damaged = other.certificate().await.unwrap_err().to_string();
    assert!(damaged.contains("stood in another row"), "{damaged}");
}

#[tokio::test(start_paused = true)]
async fn a_challenge_is_answered_by_the_other_nodes_before_the_authority_is_told() {
    let table = Table::default();
    let (worker, follower) = (table.kept("0f"), table.kept("0f"));
    let held = HeldCertificate::default();
    let open = vec![
        OpenChallenge::Document {
            token: "t".into(),
            document: "t.x".into(),
        },
        OpenChallenge::Certificate {
            name: "h.example".into(),
            digest: [7; 32],
        },
    ];
    let opening = tokio::spawn({
        let open = open.clone();
        async move { worker.open_challenges(&open).await }
    });
    sleep(TAKEN_UP_WITHIN / 2).await;
    assert!(!opening.is_finished(), "they have time");
    assert_eq!(follower.challenges().await.unwrap(), open);
    held.answer(&open).unwrap();
    let path = "/.well-known/acme-challenge/t";
    assert_eq!(held.challenge_document(path).as_deref(), Some("t.x"));
    opening.await.unwrap().unwrap();
    // Whoever works next closes what was left open.
    follower.close_challenges().await.unwrap();
    assert_eq!(follower.challenges().await.unwrap(), []);
    assert!(lock(&table.rows).is_empty());
}
