//! What the watch looks at beside feeds: subscribers, reloads, sites, the store, its disk, the
//! certificate, XMPP and the alerts themselves. Each is a finding while it lasts.

use super::{FaultWatch, Watching};
use crate::{
    edge::tls::certificate_end,
    events::{AffectedFeeds, Cause, Event, EventTopic, FaultOwner, Finding},
    feed::{
        schedule::{FaultKind, FaultNote},
        stamp::Stamp,
    },
    serve::sites::sitemap::OriginSitemap,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Seconds for which a subscriber has to fail to be reported: each has retries of its own before.
const SUBSCRIBER_SECS: u64 = 600;
/// Subscribers of one feed at most that are looked at.
const SUBSCRIBERS_MAX: usize = 1000;
/// Seconds for which the store has to be away: a database that starts again is no news.
const STORE_SECS: u64 = 10;
/// Seconds for which the feeds of a site cannot be looked for: a second look fails by then.
const SITE_SECS: u64 = 20;
/// Seconds for which the server of XMPP has to be away.
const XMPP_SECS: u64 = 60;
/// Days before the end of a certificate at which it is reported.
const CERTIFICATE_DAYS: u64 = 14;
/// Orders of a certificate that fail in a row before that is reported.
const ORDERS_FAILED: u32 = 2;
/// Part of a disk that should be free, and the bytes that are enough on a large one.
const FREE_PART: u64 = 20;
const FREE_BYTES_ENOUGH: u64 = 1 << 30;
const DAY_SECS: u64 = 86_400;

/// The parts of this machine that are looked at now and then.
pub(super) struct Machine {
    pub(super) store_folder: Option<PathBuf>,
    pub(super) certificate_file: Option<PathBuf>,
}

/// What was seen of them.
#[derive(Clone, Debug, Default)]
pub(super) struct MachineReadings {
    /// Free bytes of the disk of the store, and all of them.
    disk: Option<(u64, u64)>,
    /// The end of the certificate of a file, Unix seconds.
    certificate_end: Option<u64>,
}

impl Machine {
    /// Looks at them, beside the runtime: a disk may take its time.
    pub(super) async fn look(self) -> MachineReadings {
        let look = move || MachineReadings {
            disk: self.store_folder.as_deref().and_then(disk),
            certificate_end: self.certificate_file.as_deref().and_then(certificate_end),
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }
}

/// Free bytes of the disk of a folder, and all of them.
fn disk(folder: &Path) -> Option<(u64, u64)> {
    let seen = rustix::fs::statvfs(folder).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(seen.f_frsize);
    Some((bytes(seen.f_bavail), bytes(seen.f_blocks)))
}

/// Keys of the restores among these events.
pub(super) fn restores(events: &[Event]) -> BTreeSet<String> {
    let restores = events
        .iter()
        .filter(|event| event.cause.topic == EventTopic::Restore);
    restores.map(|event| event.cause.key.clone()).collect()
}

impl FaultWatch {
    /// The restore of the store, if there was one lately.
    pub(super) fn restore(&self, now: Stamp) -> Option<Finding> {
        let words = self.log.store.restored()?;
        let cause = Cause::new(EventTopic::Restore, &words);
        let title = "The store was restored from a copy";
        let finding = Finding::new(cause, FaultOwner::Nobody, now, title, &words);
        Some(
            finding
                .remedy("nothing: mirrors read each feed again by themselves")
                .notice(),
        )
    }

    /// What is wrong now beside feeds.
    pub(super) fn findings(&self, watching: &Watching, now: Stamp) -> Vec<Finding> {
        let mut findings = self.subscribers(now);
        findings.extend(self.sites(now));
        findings.extend(self.reload(now));
        findings.extend(self.store(now));
        findings.extend(self.xmpp(now));
        findings.extend(self.order(now));
        let MachineReadings {
            disk,
            certificate_end,
        } = watching.machine.clone();
        let end = certificate_end.or_else(|| self.certificate.as_ref()?.state().expires_at);
        findings.extend(end.and_then(|end| certificate(end, now)));
        let is_low = watching.journal.is_open(&Cause::new(EventTopic::Disk, ""));
        findings.extend(disk.and_then(|(free, all)| low_disk(free, all, is_low, now)));
        findings.extend(watching.alerts.findings());
        findings.extend(self.search_engines.findings(now));
        findings.extend(self.lists.findings());
        findings.extend(self.origin_sitemaps());
        findings
    }

    /// The roots of the sites that have a sitemap of everfeed, unless their old servers have one.
    fn sitemap_roots(&self) -> Vec<String> {
        let catalog = self.catalog.snapshot();
        let sites = catalog.sites().iter().map(|site| &site.settings);
        let with_sitemap = sites.filter(|site| site.sitemap);
        with_sitemap
            .map(|site| site.public_root(&self.public_url).to_string())
            .collect()
    }

    /// Sites whose old servers have a sitemap of their own.
    fn origin_sitemaps(&self) -> impl Iterator<Item = Finding> {
        self.sitemap_roots().into_iter().filter_map(|root| {
            let seen = self.origin_sitemaps.of(&root);
            let Some(OriginSitemap::Present(since, status)) = seen else {
                return None;
            };
            let title = format!("{root} has a sitemap of its own");
            let text = format!(
                "the old server answers {status} at /sitemap.xml, and its answer is passed on unchanged"
            );
            let cause = sitemap_cause(&root);
            let finding = Finding::new(cause, FaultOwner::Nobody, since, &title, &text);
            let remedy = "nothing, or `sitemap = false` for the [[site]]";
            Some(finding.remedy(remedy).notice())
        })
    }

    /// The causes of sitemaps of old servers that were not asked since the start.
    pub(super) fn unasked_sitemaps(&self) -> impl Iterator<Item = Cause> {
        let roots = self.sitemap_roots().into_iter();
        roots
            .filter(|root| self.origin_sitemaps.of(root).is_none())
            .map(|root| sitemap_cause(&root))
    }

    /// Subscribers that take no pushes, by the host of their callbacks.
    fn subscribers(&self, now: Stamp) -> Vec<Finding> {
        let catalog = self.catalog.snapshot();
        let mut hosts: BTreeMap<String, (Stamp, String, AffectedFeeds)> = BTreeMap::new();
        for (feed, failing) in self.hub.failing(SUBSCRIBERS_MAX) {
            let Some(feed) = catalog.feed_no(feed) else {
                continue;
            };
            let is_dead = |since: Stamp| now.secs_since(since) >= SUBSCRIBER_SECS;
            let mut of_feed = BTreeSet::new();
            for one in failing.into_iter().filter(|one| is_dead(one.since)) {
                let host = hosts.entry(one.host.clone());
                let (since, why, feeds) =
                    host.or_insert_with(|| (one.since, one.why.clone(), AffectedFeeds::default()));
                if one.since < *since {
                    (*since, *why) = (one.since, one.why);
                }
                if of_feed.insert(one.host) {
                    feeds.add(&feed.settings.name);
                }
            }
        }
        let finding = |(host, (since, why, feeds)): (String, (Stamp, String, AffectedFeeds))| {
            let cause = Cause::new(EventTopic::Subscribers, &host);
            let title = format!("Subscribers at {host} take no pushes");
            let finding = Finding::new(cause, FaultOwner::Subscriber, since, &title, &why);
            let remedy = format!(
                "nothing: pushes are tried again until the lease ends. `everfeed subscribers list --host {host}` lists them; if nobody reads there any more, `everfeed subscribers forget {host}` ends them"
            );
            Finding {
                feeds,
                ..finding.remedy(&remedy).notice()
            }
        };
        hosts.into_iter().map(finding).collect()
    }

    /// Sites whose feeds cannot be looked for.
    fn sites(&self, now: Stamp) -> Vec<Finding> {
        let finding = |(origin, FaultNote { kind, since }): (String, FaultNote)| {
            let cause = Cause::new(EventTopic::Site, &origin);
            let title = format!("The feeds of {origin} cannot be looked for");
            let text = kind.to_string();
            let finding = Finding::new(cause, kind.whose().into(), since, &title, &text);
            Finding {
                owner: FaultKind::owner(&kind).to_owned(),
                ..finding.remedy("check `origin` of the [[site]]; everfeed goes on asking")
            }
        };
        let all = self.site_faults.all().into_iter();
        let lasting = all.filter(|(_, note)| now.secs_since(note.since) >= SITE_SECS);
        lasting.map(finding).collect()
    }

    /// A reload that was refused.
    fn reload(&self, now: Stamp) -> Option<Finding> {
        let reload = self.reloader.status().reload?;
        let why = reload.error?;
        let cause = Cause::new(EventTopic::Reload, "");
        let title = "A reload was refused";
        let finding = Finding::new(cause, FaultOwner::Configuration, now, title, &why);
        Some(finding.remedy(
            "correct the file and reload again; `everfeed check` lists its mistakes. The configuration before it is in force",
        ))
    }

    /// A store in which nothing can be stored.
    fn store(&self, now: Stamp) -> Option<Finding> {
        let condition = self.log.store.condition();
        let outage = condition.outage()?;
        if now.secs_since(outage.since) < STORE_SECS {
            return None;
        }
        let (cause, title) = (
            Cause::new(EventTopic::Store, ""),
            "Nothing can be stored, and nothing is polled",
        );
        let finding = Finding::new(
            cause,
            FaultOwner::Machine,
            outage.since,
            title,
            &outage.cause,
        );
        Some(
            finding
                .remedy("see to the disk or the database of the store; everfeed goes on by itself"),
        )
    }

    /// A server of XMPP that cannot be reached.
    fn xmpp(&self, now: Stamp) -> Option<Finding> {
        let component = self.xmpp.as_ref()?;
        let state = component.state();
        if state.is_online || now.secs_since(state.since) < XMPP_SECS {
            return None;
        }
        let cause = Cause::new(EventTopic::Xmpp, component.jid());
        let title = format!("{} is not connected to its server of XMPP", component.jid());
        let why = state
            .fault
            .unwrap_or_else(|| "there is no connection".to_owned());
        let finding = Finding::new(cause, FaultOwner::Service, state.since, &title, &why);
        Some(finding.remedy("check [xmpp] and the server; everfeed goes on trying"))
    }

    /// A certificate that everfeed does not get.
    fn order(&self, now: Stamp) -> Option<Finding> {
        let state = self.certificate.as_ref()?.state();
        let fault = state.fault.filter(|_| state.failures >= ORDERS_FAILED)?;
        let cause = Cause::new(EventTopic::Certificate, "order");
        let title = format!("{} gives no certificate", state.authority);
        let finding = Finding::new(cause, FaultOwner::Service, now, &title, &fault.to_string());
        Some(finding.remedy("`everfeed status` tells the next try; check the names, and that the authority reaches them"))
    }
}

fn sitemap_cause(root: &str) -> Cause {
    Cause::new(EventTopic::SearchEngines, &format!("sitemap {root}"))
}

/// The finding of a certificate that ends soon, or has ended.
fn certificate(end: u64, now: Stamp) -> Option<Finding> {
    if end > now.secs() + CERTIFICATE_DAYS * DAY_SECS {
        return None;
    }
    let shown = Stamp::from_secs(end).rfc3339();
    let words = if end <= now.secs() {
        "has ended"
    } else {
        "is about to end"
    };
    let cause = Cause::new(EventTopic::Certificate, "end");
    let title = format!("The certificate of HTTPS {words}");
    let text = format!("its end is {shown}");
    let finding = Finding::new(cause, FaultOwner::Configuration, now, &title, &text);
    Some(finding.remedy(
        "put a new certificate in the place of the files of server.tls: it is taken up by itself. With server.tls.acme, see why none is given",
    ))
}

/// The finding of a disk that is about to be full. Once it is reported, a quarter more has to be free
/// for its end.
fn low_disk(free: u64, all: u64, is_low: bool, now: Stamp) -> Option<Finding> {
    let enough = (all / FREE_PART).min(FREE_BYTES_ENOUGH);
    let enough = if is_low { enough + enough / 4 } else { enough };
    if free >= enough {
        return None;
    }
    let cause = Cause::new(EventTopic::Disk, "");
    let title = "The disk of the store is about to be full";
    let text = format!("{} MiB of {} MiB are free", free >> 20, all >> 20);
    let finding = Finding::new(cause, FaultOwner::Machine, now, title, &text);
    Some(finding.remedy(
        "make room on the disk, or bring the store to a larger one. Nothing is lost when it is full, but nothing is stored",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Stamp = Stamp::from_secs(1_795_824_000);

    #[test]
    fn a_certificate_is_reported_two_weeks_before_its_end() {
        let told = |end: u64| certificate(end, NOW).map(|finding| finding.title);
        let day = |days: u64| NOW.secs() + days * DAY_SECS;
        assert_eq!(told(day(15)), None);
        assert!(told(day(13)).unwrap().ends_with("is about to end"));
        assert!(told(NOW.secs()).unwrap().ends_with("has ended"));
    }

    #[test]
    fn a_disk_is_reported_when_little_is_free_and_has_to_have_more_for_the_end() {
        const GIB: u64 = 1 << 30;
        let is_told = |free: u64, all: u64, is_low| low_disk(free, all, is_low, NOW).is_some();
        assert!(!is_told(GIB, 100 * GIB, false) && is_told(GIB - 1, 100 * GIB, false));
        assert!(is_told(GIB, 100 * GIB, true) && !is_told(2 * GIB, 100 * GIB, true));
        assert!(!is_told(GIB / 2, 4 * GIB, false) && is_told(GIB / 8, 4 * GIB, false));
    }

    #[test]
    fn the_disk_of_a_folder_is_read() {
        let (free, all) = disk(Path::new("/")).unwrap();
        assert!(free <= all && all > 0);
        assert_eq!(disk(Path::new("/not/there")), None);
    }
}
