//! Values that every syntax spells alike: tags, links, files, sources, media types,
//! languages, lengths. What is not spelt like one is left out; not which of them a post has.

use super::{
    people::People,
    target,
    text::{self, ShownText},
};
use crate::feed::item::plausible;
use everfeed_adapters::{Category, Enclosure, Link, Source};
use std::borrow::Cow;

/// Tags of a post or a feed.
#[derive(Clone, Copy)]
pub(super) struct Tags<'a>(pub(super) &'a [Category]);

impl<'a> Tags<'a> {
    /// All of them, as the publisher wrote them.
    pub(super) fn given(self) -> impl Iterator<Item = &'a Category> {
        self.0.iter()
    }

    /// Those that somebody can see.
    pub(super) fn visible(self) -> impl Iterator<Item = &'a Category> {
        self.given().filter(|tag| !tag.term.trim().is_empty())
    }

    /// The words of those that somebody can see.
    pub(super) fn terms(self) -> impl Iterator<Item = &'a str> {
        self.visible().map(|tag| tag.term.trim())
    }
}

/// A link that may be followed.
#[derive(Clone)]
pub(super) struct ShownLink<'a> {
    /// The relation as Atom spells it: a registered name, or an IRI.
    pub(super) rel: &'a str,
    pub(super) href: Cow<'a, str>,
    pub(super) media_type: Option<&'a str>,
    pub(super) hreflang: Option<&'a str>,
    pub(super) title: Option<&'a str>,
    pub(super) length: Option<&'a str>,
    /// True for a link to a page for people, as far as its type tells.
    pub(super) is_page: bool,
}

impl<'a> ShownLink<'a> {
    /// A link of a publisher; `None` for one that nobody should follow.
    pub(super) fn of(link: &'a Link) -> Option<Self> {
        Some(Self {
            rel: relation(&link.rel),
            href: target::link(&link.href)?,
            media_type: link.media_type.as_deref().and_then(media_type),
            hreflang: link.hreflang.as_deref().and_then(language),
            title: link.title.as_deref(),
            length: length(link.length.as_deref()),
            is_page: link.is_page(),
        })
    }

    /// A link of ours.
    pub(super) fn own(
        rel: &'a str,
        media_type: Option<&'a str>,
        href: impl Into<Cow<'a, str>>,
    ) -> Self {
        Self {
            rel,
            href: href.into(),
            media_type,
            hreflang: None,
            title: None,
            length: None,
            is_page: false,
        }
    }

    /// Likewise, with a title.
    pub(super) fn titled(self, title: Option<&'a str>) -> Self {
        Self { title, ..self }
    }

    /// True for an alternate.
    pub(super) fn is_alternate(&self) -> bool {
        self.rel == "alternate"
    }
}

/// True for relations that say something of a whole feed; in an entry they would send readers astray
/// (H-27).
pub(super) fn is_of_feed(rel: &str) -> bool {
    const RELATIONS: &str =
        "self hub current first last next previous prev next-archive prev-archive";
    let rel = relation(rel);
    RELATIONS
        .split(' ')
        .any(|known| known.eq_ignore_ascii_case(rel))
}

/// A relation as Atom spells it.
pub(super) fn relation(rel: &str) -> &str {
    let rel = rel.trim();
    let rel = rel
        .strip_prefix("http://www.iana.org/assignments/relation/")
        .unwrap_or(rel);
    if rel.is_empty() || rel.contains(|c: char| c.is_whitespace() || c.is_control()) {
        "related"
    } else {
        rel
    }
}

/// A file that may be named.
pub(super) struct ShownFile<'a> {
    pub(super) href: Cow<'a, str>,
    file: Cow<'a, Enclosure>,
}

impl<'a> ShownFile<'a> {
    /// A file of a publisher; `None` for one at a URL that must not be named.
    pub(super) fn of(file: Cow<'a, Enclosure>) -> Option<Self> {
        let href = match &file {
            Cow::Borrowed(file) => target::image(&file.url)?,
            Cow::Owned(file) => Cow::Owned(target::image(&file.url)?.into_owned()),
        };
        Some(Self { href, file })
    }

