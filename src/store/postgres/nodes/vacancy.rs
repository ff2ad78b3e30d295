//! The decision that nobody works on the database any more, by what looks at it find; no look is
//! made here.

use super::sweep::NodeSweep;
use std::time::Duration;
use tokio::time::Instant;

/// Time for which beat and epoch stand still of a process that holds its lock and does nothing.
const STILL_MAX: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });

/// Looks in that time at least: whoever was stopped itself has not looked.
const LOOKS_MIN: u32 = 5;

/// The conclusion of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::postgres) enum VacancyFound {
    /// Another process works.
    Taken,
    /// Nobody holds the lock. A process of which only the connection broke takes it again.
    Doubtful,
    /// Nobody works.
    Vacant,
}

/// The looks so far.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Vacancy {
    /// The last look that differed from the one before, its time, and the looks since.
    still: Option<(NodeSweep, Instant, u32)>,
    /// The look that found the lock free.
    doubtful: Option<NodeSweep>,
}

impl Vacancy {
    // Decides: When does another node take over?
    /// Takes in a look. Only its own monotonic clock counts, and no two clocks are compared.
    pub(in crate::store::postgres) fn look(
        &mut self,
        look: NodeSweep,
        now: Instant,
    ) -> VacancyFound {
        let found = self.by_lock(look);
        let is_same = |held: &NodeSweep| (held.epoch, held.beat) == (look.epoch, look.beat);
        match &mut self.still {
            Some((held, since, looks)) if is_same(held) => {
                *looks += 1;
                if *looks >= LOOKS_MIN && now.duration_since(*since) >= STILL_MAX {
                    return VacancyFound::Vacant;
                }
            }
            still => *still = Some((look, now, 0)),
        }
        found
    }

    fn by_lock(&mut self, look: NodeSweep) -> VacancyFound {
        if !look.is_free {
            self.doubtful = None;
            return VacancyFound::Taken;
        }
        if !look.is_running || self.doubtful == Some(look) {
            return VacancyFound::Vacant;
        }
        self.doubtful = Some(look);
        VacancyFound::Doubtful
    }

    /// Nothing could be looked at: what was found before tells nothing.
    pub(in crate::store::postgres) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKING: NodeSweep = NodeSweep {
        epoch: 3,
        beat: 7,
        is_free: false,
        is_running: true,
    };

    #[tokio::test(start_paused = true)]
    async fn a_beat_that_stands_still_is_vacant_by_our_own_clock_and_after_several_looks() {
        let start = Instant::now();
        let mut vacancy = Vacancy::default();
        for n in 0..LOOKS_MIN {
            let at = start + STILL_MAX * n / LOOKS_MIN;
            assert_eq!(vacancy.look(WORKING, at), VacancyFound::Taken, "look {n}");
        }
        let at = start + STILL_MAX;
        assert_eq!(vacancy.look(WORKING, at), VacancyFound::Vacant);
        // Whoever was stopped for a long time begins to look anew.
        let beating = NodeSweep { beat: 8, ..WORKING };
        assert_eq!(vacancy.look(beating, at), VacancyFound::Taken);
        let late = at + STILL_MAX * 9;
        assert_eq!(vacancy.look(beating, late), VacancyFound::Taken);
        vacancy.forget();
        assert_eq!(vacancy.look(beating, late), VacancyFound::Taken);
    }

    #[tokio::test(start_paused = true)]
    async fn a_free_lock_is_vacant_at_once_after_an_end_in_order_and_else_at_the_second_look() {
        let now = Instant::now();
        let mut vacancy = Vacancy::default();
        let free = NodeSweep {
            is_free: true,
            ..WORKING
        };
        assert_eq!(vacancy.look(free, now), VacancyFound::Doubtful);
        // It was the connection alone.
        let beating = NodeSweep { beat: 8, ..free };
        assert_eq!(vacancy.look(beating, now), VacancyFound::Doubtful);
        assert_eq!(vacancy.look(beating, now), VacancyFound::Vacant);
        let ended = NodeSweep {
            is_running: false,
            ..free
        };
        let mut vacancy = Vacancy::default();
        assert_eq!(vacancy.look(ended, now), VacancyFound::Vacant);
        let held = NodeSweep {
            is_free: false,
            ..ended
        };
        assert_eq!(vacancy.look(held, now), VacancyFound::Taken);
    }
}
