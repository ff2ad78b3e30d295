//! A walk backwards through a feed's archives: which address to ask next, what an answer means,
//! when to stop and what that says of the feed's history (LEGACY H-6..H-13, H-22; POLLING 3.1).
//! Pure; asking and storing are done elsewhere.

use super::{different_feed::named, item::KeyHash, stamp::Stamp};
use everfeed_adapters::{
    Digest, Metadata,
    platforms::{End, Profile, Recipe},
};
use url::Url;

mod own_origins;

mod strategy;

mod counted_pages;

mod trail;

mod build_date;

mod reading;

mod end_claim;

mod end_proof;

mod completion;

mod staged_page;

mod merge;

#[cfg(test)]
mod tests;

pub use super::{
    absence::archives::{
        ArchiveFindings, ArchiveSuspect, LiveItem, Visibility, WALKS_MIN, judge_archives,
    },
    history::{EndProof, History, PartialReason},
    last_walk::LastWalk,
};
pub use merge::{ArchivedPage, chronological, merge, settle_known};
pub use own_origins::OwnOrigins;
pub use staged_page::{PageAddress, PageFate, StagedBody, StagedPage, StagedWalk, StagingChange};
pub use strategy::Strategy;
pub use trail::PageTrace;
pub use {
    build_date::{BuildDates, is_built_after},
    completion::{Completion, PageRetry},
    counted_pages::{CountedPages, CounterPart},
    end_claim::{EndClaim, EndSign, EndStep},
    trail::WalkTrail,
};

/// Limits and rules of a walk.
#[derive(Clone, Debug)]
pub struct WalkRules {
    /// Which addresses are the feed's own.
    pub reach: OwnOrigins,
    /// Requests at most, whatever they are for and whatever they bring.
    pub pages_max: u32,
    /// Bytes of pages read at most.
    pub bytes_max: u64,
    /// Seconds between two pages at least.
    pub page_gap_secs: u64,
}

/// A document as far as a walk looks at it.
#[derive(Clone, Copy, Debug)]
pub struct WalkedDocument<'a> {
    /// The URL that was asked.
    pub asked: &'a str,
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
    /// True for a document that was built later than the page before it, as [`is_built_after`] tells.
    pub is_built: bool,
    /// True when it may lack what its publisher shows: cut, mended, or found to hold more by
    /// another reader.
    pub damaged: bool,
    /// True when it shows the newest of several feeds, which drop their old entries.
    pub mixed: bool,
}

impl<'a> WalkedDocument<'a> {
    /// The same as a walk remembers it, under this number.
    fn trace(&self, no: u32) -> PageTrace<'a> {
        PageTrace {
            no,
            url: self.asked,
            landed: self.landed,
            body: self.body,
            keys: self.keys,
        }
    }
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

/// A walk, and all of it that must outlive the process; what it has seen is told to it again
/// ([`ArchiveWalk::recall`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveWalk {
    /// Start of the walk.
    pub started_at: Stamp,
    /// The feed's configured address, without credentials.
    pub feed: String,
    /// Ways that were not found wanting, and where each begins; the first one is being walked.
    pub ways: Vec<(Strategy, String)>,
    pub phase: WalkPhase,
    /// The request that fails at present, if one does.
    pub retry: Option<PageRetry>,
    /// No request before this.
    pub next_at: Stamp,
    /// The walk before this one.
    pub before: PreviousWalk,
    pub counts: WalkCounts,
    pub findings: WalkFindings,
    /// Memory of addresses, bodies and keys.
    pub trail: WalkTrail,
}

/// Numbers of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalkCounts {
    /// Pages read so far, on all ways.
    pub pages: u32,
    /// Pages read on this way.
    pub on_way: u32,
    /// Pages in a row without an id that was not known.
    pub barren: u8,
    /// Bytes of the pages kept.
    pub bytes: u64,
    /// The number of the live document; the pages follow. The numbers before it are those of the
    /// walk before.
    pub base: u32,
    /// The number of the last page kept.
    pub kept: u32,
    /// The number of the last page kept before this way began.
    pub way_from: u32,
    /// Steps back because two pages did not connect.
    pub backs: u8,
    /// Entries of the whole feed, as its publisher counts them.
    pub total: Option<u64>,
    /// The number of the last page that was read on the way; those kept later were read for the
    /// proof of its end.
    pub last: u32,
    /// Requests so far, on all ways: pages, guesses, second readings, tries and redirects.
    pub requests: u32,
    /// Of these, the ones for an address that no document names, where pages are linked.
    pub guesses: u8,
}

