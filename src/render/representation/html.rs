//! A page of posts for people, with the classes of h-feed and h-entry for programs: the newest
//! posts, or a page of the Smart Feed with a link to the next. No script; posts of others are
//! cleaned of all that runs. Not the description of a feed.

use crate::{
    feed::{
        item::{Content, Item, Reason},
        record::FeedRecord,
    },
    render::{
        channel::ShownChannel,
        document::{ArchiveLinks, Audience, Document, ItemPlace},
        identity,
        post::ShownItem,
        target::{self, web},
        text::{self, body_html, html, plain, visible},
        values,
        web_page::{anchor, classed_time, finish, head, link},
        xml::{self, Xml},
    },
};
use everfeed_adapters::{Entry, Person, text::sanitise};

#[cfg(test)]
mod tests;

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let links = document.links;
    let feed = document.feed();
    let metadata = &feed.metadata;
    let title = identity::name(feed);
    let language = metadata.language.as_deref().and_then(values::language);
    let mut page = Xml::html();
    page.open("html", &[("lang", Some(language.unwrap_or("en")))]);
    page.open("head", &[]);
    head(&mut page, &title);
    link(&mut page, "canonical", None, document.own_url());
    for (relation, url) in document.archive_links() {
        link(&mut page, relation, Some("text/html"), url);
    }
    for other in &links.alternates {
        let attributes = [
            ("rel", Some("alternate")),
            ("type", Some(other.media_type)),
            ("title", Some(other.title.as_str())),
            ("href", Some(other.href.as_str())),
        ];
        page.empty("link", &attributes);
    }
    if let Some(next) = document.next(audience) {
        link(&mut page, "next", Some("text/html"), next);
    }
    page.close("head");
    page.open("body", &[]);
    page.open("main", &[("class", Some("h-feed"))]);
    page.holding("nav", &[("lang", Some("en"))], |out| {
        anchor(out, &links.about, "About this feed")
    });
    let name = [("class", Some("p-name title")), ("dir", Some("auto"))];
    page.holding("h1", &name, |out| {
        match metadata.link("alternate").and_then(web) {
            Some(site) => classed_anchor(out, "u-url", &site, &title),
            None => xml::push_text(out, &title),
        }
    });
    if let Some(description) = visible(metadata.description.as_ref()) {
        let class = [("class", Some("p-summary quiet")), ("dir", Some("auto"))];
        page.leaf("p", &class, &plain(description));
    }
    for item in &document.page.items {
        self::item(&mut page, item, audience);
    }
    if document.page.items.is_empty() {
        page.leaf(
            "p",
            &[("class", Some("quiet")), ("lang", Some("en"))],
            "There is nothing here.",
        );
    }
    pages(&mut page, document, audience);
    finish(page)
}

/// The pages beside this one.
fn pages(page: &mut Xml, document: &Document<'_>, audience: Audience) {
    let ArchiveLinks { prev, next, .. } = &document.links.archives;
    let beside = [
        ("next", document.next(audience), "Next page"),
        ("prev", next.as_deref(), "Newer posts"),
        ("next", prev.as_deref(), "Older posts"),
    ];
    if beside.iter().all(|(_, url, _)| url.is_none()) {
        return;
    }
    page.open("nav", &[("class", Some("pages")), ("lang", Some("en"))]);
    for (relation, url, words) in beside {
        if url.is_some() {
            page.leaf("a", &[("rel", Some(relation)), ("href", url)], words);
        }
    }
    page.close("nav");
}

/// Writes one item. It stands in the `main` of a page.
pub(super) fn lone_item(
    item: ShownItem<'_>,
    _: ShownChannel<'_>,
    audience: Audience,
    _: ItemPlace,
) -> Option<Vec<u8>> {
    let mut page = Xml::fragment(3, &[]);
    self::item(&mut page, item.item(), audience);
    page.finish_fragment()
}

/// A function of the item alone.
fn item(page: &mut Xml, item: &Item, audience: Audience) {
    match &item.content {
        Content::Live(entry) => live(page, item, entry),
        Content::Gone { reason, .. } if audience == Audience::Full => gone(page, item, *reason),
        Content::Gone { .. } => {}
    }
}

fn gone(page: &mut Xml, item: &Item, reason: Reason) {
    // A post that has left a view with a filter is there, as everybody sees who looks at the whole
    // feed; one that has left a group is in its own feed.
    let (class, element, words) = match reason {
        Reason::LeftView => ("left", "span", "changed, and not in this view now · "),
        Reason::LeftGroup => ("left", "span", "no post of this group any more · "),
        _ => ("deleted", "del", "deleted · "),
    };
    page.open("article", &[("class", Some(class)), ("lang", Some("en"))]);
    page.open("p", &[("class", Some("quiet"))]);
    page.leaf(element, &[], item.given_id());
    page.aside(|out| out.push_str(words));
    classed_time(page, None, item.modified);
    page.leaf("code", &[], reason.code());
    page.close("p");
    page.close("article");
}

