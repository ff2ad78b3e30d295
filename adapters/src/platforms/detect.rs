//! Which platform a document shows: by what it says of itself, never by one weak sign alone.

use super::{GENERIC, pattern::Pattern, profile::Profile, scrub::bare};
use crate::{Element, Entry, Key, Metadata, Window};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;

/// How many entries are parsed to be looked at.
const ENTRIES_MAX: usize = 5;

/// How many ids are looked at.
const IDS_MAX: usize = 200;

/// What there is to recognise a platform by.
#[derive(Clone, Copy, Debug)]
pub struct Traces<'a> {
    /// The document.
    pub window: &'a Window,
    /// Its URL after redirects.
    pub url: Option<&'a str>,
    /// Headers of the answer; names in any case.
    pub headers: &'a [(&'a str, &'a str)],
}

impl<'a> Traces<'a> {
    /// A document of which nobody knows where it was.
    pub fn of(window: &'a Window) -> Self {
        Self { window, url: None, headers: &[] }
    }
}

/// A platform, and why it is thought to be that one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    /// The profile's name; [`GENERIC`] when nothing is recognised.
    pub platform: String,
    /// The sign, or the signs, in words.
    pub why: String,
    /// How sure that is; `None` when nothing was recognised.
    pub weight: Option<Weight>,
}

/// How much a sign says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Others may look the same: it counts only beside a sign of another kind.
    Weak,
    /// Nothing else looks like that.
    #[default]
    Strong,
}

/// Something by which a platform is recognised.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Sign {
    /// What is looked at.
    pub kind: Kind,
    /// How much it says.
    pub weight: Weight,
    /// The same in words, after "because".
    pub why: String,
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The generator of the head, `admin:generatorAgent` included: name, version and URL joined by blanks.
    Generator(Pattern),
    /// A comment of the document before its first entry.
    Comment(Pattern),
    /// A header of the answer: its name, and a pattern for its value.
    Header(String, Pattern),
    /// A namespace that the document declares, or that an element of the head or of an entry has.
    Namespace(String),
    /// The ids of all entries looked at. If the pattern has a group `site`, it must match the same in all: else this is a
    /// planet, which shows the entries of many blogs. As a strong sign it must name the host of the head's link, too.
    Id(Pattern),
    /// A link of the head.
    HeadLink(Pattern),
    /// The permalinks of all entries looked at; `site` as in ids.
    Link(Pattern),
    /// The document's own URL, or its `self` link.
    Url(Pattern),
    /// The text of the first entries.
    Text(Pattern),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    generator: Option<Pattern>,
    comment: Option<Pattern>,
    header: Option<RawHeader>,
    namespace: Option<String>,
    id: Option<Pattern>,
    head_link: Option<Pattern>,
    link: Option<Pattern>,
    url: Option<Pattern>,
    text: Option<Pattern>,
    #[serde(default)]
    weight: Weight,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHeader {
    name: String,
    value: Pattern,
}

impl TryFrom<Raw> for Sign {
    type Error = &'static str;

    fn try_from(raw: Raw) -> Result<Self, &'static str> {
        let kinds = [
            raw.generator.map(Kind::Generator),
            raw.comment.map(Kind::Comment),
            raw.header.map(|header| Kind::Header(header.name, header.value)),
            raw.namespace.map(Kind::Namespace),
            raw.id.map(Kind::Id),
            raw.head_link.map(Kind::HeadLink),
            raw.link.map(Kind::Link),
            raw.url.map(Kind::Url),
            raw.text.map(Kind::Text),
        ];
        if raw.why.trim().is_empty() {
            return Err("say in `why` what the sign means");
        }
        let mut kinds = kinds.into_iter().flatten();
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(Self { kind, weight: raw.weight, why: raw.why }),
            _ => Err(
                "give exactly one of generator, comment, header, namespace, id, head_link, link, url, text",
            ),
        }
    }
}

impl Sign {
    /// Whether a document shows it.
    pub fn shows(&self, traces: &Traces<'_>) -> bool {
        Seen { traces, entries: OnceCell::new() }.shows(self)
    }
}

impl Kind {
    /// Whether it is a sign of the entries, which an aggregator shows as they were elsewhere.
    fn is_of_entries(&self) -> bool {
        matches!(self, Self::Id(_) | Self::Link(_) | Self::Text(_))
    }

    /// The rank by which signs of several platforms are weighed: the earlier, the more it is meant to say who made this.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Generator(_) => 0,
            Self::Comment(_) => 1,
            Self::Header(..) => 2,
            Self::Namespace(_) => 3,
            Self::Id(_) => 4,
            Self::HeadLink(_) => 5,
            Self::Link(_) => 6,
            Self::Url(_) => 7,
            Self::Text(_) => 8,
        }
    }
}

