//! The score of watching a publisher: how many of its deletions were found, and what was taken for
//! one.

use std::fmt;

#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    /// Visible posts that were deleted.
    pub deletions: usize,
    /// Edits of visible posts.
    pub edits: usize,
    /// The score of the window alone.
    pub by_absence: Told,
    /// The score when the posts' own pages are asked, too.
    pub with_pages: Told,
    /// Deletions that nobody missed, since the post stood at the end of the window or had rolled
    /// off before it could be proven: what asking for the pages of posts that rolled off could find
    /// at most.
    pub past_the_end: usize,
    /// Live items that are a post which another live item is, too.
    pub twice: usize,
}

/// The score of one way of judging.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub found: usize,
    /// Tombstones of posts that are there.
    pub false_ones: usize,
    /// From each deletion found to its tombstone.
    pub hours: Vec<f64>,
    /// Items that came back to life.
    pub resurrected: usize,
    /// Those of them that are deleted all the same: an old copy showed them.
    pub falsely_revived: usize,
    /// Gap markers between documents that have something in common with what was shown before.
    pub false_gaps: usize,
    /// Requests to the publisher.
    pub requests: usize,
    /// Changes of posts that a consumer was told who follows.
    pub edits: usize,
    /// Posts that are not served as the publisher shows them, after it has rested.
    pub stale: usize,
    /// Posts that were never read, of a history that is said to be complete.
    pub lost: usize,
}

impl Score {
    pub(crate) fn add(&mut self, other: &Self) {
        self.deletions += other.deletions;
        self.edits += other.edits;
        self.by_absence.add(&other.by_absence);
        self.with_pages.add(&other.with_pages);
        self.past_the_end += other.past_the_end;
        self.twice += other.twice;
    }

    pub(crate) fn found_share(&self) -> f64 {
        self.by_absence.found as f64 / self.deletions.max(1) as f64
    }

    pub(crate) fn found_with_pages(&self) -> f64 {
        self.with_pages.found as f64 / self.deletions.max(1) as f64
    }

    pub(crate) fn heading() -> String {
        let told = format!(
            "{:>6}{:>6}{:>6}{:>6}{:>6}{:>7}{:>6}",
            "found", "false", "hours", "back", "gaps", "asked", "told"
        );
        format!(
            "{:<30}{:>10}{:>6} |{:^43}|{:^43}| {:>12}{:>6}\n{:<30}{:>10}{:>6} |{told} |{told} | {:>12}{:>6}",
            "",
            "",
            "",
            "by absence",
            "with pages asked",
            "past",
            "live",
            "scenario",
            "deletions",
            "edits",
            "the end",
            "twice"
        )
    }
}

impl Told {
    fn add(&mut self, other: &Self) {
        self.found += other.found;
        self.false_ones += other.false_ones;
        self.hours.extend(&other.hours);
        self.resurrected += other.resurrected;
        self.falsely_revived += other.falsely_revived;
        self.false_gaps += other.false_gaps;
        self.requests += other.requests;
        self.edits += other.edits;
        self.stale += other.stale;
        self.lost += other.lost;
    }

    fn median_hours(&self) -> String {
        let mut hours = self.hours.clone();
        hours.sort_by(f64::total_cmp);
        hours
            .get(hours.len() / 2)
            .map_or_else(|| "-".to_owned(), |hours| format!("{hours:.0}"))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10}{:>6}", self.deletions, self.edits)?;
        for told in [&self.by_absence, &self.with_pages] {
            let Told {
                found,
                false_ones,
                resurrected,
                false_gaps,
                requests,
                edits,
                ..
            } = told;
            let hours = told.median_hours();
            write!(
                f,
                " |{found:>6}{false_ones:>6}{hours:>6}{resurrected:>6}{false_gaps:>6}{requests:>7}{edits:>6}"
            )?;
        }
        write!(f, " | {:>12}{:>6}", self.past_the_end, self.twice)
    }
}
