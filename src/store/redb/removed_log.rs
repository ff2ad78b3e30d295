//! The file beside a store that remembers what was removed for good: feeds, items, users and
//! tokens. A backup that is restored brings none of them back. Not how they are removed.

use super::mark_file::beside;
use crate::{
    auth::{TokenNo, UserNo},
    feed::{item::ItemId, record::FeedNo},
};
use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    str::FromStr,
};

/// End of the name of the file beside a store.
const SUFFIX: &str = ".removed";

/// Length of the file that is read at most, in bytes: some 400,000 removals.
// Limit: of more removals the later ones are not applied to a restored store.
const BYTES_MAX: u64 = 16 << 20;

/// Something that was removed for good. Numbers are never given twice, also not after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    Feed(FeedNo),
    Item(FeedNo, ItemId),
    User(UserNo),
    Token(TokenNo),
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed(feed) => write!(f, "feed {feed}"),
            Self::Item(feed, item) => write!(f, "item {feed} {item}"),
            Self::User(user) => write!(f, "user {}", user.0),
            Self::Token(token) => write!(f, "token {}", token.0),
        }
    }
}

impl FromStr for Removed {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        let mut word = || words.next().ok_or(());
        let kind = word()?;
        let number = word()?;
        let long = || number.parse().map_err(drop);
        let feed = || number.parse().map(FeedNo).map_err(drop);
        let removed = match kind {
            "feed" => Self::Feed(feed()?),
            "item" => Self::Item(feed()?, word()?.parse().map_err(drop)?),
            "user" => Self::User(UserNo(long()?)),
            "token" => Self::Token(TokenNo(long()?)),
            _ => return Err(()),
        };
        words.next().is_none().then_some(removed).ok_or(())
    }
}

/// The file beside a store: a line for each removal, with a checksum at its end.
#[derive(Debug)]
pub(super) struct RemovedLog {
    path: PathBuf,
}

impl RemovedLog {
    /// The file of the store at a path.
    pub(super) fn beside(store: &Path) -> Self {
        Self {
            path: beside(store, SUFFIX),
        }
    }

    /// Remembers removals that are durable in the store. A fault is told, since a backup may bring
    /// back what it names.
    pub(super) fn append(&self, removed: &[Removed]) {
        if let Err(error) = self.appended(removed) {
            tracing::error!(
                "Cannot write {}: a backup that is restored later brings back what was removed now: {error}",
                self.path.display()
            );
        }
    }

    fn appended(&self, removed: &[Removed]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(0o600);
        let mut file = options.open(&self.path)?;
        // A line break first ends a line that a crash has cut.
        let lines: String = removed
            .iter()
            .map(|removed| {
                let text = removed.to_string();
                format!("{text} {:08x}\n", crc32fast::hash(text.as_bytes()))
            })
            .collect();
        let cut = if ends_within_a_line(&self.path)? {
            "\n"
        } else {
            ""
        };
        file.write_all(format!("{cut}{lines}").as_bytes())?;
        file.sync_all()
    }

    /// All removals that were remembered. Lines that are damaged are counted and told.
    pub(super) fn read(&self) -> Vec<Removed> {
        let mut bytes = Vec::new();
        match File::open(&self.path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                tracing::error!(
                    "Cannot read {}: what was removed after the backup comes back with it: {error}",
                    self.path.display()
                );
                return Vec::new();
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter(|line| !line.is_empty());
        let (read, damaged): (Vec<_>, Vec<_>) = lines.map(of_line).partition(Option::is_some);
        if !damaged.is_empty() {
            tracing::error!(
                "{} lines of {} are damaged: what they name comes back with the backup",
                damaged.len(),
                self.path.display()
            );
        }
        read.into_iter().flatten().collect()
    }
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

fn of_line(line: &str) -> Option<Removed> {
    let (text, sum) = line.rsplit_once(' ')?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    let is_whole = crc32fast::hash(text.as_bytes()) == sum;
    is_whole.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_read_back_and_damage_costs_its_line_alone() {
        let folder = tempfile::tempdir().unwrap();
        let log = RemovedLog::beside(&folder.path().join("store.redb"));
        assert_eq!(log.read(), []);
        let all = [
            Removed::Feed(FeedNo(3)),
            Removed::Item(FeedNo(4), ItemId([7; 10])),
            Removed::User(UserNo(u64::MAX)),
            Removed::Token(TokenNo(1)),
        ];
        log.append(&all[..2]);
        log.append(&all[2..]);
        assert_eq!(log.read(), all);
        let whole = std::fs::read(&log.path).unwrap();
        let mut flipped = whole.clone();
        flipped[1] ^= 1;
        std::fs::write(&log.path, flipped).unwrap();
        assert_eq!(log.read(), all[1..]);
        // A crash in the middle of a line, and a removal after it.
        std::fs::write(&log.path, &whole[..whole.len() - 3]).unwrap();
        log.append(&[Removed::Feed(FeedNo(9))]);
        assert_eq!(
            log.read(),
            [&all[..3], &[Removed::Feed(FeedNo(9))]].concat()
        );
    }
}
