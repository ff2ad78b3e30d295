//! Leases: what is granted, and when we ask again ourselves; not the clock that ends it.

use super::Config;
use crate::{
    feed::stamp::Stamp,
    store::subscriptions::{Lease, PushWishes},
};

/// A lease as granted, and a word about it when it is not the one asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// Seconds.
    pub(super) secs: u64,
    /// A note for the subscriber.
    pub(super) word: Option<String>,
    /// True where an end was asked for at all.
    pub(super) asked: bool,
}

/// Grants a lease for `hub.lease_seconds`. Never refused: an odd lease is no reason to lose a
/// subscriber (DESIGN section 9), but silence about it would be.
pub(super) fn grant(asked: Option<&str>, config: &Config) -> Grant {
    let Some(text) = asked.filter(|text| !text.is_empty()) else {
        return Grant {
            secs: config.lease_default_secs,
            word: None,
            asked: false,
        };
    };
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    if !digits || text.bytes().all(|b| b == b'0') {
        let secs = config.lease_default_secs;
        let word = format!(
            "hub.lease_seconds is not a positive whole number and was ignored: {secs} granted"
        );
        return Grant {
            secs,
            word: Some(word),
            asked: false,
        };
    }
    // Digits that do not fit are more than the longest lease.
    let wanted = text.parse().unwrap_or(u64::MAX);
    let secs = wanted.clamp(config.lease_min_secs, config.lease_max_secs);
    let word = (secs != wanted).then(|| {
        let (min, max) = (config.lease_min_secs, config.lease_max_secs);
        format!("hub.lease_seconds is granted between {min} and {max}: {secs} granted")
    });
    Grant {
        secs,
        word,
        asked: true,
    }
}

// Decides: When is a subscriber without an end to its lease asked again?
/// Time to ask a legacy subscriber whether to go on: at four fifths of a lease that it asked for
/// without an end (D-P5). `None` for everybody else, whose business a renewal is.
pub(super) fn refresh_at(lease: Lease) -> Option<Stamp> {
    let left_us = Stamp::from_secs(lease.terms.secs).micros() / 5;
    lease
        .terms
        .auto_refresh
        .then(|| Stamp::from_micros(lease.until.micros().saturating_sub(left_us)))
}

/// Time to warn a subscriber that asked for it of the end of its lease: never in its first half, and
/// not at all where we ask again ourselves.
pub(super) fn warn_at(lease: Lease, wishes: &PushWishes) -> Option<Stamp> {
    let ahead_secs = wishes.warning_secs?.min(lease.terms.secs / 2);
    let at = lease
        .until
        .micros()
        .saturating_sub(Stamp::from_secs(ahead_secs).micros());
    (!lease.terms.auto_refresh).then_some(Stamp::from_micros(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::subscriptions::LeaseTerms;

    #[test]
    fn a_lease_is_clamped_or_ignored_with_a_word_and_never_refused() {
        let config = Config::default();
        let check = |asked: Option<&str>, secs: u64, word: bool, was_asked: bool| {
            let grant = grant(asked, &config);
            assert_eq!(
                (grant.secs, grant.word.is_some(), grant.asked),
                (secs, word, was_asked),
                "{asked:?}"
            );
        };
        check(None, 864_000, false, false);
        check(Some(""), 864_000, false, false);
        check(Some("3600"), 3600, false, true);
        check(Some("0300"), 300, false, true);
        check(Some("1"), 300, true, true);
        check(Some("999999999"), 2_592_000, true, true);
        check(Some("99999999999999999999999"), 2_592_000, true, true);
        check(Some("0"), 864_000, true, false);
        check(Some("-5"), 864_000, true, false);
        check(Some("1e6"), 864_000, true, false);
        check(Some("ten days"), 864_000, true, false);
    }

    #[test]
    fn a_warning_comes_when_it_was_asked_for_but_not_in_the_first_half_of_a_lease() {
        let check = |warning_secs: Option<u64>, auto_refresh: bool, expect: Option<u64>| {
            let terms = LeaseTerms {
                secs: 1_000,
                auto_refresh,
            };
            let until = Stamp::from_secs(10_000);
            let wishes = PushWishes {
                warning_secs,
                ..PushWishes::default()
            };
            let at = warn_at(Lease { until, terms }, &wishes);
            assert_eq!(at, expect.map(Stamp::from_secs), "{warning_secs:?}");
        };
        check(Some(1), false, Some(9_999));
        check(Some(499), false, Some(9_501));
        check(Some(500), false, Some(9_500));
        check(Some(501), false, Some(9_500));
        check(Some(u64::MAX), false, Some(9_500));
        check(Some(1), true, None);
        check(None, false, None);
    }
}
