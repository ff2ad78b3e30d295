//! Settings that have the right type and still cannot be meant; not the types.

use super::{Config, key_table::give, typed::ConfigReading};
use crate::{
    alerts::{ALERTS_MAX, AlertSettings},
    catalog::{
        FeedSettings, GroupSettings, LISTS_MAX, NamedFeeds, OpmlSettings, ServePlain, SiteFeeds,
        SiteSettings,
        settings::{FEED_GROUPS_MAX, GROUP_MEMBERS_MAX, GROUPS_MAX, MEMBERS_WANTED},
    },
    edge::{
        listen_address::ListenAddress,
        tls::{Certificate, TlsSettings},
    },
    hub::{WEBHOOKS_MAX, WebhookSettings},
    ingest::{CREDENTIALS_MAX, CredentialSettings},
    secret::public_url,
    serve,
    serve::own_addresses::{Listeners, OwnAddresses},
    setting::{RefusedSetting, quoted},
    store::SealKey,
};
use everfeed_adapters::platforms::Platforms;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::PathBuf,
};
use url::Url;

/// Former roots of our URLs at most.
const FORMER_URLS_MAX: usize = 16;

/// Everything that cannot be meant in `[server]`.
pub(super) fn of_server(server: &serve::Config) -> Vec<RefusedSetting> {
    let mut problems = Vec::new();
    let mut refuse = |key: &str, found: String, wanted: &str| {
        problems.push(RefusedSetting::new(key, found, wanted));
    };
    let url = &server.public_url;
    if !url.username().is_empty() || url.password().is_some() {
        let found = format!("\"{url}\", with credentials that everybody would read");
        refuse(
            "server.public_url",
            found,
            "leave out the part before the @",
        );
    } else if !matches!(url.scheme(), "http" | "https")
        || url.query().is_some()
        || url.fragment().is_some()
    {
        refuse(
            "server.public_url",
            quoted(url.as_str()),
            &give("server.public_url"),
        );
    }
    let is_root = |url: &Url| {
        let is_bare = url.username().is_empty() && url.password().is_none();
        let is_whole = url.query().is_none() && url.fragment().is_none();
        is_bare && is_whole && matches!(url.scheme(), "http" | "https") && url != &server.public_url
    };
    let former = &server.former_public_urls;
    if former.len() > FORMER_URLS_MAX || !former.iter().all(is_root) {
        let found = former.iter().map(|url| quoted(&public_url(url)));
        let found: Vec<String> = found.take(FORMER_URLS_MAX + 1).collect();
        refuse(
            "server.former_public_urls",
            found.join(", "),
            &give("server.former_public_urls"),
        );
    }
    if let Some(token) = &server.admin_token
        && !token.is_good()
    {
        // Not shown, good or not.
        refuse(
            "server.admin_token",
            "***".to_owned(),
            &give("server.admin_token"),
        );
    }
    let other = server.admin_listen;
    let is_taken = |one: SocketAddr| {
        let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
        one.port() == other.port() && one.port() != 0 && (everywhere || one.ip() == other.ip())
    };
    let mut ports = server.listen.tcp().chain(server.tls.redirect_from);
    if ports.any(is_taken) {
        let wanted =
            "the operator's port is not for consumers. Give another one than server.listen";
        refuse("server.admin_listen", other.to_string(), wanted);
    }
    if server.proxy_protocol && server.trusted_proxies.is_empty() {
        let wanted = "no address is trusted as a proxy. Give server.trusted_proxies, too";
        refuse("server.proxy_protocol", "true".to_owned(), wanted);
    }
    problems.extend(of_tls(&server.tls));
    problems.extend(of_acme(server));
    if !is_prefix(&server.prefix) {
        let (found, wanted) = (
            quoted(&server.prefix),
            "give a path such as \"/smart\", or nothing",
        );
        problems.push(RefusedSetting::new("server.prefix", found, wanted));
    }
    problems
}

