//! A file or another storage of redb whose first fault is kept: redb fails every later call after one, and says only that
//! there was one. A file that somebody else cut is a fault, too: redb would go on with what it remembers of it, and its next
//! write would make a hole where the rest was.

use redb::{BackendError, StorageBackend};
use std::{
    io,
    ops::Bound,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// What is known of an open storage: its first fault, and its length.
#[derive(Debug, Default)]
pub(super) struct StorageWatch {
    fault: OnceLock<String>,
    /// Length in bytes that it has by what was done with it here.
    bytes: AtomicU64,
}

impl StorageWatch {
    /// The fault, for the operator.
    pub(super) fn cause(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }

    /// True when its file is shorter than what was done with it here can have left, by a measurement of its length.
    pub(super) fn is_cut(&self, measured_bytes: impl FnOnce() -> u64) -> bool {
        // It may be made longer or shorter meanwhile; then either of the two is the length that it should have.
        let before = self.bytes.load(Ordering::SeqCst);
        let found = measured_bytes();
        found < before.min(self.bytes.load(Ordering::SeqCst))
    }
}

/// A storage that keeps its first fault.
#[derive(Debug)]
pub(super) struct WatchedBackend<B> {
    inner: B,
    watch: Arc<StorageWatch>,
}

impl<B: StorageBackend> WatchedBackend<B> {
    /// The storage, as long as it is now. One whose length cannot be read fails at the first read.
    pub(super) fn new(inner: B) -> (Self, Arc<StorageWatch>) {
        let bytes = AtomicU64::new(inner.len().unwrap_or_default());
        let watch = Arc::new(StorageWatch { bytes, ..StorageWatch::default() });
        (Self { inner, watch: Arc::clone(&watch) }, watch)
    }

    /// Refuses to write into a file that was cut.
    fn check_whole(&self) -> io::Result<()> {
        if self.inner.len()? < self.watch.bytes.load(Ordering::SeqCst) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "somebody has cut the file"));
        }
        Ok(())
    }

    fn noted<T>(&self, doing: &str, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            let _ = self.watch.fault.set(format!("{doing} failed: {error}{}", advice(error)));
        }
        result
    }
}

/// Step of the operator that ends the fault, where one is known.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room on its disk",
        io::ErrorKind::ReadOnlyFilesystem => "; mount its disk for writing",
        io::ErrorKind::UnexpectedEof => "; the file is shorter than it was, restore it from a backup",
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
        // A look at the file meanwhile finds the shorter of the two.
        self.watch.bytes.fetch_min(len, Ordering::SeqCst);
        let done = self.inner.set_len(len);
        if done.is_ok() {
            self.watch.bytes.store(len, Ordering::SeqCst);
        }
        self.noted("changing its length", done)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.noted("writing", self.inner.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let done = self.check_whole().and_then(|()| self.inner.write(offset, data));
        if done.is_ok() {
            self.watch.bytes.fetch_max(offset + data.len() as u64, Ordering::SeqCst);
        }
        self.noted("writing", done)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
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
