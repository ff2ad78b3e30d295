//! The faults, one scenario each: the nineteen of POLLING 2.5, and others that real blogs have.

/// By what a publisher sorts its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sorted {
    Published,
    Updated,
    Ascending,
    /// By popularity, which changes from poll to poll.
    Popular,
    /// By the date of the event that a post announces, the next one first; what is over is not
    /// shown.
    Event,
    /// By either date, as chance has it.
    Either,
    /// By name, which is none of its dates.
    Name,
    /// By a score that rises and falls by little.
    Score,
}

/// The fate of a publisher's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addresses {
    Stay,
    /// Every http becomes https, once.
    SecuredOnce,
    /// Every http becomes https and goes back, 0.3 times a day.
    SchemeFlips,
    /// The blog moves to another host, once.
    HostMoves,
    /// The blog moves to other software, which makes other ids and links, once.
    SoftwareMoves,
    /// An import gives each post the number of another, once, and leaves some out.
    Renumbers,
}

/// Parts of posts that move without an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Churn {
    None,
    /// "(12 comments)" in titles.
    Counts,
    /// "1.2K claps" below texts.
    Claps,
    /// The titles of three other posts below texts, others in each document.
    Related,
    /// Titles by two servers, each in another language.
    Languages,
    /// Links in texts by two servers, one with http and one with https.
    Schemes,
    /// The time at which the site was built, as the date of each post that is older.
    Rebuilds,
    /// The number of the version at the end of ids, of which titles and texts are others, too.
    Revisions,
    /// Nothing: titles are "version 7 of post 12".
    Versions,
}

/// Answers of the pages of posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// The truth: 404 or 410 for a deleted post.
    Truthful,
    /// There are none: posts are linked to at another host.
    Absent,
    /// 404 for every page: robots are refused.
    NotFoundForAll,
    /// 410 for every page.
    GoneForAll,
    /// 403 for every page, with a challenge.
    Challenge,
    /// One page for all, which scripts fill.
    Shell,
    /// Deleted posts lead to the front page.
    FrontPage,
    /// Every page leads to the front page.
    FrontPageForAll,
    /// Every post has the same title of one word, and a deleted one a page that says so with status
    /// 200.
    ShortTitles,
    /// A deleted post has a page that says so with status 200.
    SoftNotFound,
    /// The truth, but for one day in five on which every page is 404.
    DownForDays,
}

/// Deletions of many posts at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bulk {
    None,
    /// So many visible posts.
    Some(u32),
    /// Every visible post.
    Everything,
    /// Spam: 150 posts that were published at once and are purged a day later.
    Spam,
}

/// The habits of a publisher, and its faults. Chances are per hour or per poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub name: &'static str,
    pub sorted: Sorted,
    /// Posts a day.
    pub posts: f64,
    /// Deletions of visible posts a day.
    pub deletions: f64,
    /// Edits of visible posts a day.
    pub edits: f64,
    pub poll_hours: u64,
    pub pinned_top: bool,
    /// Posts that always stand at the end.
    pub pinned_bottom: u32,
    /// The length of the document changes every few days.
    pub changing_length: bool,
    /// Share of polls whose document ends early without a sign.
    pub truncated: f64,
    /// Hours, on average, between failures of a backend that holds a third of the rows.
    pub shard_hours: f64,
    /// Share of polls in random order.
    pub shuffled: f64,
    /// Backdatings a day: a visible post gets the date of an old one.
    pub backdatings: f64,
    /// True when half of what is deleted comes back after days.
    pub republishes: bool,
    /// `Last-Modified` is that of the newest change of a post that is left, so a deletion answers
    /// 304.
    pub hides_deletions: bool,
    /// A conditional request is answered with what changed since.
    pub deltas: bool,
    pub addresses: Addresses,
    /// True when an edit moves the date of a post by up to six hours.
    pub nudges: bool,
    /// Share of polls that are answered by a cache that lags behind.
    pub lagging: f64,
    /// Its lag in hours.
    pub lag_hours: usize,
    /// True when documents hold no dates.
    pub undated: bool,
    /// Newest posts that are deleted a day: the document after it looks like an old copy.
    pub newest_deletions: f64,
    /// Posts a day that are pinned to the top for two to seven days.
    pub pins: f64,
    /// Posts a day that leave the document but not the blog, as when their category is not
    /// syndicated.
    pub withdrawals: f64,
    /// True when the document is the last eight of one section and the last seven of a slower one,
    /// by date.
    pub sections: bool,
    /// Posts a day that appear with a date up to three days old.
    pub late_drafts: f64,
    pub pages: Pages,
    pub bulk: Bulk,
    /// Deletions of many posts a day.
    pub bulk_rate: f64,
    /// Entries in the document.
    pub length: usize,
    /// True when the document says that it is the whole feed.
    pub complete: bool,
    /// Name of the software, if the document tells.
    pub generator: Option<&'static str>,
    /// True when posts are comments.
    pub comments: bool,
    pub churn: Churn,
    /// Edits that may be told besides three times the true ones, in 90 days, and the reason.
    pub told_besides_max: usize,
    /// Items that may be a post which another live item is, too, in 90 days, and the reason.
    pub twice_max: usize,
    /// Share of deletions that must be found where pages are asked.
    pub found_with_pages_min: f64,
    /// The share of deleted posts that are taken for alive again, at most.
    pub revived_share_max: f64,
    /// Deletions that are found without pages and not with them, at most: one may have rolled off
    /// before pinned posts, and is left to its page, which says nothing. In 90 days.
    pub lost_with_pages_max: usize,
    /// The share of deletions that must be found.
    pub found_min: f64,
    /// False tombstones that are forgiven in 90 days: those of the table. Without probes nothing
    /// tells a post that was dated back from one that was deleted.
    pub false_max: f64,
}

