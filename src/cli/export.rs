//! `everfeed export`: the feeds of a configuration and of its registry as OPML. Not their items.

use super::{
    WithConfig,
    feeds::{RegistryFeeds, of_registry},
    output::{errln, out},
};
use crate::app::source_list::source_list;

/// Prints the list.
pub(super) fn run(with: &WithConfig) -> anyhow::Result<()> {
    let mut config = with.load()?;
    let registry = super::runtime()?.block_on(of_registry(&config, &with.config));
    let RegistryFeeds { feeds, hidden } = registry.unwrap_or_else(|why| {
        errln!("The list lacks the feeds of the registry, which could not be read: {why:#}");
        RegistryFeeds::default()
    });
    config.feed.extend(feeds);
    let title = format!("Feeds of {}", with.config.display());
    let (list, without_credentials) = source_list(&config, &title);
    out!("{}", String::from_utf8_lossy(&list));
    if !without_credentials.is_empty() {
        errln!(
            "The list has no passwords. It has the queries of URLs, also where they hold a token. These feeds need a password: {}",
            without_credentials.join(", ")
        );
    }
    if !hidden.is_empty() {
        errln!(
            "The list lacks these feeds of the registry, because the running everfeed shows no query of a URL: {}. Stop it, and export again",
            hidden.join(", ")
        );
    }
    Ok(())
}
