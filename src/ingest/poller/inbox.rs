//! The way of what others ask for to the worker; not what they ask.

use crate::locks::lock;
use std::sync::Mutex;
use tokio::sync::mpsc;

/// A bounded queue with an end for the worker.
pub(super) struct Inbox<T> {
    sender: mpsc::Sender<T>,
    receiver: Mutex<Option<mpsc::Receiver<T>>>,
}

impl<T> Inbox<T> {
    /// A queue in which so many wait at most.
    pub(super) fn new(max: usize) -> Self {
        let (sender, receiver) = mpsc::channel(max);
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }

    /// True when there was room.
    pub(super) fn put(&self, asked: T) -> bool {
        self.sender.try_send(asked).is_ok()
    }

    /// Takes the end that the worker has. A second worker gets one to which nobody sends.
    pub(super) fn take(&self) -> mpsc::Receiver<T> {
        let held = lock(&self.receiver).take();
        held.unwrap_or_else(|| mpsc::channel(1).1)
    }
}