/// The problem with a pair of files of which one is missing, and with settings that mean nothing
/// without them.
fn of_tls(tls: &TlsSettings) -> Option<RefusedSetting> {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    if tls.acme.is_some() {
        let file = path(&tls.certificate).or_else(|| path(&tls.key))?;
        let wanted =
            "the certificate comes from files or from an authority, not from both. Leave out one";
        return Some(RefusedSetting::new(
            "server.tls.acme",
            format!("beside the file {}", quoted(&file)),
            wanted,
        ));
    }
    let needs_both = tls.redirect_from.is_some() || tls.hsts_secs > 0;
    let (key, found) = match (path(&tls.certificate), path(&tls.key)) {
        (Some(_), Some(_)) => return None,
        (None, None) if !needs_both => return None,
        (None, None) => ("server.tls", "no certificate".to_owned()),
        (Some(certificate), None) => ("server.tls.certificate", quoted(&certificate)),
        (None, Some(key)) => ("server.tls.key", quoted(&key)),
    };
    Some(RefusedSetting::new(
        key,
        found,
        "give certificate and key (the paths of two PEM files), or acme",
    ))
}

/// Everything that cannot be meant in `[server.tls.acme]`.
fn of_acme(server: &serve::Config) -> Vec<RefusedSetting> {
    let Some(acme) = &server.tls.acme else {
        return Vec::new();
    };
    let found = acme.problems().into_iter();
    let mut found: Vec<_> = found.map(|it| it.within("server.tls.acme")).collect();
    if OwnAddresses::of(server, &Listeners::default(), &[]).answer_polls_of(&acme.directory) {
        let wanted = "everfeed itself answers there. Give the directory of an authority";
        let directory = quoted(acme.directory.as_str());
        found.push(RefusedSetting::new(
            "server.tls.acme.directory",
            directory,
            wanted,
        ));
    }
    let is_path = |address: &ListenAddress| matches!(address, ListenAddress::Unix(_));
    if server.listen.iter().all(is_path) {
        let wanted = "everfeed speaks no TLS at Unix sockets. Give server.listen a port, or leave acme to the server in front";
        found.push(RefusedSetting::new(
            "server.tls.acme",
            "no port for HTTPS",
            wanted,
        ));
    }
    found
}

/// The problems with files that `[server.tls.acme]` names.
pub(super) fn acme_problems(config: &Config) -> Vec<RefusedSetting> {
    let Some(acme) = &config.server.tls.acme else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if let (Some(root), Err(error)) = (&acme.root, acme.roots()) {
        let wanted = format!("{error}; give the file of a root certificate, or leave it out");
        found.push(RefusedSetting::new(
            "server.tls.acme.root",
            quoted(&root.display().to_string()),
            wanted,
        ));
    }
    let folder = acme.folder(&config.store.path);
    if config.store.url.is_none() && folder.exists() && !folder.is_dir() {
        let wanted = "this is not a folder. Give another path";
        found.push(RefusedSetting::new(
            "server.tls.acme.folder",
            quoted(&folder.display().to_string()),
            wanted,
        ));
    }
    found
}

/// The problem with the key by which nodes seal what a database keeps of a certificate.
pub(super) fn key_file_problem(config: &Config) -> Option<RefusedSetting> {
    let store = &config.store;
    let (found, wanted) = match &store.key_file {
        Some(file) => {
            let bad = SealKey::read(file).err()?;
            let wanted = format!("{bad}; give the same key to each node");
            (quoted(&file.display().to_string()), wanted)
        }
        None if store.url.is_some() && config.server.tls.acme.is_some() => {
            let wanted = "the database keeps the certificate of server.tls.acme, sealed: set store.key_file to a \
                          file that `openssl rand -hex 32` wrote";
            ("none".to_owned(), wanted.to_owned())
        }
        None => return None,
    };
    Some(RefusedSetting::new("store.key_file", found, wanted))
}

/// The problem with the keys that sign our requests to publishers.
pub(super) fn identity_problem(config: &Config) -> Option<RefusedSetting> {
    let read = config.upstream.read_identity(&config.server.public_url);
    read.err().map(|refused| refused.within("upstream"))
}

/// The problem with the files of the certificate, as far as they can be read.
pub(super) fn certificate_problem(config: &Config) -> Option<RefusedSetting> {
    let (certificate, key) = config.server.tls.files()?;
    let bad = Certificate::read(certificate, key).err()?;
    let wanted = format!("{bad}; give a certificate with its chain, and its private key");
    Some(RefusedSetting::new(
        "server.tls",
        quoted(&certificate.display().to_string()),
        wanted,
    ))
}

