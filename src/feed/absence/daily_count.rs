//! Count of the items that are taken for deleted in a day because they are missing: a mistake of
//! ours must not empty a feed before somebody notices (POLLING 2.3, step 5).

use crate::stamp::Stamp;

/// Items taken for deleted in one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DailyCount {
    /// Beginning of the day.
    pub since: Stamp,
    /// Items so far.
    pub count: u16,
}

/// Items of a feed that are taken for deleted in a day because they are missing, at most.
pub(super) const DAILY_MAX: u16 = 100;

const DAY_SECS: u64 = 86_400;

impl DailyCount {
    /// Counts an item; false when enough are for a day.
    pub(super) fn admit(&mut self, now: Stamp) -> bool {
        if now.secs_since(self.since) >= DAY_SECS {
            *self = Self {
                since: now,
                count: 0,
            };
        }
        let may = self.count < DAILY_MAX;
        self.count += u16::from(may);
        may
    }
}
