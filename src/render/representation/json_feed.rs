//! JSON Feed 1.1 (J-1..J-9). What the format has no name for stands in extensions called
//! `_everfeed`, which readers may ignore: for the full audience positions and tombstones, too. Not
//! ActivityStreams.

use super::{
    extension::{self, Extension},
    json::{self, Date},
};
use crate::{
    feed::{
        item::{Content, Item},
        moment::Moment,
        record::FeedRecord,
    },
    render::{
        channel::ShownChannel,
        document::{Audience, Document, ItemPlace},
        identity,
        post::ShownItem,
        target,
        text::{self, body_html, html, plain, visible},
        values,
    },
};
use everfeed_adapters::{Category, Entry, Metadata, Person, Source, TextKind};
use serde::Serialize;
use std::borrow::Cow;

mod media;

#[cfg(test)]
mod tests;

const VERSION: &str = "https://jsonfeed.org/version/1.1";

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    json::bytes(document, &JsonFeedPage::of(document, audience))
}

/// Writes one item; of a tombstone what stands of it in the extension of the page.
pub(super) fn lone_item(
    item: ShownItem<'_>,
    _: ShownChannel<'_>,
    audience: Audience,
    _: ItemPlace,
) -> Option<Vec<u8>> {
    let item = item.item();
    match &item.content {
        Content::Live(entry) => Some(json::item_bytes(&JsonFeedItem::of(item, entry, audience))),
        Content::Gone { .. } if audience == Audience::Full => {
            JsonTombstone::of(item).as_ref().map(json::item_bytes)
        }
        Content::Gone { .. } => None,
    }
}

#[derive(Serialize)]
struct JsonFeedPage<'a> {
    version: &'static str,
    title: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    home_page_url: Option<Cow<'a, str>>,
    feed_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icon: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    favicon: Option<Cow<'a, str>>,
    #[serde(flatten)]
    authors: JsonAuthors<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hubs: Vec<JsonHub<'a>>,
    items: Vec<JsonFeedItem<'a>>,
    #[serde(rename = "_everfeed")]
    extension: PageExtension<'a>,
}

/// All authors, and the first of them once more for readers of version 1.0 (J-6).
#[derive(Serialize)]
struct JsonAuthors<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authors: Vec<JsonAuthor<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<JsonAuthor<'a>>,
}

#[derive(Clone, Serialize)]
struct JsonAuthor<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct JsonHub<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    url: &'a str,
}

/// Facts of a page beyond the format. `id` of an item and of a tombstone is ours, the same as in
/// every other syntax.
#[derive(Serialize)]
struct PageExtension<'a> {
    /// The page for people about the feed.
    about: &'a str,
    #[serde(flatten)]
    position: Option<PagePosition<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contributors: Vec<JsonAuthor<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<JsonTag<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rights: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension<'a>>,
}

#[derive(Serialize)]
struct PagePosition<'a> {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev_cursor: Option<&'a str>,
    last_cursor: &'a str,
    /// Items of the page that are gone. Readers that do not know of them see no empty posts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deleted: Vec<JsonTombstone<'a>>,
}

#[derive(Serialize)]
struct JsonTombstone<'a> {
    id: String,
    /// The `id` that the item had in `items`.
    item_id: &'a str,
    modified: Date,
    created: Date,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_missing: Option<Date>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<Date>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<JsonSource<'a>>,
}

#[derive(Serialize)]
struct JsonFeedItem<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_url: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(flatten)]
    texts: JsonTexts<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date_published: Option<Date<Moment>>,
    date_modified: Date<Moment>,
    #[serde(flatten)]
    authors: JsonAuthors<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<media::JsonAttachment>,
    #[serde(rename = "_everfeed", skip_serializing_if = "ItemExtension::is_empty")]
    extension: ItemExtension<'a>,
}

/// Content as HTML or as plain text, whichever it is; at least one of them (J-3).
#[derive(Default, Serialize)]
struct JsonTexts<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    content_html: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Cow<'a, str>>,
}

