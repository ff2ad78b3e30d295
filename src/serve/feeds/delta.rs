//! Deltas (RFC 3229, `A-IM: feed`): does a consumer take the changed items of a page alone, and
//! since which state? Not which items those are.

use crate::{
    edge::{accepted::weighted, fields::list_value},
    feed::{record::Head, stamp::Stamp},
    serve::answers::accept::{CODINGS, coding_tag},
};
use http::{HeaderMap, HeaderName, header::IF_NONE_MATCH};

/// Manipulations of a body that a consumer takes.
const A_IM: HeaderName = HeaderName::from_static("a-im");

/// True where the consumer takes changed items alone.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let Some(accepted) = list_value(headers, &A_IM) else {
        return false;
    };
    accepted.split(',').any(|part| {
        let (name, quality) = weighted(part);
        name == "feed" && quality > 0
    })
}

/// A state of a view that the consumer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeltaBase {
    /// The newest T of that state.
    pub(super) last_t: Stamp,
    /// Its tag, as the consumer sent it; `Delta-Base` of the answer.
    pub(crate) tag: String,
}

/// The newest state of a view that the consumer holds, by its tags; those of other views, and of a
/// later state than ours, say nothing. `tail` is what the tags of the view have in common behind
/// state and revision.
pub(crate) fn base(headers: &HeaderMap, tail: &str, head: Head) -> Option<DeltaBase> {
    let known = list_value(headers, &IF_NONE_MATCH)?;
    let based = |tag: &str| {
        Some(DeltaBase {
            last_t: state(tag, tail)?,
            tag: tag.trim().to_owned(),
        })
    };
    let states = known.split(',').filter_map(based);
    states
        .filter(|base| base.last_t > Stamp::ZERO && base.last_t <= head.last_t)
        .max_by_key(|base| base.last_t)
}

/// The state in a tag of a view, in any coding.
fn state(tag: &str, tail: &str) -> Option<Stamp> {
    let tag = tag.trim();
    let tag = tag
        .strip_prefix("W/")
        .unwrap_or(tag)
        .strip_prefix('"')?
        .strip_suffix('"')?;
    let (t, rest) = tag.split_once('.')?;
    let (_, rest) = rest.split_once('.')?;
    let coding = rest.strip_prefix(tail)?;
    let is_ours = coding.is_empty() || CODINGS.into_iter().any(|ours| coding_tag(ours) == coding);
    if !is_ours {
        return None;
    }
    u64::from_str_radix(t, 16).ok().map(Stamp::from_micros)
}
