//! The operator's pages: what is broken, the feeds with a search, and the facts of one feed. They read
//! alone: no script, nothing loaded from elsewhere, every text escaped.

use super::{
    reader_page::{self, ReaderSheet},
    web_page::{QUIET, TITLE, anchor, begin, begin_main, code, finish, table_head},
    xml::Xml,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

pub use super::web_page::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};

/// The path of the overview, and of the page of a feed below it.
pub const PATH: &str = "/overview";

/// What the overview says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// One line about the process.
    pub head: String,
    /// Everything that is broken, in a sentence each, below the owner of the fault.
    pub broken: Vec<(String, Vec<String>)>,
    /// Everything else that the operator should know.
    pub notes: Vec<String>,
    /// Words that are searched for; empty for none.
    pub words: String,
    /// True where only feeds that fail are shown.
    pub is_failing_only: bool,
    /// The orders in which the feeds can be shown.
    pub orders: Vec<OrderLink>,
    /// Feeds in all.
    pub total: usize,
    /// Those that fail.
    pub failing: usize,
    /// The feeds of this page.
    pub feeds: Vec<OverviewFeed>,
    /// The query of the next page.
    pub next: Option<String>,
}

/// An order of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderLink {
    /// Its name for people.
    pub words: &'static str,
    /// The query of the list in this order; in the reverse one where it is in force.
    pub query: String,
    /// The query's parameter, if it is in force and a search has to keep it.
    pub in_force: Option<String>,
    /// True where it is in force in reverse.
    pub is_reversed: bool,
}

/// A feed in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverviewFeed {
    /// Its name.
    pub name: String,
    /// The address that is polled.
    pub url: String,
    /// Its state in a word.
    pub state: String,
    /// True while it fails.
    pub is_failing: bool,
    /// Live items of all.
    pub items: String,
    /// Time of the last good answer, in words.
    pub last_good: String,
    /// Time of the next poll, in words.
    pub next_poll: String,
    /// Push subscribers.
    pub subscribers: String,
}

/// The facts of one feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedSheet {
    /// Its name.
    pub name: String,
    /// The fault with its owner; empty without one.
    pub fault: String,
    /// Facts in pairs of a name and a value.
    pub facts: Vec<(&'static str, String)>,
    /// Whatever else the operator should know.
    pub notes: Vec<String>,
    /// Its readers; `None` if nobody asked for it.
    pub readers: Option<ReaderSheet>,
}

/// A name as one step of a path.
fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// Columns of the list. On a narrow screen each cell says its own.
const COLUMNS: [&str; 6] = [
    "Feed",
    "State",
    "Live items",
    "Last good",
    "Next poll",
    "Subscribers",
];

/// The page with everything.
pub fn overview(told: &Overview) -> Vec<u8> {
    let mut page = begin("en", "everfeed");
    begin_main(&mut page, Some("wide"));
    page.leaf("h1", &[], "Overview");
    page.leaf("p", QUIET, &told.head);
    page.holding("nav", &[], |out| {
        anchor(out, "/events.atom", "Events as a feed")
    });
    if told.broken.is_empty() {
        page.leaf("p", &[], "Nothing is broken.");
    }
    for (owner, lines) in &told.broken {
        page.leaf("h2", &[], owner);
        list(&mut page, lines);
    }
    page.leaf("h2", &[], "Feeds");
    search(&mut page, told);
    if told.feeds.is_empty() {
        page.leaf("p", QUIET, "No feed is among those that are asked for.");
    } else {
        table(&mut page, &told.feeds);
    }
    if let Some(next) = &told.next {
        let next = format!("{PATH}?{next}");
        page.holding("nav", &[("class", Some("pages"))], |out| {
            anchor(out, &next, "More feeds");
        });
    }
    if !told.notes.is_empty() {
        page.leaf("h2", &[], "Notes");
        list(&mut page, &told.notes);
    }
    finish(page)
}

/// The page of one feed.
pub fn feed(sheet: &FeedSheet) -> Vec<u8> {
    let mut page = begin("en", &sheet.name);
    begin_main(&mut page, sheet.readers.as_ref().map(|_| "wide"));
    page.holding("nav", &[], |out| anchor(out, PATH, "Overview"));
    page.leaf("h1", &[], &sheet.name);
    if !sheet.fault.is_empty() {
        page.leaf("p", &[("class", Some("state"))], &sheet.fault);
    }
    page.open("dl", &[]);
    for (name, value) in &sheet.facts {
        page.leaf("dt", &[], name);
        page.leaf("dd", &[], value);
    }
    page.close("dl");
    if !sheet.notes.is_empty() {
        page.leaf("h2", &[], "Notes");
        list(&mut page, &sheet.notes);
    }
    if let Some(readers) = &sheet.readers {
        page.leaf("h2", &[], "Readers");
        reader_page::section(&mut page, readers);
    }
    page.leaf("h2", &[], "More");
    page.holding("p", &[], |out| {
        let name = encoded(&sheet.name);
        anchor(out, &format!("/explain/{name}"), "Everything as JSON");
        out.push_str("; ");
        code(out, &format!("everfeed explain {} ITEM", sheet.name));
        out.push_str(" says why a post is kept, suspected or deleted.");
    });
    finish(page)
}

fn list(page: &mut Xml, lines: &[String]) {
    page.open("ul", &[]);
    for line in lines {
        page.leaf("li", &[("dir", Some("auto"))], line);
    }
    page.close("ul");
}