/// Edits that may be told besides three times the true ones in 90 days: those of the time in which
/// it is learned what moves.
const TOLD_BESIDES_MAX: usize = 15;

const STEADY: Scenario = Scenario {
    name: "steady",
    sorted: Sorted::Published,
    posts: 3.0,
    deletions: 0.23,
    edits: 0.5,
    poll_hours: 1,
    pinned_top: false,
    pinned_bottom: 0,
    changing_length: false,
    truncated: 0.0,
    shard_hours: 0.0,
    shuffled: 0.0,
    backdatings: 0.0,
    republishes: false,
    hides_deletions: false,
    deltas: false,
    addresses: Addresses::Stay,
    nudges: false,
    lagging: 0.0,
    lag_hours: 24,
    undated: false,
    newest_deletions: 0.0,
    pins: 0.0,
    withdrawals: 0.0,
    sections: false,
    late_drafts: 0.0,
    pages: Pages::Truthful,
    bulk: Bulk::None,
    bulk_rate: 0.0,
    length: 15,
    complete: false,
    generator: None,
    comments: false,
    churn: Churn::None,
    told_besides_max: TOLD_BESIDES_MAX,
    twice_max: 0,
    found_with_pages_min: 0.0,
    revived_share_max: 1.0,
    lost_with_pages_max: 1,
    found_min: of(217, 243),
    false_max: 0.0,
};

/// The share of deletions that must be found, from what the table found of how many: less five
/// hundredths.
const fn of(found: u32, deletions: u32) -> f64 {
    found as f64 / deletions as f64 - 0.05
}

/// The nineteen of POLLING 2.5, with its numbers.
pub(crate) fn known() -> Vec<Scenario> {
    use Sorted::{Ascending, Popular, Updated};
    vec![
        STEADY,
        Scenario {
            name: "slow",
            posts: 0.33,
            deletions: 0.065,
            found_min: of(65, 69),
            ..STEADY
        },
        Scenario {
            name: "updated-desc",
            sorted: Updated,
            found_min: of(216, 243),
            ..STEADY
        },
        Scenario {
            name: "ascending",
            sorted: Ascending,
            found_min: of(216, 243),
            ..STEADY
        },
        Scenario {
            name: "pinned top",
            pinned_top: true,
            found_min: of(197, 225),
            ..STEADY
        },
        Scenario {
            name: "pinned bottom",
            pinned_bottom: 1,
            found_min: of(207, 224),
            ..STEADY
        },
        Scenario {
            name: "changing length",
            changing_length: true,
            found_min: of(183, 239),
            ..STEADY
        },
        Scenario {
            name: "truncated",
            truncated: 0.03,
            found_min: of(208, 251),
            ..STEADY
        },
        Scenario {
            name: "missing rows",
            shard_hours: 240.0,
            false_max: 21.0 / 12.0,
            found_min: of(215, 242),
            ..STEADY
        },
        Scenario {
            name: "reshuffles",
            shuffled: 0.005,
            found_min: of(212, 255),
            ..STEADY
        },
        Scenario {
            name: "unordered",
            sorted: Popular,
            found_min: 0.0,
            ..STEADY
        },
        Scenario {
            name: "http to https once",
            addresses: Addresses::SecuredOnce,
            found_min: of(217, 243),
            ..STEADY
        },
        Scenario {
            name: "scheme flips",
            addresses: Addresses::SchemeFlips,
            found_min: of(246, 272),
            ..STEADY
        },
        Scenario {
            name: "backdating",
            backdatings: 0.2,
            false_max: 178.0 / 12.0,
            found_min: of(204, 228),
            ..STEADY
        },
        Scenario {
            name: "unpublish and republish",
            republishes: true,
            found_min: of(206, 236),
            ..STEADY
        },
        Scenario {
            name: "304 hides deletions",
            hides_deletions: true,
            found_min: of(201, 243),
            ..STEADY
        },
        Scenario {
            name: "delta 200",
            deltas: true,
            found_min: of(125, 243),
            ..STEADY
        },
        Scenario {
            name: "slow polls, busy feed",
            posts: 23.6,
            poll_hours: 12,
            found_min: of(14, 243),
            ..STEADY
        },
        Scenario {
            name: "everything",
            pinned_top: true,
            changing_length: true,
            truncated: 0.03,
            shard_hours: 480.0,
            shuffled: 0.005,
            backdatings: 0.1,
            republishes: true,
            hides_deletions: true,
            found_min: of(117, 205),
            false_max: 132.0 / 12.0,
            ..STEADY
        },
    ]
}

