//! The parts of an explanation, in words that another process can read; not where they come from.

use serde::{Deserialize, Serialize};

/// The explanation of a feed. Moments are RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The feed's name.
    pub feed: String,
    /// Its upstream, without credentials.
    pub url: String,
    /// The `[[opml]]` list that brought it, if one did.
    #[serde(default)]
    pub from_list: Option<String>,
    /// True while it is paused.
    #[serde(default)]
    pub paused: bool,
    /// The state of its polling, with the reason.
    pub polling: Polling,
    /// The push of its news by a hub or a cloud of its publisher, in words.
    #[serde(default)]
    pub push: Option<String>,
    /// The software that it is read as, and why.
    pub platform: Option<String>,
    /// True when its documents say that they are the whole feed.
    pub is_complete: bool,
    /// Items held, tombstones included; and those alive.
    pub items: (u64, u64),
    /// Entries in the last document.
    pub window: usize,
    /// The reach of its memory into the past.
    pub history: String,
    /// Items a form of which is held back, because they change with every poll or with the whole
    /// feed.
    pub deferred: usize,
    /// Parts of its entries that move without an edit, and since when.
    #[serde(default)]
    pub restless: Vec<(String, String)>,
    /// Time at which most of it was last edited at once with no date moved.
    pub reformatted_at: Option<String>,
    /// The reading of its archives: how far, by which strategy, with which result, and the time of
    /// the next walk.
    pub archives: Vec<String>,
    /// Since when too much is missing at once to believe it.
    pub quarantined_since: Option<String>,
    /// The quarantine, while too much is missing at once.
    #[serde(default)]
    pub quarantine: Option<ExplainedQuarantine>,
    /// The last control of permalink checks: whether pages tell anything here.
    #[serde(default)]
    pub pages: Option<(String, String)>,
    /// Reason why absence counts for less than usual here, or for nothing.
    pub doubted: Option<String>,
    /// True when answers to conditional requests have proven to be partial.
    pub distrusts_conditional: bool,
    /// Items that are missed and not decided on, those included whose page shows that they live.
    pub suspects: Vec<ExplainedItem>,
    /// Gaps, where items may be missing: found at, why, cursor before, cursor after.
    pub gaps: Vec<(String, String, String, String)>,
    /// The last documents, oldest first.
    pub observations: Vec<ExplainedDocument>,
    /// Of a group: each member with the stage of its membership.
    #[serde(default)]
    pub members: Option<Vec<String>>,
    /// The item that was asked for; `None` when none was, or none is known by that name.
    pub item: Option<ExplainedItem>,
}

/// The state of polling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Polling {
    /// Time of the last poll.
    pub last_at: Option<String>,
    /// Time of the last good answer.
    pub good_at: Option<String>,
    /// Time of the next poll; `None`: only a hint or a restart polls it.
    pub next_at: Option<String>,
    /// Reason for that time.
    pub why: String,
    /// From when on the next request carries no validators; `None`: it carries none.
    pub audit_at: Option<String>,
    /// True while an unconditional poll could confirm or clear a suspect.
    pub wants_audit: bool,
    /// Remark on the last document, if it was odd.
    pub remark: Option<String>,
}

/// A window in which too much is missing at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedQuarantine {
    /// Its beginning.
    pub since: String,
    /// Items that are missing and not decided on; of how many in the window.
    pub missing: (usize, usize),
    /// Pages of them that were asked for.
    pub asked: usize,
    /// Time of the next request for a page; `None`: none is asked for.
    pub next_at: Option<String>,
    /// Time from which on pages are believed.
    pub decides_at: String,
    /// Time after which the window begins anew if nothing has decided by then.
    pub ends_at: String,
}

/// One document that was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExplainedDocument {
    /// Its number.
    pub number: u64,
    /// Its time.
    pub at: String,
    /// `full`, `full, to validators`, `partial`.
    pub class: String,
    /// Reason for partial coverage.
    pub partial: Option<String>,
    /// True for the last document once more.
    pub again: bool,
    /// Entries, new, edited, revived, missing, suspects, rolled off, gone.
    pub counts: [u32; 8],
    /// Events of the window.
    pub events: Vec<String>,
    /// Remark, if it was odd.
    pub remark: Option<String>,
    /// Of the page of a missed item: whose, and what it said.
    pub page: Option<(String, String)>,
}