/// The search in names and addresses, and the way to those that fail.
fn search(page: &mut Xml, told: &Overview) {
    let attributes = [
        ("role", Some("search")),
        ("method", Some("get")),
        ("action", Some(PATH)),
    ];
    page.open("form", &attributes);
    let label = ("aria-label", Some("Words in names and addresses"));
    let words = ("value", Some(told.words.as_str()));
    page.empty(
        "input",
        &[("type", Some("search")), ("name", Some("q")), label, words],
    );
    if told.is_failing_only {
        let hidden = [
            ("type", Some("hidden")),
            ("name", Some("failing")),
            ("value", Some("")),
        ];
        page.empty("input", &hidden);
    }
    for sort in told
        .orders
        .iter()
        .filter_map(|order| order.in_force.as_deref())
    {
        let hidden = [
            ("type", Some("hidden")),
            ("name", Some("sort")),
            ("value", Some(sort)),
        ];
        page.empty("input", &hidden);
    }
    page.leaf("button", &[], "Search");
    page.close("form");
    page.open("p", QUIET);
    page.aside(|out| {
        let all = format!("All {}", told.total);
        let failing = format!("failing {}", told.failing);
        if told.is_failing_only || !told.words.is_empty() {
            anchor(out, PATH, &all);
        } else {
            out.push_str(&all);
        }
        out.push_str(" · ");
        if told.is_failing_only {
            out.push_str(&failing);
        } else {
            anchor(out, &format!("{PATH}?failing="), &failing);
        }
    });
    page.close("p");
    orders(page, &told.orders);
}

/// The orders of the list. A link to that which is in force leads to its reverse.
fn orders(page: &mut Xml, orders: &[OrderLink]) {
    if orders.is_empty() {
        return;
    }
    page.open("p", QUIET);
    page.aside(|out| {
        out.push_str("Sorted by ");
        for (at, order) in orders.iter().enumerate() {
            if at > 0 {
                out.push_str(" · ");
            }
            let href = format!("{PATH}?{}", order.query);
            let href = href.trim_end_matches('?');
            match (&order.in_force, order.is_reversed) {
                (None, _) => anchor(out, href, order.words),
                (Some(_), false) => anchor(out, href, &format!("{} ↓", order.words)),
                (Some(_), true) => anchor(out, href, &format!("{} ↑", order.words)),
            }
        }
    });
    page.close("p");
}

fn table(page: &mut Xml, feeds: &[OverviewFeed]) {
    page.open("table", &[("class", Some("feeds overview"))]);
    table_head(page, &COLUMNS);
    page.open("tbody", &[]);
    for feed in feeds {
        row(page, feed);
    }
    page.close("tbody");
    page.close("table");
}

fn row(page: &mut Xml, feed: &OverviewFeed) {
    let cell = |column: usize| [("data-column", Some(COLUMNS[column]))];
    page.open("tr", &[]);
    page.open("th", &[("scope", Some("row"))]);
    let href = format!("{PATH}/{}", encoded(&feed.name));
    page.holding("div", TITLE, |out| anchor(out, &href, &feed.name));
    page.leaf("div", QUIET, &feed.url);
    page.close("th");
    page.open("td", &cell(1));
    let class = feed.is_failing.then_some("state");
    page.leaf("span", &[("class", class)], &feed.state);
    page.close("td");
    page.leaf("td", &cell(2), &feed.items);
    page.leaf("td", &cell(3), &feed.last_good);
    page.leaf("td", &cell(4), &feed.next_poll);
    page.leaf("td", &cell(5), &feed.subscribers);
    page.close("tr");
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIL: &str = "<script>alert(1)</script>\"'&";

    fn shown(page: Vec<u8>) -> String {
        let page = String::from_utf8(page).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
        assert!(!page.contains("<script"), "{page}");
        page
    }

    #[test]
    fn the_overview_says_what_is_broken_by_its_owner_and_escapes_the_words_of_others() {
        let told = Overview {
            head: "everfeed 0.1.0".to_owned(),
            broken: vec![("The publisher's".to_owned(), vec![EVIL.to_owned()])],
            notes: vec!["a note".to_owned()],
            words: EVIL.to_owned(),
            orders: vec![
                OrderLink {
                    words: "name",
                    query: "q=a".to_owned(),
                    ..OrderLink::default()
                },
                OrderLink {
                    words: "state",
                    query: "q=a&sort=-state".to_owned(),
                    in_force: Some("state".to_owned()),
                    is_reversed: false,
                },
            ],
            total: 2,
            failing: 1,
            feeds: vec![OverviewFeed {
                name: "a/b".to_owned(),
                url: EVIL.to_owned(),
                state: "failing".to_owned(),
                is_failing: true,
                ..OverviewFeed::default()
            }],
            next: Some("after=x&q=%3C".to_owned()),
            ..Overview::default()
        };
        let page = shown(overview(&told));
        for part in [
            "<h2>The publisher's</h2>",
            "href=\"/overview/a%2Fb\"",
            "href=\"/overview?after=x&amp;q=%3C\"",
            "href=\"/overview?failing=\"",
            "href=\"/events.atom\"",
            "a note",
            "<a href=\"/overview?q=a\">name</a> · <a href=\"/overview?q=a&amp;sort=-state\">state ↓</a>",
            "<input type=\"hidden\" name=\"sort\" value=\"state\"/>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let none = shown(overview(&Overview::default()));
        assert!(none.contains("Nothing is broken.") && none.contains("No feed is among"));
    }

    #[test]
    fn the_page_of_a_feed_has_its_facts_and_leads_back() {
        let sheet = FeedSheet {
            name: "blog".to_owned(),
            fault: EVIL.to_owned(),
            facts: vec![("Polled at", EVIL.to_owned())],
            notes: Vec::new(),
            readers: None,
        };
        let page = shown(feed(&sheet));
        for part in [
            "<dt>Polled at</dt>",
            "href=\"/overview\"",
            "href=\"/explain/blog\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
