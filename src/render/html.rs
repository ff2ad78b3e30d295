//! Pages for people: the list of feeds, and one feed's description. No script, nothing loaded from
//! elsewhere, every text escaped; not a reader of posts.

use super::{
    about::{self, About, Caps, FILTERS, positions},
    channel::ShownChannel,
    document::Audience,
    list::List,
    representation::Representation,
    target::{is_web, web},
    urls::Site,
    web_page::{QUIET, TITLE, anchor, begin, begin_main, clamped, code, finish, link, time},
    xml::Xml,
};
use crate::feed::{archive::History, order::Order, record::FeedRecord};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

pub use super::web_page::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};

/// The list of feeds. Autodiscovery leads to the classic views, which ordinary readers understand
/// (C-1).
pub fn list(list: &List<'_>) -> Vec<u8> {
    let List { site, feeds, .. } = *list;
    let mut page = begin("en", "Feeds");
    for feed in feeds {
        discovery(&mut page, site, feed);
    }
    let json = Some("application/json");
    link(&mut page, "alternate", json, &site.list());
    link(&mut page, "outline", Some("text/x-opml"), &site.outline());
    begin_main(&mut page, None);
    page.leaf("h1", &[], "Feeds");
    let told = match list.total {
        0 if list.words.is_empty() => "No feed is configured yet.".to_owned(),
        0 => "No feed is called so.".to_owned(),
        1 => "One feed is remembered here.".to_owned(),
        n => format!("{n} feeds are remembered here."),
    };
    page.leaf("p", QUIET, &told);
    if list.total > SEARCH_FROM || !list.words.is_empty() {
        search(&mut page, list);
    }
    if !feeds.is_empty() {
        page.open("ul", &[("class", Some("feeds"))]);
        for feed in feeds {
            card(&mut page, site, feed, list.parts.contains(&feed.no));
        }
        page.close("ul");
    }
    if let Some(next) = list.next {
        page.holding("nav", &[], |out| anchor(out, next, "More feeds"));
    }
    page.holding("p", &[], |out| {
        anchor(out, &site.outline(), "All feeds as OPML");
        out.push_str(", for the import of a feed reader.");
    });
    finish(page)
}

/// Feeds from which on a list has a search.
const SEARCH_FROM: usize = 10;

/// The search in names and titles.
fn search(page: &mut Xml, list: &List<'_>) {
    let action = list.site.list();
    let attributes = [
        ("role", Some("search")),
        ("method", Some("get")),
        ("action", Some(&*action)),
    ];
    page.open("form", &attributes);
    let label = ("aria-label", Some("Words in names and titles"));
    let words = ("value", Some(list.words));
    let name = ("name", Some("q"));
    page.empty("input", &[("type", Some("search")), name, label, words]);
    page.leaf("button", &[], "Search");
    page.close("form");
    let found = match list.found {
        _ if list.words.is_empty() => return,
        Some(0) => "None of them holds these words.".to_owned(),
        Some(1) => "One of them holds these words.".to_owned(),
        Some(found) => format!("{found} of them hold these words."),
        None if list.feeds.is_empty() => {
            "None of those that were looked at holds these words.".to_owned()
        }
        None => return,
    };
    page.leaf("p", QUIET, &found);
}

fn card(page: &mut Xml, site: &Site, feed: &FeedRecord, is_part: bool) {
    page.open("li", &[]);
    page.holding("h2", TITLE, |out| {
        let title = ShownChannel::of(feed).name();
        anchor(out, &site.about(&feed.name), &clamped(title));
    });
    page.open("p", QUIET);
    page.leaf("code", &[], &feed.name);
    summary(page, feed, is_part);
    page.close("p");
    page.open("ul", &[("class", Some("links"))]);
    for (words, audience) in [
        ("Newest posts:", Audience::Classic),
        ("Smart Feed:", Audience::Full),
    ] {
        page.holding("li", &[], |out| {
            out.push_str(words);
            let is_usual = |form: &Representation| form.is_pushed() || form.is_page();
            for representation in Representation::of(audience).filter(is_usual) {
                out.push(' ');
                let url = site.base(&feed.name, representation, Order::MODIFIED);
                anchor(out, &url, representation.syntax_title());
            }
        });
    }
    page.close("ul");
    page.close("li");
}

/// State of a feed that does not answer yet.
const WAITING: &str = "waiting for its first document";