/// One item.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExplainedItem {
    /// Our id.
    pub id: String,
    /// The text of `atom:id`.
    pub iri: String,
    /// Its title, while it is alive.
    pub title: Option<String>,
    /// Dates of its publisher that consumers are not shown, because nobody can mean them.
    #[serde(default)]
    pub unshown_dates: Vec<String>,
    /// The note that stands instead of its text, which was too long.
    #[serde(default)]
    pub left_out: Option<String>,
    /// Time at which it was first stored.
    pub created: String,
    /// Time of its last change.
    pub modified: String,
    /// Its state.
    pub state: ItemState,
    /// Number of its tombstones so far.
    pub tombstone_count: u8,
    /// The evidence against it, while it is a suspect.
    pub missing: Option<MissedByDocuments>,
    /// Its churn, if it changes with every poll.
    pub churn: Option<Churn>,
    /// Time at which it was recognised in its place under another id, and what agreed beside its
    /// text.
    #[serde(default)]
    pub corrected: Option<(String, String)>,
    /// The walks through the archives that missed it.
    pub missed: Option<MissedByWalks>,
    /// The proof of each of its tombstones, oldest first.
    pub evidence: Vec<TombstoneProof>,
    /// Time at which the page of a tombstone is asked for again, in case it is back.
    #[serde(default)]
    pub recheck_at: Option<String>,
    /// Of a deleted item: since when documents have shown it again that may be old copies, and from
    /// when on an answer to a request without validators decides.
    #[serde(default)]
    pub shown_again: Option<(String, String)>,
    /// Of a post of a group: the members that have it, the one that is shown first, each with the
    /// id of its item.
    #[serde(default)]
    pub holders: Vec<(String, String)>,
}

/// The state of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemState {
    /// In the last document.
    #[default]
    Shown,
    /// Missed, and not decided on.
    Suspected,
    /// Missed, while its own page shows that it lives.
    Hidden,
    /// One of many that are missing at once, and not decided on.
    Quarantined,
    /// Missed by a walk through the archives, and not decided on.
    Missed,
    /// Not in the last document, from which nothing was concluded.
    Undecided,
    /// Behind the end of the window: kept.
    RolledOff,
    /// A post of a group, which its members have.
    Held,
    /// A tombstone.
    Deleted,
    /// No post of its group any more: in its own feed it goes on.
    Left,
}

/// The evidence against a suspect, and what is still needed to take it for deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MissedByDocuments {
    /// Time at which it was first missed.
    pub since: String,
    /// Time at which it was last seen.
    pub last_seen: String,
    /// Documents that lack it, as far as they count; of how many.
    pub count: (u8, u8),
    /// No tombstone before that.
    pub not_before: Option<String>,
    /// True when one of them answered a request without validators.
    pub audited: bool,
    /// True when as many entries came as went when it was first missed.
    pub strong: bool,
    /// Items that stood behind it and still do.
    pub behind: u16,
    /// True when older items had moved up.
    pub backfilled: bool,
    /// True when its page alone decides.
    #[serde(default)]
    pub by_page: bool,
    /// Reason why documents do not decide on it, if they do not.
    #[serde(default)]
    pub alone: Option<String>,
    /// The check of its own page.
    pub page: ExplainedCheck,
}

/// The permalink check of a suspect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExplainedCheck {
    /// The last answer, and when it came.
    pub said: Option<(String, String)>,
    /// Number of requests so far.
    pub asked: u8,
    /// Time of the next request.
    pub next_at: Option<String>,
}

/// The churn of an item that changes with every poll, so that its edits are committed once a day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Churn {
    /// In how many polls running its content changed.
    pub polls: u16,
    /// Until when its newest form is held back, unless it ceases to change before; `None`: none is.
    pub held_until: Option<String>,
    /// True when that form is held back because it is dated before what is shown.
    #[serde(default)]
    pub is_dated_before: bool,
    /// True when that form was shown before, in a feed of which old copies are given by turns.
    #[serde(default)]
    pub is_former: bool,
    /// The parts in which that form differs, where they move in the whole feed: it is an edit only if
    /// it lasts until then.
    #[serde(default)]
    pub moved: Vec<String>,
}

/// The walks through the archives that missed an item.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MissedByWalks {
    /// Time at which it was first missed.
    pub since: String,
    /// Time at which the archives last showed it.
    pub last_seen: String,
    /// Walks that missed it; of how many.
    pub walks: (u8, u8),
    /// No tombstone before that.
    pub not_before: Option<String>,
}

/// The proof of a tombstone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TombstoneProof {
    /// T of the tombstone.
    pub at: String,
    /// The reason code.
    pub reason: String,
    /// True when it left a group, which is no deletion.
    #[serde(default)]
    pub has_left: bool,
    /// Time at which the document that proves it was read.
    pub observed_at: String,
    /// The publisher's own statement: time and reason.
    pub said: Vec<String>,
    /// The documents that missed it.
    pub missing: Option<MissedByDocuments>,
    /// The walks through the archives that missed it.
    pub missed: Option<MissedByWalks>,
}
