//! Question 10: thousands wait with a filter each, and items come that none of them, or one, is
//! shown. The processor's time of the whole process for such a change.

use crate::{
    house::PollerRig,
    report::{Aim, Report},
    rounds::Spread,
};
use anyhow::{Result, ensure};
use everfeed::{
    feed::{filter::Filter, order::Order, view::View},
    readers::ReadRequest,
    render::Representation,
};
use nix::sys::resource::{UsageWho, getrusage};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

const WAITERS: usize = 2_000;
const CHANGES: usize = 5;
/// Milliseconds of a processor that a change may cost.
const AIM_MS: f64 = 50.0;
const HOLD: Duration = Duration::from_secs(600);
/// Between two looks at the time that was used; nothing is done any more when it stands still.
const GLANCE: Duration = Duration::from_millis(200);
/// Milliseconds that the looks themselves may use.
const QUIET_MS: f64 = 1.0;

pub(crate) async fn ask(report: &Report) -> Result<()> {
    report.question(
        "(10) A change while 2,000 held polls wait, each with another `q`",
        "processor time of the process until all is quiet again; median of 5 changes (greatest)",
    );
    for items in [2_000, 100_000] {
        let (mut house, _) = PollerRig::new(items).await?;
        // A title holds the number of its item.
        let next = usize::try_from(house.record.items.total)?;
        let met = next + CHANGES;
        let words = (0..WAITERS - 1)
            .map(|n| format!("nobody{n}"))
            .chain([met.to_string()]);
        let mut waiting = wait(&house, words.collect()).await?;
        quiet().await?;
        let mut hidden = Vec::new();
        for _ in 0..CHANGES {
            hidden.push(change(&mut house).await?);
        }
        ensure!(
            waiting.try_join_next().is_none(),
            "nobody was shown anything"
        );
        tell(
            report,
            &format!("{items} items: a change that no filter shows"),
            hidden,
        );
        let one = change(&mut house).await?;
        ensure!(
            waiting.join_next().await.is_some_and(|met| met.is_ok()),
            "one was shown it"
        );
        ensure!(waiting.try_join_next().is_none(), "and nobody else");
        tell(
            report,
            &format!("{items} items: a change that one filter shows"),
            vec![one],
        );
    }
    Ok(())
}

/// Tasks that wait at the head of a feed for these words.
async fn wait(house: &PollerRig, words: Vec<String>) -> Result<JoinSet<()>> {
    let readers = Arc::new(house.readers()?);
    let newest = View::all(house.feed(), Order::MODIFIED_REVERSE);
    let newest = readers
        .read(&ReadRequest::page(newest, Representation::JSON, "", "", 1)?)
        .await?;
    let since = format!("cursor:{}", newest.last_cursor);
    let deadline = tokio::time::Instant::now() + HOLD;
    let mut waiting = JoinSet::new();
    for words in words {
        let filter = Filter::of(&[("q", &words)])?;
        let view = View::all(house.feed(), Order::MODIFIED).filtered(filter);
        let reading = ReadRequest::page(view, Representation::JSON, &since, "", 50)?;
        let readers = readers.clone();
        waiting.spawn(async move {
            let stop = CancellationToken::new();
            let _ = readers.read_held(&reading, deadline, &stop).await;
        });
    }
    Ok(waiting)
}

/// Commits one item and wakes everybody. The milliseconds of a processor that it takes, without the
/// commit.
async fn change(house: &mut PollerRig) -> Result<f64> {
    house.add(1).await?;
    let before = quiet().await?;
    house.notify.moved(house.feed(), house.record.head());
    Ok(quiet().await? - before)
}

/// Waits until nothing is done any more. The milliseconds that were used by then.
async fn quiet() -> Result<f64> {
    let mut used = used_ms()?;
    loop {
        sleep(GLANCE).await;
        let now = used_ms()?;
        if now - used < QUIET_MS {
            return Ok(now);
        }
        used = now;
    }
}

/// Milliseconds of a processor that the process has used.
fn used_ms() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let ms =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3;
    Ok(ms(usage.user_time()) + ms(usage.system_time()))
}

fn tell(report: &Report, what: &str, times: Vec<f64>) {
    let Spread {
        median, greatest, ..
    } = Spread::of(times);
    report.times(
        what,
        format!("{median:.1} ms ({greatest:.1} ms)"),
        greatest,
        Aim::UnderMs(AIM_MS),
    );
}
