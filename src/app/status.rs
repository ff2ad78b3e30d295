//! The state of the application as `/status` tells it, and as the command line reads it; not where
//! it is gathered. A part that another version does not tell is as if it were empty.

use super::{
    registry::{ShadowedEntry, UnreadEntry},
    removed::RemovedFeed,
};
use crate::{
    events::{FailingFeeds, FaultOwner, Finding, Severity},
    feed::{
        opml_list::OpmlFault,
        pushed_feed::{PushStage, PushStanding},
        schedule::{FaultNote, Whose},
        stamp::Stamp,
    },
    store::NodesStatus,
};
use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use url::Url;

/// The time, as the status tells it.
pub(super) fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The state of the application: `/status`. Moments are RFC 3339.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Our version.
    pub version: String,
    /// Since when this process runs.
    pub started_at: String,
    /// Requests held now.
    pub waiters: usize,
    /// The configuration in force.
    pub config: ConfigStatus,
    /// The registry of feeds.
    pub registry: RegistryStatus,
    /// The store.
    pub store: StoreStatus,
    /// The reason for which the process that works told nothing, where this is of one that follows;
    /// `None` while all is well.
    pub worker_fault: Option<String>,
    /// The processes on the store; `None` where this one is alone.
    pub nodes: Option<NodesStatus>,
    /// The certificate that everfeed gets itself (ACME); `None` where it does not.
    pub certificate: Option<CertificateStatus>,
    /// The connection to a server of XMPP; `None` where there is none to be.
    pub xmpp: Option<XmppStatus>,
    /// Feeds that are configured.
    pub feeds_total: usize,
    /// Feeds that fail now, by the owner of the fault.
    pub failing: BTreeMap<String, usize>,
    /// The causes of those, the one with the most feeds first, in the first page of a list of feeds.
    pub causes: Vec<CauseStatus>,
    /// Sites whose feeds could not be looked for the last time.
    pub site_faults: Vec<SiteFault>,
    /// Faults of search engines to which sites announce their pages (IndexNow), by site.
    pub search_engines: Vec<CauseStatus>,
    /// The lists of feeds (OPML) that are read at intervals.
    pub lists: Vec<OpmlStatus>,
    /// Each feed of the range that was asked for, by name.
    pub feeds: Vec<FeedStatus>,
    /// Path of the feeds after these, if there are more.
    pub next: Option<String>,
    /// Names of the feeds that were removed from the configuration and are kept until they are
    /// forgotten.
    pub removed: Vec<String>,
    /// The same, with what is kept of each.
    pub removed_feeds: Vec<RemovedFeed>,
}

/// A list of feeds (OPML) that is read at intervals.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OpmlStatus {
    /// Its name.
    pub name: String,
    /// Its URL without credentials and query, or its file.
    pub place: String,
    /// Time of the last read, whatever came of it.
    pub read_at: Option<String>,
    /// Time of the last successful read.
    pub good_at: Option<String>,
    /// Time of the next read.
    pub next_read_at: Option<String>,
    /// Feeds in it at the last successful read.
    pub listed: u32,
    /// Feeds of the registry that it brought, those that are paused among them.
    pub feeds: usize,
    /// Feeds that it brought and lacks now, and that are not paused yet.
    pub absent: usize,
    /// Feeds that it brought and that are paused.
    pub paused_total: usize,
    /// Names of the first of those.
    pub paused: Vec<String>,
    /// Outlines that were left out at the last read.
    pub skipped_total: u32,
    /// The first of those, each with the reason.
    pub skipped: Vec<String>,
    /// Reads in a row that failed or changed nothing because too much was missing.
    pub failures: u32,
    /// The fault of the last read, and whose it is.
    pub fault: Option<FaultStatus>,
}

/// The certificate that everfeed gets itself (ACME).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateStatus {
    /// The names that it is for.
    pub names: Vec<String>,
    /// The host of the authority.
    pub authority: String,
    /// The end of the one in use; `None` while there is none, and HTTPS connections fail.
    pub expires_at: Option<String>,
    /// Time of the next order.
    pub next_order_at: String,
    /// Orders that failed in a row.
    pub failures: u32,
    /// The last failure and whose fault it is; `None` while all is well.
    pub fault: Option<String>,
}