/// Faults that real blogs have besides, each of which makes mistakes, or hides deletions, as long
/// as no page is asked: an end that stays and items that come back make documents prove less, or
/// nothing. The limits are what was measured in 6 times 90 days, with as much room as a single one
/// of them needs: they may become tighter.
pub(crate) fn besides() -> Vec<Scenario> {
    use Sorted::{Either, Event};
    let doubted = Scenario {
        found_min: 0.0,
        false_max: 2.0,
        ..STEADY
    };
    vec![
        Scenario {
            name: "two pinned at the bottom",
            pinned_bottom: 2,
            ..doubted
        },
        Scenario {
            name: "three pinned at the bottom",
            pinned_bottom: 3,
            ..doubted
        },
        Scenario {
            name: "two sections",
            sections: true,
            false_max: 3.0,
            ..doubted
        },
        Scenario {
            name: "a lagging cache, 1 in 2",
            lagging: 0.5,
            ..doubted
        },
        Scenario {
            name: "a lagging cache, 1 in 20",
            lagging: 0.05,
            ..doubted
        },
        Scenario {
            name: "calendar",
            sorted: Event,
            false_max: 25.0,
            ..doubted
        },
        Scenario {
            name: "either order",
            sorted: Either,
            ..doubted
        },
        Scenario {
            name: "pinned for days",
            pins: 0.2,
            false_max: 9.0,
            ..STEADY
        },
        Scenario {
            name: "withdrawn from the feed",
            withdrawals: 0.1,
            false_max: 10.0,
            ..STEADY
        },
        Scenario {
            name: "edits nudge dates",
            nudges: true,
            false_max: 1.0,
            ..STEADY
        },
    ]
}

/// Faults that make none, and are kept for that.
pub(crate) fn harmless() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "host moves",
            addresses: Addresses::HostMoves,
            ..STEADY
        },
        Scenario {
            name: "software moves",
            addresses: Addresses::SoftwareMoves,
            ..STEADY
        },
        Scenario {
            name: "late drafts",
            late_drafts: 0.5,
            ..STEADY
        },
    ]
}

/// Pages that say little, each with posts that are dated back, so that documents are mistaken and
/// pages must not make it worse; and days on which pages are down.
pub(crate) fn silent_pages() -> Vec<Scenario> {
    // POLLING 2.5 allows 178 in twelve rounds, 15 in each; a single round varies by a few.
    let backdated = Scenario {
        backdatings: 0.2,
        false_max: 20.0,
        found_min: of(204, 228),
        ..STEADY
    };
    vec![
        Scenario {
            name: "404 for every page",
            pages: Pages::NotFoundForAll,
            ..backdated
        },
        Scenario {
            name: "410 for every page",
            pages: Pages::GoneForAll,
            ..backdated
        },
        Scenario {
            name: "403 for every page",
            pages: Pages::Challenge,
            ..backdated
        },
        Scenario {
            name: "one shell for all",
            pages: Pages::Shell,
            ..backdated
        },
        Scenario {
            name: "front page for all",
            pages: Pages::FrontPageForAll,
            ..backdated
        },
        Scenario {
            name: "front page for the deleted",
            pages: Pages::FrontPage,
            ..backdated
        },
        Scenario {
            name: "one short title for all",
            pages: Pages::ShortTitles,
            ..backdated
        },
        Scenario {
            name: "soft 404s",
            pages: Pages::SoftNotFound,
            ..backdated
        },
        Scenario {
            name: "pages down for days",
            pages: Pages::DownForDays,
            ..backdated
        },
        Scenario {
            name: "no pages",
            pages: Pages::Absent,
            ..backdated
        },
    ]
}

