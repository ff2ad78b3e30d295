//! `everfeed explain`: asks the running process, or the store itself when nobody serves it, and
//! prints the answer for people; not what there is to tell.

use super::{
    WithConfig,
    ask::ask,
    moments::relative,
    probe::sheet::{tame, tame_json},
};
use crate::{
    app::explain::{
        Churn, ExplainedCheck, ExplainedDocument, ExplainedItem, ExplainedQuarantine, Explanation,
        ItemState, MissedByDocuments, MissedByWalks, from_file,
    },
    config::Config,
};
use anyhow::{Context as _, bail};
use chrono::Utc;
use clap::Args;
use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::io::{self, Write};

/// The feed or the item that is asked for.
#[derive(Debug, Args)]
pub struct ExplainOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// The name of a feed.
    feed: String,
    /// An item of it: our id, its publisher's, or its permalink.
    item: Option<String>,
    /// Print the whole answer as JSON.
    #[arg(long)]
    json: bool,
}

/// Asks, and prints.
pub(super) async fn run(options: &ExplainOptions, config: &Config) -> anyhow::Result<()> {
    let told = answer(options, config).await?;
    let Some(told) = told else {
        let feed = tame(&options.feed);
        bail!(
            "no feed `{feed}`: it is not configured, or was never served with this configuration; the items of a feed that was removed are kept until `everfeed forget {feed}`"
        );
    };
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", tame_json(&serde_json::to_string_pretty(&told)?))?;
    } else {
        let now = Utc::now();
        let lines = lines(&told, options.item.is_some());
        lines
            .iter()
            .try_for_each(|line| writeln!(out, "{}", relative(line, now)))?;
    }
    out.flush()?;
    if let Some(item) = options.item.as_ref().filter(|_| told.item.is_none()) {
        bail!(
            "feed `{}` has never held an item of that id or permalink: {}",
            told.feed,
            tame(item)
        );
    }
    Ok(())
}

async fn answer(options: &ExplainOptions, config: &Config) -> anyhow::Result<Option<Explanation>> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    // A name of a feed is a path as it stands.
    if !options
        .feed
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    {
        return Ok(None);
    }
    let mut url = format!(
        "http://{}/explain/{}",
        config.server.admin_listen, options.feed
    );
    if let Some(item) = &options.item {
        url += &format!("?item={}", encoded(item));
    }
    match ask(Method::GET, &url, config.server.admin_token.as_ref()).await {
        Ok((StatusCode::NOT_FOUND, _)) => Ok(None),
        Ok((status, text)) if status.is_success() => {
            let told = serde_json::from_str(&text);
            Ok(Some(told.context(
                "the running everfeed answered something else; is it another version?",
            )?))
        }
        Ok((status, text)) => bail!("the running everfeed answered {status}: {}", tame(&text)),
        Err(_) => from_file(config, &options.feed, options.item.as_deref())
            .await
            .context("no everfeed answers at admin_listen, and its store"),
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

/// A group has no upstream, and so no polls and no documents.
fn group_lines(told: &Explanation, members: &[String]) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{}: a group of {}",
            told.feed,
            counted(members.len() as u64, "feed")
        ),
        format!(
            "  holds       {}, {} of them alive",
            counted(told.items.0, "item"),
            told.items.1
        ),
    ];
    lines.extend(
        members
            .iter()
            .map(|member| format!("  member      {}", tame(member))),
    );
    lines.push("  polls       none: its posts change in the commits of its members".to_owned());
    lines
}