/// Facts that a walk has met, and what they say against its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalkFindings {
    /// True when its platform, named by itself, shows more in one document than the live one holds,
    /// so that it may have no second page.
    pub fits: bool,
    /// True when it met anything because of which its silence proves nothing.
    pub doubtful: bool,
    /// True when a page that it took in may lack entries, so that it reaches no first item for
    /// certain.
    pub damaged: bool,
    /// True when all of the history is held already, so that no page must be read twice to prove
    /// that none moved.
    pub held_whole: bool,
    /// True when an archive said that it is one (`fh:archive`), so that the last one must say so,
    /// too.
    pub marked: bool,
    /// By what the live document names its feed.
    pub named: Metadata,
    /// Reason why the first way that failed did.
    pub flaw: Option<PartialReason>,
    /// Reason why the pages of this way lack something, whatever its end is.
    pub lacks: Option<PartialReason>,
    /// Pages that could not be read although others behind them could, and why; each is asked for
    /// again at the end; `None`: it may well not be there.
    pub holes: Vec<(String, Option<PartialReason>)>,
    /// Proof of the end, once it is found.
    pub proof: Option<EndProof>,
    /// Dates by which older copies are told.
    pub built: Option<BuildDates>,
}

/// Current place of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkPhase {
    /// Before this page.
    At(String),
    /// A page looked like the end: the proof is gathered.
    Ending(EndClaim, EndStep),
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

/// Use of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageUse {
    /// It holds something new: it is to be stored together with the walk, before the walk goes on.
    Keep,
    /// It holds nothing new, and yet the walk went over it: its traces are to be stored.
    Trace,
    /// It is no page of this walk.
    Drop,
}

/// Reason why a walk does not ask for its next page at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkDelay<'a> {
    /// A page cannot be had, and is asked for again.
    Retry(&'a PartialReason),
    /// The last page seems to be reached; it is asked once more whether it is the last.
    ConfirmsEnd,
    /// Pages are read a second time, to see that none moved meanwhile.
    ReadsAgain,
    /// Only the pace.
    Pace,
}

/// Bytes of archives at most, inflated: all of them are one commit.
pub const BYTES_MAX: u64 = 128 << 20;

/// Requests of a walk at most for addresses that no document names, where pages are linked.
const GUESSES_MAX: u8 = 10;

impl ArchiveWalk {
    /// A walk from the live document on; else what the document says of its history by itself.
    pub fn begin(
        feed: &Url,
        live: &WalkedDocument<'_>,
        profile: Option<&Profile>,
        rules: &WalkRules,
        now: Stamp,
    ) -> Result<Self, History> {
        let (ways, flaw) = strategy::ways(feed, live, profile, rules);
        // A count of entries is believed where nothing can be asked that would say otherwise.
        if live.metadata.is_complete() || strategy::shows_all(live) && ways.is_empty() {
            // A document that was cut shows less than it says.
            return Err(if live.damaged {
                History::Unknown
            } else {
                History::Complete
            });
        }
        let Some((way, first)) = ways.first().filter(|_| rules.pages_max > 0) else {
            return Err(flaw.map_or(History::Unknown, History::Partial));
        };
        let findings = WalkFindings {
            fits: profile.is_some_and(|profile| fits(live, profile)),
            doubtful: live.damaged || live.mixed,
            // Counted pages begin with one that shows the live entries once more; links lead past
            // them.
            damaged: live.damaged && way.follows_links(),
            named: named(live.metadata),
            flaw,
            ..WalkFindings::default()
        };
        let mut walk = Self {
            started_at: now,
            feed: feed.to_string(),
            phase: WalkPhase::At(first.clone()),
            ways,
            retry: None,
            next_at: now.plus_secs(rules.page_gap_secs),
            before: PreviousWalk::None,
            counts: WalkCounts {
                bytes: live.bytes,
                total: live.metadata.paging.total_items,
                ..WalkCounts::default()
            },
            findings,
            trail: WalkTrail::default(),
        };
        walk.note_built(live);
        walk.recall(&live.trace(0));
        Ok(walk)
    }

