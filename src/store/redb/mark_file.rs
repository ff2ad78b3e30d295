//! The file with the high-water mark beside a store: two copies with a checksum each, written by
//! turns in place. Not what the mark means.

use crate::{
    locks::lock,
    store::{content_mark::ContentMark, stored},
};
use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Mutex,
};

// Limit: a snapshot that takes the store and its mark back together goes unnoticed.
/// End of the name of the file beside a store.
const SUFFIX: &str = ".mark";

/// The first bytes of a copy.
const MAGIC: &[u8; 8] = b"everfeed";

/// Bytes from one copy to the other: no page of a disk holds both.
const SLOT_BYTES: u64 = 4096;

/// Bytes of a mark at most, as it is stored.
const MARK_BYTES_MAX: usize = 64;

/// The file beside a store whose name ends so.
pub(super) fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    store.with_file_name(name)
}

/// Content of a mark file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FoundMark {
    /// There is none: the store is new, was moved here, or is of an older everfeed.
    Missing,
    /// Neither copy can be read, for this reason.
    Damaged(String),
    /// The later copy.
    Read(ContentMark),
}

/// The file beside a store.
#[derive(Debug)]
pub(super) struct MarkFile {
    path: PathBuf,
    /// `None` until the first mark is written, and after a fault.
    open: Mutex<Option<File>>,
    /// True once a fault was told.
    is_told: Mutex<bool>,
}

impl MarkFile {
    /// The mark file of the store at a path.
    pub(super) fn beside(store: &Path) -> Self {
        Self {
            path: beside(store, SUFFIX),
            open: Mutex::default(),
            is_told: Mutex::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it.
    pub(super) fn read(&self) -> FoundMark {
        let mut bytes = Vec::new();
        let limit = 2 * SLOT_BYTES;
        match File::open(&self.path).and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return FoundMark::Missing,
            Err(error) => return FoundMark::Damaged(error.to_string()),
        }
        let slots = bytes.chunks(SLOT_BYTES as usize).map(of_slot);
        let latest = slots.flatten().max_by_key(|mark| mark.commits);
        latest.map_or_else(
            || FoundMark::Damaged("neither of its two copies is whole".into()),
            FoundMark::Read,
        )
    }

    /// Writes a mark over the older copy. It is not made durable: a mark behind the store is
    /// normal. A fault is told once, and loses nothing but this safeguard.
    pub(super) fn write(&self, mark: &ContentMark) {
        if let Err(error) = self.written(mark) {
            lock(&self.open).take();
            let mut is_told = lock(&self.is_told);
            if !*is_told {
                *is_told = true;
                tracing::warn!(
                    "Cannot write {}: a store that is replaced by an older copy may not be noticed: {error}",
                    self.path.display()
                );
            }
        } else {
            *lock(&self.is_told) = false;
        }
    }

    /// Writes both copies, after which no older mark is left.
    pub(super) fn write_both(&self, mark: &ContentMark) {
        self.write(mark);
        if let Some(file) = &*lock(&self.open) {
            let both = slot(mark).and_then(|slot| {
                file.write_all_at(&slot, 0)?;
                file.write_all_at(&slot, SLOT_BYTES)?;
                file.sync_all()
            });
            if let Err(error) = both {
                tracing::warn!("Cannot write {}: {error}", self.path.display());
            }
        }
    }

    fn written(&self, mark: &ContentMark) -> io::Result<()> {
        let mut open = lock(&self.open);
        let file = match &mut *open {
            Some(file) => file,
            none => {
                let mut options = OpenOptions::new();
                // Only its owner may read it, as the store itself.
                let options = options.write(true).create(true).truncate(false).mode(0o600);
                none.insert(options.open(&self.path)?)
            }
        };
        file.write_all_at(&slot(mark)?, mark.commits % 2 * SLOT_BYTES)
    }
}

/// A copy: magic, length, mark, checksum over all of them.
fn slot(mark: &ContentMark) -> io::Result<Vec<u8>> {
    let stored = stored::encode(mark).map_err(io::Error::other)?;
    let length = u8::try_from(stored.len()).map_err(io::Error::other)?;
    let mut slot = [&MAGIC[..], &[length], &stored].concat();
    slot.extend(crc32fast::hash(&slot).to_be_bytes());
    Ok(slot)
}

/// The mark of a copy; `None` for one that is not whole.
fn of_slot(slot: &[u8]) -> Option<ContentMark> {
    let rest = slot.strip_prefix(MAGIC)?;
    let (length, rest) = rest.split_first()?;
    let length = usize::from(*length);
    if length > MARK_BYTES_MAX {
        return None;
    }
    let (mark, rest) = rest.split_at_checked(length)?;
    let sum = u32::from_be_bytes(*rest.first_chunk()?);
    let summed = &slot[..MAGIC.len() + 1 + length];
    if crc32fast::hash(summed) != sum {
        return None;
    }
    stored::decode("the mark of the store", mark).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::stamp::Stamp;

    fn mark(commits: u64) -> ContentMark {
        ContentMark {
            store: 9,
            commits,
            last_t: Stamp::from_secs(commits),
            generation: Stamp::ZERO,
        }
    }

    fn written(commits: std::ops::RangeInclusive<u64>) -> (tempfile::TempDir, MarkFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = MarkFile::beside(&folder.path().join("everfeed.redb"));
        assert_eq!(file.read(), FoundMark::Missing);
        commits.for_each(|commits| file.write(&mark(commits)));
        (folder, file)
    }

    #[test]
    fn the_later_copy_counts_and_a_torn_one_leaves_the_other() {
        let (_folder, file) = written(1..=5);
        assert_eq!(file.read(), FoundMark::Read(mark(5)));
        let whole = std::fs::read(file.path()).unwrap();
        // Every bit of the later copy, and every place at which its writing may end.
        let later = SLOT_BYTES as usize;
        let end = whole.len();
        for at in later..end {
            for bit in 0..8 {
                let mut torn = whole.clone();
                torn[at] ^= 1 << bit;
                std::fs::write(file.path(), torn).unwrap();
                assert_eq!(file.read(), FoundMark::Read(mark(4)), "bit {bit} of {at}");
            }
            std::fs::write(file.path(), &whole[..at]).unwrap();
            assert_eq!(file.read(), FoundMark::Read(mark(4)), "cut at {at}");
        }
    }

    #[test]
    fn a_file_without_a_whole_copy_is_damaged_and_written_anew() {
        let (_folder, file) = written(1..=1);
        for bytes in [&b""[..], b"everfeed", &[0xff; 9000], b"somebody else's"] {
            std::fs::write(file.path(), bytes).unwrap();
            assert!(matches!(file.read(), FoundMark::Damaged(_)), "{bytes:?}");
        }
        file.write_both(&mark(7));
        assert_eq!(file.read(), FoundMark::Read(mark(7)));
    }

    #[test]
    fn what_cannot_be_written_is_no_fault_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let file = MarkFile::beside(&folder.path().join("absent/everfeed.redb"));
        file.write(&mark(1));
        assert_eq!(file.read(), FoundMark::Missing);
    }
}
