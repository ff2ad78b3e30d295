//! Faults drawn by chance: nodes that are killed, stopped or ended, lines to the database that are
//! cut, stalled or half open, and a database that crashes. Each of them heals after a while.

use super::{
    cluster::{Cluster, NODES},
    proxy::Line,
};
use nix::sys::signal::Signal;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    ops::Range,
    time::{Duration, Instant},
};
use testkit::wait::{GLANCE, PATIENCE};
use tokio::time::sleep;

/// Milliseconds between two faults.
const PAUSE_MS: Range<u64> = 100..1100;

/// Milliseconds after which a killed node starts again, and the database.
const DEAD_MS: Range<u64> = 0..2000;

/// Milliseconds of a stop or a stall, and of one that outlasts an election.
const SHORT_MS: Range<u64> = 200..3500;
const LONG_MS: Range<u64> = 11_000..14_000;

/// Of so many stops and stalls one is long.
const LONG_ONE_IN: u32 = 8;

/// The last words of a node that ends while the database is away.
const NOT_CLOSED: &str = "the store could not be closed: the store is away";

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGTERM.
    End,
    /// SIGSTOP, and SIGCONT later.
    Stop,
    Stall,
    HalfOpen,
    Cut,
    CutCommits(usize),
    KillDatabase,
}

/// The end of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cure {
    Start(usize),
    /// Start it as soon as it has ended; it has until then.
    StartWhenEnded(usize, Instant),
    Continue(usize),
    Open(usize),
    ServeDatabase,
}

/// A fault that came about.
#[derive(Debug)]
pub(crate) struct Inflicted {
    pub(crate) at: Instant,
    fault: Fault,
    node: Option<usize>,
    lasts: Duration,
}

/// All faults of a run.
pub(crate) struct Campaign {
    pub(crate) inflicted: Vec<Inflicted>,
    /// Nodes that ended by themselves, as one does that finds no database when it starts. They are
    /// started again, as a supervisor would.
    pub(crate) fell: BTreeMap<String, usize>,
    chance: StdRng,
    begun: Instant,
    cures: Vec<(Instant, Cure)>,
}

