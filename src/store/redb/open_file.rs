//! The file that is open now, and its opening anew after a fault: redb fails every call on a file
//! after one. Not what is read or written.

use super::{
    guarded::{guarded, sheltered},
    watched_backend::StorageWatch,
};
use crate::{
    clock::Clock,
    feed::stamp::Stamp,
    locks::lock,
    store::{
        StoreError,
        condition::{FileFigures, Outage, Remedy, RemovalFaults, StoreCondition},
        content_mark::ContentMark,
        rows::removed::Removed,
    },
};
use redb::Database;
use std::{
    ops::Deref,
    path::Path,
    sync::{Arc, Mutex, Weak},
    thread,
    time::{Duration, Instant},
};

/// Seconds between two attempts at the end of an outage, from the first to the last.
const AGAIN_SECS: std::ops::RangeInclusive<u64> = 1..=10;

/// Time for which an opening waits for reads of the former one.
const READS_END: Duration = Duration::from_secs(1);

/// Seconds between two lines of the log on reads that failed.
const WARN_SECS: u64 = 60;

/// The words for a file that is not as it was left.
pub(super) const ALTERED: &str = "somebody has cut or overwritten its file while it is open; restore it from a backup, and restart everfeed";

/// Seconds between two looks at the path of the file.
const LOOK_SECS: u64 = 1;

/// Way to the file.
pub(super) trait FileOpener: Send + Sync + 'static {
    /// Opens the file that was opened before; never makes one.
    fn open(&self) -> Result<OpenDatabase, StoreError>;

    /// The reason for which the open file is not the one at its path; asks the file system.
    fn astray(&self) -> Option<Astray> {
        None
    }

    /// Its length in bytes.
    fn bytes(&self) -> u64 {
        0
    }

    /// True when it is the file at this path.
    fn is_at(&self, _: &Path) -> bool {
        false
    }

    /// Puts a copy in the place of the file and opens it: free pages keep what they held, and a
    /// copy has none.
    fn rewrite(&self, _: &OpenDatabase) -> Result<OpenDatabase, NotRewritten> {
        Err(NotRewritten::Kept(StoreError::Failed(
            "it has no path".into(),
        )))
    }

    /// The reason for which its free pages may hold what was forgotten; `None` when they do not.
    fn keeps_forgotten(&self) -> Option<String> {
        None
    }

    /// Takes note of how far its content has come, outside of the file.
    fn mark(&self, _: &ContentMark) {}

    /// Takes note of what was removed for good from the store of this number, outside of the file;
    /// of nothing, tries again what could not be written.
    fn removed(&self, _: u64, _: &[Removed]) {}

    /// Faults of what is remembered of removals.
    fn removal_faults(&self) -> RemovalFaults {
        RemovalFaults::default()
    }

    /// True when the file was open in a process that ended, or still was, when this one began.
    fn ended_uncleanly(&self) -> bool {
        false
    }

    /// The words for a store that was restored when it was opened; `None` for any other.
    fn restored(&self) -> Option<String> {
        None
    }
}

/// A file that was not written anew to the end.
#[derive(Debug)]
pub(super) enum NotRewritten {
    /// It is the file that it was.
    Kept(StoreError),
    /// The copy is in its place, and is to be opened.
    Replaced(StoreError),
}

/// An open file that is not at its path as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Astray {
    /// No file is there.
    Missing,
    /// Another file is there.
    Replaced,
    /// It is there, and somebody else has cut it or written into it.
    Altered,
}

/// A database and the faults of its storage.
pub(super) struct OpenDatabase {
    /// `None` only while it is dropped.
    database: Option<Database>,
    watch: Arc<StorageWatch>,
    /// Number of the opening.
    generation: u64,
}

impl OpenDatabase {
    pub(super) fn new(database: Database, watch: Arc<StorageWatch>) -> Self {
        Self {
            database: Some(database),
            watch,
            generation: 0,
        }
    }

    /// The first fault of its storage. After one nothing more can be done with it.
    pub(super) fn fault(&self) -> Option<&str> {
        self.watch.cause()
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }
}

impl Deref for OpenDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.database
            .as_ref()
            .expect("a database is taken out only when it is dropped")
    }
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        // Closing reads and writes the file, which may be damaged.
        let database = self.database.take();
        let _ = guarded(|| drop(database));
    }
}

/// The file that is open now.
pub(super) struct OpenFile {
    opener: Box<dyn FileOpener>,
    clock: Arc<dyn Clock>,
    slot: Mutex<Slot>,
    state: Mutex<FileState>,
}

/// The database that is open now, or may be opened again.
struct Slot {
    database: Option<Arc<OpenDatabase>>,
    /// The one before it, as long as a read goes on in it.
    former: Weak<OpenDatabase>,
    generation: u64,
    is_closed: bool,
}

/// Facts for the operator, and the time of the next attempt.
struct FileState {
    condition: StoreCondition,
    figures: FileFigures,
    again_at: Instant,
    again_secs: u64,
    looked_at: Instant,
    warned_at: Option<Instant>,
}

