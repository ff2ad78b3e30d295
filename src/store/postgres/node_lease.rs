//! The seat of this process among those that share a database: its duty, what it committed that the
//! others are not told of yet, and how far each feed has come as far as it knows. Nothing is sent.

use crate::{
    feed::{
        record::{FeedNo, FeedRecord, Head},
        stamp::Stamp,
    },
    locks::lock,
    store::{Duty, NodeDifferences, NodeFace, StoreError, stored::decode},
};
use std::{
    collections::{BTreeSet, HashMap},
    mem::take,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

/// Time in which a process that works no more ends what it began. It does not take over before.
const FALLEN_REST: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 2_000 });

/// Bytes of one notification; PostgreSQL takes 7,999.
const PAYLOAD_BYTES_MAX: usize = 7_900;

/// The seat of this process.
pub(super) struct NodeLease {
    /// The number of this process, which is random.
    pub(super) id: i32,
    /// True where notifications are sent and heard.
    pub(super) is_woken: bool,
    duty: watch::Sender<Duty>,
    /// The time at which it worked last, when another one took over.
    fell: Mutex<Option<Instant>>,
    /// The face with which it was introduced.
    pub(super) face: Mutex<Option<NodeFace>>,
    /// The differences of its configuration.
    pub(super) differences: Mutex<Option<NodeDifferences>>,
    /// Milliseconds from a commit of another process to its arrival here.
    pub(super) wake_lag_ms: Mutex<Option<u64>>,
    heads: Mutex<HashMap<FeedNo, KnownHead>>,
    to_tell: Mutex<ToTell>,
    /// Rings when there is something to tell.
    pub(super) telling: Notify,
    /// Rings when the keeper is to look at once.
    pub(super) looking: Notify,
    /// True when the database may have lost commits.
    pub(super) has_suspicion: AtomicBool,
    /// The time at which all feeds began new generations, in microseconds since 1970; 0 where they
    /// never did.
    pub(super) restored_us: AtomicU64,
}

/// A feed as far as it is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownHead {
    pub(super) rev: u64,
    pub(super) head: Head,
}

impl KnownHead {
    pub(super) fn of(record: &FeedRecord) -> Self {
        Self {
            rev: record.rev,
            head: record.head(),
        }
    }

    /// That of a row of the table of feeds. `Damaged` for one that cannot be read.
    pub(super) fn of_row(value: &[u8]) -> Result<(FeedNo, Self), StoreError> {
        let record: FeedRecord = decode("a feed", value)?;
        Ok((record.no, Self::of(&record)))
    }

    /// True where the other one is an earlier state of the same feed.
    fn is_after(&self, other: &Self) -> bool {
        other.rev < self.rev || other.head.last_t < self.head.last_t
    }
}

/// The news in a feed that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// It has gone on.
    News,
    /// It is as it was.
    Nothing,
    /// It was further already: it was found before that, or the database lost commits.
    IsBehind,
}

/// The moves of a transaction.
#[derive(Default)]
pub(super) struct MovedInCommit {
    pub(super) feeds: Vec<(FeedNo, KnownHead)>,
    /// True when feeds were registered or removed, or likewise (see `Moves`).
    pub(super) is_wide: bool,
    /// The time of the database at which it began.
    pub(super) began: Stamp,
}

/// Moves that the others are not told of yet.
#[derive(Default)]
struct ToTell {
    feeds: BTreeSet<FeedNo>,
    since: Option<Stamp>,
    others: BTreeSet<String>,
}

impl NodeLease {
    pub(super) fn new(id: i32, is_woken: bool, duty: watch::Sender<Duty>) -> Self {
        Self {
            id,
            is_woken,
            duty,
            fell: Mutex::default(),
            face: Mutex::default(),
            differences: Mutex::default(),
            wake_lag_ms: Mutex::default(),
            heads: Mutex::default(),
            to_tell: Mutex::default(),
            telling: Notify::new(),
            looking: Notify::new(),
            has_suspicion: AtomicBool::new(false),
            restored_us: AtomicU64::new(0),
        }
    }

    /// True while this process works.
    pub(super) fn works(&self) -> bool {
        *self.duty.borrow() == Duty::Working
    }

    /// Tells its duty to whoever watches it.
    pub(super) fn set_duty(&self, duty: Duty) {
        let has_changed = self.duty.send_if_modified(|held| {
            let is_new = *held != duty;
            *held = duty;
            is_new
        });
        if has_changed && duty == Duty::Following {
            *lock(&self.fell) = Some(Instant::now());
        }
    }

    /// True while work of this process may still be under way that it began before another one
    /// worked: a document that was read then must not be stored by it in a later epoch.
    pub(super) fn has_just_fallen(&self) -> bool {
        let fell = *lock(&self.fell);
        fell.is_some_and(|fell| fell.elapsed() < FALLEN_REST)
    }

    /// Takes in how far a feed has come, as it was found.
    pub(super) fn learn(&self, feed: FeedNo, found: KnownHead) -> Learned {
        let mut heads = lock(&self.heads);
        match heads.get(&feed) {
            Some(held) if *held == found => Learned::Nothing,
            Some(held) if held.is_after(&found) => Learned::IsBehind,
            _ => {
                heads.insert(feed, found);
                Learned::News
            }
        }
    }

    /// The last feed that is known, and the last T that is known of any.
    pub(super) fn newest(&self) -> (Option<FeedNo>, Stamp) {
        let heads = lock(&self.heads);
        let last_t = heads.values().map(|known| known.head.last_t).max();
        (heads.keys().copied().max(), last_t.unwrap_or_default())
    }

