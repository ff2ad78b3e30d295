//! Push from upstream as it stands for one feed: the services that the feed names, what was asked of
//! them, and what came of it. Pure: the requests and the callbacks are elsewhere.

use super::stamp::Stamp;
use crate::secret::Secret;

mod link_header;
mod named_push;
mod push_tally;
mod upstream_cloud;
mod upstream_hub;

pub use link_header::links_with;
pub use named_push::{CloudAddress, NAMED_HUBS_MAX, NamedPush};
pub use push_tally::{PushTally, PushedBy};
pub use upstream_cloud::UpstreamCloud;
pub use upstream_hub::{HubMode, PushAsked, PushLease, UpstreamHub, Verified};

#[cfg(test)]
mod tests;

/// Push from upstream for a feed. Kept in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushedFeed {
    /// The services that its last document named.
    pub named: NamedPush,
    /// The hubs that were asked, and those that are being left.
    pub hubs: Vec<UpstreamHub>,
    /// The cloud that was asked.
    pub cloud: Option<UpstreamCloud>,
    /// Pushes that came, and news that none told of.
    pub tally: PushTally,
    /// The URL of callbacks before their tokens, as it was when something was asked last.
    pub root: Option<String>,
}

/// The path of a callback, and the secret by which its pushes are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushPath {
    /// The last step of the path, which nobody can guess.
    pub token: Secret,
    /// The secret that the hub was given; `None` where it would have been sent in the clear.
    pub secret: Option<Secret>,
}

/// Where everfeed is called back.
#[derive(Clone, Copy, Debug)]
pub struct CallbackRoot<'a> {
    /// The URL before the token, with a slash at its end.
    pub url: &'a url::Url,
}

impl CallbackRoot<'_> {
    /// The URL of a callback.
    pub fn callback(self, path: &PushPath) -> String {
        format!("{}{}", self.url, path.token.reveal())
    }
}

/// A request that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueRequest {
    /// The address that is asked.
    pub url: String,
    /// The form that is sent.
    pub form: String,
    /// The service that is asked.
    pub to: PushService,
}

/// A service of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushService {
    /// A hub.
    Hub {
        /// Its URL.
        url: String,
        /// The topic that was asked for.
        topic: String,
    },
    /// The cloud.
    Cloud,
}

/// The answer to an errand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// The service took it.
    Taken,
    /// It refused, and says so again if it is asked again soon.
    Refused {
        /// In words.
        why: String,
    },
    /// It did not answer, or could not at the time.
    Failed {
        /// In words.
        why: String,
        /// Seconds after which it wants to be asked again.
        retry_after_secs: Option<u64>,
    },
    /// It was not asked, for a reason of ours.
    Postponed {
        /// Seconds until it may be.
        wait_secs: u64,
    },
}

/// The meaning of a request at a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushReception {
    /// A push of a service that was asked.
    Expected {
        /// The secret by which it must be signed; `None` where it cannot be.
        secret: Option<Secret>,
        /// True if the feed itself names the hub.
        is_named_by_feed: bool,
    },
    /// A push of a hub that was left.
    Left,
    /// Nothing that is known.
    Unknown,
}

/// A question that a service puts to a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackQuestion<'q> {
    /// Is this subscription meant?
    Verify {
        /// What was asked for.
        mode: HubMode,
        /// The topic, byte for byte.
        topic: &'q str,
        /// Seconds for which it holds; `None` where the hub does not say.
        lease_secs: Option<u64>,
    },
    /// There will be no subscription, or no more.
    Denied {
        /// The topic, if the hub names it.
        topic: Option<&'q str>,
        /// The reason, if it gives one.
        reason: Option<&'q str>,
    },
    /// Is this registration at a cloud meant?
    Register {
        /// The URL of the feed.
        url: &'q str,
    },
}

/// The standing of push for a feed, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushStanding {
    /// The address of the hub, or of the cloud.
    pub url: String,
    /// True for a cloud.
    pub is_cloud: bool,
    /// How far it has come.
    pub stage: PushStage,
    /// Since when it is subscribed.
    pub since: Option<Stamp>,
    /// Time of the last push.
    pub last_push: Option<Stamp>,
    /// Time of the next request to it.
    pub next_at: Stamp,
    /// The last failure or refusal, in words.
    pub why: Option<String>,
}