impl OpenFile {
    /// The file of this opener, open already.
    pub(super) fn new(
        opener: Box<dyn FileOpener>,
        database: OpenDatabase,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let slot = Slot {
            generation: database.generation,
            database: Some(Arc::new(database)),
            former: Weak::new(),
            is_closed: false,
        };
        let now = Instant::now();
        let figures = FileFigures {
            bytes: opener.bytes(),
            faults: 0,
        };
        let state = FileState {
            condition: StoreCondition::Sound,
            figures,
            again_at: now,
            again_secs: *AGAIN_SECS.start(),
            looked_at: now,
            warned_at: None,
        };
        Self {
            opener,
            clock,
            slot: Mutex::new(slot),
            state: Mutex::new(state),
        }
    }

    /// Its condition.
    pub(super) fn condition(&self) -> StoreCondition {
        lock(&self.state).condition.clone()
    }

    /// Its figures, at most some seconds old.
    pub(super) fn figures(&self) -> FileFigures {
        lock(&self.state).figures
    }

    /// The database for reading; opens it when it is not open. Blocks.
    pub(super) fn readable(&self) -> Result<Arc<OpenDatabase>, StoreError> {
        let mut slot = lock(&self.slot);
        if slot.is_closed {
            return Err(StoreError::Closed);
        }
        if let Some(database) = &slot.database {
            return Ok(Arc::clone(database));
        }
        self.open(&mut slot)
    }

    /// The database for writing; refuses while nothing can be committed. Blocks.
    pub(super) fn writable(&self) -> Result<Arc<OpenDatabase>, StoreError> {
        if let StoreCondition::Away(outage) = self.condition() {
            return Err(StoreError::Away(outage.cause));
        }
        self.readable()
    }

    /// Writes the file anew. Only the writer may do it, between two transactions; reads that go on
    /// end in the former file. What fails is done at the next start.
    pub(super) fn rewrite(&self) {
        let Ok(former) = self.readable() else { return };
        let rewritten = guarded(|| self.opener.rewrite(&former));
        let rewritten = rewritten
            .unwrap_or_else(|panic| Err(NotRewritten::Replaced(StoreError::Damaged(panic))));
        if let Err(NotRewritten::Kept(error) | NotRewritten::Replaced(error)) = &rewritten {
            tracing::warn!(
                "The store is written anew at the next start. Until then free pages of its file hold forgotten items: {error}"
            );
        }
        let mut slot = lock(&self.slot);
        slot.database = match rewritten {
            Err(NotRewritten::Kept(_)) => return,
            Err(NotRewritten::Replaced(_)) => None,
            Ok(mut database) => {
                slot.generation += 1;
                database.generation = slot.generation;
                Some(Arc::new(database))
            }
        };
        slot.former = Arc::downgrade(&former);
    }

    /// The reason for which free pages of the file may hold what was forgotten.
    pub(super) fn keeps_forgotten(&self) -> Option<String> {
        let why = self.opener.keeps_forgotten()?;
        Some(format!(
            "free pages of the store's file still hold it ({why}). everfeed tries to write the file anew at every start"
        ))
    }

    fn open(&self, slot: &mut Slot) -> Result<Arc<OpenDatabase>, StoreError> {
        // redb locks the file, also against ourselves.
        let began = Instant::now();
        while slot.former.strong_count() > 0 {
            if began.elapsed() > READS_END {
                return Err(StoreError::Away(
                    "reads of it still end after a fault".into(),
                ));
            }
            thread::sleep(Duration::from_millis(5));
        }
        match sheltered(|| self.opener.open()) {
            Ok(mut database) => {
                slot.generation += 1;
                database.generation = slot.generation;
                let database = Arc::new(database);
                slot.database = Some(Arc::clone(&database));
                self.readable_again();
                Ok(database)
            }
            Err(error) => {
                let cause = format!("the file cannot be opened again: {error}");
                self.away(&cause, Remedy::OpensAgain);
                Err(StoreError::Away(cause))
            }
        }
    }

    /// Lets go of the database after a write that failed: nothing is written before an attempt has
    /// shown that it can be. The caller holds nothing of the database any more.
    pub(super) fn write_failed(&self, generation: u64, cause: &str) {
        self.let_go(generation);
        self.away(cause, Remedy::TriesAgain);
    }

    /// Lets go of the database after a read that failed; the next one opens the file anew. The
    /// caller holds nothing of the database any more.
    pub(super) fn read_failed(&self, generation: u64, cause: &str) {
        if !self.let_go(generation) {
            return;
        }
        let mut state = lock(&self.state);
        if state
            .warned_at
            .is_none_or(|at| at.elapsed() > Duration::from_secs(WARN_SECS))
        {
            state.warned_at = Some(Instant::now());
            tracing::warn!("The store failed in a read, and its file is opened anew: {cause}");
        }
    }

