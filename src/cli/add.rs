//! `everfeed add`: adds the feed at an address to a configuration, or that of a page.

use super::{
    WithConfig,
    edited_config::{AddedFeed, EditedConfig, KnownIn, before, known},
    probe::{
        Trouble,
        blog::{Blog, address, look},
        sheet::tame,
    },
};
use crate::{app::address_spelling::spelling, cli::output::outln, secret::masked};
use clap::Args;
use std::path::Path;

/// The feed to add.
#[derive(Debug, Args)]
pub(super) struct AddOptions {
    /// The address of the feed, or of a page that names one.
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    with: WithConfig,
    /// The name of the feed. Without it `add` finds a free one.
    #[arg(long)]
    name: Option<String>,
    /// Take every feed that the page names: of comments, and the same posts in other formats, too.
    #[arg(long)]
    all: bool,
}

/// Looks at the feed, and adds it.
pub(super) fn run(options: &AddOptions) -> anyhow::Result<()> {
    let file = &options.with.config;
    let config = before(&options.with)?;
    let asked = address(&options.url)?;
    if let Some(name) = known(config.as_ref()).get(&spelling(&asked)) {
        return Err(already(file, KnownIn::File, name).into());
    }
    let blog = look(&asked, config.as_ref())?;
    let taken = blog.taken(options.all)?;
    if taken.len() > 1 && options.name.is_some() {
        let why =
            "--name is for one feed, and the page names several. Leave it out, or leave out --all";
        return Err(Trouble::misused(why).into());
    }
    // Another one may have been added in the meantime. From here on the next one waits.
    let mut edited = EditedConfig::begin(&options.with)?;
    let mut added = Vec::new();
    let mut refused = None;
    for feed in taken {
        let mut url = feed.url.clone();
        url.set_fragment(None);
        if let Some((place, name)) = edited.known(&url) {
            refused = refused.or(Some(already(file, place, name)));
            continue;
        }
        let public_hosts_only = feed.url.host() != asked.host();
        let name = match &options.name {
            Some(name) => edited.wanted_name(name)?,
            None => edited.free_name(&url, feed.title.as_deref()),
        };
        added.push(AddedFeed {
            public_hosts_only,
            ..AddedFeed::new(name, url)
        });
    }
    if let Some(refused) = refused.filter(|_| added.is_empty()) {
        return Err(refused.into());
    }
    edited.write(&added, &[])?;
    for feed in &added {
        let url = masked(feed.url.as_str());
        outln!("Added `{}` ({url}) to {}.", feed.name, file.display());
    }
    tell_others(&blog, taken.len(), &options.url);
    outln!(
        "\nNext, while everfeed runs:\n  {}",
        edited.reload_command()
    );
    Ok(())
}

/// Tells of the feeds of a page that were not taken, and how they are.
fn tell_others(blog: &Blog, taken: usize, page: &str) {
    let others = blog.feeds.get(taken..).unwrap_or_default();
    if !others.is_empty() {
        outln!("The page names other feeds, too:");
        for feed in others {
            outln!("  {feed}");
        }
        let page = tame(&masked(page));
        outln!("`everfeed add URL` takes one of them, `everfeed add --all {page}` takes all.");
    }
    for why in &blog.unusable {
        outln!("Passed over: {why}");
    }
}

/// The refusal of a URL that the configuration or the registry has already.
fn already(file: &Path, place: KnownIn, name: &str) -> Trouble {
    let place = match place {
        KnownIn::File => file.display().to_string(),
        KnownIn::Registry => format!("the registry beside {}", file.display()),
    };
    Trouble::misused(format!(
        "{place} has this feed already, under the name `{name}`. Nothing was changed"
    ))
}