/// How far push has come for a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushStage {
    /// The service was asked, and has not confirmed.
    Asked,
    /// It does not do what it should, and is asked again.
    Failing,
    /// It has confirmed, and told of nothing yet.
    Subscribed,
    /// It tells of news.
    Working,
    /// It has not told of news several times, and is not relied on.
    Silent,
}

/// Seconds of the first wait after a failure; it doubles.
const FAILED_SECS: u64 = 300;
/// Seconds of the longest wait after failures.
const FAILED_SECS_MAX: u64 = 86_400;
/// Seconds of the first wait after a refusal; it doubles (UPSTREAM U-10).
const REFUSED_SECS: u64 = 86_400;
/// Seconds of the longest wait after refusals.
const REFUSED_SECS_MAX: u64 = 30 * 86_400;
/// Seconds of the longest wait that a service can ask for.
const RETRY_AFTER_SECS_MAX: u64 = 7 * 86_400;

/// Seconds to wait after so many ends of a kind in a row.
fn doubled(first_secs: u64, times: u32, max_secs: u64) -> u64 {
    let factor = 1_u64
        .checked_shl(times.saturating_sub(1))
        .unwrap_or(u64::MAX);
    first_secs.saturating_mul(factor).min(max_secs)
}

/// Time of the next try after so many failures in a row.
fn after_failure(failures: u32, retry_after_secs: Option<u64>, now: Stamp) -> Stamp {
    let asked_secs = retry_after_secs.unwrap_or(0).min(RETRY_AFTER_SECS_MAX);
    now.plus_secs(doubled(FAILED_SECS, failures, FAILED_SECS_MAX).max(asked_secs))
}

/// Time of the next try after so many refusals in a row.
fn after_refusal(refusals: u32, now: Stamp) -> Stamp {
    now.plus_secs(doubled(REFUSED_SECS, refusals, REFUSED_SECS_MAX))
}

impl PushedFeed {
    /// A feed that names these services.
    pub fn new(named: NamedPush, now: Stamp) -> Self {
        let mut new = Self::default();
        new.rename(named, now);
        new
    }

    // Decides: At which services does everfeed ask to be told of a feed?
    /// Takes in the services that a document names. Those that are new are asked at once; those that
    /// are not named any more are left, unless there is nothing to leave.
    pub fn rename(&mut self, named: NamedPush, now: Stamp) {
        for hub in &mut self.hubs {
            let is_named = named.hubs.contains(&hub.url) && named.topics.contains(&hub.topic);
            hub.name(is_named, now);
        }
        for url in &named.hubs {
            let is_known = |hub: &UpstreamHub| hub.url == *url && hub.is_named;
            if let (false, Some(topic)) = (self.hubs.iter().any(is_known), named.topics.first()) {
                self.hubs.push(UpstreamHub::new(url, topic, now));
            }
        }
        let is_same = |cloud: &UpstreamCloud| {
            Some(&cloud.address) == named.cloud.as_ref() && named.topics.contains(&cloud.url)
        };
        if !self.cloud.as_ref().is_some_and(is_same) {
            let url = named.topics.first().cloned();
            self.cloud = named
                .cloud
                .clone()
                .zip(url)
                .map(|(address, url)| UpstreamCloud::new(address, url, now));
        }
        if self.named.topics != named.topics {
            // News under another name are another subscription's to push.
            self.tally.begin_anew();
        }
        self.named = named;
        self.sweep(now);
    }

    /// Forgets what was asked below another root: nobody calls us back there any more.
    pub fn move_to(&mut self, root: CallbackRoot<'_>, now: Stamp) {
        if self
            .root
            .as_deref()
            .is_none_or(|held| held == root.url.as_str())
        {
            return;
        }
        let (named, hubs) = (self.named.clone(), std::mem::take(&mut self.hubs));
        let last_push = self.tally.last_push;
        *self = Self::default();
        self.tally.last_push = last_push;
        if hubs.iter().any(|hub| hub.is_named) || named.cloud.is_some() {
            self.rename(named, now);
        }
    }

    /// Leaves all services: the feed is not polled any more.
    pub fn leave(&mut self, now: Stamp) {
        self.rename(NamedPush::default(), now);
    }

