//! A world before it begins: its publishers, its consumers, and what happens when. All of it comes
//! from the seed, and a part of it can be taken out.

use super::chance::Chance;

pub(crate) const SECOND: u64 = 1000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;

/// Everything that is decided before a world begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) feeds: Vec<FeedPlan>,
    /// True for a group of all feeds.
    pub(crate) has_group: bool,
    pub(crate) consumers: Vec<ConsumerPlan>,
    /// By time.
    pub(crate) deeds: Vec<Deed>,
    /// Milliseconds after which everything rests.
    pub(crate) busy_ms: u64,
    /// Requests and answers of a thousand that something happens to on their way.
    pub(crate) trouble: u64,
}

/// A publisher and the settings of its feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FeedPlan {
    /// Its number, by which it keeps its chances when others are taken out.
    pub(crate) no: usize,
    pub(crate) is_atom: bool,
    /// Posts that its document shows.
    pub(crate) window: usize,
    /// Posts that it has at the beginning.
    pub(crate) posts: u32,
    /// True where older posts stand in archives (RFC 5005).
    pub(crate) has_archives: bool,
    /// True where the pages of deleted posts say so.
    pub(crate) has_pages: bool,
    /// The blog of which its document shows the posts, too.
    pub(crate) copies: Option<usize>,
    /// The part of it that anonymous readers see.
    pub(crate) shown: Shown,
}

/// The category of a post. Each post has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    News,
    Notes,
}

impl Category {
    pub(crate) const ALL: [Self; 2] = [Self::News, Self::Notes];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::News => "news",
            Self::Notes => "notes",
        }
    }
}

/// The part of a feed that anonymous readers see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    All,
    Only(Category),
    /// It is for users.
    Nothing,
}

/// A consumer of one view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsumerPlan {
    pub(crate) no: usize,
    pub(crate) way: Way,
    pub(crate) source: Source,
    /// The only category that it asks for.
    pub(crate) filter: Option<Category>,
}

/// The feed that is read: that of a publisher, by the number of that, or the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Feed(usize),
    Group,
}

/// The way in which a consumer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It asks every so many seconds, for so many items.
    Pull { max: u64, every_secs: u64 },
    /// It waits for so many seconds at most.
    LongPoll { max: u64, timeout_secs: u64 },
    /// It reads a stream of events.
    Stream,
    /// It is pushed while its lease lasts.
    Push { lease_secs: u64 },
}

/// An event, and its time in milliseconds since the world began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deed {
    pub(crate) at_ms: u64,
    pub(crate) what: What,
}

/// An event. Publishers and consumers are named by their numbers; one that is not there is passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Add {
        feed: usize,
        posts: u32,
    },
    Edit {
        feed: usize,
    },
    Delete {
        feed: usize,
    },
    Revive {
        feed: usize,
    },
    /// Another category: the post leaves one filter and enters another.
    Move {
        feed: usize,
    },
    /// All posts of a category are deleted.
    Empty {
        feed: usize,
        category: Category,
    },
    /// The text of all posts changes a little.
    Reformat {
        feed: usize,
    },
    /// Its posts get other ids, and keep their links.
    Renumber {
        feed: usize,
    },
    /// The publisher does not answer, or answers 500.
    Outage {
        feed: usize,
        secs: u64,
    },
    /// everfeed crashes at a point of its work, the so manyth from now.
    Crash {
        point: u64,
        down_secs: u64,
    },
    /// everfeed is stopped in order, and begun again.
    Restart {
        down_secs: u64,
    },
    /// Nothing can be written.
    DiskFull {
        secs: u64,
    },
    /// Some writes fail, and of some the end is not told.
    DiskTrouble {
        secs: u64,
    },
    /// The clock is so much off, in seconds, and right again after a while.
    Clock {
        ahead_secs: i64,
        for_secs: u64,
    },
    /// The feed is taken out of the configuration for a while.
    Remove {
        feed: usize,
        secs: u64,
    },
    /// It is in the configuration again.
    Return {
        feed: usize,
        shown: Shown,
    },
    /// Anonymous readers see this part from now on.
    Show {
        feed: usize,
        shown: Shown,
    },
    /// A copy of the store is made.
    BackUp,
    /// everfeed crashes, and the last copy is put in the place of its store.
    Restore {
        down_secs: u64,
    },
    /// A consumer does nothing for a while.
    Away {
        consumer: usize,
        secs: u64,
    },
    /// A consumer crashes between what it does.
    ConsumerCrash {
        consumer: usize,
    },
}

