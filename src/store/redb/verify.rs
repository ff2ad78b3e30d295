//! Reads a whole file and tells what in it is damaged: its pages, the values in them, and rows that
//! contradict each other. Nothing is mended and nothing is written.

use super::{
    accounts::{LAST_TOKEN_KEY, LAST_USER_KEY},
    file::{BARE_SCHEMA_KEY, check_schema, refusal},
    guarded::guarded,
    overlay::Overlay,
    rows::LAST_FEED_KEY,
    sealed::{Coded, Sealed, SealedTable, unseal},
    subscriptions::LAST_SUBSCRIPTION_KEY,
    tables::{
        CREATED, DOCUMENTS, EVIDENCE, FEED_NAMES, FEED_SUBSCRIPTIONS, FEEDS, FOUND_FEEDS,
        GROUP_POSTS, GROUPS, HOLDINGS, HOSTS, IDS, ITEMS, KEYS, MEMBERSHIPS, META, OBSERVATIONS,
        POLLS, POSITIONS, PUBLISHED, SEGMENTS, STAGING, SUBSCRIPTION_KEYS, SUBSCRIPTIONS, StampKey,
        TERMS, TOKENS, TableSource as _, USERS, WALKS, WINDOWS, WITNESSES, feed_key, feed_of,
        holding_key, id_key, item_id_of, listed_of, snapshot_table, stamp_key, stamp_of,
        subscription_key, subscription_of, term_of,
    },
    word_index::{Segment, postings},
    writer::CLOCK_KEY,
};
use crate::{
    auth::{AccessToken, User},
    feed::{
        archive::{ArchiveWalk, StagedPage},
        group::{GroupPost, GroupRecord},
        item::ItemId,
        legacy_document::LegacyDocument,
        observation_record::ObservationRecord,
        reconcile::{Evidence, WindowState},
        record::{FeedNo, FeedRecord},
        schedule::PollState,
    },
    store::{
        FoundFeeds, StoreError, Subscription,
        clock_guard::ClockGuard,
        stored::{
            StoredKind, damaged, decode,
            item::{decode_item, item_header},
        },
        subscriptions::Progress,
    },
};
use redb::{
    Builder, Database, Key, ReadOnlyTable, ReadTransaction, ReadableDatabase as _,
    ReadableTableMetadata as _, backends::FileBackend,
};
use std::{collections::HashMap, fmt, fs::OpenOptions, path::Path};

/// Faults that are described; the others are counted.
const FAULTS_SHOWN_MAX: usize = 20;

/// Memory for pages of the file while it is read, in bytes.
const CACHE_BYTES: usize = 32 << 20;

/// The result of reading a whole file.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Values by kind, in the order of the tables.
    pub kinds: Vec<VerifiedKind>,
    /// Faults, at most twenty of them.
    pub faults: Vec<String>,
    /// Number of all faults.
    pub faults_total: u64,
}

/// The values of one kind.
#[derive(Debug)]
pub struct VerifiedKind {
    /// Its name.
    pub name: &'static str,
    /// Values that were found.
    pub values: u64,
    /// Values of those that are damaged.
    pub damaged: u64,
}

impl VerifyReport {
    /// True when everything could be read and nothing contradicts anything else.
    pub fn is_sound(&self) -> bool {
        self.faults_total == 0
    }

    fn fault(&mut self, text: impl fmt::Display) {
        self.faults_total += 1;
        if self.faults.len() < FAULTS_SHOWN_MAX {
            self.faults.push(text.to_string());
        }
    }
}

/// Reads the whole file at `path`, which no process may have open. An error means that it could not
/// be looked at; what is damaged stands in the report. Blocks.
pub fn verify(path: &Path) -> Result<VerifyReport, StoreError> {
    let mut report = VerifyReport::default();
    if pages(path, &mut report)? {
        values(path, &mut report)?;
    }
    Ok(report)
}

fn open(path: &Path) -> Result<Database, StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed(format!("{}: {error}", path.display()));
    // Open for writing, because only then it can be locked against a process that writes.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(failed)?;
    let overlay = Overlay::new(FileBackend::new(file).map_err(|error| refusal(path, error))?)
        .map_err(failed)?;
    if overlay_is_empty(&overlay) {
        return Err(StoreError::Schema(format!("{} is empty", path.display())));
    }
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
        .create_with_backend(overlay)
        .map_err(|error| refusal(path, error))
}

fn overlay_is_empty(overlay: &Overlay) -> bool {
    redb::StorageBackend::len(overlay).is_ok_and(|len| len == 0)
}

