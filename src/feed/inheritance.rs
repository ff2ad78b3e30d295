//! Things that an entry has from the source or the feed that it stands in, because it names none
//! itself; not how a document spells them. A feed may change what it says of itself: then its
//! entries inherit the new.

use super::record::FeedRecord;
use everfeed_adapters::{Entry, Person};

/// The authors of an entry: its own, else those of its source, else those of its feed (RFC 4287
/// section 4.2.1).
pub fn authors<'a>(entry: &'a Entry, feed: &'a FeedRecord) -> &'a [Person] {
    let of_source = entry
        .source
        .as_ref()
        .map_or(&[][..], |source| &source.authors);
    let nearest = [&entry.authors[..], of_source, &feed.metadata.authors];
    nearest
        .into_iter()
        .find(|authors| !authors.is_empty())
        .unwrap_or_default()
}

/// The language of an entry: its own, else that of its content or its title, else that of its feed.
/// `None` where nothing names one, and where the nearest that speaks of it says that there is none
/// (`xml:lang=""`, XML section 2.12).
pub fn language<'a>(entry: &'a Entry, feed: &'a FeedRecord) -> Option<&'a str> {
    let content = || {
        entry
            .content
            .as_ref()
            .and_then(|body| body.text.language.as_ref())
    };
    let title = || {
        entry
            .title
            .as_ref()
            .and_then(|title| title.language.as_ref())
    };
    let own = entry.language.as_ref().or_else(content).or_else(title);
    own.or(feed.metadata.language.as_ref())
        .map(String::as_str)
        .filter(|language| !language.is_empty())
}
