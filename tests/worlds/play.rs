//! Plays a world: one everfeed after another over one disk, what happens when, and the rest at the
//! end.

use super::{
    consumer::{Consumer, act},
    everfeed_life::Life,
    plan::{ConsumerPlan, HOUR, Plan, SECOND, Shown, What},
    publisher::Publisher,
    push::CallbackSide,
    quiet,
    world::{World, stamp},
};
use std::{
    cell::RefCell,
    collections::VecDeque,
    panic,
    sync::{Arc, Mutex as StdMutex, Once, OnceLock},
    time::Duration,
};
use tokio::{runtime, sync::Mutex, time::sleep};

thread_local! {
    /// The first panic on this thread since it was last taken.
    static PANICKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The longest rest until a world is as it should be.
const REST_HOURS: u64 = 30;

/// Hours for which it goes on while feeds still change: a page may have proved a deletion last.
pub(crate) const STILL_HOURS_MAX: u64 = 24;

/// Hours of rest after which every consumer holds what its feed holds, whatever that is.
const REST_HOURS_CONSUMERS: u64 = 4;

/// Seconds within which an armed crash happens, at a point or without one.
const ARMED_SECS: u64 = 300;

/// The end of a world.
pub(crate) struct Outcome {
    /// The rule that does not hold.
    pub(crate) fault: Option<String>,
    /// Digest of its trace.
    pub(crate) digest: String,
    /// Lines of its trace.
    pub(crate) lines: usize,
    /// The last lines.
    pub(crate) tail: String,
    /// Time that passed in it.
    pub(crate) simulated: Duration,
    pub(crate) pushes: usize,
    pub(crate) pages: usize,
    pub(crate) anew: usize,
    pub(crate) lives: u32,
}

/// The reason for which a life of everfeed ended.
enum LifeEnd {
    /// It crashed, or was stopped; the next begins so much later.
    Down { secs: u64, restores: bool },
    /// The world is over.
    Over,
}

/// Things that are still to happen.
struct Agenda {
    deeds: VecDeque<(u64, What)>,
    /// The course of the next crash.
    next_down: Option<LifeEnd>,
    has_rested: bool,
}

/// Plays a world to its end, on this thread.
pub(crate) fn play(plan: &Plan) -> Outcome {
    catch_panics();
    let world = World::new(plan.clone());
    let shared = |plan: &ConsumerPlan| (plan.no, Arc::new(Mutex::new(Consumer::new(plan))));
    let side = CallbackSide::of(plan.consumers.iter().map(shared).collect());
    let agenda = StdMutex::new(Agenda {
        deeds: plan
            .deeds
            .iter()
            .map(|deed| (deed.at_ms, deed.what.clone()))
            .collect(),
        next_down: None,
        has_rested: false,
    });
    loop {
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let end = runtime.block_on(live(&world, &side, &agenda));
        let panicked = PANICKED.take();
        if let Some(panicked) = panicked {
            runtime.block_on(async { world.fault(format!("panic: {panicked}")) });
        }
        let down = match &end {
            LifeEnd::Down { secs, .. } => *secs,
            LifeEnd::Over => 0,
        };
        world.kill();
        runtime.block_on(async { world.end_life(Duration::from_secs(down)) });
        drop(runtime);
        if world.found_fault().is_some() {
            break;
        }
        match end {
            LifeEnd::Over => break,
            LifeEnd::Down { restores, .. } => put_back(&world, restores),
        }
    }
    outcome(&world, &side)
}

fn outcome(world: &Arc<World>, side: &CallbackSide) -> Outcome {
    let (mut pages, mut anew, mut pushes) = (0, 0, 0);
    for (_, consumer) in &side.consumers {
        let consumer = consumer.try_lock().expect("nobody acts any more");
        pages += consumer.mirror.pages;
        anew += consumer.mirror.anew;
        pushes += side.chain(consumer.plan.no, |chain| chain.pushes);
    }
    let state = world.state();
    Outcome {
        fault: state.fault().cloned(),
        digest: state.trace.digest(),
        lines: state.trace.count(),
        tail: state.trace.tail(400),
        simulated: state.elapsed(),
        pushes,
        pages,
        anew,
        lives: state.life,
    }
}

/// The state of the disk after a crash.
fn put_back(world: &Arc<World>, restores: bool) {
    let unsynced = world.disk.unsynced() as u64;
    let lost = world.draw("lost", |chance| chance.within(0, unsynced));
    world.disk.crash(lost as usize);
    if lost > 0 {
        world.trace(&format!("{lost} of {unsynced} writes are lost"));
    }
    let copy = world.state().copy.clone();
    if let Some(copy) = copy.filter(|_| restores) {
        let restored = world.disk.restore(&copy, stamp(world));
        world.state().restores += 1;
        world.trace(&format!("a copy is restored: {restored:?}"));
    }
}

/// One life of everfeed.
async fn live(world: &Arc<World>, side: &CallbackSide, agenda: &StdMutex<Agenda>) -> LifeEnd {
    world.begin_life();
    world.trace("everfeed starts");
    let ends = async {
        let life = started(world, side).await;
        for (_, consumer) in &side.consumers {
            tokio::spawn(act(world.clone(), life.clone(), consumer.clone()));
        }
        drive(world, &life, agenda).await
    };
    tokio::select! {
        biased;
        () = world.end.notified() => {
            if world.found_fault().is_some() {
                return LifeEnd::Over;
            }
            let planned = agenda.lock().unwrap().next_down.take();
            planned.unwrap_or(LifeEnd::Down { secs: 5, restores: false })
        }
        end = ends => end,
    }
}

/// An everfeed that has started: a start that the disk refuses is tried again.
async fn started(world: &Arc<World>, side: &CallbackSide) -> Arc<Life> {
    loop {
        let cell = Arc::new(OnceLock::new());
        let callbacks = side.service(world, &cell);
        match Life::start(world, callbacks, side.clone()).await {
            Ok(life) => {
                let life = Arc::new(life);
                let _ = cell.set(Arc::downgrade(&life));
                world.state().is_reloading = false;
                return life;
            }
            Err(error) => {
                world.trace(&format!("everfeed does not start: {error}"));
                sleep(Duration::from_secs(10)).await;
            }
        }
    }
}

/// Has happen what is to happen, and then rests until all is as it should be.
async fn drive(world: &Arc<World>, life: &Arc<Life>, agenda: &StdMutex<Agenda>) -> LifeEnd {
    loop {
        let next = agenda.lock().unwrap().deeds.front().cloned();
        let Some((at_ms, what)) = next else { break };
        if at_ms > world.plan.busy_ms {
            break;
        }
        world.until(at_ms).await;
        agenda.lock().unwrap().deeds.pop_front();
        if let Some(end) = happen(world, life, agenda, &what).await {
            return end;
        }
    }
    world.until(world.plan.busy_ms).await;
    if !std::mem::replace(&mut agenda.lock().unwrap().has_rested, true) {
        world.trace("everything rests");
        world.calm();
        let feeds = world.plan.feeds.iter();
        let feeds: Vec<_> = feeds.map(|feed| (feed.no, feed.shown)).collect();
        {
            let mut state = world.state();
            for (no, shown) in feeds {
                let open = match shown {
                    Shown::Nothing => Shown::All,
                    shown => shown,
                };
                let present = state.configured.entry(no).or_insert(open);
                if *present == Shown::Nothing {
                    *present = open;
                }
            }
            state.configurations += 1;
        }
        life.callback_side().begin_rest(world);
    }
    reload(world, life).await;
    let mut why = None;
    let mut heads = quiet::heads(world, life);
    for hour in 1..=REST_HOURS + STILL_HOURS_MAX {
        sleep(Duration::from_millis(HOUR)).await;
        let before = std::mem::replace(&mut heads, quiet::heads(world, life));
        // Consumers have had no time to read what changed within the hour.
        let is_still = heads == before;
        let of_consumers = quiet::of_consumers(life).await;
        why = of_consumers
            .clone()
            .or_else(|| quiet::of_feeds(world, life));
        let is_late = hour >= REST_HOURS_CONSUMERS && is_still;
        let is_over = hour >= REST_HOURS && is_still;
        if let Some(missing) = quiet::missing(world, life).filter(|_| is_late) {
            why = Some(missing);
            break;
        }
        if why.is_none() || is_over || (is_late && of_consumers.is_some()) {
            break;
        }
    }
    match why {
        Some(why) => world.fault(format!("at rest: {why}")),
        None => quiet::check_rest(world, life).await,
    }
    LifeEnd::Over
}

/// Has one thing happen; an end of everfeed that follows at once.
async fn happen(
    world: &Arc<World>,
    life: &Arc<Life>,
    agenda: &StdMutex<Agenda>,
    what: &What,
) -> Option<LifeEnd> {
    let told = match what {
        What::Add { feed, posts } => {
            let now_secs = world.now_secs();
            with_publisher(world, *feed, |publisher| {
                (0..*posts).for_each(|_| publisher.add(now_secs));
            })
        }
        What::Edit { feed } => with_publisher(world, *feed, |publisher| {
            publisher.edit();
        }),
        What::Delete { feed } => with_publisher(world, *feed, |publisher| {
            publisher.delete();
        }),
        What::Revive { feed } => with_publisher(world, *feed, |publisher| {
            publisher.revive();
        }),
        What::Move { feed } => with_publisher(world, *feed, |publisher| {
            publisher.move_post();
        }),
        What::Empty { feed, category } => with_publisher(world, *feed, |publisher| {
            publisher.empty(*category);
        }),
        What::Reformat { feed } => with_publisher(world, *feed, Publisher::reformat),
        What::Renumber { feed } => with_publisher(world, *feed, Publisher::renumber),
        What::Outage { feed, secs } => {
            let until = world.now_ms() + secs * SECOND;
            with_publisher(world, *feed, |publisher| publisher.out_until_ms = until)
        }
        _ => true,
    };
    if !told {
        return None;
    }
    world.trace(&format!("{what:?}"));
    let feed_plan = |no: &usize| world.plan.feed(*no).is_some();
    match what {
        What::Crash { point, down_secs } => {
            agenda.lock().unwrap().next_down = Some(LifeEnd::Down {
                secs: *down_secs,
                restores: false,
            });
            arm(world, *point);
        }
        What::Restore { down_secs } => {
            world.kill();
            return Some(LifeEnd::Down {
                secs: *down_secs,
                restores: true,
            });
        }
        What::Restart { down_secs } => {
            life.stop().await;
            return Some(LifeEnd::Down {
                secs: *down_secs,
                restores: false,
            });
        }
        What::DiskFull { secs } => world.fill_disk(*secs),
        What::DiskTrouble { secs } => world.trouble_disk(*secs),
        What::Clock {
            ahead_secs,
            for_secs,
        } => {
            world.state().skew_us = ahead_secs * 1_000_000;
            if *ahead_secs != 0 {
                later(
                    world,
                    agenda,
                    *for_secs,
                    What::Clock {
                        ahead_secs: 0,
                        for_secs: 0,
                    },
                );
            }
        }
        What::Remove { feed, secs } if feed_plan(feed) => {
            let removed = world.state().configured.remove(feed);
            if let Some(shown) = removed {
                world.state().configurations += 1;
                later(world, agenda, *secs, What::Return { feed: *feed, shown });
                reload(world, life).await;
            }
        }
        What::Return { feed, shown } => {
            {
                let mut state = world.state();
                state.configured.insert(*feed, *shown);
                state.configurations += 1;
            }
            reload(world, life).await;
        }
        What::Show { feed, shown } if feed_plan(feed) => {
            let is_changed = {
                let mut state = world.state();
                match state.configured.get_mut(feed) {
                    Some(present) if present != shown => {
                        *present = *shown;
                        state.configurations += 1;
                        true
                    }
                    _ => false,
                }
            };
            if is_changed {
                reload(world, life).await;
            }
        }
        What::BackUp => {
            let copy = world.disk.copy();
            world.state().copy = Some(copy);
        }
        What::Away { consumer, secs } => {
            let until = world.now_ms() + secs * SECOND;
            world.state().away_until_ms.insert(*consumer, until);
        }
        What::ConsumerCrash { consumer } => world.state().crashing.push(*consumer),
        _ => {}
    }
    None
}

/// Has everfeed crash at a point of its work, or after a while.
fn arm(world: &Arc<World>, points: u64) {
    world.arm(points);
    let world = world.clone();
    tokio::spawn(async move {
        sleep(Duration::from_secs(ARMED_SECS)).await;
        if world.disarm() {
            world.trace("everfeed crashes while it waits");
            world.kill();
            world.end.notify_one();
        }
    });
}

/// Takes in the configuration of now, and tries again while the disk refuses. An answer that is made
/// before the end may be of the former one.
async fn reload(world: &Arc<World>, life: &Arc<Life>) {
    world.state().is_reloading = true;
    while let Err(error) = life.reload().await {
        world.trace(&format!("a reload is refused: {error}"));
        sleep(Duration::from_secs(10)).await;
    }
    let mut state = world.state();
    state.is_reloading = false;
    state.configurations += 1;
}

/// Puts something on the agenda, so many seconds from now.
fn later(world: &World, agenda: &StdMutex<Agenda>, secs: u64, what: What) {
    let at_ms = world.now_ms() + secs.max(1) * SECOND;
    let deeds = &mut agenda.lock().unwrap().deeds;
    let place = deeds.iter().position(|(at, _)| *at > at_ms);
    deeds.insert(place.unwrap_or(deeds.len()), (at_ms, what));
}

/// Does something with a publisher; false where there is none of that number.
fn with_publisher(world: &World, no: usize, work: impl FnOnce(&mut Publisher)) -> bool {
    let mut state = world.state();
    let publisher = state.publishers.get_mut(&no);
    publisher.map(work).is_some()
}

/// Keeps panics of tasks for the world in which they happen.
fn catch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if runtime::Handle::try_current().is_ok() {
                PANICKED.set(Some(info.to_string()));
            } else {
                usual(info);
            }
        }));
    });
    PANICKED.take();
}
