//! Signs by which a platform is recognised: their kinds, their weight, and how a profile writes
//! them.

use super::pattern::Pattern;
use serde::{Deserialize, Serialize};

/// Weight of a sign.
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
#[serde(try_from = "SignTable")]
pub struct Sign {
    /// Kind of the sign.
    pub kind: SignKind,
    /// Weight of the sign.
    pub weight: Weight,
    /// The same in words, after "because".
    pub why: String,
}

/// Kind of a sign: the part of the document or the answer that is looked at.
#[derive(Clone, Debug, PartialEq)]
pub enum SignKind {
    /// The generator of the head, `admin:generatorAgent` included: name, version and URL joined by
    /// blanks.
    Generator(Pattern),
    /// A comment of the document before its first entry.
    Comment(Pattern),
    /// A header of the answer: its name, and a pattern for its value.
    Header(String, Pattern),
    /// A namespace that the document declares, or that an element of the head or of an entry has.
    Namespace(String),
    /// The ids of all entries looked at. If the pattern has a group `site`, it must match the same
    /// in all: else this is a planet, which shows the entries of many blogs. As a strong sign it
    /// must name the host of the head's link, too.
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
struct SignTable {
    generator: Option<Pattern>,
    comment: Option<Pattern>,
    header: Option<HeaderTable>,
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
struct HeaderTable {
    name: String,
    value: Pattern,
}

impl TryFrom<SignTable> for Sign {
    type Error = &'static str;

    fn try_from(raw: SignTable) -> Result<Self, &'static str> {
        let kinds = [
            raw.generator.map(SignKind::Generator),
            raw.comment.map(SignKind::Comment),
            raw.header
                .map(|header| SignKind::Header(header.name, header.value)),
            raw.namespace.map(SignKind::Namespace),
            raw.id.map(SignKind::Id),
            raw.head_link.map(SignKind::HeadLink),
            raw.link.map(SignKind::Link),
            raw.url.map(SignKind::Url),
            raw.text.map(SignKind::Text),
        ];
        if raw.why.trim().is_empty() {
            return Err("say in `why` what the sign means");
        }
        let mut kinds = kinds.into_iter().flatten();
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(Self {
                kind,
                weight: raw.weight,
                why: raw.why,
            }),
            _ => Err(
                "give exactly one of generator, comment, header, namespace, id, head_link, link, url, text",
            ),
        }
    }
}

impl SignKind {
    /// True for a sign of the entries, which an aggregator shows as they were elsewhere.
    pub(super) fn is_of_entries(&self) -> bool {
        matches!(self, Self::Id(_) | Self::Link(_) | Self::Text(_))
    }

    /// The rank by which signs of several platforms are weighed: the earlier, the more it is meant
    /// to say who made this.
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