    /// True when nothing of it needs to be kept.
    pub fn is_over(&self) -> bool {
        self.named == NamedPush::default() && self.hubs.is_empty() && self.cloud.is_none()
    }

    /// True while a cloud is worth asking: no hub of the feed does what it should.
    fn needs_cloud(&self) -> bool {
        let is_failing = |hub: &UpstreamHub| hub.lease.is_none() && hub.is_failing();
        let mut named = self.hubs.iter().filter(|hub| hub.is_named);
        named.all(is_failing)
    }

    /// Time at which something is to be done.
    pub fn next_at(&self) -> Stamp {
        let hubs = self.hubs.iter().map(UpstreamHub::next_at);
        let cloud = self.cloud.iter().filter(|_| self.needs_cloud());
        let cloud = cloud.map(|cloud| cloud.next_at);
        hubs.chain(cloud).min().unwrap_or(Stamp::MAX)
    }

    /// The address that is asked next, if a request is due.
    pub fn due_address(&self, now: Stamp) -> Option<String> {
        if let Some(hub) = self.hubs.iter().find(|hub| hub.next_at() <= now) {
            return Some(hub.url.clone());
        }
        let cloud = self.cloud.as_ref().filter(|cloud| cloud.next_at <= now);
        Some(cloud.filter(|_| self.needs_cloud())?.address.url())
    }

    /// The request that is due, if one is; it counts as sent. `fresh` makes paths that nobody can
    /// guess.
    pub fn errand(
        &mut self,
        root: CallbackRoot<'_>,
        now: Stamp,
        fresh: impl FnOnce() -> PushPath,
    ) -> Option<DueRequest> {
        self.sweep(now);
        self.root = Some(root.url.as_str().to_owned());
        let topics = &self.named.topics;
        let due = self.hubs.iter_mut().find(|hub| hub.next_at() <= now);
        if let Some(hub) = due {
            return hub.errand(topics, root, now, fresh);
        }
        let is_needed = self.needs_cloud();
        let cloud = self
            .cloud
            .as_mut()
            .filter(|cloud| is_needed && cloud.next_at <= now)?;
        Some(cloud.errand(root, now, fresh))
    }

    /// Takes in the end of an errand.
    pub fn ended(&mut self, to: &PushService, end: &RequestEnd, now: Stamp) {
        match to {
            PushService::Hub { url, topic } => {
                let is_it = |hub: &&mut UpstreamHub| hub.url == *url && hub.topic == *topic;
                if let Some(hub) = self.hubs.iter_mut().find(is_it) {
                    hub.ended(end, now);
                }
            }
            PushService::Cloud => {
                if let Some(cloud) = &mut self.cloud {
                    cloud.ended(end, now);
                }
            }
        }
    }

    /// Failures and refusals of a service in a row.
    pub fn failures(&self, of: &PushService) -> u32 {
        match of {
            PushService::Hub { url, topic } => {
                let mut hubs = self.hubs.iter();
                let hub = hubs.find(|hub| hub.url == *url && hub.topic == *topic);
                hub.map_or(0, |hub| hub.failures.saturating_add(hub.refusals))
            }
            PushService::Cloud => self.cloud.as_ref().map_or(0, |cloud| cloud.failures),
        }
    }

    // Decides: Which question at a callback is answered with a yes?
    /// Answers a question at the callback with this token; true for a yes.
    pub fn asked(&mut self, token: &str, question: &CallbackQuestion<'_>, now: Stamp) -> bool {
        match question {
            CallbackQuestion::Verify {
                mode,
                topic,
                lease_secs,
            } => {
                for hub in &mut self.hubs {
                    match hub.verify(token, *mode, topic, *lease_secs, now) {
                        Verified::New => {
                            self.tally.renewed(now);
                            return true;
                        }
                        Verified::Again => return true,
                        Verified::No => {}
                    }
                }
                false
            }
            CallbackQuestion::Denied { topic, reason } => {
                let mut hubs = self.hubs.iter_mut();
                hubs.any(|hub| hub.deny(token, *topic, *reason, now))
            }
            CallbackQuestion::Register { url } => {
                let cloud = self.cloud.as_ref();
                cloud.is_some_and(|cloud| cloud.is_meant(token, url))
            }
        }
    }

