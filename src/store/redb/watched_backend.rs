//! A file or another storage of redb whose first fault is kept: redb fails every later call after one, and says only that
//! there was one.

use redb::{BackendError, StorageBackend};
use std::{
    io,
    ops::Bound,
    sync::{Arc, OnceLock},
};

/// The first fault of a storage.
#[derive(Debug, Default)]
pub(super) struct IoFault(OnceLock<String>);

impl IoFault {
    /// The fault, for the operator.
    pub(super) fn cause(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// A storage that keeps its first fault.
#[derive(Debug)]
pub(super) struct WatchedBackend<B> {
    inner: B,
    fault: Arc<IoFault>,
}

impl<B: StorageBackend> WatchedBackend<B> {
    pub(super) fn new(inner: B) -> (Self, Arc<IoFault>) {
        let fault = Arc::<IoFault>::default();
        (Self { inner, fault: Arc::clone(&fault) }, fault)
    }

    fn noted<T>(&self, doing: &str, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            let _ = self.fault.0.set(format!("{doing} failed: {error}{}", advice(error)));
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
        self.noted("changing its length", self.inner.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.noted("writing", self.inner.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.noted("writing", self.inner.write(offset, data))
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