/// Everything that cannot be meant in the sites, each of which comes with its path.
pub(super) fn of_sites(
    sites: &[(String, SiteSettings)],
    server: &serve::Config,
    own: &OwnAddresses,
    reading: &mut ConfigReading<'_>,
) {
    let mut hosts = BTreeSet::new();
    for (no, (path, site)) in sites.iter().enumerate() {
        for problem in site.problems() {
            reading.take_over(problem.within(path));
        }
        let has_secret = |(_, other): &(String, SiteSettings)| {
            other.readers_secret.is_some() && other.readers_secret == site.readers_secret
        };
        if sites[..no].iter().any(has_secret) {
            let wanted = "another site has this secret, and its owner would see the readers of this one. Give each its own, such as \
                          what `openssl rand -hex 20` prints";
            reading.refuse(&format!("{path}.readers_secret"), "***", wanted);
        }
        if !hosts.insert(&site.host) {
            let (key, found) = match &site.host {
                Some(host) => (format!("{path}.host"), quoted(host)),
                None => (path.clone(), "a second site without a host".to_owned()),
            };
            reading.refuse(
                &key,
                found,
                "give each site its own host. Only one may be without",
            );
        }
        let root = |site: &SiteSettings| {
            site.public_root(&server.public_url)
                .host_str()
                .map(str::to_owned)
        };
        let has_feeds =
            matches!(site.feeds, SiteFeeds::Found(_)) || !site.feeds.listed().is_empty();
        let is_named = |(_, other): &&(String, SiteSettings)| {
            other.host.is_some() && root(other) == root(site)
        };
        if site.host.is_none()
            && has_feeds
            && let Some((_, other)) = sites.iter().find(is_named)
        {
            let wanted = format!(
                "a site without a host has its feeds at the host of server.public_url. The site {} has this host already. Give \
                 this one another host, or feeds = [] if it has no feeds",
                other.host.as_deref().unwrap_or_default()
            );
            reading.refuse(&format!("{path}.host"), "missing", wanted);
        }
        if let Some(problem) = own_origin(site, own) {
            reading.take_over(problem.within(path));
        }
    }
}

/// The origin of a site at which we answer ourselves. The key is that of its own table.
fn own_origin(site: &SiteSettings, own: &OwnAddresses) -> Option<RefusedSetting> {
    let wanted = "everfeed itself listens there. Give the address of the old server";
    let found = quoted(site.origin.as_str());
    let is_own = own.are_origin(&site.origin);
    is_own.then(|| RefusedSetting::new("origin", found, wanted))
}

/// The origins of sites at which we answer ourselves.
pub(super) fn own_origins(sites: &[SiteSettings], own: &OwnAddresses) -> Vec<RefusedSetting> {
    let found = sites.iter().enumerate().filter_map(|(no, site)| {
        let problem = own_origin(site, own)?;
        Some(problem.within(&format!("site[{no}]")))
    });
    found.collect()
}

/// The feeds that sites list and that did not come to be: their names are those of other feeds.
pub(super) fn of_listed_feeds(
    sites: &[(String, SiteSettings)],
    feeds: &[(String, FeedSettings)],
    reading: &mut ConfigReading<'_>,
) {
    for (no, (key, site)) in sites.iter().enumerate() {
        let feed_at = |path: &str| {
            let is_there = |feed: &&FeedSettings| {
                let place = feed.legacy.as_ref();
                place.is_some_and(|place| place.site == no && place.path == path)
            };
            feeds.iter().map(|(_, feed)| feed).find(is_there)
        };
        for listed in site.feeds.listed() {
            let path = &listed.path;
            let wanted = match (feed_at(path), &listed.name) {
                (None, _) => format!(
                    "another feed has its name. Give it a name of its own: {{ path = \"{path}\", name = \"NAME\" }}"
                ),
                (Some(feed), Some(name)) if feed.name != *name => format!(
                    "the feed `{}` has this url, and is named by its own table. Leave `name` out here",
                    feed.name
                ),
                _ => continue,
            };
            reading.refuse(&format!("{key}.feeds"), quoted(path), wanted);
            break;
        }
    }
}

