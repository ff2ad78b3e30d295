//! everfeed as a subscriber: of the hubs (WebSub, PubSubHubbub) and the clouds (rssCloud) that the
//! polled feeds name. A push is a hint to poll, and a document of a hub that has proven itself is
//! taken in besides. Not our own hub, and not what a push changes.

use crate::{
    catalog::{Catalog, RegisteredFeed, settings::DocumentFormat},
    clock::Clock,
    feed::{
        pushed_feed::{CallbackRoot, PushPath, PushStanding, PushedFeed},
        record::FeedNo,
        stamp::Stamp,
    },
    layers::{FetchError, Request, is_near},
    locks::lock,
    notify::Notify,
    secret::Secret,
    store::{Store, StoreError, listing},
    telemetry::Metrics,
};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::{HeaderValue, Response};
use pushed_documents::PushedDocuments;
use serde::{Deserialize, Serialize};
use service_rows::ServiceRows;
use std::{
    fmt,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify as Bell;
use tower::util::BoxCloneSyncService;
use url::Url;

mod callback;
mod for_poller;
mod push_signature;
mod pushed_documents;
mod ready_requests;
mod service_rows;
mod worker;

#[cfg(test)]
mod tests;

/// `[push]`: whether feeds are pushed to us.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// True to subscribe at the hubs and clouds that feeds name. Where it is absent: true if
    /// `server.public_url` is an https URL on the internet.
    pub subscribe: Option<bool>,
    /// True to ask hubs and clouds at loopback and private addresses, too, and at any port.
    pub hubs_private: bool,
}

impl Config {
    // Decides: Does everfeed subscribe at hubs?
    /// True where hubs are asked to call back below this URL.
    pub fn is_on(&self, public_url: &Url) -> bool {
        let is_reached = public_url.scheme() == "https" && !is_near(public_url);
        self.subscribe.unwrap_or(is_reached)
    }
}

/// Service for requests to hubs and clouds: guarded addresses, a pace for each host, bounded answers.
pub type HubClient = BoxCloneSyncService<Request, Response<Bytes>, FetchError>;

/// True for a URL at which this everfeed answers itself.
pub type IsOwnUrl = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The parts of a subscriber.
pub struct Parts {
    /// `[push]`.
    pub config: Config,
    /// The URL of callbacks before their tokens, with a slash at its end.
    pub callbacks: Url,
    /// The store.
    pub store: Arc<dyn Store>,
    /// The way of hints.
    pub notify: Arc<Notify>,
    /// The feeds that are polled.
    pub catalog: Catalog,
    /// Source of the time.
    pub clock: Arc<dyn Clock>,
    /// The way to hubs.
    pub client: HubClient,
    /// The name by which hubs are asked.
    pub user_agent: HeaderValue,
    /// The places that are no hubs.
    pub is_own: IsOwnUrl,
    /// Counters.
    pub metrics: Metrics,
}

/// Subscribes at hubs and clouds, and takes what they push. Cheap to clone; one of the clones runs.
#[derive(Clone)]
pub struct Subscriber(Arc<Shared>);

/// What every clone has.
struct Shared {
    parts: Parts,
    rows: Mutex<ServiceRows>,
    documents: Mutex<PushedDocuments>,
    /// Held by the write under way, so that the last state of a row is written last.
    turn: tokio::sync::Mutex<()>,
    /// Wakes the worker.
    bell: Bell,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").finish_non_exhaustive()
    }
}

impl Subscriber {
    /// Takes up what is kept of every feed. From then on the poller is told what is pushed.
    pub async fn open(parts: Parts) -> Result<Self, StoreError> {
        let mut rows = ServiceRows::default();
        let mut kept = listing::pushed_feeds(&*parts.store);
        let now = Stamp::from_micros(parts.clock.now_us());
        let root = CallbackRoot {
            url: &parts.callbacks,
        };
        while let Some((feed, row)) = kept.try_next().await? {
            rows.put(feed, row);
            rows.change(feed, |row| row.move_to(root, now));
        }
        drop(kept);
        let shared = Arc::new(Shared {
            parts,
            rows: Mutex::new(rows),
            documents: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            bell: Bell::new(),
        });
        shared.parts.notify.be_pushed(shared.clone());
        Ok(Self(shared))
    }

    /// The standing of push for a feed.
    pub fn standing(&self, feed: FeedNo) -> Option<PushStanding> {
        let now = self.0.now();
        lock(&self.0.rows).row(feed)?.standing(now)
    }
}

impl Shared {
    fn now(&self) -> Stamp {
        Stamp::from_micros(self.parts.clock.now_us())
    }

    /// Changes the row of a feed in memory. The worker writes it later.
    fn change<T>(&self, feed: FeedNo, change: impl FnOnce(&mut PushedFeed) -> T) -> T {
        let result = lock(&self.rows).change(feed, change);
        self.bell.notify_one();
        result
    }

    /// Writes the row of a feed as it is now, if it has changed.
    async fn write(&self, feed: FeedNo) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        let Some(row) = lock(&self.rows).take_unwritten(feed) else {
            return Ok(());
        };
        let written = self.parts.store.keep_pushed_feed(feed, row).await;
        match written {
            // It was forgotten meanwhile.
            Err(StoreError::UnknownFeed(_)) => {
                lock(&self.rows).remove(feed);
                Ok(())
            }
            Err(error) => {
                lock(&self.rows).not_written(feed);
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }
}

// Decides: For which feeds does everfeed subscribe at hubs?
/// True for a feed whose news may be pushed: one of a site is before us, a resource is no feed, and
/// what needs credentials no hub may read.
fn may_be_pushed(feed: &RegisteredFeed) -> bool {
    let settings = &feed.settings;
    let is_bare = settings.url.username().is_empty() && settings.url.password().is_none();
    !feed.is_group()
        && is_bare
        && settings.legacy.is_none()
        && settings.format == DocumentFormat::Auto
}

/// Bytes of a token: 128 bits, which nobody guesses.
const TOKEN_BYTES: usize = 16;
/// Bytes of a secret.
const SECRET_BYTES: usize = 32;

/// A path that nobody can guess, and a secret.
fn fresh_path() -> PushPath {
    let (token, secret): ([u8; TOKEN_BYTES], [u8; SECRET_BYTES]) = rand::random();
    PushPath {
        token: Secret::new(hex::encode(token)),
        secret: Some(Secret::new(hex::encode(secret))),
    }
}
