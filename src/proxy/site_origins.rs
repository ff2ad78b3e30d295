//! The origins of the sites in force. A reload that leaves a site as it is leaves its connections and its permits, too.

use super::origin::SiteOrigin;
use crate::{
    catalog::{ProxiedSite, SiteOfRequest, SiteSettings, Sites},
    locks::lock,
    telemetry::Metrics,
    tls_client,
};
use rustls::ClientConfig;
use std::{
    io,
    sync::{Arc, Mutex},
};

/// The origins of the sites that were last asked for.
pub(super) struct SiteOrigins {
    tls: ClientConfig,
    metrics: Metrics,
    in_force: Mutex<OriginsOfSites>,
}

#[derive(Default)]
struct OriginsOfSites {
    sites: Arc<Sites>,
    /// By the number of their site.
    origins: Vec<Arc<SiteOrigin>>,
}

impl SiteOrigins {
    /// No origins yet. An error is one of the certificates of this machine.
    pub(super) fn new(metrics: &Metrics) -> io::Result<Self> {
        Ok(Self {
            tls: tls_client::of_system()?,
            metrics: metrics.clone(),
            in_force: Mutex::default(),
        })
    }

    /// The origin of the site of a request. The first request by other sites makes their origins, and keeps those of sites
    /// whose connections have the same settings. `None` for a number that no site has.
    pub(super) fn of(&self, asked: &SiteOfRequest) -> Option<Arc<SiteOrigin>> {
        let sites = &asked.sites;
        let mut in_force = lock(&self.in_force);
        if !Arc::ptr_eq(&in_force.sites, sites) {
            let kept = |site: &ProxiedSite| {
                let known = in_force.sites.iter().zip(&in_force.origins);
                let mut same =
                    known.filter(|(known, _)| has_same_way(&known.settings, &site.settings));
                same.next().map(|(_, origin)| origin.clone())
            };
            let made = |site: &Arc<ProxiedSite>| {
                let new = || Arc::new(SiteOrigin::new(&site.settings, &self.tls, &self.metrics));
                kept(site).unwrap_or_else(new)
            };
            let origins = sites.iter().map(made).collect();
            *in_force = OriginsOfSites {
                sites: sites.clone(),
                origins,
            };
        }
        in_force.origins.get(asked.no).cloned()
    }
}

/// True for settings with which requests go the same way, within the same limits.
fn has_same_way(one: &SiteSettings, other: &SiteSettings) -> bool {
    let way = |site: &SiteSettings| {
        let limits = (site.connect_secs, site.head_secs, site.idle_secs);
        (
            site.host.clone(),
            site.origin.clone(),
            limits,
            site.requests_max,
        )
    };
    way(one) == way(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    #[test]
    fn a_reload_leaves_the_connections_and_permits_of_a_site_that_it_leaves() {
        let site = |host: &str, port: u16| SiteSettings {
            host: Some(host.to_owned()),
            ..SiteSettings::new(Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap())
        };
        let sites = |all: &[SiteSettings]| Arc::new(Sites::new(all));
        let origins = SiteOrigins::new(&Metrics::default()).unwrap();
        let origin = |sites: &Arc<Sites>, no| {
            let sites = sites.clone();
            origins.of(&SiteOfRequest { sites, no })
        };
        let before = sites(&[site("a.example", 1), site("b.example", 2)]);
        let of_a = origin(&before, 0).unwrap();
        let of_b = origin(&before, 1).unwrap();
        assert!(Arc::ptr_eq(&of_a, &origin(&before, 0).unwrap()));
        assert!(origin(&before, 2).is_none());
        // The server of one has moved, another site comes, and its neighbour has other feeds.
        let mut with_feeds = site("b.example", 2);
        with_feeds.sitemap = true;
        let after = sites(&[site("c.example", 3), with_feeds, site("a.example", 4)]);
        assert!(Arc::ptr_eq(&of_b, &origin(&after, 1).unwrap()));
        assert!(!Arc::ptr_eq(&of_a, &origin(&after, 2).unwrap()));
        // A site that has more room begins with all of it.
        let mut wider = site("b.example", 2);
        wider.requests_max += 1;
        assert!(!Arc::ptr_eq(&of_b, &origin(&sites(&[wider]), 0).unwrap()));
    }
}
