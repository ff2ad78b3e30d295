//! A walk backwards through a feed's archives: which address to ask next, what an answer means, when to stop and what that
//! says of the feed's history (LEGACY H-6..H-13, H-22; POLLING 3.1). Pure; asking and storing are done elsewhere.

use super::{
    different_feed::{different_feed, named},
    item::KeyHash,
    stamp::Stamp,
};
use everfeed_adapters::{
    Digest, Metadata,
    platforms::{End, Profile, Recipe},
};
use std::collections::HashSet;
use url::Url;

mod own_origins;

mod strategy;

mod staged_page;

mod merge;

mod completion;

#[cfg(test)]
mod tests;

pub use super::{
    absence::archives::{ArchiveFindings, ArchiveSuspect, LiveItem, Visibility, WALKS_MIN, judge_archives},
    history::{History, PartialReason},
    last_walk::LastWalk,
};
pub use merge::{ArchivedPage, chronological, merge, settle_known};
pub use own_origins::OwnOrigins;
pub use staged_page::{StagedPage, StagedWalk, StagingChange};
pub use strategy::Strategy;
pub(crate) use strategy::{CountedPages, CounterPlace};

pub(crate) use completion::Completion;
use strategy::NextPage;

/// Limits and rules of a walk.
#[derive(Clone, Debug)]
pub struct WalkRules {
    /// Which addresses are the feed's own.
    pub reach: OwnOrigins,
    /// Pages read at most.
    pub pages_max: u32,
    /// Seconds between two pages at least.
    pub page_gap_secs: u64,
}

/// A document as far as a walk looks at it.
#[derive(Clone, Copy, Debug)]
pub struct WalkedDocument<'a> {
    /// The URL that answered, after redirects.
    pub landed: &'a str,
    /// Digest of its bytes.
    pub body: Digest,
    /// Its bytes, inflated.
    pub bytes: u64,
    /// The keys of its entries.
    pub keys: &'a [KeyHash],
    /// Its own metadata.
    pub metadata: &'a Metadata,
    /// True when it may lack what its publisher shows: cut, mended, or found to hold more by another reader.
    pub damaged: bool,
    /// True when it shows the newest of several feeds, which drop their old entries.
    pub mixed: bool,
}

/// Result of a request.
#[derive(Clone, Copy, Debug)]
pub enum WalkReply<'a> {
    /// A feed document.
    Page(WalkedDocument<'a>),
    /// The publisher says that there is nothing: 404, 410, 403.
    Missing {
        /// The status.
        status: u16,
    },
    /// Something that is no feed.
    NoFeed,
    /// No answer, or none that says anything of the page.
    Failed {
        /// The error, without secrets.
        why: &'a str,
        /// `Retry-After` of the answer.
        retry_after_secs: Option<u64>,
    },
    /// The request was held back by ourselves.
    Deferred {
        /// For at least so many seconds.
        wait_secs: u64,
    },
}

/// Next action of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// Ask for this page.
    Fetch(String),
    /// Nothing before then.
    Wait(Stamp),
    /// Nothing more.
    Done,
}

