//! Subscriptions at rest: what each waits for, and who is called up when a feed moves, a time comes,
//! or rights change. The row of one at rest is in the store, and everything else of it is here.

use super::{
    Applicant, Entries, EntryNo, Index, Key, MAILBOX_COMMANDS, Mailbox, State, host_of, one_less,
};
use crate::{
    auth::PrincipalId,
    feed::{
        record::{FeedNo, Head},
        stamp::Stamp,
    },
    hub::{admission::ClientNet, command::TaskCommand, next_step::Offer, remembered::Remembered},
    store::SubscriptionNo,
};
use std::{
    collections::{BTreeSet, HashMap},
    mem,
    sync::Arc,
    time::Duration,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Subscriptions to which the same is offered: those of one principal to one feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::hub) struct GroupKey {
    /// The feed that was subscribed to.
    pub(in crate::hub) feed: FeedNo,
    /// The principal who answers for them.
    pub(in crate::hub) principal: Option<PrincipalId>,
}

/// The offer to a group: the state of its feed, and the feed that is read for it, which may be a
/// part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::hub) struct GroupOffer {
    pub(in crate::hub) offer: Offer,
    pub(in crate::hub) read: Option<FeedNo>,
}

/// The state in which a subscription rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hub) enum RestKind {
    /// It has all of the feed that it reads, and is called up when that moves.
    Following,
    /// There is something to push, which waits for its time; true where it is a heartbeat.
    Behind(bool),
    /// It waits for a time alone.
    Waiting,
}

/// A subscription that goes to rest.
#[derive(Debug)]
pub(in crate::hub) struct Rest {
    pub(in crate::hub) sub: SubscriptionNo,
    pub(in crate::hub) group: GroupKey,
    /// The offer by which it was decided that it has nothing to do.
    pub(in crate::hub) offer: GroupOffer,
    /// The head at which the feed that it reads was read to its end; for those that follow.
    pub(in crate::hub) seen: Option<Head>,
    pub(in crate::hub) kind: RestKind,
    /// Time at which it is called up at the latest.
    pub(in crate::hub) call_at: Stamp,
    pub(in crate::hub) remembered: Remembered,
}

/// A reason for which a subscription does not rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hub) enum NoRest {
    /// A command is on its way, or it is to leave.
    Busy,
    /// Its offer, or its feed, has changed since it looked.
    Stale,
}

/// A subscription that is called up: it has a task again.
#[derive(Debug)]
pub(in crate::hub) struct CalledUp {
    pub(in crate::hub) entry: EntryNo,
    pub(in crate::hub) sub: SubscriptionNo,
    pub(in crate::hub) client: ClientNet,
    pub(in crate::hub) commands: mpsc::Receiver<TaskCommand>,
    pub(in crate::hub) leave: CancellationToken,
    pub(in crate::hub) rested: Rested,
}

/// The remains of a rest.
#[derive(Debug, Default)]
pub(in crate::hub) struct Rested {
    /// True where there is something to push; the value is true where that is a heartbeat.
    pub(in crate::hub) behind: Option<bool>,
    /// The feed that was read for it.
    pub(in crate::hub) read: Option<FeedNo>,
    /// A head up to which it has everything.
    pub(in crate::hub) seen: Option<Head>,
    /// Time by which the clock was set back in between.
    pub(in crate::hub) set_back: Duration,
    pub(in crate::hub) remembered: Remembered,
}

/// The rest of an entry.
#[derive(Debug)]
pub(super) struct AtRest {
    sub: SubscriptionNo,
    group: GroupKey,
    kind: RestKind,
    call_at: Stamp,
    /// Microseconds by which the clock had been set back when it began.
    set_back_us: u64,
    /// True where it gives way to others when it is called up.
    pub(super) gives_way: bool,
    remembered: Option<Box<Remembered>>,
}

/// All that are at rest, by what calls them up.
#[derive(Debug, Default)]
pub(super) struct RestTable {
    groups: HashMap<GroupKey, Group>,
    /// The groups for which each feed is read.
    readers: HashMap<FeedNo, Vec<GroupKey>>,
    by_time: BTreeSet<(Stamp, EntryNo)>,
    /// Microseconds by which the clock was set back since the start.
    set_back_us: u64,
    /// Feeds whose subscriptions do not rest, with the number of those who want that.
    restless: HashMap<FeedNo, usize>,
}

/// Subscriptions at rest to which the same is offered.
#[derive(Debug)]
struct Group {
    offer: GroupOffer,
    /// The head that all of them have seen that follow; `None` where they saw several.
    seen: Option<Head>,
    following: usize,
    members: BTreeSet<EntryNo>,
}

