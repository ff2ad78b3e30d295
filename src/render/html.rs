//! Pages for people: the list of feeds, one feed's description, the hub, and errors. No script, nothing loaded from
//! elsewhere, every text escaped; not a reader of posts.

use super::{
    about::{self, About, Caps, Origin, positions},
    channel::ShownChannel,
    document::Audience,
    list::List,
    representation::Representation,
    target::{is_web, web},
    urls::Site,
    web_page::{
        QUIET, TITLE, anchor, begin, begin_main, clamped, code, finish, link, table_head, time,
    },
    xml::{self, Xml},
};
use crate::feed::{archive::History, filter::Filter, order::Order, record::FeedRecord};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

pub use super::web_page::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};

/// The list of feeds. Autodiscovery leads to the classic views, which ordinary readers understand
/// (C-1).
pub fn list(list: &List<'_>) -> Vec<u8> {
    let List { site, feeds, .. } = list;
    let mut page = begin("en", "Feeds");
    for feed in feeds {
        discovery(&mut page, site, feed);
    }
    let json = Some("application/json");
    link(&mut page, "alternate", json, &site.list());
    link(&mut page, "outline", Some("text/x-opml"), &site.outline());
    begin_main(&mut page, Some("wide"));
    page.leaf("h1", &[], "Feeds");
    let told = match list.total {
        0 if list.words.is_empty() => "No feed is configured yet.".to_owned(),
        0 => "No feed is called so.".to_owned(),
        1 => "One feed is remembered here.".to_owned(),
        n => format!("{n} feeds are remembered here."),
    };
    let failing = list.failing();
    let told = match failing.len() {
        0 => told,
        1 => format!("{told} One below fails."),
        n => format!("{told} {n} below fail."),
    };
    page.leaf("p", QUIET, &told);
    if list.total > SEARCH_FROM || !list.words.is_empty() {
        search(&mut page, list);
    }
    // In the order of names nobody would find those that fail.
    if failing.is_empty() {
        table(&mut page, list, feeds.iter());
    } else {
        let good = feeds.iter().filter(|feed| !list.fails(feed));
        page.leaf("h2", &[], "Failing");
        table(&mut page, list, failing.iter().copied());
        if feeds.len() > failing.len() {
            page.leaf("h2", &[], "Others");
            table(&mut page, list, good);
        }
    }
    if let Some(next) = &list.next {
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
    let words = ("value", Some(list.words.as_str()));
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

/// Columns of the list. On a narrow screen each cell says its own.
const COLUMNS: [&str; 4] = ["Feed", "Last change", "Posts", "State"];

fn table<'a>(page: &mut Xml, list: &List<'_>, feeds: impl Iterator<Item = &'a FeedRecord>) {
    let mut feeds = feeds.peekable();
    if feeds.peek().is_none() {
        return;
    }
    page.open("table", &[("class", Some("feeds"))]);
    table_head(page, &COLUMNS);
    page.open("tbody", &[]);
    for feed in feeds {
        row(page, list, feed);
    }
    page.close("tbody");
    page.close("table");
}

fn row(page: &mut Xml, list: &List<'_>, feed: &FeedRecord) {
    let site = list.site;
    let [_, changed, posts, state] = COLUMNS.map(|column| [("data-column", Some(column))]);
    page.open("tr", &[]);
    page.open("th", &[("scope", Some("row"))]);
    page.holding("div", TITLE, |out| {
        let title = ShownChannel::of(feed).name();
        anchor(out, &site.negotiated(&feed.name), &clamped(title));
    });
    page.open("ul", &[("class", Some("links"))]);
    page.holding("li", &[], |out| code(out, &feed.name));
    let is_for_readers = |form: &Representation| form.is_alternate();
    for representation in Representation::of(Audience::Classic).filter(is_for_readers) {
        let url = site.base(&feed.name, representation, Order::MODIFIED);
        let title = representation.syntax_title();
        page.holding("li", &[], |out| anchor(out, &url, title));
    }
    page.holding("li", &[], |out| {
        anchor(out, &site.about(&feed.name), "About")
    });
    page.close("ul");
    page.close("th");
    page.open("td", &changed);
    match about::updated(feed).filter(|_| feed.is_ready()) {
        Some(updated) => time(page, updated),
        None => page.aside(|out| out.push('–')),
    }
    page.close("td");
    let count = count(feed, list.parts.contains(&feed.no));
    page.leaf("td", &posts, &count);
    page.open("td", &state);
    self::state(page, feed, list.origins.get(&feed.no));
    page.close("td");
    page.close("tr");
}

/// State of a feed that does not answer yet.
const WAITING: &str = "waiting for its first document";

/// `fresh · read 2014-01-06 10:18 UTC`, or since when its origin does not answer well, and why.
fn state(page: &mut Xml, feed: &FeedRecord, origin: Option<&Origin>) {
    const STATE: &[(&str, Option<&str>)] = &[("class", Some("state"))];
    let Origin {
        reached_at,
        fails_since,
        fault,
    } = origin.copied().unwrap_or_default();
    let (attributes, word) = match (feed.is_ready(), fails_since, reached_at) {
        (_, Some(_), _) => (STATE, "fails"),
        (false, None, _) => (STATE, WAITING),
        (true, None, Some(_)) => (&[][..], "fresh"),
        (true, None, None) => (&[][..], "ready"),
    };
    page.leaf("span", attributes, word);
    if let Some(since) = fails_since {
        page.aside(|out| out.push_str(" since "));
        time(page, since);
    }
    if let Some(fault) = fault {
        page.leaf("div", &[], &fault.to_string());
    }
    if let Some(reached) = reached_at {
        page.open("div", QUIET);
        page.aside(|out| out.push_str("read "));
        time(page, reached);
        page.close("div");
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

/// An error: its status, one sentence, and the way to the list of feeds, where its URL is known.
pub fn error(status: &str, sentence: &str, list: Option<&str>) -> Vec<u8> {
    let title = status;
    let mut page = begin("en", title);
    begin_main(&mut page, None);
    page.leaf("h1", &[], title);
    let mut letters = sentence.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let sentence: String = first.chain(letters).collect();
    let is_ended = sentence.ends_with(['.', '!', '?']);
    page.holding("p", &[], |out| {
        // The sentence may name the list itself.
        let named = list.and_then(|list| Some((list, sentence.split_once(list)?)));
        match named {
            Some((list, (before, behind))) => {
                xml::push_text(out, before);
                anchor(out, list, list);
                xml::push_text(out, behind);
            }
            None => xml::push_text(out, &sentence),
        }
        if !is_ended {
            out.push('.');
        }
    });
    if let Some(list) = list {
        page.holding("nav", &[], |out| anchor(out, list, "All feeds"));
    }
    finish(page)
}

/// The fields of a request to subscribe that a person fills in, and a word on each.
const HUB_FIELDS: [(&str, &str, &str); 3] = [
    (
        "hub.topic",
        "url",
        "The address of a feed here, as its self link names it",
    ),
    (
        "hub.callback",
        "url",
        "Your own address, which answers with hub.challenge",
    ),
    (
        "hub.secret",
        "text",
        "A secret that signs each push; may be empty",
    ),
];

/// The hub, for people: what it takes, and a form to try it.
pub fn hub(site: &Site) -> Vec<u8> {
    let mut page = begin("en", "Hub");
    begin_main(&mut page, None);
    page.holding("nav", &[], |out| anchor(out, &site.list(), "All feeds"));
    page.leaf("h1", &[], "Hub");
    page.leaf(
        "p",
        &[],
        "This hub pushes each change of the feeds served here, and of no others, as it happens. It speaks WebSub, and PubSubHubbub 0.3 and 0.4.",
    );
    let action = site.hub();
    let form = [("method", Some("post")), ("action", Some(&*action))];
    page.open("form", &form);
    let mode = [
        ("type", Some("hidden")),
        ("name", Some("hub.mode")),
        ("value", Some("subscribe")),
    ];
    page.empty("input", &mode);
    for (name, kind, word) in HUB_FIELDS {
        page.open("p", &[]);
        page.open("label", &[]);
        page.aside(|out| {
            xml::push_text(out, word);
            out.push_str(": ");
        });
        page.empty("input", &[("type", Some(kind)), ("name", Some(name))]);
        page.close("label");
        page.close("p");
    }
    page.leaf("button", &[], "Subscribe");
    page.close("form");
    page.holding("p", QUIET, |out| {
        out.push_str("Programs send these fields as a form, with POST, to ");
        code(out, &action);
        out.push('.');
    });
    finish(page)
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
    page.holding("nav", &[], |out| {
        anchor(out, &site.list(), "All feeds");
        out.push_str(" · ");
        anchor(out, &site.negotiated(&feed.name), "Its posts");
    });
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
    match about.deleted {
        Some(since) => {
            page.open("dd", &[]);
            page.aside(|out| out.push_str("deleted by its publisher since "));
            time(page, since);
            page.close("dd");
        }
        None => page.leaf("dd", &[], state),
    }
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
        if let Some(fault) = about.origin.fault {
            page.aside(|out| out.push_str(&format!(": {fault}")));
        }
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
        History::Unknown => "from the first document seen here; older posts may exist".into(),
    }
}

fn reading(page: &mut Xml, site: &Site, name: &str) {
    page.leaf("h2", &[], "For a feed reader");
    page.leaf(
        "p",
        &[],
        "The newest posts, newest first. Paste the address of one of the links into your reader, or open the page.",
    );
    page.open("ul", &[("class", Some("links"))]);
    for representation in Representation::of(Audience::Classic) {
        let url = site.base(name, representation, Order::MODIFIED);
        let title = representation.syntax_title();
        page.holding("li", &[], |out| anchor(out, &url, title));
    }
    page.close("ul");
}

fn following(page: &mut Xml, site: &Site, name: &str) {
    page.leaf("h2", &[], "For a program");
    page.leaf(
        "p",
        &[],
        "The Smart Feed never forgets a post, says which were deleted, and can be mirrored exactly: begin at the start, \
         then go on from each last_cursor.",
    );
    let root = site.root();
    let root = root.trim_end_matches('/');
    page.holding("p", &[], |out| {
        out.push_str("The addresses below stand behind ");
        code(out, root);
        out.push(':');
    });
    page.open("dl", &[]);
    for representation in Representation::of(Audience::Full) {
        let url = site.base(name, representation, Order::MODIFIED);
        address(page, representation.standard(), &url, root);
    }
    address(page, "As you accept", &site.negotiated(name), root);
    let events = "Changes as events (EventSource)";
    address(page, events, &site.events(name), root);
    address(page, "Hub (WebSub)", &site.hub(), root);
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
    let filters = Filter::PARAMETERS
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

/// A URL of ours, of which what stands behind the root is shown.
fn address(page: &mut Xml, term: &str, url: &str, root: &str) {
    let shown = url.strip_prefix(root).unwrap_or(url);
    fact(page, term, |out| anchor(out, url, shown));
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
