//! Gauges for Prometheus, read off the status; the counters are in `telemetry`.

use super::status::{
    CertificateStatus, ConfigStatus, FeedStatus, RegistryStatus, Status, StoreStatus, XmppStatus,
};
use crate::store::NodesStatus;
use chrono::DateTime;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Adds every gauge.
pub(super) fn register(registry: &mut Registry, status: &Status) {
    gauge_totals(registry, status);
    gauge_feeds(registry, &status.feeds);
    let waiters = whole(status.waiters);
    gauge(registry, "held_requests", "Requests held now", waiters);
    gauge_config(registry, &status.config);
    gauge_registry(registry, &status.registry);
    gauge_store(registry, &status.store);
    if let Some(xmpp) = &status.xmpp {
        gauge_xmpp(registry, xmpp);
    }
    if let Some(certificate) = &status.certificate {
        gauge_certificate(registry, certificate);
    }
    if let Some(nodes) = &status.nodes {
        gauge_nodes(registry, nodes);
    }
}

/// Registers the gauges of a process that follows: the feeds are told by the one that works.
pub(super) fn register_following(registry: &mut Registry, status: &Status) {
    let waiters = whole(status.waiters);
    gauge(registry, "held_requests", "Requests held now", waiters);
    gauge_config(registry, &status.config);
    gauge_store(registry, &status.store);
    if let Some(nodes) = &status.nodes {
        gauge_nodes(registry, nodes);
    }
}