fn feed_lines(told: &Explanation) -> Vec<String> {
    if let Some(members) = &told.members {
        return group_lines(told, members);
    }
    let polling = &told.polling;
    let or = |text: &Option<String>, else_: &str| text.clone().unwrap_or_else(|| else_.to_owned());
    let mut lines = vec![
        format!("{}: {}", told.feed, tame(&told.url)),
        format!(
            "  holds       {}, {} of them alive; {} in the last document",
            counted(told.items.0, "item"),
            told.items.1,
            told.window
        ),
        format!("  history     {}", tame(&told.history)),
    ];
    lines.extend(
        told.archives
            .iter()
            .map(|line| format!("  archives    {}", tame(line))),
    );
    lines.extend([
        format!(
            "  last poll   {}; last good answer {}",
            or(&polling.last_at, "never"),
            or(&polling.good_at, "never")
        ),
        format!(
            "  next poll   {}",
            or(&polling.next_at, "on a hint or a restart only")
        ),
        format!("  because     {}", tame(&polling.why)),
        audit_line(told),
    ]);
    lines.extend(
        told.platform
            .iter()
            .map(|text| format!("  software    {}", tame(text))),
    );
    lines.extend(
        polling
            .remark
            .iter()
            .map(|text| format!("  remark      {}", tame(text))),
    );
    if told.is_complete {
        lines.push("  window      its documents say that they are the whole feed".to_owned());
    }
    if told.distrusts_conditional {
        lines.push(
            "  validators  answers to conditional requests have proven to be parts: only audits prove absence"
                .to_owned(),
        );
    }
    lines.extend(
        told.pages
            .iter()
            .map(|(finding, at)| format!("  pages       {finding}; asked for at {at}")),
    );
    lines.extend(told.quarantine.iter().flat_map(quarantine_lines));
    lines.extend(
        told.doubted
            .iter()
            .map(|text| format!("  doubted     {}", tame(text))),
    );
    lines.extend(told.gaps.iter().map(|(at, why, before, after)| {
        format!(
            "  may lack    items between {} and {}: at {at} {}; only archives could fill the gap",
            cursor(before),
            cursor(after),
            tame(why)
        )
    }));
    if told.deferred > 0 {
        lines.push(format!(
            "  churning    {} with an edit at every poll: such edits are committed once a day",
            counted(told.deferred as u64, "item")
        ));
    }
    lines.extend(told.reformatted_at.iter().map(|at| {
        format!("  reformatted most of it was edited at once without a word on it, last at {at}")
    }));
    for suspect in &told.suspects {
        let label = match suspect.state {
            ItemState::Hidden => "hidden   ",
            ItemState::Quarantined => "held back",
            _ => "suspected",
        };
        lines.push(format!(
            "  {label}   {} {}",
            suspect.id,
            tame(suspect.title.as_deref().unwrap_or(&suspect.iri))
        ));
        lines.extend(
            suspect
                .missing
                .iter()
                .flat_map(|missing| needed(missing, told))
                .map(|line| format!("              {line}")),
        );
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
    let ExplainedQuarantine {
        since,
        missing: (missing, of),
        asked,
        next_at,
        decides_at,
        ends_at,
    } = held;
    let what = match missing {
        0 => "too much is missing at once".to_owned(),
        missing => format!("{missing} of {of} items are missing at once"),
    };
    let next = match next_at {
        Some(at) => format!(
            "{asked} of their pages were asked for, the next from {at} on; from {decides_at} on pages decide, and without an answer the window begins anew after {ends_at}"
        ),
        None => format!(
            "no page tells what became of them, so the window begins anew after {ends_at}, and nothing is deleted"
        ),
    };
    vec![
        format!("  held        since {since} {what}, which is more than documents are believed"),
        format!("              {next}"),
    ]
}

fn cursor(text: &str) -> String {
    if text.is_empty() {
        "the beginning".to_owned()
    } else {
        tame(text)
    }
}

fn audit_line(told: &Explanation) -> String {
    let wanted = if told.polling.wants_audit {
        ", daily, because something is missing or documents hide deletions"
    } else {
        ", weekly, because nothing is missing that another document could prove"
    };
    match &told.polling.audit_at {
        Some(at) => {
            format!("  next audit  the first poll from {at} on goes without validators{wanted}")
        }
        None => "  next audit  the next poll: there are no validators to send".to_owned(),
    }
}

fn seen_lines(seen: &ExplainedDocument) -> Vec<String> {
    let [
        entries,
        new,
        edited,
        revived,
        missing,
        suspects,
        rolled_off,
        gone,
    ] = seen.counts;
    let counts = [
        ("new", new),
        ("edited", edited),
        ("revived", revived),
        ("missing", missing),
        ("suspected", suspects),
        ("rolled off", rolled_off),
        ("deleted", gone),
    ];
    let counts: String = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!(", {name} {count}"))
        .collect();
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
    lines.push(format!(
        "  first stored {}, last changed {}",
        item.created, item.modified
    ));
    lines.extend(
        item.left_out
            .iter()
            .map(|note| format!("  {} (keep.item_bytes_max)", tame(note))),
    );
    let unshown = |date: &String| {
        format!(
            "  not shown, because it cannot be meant: the date {}",
            tame(date)
        )
    };
    lines.extend(item.unshown_dates.iter().map(unshown));
    lines.push(format!(
        "  {}",
        match item.state {
            ItemState::Shown => "kept: it is in the last document",
            ItemState::Suspected =>
                "suspected: the last document lacks it, although what stood behind it is still there",
            ItemState::Hidden => {
                "kept: the last document lacks it, but its own page is still there, so it was hidden or dated back, and not deleted; it stays until its page is gone, or until it leaves the window"
            }
            ItemState::Quarantined => {
                "kept for now: it is one of many that are missing at once, which documents alone do not prove; its page decides"
            }
            ItemState::Missed =>
                "missed: the archives lack it where they held it, although its neighbours by date are there",
            ItemState::Undecided if told.quarantined_since.is_some() => {
                "kept: the last document lacks it, and too much else, so nothing is concluded until pages tell, or for a week"
            }
            ItemState::Undecided => "kept: the last document lacks it, and proves nothing",
            ItemState::RolledOff => {
                "kept: it is not in the window any more; it rolled off its end, or left where nothing can be concluded, and a suspicion against it was dropped with that; only archives or the publisher's own deletion can tell more"
            }
            ItemState::Held => "kept: members of the group have it",
            ItemState::Deleted => "deleted",
            ItemState::Left => {
                "no post of the group any more: its feed is no member, or it became one with another post; nobody deleted it"
            }
        }
    ));
    lines.extend(
        item.holders.iter().map(|(feed, id)| {
            format!("  held by {feed}: `everfeed explain {feed} {id}` tells why")
        }),
    );
    lines.extend(item.churn.iter().map(churn_line));
    if let Some(missing) = &item.missing {
        lines.extend(
            needed(missing, told)
                .into_iter()
                .map(|line| format!("  {line}")),
        );
    }
    if let Some(missed) = &item.missed {
        lines.push(format!("  {}", by_walks(missed)));
        let (count, of) = missed.walks;
        let more =
            (count < of).then(|| format!("{} more walks without it ({count} of {of})", of - count));
        let not_before = missed
            .not_before
            .iter()
            .map(|at| format!("not before {at}"));
        let open: Vec<String> = more.into_iter().chain(not_before).collect();
        lines.push(format!("  for a deletion: {}", open.join("; ")));
    }
    for proof in &item.evidence {
        lines.push(if proof.has_left {
            format!("  left the group at {}", proof.at)
        } else {
            format!(
                "  deleted at {}: {}, by what was read at {}",
                proof.at,
                tame(&proof.reason),
                proof.observed_at
            )
        });
        lines.extend(
            proof
                .said
                .iter()
                .map(|text| format!("    the publisher said: {}", tame(text))),
        );
        lines.extend(
            proof
                .missing
                .iter()
                .flat_map(circumstances)
                .map(|line| format!("    {line}")),
        );
        lines.extend(
            proof
                .missed
                .iter()
                .map(|missed| format!("    {}", by_walks(missed))),
        );
    }
    lines.extend(item.shown_again.iter().map(|(since, until)| {
        format!("shown again since {since} by what may be an old copy: nothing is told until an answer to a request without validators agrees, from {until} on")
    }));
    lines.extend(item.recheck_at.iter().map(|at| {
        format!("  its page is asked for again at {at}; if it is back, the item lives again")
    }));
    if !item.evidence.is_empty() && !matches!(item.state, ItemState::Deleted | ItemState::Left) {
        lines.push("  it came back after that".to_owned());
    }
    lines
}