/// The connection to a server of XMPP.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct XmppStatus {
    /// The address of the feeds there.
    pub jid: String,
    /// True while it is open.
    pub online: bool,
    /// Since when it is open, or not.
    pub since: String,
    /// Times that it was opened since the start.
    pub streams: u64,
    /// Subscriptions.
    pub subscriptions: usize,
    /// The reason for which it is not open, and what to do; `None` while all is well.
    pub fault: Option<String>,
}

/// The configuration in force, and the last reload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigStatus {
    /// The file; `None` where the process was started without one.
    pub file: Option<String>,
    /// Time at which the configuration in force was read.
    pub loaded_at: String,
    /// The last reload, if there was one.
    pub reload: Option<ReloadStatus>,
    /// Keys of the file that take effect at the next start.
    pub waiting_for_restart: Vec<String>,
}

/// The registry of feeds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RegistryStatus {
    /// Its entries.
    pub entries: usize,
    /// Those that cannot be read. Their feeds are neither polled nor served.
    pub unread: Vec<UnreadEntry>,
    /// Those that are neither polled nor served, because the file has a feed or a group of the same
    /// name or with the same ids.
    pub shadowed: Vec<ShadowedEntry>,
}

/// The state of the store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreStatus {
    /// The reason for which nothing can be stored and nothing is polled; `None` while all is well.
    pub fault: Option<String>,
    /// Since when.
    pub since: Option<String>,
    /// Length of its file, in bytes.
    pub bytes: u64,
    /// Faults of the disk or of the file since the start.
    pub faults: u64,
    /// The words for a store that was restored from a copy in the last days; `None` for any other.
    pub restored: Option<String>,
    /// The reason for which an older copy brings back what was removed last; `None` while all is
    /// well.
    pub removals_unwritten: Option<String>,
    /// The reason for which an older copy brings back some of what was removed before.
    pub removals_unread: Option<String>,
}

/// The last reload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReloadStatus {
    /// Its time.
    pub at: String,
    /// The reason for which it was refused; `None` when it was taken in.
    pub error: Option<String>,
}

/// The state of a feed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FeedStatus {
    /// Its name.
    pub name: String,
    /// Its upstream, without credentials; `group:NAME` of a group, which has none.
    pub url: String,
    /// Names of its members, if it is a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<String>>,
    /// The `[[opml]]` list that brought it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_list: Option<String>,
    /// True while it is paused: it is not polled, and its items are served.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// The address of the old feed, without its query, if it is a feed of a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_url: Option<String>,
    /// True while consumers are served: the first good document is in.
    pub served: bool,
    /// Time of the last poll, whatever came of it.
    pub last_poll_at: Option<String>,
    /// Time of the last good answer.
    pub last_good_at: Option<String>,
    /// Time of the next poll.
    pub next_poll_at: Option<String>,
    /// The reason for which it is not polled before that; `None` for a feed that is polled at its
    /// usual times.
    pub waits: Option<WaitStatus>,
    /// The address of the feed that is polled in the place of the page at its `url`, without its query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named_by_page: Option<String>,
    /// The address to which the publisher redirects for good, or to which its documents say that the
    /// feed has moved, without its query.
    pub moved_to: Option<String>,
    /// Polls that failed in a row.
    pub failures: u32,
    /// The fault, and whose it is.
    pub fault: Option<FaultStatus>,
    /// The push of its news by a hub or a cloud of its publisher; `None` where nothing is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<PushStatus>,
    /// The software that it is read as, and why.
    pub platform: Option<String>,
    /// Oddities of its last document, such as a cut end or markup that was mended.
    pub remark: Option<String>,
    /// The part of its past that is held.
    pub history: String,
    /// The reading of its archives, while it goes on: what it waits for, and until when.
    pub archives: Option<String>,
    /// Places where items may be missing, oldest first.
    pub gaps: Vec<GapStatus>,
    /// Since when too much is missing at once to believe it.
    pub quarantined_since: Option<String>,
    /// Items that are missed and not decided on.
    pub suspects: usize,
    /// Items that change with every poll, with an edit that waits for the end of a day.
    pub deferred_edits: usize,
    /// Time at which most of it was last seen being edited at once without a word on it; forgotten
    /// once it has rested from that.
    pub reformatted_at: Option<String>,
    /// Items held, tombstones included; null while the store cannot be read.
    pub items: Option<u64>,
    /// Items held that are no tombstones; null likewise.
    pub live_items: Option<u64>,
    /// Versions of items so far that were kept without parts that were too long; null likewise.
    pub shortened_items: Option<u64>,
    /// Bytes of all items as they are stored; null until they are counted.
    pub item_bytes: Option<u64>,
    /// Its push subscriptions.
    pub subscribers: SubscriberStatus,
    /// Requests that wait for a change now: long polls and streams of events. Subscriptions are
    /// counted apart.
    pub waiters: usize,
    /// Its readers, as far as this process has answered them; `None` if nobody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<ReadersStatus>,
}