/// Lets redb hold every page against its checksum. True when the values can be looked at.
fn pages(path: &Path, report: &mut VerifyReport) -> Result<bool, StoreError> {
    let opened = match guarded(|| open(path)) {
        Ok(Err(error @ (StoreError::Failed(_) | StoreError::Schema(_)))) => return Err(error),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(database)) => Ok(database),
        Err(panic) => Err(panic),
    };
    let mut database = match opened {
        Ok(database) => database,
        Err(why) => {
            report.fault(format!("the file cannot be opened: {why}"));
            return Ok(false);
        }
    };
    match guarded(|| database.check_integrity()) {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => report.fault(
            "pages of the file do not agree with their checksums, or free pages are not known as such",
        ),
        Ok(Err(error)) => report.fault(format!("the pages of the file: {error}")),
        Err(panic) => report.fault(format!("the pages of the file: {panic}")),
    }
    let _ = guarded(|| drop(database));
    Ok(true)
}

/// Reads every value, and holds against each other the rows that lead to each other.
fn values(path: &Path, report: &mut VerifyReport) -> Result<(), StoreError> {
    let database = match guarded(|| open(path)) {
        Ok(opened) => opened?,
        Err(panic) => {
            report.fault(panic);
            return Ok(());
        }
    };
    // As when it is served: in memory, a store of an earlier everfeed gets the tables that it has
    // not.
    match guarded(|| check_schema(path, &database)) {
        Ok(Ok(())) => {}
        // Of another schema, and sound as far as that can be told.
        Ok(Err(error @ StoreError::Schema(_))) if report.is_sound() => return Err(error),
        Ok(Err(error)) => report.fault(bare(&error)),
        Err(panic) => report.fault(panic),
    }
    let read = guarded(|| {
        let snapshot = database.begin_read()?;
        kinds(&snapshot, report);
        pointers(&snapshot, report)
    });
    match read {
        Ok(Ok(())) => {}
        Ok(Err(error)) => report.fault(error),
        Err(panic) => report.fault(panic),
    }
    let _ = guarded(|| drop(database));
    Ok(())
}

fn kind<T: StoredKind>(value: &[u8]) -> Result<(), StoreError> {
    decode::<T>(T::NAME, value).map(drop)
}

/// A value of so many bytes, or of a multiple of them.
fn wide(value: &[u8], bytes: usize, is_list: bool) -> Result<(), StoreError> {
    let fits = if is_list {
        value.len().is_multiple_of(bytes)
    } else {
        value.len() == bytes
    };
    if fits {
        Ok(())
    } else {
        Err(damaged("a row", &format!("holds {} bytes", value.len())))
    }
}

