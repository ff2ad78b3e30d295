//! Reading forward: what a page on the way is taken for, and the step from a good page to the next;
//! not the proof of the end.

use super::{
    ArchiveWalk, EndClaim, EndSign, EndStep, PageUse, WalkPhase, WalkReply, WalkRules,
    WalkedDocument,
    completion::Completion,
    strategy::{NextPage, Strategy},
    trail::{address, is_same_document},
};
use crate::{
    different_feed::{different_feed, named},
    history::{EndProof, PartialReason},
    stamp::Stamp,
};

/// Pages in a row without anything new that look like the end (POLLING 3.1).
const BARREN_MAX: u8 = 2;

/// Pages that a walk passes over and asks for again, at most.
const HOLES_MAX: usize = 10;

/// Steps back of a walk at most, because two pages that overlap by counting did not.
const BACKS_MAX: u8 = 30;

/// A document that answered for a page.
pub(super) enum PageKind {
    /// It holds entries that are new.
    Fresh,
    /// It holds entries, all of them known.
    Known,
    /// It is no page of the archives.
    Sign(EndSign),
}

impl ArchiveWalk {
    /// Takes in the answer to the request for a page on the way.
    pub(super) fn read_answer(
        &mut self,
        url: &str,
        reply: WalkReply<'_>,
        rules: &WalkRules,
        now: Stamp,
    ) -> PageUse {
        match reply {
            WalkReply::Deferred { .. } => PageUse::Drop,
            WalkReply::Page(seen) if self.asks_page_again(&seen) => {
                self.ask_page_again(rules, now);
                PageUse::Drop
            }
            WalkReply::Page(seen) => self.judge_page(&seen, rules, now),
            WalkReply::Missing { status } => {
                self.judge_odd_answer(url, EndSign::Missing { status }, now)
            }
            WalkReply::NoFeed => self.judge_odd_answer(url, EndSign::NoFeed, now),
            WalkReply::Failed {
                why,
                retry_after_secs,
            } => {
                let reason = PartialReason::Unreadable(why.to_owned());
                let is_on_way = self.counts.on_way > 0;
                let was_paused = self.retry.as_ref().is_some_and(|retry| retry.rounds > 0);
                if is_on_way && self.counts_pages() && self.is_last_try() && !was_paused {
                    // What comes behind a page that fails can be read all the same.
                    self.claim_end(url, EndSign::Failing(reason));
                } else {
                    self.retry_or_give_up_page(reason, retry_after_secs, now);
                }
                PageUse::Drop
            }
        }
    }

    fn judge_page(&mut self, seen: &WalkedDocument<'_>, rules: &WalkRules, now: Stamp) -> PageUse {
        if !rules.reach.holds(seen.landed) {
            self.give_up_page(PartialReason::RedirectsToAnotherHost);
            return PageUse::Drop;
        }
        match self.recognise_page(seen) {
            PageKind::Sign(sign) => self.judge_odd_answer(seen.asked, sign, now),
            PageKind::Known if self.leads_back(seen) => {
                self.judge_odd_answer(seen.asked, EndSign::Circle, now)
            }
            PageKind::Fresh | PageKind::Known => {
                self.retry = None;
                self.take_page(seen, rules)
            }
        }
    }

    // Decides: Is an answer a page of the archives, a fault, or the end?
    /// Finds out what a document is that answered for a page.
    pub(super) fn recognise_page(&self, seen: &WalkedDocument<'_>) -> PageKind {
        if different_feed(&self.findings.named, &named(seen.metadata)).is_some() {
            return PageKind::Sign(EndSign::Foreign);
        }
        let is_elsewhere = address(seen.landed) != address(seen.asked);
        let leads_back = is_elsewhere && self.trail.has_visited(seen.landed);
        // A page that is asked for again after a step back may be what it was.
        let repeats = leads_back
            || self.trail.bodies.contains(&seen.body) && !self.trail.has_visited(seen.asked);
        let is_first = self.counts.on_way == 0;
        let is_empty = seen.keys.is_empty() && !seen.damaged;
        let is_new = if self.counts_pages() {
            self.trail.is_new_on_way(seen)
        } else {
            self.trail.is_new(seen)
        };
        let found = if is_new {
            PageKind::Fresh
        } else {
            PageKind::Known
        };
        let Some(counted) = self.strategy().and_then(Strategy::counted) else {
            if repeats {
                return PageKind::Sign(EndSign::Circle);
            }
            if is_empty && self.leads_nowhere(seen) {
                return PageKind::Sign(EndSign::Empty);
            }
            let is_whole = matches!(self.strategy(), Some(Strategy::Whole { .. }));
            if is_whole && is_first && !is_new {
                return PageKind::Sign(EndSign::Feed);
            }
            return found;
        };
        let is_sorted_otherwise = self.strategy().is_some_and(Strategy::is_sorted_otherwise);
        let shows_live = if is_sorted_otherwise {
            is_first && (repeats || self.trail.is_within_live(seen))
                || self.trail.is_live_body(seen)
        } else {
            self.trail.is_live(seen)
        };
        let leads_to_feed = is_elsewhere && address(seen.landed) == address(&self.feed);
        if is_empty {
            return PageKind::Sign(EndSign::Empty);
        }
        if shows_live || leads_to_feed {
            return PageKind::Sign(EndSign::Feed);
        }
        if counted.entries && seen.keys.len() == 1 && !is_new {
            return PageKind::Sign(EndSign::Tail);
        }
        if !repeats {
            return found;
        }
        let is_last_again = !is_first && self.trail.is_like(self.counts.last, seen);
        PageKind::Sign(if is_last_again {
            EndSign::Repeat
        } else {
            EndSign::Circle
        })
    }

