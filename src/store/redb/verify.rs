//! Reads a whole file and tells what in it is damaged: its pages, the values in them, and rows that
//! contradict each other. Nothing is mended and nothing is written.

use super::{
    commit_order::CommitOrder,
    copy_note::{LEFT_KEY, UNFINISHED_KEY},
    file::{BARE_SCHEMA_KEY, UNFINISHED, check_schema, checked_order, refusal},
    generation::{COPY_KEY, RESTORED_KEY},
    guarded::{guarded, sheltered},
    mark_file::{FoundMark, MarkFile},
    overlay::Overlay,
    tables::BARE_META,
    writer::{CLOCK_KEY, CONTENT_KEY},
};
use crate::{
    auth::{AccessToken, User},
    events::Event,
    feed::{
        archive::{ArchiveWalk, StagedPage},
        group::{GroupPost, GroupRecord},
        index_now::IndexNow,
        item::ItemId,
        legacy_document::LegacyDocument,
        observation_record::ObservationRecord,
        opml_list::OpmlList,
        pushed_feed::PushedFeed,
        reconcile::{Evidence, WindowState},
        record::{FeedNo, FeedRecord},
        schedule::PollState,
        stamp::Stamp,
    },
    store::{
        FoundFeeds, StoreError, Subscription,
        clock_guard::ClockGuard,
        content_mark::ContentMark,
        rows::{
            accounts::{LAST_TOKEN_KEY, LAST_USER_KEY},
            counted::{self, Chunk, CountedAxis},
            derived::check_leads,
            open_table::{KeyKind, Rows, Table, TableSource as _},
            reads::LAST_FEED_KEY,
            subscriptions::LAST_SUBSCRIPTION_KEY,
            tables::{
                COUNTED, CREATED, DOCUMENTS, EVENTS, EVIDENCE, FEED_NAMES, FEED_SUBSCRIPTIONS,
                FEEDS, FOUND_FEEDS, FeedKey, GROUP_POSTS, GROUPS, HOLDINGS, HOSTS, IDS, INDEX_NOW,
                ITEMS, KEYS, MEMBERSHIPS, META, OBSERVATIONS, OPML_LISTS, POLLS, POSITIONS,
                PUBLISHED, PUSHED, REGISTRY, SEGMENTS, STAGING, SUBSCRIPTION_KEYS, SUBSCRIPTIONS,
                StampKey, StampValue, SubscriptionKey, TERMS, TOKENS, USERS, WALKS, WINDOWS,
                WITNESSES, feed_key, feed_of, holding_key, id_key, item_id_of, stamp_key, stamp_of,
                subscription_key, subscription_of, term_of,
            },
            word_index::{Segment, postings},
        },
        stored::{
            RegistryText, StoredKind, damaged, decode,
            item::{decode_item, item_header},
            pause::decode_pause,
        },
        subscriptions::Progress,
    },
};
use redb::{Builder, Database, ReadTransaction, ReadableDatabase as _, backends::FileBackend};
use std::{
    collections::HashMap,
    fmt,
    fs::{File, OpenOptions},
    io::ErrorKind,
    ops::Bound,
    path::Path,
};

pub use effect::DamageEffect;
use effect::refused_start;

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
    /// A finding that may be a fault, or the trace of a process that died.
    pub doubt: Option<&'static str>,
    /// The words for a store behind the mark beside it: a later state of it was served.
    pub behind: Option<String>,
    /// The words with which a start refuses a damaged file; `None` for one that it opens.
    pub refused_start: Option<String>,
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
    /// The effect of a damaged one on a process that serves the file.
    pub effect: DamageEffect,
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
    let order = File::open(path).and_then(|file| CommitOrder::of(&file));
    if order.is_ok_and(|order| order == CommitOrder::Unfinished) {
        report.doubt = Some(UNFINISHED);
    }
    if pages(path, &mut report)? {
        values(path, &mut report)?;
    }
    if !report.is_sound() {
        report.refused_start = refused_start(path);
    }
    Ok(report)
}

