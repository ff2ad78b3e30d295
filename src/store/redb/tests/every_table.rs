//! Every table of a store, written by the code that writes it in life: it is verified, backed up,
//! restored and copied. And a row of every table, damaged: what is told of it is what happens.

use super::*;
use crate::{
    events::EventKind,
    feed::{
        filter::Filter,
        legacy_document::{LegacyDocument, LegacySyntax},
        observation_record::ObservationRecord,
        part::WantedPart,
        reconcile::WindowState,
        schedule::{Pause, PollState},
    },
    store::{
        AccountStore as _, Commit, EventStore as _, FoundFeeds, GROUP_BATCH_ITEMS, HostPause,
        IndexNowStore as _, OpmlStore as _, PushedFeeds as _, RegistryChange, RegistryStore as _,
        Store, Walks as _, WantedGroup,
        conformance::{
            accounts::{token, user},
            archives,
            events::event,
            index_now::index_now,
            opml_lists::opml_list,
            pushed_feeds::pushed_feed,
            rig::{key, put},
        },
        engine::{RowWriter as _, WriteTable},
        redb::{
            DamageEffect,
            checksummed::ChecksummedTable,
            report::report,
            restore::restore,
            store_copy::{copy_store, move_store},
            tables::{TableVisitor, table_names, visit_all},
            verify::verify,
        },
        rows::tables::{HOSTS, TABLES},
    },
};
use everfeed_adapters::{Digest, Metadata};
use redb::Key;

const SITE: &str = "http://example.org/";

/// The pause that an everfeed of today has written.
fn pause() -> HostPause {
    let (since, until) = (START.plus_secs(7), START.plus_secs(5000));
    ("https example.org 443".into(), Pause { since, until })
}

/// The pause of a whole host that an older everfeed has written: its end alone.
fn older_pause() -> HostPause {
    let until = START.plus_secs(6000);
    let since = until;
    ("older.example".into(), Pause { since, until })
}

fn with_witness(n: u32) -> Change {
    let Change::Put(mut put) = put(crate::feed::reconcile::PutKind::Added, n, "first") else {
        unreachable!()
    };
    put.witnesses = vec![key(100 + n / 2)];
    Change::Put(put)
}

/// Puts something into every table, by the calls of a store.
async fn fill(store: &dyn Store) {
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let group = store.register("planet", "group:planet").await.unwrap().no;
    let first = Commit {
        last: Some(WindowState::default()),
        poll: Some(PollState::default()),
        observed: Some(ObservationRecord::default()),
        ..commit(&feed, (1..=12).map(with_witness).collect())
    };
    let feed = store.commit(first).await.unwrap().feed;
    let Change::Delete(deleted) = delete(3) else {
        unreachable!()
    };
    let forgotten = Change::Delete(Delete {
        reason: Reason::Forgotten,
        ..deleted
    });
    let changes = vec![edit(1, "second"), delete(2), forgotten];
    let feed = store.commit(commit(&feed, changes)).await.unwrap().feed;
    let no = feed.no;
    let wanted = WantedGroup {
        metadata: Arc::new(Metadata::default()),
        members: vec![(no, "http://f.example/feeds/blog.atom".into())],
    };
    store.set_group(group, wanted).await.unwrap();
    let part = WantedPart {
        filter: Filter::of(&[("q", "first")]).unwrap(),
        audience: "bob".into(),
    };
    let part = store.set_parts(no, vec![part]).await.unwrap()[0].no;
    for filled in [group, part] {
        let advance = async || store.advance_group(filled, GROUP_BATCH_ITEMS).await;
        while !advance().await.unwrap().is_settled {}
    }
    for page in 0..=1 {
        let page = archives::page(page);
        store.stage(no, archives::walk(), Some(page)).await.unwrap();
    }
    store.subscribe(new(no, "http://a/")).await.unwrap();
    let alice = store.add_user(user("alice")).await.unwrap().unwrap();
    store.add_token(token(alice.no, 1)).await.unwrap().unwrap();
    let document = LegacyDocument {
        body: b"<rss/>".to_vec(),
        digest: Digest([7; 16]),
        content_type: None,
        last_modified: None,
        syntax: LegacySyntax::Rss,
        fetched_at: START,
        etag: None,
    };
    store.keep_document(no, Arc::new(document)).await.unwrap();
    let paths = vec!["/rss.xml".to_owned()];
    let found = FoundFeeds { paths };
    store.keep_found_feeds(SITE, found).await.unwrap();
    let entry = RegistryChange::Put {
        name: "other".into(),
        text: "url = \"http://other.example/\"".into(),
    };
    store.change_registry(vec![entry]).await.unwrap();
    let event = event(5, "h down", EventKind::Began);
    store.keep_events(vec![event]).await.unwrap();
    store
        .keep_pushed_feed(no, Some(pushed_feed()))
        .await
        .unwrap();
    store.keep_index_now(SITE, Some(index_now())).await.unwrap();
    store
        .keep_opml_list("planet", Some(opml_list()))
        .await
        .unwrap();
    store.save_polls(vec![], vec![pause()]).await.unwrap();
}

