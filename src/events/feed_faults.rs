//! The findings of feeds: which faults have lasted, and which of them are one cause.

use super::{AffectedFeeds, Cause, EventTopic, FaultOwner, Finding};
use crate::feed::{
    schedule::{FaultKind, FaultNote, NoAnswerCause},
    stamp::Stamp,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// Polls that fail in a row before a fault is reported: one alone may be an accident.
pub const LASTING_POLLS: u32 = 2;
/// Hosts that do not answer at once, at least, for the network to be taken for the cause.
const NETWORK_HOSTS_MIN: usize = 10;
/// Findings of one look at most, beside those of open causes; the others are counted.
const FINDINGS_MAX: usize = 400;

/// A feed that fails, or has moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedTrouble {
    /// Its name.
    pub feed: String,
    /// The host that is asked.
    pub host: String,
    /// Polls that failed in a row.
    pub failures: u32,
    /// The fault, while it fails.
    pub fault: Option<FaultNote>,
    /// The address to which it has moved, and since when two polls or more agree on that.
    pub moved: Option<(String, Stamp)>,
}

/// Findings of one look, and the causes that are a part of one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Causes that are a part of one of these: none of them begins, and one that is open does not
    /// end.
    pub absorbed: BTreeSet<Cause>,
    /// The number of causes beyond those of these findings.
    pub more: u32,
}

/// Feeds that fail now and have one cause, for whoever asks how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingFeeds<'a> {
    /// The cause, since when, and what to do; it names the first of the feeds.
    pub finding: Finding,
    /// Names of all of them.
    pub names: Vec<&'a str>,
}

/// Feeds with one cause.
struct FaultyFeeds<'a> {
    /// True where the host fails each of them in a way of its own.
    differ: bool,
    /// Their host; empty for a fault that has nothing to do with it.
    host: &'a str,
    names: Vec<&'a str>,
    /// The fault that has lasted longest.
    first: &'a FaultNote,
}

// Decides: Which faults of feeds are one cause?
/// The findings of these feeds, of so many that are polled. A fault is the host's where a server
/// fails as a whole, and so are equal faults of feeds at one host. Where most feeds at many hosts do
/// not answer, the network is the cause. Of many causes those that are open have a finding, and the
/// first others.
pub fn observed_feeds<'a>(
    troubles: impl IntoIterator<Item = &'a FeedTrouble>,
    polled: usize,
    is_open: impl Fn(&Cause) -> bool,
) -> Observed {
    let mut observed = Observed::default();
    let mut lasting = Vec::new();
    for trouble in troubles {
        if let Some((to, since)) = &trouble.moved {
            let cause = Cause::new(EventTopic::Moved, &format!("{} {to}", trouble.feed));
            observed.add(&is_open, cause, |cause| moved(trouble, cause, to, *since));
        }
        lasting.extend(trouble.lasting_fault().map(|fault| (trouble, fault)));
    }
    let mut causes = by_cause(lasting);
    let network = network(&causes, polled);
    if let Some((finding, absorbed)) = network {
        observed.findings.push(finding);
        causes.retain(|cause, _| !absorbed.contains(cause));
        observed.absorbed = absorbed;
    }
    for (cause, faulty) in causes {
        observed.add(&is_open, cause, |cause| faulty.finding(cause));
    }
    observed
}

/// The feeds that fail at this moment, by the same rules: those with one cause are one, and the most
/// feeds come first. So many causes at most.
pub fn failing_now<'a>(
    troubles: impl IntoIterator<Item = &'a FeedTrouble>,
    polled: usize,
    causes_max: usize,
) -> Vec<FailingFeeds<'a>> {
    let faults = troubles.into_iter();
    let faults = faults.filter_map(|trouble| Some((trouble, trouble.fault.as_ref()?)));
    let mut causes = by_cause(faults);
    let mut failing = Vec::new();
    if let Some((finding, absorbed)) = network(&causes, polled) {
        let silent = absorbed.iter().filter_map(|cause| causes.remove(cause));
        let mut names: Vec<&str> = silent.flat_map(|faulty| faulty.names).collect();
        names.sort_unstable();
        failing.push(FailingFeeds { finding, names });
    }
    let mut found: Vec<_> = causes.into_iter().collect();
    found.sort_by_key(|(_, faulty)| Reverse(faulty.names.len()));
    found.truncate(causes_max.saturating_sub(failing.len()));
    failing.extend(found.into_iter().map(|(cause, mut faulty)| {
        faulty.names.sort_unstable();
        FailingFeeds {
            names: faulty.names.clone(),
            finding: faulty.finding(cause),
        }
    }));
    failing
}