/// Gauges of the processes on a store.
fn gauge_nodes(registry: &mut Registry, nodes: &NodesStatus) {
    let works = nodes.nodes.iter().any(|node| node.is_this && node.works);
    let help = "1 while this process polls and pushes, 0 while it follows";
    gauge(registry, "node_works", help, works.into());
    let help = "Processes on the store that were heard of in the last minute";
    gauge(registry, "nodes", help, whole(nodes.nodes.len()));
    let help = "Number of the time in which the present worker works";
    gauge(registry, "node_epoch", help, whole(nodes.epoch));
    let lag = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
    let lag_ms = u32::try_from(nodes.wake_lag_ms.unwrap_or_default()).unwrap_or(u32::MAX);
    lag.set(f64::from(lag_ms) / 1000.0);
    let help = "Seconds from the last commit of the worker to its arrival here";
    registry.register("node_wake_lag_seconds", help, lag);
    let help = "Connections to the database in use";
    gauge(
        registry,
        "database_connections",
        help,
        whole(nodes.connections),
    );
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfFeed {
    feed: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfSubscribers {
    feed: String,
    state: &'static str,
}

/// A gauge for every question that a dashboard asks of a feed.
fn gauge_feeds(registry: &mut Registry, feeds: &[FeedStatus]) {
    // `None` for what is not known while the store cannot be read.
    let mut add = |name: &str, help: &str, read: fn(&FeedStatus) -> Option<i64>| {
        let family = Family::<OfFeed, Gauge<i64>>::default();
        for status in feeds {
            if let Some(figure) = read(status) {
                let feed = status.name.clone();
                family.get_or_create(&OfFeed { feed }).set(figure);
            }
        }
        registry.register(name, help, family);
    };
    let help = "Items that are missed and not decided on";
    add("feed_suspects", help, |feed| Some(whole(feed.suspects)));
    let help = "Places where items may be missing";
    add("feed_gaps", help, |feed| Some(whole(feed.gaps.len())));
    let help = "1 while too much is missing at once to believe it";
    add("feed_quarantined", help, |feed| {
        Some(feed.quarantined_since.is_some().into())
    });
    let help = "1 while the publisher redirects for good, or says in its documents that the feed has moved";
    add("feed_moved", help, |feed| {
        Some(feed.moved_to.is_some().into())
    });
    let help = "Unix time of the last good answer; 0 before the first";
    add("feed_last_good_timestamp_seconds", help, |feed| {
        Some(feed.last_good_at.as_deref().map_or(0, unix_secs))
    });
    let help = "Items held, tombstones included";
    add("feed_items", help, |feed| feed.items.map(whole));
    let help = "Bytes of the items held, as they are stored";
    add("feed_item_bytes", help, |feed| {
        feed.items?;
        Some(whole(feed.item_bytes.unwrap_or_default()))
    });
    let help = "Items held that are no tombstones";
    add("feed_live_items", help, |feed| feed.live_items.map(whole));
    let help = "1 once the first good document is in";
    add("feed_served", help, |feed| Some(feed.served.into()));
    let help = "Polls that failed in a row";
    add("feed_failed_polls", help, |feed| Some(feed.failures.into()));
    let help = "Items with an edit that waits for the end of a day";
    add("feed_deferred_edits", help, |feed| {
        Some(whole(feed.deferred_edits))
    });
    let help = "Readers that wait for a change";
    add("feed_waiting_readers", help, |feed| {
        Some(whole(feed.waiters))
    });
    let subscribers = Family::<OfSubscribers, Gauge<i64>>::default();
    for status in feeds {
        let counted = &status.subscribers;
        for (state, count) in [
            ("active", counted.active),
            ("pending", counted.pending),
            ("failing", counted.failing),
        ] {
            let feed = status.name.clone();
            let label = OfSubscribers { feed, state };
            subscribers.get_or_create(&label).set(whole(count));
        }
    }
    let help = "Push subscriptions by state";
    registry.register("feed_subscriptions", help, subscribers);
}

/// Sums over all feeds.
fn gauge_totals(registry: &mut Registry, status: &Status) {
    #[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
    struct OfOwner {
        whose: String,
    }
    #[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
    struct OfVersion {
        version: String,
    }
    let build = Family::<OfVersion, Gauge<i64>>::default();
    let version = status.version.clone();
    build.get_or_create(&OfVersion { version }).set(1);
    registry.register("build_info", "1, with the version", build);
    let feeds = whole(status.feeds_total);
    gauge(registry, "feeds", "Feeds that are configured", feeds);
    let failing = Family::<OfOwner, Gauge<i64>>::default();
    for (whose, count) in &status.failing {
        let whose = whose.clone();
        failing.get_or_create(&OfOwner { whose }).set(whole(*count));
    }
    let help = "Feeds that fail now, by the owner of the fault";
    registry.register("feeds_failing", help, failing);
}

fn unix_secs(moment: &str) -> i64 {
    DateTime::parse_from_rfc3339(moment).map_or(0, |at| at.timestamp())
}

/// Gauges of the configuration. Without a reload, the one that was read at the start counts.
fn gauge_config(registry: &mut Registry, config: &ConfigStatus) {
    let reload = config.reload.as_ref();
    let is_good = reload.is_none_or(|reload| reload.error.is_none());
    let help = "1 unless the last reload was refused";
    gauge(registry, "config_reload_success", help, is_good.into());
    let help = "Unix time at which the configuration in force was read";
    let loaded_at = unix_secs(&config.loaded_at);
    gauge(registry, "config_reload_timestamp_seconds", help, loaded_at);
    let help = "Keys of the configuration that take effect at the next start";
    let waiting = whole(config.waiting_for_restart.len());
    gauge(registry, "config_keys_waiting_for_restart", help, waiting);
}

/// Gauges of the registry of feeds.
fn gauge_registry(registry: &mut Registry, status: &RegistryStatus) {
    let help = "Entries of the registry of feeds";
    gauge(registry, "registry_entries", help, whole(status.entries));
    let help = "Entries of the registry that cannot be read";
    let unread = whole(status.unread.len());
    gauge(registry, "registry_unread_entries", help, unread);
}

/// Gauges of the store.
fn gauge_store(registry: &mut Registry, store: &StoreStatus) {
    let is_up = i64::from(store.fault.is_none());
    gauge(registry, "store_up", "1 while changes can be stored", is_up);
    let help = "Length of the file of the store";
    gauge(registry, "store_bytes", help, whole(store.bytes));
    let faults = Counter::<u64>::default();
    faults.inc_by(store.faults);
    let help = "Faults of the disk or of the file of the store";
    registry.register("store_faults", help, faults);
}

/// Gauges of the connection to a server of XMPP.
fn gauge_xmpp(registry: &mut Registry, xmpp: &XmppStatus) {
    let help = "1 while the stream to the server of XMPP is open";
    gauge(registry, "xmpp_up", help, xmpp.online.into());
    let help = "Subscriptions over XMPP";
    gauge(
        registry,
        "xmpp_subscriptions",
        help,
        whole(xmpp.subscriptions),
    );
    let streams = Counter::<u64>::default();
    streams.inc_by(xmpp.streams);
    let help = "Streams to the server of XMPP that were opened";
    registry.register("xmpp_streams", help, streams);
}

/// Gauges of the certificate that everfeed gets itself.
fn gauge_certificate(registry: &mut Registry, certificate: &CertificateStatus) {
    let end = certificate.expires_at.as_deref().map_or(0, unix_secs);
    let help = "Unix time at which the certificate ends; 0 while there is none";
    gauge(registry, "certificate_expires_timestamp_seconds", help, end);
    let help = "Orders of a certificate that failed in a row";
    let failures = i64::from(certificate.failures);
    gauge(registry, "certificate_failed_orders", help, failures);
}

/// Registers a gauge of one figure.
fn gauge(registry: &mut Registry, name: &str, help: &str, figure: i64) {
    let gauge = Gauge::<i64>::default();
    gauge.set(figure);
    registry.register(name, help, gauge);
}

fn whole<T: TryInto<i64>>(count: T) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::status::ReloadStatus,
        telemetry::{Metrics, exposition},
    };
    use std::{collections::BTreeSet, fmt::Write as _, path::Path};

    const PAGE: &str = "docs/reference/metrics.md";
    const TABLE: &str = "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n";

    /// Every metric, each with a sample: the library prints no metric without one.
    fn every_metric() -> Registry {
        let metrics = Metrics::default();
        metrics.request("atom", 200);
        metrics.poll("stored", 0.1);
        metrics.tombstone("gone");
        metrics.permalink_check("there");
        metrics.push("delivered");
        metrics.push_lag(0.1);
        metrics.verification("confirmed");
        metrics.auth_failure("basic", "wrong");
        metrics.of_site("blog.example".into());
        metrics.xmpp_request("answered");
        metrics.xmpp_push("written");
        metrics.upstream_push("document");
        let feed = FeedStatus {
            name: "blog".into(),
            items: Some(1),
            live_items: Some(1),
            ..FeedStatus::default()
        };
        let status = Status {
            feeds: vec![feed],
            failing: [("upstream".to_owned(), 1)].into(),
            certificate: Some(CertificateStatus::default()),
            xmpp: Some(XmppStatus::default()),
            nodes: Some(NodesStatus::default()),
            ..Status::default()
        };
        let mut registry = metrics.registry();
        register(&mut registry, &status);
        registry
    }

    /// The rows of the page, read off the text that Prometheus gets.
    fn rows() -> String {
        let text = exposition(&every_metric());
        let mut rows = String::new();
        for line in text.lines() {
            let Some((name, meaning)) = line
                .strip_prefix("# HELP ")
                .and_then(|line| line.split_once(' '))
            else {
                continue;
            };
            let kind = text
                .lines()
                .find_map(|line| line.strip_prefix(&format!("# TYPE {name} ")))
                .expect("each has a type");
            // `everfeed_feeds_failing` begins with `everfeed_feeds`, too.
            let is_own = |rest: &&str| {
                let suffix = rest.split(['{', ' ']).next().unwrap_or_default();
                ["", "_total", "_bucket"].contains(&suffix)
            };
            let samples = text.lines().filter_map(|line| line.strip_prefix(name));
            let labels: BTreeSet<&str> = samples
                .filter(is_own)
                .filter_map(|line| Some(line.split_once('{')?.1.split_once('}')?.0))
                .flat_map(|labels| labels.split(','))
                .filter_map(|label| Some(label.split_once('=')?.0))
                .filter(|label| *label != "le")
                .collect();
            let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
            let total = if kind == "counter" { "_total" } else { "" };
            let labels = labels.join(", ");
            let _ = writeln!(rows, "| `{name}{total}` | {kind} | {labels} | {meaning} |");
        }
        rows
    }

    #[test]
    fn the_book_has_every_metric() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
        let held = std::fs::read_to_string(&file).unwrap();
        let (before, behind) = held.split_once(TABLE).expect("the page has the table");
        let end = behind
            .find("\n\n")
            .expect("something stands below the table");
        let rows = rows();
        let page = format!("{before}{TABLE}{}{}", rows.trim_end(), &behind[end..]);
        if std::env::var_os("EVERFEED_WRITE_BOOK").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let held = std::fs::read_to_string(&file).unwrap();
        assert!(
            held == page,
            "{PAGE} is not what the program has. EVERFEED_WRITE_BOOK=1 cargo test --lib app::gauges writes it"
        );
        assert!(rows.lines().count() > 35, "{rows}");
        // The alarms below the table are for metrics that there are.
        let words = behind[end..].split(|sign: char| !sign.is_alphanumeric() && sign != '_');
        for name in words.filter(|word| word.starts_with("everfeed_")) {
            assert!(rows.contains(&format!("| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn metrics_are_gauges_of_the_status() {
        let feed = FeedStatus {
            name: "blog".into(),
            items: Some(7),
            deferred_edits: 2,
            ..FeedStatus::default()
        };
        let status = Status {
            version: "1".into(),
            waiters: 3,
            feeds: vec![feed],
            ..Status::default()
        };
        let mut registry = Metrics::default().registry();
        register(&mut registry, &status);
        let text = exposition(&registry);
        for line in [
            "everfeed_feed_items{feed=\"blog\"} 7",
            "everfeed_feed_deferred_edits{feed=\"blog\"} 2",
            "everfeed_held_requests 3",
            "everfeed_build_info{version=\"1\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }

    #[test]
    fn gauges_tell_whether_the_last_reload_was_taken_in() {
        let text = |error: Option<&str>| {
            let reload = ReloadStatus {
                at: String::new(),
                error: error.map(Into::into),
            };
            let loaded_at = "2026-06-01T00:00:00Z".into();
            let waiting_for_restart = vec!["server.listen".into()];
            let config = ConfigStatus {
                file: None,
                loaded_at,
                reload: Some(reload),
                waiting_for_restart,
            };
            let mut registry = Metrics::default().registry();
            gauge_config(&mut registry, &config);
            exposition(&registry)
        };
        let good = text(None);
        for line in [
            "everfeed_config_reload_success 1",
            "everfeed_config_reload_timestamp_seconds 1780272000",
            "everfeed_config_keys_waiting_for_restart 1",
        ] {
            assert!(good.contains(line), "{line} is not in {good}");
        }
        assert!(text(Some("bad")).contains("everfeed_config_reload_success 0"));
    }
}
