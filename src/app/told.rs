//! The state of the application in sentences: everything that is broken, and everything else that its
//! operator should know. The command line and the pages of the operator say the same.

use super::{
    moments::from_now,
    registry::{ShadowedEntry, UnreadEntry},
    status::{
        CauseStatus, CertificateStatus, FaultStatus, FeedStatus, OpmlStatus, Status, WaitStatus,
    },
};
use crate::store::{NodeStatus, NodesStatus};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Sentences about a state. Moments of the distant past and future may stand in them as RFC 3339 has
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Everything that is broken.
    pub broken: Vec<BrokenLine>,
    /// Everything else that the operator should know.
    pub notes: Vec<String>,
}

/// A sentence about something that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLine {
    /// The sentence.
    pub text: String,
    /// The owner of the fault, in words that follow "the fault is"; `None` where it is everfeed, its
    /// configuration or its surroundings.
    pub owner: Option<String>,
}

impl BrokenLine {
    fn ours(text: String) -> Self {
        Self { text, owner: None }
    }

    fn of(fault: &FaultStatus, text: String) -> Self {
        Self {
            text,
            owner: Some(fault.owner.clone()),
        }
    }
}

impl Told {
    /// The sentences about all pages of a status. The texts of others are in them as they are.
    pub fn of(pages: &[Status], now: DateTime<Utc>) -> Self {
        let none = Status::default();
        let first = pages.first().unwrap_or(&none);
        let feeds: Vec<&FeedStatus> = pages.iter().flat_map(|page| &page.feeds).collect();
        let mut broken = Vec::new();
        if let Some(fault) = &first.store.fault {
            broken.push(BrokenLine::ours(format!("store: {fault}")));
        }
        if let Some(fault) = &first.worker_fault {
            broken.push(BrokenLine::ours(format!(
                "nodes: the one that polls and pushes told nothing of the feeds: {fault}"
            )));
        }
        if let Some(fault) = &first.store.removals_unwritten {
            broken.push(BrokenLine::ours(format!("store: {fault}")));
        }
        let reload = first.config.reload.as_ref();
        if let Some(error) = reload.and_then(|reload| reload.error.as_ref()) {
            broken.push(BrokenLine::ours(format!(
                "configuration: the last reload was refused: {error}"
            )));
        }
        for site in &first.site_faults {
            let (origin, told) = (&site.origin, fault(&site.fault, "", now));
            let text = format!("site {origin}: everfeed could not look for its feeds: {told}");
            broken.push(BrokenLine::of(&site.fault, text));
        }
        for list in &first.lists {
            if let Some(found) = &list.fault {
                let told = fault(found, &format!(", reads: {}", list.failures), now);
                let text = format!("list {}: nothing is changed: {told}", list.name);
                broken.push(BrokenLine::of(found, text));
            }
        }
        let (faults, engine_notes): (Vec<&CauseStatus>, Vec<_>) = first
            .search_engines
            .iter()
            .partition(|cause| cause.severity != "notice");
        broken.extend(faults.into_iter().map(|cause| BrokenLine {
            text: of_search_engine(cause, now),
            owner: Some(cause.owner.clone()),
        }));
        broken.extend(failing_feeds(&first.causes, &feeds, now));
        if let Some(xmpp) = &first.xmpp
            && let Some(fault) = &xmpp.fault
        {
            let since = when(Some(&xmpp.since), now).unwrap_or_default();
            let jid = &xmpp.jid;
            broken.push(BrokenLine::ours(format!(
                "XMPP as {jid}: {fault} (off since {since})"
            )));
        }
        let mut notes = Vec::new();
        let told = engine_notes.into_iter();
        notes.extend(told.map(|cause| of_search_engine(cause, now)));
        let of_store = [&first.store.restored, &first.store.removals_unread];
        for told in of_store.into_iter().flatten() {
            notes.push(format!("store: {told}"));
        }
        if let Some(nodes) = &first.nodes {
            notes.push(nodes_line(nodes));
            broken.extend(nodes.missing_feeds().into_iter().map(BrokenLine::ours));
            notes.extend(nodes.differing_files());
        }
        if let Some(state) = &first.certificate {
            // A renewal that failed has time; without a certificate nobody is served.
            let expires_at = state.expires_at.as_deref().and_then(moment);
            let holds = expires_at.is_some_and(|until| until > now);
            let told = certificate(state, now);
            if holds {
                notes.push(told);
            } else {
                broken.push(BrokenLine::ours(told));
            }
        }
        let together = waiting_together(&feeds);
        notes.extend(
            together
                .iter()
                .map(|(why, waiting)| waits_of(why, waiting, now)),
        );
        for feed in &feeds {
            let wait = feed.waits.as_ref();
            let alone = wait.filter(|wait| !together.contains_key(&*wait.why));
            for remark in remarks(feed, alone, now) {
                notes.push(format!("{}: {remark}", feed.name));
            }
        }
        notes.extend(first.lists.iter().map(|list| list_line(list, now)));
        for UnreadEntry { name, why } in &first.registry.unread {
            broken.push(BrokenLine::ours(format!(
                "{name}: its entry in the registry cannot be read: {why}"
            )));
        }
        for ShadowedEntry { name, why } in &first.registry.shadowed {
            notes.push(format!(
                "{name}: its entry in the registry is shadowed: {why}"
            ));
        }
        let waiting = &first.config.waiting_for_restart;
        if !waiting.is_empty() {
            let keys = waiting.join(", ");
            notes.push(format!(
                "configuration: these keys take effect at the next start: {keys}"
            ));
        }
        for feed in &first.removed_feeds {
            let (name, items) = (&feed.name, feed.items);
            notes.push(format!(
                "{name}: not configured any more; items kept: {items}"
            ));
        }
        Self { broken, notes }
    }
}

