//! Reading the file off the runtime: a bounded number of blocking reads, each in one snapshot; not what is read.

use crate::store::StoreError;
use redb::{Database, ReadTransaction, ReadableDatabase};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

/// Reads at a time; more wait their turn. Above the number of cores, because a read may wait for the disk.
const READS_MAX: u32 = 32;

/// Reads snapshots until it is closed.
pub(super) struct Reader {
    database: Mutex<Option<Arc<Database>>>,
    permits: Arc<Semaphore>,
}

impl Reader {
    pub(super) fn new(database: Arc<Database>) -> Self {
        let permits = Arc::new(Semaphore::new(READS_MAX as usize));
        Self { database: Mutex::new(Some(database)), permits }
    }

    /// Does this with a snapshot.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let database = self.held().clone().ok_or(StoreError::Closed)?;
        let read = spawn_blocking(move || read(database, permit, work));
        read.await.unwrap_or_else(|error| Err(StoreError::Failed(format!("a read ended early: {error}"))))
    }

    /// Waits for the reads under way and lets go of the file.
    pub(super) async fn close(&self) {
        let last = self.permits.acquire_many(READS_MAX).await;
        self.permits.close();
        let database = self.held().take();
        drop(last);
        // Closing writes to the file. Nothing is lost when the runtime ends before.
        let _ = spawn_blocking(move || drop(database)).await;
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Arc<Database>>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of the file before it lets the next one in, so that `close` leaves nothing behind.
fn read<T>(
    database: Arc<Database>,
    permit: OwnedSemaphorePermit,
    work: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let answer = database.begin_read().map_err(StoreError::from).and_then(|snapshot| work(&snapshot));
    drop(database);
    drop(permit);
    answer
}
