//! Settings that are allowed, but risky: each with its key and a remedy; not mistakes.

use super::Config;
use crate::{
    acme::AcmeSettings,
    catalog::{Destination, FeedSettings, ListedPath, SiteSettings},
    edge::{listen_address::ListenAddress, reached::named_address},
    layers::is_near,
    serve,
    serve::own_addresses::OwnAddresses,
};
use url::Url;

/// All warnings.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let mut found = of_server(&config.server);
    found.extend(of_unknown_proxy(config));
    if let Some(server) = config
        .xmpp
        .server
        .as_ref()
        .filter(|_| config.xmpp.is_overheard())
    {
        found.push(format!(
            "xmpp.server: what is said to {server} is not encrypted. Set xmpp.tls where the server has TLS for components, or lead \
             the connection through a tunnel"
        ));
    }
    let idle = config.xmpp.idle_keys();
    if !idle.is_empty() {
        let keys = idle.join(", ");
        found.push(format!(
            "{keys}: without xmpp.server XMPP is off. Give the server, or leave this out"
        ));
    }
    let gap_secs = config.upstream.permalink_check_gap_secs;
    if gap_secs < PERMALINK_GAP_SECS_USUAL {
        found.push(format!(
            "upstream.permalink_check_gap_secs: {gap_secs} s between two requests to one host is short. \
             Give {PERMALINK_GAP_SECS_USUAL} or more if the host is not yours"
        ));
    }
    let own = config.own_addresses();
    let feeds = config.feed.iter();
    found.extend(feeds.flat_map(|feed| of_feed(feed, &own)));
    let sites = config.site.iter().enumerate();
    found.extend(sites.flat_map(|(no, site)| of_site(no, site, config, &own)));
    found
}

/// One a minute and host (POLLING 2.3).
const PERMALINK_GAP_SECS_USUAL: u64 = 60;

/// A publisher's shortest hint counts for this, seconds: more often is asked by nobody who is
/// polite.
const POLL_SECS_POLITE: u64 = 900;
/// The same for a publisher on this machine or network, seconds: it is probably the operator's own.
const POLL_SECS_POLITE_NEAR: u64 = 60;

fn of_server(server: &serve::Config) -> Vec<String> {
    let mut found = Vec::new();
    let admin = server.admin_listen;
    if !admin.ip().to_canonical().is_loopback() && server.admin_token.is_none() {
        found.push(format!(
            "server.admin_listen: {admin} is not a loopback address. Without server.admin_token it serves only /live, /ready \
             and /metrics. Give the token, or a loopback address such as 127.0.0.1:{}",
            admin.port()
        ));
    }
    if server.tls.is_on() && server.public_url.scheme() == "http" {
        found.push(format!(
            "server.public_url: {} is an http URL, but everfeed serves consumers by https. Give the https URL",
            server.public_url
        ));
    }
    if let Some(acme) = &server.tls.acme {
        found.extend(of_acme(acme, server));
    }
    let (path, prefix) = (
        server.public_url.path().trim_matches('/'),
        server.prefix.trim_matches('/'),
    );
    if !prefix.is_empty() && (path == prefix || path.ends_with(&format!("/{prefix}"))) {
        found.push(format!(
            "server.prefix: public_url ends with \"{}\", too, so feeds are at {}/{prefix}/feeds. \
             Take it out of one of the two",
            server.prefix,
            server.public_url.as_str().trim_end_matches('/')
        ));
    }
    found
}

/// The warning of a server in front that everfeed is not told of, while there are passwords to be
/// guessed.
fn of_unknown_proxy(config: &Config) -> Option<String> {
    let server = &config.server;
    let is_hidden = |address: &ListenAddress| match address {
        ListenAddress::Tcp(address) => address.ip().to_canonical().is_loopback(),
        ListenAddress::Unix(_) => true,
        ListenAddress::Systemd => false,
    };
    let has_private = config.registered().iter().any(FeedSettings::is_private)
        || config.site.iter().any(|site| site.access.is_private());
    let is_behind = server.listen.iter().all(is_hidden) && !is_near(&server.public_url);
    (has_private && is_behind && server.trusted_proxies.is_empty()).then(|| {
        format!(
            "server.trusted_proxies: empty, although a server in front passes requests for {} on. So all readers have the address \
             of that server, and share the limits of one client. Wrong passwords count for each name, not for each reader. Give the \
             address of that server, for instance trusted_proxies = [\"127.0.0.1/32\"]",
            server.public_url
        )
    })
}