/// A search engine that does not take the pages of a site, in a line with what to do.
fn of_search_engine(cause: &CauseStatus, now: DateTime<Utc>) -> String {
    let CauseStatus {
        title,
        text,
        owner,
        remedy,
        since,
        ..
    } = cause;
    let since = when(Some(since), now).unwrap_or_default();
    format!("{title}: {text} (the fault is {owner}; since {since}). To do: {remedy}")
}

/// The feeds that fail, a line for each cause. A feed that is part of no cause has a line of its own.
fn failing_feeds(
    causes: &[CauseStatus],
    feeds: &[&FeedStatus],
    now: DateTime<Utc>,
) -> Vec<BrokenLine> {
    let failing = feeds.iter().filter(|feed| feed.fault.is_some());
    let failing: HashMap<&str, &FeedStatus> =
        failing.map(|feed| (feed.name.as_str(), *feed)).collect();
    let alone = |feed: &FeedStatus| {
        let found = feed.fault.as_ref()?;
        let told = fault(found, &format!(", failed polls: {}", feed.failures), now);
        Some(BrokenLine::of(found, format!("{}: {told}", feed.name)))
    };
    let mut lines = Vec::new();
    let mut named = HashSet::new();
    for cause in causes {
        named.extend(cause.feeds.iter().map(String::as_str));
        let text = match &*cause.feeds {
            [name] => match failing.get(name.as_str()).copied().and_then(alone) {
                Some(line) => {
                    lines.push(line);
                    continue;
                }
                None => name.clone(),
            },
            several => format!("{} ({})", cause.title, first_names(several)),
        };
        let since = when(Some(&cause.since), now).unwrap_or_default();
        let (told, owner) = (&cause.text, &cause.owner);
        lines.push(BrokenLine {
            text: format!("{text}: {told} (the fault is {owner}; since {since})"),
            owner: Some(owner.clone()),
        });
    }
    let others = feeds.iter().copied();
    lines.extend(
        others
            .filter(|feed| !named.contains(feed.name.as_str()))
            .filter_map(alone),
    );
    lines
}

/// Feeds of a line that are named; the others are counted.
const NAMED_MAX: usize = 3;

