//! A file of every schema that ever was is kept and must be read for ever; how new files look is
//! tested elsewhere.

use super::content::{START, clock, dump, fill};
use everfeed::store::{
    memory::Memory,
    redb::{Config, Redb, copy_store, move_store, restore, verify},
    traits::*,
};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/store-v1.redb.gz")
}

/// The golden file, unpacked in a folder.
fn unpacked(folder: &Path) -> PathBuf {
    let path = folder.join("store-v1.redb");
    io::copy(
        &mut GzDecoder::new(File::open(golden()).unwrap()),
        &mut File::create(&path).unwrap(),
    )
    .unwrap();
    path
}

/// Checks that a file is sound, before and after it was served, and answers as what was written.
async fn check_sound(path: &Path, how: &str) {
    let model = Memory::new(clock());
    fill(&model).await;
    let expected = model.host_pauses(None, 9).await.unwrap();
    assert!(!expected.is_empty());
    let verified = verify(path).unwrap();
    assert!(verified.is_sound(), "{how}: {verified}");
    let store = Redb::open(path, &Config::default(), clock()).unwrap();
    assert_eq!(store.host_pauses(None, 9).await.unwrap(), expected, "{how}");
    store.close().await.unwrap();
    drop(store);
    let verified = verify(path).unwrap();
    assert!(
        verified.is_sound(),
        "{how}, after it was served: {verified}"
    );
}

#[tokio::test]
async fn a_file_of_schema_1_is_verified_backed_up_restored_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let path = unpacked(folder.path());
    restore(&path, &at("restored.redb"), START).unwrap();
    check_sound(&at("restored.redb"), "restored as it is").await;
    copy_store(&path, &at("beside.redb"), START).unwrap();
    check_sound(&at("beside.redb"), "copied with --keep").await;
    check_sound(&path, "as it is").await;
    let store = Redb::open(&path, &Config::default(), clock()).unwrap();
    let report = store.back_up(&at("backup.redb")).await.unwrap();
    assert_eq!(report.damaged, 0);
    store.close().await.unwrap();
    drop(store);
    restore(&at("backup.redb"), &at("again.redb"), START).unwrap();
    check_sound(&at("again.redb"), "restored from a backup").await;
    move_store(&path, &at("moved.redb"), START).unwrap();
    check_sound(&at("moved.redb"), "copied").await;
}

#[tokio::test]
async fn a_file_of_schema_1_reads_as_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = unpacked(folder.path());
    let store = Redb::open(&path, &Config::default(), clock()).unwrap();
    let model = Memory::new(clock());
    fill(&model).await;
    assert_eq!(dump(&store).await, dump(&model).await);
    // And it is still a store, not only a document.
    store
        .end_subscription(store.subscriptions(None, None, 9).await.unwrap()[0].0.no)
        .await
        .unwrap();
    store.close().await.unwrap();
}

/// Makes the golden file. Once a schema is released its file is never made again: a change that
/// breaks the test above then needs a new schema, a migration, and a file beside this one.
#[tokio::test]
#[ignore = "writes tests/golden; by hand, and only while schema 1 is unreleased"]
async fn make_the_golden_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = Redb::open(&path, &Config::default(), clock()).unwrap();
    fill(&store).await;
    store.close().await.unwrap();
    let mut file = GzEncoder::new(File::create(golden()).unwrap(), Compression::best());
    file.write_all(&std::fs::read(&path).unwrap()).unwrap();
    file.finish().unwrap();
}
