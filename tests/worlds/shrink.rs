//! Makes a failing world smaller, as long as it fails: fewer deeds, consumers, publishers and
//! troubles, and less time.

use super::{
    plan::{HOUR, MINUTE, Plan, Source},
    play::{Outcome, play},
};

/// Worlds that are tried at most.
const TRIES_MAX: usize = 150;

/// The smallest world found that fails, and its end.
pub(crate) fn shrunk(plan: Plan, outcome: Outcome) -> (Plan, Outcome) {
    let mut shrinking = Shrinking {
        plan,
        outcome,
        tries: 0,
    };
    while shrinking.tries < TRIES_MAX && shrinking.round() {}
    (shrinking.plan, shrinking.outcome)
}

struct Shrinking {
    plan: Plan,
    outcome: Outcome,
    tries: usize,
}

impl Shrinking {
    /// Tries to take out each thing once. True if something went.
    fn round(&mut self) -> bool {
        let before = self.plan.size();
        self.without_deeds();
        for no in numbers(self.plan.consumers.iter().map(|consumer| consumer.no)) {
            self.attempt(|plan| plan.consumers.retain(|consumer| consumer.no != no));
        }
        for no in numbers(self.plan.feeds.iter().map(|feed| feed.no)) {
            self.attempt(|plan| {
                plan.feeds.retain(|feed| feed.no != no);
                plan.consumers
                    .retain(|consumer| consumer.source != Source::Feed(no));
            });
        }
        self.attempt(|plan| plan.has_group = false);
        self.attempt(|plan| plan.trouble = 0);
        for no in numbers(self.plan.feeds.iter().map(|feed| feed.no)) {
            self.attempt(|plan| {
                let feed = plan.feeds.iter_mut().find(|feed| feed.no == no);
                feed.expect("it is there").has_archives = false;
            });
            self.attempt(|plan| {
                let feed = plan.feeds.iter_mut().find(|feed| feed.no == no);
                let feed = feed.expect("it is there");
                feed.posts = feed.posts.min(3);
            });
        }
        let last_ms = self.plan.deeds.last().map_or(0, |deed| deed.at_ms);
        self.attempt(|plan| plan.busy_ms = plan.busy_ms.min(last_ms + HOUR));
        self.plan.size() < before
    }

    /// Takes deeds out, many at once first.
    fn without_deeds(&mut self) {
        let mut size = self.plan.deeds.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < self.plan.deeds.len() {
                let end = (at + size).min(self.plan.deeds.len());
                if !self.attempt(|plan| drop(plan.deeds.drain(at..end))) {
                    at = end;
                }
            }
            size /= 2;
        }
    }

    /// Plays the plan with a change, which stays if that fails, too.
    fn attempt(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        let mut plan = self.plan.clone();
        change(&mut plan);
        if plan == self.plan || plan.feeds.is_empty() || self.tries >= TRIES_MAX {
            return false;
        }
        self.tries += 1;
        let outcome = play(&plan);
        let fails = outcome.fault.is_some();
        if fails {
            (self.plan, self.outcome) = (plan, outcome);
        }
        fails
    }
}

fn numbers(of: impl Iterator<Item = usize>) -> Vec<usize> {
    of.collect()
}

impl Plan {
    /// The parts of it that can be read.
    fn size(&self) -> usize {
        let feeds = self.feeds.iter().map(|feed| 10 + feed.posts as usize);
        let hours = (self.busy_ms / HOUR) as usize;
        self.deeds.len() * 3
            + self.consumers.len() * 10
            + feeds.sum::<usize>()
            + usize::from(self.trouble > 0) * 10
            + usize::from(self.has_group) * 10
            + hours
    }

    /// The plan as somebody reads it.
    pub(crate) fn told(&self) -> String {
        let mut lines = vec![format!(
            "world {} for {} minutes, with trouble of {} in a thousand{}",
            self.seed,
            self.busy_ms / MINUTE,
            self.trouble,
            if self.has_group { ", and a group" } else { "" }
        )];
        lines.extend(self.feeds.iter().map(|feed| format!("  {feed:?}")));
        lines.extend(
            self.consumers
                .iter()
                .map(|consumer| format!("  {consumer:?}")),
        );
        let deeds = self.deeds.iter();
        lines.extend(deeds.map(|deed| {
            let secs = deed.at_ms / 1000;
            let (hours, minutes) = (secs / 3600, secs / 60 % 60);
            format!("  {hours:02}:{minutes:02}:{:02} {:?}", secs % 60, deed.what)
        }));
        lines.join("\n")
    }
}
