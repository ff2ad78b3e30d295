//! `everfeed explain`: asks the running process, or the store itself when nobody serves it, and
//! prints the answer for people; not what there is to tell.

use super::{
    WithConfig,
    ask::{Running, encoded},
    probe::sheet::{tame, tame_json},
};
use crate::app::moments::relative;
use crate::{
    app::explain::{
        Churn, ExplainedCheck, ExplainedDocument, ExplainedItem, ExplainedQuarantine, Explanation,
        ItemState, MissedByDocuments, MissedByWalks, TombstoneProof, from_file,
    },
    config::Config,
};
use anyhow::{Context as _, bail};
use chrono::Utc;
use clap::Args;
use http::{Method, StatusCode};
use std::{
    fmt::Display,
    io::{self, Write},
};

/// The feed or the item that is asked for.
#[derive(Debug, Args)]
pub struct ExplainOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// The name of a feed.
    feed: String,
    /// An item of the feed: its id here, the publisher's id, or its permalink.
    item: Option<String>,
    /// Print the whole answer as JSON.
    #[arg(long)]
    json: bool,
}

/// Asks, and prints.
pub(super) async fn run(options: &ExplainOptions, config: &Config) -> anyhow::Result<()> {
    let Some(told) = answer(options, config).await? else {
        let feed = tame(&options.feed);
        bail!(
            "no feed `{feed}`: this configuration does not name it, or never served it. The items of a removed feed stay until `everfeed forget {feed}`"
        );
    };
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", tame_json(&serde_json::to_string_pretty(&told)?))?;
    } else {
        let now = Utc::now();
        for line in lines(&told, options.item.is_some()) {
            writeln!(out, "{}", relative(&line, now))?;
        }
    }
    out.flush()?;
    if let (Some(item), None) = (&options.item, &told.item) {
        let (feed, item) = (&told.feed, tame(item));
        bail!("feed `{feed}` has never held an item with this id or permalink: {item}");
    }
    Ok(())
}

async fn answer(options: &ExplainOptions, config: &Config) -> anyhow::Result<Option<Explanation>> {
    // A name of a feed is a path as it stands.
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !options.feed.bytes().all(is_plain) {
        return Ok(None);
    }
    let mut path = format!("/explain/{}", options.feed);
    if let Some(item) = &options.item {
        path += &format!("?item={}", encoded(item));
    }
    match Running::of(config).ask(Method::GET, &path).await {
        Ok((StatusCode::NOT_FOUND, _)) => Ok(None),
        Ok((status, text)) if status.is_success() => serde_json::from_str(&text)
            .map(Some)
            .context("the answer of the running everfeed cannot be read. Is it another version?"),
        Ok((status, text)) => bail!("the running everfeed answered {status}: {}", tame(&text)),
        Err(_) => from_file(config, &options.feed, options.item.as_deref())
            .await
            .with_context(|| Running::of(config).absent()),
    }
}

/// Everything, as lines.
fn lines(told: &Explanation, of_item: bool) -> Vec<String> {
    match &told.item {
        Some(item) => item_lines(item, told),
        None if of_item => Vec::new(),
        None => feed_lines(told),
    }
}

/// A line below the name of a feed: what it is about, and a text.
fn row(label: &str, text: impl Display) -> String {
    format!("  {label:<15} {text}")
}

/// A group has no upstream, and so no polls and no documents.
fn group_lines(told: &Explanation, members: &[String]) -> Vec<String> {
    let (items, alive) = told.items;
    let count = counted(members.len() as u64, "feed");
    let mut lines = vec![format!("{}: a group of {count}", told.feed)];
    lines.push(row(
        "holds",
        format!("{}, {alive} of them alive", counted(items, "item")),
    ));
    lines.extend(members.iter().map(|member| row("member", tame(member))));
    lines.push(row(
        "polls",
        "none: its posts change in the commits of its members",
    ));
    lines
}