/// A walk, and all of it that must outlive the process; what it has seen is told to it again ([`ArchiveWalk::recall`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveWalk {
    /// Start of the walk.
    pub started_at: Stamp,
    /// The feed's configured address, without credentials.
    pub(crate) feed: String,
    /// Ways that were not found wanting, and where each begins; the first one is being walked.
    pub(crate) ways: Vec<(Strategy, String)>,
    pub(crate) phase: WalkPhase,
    /// No request before this.
    pub(crate) next_at: Stamp,
    /// Pages read so far, on all ways.
    pub pages: u32,
    /// Pages read on this way.
    pub(crate) on_way: u32,
    /// Pages in a row without an id that was not known.
    pub(crate) barren: u8,
    /// Requests for this page that failed.
    pub(crate) tries: u8,
    /// Bytes of the pages kept.
    pub(crate) bytes: u64,
    /// The number of the live document; the pages follow. The numbers before it are those of the walk before.
    pub base: u32,
    /// The number of the last page kept.
    pub kept: u32,
    /// The walk before this one.
    pub before: PreviousWalk,
    /// True when its platform, named by itself, shows no more in one document than the live one holds, so that it may have no
    /// second page.
    pub(crate) fits: bool,
    /// True when the publisher said then that there is no second page.
    pub(crate) alone: bool,
    /// True when it met anything because of which its silence proves nothing.
    pub(crate) doubtful: bool,
    /// True when a page that it took in may lack entries, so that it reaches no first item for certain.
    pub(crate) damaged: bool,
    /// By what the live document names its feed.
    pub(crate) named: Metadata,
    /// Reason why the first way that failed did.
    pub(crate) flaw: Option<PartialReason>,
    /// Memory of addresses, bodies and keys.
    pub(crate) trail: WalkTrail,
}

/// Current place of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WalkPhase {
    /// Before this page.
    At(String),
    /// At the end of counted pages, before the live document: has it moved meanwhile?
    Recount,
    /// It has, so its boundary to the counted pages is read again.
    Boundary,
    /// A page cannot be read, and is asked for again later.
    Paused { url: String, reason: PartialReason, rounds: u8 },
    /// At the end.
    Done(Completion),
}

/// The walk before, as far as the next one compares itself with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PreviousWalk {
    /// None: this walk is the first.
    #[default]
    None,
    /// A walk that ended with this strategy.
    By(Strategy),
    /// A walk that had no strategy left.
    WithoutStrategy,
}

/// Memory of a walk: rebuilt from the staged pages after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkTrail {
    /// Digests of addresses.
    visited: HashSet<Digest>,
    /// Digests of bodies.
    bodies: HashSet<Digest>,
    /// Keys of all entries.
    keys: HashSet<KeyHash>,
    /// Keys of the live document when the walk began.
    live: HashSet<KeyHash>,
}

/// Use of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageUse {
    /// It holds something new: it is to be stored together with the walk, before the walk goes on.
    Keep,
    /// It holds nothing new.
    Drop,
}

/// Bytes of archives at most, inflated: all of them are one commit.
pub const BYTES_MAX: u64 = 128 << 20;

/// Pages in a row without anything new that end a walk (POLLING 3.1).
const BARREN_MAX: u8 = 2;

impl ArchiveWalk {
    /// A walk from the live document on; else what the document says of its history by itself.
    pub fn begin(
        feed: &Url,
        live: &WalkedDocument<'_>,
        profile: Option<&Profile>,
        rules: &WalkRules,
        now: Stamp,
    ) -> Result<Self, History> {
        if live.metadata.is_complete() || strategy::shows_all(live) {
            return Err(History::Complete);
        }
        let (ways, flaw) = strategy::ways(feed, live, profile, rules);
        let Some((_, first)) = ways.first().filter(|_| rules.pages_max > 0) else {
            return Err(flaw.map_or(History::Unknown, History::Partial));
        };
        let mut walk = Self {
            started_at: now,
            feed: feed.to_string(),
            phase: WalkPhase::At(first.clone()),
            ways,
            next_at: now.plus_secs(rules.page_gap_secs),
            pages: 0,
            on_way: 0,
            barren: 0,
            tries: 0,
            bytes: live.bytes,
            base: 0,
            kept: 0,
            before: PreviousWalk::None,
            fits: profile.is_some_and(|profile| fits(live, profile)),
            alone: false,
            doubtful: live.damaged || live.mixed,
            damaged: false,
            named: named(live.metadata),
            flaw,
            trail: WalkTrail::default(),
        };
        walk.recall(feed.as_str(), live.landed, live.body, live.keys, true);
        Ok(walk)
    }

    /// The same as one more walk after `before`; its live document is kept under the number `base`.
    #[must_use]
    pub fn after(self, before: PreviousWalk, base: u32) -> Self {
        Self { before, base, kept: base, ..self }
    }

