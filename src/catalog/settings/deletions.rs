//! `deletions` of a feed: how much absence proves that an item is gone, and what is refused.

use crate::{
    feed::absence,
    setting::{RefusedSetting, at_least_one},
};
use everfeed_adapters::platforms::Profile;
use serde::{Deserialize, Serialize};

/// `deletions` of a feed: how much absence proves that an item is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeletionSettings {
    /// Full documents that must lack the item while its neighbours are there.
    pub confirmations: u32,
    /// Seconds between the first and the last of them at least.
    pub apart_secs: u64,
    /// The same when the window was not conserved (POLLING 2.3, step 6).
    pub weak_confirmations: u32,
    /// Seconds between the first and the last of those at least.
    pub weak_secs: u64,
    /// Seconds between unconditional requests at least, while items are suspected to be gone.
    pub audit_secs: u64,
    /// True when a missed item's own page is asked for, if it has one at the feed's own origin.
    pub permalink_checks: bool,
    /// True when the feed's credentials are sent for such a page, if it lies below the feed's own
    /// folder.
    pub page_credentials: bool,
    /// Allows fewer confirmations than are safe.
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
}

impl Default for DeletionSettings {
    fn default() -> Self {
        let absence::ProofPolicy {
            confirmations,
            apart_secs,
            weak_confirmations,
            weak_secs,
            ..
        } = absence::ProofPolicy::default();
        Self {
            confirmations: confirmations.into(),
            apart_secs,
            weak_confirmations: weak_confirmations.into(),
            weak_secs,
            // Kroll's own limit of unconditional requests (POLLING 0.3).
            audit_secs: 86_400,
            permalink_checks: true,
            page_credentials: false,
            is_unsafe: false,
        }
    }
}

/// The fewest confirmations that are safe; one fewer takes a single bad document for the truth.
const CONFIRMATIONS_SAFE: u32 = 2;
/// Likewise where the window was not conserved.
const WEAK_CONFIRMATIONS_SAFE: u32 = 3;
/// Shorter than this, two documents may come from the same cache.
const APART_SECS_USUAL: u64 = 3600;
const WEAK_SECS_USUAL: u64 = 86_400;
/// Unconditional requests more often than this annoy publishers (POLLING 4.2).
const AUDIT_SECS_USUAL: u64 = 86_400;

impl DeletionSettings {
    /// The proof that a tombstone needs; `complete` when the document says that it is the whole
    /// feed.
    pub fn policy(&self, complete: bool) -> absence::ProofPolicy {
        let few = |count: u32| u8::try_from(count).unwrap_or(u8::MAX);
        absence::ProofPolicy {
            confirmations: few(self.confirmations),
            apart_secs: self.apart_secs,
            weak_confirmations: few(self.weak_confirmations),
            weak_secs: self.weak_secs,
            complete,
            checks_permalinks: self.permalink_checks,
            ..absence::ProofPolicy::default()
        }
    }

    /// The same for software that is known: its profile may ask for more proof, never for less.
    pub fn policy_for(&self, complete: bool, profile: Option<&Profile>) -> absence::ProofPolicy {
        let policy = self.policy(complete);
        let least = profile
            .and_then(|profile| profile.deletions.confirmations_min)
            .unwrap_or(0);
        let confirmations = policy
            .confirmations
            .max(u8::try_from(least).unwrap_or(u8::MAX));
        absence::ProofPolicy {
            confirmations,
            ..policy
        }
    }

    /// Values that would make tombstones of accidents, unless they are asked for by `unsafe`.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let mut problems = Vec::new();
        for (key, found, safe) in self.few() {
            if let Err(zero) = at_least_one(key, found.into(), "give at least 1") {
                problems.push(zero);
            } else if !self.is_unsafe {
                let found =
                    format!("{found}, and fewer than {safe} take an accident for a deletion");
                let wanted = "give more, or add `unsafe = true` to the same table";
                problems.push(RefusedSetting::new(key, found, wanted));
            }
        }
        problems
    }

    /// Warnings about values that are merely risky.
    pub fn warnings(&self) -> Vec<String> {
        let few = self.few().map(|(key, found, safe)| {
            format!(
                "`{key}` is {found}, which is unsafe: fewer than {safe} take an accident for a deletion; \
                 give {safe} or more"
            )
        });
        let times = [
            ("deletions.apart_secs", self.apart_secs, APART_SECS_USUAL),
            ("deletions.weak_secs", self.weak_secs, WEAK_SECS_USUAL),
            ("deletions.audit_secs", self.audit_secs, AUDIT_SECS_USUAL),
        ];
        let short = times.into_iter().filter(|(_, secs, usual)| secs < usual).map(|(key, secs, usual)| {
            format!("`{key}` is {secs}, shorter than the usual {usual}; give that or more, or leave it out")
        });
        few.chain(short).collect()
    }

    /// The counts that are smaller than is safe: the key, the value, and the smallest safe one.
    fn few(&self) -> impl Iterator<Item = (&'static str, u32, u32)> {
        let counts = [
            (
                "deletions.confirmations",
                self.confirmations,
                CONFIRMATIONS_SAFE,
            ),
            (
                "deletions.weak_confirmations",
                self.weak_confirmations,
                WEAK_CONFIRMATIONS_SAFE,
            ),
        ];
        counts.into_iter().filter(|(_, found, safe)| found < safe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_deletions_must_be_asked_for_by_that_name() {
        let parse = |text: &str| toml::from_str::<DeletionSettings>(text).unwrap();
        let keys = |text: &str| -> Vec<String> {
            parse(text)
                .problems()
                .into_iter()
                .map(|problem| problem.key)
                .collect()
        };
        let usual = parse("");
        assert_eq!(
            (usual.problems().len(), usual.warnings().len()),
            (0, 0),
            "the defaults are safe"
        );
        assert_eq!(keys("confirmations = 1"), ["deletions.confirmations"]);
        assert_eq!(
            keys("weak_confirmations = 2"),
            ["deletions.weak_confirmations"]
        );
        let both = ["deletions.confirmations", "deletions.weak_confirmations"];
        assert_eq!(
            keys("confirmations = 1\nweak_confirmations = 2"),
            both,
            "all at once"
        );
        let asked_for = parse("confirmations = 1\nunsafe = true");
        assert!(asked_for.problems().is_empty());
        assert_eq!(
            asked_for.warnings(),
            [
                "`deletions.confirmations` is 1, which is unsafe: fewer than 2 take an accident for a deletion; \
              give 2 or more"
            ]
        );
        assert_eq!(
            keys("confirmations = 0\nunsafe = true"),
            ["deletions.confirmations"]
        );
        let warnings = parse("apart_secs = 1\naudit_secs = 60").warnings();
        assert!(
            warnings[0]
                .starts_with("`deletions.apart_secs` is 1, shorter than the usual 3600; give")
        );
        assert_eq!(warnings.len(), 2);
    }
}