/// Facts of an item beyond the format; the position for the full audience only.
#[derive(Serialize)]
struct ItemExtension<'a> {
    #[serde(flatten)]
    position: Option<ItemPosition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contributors: Vec<JsonAuthor<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<JsonTag<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comments: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rights: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<JsonSource<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension<'a>>,
}

#[derive(Serialize)]
struct ItemPosition {
    id: String,
    modified: Date,
    created: Date,
}

/// A tag that is more than a word.
#[derive(Serialize)]
struct JsonTag<'a> {
    term: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonSource<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    /// Its page for people, where `url` is that of its feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<Cow<'a, str>>,
}

impl<'a> JsonFeedPage<'a> {
    fn of(document: &Document<'a>, audience: Audience) -> Self {
        let Document { page, links, .. } = *document;
        let feed = document.feed();
        let metadata = &*feed.metadata;
        let live =
            |item: &'a std::sync::Arc<Item>| Some(JsonFeedItem::of(item, item.entry()?, audience));
        Self {
            version: VERSION,
            title: identity::name(feed),
            home_page_url: metadata.link("alternate").and_then(target::link),
            feed_url: document.own_url(),
            description: visible(metadata.description.as_ref()).map(plain),
            next_url: document.next(audience).or(links.archives.prev.as_deref()),
            icon: metadata
                .image
                .as_ref()
                .and_then(|image| target::image(&image.url)),
            favicon: metadata.icon.as_deref().and_then(target::image),
            authors: JsonAuthors::of(&metadata.authors),
            language: metadata.language.as_deref().and_then(values::language),
            hubs: document
                .hub()
                .map(|url| JsonHub {
                    kind: "WebSub",
                    url,
                })
                .into_iter()
                .collect(),
            items: page.items.iter().filter_map(live).collect(),
            extension: PageExtension::of(document, metadata, audience),
        }
    }
}

impl<'a> PageExtension<'a> {
    fn of(document: &Document<'a>, metadata: &'a Metadata, audience: Audience) -> Self {
        let Document {
            page,
            links,
            prev_cursor,
            ..
        } = *document;
        let position = || PagePosition {
            id: identity::iri(document.feed()),
            total: page.total,
            prev_cursor,
            last_cursor: &page.last_cursor,
            deleted: page
                .items
                .iter()
                .filter_map(|item| JsonTombstone::of(item))
                .collect(),
        };
        Self {
            about: &links.about,
            position: (audience == Audience::Full).then(position),
            contributors: metadata
                .contributors
                .iter()
                .filter_map(JsonAuthor::of)
                .collect(),
            tags: metadata.categories.iter().map(JsonTag::of).collect(),
            rights: visible(metadata.rights.as_ref()).map(plain),
            extensions: extension::of_channel(ShownChannel::of(document.feed())),
        }
    }
}

impl<'a> JsonTombstone<'a> {
    fn of(item: &'a Item) -> Option<Self> {
        let Content::Gone {
            reason,
            first_missing,
            last_seen,
        } = &item.content
        else {
            return None;
        };
        Some(Self {
            id: item.id.to_string(),
            item_id: item.given_id(),
            modified: Date(item.modified),
            created: Date(item.created),
            reason: reason.code(),
            first_missing: first_missing.map(Date),
            last_seen: last_seen.map(Date),
            source: item.ended_source().map(JsonSource::of),
        })
    }
}

impl<'a> JsonFeedItem<'a> {
    fn of(item: &'a Item, entry: &'a Entry, audience: Audience) -> Self {
        let related = entry.links.iter().find(|link| link.rel == "related");
        Self {
            id: item.given_id(),
            url: target::permalink(entry),
            external_url: related.and_then(|link| target::link(&link.href)),
            title: text::title(entry),
            texts: JsonTexts::of(entry),
            image: media::image(entry),
            date_published: item.published().map(Date),
            date_modified: Date(item.updated()),
            authors: JsonAuthors::of(&entry.authors),
            tags: entry
                .categories
                .iter()
                .map(|tag| tag.term.trim())
                .filter(|term| !term.is_empty())
                .collect(),
            language: entry.language.as_deref().and_then(values::language),
            attachments: media::attachments(entry),
            extension: ItemExtension::of(item, entry, audience),
        }
    }
}

