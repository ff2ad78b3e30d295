//! The sites before which we stand: which one a request is for, and which of their feeds; not what they are answered.

use super::{FeedSettings, SiteFeeds, SiteSettings};
use crate::store::{Store, StoreError};
use http::{header::HOST, request::Parts};
use std::{collections::HashMap, sync::Arc};
use url::Url;

/// A site before which we stand.
#[derive(Clone, Debug)]
pub struct ProxiedSite {
    /// Its number among the sites, from 0.
    pub no: usize,
    /// Its settings.
    pub settings: SiteSettings,
}

/// All sites, by host.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    all: Vec<Arc<ProxiedSite>>,
    by_host: HashMap<String, Arc<ProxiedSite>>,
    /// The site of every host that has none of its own.
    any: Option<Arc<ProxiedSite>>,
}

impl Sites {
    /// The configured sites.
    pub fn new(settings: &[SiteSettings]) -> Self {
        let mut sites = Self::default();
        for (no, settings) in settings.iter().enumerate() {
            let site = Arc::new(ProxiedSite { no, settings: settings.clone() });
            sites.all.push(site.clone());
            match &settings.host {
                Some(host) => {
                    sites.by_host.insert(host.clone(), site);
                }
                None => sites.any = Some(site),
            }
        }
        sites
    }

    /// True without any site.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All sites, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ProxiedSite>> {
        self.all.iter()
    }

    /// The site that a request is for.
    pub fn of(&self, request: &Parts) -> Option<&Arc<ProxiedSite>> {
        let site = host(request).and_then(|host| self.by_host.get(&host));
        site.or(self.any.as_ref())
    }
}

/// The host of a request, without port and in lower case. The target goes before the `Host` header (RFC 9112 section 3.2.2).
fn host(request: &Parts) -> Option<String> {
    let named = request.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = request.uri.authority().map(http::uri::Authority::as_str).or(named)?;
    let without_user = host.rsplit('@').next().unwrap_or(host);
    let bare = match without_user.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(address, _)| format!("[{address}]"))?,
        None => without_user.split(':').next().unwrap_or_default().to_owned(),
    };
    Some(bare.trim_end_matches('.').to_ascii_lowercase())
}

/// Adds the feeds that were found on sites to those that are configured.
pub async fn join_found(
    store: &dyn Store,
    sites: &[SiteSettings],
    public_url: &Url,
    feeds: &mut Vec<FeedSettings>,
) -> Result<(), StoreError> {
    for (no, site) in sites.iter().enumerate() {
        if matches!(site.feeds, SiteFeeds::Found(_)) {
            let found = store.found_feeds(site.public_root(public_url).as_str()).await?;
            site.join(no, &found.paths, public_url, feeds);
            // The old server gives it to whoever spells its address as only that server understands.
            for feed in feeds.iter_mut().filter(|feed| feed.access.is_private()) {
                feed.legacy = None;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::access::AccessSettings,
        clock::Manual,
        store::{FoundFeeds, SiteStore as _, memory::Memory},
    };

    #[test]
    fn a_request_is_for_the_site_of_its_host() {
        let site = |host: Option<&str>, port: u16| SiteSettings {
            host: host.map(str::to_owned),
            ..SiteSettings::new(Url::parse(&format!("http://127.0.0.1:{port}")).unwrap())
        };
        let check = |sites: &Sites, target: &str, named: Option<&str>, expect: Option<u16>| {
            let mut request = http::Request::get(target);
            if let Some(host) = named {
                request = request.header(HOST, host);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let found = sites.of(&parts).and_then(|site| site.settings.origin.port());
            assert_eq!(found, expect, "{target} {named:?}");
        };
        let named = [site(Some("a.example"), 1), site(Some("b.example"), 2), site(Some("[::1]"), 3)];
        let sites = Sites::new(&named);
        check(&sites, "/", Some("a.example"), Some(1));
        check(&sites, "/", Some("B.EXAMPLE.:80"), Some(2));
        check(&sites, "/", Some("[::1]:8080"), Some(3));
        check(&sites, "http://a.example/", Some("b.example"), Some(1));
        check(&sites, "/", Some("c.example"), None);
        check(&sites, "/", None, None);
        let with_any = [named.to_vec(), vec![site(None, 4)]].concat();
        let sites = Sites::new(&with_any);
        check(&sites, "/", Some("c.example"), Some(4));
        check(&sites, "/", None, Some(4));
        check(&sites, "/", Some("a.example"), Some(1));
    }

    #[tokio::test]
    async fn what_was_found_joins_and_a_private_feed_stays_out() {
        let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
        let public = Url::parse("http://blog.example/").unwrap();
        let site = SiteSettings::new(Url::parse("http://127.0.0.1:1").unwrap());
        let paths = ["/open.xml", "/closed.xml"].map(str::to_owned).into();
        store.keep_found_feeds("http://blog.example/", FoundFeeds { paths }).await.unwrap();
        let closed = FeedSettings::new("closed", Url::parse("http://127.0.0.1:1/closed.xml").unwrap());
        let mut feeds = vec![FeedSettings { access: AccessSettings::Users, ..closed }];
        join_found(&store, &[site], &public, &mut feeds).await.unwrap();
        let placed: Vec<(&str, bool)> =
            feeds.iter().map(|feed| (feed.name.as_str(), feed.legacy.is_some())).collect();
        assert_eq!(placed, [("closed", false), ("site-open-xml", true)]);
    }
}