/// The feeds of these faults, by their causes.
fn by_cause<'a>(
    faults: impl IntoIterator<Item = (&'a FeedTrouble, &'a FaultNote)>,
) -> BTreeMap<Cause, FaultyFeeds<'a>> {
    let mut causes: BTreeMap<Cause, FaultyFeeds<'a>> = BTreeMap::new();
    for (trouble, fault) in faults {
        let class = class(trouble, &fault.kind);
        let host = if class == OF_NO_HOST {
            ""
        } else {
            &trouble.host
        };
        let cause = Cause::new(EventTopic::Feeds, &format!("{host} {class}"));
        let faulty = causes.entry(cause).or_insert_with(|| FaultyFeeds {
            host,
            names: Vec::new(),
            first: fault,
            differ: false,
        });
        faulty.differ |= fault.kind.to_string() != faulty.first.kind.to_string();
        faulty.names.push(&trouble.feed);
        if fault.since < faulty.first.since {
            faulty.first = fault;
        }
    }
    causes
}

impl Observed {
    /// Adds a finding, or counts it where there are too many and its cause is not open.
    fn add(
        &mut self,
        is_open: &impl Fn(&Cause) -> bool,
        cause: Cause,
        finding: impl FnOnce(Cause) -> Finding,
    ) {
        if self.findings.len() < FINDINGS_MAX || is_open(&cause) {
            self.findings.push(finding(cause));
        } else {
            self.more = self.more.saturating_add(1);
        }
    }
}

impl FeedTrouble {
    /// The fault, once it has lasted. After 410 nobody asks again, and a quota is certain.
    fn lasting_fault(&self) -> Option<&FaultNote> {
        let fault = self.fault.as_ref()?;
        let is_certain = matches!(
            fault.kind,
            FaultKind::Refused { status: 410, .. } | FaultKind::Quota { .. }
        );
        (is_certain || self.failures >= LASTING_POLLS).then_some(fault)
    }
}

impl FaultyFeeds<'_> {
    /// True where no answer comes at all.
    fn are_silent(&self) -> bool {
        use NoAnswerCause::{Local, Redirect, Tls, TooLarge};
        match self.first.kind {
            FaultKind::NoAnswer { cause, .. } => {
                !matches!(cause, Some(Local | Redirect | Tls | TooLarge))
            }
            _ => false,
        }
    }

    fn finding(self, cause: Cause) -> Finding {
        let FaultNote { kind, since } = self.first;
        let host = self.host;
        let mut feeds = AffectedFeeds::default();
        self.names.iter().for_each(|name| feeds.add(name));
        let title = match (feeds.total, &*feeds.names) {
            (1, [name]) if host.is_empty() => format!("`{name}` fails"),
            (1, [name]) => format!("`{name}` at {host} fails"),
            (total, _) if host.is_empty() => format!("{total} feeds fail"),
            (total, _) => format!("{total} feeds at {host} fail"),
        };
        let text = if self.differ {
            format!("{kind}. Some of them fail in another way; `everfeed explain FEED` says how")
        } else {
            kind.to_string()
        };
        let finding = Finding::new(cause, kind.whose().into(), *since, &title, &text);
        Finding {
            owner: kind.owner().to_owned(),
            feeds,
            ..finding.remedy(kind.remedy())
        }
    }
}

/// The finding of a feed that has moved.
fn moved(trouble: &FeedTrouble, cause: Cause, to: &str, since: Stamp) -> Finding {
    let title = format!("`{}` has moved", trouble.feed);
    let text = format!("the publisher says that the feed is at {to} now");
    let finding = Finding::new(cause, FaultOwner::Nobody, since, &title, &text);
    Finding {
        feeds: AffectedFeeds::one(&trouble.feed),
        ..finding
            .remedy("give that address as `url` of the feed; everfeed asks there by itself once the publisher has said so for 7 days")
            .notice()
    }
}

/// The class of a fault: equal ones at one host have one cause.
fn class(trouble: &FeedTrouble, kind: &FaultKind) -> String {
    match kind {
        FaultKind::Refused {
            status: status @ ..500,
            ..
        } => format!("status {status}"),
        FaultKind::Refused { .. } => DOWN.to_owned(),
        FaultKind::NoAnswer { cause, .. } => match cause {
            Some(NoAnswerCause::Tls) => "tls".to_owned(),
            Some(NoAnswerCause::Redirect) => "redirect".to_owned(),
            Some(NoAnswerCause::TooLarge) => "too large".to_owned(),
            Some(NoAnswerCause::Local) => OF_NO_HOST.to_owned(),
            _ => DOWN.to_owned(),
        },
        // After the relaunch of a site each of its pages has its own title.
        FaultKind::NotAFeed { kind, .. } => format!("no feed: {kind:?}"),
        FaultKind::WebPage { .. } => "web page".to_owned(),
        FaultKind::DifferentFeed { .. } => "another feed".to_owned(),
        FaultKind::SaysMoved { .. } => "says moved".to_owned(),
        FaultKind::BotWall { vendor, .. } => format!("wall: {vendor}"),
        FaultKind::LeadsBack => "leads back".to_owned(),
        // These are of one feed alone.
        FaultKind::Unrecognised { .. } => format!("unrecognised {}", trouble.feed),
        FaultKind::Quota { .. } => format!("quota {}", trouble.feed),
        FaultKind::StoreAway { .. } | FaultKind::Internal { .. } => OF_NO_HOST.to_owned(),
    }
}

