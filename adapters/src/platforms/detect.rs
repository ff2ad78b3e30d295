//! Which platform a document shows: by what it says of itself, never by one weak sign alone.

use super::profile::Profile;
use super::sign::{Sign, SignKind, Weight};
use super::traces::{ParsedTraces, Traces};
use serde::{Deserialize, Serialize};

/// The profile of a feed that no other recognises. Its scrubbers hold for every platform.
pub const GENERIC: &str = "generic";

/// A platform, and why it is thought to be that one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    /// The profile's name; [`GENERIC`] when nothing is recognised.
    pub platform: String,
    /// The sign, or the signs, in words.
    pub why: String,
    /// Certainty; `None` when nothing was recognised.
    pub weight: Option<Weight>,
}

/// The platform of a document. Strong signs first, in the order of their rank; what stands in front
/// of a platform only when no platform shows; then two weak signs of different kinds.
pub(super) fn detect<'p>(
    profiles: impl Iterator<Item = &'p Profile>,
    traces: &Traces<'_>,
) -> Detected {
    let seen = ParsedTraces::new(traces);
    let mut best: Option<(Standing, Detected)> = None;
    for profile in profiles {
        let Some((standing, why)) = standing(profile, &seen) else {
            continue;
        };
        if best.as_ref().is_none_or(|(other, _)| standing < *other) {
            let weight = Some(if standing.is_weak {
                Weight::Weak
            } else {
                Weight::Strong
            });
            best = Some((
                standing,
                Detected {
                    platform: profile.name.clone(),
                    why,
                    weight,
                },
            ));
        }
    }
    let nothing = || Detected {
        platform: GENERIC.to_owned(),
        why: "nothing names a platform".to_owned(),
        weight: None,
    };
    best.map_or_else(nothing, |(_, detected)| detected)
}

/// Which of two recognised platforms it is: the smaller.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    is_weak: bool,
    is_carrier: bool,
    rank: u8,
}

fn standing(profile: &Profile, seen: &ParsedTraces<'_>) -> Option<(Standing, String)> {
    let met = || profile.detect.iter().filter(|sign| seen.shows(sign));
    // Who names another generator shows entries that were made elsewhere.
    let is_own =
        !seen.names_a_generator() || met().any(|sign| matches!(sign.kind, SignKind::Generator(_)));
    let met: Vec<&Sign> = met()
        .filter(|sign| is_own || !sign.kind.is_of_entries())
        .collect();
    let is_carrier = profile.carrier;
    let strong = met
        .iter()
        .filter(|sign| sign.weight == Weight::Strong)
        .min_by_key(|sign| sign.kind.rank());
    if let Some(sign) = strong {
        return Some((
            Standing {
                is_weak: false,
                is_carrier,
                rank: sign.kind.rank(),
            },
            sign.why.clone(),
        ));
    }
    let first = met.iter().min_by_key(|sign| sign.kind.rank())?;
    let second = met
        .iter()
        .find(|sign| sign.kind.rank() != first.kind.rank())?;
    let why = format!("{}, and {}", first.why, second.why);
    Some((
        Standing {
            is_weak: true,
            is_carrier,
            rank: first.kind.rank(),
        },
        why,
    ))
}
