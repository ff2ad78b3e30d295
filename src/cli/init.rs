//! `everfeed init`: looks at a blog, and writes a commented configuration for it. Not how the blog
//! is looked at, nor how the text comes to be.

use super::{
    config_file::{is_there, write_new},
    probe::{
        Trouble,
        blog::{Blog, BlogFeed, address, look},
        sheet::tame,
    },
};
use crate::cli::output::out;
use crate::{
    app::{ping::is_near, probe::fetch_known_as},
    config::Config,
};
use anyhow::Context as _;
use clap::Args;
use std::{
    fmt::Write as _,
    net::{ToSocketAddrs as _, UdpSocket},
    path::{Path, PathBuf},
};
use text::{Draft, Way, WebServer};
use url::Url;

mod text;

/// The folder of the store where the configuration is one of the whole machine.
const STORE_FOLDER: &str = "/var/lib/everfeed";

/// Address at which the blog is looked for beside its public one.
const USUAL_ORIGIN: &str = "http://127.0.0.1:8081";

/// The blog, and the file to write.
#[derive(Debug, Args)]
pub(super) struct InitOptions {
    /// The address of the blog, or of its feed. Without it the file has an example to change.
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// The file to write. It must not be there yet.
    #[arg(long, short, value_name = "FILE", default_value = super::DEFAULT_CONFIG)]
    config: PathBuf,
    /// The place of everfeed. Without it `init` chooses by what it finds.
    #[arg(long, value_name = "WAY")]
    way: Option<Way>,
    /// Take every feed that the page names: of comments, and the same posts in other formats, too.
    #[arg(long)]
    all: bool,
}

/// Looks at the blog, writes the file, and prints what was found and what comes next.
pub(super) fn run(options: &InitOptions) -> anyhow::Result<()> {
    let file = &options.config;
    if file.symlink_metadata().is_ok() {
        return Err(is_there(file).into());
    }
    let blog = match &options.url {
        Some(url) => {
            Some(look(&address(url)?, None).map_err(|trouble| nothing_written(&trouble, file))?)
        }
        None => None,
    };
    let taken = match &blog {
        Some(blog) => {
            let taken = blog.taken(options.all);
            taken
                .map_err(|trouble| nothing_written(&trouble, file))?
                .len()
        }
        None => 1,
    };
    let draft = Draft {
        taken,
        ..draft(options, blog.as_ref())
    };
    let mut told = blog.as_ref().map(found).unwrap_or_default();
    if let Some(folder) = draft
        .store
        .parent()
        .filter(|folder| folder.is_absolute() && !folder.is_dir())
    {
        let shown = folder.display();
        std::fs::create_dir(folder).with_context(|| {
            format!("the folder {shown} for the store cannot be made, and nothing was written")
        })?;
        let _ = writeln!(told, "Made the folder {shown} for the store.");
    }
    let has_secret = draft.feeds.iter().any(|feed| feed.url.password().is_some());
    write_new(file, &draft.text(), has_secret)?;
    out!("{told}{}", draft.next(file));
    Ok(())
}

/// The trouble with a blog, and that there is no file for it.
fn nothing_written(trouble: &Trouble, file: &Path) -> Trouble {
    let why = trouble.to_string();
    let file = file.display();
    let text = format!(
        "{why}\n{file} was not written. `everfeed init` without a URL writes an example that you can change"
    );
    trouble.with_text(text)
}

/// The lines that tell what was found.
fn found(blog: &Blog) -> String {
    let mut told = String::new();
    let software = blog.software.as_deref().unwrap_or("unknown software");
    let _ = writeln!(told, "Found {} ({software}).", blog.url);
    for feed in &blog.feeds {
        let _ = writeln!(told, "  feed      {feed}");
    }
    for why in &blog.unusable {
        let _ = writeln!(told, "  unusable  {why}");
    }
    let main = blog.feeds.first();
    let hubs = main.map(|feed| feed.hubs.as_slice()).unwrap_or_default();
    for hub in hubs {
        let _ = writeln!(told, "  hub       {}", tame(hub));
    }
    if hubs.is_empty() {
        told.push_str("  hub       none yet\n");
    }
    let ways = main
        .map(|feed| feed.archives.as_slice())
        .unwrap_or_default();
    for way in ways {
        let _ = writeln!(told, "  archives  {way}");
    }
    if ways.is_empty() {
        told.push_str("  archives  none is known: everfeed keeps what it sees from now on\n");
    }
    told
}