/// Deletions of many posts at once, with pages that tell, say little, or are not there; and other
/// documents that lack much.
pub(crate) fn bulk() -> Vec<Scenario> {
    let five = Scenario {
        bulk: Bulk::Some(5),
        bulk_rate: 1.0 / 15.0,
        found_min: 0.0,
        found_with_pages_min: 0.9,
        ..STEADY
    };
    let everything = Scenario {
        bulk: Bulk::Everything,
        ..five
    };
    let spam = Scenario {
        bulk: Bulk::Spam,
        length: 200,
        found_with_pages_min: 0.85,
        ..five
    };
    let blind = |scenario: Scenario, name: &'static str, pages: Pages| Scenario {
        name,
        pages,
        found_with_pages_min: 0.0,
        ..scenario
    };
    vec![
        Scenario {
            name: "five at once",
            ..five
        },
        blind(five, "five at once, 404 for all", Pages::NotFoundForAll),
        blind(five, "five at once, a shell", Pages::Shell),
        blind(five, "five at once, no pages", Pages::Absent),
        Scenario {
            name: "everything at once",
            ..everything
        },
        blind(everything, "everything, 404 for all", Pages::NotFoundForAll),
        blind(everything, "everything, no pages", Pages::Absent),
        Scenario {
            name: "spam is purged",
            ..spam
        },
        blind(spam, "spam, 404 for all", Pages::NotFoundForAll),
        blind(spam, "spam, no pages", Pages::Absent),
        Scenario {
            name: "missing rows, 404 for all",
            // Suspects wait for pages that never tell anything, and meanwhile the rows come and go.
            lost_with_pages_max: 6,
            shard_hours: 120.0,
            false_max: 4.0,
            pages: Pages::NotFoundForAll,
            found_min: of(215, 242),
            ..STEADY
        },
        Scenario {
            name: "whole feed, missing rows",
            complete: true,
            posts: 0.33,
            length: 1000,
            shard_hours: 120.0,
            found_min: 0.5,
            ..STEADY
        },
        Scenario {
            name: "deltas of Serendipity",
            deltas: true,
            generator: Some("Serendipity 2.4.0 - http://www.s9y.org/"),
            found_min: of(125, 243),
            ..STEADY
        },
    ]
}

/// Feeds that new posts enter at no end, or in no order: documents tell nothing by what they lack,
/// and pages are asked.
pub(crate) fn disordered() -> Vec<Scenario> {
    use Sorted::{Name, Popular, Score};
    let by_page = Scenario {
        found_min: 0.0,
        found_with_pages_min: 0.85,
        ..STEADY
    };
    let list = Scenario {
        sorted: Name,
        posts: 0.2,
        deletions: 0.1,
        edits: 0.1,
        length: 1000,
        undated: true,
        ..by_page
    };
    vec![
        Scenario {
            name: "a first post that stays",
            pinned_top: true,
            undated: true,
            ..by_page
        },
        Scenario {
            name: "by name, whole",
            ..list
        },
        Scenario {
            name: "by name, with dates",
            undated: false,
            ..list
        },
        Scenario {
            name: "by name, the first forty",
            length: 40,
            ..list
        },
        Scenario {
            name: "by score, whole",
            sorted: Score,
            ..list
        },
        Scenario {
            name: "by score, the first forty",
            sorted: Score,
            length: 40,
            ..list
        },
        Scenario {
            name: "by turns, a few posts",
            sorted: Popular,
            posts: 0.2,
            found_with_pages_min: 0.5,
            ..by_page
        },
        Scenario {
            name: "by turns, many posts",
            sorted: Popular,
            found_with_pages_min: 0.5,
            ..by_page
        },
    ]
}

/// A busy feed, whose window lasts for fifteen hours, by how often it is read: what bounds the
/// deletions that are found, and what a sidecar changes, which reads as often as its readers do.
pub(crate) fn busy() -> Vec<Scenario> {
    let busy = Scenario {
        name: "busy, every 12 hours",
        posts: 23.6,
        poll_hours: 12,
        found_min: 0.0,
        found_with_pages_min: 0.03,
        lost_with_pages_max: 3,
        ..STEADY
    };
    vec![
        busy,
        Scenario {
            name: "busy, every 6 hours",
            poll_hours: 6,
            found_with_pages_min: 0.1,
            ..busy
        },
        Scenario {
            name: "busy, every 3 hours",
            poll_hours: 3,
            found_with_pages_min: 0.35,
            ..busy
        },
        Scenario {
            name: "busy, every hour",
            poll_hours: 1,
            found_with_pages_min: 0.75,
            ..busy
        },
    ]
}

