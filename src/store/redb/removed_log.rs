//! The file beside a store that remembers what was removed for good: feeds, items, users, tokens and
//! passwords. An older copy of the store brings none of them back. Not how they are removed.

use super::mark_file::beside;
use crate::{
    auth::{TokenNo, UserNo},
    feed::record::FeedNo,
    locks::lock,
    store::{
        condition::RemovalFaults,
        rows::removed::{PasswordDigest, Removed},
    },
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Mutex,
};

/// End of the name of the file beside a store.
const SUFFIX: &str = ".removed";

/// Length of the file that is read at most, in bytes: some 400,000 removals.
// Limit: of more removals the later ones are not applied to an older copy.
const BYTES_MAX: u64 = 16 << 20;

/// Removals that wait for a file that cannot be written, at most.
// Limit: of more the oldest are not written when it can be written again.
const WAITING_MAX: usize = 10_000;

/// A line of the file.
enum Line {
    /// The removals that follow are of the store with this number.
    Store(u64),
    Removed(Removed),
}

impl FromStr for Line {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        let mut word = || words.next().ok_or(());
        let kind = word()?;
        let number = word()?;
        let long = || number.parse().map_err(drop);
        let feed = || number.parse().map(FeedNo).map_err(drop);
        let line = match kind {
            "store" => Self::Store(u64::from_str_radix(number, 16).map_err(drop)?),
            "feed" => Self::Removed(Removed::Feed(feed()?)),
            "item" => Self::Removed(Removed::Item(feed()?, word()?.parse().map_err(drop)?)),
            "user" => Self::Removed(Removed::User(UserNo(long()?))),
            "token" => Self::Removed(Removed::Token(TokenNo(long()?))),
            "password" => {
                let digest = u128::from_str_radix(word()?, 16).map_err(drop)?;
                let digest = PasswordDigest(digest.to_be_bytes());
                Self::Removed(Removed::Password(UserNo(long()?), digest))
            }
            _ => return Err(()),
        };
        words.next().is_none().then_some(line).ok_or(())
    }
}

/// The file beside a store: a line for each removal, with a checksum at its end.
#[derive(Debug)]
pub(super) struct RemovedLog {
    path: PathBuf,
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    faults: RemovalFaults,
    /// The store that the last line names which this process has written.
    named: Option<u64>,
    /// Removals that could not be written.
    waiting: Vec<Removed>,
}

impl RemovedLog {
    /// The file of the store at a path.
    pub(super) fn beside(store: &Path) -> Self {
        Self {
            path: beside(store, SUFFIX),
            state: Mutex::default(),
        }
    }

    /// Its faults, for the operator.
    pub(super) fn faults(&self) -> RemovalFaults {
        lock(&self.state).faults.clone()
    }

    /// Remembers removals that are durable in the store of this number, and those that could not be
    /// written before. A fault is told, since an older copy may bring back what it names.
    pub(super) fn append(&self, store: u64, removed: &[Removed]) {
        let mut state = lock(&self.state);
        state.waiting.extend(removed);
        if state.waiting.is_empty() {
            return;
        }
        match self.appended(store, &state) {
            Ok(()) => {
                state.waiting.clear();
                state.named = Some(store);
                state.faults.unwritten = None;
            }
            Err(error) => {
                let surplus = state.waiting.len().saturating_sub(WAITING_MAX);
                state.waiting.drain(..surplus);
                let path = self.path.display();
                let why = format!(
                    "{path} cannot be written, so that an older copy or a backup brings back what was removed now: {error}"
                );
                if state.faults.unwritten.is_none() {
                    tracing::error!("{why}");
                }
                state.faults.unwritten = Some(why);
            }
        }
    }

    fn appended(&self, store: u64, state: &LogState) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(0o600);
        let mut file = options.open(&self.path)?;
        // A line break first ends a line that a crash has cut.
        let mut text = String::new();
        if ends_within_a_line(&self.path)? {
            text.push('\n');
        }
        if state.named != Some(store) {
            text += &line(&format!("store {store:016x}"));
        }
        for removed in &state.waiting {
            text += &line(&removed.to_string());
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    /// All removals from a store that were remembered; those that name none were written before
    /// there were such numbers. What cannot be read is told.
    pub(super) fn read(&self, store: u64) -> Vec<Removed> {
        let mut bytes = Vec::new();
        let path = self.path.display();
        match File::open(&self.path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)) {
            Ok(0) => self.tell_unread(format!("{path} is empty, although something was removed")),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
            Err(error) => self.tell_unread(format!("{path} cannot be read ({error})")),
        }
        let text = String::from_utf8_lossy(&bytes);
        let mut of_store = None;
        let (mut found, mut damaged) = (Vec::new(), 0);
        for text in text.lines().filter(|line| !line.is_empty()) {
            match of_line(text) {
                Some(Line::Store(store)) => of_store = Some(store),
                Some(Line::Removed(removed)) if of_store.is_none_or(|of| of == store) => {
                    found.push(removed);
                }
                Some(Line::Removed(_)) => {}
                None => damaged += 1,
            }
        }
        if damaged > 0 {
            self.tell_unread(format!("{path} has damaged lines: {damaged}"));
        }
        found
    }

