//! The moment at which a changed setting takes effect: a reload, or the next start. The table is
//! the only place that says so.

use super::Config;
use crate::setting::differing_keys;

/// The moment at which a changed setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At a reload.
    Reload,
    /// At the next start: the socket, the file, the cache or the client made from it is made once.
    Restart,
}

use Effect::{Reload, Restart};

/// Every setting outside the lists, those of a feed below `feed.`, of a group below `group.`, and
/// of a site below `site.`.
const EFFECTS: &[(&str, Effect)] = &[
    ("server.listen", Restart),
    ("server.public_url", Restart),
    ("server.admin_listen", Restart),
    ("server.admin_token", Restart),
    ("server.trusted_proxies", Restart),
    ("server.basic_over_http", Restart),
    ("server.proxy_protocol", Restart),
    ("server.tls.certificate", Restart),
    ("server.tls.key", Restart),
    ("server.tls.acme.domains", Restart),
    ("server.tls.acme.contact", Restart),
    ("server.tls.acme.agree_to_terms", Restart),
    ("server.tls.acme.directory", Restart),
    ("server.tls.acme.root", Restart),
    ("server.tls.acme.folder", Restart),
    ("server.tls.redirect_from", Restart),
    ("server.tls.hsts_secs", Restart),
    ("server.prefix", Restart),
    ("server.waiters_max", Restart),
    ("server.waiters_per_client_max", Restart),
    ("server.connections_max", Restart),
    ("server.timeout_max_secs", Restart),
    ("server.page_items_max", Restart),
    ("server.page_bytes_max", Restart),
    ("server.render_cache_bytes", Restart),
    ("server.answers_bytes_max", Restart),
    ("server.classic_items", Restart),
    ("server.shutdown_secs", Restart),
    ("store.path", Restart),
    ("store.cache_bytes", Restart),
    ("upstream.contact_url", Restart),
    ("upstream.total_secs", Restart),
    ("upstream.wire_bytes_max", Restart),
    ("upstream.documents_bytes_max", Restart),
    ("upstream.body_bytes_max", Restart),
    ("upstream.redirects_max", Restart),
    ("upstream.permalink_check_gap_secs", Restart),
    ("hub.lease_min_secs", Restart),
    ("hub.lease_default_secs", Restart),
    ("hub.lease_max_secs", Restart),
    ("hub.callbacks_private", Restart),
    ("hub.push_items_max", Restart),
    ("hub.push_bytes_max", Restart),
    ("hub.deliver_secs", Restart),
    ("hub.subscriptions_max", Restart),
    ("hub.unverified_max", Restart),
    ("hub.publish_hints", Restart),
    ("hub.rsscloud", Restart),
    ("hub.in_flight_max", Restart),
    ("hub.in_flight_per_host_max", Restart),
    ("hub.on_behalf", Restart),
    ("platforms.folder", Restart),
    ("site.host", Restart),
    ("site.origin", Restart),
    ("site.feeds", Restart),
    ("site.access", Restart),
    ("site.serve_plain", Restart),
    ("site.fresh_secs", Restart),
    ("site.poll.min_secs", Restart),
    ("site.poll.max_secs", Restart),
    ("site.deletions.confirmations", Restart),
    ("site.deletions.apart_secs", Restart),
    ("site.deletions.weak_confirmations", Restart),
    ("site.deletions.weak_secs", Restart),
    ("site.deletions.audit_secs", Restart),
    ("site.deletions.permalink_checks", Restart),
    ("site.deletions.page_credentials", Restart),
    ("site.deletions.unsafe", Restart),
    ("site.import.serve_after_secs", Restart),
    ("site.import.pages_max", Restart),
    ("site.import.page_gap_secs", Restart),
    ("site.import.again_secs", Restart),
    ("site.keep.item_bytes_max", Restart),
    ("site.keep.quota_bytes", Restart),
    ("site.pings", Restart),
    ("site.connect_secs", Restart),
    ("site.head_secs", Restart),
    ("site.idle_secs", Restart),
    ("site.requests_max", Restart),
    ("feed.name", Reload),
    ("feed.url", Reload),
    ("feed.aliases", Reload),
    ("feed.categories", Reload),
    ("feed.id_namespace", Reload),
    ("feed.format", Reload),
    ("feed.platform", Reload),
    ("feed.access", Reload),
    ("feed.show", Reload),
    ("feed.poll.min_secs", Reload),
    ("feed.poll.max_secs", Reload),
    ("feed.deletions.confirmations", Reload),
    ("feed.deletions.apart_secs", Reload),
    ("feed.deletions.weak_confirmations", Reload),
    ("feed.deletions.weak_secs", Reload),
    ("feed.deletions.audit_secs", Reload),
    ("feed.deletions.permalink_checks", Reload),
    ("feed.deletions.page_credentials", Reload),
    ("feed.deletions.unsafe", Reload),
    ("feed.import.serve_after_secs", Reload),
    ("feed.import.pages_max", Reload),
    ("feed.import.page_gap_secs", Reload),
    ("feed.import.again_secs", Reload),
    ("feed.keep.item_bytes_max", Reload),
    ("feed.keep.quota_bytes", Reload),
    ("feed.record.folder", Reload),
    ("feed.record.bodies", Reload),
    ("feed.record.bytes_max", Reload),
    ("group.name", Reload),
    ("group.members", Reload),
    ("group.title", Reload),
    ("group.access", Reload),
];

