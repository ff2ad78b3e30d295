//! Recipes for the older posts of a platform, as values, checked, in the order in which they are
//! worth trying. The walking is done elsewhere.

use serde::Deserialize;

/// One way to a feed's older entries. URLs are made from the feed's own; `with` is a query added to
/// each of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Recipe {
    /// Pages are counted in a query parameter: `?paged=2`.
    Page {
        /// The parameter.
        param: String,
        /// The number of the first page after the feed itself.
        start: u32,
        /// Signs that the page before was the last.
        end: Vec<End>,
        /// A query added to every page, without `?`.
        #[serde(default)]
        with: Option<String>,
    },
    /// Entries are counted in a query parameter: `?start-index=26&max-results=25`.
    Offset {
        /// The parameter that holds the first entry's number.
        param: String,
        /// The number of a feed's first entry: 0 or 1.
        start: u32,
        /// The parameter that holds the number of entries.
        #[serde(default)]
        count: Option<String>,
        /// The most entries that are given at once.
        #[serde(default)]
        count_max: Option<u32>,
        /// Signs that the page before was the last.
        end: Vec<End>,
    },
    /// One parameter lifts the limit: `?all=1`.
    All {
        /// The parameter.
        param: String,
        /// Its value.
        value: String,
    },
    /// One parameter widens the window, up to a maximum: `?limit=100`.
    Limit {
        /// The parameter.
        param: String,
        /// The most that is given; `None` when nothing caps it.
        #[serde(default)]
        max: Option<u32>,
        /// A query added to it, without `?`.
        #[serde(default)]
        with: Option<String>,
    },
    /// Links of the feed lead from page to page.
    Link {
        /// Their relation: `next`, `prev-archive`.
        rel: String,
    },
    /// Pages are counted in the path: `/rss/{page}/`.
    Path {
        /// The path, with `{page}`.
        template: String,
        /// The number of the first page after the feed itself.
        start: u32,
        /// Signs that the page before was the last.
        end: Vec<End>,
    },
    /// One document a month or day: `/{year}/{month}/{day}.html`.
    Calendar {
        /// The path, with `{year}`, `{month}` and perhaps `{day}`.
        template: String,
        /// True when the document is a feed; else it is a web page.
        feed: bool,
    },
    /// Another interface of the platform: `/api/read?start={offset}&num={count}`.
    Interface {
        /// The path, with `{offset}`, `{page}` or `{before}`, and perhaps `{count}`.
        template: String,
        /// Kind of the answer: `tumblr-xml`, `squarespace-json`.
        document: String,
        /// The most entries that are given at once.
        #[serde(default)]
        count_max: Option<u32>,
    },
}

/// Sign that the page before was the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// 404 or 410.
    NotFound,
    /// A document without entries.
    Empty,
    /// The same page again.
    Repeat,
    /// The count that the document names (`opensearch:totalResults`) is reached.
    Total,
    /// The server leads back to the page before by a redirect.
    Redirect,
}
