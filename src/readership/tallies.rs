//! Counts of readers by feed and software, bounded; pure. Not how requests come here.

use super::{
    counts::{ClientCount, Counts, DAY_SECS, RollingCounts},
    report::{OTHER_SOFTWARE, ReaderFigures, RequestFigures, SoftwareFigures},
    software::{CLAIMED_READERS_MAX, Claim, Software, SoftwareKind},
};
use crate::feed::{record::FeedNo, stamp::Stamp};
use std::collections::{BTreeMap, HashMap};

/// Kinds of software that nobody knows and a feed counts one by one. Known software has rows beside
/// them, so that invented names take nobody's place.
pub const UNKNOWN_SOFTWARE_MAX: usize = 24;

/// Rows of all feeds: one feed and one kind of software each. More are counted as other software of
/// their feed.
pub const SOFTWARE_ROWS_MAX: usize = 200_000;

/// Feeds that are counted. A request for one more is not attributed.
pub const COUNTED_FEEDS_MAX: usize = 200_000;

/// Seconds without a request after which unknown software gives its row to another.
const ROW_IDLE_SECS: u64 = 86_400;

/// Requests of a day at least, of software that asks too often.
const OFTEN_REQUESTS_MIN: u32 = 24;
/// Seconds between two requests of one client that never makes a conditional one, at least.
const UNCONDITIONAL_GAP_SECS: u64 = 300;
/// Seconds over which a rate is reckoned at least.
const RATE_SECS_MIN: u64 = 3600;
/// Requests of a month that were answered by 410 and are borne.
const GONE_BORNE: u32 = 9;
/// Requests of a day that were answered by 429 and are borne.
const REFUSED_BORNE: u32 = 9;

/// Counts of one kind of software for one feed.
#[derive(Clone, Debug)]
struct SoftwareTally {
    kind: SoftwareKind,
    counts: RollingCounts,
    /// Time of the first request, seconds.
    first_seen: u64,
    /// Time of the last one, seconds.
    last_seen: u64,
}

impl SoftwareTally {
    fn new(kind: SoftwareKind, secs: u64) -> Self {
        Self {
            kind,
            counts: RollingCounts::default(),
            first_seen: secs,
            last_seen: secs,
        }
    }

    fn add(&mut self, secs: u64, counts: Counts) {
        self.counts.add(secs, counts);
        self.last_seen = self.last_seen.max(secs);
    }

    fn figures(&self, name: &str, secs: u64) -> SoftwareFigures {
        let (day, month) = (self.counts.day(secs), self.counts.month(secs));
        let claimed = self.counts.claimed(secs);
        let moment = |secs| Stamp::from_secs(secs).rfc3339();
        SoftwareFigures {
            software: name.to_owned(),
            kind: self.kind,
            claimed: (claimed > 0).then_some(claimed),
            clients_about: match day.clients.about() {
                ClientCount::About(clients) => Some(clients),
                ClientCount::Many => None,
            },
            day: figures_of(day),
            month: figures_of(month),
            first_seen: moment(self.first_seen),
            last_seen: moment(self.last_seen),
            misbehaves: Vec::new(),
        }
    }

    // Decides: Which software misbehaves, and why?
    /// The faults of software, in words. It misbehaves if
    ///
    /// - no request of the last day was conditional, and each client asked more often than every
    ///   five minutes on average. Software with too many clients to count is not accused.
    /// - it was answered by 410 (gone) ten times or more in the last month;
    /// - it was answered by 429 (too many requests) ten times or more in the last day, and with most
    ///   of its requests;
    /// - one of its requests claims more readers than any feed has.
    fn faults(&self, secs: u64) -> Vec<String> {
        let (day, month) = (self.counts.day(secs), self.counts.month(secs));
        let mut faults = Vec::new();
        if let ClientCount::About(clients) = day.clients.about()
            && day.conditional == 0
            && day.requests >= OFTEN_REQUESTS_MIN
        {
            let counted = secs.saturating_sub(self.first_seen);
            let counted = counted.clamp(RATE_SECS_MIN, DAY_SECS);
            let gap = counted * u64::from(clients.max(1)) / u64::from(day.requests);
            if gap < UNCONDITIONAL_GAP_SECS {
                faults.push(format!(
                    "each of its clients (about {}) asks every {gap} s or more often, and sends no If-None-Match and no If-Modified-Since",
                    clients.max(1)
                ));
            }
        }
        if month.gone > GONE_BORNE {
            faults.push(format!(
                "it goes on asking after 410 (gone): {} times in 30 days",
                month.gone
            ));
        }
        if day.refused > REFUSED_BORNE && day.refused > day.requests / 2 {
            faults.push(format!(
                "it ignores Retry-After: 429 (too many requests) answered {} of its {} requests of a day",
                day.refused, day.requests
            ));
        }
        if month.absurd > 0 {
            faults.push(format!(
                "{} of its requests claim more than {CLAIMED_READERS_MAX} readers, which counts as no claim",
                month.absurd
            ));
        }
        faults
    }
}