impl Plan {
    /// The world of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut chance = Chance::of(seed, "plan");
        let feeds: Vec<FeedPlan> = (0..chance.within(1, 3) as usize)
            .map(|no| feed(no, &mut chance))
            .collect();
        let has_group = feeds.len() > 1 && chance.permille(500);
        let consumers = (0..chance.within(2, 5) as usize)
            .map(|no| consumer(no, &feeds, has_group, &mut chance))
            .collect::<Vec<_>>();
        let busy_ms = chance.within(2, 9) * HOUR;
        let mut deeds: Vec<Deed> = (0..chance.within(12, 40))
            .map(|_| Deed {
                at_ms: chance.within(MINUTE, busy_ms),
                what: publishing(chance.below(feeds.len() as u64) as usize, &mut chance),
            })
            .collect();
        for _ in 0..chance.within(1, 7) {
            deeds.push(Deed {
                at_ms: chance.within(MINUTE, busy_ms),
                what: trouble(feeds.len(), consumers.len(), &mut chance),
            });
        }
        if chance.permille(250) {
            let at_ms = chance.within(MINUTE, busy_ms - HOUR);
            deeds.push(Deed {
                at_ms,
                what: What::BackUp,
            });
            let at_ms = chance.within(at_ms, busy_ms);
            let down_secs = chance.within(1, 300);
            deeds.push(Deed {
                at_ms,
                what: What::Restore { down_secs },
            });
        }
        deeds.extend(last_posts_in_trouble(seed, feeds.len(), busy_ms));
        deeds.sort_by_key(|deed| deed.at_ms);
        Self {
            seed,
            feeds,
            has_group,
            consumers,
            deeds,
            busy_ms,
            trouble: *chance.pick(&[0, 30, 120]),
        }
    }

    /// The plan of a feed with this number.
    pub(crate) fn feed(&self, no: usize) -> Option<&FeedPlan> {
        self.feeds.iter().find(|feed| feed.no == no)
    }
}

/// In one world of eight the last posts come while writes fail: no later document makes good what was
/// lost then. The chances are its own, so that the other worlds stay as they are.
fn last_posts_in_trouble(seed: u64, feeds: usize, busy_ms: u64) -> Vec<Deed> {
    let mut chance = Chance::of(seed, "last posts in trouble");
    if !chance.permille(125) {
        return Vec::new();
    }
    let trouble = Deed {
        at_ms: busy_ms - 40 * MINUTE,
        what: What::DiskTrouble { secs: 40 * 60 },
    };
    let posts = (0..feeds).map(|feed| Deed {
        at_ms: busy_ms - 38 * MINUTE,
        what: What::Add { feed, posts: 2 },
    });
    std::iter::once(trouble).chain(posts).collect()
}

fn feed(no: usize, chance: &mut Chance) -> FeedPlan {
    let window = *chance.pick(&[4, 8, 15]);
    FeedPlan {
        no,
        is_atom: chance.permille(500),
        window,
        posts: chance.within(1, 20) as u32,
        has_archives: chance.permille(300),
        has_pages: chance.permille(700),
        copies: (no > 0 && chance.permille(300)).then_some(0),
        shown: match chance.below(8) {
            0..2 => Shown::Only(*chance.pick(&Category::ALL)),
            _ => Shown::All,
        },
    }
}

fn consumer(no: usize, feeds: &[FeedPlan], has_group: bool, chance: &mut Chance) -> ConsumerPlan {
    let max = *chance.pick(&[1, 2, 3, 7, 50]);
    let way = match chance.below(5) {
        0 => Way::Pull {
            max,
            every_secs: chance.within(20, 1200),
        },
        1 => Way::LongPoll {
            max,
            timeout_secs: chance.within(5, 120),
        },
        2 => Way::Stream,
        _ => Way::Push {
            lease_secs: *chance.pick(&[300, 1800, 7200, 86_400]),
        },
    };
    let source = if has_group && chance.permille(350) {
        Source::Group
    } else {
        Source::Feed(chance.below(feeds.len() as u64) as usize)
    };
    ConsumerPlan {
        no,
        way,
        source,
        filter: chance.permille(350).then(|| *chance.pick(&Category::ALL)),
    }
}

fn publishing(feed: usize, chance: &mut Chance) -> What {
    match chance.below(21) {
        0..7 => What::Add {
            feed,
            posts: chance.within(1, 6) as u32,
        },
        7..11 => What::Edit { feed },
        11..14 => What::Delete { feed },
        14 => What::Revive { feed },
        15..17 => What::Move { feed },
        17 => What::Empty {
            feed,
            category: *chance.pick(&Category::ALL),
        },
        18 => What::Reformat { feed },
        19 => What::Renumber { feed },
        _ => What::Outage {
            feed,
            secs: chance.within(60, 7200),
        },
    }
}

fn trouble(feeds: usize, consumers: usize, chance: &mut Chance) -> What {
    let feed = chance.below(feeds as u64) as usize;
    let consumer = chance.below(consumers as u64) as usize;
    match chance.below(20) {
        0..7 => What::Crash {
            point: chance.below(40),
            down_secs: chance.within(1, 600),
        },
        7 => What::Restart {
            down_secs: chance.within(1, 60),
        },
        8 => What::DiskFull {
            secs: chance.within(5, 1800),
        },
        9..11 => What::DiskTrouble {
            secs: chance.within(60, 1800),
        },
        11 => What::Clock {
            ahead_secs: *chance.pick(&[-86_400, -600, -5, 30, 3600, 31_536_000, 63_072_000]),
            for_secs: chance.within(5, 3600),
        },
        12..14 => What::Remove {
            feed,
            secs: chance.within(30, 3600),
        },
        14..16 => What::Show {
            feed,
            shown: match chance.below(10) {
                0..6 => Shown::Only(*chance.pick(&Category::ALL)),
                6..8 => Shown::Nothing,
                _ => Shown::All,
            },
        },
        16..18 => What::Away {
            consumer,
            secs: chance.within(60, 10_000),
        },
        _ => What::ConsumerCrash { consumer },
    }
}
