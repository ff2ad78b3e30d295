//! The ladder of ways to older entries (POLLING 3.1), and how each leads from a page to the next;
//! not the guards.

use super::{
    WalkRules, WalkedDocument,
    counted_pages::{CountedPages, of_recipe, pairs, searched, set_query},
    trail::address,
};
use crate::history::PartialReason;
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

    /// True when it counts pages in another order than that of the live document, so that they
    /// begin with the first.
    pub(super) fn is_sorted_otherwise(&self) -> bool {
        matches!(self, Self::CountedPages(counted) if !counted.entries && !counted.with.is_empty())
    }

    /// The counted pages that it reads, if it counts.
    pub(super) fn counted(&self) -> Option<&CountedPages> {
        match self {
            Self::CountedPages(counted) => Some(counted),
            _ => None,
        }
    }

    /// From a page that was read to the address of the next, as the document or the count has it.
    pub(super) fn after(&mut self, feed: &str, seen: &WalkedDocument<'_>) -> NextPage {
        let page =
            |url: Option<&str>| url.map_or(NextPage::End, |url| NextPage::Page(url.to_owned()));
        match self {
            Self::Archives => page(seen.metadata.older_archive()),
            Self::Pages { rel } => page(seen.metadata.link(rel)),
            Self::CountedPages(counted) => {
                counted.go_to_next_page(seen.keys.len());
                counted.url(feed).map_or(NextPage::End, NextPage::Page)
            }
            Self::Whole { most } => {
                match most.filter(|most| seen.keys.len() as u64 >= u64::from(*most)) {
                    Some(most) => NextPage::Short(PartialReason::ServerLimit { entries_max: most }),
                    None => NextPage::End,
                }
            }
        }
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

/// True when the document itself shows that it is everything.
pub(super) fn shows_all(live: &WalkedDocument<'_>) -> bool {
    let shown = live.keys.len() as u64;
    let leads_on = live
        .metadata
        .older_archive()
        .or_else(|| live.metadata.link("next"))
        .is_some();
    live.metadata
        .paging
        .total_items
        .is_some_and(|total| shown > 0 && total == shown)
        && !leads_on
}

/// Every way that a live document and its platform offer, the best first, each with its first
/// address; and why the publisher's own way was not one.
pub(super) fn ways(
    feed: &Url,
    live: &WalkedDocument<'_>,
    profile: Option<&Profile>,
    rules: &WalkRules,
) -> (Vec<(Strategy, String)>, Option<PartialReason>) {
    let mut found: Vec<(Strategy, String)> = Vec::new();
    let mut flaw = None;
    let rel = ["next", "previous", "prev"]
        .into_iter()
        .find(|rel| live.metadata.link(rel).is_some());
    let linked = [
        live.metadata
            .older_archive()
            .map(|url| (Strategy::Archives, url)),
        rel.and_then(|rel| {
            Some((
                Strategy::Pages {
                    rel: rel.to_owned(),
                },
                live.metadata.link(rel)?,
            ))
        }),
    ];
    for (way, url) in linked.into_iter().flatten() {
        match rules.reach.mapped(url) {
            // One that leads from the document to itself leads nowhere.
            Some(url) if address(&url) == address(feed.as_str()) => {}
            Some(url) if found.iter().all(|(_, other)| *other != url) => found.push((way, url)),
            Some(_) => {}
            None => flaw = Some(PartialReason::LinksToAnotherHost),
        }
    }
    let recipes = profile
        .map(|profile| profile.history.as_slice())
        .unwrap_or_default();
    let counted = searched(feed, live).into_iter();
    for pages in counted.chain(recipes.iter().filter_map(|recipe| of_recipe(recipe, live))) {
        let url = pages.url(feed.as_str());
        found.extend(url.map(|url| (Strategy::CountedPages(pages), url)));
    }
    found.extend(recipes.iter().filter_map(|recipe| whole(recipe, feed)));
    (found, flaw)
}

/// A recipe that lifts the limit.
fn whole(recipe: &Recipe, feed: &Url) -> Option<(Strategy, String)> {
    let mut url = feed.clone();
    let most = match recipe {
        Recipe::All { param, value } => {
            set_query(&mut url, param, value);
            None
        }
        Recipe::Limit {
            param,
            max: Some(max),
            with,
        } => {
            set_query(&mut url, param, &max.to_string());
            with.as_deref()
                .map(pairs)
                .unwrap_or_default()
                .iter()
                .for_each(|(name, value)| {
                    set_query(&mut url, name, value);
                });
            Some(*max)
        }
        _ => return None,
    };
    Some((Strategy::Whole { most }, url.into()))
}