/// `· 1204 posts, 3 of them deleted · changed 2014-01-06 10:18 UTC`.
fn summary(page: &mut Xml, feed: &FeedRecord, is_part: bool) {
    page.aside(|out| out.push_str(&format!(" · {}", count(feed, is_part))));
    match about::updated(feed).filter(|_| feed.is_ready()) {
        Some(updated) => {
            page.aside(|out| out.push_str(" · changed "));
            time(page, updated);
        }
        None if feed.is_ready() => {}
        None => {
            page.aside(|out| out.push_str(" · "));
            page.leaf("span", &[("class", Some("state"))], WAITING);
        }
    }
}

fn count(feed: &FeedRecord, is_part: bool) -> String {
    if is_part {
        return "posts that are for you".to_owned();
    }
    let total = feed.items.total;
    let posts = if total == 1 { "post" } else { "posts" };
    match total.saturating_sub(feed.items.live) {
        0 => format!("{total} {posts}"),
        gone => format!("{total} {posts}, {gone} of them deleted"),
    }
}

/// One feed's description (SF-132..SF-134).
pub fn about(about: &About<'_>) -> Vec<u8> {
    let About { feed, site, .. } = *about;
    let channel = ShownChannel::of(feed);
    let title = clamped(channel.name());
    let about_url = site.about(&feed.name);
    let mut page = begin("en", &title);
    discovery(&mut page, site, feed);
    link(&mut page, "self", Some("text/html"), &about_url);
    link(&mut page, "hub", None, &site.hub());
    link(&mut page, "alternate", Some("application/json"), &about_url);
    begin_main(&mut page, None);
    page.holding("nav", &[], |out| anchor(out, &site.list(), "All feeds"));
    let language = ("lang", channel.language());
    page.leaf("h1", &[TITLE, &[language]].concat(), &title);
    if let Some(description) = channel.description() {
        page.leaf("p", &[("dir", Some("auto"))], &description.words());
    }
    facts(&mut page, about);
    reading(&mut page, site, &feed.name);
    following(&mut page, site, &feed.name);
    asking(&mut page, &about.caps);
    finish(page)
}

fn facts(page: &mut Xml, about: &About<'_>) {
    let feed = about.feed;
    page.open("dl", &[]);
    fact(page, "Name", |out| code(out, &feed.name));
    page.leaf("dt", &[], "Holds");
    page.open("dd", &[]);
    page.aside(|out| out.push_str(&count(feed, about.is_part)));
    page.close("dd");
    page.leaf("dt", &[], "State");
    let state = if feed.is_ready() { "ready" } else { WAITING };
    page.leaf("dd", &[], state);
    if let Some(updated) = about::updated(feed) {
        page.leaf("dt", &[], "Last change");
        page.open("dd", &[]);
        time(page, updated);
        page.close("dd");
    }
    if let Some(since) = about.origin.fails_since {
        page.leaf("dt", &[], "Origin");
        page.open("dd", &[]);
        page.aside(|out| out.push_str("does not answer well since "));
        time(page, since);
        if let Some(reached) = about.origin.reached_at {
            page.aside(|out| out.push_str("; last read "));
            time(page, reached);
        }
        page.close("dd");
    }
    page.leaf("dt", &[], "History");
    page.leaf("dd", &[], &history(&feed.completeness.history));
    if feed.window.deferred > 0 && !about.is_part {
        page.leaf("dt", &[], "Not told yet");
        let changes = "changes in parts that move in many of its posts, or in posts that change again and again: they are told when they have lasted, or once a day";
        page.leaf("dd", &[], changes);
    }
    for gap in &feed.completeness.gaps {
        fact(page, "May lack", |out| {
            out.push_str("posts between the cursors ");
            code(out, &gap.before);
            out.push_str(" and ");
            code(out, &gap.after);
        });
    }
    if let Some(site) = ShownChannel::of(feed).site().filter(|site| is_web(site)) {
        fact(page, "Site", |out| anchor(out, &site, &site));
    }
    if let Some(upstream) = about.upstream.and_then(web) {
        fact(page, "Made from", |out| anchor(out, &upstream, &upstream));
    }
    if let Some(members) = about.members {
        page.leaf("dt", &[], "Group of");
        page.open("dd", &[]);
        for (at, name) in members.iter().enumerate() {
            page.aside(|out| {
                out.push_str(if at == 0 { "" } else { ", " });
                anchor(out, &about.site.about(name), name);
            });
        }
        page.aside(|out| {
            out.push_str(" (");
            anchor(out, &about.site.outline_of(&feed.name), "OPML");
            out.push(')');
        });
        page.close("dd");
    }
    page.close("dl");
}

fn history(history: &History) -> Cow<'static, str> {
    match history {
        History::Complete => "complete: from the first post on".into(),
        History::Partial(reason) => format!("partial: {reason}").into(),
        History::Running => "its archives are being read".into(),
        History::Unknown => {
            "from the first document seen here; nobody said whether there was more before".into()
        }
    }
}

