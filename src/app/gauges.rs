//! Gauges for Prometheus, read off the status; the counters are in `telemetry`.

use super::status::{CertificateStatus, ConfigStatus, FeedStatus, Status, StoreStatus};
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
    gauge_store(registry, &status.store);
    if let Some(certificate) = &status.certificate {
        gauge_certificate(registry, certificate);
    }
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
    /// `None` for what is not known while the store cannot be read.
    type ReadFigure = fn(&FeedStatus) -> Option<i64>;
    let gauges: [(&str, &str, ReadFigure); 12] = [
        (
            "feed_suspects",
            "Items that are missed and not decided on",
            |feed| Some(whole(feed.suspects)),
        ),
        ("feed_gaps", "Places where items may be missing", |feed| {
            Some(whole(feed.gaps.len()))
        }),
        (
            "feed_quarantined",
            "1 while too much is missing at once to believe it",
            |feed| Some(i64::from(feed.quarantined_since.is_some())),
        ),
        (
            "feed_moved",
            "1 while the publisher redirects for good",
            |feed| Some(i64::from(feed.moved_to.is_some())),
        ),
        (
            "feed_last_good_timestamp_seconds",
            "Unix time of the last good answer; 0 before the first",
            |feed| Some(feed.last_good_at.as_deref().map_or(0, unix_secs)),
        ),
        ("feed_items", "Items held, tombstones included", |feed| {
            feed.items.map(whole)
        }),
        (
            "feed_item_bytes",
            "Bytes of the items held, as they are stored",
            |feed| {
                feed.items
                    .map(|_| whole(feed.item_bytes.unwrap_or_default()))
            },
        ),
        (
            "feed_live_items",
            "Items held that are no tombstones",
            |feed| feed.live_items.map(whole),
        ),
        (
            "feed_served",
            "1 once the first good document is in",
            |feed| Some(i64::from(feed.served)),
        ),
        ("feed_failed_polls", "Polls that failed in a row", |feed| {
            Some(i64::from(feed.failures))
        }),
        (
            "feed_deferred_edits",
            "Items with an edit that waits for the end of a day",
            |feed| Some(whole(feed.deferred_edits)),
        ),
        (
            "feed_waiting_readers",
            "Readers that wait for a change",
            |feed| Some(whole(feed.waiters)),
        ),
    ];
    for (name, help, read) in gauges {
        let family = Family::<OfFeed, Gauge<i64>>::default();
        for feed in feeds {
            if let Some(figure) = read(feed) {
                family
                    .get_or_create(&OfFeed {
                        feed: feed.name.clone(),
                    })
                    .set(figure);
            }
        }
        registry.register(name, help, family);
    }
    let subscribers = Family::<OfSubscribers, Gauge<i64>>::default();
    for feed in feeds {
        let counted = &feed.subscribers;
        for (state, count) in [
            ("active", counted.active),
            ("pending", counted.pending),
            ("failing", counted.failing),
        ] {
            subscribers
                .get_or_create(&OfSubscribers {
                    feed: feed.name.clone(),
                    state,
                })
                .set(whole(count));
        }
    }
    registry.register(
        "feed_subscriptions",
        "Push subscriptions by state",
        subscribers,
    );
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
    build
        .get_or_create(&OfVersion {
            version: status.version.clone(),
        })
        .set(1);
    registry.register("build_info", "1, with the version", build);
    let feeds = whole(status.totals.feeds_total);
    gauge(registry, "feeds", "Feeds that are configured", feeds);
    let failing = Family::<OfOwner, Gauge<i64>>::default();
    for (whose, count) in &status.totals.failing {
        failing
            .get_or_create(&OfOwner {
                whose: whose.clone(),
            })
            .set(whole(*count));
    }
    registry.register(
        "feeds_failing",
        "Feeds that fail now, by the owner of the fault",
        failing,
    );
}

fn unix_secs(moment: &str) -> i64 {
    DateTime::parse_from_rfc3339(moment).map_or(0, |at| at.timestamp())
}

/// Gauges of the configuration. Without a reload, the one that was read at the start counts.
fn gauge_config(registry: &mut Registry, config: &ConfigStatus) {
    let is_good = config
        .reload
        .as_ref()
        .is_none_or(|reload| reload.error.is_none());
    gauge(
        registry,
        "config_reload_success",
        "1 unless the last reload was refused",
        i64::from(is_good),
    );
    let help = "Unix time at which the configuration in force was read";
    let loaded_at = unix_secs(&config.loaded_at);
    gauge(registry, "config_reload_timestamp_seconds", help, loaded_at);
    let help = "Keys of the configuration that take effect at the next start";
    let waiting = whole(config.waiting_for_restart.len());
    gauge(registry, "config_keys_waiting_for_restart", help, waiting);
}

/// Gauges of the store.
fn gauge_store(registry: &mut Registry, store: &StoreStatus) {
    let is_up = i64::from(store.fault.is_none());
    gauge(registry, "store_up", "1 while changes can be stored", is_up);
    let help = "Length of the file of the store";
    gauge(registry, "store_bytes", help, whole(store.bytes));
    let faults = Counter::<u64>::default();
    faults.inc_by(store.faults);
    registry.register(
        "store_faults",
        "Faults of the disk or of the file of the store",
        faults,
    );
}

/// Gauges of the certificate that everfeed gets itself.
fn gauge_certificate(registry: &mut Registry, certificate: &CertificateStatus) {
    let expires = certificate.expires_at.as_deref().map_or(0, unix_secs);
    let help = "Unix time at which the certificate ends; 0 while there is none";
    gauge(
        registry,
        "certificate_expires_timestamp_seconds",
        help,
        expires,
    );
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
