//! Feeds as a store keeps them: snapshots to decide on, commits, pages and items; not what a commit
//! comes to (`plan`) and not which rows make a page (`feed::page::select`).

use super::StoreFuture;
use crate::feed::{
    archive::{History, LastWalk, StagingChange},
    item::{Item, ItemId, KeyHash, Reason},
    keep_limits::KeepLimits,
    observation_record::ObservationRecord,
    page::{Page, PageQuery},
    reconcile::{Change, Delete, Evidence, Known, WindowState},
    record::{FeedNo, FeedRecord, IdRule},
    schedule::PollState,
    stamp::Stamp,
};
use crate::mistakes::{Mistake, is_made};
use everfeed_adapters::Metadata;
use std::{collections::HashMap, sync::Arc};

/// Feeds and their items.
pub trait Feeds: Send + Sync {
    /// A feed.
    fn feed(&self, feed: FeedNo) -> StoreFuture<'_, FeedRecord>;

    /// A feed, its window and the items behind these keys, all of one revision.
    fn snapshot(&self, feed: FeedNo, keys: Vec<KeyHash>) -> StoreFuture<'_, Snapshot>;

    /// The window and the items behind these keys, at one revision: the part of a snapshot that
    /// decisions read.
    fn known(&self, feed: FeedNo, keys: Vec<KeyHash>) -> StoreFuture<'_, Known> {
        Box::pin(async move { Ok(self.snapshot(feed, keys).await?.into_known().1) })
    }

    /// The items that were committed with one of these witnesses, each once: of each witness the
    /// last [`WITNESSED_MAX`].
    fn witnessed(&self, feed: FeedNo, witnesses: Vec<KeyHash>) -> StoreFuture<'_, Witnessed>;

    /// The ids of the items behind these keys, without the items; unknown keys are left out.
    fn ids(&self, feed: FeedNo, keys: Vec<KeyHash>) -> StoreFuture<'_, Vec<(KeyHash, ItemId)>>;

    /// Applies changes, giving each the next T.
    fn commit(&self, commit: Commit) -> StoreFuture<'_, Receipt>;

    /// A page, read at one revision.
    fn page(&self, query: PageQuery) -> StoreFuture<'_, Page>;

    /// The same for rows that are few and side by side, or that the last commits have written: a
    /// store may read them on the thread of its caller.
    fn page_in_place(&self, query: PageQuery) -> StoreFuture<'_, Page> {
        self.page(query)
    }

    /// One item.
    fn item(&self, feed: FeedNo, id: ItemId) -> StoreFuture<'_, Option<Arc<Item>>>;

    /// The evidence of an item's tombstones, oldest first, with their T.
    fn evidence(&self, feed: FeedNo, id: ItemId) -> StoreFuture<'_, Vec<(Stamp, Evidence)>>;

    /// The last observations of a feed, oldest first, by number; at most
    /// [`OBSERVATIONS_MAX`](crate::feed::observation_record::OBSERVATIONS_MAX).
    fn observations(&self, feed: FeedNo) -> StoreFuture<'_, Vec<(u64, ObservationRecord)>>;
}

/// A feed as it is at one revision, as far as a decision needs it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The feed.
    pub record: FeedRecord,
    /// Its window.
    pub window: WindowState,
    /// The items behind the keys that were asked for; unknown keys are absent.
    pub items: HashMap<KeyHash, Arc<Item>>,
}

impl Snapshot {
    /// The record, and what [`feed::reconcile`](crate::feed::reconcile) decides on.
    pub fn into_known(self) -> (FeedRecord, Known) {
        let known = Known {
            rev: self.record.rev,
            id_rule: self.record.ids.rule,
            window: self.window,
            items: self.items,
            lookalikes: Vec::new(),
        };
        (self.record, known)
    }
}

/// Items that are kept of one witness; of more the oldest are forgotten. What so many share tells
/// no post from another.
// Limit: a post under another id whose witnesses are all shared by so many later ones is new.
pub const WITNESSED_MAX: usize = 16;

/// Items found by their witnesses.
#[derive(Clone, Debug, Default)]
pub struct Witnessed {
    /// The revision read.
    pub rev: u64,
    /// The items.
    pub items: Vec<Arc<Item>>,
}

