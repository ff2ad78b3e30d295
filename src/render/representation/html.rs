//! A page of posts for people, with the classes of h-feed and h-entry for programs: the newest
//! posts, or a page of the Smart Feed with a link to the next. No script; posts of others are
//! cleaned of all that runs. Not the description of a feed.

use super::{BOTH, LoneItem, Media, Negotiation, SyntaxRow};
use crate::{
    feed::item::Reason,
    render::{
        channel::ShownChannel,
        document::{ArchiveLinks, Audience, Document},
        people,
        post::{self, ItemProjection, ShownPost, ShownTombstone},
        target::is_web,
        text::ShownText,
        web_page::{QUIET, anchor, begin, begin_main, classed_time, finish, link},
        xml::{self, Xml},
    },
};
use everfeed_adapters::text::sanitise;

#[cfg(test)]
mod tests;

/// The syntax.
pub(super) static ROW: SyntaxRow = SyntaxRow {
    suffix: "html",
    title: "HTML",
    standard: "HTML with h-feed and h-entry",
    etag: "h",
    media: Media::of("text/html; charset=utf-8", Negotiation::Never).without_position(),
    audiences: BOTH,
    is_alternate: false,
    write: document,
    item: lone_item,
};

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let links = document.links;
    let channel = ShownChannel::of(document.feed());
    let title = channel.name();
    let site = channel.site().filter(|site| is_web(site));
    let language = channel.language();
    let mut page = begin(language.unwrap_or("en"), &title);
    link(&mut page, "canonical", None, document.own_url());
    if audience == Audience::Full {
        link(&mut page, "self", None, &links.topic);
        link(&mut page, "hub", None, &links.hub);
    }
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
    begin_main(&mut page, Some("h-feed"));
    page.holding("nav", &[("lang", Some("en"))], |out| {
        anchor(out, &links.list, "All feeds");
        out.push_str(" · ");
        anchor(out, &links.about, "About this feed");
    });
    let name = [("class", Some("p-name title")), ("dir", Some("auto"))];
    page.holding("h1", &name, |out| {
        title_in(out, &title, site.as_deref());
    });
    if let Some(description) = channel.description() {
        let class = [("class", Some("p-summary quiet")), ("dir", Some("auto"))];
        page.leaf("p", &class, &description.words());
    }
    for item in post::items(document, audience) {
        self::item(&mut page, item);
    }
    if document.page.items.is_empty() {
        let class = [("class", Some("quiet")), ("lang", Some("en"))];
        page.leaf("p", &class, "There is nothing here.");
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
pub(super) fn lone_item(lone: &LoneItem<'_>) -> Vec<u8> {
    let mut page = Xml::fragment(3, &[]);
    self::item(&mut page, lone.item);
    page.finish_fragment()
}

/// A function of the item alone.
fn item(page: &mut Xml, item: ItemProjection<'_>) {
    match item {
        ItemProjection::Post(post) => live(page, post),
        ItemProjection::Tombstone(tombstone) => gone(page, tombstone),
    }
}

fn gone(page: &mut Xml, gone: ShownTombstone<'_>) {
    let item = gone.item;
    // A post that has left a view with a filter is there, as everybody sees who looks at the whole
    // feed; one that has left a group is in its own feed.
    let (class, element, words) = match gone.reason {
        Reason::LeftView => ("left", "span", "changed, and not in this view now · "),
        Reason::LeftGroup => ("left", "span", "no post of this group any more · "),
        _ => ("deleted", "del", "deleted · "),
    };
    page.open("article", &[("class", Some(class)), ("lang", Some("en"))]);
    page.open("p", QUIET);
    page.leaf(element, &[], item.given_id());
    page.aside(|out| out.push_str(words));
    classed_time(page, None, item.modified);
    page.leaf("code", &[], gone.reason.code());
    page.close("p");
    page.close("article");
}

fn live(page: &mut Xml, post: ShownPost<'_>) {
    let permalink = post.permalink().filter(|url| is_web(url));
    let url = permalink.as_deref();
    let language = ("lang", post.language_attribute());
    page.open("article", &[("class", Some("h-entry")), language]);
    let title = post.title();
    if let Some(title) = &title {
        let name = [("class", Some("p-name title")), ("dir", Some("auto"))];
        page.holding("h2", &name, |out| title_in(out, title, url));
    } else {
        // Programs would take other words of the page for its name.
        let name = [("class", Some("p-name")), ("value", Some(""))];
        page.leaf("data", &name, "");
    }
    byline(page, post, url.filter(|_| title.is_none()));
    if let Some(summary) = post.summary() {
        markup(page, "p-summary", summary);
    }
    if let Some(content) = post.content() {
        markup(page, "e-content", content);
    }
    files(page, post);
    page.close("article");
}

/// Dates, people, tags, the permalink where no title leads to it, and the comments page; in each
/// the class that programs know it by.
fn byline(page: &mut Xml, post: ShownPost<'_>, permalink: Option<&str>) {
    let item = post.item;
    page.open("p", &[("class", Some("quiet byline"))]);
    let uid = [("class", Some("u-uid")), ("value", Some(&*item.iri))];
    page.leaf("data", &uid, "");
    classed_time(page, Some("dt-published"), item.dated());
    let updated = item.updated();
    if let Some(edited) = item.edited() {
        // The class says the same as the dates of other formats.
        let class = (edited == updated).then_some("dt-updated");
        page.aside(|out| out.push_str("edited "));
        classed_time(page, class, edited);
    }
    if updated != item.dated() && item.edited() != Some(updated) {
        page.aside(|out| out.push_str("changed "));
        classed_time(page, Some("dt-updated"), updated);
    }
    post.authors()
        .iter()
        .for_each(|person| people::html(page, person));
    for tag in post.tags().visible() {
        let class = [("class", Some("p-category tag")), ("dir", Some("auto"))];
        page.leaf("span", &class, tag.label.as_ref().unwrap_or(&tag.term));
    }
    if permalink.is_some() {
        let link = [("class", Some("u-url")), ("href", permalink)];
        page.leaf("a", &link, "permalink");
    }
    if let Some(comments) = post.comments().filter(|url| is_web(url)) {
        let link = [("class", Some("u-comments")), ("href", Some(&*comments))];
        page.leaf("a", &link, "comments");
    }
    page.close("p");
}

/// HTML of somebody else, cleaned.
fn markup(page: &mut Xml, class: &str, text: ShownText<'_>) {
    let clean = sanitise(&text.html());
    let class = [("class", Some(class)), ("dir", Some("auto"))];
    // A reference of the publisher may name a character that no page may hold.
    let is_barred = |sign: char| match sign {
        '\t' | '\n' | '\r' => false,
        '\u{FFFE}' | '\u{FFFF}' => true,
        _ => sign.is_control(),
    };
    page.holding("div", &class, |out| out.extend(clean.split(is_barred)));
}

fn files(page: &mut Xml, post: ShownPost<'_>) {
    let files = post.files();
    let mut files = files.filter(|file| is_web(&file.href)).peekable();
    if files.peek().is_none() {
        return;
    }
    page.open("ul", &[("class", Some("files"))]);
    for file in files {
        let class = match file.kind() {
            Some("audio") => "u-audio",
            Some("image") => "u-photo",
            Some("video") => "u-video",
            _ => "u-enclosure",
        };
        let title = file.title().filter(|title| !title.trim().is_empty());
        let attributes = [
            ("class", Some(class)),
            ("type", file.media_type()),
            ("href", Some(&*file.href)),
        ];
        page.open("li", &[]);
        page.leaf("a", &attributes, title.unwrap_or(&file.href));
        page.close("li");
    }
    page.close("ul");
}

/// A title, which leads to its page where it has one.
fn title_in(out: &mut String, title: &str, url: Option<&str>) {
    match url {
        Some(url) => classed_anchor(out, "u-url", url, title),
        None => xml::push_text(out, title),
    }
}

fn classed_anchor(out: &mut String, class: &str, href: &str, words: &str) {
    out.push_str("<a");
    xml::push_attribute(out, "class", class);
    xml::push_attribute(out, "href", href);
    out.push('>');
    xml::push_text(out, words);
    out.push_str("</a>");
}