/// Every key that has a value, dotted and without indices.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    EFFECTS.iter().map(|(key, _)| *key)
}

/// The effect of a setting, by its key: `server.listen`, `feed.poll.min_secs`. A key that is not in
/// the table waits for a restart, since nothing is known to take it while running.
pub fn effect(key: &str) -> Effect {
    EFFECTS
        .iter()
        .find(|(known, _)| *known == key)
        .map_or(Restart, |(_, effect)| *effect)
}

/// The keys outside `[[feed]]` and `[[group]]` in which a configuration differs from the one that
/// runs, and that wait for a restart.
pub fn waiting_for_restart(running: &Config, new: &Config) -> Vec<String> {
    let global = |config: &Config| Config {
        feed: Vec::new(),
        group: Vec::new(),
        ..config.clone()
    };
    let keys = differing_keys(&global(running), &global(new));
    keys.into_iter()
        .filter(|key| effect(key) == Restart)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::by_key;
    use std::collections::BTreeSet;

    const WHOLE: &str =
        "[[feed]]\nname = \"blog\"\nurl = \"http://x/\"\nrecord = { folder = \"x\" }\n";
    const GROUP: &str = "[[group]]\nname = \"planet\"\nmembers = [\"blog\"]\n";
    const SITE: &str = "[[site]]\norigin = \"http://y/\"\n";
    const ACME: &str = "[server.tls.acme]\ndomains = [\"h.example\"]\nagree_to_terms = true\n";

    #[test]
    fn the_table_has_every_key_once_and_no_other() {
        let config = Config::parse("x", &format!("{ACME}{SITE}{WHOLE}{GROUP}")).unwrap();
        let of_feed = by_key(&config.feed[0]);
        let of_site = by_key(&config.site[0]);
        let of_group = by_key(&config.group[0]);
        let global = by_key(&Config {
            feed: Vec::new(),
            group: Vec::new(),
            site: Vec::new(),
            ..config
        });
        let keys = global
            .into_keys()
            .filter(|key| !matches!(key.as_str(), "feed" | "group" | "site"));
        let of_feed = of_feed.into_keys().map(|key| format!("feed.{key}"));
        let of_site = of_site.into_keys().map(|key| format!("site.{key}"));
        let of_group = of_group.into_keys().map(|key| format!("group.{key}"));
        let keys: BTreeSet<String> = keys.chain(of_feed).chain(of_group).chain(of_site).collect();
        let table: BTreeSet<String> = EFFECTS.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!(keys, table);
        assert_eq!(EFFECTS.len(), table.len(), "a key stands twice");
    }

    #[test]
    fn a_key_that_waits_for_a_restart_is_named_and_feeds_do_not_wait() {
        let running = Config::parse("x", WHOLE).unwrap();
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:9\"\n[hub]\ndeliver_secs = 9\n{WHOLE}platform = \"none\"\n"
        );
        let new = Config::parse("x", &text).unwrap();
        assert_eq!(
            waiting_for_restart(&running, &new),
            ["hub.deliver_secs", "server.listen"]
        );
        assert!(waiting_for_restart(&new, &new).is_empty());
        let before_a_site = Config::parse("x", &format!("{SITE}{WHOLE}")).unwrap();
        assert_eq!(waiting_for_restart(&running, &before_a_site), ["site"]);
    }
}
