//! The feeds of a configuration as a list for other programs, by their groups.

use crate::{
    catalog::{FeedSettings, NamedFeeds},
    config::Config,
    ingest::without_credentials,
    render::source_list::{PolledSource, SourceList, opml},
};
use std::collections::HashSet;

/// The list of a configuration as OPML, and the names of feeds whose credentials are not in it.
pub fn source_list(config: &Config, title: &str) -> (Vec<u8>, Vec<String>) {
    let named = NamedFeeds::of(config.feed.iter());
    let source = |feed: &FeedSettings| PolledSource {
        name: feed.name.clone(),
        url: without_credentials(&feed.url).into(),
    };
    let mut grouped = HashSet::new();
    let mut folders = Vec::new();
    for group in &config.group {
        let members = named.members_of(group);
        grouped.extend(members.iter().map(|feed| feed.name.as_str()));
        let title = group.title.as_ref().unwrap_or(&group.name);
        let sources = members.into_iter().map(source).collect();
        folders.push((title.clone(), sources));
    }
    let alone = config.feed.iter();
    let alone = alone.filter(|feed| !grouped.contains(feed.name.as_str()));
    let list = SourceList {
        title: title.to_owned(),
        folders,
        alone: alone.map(source).collect(),
    };
    let secret = config.feed.iter().filter(|feed| {
        let url = &feed.url;
        !url.username().is_empty() || url.password().is_some()
    });
    (opml(&list), secret.map(|feed| feed.name.clone()).collect())
}