impl Index {
    /// Lets the task of a subscription end while it waits. `present` tells what is offered now, and
    /// the head of a feed: it is asked when nobody can be called up in between.
    pub(in crate::hub) fn rest(
        &self,
        no: EntryNo,
        commands: &mpsc::Receiver<TaskCommand>,
        rest: Rest,
        present: impl FnOnce(&GroupKey) -> (GroupOffer, Option<Head>),
    ) -> Result<(), NoRest> {
        let mut entries = self.lock();
        let Entries {
            of_no, rest: table, ..
        } = &mut *entries;
        let Some(entry) = of_no.get_mut(&no) else {
            return Err(NoRest::Busy);
        };
        let State::AtWork { mailbox, leave } = &entry.state else {
            return Err(NoRest::Busy);
        };
        // Whoever has a way to its task is about to send a command.
        let is_wanted = mailbox.strong_count() > 1 || !commands.is_empty();
        if is_wanted || leave.is_cancelled() || table.restless.contains_key(&rest.group.feed) {
            return Err(NoRest::Busy);
        }
        let (offer, head) = present(&rest.group);
        let is_behind_head = rest.kind == RestKind::Following && head != rest.seen;
        if offer != rest.offer || is_behind_head {
            return Err(NoRest::Stale);
        }
        let group = table.groups.get(&rest.group);
        if group.is_some_and(|group| group.offer != rest.offer) {
            // The others are about to be called up, for what was offered before.
            return Err(NoRest::Busy);
        }
        let is_first = table.next_time().is_none_or(|next| rest.call_at < next);
        entry.state = State::AtRest(table.join(no, rest));
        if is_first {
            self.earlier.notify_one();
        }
        Ok(())
    }

    /// Takes in a stored subscription, at rest; `None` where there is one of its identity.
    pub(in crate::hub) fn take_in(
        &self,
        key: Key,
        applicant: Applicant,
        address: &str,
        rest: Rest,
    ) -> Option<EntryNo> {
        let mut entries = self.lock();
        if entries.nos.contains_key(&key) {
            return None;
        }
        let no = entries.new_no();
        let is_behind = matches!(rest.kind, RestKind::Behind(_));
        let state = State::AtRest(entries.rest.join(no, rest));
        entries.insert(no, key, applicant, host_of(address), state);
        if let Some(entry) = entries.of_no.get_mut(&no) {
            entry.is_behind = is_behind;
        }
        Some(no)
    }

    /// Calls up those whose time has come, the earliest first, at most so many.
    pub(in crate::hub) fn due(&self, now: Stamp, max: usize) -> Vec<CalledUp> {
        let mut entries = self.lock();
        let due = entries.rest.by_time.iter();
        let due = due.take_while(|(at, _)| *at <= now).take(max);
        let due: Vec<EntryNo> = due.map(|(_, no)| *no).collect();
        entries.call_up_all(due)
    }

    /// Time at which the next one is called up.
    pub(in crate::hub) fn next_time(&self) -> Option<Stamp> {
        self.lock().rest.next_time()
    }

    /// Waits until somebody is to be called up before all others.
    pub(in crate::hub) async fn earlier(&self) {
        self.earlier.notified().await;
    }

    // Decides: In which order are subscriptions called up?
    /// Calls up those that follow a feed which has moved, of each host one after another.
    pub(in crate::hub) fn moved(&self, feed: FeedNo) -> Vec<CalledUp> {
        let mut entries = self.lock();
        let Entries { of_no, rest, .. } = &*entries;
        let groups = rest.readers.get(&feed).into_iter().flatten();
        let members = groups.filter_map(|key| rest.groups.get(key));
        let members = members.flat_map(|group| group.members.iter().copied());
        let host_of = |no: EntryNo| {
            let entry = of_no.get(&no)?;
            let follows =
                matches!(&entry.state, State::AtRest(it) if it.kind == RestKind::Following);
            follows.then(|| (no, entry.host.clone()))
        };
        let mut turns: HashMap<Arc<str>, usize> = HashMap::new();
        let mut moved: Vec<(usize, EntryNo)> = members
            .filter_map(host_of)
            .map(|(no, host)| {
                let turn = turns.entry(host).or_default();
                *turn += 1;
                (*turn, no)
            })
            .collect();
        moved.sort_unstable();
        entries.call_up_all(moved.into_iter().map(|(_, no)| no).collect())
    }

    /// Calls up those to whom something else is offered than when they went to rest.
    pub(in crate::hub) fn offers_changed(
        &self,
        present: impl Fn(&GroupKey) -> GroupOffer,
    ) -> Vec<CalledUp> {
        let mut entries = self.lock();
        let groups = entries.rest.groups.iter();
        let changed = groups.filter(|(key, group)| present(key) != group.offer);
        let changed = changed.flat_map(|(_, group)| group.members.iter().copied());
        let mut changed: Vec<EntryNo> = changed.collect();
        changed.sort_unstable();
        entries.call_up_all(changed)
    }

    /// Calls up everybody, as the clock was set back.
    pub(in crate::hub) fn set_back(&self, by: Duration) -> Vec<CalledUp> {
        let mut entries = self.lock();
        let us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        entries.rest.set_back_us = entries.rest.set_back_us.saturating_add(us);
        let mut all: Vec<EntryNo> = entries.rest.by_time.iter().map(|(_, no)| *no).collect();
        all.sort_unstable();
        entries.call_up_all(all)
    }

