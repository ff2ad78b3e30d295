//! The scope of an element: the base and the language that it inherits, and the texts and
//! references resolved in it.

use std::borrow::Cow;

use url::Url;

use crate::note::Notes;
use crate::text::markup::XML;
use crate::text::{html, uri};
use crate::{Element, Note, Text, TextKind};

/// Length of the part of a bad `xml:base` that a note quotes.
const BASE_SHOWN_CHARS: usize = 100;

/// The base and the language that an element inherits from the elements around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) base: Option<Url>,
    /// True when the document named the base itself.
    pub(crate) is_rebased: bool,
    /// Empty where `xml:lang=""` says that there is none, so that none is inherited (XML section
    /// 2.12).
    pub(crate) language: Option<String>,
}

impl Scope {
    /// The scope inside an element. A bad `xml:base` is passed over, with a note.
    pub(crate) fn enter(&self, element: &Element, notes: &mut Notes) -> Cow<'_, Self> {
        let base = element.attribute_ns(XML, "base");
        let language = element.attribute_ns(XML, "lang");
        if base.is_none() && language.is_none() {
            return Cow::Borrowed(self);
        }
        let mut inside = self.clone();
        if let Some(base) = base {
            inside.rebase(base, notes);
        }
        if let Some(language) = language {
            inside.language = Some(language.trim().to_owned());
        }
        Cow::Owned(inside)
    }

    /// Applies an `xml:base`, if it is a good one.
    pub(crate) fn rebase(&mut self, reference: &str, notes: &mut Notes) {
        match uri::rebase(self.base.as_ref(), reference) {
            Some(base) => {
                self.base = Some(base);
                self.is_rebased = true;
            }
            None => {
                let start: String = reference.chars().take(BASE_SHOWN_CHARS).collect();
                notes.add(Note::Other(format!("no base for references: {start:?}")));
            }
        }
    }

    /// An HTML text in this scope, its relative references resolved.
    pub(crate) fn html<'h>(&self, html: impl Into<Cow<'h, str>>) -> Text {
        let html = html.into();
        let resolved = match html::absolutise(&html, self.base.as_ref()) {
            Cow::Owned(resolved) => Some(resolved),
            Cow::Borrowed(_) => None,
        };
        self.text(
            TextKind::Html,
            resolved.unwrap_or_else(|| html.into_owned()),
        )
    }

    /// A text in this scope.
    pub(crate) fn text(&self, kind: TextKind, value: impl Into<String>) -> Text {
        // Plain text has no references.
        let base = self
            .base
            .as_ref()
            .filter(|_| self.is_rebased && kind != TextKind::Plain);
        Text {
            kind,
            value: value.into(),
            language: self.language.clone().map(language_tag),
            base: base.map(Url::to_string),
        }
    }

    /// A reference made absolute.
    pub(crate) fn resolve(&self, reference: &str) -> String {
        uri::resolve(self.base.as_ref(), reference)
    }
}

/// A language tag with hyphens (RFC 5646); some writers took the name of a locale.
pub(crate) fn language_tag(tag: String) -> String {
    tag.replace('_', "-")
}
