//! The proof that a walk has reached the last page. A fault looks the same as an end, so that a
//! walk asks one page further, then again a while later, then for the pages that it passed over;
//! where pages are counted, or shift, it reads each once more from the last to the first, and the
//! first must show the live entries. What is not proven is partial.

use super::{
    ArchiveWalk, EndClaim, EndSign, EndStep, GUESSES_MAX, PageUse, WalkPhase, WalkReply, WalkRules,
    WalkedDocument, completion::Completion, reading::PageKind, strategy::Strategy,
};
use crate::{
    history::{EndProof, PartialReason},
    stamp::Stamp,
};

/// Pages read a second time at most; of more, as many spread evenly.
// Limit: of more pages, one that moved between two that are read again is not met.
const CHECKED_PAGES_MAX: u32 = 100;

/// From a page that looks like the end to the second request for it, in gaps between pages: where
/// the last page is as full as the others, an end is less likely.
const END_WAIT_GAPS: u64 = 300;
const END_WAIT_GAPS_SHORT: u64 = 30;

/// The same in seconds: at least, and at most.
const END_WAIT_SECS_MIN: u64 = 4;
const END_WAIT_SECS_MIN_SHORT: u64 = 2;
const END_WAIT_SECS_MAX: u64 = 600;

/// Pages before the first linked one that are looked for, at most.
const NEWER_MAX: usize = 5;

/// Requests for the first page that may fail, before nothing is proven.
const FIRST_TRIES_MAX: u8 = 2;

/// An answer to a step of the proof.
enum StepAnswer<'a> {
    Page(PageKind, WalkedDocument<'a>),
    Odd(EndSign),
    Failed(PartialReason, Option<u64>),
}

/// The first page, beside the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstPage {
    /// It shows the live entries, and the last page is shorter than it or another one.
    Longer,
    /// It shows the live entries, and the last page is as full as any.
    NoLonger,
    /// It does not show the live entries.
    Elsewhere,
    /// Nothing depends on it.
    NotAsked,
}

impl ArchiveWalk {
    // Decides: Is the end of archives proven?
    // Limit: a last page as full as the others leaves the history partial, unless a count proves more.
    /// Takes in the answer to a step of the proof.
    pub(super) fn prove_end(
        &mut self,
        claim: EndClaim,
        step: EndStep,
        reply: WalkReply<'_>,
        rules: &WalkRules,
        now: Stamp,
    ) -> PageUse {
        let found = self.step_answer(reply, rules);
        if self.is_guess(step) {
            self.count_guess(&found);
        }
        match step {
            EndStep::Further => self.judge_next_page(claim, found, rules, now),
            EndStep::Beyond => self.judge_far_page(claim, &found),
            EndStep::Again if self.counts_pages() => {
                self.judge_counted_end(claim, found, rules, now)
            }
            EndStep::Again => self.judge_linked_end(claim, found, rules, now),
            EndStep::Hole => self.judge_passed_page(claim, found, rules, now),
            EndStep::Check { no, stride } => self.judge_read_page(claim, no, stride, found, now),
            EndStep::First => self.judge_first_page(&claim, found, now),
        }
    }

    /// True for a step that asks for an address which no document names, where pages are linked.
    fn is_guess(&self, step: EndStep) -> bool {
        match step {
            EndStep::Further => !self.counts_pages(),
            EndStep::Hole => matches!(self.findings.holes.first(), Some((_, None))),
            EndStep::Beyond | EndStep::Again | EndStep::Check { .. } | EndStep::First => false,
        }
    }

    /// Counts a guess. If the last one still shows something new, more of it may follow.
    fn count_guess(&mut self, found: &StepAnswer<'_>) {
        self.counts.guesses = self.counts.guesses.saturating_add(1);
        let is_fresh = matches!(found, StepAnswer::Page(PageKind::Fresh, _));
        if is_fresh && !self.may_guess() {
            self.note_lack(PartialReason::UnlinkedPages);
        }
    }

    // Decides: How often does a walk ask for addresses that nobody named?
    fn may_guess(&self) -> bool {
        self.counts.guesses < GUESSES_MAX
    }

