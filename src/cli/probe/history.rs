//! The entries that a document no longer shows: how to reach them, and what it means that one is
//! not there. Not the walk to them.

use super::{entries::number, findings::Findings};
use everfeed_adapters::{
    Format, Key, Metadata, Note, SlicedDocument,
    platforms::{Complete, End, Recipe},
};
use std::collections::HashSet;

/// The relations of RFC 5005, and those of paged feeds, that lead to older entries; the surest
/// first.
const OLDER: [(&str, &str); 3] = [
    ("prev-archive", "an archive (RFC 5005)"),
    ("next", "a next page (RFC 5005)"),
    ("previous", "a previous page (RFC 5005)"),
];

/// The ways to older entries, the surest first (POLLING 3.1): those that the document names, then
/// those of its platform.
pub(super) fn recipes(findings: &Findings<'_>) -> Vec<String> {
    let Findings {
        window, profile, ..
    } = findings;
    let metadata = &window.metadata;
    let mut found = Vec::new();
    if let Some(prev) = &metadata.history.prev {
        let ignored = if metadata.history.stateful == Some(false) {
            ", which fh:stateful = false forbids"
        } else {
            ""
        };
        found.push(format!("fh:prev {prev}{ignored}"));
    }
    for (rel, what) in OLDER {
        let link = metadata
            .links
            .iter()
            .find(|link| is_relation(&link.rel, rel));
        found.extend(link.map(|link| format!("{what} {}", link.href)));
    }
    found.extend(open_search(metadata, window.entries.len()));
    if let Some(profile) = profile {
        let told = profile.history.iter().filter_map(in_words);
        found.extend(told.map(|told| format!("{}: {told}", profile.title)));
    }
    found
}

/// A recipe of a profile; `None` for links, which the document has or has not.
fn in_words(recipe: &Recipe) -> Option<String> {
    let also = |with: &Option<String>| {
        with.as_ref()
            .map(|with| format!("&{with}"))
            .unwrap_or_default()
    };
    Some(match recipe {
        Recipe::Page {
            param,
            start,
            end,
            with,
        } => {
            format!("?{param}={start}{} and on, until {}", also(with), ends(end))
        }
        Recipe::Offset {
            param,
            start,
            count,
            count_max,
            end,
        } => {
            let size = count_max.map_or_else(|| "N".to_owned(), |most| most.to_string());
            let count = count
                .as_ref()
                .map(|count| format!("&{count}={size}"))
                .unwrap_or_default();
            format!("?{param}={start}{count} and on, until {}", ends(end))
        }
        Recipe::All { param, value } => format!("?{param}={value} shows everything"),
        Recipe::Limit {
            param,
            max: Some(max),
            with,
        } => {
            format!("?{param}={max}{} shows up to {max}", also(with))
        }
        Recipe::Limit {
            param,
            max: None,
            with,
        } => {
            format!("?{param}=N{} shows as many as one likes", also(with))
        }
        Recipe::Link { .. } => return None,
        Recipe::Path {
            template,
            start,
            end,
        } => {
            format!(
                "{} and on, until {}",
                template.replace("{page}", &start.to_string()),
                ends(end)
            )
        }
        Recipe::Calendar {
            template,
            feed: true,
        } => format!("a feed for each date at {template}"),
        Recipe::Calendar {
            template,
            feed: false,
        } => {
            format!("web pages, not feeds, for each date at {template}")
        }
        Recipe::Interface { template, .. } => format!("another interface at {template}"),
    })
}

fn ends(ends: &[End]) -> String {
    let word = |end: &End| match end {
        End::NotFound => "404",
        End::Empty => "an empty page",
        End::Repeat => "a page comes again",
        End::Total => "the total",
        End::Redirect => "a redirect back",
    };
    ends.iter().map(word).collect::<Vec<_>>().join(" or ")
}

/// `next`, also in the long form that the registry once had.
fn is_relation(rel: &str, name: &str) -> bool {
    let short = rel.rsplit(['/', '#']).next().unwrap_or(rel);
    short.eq_ignore_ascii_case(name)
}

