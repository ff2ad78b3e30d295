//! A publisher: what it holds, what it shows, and what it answers to a conditional request.

use crate::scenario::{Scenario, Sorted};
use rand::{RngExt, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use std::collections::{BTreeMap, HashSet};

/// A post.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Post {
    pub id: u32,
    /// Hours.
    pub published: f64,
    pub updated: f64,
}

pub(crate) struct Publisher {
    scenario: Scenario,
    rng: SmallRng,
    pub hour: f64,
    posts: BTreeMap<u32, Post>,
    next: u32,
    length: usize,
    /// The shard that is down, and until when.
    broken: Option<(u32, f64)>,
    /// Posts that come back, and when.
    returning: Vec<(Post, f64)>,
    /// What was deleted while it was visible: id and hour.
    pub deletions: Vec<(u32, f64)>,
    modified: f64,
}

/// An answer to a request.
pub(crate) enum Answer {
    Unchanged,
    Document(Vec<Post>),
}

const LENGTH: usize = 15;
const SHARDS: u32 = 3;

impl Publisher {
    pub(crate) fn new(scenario: Scenario, seed: u64) -> Self {
        let mut publisher = Self {
            scenario,
            rng: SmallRng::seed_from_u64(seed),
            hour: 0.0,
            posts: BTreeMap::new(),
            next: 0,
            length: LENGTH,
            broken: None,
            returning: Vec::new(),
            deletions: Vec::new(),
            modified: 0.0,
        };
        for n in 0..60 {
            publisher.post(-f64::from(60 - n) * 24.0 / scenario.posts);
        }
        publisher
    }

    fn post(&mut self, at: f64) {
        self.posts.insert(self.next, Post { id: self.next, published: at, updated: at });
        self.next += 1;
        self.modified = self.modified.max(at);
    }

    pub(crate) fn is_alive(&self, id: u32) -> bool {
        self.posts.contains_key(&id)
    }

    /// An hour passes.
    pub(crate) fn live(&mut self) {
        self.hour += 1.0;
        let now = self.hour - self.rng.random::<f64>();
        let daily = |rng: &mut SmallRng, rate: f64| rng.random::<f64>() < rate / 24.0;
        if daily(&mut self.rng, self.scenario.posts) {
            self.post(now);
        }
        if daily(&mut self.rng, self.scenario.deletions)
            && let Some(id) = self.pick()
        {
            let post = self.posts.remove(&id).unwrap();
            self.deletions.push((id, self.hour));
            if self.scenario.republishes && self.rng.random() {
                let back = self.hour + 24.0 * self.rng.random_range(1.0..4.0);
                self.returning.push((post, back));
            }
        }
        if daily(&mut self.rng, self.scenario.edits)
            && let Some(id) = self.pick()
        {
            self.posts.get_mut(&id).unwrap().updated = now;
            self.modified = now;
        }
        if daily(&mut self.rng, self.scenario.backdatings)
            && let Some(id) = self.pick()
        {
            let back = 24.0 * self.rng.random_range(1.0..40.0);
            let post = self.posts.get_mut(&id).unwrap();
            post.published -= back;
            post.updated = now;
            self.modified = now;
        }
        let hour = self.hour;
        for (post, _) in self.returning.extract_if(.., |(_, back)| *back <= hour) {
            self.posts.insert(post.id, post);
            self.modified = now;
        }
        if self.scenario.changing_length && daily(&mut self.rng, 0.3) {
            self.length = self.rng.random_range(5..=20);
        }
        if self.broken.is_some_and(|(_, until)| until <= hour) {
            self.broken = None;
        }
        if self.scenario.shard_hours > 0.0 && self.rng.random::<f64>() < 1.0 / self.scenario.shard_hours {
            let hours = self.rng.random_range(1.0..8.0);
            self.broken = Some((self.rng.random_range(0..SHARDS), hour + hours));
        }
    }

    /// A visible post, but not one that is pinned.
    fn pick(&mut self) -> Option<u32> {
        let pinned: HashSet<u32> = self.pinned().into_iter().flatten().collect();
        let shown: Vec<u32> =
            self.window().iter().map(|post| post.id).filter(|id| !pinned.contains(id)).collect();
        (!shown.is_empty()).then(|| shown[self.rng.random_range(0..shown.len())])
    }

    fn pinned(&self) -> [Option<u32>; 2] {
        [self.scenario.pinned_top.then_some(3), self.scenario.pinned_bottom.then_some(5)]
    }

    /// What the document holds when nothing is wrong.
    fn window(&mut self) -> Vec<Post> {
        let mut posts: Vec<Post> = self.posts.values().copied().collect();
        match self.scenario.sorted {
            Sorted::Published | Sorted::Ascending => {
                posts.sort_by(|a, b| b.published.total_cmp(&a.published))
            }
            Sorted::Updated => posts.sort_by(|a, b| b.updated.total_cmp(&a.updated)),
            Sorted::Popular => posts.shuffle(&mut self.rng),
        }
        let [top, bottom] = self.pinned();
        let mut take = |id: Option<u32>| {
            let at = posts.iter().position(|post| Some(post.id) == id)?;
            Some(posts.remove(at))
        };
        let (top, bottom) = (take(top), take(bottom));
        let free = self.length - usize::from(top.is_some()) - usize::from(bottom.is_some());
        posts.truncate(free);
        let mut window: Vec<Post> = top.into_iter().chain(posts).chain(bottom).collect();
        if self.scenario.sorted == Sorted::Ascending {
            window.reverse();
        }
        window
    }

    /// What it answers; `since` is the hour of the last answer when the request is conditional, `last` its document.
    pub(crate) fn answer(&mut self, since: Option<(f64, &[Post])>) -> Answer {
        let mut window = self.window();
        if let Some((_, shard)) = self.broken.map(|(shard, until)| (until, shard)) {
            window.retain(|post| post.id % SHARDS != shard);
        }
        if self.rng.random::<f64>() < self.scenario.shuffled {
            window.shuffle(&mut self.rng);
        }
        if self.rng.random::<f64>() < self.scenario.truncated {
            let length = self.rng.random_range(0..=window.len());
            window.truncate(length);
        }
        let Some((since, last)) = since else { return Answer::Document(window) };
        if self.scenario.hides_deletions && self.modified <= since {
            return Answer::Unchanged;
        }
        if self.scenario.deltas {
            window.retain(|post| post.updated > since);
            return if window.is_empty() { Answer::Unchanged } else { Answer::Document(window) };
        }
        if window == last { Answer::Unchanged } else { Answer::Document(window) }
    }
}
