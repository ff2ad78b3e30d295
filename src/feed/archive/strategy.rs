//! The ladder of ways to older entries (POLLING 3.1), and how each leads from a page to the next; not the guards.

use super::{WalkRules, WalkedDocument};
use crate::feed::history::PartialReason;
use everfeed_adapters::platforms::{Profile, Recipe};
use std::fmt;
use url::Url;

/// One way to older entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Archive documents by RFC 5005 section 4 and its drafts: each names the one before it.
    Archives,
    /// Pages by links of this relation (RFC 5005 section 3).
    Pages {
        /// `next`, else `previous`.
        rel: String,
    },
    /// Pages or entries are counted in the address.
    CountedPages(CountedPages),
    /// One document shows everything, or as much as the server gives.
    Whole {
        /// The most entries that it gives; `None` when nothing caps it.
        most: Option<u32>,
    },
}

/// Numbering of pages in their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedPages {
    pub(crate) place: CounterPlace,
    /// The number in the address of the page that is being read.
    pub(crate) at: u64,
    /// True when entries are counted; else pages.
    pub(crate) entries: bool,
    /// The number of the first entry, where entries are counted.
    pub(crate) start: u64,
    /// Other parameters of every address.
    pub(crate) with: Vec<(String, String)>,
}

/// Part of the address that holds the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CounterPlace {
    Query(String),
    /// With `{page}`.
    Path(String),
}

/// Successor of a page.
pub(super) enum NextPage {
    Page(String),
    /// It was the last, and the oldest.
    End,
    /// It was the last that is given.
    Short(PartialReason),
}

impl Strategy {
    /// True when the publisher's own links lead the way; else we count.
    pub(super) fn follows_links(&self) -> bool {
        matches!(self, Self::Archives | Self::Pages { .. })
    }

    /// True when two walks by these strategies ask for the same pages, wherever each of them is.
    pub(super) fn asks_for_the_pages_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::CountedPages(one), Self::CountedPages(two)) => {
                (&one.place, one.entries, &one.with) == (&two.place, two.entries, &two.with)
            }
            (Self::Whole { .. }, Self::Whole { .. }) => true,
            (one, two) => one == two,
        }
    }

    /// True when it counts pages, in the order of the live document, and is at the one after that.
    pub(super) fn asks_for_the_second_page(&self) -> bool {
        matches!(self, Self::CountedPages(counted) if !counted.entries && counted.with.is_empty())
    }

    /// From a page that was read to the address of the next, as the document or the count has it.
    pub(super) fn after(&mut self, feed: &str, seen: &WalkedDocument<'_>) -> NextPage {
        let page = |url: Option<&str>| url.map_or(NextPage::End, |url| NextPage::Page(url.to_owned()));
        match self {
            Self::Archives => page(seen.metadata.older_archive()),
            Self::Pages { rel } => page(link(seen, rel)),
            Self::CountedPages(counted) => counted.after(feed, seen),
            Self::Whole { most } => match most.filter(|most| seen.keys.len() as u64 >= u64::from(*most)) {
                Some(most) => NextPage::Short(PartialReason::ServerLimit { entries_max: most }),
                None => NextPage::End,
            },
        }
    }
}

impl CountedPages {
    fn after(&mut self, feed: &str, seen: &WalkedDocument<'_>) -> NextPage {
        let shown = seen.keys.len() as u64;
        let is_total = self.entries
            && seen.metadata.paging.total_items.is_some_and(|total| self.at - self.start + shown >= total);
        // Of an overlap of one the last page may be left.
        if shown == 0 || is_total || self.entries && shown == 1 {
            return NextPage::End;
        }
        // The last entry is read twice: one that was taken out meanwhile moves nothing past us.
        self.at += if self.entries { shown - 1 } else { 1 };
        self.url(feed).map_or(NextPage::End, NextPage::Page)
    }

    fn url(&self, feed: &str) -> Option<String> {
        let mut url = Url::parse(feed).ok()?;
        let number = self.at.to_string();
        match &self.place {
            CounterPlace::Query(param) => set_query(&mut url, param, &number),
            CounterPlace::Path(template) => url.set_path(&template.replace("{page}", &number)),
        }
        for (name, value) in &self.with {
            set_query(&mut url, name, value);
        }
        Some(url.into())
    }
}

/// The words for the operator.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archives => f.write_str("archives that name one another"),
            Self::Pages { rel } => write!(f, "pages by their links `{rel}`"),
            Self::CountedPages(counted) => counted.fmt(f),
            Self::Whole { .. } => f.write_str("one document with everything"),
        }
    }
}

impl fmt::Display for CountedPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.entries { "entries" } else { "pages" };
        let place = match &self.place {
            CounterPlace::Query(param) => param,
            CounterPlace::Path(template) => template,
        };
        write!(f, "{what} counted by `{place}`")?;
        self.with.iter().try_for_each(|(name, value)| write!(f, ", {name}={value}"))
    }
}

/// True when the document itself shows that it is everything.
pub(super) fn shows_all(live: &WalkedDocument<'_>) -> bool {
    let shown = live.keys.len() as u64;
    live.metadata.paging.total_items.is_some_and(|total| shown > 0 && total <= shown)
}