fn feed_lines(told: &Explanation) -> Vec<String> {
    if let Some(members) = &told.members {
        return group_lines(told, members);
    }
    let polling = &told.polling;
    let (items, alive) = told.items;
    let holds = format!(
        "{}, {alive} of them alive; {} in the last document",
        counted(items, "item"),
        told.window
    );
    let last_at = polling.last_at.as_deref().unwrap_or("never");
    let good_at = polling.good_at.as_deref().unwrap_or("never");
    let next_at = polling.next_at.as_deref();
    let mut lines = vec![
        format!("{}: {}", told.feed, tame(&told.url)),
        row("holds", holds),
        row("history", tame(&told.history)),
    ];
    let from_list = told.from_list.iter();
    lines.extend(from_list.map(|list| row("source", format!("from the list {}", tame(list)))));
    lines.extend(told.archives.iter().map(|line| row("archives", tame(line))));
    lines.push(row(
        "last poll",
        format!("{last_at}; last good answer {good_at}"),
    ));
    let without = match told.paused {
        true => "none",
        false => "on a hint or a restart only",
    };
    lines.push(row("next poll", next_at.unwrap_or(without)));
    lines.push(row("because", tame(&polling.why)));
    if !told.paused {
        lines.push(row("next full check", audit(told)));
    }
    lines.extend(told.push.iter().map(|text| row("push", tame(text))));
    lines.extend(told.platform.iter().map(|text| row("software", tame(text))));
    lines.extend(polling.remark.iter().map(|text| row("remark", tame(text))));
    if told.is_complete {
        lines.push(row(
            "window",
            "each document says that it is the whole feed",
        ));
    }
    if told.distrusts_conditional {
        let why = "the publisher answers conditional requests with parts of the feed, so only full checks prove absence";
        lines.push(row("validators", why));
    }
    if let Some((finding, at)) = &told.pages {
        lines.push(row("pages", format!("{finding}; asked for at {at}")));
    }
    lines.extend(told.quarantine.iter().flat_map(quarantine_lines));
    lines.extend(told.doubted.iter().map(|text| row("doubted", tame(text))));
    for (at, why, before, after) in &told.gaps {
        let (before, after, why) = (cursor(before), cursor(after), tame(why));
        let gap = format!(
            "items between {before} and {after} (at {at}: {why}). Only archives can fill the gap"
        );
        lines.push(row("may lack", gap));
    }
    if told.deferred > 0 {
        let items = counted(told.deferred as u64, "item");
        let churning = format!(
            "{items} with a change that waits: it is told when it has lasted, or once a day where all of the entry changes"
        );
        lines.push(row("churning", churning));
    }
    for (part, since) in &told.restless {
        let part = tame(part);
        let moves = format!(
            "since {since} the {part} of its items moves without an edit: a change there is told when it has lasted for half a day, or for two days while others follow"
        );
        lines.push(row("restless", moves));
    }
    if let Some(at) = &told.reformatted_at {
        let edited =
            format!("the publisher edited most posts at once without new dates, last at {at}");
        lines.push(row("reformatted", edited));
    }
    for suspect in &told.suspects {
        let label = match suspect.state {
            ItemState::Hidden => "hidden",
            ItemState::Quarantined => "held back",
            _ => "suspected",
        };
        let name = tame(suspect.title.as_deref().unwrap_or(&suspect.iri));
        lines.push(row(label, format!("{} {name}", suspect.id)));
        let needed = suspect
            .missing
            .iter()
            .flat_map(|missing| needed(missing, told));
        lines.extend(needed.map(|line| row("", line)));
    }
    lines.push("  documents, the latest last:".to_owned());
    if told.observations.is_empty() {
        lines.push("    none was read yet".to_owned());
    }
    lines.extend(told.observations.iter().flat_map(seen_lines));
    lines
}

