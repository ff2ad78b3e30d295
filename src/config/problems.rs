//! Settings that have the right type and still cannot be meant; not the types.

use super::{Config, typed::ConfigReading, wanted, warnings};
use crate::{
    catalog::{FeedSettings, SiteSettings},
    serve,
    setting::{RefusedSetting, at_least_one},
};
use everfeed_adapters::platforms::Platforms;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that cannot be meant in `[server]`.
pub(super) fn of_server(server: &serve::Config) -> Vec<RefusedSetting> {
    let mut problems = Vec::new();
    let url = &server.public_url;
    if !url.username().is_empty() || url.password().is_some() {
        let found = format!("\"{url}\", which everybody would read with its credentials");
        problems.push(RefusedSetting::new("server.public_url", found, "leave out what stands before the @"));
    } else if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.fragment().is_some() {
        problems.push(RefusedSetting::new("server.public_url", quoted(url.as_str()), wanted::PUBLIC_URL));
    }
    if server.admin_token.as_ref().is_some_and(|token| !token.is_good()) {
        // Not shown, good or not.
        problems.push(RefusedSetting::new("server.admin_token", "***", wanted::ADMIN_TOKEN));
    }
    let (one, other) = (server.listen, server.admin_listen);
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    if one.port() == other.port() && one.port() != 0 && (everywhere || one.ip() == other.ip()) {
        let wanted = "the operator's port is not for consumers; give it another than server.listen";
        problems.push(RefusedSetting::new("server.admin_listen", server.admin_listen, wanted));
    }
    if !is_prefix(&server.prefix) {
        problems.push(RefusedSetting::new(
            "server.prefix",
            quoted(&server.prefix),
            "give a path such as \"/smart\", or nothing",
        ));
    }
    let counts = [
        ("waiters_max", server.waiters_max as u64),
        ("connections_max", server.connections_max as u64),
        ("page_items_max", server.page_items_max as u64),
        ("page_bytes_max", server.page_bytes_max as u64),
        ("classic_items", server.classic_items as u64),
        ("shutdown_secs", server.shutdown_secs),
    ];
    let zero =
        counts.into_iter().filter_map(|(key, value)| at_least_one(key, value, "give at least 1").err());
    problems.extend(zero.map(|refused| refused.within("server")));
    problems
}

/// Everything that cannot be meant in the sites, each of which comes with its path.
pub(super) fn of_sites(
    sites: &[(String, SiteSettings)],
    server: &serve::Config,
    reading: &mut ConfigReading<'_>,
) {
    let mut hosts = BTreeSet::new();
    for (path, site) in sites {
        for problem in site.problems() {
            reading.take_over(problem.within(path));
        }
        if !hosts.insert(&site.host) {
            let (key, found) = match &site.host {
                Some(host) => (format!("{path}.host"), quoted(host)),
                None => (path.clone(), "a second site without a host".to_owned()),
            };
            reading.refuse(&key, found, "give each site a host of its own; one may go without");
        }
        if warnings::is_at(&site.origin, server.listen) {
            let wanted = "this is where everfeed itself listens; give the address of the old server";
            reading.refuse(&format!("{path}.origin"), quoted(site.origin.as_str()), wanted);
        }
    }
}

/// Everything that cannot be meant in the feeds, each of which comes with its path.
pub(super) fn of_feeds(
    feeds: &[(String, FeedSettings)],
    profiles: &Platforms,
    reading: &mut ConfigReading<'_>,
) {
    let mut names = BTreeSet::new();
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for (path, feed) in feeds {
        if !names.insert(&feed.name) {
            let wanted = "a second feed of that name; give each its own";
            reading.refuse(&format!("{path}.name"), quoted(&feed.name), wanted);
        }
        for problem in feed.problems(profiles) {
            reading.take_over(problem.within(path));
        }
        // Ids are unique across feeds (DESIGN section 3).
        let namespace = feed.namespace();
        if let Some(owner) = owners.get(&namespace) {
            let wanted = format!(
                "the ids of feed `{owner}` are made with the same; poll it once, or set id_namespace"
            );
            reading.refuse(&format!("{path}.url"), quoted(&namespace), wanted);
        }
        owners.entry(namespace).or_insert(&feed.name);
    }
}

/// The problem with the path of the store, as far as can be told without opening it.
pub(super) fn store_problem(config: &Config) -> Option<RefusedSetting> {
    let path = &config.store.path;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let wanted = if folder.is_some_and(|folder| !folder.is_dir()) {
        "a file in a folder that does not exist; make the folder, or give another path"
    } else if path.is_dir() {
        "a folder; give the path of a file in it, such as everfeed.redb"
    } else {
        return None;
    };
    Some(RefusedSetting::new("store.path", format!("\"{}\"", path.display()), wanted))
}

/// Steps of plain characters, none of which a client would undo.
fn is_prefix(prefix: &str) -> bool {
    let plain = |step: &str| step.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
    let prefix = prefix.strip_prefix('/').unwrap_or(prefix);
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    prefix.is_empty() || prefix.split('/').all(|step| !matches!(step, "" | "." | "..") && plain(step))
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}
