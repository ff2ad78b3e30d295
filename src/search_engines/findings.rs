//! The faults of `IndexNow` as findings for the operator; not what is sent.

use super::{AnnouncedSite, SearchEngines};
use crate::{
    events::{Cause, EventTopic, FaultOwner, Finding},
    feed::{
        index_now::{IndexNowFault, IndexNowFaultKind},
        stamp::Stamp,
    },
};

/// Seconds for which an engine has to take nothing to be reported: it is asked again before.
const FAILING_SECS: u64 = 3600;

impl SearchEngines {
    /// The faults of now.
    pub fn findings(&self, now: Stamp) -> Vec<Finding> {
        let engine = self.0.parts.config.indexnow_url.host_str();
        let engine = engine.unwrap_or_default();
        let faults = self.told().into_iter().filter_map(|(site, state)| {
            let fault = state?.fault?;
            finding(&site, &fault, engine, now)
        });
        faults.collect()
    }

    /// The causes of which nothing is known yet: the states of their sites were not read.
    pub fn untried(&self) -> impl Iterator<Item = Cause> {
        let told = self.told().into_iter();
        told.filter(|(_, state)| state.is_none())
            .map(|(site, _)| cause(&site))
    }
}

fn cause(site: &AnnouncedSite) -> Cause {
    Cause::new(
        EventTopic::SearchEngines,
        &format!("indexnow {}", site.root),
    )
}

/// The finding of a fault; `None` for one that has not lasted.
fn finding(
    site: &AnnouncedSite,
    fault: &IndexNowFault,
    engine: &str,
    now: Stamp,
) -> Option<Finding> {
    let root = &site.root;
    let (whose, title, remedy) = match fault.kind {
        IndexNowFaultKind::Failing if now.secs_since(fault.since) < FAILING_SECS => return None,
        IndexNowFaultKind::Failing => (
            FaultOwner::Service,
            format!("{engine} takes no URLs of {root}"),
            "nothing: the URLs are sent again. If it lasts, check `search_engines.indexnow_url`",
        ),
        IndexNowFaultKind::KeyUnread => (
            FaultOwner::Configuration,
            format!("Search engines cannot read the key file of {root}"),
            "see that the host leads to everfeed, and that no server in front answers for *.txt itself. everfeed goes on trying",
        ),
        IndexNowFaultKind::Refused => (
            FaultOwner::Configuration,
            format!("{engine} refused URLs of {root}"),
            "see that `host` of the [[site]] is the host of these URLs, and that its key file can be read from the internet. \
             These URLs are not sent again, and later ones are",
        ),
        IndexNowFaultKind::Forbidden => (
            FaultOwner::Configuration,
            format!("{engine} does not take the key of {root}"),
            "nothing is sent until everfeed starts again. See that the key file can be read from the internet, then restart. \
             If it is refused again, start once with `indexnow = false`: the site gets a new key",
        ),
    };
    let finding = Finding::new(cause(site), whose, fault.since, &title, &fault.why);
    let finding = finding.remedy(remedy);
    Some(if fault.kind == IndexNowFaultKind::Refused {
        finding.notice()
    } else {
        finding
    })
}