fn figures_of(counts: Counts) -> RequestFigures {
    RequestFigures {
        requests: counts.requests.into(),
        conditional: counts.conditional.into(),
    }
}

/// Counts of one feed.
#[derive(Clone, Debug, Default)]
struct FeedTally {
    /// By name.
    software: BTreeMap<Box<str>, SoftwareTally>,
    /// All software without a row.
    other: Option<Box<SoftwareTally>>,
}

impl FeedTally {
    /// True if software without a row may have one; unknown software that was idle for a day gives way.
    fn may_have_row(&mut self, kind: SoftwareKind, secs: u64, rows: &mut usize) -> bool {
        if kind == SoftwareKind::Other {
            let unknown = self.software.iter();
            let unknown = unknown.filter(|(_, tally)| tally.kind == SoftwareKind::Other);
            if unknown.clone().count() >= UNKNOWN_SOFTWARE_MAX {
                let idlest = unknown.min_by_key(|(_, tally)| tally.last_seen);
                let idle = idlest.filter(|(_, tally)| tally.last_seen + ROW_IDLE_SECS < secs);
                let Some(name) = idle.map(|(name, _)| name.clone()) else {
                    return false;
                };
                self.software.remove(&name);
                *rows -= 1;
            }
        }
        *rows < SOFTWARE_ROWS_MAX
    }

    /// The row of software, or that of all other software.
    fn row(&mut self, software: &Software, secs: u64, rows: &mut usize) -> &mut SoftwareTally {
        let name = &*software.name;
        if !self.software.contains_key(name) && !self.may_have_row(software.kind, secs, rows) {
            let other = || Box::new(SoftwareTally::new(SoftwareKind::Other, secs));
            return self.other.get_or_insert_with(other);
        }
        let row = self.software.entry(name.into());
        row.or_insert_with(|| {
            *rows += 1;
            SoftwareTally::new(software.kind, secs)
        })
    }

    fn figures(&self, secs: u64) -> ReaderFigures {
        let rows = self.software.iter();
        let mut software: Vec<SoftwareFigures> = rows
            .filter(|(_, tally)| !tally.counts.is_over(secs))
            .map(|(name, tally)| SoftwareFigures {
                misbehaves: tally.faults(secs),
                ..tally.figures(name, secs)
            })
            .collect();
        let order = |it: &SoftwareFigures| (it.claimed, it.month.requests);
        software.sort_by_key(|it| std::cmp::Reverse(order(it)));
        // Software of several kinds is accused of nothing.
        let other = self.other.iter().filter(|it| !it.counts.is_over(secs));
        software.extend(other.map(|it| it.figures(OTHER_SOFTWARE, secs)));
        let mut figures = ReaderFigures::default();
        for it in &software {
            figures.claimed += u64::from(it.claimed.unwrap_or(0));
            figures.day.add(it.day);
            figures.month.add(it.month);
        }
        ReaderFigures {
            software,
            ..figures
        }
    }

    /// Removes what is older than a month; false if nothing is left.
    fn shed(&mut self, secs: u64, rows: &mut usize) -> bool {
        let before = self.software.len();
        self.software.retain(|_, tally| !tally.counts.is_over(secs));
        *rows -= before - self.software.len();
        self.other.take_if(|tally| tally.counts.is_over(secs));
        !self.software.is_empty() || self.other.is_some()
    }
}

/// Counts of all feeds.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallies {
    feeds: HashMap<FeedNo, FeedTally>,
    /// Rows of software of all feeds.
    rows: usize,
    /// The day on which old rows were removed last.
    shed_on: u64,
}

impl Tallies {
    /// Adds requests of some software for a feed; false if there is no room for the feed.
    pub(super) fn add(
        &mut self,
        feed: FeedNo,
        software: &Software,
        mut counts: Counts,
        now: Stamp,
    ) -> bool {
        match software.claim {
            Claim::None => {}
            Claim::Readers(readers) => counts.claimed = readers,
            Claim::Absurd => counts.absurd = counts.requests,
        }
        let secs = now.secs();
        self.shed(secs);
        if self.feeds.len() >= COUNTED_FEEDS_MAX && !self.feeds.contains_key(&feed) {
            return false;
        }
        let tally = self.feeds.entry(feed).or_default();
        tally.row(software, secs, &mut self.rows).add(secs, counts);
        true
    }

    /// Figures of a feed, without its name; `None` if nobody asked for it in the last month.
    pub(super) fn figures(&self, feed: FeedNo, now: Stamp) -> Option<ReaderFigures> {
        let figures = self.feeds.get(&feed)?.figures(now.secs());
        (!figures.software.is_empty()).then_some(figures)
    }

    /// True for a feed that somebody asked for.
    pub(super) fn has(&self, feed: FeedNo) -> bool {
        self.feeds.contains_key(&feed)
    }

    /// Removes rows that are older than a month, once a day.
    fn shed(&mut self, secs: u64) {
        let day = secs / 86_400;
        if day <= self.shed_on {
            return;
        }
        self.shed_on = day;
        let rows = &mut self.rows;
        self.feeds.retain(|_, feed| feed.shed(secs, rows));
    }
}

#[cfg(test)]
mod tests;