/// The platform of a document. Strong signs first, in the order of their rank; what stands in front of a platform only
/// when no platform shows; then two weak signs of different kinds.
pub(super) fn detect<'p>(profiles: impl Iterator<Item = &'p Profile>, traces: &Traces<'_>) -> Detected {
    let seen = Seen { traces, entries: OnceCell::new() };
    let mut best: Option<(Standing, Detected)> = None;
    for profile in profiles {
        let Some((standing, why)) = standing(profile, &seen) else { continue };
        if best.as_ref().is_none_or(|(other, _)| standing < *other) {
            let weight = Some(if standing.is_weak { Weight::Weak } else { Weight::Strong });
            best = Some((standing, Detected { platform: profile.name.clone(), why, weight }));
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

fn standing(profile: &Profile, seen: &Seen<'_>) -> Option<(Standing, String)> {
    let met = || profile.detect.iter().filter(|sign| seen.shows(sign));
    // Who names another generator shows entries that were made elsewhere.
    let is_own = !seen.names_a_generator() || met().any(|sign| matches!(sign.kind, Kind::Generator(_)));
    let met: Vec<&Sign> = met().filter(|sign| is_own || !sign.kind.is_of_entries()).collect();
    let is_carrier = profile.carrier;
    let strong = met.iter().filter(|sign| sign.weight == Weight::Strong).min_by_key(|sign| sign.kind.rank());
    if let Some(sign) = strong {
        return Some((Standing { is_weak: false, is_carrier, rank: sign.kind.rank() }, sign.why.clone()));
    }
    let first = met.iter().min_by_key(|sign| sign.kind.rank())?;
    let second = met.iter().find(|sign| sign.kind.rank() != first.kind.rank())?;
    let why = format!("{}, and {}", first.why, second.why);
    Some((Standing { is_weak: true, is_carrier, rank: first.kind.rank() }, why))
}

/// The traces, with what must be parsed for them parsed once.
struct Seen<'a> {
    traces: &'a Traces<'a>,
    entries: OnceCell<Vec<Entry>>,
}

impl Seen<'_> {
    fn shows(&self, sign: &Sign) -> bool {
        let Traces { window, url, headers } = self.traces;
        let metadata = &window.metadata;
        match &sign.kind {
            Kind::Generator(pattern) => {
                metadata.generator.as_ref().is_some_and(|generator| pattern.is_match(&generator.to_string()))
            }
            Kind::Comment(pattern) => comments(&window.opening).any(|comment| pattern.is_match(comment)),
            Kind::Header(name, value) => {
                headers.iter().any(|(given, text)| given.eq_ignore_ascii_case(name) && value.is_match(text))
            }
            Kind::Namespace(ns) => {
                declared(&window.opening).any(|given| bare(given) == bare(ns))
                    || metadata.foreign.iter().any(|element| is_of(element, ns))
                    || self
                        .entries()
                        .iter()
                        .flat_map(|entry| &entry.foreign)
                        .any(|element| is_of(element, ns))
            }
            Kind::Id(pattern) => {
                let ids = window.entries.iter().take(IDS_MAX).map(|entry| match &entry.key {
                    Key::Id(id) => Some(id.as_str()),
                    _ => None,
                });
                all(ids, pattern)
                    .is_some_and(|site| sign.weight == Weight::Weak || is_at_home(site, metadata))
            }
            Kind::HeadLink(pattern) => metadata.links.iter().any(|link| pattern.is_match(&link.href)),
            Kind::Link(pattern) => all(self.entries().iter().map(Entry::permalink), pattern).is_some(),
            Kind::Url(pattern) => {
                [*url, metadata.link("self")].into_iter().flatten().any(|url| pattern.is_match(url))
            }
            Kind::Text(pattern) => {
                let texts = self.entries().iter().flat_map(|entry| {
                    [entry.content.as_ref().map(|body| &body.text), entry.summary.as_ref()]
                });
                texts.flatten().any(|text| pattern.is_match(&text.value))
            }
        }
    }

    fn names_a_generator(&self) -> bool {
        self.traces.window.metadata.generator.is_some()
    }

    fn entries(&self) -> &[Entry] {
        self.entries.get_or_init(|| {
            self.traces.window.entries.iter().take(ENTRIES_MAX).map(|entry| entry.parse().0).collect()
        })
    }
}

/// The site of some texts, if there are any, every one of them matches, and all are of the same.
fn all<'t>(texts: impl Iterator<Item = Option<&'t str>>, pattern: &Pattern) -> Option<Option<&'t str>> {
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

/// Whether a site that ids name, if it is a host or a URL, is where the head says that the feed belongs.
fn is_at_home(site: Option<&str>, metadata: &Metadata) -> bool {
    let (Some(site), Some(home)) = (site, metadata.link("alternate")) else { return true };
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
    opening.split("<!--").skip(1).filter_map(|rest| rest.split_once("-->")).map(|(comment, _)| comment.trim())
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
