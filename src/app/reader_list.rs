//! Figures on who reads the feeds, for the operator; not how readers are counted.

use super::status::ReadersStatus;
use crate::{
    catalog::CatalogSnapshot,
    feed::{record::FeedNo, stamp::Stamp},
    serve::feeds::list_range::{FEEDS_DEFAULT, FeedRange},
};
use std::collections::{HashMap, HashSet};

pub use crate::{
    readership::{ReaderFigures, ReaderList, Readership, RequestFigures, SoftwareFigures},
    serve::reader_sheets::summary,
};

/// Path of the list on the operator's listener.
pub const PATH: &str = "/readers";

/// The feeds of a range that somebody asked for or subscribed to, those that are not configured any
/// more included. `pushed` has the push subscriptions; `None` on a process that does not push.
pub(super) fn list(
    readership: &Readership,
    catalog: &CatalogSnapshot,
    range: &FeedRange,
    pushed: Option<&HashMap<FeedNo, usize>>,
    now: Stamp,
) -> ReaderList {
    let configured = catalog.feeds().map(|feed| {
        let name = feed.settings.name.as_str();
        (name, feed.no, range.shows(name, &feed.shown_url()))
    });
    let gone = catalog.all_withdrawn();
    let gone = gone.map(|(name, no)| (name, no, range.shows(name, "")));
    let is_after = |name: &str| range.after.as_deref().is_none_or(|after| name > after);
    let is_named = |name: &str| range.name.as_deref().is_none_or(|wanted| name == wanted);
    let known = configured.chain(gone);
    let mut wanted: Vec<(&str, FeedNo)> = known
        .filter(|(name, _, shown)| *shown && is_after(name) && is_named(name))
        .map(|(name, no, _)| (name, no))
        .collect();
    let asked = readership.asked_for(wanted.iter().map(|(_, no)| *no), now);
    let asked: HashSet<FeedNo> = asked.into_iter().collect();
    let has_pushes = |no: &FeedNo| pushed.is_some_and(|pushed| pushed.get(no) > Some(&0));
    wanted.retain(|(_, no)| asked.contains(no) || has_pushes(no));
    wanted.sort_unstable();
    let max = range.max.unwrap_or(FEEDS_DEFAULT);
    let next = match wanted.get(max.saturating_sub(1)) {
        Some((last, _)) if wanted.len() > max => Some(format!("{PATH}?{}", range.next(last))),
        _ => None,
    };
    let feeds = wanted.into_iter().take(max);
    ReaderList {
        since: readership.since().rfc3339(),
        unattributed: readership.unattributed(),
        feeds: feeds
            .filter_map(|(name, no)| figures(readership, catalog, name, no, pushed, now))
            .collect(),
        next,
    }
}

/// The figures of a feed; `None` without readers and push subscriptions.
pub(super) fn figures(
    readership: &Readership,
    catalog: &CatalogSnapshot,
    name: &str,
    no: FeedNo,
    pushed: Option<&HashMap<FeedNo, usize>>,
    now: Stamp,
) -> Option<ReaderFigures> {
    let push_subscribers = pushed.map(|pushed| pushed.get(&no).copied().unwrap_or(0));
    let figures = readership.figures(no, now);
    if figures.is_none() && push_subscribers.is_none_or(|count| count == 0) {
        return None;
    }
    Some(ReaderFigures {
        feed: name.to_owned(),
        is_gone: catalog.is_withdrawn(no),
        push_subscribers,
        ..figures.unwrap_or_default()
    })
}

/// The readers of a feed, as the status shows them; `None` if nobody asked for it.
pub(super) fn status(readership: &Readership, no: FeedNo, now: Stamp) -> Option<ReadersStatus> {
    let figures = readership.figures(no, now)?;
    Some(ReadersStatus {
        claimed: figures.claimed,
        software: figures.software.len(),
        requests: figures.day.requests,
        conditional: figures.day.conditional,
        misbehaving: figures.misbehaving(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{FeedSettings, RegisteredFeed},
        readership::{FeedRequest, Outcome},
    };
    use url::Url;

    fn catalog() -> CatalogSnapshot {
        let feed = |no, name: &str| {
            let url = Url::parse("http://blog.example/rss").unwrap();
            RegisteredFeed::new(FeedNo(no), FeedSettings::new(name, url))
        };
        let feeds = [
            feed(1, "c"),
            feed(2, "a"),
            feed(3, "unread"),
            feed(4, "pushed"),
        ];
        CatalogSnapshot::new(feeds, [("b".to_owned(), FeedNo(5))])
    }

    #[test]
    fn feeds_that_somebody_reads_are_listed_by_name_and_those_that_are_gone_too() {
        let (readership, now) = (Readership::default(), Stamp::from_secs(1_800_000_000));
        for no in [1, 2, 5] {
            readership.note(FeedRequest {
                feed: FeedNo(no),
                user_agent: b"curl/8",
                client: None,
                is_conditional: true,
                outcome: if no == 5 {
                    Outcome::Gone
                } else {
                    Outcome::Answered
                },
            });
        }
        let pushed = HashMap::from([(FeedNo(4), 3), (FeedNo(3), 0)]);
        let names = |range: &FeedRange| {
            let list = list(&readership, &catalog(), range, Some(&pushed), now);
            let names: Vec<String> = list.feeds.iter().map(|it| it.feed.clone()).collect();
            (names.join(" "), list.next)
        };
        let all = FeedRange::default();
        assert_eq!(names(&all), ("a b c pushed".to_owned(), None));
        let two = FeedRange {
            max: Some(2),
            ..all.clone()
        };
        let next = "/readers?after=b&max=2".to_owned();
        assert_eq!(names(&two), ("a b".to_owned(), Some(next)));
        let rest = FeedRange {
            after: Some("b".to_owned()),
            ..two
        };
        assert_eq!(names(&rest), ("c pushed".to_owned(), None));
        let named = FeedRange {
            name: Some("b".to_owned()),
            ..all.clone()
        };
        let gone = list(&readership, &catalog(), &named, None, now)
            .feeds
            .remove(0);
        assert!(gone.is_gone && gone.push_subscribers.is_none());
        let told = status(&readership, FeedNo(1), now).unwrap();
        assert_eq!((told.requests, told.conditional, told.software), (1, 1, 1));
        assert!(status(&readership, FeedNo(3), now).is_none());
    }
}
