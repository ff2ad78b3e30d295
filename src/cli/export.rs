//! `everfeed export`: the feeds of a configuration as OPML. Not their items.

use super::{
    WithConfig,
    output::{errln, out},
};
use crate::app::source_list::source_list;

/// Prints the list.
pub(super) fn run(with: &WithConfig) -> anyhow::Result<()> {
    let config = with.load()?;
    let title = format!("Feeds of {}", with.config.display());
    let (list, without_credentials) = source_list(&config, &title);
    out!("{}", String::from_utf8_lossy(&list));
    if !without_credentials.is_empty() {
        errln!(
            "The list has no passwords. It has the queries of URLs, also where they hold a token. These feeds need a password: {}",
            without_credentials.join(", ")
        );
    }
    Ok(())
}
