//! The component of an everfeed that was built without XMPP: there is none.

use super::{
    config::Config,
    parts::{ConnectionState, EndedSubscription, Parts, SubscriptionState},
};
use crate::{feed::record::FeedNo, setting::RefusedSetting, store::StoreError};
use std::{collections::HashMap, io, sync::Arc};
use tokio_util::sync::CancellationToken;

/// None: no file is read.
pub fn problem_with_files(_: &Config) -> Option<RefusedSetting> {
    None
}

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

    /// State of a subscription.
    pub fn subscription(&self, _: u64) -> Option<SubscriptionState> {
        match *self {}
    }

    /// Tries a subscription now.
    pub fn retry(&self, _: u64) -> bool {
        match *self {}
    }

    /// Ends a subscription.
    pub async fn end(&self, _: u64) -> Result<Option<EndedSubscription>, StoreError> {
        match *self {}
    }

    /// Removes the subscriptions of a domain.
    pub async fn forget(&self, _: &str) -> Result<usize, StoreError> {
        match *self {}
    }

    /// Serves until `stop`.
    pub async fn run(self: Arc<Self>, _: CancellationToken) {
        match *self {}
    }
}