/// The readers of a feed; requests are those of the last day.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadersStatus {
    /// Readers that their software claims.
    pub claimed: u64,
    /// Kinds of software.
    pub software: usize,
    /// Requests.
    pub requests: u64,
    /// Those with a validator or a position.
    pub conditional: u64,
    /// Kinds of software that misbehave.
    pub misbehaving: usize,
}

/// The push of the news of a feed by a hub (WebSub) or a cloud (rssCloud) of its publisher.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PushStatus {
    /// `hub` or `cloud`.
    pub by: String,
    /// Its host.
    pub host: String,
    /// `asked`, `failing`, `subscribed`, `working` or `silent`.
    pub state: String,
    /// Since when it is subscribed.
    pub since: Option<String>,
    /// Time of the last push.
    pub last_push_at: Option<String>,
    /// Time of the next request to it.
    pub next_request_at: Option<String>,
    /// The last failure or refusal, in words.
    pub error: Option<String>,
}

impl PushStatus {
    /// The same in words; `when` spells a moment.
    pub fn in_words(&self, when: impl Fn(&str) -> String) -> String {
        let Self { by, host, .. } = self;
        let last_push = match &self.last_push_at {
            Some(at) => format!("last push {}", when(at)),
            None => "it has pushed nothing yet".to_owned(),
        };
        match self.state.as_str() {
            "working" => format!("pushed by its {by} {host}; {last_push}"),
            "subscribed" => format!("subscribed at its {by} {host}; {last_push}"),
            "silent" => format!(
                "its {by} {host} has not told of news several times, so it is polled as usual; {last_push}"
            ),
            "failing" => {
                let error = self.error.as_deref().unwrap_or_default();
                let next = self.next_request_at.as_deref().map(when);
                let next = next.map(|next| format!("; it is asked again {next}"));
                format!(
                    "its {by} {host} does not push: {error}{}",
                    next.unwrap_or_default()
                )
            }
            _ => format!("its {by} {host} was asked to push, and has not confirmed yet"),
        }
    }
}

impl From<PushStanding> for PushStatus {
    fn from(standing: PushStanding) -> Self {
        let url = Url::parse(&standing.url).ok();
        let host = url.as_ref().and_then(Url::host_str);
        let moment = |at: Stamp| (at < Stamp::MAX).then(|| at.rfc3339());
        Self {
            by: if standing.is_cloud { "cloud" } else { "hub" }.to_owned(),
            host: host.unwrap_or_default().to_owned(),
            state: match standing.stage {
                PushStage::Asked => "asked",
                PushStage::Failing => "failing",
                PushStage::Subscribed => "subscribed",
                PushStage::Working => "working",
                PushStage::Silent => "silent",
            }
            .to_owned(),
            since: standing.since.and_then(moment),
            last_push_at: standing.last_push.and_then(moment),
            next_request_at: moment(standing.next_at),
            error: standing.why,
        }
    }
}

impl FeedStatus {
    /// The words for its next poll while none is planned: it is at once, unless the feed is paused.
    pub const fn unplanned_poll(&self) -> &'static str {
        if self.paused { "none" } else { "now" }
    }

    /// Its state in a word.
    pub fn state(&self) -> &'static str {
        if self.paused {
            return "paused";
        }
        match (&self.fault, self.served, &self.members) {
            (Some(_), ..) => "failing",
            (None, false, _) => "reading",
            (None, true, Some(_)) => "group",
            (None, true, None) => "good",
        }
    }
}

