//! Times that were written while the clock ran ahead, once it is right again. Each of them would
//! wait until the clock is where it was before. They move back by as much as the clock did.

use super::{
    absence::{
        AbsenceState, DailyCount, DocumentTrail, NextCheck, PageControl, PageFinding,
        PermalinkCheck, Recurrence, Suspect, WindowItem,
        archives::ArchiveSuspect,
        departures::{Departure, Departures},
        recent_tombstone::RecentTombstone,
        revival::Revivals,
    },
    reconcile::{Correction, DeferredEdit, MovingEntry, RestlessPart, WindowEntry, WindowState},
    schedule::{DocumentFacts, Health, PollState, Timetable},
    stamp::Stamp,
};

/// The least number of seconds that counts: clocks that are kept right step by less.
pub const AHEAD_SECS_MIN: u64 = 60;

/// The most by which a time that is waited for lies after the time at which it was written, in
/// seconds. [`Stamp::MAX`] stands for "never".
const WAIT_SECS_MAX: u64 = 31 * 86_400;

/// A time in a state, and whether it has been or is waited for.
enum StoredTime<'s> {
    /// Of something that has happened.
    Past(&'s mut Stamp),
    /// Of something that is waited for.
    Due(&'s mut Stamp),
}

/// A state that holds times.
trait Timed {
    /// Hands over each of them.
    fn each_time(&mut self, see: &mut dyn FnMut(StoredTime<'_>));
}

// Decides: What becomes of stored times when the clock was set back?
/// Moves the times of a state back, if the latest of those that have been lies ahead of `now`. What
/// lies further ahead than anything is waited for is due now. True if a time was moved.
fn set_back(state: &mut impl Timed, now: Stamp) -> bool {
    let mut latest = Stamp::ZERO;
    state.each_time(&mut |time| {
        if let StoredTime::Past(at) = time {
            latest = latest.max(*at);
        }
    });
    let is_ahead = latest.secs_since(now) >= AHEAD_SECS_MIN;
    let ahead_us = if is_ahead {
        latest.micros() - now.micros()
    } else {
        0
    };
    let mut is_moved = false;
    state.each_time(&mut |time| {
        let (at, moved) = match time {
            StoredTime::Past(at) => {
                let is_wrong = is_ahead && *at > now;
                let us = if is_wrong { ahead_us } else { 0 };
                let moved = Stamp::from_micros(at.micros() - us);
                (at, moved)
            }
            StoredTime::Due(at) if *at == Stamp::MAX => (at, Stamp::MAX),
            StoredTime::Due(at) => {
                // One that was written before the clock went ahead is nearer to the right time.
                let from_right = at.micros().saturating_sub(now.micros());
                let is_wrong = from_right > at.micros().abs_diff(latest.micros());
                let us = if is_wrong { ahead_us } else { 0 };
                let moved = Stamp::from_micros(at.micros() - us);
                let is_possible = moved <= now.plus_secs(WAIT_SECS_MAX);
                (at, if is_possible { moved } else { now })
            }
        };
        is_moved |= *at != moved;
        *at = moved;
    });
    is_moved
}

impl WindowState {
    /// Corrects its times, if the clock was set back since they were written. True if it was.
    pub fn set_back(&mut self, now: Stamp) -> bool {
        set_back(self, now)
    }
}

impl PollState {
    /// Corrects its times, if the clock was set back since they were written. True if it was.
    pub fn set_back(&mut self, now: Stamp) -> bool {
        set_back(self, now)
    }
}

fn past(at: &mut Option<Stamp>, see: &mut dyn FnMut(StoredTime<'_>)) {
    at.iter_mut().for_each(|at| see(StoredTime::Past(at)));
}

fn due(at: &mut Option<Stamp>, see: &mut dyn FnMut(StoredTime<'_>)) {
    at.iter_mut().for_each(|at| see(StoredTime::Due(at)));
}

impl Timed for WindowState {
    fn each_time(&mut self, see: &mut dyn FnMut(StoredTime<'_>)) {
        let Self {
            entries,
            absence,
            deferred,
            reformatted_at,
            archive_suspects,
            tombstones,
            corrections,
            restless,
            moving,
        } = self;
        for WindowEntry { changing_since, .. } in entries {
            past(changing_since, see);
        }
        absence.each_time(see);
        for DeferredEdit {
            until,
            stretches,
            shown_since,
            ..
        } in deferred
        {
            see(StoredTime::Due(until));
            past(shown_since, see);
            for stretch in stretches {
                see(StoredTime::Past(&mut stretch.since));
            }
        }
        past(reformatted_at, see);
        for ArchiveSuspect {
            since, last_seen, ..
        } in archive_suspects
        {
            see(StoredTime::Past(since));
            see(StoredTime::Past(last_seen));
        }
        for RecentTombstone {
            ended_at, next_at, ..
        } in tombstones
        {
            see(StoredTime::Past(ended_at));
            see(StoredTime::Due(next_at));
        }
        for Correction { at, .. } in corrections {
            see(StoredTime::Past(at));
        }
        for RestlessPart {
            since, moved_at, ..
        } in restless
        {
            see(StoredTime::Past(since));
            see(StoredTime::Past(moved_at));
        }
        for MovingEntry { moved_at, .. } in moving {
            see(StoredTime::Past(moved_at));
        }
    }
}

impl Timed for AbsenceState {
    fn each_time(&mut self, see: &mut dyn FnMut(StoredTime<'_>)) {
        let Self {
            items,
            documents: DocumentTrail { seen_at, .. },
            quarantined_since,
            last_believed,
            conditional: _,
            ended: DailyCount { since, .. },
            recurrence: Recurrence {
                seen, doubted, off, ..
            },
            pinned: _,
            control,
            departures: Departures { rows, day, .. },
            revivals:
                Revivals {
                    waiting,
                    refuted_at,
                    ..
                },
        } = self;
        for WindowItem { suspect, .. } in items.iter_mut().chain(last_believed) {
            suspect
                .iter_mut()
                .for_each(|suspect| suspect.each_time(see));
        }
        for at in [seen_at, since, day, refuted_at] {
            see(StoredTime::Past(at));
        }
        past(quarantined_since, see);
        seen.iter_mut().for_each(|at| see(StoredTime::Past(at)));
        if let Some((at, _)) = doubted {
            see(StoredTime::Past(at));
        }
        past(off, see);
        if let Some(PageControl {
            at, failing_since, ..
        }) = control
        {
            see(StoredTime::Past(at));
            past(failing_since, see);
        }
        for Departure {
            last_seen,
            since,
            check,
            ..
        } in rows
        {
            see(StoredTime::Past(last_seen));
            see(StoredTime::Past(since));
            check.each_time(see);
        }
        for (_, since) in waiting {
            see(StoredTime::Past(since));
        }
    }
}

impl Timed for Suspect {
    fn each_time(&mut self, see: &mut dyn FnMut(StoredTime<'_>)) {
        for at in [&mut self.since, &mut self.last_seen, &mut self.counted_at] {
            see(StoredTime::Past(at));
        }
        self.permalink_check.each_time(see);
    }
}

impl Timed for PermalinkCheck {
    fn each_time(&mut self, see: &mut dyn FnMut(StoredTime<'_>)) {
        if let NextCheck::At(at) = &mut self.next {
            see(StoredTime::Due(at));
        }
        if let Some((at, _)) = &mut self.last {
            see(StoredTime::Past(at));
        }
        if let PageFinding::NotFoundSince(since) = &mut self.finding {
            see(StoredTime::Past(since));
        }
    }
}

impl Timed for PollState {
    fn each_time(&mut self, see: &mut dyn FnMut(StoredTime<'_>)) {
        // `next_at` is bounded where a state is resumed: intervals have no longest one.
        let Timetable {
            polled_at,
            unconditional_at,
            arrivals,
            agrees_at,
            ..
        } = &mut self.timetable;
        due(agrees_at, see);
        past(polled_at, see);
        past(unconditional_at, see);
        arrivals.iter_mut().for_each(|at| see(StoredTime::Past(at)));
        let Health {
            good_at,
            failures: _,
            fault,
            gone_at,
            moved,
            announced,
        } = &mut self.health;
        past(good_at, see);
        past(gone_at, see);
        let of_fault = fault.iter_mut().map(|fault| &mut fault.since);
        let of_moves = moved.iter_mut().map(|moved| &mut moved.since);
        let announced = announced.iter_mut().map(|moved| &mut moved.since);
        let named = self.named.iter_mut().map(|named| &mut named.since);
        for at in of_fault.chain(of_moves).chain(announced).chain(named) {
            see(StoredTime::Past(at));
        }
        let DocumentFacts {
            deferred_until,
            broken_since,
            ..
        } = &mut self.document;
        due(deferred_until, see);
        past(broken_since, see);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: Stamp = Stamp::from_secs(1_780_000_000);
    const DAY_SECS: u64 = 86_400;
    const YEAR_SECS: u64 = 365 * DAY_SECS;

    /// A state of a clock that was a year ahead, and was set back ten minutes after its last poll.
    fn polled_ahead() -> PollState {
        let polled_at = RIGHT.plus_secs(YEAR_SECS);
        let mut state = PollState::unpolled("http://h.example/feed");
        state.timetable.polled_at = Some(polled_at);
        state.timetable.agrees_at = Some(polled_at.plus_secs(1800));
        state.timetable.unconditional_at = Some(RIGHT.plus_secs(YEAR_SECS - 300));
        state.document.deferred_until = Some(RIGHT.plus_secs(DAY_SECS));
        state.health.good_at = Some(Stamp::from_secs(RIGHT.secs() - 900));
        state
    }

    #[test]
    fn times_of_a_clock_that_was_ahead_keep_their_distances_and_the_others_stay() {
        let mut state = polled_ahead();
        assert!(state.set_back(RIGHT));
        assert_eq!(state.timetable.polled_at, Some(RIGHT));
        assert_eq!(state.timetable.agrees_at, Some(RIGHT.plus_secs(1800)));
        let before = Stamp::from_secs(RIGHT.secs() - 300);
        assert_eq!(state.timetable.unconditional_at, Some(before));
        // Written before the clock went ahead.
        let deferred = Some(RIGHT.plus_secs(DAY_SECS));
        assert_eq!(state.document.deferred_until, deferred);
        let good = Some(Stamp::from_secs(RIGHT.secs() - 900));
        assert_eq!(state.health.good_at, good);
    }

    #[test]
    fn a_state_of_a_right_clock_stays_and_what_waits_for_ever_goes_on_waiting() {
        let mut right = polled_ahead();
        right.set_back(RIGHT);
        let before = right.clone();
        assert!(!right.set_back(RIGHT));
        let earlier = Stamp::from_secs(RIGHT.secs() - (AHEAD_SECS_MIN - 1));
        assert!(!right.set_back(earlier), "a small step");
        assert_eq!(right, before);
        let mut between = polled_ahead();
        between.document.deferred_until = Some(Stamp::MAX);
        assert!(between.set_back(RIGHT));
        assert_eq!(between.document.deferred_until, Some(Stamp::MAX));
    }

    #[test]
    fn the_page_of_a_tombstone_is_asked_for_in_a_day_and_not_in_a_year() {
        let ended_at = RIGHT.plus_secs(YEAR_SECS);
        let gone = RecentTombstone {
            id: crate::item::ItemId([7; 10]),
            ended_at,
            next_at: ended_at.plus_secs(DAY_SECS),
            entry: std::sync::Arc::default(),
            published_us: None,
            digests: Default::default(),
        };
        let mut window = WindowState {
            tombstones: vec![gone],
            ..WindowState::default()
        };
        assert!(window.set_back(RIGHT.plus_secs(600)));
        assert_eq!(
            window.next_check_at(),
            Some(RIGHT.plus_secs(600 + DAY_SECS))
        );
    }

    // This is left if only the page of a tombstone was requested while the clock ran ahead.
    #[test]
    fn a_time_beyond_all_that_is_waited_for_is_due_now() {
        let mut state = PollState::unpolled("http://h.example/feed");
        state.timetable.polled_at = Some(RIGHT);
        state.document.deferred_until = Some(RIGHT.plus_secs(YEAR_SECS));
        assert!(state.set_back(RIGHT));
        assert_eq!(state.document.deferred_until, Some(RIGHT));
        assert!(!state.set_back(RIGHT));
    }

    #[test]
    fn a_post_that_is_shown_again_waits_an_hour_and_not_a_year() {
        let shown_at = RIGHT.plus_secs(YEAR_SECS);
        let mut window = WindowState::default();
        window.absence.documents.seen_at = shown_at.plus_secs(60);
        let id = crate::item::ItemId([7; 10]);
        window.absence.revivals.waiting = vec![(id, shown_at)];
        assert!(window.set_back(RIGHT));
        assert!(!window.set_back(RIGHT));
        let since = Stamp::from_secs(RIGHT.secs() - 60);
        assert_eq!(window.absence.revivals.waits_since(id), Some(since));
        let agrees_at = window.absence.revivals_agree_at(RIGHT);
        assert_eq!(agrees_at, Some(since.plus_secs(3600)));
    }
}