/// Everything that cannot be meant in the feeds, each of which comes with its path.
pub(super) fn of_feeds(
    feeds: &[(String, FeedSettings)],
    sites: &[(String, SiteSettings)],
    profiles: &Platforms,
    reading: &mut ConfigReading<'_>,
) {
    let mut names = BTreeSet::new();
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for (path, feed) in feeds {
        if !names.insert(&feed.name) {
            let wanted = "this is the second feed with this name. Give each its own";
            reading.refuse(&format!("{path}.name"), quoted(&feed.name), wanted);
        }
        let site = feed.legacy.as_ref().and_then(|place| sites.get(place.site));
        for problem in feed.problems(profiles) {
            if !site.is_some_and(|(_, site)| site.lends(&problem.key, feed)) {
                reading.take_over(problem.within(path));
            }
        }
        // A private feed is kept private in every spelling of its address, and that of a query has
        // spellings that only the old server knows. For all feeds of a private site its own
        // problems say so.
        let place = feed.legacy.as_ref().filter(|_| feed.is_private());
        let is_of_site = place.is_some_and(|place| {
            sites
                .get(place.site)
                .is_some_and(|(_, site)| site.access.is_private())
        });
        if let Some(place) = place.filter(|_| !is_of_site) {
            let mut paths = place.paths();
            let wanted = if !paths.all(SiteSettings::can_be_private) {
                Some(
                    "a private feed of a [[site]] cannot be at a query. The old server may serve the feed under other \
                     spellings of it. Take it out of site.feeds, and let the old server refuse it",
                )
            } else if place.plain == ServePlain::Origin {
                Some(
                    "the origin cannot serve a private feed. Give its [[site]] serve_plain = \"rewritten\" or \"untouched\"",
                )
            } else {
                None
            };
            if let Some(wanted) = wanted {
                reading.refuse(
                    &format!("{path}.access"),
                    "a private feed of a site",
                    wanted,
                );
            }
        }
        // Ids are unique across feeds (DESIGN section 3).
        let namespace = feed.namespace();
        if let Some(owner) = owners.get(&namespace) {
            let (key, remedy) = if feed.id_namespace.is_some() {
                ("id_namespace", "give another, or none")
            } else {
                ("url", "poll it once, or set id_namespace")
            };
            let wanted = format!("the ids of feed `{owner}` have the same namespace; {remedy}");
            reading.refuse(&format!("{path}.{key}"), quoted(&namespace), wanted);
        }
        owners.entry(namespace).or_insert(&feed.name);
    }
}

/// The URLs of a feed at which we answer ourselves: it would poll our own documents. Keys are those
/// of the feed's own table.
pub(super) fn own_urls(feed: &FeedSettings, own: &OwnAddresses) -> Vec<RefusedSetting> {
    let mut found = Vec::new();
    if own.answer_polls_of(&feed.url) {
        let wanted = "everfeed itself answers there. Give the URL of the old feed";
        found.push(RefusedSetting::new(
            "url",
            quoted(feed.url.as_str()),
            wanted,
        ));
    }
    if let Some(alias) = feed.aliases.iter().find(|alias| own.are_all_at(alias)) {
        let wanted = "everfeed itself answers there. Give the public URLs of the old feed";
        found.push(RefusedSetting::new(
            "aliases",
            quoted(alias.as_str()),
            wanted,
        ));
    }
    found
}

/// Webhooks at which we answer ourselves: nothing that is told there gets anywhere.
pub(super) fn of_own_webhooks(
    webhooks: &[WebhookSettings],
    own: &OwnAddresses,
    reading: &mut ConfigReading<'_>,
) {
    for (at, webhook) in webhooks.iter().enumerate() {
        if own.are_all_at(&webhook.url) {
            let wanted = "everfeed itself answers there. Give the URL of another server";
            reading.refuse(&format!("webhook[{at}].url"), "a URL of our own", wanted);
        }
    }
}

/// Everything that cannot be meant in the credentials of origins.
pub(super) fn of_credentials(credentials: &[CredentialSettings], reading: &mut ConfigReading<'_>) {
    if credentials.len() > CREDENTIALS_MAX {
        let wanted = format!("give credentials of {CREDENTIALS_MAX} origins at most");
        reading.refuse("credentials", credentials.len(), wanted);
    }
    for (at, one) in credentials.iter().enumerate() {
        for problem in one.problems() {
            reading.take_over(problem.within(&format!("credentials[{at}]")));
        }
    }
}

/// The alerts; everything in them that cannot be meant is refused.
pub(super) fn sound_alerts(
    own: &OwnAddresses,
    reading: &mut ConfigReading<'_>,
) -> Vec<AlertSettings> {
    let alerts: Vec<(String, AlertSettings)> = reading.list("alert");
    if alerts.len() > ALERTS_MAX {
        let wanted = format!("give {ALERTS_MAX} alerts at most");
        reading.refuse("alert", alerts.len(), wanted);
    }
    for (path, alert) in &alerts {
        for problem in alert.problems() {
            reading.take_over(problem.within(path));
        }
        if alert.url.as_ref().is_some_and(|url| own.are_all_at(url)) {
            let wanted = "everfeed itself answers there. Give the URL of another server";
            reading.refuse(&format!("{path}.url"), "a URL of our own", wanted);
        }
    }
    alerts.into_iter().map(|(_, alert)| alert).collect()
}

