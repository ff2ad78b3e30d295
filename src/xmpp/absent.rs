//! The component of an everfeed that was built without XMPP: there is none.

use super::parts::{ConnectionState, Parts};
use crate::feed::record::FeedNo;
use std::{collections::HashMap, io, sync::Arc};
use tokio_util::sync::CancellationToken;

/// A component that cannot be there.
pub enum Component {}

impl Component {
    /// None: a configuration that asks for one is refused before.
    pub fn new(_: Parts) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// The address of the component.
    pub fn jid(&self) -> &str {
        match *self {}
    }

    /// State of the connection.
    pub fn state(&self) -> ConnectionState {
        match *self {}
    }

    /// The number of subscriptions of each feed that has any.
    pub fn counts(&self) -> HashMap<FeedNo, usize> {
        match *self {}
    }

    /// Serves until `stop`.
    pub async fn run(self: Arc<Self>, _: CancellationToken) {
        match *self {}
    }
}