/// A store with something in every table, in every form that its rows have had.
async fn full_store() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = reopen(&path).unwrap();
    fill(&store).await;
    store.close().await.unwrap();
    drop(store);
    tamper(&path, |tx| {
        let (host, pause) = older_pause();
        let mut hosts = tx.edit(HOSTS).unwrap();
        hosts
            .insert(host.as_str(), &stamp_value(pause.until))
            .unwrap();
    });
    (folder, path)
}

/// Everything that a store answers beside its subscriptions.
async fn answers(store: &dyn Store) -> String {
    let mut told = Vec::new();
    for feed in store.feeds(None, 9).await.unwrap() {
        let no = feed.no;
        for order in Order::ALL {
            let page = store.page(all(no, order)).await.unwrap();
            told.push(format!("{:?}", page.items));
        }
        let known = store.known(no, (1..=12).map(key).collect()).await.unwrap();
        told.push(format!("{:?}", known.window));
        told.push(format!("{:?}", store.evidence(no, id(2)).await.unwrap()));
        told.push(format!("{:?}", store.staged(no).await.unwrap()));
        told.push(format!("{:?}", store.observations(no).await.unwrap()));
        told.push(format!("{:?}", store.document(no).await.unwrap()));
        told.push(format!("{:?}", store.group(no).await.unwrap()));
        told.push(format!("{:?}", store.holders(no, id(1)).await.unwrap()));
        told.push(format!("{:?} {:?}", feed.name, feed.items));
    }
    told.push(format!("{:?}", store.polls(None, 9).await.unwrap()));
    told.push(format!("{:?}", store.users(None, 9).await.unwrap()));
    told.push(format!("{:?}", store.tokens(None, 9).await.unwrap()));
    told.push(format!("{:?}", store.found_feeds(SITE).await.unwrap()));
    told.push(format!("{:?}", store.registry(None, 9).await.unwrap()));
    told.push(format!("{:?}", store.events(None, 9).await.unwrap()));
    told.push(format!("{:?}", store.pushed_feeds(None, 9).await.unwrap()));
    told.push(format!("{:?}", store.index_now(SITE).await.unwrap()));
    told.push(format!("{:?}", store.opml_list("planet").await.unwrap()));
    assert_eq!(
        store.host_pauses(None, 9).await.unwrap(),
        [pause(), older_pause()]
    );
    told.join("\n")
}

async fn subscriptions(store: &dyn Store) -> String {
    format!("{:?}", store.subscriptions(None, None, 9).await.unwrap())
}

/// Checks that a file is sound, and answers as the one that was filled.
async fn check_same(path: &Path, expected: &str, subscribers: &str, how: &str) {
    let verified = verify(path).unwrap();
    assert!(verified.is_sound(), "{how}: {verified}");
    let store = reopen(path).unwrap();
    assert_eq!(answers(&store).await, expected, "{how}");
    assert_eq!(subscriptions(&store).await, subscribers, "{how}");
    store.close().await.unwrap();
    drop(store);
    let verified = verify(path).unwrap();
    assert!(
        verified.is_sound(),
        "{how}, after it was served: {verified}"
    );
}

#[tokio::test]
async fn every_table_is_filled_verified_and_counted_by_its_name() {
    let (_folder, path) = full_store().await;
    let measured = report(&path).unwrap();
    for name in table_names() {
        let table = measured.tables.iter().find(|table| table.name == name);
        let rows = table.map(|table| table.rows);
        assert!(rows > Some(0), "nothing here writes to the table `{name}`");
    }
    let verified = verify(&path).unwrap();
    assert!(verified.is_sound(), "{verified}");
    let rows: u64 = measured.tables.iter().map(|table| table.rows).sum();
    let values: u64 = verified.kinds.iter().map(|kind| kind.values).sum();
    assert_eq!(values, rows, "a table is not verified");
    assert_eq!(verified.kinds.len(), table_names().len());
}