impl Campaign {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            inflicted: Vec::new(),
            fell: BTreeMap::new(),
            chance: StdRng::seed_from_u64(seed),
            begun: Instant::now(),
            cures: Vec::new(),
        }
    }

    /// The times of the faults after which a push or a poll may come once more. A node that ends in
    /// order hands its work over whole.
    pub(crate) fn costly(&self) -> Vec<Instant> {
        let costly = self.inflicted.iter().filter(|it| it.fault != Fault::End);
        costly.map(|it| it.at).collect()
    }

    /// Waits a while, in which what is due heals.
    pub(crate) async fn pause(&mut self, cluster: &mut Cluster) {
        let until = Instant::now() + self.millis(PAUSE_MS);
        while Instant::now() < until {
            self.heal(cluster).await;
            sleep(GLANCE).await;
        }
    }

    /// Brings a fault about. `worker` is the node that works, as far as is known.
    pub(crate) async fn inflict(&mut self, cluster: &mut Cluster, worker: usize) {
        let hurt = (0..NODES).filter(|node| self.is_hurt(*node)).count();
        let is_database_away = self
            .cures
            .iter()
            .any(|(_, cure)| *cure == Cure::ServeDatabase);
        let Some(node) = self.whole_node(worker) else {
            // A database that is away lets nodes end by themselves, beside the one that a fault may
            // hurt: then all can be hurt, and there is nothing to break until one is healed.
            return;
        };
        let mut fault = match self.chance.random_range(0..20) {
            0..4 => Fault::Kill,
            4..7 => Fault::End,
            7..11 => Fault::Stop,
            11..13 => Fault::Stall,
            13..15 => Fault::HalfOpen,
            15..17 => Fault::Cut,
            17..19 => Fault::CutCommits(self.chance.random_range(1..4)),
            _ => Fault::KillDatabase,
        };
        if fault == Fault::End && !cluster.nodes[node].place.is_ready().await {
            // It may not hear signals yet.
            fault = Fault::Kill;
        }
        let mut lasts = match fault {
            Fault::Kill | Fault::End | Fault::KillDatabase => self.millis(DEAD_MS),
            Fault::Stop | Fault::Stall | Fault::HalfOpen => {
                let is_long = self.chance.random_ratio(1, LONG_ONE_IN);
                self.millis(if is_long { LONG_MS } else { SHORT_MS })
            }
            Fault::Cut | Fault::CutCommits(_) => Duration::ZERO,
        };
        // One node stays, and a database that is away goes no further.
        if hurt + 1 >= NODES && lasts > Duration::ZERO || is_database_away {
            (fault, lasts) = (Fault::Cut, Duration::ZERO);
        }
        let is_of_node = fault != Fault::KillDatabase;
        self.inflicted.push(Inflicted {
            at: Instant::now(),
            fault,
            node: is_of_node.then_some(node),
            lasts,
        });
        self.bring_about(cluster, fault, node, lasts).await;
    }

    async fn bring_about(
        &mut self,
        cluster: &mut Cluster,
        fault: Fault,
        node: usize,
        lasts: Duration,
    ) {
        let struck = &mut cluster.nodes[node];
        let cure = match fault {
            Fault::Kill => {
                struck.kill();
                Cure::Start(node)
            }
            Fault::End => {
                struck.signal(Signal::SIGTERM);
                Cure::StartWhenEnded(node, Instant::now() + PATIENCE)
            }
            Fault::Stop => {
                struck.signal(Signal::SIGSTOP);
                Cure::Continue(node)
            }
            Fault::Stall => {
                struck.proxy.set(Line::Stalled);
                Cure::Open(node)
            }
            Fault::HalfOpen => {
                struck.proxy.set(Line::HalfOpen);
                Cure::Open(node)
            }
            Fault::Cut => return struck.proxy.cut(),
            Fault::CutCommits(commits) => return struck.proxy.cut_commits(commits),
            Fault::KillDatabase => {
                cluster.end_database().await;
                Cure::ServeDatabase
            }
        };
        self.cures.push((Instant::now() + lasts, cure));
    }

    /// Lets everything heal, and waits until all nodes are ready.
    pub(crate) async fn heal_all(&mut self, cluster: &mut Cluster) {
        let until = Instant::now() + PATIENCE;
        loop {
            self.heal(cluster).await;
            let mut are_ready = self.cures.is_empty();
            for node in &cluster.nodes {
                node.proxy.cut_commits(0);
                are_ready = are_ready && node.place.is_ready().await;
            }
            if are_ready {
                return;
            }
            assert!(Instant::now() < until, "{self}\n{}", cluster.logs());
            sleep(GLANCE).await;
        }
    }

    /// Ends the faults that are due, and starts nodes again that ended by themselves.
    pub(crate) async fn heal(&mut self, cluster: &mut Cluster) {
        let now = Instant::now();
        let due = self.cures.extract_if(.., |(at, _)| *at <= now);
        for (_, cure) in due.collect::<Vec<_>>() {
            self.cure(cluster, cure).await;
        }
        for node in 0..NODES {
            if !self.is_hurt(node) && cluster.nodes[node].ended().is_some() {
                let log = cluster.nodes[node].place.read("log");
                let cause = log.lines().last().unwrap_or_default().to_owned();
                *self.fell.entry(cause).or_default() += 1;
                let start = Instant::now() + Duration::from_millis(300);
                self.cures.push((start, Cure::Start(node)));
            }
        }
    }

    async fn cure(&mut self, cluster: &mut Cluster, cure: Cure) {
        match cure {
            Cure::Start(node) => cluster.nodes[node].start(),
            Cure::StartWhenEnded(node, until) => {
                let Some(status) = cluster.nodes[node].ended() else {
                    let log = || cluster.nodes[node].place.read("log");
                    assert!(
                        Instant::now() < until,
                        "node {node} does not end: {}",
                        log()
                    );
                    return self.cures.push((Instant::now(), cure));
                };
                let log = cluster.nodes[node].place.read("log");
                // It says so when the database was killed while it closed its store.
                let is_away = self.is_database_killed() && log.contains(NOT_CLOSED);
                assert!(
                    status.success() || is_away,
                    "node {node} ended with {status}: {log}"
                );
                cluster.nodes[node].start();
            }
            Cure::Continue(node) => cluster.nodes[node].signal(Signal::SIGCONT),
            Cure::Open(node) => cluster.nodes[node].proxy.set(Line::Open),
            Cure::ServeDatabase => cluster.serve_database().await,
        }
    }

    /// A node that is whole, more often than not the one that works; `None` when all are hurt.
    fn whole_node(&mut self, worker: usize) -> Option<usize> {
        let whole: Vec<_> = (0..NODES).filter(|node| !self.is_hurt(*node)).collect();
        if whole.contains(&worker) && self.chance.random_bool(0.5) {
            return Some(worker);
        }
        whole.choose(&mut self.chance).copied()
    }

    /// True when the database was killed within the time that a node may take to end.
    fn is_database_killed(&self) -> bool {
        let mut inflicted = self.inflicted.iter();
        inflicted.any(|it| it.fault == Fault::KillDatabase && it.at.elapsed() < PATIENCE)
    }

    fn is_hurt(&self, node: usize) -> bool {
        let concerns = |cure: &Cure| match cure {
            Cure::Start(at) | Cure::StartWhenEnded(at, _) | Cure::Continue(at) | Cure::Open(at) => {
                *at == node
            }
            Cure::ServeDatabase => false,
        };
        self.cures.iter().any(|(_, cure)| concerns(cure))
    }

    fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.chance.random_range(range))
    }
}

/// The faults, one a line.
impl Display for Campaign {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for it in &self.inflicted {
            let (at, lasts) = (it.at - self.begun, it.lasts.as_millis());
            writeln!(f, "{at:>8.1?} {:?} {:?} for {lasts} ms", it.fault, it.node)?;
        }
        Ok(())
    }
}
