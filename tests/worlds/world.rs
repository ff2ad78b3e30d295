//! The things that all parts of a world share: its time, its chances, its trace, its faults, and the disk that
//! outlives a crash; not who acts.

use super::{
    chance::Chance,
    plan::{Plan, SECOND, Shown},
    publisher::{Publisher, START_SECS},
    trace::Trace,
};
use everfeed::{
    clock::Clock,
    feed::stamp::Stamp,
    store::{
        Outage, Remedy, StoreCondition, StoreError,
        memory::{Disk, DiskCopy, DiskPace},
    },
};
use futures_util::future::BoxFuture;
use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

thread_local! {
    /// The chance of waits between tries, which everfeed asks a function for.
    static JITTER: RefCell<Chance> = RefCell::new(Chance::new(0));
}

/// A random number of 0..1 for everfeed, from the seed of the world on this thread.
pub(crate) fn jitter() -> f64 {
    JITTER.with_borrow_mut(Chance::unit)
}

/// A world that is played.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) disk: Disk,
    /// Rings when everfeed dies, or when somebody has found a fault.
    pub(crate) end: Notify,
    state: Mutex<State>,
}

pub(crate) struct State {
    /// Time of the world before the present everfeed began.
    base: Duration,
    began: Option<Instant>,
    /// Microseconds by which the clock is ahead.
    pub(crate) skew_us: i64,
    pub(crate) publishers: BTreeMap<usize, Publisher>,
    /// Feeds that are in the configuration, and the part that anonymous readers see of each.
    pub(crate) configured: BTreeMap<usize, Shown>,
    /// Changes of the configuration so far.
    pub(crate) configurations: u32,
    /// True until everfeed has taken in the last of them, which its store may refuse for a while.
    pub(crate) is_reloading: bool,
    /// True once nothing happens any more.
    pub(crate) is_quiet: bool,
    /// True from a crash to the next start: nothing that everfeed does reaches anybody.
    is_dead: bool,
    /// Points of everfeed's work until it crashes.
    armed: Option<u64>,
    /// The number of the present everfeed.
    pub(crate) life: u32,
    /// The first fault that was found.
    fault: Option<String>,
    disk_full_until_ms: u64,
    disk_trouble_until_ms: u64,
    /// The last backup.
    pub(crate) copy: Option<DiskCopy>,
    /// Restores so far.
    pub(crate) restores: u32,
    /// Times up to which consumers do nothing.
    pub(crate) away_until_ms: BTreeMap<usize, u64>,
    /// Consumers that crash when they have applied a page.
    pub(crate) crashing: Vec<usize>,
    chances: BTreeMap<String, Chance>,
    pub(crate) trace: Trace,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Arc<Self> {
        JITTER.set(Chance::of(plan.seed, "jitter"));
        let publishers = plan.feeds.iter();
        let publishers = publishers.map(|feed| (feed.no, Publisher::new(feed, plan.seed)));
        let configured = plan.feeds.iter().map(|feed| (feed.no, feed.shown));
        let state = State {
            base: Duration::ZERO,
            began: None,
            skew_us: 0,
            publishers: publishers.collect(),
            configured: configured.collect(),
            configurations: 0,
            is_reloading: false,
            is_quiet: false,
            is_dead: false,
            armed: None,
            life: 0,
            fault: None,
            disk_full_until_ms: 0,
            disk_trouble_until_ms: 0,
            copy: None,
            restores: 0,
            away_until_ms: BTreeMap::new(),
            crashing: Vec::new(),
            chances: BTreeMap::new(),
            trace: Trace::default(),
        };
        Arc::new(Self {
            plan,
            disk: Disk::default(),
            end: Notify::new(),
            state: Mutex::new(state),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// Time since the world began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.state().elapsed()
    }

    /// The same in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.elapsed().as_millis() as u64
    }

    /// The time that publishers write into their posts.
    pub(crate) fn now_secs(&self) -> u64 {
        START_SECS + self.elapsed().as_secs()
    }

    /// Waits until a time of the world.
    pub(crate) async fn until(&self, at_ms: u64) {
        let left = at_ms.saturating_sub(self.now_ms());
        sleep(Duration::from_millis(left)).await;
    }

    pub(crate) fn trace(&self, line: &str) {
        self.add_line(line, true);
    }

    /// A line that says little, and is not shown.
    pub(crate) fn trace_aside(&self, line: &str) {
        self.add_line(line, false);
    }

    fn add_line(&self, line: &str, is_shown: bool) {
        let mut state = self.state();
        let now_us = state.elapsed().as_micros() as u64;
        state.trace.add(now_us, line, is_shown);
    }

    /// Draws from the chances of something with this name.
    pub(crate) fn draw<T>(&self, name: &str, draw: impl FnOnce(&mut Chance) -> T) -> T {
        let (seed, mut state) = (self.plan.seed, self.state());
        let chance = state.chances.entry(name.to_owned());
        draw(chance.or_insert_with(|| Chance::of(seed, name)))
    }

    /// Draws from the chances of this moment: who is woken first by a `watch` of tokio's is left to a
    /// chance that no seed reaches, and must not change what others draw.
    fn draw_now<T>(&self, name: &str, draw: impl FnOnce(&mut Chance) -> T) -> T {
        let now_us = self.elapsed().as_micros();
        draw(&mut Chance::of(self.plan.seed, &format!("{name} {now_us}")))
    }

    /// True so many times in a thousand, while there is trouble at all.
    pub(crate) fn is_troubled(&self, name: &str, share: u64) -> bool {
        if self.state().is_quiet {
            return false;
        }
        self.draw(name, |chance| chance.permille(share))
    }

    /// Notes that a rule of the world does not hold; the first one counts.
    pub(crate) fn fault(&self, what: String) {
        let is_first = self.state().fault.is_none();
        if is_first {
            self.trace(&format!("FAULT {what}"));
            self.state().fault = Some(what);
            self.end.notify_one();
        }
    }

    pub(crate) fn found_fault(&self) -> Option<String> {
        self.state().fault.clone()
    }

    /// A point of everfeed's work that others can see. Here it may crash; once it has, nobody gets
    /// beyond one.
    pub(crate) async fn point(&self, what: &str) {
        let crashes = {
            let mut state = self.state();
            let is_dead = state.is_dead;
            match state.armed {
                Some(0) if !is_dead => {
                    state.armed = None;
                    state.is_dead = true;
                    true
                }
                Some(left) if !is_dead => {
                    state.armed = Some(left - 1);
                    false
                }
                _ => false,
            }
        };
        if crashes {
            self.trace(&format!("everfeed crashes: {what}"));
            self.end.notify_one();
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// Has everfeed crash at the so manyth point from now.
    pub(crate) fn arm(&self, points: u64) {
        self.state().armed = Some(points);
    }

    /// Has it not crash; true if it was to.
    pub(crate) fn disarm(&self) -> bool {
        self.state().armed.take().is_some()
    }

    /// Has it crash now, if it has not.
    pub(crate) fn kill(&self) {
        let mut state = self.state();
        (state.armed, state.is_dead) = (None, true);
    }

    /// A new everfeed begins.
    pub(crate) fn begin_life(&self) {
        let mut state = self.state();
        state.began = Some(Instant::now());
        (state.is_dead, state.armed) = (false, None);
        state.life += 1;
    }

    /// It has ended, and another one begins so much later.
    pub(crate) fn end_life(&self, down: Duration) {
        let mut state = self.state();
        state.base = state.elapsed() + down;
        state.began = None;
    }

    pub(crate) fn fill_disk(&self, secs: u64) {
        let until = self.now_ms() + secs * SECOND;
        self.state().disk_full_until_ms = until;
    }

    pub(crate) fn trouble_disk(&self, secs: u64) {
        let until = self.now_ms() + secs * SECOND;
        self.state().disk_trouble_until_ms = until;
    }

    /// Ends all troubles that last.
    pub(crate) fn calm(&self) {
        let mut state = self.state();
        state.is_quiet = true;
        (state.disk_full_until_ms, state.disk_trouble_until_ms) = (0, 0);
        (state.skew_us, state.armed) = (0, None);
        state.away_until_ms.clear();
        state.crashing.clear();
        for publisher in state.publishers.values_mut() {
            publisher.out_until_ms = 0;
        }
    }

    fn is_disk_full(&self) -> bool {
        self.now_ms() < self.state().disk_full_until_ms
    }

    fn is_disk_troubled(&self, what: &str) -> bool {
        self.now_ms() < self.state().disk_trouble_until_ms && self.is_troubled(what, 150)
    }
}

impl State {
    /// The first fault that was found.
    pub(crate) fn fault(&self) -> Option<&String> {
        self.fault.as_ref()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.base + self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }
}

/// The clock of a world, which may be wrong for a while.
pub(crate) struct WorldClock(pub(crate) Arc<World>);

impl Clock for WorldClock {
    fn now_us(&self) -> u64 {
        let state = self.0.state();
        let right = START_SECS * 1_000_000 + state.elapsed().as_micros() as u64;
        right.saturating_add_signed(state.skew_us)
    }
}

/// The time by the clock of a world.
pub(crate) fn stamp(world: &Arc<World>) -> Stamp {
    Stamp::from_micros(WorldClock(world.clone()).now_us())
}

/// The disk of a world: it takes its time, fails, and is full for a while.
pub(crate) struct WorldDisk(pub(crate) Arc<World>);

impl DiskPace for WorldDisk {
    fn begin(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            self.0.point("before a write").await;
            let ms = self.0.draw_now("disk", |chance| chance.within(1, 20));
            sleep(Duration::from_millis(ms)).await;
            if self.0.is_disk_full() {
                return Err(StoreError::Away("the disk is full".to_owned()));
            }
            if self.0.is_disk_troubled("a write fails") {
                return Err(StoreError::Failed("the disk failed".to_owned()));
            }
            self.0.point("in a write").await;
            Ok(())
        })
    }

    fn end(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            self.0.point("behind a write").await;
            let ms = self.0.draw_now("disk", |chance| chance.within(0, 5));
            sleep(Duration::from_millis(ms)).await;
            if self.0.is_disk_troubled("an end is not told") {
                let why = "its answer was lost".to_owned();
                return Err(StoreError::OutcomeUnknown(why));
            }
            self.0.point("before the end of a write is told").await;
            Ok(())
        })
    }

    fn read(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // Most of what is read is at hand, and now and then a disk takes seconds.
            let ms = self.0.draw_now("reads", |chance| match chance.below(100) {
                0 => chance.below(8000),
                1..20 => chance.below(20),
                _ => 0,
            });
            if ms > 0 {
                sleep(Duration::from_millis(ms)).await;
            }
        })
    }

    fn condition(&self) -> StoreCondition {
        if !self.0.is_disk_full() {
            return StoreCondition::Sound;
        }
        StoreCondition::Away(Outage {
            cause: "the disk is full".to_owned(),
            since: stamp(&self.0),
            remedy: Remedy::TriesAgain,
        })
    }
}

/// A disk that takes no time, for a look at what is on it.
pub(crate) struct PromptDisk;

impl DiskPace for PromptDisk {
    fn begin(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Err(StoreError::Closed) })
    }

    fn end(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Err(StoreError::Closed) })
    }
}