/// The lists of feeds; everything in them that cannot be meant is refused.
pub(super) fn sound_lists(
    own: &OwnAddresses,
    reading: &mut ConfigReading<'_>,
) -> Vec<OpmlSettings> {
    let lists: Vec<(String, OpmlSettings)> = reading.list("opml");
    if lists.len() > LISTS_MAX {
        let wanted = format!("give {LISTS_MAX} lists at most");
        reading.refuse("opml", lists.len(), wanted);
    }
    let mut met = BTreeSet::new();
    for (path, list) in &lists {
        for problem in list.problems() {
            reading.take_over(problem.within(path));
        }
        if !met.insert(&list.name) {
            let wanted = "another list has this name. Give each list a name of its own";
            reading.refuse(&format!("{path}.name"), quoted(&list.name), wanted);
        }
        if list.url.as_ref().is_some_and(|url| own.are_all_at(url)) {
            let wanted = "everfeed itself answers there. Give the URL of another server";
            reading.refuse(&format!("{path}.url"), "a URL of our own", wanted);
        }
    }
    lists.into_iter().map(|(_, list)| list).collect()
}

/// Everything that cannot be meant in the webhooks, for these feeds, groups and sites.
pub(super) fn of_webhooks(
    webhooks: &[WebhookSettings],
    feeds: &[(String, FeedSettings)],
    groups: &[(String, GroupSettings)],
    sites: &[(String, SiteSettings)],
    reading: &mut ConfigReading<'_>,
) {
    if webhooks.len() > WEBHOOKS_MAX {
        let wanted = format!("give {WEBHOOKS_MAX} webhooks at most");
        reading.refuse("webhook", webhooks.len(), wanted);
    }
    let finds_feeds = finds_feeds(sites);
    let mut met = BTreeSet::new();
    for (at, webhook) in webhooks.iter().enumerate() {
        let path = format!("webhook[{at}]");
        for problem in webhook.problems() {
            reading.take_over(problem.within(&path));
        }
        let feed = feeds.iter().find(|(_, feed)| feed.name == webhook.feed);
        let group = groups.iter().find(|(_, group)| group.name == webhook.feed);
        let is_private = feed.is_some_and(|(_, feed)| feed.is_private())
            || group.is_some_and(|(_, group)| group.as_feed().is_private());
        let (path, found) = (format!("{path}.feed"), quoted(&webhook.feed));
        if is_private {
            let wanted = "this feed is private. A webhook is for a feed that everybody may read";
            reading.refuse(&path, found, wanted);
            continue;
        }
        if feed.is_none() && group.is_none() && !finds_feeds {
            let wanted = "there is no feed of this name, and no group";
            reading.lack(&webhook.feed, &path, &found, wanted);
            continue;
        }
        let is_new = met.insert((webhook.url.as_str(), &webhook.feed, &webhook.filter));
        if !is_new {
            let wanted = "this URL has this feed already. Give each webhook once";
            reading.refuse(&path, found, wanted);
        }
    }
}

/// True where feeds are found on a site, which are known only when it is asked.
fn finds_feeds(sites: &[(String, SiteSettings)]) -> bool {
    sites
        .iter()
        .any(|(_, site)| matches!(site.feeds, SiteFeeds::Found(_)))
}