    /// Lets go of the database, unless that was done already.
    fn let_go(&self, generation: u64) -> bool {
        let mut slot = lock(&self.slot);
        if slot.generation != generation || slot.database.is_none() {
            return false;
        }
        let database = slot.database.take();
        slot.former = database.as_ref().map(Arc::downgrade).unwrap_or_default();
        drop(database);
        lock(&self.state).figures.faults += 1;
        true
    }

    // Decides: What happens after a fault of the disk?
    /// Says that nothing can be committed now, once for each outage, and plans the next attempt.
    fn away(&self, cause: &str, remedy: Remedy) {
        let mut state = lock(&self.state);
        let now = Stamp::from_micros(self.clock.now_us());
        let known = state
            .condition
            .outage()
            .map(|outage| (outage.since, outage.remedy));
        if known.is_none() {
            tracing::error!(
                "Nothing can be stored, and nothing is polled until that ends; it is tried again by itself: {cause}"
            );
        }
        let (since, before) = known.unwrap_or((now, remedy));
        let remedy = if before == Remedy::Restart {
            before
        } else {
            remedy
        };
        state.condition = StoreCondition::Away(Outage {
            cause: cause.to_owned(),
            since,
            remedy,
        });
        state.again_at = Instant::now() + Duration::from_secs(state.again_secs);
        state.again_secs = (state.again_secs * 2).min(*AGAIN_SECS.end());
    }

    /// The file that is open is at its path again: what it was can go on.
    fn back_in_place(&self) {
        if let StoreCondition::Away(outage) = &mut lock(&self.state).condition
            && outage.remedy == Remedy::Restart
        {
            outage.remedy = Remedy::TriesAgain;
        }
    }

    fn readable_again(&self) {
        if let StoreCondition::Away(outage) = &mut lock(&self.state).condition
            && outage.remedy == Remedy::OpensAgain
        {
            outage.remedy = Remedy::TriesAgain;
        }
    }

    /// True when an attempt at the end of an outage is due.
    pub(super) fn is_attempt_due(&self) -> bool {
        let state = lock(&self.state);
        state
            .condition
            .outage()
            .is_some_and(|outage| outage.remedy != Remedy::Restart)
            && state.again_at <= Instant::now()
    }

    /// Makes the first attempt at the end of an outage due at once.
    pub(super) fn attempt_now(&self) {
        let mut state = lock(&self.state);
        if state.again_secs <= *AGAIN_SECS.start() * 2 {
            state.again_at = Instant::now();
        }
    }

    /// Takes note that changes can be committed: an outage is over.
    pub(super) fn proven(&self) {
        let mut state = lock(&self.state);
        if let StoreCondition::Away(outage) = &state.condition {
            tracing::info!(
                "Changes can be stored again, and feeds are polled again; that was not so since {}",
                outage.since.rfc3339()
            );
        }
        state.condition = StoreCondition::Sound;
    }

    /// Takes note that a change was committed: the next outage begins with short waits again.
    pub(super) fn committed(&self) {
        lock(&self.state).again_secs = *AGAIN_SECS.start();
    }

    /// Looks at the path of the file when it is time to.
    pub(super) fn look(&self) {
        {
            let mut state = lock(&self.state);
            if state.looked_at.elapsed() < Duration::from_secs(LOOK_SECS) {
                return;
            }
            state.looked_at = Instant::now();
            state.figures.bytes = self.opener.bytes();
        }
        match self.opener.astray() {
            None => self.back_in_place(),
            Some(Astray::Missing) => self.away(
                "its file was moved or deleted while it is open; put it back, or restore a backup and restart",
                Remedy::TriesAgain,
            ),
            Some(Astray::Replaced) => self.away(
                "another file was put in the place of its file while it is open; restart everfeed to use that one",
                Remedy::Restart,
            ),
            Some(Astray::Altered) => {
                // First, so that nobody finds the store closed without its fault.
                self.away(ALTERED, Remedy::Restart);
                // What is remembered of it, here and elsewhere in the process, is not what is
                // there.
                self.close();
            }
        }
    }

    /// True when it is the file at this path.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.opener.is_at(path)
    }

    /// True while the file is at its path.
    pub(super) fn is_in_place(&self) -> bool {
        self.opener.astray().is_none()
    }

    /// Takes note of how far the content of the file has come, after a commit.
    pub(super) fn mark(&self, mark: &ContentMark) {
        self.opener.mark(mark);
    }

    /// Takes note of what was removed for good, after a commit.
    pub(super) fn removed(&self, store: u64, removed: &[Removed]) {
        self.opener.removed(store, removed);
    }

    /// Faults of what is remembered of removals.
    pub(super) fn removal_faults(&self) -> RemovalFaults {
        self.opener.removal_faults()
    }

    /// True when the process before this one has not closed the file.
    pub(super) fn ended_uncleanly(&self) -> bool {
        self.opener.ended_uncleanly()
    }

    /// The words for a store that was restored when it was opened; `None` for any other.
    pub(super) fn restored(&self) -> Option<String> {
        self.opener.restored()
    }

    /// Lets go of the file for good.
    pub(super) fn close(&self) {
        let mut slot = lock(&self.slot);
        slot.is_closed = true;
        slot.database = None;
    }
}