    /// Takes in a page of the archives and goes on behind it.
    pub(super) fn take_page(&mut self, seen: &WalkedDocument<'_>, rules: &WalkRules) -> PageUse {
        let connects = self.connects_page(seen);
        self.take_page_in(seen, rules, connects)
    }

    /// Takes in a page behind one that was passed over.
    pub(super) fn take_page_behind_hole(
        &mut self,
        seen: &WalkedDocument<'_>,
        rules: &WalkRules,
    ) -> PageUse {
        self.take_page_in(seen, rules, true)
    }

    fn take_page_in(
        &mut self,
        seen: &WalkedDocument<'_>,
        rules: &WalkRules,
        connects: bool,
    ) -> PageUse {
        let is_new = self.trail.is_new_on_way(seen);
        let expected = self
            .next_page_url()
            .filter(|_| self.strategy().is_some_and(Strategy::follows_links));
        self.counts.total = self.counts.total.max(seen.metadata.paging.total_items);
        self.counts.pages += 1;
        self.counts.on_way += 1;
        if is_new {
            self.counts.barren = 0;
        } else if !self.trail.has_visited(seen.asked) {
            self.counts.barren = self.counts.barren.saturating_add(1);
        }
        let used = self.keep_page(seen);
        self.counts.last = self.counts.kept;
        for older in self.note_built(seen) {
            self.add_hole(older, Some(PartialReason::OlderCopy));
        }
        if self.strategy().is_some_and(Strategy::follows_links) {
            self.note_links(seen, rules);
            // The numbers in the addresses jump: the one between may be an archive that nobody
            // named.
            if let Some(passed_over) = expected.filter(|expected| !self.trail.has_visited(expected))
            {
                self.add_hole(passed_over, None);
            }
            if self.counts.on_way == 2 {
                self.expect_newer();
            }
        }
        let is_steady = self.counts.backs < BACKS_MAX;
        if !connects && is_steady {
            self.go_to_page_before();
            return used;
        }
        if !connects {
            self.note_lack(PartialReason::PagesMoved);
        }
        // The page is taken in before its link is looked for: the last page has none and is the
        // oldest.
        self.go_to_next_page(seen, rules);
        used
    }

    /// Keeps a page, whole if it holds anything new.
    pub(super) fn keep_page(&mut self, seen: &WalkedDocument<'_>) -> PageUse {
        self.findings.damaged |= seen.damaged;
        self.findings.doubtful |= seen.damaged || seen.mixed;
        let is_new = self.trail.is_new(seen);
        if is_new {
            self.counts.bytes += seen.bytes;
        }
        self.counts.kept += 1;
        let no = self.counts.kept;
        self.recall(&seen.trace(no));
        if is_new {
            PageUse::Keep
        } else {
            PageUse::Trace
        }
    }

    /// Notes what a document that was found by its link says against itself and its neighbours.
    pub(super) fn note_links(&mut self, seen: &WalkedDocument<'_>, rules: &WalkRules) {
        let is_archive = matches!(self.strategy(), Some(Strategy::Archives));
        self.findings.marked |= is_archive && seen.metadata.history.archive;
        if !is_same_document(seen.asked, seen.landed) {
            self.note_lack(PartialReason::Redirected);
        }
        if seen.keys.is_empty() {
            self.note_lack(PartialReason::EmptyPage);
        }
        // An archive that follows this one and that nobody named stands in a gap. Behind the newest
        // one it may not be there yet.
        let newer = seen.metadata.link("next-archive").filter(|_| is_archive);
        let newer = newer.and_then(|newer| rules.reach.mapped(newer));
        if let Some(newer) = newer.filter(|newer| !self.trail.has_visited(newer)) {
            let is_newest = self.counts.on_way == 1;
            let reason = if is_newest {
                None
            } else {
                Some(PartialReason::PassedOver)
            };
            self.add_hole(newer, reason);
        }
    }