/// Lines on a quarantine: what is missing, what decides, and when.
fn quarantine_lines(held: &ExplainedQuarantine) -> Vec<String> {
    let (since, ends_at) = (&held.since, &held.ends_at);
    let what = match held.missing {
        (0, _) => "too much is missing at once".to_owned(),
        (missing, of) => format!("{missing} of {of} items are missing at once"),
    };
    let next = match &held.next_at {
        Some(at) => format!(
            "everfeed has asked for {} of their pages, and asks for the next from {at} on. Pages decide from {} on. If none answers, the window begins anew after {ends_at}",
            held.asked, held.decides_at
        ),
        None => format!(
            "no page shows what became of them. The window begins anew after {ends_at}, and nothing is deleted"
        ),
    };
    let held = format!("since {since} {what}. That is too much to believe from documents alone");
    vec![row("held", held), row("", next)]
}

fn cursor(text: &str) -> String {
    if text.is_empty() {
        "the beginning".to_owned()
    } else {
        tame(text)
    }
}

fn audit(told: &Explanation) -> String {
    let reason = if told.polling.wants_audit {
        "daily; a post is missing, or documents hide deletions"
    } else {
        "weekly; no post is missing"
    };
    match &told.polling.audit_at {
        Some(at) => format!("{at} ({reason})"),
        None => "the next poll".to_owned(),
    }
}

fn seen_lines(seen: &ExplainedDocument) -> Vec<String> {
    const NAMES: [&str; 7] = [
        "new",
        "edited",
        "revived",
        "missing",
        "suspected",
        "rolled off",
        "deleted",
    ];
    let [entries, rest @ ..] = &seen.counts;
    let mut counts = String::new();
    for (name, count) in NAMES.iter().zip(rest) {
        if *count > 0 {
            counts += &format!(", {name} {count}");
        }
    }
    let again = if seen.again { " the same again;" } else { "" };
    let head = match &seen.page {
        Some((id, said)) => format!("    {} page of {id}: {}{counts}", seen.at, tame(said)),
        None => format!(
            "    {} {}:{again} {entries} entries{counts}",
            seen.at,
            tame(&seen.class)
        ),
    };
    let mut lines = vec![head];
    let more = seen.partial.iter().chain(&seen.events).chain(&seen.remark);
    lines.extend(more.map(|text| format!("      {}", tame(text))));
    lines
}

fn item_lines(item: &ExplainedItem, told: &Explanation) -> Vec<String> {
    let mut lines = vec![format!("{} {}", item.id, tame(&item.iri))];
    lines.extend(item.title.iter().map(|title| format!("  {}", tame(title))));
    let (created, modified) = (&item.created, &item.modified);
    lines.push(format!("  first stored {created}, last changed {modified}"));
    if let Some(note) = &item.left_out {
        lines.push(format!("  {} (keep.item_bytes_max)", tame(note)));
    }
    for date in &item.unshown_dates {
        let date = tame(date);
        lines.push(format!(
            "  not shown, because it cannot be right: the date {date}"
        ));
    }
    lines.push(format!("  {}", in_words(item.state, told)));
    for (feed, id) in &item.holders {
        lines.push(format!(
            "  held by {feed}: `everfeed explain {feed} {id}` tells why"
        ));
    }
    if let Some((at, agreed)) = &item.corrected {
        lines.push(format!(
            "  one post under two ids: at {at} another entry stood in its place, between the same neighbours, with its text {}",
            tame(agreed)
        ));
    }
    lines.extend(item.churn.iter().map(churn_line));
    if let Some(missing) = &item.missing {
        lines.extend(needed(missing, told).iter().map(|line| format!("  {line}")));
    }
    if let Some(missed) = &item.missed {
        lines.push(format!("  {}", by_walks(missed)));
        let (count, of) = missed.walks;
        let mut open = Vec::new();
        if count < of {
            open.push(format!(
                "{} more walks without it ({count} of {of})",
                of - count
            ));
        }
        if let Some(at) = &missed.not_before {
            open.push(format!("not before {at}"));
        }
        lines.push(format!("  for a deletion: {}", open.join("; ")));
    }
    lines.extend(item.evidence.iter().flat_map(proof_lines));
    if let Some(at) = &item.recheck_at {
        lines.push(format!(
            "  everfeed asks for its page again at {at}. If the page is back, the item is back"
        ));
    }
    if let Some((since, until)) = &item.shown_again {
        lines.push(format!("  shown again since {since} by what may be an old copy: nothing is told until an answer to a request without validators agrees, from {until} on"));
    }
    if !item.evidence.is_empty() && !matches!(item.state, ItemState::Deleted | ItemState::Left) {
        lines.push("  it came back after that".to_owned());
    }
    lines
}