#[tokio::test]
async fn every_table_in_every_form_goes_through_backup_restore_and_copy() {
    let (folder, path) = full_store().await;
    let at = |name: &str| folder.path().join(name);
    let store = reopen(&path).unwrap();
    let (expected, subscribers) = (answers(&store).await, subscriptions(&store).await);
    let backup = at("backup.redb");
    assert_eq!(store.back_up(&backup).await.unwrap().damaged, 0);
    store.close().await.unwrap();
    drop(store);
    let verified = verify(&backup).unwrap();
    assert!(verified.is_sound(), "{verified}");
    restore(&backup, &at("restored.redb"), START).unwrap();
    copy_store(&path, &at("beside.redb"), START).unwrap();
    check_same(&at("beside.redb"), &expected, "[]", "copied with --keep").await;
    move_store(&path, &at("moved.redb"), START).unwrap();
    check_same(&at("moved.redb"), &expected, &subscribers, "copied").await;
    let verified = verify(&at("restored.redb")).unwrap();
    assert!(verified.is_sound(), "{verified}");
    let store = reopen(&at("restored.redb")).unwrap();
    assert_eq!(answers(&store).await, expected, "restored");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn every_table_in_every_form_goes_to_a_database_and_back() {
    use crate::store::{
        conformance::postgres_server::{self, execute, fresh_database, on_a_thread},
        copy_from_database, copy_to_database,
    };

    // Of moments, or of an authority for certificates: no file has them.
    let all_filled = "DO $$ DECLARE t text; n bigint; BEGIN \
         FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() \
             AND tablename NOT IN ('nodes', 'questions', 'sealed') LOOP \
             EXECUTE format('SELECT count(*) FROM %I', t) INTO n; \
             IF n = 0 THEN RAISE EXCEPTION 'the table % is empty', t; END IF; \
         END LOOP; END $$";
    let (folder, path) = full_store().await;
    let store = reopen(&path).unwrap();
    let (expected, subscribers) = (answers(&store).await, subscriptions(&store).await);
    store.close().await.unwrap();
    drop(store);
    for keep in [true, false] {
        let how = if keep { "copied with --keep" } else { "copied" };
        let subscribers = if keep { "[]" } else { &subscribers };
        let database = fresh_database();
        let there = || copy_to_database(&path, &database, keep, clock());
        on_a_thread(there).unwrap();
        if !keep {
            execute(&database, all_filled);
        }
        let store = postgres_server::open(&database, clock()).unwrap();
        assert_eq!(answers(&store).await, expected, "{how} to a database");
        assert_eq!(subscriptions(&store).await, subscribers);
        store.close().await.unwrap();
        drop(store);
        let back = folder.path().join(format!("back-{keep}.redb"));
        let back_again = || copy_from_database(&database, &back, keep, clock());
        on_a_thread(back_again).unwrap();
        check_same(&back, &expected, subscribers, how).await;
    }
}

/// Tables with columns of their own become tables of rows, and nothing that they held changes.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_database_of_before_there_were_rows_answers_the_same() {
    use crate::store::conformance::postgres_server::{self, execute, fresh_database};

    let (_folder, path) = full_store().await;
    let store = reopen(&path).unwrap();
    // There were none.
    for (feed, _) in store.pushed_feeds(None, 9).await.unwrap() {
        store.keep_pushed_feed(feed, None).await.unwrap();
    }
    store.keep_index_now(SITE, None).await.unwrap();
    store.keep_opml_list("planet", None).await.unwrap();
    let (expected, subscribers) = (answers(&store).await, subscriptions(&store).await);
    let database = fresh_database();
    execute(&database, include_str!("../../postgres/tests/schema_4.sql"));
    for _ in 0..2 {
        let store = postgres_server::open(&database, clock()).unwrap();
        // There were none before.
        let event = event(5, "h down", EventKind::Began);
        store.keep_events(vec![event]).await.unwrap();
        assert_eq!(answers(&store).await, expected);
        assert_eq!(subscriptions(&store).await, subscribers);
        store.close().await.unwrap();
    }
}

/// A way in which a row is damaged.
#[derive(Clone, Copy, Debug)]
enum Spoilt {
    /// Its bytes have changed since they were written.
    Flipped,
    /// It is of a length that no form has.
    OfAnotherLength,
    /// It begins with the number of a version that nobody knows.
    OfAnUnknownVersion,
}

/// Damages the first row of the table of a name.
struct Spoiling<'t> {
    tx: &'t redb::WriteTransaction,
    table: &'t str,
    how: Spoilt,
}

impl Spoiling<'_> {
    /// The table, in which rows get the checksums that they should have.
    fn rows(&self) -> Result<Box<dyn WriteTable + '_>, StoreError> {
        let table = TABLES.iter().find(|table| table.name == self.table);
        self.tx.open_to_write(*table.expect("a table of ours"))
    }
}

