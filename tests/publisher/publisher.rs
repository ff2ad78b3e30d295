//! A publisher: what it holds, what it shows, and what it answers; not who asks.

use super::{
    document::{Address, Document, Format, Habit, Software, article, comment, title},
    scenario::{Addresses, Bulk, Churn, Pages, Scenario, Sorted},
};
use rand::{RngExt, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// A post.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Post {
    pub id: u32,
    /// Hours.
    pub published: f64,
    pub updated: f64,
    /// The hour at which what it announces takes place.
    event: f64,
    /// Rises with every edit.
    pub version: u32,
    /// True when the document leaves it out.
    is_withdrawn: bool,
}

pub(crate) struct Publisher {
    scenario: Scenario,
    format: Format,
    address: Address,
    /// The hour of its move, if it moves.
    moves_at: f64,
    rng: SmallRng,
    pub hour: f64,
    posts: BTreeMap<u32, Post>,
    next: u32,
    length: usize,
    /// The shard that is down, and until when.
    broken: Option<(u32, f64)>,
    /// The post that is pinned for now, and until when.
    pin: Option<(u32, f64)>,
    /// Posts that come back, and when.
    returning: Vec<(Post, f64)>,
    /// Documents of a cache, oldest first, an hour each.
    past: VecDeque<Vec<Post>>,
    /// Posts that were deleted while they were visible: id and hour.
    pub deletions: Vec<(u32, f64)>,
    /// Edits of posts that were visible and stayed so.
    pub edits: usize,
    modified: f64,
    /// True when the page of a deleted post says so.
    says_gone: bool,
    /// Posts that are spam, and when they are purged.
    spam: Option<(Vec<u32>, f64)>,
    /// True while no page is found, whatever is asked for.
    pages_down: bool,
    /// Chance for pages alone, so that nobody's questions change what happens.
    page_rng: SmallRng,
    /// The hour at which the site was last built again.
    built: f64,
    /// Comments that are purged, and when.
    purges: Vec<(u32, f64)>,
}

/// An answer to a request for the document.
pub(crate) enum Answer {
    Unchanged,
    Document(Document),
}

/// An answer to a request for a page: status, text, and the path that a redirect leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub status: u16,
    pub text: String,
    pub location: Option<&'static str>,
}

impl Page {
    fn of(status: u16, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            location: None,
        }
    }
}

/// The last document that a client holds, and when it got it.
pub(crate) struct Held<'a> {
    pub hour: f64,
    pub document: &'a Document,
}

/// Entries in a document of two sections.
const LENGTH: usize = 15;
/// Spam posts that come at once, and hours until they are purged.
const SPAM: (u32, f64) = (150, 30.0);
/// Posts on the front page, and in the margin of every page.
const RECENT: usize = 15;
const SHARDS: u32 = 3;
const DAYS: f64 = 90.0;
const FLIPS_A_DAY: f64 = 0.3;
/// One post of so many is of the slow section, of which so many are shown.
const SLOW_SECTION: (u32, usize) = (4, 7);
/// Comments that come at once: on average, and at most.
const COMMENTS_AT_ONCE: (f64, u32) = (4.0, 7);
/// Share of comments that are spam.
const SPAM_SHARE: f64 = 0.12;
const REBUILDS_A_DAY: f64 = 0.3;
/// Hours in which a count rises by one.
const COUNT_HOURS: f64 = 3.0;
/// One post of so many is left out of an import.
const LEFT_OUT_ONE_IN: u32 = 10;
/// Share of pages that cannot be had.
const PAGES_FAILING: f64 = 0.02;

impl Publisher {
    pub(crate) fn new(scenario: Scenario, seed: u64) -> Self {
        let mut page_rng = SmallRng::seed_from_u64(seed ^ u64::MAX);
        let moves_at = page_rng.random_range(0.2..0.8) * DAYS * 24.0;
        let format = if seed.is_multiple_of(2) {
            Format::Rss
        } else {
            Format::Atom
        };
        let is_renumbered = scenario.addresses == Addresses::Renumbers;
        let software = if scenario.hides_deletions || is_renumbered {
            Software::WordPress
        } else {
            Software::Plain
        };
        let mut publisher = Self {
            scenario,
            format,
            address: Address {
                scheme: "http",
                host: "blog.example",
                software,
            },
            moves_at,
            hour: 0.0,
            posts: BTreeMap::new(),
            next: 0,
            length: scenario.length,
            broken: None,
            pin: None,
            returning: Vec::new(),
            past: VecDeque::new(),
            deletions: Vec::new(),
            edits: 0,
            modified: 0.0,
            says_gone: seed & 2 != 0,
            spam: None,
            pages_down: false,
            rng: SmallRng::seed_from_u64(seed),
            page_rng,
            built: f64::NEG_INFINITY,
            purges: Vec::new(),
        };
        for n in 0..60 {
            publisher.post(-f64::from(60 - n) * 24.0 / scenario.posts);
        }
        publisher
    }