/// Everything that cannot be meant in the groups, each of which comes with its path. With lists that
/// are read again, any category may get feeds later.
pub(super) fn of_groups(
    groups: &[(String, GroupSettings)],
    feeds: &[(String, FeedSettings)],
    sites: &[(String, SiteSettings)],
    lists: &[OpmlSettings],
    reading: &mut ConfigReading<'_>,
) {
    if groups.len() > GROUPS_MAX {
        reading.refuse(
            "group",
            groups.len(),
            format!("give {GROUPS_MAX} groups at most"),
        );
    }
    let finds_feeds = finds_feeds(sites);
    let is_lacking = |member: &str| {
        let is_category = member.contains(':');
        if is_category {
            lists.is_empty()
        } else {
            !finds_feeds
        }
    };
    let named = NamedFeeds::of(feeds.iter().map(|(_, feed)| feed));
    let mut names: BTreeSet<&str> = feeds.iter().map(|(_, feed)| feed.name.as_str()).collect();
    let group_names: BTreeSet<&str> = groups
        .iter()
        .map(|(_, group)| group.name.as_str())
        .collect();
    let mut groups_of: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, group) in groups {
        if !names.insert(&group.name) {
            let wanted = "a feed or another group has this name. Give each its own";
            reading.refuse(&format!("{path}.name"), quoted(&group.name), wanted);
        }
        for problem in group.problems() {
            reading.take_over(problem.within(path));
        }
        let mut met = BTreeSet::new();
        for (at, member) in group.members.iter().enumerate() {
            let (path, found) = (format!("{path}.members[{at}]"), quoted(member));
            if !met.insert(member) {
                reading.refuse(&path, found, "name each member once");
                continue;
            }
            let meant = named.meant_by(member);
            if let Some(wanted) = member_problem(group, member, meant, &group_names) {
                reading.refuse(&path, found, wanted);
            } else if meant.is_empty() && is_lacking(member) {
                let wanted =
                    format!("no feed has this name or category. Instead, {MEMBERS_WANTED}");
                reading.lack(member, &path, &found, wanted);
            }
        }
        let path = format!("{path}.members");
        let members = named.members_of(group);
        let meant = group.members.iter().map(|member| named.meant_by(member));
        let count: usize = meant.map(<[_]>::len).sum();
        if count > GROUP_MEMBERS_MAX && members.len() >= GROUP_MEMBERS_MAX {
            let wanted =
                format!("a group has {GROUP_MEMBERS_MAX} members at most. Make several of it");
            reading.refuse(&path, count, wanted);
        }
        for feed in members {
            let count = groups_of.entry(&feed.name).or_default();
            *count += 1;
            if *count == FEED_GROUPS_MAX + 1 {
                let found = format!("one more group of `{}`", feed.name);
                let wanted = format!("a feed is in {FEED_GROUPS_MAX} groups at most");
                reading.refuse(&path, found, wanted);
            }
        }
    }
    for (path, feed) in feeds {
        let namespace = feed.namespace();
        let group = namespace.strip_prefix("group:");
        if group.is_some_and(|name| group_names.contains(name)) {
            let wanted = "the ids of a group have the same namespace. Give another";
            reading.refuse(&format!("{path}.id_namespace"), quoted(&namespace), wanted);
            break;
        }
    }
}

/// The remedy for a member of a group that means these feeds; `None` where it can be one.
fn member_problem(
    group: &GroupSettings,
    member: &str,
    meant: &[&FeedSettings],
    group_names: &BTreeSet<&str>,
) -> Option<String> {
    if group_names.contains(member) {
        let wanted = "this is a group. Only feeds can be members, so name its members";
        return Some(wanted.to_owned());
    }
    let feed = meant.iter().find(|feed| !group.may_hold(feed))?;
    if !feed.show.is_empty() {
        return Some(format!(
            "some readers see only parts of feed `{}` (`show`), but the group would show all of it. Take out the member \
             or the rules",
            feed.name
        ));
    }
    Some(format!(
        "feed `{}` is private, but the group would show its posts to others. Give the group an `access` with \
         readers of that feed only",
        feed.name
    ))
}

/// The problem with the place of the store, as far as can be told without opening it.
pub(super) fn store_problem(config: &Config) -> Option<RefusedSetting> {
    if let Some(url) = &config.store.url {
        let wanted = crate::store::url_problem(url)?;
        return Some(RefusedSetting::new(
            "store.url",
            quoted(&url.to_string()),
            wanted,
        ));
    }
    let path = &config.store.path;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let wanted = if folder.is_some_and(|folder| !folder.is_dir()) {
        "its folder does not exist. Make the folder, or give another path"
    } else if path.is_dir() {
        "this is a folder. Give the path of a file in it, such as everfeed.redb"
    } else {
        return None;
    };
    Some(RefusedSetting::new(
        "store.path",
        format!("\"{}\"", path.display()),
        wanted,
    ))
}

/// Steps of plain characters, none of which a client would undo.
fn is_prefix(prefix: &str) -> bool {
    let plain = |step: &str| {
        step.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b))
    };
    let prefix = prefix.strip_prefix('/').unwrap_or(prefix);
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    prefix.is_empty()
        || prefix
            .split('/')
            .all(|step| !matches!(step, "" | "." | "..") && plain(step))
}