    /// Remembers a page that is to be asked for at the end. One without a reason is a guess.
    pub(super) fn add_hole(&mut self, url: String, reason: Option<PartialReason>) {
        if self.findings.holes.iter().any(|(known, _)| *known == url) {
            return;
        }
        if self.findings.holes.len() < HOLES_MAX {
            self.findings.holes.push((url, reason));
        } else if let Some(reason) = reason {
            self.note_lack(reason);
        }
    }

    /// Notes why the pages of this way do not hold everything. The first reason counts.
    pub(super) fn note_lack(&mut self, reason: PartialReason) {
        self.findings.lacks.get_or_insert(reason);
    }

    /// True when a page overlaps what was read before it, as it must where entries are counted.
    fn connects_page(&self, seen: &WalkedDocument<'_>) -> bool {
        let Some(counted) = self.strategy().and_then(Strategy::counted) else {
            return true;
        };
        let is_overlapping = !counted.entries || counted.at <= counted.start;
        is_overlapping || seen.keys.iter().any(|key| self.trail.has_key(key))
    }

    /// Reads the page before again: something was taken out, and what moved past us stands there.
    fn go_to_page_before(&mut self) {
        self.counts.backs += 1;
        let feed = self.feed.clone();
        let Some((Strategy::CountedPages(counted), _)) = self.ways.first_mut() else {
            return;
        };
        counted.go_to_page_before();
        let url = counted.url(&feed);
        match url {
            Some(url) => self.phase = WalkPhase::At(url),
            None => self.end_walk(Completion::Partial(PartialReason::PagesMoved)),
        }
    }

    /// True when a linked page leads to itself, or to one that was read.
    fn leads_back(&self, seen: &WalkedDocument<'_>) -> bool {
        let links = self.strategy().filter(|strategy| strategy.follows_links());
        let next = links.map(|strategy| strategy.clone().after(&self.feed, seen));
        matches!(next, Some(NextPage::Page(next)) if self.trail.has_visited(&next) || address(&next) == address(seen.asked))
    }

    /// True when a page of links leads nowhere.
    pub(super) fn leads_nowhere(&self, seen: &WalkedDocument<'_>) -> bool {
        self.strategy().is_some_and(|strategy| {
            matches!(strategy.clone().after(&self.feed, seen), NextPage::End)
        })
    }

    /// From a page to the next.
    pub(super) fn go_to_next_page(&mut self, seen: &WalkedDocument<'_>, rules: &WalkRules) {
        let Some((strategy, _)) = self.ways.first_mut() else {
            return self.end_walk(Completion::Unknown);
        };
        let follows_links = strategy.follows_links();
        let next = strategy.after(&self.feed, seen);
        if self.counts.bytes > rules.bytes_max {
            let reason = PartialReason::TooManyBytes {
                mib_max: rules.bytes_max.div_ceil(1 << 20),
            };
            return self.end_walk(Completion::Partial(reason));
        }
        let next = match next {
            NextPage::End => return self.end_at_page(seen, rules),
            NextPage::Short(reason) => return self.end_walk(Completion::Partial(reason)),
            NextPage::Page(next) => next,
        };
        if self.counts.barren >= BARREN_MAX {
            // A server that stopped counting looks the same.
            self.findings.doubtful = true;
            return if follows_links {
                self.end_walk(Completion::Partial(PartialReason::NothingNew))
            } else {
                self.claim_end(&next, EndSign::NothingNew)
            };
        }
        match rules.reach.mapped(&next) {
            Some(next) if self.trail.has_visited(&next) && follows_links => {
                self.end_walk(Completion::Partial(PartialReason::Circle));
            }
            Some(next) => self.phase = WalkPhase::At(next),
            None => self.end_walk(Completion::Partial(PartialReason::LinksToAnotherHost)),
        }
    }