    /// True for a walk through the archives of the feed at this URL, without credentials.
    pub fn is_of(&self, feed: &Url) -> bool {
        self.feed == feed.as_str()
    }

    /// The same as one more walk after `before`; its live document is kept under the number `base`.
    #[must_use]
    pub fn after(mut self, before: PreviousWalk, base: u32) -> Self {
        self.before = before;
        (self.counts.base, self.counts.kept, self.counts.way_from) = (base, base, base);
        self
    }

    /// The same where this is held of the past. What is held whole already must not be read twice.
    #[must_use]
    pub fn holding(mut self, history: &History) -> Self {
        self.findings.held_whole = *history == History::Complete;
        self
    }

    /// This walk, as the next one compares itself with it.
    pub fn as_previous(&self) -> PreviousWalk {
        self.strategy()
            .cloned()
            .map_or(PreviousWalk::WithoutStrategy, PreviousWalk::By)
    }

    /// True when another walk was before it.
    pub fn is_repeated(&self) -> bool {
        self.before != PreviousWalk::None
    }

    /// The same, when its silence proves nothing whatever it meets: of a planet, or of a log of
    /// events.
    #[must_use]
    pub fn doubted(mut self, doubtful: bool) -> Self {
        self.findings.doubtful |= doubtful;
        self
    }

    /// The same, with its first page so long after its live document.
    #[must_use]
    pub fn paced(self, gap_secs: u64, now: Stamp) -> Self {
        Self {
            next_at: now.plus_secs(gap_secs),
            ..self
        }
    }

    /// True when it read whole archives whole, by the strategy of the walk before, so that what it
    /// does not show is not there.
    pub fn proves(&self) -> bool {
        let is_same_strategy = match (&self.before, self.strategy()) {
            (PreviousWalk::By(before), Some(strategy)) => before.asks_for_the_pages_of(strategy),
            (PreviousWalk::WithoutStrategy, None) => true,
            _ => false,
        };
        is_same_strategy
            && !self.findings.doubtful
            && self.phase == WalkPhase::Done(Completion::Complete)
    }

    /// Pages read so far, on all ways.
    pub fn pages(&self) -> u32 {
        self.counts.pages
    }

    /// The number of the live document; the pages follow. The numbers before it are those of the
    /// walk before.
    pub fn base(&self) -> u32 {
        self.counts.base
    }

    /// The number of the last page kept.
    pub fn kept(&self) -> u32 {
        self.counts.kept
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
    pub fn recall(&mut self, page: &PageTrace<'_>) {
        self.trail
            .recall(page, page.no == self.counts.base, self.counts.way_from);
    }

    /// As it is stored: without what it has seen, which is not copied either.
    pub fn token(&self) -> Self {
        Self {
            started_at: self.started_at,
            feed: self.feed.clone(),
            ways: self.ways.clone(),
            phase: self.phase.clone(),
            retry: self.retry.clone(),
            next_at: self.next_at,
            before: self.before.clone(),
            counts: self.counts.clone(),
            findings: self.findings.clone(),
            trail: WalkTrail::default(),
        }
    }

    /// Next action of a walk.
    pub fn next(&self, now: Stamp) -> WalkStep {
        match &self.phase {
            WalkPhase::Done(_) => WalkStep::Done,
            _ if self.next_at > now => WalkStep::Wait(self.next_at),
            WalkPhase::At(url) => WalkStep::Fetch(url.clone()),
            WalkPhase::Ending(claim, step) => WalkStep::Fetch(self.proof_url(claim, *step)),
        }
    }

    /// History of the feed, as known by now.
    pub fn history(&self) -> History {
        match (&self.phase, &self.retry) {
            (WalkPhase::Done(completion), _) => completion.clone().into(),
            (_, Some(retry)) if retry.rounds > 0 => History::Partial(retry.reason.clone()),
            _ => History::Running,
        }
    }

    /// True when there is nothing to wait for: it is at its end, or at a gap that is tried again
    /// another day.
    pub fn is_over(&self) -> bool {
        self.is_done() || self.retry.as_ref().is_some_and(|retry| retry.rounds > 0)
    }

    /// True when it has read every page that it found, or is over: what remains is the proof of its
    /// end.
    pub fn has_read(&self) -> bool {
        let may_find_more = |step: &EndStep| matches!(step, EndStep::Further | EndStep::Beyond);
        let is_ending = matches!(&self.phase, WalkPhase::Ending(_, step) if !may_find_more(step));
        is_ending || self.is_over()
    }

    /// True when it will never ask again.
    pub fn is_done(&self) -> bool {
        matches!(self.phase, WalkPhase::Done(_))
    }

    /// Time of the next request.
    pub fn next_at(&self) -> Stamp {
        self.next_at
    }

    /// Reason why it waits for its next request.
    pub fn delay(&self) -> WalkDelay<'_> {
        match (&self.phase, &self.retry) {
            (_, Some(retry)) => WalkDelay::Retry(&retry.reason),
            (WalkPhase::Ending(_, EndStep::Check { .. }), None) => WalkDelay::ReadsAgain,
            (WalkPhase::Ending(..), None) => WalkDelay::ConfirmsEnd,
            _ => WalkDelay::Pace,
        }
    }