/// Endings of names that no public authority gives a certificate for (RFC 6761, RFC 6762, RFC 8375,
/// RFC 9476).
const PRIVATE_ENDINGS: [&str; 9] = [
    "alt",
    "home.arpa",
    "internal",
    "invalid",
    "lan",
    "local",
    "localhost",
    "onion",
    "test",
];

fn of_acme(acme: &AcmeSettings, server: &serve::Config) -> Vec<String> {
    let mut found = Vec::new();
    let names = acme.names();
    let public = server.public_url.host_str().unwrap_or_default().to_owned();
    if !names.contains(&public) {
        found.push(format!(
            "server.tls.acme.domains: {public}, the host of public_url, is missing. Consumers would see a certificate for \
             another host. Add it"
        ));
    }
    for name in names.iter().filter(|_| acme.is_lets_encrypt()) {
        let is_private = PRIVATE_ENDINGS.iter().any(|ending| {
            name.strip_suffix(ending)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        if is_private || !name.contains('.') {
            found.push(format!(
                "server.tls.acme.domains: {name} is not a public name, and Let's Encrypt gives no certificate for it. \
                 Give a public name, or another directory"
            ));
        }
    }
    let by_http = server
        .tls
        .redirect_from
        .is_some_and(|address| address.port() == HTTP_PORT);
    // Sockets of systemd tell their port only when they are there.
    let listens = |address: &ListenAddress| match address {
        ListenAddress::Tcp(address) => address.port() == HTTPS_PORT,
        ListenAddress::Systemd => true,
        ListenAddress::Unix(_) => false,
    };
    if acme.is_lets_encrypt() && !by_http && !server.listen.iter().any(listens) {
        found.push(
            "server.tls.acme: Let's Encrypt connects to port 443 of each domain, or to port 80 for redirect_from. \
             everfeed listens on neither. Forward one of them to everfeed"
                .to_owned(),
        );
    }
    found
}

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

fn of_feed(feed: &FeedSettings, own: &OwnAddresses) -> Vec<String> {
    let key = |name: &str| format!("feed.{}.{name}", feed.name);
    let mut found = feed.warnings();
    // One of the file is refused, and so is one that is put into the registry now.
    let leads_to_us = feed.group.is_none() && own.answer_polls_of(&feed.url);
    if leads_to_us {
        found.push(format!(
            "{}: this URL leads to everfeed itself. It would poll its own feed. Give the URL of the old feed",
            key("url")
        ));
    }
    let is_near = is_near(&feed.url);
    let polite = if is_near {
        POLL_SECS_POLITE_NEAR
    } else {
        POLL_SECS_POLITE
    };
    let times = [
        ("poll.min_secs", feed.poll.min_secs),
        ("poll.max_secs", Some(feed.poll.max_secs)),
    ];
    for (name, secs) in times {
        if let Some(secs) = secs.filter(|secs| *secs < polite) {
            let who = if is_near {
                "even a publisher on this machine or network needs"
            } else {
                "publishers bear"
            };
            found.push(format!(
                "{}: a poll every {secs} s is more than {who}. Give {polite} or more",
                key(name)
            ));
        }
    }
    if is_near && feed.aliases.is_empty() && !leads_to_us {
        found.push(format!(
            "{}: missing, but consumers cannot reach {}, where everfeed polls the feed. Give the public URL of the feed, \
             for instance aliases = [\"https://blog.example/rss.xml\"]. Links are resolved against it",
            key("aliases"),
            feed.url.host_str().unwrap_or_default()
        ));
    }
    for (at, rule) in feed.show.iter().enumerate() {
        let earlier = feed.show[..at]
            .iter()
            .position(|earlier| rule.access.is_within(&earlier.access));
        if let Some(earlier) = earlier {
            let key = key("show");
            found.push(format!(
                "{key}[{at}]: no reader gets to this rule, because {key}[{earlier}] matches them all. Put it before that one"
            ));
        } else if !rule.access.may_share_a_reader(&feed.access) {
            found.push(format!(
                "{}[{at}]: the readers of this rule may not read the feed. Name them in {}, too",
                key("show"),
                key("access")
            ));
        }
    }
    found
}

/// Feeds that are polled through everfeed itself, and private ones whose address at a site is not
/// theirs.
fn of_site(no: usize, site: &SiteSettings, config: &Config, own: &OwnAddresses) -> Vec<String> {
    let public_url = &config.server.public_url;
    let root = undotted(&site.public_root(public_url));
    let is_private_at = |path: &str| {
        let mut placed = config.feed.iter().filter(|feed| feed.is_private());
        placed.any(|feed| {
            feed.legacy
                .as_ref()
                .is_some_and(|place| place.site == no && place.path == path)
        })
    };
    let mut found = Vec::new();
    let mut others = config
        .site
        .iter()
        .filter(|other| !other.access.is_within(&site.access));
    let server = Destination::server(&site.origin);
    if let Some(other) = others.find(|other| Destination::server(&other.origin) == server) {
        found.push(format!(
            "site[{no}].access: the site {} has the same origin and more readers. everfeed holds back feeds there (403), unless \
             its `feeds` lists them or its front page names them. Make sure that the origin tells the sites apart by `Host`. \
             If it does not, everybody gets these feeds",
            other.host.as_deref().unwrap_or("of every other host")
        ));
    }
    for feed in &config.feed {
        let url = undotted(&feed.url);
        let is_here = url.host_str() == root.host_str() && url.port() == root.port();
        if is_here && url.origin() != site.origin.origin() && !own.answer_polls_of(&url) {
            let at_origin = site
                .origin
                .join(&url[url::Position::BeforePath..url::Position::AfterQuery]);
            found.push(format!(
                "feed.{}.url: {} leads to everfeed itself, in front of a [[site]]. Give the address at the origin, url = \"{}\", \
                 and the public URL in aliases",
                feed.name,
                crate::secret::public_url(&url),
                at_origin.as_ref().unwrap_or(&site.origin)
            ));
        }
    }
    for ListedPath { path, .. } in site.feeds.listed() {
        let name = site.private_feed_at(&config.site, no, path, public_url, &config.feed);
        if let Some(name) = name {
            found.push(format!(
                "site[{no}].feeds: \"{path}\" is also an address of the private feed `{name}`. The readers of this site may read it \
                 here. Take it out, unless the origin has another feed there for this `Host`"
            ));
        }
    }
    for feed in config.feed.iter().filter(|feed| feed.is_private()) {
        if feed.group.is_none() && could_lead_to(&feed.url, &site.origin) {
            found.push(format!(
                "feed.{}.access: the feed is private, and everfeed polls it at {}. This could be another name of {}, the origin of a \
                 [[site]]. If it is, give the same name in both. Then everfeed holds back its documents (403) at the site's other \
                 addresses, too",
                feed.name,
                crate::secret::public_url(&feed.url),
                site.origin
            ));
        }
        if feed.legacy.is_some() {
            continue;
        }
        let urls = std::iter::once(&feed.url).chain(&feed.aliases);
        let open = urls
            .filter_map(|url| site.path_of(url, public_url))
            .find(|path| !is_private_at(path));
        let Some(path) = open else { continue };
        let public = site
            .public_root(public_url)
            .join(&path)
            .unwrap_or_else(|_| site.origin.clone());
        let at_origin = site
            .origin
            .join(&path)
            .unwrap_or_else(|_| site.origin.clone());
        found.push(format!(
            "feed.{}.access: the feed is private. Its document at {public} comes from the origin of a [[site]]. everfeed holds it \
             back from everybody (403), if it sees that the document is a feed. To let its readers in there, give \
             url = \"{at_origin}\" and list \"{path}\" in site.feeds. Else let the old server refuse it",
            feed.name
        ));
    }
    found
}

/// True for a URL that only a look-up of its name could tell from the server of an origin: the port
/// is the same.
fn could_lead_to(url: &Url, origin: &Url) -> bool {
    let (one, other) = (Destination::server(url), Destination::server(origin));
    let is_name = |url: &Url| named_address(url).is_none();
    one.port == other.port && one.host != other.host && (is_name(url) || is_name(origin))
}

/// The same URL with a host that does not end with a dot, which leads to the same place.
fn undotted(url: &Url) -> Url {
    let mut url = url.clone();
    if let Some(host) = url
        .host_str()
        .and_then(|host| host.strip_suffix('.'))
        .map(str::to_owned)
    {
        // What is left of a name is one.
        let _ = url.set_host(Some(&host));
    }
    url
}
