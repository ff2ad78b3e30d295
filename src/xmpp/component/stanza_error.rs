//! Errors of stanzas (RFC 6120 section 8.3, XEP-0060): type, condition and what the extension adds;
//! not when each is given.

use super::{element::Element, ns};

/// An error that answers an iq.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StanzaError {
    kind: &'static str,
    condition: &'static str,
    /// The condition of XEP-0060, and the feature that it names.
    detail: Option<(&'static str, Option<&'static str>)>,
    text: Option<String>,
}

impl StanzaError {
    const fn of(kind: &'static str, condition: &'static str) -> Self {
        Self {
            kind,
            condition,
            detail: None,
            text: None,
        }
    }

    const fn detailed(kind: &'static str, condition: &'static str, detail: &'static str) -> Self {
        Self {
            kind,
            condition,
            detail: Some((detail, None)),
            text: None,
        }
    }

    /// The same with words for people.
    #[must_use]
    pub(super) fn saying(self, text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..self
        }
    }

    /// There is no such node or item, or it is not for the asker.
    pub(super) const ITEM_NOT_FOUND: Self = Self::of("cancel", "item-not-found");
    /// The request cannot be meant.
    pub(super) const BAD_REQUEST: Self = Self::of("modify", "bad-request");
    /// A node is needed.
    pub(super) const NODE_REQUIRED: Self =
        Self::detailed("modify", "bad-request", "nodeid-required");
    /// The address is missing, none, or that of somebody else.
    pub(super) const INVALID_JID: Self = Self::detailed("modify", "bad-request", "invalid-jid");
    /// The subscription is of somebody else.
    pub(super) const FORBIDDEN: Self = Self::of("auth", "forbidden");
    /// There is no such subscription.
    pub(super) const NOT_SUBSCRIBED: Self =
        Self::detailed("cancel", "unexpected-request", "not-subscribed");
    /// There are as many subscriptions as there may be.
    pub(super) const TOO_MANY_SUBSCRIPTIONS: Self =
        Self::detailed("wait", "policy-violation", "too-many-subscriptions");
    /// The stanza passes a limit.
    pub(super) const TOO_LARGE: Self = Self::of("modify", "policy-violation");
    /// Too much is asked for at once.
    pub(super) const BUSY: Self = Self::of("wait", "resource-constraint");
    /// There is no such service.
    pub(super) const NO_SERVICE: Self = Self::of("cancel", "service-unavailable");
    /// It is not there, and will not be.
    pub(super) const NOT_IMPLEMENTED: Self = Self::of("cancel", "feature-not-implemented");
    /// The fault is ours.
    pub(super) const INTERNAL: Self = Self::of("wait", "internal-server-error");

    /// A feature of XEP-0060 that is not there.
    pub(super) const fn unsupported(feature: &'static str) -> Self {
        Self {
            kind: "cancel",
            condition: "feature-not-implemented",
            detail: Some(("unsupported", Some(feature))),
            text: None,
        }
    }

    /// The `error` element.
    pub(super) fn element(&self) -> Element {
        let mut error = Element::new(ns::COMPONENT, "error")
            .with("type", self.kind)
            .holding(Element::new(ns::STANZA_ERROR, self.condition));
        if let Some(text) = &self.text {
            error = error.holding(Element::new(ns::STANZA_ERROR, "text").saying(text));
        }
        if let Some((detail, feature)) = self.detail {
            let detail = Element::new(ns::PUBSUB_ERRORS, detail).with_some("feature", feature);
            error = error.holding(detail);
        }
        error
    }

    /// Type, condition and detail, for tests and logs.
    #[cfg(test)]
    pub(super) fn words(&self) -> String {
        let (detail, feature) = self.detail.unwrap_or_default();
        let words = [
            self.kind,
            self.condition,
            detail,
            feature.unwrap_or_default(),
        ];
        words
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }
}