    fn post(&mut self, at: f64) {
        let (id, version) = (self.next, 0);
        let event = match self.scenario.sorted {
            Sorted::Event => at + 24.0 * self.rng.random_range(1.0..30.0),
            Sorted::Score => self.rng.random_range(0.0..100.0),
            _ => at,
        };
        let post = Post {
            id,
            published: at,
            updated: at,
            event,
            version,
            is_withdrawn: false,
        };
        self.posts.insert(id, post);
        self.next += 1;
        self.modified = self.modified.max(at);
    }

    pub(crate) fn is_alive(&self, id: u32) -> bool {
        self.posts.contains_key(&id)
    }

    /// The posts that it has.
    pub(crate) fn living(&self) -> impl Iterator<Item = u32> {
        self.posts.keys().copied()
    }

    /// Draws an event that happens so many times a day.
    fn daily(&mut self, rate: f64) -> bool {
        rate > 0.0 && self.rng.random::<f64>() < rate / 24.0
    }

    /// An hour passes.
    pub(crate) fn live(&mut self) {
        self.hour += 1.0;
        let now = self.hour - self.rng.random::<f64>();
        if self.scenario.comments {
            self.comment(now);
        } else if self.daily(self.scenario.posts) {
            self.post(now);
        }
        if self.scenario.churn == Churn::Rebuilds && self.daily(REBUILDS_A_DAY) {
            self.built = now;
        }
        if self.daily(self.scenario.late_drafts) {
            let written = now - 24.0 * self.rng.random_range(0.0..3.0);
            self.post(written);
            self.modified = now;
        }
        self.change(now);
        self.change_in_bulk(now);
        self.come_back(now);
        self.fail();
        self.move_house();
        if self.scenario.lagging > 0.0 {
            let shown = self.window();
            self.past.push_back(shown);
            if self.past.len() > self.scenario.lag_hours + 1 {
                self.past.pop_front();
            }
        }
    }

    /// Comments come several at a time. Some are spam, which is purged within two days.
    fn comment(&mut self, now: f64) {
        let due: Vec<u32> = self
            .purges
            .extract_if(.., |(_, at)| *at <= now)
            .map(|(id, _)| id)
            .collect();
        let shown: HashSet<u32> = self.window().iter().map(|post| post.id).collect();
        for id in due {
            if shown.contains(&id) && self.is_alive(id) {
                self.delete(id);
            } else {
                self.posts.remove(&id);
            }
        }
        let (mean, most) = COMMENTS_AT_ONCE;
        if self.daily(self.scenario.posts / mean) {
            for n in (0..self.rng.random_range(1..=most)).rev() {
                let id = self.next;
                self.post(now - f64::from(n) / 10.0);
                if self.rng.random::<f64>() < SPAM_SHARE {
                    let purged_at = now + self.rng.random_range(1.0..48.0);
                    self.purges.push((id, purged_at));
                }
            }
        }
    }

    /// Posts are deleted, edited, dated back, pinned, withdrawn.
    fn change(&mut self, now: f64) {
        if self.daily(self.scenario.deletions)
            && let Some(id) = self.pick()
        {
            let post = self.posts.remove(&id).unwrap();
            self.deletions.push((id, self.hour));
            if self.scenario.republishes && self.rng.random() {
                let back = self.hour + 24.0 * self.rng.random_range(1.0..4.0);
                self.returning.push((post, back));
            }
        }
        if self.daily(self.scenario.newest_deletions) {
            let newest = self.window().first().map(|post| post.id);
            newest.into_iter().for_each(|id| self.delete(id));
        }
        if self.scenario.sorted == Sorted::Score {
            for post in self.posts.values_mut() {
                post.event += self.rng.random_range(-0.1..0.1);
            }
        }
        if self.daily(self.scenario.edits) {
            let hours = if self.scenario.nudges {
                self.rng.random_range(-6.0..6.0)
            } else {
                0.0
            };
            self.edit(now, |post| {
                post.published = (post.published + hours).min(now)
            });
        }
        if self.daily(self.scenario.backdatings) {
            let back = 24.0 * self.rng.random_range(1.0..40.0);
            self.edit(now, |post| post.published -= back);
        }
        if self.daily(self.scenario.withdrawals) {
            self.edit(now, |post| post.is_withdrawn = true);
        }
        if self.daily(self.scenario.pins)
            && self.pin.is_none()
            && let Some(id) = self.pick()
        {
            self.pin = Some((id, now + 24.0 * self.rng.random_range(2.0..7.0)));
        }
        if self.pin.is_some_and(|(_, until)| until <= now) {
            self.pin = None;
        }
    }

