//! A poll that the operator asks for, and what came of it in words; not the poll.

use crate::{
    catalog::Catalog,
    feed::stamp::Stamp,
    ingest::{
        PollAnswer, Poller, Urgency,
        polls::{ChangeCounts, PollEnd},
    },
    serve::admin::OperatorAnswer,
};
use std::time::Duration;

/// Seconds for which the operator waits for a poll: it may stand behind others at its host.
const WAIT_SECS: u64 = 120;

/// Polls a feed, and tells what came of it.
pub(super) async fn poll(
    catalog: &Catalog,
    poller: &Poller,
    name: &str,
    urgency: Urgency,
) -> OperatorAnswer {
    let snapshot = catalog.snapshot();
    let Some(known) = snapshot.feed(name) else {
        return OperatorAnswer::Unknown(format!("no feed `{name}` is configured"));
    };
    if known.settings.paused {
        return OperatorAnswer::NotNow(format!("{name}: not polled: it is paused"));
    }
    let feed = known.no;
    if let Some(members) = snapshot.member_names(feed) {
        return OperatorAnswer::Unknown(format!(
            "`{name}` is a group, and a group is not polled. Poll its members: {}",
            members.join(", ")
        ));
    }
    told_of(name, poller.poll(feed, urgency)).await
}

/// Waits for a poll that was asked for, for a while, and tells what came of it.
pub(super) async fn told_of(name: &str, poll: impl Future<Output = PollAnswer>) -> OperatorAnswer {
    match tokio::time::timeout(Duration::from_secs(WAIT_SECS), poll).await {
        Ok(answer) => told(name, answer),
        Err(_) => OperatorAnswer::Away(format!(
            "{name}: the poll has not ended within {WAIT_SECS} s and goes on; `everfeed status` tells of it later"
        )),
    }
}

/// An answer in the operator's words.
fn told(name: &str, answer: PollAnswer) -> OperatorAnswer {
    match answer {
        PollAnswer::Ended { end, next_at } => end_told(name, end, &next_poll(next_at)),
        PollAnswer::StoreAway { cause } => OperatorAnswer::Away(format!(
            "{name}: not polled, because nothing can be stored: {cause}"
        )),
        PollAnswer::NotBefore { at, is_gone } => {
            let who = if is_gone {
                "the publisher says that the feed is gone for good (410)"
            } else {
                "its host asked to be left alone (Retry-After)"
            };
            let at = at.rfc3339();
            OperatorAnswer::NotNow(format!(
                "{name}: not polled: {who}; not before {at}, unless with --now"
            ))
        }
        PollAnswer::Unknown => {
            OperatorAnswer::Unknown(format!("{name}: the feed is not polled any more"))
        }
        PollAnswer::Busy => OperatorAnswer::Away(format!(
            "{name}: not polled: everfeed stops, or has too many requests for polls already; try again"
        )),
    }
}

/// The end of a poll in the operator's words; `next` tells of the next one.
fn end_told(name: &str, end: PollEnd, next: &str) -> OperatorAnswer {
    match end {
        PollEnd::Failed(fault) => OperatorAnswer::UpstreamFailed(format!(
            "{name}: the poll failed: {fault}; the fault is {}; {next}",
            fault.owner()
        )),
        PollEnd::Postponed { wait_secs } => OperatorAnswer::Away(format!(
            "{name}: nothing was asked, because its host is being asked by other feeds; it is polled in {wait_secs} s"
        )),
        PollEnd::NotKept { cause, wait_secs } => OperatorAnswer::Away(format!(
            "{name}: the publisher answered, but nothing could be stored: {cause}; it is polled again in {wait_secs} s"
        )),
        PollEnd::AwaitsArchives(until) => OperatorAnswer::Done(format!(
            "{name}: the document was read; it waits for the archives of its feed, until {} at the latest",
            until.rfc3339()
        )),
        PollEnd::Unchanged => OperatorAnswer::Done(format!("{name}: nothing has changed; {next}")),
        PollEnd::Document(ChangeCounts { new, edited, gone }) => OperatorAnswer::Done(format!(
            "{name}: the document was read: {new} new, {edited} edited, {gone} gone; {next}"
        )),
    }
}

fn next_poll(at: Stamp) -> String {
    if at == Stamp::MAX {
        return "not polled again unless asked for".to_owned();
    }
    format!("next poll {}", at.rfc3339())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::schedule::FaultKind;

    #[test]
    fn every_end_is_told_in_words_and_no_fault_without_its_owner() {
        let check =
            |answer: PollAnswer, expect: OperatorAnswer| assert_eq!(told("blog", answer), expect);
        let at = Stamp::from_secs(1_780_272_000);
        let ended = |end| PollAnswer::Ended { end, next_at: at };
        check(
            ended(PollEnd::Document(ChangeCounts { new: 2, edited: 1, gone: 0 })),
            OperatorAnswer::Done(
                "blog: the document was read: 2 new, 1 edited, 0 gone; next poll 2026-06-01T00:00:00Z".into(),
            ),
        );
        check(
            ended(PollEnd::Failed(FaultKind::Refused {
                status: 500,
                has_credentials: false,
            })),
            OperatorAnswer::UpstreamFailed(
                "blog: the poll failed: the publisher answered 500 Internal Server Error; \
                 the fault is the publisher's; next poll 2026-06-01T00:00:00Z"
                    .into(),
            ),
        );
        let OperatorAnswer::NotNow(told_gone) =
            told("blog", PollAnswer::NotBefore { at, is_gone: true })
        else {
            panic!("it is not polled")
        };
        assert!(
            told_gone.contains("410") && told_gone.contains("--now"),
            "{told_gone}"
        );
        let never = PollAnswer::Ended {
            end: PollEnd::Unchanged,
            next_at: Stamp::MAX,
        };
        check(
            never,
            OperatorAnswer::Done(
                "blog: nothing has changed; not polled again unless asked for".into(),
            ),
        );
    }
}