impl<'a> JsonTexts<'a> {
    fn of(entry: &'a Entry) -> Self {
        let body = entry
            .content
            .as_ref()
            .and_then(|body| Some((&body.text, body_html(body)?)));
        let summary = visible(entry.summary.as_ref());
        let (content, summary) = match body {
            Some(body) => (Some(body), summary.map(plain)),
            // A summary that is all there is, is shown as the content: readers show nothing else.
            None => (summary.map(|text| (text, html(text))), None),
        };
        match content {
            Some((text, _)) if text.kind == TextKind::Plain => Self {
                content_html: None,
                content_text: Some(Cow::Borrowed(&text.value)),
                summary,
            },
            Some((_, html)) => Self {
                content_html: Some(html),
                content_text: None,
                summary,
            },
            None => Self {
                content_html: None,
                content_text: Some(Cow::Borrowed("")),
                summary,
            },
        }
    }
}

impl<'a> ItemExtension<'a> {
    fn of(item: &Item, entry: &'a Entry, audience: Audience) -> Self {
        let position = || ItemPosition {
            id: item.id.to_string(),
            modified: Date(item.modified),
            created: Date(item.created),
        };
        let is_more = |tag: &&Category| tag.scheme.is_some() || tag.label.is_some();
        Self {
            position: (audience == Audience::Full).then(position),
            contributors: entry
                .contributors
                .iter()
                .filter_map(JsonAuthor::of)
                .collect(),
            tags: entry
                .categories
                .iter()
                .filter(is_more)
                .map(JsonTag::of)
                .collect(),
            comments: entry.comments.as_deref().and_then(target::link),
            rights: visible(entry.rights.as_ref()).map(plain),
            source: entry.source.as_deref().map(JsonSource::of),
            extensions: extension::of_entry(entry),
        }
    }

    fn is_empty(&self) -> bool {
        let Self {
            position,
            contributors,
            tags,
            comments,
            rights,
            source,
            extensions,
        } = self;
        position.is_none()
            && contributors.is_empty()
            && tags.is_empty()
            && comments.is_none()
            && rights.is_none()
            && source.is_none()
            && extensions.is_empty()
    }
}

impl<'a> JsonAuthors<'a> {
    fn of(people: &'a [Person]) -> Self {
        let authors: Vec<_> = people.iter().filter_map(JsonAuthor::of).collect();
        Self {
            author: authors.first().cloned(),
            authors,
        }
    }
}

impl<'a> JsonAuthor<'a> {
    /// An e-mail address is told as the URL of somebody who has no other, as the specification
    /// proposes.
    fn of(person: &'a Person) -> Option<Self> {
        let mail = || {
            let address = person
                .email
                .as_deref()
                .filter(|email| values::is_email(email))?;
            Some(Cow::Owned(format!("mailto:{address}")))
        };
        let url = person.uri.as_deref().and_then(target::link).or_else(mail);
        Some(Self {
            name: values::person_name(person)?,
            url,
        })
    }
}

impl<'a> JsonTag<'a> {
    fn of(category: &'a Category) -> Self {
        let Category {
            term,
            scheme,
            label,
        } = category;
        Self {
            term,
            scheme: scheme.as_deref(),
            label: label.as_deref(),
        }
    }
}

impl<'a> JsonSource<'a> {
    fn of(source: &'a Source) -> Self {
        Self {
            id: source.id.as_deref(),
            title: source.title.as_ref().map(plain),
            url: source.url().and_then(target::link),
            site: source
                .page()
                .filter(|page| source.url() != Some(page))
                .and_then(target::link),
        }
    }
}