    /// Many posts are deleted at once.
    fn change_in_bulk(&mut self, now: f64) {
        let is_time = self.daily(self.scenario.bulk_rate);
        match self.scenario.bulk {
            Bulk::None => {}
            Bulk::Some(count) if is_time => (0..count).for_each(|_| {
                if let Some(id) = self.pick() {
                    self.delete(id);
                }
            }),
            Bulk::Everything if is_time => {
                let shown: Vec<u32> = self.window().iter().map(|post| post.id).collect();
                shown.into_iter().for_each(|id| self.delete(id));
            }
            Bulk::Spam if is_time && self.spam.is_none() => {
                let first = self.next;
                (0..SPAM.0).for_each(|n| self.post(now - f64::from(n) / 1000.0));
                self.spam = Some(((first..self.next).collect(), now + SPAM.1));
            }
            Bulk::Some(_) | Bulk::Everything | Bulk::Spam => {}
        }
        if let Some((spam, _)) = self.spam.take_if(|(_, until)| *until <= now) {
            spam.into_iter()
                .filter(|id| self.posts.contains_key(id))
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|id| self.delete(id));
        }
        if (self.hour as u64).is_multiple_of(24) {
            self.pages_down =
                self.scenario.pages == Pages::DownForDays && self.page_rng.random::<f64>() < 0.2;
        }
    }

    fn delete(&mut self, id: u32) {
        self.posts.remove(&id);
        self.deletions.push((id, self.hour));
    }

    fn edit(&mut self, now: f64, edit: impl FnOnce(&mut Post)) {
        let Some(id) = self.pick() else { return };
        let post = self.posts.get_mut(&id).unwrap();
        edit(post);
        post.updated = now;
        post.version += 1;
        self.edits += usize::from(!post.is_withdrawn);
        self.modified = now;
    }

    fn come_back(&mut self, now: f64) {
        let hour = self.hour;
        for (post, _) in self.returning.extract_if(.., |(_, back)| *back <= hour) {
            self.posts.insert(post.id, post);
            self.modified = now;
        }
    }

    fn fail(&mut self) {
        let hour = self.hour;
        if self.scenario.changing_length && self.daily(0.3) {
            self.length = self.rng.random_range(5..=20);
        }
        if self.broken.is_some_and(|(_, until)| until <= hour) {
            self.broken = None;
        }
        if self.scenario.shard_hours > 0.0
            && self.rng.random::<f64>() < 1.0 / self.scenario.shard_hours
        {
            let hours = self.rng.random_range(1.0..8.0);
            self.broken = Some((self.rng.random_range(0..SHARDS), hour + hours));
        }
    }

    /// Addresses change.
    fn move_house(&mut self) {
        let is_time = self.hour >= self.moves_at && self.hour < self.moves_at + 1.0;
        let address = &mut self.address;
        match self.scenario.addresses {
            Addresses::Stay => return,
            Addresses::SecuredOnce if is_time => address.scheme = "https",
            Addresses::HostMoves if is_time => address.host = "new.example",
            Addresses::SoftwareMoves if is_time => address.software = Software::Other,
            Addresses::Renumbers if is_time => {
                address.software = Software::Renumbered;
                let window = self.window();
                let left_out = window.iter().map(|post| post.id);
                left_out
                    .filter(|id| id.is_multiple_of(LEFT_OUT_ONE_IN))
                    .for_each(|id| self.delete(id));
            }
            Addresses::SchemeFlips if self.rng.random::<f64>() < FLIPS_A_DAY / 24.0 => {
                address.scheme = if address.scheme == "http" {
                    "https"
                } else {
                    "http"
                };
            }
            _ => return,
        }
        self.modified = self.hour;
    }

    /// A visible post, but not one that is pinned.
    fn pick(&mut self) -> Option<u32> {
        let pinned: HashSet<u32> = self.top().into_iter().chain(self.bottom()).collect();
        let shown: Vec<u32> = self
            .window()
            .iter()
            .map(|post| post.id)
            .filter(|id| !pinned.contains(id))
            .collect();
        (!shown.is_empty()).then(|| shown[self.rng.random_range(0..shown.len())])
    }

    fn top(&self) -> Option<u32> {
        self.pin
            .map(|(id, _)| id)
            .or(self.scenario.pinned_top.then_some(3))
    }

    fn bottom(&self) -> impl Iterator<Item = u32> + use<> {
        5..5 + self.scenario.pinned_bottom
    }

    /// The contents of the document when nothing is wrong.
    fn window(&mut self) -> Vec<Post> {
        let shown = self.posts.values().filter(|post| !post.is_withdrawn);
        let mut posts: Vec<Post> = shown.copied().collect();
        self.sort(&mut posts);
        if self.scenario.sections {
            return sections(&posts);
        }
        let mut take = |id: u32| {
            let at = posts.iter().position(|post| post.id == id)?;
            Some(posts.remove(at))
        };
        let top = self.top().and_then(&mut take);
        let bottom: Vec<Post> = self.bottom().filter_map(take).collect();
        posts.truncate(self.length - usize::from(top.is_some()) - bottom.len());
        let mut window: Vec<Post> = top.into_iter().chain(posts).chain(bottom).collect();
        if self.scenario.sorted == Sorted::Ascending {
            window.reverse();
        }
        window
    }

    fn sort(&mut self, posts: &mut Vec<Post>) {
        let by_updated = match self.scenario.sorted {
            Sorted::Popular => return posts.shuffle(&mut self.rng),
            Sorted::Event => {
                posts.retain(|post| post.event > self.hour);
                return posts.sort_by(|a, b| a.event.total_cmp(&b.event));
            }
            Sorted::Name => return posts.sort_by_key(|post| post.id.wrapping_mul(2_654_435_761)),
            Sorted::Score => return posts.sort_by(|a, b| b.event.total_cmp(&a.event)),
            Sorted::Updated => true,
            Sorted::Either => self.rng.random(),
            Sorted::Published | Sorted::Ascending => false,
        };
        if by_updated {
            posts.sort_by(|a, b| b.updated.total_cmp(&a.updated));
        } else {
            posts.sort_by(|a, b| b.published.total_cmp(&a.published));
        }
    }

    /// The document with whatever befalls it today.
    fn befallen(&mut self) -> Vec<Post> {
        let mut window = self.window();
        if self.scenario.lagging > 0.0
            && self.rng.random::<f64>() < self.scenario.lagging
            && let Some(past) = self.past.front()
        {
            window.clone_from(past);
        }
        if let Some((shard, _)) = self.broken {
            window.retain(|post| post.id % SHARDS != shard);
        }
        if self.rng.random::<f64>() < self.scenario.shuffled {
            window.shuffle(&mut self.rng);
        }
        if self.rng.random::<f64>() < self.scenario.truncated {
            let length = self.rng.random_range(0..=window.len());
            window.truncate(length);
        }
        window
    }

    /// The answer; `held` is what the client holds, when the request is conditional.
    pub(crate) fn answer(&mut self, held: Option<Held<'_>>) -> Answer {
        let mut posts = self.befallen();
        let Some(held) = held else {
            return Answer::Document(self.document(posts));
        };
        if self.scenario.hides_deletions && self.modified <= held.hour {
            return Answer::Unchanged;
        }
        if self.scenario.deltas {
            posts.retain(|post| post.updated > held.hour);
            if posts.is_empty() {
                return Answer::Unchanged;
            }
        }
        let document = self.document(posts);
        if document == *held.document {
            Answer::Unchanged
        } else {
            Answer::Document(document)
        }
    }

    /// The document as it should be.
    pub(crate) fn undisturbed(&mut self) -> Document {
        let posts = self.window();
        self.document(posts)
    }

    fn document(&mut self, mut posts: Vec<Post>) -> Document {
        for post in &mut posts {
            post.published = post.published.max(self.built);
        }
        let draw = match self.scenario.churn {
            Churn::None | Churn::Rebuilds | Churn::Revisions | Churn::Versions => 0,
            Churn::Counts | Churn::Claps => (self.hour / COUNT_HOURS) as u64,
            Churn::Related | Churn::Schemes | Churn::Languages => self.rng.random(),
        };
        let habit = Habit {
            short_titles: self.scenario.pages == Pages::ShortTitles,
            is_complete: self.scenario.complete,
            generator: self.scenario.generator,
            links_elsewhere: self.scenario.pages == Pages::Absent,
            is_undated: self.scenario.undated,
            is_of_comments: self.scenario.comments,
            churn: self.scenario.churn,
        };
        Document {
            posts,
            address: self.address,
            format: self.format,
            habit,
            draw,
        }
    }

    /// The answer of the page of a post; `None` asks for the front page.
    pub(crate) fn page(&mut self, id: Option<u32>) -> Page {
        let Some(id) = id else {
            return Page::of(200, self.template("Blog", true));
        };
        if self.page_rng.random::<f64>() < PAGES_FAILING {
            return Page::of(500, "");
        }
        if self.scenario.comments {
            return Page::of(200, self.article(id));
        }
        let lives = self.is_alive(id);
        let is_short = self.scenario.pages == Pages::ShortTitles;
        let post = format!("<h1>{}</h1><p>About {id}.</p>", title(id, is_short));
        let shown = |publisher: &mut Self| Page::of(200, publisher.template(&post, false));
        match self.scenario.pages {
            _ if self.pages_down => Page::of(404, "Not found"),
            Pages::NotFoundForAll => Page::of(404, "Not found"),
            Pages::GoneForAll => Page::of(410, "Gone"),
            Pages::Challenge => Page::of(403, "Checking your browser"),
            Pages::Shell => Page::of(200, "<div id='app'></div><script src='app.js'></script>"),
            Pages::FrontPageForAll => Page {
                location: Some("/"),
                ..Page::of(302, "")
            },
            Pages::FrontPage if !lives => Page {
                location: Some("/"),
                ..Page::of(302, "")
            },
            Pages::ShortTitles | Pages::SoftNotFound if !lives => {
                Page::of(200, self.template("<h1>Nothing here</h1>", false))
            }
            Pages::Truthful | Pages::Absent | Pages::DownForDays if !lives && self.says_gone => {
                Page::of(410, "Gone")
            }
            Pages::Truthful | Pages::Absent | Pages::DownForDays if !lives => {
                Page::of(404, "Not found")
            }
            _ => shown(self),
        }
    }

    /// The page of an article, with its comments below and the newest ones of all in the margin.
    fn article(&self, number: u32) -> String {
        let on_it = self.posts.keys().filter(|id| article(**id) == number);
        let comments: String = on_it
            .map(|id| {
                let (name, text) = comment(*id);
                format!("<li id=\"comment-{id}\"><b>{name}</b><p>{text}</p></li>")
            })
            .collect();
        let newest: String = self
            .posts
            .keys()
            .rev()
            .take(5)
            .map(|id| {
                let (name, on) = (comment(*id).0, article(*id));
                format!(
                    "<li>{name} on <a href=\"/article-{on}/#comment-{id}\">Article {on}</a></li>"
                )
            })
            .collect();
        format!(
            "<title>Article {number}</title><h1>Article {number}</h1><ol>{comments}</ol><ul>{newest}</ul>"
        )
    }

    /// A page in the blog's template, with the newest posts in the margin or in full.
    fn template(&self, text: &str, is_front: bool) -> String {
        let is_short = self.scenario.pages == Pages::ShortTitles;
        let newest: String = self
            .posts
            .keys()
            .rev()
            .take(if is_front { RECENT } else { 5 })
            .map(|id| format!("<li>{}</li>", title(*id, is_short)))
            .collect();
        format!("<title>Blog</title>{text}<ul>{newest}</ul><a>Next Post</a>")
    }
}

/// The newest of two sections, by date.
fn sections(posts: &[Post]) -> Vec<Post> {
    let (one_in, slow) = SLOW_SECTION;
    let is_slow = |post: &&Post| post.id.is_multiple_of(one_in);
    let of_slow = posts.iter().filter(is_slow).take(slow);
    let others = posts
        .iter()
        .filter(|post| !is_slow(post))
        .take(LENGTH - slow);
    let mut shown: Vec<Post> = of_slow.chain(others).copied().collect();
    shown.sort_by(|a, b| b.published.total_cmp(&a.published));
    shown
}