    /// Forgets how far the feeds have come.
    pub(super) fn forget_heads(&self) {
        lock(&self.heads).clear();
    }

    /// Notes what this process committed.
    pub(super) fn note(&self, moved: MovedInCommit) {
        let mut heads = lock(&self.heads);
        for (feed, known) in &moved.feeds {
            let held = heads.entry(*feed).or_insert(*known);
            // Two commits of a feed may be noted in another order than they were made in.
            if known.is_after(held) {
                *held = *known;
            }
        }
        drop(heads);
        if !self.is_woken || (moved.feeds.is_empty() && !moved.is_wide) {
            return;
        }
        let mut to_tell = lock(&self.to_tell);
        to_tell.since.get_or_insert(moved.began);
        to_tell
            .feeds
            .extend(moved.feeds.iter().map(|(feed, _)| *feed));
        if moved.is_wide {
            to_tell.others.insert(WakeUp::Sweep.to_string());
        }
        drop(to_tell);
        self.telling.notify_one();
    }

    /// Has the others told.
    pub(super) fn tell(&self, wake_up: &WakeUp) {
        if self.is_woken {
            lock(&self.to_tell).others.insert(wake_up.to_string());
            self.telling.notify_one();
        }
    }

    /// The texts of what the others are to be told.
    pub(super) fn take_told(&self) -> Vec<String> {
        let ToTell {
            feeds,
            since,
            others,
        } = take(&mut *lock(&self.to_tell));
        let mut told: Vec<String> = others.into_iter().collect();
        if !feeds.is_empty() {
            let began = since.unwrap_or(Stamp::ZERO);
            let moved = WakeUp::Moved(began, feeds.into_iter().collect()).to_string();
            told.push(if moved.len() > PAYLOAD_BYTES_MAX {
                WakeUp::Sweep.to_string()
            } else {
                moved
            });
        }
        told
    }
}

/// A notification of one process to the others. One that is lost or cannot be read costs time alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WakeUp {
    /// These feeds moved, from this time of the database on.
    Moved(Stamp, Vec<FeedNo>),
    /// Something moved.
    Sweep,
    /// Nobody works any more.
    Vacant,
    /// A question waits.
    Asked,
    /// The question of this number is answered.
    Answered(i64),
}

impl std::fmt::Display for WakeUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Moved(began, feeds) => {
                write!(f, "moved {}", began.micros())?;
                feeds.iter().try_for_each(|feed| write!(f, " {}", feed.0))
            }
            Self::Sweep => f.write_str("sweep"),
            Self::Vacant => f.write_str("vacant"),
            Self::Asked => f.write_str("asked"),
            Self::Answered(no) => write!(f, "answered {no}"),
        }
    }
}

impl WakeUp {
    /// The notification of a text. One of a newer everfeed is a reason to look.
    pub(super) fn of_text(text: &str) -> Self {
        let mut words = text.split(' ');
        match words.next() {
            Some("moved") => {
                let began = words.next().and_then(|micros| micros.parse().ok());
                let feeds = words.map(|no| no.parse().map(FeedNo));
                match (began, feeds.collect()) {
                    (Some(began), Ok(feeds)) => Self::Moved(Stamp::from_micros(began), feeds),
                    _ => Self::Sweep,
                }
            }
            Some("vacant") => Self::Vacant,
            Some("asked") => Self::Asked,
            Some("answered") => words
                .next()
                .and_then(|no| no.parse().ok())
                .map_or(Self::Sweep, Self::Answered),
            _ => Self::Sweep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_is_read_as_it_was_written_and_any_other_is_a_reason_to_look() {
        for wake_up in [
            WakeUp::Moved(Stamp::from_micros(7), vec![FeedNo(1), FeedNo(900)]),
            WakeUp::Sweep,
            WakeUp::Vacant,
            WakeUp::Asked,
            WakeUp::Answered(12),
        ] {
            assert_eq!(WakeUp::of_text(&wake_up.to_string()), wake_up);
        }
        for text in ["", "moved", "moved x 1", "moved 1 x", "answered", "new 1"] {
            assert_eq!(WakeUp::of_text(text), WakeUp::Sweep, "{text}");
        }
    }

    #[test]
    fn more_feeds_than_a_notification_holds_are_told_as_a_sweep() {
        let seat = NodeLease::new(1, true, watch::channel(Duty::Working).0);
        let known = KnownHead {
            rev: 1,
            head: Head::default(),
        };
        let note = |feeds: std::ops::Range<u32>| {
            seat.note(MovedInCommit {
                feeds: feeds.map(|no| (FeedNo(no), known)).collect(),
                ..MovedInCommit::default()
            });
        };
        note(1..3);
        note(2..4);
        assert_eq!(seat.take_told(), ["moved 0 1 2 3"]);
        assert!(seat.take_told().is_empty());
        note(0..2_000);
        assert_eq!(seat.take_told(), ["sweep"]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_works_no_more_does_not_take_over_at_once() {
        let (duty, _) = watch::channel(Duty::Following);
        let seat = NodeLease::new(1, true, duty);
        assert!(!seat.has_just_fallen());
        seat.set_duty(Duty::Working);
        assert!(!seat.has_just_fallen());
        seat.set_duty(Duty::Following);
        assert!(seat.has_just_fallen());
        tokio::time::advance(FALLEN_REST).await;
        assert!(!seat.has_just_fallen());
    }
}