/// Lines on a tombstone and its proof.
fn proof_lines(proof: &TombstoneProof) -> Vec<String> {
    let at = &proof.at;
    let mut lines = vec![if proof.has_left {
        format!("  left the group at {at}")
    } else {
        let (reason, read_at) = (tame(&proof.reason), &proof.observed_at);
        format!("  deleted at {at}: {reason} (document of {read_at})")
    }];
    for text in &proof.said {
        lines.push(format!("    the publisher said: {}", tame(text)));
    }
    if let Some(missing) = &proof.missing {
        lines.extend(
            circumstances(missing)
                .iter()
                .map(|line| format!("    {line}")),
        );
    }
    if let Some(missed) = &proof.missed {
        lines.push(format!("    {}", by_walks(missed)));
    }
    lines
}

fn in_words(state: ItemState, told: &Explanation) -> &'static str {
    match state {
        ItemState::Shown => "kept: it is in the last document",
        ItemState::Suspected => {
            "suspected: the last document lacks it, but still has the items behind it"
        }
        ItemState::Hidden => {
            "kept: the last document lacks it, but its page is still there. So it was hidden or dated back, not deleted. everfeed keeps it until its page is gone, or until it leaves the window"
        }
        ItemState::Quarantined => {
            "kept for now: many items are missing at once, and documents alone do not prove a deletion. Its page decides"
        }
        ItemState::Missed => "missed: the archives lack it, but still have its neighbours by date",
        ItemState::Undecided if told.quarantined_since.is_some() => {
            "kept: the last document lacks it and too many others. everfeed concludes nothing until their pages decide, for a week at most"
        }
        ItemState::Undecided => "kept: the last document lacks it, but proves nothing",
        ItemState::RolledOff => {
            "kept: it is no longer in the window. It rolled off the end, or left where everfeed cannot tell. No suspicion remains, so everfeed does not ask for its page. Only archives or the publisher's own deletion can show more"
        }
        ItemState::Held => "kept: members of the group have it",
        ItemState::Deleted => "deleted",
        ItemState::Left => {
            "no longer a post of the group, but not deleted. Its feed left the group, or the post became one with another"
        }
    }
}

/// Lines on the churn of an item.
fn churn_line(churn: &Churn) -> String {
    let polls = match churn.polls {
        0 => "churns: it changed in many polls in a row".to_owned(),
        polls => format!("churns: it changed in {} in a row", counted(polls, "poll")),
    };
    match &churn.held_until {
        Some(until) if !churn.moved.is_empty() => format!(
            "  an edit waits: nothing but its {} moved, as in many items of the feed without an edit; it is told at {until} if it lasts",
            tame(&churn.moved.join(" and its "))
        ),
        Some(until) if churn.is_dated_before => format!(
            "  an edit waits: its `updated` is earlier than the stored one, as in a copy that lags behind. everfeed stores the edit \
             if the feed still shows it at {until}"
        ),
        Some(until) if churn.is_former => format!(
            "  an edit waits: the feed showed this form before, and its server gives old copies by turns. everfeed stores the edit \
             if the feed still shows it at {until}"
        ),
        Some(until) => {
            format!("  {polls}. everfeed stores its newest form at {until}, or when it rests")
        }
        None => format!("  {polls}. everfeed stores its edits once a day until it rests"),
    }
}

