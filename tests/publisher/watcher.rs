//! Polls a publisher and keeps the score.

use crate::{
    publisher::{Answer, Post, Publisher},
    scenario::Scenario,
};
use everfeed::feed::{
    absence::{Class, Memory, Place, Policy},
    item::ItemId,
    stamp::Stamp,
};
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub(crate) struct Score {
    pub deletions: usize,
    pub found: usize,
    pub false_ones: usize,
    hours: Vec<f64>,
}

impl Score {
    pub(crate) fn add(&mut self, other: &Self) {
        self.deletions += other.deletions;
        self.found += other.found;
        self.false_ones += other.false_ones;
        self.hours.extend(&other.hours);
    }

    pub(crate) fn median_hours(&self) -> String {
        let mut hours = self.hours.clone();
        hours.sort_by(f64::total_cmp);
        hours.get(hours.len() / 2).map_or_else(|| "-".to_owned(), |hours| format!("{hours:.0}"))
    }
}

const DAYS: u64 = 90;
const START: u64 = 1_700_000_000;

pub(crate) fn watch(scenario: &Scenario, seed: u64) -> Score {
    let policy = Policy::default();
    let mut publisher = Publisher::new(*scenario, seed);
    let mut memory = Memory::default();
    let mut score = Score::default();
    let mut alive: HashSet<u32> = HashSet::new();
    let mut deaths: HashMap<u32, u8> = HashMap::new();
    let mut last: Option<(f64, Vec<Post>)> = None;
    let mut audited_at = f64::NEG_INFINITY;
    for hour in 0..DAYS * 24 {
        publisher.live();
        if hour % scenario.poll_hours != 0 {
            continue;
        }
        let now = Stamp::from_secs(START + hour * 3600);
        let at = publisher.hour;
        let due = if memory.wants_audit() { 24.0 } else { 168.0 };
        let audit = last.is_none() || at - audited_at >= due;
        let since = last.as_ref().filter(|_| !audit).map(|(at, posts)| (*at, posts.as_slice()));
        let Answer::Document(posts) = publisher.answer(since) else { continue };
        if audit {
            audited_at = at;
        }
        let class = if audit { Class::Audit } else { Class::Conditional };
        let seen: Vec<Place> = posts
            .iter()
            .map(|post| Place {
                id: id(post.id),
                dated: Some((post.published * 3.6e9) as i64),
                known: alive.contains(&post.id),
                deaths: deaths.get(&post.id).copied().unwrap_or(0),
                weak: false,
            })
            .collect();
        let outcome = memory.observe(&seen, class, &policy, now);
        memory = outcome.memory;
        alive.extend(posts.iter().map(|post| post.id));
        for (gone, _) in outcome.gone {
            let gone = u32::from_be_bytes(gone.0[..4].try_into().unwrap());
            alive.remove(&gone);
            *deaths.entry(gone).or_default() += 1;
            let deletion = publisher.deletions.iter().rev().find(|(id, _)| *id == gone);
            match deletion.filter(|_| !publisher.is_alive(gone)) {
                Some((_, deleted_at)) => {
                    score.found += 1;
                    score.hours.push(at - deleted_at);
                }
                None => score.false_ones += 1,
            }
        }
        last = Some((at, posts));
    }
    score.deletions = publisher.deletions.len();
    score
}

fn id(post: u32) -> ItemId {
    let mut id = [0; 10];
    id[..4].copy_from_slice(&post.to_be_bytes());
    ItemId(id)
}