    /// Proof of the end, once it is reached and proven.
    pub fn proof(&self) -> Option<&EndProof> {
        self.findings.proof.as_ref()
    }

    /// The strategy that it follows, or followed to the end; `None` when none was left.
    pub fn strategy(&self) -> Option<&Strategy> {
        self.ways.first().map(|(strategy, _)| strategy)
    }

    /// Number of requests that it may still send; the next one is among them.
    pub fn requests_left(&self, rules: &WalkRules) -> u32 {
        rules.pages_max.saturating_sub(self.requests())
    }

    /// Requests so far. Walks of older versions counted their pages alone.
    fn requests(&self) -> u32 {
        self.counts.requests.max(self.counts.pages)
    }

    /// Counts requests beside the one whose answer it takes in: redirects that were followed, and
    /// those whose answer could not be kept.
    pub fn count_requests(&mut self, sent: u32) {
        self.counts.requests = self.requests().saturating_add(sent);
    }

    /// Ends it if it may send no request any more. True if that ended it.
    pub fn end_at_limit(&mut self, rules: &WalkRules) -> bool {
        if self.is_done() || self.requests_left(rules) > 0 {
            return false;
        }
        let pages_max = rules.pages_max;
        self.end_walk(Completion::Partial(PartialReason::TooManyPages {
            pages_max,
        }));
        true
    }

    // Decides: How many requests does a walk send at most?
    /// Takes in what came of the request that [`ArchiveWalk::next`] named. After the last request
    /// that the rules allow, the walk is at its end.
    pub fn answer(&mut self, reply: WalkReply<'_>, rules: &WalkRules, now: Stamp) -> PageUse {
        if let WalkReply::Deferred { wait_secs } = reply {
            self.next_at = now.plus_secs(wait_secs.max(1));
            return PageUse::Drop;
        }
        self.counts.requests = self.requests().saturating_add(1);
        self.next_at = now.plus_secs(rules.page_gap_secs);
        let confirms = |phase: &WalkPhase| matches!(phase, WalkPhase::Ending(_, EndStep::Again));
        let was_confirming = confirms(&self.phase);
        let used = match self.phase.clone() {
            WalkPhase::Done(_) => PageUse::Drop,
            WalkPhase::At(url) => self.read_answer(&url, reply, rules, now),
            WalkPhase::Ending(claim, step) => self.prove_end(claim, step, reply, rules, now),
        };
        if !was_confirming && confirms(&self.phase) {
            self.next_at = now.plus_secs(self.end_wait_secs(rules));
        }
        self.end_at_limit(rules);
        used
    }
}

/// True when a live document is shorter than its platform's documents are by default, the platform
/// is named by the generator, and it answers 404 behind the last page. A document that is full, or
/// longer, looks like one of a blog with more posts.
fn fits(live: &WalkedDocument<'_>, profile: &Profile) -> bool {
    let usual = profile.window.and_then(|usual| usize::try_from(usual).ok());
    let ends_so = |recipe: &Recipe| match recipe {
        Recipe::Page {
            end, with: None, ..
        }
        | Recipe::Path { end, .. } => end.contains(&End::NotFound),
        _ => false,
    };
    !live.damaged
        && usual.is_some_and(|usual| live.keys.len() < usual)
        && profile.history.iter().any(ends_so)
        && profile.is_named_by(live.metadata)
}