impl TableVisitor for Spoiling<'_> {
    fn visit<K: Key + 'static>(&mut self, table: ChecksummedTable<K>) -> Result<(), StoreError> {
        if table.name() != self.table {
            return Ok(());
        }
        let (key, mut stored) = {
            let rows = self.tx.open_table(table.definition())?;
            let mut all = rows.range::<K::SelfType<'_>>(..)?;
            let (key, stored) = all.next().expect("it is filled")?;
            let key = K::as_bytes(&key.value()).as_ref().to_vec();
            (key, stored.value().to_vec())
        };
        match self.how {
            Spoilt::Flipped => {
                *stored.last_mut().expect("it has a checksum") ^= 1;
                let mut rows = self.tx.open_table(table.definition())?;
                rows.insert(K::from_bytes(&key), stored.as_slice())?;
            }
            Spoilt::OfAnotherLength => {
                self.rows()?.put(&key, &[77; 3])?;
            }
            Spoilt::OfAnUnknownVersion => {
                let value = [&[250], &stored[..]].concat();
                self.rows()?.put(&key, &value)?;
            }
        }
        Ok(())
    }
}

/// Reads what a start of the process reads.
async fn starts(path: &Path) -> Result<Redb, StoreError> {
    let store = reopen(path)?;
    store.feed_names(None, 99).await?;
    store.users(None, 99).await?;
    store.tokens(None, 99).await?;
    // They pass over what is damaged.
    store.feeds(None, 99).await.unwrap();
    store.polls(None, 99).await.unwrap();
    store.walks(None, 99).await.unwrap();
    store.subscriptions(None, None, 99).await.unwrap();
    store.host_pauses(None, 99).await.unwrap();
    store.registry(None, 99).await.unwrap();
    store.events(None, 99).await.unwrap();
    store.pushed_feeds(None, 99).await.unwrap();
    store.index_now(SITE).await.unwrap();
    store.opml_list("planet").await.unwrap();
    Ok(store)
}

#[tokio::test]
async fn a_damaged_row_of_every_table_is_found_and_what_is_told_of_it_happens() {
    let (folder, path) = full_store().await;
    for table in table_names() {
        for how in [
            Spoilt::Flipped,
            Spoilt::OfAnotherLength,
            Spoilt::OfAnUnknownVersion,
        ] {
            let spoilt = folder.path().join(format!("{table}-{how:?}.redb"));
            std::fs::copy(&path, &spoilt).unwrap();
            tamper(&spoilt, |tx| {
                visit_all(&mut Spoiling { tx, table, how }).unwrap();
            });
            let verified = verify(&spoilt).unwrap();
            let damaged: Vec<_> = verified
                .kinds
                .iter()
                .filter(|kind| kind.damaged > 0)
                .collect();
            assert_eq!(damaged.len(), 1, "{table}, {how:?}: {verified}");
            let started = starts(&spoilt).await.map(drop);
            assert_eq!(
                verified.refused_start.is_some(),
                started.is_err(),
                "{table}, {how:?}: {:?}, {:?}",
                verified.refused_start,
                started.as_ref().err()
            );
            if verified.refused_start.is_some() {
                assert_ne!(damaged[0].effect, DamageEffect::PassedOver, "{table}");
                continue;
            }
            let told = verified.to_string();
            assert!(told.contains(": everfeed "), "{told}");
            let copied = copy_store(&spoilt, &folder.path().join("none.redb"), START);
            let refused = copied.unwrap_err().to_string();
            assert!(
                refused.contains("everfeed starts with the file"),
                "{refused}"
            );
        }
    }
}

#[tokio::test]
async fn a_damaged_pause_harms_no_other_and_goes_with_the_next_pause() {
    let (_folder, path) = full_store().await;
    tamper(&path, |tx| {
        let mut hosts = tx.edit(HOSTS).unwrap();
        hosts.insert("a.example", &[1; 5]).unwrap();
        hosts.insert("b.example", &[1; 24]).unwrap();
    });
    assert_eq!(verify(&path).unwrap().faults_total, 2);
    let store = reopen(&path).unwrap();
    let sound = [pause(), older_pause()];
    // Page by page, as everybody reads them.
    assert_eq!(store.host_pauses(None, 1).await.unwrap(), sound[..1]);
    let after = Some(sound[0].0.clone());
    assert_eq!(store.host_pauses(after, 1).await.unwrap(), sound[1..]);
    store.save_polls(vec![], vec![pause()]).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let verified = verify(&path).unwrap();
    assert!(verified.is_sound(), "{verified}");
}