    /// The meaning of a push at the callback with this token.
    pub fn received(&self, token: &str, now: Stamp) -> PushReception {
        for hub in &self.hubs {
            match hub.received(token, now) {
                PushReception::Expected { secret, .. } => {
                    return PushReception::Expected {
                        secret,
                        is_named_by_feed: hub.is_named && !self.named.is_by_table,
                    };
                }
                PushReception::Left => return PushReception::Left,
                PushReception::Unknown => {}
            }
        }
        let is_of_cloud = |cloud: &UpstreamCloud| cloud.is_at(token);
        if self.cloud.as_ref().is_some_and(is_of_cloud) {
            return PushReception::Expected {
                secret: None,
                is_named_by_feed: false,
            };
        }
        PushReception::Unknown
    }

    /// The tokens of all callbacks that are answered.
    pub fn tokens(&self) -> impl Iterator<Item = &str> {
        let hubs = self.hubs.iter().flat_map(UpstreamHub::tokens);
        let cloud = self.cloud.iter().filter_map(UpstreamCloud::token);
        hubs.chain(cloud)
    }

    /// The service that is to tell of news now, and since when. A hub that is being left is none: its
    /// subscription is of a former URL of the feed, or of a former hub.
    pub fn pushed_by(&self, now: Stamp) -> Option<PushedBy<'_>> {
        let named = self.hubs.iter().filter(|hub| hub.is_named);
        let leases = named.filter_map(|hub| {
            let lease = hub.lease.as_ref().filter(|lease| lease.holds(now))?;
            Some(PushedBy::Hub(&hub.url, lease.since))
        });
        let cloud = self.cloud.iter().filter_map(|cloud| {
            let since = cloud.registered_since(now)?;
            Some(PushedBy::Cloud(&cloud.address.domain, since))
        });
        leases.chain(cloud).min_by_key(PushedBy::since)
    }

    // Decides: Does push from upstream work, so that a feed is polled less often?
    /// True while a service that is to tell of news has told some, and has not missed too many.
    pub fn works(&self, now: Stamp) -> bool {
        self.pushed_by(now).is_some() && self.tally.is_good(now)
    }

    /// Takes in that a poll found news, the poll before having been then.
    pub fn found_by_poll(&mut self, polled_before: Option<Stamp>, now: Stamp) {
        let since = self.pushed_by(now).map(|by| by.since());
        let covers = |since: Stamp| polled_before.is_some_and(|before| since <= before);
        if since.is_some_and(covers) {
            self.tally.found_by_poll(now);
        }
    }

    /// The standing of push for this feed, for the operator; `None` where nothing is asked.
    pub fn standing(&self, now: Stamp) -> Option<PushStanding> {
        let by = self.pushed_by(now);
        let hub = self.hubs.iter().find(|hub| hub.is_named);
        let cloud = self.cloud.as_ref().filter(|_| self.needs_cloud());
        let (url, is_cloud) = match (by, hub, cloud) {
            (Some(PushedBy::Hub(url, _)), ..) => (url.to_owned(), false),
            (Some(PushedBy::Cloud(..)), _, Some(cloud)) | (None, None, Some(cloud)) => {
                (cloud.address.url(), true)
            }
            (_, Some(hub), _) => (hub.url.clone(), false),
            _ => return None,
        };
        let why = if is_cloud {
            cloud.and_then(|cloud| cloud.why.clone())
        } else {
            let mut of_url = self
                .hubs
                .iter()
                .filter(|hub| hub.is_named && hub.url == url);
            of_url.find_map(|hub| hub.why.clone())
        };
        let stage = match by {
            Some(_) if self.tally.is_silent(now) => PushStage::Silent,
            Some(_) if self.works(now) => PushStage::Working,
            Some(_) => PushStage::Subscribed,
            None if why.is_some() => PushStage::Failing,
            None => PushStage::Asked,
        };
        Some(PushStanding {
            url,
            is_cloud,
            stage,
            since: by.map(|by| by.since()),
            last_push: self.tally.last_push,
            next_at: self.next_at(),
            why,
        })
    }

    /// Forgets hubs that have nothing more to do.
    fn sweep(&mut self, now: Stamp) {
        self.hubs.iter_mut().for_each(|hub| hub.expire(now));
        self.hubs.retain(|hub| !hub.is_over(now));
    }
}