/// OpenSearch response elements: how many there are in all.
fn open_search(metadata: &Metadata, shown: usize) -> Option<String> {
    let shown = shown as u64;
    let total = metadata.paging.total_items.filter(|total| *total > shown)?;
    let page = metadata
        .paging
        .page_items
        .map(|page| format!(", {} on a page", number(page)));
    let start = metadata
        .paging
        .first_index
        .map(|start| format!(", this one begins with number {}", number(start)));
    let told = [
        Some(format!("opensearch: {} entries in all", number(total))),
        page,
        start,
    ];
    Some(told.into_iter().flatten().collect())
}

/// The proof that lies in an entry's absence from the document (POLLING 2.2, LEGACY H-1 to H-5,
/// H-20).
pub(super) fn absence(findings: &Findings<'_>) -> String {
    let Findings {
        window, profile, ..
    } = findings;
    let history = &window.metadata.history;
    if window.format == Format::Resource {
        "never: the document is the only entry".to_owned()
    } else if window.is_truncated() {
        "proves nothing: the document is cut short".to_owned()
    } else if window
        .notes
        .iter()
        .any(|note| matches!(note, Note::EntryLost(_) | Note::TooManyEntries))
    {
        "proves nothing: entries of the document were left out".to_owned()
    } else if profile.is_some_and(|profile| profile.event_log) {
        "proves nothing ever: the feed is a log of events".to_owned()
    } else if history.complete {
        "proves that an entry is deleted: this is the whole feed (fh:complete)".to_owned()
    } else if history.stateful == Some(false) {
        "proves that an entry is deleted: this is the whole feed (fh:stateful is false)".to_owned()
    } else if history.archive {
        "proves nothing: this is an archive (fh:archive), not the feed".to_owned()
    } else if history.stateful == Some(true) {
        "proves nothing by itself: older entries leave and stay part of the feed (fh:stateful is true)"
            .to_owned()
    } else if counts_itself_whole(window) {
        "proves that an entry is deleted: this is the whole feed, as it counts itself (opensearch)"
            .to_owned()
    } else if profile.is_some_and(|profile| profile.complete == Complete::UnlessLimited) {
        "proves nothing by itself: this is the whole feed unless its owner has set a limit"
            .to_owned()
    } else {
        "proves nothing by itself: nothing says that this is the whole feed".to_owned()
    }
}

/// Statements of the document that cannot all be true. That it is the whole feed wins (LEGACY
/// H-26).
pub(super) fn contradiction(metadata: &Metadata) -> Option<String> {
    let older = OLDER.iter().find(|(rel, _)| {
        metadata
            .links
            .iter()
            .any(|link| is_relation(&link.rel, rel))
    });
    let older = metadata
        .history
        .prev
        .as_ref()
        .map(|_| "fh:prev")
        .or(older.map(|(rel, _)| *rel));
    let older = older.filter(|_| metadata.history.complete)?;
    Some(format!(
        "it contradicts itself: fh:complete says that this is the whole feed, {older} that there is more"
    ))
}

/// True when the document holds as many entries as it says that there are (POLLING 3.2, Blogger).
fn counts_itself_whole(window: &SlicedDocument) -> bool {
    let paging = &window.metadata.paging;
    let is_first = paging.first_index.is_none_or(|start| start <= 1);
    is_first
        && !window.entries.is_empty()
        && paging.total_items == Some(window.entries.len() as u64)
}

/// Number of entries that have no name that lasts, so that their absence never counts.
pub(super) fn weak(window: &SlicedDocument) -> usize {
    window
        .entries
        .iter()
        .filter(|raw| raw.key.is_weak())
        .count()
}

/// Number of entries that have a key that an earlier one has, too.
pub(super) fn repeated(window: &SlicedDocument) -> usize {
    let keys: HashSet<&Key> = window.entries.iter().map(|raw| &raw.key).collect();
    window.entries.len() - keys.len()
}