    /// At a page that names no other one.
    fn end_at_page(&mut self, seen: &WalkedDocument<'_>, rules: &WalkRules) {
        if matches!(self.strategy(), Some(Strategy::Whole { .. })) {
            if self.findings.damaged {
                return self.end_way_partial(PartialReason::DamagedPage);
            }
            if !self.trail.meets_live() {
                return self.end_way_partial(PartialReason::LiveNotMet);
            }
            self.findings.proof = Some(EndProof::WholeDocument);
            return self.end_walk(Completion::Complete);
        }
        if let Some(items) = self.counts.total
            && self.entries() as u64 >= items
        {
            return self.go_on_with_proof(EndClaim::new(seen.asked, EndSign::Total { items }));
        }
        let sign = self.end_sign(seen, rules);
        self.claim_end(seen.asked, sign);
    }

    /// The sign that a page is the last because it leads nowhere, or the reason why it cannot be.
    pub(super) fn end_sign(&self, seen: &WalkedDocument<'_>, rules: &WalkRules) -> EndSign {
        let last = seen
            .metadata
            .link("last")
            .and_then(|last| rules.reach.mapped(last));
        let is_last = last.is_none_or(|last| {
            self.trail.has_visited(&last) || is_same_document(seen.asked, &last)
        });
        let is_marked = !self.findings.marked || seen.metadata.history.archive;
        let total = seen.metadata.paging.total_items.unwrap_or_default();
        let found = self.entries() as u64;
        if !is_last {
            return EndSign::Denied(PartialReason::NotTheLast);
        }
        if !is_marked {
            return EndSign::Denied(PartialReason::NoArchive);
        }
        if found < total {
            return EndSign::Denied(PartialReason::FewerThanSaid { total, found });
        }
        EndSign::NoLink
    }

    /// At something that is no page: the way is wrong, the page fails for now, or the end is
    /// reached.
    fn judge_odd_answer(&mut self, url: &str, sign: EndSign, now: Stamp) -> PageUse {
        if self.counts_pages() {
            self.judge_odd_counted_page(url, sign, now);
        } else {
            self.judge_odd_linked_page(&sign, now);
        }
        PageUse::Drop
    }

    fn judge_odd_counted_page(&mut self, url: &str, sign: EndSign, now: Stamp) {
        let is_first = self.counts.on_way == 0;
        let is_refused = matches!(sign, EndSign::Missing { status: 403 } | EndSign::Foreign);
        if is_first && is_refused {
            return self.give_up_page(sign.reason());
        }
        // The server does not know the order, and the next way does without it.
        if is_first && self.strategy().is_some_and(Strategy::is_sorted_otherwise) {
            return self.begin_next_strategy(sign.flaw());
        }
        if is_refused {
            return self.retry_or_give_up_page(sign.reason(), None, now);
        }
        self.claim_end(url, sign);
    }

    fn judge_odd_linked_page(&mut self, sign: &EndSign, now: Stamp) {
        let has_other_way = self.counts.on_way == 0 && self.ways.len() > 1;
        let is_missing = matches!(sign, EndSign::Missing { .. });
        let is_gone = matches!(sign, EndSign::Missing { status: 410 });
        let may_come_back = matches!(sign, EndSign::Missing { status: 403 | 404 });
        if *sign == EndSign::Feed || has_other_way && *sign == EndSign::Circle {
            return self.begin_next_strategy(None);
        }
        // The next walk comes anyhow, and nothing that is held is forgotten.
        if self.is_repeated() && !may_come_back {
            return self.give_up_page(sign.reason());
        }
        let is_whole = matches!(self.strategy(), Some(Strategy::Whole { .. }));
        if is_gone || is_whole || has_other_way && !is_missing {
            return self.give_up_page(sign.reason());
        }
        self.retry_or_give_up_page(sign.reason(), None, now);
    }

    /// Takes this address for what is behind the last page, and begins to prove it.
    pub(super) fn claim_end(&mut self, url: &str, sign: EndSign) {
        self.retry = None;
        let claim = EndClaim::new(url, sign);
        let reached = match self.strategy().and_then(Strategy::counted) {
            Some(counted) if counted.entries => counted.reached(1),
            _ => 0,
        };
        if let Some(items) = self.counts.total
            && claim.sign.is_believable()
            && reached >= items
        {
            // The publisher's count and the end of its pages agree.
            return self.go_on_with_proof(EndClaim {
                sign: EndSign::Total { items },
                ..claim
            });
        }
        // One page further, where there is such an address.
        let step = if self.next_page_url().is_some() {
            EndStep::Further
        } else {
            EndStep::Again
        };
        self.phase = WalkPhase::Ending(claim, step);
    }

    pub(super) fn counts_pages(&self) -> bool {
        matches!(self.strategy(), Some(Strategy::CountedPages(_)))
    }
}