/// The first of these names, and the number of the others.
fn first_names<S: AsRef<str>>(names: &[S]) -> String {
    let first = names.iter().take(NAMED_MAX).map(AsRef::as_ref);
    let told = first.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

/// A feed whose next poll is put off.
type WaitingFeed<'a> = (&'a FeedStatus, &'a WaitStatus);

/// Waits that several feeds have for one reason, by the reason.
fn waiting_together<'a>(feeds: &[&'a FeedStatus]) -> BTreeMap<&'a str, Vec<WaitingFeed<'a>>> {
    let mut by_reason: BTreeMap<&str, Vec<WaitingFeed<'_>>> = BTreeMap::new();
    for feed in feeds {
        if let Some(wait) = &feed.waits {
            by_reason.entry(&wait.why).or_default().push((feed, wait));
        }
    }
    by_reason.retain(|_, waiting| waiting.len() > 1);
    by_reason
}

/// The waits of several feeds for one reason, in a line.
fn waits_of(why: &str, waiting: &[WaitingFeed<'_>], now: DateTime<Utc>) -> String {
    let names: Vec<&str> = waiting.iter().map(|(feed, _)| &*feed.name).collect();
    let ends = waiting
        .iter()
        .filter_map(|(_, wait)| moment(wait.until.as_deref()?));
    let next = match ends.min() {
        Some(first) if first <= now => "the first of their next polls is due".to_owned(),
        Some(first) => format!("the first of their next polls is {}", from_now(first, now)),
        None => "they are polled on request only".to_owned(),
    };
    let pinged = waiting.iter().filter(|(_, wait)| wait.pinged_at.is_some());
    let pings = match pinged.count() {
        0 => String::new(),
        pings => format!("; pings that wait for that: {pings}"),
    };
    format!("{}: {next}, because {why}{pings}", first_names(&names))
}

/// The processes on the store, in a sentence.
fn nodes_line(nodes: &NodesStatus) -> String {
    const SILENT_SECS: u64 = NodesStatus::SILENT_SECS;
    let heard = |node: &&NodeStatus| node.silent_secs < SILENT_SECS;
    // One that was started again has a new place.
    let is_replaced = |node: &NodeStatus| {
        let mut heard = nodes.nodes.iter().filter(heard);
        node.silent_secs >= SILENT_SECS && heard.any(|other| other.name == node.name)
    };
    let told = nodes
        .nodes
        .iter()
        .filter(|node| !is_replaced(node))
        .map(|node| {
            let name = &node.name;
            match (node.works, node.silent_secs) {
                (true, 0..SILENT_SECS) => format!("{name} polls and pushes"),
                (false, 0..SILENT_SECS) => format!("{name} follows"),
                (_, secs) => format!("{name} was last heard of {secs} s ago"),
            }
        });
    format!(
        "nodes: {} (epoch {})",
        told.collect::<Vec<_>>().join(", "),
        nodes.epoch
    )
}

/// A fault with its owner, its beginning, and more of it.
pub(crate) fn fault(fault: &FaultStatus, more: &str, now: DateTime<Utc>) -> String {
    let since = when(Some(&fault.since), now).unwrap_or_default();
    let (text, owner) = (&fault.text, &fault.owner);
    format!("{text} (the fault is {owner}; since {since}{more})")
}

/// A list of feeds, in a sentence: when it was read, and what it brought.
fn list_line(list: &OpmlStatus, now: DateTime<Utc>) -> String {
    let OpmlStatus {
        name,
        place,
        listed,
        feeds,
        ..
    } = list;
    let read = match when(list.good_at.as_deref(), now) {
        Some(at) => format!("last read {at}"),
        None => "not read yet".to_owned(),
    };
    let mut told =
        format!("list {name} ({place}): {read}; feeds in it: {listed}, brought: {feeds}");
    if list.absent > 0 {
        told += &format!(", missing now: {}", list.absent);
    }
    if list.paused_total > 0 {
        let (total, first) = (list.paused_total, first_names(&list.paused));
        told += &format!(", paused: {total} ({first})");
    }
    if let Some(line) = list.skipped.first() {
        told += &format!("; left out: {} (the first: {line})", list.skipped_total);
    }
    if let Some(next) = when(list.next_read_at.as_deref(), now) {
        told += &format!("; next read {next}");
    }
    told
}

/// The certificate that everfeed gets itself: its end, and the last failure.
fn certificate(state: &CertificateStatus, now: DateTime<Utc>) -> String {
    let end = match state.expires_at.as_deref().and_then(moment) {
        Some(end) if end > now => {
            format!(
                "holds until {}, {}",
                end.format("%Y-%m-%d"),
                from_now(end, now)
            )
        }
        Some(end) => format!("expired {}", from_now(end, now)),
        None => "none yet; HTTPS connections fail".to_owned(),
    };
    let next = when(Some(&state.next_order_at), now).unwrap_or_default();
    let told = match &state.fault {
        Some(fault) => format!(
            "; {} did not give another: {}; orders that failed: {}",
            state.authority, fault, state.failures
        ),
        None => String::new(),
    };
    let names = state.names.join(", ");
    format!("certificate for {names}: {end}; next order {next}{told}")
}

/// Subscribers that do not take their pushes and are told one by one, of each feed.
const FAILURES_SHOWN_MAX: usize = 3;

/// Everything about a feed that is no fault, and that its operator should know.
/// `wait` is its wait, unless others have the same.
fn remarks(feed: &FeedStatus, wait: Option<&WaitStatus>, now: DateTime<Utc>) -> Vec<String> {
    let mut found = Vec::new();
    let failing = feed.subscribers.failing;
    if failing > 0 {
        let failures = feed.subscribers.failures.iter().take(FAILURES_SHOWN_MAX);
        let told = failures.map(|it| format!("; {}: {}", it.host, it.error));
        found.push(format!(
            "subscribers that do not take their pushes: {failing}{}",
            told.collect::<String>()
        ));
    }
    if feed.paused {
        let list = feed.from_list.as_ref();
        let list = list.map(|list| format!(" (from the list {list})"));
        found.push(format!(
            "paused{}: not polled, its items are served",
            list.unwrap_or_default()
        ));
    }
    found.extend(wait.map(|wait| waits(wait, now)));
    if let Some(since) = when(feed.quarantined_since.as_deref(), now) {
        found.push(format!(
            "too many posts are missing at once, since {since}. everfeed deletes none until it knows more"
        ));
    }
    if let Some(url) = &feed.named_by_page {
        found.push(format!(
            "its url is a web page; polled is the feed that the page names: {}",
            url
        ));
    }
    if let Some(to) = &feed.moved_to {
        found.push(format!(
            "has moved for good to {}. Give this URL as its url in the configuration",
            to
        ));
    }
    if let Some(push) = &feed.push {
        let spelt = |at: &str| when(Some(at), now).unwrap_or_default();
        found.push(push.in_words(spelt));
    }
    if let Some(remark) = &feed.remark {
        found.push(format!("its last document: {remark}"));
    }
    if let Some(shortened) = feed.shortened_items.filter(|shortened| *shortened > 0) {
        found.push(format!(
            "items stored without their long texts (keep.item_bytes_max): {shortened}"
        ));
    }
    if !feed.gaps.is_empty() {
        let count = feed.gaps.len();
        found.push(format!("places where items may be missing: {count}"));
    }
    found.extend(feed.archives.clone());
    found
}

/// The wait of a feed whose next poll is put off.
fn waits(wait: &WaitStatus, now: DateTime<Utc>) -> String {
    let mut told = match wait.until.as_deref().and_then(moment) {
        Some(until) if until <= now => "the next poll is due, because ".to_owned(),
        Some(until) => format!("the next poll is {}, because ", from_now(until, now)),
        None => "it is polled on request only, because ".to_owned(),
    };
    told += &wait.why;
    if let Some(since) = when(wait.since.as_deref(), now) {
        told += &format!(" (since {since})");
    }
    if let Some(at) = when(wait.pinged_at.as_deref(), now) {
        told += &format!("; a ping ({at}) waits for that");
    }
    told
}

/// A moment, told from now.
pub(crate) fn when(text: Option<&str>, now: DateTime<Utc>) -> Option<String> {
    Some(from_now(moment(text?)?, now))
}

fn moment(text: &str) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc))
}
