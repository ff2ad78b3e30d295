//! `poll` of a feed: the bounds within which it is polled.

use crate::{
    feed::schedule::{FLOOR_SECS, Policy},
    setting::{RefusedSetting, at_least_one},
};
use serde::{Deserialize, Serialize};

/// `poll` of a feed: the bounds within which it is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PollSettings {
    /// Seconds between polls at least. Not set: 3600, or less where the feed itself names a shorter
    /// rhythm.
    pub min_secs: Option<u64>,
    /// Seconds between polls at most, back-off included.
    pub max_secs: u64,
}

impl Default for PollSettings {
    fn default() -> Self {
        let Policy {
            min_secs, max_secs, ..
        } = Policy::default();
        Self { min_secs, max_secs }
    }
}

impl PollSettings {
    /// Values that cannot work.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let at_least = [
            at_least_one(
                "poll.min_secs",
                self.min_secs.unwrap_or(1),
                "give at least 1 second; 3600 is polite",
            ),
            at_least_one(
                "poll.max_secs",
                self.max_secs,
                "give at least 1 second; 86400 is usual",
            ),
        ];
        let mut problems: Vec<_> = at_least.into_iter().filter_map(Result::err).collect();
        if let Some(min_secs) = self.min_secs
            && self.max_secs > 0
            && min_secs > self.max_secs
        {
            let found = format!("{min_secs}, more than max_secs = {}", self.max_secs);
            let wanted = "give at most max_secs";
            problems.push(RefusedSetting::new("poll.min_secs", found, wanted));
        }
        problems
    }

    /// The shortest time between two polls, whole minutes: the `ttl` of the feed (LEGACY R-11).
    pub fn ttl_mins(&self) -> u32 {
        let secs = self.min_secs.unwrap_or(FLOOR_SECS).min(self.max_secs);
        u32::try_from(secs.div_ceil(60)).unwrap_or(u32::MAX)
    }

    /// The policy that these values make.
    pub fn policy(&self) -> Policy {
        Policy {
            min_secs: self.min_secs,
            max_secs: self.max_secs,
            ..Policy::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_cannot_work_is_refused_with_its_key() {
        let check = |text: &str, expect: &str| {
            let problems = toml::from_str::<PollSettings>(text).unwrap().problems();
            let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(told.join("\n"), expect);
        };
        check(
            "min_secs = 0",
            "poll.min_secs: found 0; give at least 1 second; 3600 is polite",
        );
        check(
            "max_secs = 0",
            "poll.max_secs: found 0; give at least 1 second; 86400 is usual",
        );
        check(
            "min_secs = 90000",
            "poll.min_secs: found 90000, more than max_secs = 86400; give at most max_secs",
        );
        check(
            "min_secs = 0\nmax_secs = 0",
            "poll.min_secs: found 0; give at least 1 second; 3600 is polite\n\
             poll.max_secs: found 0; give at least 1 second; 86400 is usual",
        );
        assert!(
            toml::from_str::<PollSettings>("min_sec = 1").is_err(),
            "a misspelt key is no key"
        );
        assert_eq!(
            toml::from_str::<PollSettings>("min_secs = 1\nmax_secs = 5")
                .unwrap()
                .problems(),
            []
        );
        assert_eq!(
            toml::from_str::<PollSettings>("").unwrap().policy(),
            Policy::default()
        );
    }

    // LEGACY R-11.
    #[test]
    fn the_ttl_is_the_shortest_interval_in_whole_minutes() {
        let check = |text: &str, mins: u32| {
            assert_eq!(
                toml::from_str::<PollSettings>(text).unwrap().ttl_mins(),
                mins,
                "{text}"
            );
        };
        check("", 60);
        check("min_secs = 7200", 120);
        check("max_secs = 600", 10);
        check("min_secs = 1", 1);
        check("min_secs = 90", 2);
    }
}
