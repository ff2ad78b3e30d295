//! A worker that is stopped until another node has taken its work over, and then goes on. The fence
//! of the epoch ends its work; with the fence switched off, the checks find two that work.

use super::{
    World,
    checks::{too_soon, unexcused},
    worker,
};
use nix::sys::signal::Signal;
use std::time::Instant;
use testkit::wait::until;

/// Polls of each feed after the worker goes on, by which two that work would be found.
const POLLS: usize = 4;

/// Switches the fence off: a new epoch has the number of the one before it, so each worker finds
/// its own in force.
const NO_FENCE: [&str; 2] = [
    "CREATE FUNCTION no_fence() RETURNS trigger LANGUAGE plpgsql AS \
     'BEGIN NEW.number := OLD.number; RETURN NEW; END'",
    "CREATE TRIGGER no_fence BEFORE UPDATE ON meta FOR EACH ROW \
     WHEN (NEW.name = 'epoch') EXECUTE FUNCTION no_fence()",
];

#[ignore = "one process at a time serves a database yet"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_stopped_works_no_more_and_without_the_fence_the_checks_fail() {
    let fenced = World::start(1).await;
    let unfenced = World::start(2).await;
    for statement in NO_FENCE {
        unfenced.cluster.ask(statement);
    }
    let (with, without) = tokio::join!(goes_on(&fenced), goes_on(&unfenced));
    tokio::join!(
        until("all feeds are polled on", async || {
            fenced.polled_since(with.1) >= POLLS
        }),
        until("the checks fail without the fence", async || {
            unfenced.unexcused(without.0) > 0
        })
    );
    assert_eq!(fenced.unexcused(with.0), 0);
    let found = unfenced.unexcused(without.0);
    println!("without the fence: {found} polls and pushes too many");
    fenced.cluster.stop().await;
}

/// Stops the worker until another node polls. Tells the times at which it was stopped and went on.
async fn goes_on(world: &World) -> (Instant, Instant) {
    for name in world.blogs.names() {
        let callback = world.subscriber.callback(name);
        let reader = &world.cluster.nodes[0].reader;
        reader.subscribe(name, &callback).await;
    }
    until("they are pushed to", async || {
        let mut chains = world.blogs.names().map(|name| world.subscriber.chain(name));
        chains.all(|chain| chain.pushes > 1)
    })
    .await;
    let works = worker(&world.blogs);
    let stopped = Instant::now();
    world.cluster.nodes[works].signal(Signal::SIGSTOP);
    until("another node polls", async || worker(&world.blogs) != works).await;
    world.cluster.nodes[works].signal(Signal::SIGCONT);
    (stopped, Instant::now())
}

impl World {
    /// The polls of the feed that was polled least since then.
    fn polled_since(&self, then: Instant) -> usize {
        let since = |name| {
            let polls = self.blogs.polls(name);
            polls.iter().filter(|poll| poll.at > then).count()
        };
        self.blogs.names().map(since).min().unwrap_or_default()
    }

    /// Polls and pushes that one fault at this time does not excuse.
    fn unexcused(&self, fault: Instant) -> usize {
        let of_feed = |name| {
            let chain = self.subscriber.chain(name);
            let polls = too_soon(&self.blogs.polls(name)).times;
            unexcused(&polls, &[fault]) + unexcused(&chain.strays, &[fault]) + chain.faults.len()
        };
        self.blogs.names().map(of_feed).sum()
    }
}