    /// Calls up the subscriptions to a feed, and lets none of them rest until [`Index::let_rest`].
    pub(in crate::hub) fn keep_at_work(&self, feed: FeedNo) -> Vec<CalledUp> {
        let mut entries = self.lock();
        *entries.rest.restless.entry(feed).or_default() += 1;
        let groups = entries.rest.groups.iter();
        let of_feed = groups.filter(|(key, _)| key.feed == feed);
        let of_feed = of_feed.flat_map(|(_, group)| group.members.iter().copied());
        let mut of_feed: Vec<EntryNo> = of_feed.collect();
        of_feed.sort_unstable();
        entries.call_up_all(of_feed)
    }

    /// Lets the subscriptions to a feed rest again.
    pub(in crate::hub) fn let_rest(&self, feed: FeedNo) {
        one_less(&mut self.lock().rest.restless, &feed);
    }
}

impl Entries {
    /// Calls up these, as far as they are at rest.
    fn call_up_all(&mut self, nos: Vec<EntryNo>) -> Vec<CalledUp> {
        let called_up = nos.into_iter().filter_map(|no| self.call_up(no));
        called_up.map(|(called_up, _)| called_up).collect()
    }

    /// Calls one up that is at rest: whoever starts its task is given the rest of it.
    pub(super) fn call_up(&mut self, no: EntryNo) -> Option<(CalledUp, Mailbox)> {
        let entry = self.of_no.get_mut(&no)?;
        if let State::AtWork { .. } = entry.state {
            return None;
        }
        let (mailbox, commands) = mpsc::channel(MAILBOX_COMMANDS);
        let leave = CancellationToken::new();
        let at_work = State::AtWork {
            mailbox: mailbox.clone(),
            leave: leave.clone(),
        };
        let State::AtRest(at_rest) = mem::replace(&mut entry.state, at_work) else {
            return None;
        };
        if at_rest.gives_way {
            leave.cancel();
        }
        let called_up = CalledUp {
            entry: no,
            sub: at_rest.sub,
            client: entry.applicant.client,
            commands,
            leave,
            rested: self.rest.leave(no, at_rest),
        };
        Some((called_up, mailbox))
    }
}

impl RestTable {
    fn next_time(&self) -> Option<Stamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// True where one is to be called up whatever the time is.
    pub(super) fn is_due(&self) -> bool {
        self.next_time() == Some(Stamp::ZERO)
    }

    /// Calls one up at another time.
    pub(super) fn call_up_at(&mut self, no: EntryNo, rest: &mut AtRest, at: Stamp) {
        self.by_time.remove(&(rest.call_at, no));
        rest.call_at = at;
        self.by_time.insert((at, no));
    }

    fn join(&mut self, no: EntryNo, rest: Rest) -> AtRest {
        let group = self.groups.entry(rest.group).or_insert_with(|| {
            if let Some(read) = rest.offer.read {
                self.readers.entry(read).or_default().push(rest.group);
            }
            Group {
                offer: rest.offer,
                seen: None,
                following: 0,
                members: BTreeSet::new(),
            }
        });
        if rest.kind == RestKind::Following {
            let is_first = group.following == 0;
            if is_first || group.seen != rest.seen {
                // The others are about to be called up.
                group.seen = rest.seen.filter(|_| is_first);
            }
            group.following += 1;
        }
        group.members.insert(no);
        self.by_time.insert((rest.call_at, no));
        let is_empty = rest.remembered == Remembered::default();
        AtRest {
            sub: rest.sub,
            group: rest.group,
            kind: rest.kind,
            call_at: rest.call_at,
            set_back_us: self.set_back_us,
            gives_way: false,
            remembered: (!is_empty).then(|| Box::new(rest.remembered)),
        }
    }

    /// Takes an entry out of all tables.
    pub(super) fn leave(&mut self, no: EntryNo, at_rest: AtRest) -> Rested {
        let AtRest {
            group: key, kind, ..
        } = at_rest;
        self.by_time.remove(&(at_rest.call_at, no));
        let mut rested = Rested {
            behind: None,
            read: None,
            seen: None,
            set_back: Duration::from_micros(self.set_back_us - at_rest.set_back_us),
            remembered: at_rest
                .remembered
                .map_or_else(Remembered::default, |it| *it),
        };
        if let RestKind::Behind(is_heartbeat) = kind {
            rested.behind = Some(is_heartbeat);
        }
        let Some(group) = self.groups.get_mut(&key) else {
            return rested;
        };
        rested.read = group.offer.read;
        if kind == RestKind::Following {
            rested.seen = group.seen;
            group.following -= 1;
        }
        group.members.remove(&no);
        if group.members.is_empty() {
            self.groups.remove(&key);
            if let Some(read) = rested.read
                && let Some(groups) = self.readers.get_mut(&read)
            {
                groups.retain(|other| *other != key);
                if groups.is_empty() {
                    self.readers.remove(&read);
                }
            }
        }
        rested
    }
}
