//! The services of push that a feed names, by the headers of its answer and by its document
//! (UPSTREAM U-1); and those of feeds that name none, by their host. Not what is asked of them.

use super::links_with;
use everfeed_adapters::{Cloud, Metadata};
use url::{Host, Url};

/// Hubs of a feed that are asked at most (UPSTREAM U-1).
pub const NAMED_HUBS_MAX: usize = 2;
/// The longest address that is taken, bytes.
const URL_BYTES_MAX: usize = 2048;

/// The services of push that a feed names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedPush {
    /// The names by which hubs may know the feed, the most likely first.
    pub topics: Vec<String>,
    /// Its hubs, the best first.
    pub hubs: Vec<String>,
    /// Its rssCloud server.
    pub cloud: Option<CloudAddress>,
    /// True if the feed names no hub, and its hub is known by its host.
    pub is_by_table: bool,
}

/// The address at which a cloud takes registrations over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudAddress {
    /// True for HTTPS.
    pub is_https: bool,
    /// Host name or address.
    pub domain: String,
    /// TCP port.
    pub port: u16,
    /// Path, with a slash at its beginning.
    pub path: String,
}

impl NamedPush {
    // Decides: Which hubs and which topic does a feed name?
    /// The services that an answer names: by its `Link` headers, else by its document, else by the
    /// host of the feed. `landed` is the URL that answered.
    pub fn of(link_headers: &[&str], metadata: &Metadata, landed: &Url) -> Self {
        let of_header = |rel: &str| -> Vec<String> {
            let links = link_headers.iter().flat_map(|value| links_with(value, rel));
            let resolved = |target: &str| landed.join(target).ok().map(String::from);
            links.filter_map(resolved).collect()
        };
        let mut hubs = of_header("hub");
        if hubs.is_empty() {
            hubs.extend(metadata.hubs().map(str::to_owned));
        }
        let hubs = best_hubs(&hubs);
        let mut own = of_header("self")
            .into_iter()
            .chain(metadata.link("self").map(str::to_owned));
        let own = own.find(|url| web_url(url).is_some());
        let topic = own.unwrap_or_else(|| landed.to_string());
        let cloud = metadata.cloud.as_ref().and_then(CloudAddress::of);
        if hubs.is_empty()
            && let Some(row) = HUBS_BY_HOST.iter().find(|row| row.holds(landed))
        {
            return Self {
                topics: row.topics(landed),
                hubs: vec![row.hub.to_owned()],
                cloud,
                is_by_table: true,
            };
        }
        if hubs.is_empty() && cloud.is_none() {
            return Self::default();
        }
        Self {
            topics: vec![topic],
            hubs,
            cloud,
            is_by_table: false,
        }
    }
}

/// A hub of feeds that name none.
struct HubByHost {
    host: &'static str,
    /// The paths of its feeds, each with its query as it is. Hubs compare topics byte for byte: that
    /// of the documentation is the first.
    paths: &'static [&'static str],
    hub: &'static str,
}

/// Hubs by the host of a feed, where feeds name none.
const HUBS_BY_HOST: &[HubByHost] = &[HubByHost {
    host: "www.youtube.com",
    paths: &["/xml/feeds/videos.xml", "/feeds/videos.xml"],
    hub: "https://pubsubhubbub.appspot.com/subscribe",
}];

impl HubByHost {
    fn holds(&self, url: &Url) -> bool {
        url.host_str() == Some(self.host) && self.paths.contains(&url.path())
    }

    fn topics(&self, url: &Url) -> Vec<String> {
        let query = url.query().map(|query| format!("?{query}"));
        let query = query.unwrap_or_default();
        let topic = |path: &&str| format!("https://{}{path}{query}", self.host);
        self.paths.iter().map(topic).collect()
    }
}

/// Hosts whose hubs answer over HTTPS, though feeds name them without.
const HTTPS_HUBS: [&str; 1] = ["pubsubhubbub.appspot.com"];

/// The hubs that are asked, of those that are named: those with HTTPS first.
fn best_hubs(named: &[String]) -> Vec<String> {
    let mut hubs: Vec<String> = Vec::new();
    for mut hub in named.iter().filter_map(|hub| web_url(hub)) {
        if hub
            .host_str()
            .is_some_and(|host| HTTPS_HUBS.contains(&host))
            && hub.port().is_none()
        {
            // It fails only for schemes of another kind.
            let _ = hub.set_scheme("https");
        }
        hub.set_fragment(None);
        let hub = String::from(hub);
        if !hubs.contains(&hub) {
            hubs.push(hub);
        }
    }
    hubs.sort_by_key(|hub| !hub.starts_with("https:"));
    hubs.truncate(NAMED_HUBS_MAX);
    hubs
}

/// An address on the web without credentials; `None` for any other.
fn web_url(text: &str) -> Option<Url> {
    let url = Url::parse(text)
        .ok()
        .filter(|_| text.len() <= URL_BYTES_MAX)?;
    let is_bare = url.username().is_empty() && url.password().is_none();
    (is_bare && matches!(url.scheme(), "http" | "https")).then_some(url)
}

impl CloudAddress {
    /// The address of a cloud that takes registrations over HTTP; `None` for one of another protocol
    /// (UPSTREAM U-20).
    pub(super) fn of(cloud: &Cloud) -> Option<Self> {
        let is_https = match cloud.protocol.as_deref() {
            Some("http-post") => cloud.port == Some(443),
            Some("https-post") => true,
            _ => return None,
        };
        let path = cloud.path.as_deref().unwrap_or("/");
        let slash = if path.starts_with('/') { "" } else { "/" };
        let address = Self {
            is_https,
            domain: Host::parse(&cloud.domain).ok()?.to_string(),
            port: cloud.port.unwrap_or(if is_https { 443 } else { 80 }),
            path: format!("{slash}{path}"),
        };
        web_url(&address.url()).is_some().then_some(address)
    }

    /// The URL that takes registrations.
    pub fn url(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}:{}{}", self.domain, self.port, self.path)
    }
}