    /// Address that a step asks for.
    pub(super) fn proof_url(&self, claim: &EndClaim, step: EndStep) -> String {
        let url = match step {
            EndStep::Further => self.next_page_url(),
            EndStep::Beyond => self.far_page_url(),
            EndStep::Again => None,
            EndStep::Hole => self.findings.holes.first().map(|(url, _)| url.clone()),
            EndStep::Check { no, .. } => self.trail.url(no).map(str::to_owned),
            EndStep::First => {
                let counted = self.strategy().and_then(Strategy::counted);
                counted.and_then(|counted| counted.url_of(&self.feed, counted.start))
            }
        };
        url.unwrap_or_else(|| claim.url.clone())
    }

    /// Address one page behind the one that looked like the end, or behind the last one that was
    /// linked, where its address is a number more, or less, than the one before.
    pub(super) fn next_page_url(&self) -> Option<String> {
        match self.strategy()? {
            Strategy::CountedPages(counted) => counted.url_of(&self.feed, counted.next_number()),
            Strategy::Whole { .. } => None,
            Strategy::Archives | Strategy::Pages { .. } if !self.may_guess() => None,
            Strategy::Archives | Strategy::Pages { .. } => {
                let (before, last) = self.trail.last_two(self.counts.way_from)?;
                next_number(before, last).filter(|url| !self.trail.has_visited(url))
            }
        }
    }

    /// Address far behind the page that looked like the end, where pages are counted.
    fn far_page_url(&self) -> Option<String> {
        let counted = self
            .strategy()?
            .counted()
            .filter(|counted| !counted.entries && self.counts.on_way > 0)?;
        let number = counted.at.saturating_mul(2);
        if number > counted.next_number() {
            counted.url_of(&self.feed, number)
        } else {
            None
        }
    }

