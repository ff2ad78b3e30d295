//! Question 3: thousands wait at one cursor, and one item comes. From the wake-up after a real
//! commit until the first, the median and the last waiter has its answer.

use crate::{
    house::{NAME, PollerRig},
    load::{Connection, get},
    report::{Aim, Report},
    rounds::Spread,
};
use anyhow::{Context as _, Result, ensure};
use everfeed::{
    feed::{order::Order, view::View},
    readers::ReadRequest,
    render::Representation,
};
use futures_util::{StreamExt as _, stream};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

const CROWDS: [usize; 3] = [1_000, 5_000, 9_000];
const TRIALS: usize = 3;
/// Microseconds that a waiter may cost.
const WAITER_AIM_US: f64 = 50.0;
const HOLD: Duration = Duration::from_secs(120);
/// After everybody has registered: the first reads end, and all sleep.
const SETTLE: Duration = Duration::from_millis(300);
/// Connections being opened at a time, below what a listener queues.
const OPENING_MAX: usize = 64;
/// Bytes read at a time: the answers are small.
const READ_BYTES: usize = 4 << 10;
/// File descriptors for everything but the waiters.
const OTHER_FILES: u64 = 200;

pub(crate) async fn ask(report: &Report, askers: &Handle) -> Result<()> {
    report.question(
        "(3) Wake-up of N waiters by one change",
        &format!("from notify.moved, after a commit to redb, to the first / median / last answer; median of {TRIALS} trials"),
    );
    let (mut house, _) = PollerRig::new(1_000).await?;
    for waiters in CROWDS {
        let mut trials = Vec::new();
        for _ in 0..TRIALS {
            trials.push(in_process(&mut house, waiters).await?);
        }
        tell(
            report,
            &format!("{waiters} tasks in readers.read_held"),
            waiters,
            &trials,
        );
    }
    let files = files_max()?;
    for waiters in CROWDS {
        if 2 * waiters as u64 + OTHER_FILES > files {
            let need =
                format!("not asked: {files} open files are allowed, two a waiter are needed");
            report.figure(format!("{waiters} long polls over loopback"), need, "");
            continue;
        }
        let trials = over_http(&mut house, askers, waiters).await?;
        tell(
            report,
            &format!("{waiters} long polls over loopback, reading included"),
            waiters,
            &trials,
        );
    }
    Ok(())
}

/// Milliseconds from the wake-up to the first, median and last answer.
#[derive(Clone, Copy)]
struct Woken {
    first_ms: f64,
    median_ms: f64,
    last_ms: f64,
}

impl Woken {
    fn of(start: Instant, answered: Vec<Instant>) -> Self {
        let ms = |at: Instant| at.duration_since(start).as_secs_f64() * 1e3;
        let Spread {
            least,
            median,
            greatest,
        } = Spread::of(answered.into_iter().map(ms).collect());
        Self {
            first_ms: least,
            median_ms: median,
            last_ms: greatest,
        }
    }
}

fn tell(report: &Report, what: &str, waiters: usize, trials: &[Woken]) {
    let median = |of: fn(&Woken) -> f64| Spread::of(trials.iter().map(of).collect()).median;
    let last_ms = median(|woken| woken.last_ms);
    let (first_ms, median_ms) = (
        median(|woken| woken.first_ms),
        median(|woken| woken.median_ms),
    );
    let figures = format!("{first_ms:.1} / {median_ms:.1} / {last_ms:.1} ms");
    report.times(
        what,
        figures,
        last_ms,
        Aim::UnderMs(WAITER_AIM_US * waiters as f64 / 1e3),
    );
}

/// The cursor at which everybody waits.
async fn head(house: &PollerRig) -> Result<String> {
    let view = View::all(house.feed(), Order::MODIFIED_REVERSE);
    let reading = ReadRequest::page(view, Representation::JSON, "", "", 1)?;
    Ok(house.readers()?.read(&reading).await?.last_cursor.clone())
}

async fn in_process(house: &mut PollerRig, waiters: usize) -> Result<Woken> {
    let readers = Arc::new(house.readers()?);
    let view = View::all(house.feed(), Order::MODIFIED);
    let since = format!("cursor:{}", head(house).await?);
    let reading = ReadRequest::page(view, Representation::ATOM, &since, "", 50)?;
    let deadline = tokio::time::Instant::now() + HOLD;
    let stop = CancellationToken::new();
    let mut waiting = JoinSet::new();
    for _ in 0..waiters {
        let (readers, reading, stop) = (readers.clone(), reading.clone(), stop.clone());
        waiting.spawn(async move {
            let body = readers.read_held(&reading, deadline, &stop).await;
            (Instant::now(), body)
        });
    }
    until(|| house.notify.watchers(house.feed()) == waiters).await?;
    let start = change(house).await?;
    let answers = waiting.join_all().await;
    let mut answered = Vec::with_capacity(waiters);
    let mut bodies = Vec::with_capacity(waiters);
    for (at, body) in answers {
        answered.push(at);
        bodies.push(body?);
    }
    let shared = bodies
        .iter()
        .all(|body| Arc::ptr_eq(body, &bodies[0]) && body.count == 1);
    ensure!(shared, "one read and one rendering for all");
    Ok(Woken::of(start, answered))
}

async fn over_http(house: &mut PollerRig, askers: &Handle, waiters: usize) -> Result<Vec<Woken>> {
    let served = house.serve().await?;
    let address = served.address;
    let opened = stream::iter(0..waiters)
        .map(move |_| Connection::open(address, READ_BYTES))
        .buffer_unordered(OPENING_MAX)
        .collect::<Vec<_>>();
    let mut connections: Vec<Connection> = askers
        .spawn(opened)
        .await?
        .into_iter()
        .collect::<Result<_>>()
        .context("opening connections")?;
    let mut trials = Vec::new();
    for _ in 0..TRIALS {
        let hold = HOLD.as_secs();
        let path = format!(
            "/feeds/{NAME}.atom?since=cursor:{}&timeout={hold}",
            head(house).await?
        );
        let request: Arc<[u8]> = get(&path, "").into();
        let mut waiting = JoinSet::new();
        for mut connection in connections.drain(..) {
            let request = request.clone();
            let wait = async move {
                let answer = connection.ask(&request).await;
                (Instant::now(), answer, connection)
            };
            waiting.spawn_on(wait, askers);
        }
        until(|| served.waiters.held() == waiters).await?;
        let start = change(house).await?;
        let mut answered = Vec::with_capacity(waiters);
        for (at, answer, connection) in waiting.join_all().await {
            ensure!(answer?.status == 200, "an answer with the new item");
            answered.push(at);
            connections.push(connection);
        }
        trials.push(Woken::of(start, answered));
    }
    Ok(trials)
}

/// Waits for everybody to register, and to fall asleep.
async fn until(everybody_waits: impl Fn() -> bool) -> Result<()> {
    let patience = Instant::now() + HOLD / 2;
    while !everybody_waits() {
        ensure!(Instant::now() < patience, "not everybody came to wait");
        sleep(Duration::from_millis(5)).await;
    }
    sleep(SETTLE).await;
    Ok(())
}

/// Commits one item and wakes everybody. When that was.
async fn change(house: &mut PollerRig) -> Result<Instant> {
    house.add(1).await?;
    let start = Instant::now();
    house.notify.moved(house.feed(), house.record.head());
    Ok(start)
}

/// As many open files as the system grants.
fn files_max() -> Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        Ok(hard)
    } else {
        Ok(soft)
    }
}