/// Class of the faults of a server that does not answer, or answers that it cannot.
const DOWN: &str = "down";
/// Class of the faults that have nothing to do with a host.
const OF_NO_HOST: &str = "internal";

/// The finding that the network is the cause, and the causes that are a part of it.
fn network(
    causes: &BTreeMap<Cause, FaultyFeeds<'_>>,
    polled: usize,
) -> Option<(Finding, BTreeSet<Cause>)> {
    let silent: Vec<_> = causes
        .iter()
        .filter(|(_, faulty)| faulty.are_silent())
        .collect();
    let mut feeds = AffectedFeeds::default();
    for (_, faulty) in &silent {
        faulty.names.iter().for_each(|name| feeds.add(name));
    }
    if silent.len() < NETWORK_HOSTS_MIN || (feeds.total as usize) * 2 < polled {
        return None;
    }
    let first = silent.iter().map(|(_, faulty)| faulty.first);
    let first = first.min_by_key(|first| first.since)?;
    let title = format!("{} hosts do not answer", silent.len());
    let text = format!(
        "{} of {polled} feeds at {} hosts do not answer; for instance: {}",
        feeds.total,
        silent.len(),
        first.kind
    );
    let cause = Cause::new(EventTopic::Network, "");
    let finding = Finding::new(cause, FaultOwner::Network, first.since, &title, &text);
    let finding = finding.remedy(
        "check the network and the name servers of this machine: that so many hosts fail at once is hardly theirs",
    );
    let absorbed = silent.iter().map(|(cause, _)| (*cause).clone()).collect();
    Some((Finding { feeds, ..finding }, absorbed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::schedule::Whose;

    const AT: Stamp = Stamp::from_secs(1_000_000);

    fn trouble(feed: &str, host: &str, failures: u32, kind: FaultKind) -> FeedTrouble {
        FeedTrouble {
            feed: feed.into(),
            host: host.into(),
            failures,
            fault: Some(FaultNote { kind, since: AT }),
            moved: None,
        }
    }

    fn refused(status: u16) -> FaultKind {
        FaultKind::Refused {
            status,
            has_credentials: false,
        }
    }

    fn silent() -> FaultKind {
        FaultKind::NoAnswer {
            whose: Whose::Upstream,
            reason: "nobody answers".into(),
            cause: Some(NoAnswerCause::Connect),
        }
    }

    /// Titles of the findings.
    fn check(troubles: &[FeedTrouble], polled: usize, expect: &[&str]) {
        let observed = observed_feeds(troubles, polled, |_| false);
        let titles: Vec<&str> = observed.findings.iter().map(|one| &*one.title).collect();
        assert_eq!(titles, expect);
    }

    #[test]
    fn a_fault_lasts_from_the_second_failed_poll_on() {
        check(&[trouble("a", "h", 1, refused(500))], 9, &[]);
        check(
            &[trouble("a", "h", 2, refused(500))],
            9,
            &["`a` at h fails"],
        );
        // Nobody asks for a second one.
        check(
            &[trouble("a", "h", 1, refused(410))],
            9,
            &["`a` at h fails"],
        );
    }

    #[test]
    fn forty_feeds_of_a_host_are_one_cause_and_so_are_the_ways_in_which_a_server_is_down() {
        let kinds = [refused(500), refused(503), silent()];
        let all: Vec<FeedTrouble> = (0..40)
            .map(|no| trouble(&format!("f{no}"), "h", 2, kinds[no % 3].clone()))
            .collect();
        check(&all, 90, &["40 feeds at h fail"]);
        let observed = observed_feeds(&all, 90, |_| false);
        let feeds = &observed.findings[0].feeds;
        assert_eq!((feeds.total, feeds.names.len()), (40, FEEDS_NAMED));
        assert!(
            feeds.words().ends_with("f9 and 30 more"),
            "{}",
            feeds.words()
        );
    }

    // Each page has a title of its own, and names feeds of its own.
    #[test]
    fn a_site_that_begins_anew_is_one_cause_whatever_its_pages_are_called() {
        let page = |no: usize| FaultKind::WebPage {
            reason: format!("the document is a web page, \"Page {no}\""),
            feeds: vec![format!("http://h/{no}/feed")],
            was_feed: true,
        };
        let mut all: Vec<FeedTrouble> = (0..40)
            .map(|no| trouble(&format!("f{no}"), "h", 2, page(no)))
            .collect();
        all.push(trouble("z", "i", 2, page(0)));
        check(&all, 90, &["40 feeds at h fail", "`z` at i fails"]);
    }

    const FEEDS_NAMED: usize = crate::events::FEEDS_NAMED_MAX;

    #[test]
    fn feeds_that_fail_now_are_told_by_cause_with_all_their_names() {
        let mut all: Vec<FeedTrouble> = (0..40)
            .map(|no| trouble(&format!("f{no:02}"), "h", 1, refused(500)))
            .collect();
        all.insert(0, trouble("z", "a", 1, refused(404)));
        all.push(FeedTrouble {
            fault: None,
            ..trouble("well", "h", 0, silent())
        });
        let failing = failing_now(&all, 90, 9);
        let told = |failing: &[FailingFeeds<'_>]| {
            let told = failing
                .iter()
                .map(|one| (one.finding.title.clone(), one.names.len()));
            told.collect::<Vec<_>>()
        };
        assert_eq!(
            told(&failing),
            [
                ("40 feeds at h fail".into(), 40),
                ("`z` at a fails".into(), 1)
            ]
        );
        assert!(failing[0].names.is_sorted());
        assert_eq!(told(&failing_now(&all, 90, 1)), told(&failing)[..1]);
        let all: Vec<FeedTrouble> = (0..12)
            .map(|no| trouble(&format!("f{no:02}"), &format!("h{no}"), 1, silent()))
            .collect();
        assert_eq!(
            told(&failing_now(&all, 20, 9)),
            [("12 hosts do not answer".into(), 12)]
        );
    }

    #[test]
    fn faults_of_another_kind_and_of_other_hosts_are_causes_of_their_own() {
        let all = [
            trouble("a", "h", 2, refused(500)),
            trouble("b", "h", 2, refused(404)),
            trouble("c", "h", 3, refused(404)),
            trouble("d", "i", 3, refused(404)),
        ];
        let expect = ["`a` at h fails", "2 feeds at h fail", "`d` at i fails"];
        check(&all, 9, &expect);
    }

    #[test]
    fn most_hosts_at_once_are_the_network() {
        let all: Vec<FeedTrouble> = (0..12)
            .map(|no| trouble(&format!("f{no}"), &format!("h{no}"), 2, silent()))
            .collect();
        check(&all, 20, &["12 hosts do not answer"]);
        let observed = observed_feeds(&all, 20, |_| false);
        assert_eq!(observed.absorbed.len(), 12);
        assert_eq!(observed.findings[0].whose, FaultOwner::Network);
        // A few of many are each a fault of their own.
        assert_eq!(observed_feeds(&all, 100, |_| false).findings.len(), 12);
        // Servers that answer that they cannot are there.
        let all: Vec<FeedTrouble> = (0..12)
            .map(|no| trouble("f", &format!("h{no}"), 2, refused(503)))
            .collect();
        assert_eq!(observed_feeds(&all, 12, |_| false).findings.len(), 12);
    }

    #[test]
    fn of_very_many_causes_the_open_ones_are_found_and_the_others_counted() {
        let all: Vec<FeedTrouble> = (0..5000)
            .map(|no| trouble("f", &format!("h{no:04}"), 2, refused(500)))
            .collect();
        let last = Cause::new(EventTopic::Feeds, "h4999 down");
        let observed = observed_feeds(&all, 100_000, |cause| *cause == last);
        assert_eq!(observed.findings.len(), FINDINGS_MAX + 1);
        assert_eq!(observed.findings.last().unwrap().cause, last);
        assert_eq!(observed.more as usize, 5000 - FINDINGS_MAX - 1);
    }

    #[test]
    fn a_feed_that_has_moved_is_a_notice_with_its_address() {
        let moved = FeedTrouble {
            fault: None,
            moved: Some(("http://new.example/feed".into(), AT)),
            ..trouble("a", "h", 0, silent())
        };
        let finding = &observed_feeds([&moved], 1, |_| false).findings[0];
        assert!(finding.text.contains("http://new.example/feed"));
        assert_eq!(finding.severity, crate::events::Severity::Notice);
    }

    #[test]
    fn words_of_others_are_one_line_and_cut() {
        let long = "x".repeat(1 << 20);
        let kind = FaultKind::NotAFeed {
            reason: format!("<b>\u{202e}\n{long}"),
            kind: None,
        };
        let finding = &observed_feeds(&[trouble(&long, "h", 2, kind)], 1, |_| false).findings[0];
        for text in [&finding.text, &finding.title, &finding.feeds.names[0]] {
            assert!(text.chars().count() < 1000 && !text.contains(['\n', '\u{202e}']));
        }
    }
}
