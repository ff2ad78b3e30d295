//! `everfeed import`: adds the feeds of an OPML list to a configuration, with groups for its folders.
//! Not how the list is read, nor how the configuration is written.

use super::{
    WithConfig,
    edited_config::{AddedFeed, AddedGroup, EditedConfig},
    probe::{
        Trouble,
        sheet::{Keep, cut, tame},
    },
};
use crate::{
    app::{
        address_spelling::spelling,
        folder_categories::{FEED_CATEGORIES_MAX, Folders},
        outline_address::{RefusedAddress, outline_address},
    },
    cli::output::outln,
    secret::logged_url,
};
use clap::Args;
use everfeed_adapters::{FOLDERS_DEEP_MAX, OPML_BYTES_MAX, Opml, OtherOutline, OutlinedFeed, opml};
use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};
use url::Url;

mod folders;

/// The list to import.
#[derive(Debug, Args)]
pub(super) struct ImportOptions {
    /// The list, a file in OPML; `-` for standard input.
    #[arg(value_name = "FILE")]
    list: PathBuf,
    #[command(flatten)]
    with: WithConfig,
    /// Print what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Make no groups for folders. Feeds have the folders as categories all the same.
    #[arg(long)]
    no_groups: bool,
    /// Take addresses on this machine and its network, too.
    #[arg(long)]
    private_hosts: bool,
}

/// Outlines that are skipped and told one by one; the others are counted.
const SKIPPED_TOLD_MAX: usize = 1000;

/// Columns of an address and of a title in a line of the output.
const SHOWN_COLUMNS: usize = 200;

/// The way in which a list is taken in.
#[derive(Default)]
struct ImportPlan {
    feeds: Vec<AddedFeed>,
    groups: Vec<AddedGroup>,
    /// Outlines that are not taken, and why.
    skipped: Vec<String>,
    /// Further remarks.
    notes: Vec<String>,
}

/// Reads the list, and adds what is not there yet.
pub(super) fn run(options: &ImportOptions) -> anyhow::Result<()> {
    let list = read(&options.list)?;
    let file = &options.with.config;
    // Until the end the next one waits.
    let mut edited = EditedConfig::begin(&options.with)?;
    let plan = ImportPlan::of(list, &mut edited, options);
    let is_change = !options.dry_run && !plan.feeds.is_empty();
    if is_change {
        edited.write(&plan.feeds, &plan.groups)?;
    }
    plan.tell(file, options.dry_run);
    if is_change {
        if plan.feeds.iter().any(|feed| feed.url.password().is_some()) {
            tell_rights(file);
        }
        outln!(
            "\nNext, while everfeed runs:\n  {}",
            edited.reload_command()
        );
    }
    Ok(())
}

/// Reads the list from a file or from standard input.
fn read(list: &Path) -> Result<Opml, Trouble> {
    let shown = list.display();
    if list.to_string_lossy().contains("://") {
        return Err(Trouble::misused(format!(
            "{} is a URL. Give a file: `curl URL | everfeed import -` reads one from there",
            logged_url(&list.to_string_lossy())
        )));
    }
    let bytes = if list == Path::new("-") {
        limited(io::stdin().lock())
    } else {
        File::open(list).and_then(limited)
    };
    let bytes = bytes.map_err(|error| Trouble::new(format!("{shown} cannot be read: {error}")))?;
    let list = opml(&bytes);
    list.map_err(|error| Trouble::new(format!("{shown}: {error}. Nothing was changed")))
}