fn kinds(snapshot: &ReadTransaction, report: &mut VerifyReport) {
    let mut table = Tables { snapshot, report };
    table.read(META, "settings of the store", |key, value| match key {
        key if key == CLOCK_KEY.as_bytes() => kind::<ClockGuard>(value),
        key if key == LAST_FEED_KEY.as_bytes() => kind::<u32>(value),
        key if [LAST_SUBSCRIPTION_KEY, LAST_USER_KEY, LAST_TOKEN_KEY]
            .iter()
            .any(|last| key == last.as_bytes()) =>
        {
            kind::<u64>(value)
        }
        _ => Ok(()),
    });
    table.read(FEED_NAMES, "names of feeds", |_, value| {
        wide(value, 4, false)
    });
    table.read(FEEDS, "feeds", |_, value| kind::<FeedRecord>(value));
    table.read(ITEMS, "items", |key, value| {
        decode_item(stamp_of(key), value).map(drop)
    });
    table.read(IDS, "ids of items", |_, value| wide(value, 8, false));
    table.read(CREATED, "times of creation", |_, value| {
        wide(value, 8, false)
    });
    table.read(PUBLISHED, "dates of publication", |_, value| {
        wide(value, 8, false)
    });
    table.read(SEGMENTS, "segments of the word index", |_, value| {
        Segment::of_row(value).map(drop)
    });
    table.read(TERMS, "words of items", |key, value| match key.try_into() {
        Ok(key) => postings::check(term_of(key), value),
        Err(_) => wide(key, 12, false),
    });
    table.read(KEYS, "keys of entries", |_, value| wide(value, 10, false));
    table.read(WITNESSES, "witnesses of entries", |_, value| {
        wide(value, 10, true)
    });
    table.read(WINDOWS, "windows", |_, value| kind::<WindowState>(value));
    table.read(POLLS, "poll states", |_, value| kind::<PollState>(value));
    table.read(EVIDENCE, "evidence of tombstones", |_, value| {
        kind::<Evidence>(value)
    });
    table.read(WALKS, "archive walks", |_, value| {
        kind::<ArchiveWalk>(value)
    });
    table.read(STAGING, "staged pages", |_, value| {
        kind::<StagedPage>(value)
    });
    table.read(OBSERVATIONS, "observations", |_, value| {
        kind::<ObservationRecord>(value)
    });
    table.read(SUBSCRIPTIONS, "subscriptions", |_, value| {
        kind::<Subscription>(value)
    });
    table.read(POSITIONS, "positions of subscriptions", |_, value| {
        kind::<Progress>(value)
    });
    table.read(SUBSCRIPTION_KEYS, "topics of subscriptions", |_, value| {
        wide(value, 8, false)
    });
    table.read(FEED_SUBSCRIPTIONS, "subscriptions by feed", |_, value| {
        wide(value, 0, false)
    });
    table.read(USERS, "users", |_, value| kind::<User>(value));
    table.read(TOKENS, "tokens", |_, value| kind::<AccessToken>(value));
    table.read(DOCUMENTS, "documents", |_, value| {
        kind::<LegacyDocument>(value)
    });
    table.read(FOUND_FEEDS, "feeds of sites", |_, value| {
        kind::<FoundFeeds>(value)
    });
    table.read(GROUPS, "groups", |_, value| kind::<GroupRecord>(value));
    table.read(GROUP_POSTS, "posts of groups", |_, value| {
        kind::<GroupPost>(value)
    });
    table.read(HOLDINGS, "items in groups", |_, value| {
        wide(value, 10, false)
    });
    table.read(MEMBERSHIPS, "members of groups", |_, value| {
        wide(value, 0, false)
    });
    table.read(HOSTS, "pauses of hosts", |_, value| {
        // Those of an earlier everfeed have no beginning.
        wide(value, 8, false).or_else(|_| wide(value, 16, false))
    });
}

/// The tables of a snapshot, read one by one into a report.
struct Tables<'a> {
    snapshot: &'a ReadTransaction,
    report: &'a mut VerifyReport,
}

impl Tables<'_> {
    fn read<K: Key + 'static>(
        &mut self,
        table: SealedTable<K>,
        name: &'static str,
        check: impl Fn(&[u8], &[u8]) -> Result<(), StoreError>,
    ) {
        let mut found = VerifiedKind {
            name,
            values: 0,
            damaged: 0,
        };
        let walked = guarded(|| -> Result<(), StoreError> {
            let opened = self.snapshot.open_table(table.definition())?;
            for row in opened.range::<K::SelfType<'_>>(..)? {
                let (key, stored) = row?;
                found.values += 1;
                let key_value = key.value();
                let key = K::as_bytes(&key_value);
                let is_bare =
                    table.name() == META.name() && key.as_ref() == BARE_SCHEMA_KEY.as_bytes();
                let checked = if is_bare {
                    wide(stored.value(), 4, false)
                } else {
                    unseal(table.name(), key.as_ref(), stored.value())
                        .and_then(|value| check(key.as_ref(), value))
                };
                if let Err(error) = checked {
                    found.damaged += 1;
                    self.report.fault(format!("{name}: {}", bare(&error)));
                }
            }
            Ok(())
        });
        let broken = match walked {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(bare(&error)),
            Err(panic) => Some(panic),
        };
        if let Some(why) = broken {
            self.report.fault(format!(
                "{name}: they cannot be read beyond number {}: {why}",
                found.values
            ));
        }
        self.report.kinds.push(found);
    }
}

/// The description of damage, without what it says of the store as a whole.
fn bare(error: &StoreError) -> String {
    match error {
        StoreError::Damaged(what) => what.clone(),
        error => error.to_string(),
    }
}