/// Lines on the churn of an item.
fn churn_line(churn: &Churn) -> String {
    let polls = match churn.polls {
        0 => "churns: it changed in many polls running".to_owned(),
        polls => format!("churns: it changed in {} running", counted(polls, "poll")),
    };
    match &churn.held_until {
        Some(until) if churn.is_dated_before => format!(
            "  an edit waits: its `updated` is earlier than that of what is held, as in a copy that lags behind; it is committed \
             when the feed still shows it at {until}"
        ),
        Some(until) => {
            format!("  {polls}; its newest form is held back until {until}, or until it rests")
        }
        None => format!("  {polls}; its edits are committed once a day until it rests"),
    }
}

/// Line on the walks that missed an item.
fn by_walks(missed: &MissedByWalks) -> String {
    let MissedByWalks {
        since,
        last_seen,
        walks,
        ..
    } = missed;
    format!(
        "last seen in the archives {last_seen}, missed by {} since {since}",
        counted(walks.0, "walk")
    )
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
    let mut lines = vec![
        format!(
            "last seen {}, missed since {}",
            missing.last_seen, missing.since
        ),
        format!(
            "{} behind it still stood there, {behind}",
            counted(missing.behind, "item")
        ),
        format!(
            "{} without it counted, {audited} the answer to a request without validators; {window} at first",
            counted(missing.count.0, "document")
        ),
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
    let asked = if page.asked > 1 {
        format!(", asked for {} times", page.asked)
    } else {
        String::new()
    };
    Some(format!("its page{asked}, at {at}: {}", tame(said)))
}

/// Lines on the evidence against a suspect, and on what is still needed.
fn needed(missing: &MissedByDocuments, told: &Explanation) -> Vec<String> {
    let (count, of) = missing.count;
    let mut lines = circumstances(missing);
    let mut open = Vec::new();
    if missing.by_page {
        lines.extend(
            missing
                .alone
                .iter()
                .map(|why| format!("why: {}", tame(why))),
        );
        let next = missing.page.next_at.as_ref();
        let next = next.map_or_else(
            || "its page tells no more, so nothing becomes of the suspicion".to_owned(),
            |at| format!("its page alone decides; it is asked for from {at} on"),
        );
        lines.push(format!("for a deletion: {next}"));
        return lines;
    }
    if let Some(at) = &missing.page.next_at {
        open.push(format!(
            "its page is asked for from {at} on; 410, or 404 twice, would do, and after three times without an answer documents decide"
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
        let when = told.polling.audit_at.as_ref().map_or_else(
            || "with the next poll".to_owned(),
            |at| format!("due from {at} on"),
        );
        open.push(format!(
            "one of them to a request without validators, {when}"
        ));
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
            text.contains("  member      blog: all of its posts are in"),
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
            text.contains("nobody deleted it") && text.contains("left the group at then"),
            "{text}"
        );
        assert!(
            !text.contains("deleted at") && !text.contains("came back"),
            "{text}"
        );
    }

    #[test]
    fn an_item_that_changes_with_every_poll_says_so_and_until_when_its_newest_form_waits() {
        let item = |held_until: Option<&str>| ExplainedItem {
            churn: Some(Churn {
                polls: 31,
                held_until: held_until.map(str::to_owned),
                is_dated_before: false,
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
            "it changed in 31 polls running; its newest form is held back until 2026-06-01T00:00:00Z, or until it rests",
        );
        check(
            item(None),
            "it changed in 31 polls running; its edits are committed once a day until it rests",
        );
        let churn = Churn {
            polls: 1,
            held_until: Some("then".into()),
            is_dated_before: true,
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
            told.contains("  churning    2 items") && told.contains("last at then"),
            "{told}"
        );
    }
}