/// Reads no further than one byte beyond the limit of a list.
fn limited(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(OPML_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl ImportPlan {
    // Decides: Which feeds of a list are added?
    fn of(list: Opml, edited: &mut EditedConfig<'_>, options: &ImportOptions) -> Self {
        let mut plan = Self::default();
        let mut folders = Folders::default();
        // Places of the added feeds, by what is the same in all spellings of their addresses.
        let mut added = HashMap::new();
        for feed in list.feeds {
            let url = match address(&feed, options.private_hosts) {
                Ok(url) => url,
                Err(why) => {
                    plan.skip(feed.title.as_deref(), &feed.url, &why);
                    continue;
                }
            };
            if let Some((place, name)) = edited.known(&url) {
                let why = format!("is {place} already, under the name `{name}`");
                plan.skip(feed.title.as_deref(), &feed.url, &why);
                continue;
            }
            let mut categories = folders.categories_of(&feed.folders);
            if let Some(at) = added.get(&spelling(&url)) {
                let first: &mut AddedFeed = &mut plan.feeds[*at];
                categories.retain(|category| !first.categories.contains(category));
                first.categories.append(&mut categories);
                first.categories.truncate(FEED_CATEGORIES_MAX);
                let why = format!(
                    "the list names it before, and it is added as `{}`",
                    first.name
                );
                plan.skip(feed.title.as_deref(), &feed.url, &why);
                continue;
            }
            if feed.is_too_deep {
                let note =
                    format!("is in more than {FOLDERS_DEEP_MAX} folders; the outermost count");
                plan.note(&feed, &note);
            }
            let name = edited.free_name(&url, feed.title.as_deref());
            added.insert(spelling(&url), plan.feeds.len());
            plan.feeds.push(AddedFeed {
                categories,
                public_hosts_only: !options.private_hosts,
                ..AddedFeed::new(name, url)
            });
        }
        for OtherOutline {
            url,
            title,
            is_list,
        } in &list.others
        {
            let why = if *is_list {
                "is another list. Import it for itself"
            } else {
                "has no address of a feed (xmlUrl)"
            };
            plan.skip(title.as_deref(), url, why);
        }
        if list.is_cut {
            let note = "The list ends before its last tag (</opml>): it may have been cut";
            plan.notes.push(note.to_owned());
        }
        if !options.no_groups {
            let (groups, notes) = folders::groups(&folders, &plan.feeds, edited);
            plan.groups = groups;
            plan.notes.extend(notes);
        }
        plan
    }

    fn skip(&mut self, title: Option<&str>, url: &str, why: &str) {
        let shown = shown(title, url);
        self.skipped.push(format!("{shown}: {why}"));
    }

    fn note(&mut self, feed: &OutlinedFeed, note: &str) {
        if self.notes.len() < SKIPPED_TOLD_MAX {
            let shown = shown(feed.title.as_deref(), &feed.url);
            self.notes.push(format!("{shown} {note}"));
        }
    }

    /// Prints what was done, or would be.
    fn tell(&self, file: &Path, dry_run: bool) {
        let (added, skipped) = if dry_run {
            ("Would add", "Would skip")
        } else {
            ("Added", "Skipped")
        };
        for feed in &self.feeds {
            let url = logged_url(feed.url.as_str());
            let folders = match feed.categories.last() {
                Some(category) => format!(", category {category}"),
                None => String::new(),
            };
            outln!("{added} `{}` ({}){folders}.", feed.name, tame(&url));
        }
        for group in &self.groups {
            outln!(
                "{added} the group `{}` for “{}”.",
                group.name,
                tame(&group.title)
            );
        }
        for line in self.skipped.iter().take(SKIPPED_TOLD_MAX) {
            outln!("{skipped} {line}.");
        }
        let more = self.skipped.len().saturating_sub(SKIPPED_TOLD_MAX);
        if more > 0 {
            outln!("{skipped} {more} more.");
        }
        for note in &self.notes {
            outln!("{note}.");
        }
        let file = file.display();
        let (feeds, groups) = (self.feeds.len(), self.groups.len());
        let also = self.skipped.len();
        if feeds == 0 {
            outln!("Nothing to add to {file}; skipped: {also}.");
        } else {
            outln!("{added} to {file}: feeds {feeds}, groups {groups}; skipped: {also}.");
        }
    }
}

/// The address of a listed feed, or why it cannot be taken.
fn address(feed: &OutlinedFeed, takes_private: bool) -> Result<Url, String> {
    outline_address(&feed.url, takes_private).map_err(|refused| match refused {
        RefusedAddress::Private => {
            format!("{refused}. If it is yours, use `everfeed add` or --private-hosts")
        }
        other => other.to_string(),
    })
}

/// An outline as the operator sees it, without secrets.
fn shown(title: Option<&str>, url: &str) -> String {
    let url = tame(&cut(&logged_url(url), SHOWN_COLUMNS, Keep::Start));
    match title {
        Some(title) => {
            let title = tame(&cut(title, SHOWN_COLUMNS, Keep::Start));
            format!("“{title}” ({url})")
        }
        None => url,
    }
}

/// Tells that everybody on this machine may read passwords, if it is so.
fn tell_rights(file: &Path) {
    let mode = std::fs::metadata(file).map(|found| found.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o004 != 0) {
        outln!(
            "{0} holds passwords now, and everybody on this machine may read it: chmod o-r {0}",
            file.display()
        );
    }
}