/// Changes of one feed, decided on one revision of it, and what is saved with them.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The state of the feed on which it was decided.
    pub basis: CommitBasis,
    /// The changes, in the order in which they get their T.
    pub changes: Vec<Change>,
    /// Items that are taken over as another feed has them, after the changes.
    pub copies: Vec<Arc<Item>>,
    /// Keys to bind to items that are held already.
    pub aliases: Vec<(KeyHash, ItemId)>,
    /// The new window; `None` leaves it.
    pub last: Option<WindowState>,
    /// The document's metadata; `None` leaves them.
    pub metadata: Option<Arc<Metadata>>,
    /// The rule by which ids are told apart from now on.
    pub id_rule: IdRule,
    /// True when the feed may be served from now on (stays so).
    pub ready: bool,
    /// The poll state, saved in the same transaction.
    pub poll: Option<PollState>,
    /// The change of the feed's archives, if it concerns them.
    pub archives: Option<Archives>,
    /// True for a commit of which a kill may take everything: it is read back at once, and is on disk
    /// [`POLLS_LATE_SECS`](super::POLLS_LATE_SECS) later at the latest. It is believed only of a
    /// commit that changes nothing that consumers see.
    pub is_late: bool,
    /// The next observation. If the window began anew with it, the feed gets a gap marker.
    pub observed: Option<ObservationRecord>,
}

/// State of a feed on which a commit is decided, and the limits of what it may keep. In any other
/// state the commit is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitBasis {
    /// The feed.
    pub feed: FeedNo,
    /// Its revision; on another, the commit is a conflict.
    pub rev: u64,
    /// Limits of what is kept of the feed: a commit that passes its quota is refused, unless it
    /// takes something away.
    pub limits: KeepLimits,
}

impl Commit {
    /// A commit that changes nothing of a feed but its archives.
    pub fn of_archives(record: &FeedRecord, archives: Archives) -> Self {
        Self {
            archives: Some(archives),
            ..Self::nothing(record)
        }
    }

    /// A commit that removes an item of a feed for good. Its content and its evidence go, and a stub
    /// stays.
    pub fn forgetting(snapshot: Snapshot, id: ItemId) -> Self {
        let evidence = Evidence {
            reason: Reason::Forgotten,
            observed_at: snapshot.record.last_t,
            when: None,
            comment: None,
            suspect: None,
            archive_suspect: None,
        };
        let delete = Delete {
            id,
            reason: Reason::Forgotten,
            first_missing: None,
            last_seen: None,
            evidence,
        };
        let mut window = snapshot.window.without(id);
        // It may tell the address of the item's page.
        window.absence.control = None;
        Self {
            changes: vec![Change::Delete(delete)],
            last: Some(window),
            ..Self::nothing(&snapshot.record)
        }
    }

    /// A commit that changes nothing of a feed, decided on this record of it.
    pub fn nothing(record: &FeedRecord) -> Self {
        Self {
            basis: CommitBasis {
                feed: record.no,
                rev: record.rev,
                limits: KeepLimits::default(),
            },
            changes: Vec::new(),
            copies: Vec::new(),
            aliases: Vec::new(),
            last: None,
            metadata: None,
            id_rule: record.ids.rule,
            ready: record.is_ready(),
            poll: None,
            archives: None,
            is_late: false,
            observed: None,
        }
    }

    // Decides: Which commit may be lost with the process?
    /// True when it may be on disk later, on this record of the feed.
    pub(super) fn may_be_late(&self, record: &FeedRecord) -> bool {
        if is_made(Mistake::CommitUnsynced) {
            return true;
        }
        let leaves_a_gap =
            |observed: &ObservationRecord| observed.events.iter().any(|event| event.leaves_a_gap());
        self.is_late
            && self.changes.is_empty()
            && self.copies.is_empty()
            && self.aliases.is_empty()
            && self.metadata.is_none()
            && self.archives.is_none()
            && self.id_rule == record.ids.rule
            && self.ready == record.is_ready()
            && !self.observed.as_ref().is_some_and(leaves_a_gap)
    }
}

/// The change of a feed's archives that a commit makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archives {
    /// The reach of the memory from now on.
    pub history: History,
    /// The fate of the staged pages; `None` leaves them.
    pub unstage: Option<StagingChange>,
    /// The walk that came to its end with this, if one did.
    pub walked: Option<LastWalk>,
}

/// The result of a commit.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The feed as it is now.
    pub feed: FeedRecord,
    /// The items changed, with the T of each, in order.
    pub stamped: Vec<(ItemId, Stamp)>,
    /// The groups that changed with the feed, as they are now.
    pub groups: Vec<FeedRecord>,
}
