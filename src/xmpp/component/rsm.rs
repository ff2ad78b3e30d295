//! Result Set Management (XEP-0059) and what stands for it: the part of a list that is asked for,
//! and the set that tells which part was answered; not the list.

use super::{element::Element, ns, stanza_error::StanzaError};
use crate::feed::{
    order::Order,
    position::{BadPosition, Position},
};

/// The part of a list that a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AskedSet {
    /// Items at most; `None` for as many as are usual. 0 asks for the count alone.
    pub(super) max: Option<usize>,
    /// After this; empty for nothing.
    pub(super) after: String,
    /// Before this; an empty one asks for the last part. `None` where it is not asked for.
    pub(super) before: Option<String>,
    /// From this place on.
    pub(super) index: Option<u64>,
}

/// The part of a list that is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AnsweredSet {
    /// The names of the first and the last, where there are any.
    pub(super) ends: Option<(String, String)>,
    /// The place of the first in the whole list, where it is known.
    pub(super) index: Option<u64>,
    /// The length of the whole list, where it is known.
    pub(super) count: Option<u64>,
}

impl AskedSet {
    /// The `set` that stands in or beside an element, if one does.
    pub(super) fn of(parent: &Element) -> Result<Option<Self>, StanzaError> {
        parent.child(ns::RSM, "set").map(Self::read).transpose()
    }

    fn read(set: &Element) -> Result<Self, StanzaError> {
        let text = |name: &str| {
            set.child(ns::RSM, name)
                .map(|it| it.text().trim().to_owned())
        };
        Ok(Self {
            max: number("max", text("max"))?.map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
            after: text("after").unwrap_or_default(),
            before: text("before"),
            index: number("index", text("index"))?,
        })
    }
}

/// A whole number. More than fits is as much as fits.
pub(super) fn number(name: &str, text: Option<String>) -> Result<Option<u64>, StanzaError> {
    let Some(text) = text else {
        return Ok(None);
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = format!("`{name}` must be a whole number, 0 or more");
        return Err(StanzaError::BAD_REQUEST.saying(text));
    }
    Ok(Some(text.parse().unwrap_or(u64::MAX)))
}

// Decides: What does a UID of Result Set Management mean?
/// The position spec that a UID means in an order; one without a type is an id (XMPP-28). A cursor
/// that leads nowhere goes on from its time (XMPP-27), but one that is none is a mistake.
pub(super) fn position_spec(uid: &str, order: Order) -> Result<String, StanzaError> {
    if uid.is_empty() {
        return Ok(String::new());
    }
    let spec = if uid.contains(':') {
        uid.to_owned()
    } else {
        format!("id:{uid}")
    };
    match Position::parse(&spec) {
        Ok(Some(Position::Id(_))) if !order.takes_ids() => {
            let text = "items move in this order; give a cursor or a time, or take order=created";
            Err(StanzaError::NOT_IMPLEMENTED.saying(text))
        }
        Ok(Some(Position::Start { .. } | Position::Time { degraded: true, .. })) => {
            let text = "a cursor is written cursor:T_O_C, as in cursor:1389003527_0_3678689003";
            Err(StanzaError::BAD_REQUEST.saying(text))
        }
        Ok(_) => Ok(spec),
        Err(
            bad @ (BadPosition::Syntax
            | BadPosition::UnsupportedType
            | BadPosition::EmptyId
            | BadPosition::BadTime),
        ) => Err(StanzaError::BAD_REQUEST.saying(bad.to_string())),
    }
}

impl AnsweredSet {
    /// The `set` element.
    pub(super) fn element(&self) -> Element {
        let leaf = |name: &str, text: &str| Element::new(ns::RSM, name).saying(text);
        let mut set = Element::new(ns::RSM, "set");
        if let Some((first, last)) = &self.ends {
            let index = self.index.map(|index| index.to_string());
            let first = leaf("first", first).with_some("index", index.as_deref());
            set = set.holding(first).holding(leaf("last", last));
        }
        let count = self.count.map(|count| leaf("count", &count.to_string()));
        set.holding_all(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(parts: &[(&str, &str)]) -> Result<AskedSet, StanzaError> {
        let parts = parts
            .iter()
            .map(|(name, text)| Element::new(ns::RSM, name).saying(text));
        let set = Element::new(ns::RSM, "set").holding_all(parts);
        Ok(AskedSet::of(&Element::new(ns::PUBSUB, "pubsub").holding(set))?.unwrap())
    }

    #[test]
    fn a_set_is_read_and_bad_numbers_are_refused() {
        // XMPP-24, XMPP-25; section 6 of the brief: max and index.
        let set = asked(&[("max", "5"), ("after", "cursor:1_0_2"), ("before", "")]).unwrap();
        assert_eq!((set.max, set.after.as_str()), (Some(5), "cursor:1_0_2"));
        assert_eq!(set.before.as_deref(), Some(""));
        assert_eq!(
            asked(&[("max", "99999999999999999999")]).unwrap().max,
            Some(usize::MAX)
        );
        for bad in [("max", "-1"), ("max", "x"), ("max", ""), ("index", "1.5")] {
            assert_eq!(
                asked(&[bad]).unwrap_err().words(),
                "modify bad-request",
                "{bad:?}"
            );
        }
        assert_eq!(AskedSet::of(&Element::new(ns::PUBSUB, "pubsub")), Ok(None));
    }

    #[test]
    fn a_uid_is_a_position_or_an_id() {
        // XMPP-27, XMPP-28; section 6 of the brief: positions.
        let spec = |uid| position_spec(uid, Order::CREATED).map_err(|error| error.words());
        assert_eq!(spec("cursor:1_0_2").unwrap(), "cursor:1_0_2");
        assert_eq!(spec("abc").unwrap(), "id:abc");
        assert_eq!(spec("time:2014-01-06").unwrap(), "time:2014-01-06");
        for bad in [
            "urn:x",
            "id:",
            "time:x",
            ":x",
            "cursor:",
            "cursor:-",
            "cursor:zzz",
            "cursor:1_2",
            "cursor:1_2_3_4",
        ] {
            assert_eq!(spec(bad).unwrap_err(), "modify bad-request", "{bad}");
        }
        let moving = position_spec("abc", Order::MODIFIED).unwrap_err();
        assert_eq!(moving.words(), "cancel feature-not-implemented");
    }

    #[test]
    fn ends_are_told_only_where_there_are_any() {
        // XMPP-22: XEP-0059 section 2.1, 2.2.
        let set = AnsweredSet {
            ends: Some(("a".into(), "b".into())),
            index: Some(3),
            count: Some(9),
        };
        let written = set.element().written(ns::RSM);
        assert_eq!(
            written,
            "<set><first index=\"3\">a</first><last>b</last><count>9</count></set>"
        );
        let empty = AnsweredSet { ends: None, ..set };
        assert_eq!(
            empty.element().written(ns::RSM),
            "<set><count>9</count></set>"
        );
    }
}