/// Rows that lead to others, and the counts of feeds.
fn pointers(snapshot: &ReadTransaction, report: &mut VerifyReport) -> Result<(), StoreError> {
    let items = snapshot_table(snapshot, ITEMS)?;
    let ids = snapshot_table(snapshot, IDS)?;
    let mut counted: HashMap<u32, (u64, u64)> = HashMap::new();
    for row in items.range_kept::<&[u8; 12]>(..)? {
        // Damaged rows are in the report already.
        let Ok((key, value)) = row else { continue };
        let Ok(header) = item_header(value.value()) else {
            continue;
        };
        let feed = feed_of(key.value());
        let (total, live) = counted.entry(feed.0).or_default();
        *total += 1;
        *live += u64::from(!header.gone);
        let t = ids
            .get(&id_key(feed, header.id))
            .ok()
            .flatten()
            .map(|t| stamp_of(t.value()));
        if t != Some(stamp_of(key.value())) {
            report.fault(format!(
                "item {} of feed {feed} is not found by its id",
                header.id
            ));
        }
    }
    for row in ids.range_kept::<&[u8; 14]>(..)? {
        let Ok((key, t)) = row else { continue };
        let mut at = [0; 12];
        at[..4].copy_from_slice(&key.value()[..4]);
        at[4..].copy_from_slice(t.value());
        if !matches!(items.get(&at), Ok(Some(_)) | Err(_)) {
            report.fault(format!(
                "an id of feed {} leads to no item",
                feed_of(key.value())
            ));
        }
    }
    for row in snapshot_table(snapshot, CREATED)?.range_kept::<&[u8; 12]>(..)? {
        let Ok((key, t)) = row else { continue };
        let mut at = *key.value();
        let created = stamp_of(&at);
        at[4..].copy_from_slice(t.value());
        let found = items.get(&at);
        let is_there = found.as_ref().is_ok_and(|found| {
            found.as_ref().is_some_and(|item| {
                item_header(item.value()).is_ok_and(|header| header.created == created)
            })
        });
        if found.is_ok() && !is_there {
            report.fault(format!(
                "a time of creation of feed {} leads to no item",
                feed_of(key.value())
            ));
        }
    }
    publications(snapshot, &items, report)?;
    for row in snapshot_table(snapshot, KEYS)?.range_kept::<&[u8; 20]>(..)? {
        let Ok((key, id)) = row else { continue };
        let feed = feed_of(key.value());
        if !matches!(
            ids.get(&id_key(feed, item_id_of(id.value())?)),
            Ok(Some(_)) | Err(_)
        ) {
            report.fault(format!("a key of feed {feed} leads to no item"));
        }
    }
    counts(snapshot, &counted, report)?;
    groups(snapshot, &items, &counted, report)?;
    subscriptions(snapshot, report)
}

/// As many posts as living items in each group, each held by living items that lead back to it.
fn groups(
    snapshot: &ReadTransaction,
    items: &Sealed<&'static StampKey, ReadOnlyTable<&'static StampKey, Coded>>,
    counted: &HashMap<u32, (u64, u64)>,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let (ids, holdings) = (
        snapshot_table(snapshot, IDS)?,
        snapshot_table(snapshot, HOLDINGS)?,
    );
    let is_live = |feed: FeedNo, id: ItemId| {
        let t = ids
            .get(&id_key(feed, id))
            .ok()
            .flatten()
            .map(|t| stamp_of(t.value()))?;
        let item = items.get(&stamp_key(feed, t)).ok().flatten()?;
        item_header(item.value()).ok().map(|header| !header.gone)
    };
    let mut posts: HashMap<u32, u64> = HashMap::new();
    for row in snapshot_table(snapshot, GROUP_POSTS)?.range_kept::<&[u8; 14]>(..)? {
        let Ok((key, value)) = row else { continue };
        let (group, id) = (feed_of(key.value()), item_id_of(&key.value()[4..])?);
        *posts.entry(group.0).or_default() += 1;
        let Ok(post) = decode::<GroupPost>("a post", value.value()) else {
            continue;
        };
        if is_live(group, id) == Some(false) || post.holders.is_empty() {
            report.fault(format!(
                "post {id} of group {group} is held and is not there"
            ));
        }
        for holder in post.holders {
            let leads = holdings.get(&holding_key(group, holder)).ok().flatten();
            let is_sound = leads.is_some_and(|leads| leads.value() == id.0.as_slice());
            if !is_sound || is_live(holder.feed, holder.item) == Some(false) {
                report.fault(format!(
                    "post {id} of group {group} is held by what is no item of feed {}",
                    holder.feed
                ));
            }
        }
    }
    for row in snapshot_table(snapshot, GROUPS)?.range_kept::<&[u8; 4]>(..)? {
        let Ok((key, value)) = row else { continue };
        let stored = decode::<GroupRecord>("a group", value.value());
        if stored.is_ok_and(|group| group.part.is_some()) {
            continue;
        }
        let group = feed_of(key.value());
        let (_, live) = counted.get(&group.0).copied().unwrap_or_default();
        let held = posts.get(&group.0).copied().unwrap_or_default();
        if live != held {
            report.fault(format!(
                "group {group} has {live} living posts, and {held} of them are held"
            ));
        }
    }
    Ok(())
}

