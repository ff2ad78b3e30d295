//! The traces of a platform in a document, and which signs they show.

use super::pattern::Pattern;
use super::sign::{Sign, SignKind, Weight};
use crate::{Element, Entry, Key, Metadata, SlicedDocument, vocabulary::bare};
use std::cell::OnceCell;

/// Limit of the entries that are parsed to be looked at.
const ENTRIES_MAX: usize = 5;

/// Limit of the ids that are looked at.
const IDS_MAX: usize = 200;

/// A document and its answer, by which a platform is recognised.
#[derive(Clone, Copy, Debug)]
pub struct Traces<'a> {
    /// The document.
    pub document: &'a SlicedDocument,
    /// Its URL after redirects.
    pub url: Option<&'a str>,
    /// Headers of the answer; names in any case.
    pub headers: &'a [(&'a str, &'a str)],
}

impl<'a> Traces<'a> {
    /// A document of which nobody knows where it was.
    pub fn of(document: &'a SlicedDocument) -> Self {
        Self {
            document,
            url: None,
            headers: &[],
        }
    }
}

impl Sign {
    /// True when a document shows it.
    pub fn shows(&self, traces: &Traces<'_>) -> bool {
        ParsedTraces::new(traces).shows(self)
    }
}

/// The traces, with what must be parsed for them parsed once.
pub(super) struct ParsedTraces<'a> {
    traces: &'a Traces<'a>,
    entries: OnceCell<Vec<Entry>>,
}

impl<'a> ParsedTraces<'a> {
    pub(super) fn new(traces: &'a Traces<'a>) -> Self {
        Self {
            traces,
            entries: OnceCell::new(),
        }
    }

    /// True when the traces show a sign.
    pub(super) fn shows(&self, sign: &Sign) -> bool {
        let Traces {
            document,
            url,
            headers,
        } = self.traces;
        let metadata = &document.metadata;
        match &sign.kind {
            SignKind::Generator(pattern) => metadata
                .generator
                .as_ref()
                .is_some_and(|generator| pattern.is_match(&generator.to_string())),
            SignKind::Comment(pattern) => {
                comments(&document.opening).any(|comment| pattern.is_match(comment))
            }
            SignKind::Header(name, value) => headers
                .iter()
                .any(|(given, text)| given.eq_ignore_ascii_case(name) && value.is_match(text)),
            SignKind::Namespace(ns) => {
                declared(&document.opening).any(|given| bare(given) == bare(ns))
                    || metadata.foreign.iter().any(|element| is_of(element, ns))
                    || self
                        .entries()
                        .iter()
                        .flat_map(|entry| &entry.foreign)
                        .any(|element| is_of(element, ns))
            }
            SignKind::Id(pattern) => {
                let ids = document
                    .entries
                    .iter()
                    .take(IDS_MAX)
                    .map(|entry| match &entry.key {
                        Key::Id(id) => Some(id.as_str()),
                        _ => None,
                    });
                all(ids, pattern)
                    .is_some_and(|site| sign.weight == Weight::Weak || is_at_home(site, metadata))
            }
            SignKind::HeadLink(pattern) => metadata
                .links
                .iter()
                .any(|link| pattern.is_match(&link.href)),
            SignKind::Link(pattern) => {
                all(self.entries().iter().map(Entry::permalink), pattern).is_some()
            }
            SignKind::Url(pattern) => [*url, metadata.link("self")]
                .into_iter()
                .flatten()
                .any(|url| pattern.is_match(url)),
            SignKind::Text(pattern) => {
                let texts = self.entries().iter().flat_map(|entry| {
                    [
                        entry.content.as_ref().map(|body| &body.text),
                        entry.summary.as_ref(),
                    ]
                });
                texts.flatten().any(|text| pattern.is_match(&text.value))
            }
        }
    }

    pub(super) fn names_a_generator(&self) -> bool {
        self.traces.document.metadata.generator.is_some()
    }

    fn entries(&self) -> &[Entry] {
        self.entries.get_or_init(|| {
            self.traces
                .document
                .entries
                .iter()
                .take(ENTRIES_MAX)
                .map(|entry| entry.parse().0)
                .collect()
        })
    }
}

/// The site of some texts, if there are any, every one of them matches, and all are of the same.
fn all<'t>(
    texts: impl Iterator<Item = Option<&'t str>>,
    pattern: &Pattern,
) -> Option<Option<&'t str>> {
    let mut site = None;
    for text in texts {
        let text = text.filter(|text| pattern.is_match(text))?;
        let own = pattern.group("site", text);
        if *site.get_or_insert(own) != own {
            return None;
        }
    }
    site
}

/// True when the site that the ids name, if it is a host or a URL, is the site of the feed's
/// metadata.
fn is_at_home(site: Option<&str>, metadata: &Metadata) -> bool {
    let (Some(site), Some(home)) = (site, metadata.link("alternate")) else {
        return true;
    };
    let (site, home) = (host(site), host(home));
    !site.contains('.') || site.eq_ignore_ascii_case(home)
}

/// The host of a URL, without `www.`, or of what begins with one.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
    rest.strip_prefix("www.").unwrap_or(rest)
}

fn is_of(element: &Element, ns: &str) -> bool {
    bare(&element.ns) == bare(ns)
}

/// The comments of a document's opening.
fn comments(opening: &str) -> impl Iterator<Item = &str> {
    opening
        .split("<!--")
        .skip(1)
        .filter_map(|rest| rest.split_once("-->"))
        .map(|(comment, _)| comment.trim())
}

/// The namespaces that a document's opening declares.
fn declared(opening: &str) -> impl Iterator<Item = &str> {
    opening.split("xmlns:").skip(1).filter_map(|rest| {
        let (_, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        value[1..].split(quote).next()
    })
}
