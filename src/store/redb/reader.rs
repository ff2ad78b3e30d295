//! Reading the file beside the tasks of the runtime: a bounded number of blocking reads, each in
//! one snapshot; not what is read.

use super::{guarded::sheltered, open_file::OpenFile};
use crate::store::StoreError;
use redb::{ReadTransaction, ReadableDatabase as _};
use std::sync::Arc;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    task::{block_in_place, spawn_blocking},
};

/// Reads at a time; more wait their turn. Above the number of cores, because a read may wait for
/// the disk.
const READS_MAX: u32 = 32;

/// Times that one read is done, when the storage fails in it.
const TRIES_MAX: usize = 2;

/// Reads snapshots until it is closed.
pub(super) struct Reader {
    file: Arc<OpenFile>,
    permits: Arc<Semaphore>,
}

impl Reader {
    pub(super) fn new(file: Arc<OpenFile>) -> Self {
        Self {
            file,
            permits: Arc::new(Semaphore::new(READS_MAX as usize)),
        }
    }

    /// Does this with a snapshot; once more in a file that was opened anew, when its storage
    /// failed.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&ReadTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let read = self.prepared(work).await?;
        if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
            // Another thread takes over the tasks of this one.
            return block_in_place(read);
        }
        let read = spawn_blocking(read).await;
        read.unwrap_or_else(|error| Err(StoreError::Failed(format!("a read ended early: {error}"))))
    }

    /// The same on this thread, for few rows. So nobody is woken on another one, and whoever is the
    /// first of thousands that a commit has woken reads at once, and not when all of them have been
    /// polled.
    pub(super) async fn run_in_place<T: Send + 'static>(
        &self,
        work: impl Fn(&ReadTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.prepared(work).await?()
    }

    /// The work with a place among the reads at a time.
    async fn prepared<T: Send + 'static>(
        &self,
        work: impl Fn(&ReadTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<impl FnOnce() -> Result<T, StoreError> + Send + 'static, StoreError> {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| StoreError::Closed)?;
        let file = Arc::clone(&self.file);
        Ok(move || {
            let answer = read(&file, &work);
            // Lets go of the file before it lets the next one in, so that `close` leaves nothing
            // behind.
            drop(file);
            drop(permit);
            answer
        })
    }

    /// Waits for the reads under way and lets go of the file.
    pub(super) async fn close(&self) {
        let last = self.permits.acquire_many(READS_MAX).await;
        self.permits.close();
        let file = Arc::clone(&self.file);
        drop(last);
        // Closing writes to the file. Nothing is lost when the runtime ends before.
        let _ = spawn_blocking(move || file.close()).await;
    }
}

fn read<T>(
    file: &OpenFile,
    work: &impl Fn(&ReadTransaction) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut cause = String::new();
    for _ in 0..TRIES_MAX {
        let open = file.readable()?;
        let answer = sheltered(|| work(&open.begin_read()?));
        let fault = open.fault().map(str::to_owned);
        let generation = open.generation();
        drop(open);
        match (answer, fault) {
            (Err(_), Some(fault)) => {
                file.read_failed(generation, &fault);
                cause = fault;
            }
            (answer, _) => return answer,
        }
    }
    Err(StoreError::Away(cause))
}
