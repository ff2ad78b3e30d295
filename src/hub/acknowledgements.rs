//! Acknowledgements on their way to the store: those that come while others are written are written
//! together; not what is acknowledged.

use crate::{
    locks::lock,
    store::{Store, StoreError, subscriptions::Acknowledged},
};
use std::sync::{Arc, Mutex};
use tokio::sync::{Mutex as Turn, oneshot};

/// Acknowledgements in one transaction at most.
const TOGETHER_MAX: usize = 4096;

/// The end of an acknowledgement: true where the position has moved.
type Outcome = Result<bool, Arc<StoreError>>;

/// Acknowledgements that wait to be written, and those who write them.
pub(super) struct Acknowledgements {
    store: Arc<dyn Store>,
    waiting: Mutex<Vec<Waiting>>,
    /// Held by whoever writes for all.
    turn: Turn<()>,
}

struct Waiting {
    acknowledged: Acknowledged,
    tell: oneshot::Sender<Outcome>,
}

impl Acknowledgements {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            waiting: Mutex::default(),
            turn: Turn::default(),
        }
    }

    /// Moves a position in the store. Whoever comes first writes for all who wait by then.
    pub(super) async fn keep(&self, acknowledged: Acknowledged) -> Outcome {
        let (tell, mut told) = oneshot::channel();
        lock(&self.waiting).push(Waiting { acknowledged, tell });
        let _turn = tokio::select! {
            biased;
            outcome = &mut told => return outcome.unwrap_or_else(|_| Err(cut_off())),
            turn = self.turn.lock() => turn,
        };
        loop {
            match told.try_recv() {
                Ok(outcome) => return outcome,
                Err(oneshot::error::TryRecvError::Closed) => return Err(cut_off()),
                Err(oneshot::error::TryRecvError::Empty) => self.write().await,
            }
        }
    }

    /// Writes those who wait, in one transaction.
    async fn write(&self) {
        let batch: Vec<Waiting> = {
            let mut waiting = lock(&self.waiting);
            let count = waiting.len().min(TOGETHER_MAX);
            waiting.drain(..count).collect()
        };
        let acknowledged = batch.iter().map(|waiting| waiting.acknowledged.clone());
        match self.store.acknowledge(acknowledged.collect()).await {
            Ok(moved) => {
                for (waiting, moved) in batch.into_iter().zip(moved) {
                    // Nobody there to hear it: its task was cut off.
                    let _ = waiting.tell.send(Ok(moved));
                }
            }
            Err(error) => {
                let error = Arc::new(error);
                for waiting in batch {
                    let _ = waiting.tell.send(Err(error.clone()));
                }
            }
        }
    }
}

/// The end of an acknowledgement whose writer was cut off.
fn cut_off() -> Arc<StoreError> {
    Arc::new(StoreError::OutcomeUnknown("the hub is stopping".to_owned()))
}