    fn step_answer<'a>(&self, reply: WalkReply<'a>, rules: &WalkRules) -> StepAnswer<'a> {
        match reply {
            WalkReply::Page(seen) if !rules.reach.holds(seen.landed) => {
                StepAnswer::Odd(EndSign::Denied(PartialReason::RedirectsToAnotherHost))
            }
            WalkReply::Page(seen) => match self.recognise_page(&seen) {
                PageKind::Sign(EndSign::Foreign) => StepAnswer::Odd(EndSign::Foreign),
                kind => StepAnswer::Page(kind, seen),
            },
            WalkReply::Missing { status } => StepAnswer::Odd(EndSign::Missing { status }),
            WalkReply::NoFeed => StepAnswer::Odd(EndSign::NoFeed),
            WalkReply::Failed {
                why,
                retry_after_secs,
            } => StepAnswer::Failed(PartialReason::Unreadable(why.to_owned()), retry_after_secs),
            WalkReply::Deferred { .. } => StepAnswer::Failed(PartialReason::NothingNew, None),
        }
    }

    /// One page further: one that is there shows that the end was none.
    fn judge_next_page(
        &mut self,
        claim: EndClaim,
        found: StepAnswer<'_>,
        rules: &WalkRules,
        now: Stamp,
    ) -> PageUse {
        if let StepAnswer::Page(PageKind::Fresh, seen) = found {
            if let Some((Strategy::CountedPages(counted), _)) = self.ways.first_mut() {
                counted.at = counted.next_number();
                self.add_hole(claim.url, Some(claim.sign.reason()));
            }
            return self.take_page_behind_hole(&seen, rules);
        }
        let has_another_way = self.ways.len() > 1;
        match &claim.sign {
            EndSign::Failing(reason) if has_another_way => self.give_up_page(reason.clone()),
            EndSign::Failing(reason) => {
                self.phase = WalkPhase::At(claim.url.clone());
                self.pause_page(reason.clone(), now);
            }
            EndSign::Total { .. } => self.go_on_with_proof(claim),
            sign if self.counts.on_way == 0 && self.counts_pages() && !sign.is_believable() => {
                self.begin_next_strategy(sign.flaw());
            }
            _ if self.far_page_url().is_some() => {
                self.phase = WalkPhase::Ending(claim, EndStep::Beyond)
            }
            _ => self.phase = WalkPhase::Ending(claim, EndStep::Again),
        }
        PageUse::Drop
    }

    /// A page far behind: one that is there shows that both before it are missing by a fault, and
    /// the next is read.
    fn judge_far_page(&mut self, claim: EndClaim, found: &StepAnswer<'_>) -> PageUse {
        let StepAnswer::Page(PageKind::Fresh, _) = found else {
            self.phase = WalkPhase::Ending(claim, EndStep::Again);
            return PageUse::Drop;
        };
        let further = self.next_page_url();
        let reason = claim.sign.reason();
        for url in [Some(claim.url), further].into_iter().flatten() {
            self.add_hole(url, Some(reason.clone()));
        }
        let feed = self.feed.clone();
        if let Some((Strategy::CountedPages(counted), _)) = self.ways.first_mut() {
            counted.at = counted.next_number() + 1;
            if let Some(url) = counted.url(&feed) {
                self.phase = WalkPhase::At(url);
            }
        }
        PageUse::Drop
    }

    /// Seconds from a page that looks like the end to the second request for it.
    pub(super) fn end_wait_secs(&self, rules: &WalkRules) -> u64 {
        let is_short = self
            .trail
            .is_short(self.counts.last, self.counts.way_from, 0)
            || self.counts.on_way == 0
            || !self.counts_pages();
        let (gaps, min) = if is_short {
            (END_WAIT_GAPS_SHORT, END_WAIT_SECS_MIN_SHORT)
        } else {
            (END_WAIT_GAPS, END_WAIT_SECS_MIN)
        };
        rules
            .page_gap_secs
            .saturating_mul(gaps)
            .clamp(min, END_WAIT_SECS_MAX)
    }

    /// The counted page behind the last one, a while later.
    fn judge_counted_end(
        &mut self,
        claim: EndClaim,
        found: StepAnswer<'_>,
        rules: &WalkRules,
        now: Stamp,
    ) -> PageUse {
        let sign = match found {
            StepAnswer::Page(PageKind::Fresh, seen) => {
                self.retry = None;
                return self.take_page(&seen, rules);
            }
            StepAnswer::Page(PageKind::Known, _) => EndSign::NothingNew,
            StepAnswer::Page(PageKind::Sign(sign), _) | StepAnswer::Odd(sign) => sign,
            StepAnswer::Failed(reason, retry_after_secs) => {
                self.retry_page_or_end_way(reason, retry_after_secs, now);
                return PageUse::Drop;
            }
        };
        if sign.is_believable() {
            self.retry = None;
            self.go_on_with_proof(EndClaim { sign, ..claim });
        } else if self.counts.on_way == 0 {
            self.begin_next_strategy(None);
        } else {
            self.retry_page_or_end_way(sign.reason(), None, now);
        }
        PageUse::Drop
    }

    /// The last linked page, a while later: it may name another one by now.
    fn judge_linked_end(
        &mut self,
        claim: EndClaim,
        found: StepAnswer<'_>,
        rules: &WalkRules,
        now: Stamp,
    ) -> PageUse {
        let (why, retry_after_secs, used) = match found {
            StepAnswer::Page(_, seen) if !seen.keys.is_empty() => {
                let used = self.keep_page_if_new(&seen);
                if !self.leads_nowhere(&seen) {
                    self.retry = None;
                    self.go_to_next_page(&seen, rules);
                    return used;
                }
                match self.end_sign(&seen, rules) {
                    EndSign::Denied(reason) => (reason, None, used),
                    sign => {
                        self.retry = None;
                        self.go_on_with_proof(EndClaim { sign, ..claim });
                        return used;
                    }
                }
            }
            StepAnswer::Page(..) => (PartialReason::EmptyPage, None, PageUse::Drop),
            StepAnswer::Odd(sign) => (sign.reason(), None, PageUse::Drop),
            StepAnswer::Failed(why, retry_after_secs) => (why, retry_after_secs, PageUse::Drop),
        };
        self.retry_page_or_end_way(why, retry_after_secs, now);
        used
    }

    /// Keeps a page that is read again, if it shows anything that was not met before.
    fn keep_page_if_new(&mut self, seen: &WalkedDocument<'_>) -> PageUse {
        if self.trail.is_new(seen) {
            self.keep_page(seen)
        } else {
            PageUse::Drop
        }
    }

    /// A page that was passed over.
    fn judge_passed_page(
        &mut self,
        claim: EndClaim,
        found: StepAnswer<'_>,
        rules: &WalkRules,
        now: Stamp,
    ) -> PageUse {
        let Some((_, reason)) = self.findings.holes.first().cloned() else {
            self.go_on_with_proof(claim);
            return PageUse::Drop;
        };
        let (why, retry_after_secs) = match found {
            StepAnswer::Page(PageKind::Fresh | PageKind::Known, seen)
                if reason == Some(PartialReason::OlderCopy) && self.is_older_copy(&seen) =>
            {
                (PartialReason::OlderCopy, None)
            }
            StepAnswer::Page(PageKind::Fresh | PageKind::Known, seen)
                if reason == Some(PartialReason::OlderCopy) && self.may_be_older_copy(&seen) =>
            {
                self.pause_page(PartialReason::OlderCopy, now);
                return PageUse::Drop;
            }
            StepAnswer::Page(PageKind::Fresh | PageKind::Known, seen) => {
                self.findings.holes.remove(0);
                self.retry = None;
                self.counts.pages += 1;
                let is_new = self.trail.is_new(&seen);
                let used = self.keep_page(&seen);
                self.note_links(&seen, rules);
                if is_new && self.strategy().is_some_and(Strategy::follows_links) {
                    self.expect_newer();
                }
                self.go_on_with_proof(claim);
                return used;
            }
            StepAnswer::Page(PageKind::Sign(sign), _) | StepAnswer::Odd(sign) => {
                (sign.reason(), None)
            }
            StepAnswer::Failed(why, retry_after_secs) => (why, retry_after_secs),
        };
        if reason.is_none() {
            self.findings.holes.remove(0);
            self.go_on_with_proof(claim);
        } else if !self.retry_page(&why, retry_after_secs, now) {
            self.findings.holes.remove(0);
            self.retry = None;
            self.note_lack(why);
            self.go_on_with_proof(claim);
        }
        PageUse::Drop
    }

    /// A page that was read before, once more. Read from the last to the first, an entry that moves
    /// towards the first page, because another was taken out, is met on the way.
    fn judge_read_page(
        &mut self,
        claim: EndClaim,
        no: u32,
        stride: u32,
        found: StepAnswer<'_>,
        now: Stamp,
    ) -> PageUse {
        let (why, retry_after_secs) = match found {
            StepAnswer::Page(_, seen) if self.is_still(no, stride, &seen) => {
                self.retry = None;
                let has_moved = seen.keys.len() != self.trail.keys_of(no).len()
                    || !self.trail.is_within(no, &seen);
                if stride > 1 && has_moved {
                    self.note_lack(PartialReason::PagesMoved);
                }
                let used = self.keep_page_if_new(&seen);
                self.read_next_page_again(claim, no, stride);
                return used;
            }
            StepAnswer::Page(PageKind::Sign(EndSign::Empty), _) => (PartialReason::EmptyPage, None),
            StepAnswer::Page(..) => (PartialReason::PagesMoved, None),
            StepAnswer::Odd(sign) => (sign.reason(), None),
            StepAnswer::Failed(why, retry_after_secs) => (why, retry_after_secs),
        };
        if !self.retry_page(&why, retry_after_secs, now) {
            self.retry = None;
            self.note_lack(why);
            self.read_next_page_again(claim, no, stride);
        }
        PageUse::Drop
    }

    /// True when a document may be the page of this number by now. Where every page is read again,
    /// it may have moved on by more than a page.
    fn is_still(&self, no: u32, stride: u32, seen: &WalkedDocument<'_>) -> bool {
        self.trail.is_like(no, seen)
            || stride == 1 && !seen.keys.is_empty() && !self.trail.is_live(seen)
    }

    fn read_next_page_again(&mut self, claim: EndClaim, no: u32, stride: u32) {
        match no
            .checked_sub(stride)
            .filter(|next| *next > self.counts.way_from)
        {
            Some(no) => self.phase = WalkPhase::Ending(claim, EndStep::Check { no, stride }),
            None => self.ask_first_page_or_conclude(claim),
        }
    }

    /// The first page: it must show the live entries, or no pages are counted here.
    fn judge_first_page(&mut self, claim: &EndClaim, found: StepAnswer<'_>, now: Stamp) -> PageUse {
        match found {
            StepAnswer::Page(_, seen) if self.trail.is_first_page(self.counts.way_from, &seen) => {
                self.retry = None;
                let is_short =
                    self.trail
                        .is_short(self.counts.last, self.counts.way_from, seen.keys.len());
                self.counts.total = seen.metadata.paging.total_items.or(self.counts.total);
                let used = self.keep_page_if_new(&seen);
                self.conclude_way(
                    claim,
                    if is_short {
                        FirstPage::Longer
                    } else {
                        FirstPage::NoLonger
                    },
                );
                return used;
            }
            StepAnswer::Failed(why, retry_after_secs) => {
                if !self.retry_page(&why, retry_after_secs, now) {
                    self.conclude_way(claim, FirstPage::Elsewhere);
                }
            }
            StepAnswer::Page(..) | StepAnswer::Odd(_) => {
                let is_last_try = self
                    .retry
                    .as_ref()
                    .is_some_and(|retry| retry.tries >= FIRST_TRIES_MAX);
                if is_last_try || !self.retry_page(&PartialReason::PagingUnproven, None, now) {
                    self.conclude_way(claim, FirstPage::Elsewhere);
                }
            }
        }
        PageUse::Drop
    }

    /// The end was confirmed a while later: what else must be proven comes next.
    pub(super) fn go_on_with_proof(&mut self, claim: EndClaim) {
        if self.counts.on_way == 0 {
            return self.ask_first_page_or_conclude(claim);
        }
        if matches!(claim.sign, EndSign::Total { .. }) {
            // Where the count agrees, nothing stands between the pages.
            self.findings.holes.retain(|(_, reason)| reason.is_some());
        }
        if !self.may_guess() {
            self.findings.holes.retain(|(_, reason)| reason.is_some());
        }
        if !self.findings.holes.is_empty() {
            self.phase = WalkPhase::Ending(claim, EndStep::Hole);
            return;
        }
        let is_counted = matches!(claim.sign, EndSign::Total { .. });
        let shifts = match self.strategy() {
            Some(Strategy::CountedPages(counted)) => !counted.entries,
            Some(Strategy::Pages { .. }) => true,
            _ => false,
        };
        let last = self.trail.last_no(self.counts.way_from);
        match last {
            Some(no) if shifts && !is_counted && !self.findings.held_whole => {
                let stride = (no - self.counts.way_from)
                    .div_ceil(CHECKED_PAGES_MAX)
                    .max(1);
                self.phase = WalkPhase::Ending(claim, EndStep::Check { no, stride });
            }
            _ => self.ask_first_page_or_conclude(claim),
        }
    }

    /// The first page proves that pages are counted at all. In another order it is one of the pages
    /// that were read.
    fn ask_first_page_or_conclude(&mut self, claim: EndClaim) {
        let is_needed =
            self.counts_pages() && !self.strategy().is_some_and(Strategy::is_sorted_otherwise);
        if is_needed && !matches!(claim.sign, EndSign::Total { .. }) {
            self.retry = None;
            self.phase = WalkPhase::Ending(claim, EndStep::First);
        } else {
            self.conclude_way(&claim, FirstPage::NotAsked);
        }
    }

    // Decides: When does a walk end, and is its history complete?
    /// Ends the way by what was found.
    fn conclude_way(&mut self, claim: &EndClaim, first: FirstPage) {
        self.retry = None;
        if self.counts.on_way == 0 {
            // Without a first page nobody knows whether pages are counted here at all, but of
            // software that counts them.
            let is_alone = matches!(first, FirstPage::Longer | FirstPage::NoLonger)
                && self.findings.fits
                && claim.sign == (EndSign::Missing { status: 404 })
                && self
                    .strategy()
                    .is_some_and(Strategy::asks_for_the_second_page);
            self.begin_next_strategy(None);
            if is_alone && self.phase == WalkPhase::Done(Completion::Unknown) {
                self.findings.proof = Some(EndProof::OnlyPage);
                self.phase = WalkPhase::Done(Completion::Complete);
            }
            return;
        }
        let counted = self.strategy().and_then(Strategy::counted);
        let is_sorted_otherwise = self.strategy().is_some_and(Strategy::is_sorted_otherwise);
        let may_be_capped = counted.is_some_and(|counted| !counted.entries);
        let found = self.entries() as u64;
        let is_total = matches!(claim.sign, EndSign::Total { .. });
        if self.findings.damaged {
            return self.end_way_partial(PartialReason::DamagedPage);
        }
        if first == FirstPage::Elsewhere {
            return self.end_way_partial(PartialReason::PagingUnproven);
        }
        if let Some(total) = self.counts.total
            && !is_total
            && found < total
        {
            return self.end_way_partial(PartialReason::FewerThanSaid { total, found });
        }
        if is_sorted_otherwise && !self.trail.meets_live() {
            return self.end_way_partial(PartialReason::LiveNotMet);
        }
        // A server that gives no more looks the same, unless the publisher's count agrees.
        if first == FirstPage::NoLonger && self.counts.total.is_none() && may_be_capped {
            return self.end_way_partial(PartialReason::LastPageFull);
        }
        if let Some(lacks) = self.findings.lacks.clone() {
            return self.end_way_partial(lacks);
        }
        self.findings.proof = Some(match &claim.sign {
            EndSign::Total { items } => EndProof::Total { items: *items },
            _ if is_sorted_otherwise => EndProof::MeetsLive,
            _ if self.counts_pages() => EndProof::LastPage,
            _ => EndProof::LastArchive,
        });
        self.end_walk(Completion::Complete);
    }

    /// Asks for the same page later, and ends the way when that was done for long enough.
    fn retry_page_or_end_way(
        &mut self,
        reason: PartialReason,
        retry_after_secs: Option<u64>,
        now: Stamp,
    ) {
        let has_other_way = self.ways.len() > 1 && self.is_last_try();
        if has_other_way || !self.retry_page(&reason, retry_after_secs, now) {
            self.end_way_partial(reason);
        }
    }
}