    /// This walk, as the next one compares itself with it.
    pub fn as_previous(&self) -> PreviousWalk {
        self.strategy().cloned().map_or(PreviousWalk::WithoutStrategy, PreviousWalk::By)
    }

    /// True when another walk was before it.
    pub fn is_repeated(&self) -> bool {
        self.before != PreviousWalk::None
    }

    /// The same, when its silence proves nothing whatever it meets: of a planet, or of a log of events.
    #[must_use]
    pub fn doubted(self, doubtful: bool) -> Self {
        Self { doubtful: self.doubtful || doubtful, ..self }
    }

    /// The same, with its first page so long after its live document.
    #[must_use]
    pub fn paced(self, gap_secs: u64, now: Stamp) -> Self {
        Self { next_at: now.plus_secs(gap_secs), ..self }
    }

    /// True when it read whole archives whole, by the strategy of the walk before, so that what it does not show is not there.
    pub fn proves(&self) -> bool {
        let is_same_strategy = match (&self.before, self.strategy()) {
            (PreviousWalk::By(before), Some(strategy)) => before.asks_for_the_pages_of(strategy),
            (PreviousWalk::WithoutStrategy, None) => true,
            _ => false,
        };
        is_same_strategy && !self.doubtful && self.phase == WalkPhase::Done(Completion::Complete)
    }

    /// Number of different entries that it has shown, those of the live document included.
    pub fn entries(&self) -> usize {
        self.trail.keys.len()
    }

    /// True when it has shown an entry of this key.
    pub fn has_shown(&self, key: &KeyHash) -> bool {
        self.trail.keys.contains(key)
    }

    /// The keys of all entries that it has shown.
    pub fn shown(&self) -> impl Iterator<Item = &KeyHash> {
        self.trail.keys.iter()
    }

    /// True when it knows what it has seen.
    pub fn remembers(&self) -> bool {
        !self.trail.visited.is_empty()
    }

    /// Tells it of a page again that was stored; of the live document first.
    pub fn recall(&mut self, url: &str, landed: &str, body: Digest, keys: &[KeyHash], is_live: bool) {
        self.trail.visited.insert(address(url));
        self.trail.visited.insert(address(landed));
        self.trail.bodies.insert(body);
        self.trail.keys.extend(keys);
        if is_live {
            self.trail.live.extend(keys);
        }
    }

    /// As it is stored: without what it has seen, which is not copied either.
    pub fn token(&self) -> Self {
        Self {
            started_at: self.started_at,
            feed: self.feed.clone(),
            ways: self.ways.clone(),
            phase: self.phase.clone(),
            next_at: self.next_at,
            pages: self.pages,
            on_way: self.on_way,
            barren: self.barren,
            tries: self.tries,
            bytes: self.bytes,
            base: self.base,
            kept: self.kept,
            before: self.before.clone(),
            fits: self.fits,
            alone: self.alone,
            doubtful: self.doubtful,
            damaged: self.damaged,
            named: self.named.clone(),
            flaw: self.flaw.clone(),
            trail: WalkTrail::default(),
        }
    }

    /// Next action of a walk.
    pub fn next(&self, now: Stamp) -> WalkStep {
        let url = match &self.phase {
            WalkPhase::Done(_) => return WalkStep::Done,
            WalkPhase::At(url) | WalkPhase::Paused { url, .. } => url,
            WalkPhase::Recount => &self.feed,
            WalkPhase::Boundary => self.ways.first().map_or(&self.feed, |(_, first)| first),
        };
        if self.next_at > now { WalkStep::Wait(self.next_at) } else { WalkStep::Fetch(url.clone()) }
    }

    /// History of the feed, as known by now.
    pub fn history(&self) -> History {
        match &self.phase {
            WalkPhase::Done(completion) => completion.clone().into(),
            WalkPhase::Paused { reason, .. } => History::Partial(reason.clone()),
            _ => History::Running,
        }
    }