/// The configuration that fits.
fn draft(options: &InitOptions, blog: Option<&Blog>) -> Draft {
    let store = if options.config.starts_with("/etc") {
        Path::new(STORE_FOLDER).join("everfeed.redb")
    } else {
        PathBuf::from("everfeed.redb")
    };
    let Some(blog) = blog else {
        let way = options.way.unwrap_or(Way::Beside);
        return Draft::example(way, store);
    };
    let site =
        blog.feeds.first().map_or(
            &blog.url,
            |feed| if blog.is_feed { &feed.url } else { &blog.url },
        );
    let place = ServerFacts {
        is_near: is_near(site),
        is_here: is_here(site),
        has_feed: blog
            .feeds
            .iter()
            .any(|feed| text::location(site, feed).is_some()),
    };
    let (fits, why) = place.way();
    let way = options.way.unwrap_or(fits);
    let why = if options.way.is_some() {
        "you chose it"
    } else {
        why
    };
    let origin = match way {
        Way::Beside => None,
        _ if place.is_near => Some(root(site)),
        _ => known_origin(site, &blog.feeds),
    };
    Draft {
        way,
        why: why.to_owned(),
        site: site.clone(),
        is_near: place.is_near,
        software: blog.software.clone(),
        server: WebServer::named(blog.server.as_deref().unwrap_or_default()),
        feeds: blog.feeds.clone(),
        taken: 1,
        origin,
        store,
        is_example: false,
    }
}

/// What is known of the server of a blog.
struct ServerFacts {
    /// True for an address that only this machine or its network has.
    is_near: bool,
    /// True when the host leads to this machine.
    is_here: bool,
    /// True when a feed has an address at the blog that a web server can pass on.
    has_feed: bool,
}

impl ServerFacts {
    // Decides: Which way fits a blog, below, in front or beside?
    /// The way that fits, and why.
    fn way(&self) -> (Way, &'static str) {
        if self.is_near {
            (
                Way::Beside,
                "the address is one that only this machine or its network has",
            )
        } else if !self.is_here {
            (
                Way::Beside,
                "the host of the blog does not lead to this machine",
            )
        } else if !self.has_feed {
            (
                Way::Beside,
                "a web server cannot tell the address of its feed from others",
            )
        } else {
            (Way::Below, "a web server on this machine serves the blog")
        }
    }
}

/// True when the host of a URL leads to an address of this machine.
fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = (host, url.port_or_known_default().unwrap_or(80)).to_socket_addrs();
    // Only an address of this machine can be taken.
    found.is_ok_and(|mut found| found.any(|at| UdpSocket::bind((at.ip(), 0)).is_ok()))
}

/// The address at which this machine reaches the blog without its public name, if one is known.
fn known_origin(site: &Url, feeds: &[BlogFeed]) -> Option<Url> {
    let origin = Url::parse(USUAL_ORIGIN).ok()?;
    let feed = feeds
        .iter()
        .find(|feed| text::location(site, feed).is_some())?;
    let there = origin.join(feed.url.path()).ok()?;
    let limits = Config::default().upstream;
    let runtime = super::runtime().ok()?;
    let asked = runtime.block_on(fetch_known_as(&limits, &there, &root(site)));
    asked
        .is_ok_and(|document| document.body == feed.bytes)
        .then_some(origin)
}

/// Scheme, host and port of a URL.
fn root(url: &Url) -> Url {
    let mut root = url.clone();
    root.set_path("/");
    root.set_query(None);
    // Both fail only for URLs without a host.
    let _ = root.set_username("");
    let _ = root.set_password(None);
    root
}

/// A start without a configuration.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no configuration: everfeed.toml is not in this folder.\n\
     `everfeed init https://blog.example.org/` looks at your blog and writes one.\n\
     `everfeed serve --config FILE` starts with a file that stands elsewhere."
)]
pub(super) struct NoConfiguration;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_follows_from_the_place_of_the_blog() {
        let check = |is_near, is_here, has_feed, expect| {
            let place = ServerFacts {
                is_near,
                is_here,
                has_feed,
            };
            assert_eq!(
                place.way().0,
                expect,
                "near {is_near}, here {is_here}, feed {has_feed}"
            );
        };
        check(false, true, true, Way::Below);
        check(false, true, false, Way::Beside);
        check(false, false, true, Way::Beside);
        check(true, true, true, Way::Beside);
    }

    #[test]
    fn an_address_of_this_machine_is_here_and_another_is_not() {
        let is = |url: &str| is_here(&Url::parse(url).unwrap());
        assert!(is("http://127.0.0.1:8081/rss.xml"));
        // TEST-NET-1 (RFC 5737) is nobody's.
        assert!(!is("http://192.0.2.1/"));
    }
}