fn live(page: &mut Xml, item: &Item, entry: &Entry) {
    let permalink = target::permalink(entry);
    let url = permalink.as_deref().and_then(web);
    let url = url.as_deref();
    let language = entry
        .language
        .as_deref()
        .and_then(values::language_attribute);
    page.open("article", &[("class", Some("h-entry")), ("lang", language)]);
    if let Some(title) = text::title(entry) {
        let name = [("class", Some("p-name title")), ("dir", Some("auto"))];
        page.holding("h2", &name, |out| match url {
            Some(url) => classed_anchor(out, "u-url", url, &title),
            None => xml::push_text(out, &title),
        });
    } else {
        // Programs would take other words of the page for its name.
        page.leaf(
            "data",
            &[("class", Some("p-name")), ("value", Some(""))],
            "",
        );
    }
    byline(page, item, entry, url);
    let summary = visible(entry.summary.as_ref());
    let content = entry.content.as_ref().and_then(body_html);
    if let Some(summary) = summary {
        post(page, "p-summary", &html(summary));
    }
    if let Some(content) = content {
        post(page, "e-content", &content);
    }
    files(page, entry);
    page.close("article");
}

/// Dates, people, tags, and the comments page; in each the class that programs know it by.
fn byline(page: &mut Xml, item: &Item, entry: &Entry, url: Option<&str>) {
    page.open("p", &[("class", Some("quiet byline"))]);
    page.leaf(
        "data",
        &[("class", Some("u-uid")), ("value", Some(&item.iri))],
        "",
    );
    classed_time(page, Some("dt-published"), item.dated());
    if item.updated() != item.dated() {
        page.aside(|out| out.push_str("changed "));
        classed_time(page, Some("dt-updated"), item.updated());
    }
    entry.authors.iter().for_each(|person| author(page, person));
    for category in entry
        .categories
        .iter()
        .filter(|category| !category.term.trim().is_empty())
    {
        let words = category.label.as_deref().unwrap_or(&category.term);
        page.leaf(
            "span",
            &[("class", Some("p-category tag")), ("dir", Some("auto"))],
            words,
        );
    }
    if text::title(entry).is_none()
        && let Some(url) = url
    {
        page.leaf(
            "a",
            &[("class", Some("u-url")), ("href", Some(url))],
            "permalink",
        );
    }
    if let Some(comments) = entry.comments.as_deref().and_then(web) {
        page.leaf(
            "a",
            &[("class", Some("u-comments")), ("href", Some(&comments))],
            "comments",
        );
    }
    page.close("p");
}

fn author(page: &mut Xml, person: &Person) {
    let Some(name) = values::person_name(person) else {
        return;
    };
    let url = person.uri.as_deref().and_then(web);
    let tag = if url.is_some() { "a" } else { "span" };
    page.leaf(
        tag,
        &[
            ("class", Some("p-author h-card")),
            ("dir", Some("auto")),
            ("href", url.as_deref()),
        ],
        name,
    );
}

/// HTML of somebody else, cleaned.
fn post(page: &mut Xml, class: &str, html: &str) {
    let clean = sanitise(html);
    page.holding(
        "div",
        &[("class", Some(class)), ("dir", Some("auto"))],
        |out| out.push_str(&clean),
    );
}

fn files(page: &mut Xml, entry: &Entry) {
    let files = entry.files();
    let mut files = files
        .iter()
        .filter_map(|file| Some((file, web(&file.url)?)))
        .peekable();
    if files.peek().is_none() {
        return;
    }
    page.open("ul", &[("class", Some("files"))]);
    for (file, url) in files {
        let media_type = file.media_type.as_deref().and_then(values::media_type);
        let class = match media_type.and_then(|media_type| media_type.split('/').next()) {
            Some("audio") => "u-audio",
            Some("image") => "u-photo",
            Some("video") => "u-video",
            _ => "u-enclosure",
        };
        let words = file
            .title
            .as_deref()
            .filter(|title| !title.trim().is_empty())
            .unwrap_or(&url);
        page.open("li", &[]);
        page.leaf(
            "a",
            &[
                ("class", Some(class)),
                ("type", media_type),
                ("href", Some(&url)),
            ],
            words,
        );
        page.close("li");
    }
    page.close("ul");
}

fn classed_anchor(out: &mut String, class: &str, href: &str, words: &str) {
    out.push_str("<a");
    xml::push_attribute(out, "class", class);
    xml::push_attribute(out, "href", href);
    out.push('>');
    xml::push_text(out, words);
    out.push_str("</a>");
}