fn open(path: &Path) -> Result<Database, StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed(format!("{}: {error}", path.display()));
    // Open for writing, because only then it can be locked against a process that writes.
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        // Nobody writes it then.
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => File::open(path),
        file => file,
    };
    let file = file.map_err(failed)?;
    if file.metadata().is_ok_and(|found| found.len() == 0) {
        return Err(StoreError::Schema(format!("{} is empty", path.display())));
    }
    checked_order(path, &file)?;
    let file = FileBackend::new(file).map_err(|error| refusal(path, error))?;
    let overlay = Overlay::new(file).map_err(failed)?;
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    let opened = builder.create_with_backend(overlay);
    opened.map_err(|error| refusal(path, error))
}

/// Lets redb hold every page against its checksum. True when the values can be looked at.
fn pages(path: &Path, report: &mut VerifyReport) -> Result<bool, StoreError> {
    let mut database = match sheltered(|| open(path)) {
        Ok(database) => database,
        Err(error @ (StoreError::Failed(_) | StoreError::Schema(_))) => return Err(error),
        Err(error) => {
            report.fault(format!("the file cannot be opened: {}", bare(&error)));
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
    let database = match sheltered(|| open(path)) {
        Err(error @ StoreError::Damaged(_)) => {
            report.fault(bare(&error));
            return Ok(());
        }
        opened => opened?,
    };
    match sheltered(|| check_schema(path, &database)) {
        Ok(()) => {}
        // Of another schema, and sound as far as that can be told.
        Err(error @ StoreError::Schema(_)) if report.is_sound() => return Err(error),
        Err(error) => report.fault(bare(&error)),
    }
    let read = sheltered(|| {
        let snapshot = database.begin_read()?;
        report.behind = behind_mark(path, &snapshot)?;
        kinds(&snapshot, report);
        pointers(&snapshot, report)
    });
    if let Err(error) = read {
        report.fault(bare(&error));
    }
    let _ = guarded(|| drop(database));
    Ok(())
}

/// The words for a file that is behind the mark beside it; `None` where there is none to read.
fn behind_mark(path: &Path, snapshot: &ReadTransaction) -> Result<Option<String>, StoreError> {
    let mark = MarkFile::beside(path);
    let FoundMark::Read(left) = mark.read() else {
        return Ok(None);
    };
    let meta = snapshot.table(META)?;
    let Ok(held) = meta.read::<ContentMark>(CONTENT_KEY, "the mark of the content") else {
        // Told with the other values.
        return Ok(None);
    };
    let held = held.unwrap_or_default();
    let (file, mark) = (path.display(), mark.path().display());
    if !held.is_behind(&left) {
        return Ok(None);
    }
    if held.store != left.store {
        return Ok(Some(format!(
            "{mark} is the mark of another store than {file}"
        )));
    }
    let commits = left.commits.saturating_sub(held.commits);
    Ok(Some(format!(
        "{file} is behind its mark by {commits} commits ({mark})"
    )))
}

/// Checks a value of a kind.
fn check<T: StoredKind>(value: &[u8]) -> Result<(), StoreError> {
    decode::<T>(T::NAME, value).map(drop)
}

/// Checks a value of so many bytes.
fn check_length(value: &[u8], bytes: usize) -> Result<(), StoreError> {
    if value.len() == bytes {
        return Ok(());
    }
    Err(damaged(format!("a row holds {} bytes", value.len())))
}

/// Checks the note of a copy to another kind of store.
#[cfg(feature = "postgres")]
fn check_note(value: &[u8]) -> Result<(), StoreError> {
    let note = crate::store::moved_rows::MoveNote::of_row(value);
    note.map(drop)
        .ok_or_else(|| damaged("the note of a copy is cut short"))
}

/// Nothing of this build reads one.
#[cfg(not(feature = "postgres"))]
fn check_note(_: &[u8]) -> Result<(), StoreError> {
    Ok(())
}

fn kinds(snapshot: &ReadTransaction, report: &mut VerifyReport) {
    let mut table = Tables { snapshot, report };
    table.read(META, "settings of the store", |key, value| {
        let is = |name: &str| key == name.as_bytes();
        if is(CLOCK_KEY) {
            check::<ClockGuard>(value)
        } else if is(CONTENT_KEY) {
            check::<ContentMark>(value)
        } else if is(COPY_KEY) {
            check::<Stamp>(value)
        } else if is(LAST_FEED_KEY) {
            check::<u32>(value)
        } else if is(LAST_SUBSCRIPTION_KEY) || is(LAST_USER_KEY) || is(LAST_TOKEN_KEY) {
            check::<u64>(value)
        } else if is(RESTORED_KEY) {
            check_length(value, value.len().max(size_of::<StampValue>()))
        } else if is(LEFT_KEY) || is(UNFINISHED_KEY) {
            check_note(value)
        } else {
            Ok(())
        }
    });
    table.pointers::<FeedKey, _>(FEED_NAMES, "names of feeds");
    table.values::<FeedRecord, _>(FEEDS, "feeds");
    table.read(ITEMS, "items", |key, value| {
        decode_item(stamp_of(key), value).map(drop)
    });
    table.pointers::<StampValue, _>(IDS, "ids of items");
    table.pointers::<StampValue, _>(CREATED, "times of creation");
    table.pointers::<StampValue, _>(PUBLISHED, "dates of publication");
    table.read(COUNTED, "counts of items", |_, value| {
        Chunk::of_row(value).map(drop)
    });
    table.read(SEGMENTS, "segments of the word index", |_, value| {
        Segment::of_row(value).map(drop)
    });
    table.read(TERMS, "words of items", |key, value| match key.try_into() {
        Ok(key) => postings::check(term_of(key), value),
        Err(_) => check_length(key, 12),
    });
    table.read(KEYS, "keys of entries", |_, value| {
        item_id_of(value).map(drop)
    });
    table.read(WITNESSES, "witnesses of entries", |_, value| {
        check_length(value, value.len().next_multiple_of(size_of::<ItemId>()))
    });
    table.values::<WindowState, _>(WINDOWS, "windows");
    table.values::<PollState, _>(POLLS, "poll states");
    table.values::<Evidence, _>(EVIDENCE, "evidence of tombstones");
    table.values::<ArchiveWalk, _>(WALKS, "archive walks");
    table.values::<StagedPage, _>(STAGING, "staged pages");
    table.values::<ObservationRecord, _>(OBSERVATIONS, "observations");
    table.values::<Subscription, _>(SUBSCRIPTIONS, "subscriptions");
    table.values::<Progress, _>(POSITIONS, "positions of subscriptions");
    table.pointers::<SubscriptionKey, _>(SUBSCRIPTION_KEYS, "topics of subscriptions");
    table.pointers::<(), _>(FEED_SUBSCRIPTIONS, "subscriptions by feed");
    table.values::<User, _>(USERS, "users");
    table.values::<AccessToken, _>(TOKENS, "tokens");
    table.values::<LegacyDocument, _>(DOCUMENTS, "documents");
    table.values::<FoundFeeds, _>(FOUND_FEEDS, "feeds of sites");
    table.values::<RegistryText, _>(REGISTRY, "entries of the registry");
    table.values::<Event, _>(EVENTS, "events");
    table.values::<PushedFeed, _>(PUSHED, "hubs of feeds");
    table.values::<IndexNow, _>(INDEX_NOW, "rows of IndexNow");
    table.values::<OpmlList, _>(OPML_LISTS, "lists of feeds");
    table.values::<GroupRecord, _>(GROUPS, "groups");
    table.values::<GroupPost, _>(GROUP_POSTS, "posts of groups");
    table.read(HOLDINGS, "items in groups", |_, value| {
        item_id_of(value).map(drop)
    });
    table.pointers::<(), _>(MEMBERSHIPS, "members of groups");
    table.read(HOSTS, "pauses of hosts", |_, value| {
        decode_pause(value).map(drop)
    });
}

/// The tables of a snapshot, read one by one into a report.
struct Tables<'a> {
    snapshot: &'a ReadTransaction,
    report: &'a mut VerifyReport,
}

impl Tables<'_> {
    /// Reads a table of values of a kind.
    fn values<T: StoredKind, K: KeyKind + ?Sized>(&mut self, table: Table<K>, name: &'static str) {
        self.read(table, name, |_, value| check::<T>(value));
    }

    /// Reads a table of values with the width of a type, the one that is written.
    fn pointers<V, K: KeyKind + ?Sized>(&mut self, table: Table<K>, name: &'static str) {
        self.read(table, name, |_, value| check_length(value, size_of::<V>()));
    }

    fn read<K: KeyKind + ?Sized>(
        &mut self,
        table: Table<K>,
        name: &'static str,
        check: impl Fn(&[u8], &[u8]) -> Result<(), StoreError>,
    ) {
        let mut found = VerifiedKind {
            name,
            values: 0,
            damaged: 0,
            effect: DamageEffect::of_table(table.name()),
        };
        let walked = sheltered(|| {
            let opened = self.snapshot.table(table)?;
            let all: (Bound<&K>, Bound<&K>) = (Bound::Unbounded, Bound::Unbounded);
            for row in opened.range_unchecked(all) {
                let (key, value) = row?;
                found.values += 1;
                let key = key.value().bytes();
                let is_bare = table.name() == META.name() && key == BARE_SCHEMA_KEY.as_bytes();
                let checked = if is_bare {
                    let stored = self.snapshot.open_table(BARE_META)?.get(BARE_SCHEMA_KEY)?;
                    stored.map_or(Ok(()), |stored| check_length(stored.value(), 4))
                } else {
                    value.and_then(|value| check(key, value.value()))
                };
                if let Err(error) = checked {
                    found.damaged += 1;
                    self.report.fault(format!("{name}: {}", bare(&error)));
                }
            }
            Ok(())
        });
        if let Err(error) = walked {
            self.report.fault(format!(
                "{name}: they cannot be read beyond number {}: {}",
                found.values,
                bare(&error)
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

/// Items of a feed that were found.
#[derive(Clone, Copy, Default)]
struct Counted {
    total: u64,
    live: u64,
}

/// Rows that lead to others, and the counts of feeds. Rows that are damaged are in the report
/// already.
fn pointers(snapshot: &ReadTransaction, report: &mut VerifyReport) -> Result<(), StoreError> {
    check_leads(snapshot, &mut |fault| report.fault(fault))?;
    let items = snapshot.table(ITEMS)?;
    let ids = snapshot.table(IDS)?;
    let mut counted: HashMap<FeedNo, Counted> = HashMap::new();
    for (key, value) in items.rows(&[]).flatten() {
        if let Ok(header) = item_header(value.value()) {
            let count = counted.entry(feed_of(key.value())).or_default();
            count.total += 1;
            count.live += u64::from(!header.gone);
        }
    }
    for (key, id) in snapshot.table(KEYS)?.rows(&[]).flatten() {
        let feed = feed_of(key.value());
        if matches!(ids.get(&id_key(feed, item_id_of(id.value())?)), Ok(None)) {
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
    items: &Rows<'_, StampKey>,
    counted: &HashMap<FeedNo, Counted>,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let ids = snapshot.table(IDS)?;
    let holdings = snapshot.table(HOLDINGS)?;
    let is_live = |feed: FeedNo, id: ItemId| {
        let t = ids.get(&id_key(feed, id)).ok()??;
        let t = stamp_of(t.value());
        let item = items.get(&stamp_key(feed, t)).ok()??;
        item_header(item.value()).ok().map(|header| !header.gone)
    };
    let mut posts: HashMap<FeedNo, u64> = HashMap::new();
    for (key, value) in snapshot.table(GROUP_POSTS)?.rows(&[]).flatten() {
        let (group, id) = (feed_of(key.value()), item_id_of(&key.value()[4..])?);
        *posts.entry(group).or_default() += 1;
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
                    "post {id} of group {group} is held by a missing item of feed {}",
                    holder.feed
                ));
            }
        }
    }
    for (key, value) in snapshot.table(GROUPS)?.rows(&[]).flatten() {
        let stored = decode::<GroupRecord>("a group", value.value());
        if stored.is_ok_and(|group| group.part.is_some()) {
            continue;
        }
        let group = feed_of(key.value());
        let Counted { live, .. } = counted.get(&group).copied().unwrap_or_default();
        let held = posts.get(&group).copied().unwrap_or_default();
        if live != held {
            report.fault(format!(
                "group {group} has {live} living posts, and {held} of them are held"
            ));
        }
    }
    Ok(())
}

fn counts(
    snapshot: &ReadTransaction,
    counted: &HashMap<FeedNo, Counted>,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let feeds = snapshot.table(FEEDS)?;
    for row in feeds.rows(&[]) {
        let Ok((key, value)) = row else { continue };
        let Ok(record) = decode::<FeedRecord>("a feed", value.value()) else {
            continue;
        };
        let Counted { total, live } = counted
            .get(&feed_of(key.value()))
            .copied()
            .unwrap_or_default();
        if record.items.total != total || record.items.live != live {
            report.fault(format!(
                "feed `{}` says that it holds {} items, {} of them alive, and {total} were found, {live} of them alive",
                record.name, record.items.total, record.items.live
            ));
        }
        if !are_counts_right(snapshot, &record).unwrap_or(true) {
            report.fault(format!(
                "the counts of feed `{}` do not agree with its items",
                record.name
            ));
        }
    }
    Ok(())
}

/// True where each stretch of a feed that is counted has as many rows as its count says.
fn are_counts_right(snapshot: &ReadTransaction, record: &FeedRecord) -> Result<bool, StoreError> {
    for (axis, table) in [
        (CountedAxis::Modified, ITEMS),
        (CountedAxis::Created, CREATED),
    ] {
        let Some(counts) = counted::stored_counts(snapshot, record, axis)? else {
            continue;
        };
        let mut found = vec![0; counts.len()];
        for (key, _) in snapshot.table(table)?.rows(&feed_key(record.no)).flatten() {
            let behind = counts.partition_point(|(first, _)| *first <= stamp_of(key.value()));
            match behind.checked_sub(1) {
                Some(at) => found[at] += 1,
                None => return Ok(false),
            }
        }
        if counts.iter().map(|(_, rows)| *rows).ne(found) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn subscriptions(snapshot: &ReadTransaction, report: &mut VerifyReport) -> Result<(), StoreError> {
    let held = snapshot.table(SUBSCRIPTIONS)?;
    let is_missing = |no: &[u8]| {
        let no = subscription_key(subscription_of(no));
        matches!(held.get(&no), Ok(None))
    };
    for (key, _) in snapshot.table(POSITIONS)?.rows(&[]).flatten() {
        if is_missing(key.value()) {
            report.fault("a position belongs to no subscription");
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
        if self.refused_start.is_some() {
            return Ok(());
        }
        for kind in self.kinds.iter().filter(|kind| kind.damaged > 0) {
            writeln!(f, "{}: {}", kind.name, kind.effect.words())?;
        }
        Ok(())
    }
}

mod effect;

#[cfg(test)]
mod tests;