impl ArchiveWalk {
    /// Plans to ask for the page before the first one that was linked, by the numbers in their
    /// addresses: between it and the live document pages may stand that nobody links to.
    pub(super) fn expect_newer(&mut self) {
        let first = self.counts.way_from.saturating_add(1);
        let addresses = (
            self.trail.url(first),
            self.trail.url(first.saturating_add(1)),
        );
        let (Some(first), Some(second)) = addresses else {
            return;
        };
        let (mut before, mut last) = (second.to_owned(), first.to_owned());
        for _ in 0..NEWER_MAX {
            let Some(newer) = next_number(&before, &last) else {
                return;
            };
            if !self.trail.has_visited(&newer) {
                return self.add_hole(newer, None);
            }
            (before, last) = (last, newer);
        }
    }
}

/// The address behind `last`, if it differs from the one before it in a number alone: as much more,
/// or less, once again.
fn next_number(before: &str, last: &str) -> Option<String> {
    let shared = before
        .bytes()
        .zip(last.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let digits_before = last.as_bytes()[..shared]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let start = shared - digits_before;
    let number = |url: &str| -> Option<(u64, usize)> {
        let digits = url
            .as_bytes()
            .get(start..)?
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        Some((url.get(start..start + digits)?.parse().ok()?, digits))
    };
    let ((one, width_of_one), (two, width)) = (number(before)?, number(last)?);
    if before.get(start + width_of_one..)? != last.get(start + width..)? || one == two {
        return None;
    }
    let next = if two > one {
        two.checked_add(two - one)?
    } else {
        two.checked_sub(one - two)?
    };
    let is_padded = width_of_one == width;
    let width = if is_padded { width } else { 0 };
    Some(format!(
        "{}{next:0width$}{}",
        last.get(..start)?,
        last.get(start + number(last)?.1..)?
    ))
}

#[cfg(test)]
mod tests {
    use super::next_number;

    #[test]
    fn the_next_address_is_a_number_further() {
        let check = |before: &str, last: &str, expect: Option<&str>| {
            assert_eq!(
                next_number(before, last).as_deref(),
                expect,
                "{before} {last}"
            );
        };
        check("http://x/a3", "http://x/a2", Some("http://x/a1"));
        check("http://x/a1", "http://x/a0", None);
        check(
            "http://x/a10.xml",
            "http://x/a9.xml",
            Some("http://x/a8.xml"),
        );
        check(
            "http://x/f?page=9",
            "http://x/f?page=10",
            Some("http://x/f?page=11"),
        );
        check("http://x/0010", "http://x/0009", Some("http://x/0008"));
        check(
            "http://x/2005/03",
            "http://x/2005/02",
            Some("http://x/2005/01"),
        );
        check(
            "http://x/f?start=26&n=25",
            "http://x/f?start=51&n=25",
            Some("http://x/f?start=76&n=25"),
        );
        check("http://x/a", "http://x/b", None);
        check("http://x/1/a", "http://x/2/b", None);
        check("http://x/a3", "http://x/a3", None);
        check("http://x/ü1", "http://x/ü2", Some("http://x/ü3"));
    }
}
