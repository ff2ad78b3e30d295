//! A file or another storage of redb whose first fault is kept: redb fails every later call after
//! one, and says only that there was one. A file that somebody else has cut or written into is a
//! fault, too: redb would go on with what it remembers of it, and mix that with what is there.

use crate::locks::lock;
use redb::{BackendError, StorageBackend};
use std::{
    fs::File,
    io::{self, Read as _},
    ops::Bound,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};

/// Bytes at the beginning of a file of redb that every commit changes: its header.
const HEAD_BYTES: usize = 320;

/// Facts of an open storage: its first fault, and what was written into it here.
#[derive(Debug, Default)]
pub(super) struct StorageWatch {
    fault: OnceLock<String>,
    content: Mutex<KnownContent>,
}

/// The content of a storage by what was done with it here, as far as it is noted.
#[derive(Debug, Default)]
struct KnownContent {
    /// True after a change that failed: a part of it may be there, and the system may have dropped
    /// what was written before. Then nothing tells it from what somebody else has done, until the
    /// storage is opened anew.
    is_unsure: bool,
    /// Its length.
    bytes: u64,
    /// Its beginning, [`HEAD_BYTES`] at most.
    head: Vec<u8>,
    /// True once it was found to be otherwise. That stays: what is there now is not what is
    /// remembered elsewhere.
    is_altered: bool,
}

impl StorageWatch {
    /// The fault, for the operator.
    pub(super) fn cause(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }

    fn content(&self) -> MutexGuard<'_, KnownContent> {
        lock(&self.content)
    }

    /// True when what is there is not what was left here. What cannot be read now says nothing.
    pub(super) fn is_altered(&self, there: &(impl StoredBytes + ?Sized)) -> bool {
        self.content().is_altered(there)
    }
}

impl KnownContent {
    fn is_altered(&mut self, there: &(impl StoredBytes + ?Sized)) -> bool {
        if self.is_unsure {
            return self.is_altered;
        }
        let mut head = vec![0; self.head.len()];
        let is_cut = there.bytes().is_ok_and(|bytes| bytes < self.bytes);
        self.is_altered |= is_cut || (there.head(&mut head).is_ok() && head != self.head);
        self.is_altered
    }

    /// Takes note of what was written.
    fn written(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        self.resize(self.bytes.max(end));
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(kept) = self.head.get_mut(at..) {
            let both = kept.len().min(data.len());
            kept[..both].copy_from_slice(&data[..both]);
        }
    }

    fn resize(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.head.resize(
            usize::try_from(bytes).unwrap_or(usize::MAX).min(HEAD_BYTES),
            0,
        );
    }
}

/// Anything that tells what is in a file now.
pub(super) trait StoredBytes {
    /// Its length.
    fn bytes(&self) -> io::Result<u64>;
    /// Reads its beginning.
    fn head(&self, out: &mut [u8]) -> io::Result<()>;
}

impl StoredBytes for Path {
    fn bytes(&self) -> io::Result<u64> {
        Ok(std::fs::metadata(self)?.len())
    }

    fn head(&self, out: &mut [u8]) -> io::Result<()> {
        File::open(self)?.read_exact(out)
    }
}

/// A storage of redb, as it is looked at.
struct Inner<'b, B>(&'b B);

impl<B: StorageBackend> StoredBytes for Inner<'_, B> {
    fn bytes(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn head(&self, out: &mut [u8]) -> io::Result<()> {
        self.0.read(0, out)
    }
}

/// A storage that keeps its first fault.
#[derive(Debug)]
pub(super) struct WatchedBackend<B> {
    inner: B,
    watch: Arc<StorageWatch>,
}

impl<B: StorageBackend> WatchedBackend<B> {
    /// The storage, as it is now. One that cannot be read fails at the first read.
    pub(super) fn new(inner: B) -> (Self, Arc<StorageWatch>) {
        let mut content = KnownContent::default();
        content.resize(inner.len().unwrap_or_default());
        let _ = inner.read(0, &mut content.head);
        let watch = Arc::new(StorageWatch {
            content: Mutex::new(content),
            ..StorageWatch::default()
        });
        (
            Self {
                inner,
                watch: Arc::clone(&watch),
            },
            watch,
        )
    }

    /// Changes the storage, unless somebody else has.
    fn change(
        &self,
        change: impl FnOnce(&B) -> io::Result<()>,
        note: impl FnOnce(&mut KnownContent),
    ) -> io::Result<()> {
        // Held, so that a look at the file meanwhile finds it as it is noted.
        let mut content = self.watch.content();
        if content.is_altered(&Inner(&self.inner)) {
            return Err(io::Error::other(
                "somebody else has cut or overwritten the file",
            ));
        }
        let done = change(&self.inner);
        match done {
            Ok(()) => note(&mut content),
            Err(_) => content.is_unsure = true,
        }
        done
    }

    fn noted<T>(&self, doing: &str, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            let _ = self
                .watch
                .fault
                .set(format!("{doing} failed: {error}{}", advice(error)));
        }
        result
    }
}

/// Step of the operator that ends the fault, where one is known.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room on its disk",
        io::ErrorKind::ReadOnlyFilesystem => "; mount its disk for writing",
        io::ErrorKind::UnexpectedEof => {
            "; the file is shorter than it was, restore it from a backup"
        }
        // Of the system, and not of ours.
        _ if error.raw_os_error().is_some() => {
            "; the disk or its file system fails, look into the system's log"
        }
        _ => "",
    }
}

impl<B: StorageBackend> StorageBackend for WatchedBackend<B> {
    fn len(&self) -> io::Result<u64> {
        self.noted("reading its length", self.inner.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.noted("reading", self.inner.read(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let done = self.change(|inner| inner.set_len(len), |content| content.resize(len));
        self.noted("changing its length", done)
    }

    fn sync_data(&self) -> io::Result<()> {
        let done = self.inner.sync_data();
        if done.is_err() {
            // What was written since the last time may be there or not: the system forgets what it
            // could not write.
            self.watch.content().is_unsure = true;
        }
        self.noted("making what was written durable (fsync)", done)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let done = self.change(
            |inner| inner.write(offset, data),
            |content| content.written(offset, data),
        );
        self.noted("writing", done)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}