/// Caches that answer with an older document, by turns, and what looks like them.
pub(crate) fn old_copies() -> Vec<Scenario> {
    let old = Scenario {
        lagging: 0.05,
        found_min: 0.0,
        false_max: 2.0,
        revived_share_max: 1.0 / 30.0,
        ..STEADY
    };
    let slow = Scenario {
        posts: 0.33,
        deletions: 0.1,
        ..old
    };
    vec![
        Scenario {
            name: "an old copy, 1 in 20",
            ..old
        },
        Scenario {
            name: "an old copy, 1 in 5",
            lagging: 0.2,
            ..old
        },
        Scenario {
            name: "an old copy, 1 in 2",
            lagging: 0.5,
            ..old
        },
        Scenario {
            name: "an old copy of two days",
            lag_hours: 48,
            lagging: 0.2,
            ..old
        },
        Scenario {
            name: "an old copy, slow, 1 in 20",
            ..slow
        },
        Scenario {
            name: "an old copy, slow, 1 in 2",
            lagging: 0.5,
            revived_share_max: 1.0 / 25.0,
            ..slow
        },
        Scenario {
            name: "the newest is withdrawn",
            deletions: 0.0,
            newest_deletions: 0.2,
            found_min: 0.8,
            found_with_pages_min: 0.8,
            ..STEADY
        },
        Scenario {
            name: "withdrawn and put back",
            republishes: true,
            found_with_pages_min: 0.85,
            found_min: of(206, 236),
            ..STEADY
        },
    ]
}

/// Documents that say to be the whole feed, and are its newest posts.
pub(crate) fn capped() -> Vec<Scenario> {
    let capped = Scenario {
        name: "capped, says complete",
        complete: true,
        ..STEADY
    };
    vec![
        capped,
        Scenario {
            name: "capped and slow",
            posts: 0.33,
            deletions: 0.065,
            found_min: of(65, 69),
            ..capped
        },
        Scenario {
            name: "whole, and says so",
            posts: 0.33,
            length: 1000,
            ..capped
        },
    ]
}

/// Feeds of which parts move without an edit; and some that have another fault besides.
pub(crate) fn churning() -> Vec<Scenario> {
    let moving = |name: &'static str, churn: Churn| Scenario {
        name,
        churn,
        found_min: 0.75,
        ..STEADY
    };
    vec![
        moving("counts in titles", Churn::Counts),
        moving("claps below texts", Churn::Claps),
        moving("related posts", Churn::Related),
        moving("two languages", Churn::Languages),
        moving("schemes in texts", Churn::Schemes),
        moving("versions in titles", Churn::Versions),
        moving("revisions in ids", Churn::Revisions),
        moving("a site built again", Churn::Rebuilds),
        Scenario {
            bulk: Bulk::Some(5),
            bulk_rate: 1.0 / 15.0,
            found_min: 0.0,
            found_with_pages_min: 0.7,
            ..moving("built again, five at once", Churn::Rebuilds)
        },
        Scenario {
            lagging: 0.3,
            lag_hours: 3,
            found_min: 0.0,
            ..moving("revisions, an old copy", Churn::Revisions)
        },
        Scenario {
            name: "an import renumbers",
            addresses: Addresses::Renumbers,
            hides_deletions: true,
            found_min: of(201, 243),
            ..STEADY
        },
        Scenario {
            name: "capped, complete, a cache",
            complete: true,
            lagging: 0.2,
            found_min: 0.0,
            ..STEADY
        },
    ]
}

/// Feeds of comments, which come several at a time and of which some are purged.
pub(crate) fn comments() -> Vec<Scenario> {
    let comments = Scenario {
        name: "comments",
        comments: true,
        posts: 6.0,
        deletions: 0.1,
        edits: 0.0,
        length: 10,
        lost_with_pages_max: 0,
        found_min: of(38, 43),
        found_with_pages_min: of(38, 43),
        ..STEADY
    };
    vec![
        comments,
        Scenario {
            name: "comments, many",
            posts: 20.0,
            length: 20,
            // Seven that come at once push out a third of the window within an hour.
            found_min: of(75, 117),
            found_with_pages_min: of(75, 117),
            ..comments
        },
        Scenario {
            name: "comments, few",
            posts: 1.0,
            found_min: of(16, 16),
            found_with_pages_min: of(16, 16),
            ..comments
        },
    ]
}
