//! A file whose changes stay in memory: redb may mend what it wants in it, and nothing is written
//! to the disk.

use crate::locks::lock;
use redb::{BackendError, StorageBackend, backends::FileBackend};
use std::{
    collections::BTreeMap,
    io,
    ops::Bound,
    sync::{Mutex, MutexGuard},
};

/// Bytes that are kept in memory as one when a part of them is written.
const BLOCK_BYTES: u64 = 4096;

/// A file and the changes made to it.
#[derive(Debug)]
pub(super) struct Overlay {
    file: FileBackend,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    len: u64,
    /// Bytes of the file that count: it was cut below its own length and may have grown again.
    file_len: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    pub(super) fn new(file: FileBackend) -> io::Result<Self> {
        let len = file.len()?;
        Ok(Self {
            file,
            changes: Mutex::new(Changes {
                len,
                file_len: len,
                blocks: BTreeMap::new(),
            }),
        })
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        lock(&self.changes)
    }

    /// The bytes of a block as they are now.
    fn block(&self, changes: &Changes, no: u64) -> io::Result<Vec<u8>> {
        if let Some(block) = changes.blocks.get(&no) {
            return Ok(block.clone());
        }
        let mut block = vec![0; BLOCK_BYTES as usize];
        let at = no * BLOCK_BYTES;
        let there = changes.file_len.saturating_sub(at).min(BLOCK_BYTES) as usize;
        if there > 0 {
            self.file.read(at, &mut block[..there])?;
        }
        Ok(block)
    }
}

/// The parts of a stretch of bytes by block: number of the block, place in it, bytes.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len as u64;
    (offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)).map(move |no| {
        let from = offset.max(no * BLOCK_BYTES);
        let to = end.min((no + 1) * BLOCK_BYTES);
        (no, (from - no * BLOCK_BYTES) as usize, (to - from) as usize)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = self.changes();
        if offset
            .checked_add(out.len() as u64)
            .is_none_or(|end| end > changes.len)
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        for (no, at, len) in parts(offset, out.len()) {
            let block = self.block(&changes, no)?;
            out[done..done + len].copy_from_slice(&block[at..at + len]);
            done += len;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changes = self.changes();
        // The rest of the last block must not come back when the file grows again.
        if let Some(last) = changes.blocks.get_mut(&(len / BLOCK_BYTES)) {
            last[(len % BLOCK_BYTES) as usize..].fill(0);
        }
        changes.len = len;
        changes.file_len = changes.file_len.min(len);
        changes.blocks.split_off(&len.div_ceil(BLOCK_BYTES));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changes = self.changes();
        let mut done = 0;
        for (no, at, len) in parts(offset, data.len()) {
            let mut block = self.block(&changes, no)?;
            block[at..at + len].copy_from_slice(&data[done..done + len]);
            changes.blocks.insert(no, block);
            done += len;
        }
        changes.len = changes.len.max(offset + data.len() as u64);
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        // Nobody is kept from reading, since nothing is written; and a file that may only be read
        // takes no other lock.
        self.file.try_lock_shared_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn what_is_written_is_read_and_the_file_stays_as_it_was() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 10_000]).unwrap();
        let overlay = Overlay::new(FileBackend::new(file.reopen().unwrap()).unwrap()).unwrap();
        overlay.write(4090, &[1; 10]).unwrap();
        let mut out = [0; 14];
        overlay.read(4088, &mut out).unwrap();
        assert_eq!(out, [7, 7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7, 7]);
        overlay.set_len(5000).unwrap();
        assert!(overlay.read(4999, &mut out).is_err());
        overlay.set_len(20_000).unwrap();
        overlay.read(4999, &mut out).unwrap();
        assert_eq!(
            out,
            [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            "what was cut off does not come back"
        );
        assert_eq!(std::fs::read(file.path()).unwrap(), [7; 10_000]);
    }
}