/// As many dates of publication as items, each of the item that it leads to.
fn publications(
    snapshot: &ReadTransaction,
    items: &Sealed<&'static StampKey, ReadOnlyTable<&'static StampKey, Coded>>,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    for row in snapshot_table(snapshot, PUBLISHED)?.range_kept::<&[u8; 20]>(..)? {
        let Ok((key, t)) = row else { continue };
        let (feed, (listed, created), t) = (
            feed_of(key.value()),
            listed_of(key.value()),
            stamp_of(t.value()),
        );
        let Ok(found) = items.get_kept(&stamp_key(feed, t)) else {
            continue;
        };
        let found = found.and_then(|item| decode_item(t, item.value()).ok());
        if !found.is_some_and(|item| item.listed() == listed && item.created == created) {
            report.fault(format!(
                "a date of publication of feed {feed} leads to no item"
            ));
        }
    }
    let rows = [
        snapshot.open_table(PUBLISHED.definition())?.len()?,
        snapshot.open_table(ITEMS.definition())?.len()?,
    ];
    if rows[0] != rows[1] {
        report.fault(format!(
            "there are {} dates of publication of {} items",
            rows[0], rows[1]
        ));
    }
    Ok(())
}

fn counts(
    snapshot: &ReadTransaction,
    counted: &HashMap<u32, (u64, u64)>,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let feeds = snapshot_table(snapshot, FEEDS)?;
    let mut named = 0_usize;
    for row in snapshot_table(snapshot, FEED_NAMES)?.range_kept::<&str>(..)? {
        let Ok((name, no)) = row else { continue };
        named += 1;
        if !matches!(
            feeds.get(&feed_key(feed_of(no.value()))),
            Ok(Some(_)) | Err(_)
        ) {
            report.fault(format!("the name `{}` leads to no feed", name.value()));
        }
    }
    let (mut there, mut parts) = (0_usize, 0);
    for row in feeds.range_kept::<&[u8; 4]>(..)? {
        there += 1;
        let Ok((key, value)) = row else { continue };
        let Ok(record) = decode::<FeedRecord>("a feed", value.value()) else {
            continue;
        };
        parts += usize::from(record.part_of.is_some());
        let (total, live) = counted
            .get(&feed_of(key.value()).0)
            .copied()
            .unwrap_or_default();
        if (record.items.total, record.items.live) != (total, live) {
            report.fault(format!(
                "feed `{}` says that it holds {} items, {} of them alive, and {total} were found, {live} of them alive",
                record.name, record.items.total, record.items.live
            ));
        }
    }
    // A part goes by the name of its feed.
    let whole = there - parts;
    if named != whole {
        report.fault(format!("{named} names of feeds lead to {whole} feeds"));
    }
    Ok(())
}

fn subscriptions(snapshot: &ReadTransaction, report: &mut VerifyReport) -> Result<(), StoreError> {
    let held = snapshot_table(snapshot, SUBSCRIPTIONS)?;
    let is_missing = |no: &[u8]| {
        let no = subscription_key(subscription_of(no));
        matches!(held.get(&no), Ok(None))
    };
    for row in snapshot.table(POSITIONS)?.range::<&[u8; 8]>(..)? {
        let Ok((key, _)) = row else { continue };
        if is_missing(key.value()) {
            report.fault("a position belongs to no subscription");
        }
    }
    for row in snapshot.table(SUBSCRIPTION_KEYS)?.range::<&[u8; 32]>(..)? {
        let Ok((_, no)) = row else { continue };
        if is_missing(no.value()) {
            report.fault("a topic leads to no subscription");
        }
    }
    for row in snapshot.table(FEED_SUBSCRIPTIONS)?.range::<&[u8; 12]>(..)? {
        let Ok((key, _)) = row else { continue };
        if is_missing(key.value()) {
            report.fault(format!(
                "feed {} leads to no subscription",
                feed_of(key.value())
            ));
        }
    }
    Ok(())
}

/// A table for people.
impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12}  {:>8}", "values", "damaged")?;
        for kind in &self.kinds {
            writeln!(f, "{:>12}  {:>8}  {}", kind.values, kind.damaged, kind.name)?;
        }
        for fault in &self.faults {
            writeln!(f, "damaged: {fault}")?;
        }
        let more = self.faults_total - self.faults.len() as u64;
        if more > 0 {
            writeln!(f, "damaged: {more} more")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
