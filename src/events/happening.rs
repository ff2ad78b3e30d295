//! What happens once in a window of a feed, on its way to the operator: a bounded inbox between the
//! polls and the journal.

use super::{AffectedFeeds, Cause, EventTopic, FaultOwner, Finding};
use crate::{
    feed::{absence::WindowEvent, stamp::Stamp},
    locks::lock,
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

/// Happenings at most that wait for the journal; the oldest ones give way.
const WAITING_MAX: usize = 500;

/// Something that happened once in the window of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// The name of the feed.
    pub feed: String,
    /// What happened.
    pub event: WindowEvent,
    /// When.
    pub at: Stamp,
}

/// What has happened since the journal last took it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Happenings(Arc<Mutex<VecDeque<Happening>>>);

impl Happenings {
    /// Notes what happened, unless it is of no news to the operator.
    pub fn note(&self, feed: &str, event: WindowEvent, at: Stamp) {
        let happening = Happening {
            feed: feed.to_owned(),
            event,
            at,
        };
        if happening.finding().is_none() {
            return;
        }
        let mut waiting = lock(&self.0);
        if waiting.len() == WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back(happening);
    }

    /// Takes all that wait, oldest first.
    pub fn take(&self) -> Vec<Happening> {
        std::mem::take(&mut *lock(&self.0)).into()
    }
}

impl Happening {
    /// The finding of it; `None` for what is only logged.
    pub(super) fn finding(&self) -> Option<Finding> {
        let (topic, words, text, remedy) = match self.event {
            WindowEvent::Gap => (
                EventTopic::Gap,
                "may lack items",
                "nothing of the last document is in the new one; items between the two may be missing",
                "poll the feed more often (`poll.max_secs` of the feed) if its posts leave it faster than it is polled",
            ),
            WindowEvent::Reformatted => (
                EventTopic::MassEdit,
                "was edited as a whole",
                "most of its posts were edited at once, and none of them says so by its date",
                "nothing, if the blog was rebuilt; its subscribers are sent each edit",
            ),
            WindowEvent::Quarantined => (
                EventTopic::Quarantine,
                "lacks too much at once",
                "too many of its posts are missing at once; none counts as deleted until they are back, or for a week",
                "look at the feed: is it broken, or cut short? If the posts were deleted, nothing has to be done",
            ),
            WindowEvent::QuarantineEnded => (
                EventTopic::Quarantine,
                "lacked too much for a week",
                "the posts stayed missing for a week and no page told why; its window begins again, and nothing was deleted",
                "`everfeed explain FEED` tells what is known of it",
            ),
            WindowEvent::QuarantineDecided => (
                EventTopic::Quarantine,
                "lacks posts whose pages have decided",
                "the pages of the posts that were missing at once have decided on each of them",
                "",
            ),
            WindowEvent::DailyLimit => (
                EventTopic::Quarantine,
                "loses more posts than is believed in a day",
                "more of its posts seem to be deleted than is believed in a day; the rest waits",
                "look at the feed: is it broken? If the posts were deleted, nothing has to be done",
            ),
            WindowEvent::Rebaselined
            | WindowEvent::Doubted
            | WindowEvent::AbsenceOff
            | WindowEvent::Pinned => return None,
        };
        let cause = Cause::new(topic, &self.feed);
        let title = format!("`{}` {words}", self.feed);
        let finding = Finding::new(cause, FaultOwner::Nobody, self.at, &title, text);
        Some(Finding {
            feeds: AffectedFeeds::one(&self.feed),
            ..finding.remedy(remedy).notice()
        })
    }
}