fn reading(page: &mut Xml, site: &Site, name: &str) {
    page.leaf("h2", &[], "For a feed reader");
    page.leaf(
        "p",
        &[],
        "The newest posts, newest first. Paste one of the addresses into your reader, or open the page.",
    );
    page.open("dl", &[]);
    for representation in Representation::of(Audience::Classic) {
        let url = site.base(name, representation, Order::MODIFIED);
        address(page, representation.syntax_title(), &url);
    }
    page.close("dl");
}

fn following(page: &mut Xml, site: &Site, name: &str) {
    page.leaf("h2", &[], "For a program");
    page.leaf(
        "p",
        &[],
        "The Smart Feed never forgets a post, says which were deleted, and can be mirrored exactly: begin at the start, \
         then go on from each last_cursor.",
    );
    page.open("dl", &[]);
    for representation in Representation::of(Audience::Full) {
        let url = site.base(name, representation, Order::MODIFIED);
        address(page, representation.standard(), &url);
    }
    address(page, "As you accept", &site.negotiated(name));
    address(page, "Changes as events (EventSource)", &site.events(name));
    address(page, "Hub (WebSub)", &site.hub());
    page.close("dl");
    let json = site.base(name, Representation::JSON, Order::MODIFIED);
    page.holding("pre", &[], |out| {
        code(
            out,
            &format!(
                "curl '{json}&since=cursor:'  # from the beginning\n\
                 curl '{json}&since=cursor:LAST_CURSOR'  # goes on, and waits for news"
            ),
        );
    });
    page.leaf("h2", &[], "Orders");
    page.open("dl", &[]);
    for order in Order::ALL {
        page.holding("dt", &[], |out| code(out, order.name()));
        let (sentence, takes) = (sentence(order), positions(order).join(", "));
        page.leaf("dd", &[], &format!("{sentence}; positions: {takes}"));
    }
    page.close("dl");
}

const fn sentence(order: Order) -> &'static str {
    match order {
        Order::MODIFIED => "oldest change first, the one to mirror by, and the default",
        Order::MODIFIED_REVERSE => "newest change first",
        Order::CREATED => "as first seen; posts keep their places",
        Order::CREATED_REVERSE => "last seen first",
        Order::PUBLISHED => {
            "by the dates of the publisher, oldest first; to look at, not to mirror by"
        }
        Order::PUBLISHED_REVERSE => "by the dates of the publisher, newest first",
    }
}

fn asking(page: &mut Xml, caps: &Caps) {
    page.leaf("h2", &[], "Parameters");
    page.open("dl", &[]);
    let Caps {
        max_default,
        max_cap,
        timeout_default_secs,
        timeout_cap_secs,
    } = caps;
    let parameters = [
        (
            "since",
            "after this position: cursor: (without anything behind it, the beginning), cursor:LAST_CURSOR, \
             time:2014-01-06, or id:ID in the created orders"
                .to_owned(),
        ),
        ("until", "before this position".to_owned()),
        ("max", format!("posts in a page: {max_default}, at most {max_cap}")),
        ("order", "one of the above".to_owned()),
        ("timeout", format!("seconds to wait for news: {timeout_default_secs}, at most {timeout_cap_secs}")),
        ("callback", "the function to call, for JSON-P".to_owned()),
    ];
    let filters = FILTERS
        .into_iter()
        .map(|(name, shows)| (name, shows.to_owned()));
    for (name, meaning) in parameters.into_iter().chain(filters) {
        page.holding("dt", &[], |out| code(out, name));
        page.leaf("dd", &[], &meaning);
    }
    page.close("dl");
}

/// A term, and what is said of it.
fn fact(page: &mut Xml, term: &str, inside: impl FnOnce(&mut String)) {
    page.leaf("dt", &[], term);
    page.holding("dd", &[], inside);
}

fn address(page: &mut Xml, term: &str, url: &str) {
    fact(page, term, |out| anchor(out, url, url));
}

fn discovery(page: &mut Xml, site: &Site, feed: &FeedRecord) {
    let title = clamped(ShownChannel::of(feed).name());
    for representation in Representation::of(Audience::Classic).filter(|form| !form.is_page()) {
        let href = site.base(&feed.name, representation, Order::MODIFIED);
        let attributes = [
            ("rel", Some("alternate")),
            ("type", Some(representation.media_type())),
            ("title", Some(&*title)),
            ("href", Some(&*href)),
        ];
        page.empty("link", &attributes);
    }
}