    fn tell_unread(&self, why: String) {
        let why = format!(
            "{why}: an older copy or a backup brings back what it named. Look at users, tokens and forgotten posts after a restore"
        );
        tracing::error!("{why}");
        lock(&self.state).faults.unread = Some(why);
    }
}

/// A line with the checksum of its text.
fn line(text: &str) -> String {
    format!("{text} {:08x}\n", crc32fast::hash(text.as_bytes()))
}

/// Copies the file beside a store to that beside another, durably. Where there is none, none is made.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::copy(beside(from, SUFFIX), beside(to, SUFFIX)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        copied => copied?,
    };
    File::open(beside(to, SUFFIX))?.sync_all()
}

fn ends_within_a_line(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last != [b'\n'])
}

fn of_line(line: &str) -> Option<Line> {
    let (text, sum) = line.rsplit_once(' ')?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    let is_whole = crc32fast::hash(text.as_bytes()) == sum;
    is_whole.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::item::ItemId;

    const STORE: u64 = 0xabc;

    fn all() -> [Removed; 5] {
        [
            Removed::Feed(FeedNo(3)),
            Removed::Item(FeedNo(4), ItemId([7; 10])),
            Removed::User(UserNo(u64::MAX)),
            Removed::Token(TokenNo(1)),
            Removed::Password(UserNo(2), PasswordDigest::of("kept")),
        ]
    }

    #[test]
    fn what_was_removed_is_read_back_and_damage_costs_its_line_alone() {
        let folder = tempfile::tempdir().unwrap();
        let log = RemovedLog::beside(&folder.path().join("store.redb"));
        assert_eq!(log.read(STORE), []);
        let all = all();
        log.append(STORE, &all[..2]);
        log.append(STORE, &all[2..]);
        assert_eq!(log.read(STORE), all);
        assert_eq!(log.faults(), RemovalFaults::default());
        let whole = std::fs::read(&log.path).unwrap();
        let mut flipped = whole.clone();
        let first = memchr::memmem::find(&flipped, b"feed 3").unwrap();
        flipped[first] ^= 1;
        std::fs::write(&log.path, flipped).unwrap();
        assert_eq!(log.read(STORE), all[1..]);
        assert!(log.faults().unread.unwrap().contains("damaged lines: 1"));
        // A crash in the middle of a line, and a removal after it.
        std::fs::write(&log.path, &whole[..whole.len() - 3]).unwrap();
        log.append(STORE, &[Removed::Feed(FeedNo(9))]);
        assert_eq!(
            log.read(STORE),
            [&all[..4], &[Removed::Feed(FeedNo(9))]].concat()
        );
    }

    #[test]
    fn the_removals_of_another_store_are_not_those_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let log = RemovedLog::beside(&folder.path().join("store.redb"));
        let all = all();
        log.append(STORE, &all[..1]);
        log.append(STORE + 1, &all[1..2]);
        log.append(STORE, &all[2..3]);
        assert_eq!(log.read(STORE), [all[0], all[2]]);
        assert_eq!(log.read(STORE + 1), all[1..2]);
        // Written before stores were named.
        std::fs::write(&log.path, line("token 7")).unwrap();
        assert_eq!(log.read(5), [Removed::Token(TokenNo(7))]);
    }

    #[test]
    fn a_file_that_cannot_be_written_or_read_is_told_and_nothing_is_lost_once_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let log = RemovedLog::beside(&folder.path().join("store.redb"));
        std::fs::create_dir(&log.path).unwrap();
        let all = all();
        log.append(STORE, &all[..1]);
        assert!(
            log.faults()
                .unwritten
                .unwrap()
                .contains("cannot be written")
        );
        assert_eq!(log.read(STORE), []);
        assert!(log.faults().unread.unwrap().contains("cannot be read"));
        std::fs::remove_dir(&log.path).unwrap();
        log.append(STORE, &all[1..]);
        assert_eq!(
            (log.read(STORE), log.faults().unwritten),
            (all.to_vec(), None)
        );
        std::fs::write(&log.path, "").unwrap();
        assert_eq!(log.read(STORE), []);
        assert!(log.faults().unread.unwrap().contains("is empty"));
    }
}