/// Line on the walks that missed an item.
fn by_walks(missed: &MissedByWalks) -> String {
    let (last_seen, since) = (&missed.last_seen, &missed.since);
    let walks = counted(missed.walks.0, "walk");
    format!("last seen in the archives {last_seen}; {walks} missed it since {since}")
}

/// Lines on the documents that missed an item.
fn circumstances(missing: &MissedByDocuments) -> Vec<String> {
    let behind = if missing.backfilled {
        "older items had moved up into the window"
    } else {
        "in their order"
    };
    let window = if missing.strong {
        "as many came as went"
    } else {
        "not as many came as went"
    };
    let audited = if missing.audited {
        "one of them"
    } else {
        "none of them"
    };
    let (last_seen, since) = (&missing.last_seen, &missing.since);
    let items = counted(missing.behind, "item");
    let documents = counted(missing.count.0, "document");
    let mut lines = vec![
        format!("last seen {last_seen}, missed since {since}"),
        format!("{items} behind it still stood there, {behind}"),
        format!("{documents} without it counted, {audited} from a full check; {window} at first"),
    ];
    lines.extend(page_line(&missing.page));
    lines
}

/// A number of things: `1 document`, `2 documents`.
fn counted(count: impl Into<u64>, thing: &str) -> String {
    let count = count.into();
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Line on the permalink check.
fn page_line(page: &ExplainedCheck) -> Option<String> {
    let (said, at) = page.said.as_ref()?;
    let asked = match page.asked {
        0 | 1 => String::new(),
        asked => format!(", asked for {asked} times"),
    };
    Some(format!("its page{asked}, at {at}: {}", tame(said)))
}

/// Lines on the evidence against a suspect, and on what is still needed.
fn needed(missing: &MissedByDocuments, told: &Explanation) -> Vec<String> {
    let (count, of) = missing.count;
    let mut lines = circumstances(missing);
    let mut open = Vec::new();
    if missing.by_page {
        if let Some(why) = &missing.alone {
            lines.push(format!("why: {}", tame(why)));
        }
        let next = match &missing.page.next_at {
            Some(at) => format!("its page alone decides. everfeed asks for it from {at} on"),
            None => "its page shows nothing more, so the item stays".to_owned(),
        };
        lines.push(format!("for a deletion: {next}"));
        return lines;
    }
    if let Some(at) = &missing.page.next_at {
        open.push(format!(
            "everfeed asks for its page from {at} on (410, or 404 twice, is enough; after three failures documents decide)"
        ));
    }
    if count < of {
        let more = counted(of - count, "more document");
        open.push(format!("{more} without it ({count} of {of})"));
    }
    open.extend(
        missing
            .not_before
            .iter()
            .map(|at| format!("not before {at}")),
    );
    if !missing.audited {
        let when = match &told.polling.audit_at {
            Some(at) => format!("due from {at} on"),
            None => "with the next poll".to_owned(),
        };
        open.push(format!("one of them from a full check, {when}"));
    }
    lines.push(format!("for a deletion: {}", open.join("; ")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::explain::TombstoneProof;

    #[test]
    fn a_group_names_its_members_and_a_post_those_that_have_it() {
        let members = Some(vec!["blog: all of its posts are in".to_owned()]);
        let told = Explanation {
            feed: "planet".into(),
            members,
            ..Explanation::default()
        };
        let text = lines(&told, false).join("\n");
        assert!(text.starts_with("planet: a group of 1 feed\n"), "{text}");
        assert!(
            text.contains("  member          blog: all of its posts are in"),
            "{text}"
        );
        assert!(!text.contains("documents, the latest last"), "{text}");
        let holders = vec![("blog".to_owned(), "0a".to_owned())];
        let item = ExplainedItem {
            state: ItemState::Held,
            holders,
            ..ExplainedItem::default()
        };
        let text = lines(
            &Explanation {
                item: Some(item),
                ..told
            },
            true,
        )
        .join("\n");
        assert!(
            text.contains("held by blog: `everfeed explain blog 0a`"),
            "{text}"
        );
        let proof = TombstoneProof {
            at: "then".into(),
            has_left: true,
            ..TombstoneProof::default()
        };
        let item = ExplainedItem {
            state: ItemState::Left,
            evidence: vec![proof],
            ..ExplainedItem::default()
        };
        let text = lines(
            &Explanation {
                item: Some(item),
                ..Explanation::default()
            },
            true,
        )
        .join("\n");
        assert!(
            text.contains("but not deleted") && text.contains("left the group at then"),
            "{text}"
        );
        assert!(
            !text.contains("deleted at") && !text.contains("came back"),
            "{text}"
        );
    }

    #[test]
    fn what_moves_and_why_two_ids_are_one_post_is_told_in_a_sentence_each() {
        let churn = Churn {
            held_until: Some("then".into()),
            moved: vec!["title".into(), "content".into()],
            ..Churn::default()
        };
        let told = Explanation {
            item: Some(ExplainedItem {
                churn: Some(churn),
                corrected: Some(("now".into(), "and its date".into())),
                ..ExplainedItem::default()
            }),
            ..Explanation::default()
        };
        let told = lines(&told, true).join("\n");
        for expect in [
            "  one post under two ids: at now another entry stood in its place, between the same neighbours, with its text and its date",
            "  an edit waits: nothing but its title and its content moved, as in many items of the feed without an edit; it is told at then if it lasts",
        ] {
            assert!(told.contains(expect), "{told}");
        }
        let feed = Explanation {
            restless: vec![("content".into(), "yesterday".into())],
            ..Explanation::default()
        };
        let told = lines(&feed, false).join("\n");
        let expect = "since yesterday the content of its items moves without an edit";
        assert!(told.contains(expect), "{told}");
    }

    #[test]
    fn an_item_that_changes_with_every_poll_says_so_and_until_when_its_newest_form_waits() {
        let item = |held_until: Option<&str>| ExplainedItem {
            churn: Some(Churn {
                polls: 31,
                held_until: held_until.map(str::to_owned),
                ..Churn::default()
            }),
            ..ExplainedItem::default()
        };
        let check = |item: ExplainedItem, expect: &str| {
            let told = Explanation {
                deferred: 1,
                item: Some(item),
                ..Explanation::default()
            };
            assert!(
                lines(&told, true).contains(&format!("  churns: {expect}")),
                "{:?}",
                lines(&told, true)
            );
        };
        check(
            item(Some("2026-06-01T00:00:00Z")),
            "it changed in 31 polls in a row. everfeed stores its newest form at 2026-06-01T00:00:00Z, or when it rests",
        );
        check(
            item(None),
            "it changed in 31 polls in a row. everfeed stores its edits once a day until it rests",
        );
        let churn = Churn {
            polls: 1,
            held_until: Some("then".into()),
            is_dated_before: true,
            ..Churn::default()
        };
        let told = Explanation {
            item: Some(ExplainedItem {
                churn: Some(churn),
                ..item(None)
            }),
            ..Explanation::default()
        };
        let told = lines(&told, true).join("\n");
        assert!(
            told.contains("`updated` is earlier") && told.ends_with("shows it at then"),
            "{told}"
        );
        assert!(!told.contains("churns"), "{told}");
        let feed = Explanation {
            deferred: 2,
            reformatted_at: Some("then".into()),
            ..Explanation::default()
        };
        let told = lines(&feed, false).join("\n");
        assert!(
            told.contains("  churning        2 items") && told.contains("last at then"),
            "{told}"
        );
    }
}