/// The wait of a feed whose next poll is put off.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitStatus {
    /// Its end; `None` when only a ping or an operator has it polled again.
    pub until: Option<String>,
    /// Its beginning; `None` where it is not known.
    pub since: Option<String>,
    /// The reason, in words.
    pub why: String,
    /// Since when a ping of the feed waits for that, if one does.
    pub pinged_at: Option<String>,
}

/// A place in a feed where items may be missing: between two cursors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GapStatus {
    /// Time of its discovery.
    pub at: String,
    /// The event, in words.
    pub why: String,
    /// The cursor before it.
    pub before: String,
    /// The cursor after it.
    pub after: String,
}

/// Fault of the origin of a site, met while its feeds were looked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SiteFault {
    /// The origin.
    pub origin: String,
    /// The fault.
    #[serde(flatten)]
    pub fault: FaultStatus,
}

/// Fault of a feed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FaultStatus {
    /// Its owner.
    pub whose: Whose,
    /// The owner, in words that follow "the fault is".
    #[serde(default)]
    pub owner: String,
    /// The event, in words.
    pub text: String,
    /// The HTTP status, if an answer came.
    pub status: Option<u16>,
    /// Since when.
    pub since: String,
}

impl From<&FaultNote> for FaultStatus {
    fn from(note: &FaultNote) -> Self {
        Self {
            whose: note.kind.whose(),
            owner: note.kind.owner().to_owned(),
            text: note.kind.to_string(),
            status: note.kind.status(),
            since: note.since.rfc3339(),
        }
    }
}

impl From<&OpmlFault> for FaultStatus {
    fn from(fault: &OpmlFault) -> Self {
        Self {
            whose: fault.whose,
            owner: FaultOwner::from(fault.whose).words().to_owned(),
            text: fault.why.clone(),
            status: None,
            since: fault.since.rfc3339(),
        }
    }
}

/// Cause for which feeds fail: a host, the network, or the fault of one feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CauseStatus {
    /// `feeds`, `network` or `search_engines`, as in events.
    pub topic: String,
    /// Its key, as in events.
    pub key: String,
    /// One short line: who or what fails.
    pub title: String,
    /// Whose fault it is.
    pub whose: String,
    /// The owner, in words that follow "the fault is".
    pub owner: String,
    /// The event, in words; of several feeds that of the one that has failed longest.
    pub text: String,
    /// The remedy.
    pub remedy: String,
    /// Since when.
    pub since: String,
    /// `fault` or `notice`: a notice says of something that works what the operator should know.
    pub severity: String,
    /// Names of all of its feeds.
    pub feeds: Vec<String>,
}

impl From<FailingFeeds<'_>> for CauseStatus {
    fn from(failing: FailingFeeds<'_>) -> Self {
        let FailingFeeds { finding, names } = failing;
        Self {
            feeds: names.into_iter().map(str::to_owned).collect(),
            ..Self::from(finding)
        }
    }
}

impl From<Finding> for CauseStatus {
    fn from(finding: Finding) -> Self {
        Self {
            topic: finding.cause.topic.name().to_owned(),
            key: finding.cause.key,
            title: finding.title,
            whose: finding.whose.name().to_owned(),
            owner: finding.owner,
            text: finding.text,
            remedy: finding.remedy,
            since: finding.since.rfc3339(),
            severity: match finding.severity {
                Severity::Fault => "fault".to_owned(),
                Severity::Notice => "notice".to_owned(),
            },
            feeds: finding.feeds.names,
        }
    }
}

/// Push subscriptions by state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscriberStatus {
    /// Verified and within their lease.
    pub active: usize,
    /// Waiting for their verification.
    pub pending: usize,
    /// Active, but the last delivery failed.
    pub failing: usize,
    /// Those whose pushes are not taken, the first ten.
    pub failures: Vec<FailingStatus>,
}

/// A subscriber whose pushes are not taken.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FailingStatus {
    /// The host of its callback.
    pub host: String,
    /// The last failure, in words.
    pub error: String,
    /// Since when.
    pub since: String,
    /// Pushes that failed in a row; 0 where others of its host failed and it was not tried.
    pub failed: u32,
    /// Time of the next try.
    pub next_try_at: String,
}
