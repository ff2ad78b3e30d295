//! Pages that are counted in their addresses: by a platform's recipe, or as OpenSearch has it; not
//! what they hold.

use super::WalkedDocument;
use everfeed_adapters::platforms::Recipe;
use std::fmt;
use url::Url;

/// Numbering of pages in their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedPages {
    pub place: CounterPart,
    /// The number in the address of the page that is being read.
    pub at: u64,
    /// True when entries are counted; else pages.
    pub entries: bool,
    /// The number of the first entry or page.
    pub start: u64,
    /// Other parameters of every address.
    pub with: Vec<(String, String)>,
    /// From the number of the page before to this one, where entries are counted.
    pub step: u64,
}

/// Part of the address that holds the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CounterPart {
    Query(String),
    /// With `{page}`.
    Path(String),
}

impl CountedPages {
    /// Goes on behind a page that showed so many entries.
    pub(super) fn go_to_next_page(&mut self, shown: usize) {
        // The last entry is read twice: one that was taken out meanwhile moves nothing past us.
        self.step = if self.entries {
            (shown as u64).saturating_sub(1).max(1)
        } else {
            1
        };
        self.at += self.step;
    }

    /// Goes back to the page before.
    pub(super) fn go_to_page_before(&mut self) {
        self.at = self.at.saturating_sub(self.step).max(self.start);
    }

    /// Number of the page behind this one.
    pub(super) fn next_number(&self) -> u64 {
        self.at + self.step.max(1)
    }

    /// Entries up to the end of a page that shows so many, by their numbers.
    pub(super) fn reached(&self, shown: usize) -> u64 {
        self.at.saturating_sub(self.start) + shown as u64
    }

    /// Address of the page that is being read.
    pub(super) fn url(&self, feed: &str) -> Option<String> {
        self.url_of(feed, self.at)
    }

    /// Address of the page of a number.
    pub(super) fn url_of(&self, feed: &str, number: u64) -> Option<String> {
        let mut url = Url::parse(feed).ok()?;
        let number = number.to_string();
        match &self.place {
            CounterPart::Query(param) => set_query(&mut url, param, &number),
            CounterPart::Path(template) => url.set_path(&template.replace("{page}", &number)),
        }
        for (name, value) in &self.with {
            set_query(&mut url, name, value);
        }
        Some(url.into())
    }
}

impl fmt::Display for CountedPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.entries { "entries" } else { "pages" };
        let place = match &self.place {
            CounterPart::Query(param) => param,
            CounterPart::Path(template) => template,
        };
        write!(f, "{what} counted by `{place}`")?;
        self.with
            .iter()
            .try_for_each(|(name, value)| write!(f, ", {name}={value}"))
    }
}

/// OpenSearch names no parameter, so the address of the feed must.
pub(super) fn searched(feed: &Url, live: &WalkedDocument<'_>) -> Option<CountedPages> {
    let paging = &live.metadata.paging;
    let shown = live.keys.len() as u64;
    let start = u64::from(paging.first_index != Some(0));
    paging
        .total_items
        .filter(|total| shown > 1 && *total > shown)?;
    let own = [
        Some(feed.clone()),
        live.metadata
            .link("self")
            .and_then(|url| Url::parse(url).ok()),
    ];
    let named = own.into_iter().flatten().find_map(|url| {
        url.query_pairs()
            .map(|(name, _)| name.into_owned())
            .find(|name| is_start_index(name))
    });
    let place = CounterPart::Query(named.unwrap_or_else(|| "startIndex".to_owned()));
    let step = shown - 1;
    Some(CountedPages {
        place,
        at: start + step,
        entries: true,
        start,
        with: Vec::new(),
        step,
    })
}

fn is_start_index(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    matches!(
        plain.to_ascii_lowercase().as_str(),
        "startindex" | "start" | "offset"
    )
}

/// A recipe that counts.
pub(super) fn of_recipe(recipe: &Recipe, live: &WalkedDocument<'_>) -> Option<CountedPages> {
    match recipe {
        Recipe::Page {
            param, start, with, ..
        } => {
            let with = with.as_deref().map(pairs).unwrap_or_default();
            let first = u64::from(start.saturating_sub(1));
            // In another order the live document is none of the pages, so they begin with the
            // first.
            let at = if with.is_empty() {
                u64::from(*start)
            } else {
                first
            };
            let place = CounterPart::Query(param.clone());
            Some(CountedPages {
                place,
                at,
                entries: false,
                start: first,
                with,
                step: 1,
            })
        }
        Recipe::Path {
            template, start, ..
        } => Some(CountedPages {
            place: CounterPart::Path(template.clone()),
            at: u64::from(*start),
            entries: false,
            start: u64::from(start.saturating_sub(1)),
            with: Vec::new(),
            step: 1,
        }),
        Recipe::Offset {
            param,
            start,
            count,
            count_max,
            ..
        } => {
            let with = count
                .as_ref()
                .zip(*count_max)
                .map(|(count, most)| (count.clone(), most.to_string()));
            let start = u64::from(*start);
            let step = (live.keys.len() as u64).saturating_sub(1);
            Some(CountedPages {
                place: CounterPart::Query(param.clone()),
                at: start + step,
                entries: true,
                start,
                with: with.into_iter().collect(),
                step,
            })
        }
        _ => None,
    }
}

/// Parameters of a query.
pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

/// Gives a parameter a value, in the place of the one that it had.
pub(super) fn set_query(url: &mut Url, name: &str, value: &str) {
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .into_owned()
        .filter(|(other, _)| other != name)
        .collect();
    url.query_pairs_mut()
        .clear()
        .extend_pairs(kept)
        .append_pair(name, value);
}