/// Every way that a live document and its platform offer, the best first, each with its first address; and why the
/// publisher's own way was not one.
pub(super) fn ways(
    feed: &Url,
    live: &WalkedDocument<'_>,
    profile: Option<&Profile>,
    rules: &WalkRules,
) -> (Vec<(Strategy, String)>, Option<PartialReason>) {
    let mut found: Vec<(Strategy, String)> = Vec::new();
    let mut flaw = None;
    let rel = ["next", "previous", "prev"].into_iter().find(|rel| live.metadata.link(rel).is_some());
    let linked = [
        live.metadata.older_archive().map(|url| (Strategy::Archives, url)),
        rel.and_then(|rel| Some((Strategy::Pages { rel: rel.to_owned() }, live.metadata.link(rel)?))),
    ];
    for (way, url) in linked.into_iter().flatten() {
        match rules.reach.mapped(url) {
            // One that leads from the document to itself leads nowhere.
            Some(url) if super::address(&url) == super::address(feed.as_str()) => {}
            Some(url) if found.iter().all(|(_, other)| *other != url) => found.push((way, url)),
            Some(_) => {}
            None => flaw = Some(PartialReason::LinksToAnotherHost),
        }
    }
    let recipes = profile.map(|profile| profile.history.as_slice()).unwrap_or_default();
    let counted = searched(feed, live).into_iter().map(Strategy::CountedPages);
    for way in counted.chain(recipes.iter().filter_map(|recipe| of_recipe(recipe, live))) {
        let url = match &way {
            Strategy::CountedPages(counted) => counted.url(feed.as_str()),
            _ => None,
        };
        found.extend(url.map(|url| (way, url)));
    }
    found.extend(recipes.iter().filter_map(|recipe| whole(recipe, feed)));
    (found, flaw)
}

/// OpenSearch names no parameter, so the address of the feed must.
fn searched(feed: &Url, live: &WalkedDocument<'_>) -> Option<CountedPages> {
    let paging = &live.metadata.paging;
    let shown = live.keys.len() as u64;
    let start = u64::from(paging.first_index != Some(0));
    paging.total_items.filter(|total| shown > 1 && *total > shown)?;
    let own = [Some(feed.clone()), live.metadata.link("self").and_then(|url| Url::parse(url).ok())];
    let named = own.into_iter().flatten().find_map(|url| {
        url.query_pairs().map(|(name, _)| name.into_owned()).find(|name| is_start_index(name))
    });
    let place = CounterPlace::Query(named.unwrap_or_else(|| "startIndex".to_owned()));
    Some(CountedPages { place, at: start + shown - 1, entries: true, start, with: Vec::new() })
}

fn is_start_index(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    matches!(plain.to_ascii_lowercase().as_str(), "startindex" | "start" | "offset")
}

/// A recipe that counts.
fn of_recipe(recipe: &Recipe, live: &WalkedDocument<'_>) -> Option<Strategy> {
    let counted = match recipe {
        Recipe::Page { param, start, with, .. } => {
            let with = with.as_deref().map(pairs).unwrap_or_default();
            // In another order the live document is none of the pages, so they begin with the first.
            let first = if with.is_empty() { *start } else { start.saturating_sub(1) };
            CountedPages {
                place: CounterPlace::Query(param.clone()),
                at: u64::from(first),
                entries: false,
                start: 0,
                with,
            }
        }
        Recipe::Path { template, start, .. } => CountedPages {
            place: CounterPlace::Path(template.clone()),
            at: u64::from(*start),
            entries: false,
            start: 0,
            with: Vec::new(),
        },
        Recipe::Offset { param, start, count, count_max, .. } => {
            let with = count.as_ref().zip(*count_max).map(|(count, most)| (count.clone(), most.to_string()));
            let start = u64::from(*start);
            CountedPages {
                place: CounterPlace::Query(param.clone()),
                at: start + (live.keys.len() as u64).saturating_sub(1),
                entries: true,
                start,
                with: with.into_iter().collect(),
            }
        }
        _ => return None,
    };
    Some(Strategy::CountedPages(counted))
}

/// A recipe that lifts the limit.
fn whole(recipe: &Recipe, feed: &Url) -> Option<(Strategy, String)> {
    let mut url = feed.clone();
    let most = match recipe {
        Recipe::All { param, value } => {
            set_query(&mut url, param, value);
            None
        }
        Recipe::Limit { param, max: Some(max), with } => {
            set_query(&mut url, param, &max.to_string());
            with.as_deref().map(pairs).unwrap_or_default().iter().for_each(|(name, value)| {
                set_query(&mut url, name, value);
            });
            Some(*max)
        }
        _ => return None,
    };
    Some((Strategy::Whole { most }, url.into()))
}

fn link<'a>(seen: &WalkedDocument<'a>, rel: &str) -> Option<&'a str> {
    seen.metadata.link(rel)
}

fn pairs(query: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// Gives a parameter a value, in the place of the one that it had.
fn set_query(url: &mut Url, name: &str, value: &str) {
    let kept: Vec<(String, String)> =
        url.query_pairs().into_owned().filter(|(other, _)| other != name).collect();
    url.query_pairs_mut().clear().extend_pairs(kept).append_pair(name, value);
}