    /// The URL as the publisher wrote it.
    pub(super) fn given_url(&self) -> &str {
        &self.file.url
    }

    pub(super) fn media_type(&self) -> Option<&str> {
        self.file.media_type.as_deref().and_then(media_type)
    }

    /// The first half of its media type: `audio`.
    pub(super) fn kind(&self) -> Option<&str> {
        self.media_type()?.split('/').next()
    }

    pub(super) fn title(&self) -> Option<&str> {
        self.file.title.as_deref()
    }

    /// Length in bytes, as digits.
    pub(super) fn length(&self) -> Option<&str> {
        length(self.file.length.as_deref())
    }

    /// Length in bytes, where it is a number of 64 bits.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.length()?.parse().ok()
    }

    /// True for a picture that illustrates the post, and is no attachment.
    pub(super) fn is_illustration(&self) -> bool {
        self.file.is_illustration
    }
}

/// The feed that an aggregated post comes from.
#[derive(Clone, Copy)]
pub(super) struct ShownSource<'a>(pub(super) &'a Source);

impl<'a> ShownSource<'a> {
    /// The title with its markup.
    pub(super) fn marked_title(self) -> Option<ShownText<'a>> {
        ShownText::of(self.0.title.as_ref())
    }

    pub(super) fn subtitle(self) -> Option<ShownText<'a>> {
        ShownText::of(self.0.subtitle.as_ref())
    }

    pub(super) fn rights(self) -> Option<ShownText<'a>> {
        ShownText::of(self.0.rights.as_ref())
    }

    /// Date of its last change, where it is one that is shown.
    pub(super) fn updated(self) -> Option<String> {
        let at = plausible(self.0.updated.as_ref()?.at_us);
        at.map(|at| at.rfc3339())
    }

    pub(super) fn authors(self) -> People<'a> {
        People(&self.0.authors)
    }

    pub(super) fn contributors(self) -> People<'a> {
        People(&self.0.contributors)
    }

    pub(super) fn tags(self) -> Tags<'a> {
        Tags(&self.0.categories)
    }

    /// The links that may be followed.
    pub(super) fn links(self) -> impl Iterator<Item = ShownLink<'a>> {
        self.0.links.iter().filter_map(ShownLink::of)
    }

    pub(super) fn icon(self) -> Option<Cow<'a, str>> {
        target::image(self.0.icon.as_deref()?)
    }

    pub(super) fn logo(self) -> Option<Cow<'a, str>> {
        target::image(self.0.logo.as_deref()?)
    }

    /// Its id as the publisher wrote it.
    pub(super) fn id(self) -> Option<&'a str> {
        self.0.id.as_deref()
    }

    /// The words of its title.
    pub(super) fn title(self) -> Option<Cow<'a, str>> {
        self.0.title.as_ref().map(text::plain)
    }

    /// URL of the feed, else of its site.
    pub(super) fn url(self) -> Option<Cow<'a, str>> {
        target::link(self.0.url()?)
    }

    /// Its page for people, where `url` is that of its feed.
    pub(super) fn site(self) -> Option<Cow<'a, str>> {
        let page = self.0.page().filter(|page| self.0.url() != Some(page));
        target::link(page?)
    }
}

/// A media type without parameters that is spelt like one (RFC 9110 section 8.3.1).
pub(super) fn media_type(text: &str) -> Option<&str> {
    let token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    let bare = text.split(';').next().unwrap_or_default().trim();
    let (kind, subkind) = bare.split_once('/')?;
    (token(kind) && token(subkind)).then_some(bare)
}

/// A language tag that is spelt like one (RFC 3066 section 2.1).
pub(super) fn language(text: &str) -> Option<&str> {
    let text = text.trim();
    let mut parts = text.split('-');
    let letters =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphabetic());
    let rest = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    (parts.next().is_some_and(letters) && parts.all(rest)).then_some(text)
}

/// A length in bytes: digits or nothing.
pub(super) fn length(text: Option<&str>) -> Option<&str> {
    let digits =
        |text: &&str| (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.map(str::trim).filter(digits)
}