    /// True when there is nothing to wait for: it is at its end, or at a gap.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, WalkPhase::Done(_) | WalkPhase::Paused { .. })
    }

    /// True when it will never ask again.
    pub fn is_done(&self) -> bool {
        matches!(self.phase, WalkPhase::Done(_))
    }

    /// Time of the next request.
    pub fn next_at(&self) -> Stamp {
        self.next_at
    }

    /// The strategy that it follows, or followed to the end; `None` when none was left.
    pub fn strategy(&self) -> Option<&Strategy> {
        self.ways.first().map(|(strategy, _)| strategy)
    }

    /// Takes in what came of the request that [`ArchiveWalk::next`] named.
    pub fn answer(&mut self, reply: WalkReply<'_>, rules: &WalkRules, now: Stamp) -> PageUse {
        self.next_at = now.plus_secs(rules.page_gap_secs);
        match reply {
            WalkReply::Deferred { wait_secs } => {
                self.next_at = now.plus_secs(wait_secs.max(1));
                PageUse::Drop
            }
            WalkReply::Page(seen) if self.asks_again_for(&seen) => {
                self.ask_once_more(rules, now);
                PageUse::Drop
            }
            WalkReply::Page(seen) => {
                self.tries = 0;
                self.page(&seen, rules)
            }
            WalkReply::Missing { status } => {
                self.missing(status, now);
                PageUse::Drop
            }
            WalkReply::NoFeed => {
                self.refuse(PartialReason::NoFeed);
                PageUse::Drop
            }
            WalkReply::Failed { why, retry_after_secs } => {
                self.again(PartialReason::Unreadable(why.to_owned()), retry_after_secs, now);
                PageUse::Drop
            }
        }
    }

    /// Notes what a page that is taken in may lack.
    fn doubt(&mut self, seen: &WalkedDocument<'_>) {
        self.damaged |= seen.damaged;
        self.doubtful |= seen.damaged || seen.mixed;
    }

    fn page(&mut self, seen: &WalkedDocument<'_>, rules: &WalkRules) -> PageUse {
        // In place of the live document another feed's shows that it moved, and the boundary is read again.
        let is_page = self.phase != WalkPhase::Recount;
        if is_page && different_feed(&self.named, &named(seen.metadata)).is_some() {
            self.refuse(PartialReason::DifferentFeed);
            return PageUse::Drop;
        }
        let url = match std::mem::replace(&mut self.phase, WalkPhase::Done(Completion::Complete)) {
            WalkPhase::At(url) | WalkPhase::Paused { url, .. } => url,
            WalkPhase::Recount => {
                let moved = seen.keys.len() != self.trail.live.len()
                    || seen.keys.iter().any(|key| !self.trail.live.contains(key));
                if moved {
                    self.phase = WalkPhase::Boundary;
                }
                return PageUse::Drop;
            }
            WalkPhase::Boundary => {
                self.doubt(seen);
                self.phase = WalkPhase::Done(self.at_last_page());
                return self.keep(seen);
            }
            done @ WalkPhase::Done(_) => {
                self.phase = done;
                return PageUse::Drop;
            }
        };
        let leads_back =
            address(seen.landed) != address(&url) && self.trail.visited.contains(&address(seen.landed));
        let repeats = leads_back || self.trail.bodies.contains(&seen.body);
        if !rules.reach.holds(seen.landed) {
            self.refuse(PartialReason::RedirectsToAnotherHost);
            return PageUse::Drop;
        }
        let is_first = self.on_way == 0;
        let is_new = seen.keys.iter().any(|key| !self.trail.keys.contains(key));
        let follows_links = self.strategy().is_some_and(Strategy::follows_links);
        // A server that does not know the parameter shows its live document once more.
        if is_first && (repeats || !is_new && !follows_links) {
            self.next_strategy(None);
            return PageUse::Drop;
        }
        // Nobody links to an archive of nothing. With links of its own such a page may stand between two others; one that was cut
        // is damaged.
        if follows_links && seen.keys.is_empty() && !seen.damaged && !repeats && self.is_last(seen) {
            self.refuse(PartialReason::EmptyPage);
            return PageUse::Drop;
        }
        if repeats {
            self.end(if follows_links {
                Completion::Partial(PartialReason::Circle)
            } else {
                Completion::Complete
            });
            return PageUse::Drop;
        }
        self.pages += 1;
        self.on_way += 1;
        self.doubt(seen);
        self.barren = if is_new { 0 } else { self.barren + 1 };
        // The page is taken in before its link is looked for: the last page has none and is the oldest.
        let verdict = if is_new { self.keep(seen) } else { PageUse::Drop };
        self.recall(&url, seen.landed, seen.body, &[], false);
        self.go_on(seen, rules);
        verdict
    }

    fn keep(&mut self, seen: &WalkedDocument<'_>) -> PageUse {
        self.bytes += seen.bytes;
        self.kept += 1;
        self.trail.keys.extend(seen.keys);
        PageUse::Keep
    }

    /// True when a page of links leads nowhere.
    fn is_last(&self, seen: &WalkedDocument<'_>) -> bool {
        self.strategy()
            .is_some_and(|strategy| matches!(strategy.clone().after(&self.feed, seen), NextPage::End))
    }

    /// From a page to the next.
    fn go_on(&mut self, seen: &WalkedDocument<'_>, rules: &WalkRules) {
        let Some((strategy, _)) = self.ways.first_mut() else { return self.end(Completion::Unknown) };
        let next = strategy.after(&self.feed, seen);
        let follows_links = strategy.follows_links();
        if self.bytes > BYTES_MAX {
            let reason = PartialReason::TooManyBytes { mib_max: BYTES_MAX >> 20 };
            return self.end(Completion::Partial(reason));
        }
        let url = match next {
            NextPage::End => return self.end(Completion::Complete),
            NextPage::Short(reason) => return self.end(Completion::Partial(reason)),
            NextPage::Page(url) => url,
        };
        if self.barren >= BARREN_MAX {
            // A server that stopped counting looks the same.
            self.doubtful = true;
            return self.end(if follows_links {
                Completion::Partial(PartialReason::NothingNew)
            } else {
                Completion::Complete
            });
        }
        if self.pages >= rules.pages_max {
            let reason = PartialReason::TooManyPages { pages_max: rules.pages_max };
            return self.end(Completion::Partial(reason));
        }
        match rules.reach.mapped(&url) {
            Some(url) if self.trail.visited.contains(&address(&url)) => {
                self.end(Completion::Partial(PartialReason::Circle));
            }
            Some(url) => self.phase = WalkPhase::At(url),
            None => self.end(Completion::Partial(PartialReason::LinksToAnotherHost)),
        }
    }
}

/// True when a live document is no longer than its platform's documents are by default, the platform is named by the generator,
/// and it answers 404 behind the last page. Where an owner set another length, a full document looks the same, so a longer one is left in doubt.
fn fits(live: &WalkedDocument<'_>, profile: &Profile) -> bool {
    let usual = profile.window.and_then(|usual| usize::try_from(usual).ok());
    let ends_so = |recipe: &Recipe| match recipe {
        Recipe::Page { end, with: None, .. } | Recipe::Path { end, .. } => end.contains(&End::NotFound),
        _ => false,
    };
    !live.damaged
        && usual.is_some_and(|usual| live.keys.len() <= usual)
        && profile.history.iter().any(ends_so)
        && profile.is_named_by(live.metadata)
}

/// Digest of an address without its fragment and scheme, which make no other page of it.
fn address(url: &str) -> Digest {
    let url = url.split('#').next().unwrap_or_default();
    let bare = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or(url);
    Digest::of(bare.as_bytes())
}
