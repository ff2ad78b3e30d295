//! Blogs with many posts and archives that are faulty in every way that is known: `complete` is
//! never said of less than all, truthful archives reach it, nothing that can be read is lost, and
//! the number of requests is bounded.

use super::*;

/// Posts on a page.
const PER_PAGE: usize = 10;

/// Days that a world is watched.
const DAYS: u64 = 20;

/// The kind of archives that a blog has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// `?paged=N`, and the order by edits.
    Paged,
    /// `?paged=N`; any other parameter is ignored.
    PagedOnly,
    /// `/rss/N/`; beyond the last page the last one answers.
    Ghost,
    /// `?startIndex=N`, with totals.
    Counted,
    /// Links `next` to `?page=N`.
    Next,
    /// Archives that name one another and say what they are.
    Chain,
    /// `?all=1`.
    All,
}

/// A request, as the publisher sees it.
struct Ask<'a> {
    url: &'a str,
    /// The number of the page, or of its first entry; of an archive its number; 0 of the live
    /// document.
    page: u64,
    /// Requests so far; and for this address.
    nth: usize,
    times: usize,
    secs: u64,
}

/// A blog.
#[derive(Clone)]
struct Blog {
    kind: Kind,
    /// Newest first.
    posts: Vec<u32>,
    /// The same in the order of edits, the last edited last.
    edited: Vec<u32>,
    /// Posts in the live document.
    window: usize,
    per_page: usize,
    /// Archives between the live document and the one that it links to.
    unlinked: u64,
    next: u32,
}

type Fault = fn(&mut Blog, &Ask<'_>) -> Option<Doc>;

/// Expected end of a world.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// Everything is read, and known to be.
    Complete,
    /// Everything that can be read is, all posts but so many; and it is not taken for all.
    Lacks(usize),
    /// Less is found, and not taken for all.
    NotComplete,
}

impl Blog {
    fn new(kind: Kind, count: u32) -> Self {
        let posts: Vec<u32> = (1..=count).rev().collect();
        let mut edited: Vec<u32> = (1..=count).collect();
        // A few old posts were edited since.
        for post in [3, 7, count / 2] {
            if let Some(at) = edited.iter().position(|id| *id == post) {
                edited.remove(at);
                edited.insert(edited.len().saturating_sub(2), post);
            }
        }
        Self {
            kind,
            posts,
            edited,
            window: PER_PAGE,
            per_page: PER_PAGE,
            unlinked: 0,
            next: count + 1,
        }
    }

    fn publish(&mut self) {
        self.posts.insert(0, self.next);
        self.edited.push(self.next);
        self.next += 1;
    }

    fn delete(&mut self, post: u32) {
        self.posts.retain(|id| *id != post);
        self.edited.retain(|id| *id != post);
    }

    fn edit(&mut self, post: u32) {
        self.edited.retain(|id| *id != post);
        self.edited.push(post);
    }

    fn live(&self) -> Doc {
        let mut doc = doc(self.posts.iter().take(self.window).copied());
        match self.kind {
            Kind::Next => link(&mut doc, "next", "http://blog.example/rss?page=2"),
            Kind::Chain => {
                let newest = self.archives() - self.unlinked;
                link(
                    &mut doc,
                    "prev-archive",
                    &format!("http://blog.example/a{newest}"),
                );
            }
            Kind::Counted => self.count(&mut doc, 1),
            Kind::Paged | Kind::PagedOnly => {
                let name = Some("https://wordpress.org/?v=6.0".to_owned());
                doc.metadata.generator = Some(everfeed_adapters::Generator {
                    name,
                    version: None,
                    uri: None,
                });
            }
            Kind::Ghost | Kind::All => {}
        }
        if self.kind == Kind::Chain {
            of_feed(doc, "", "Blog", "http://blog.example/")
        } else {
            doc
        }
    }

    /// Archives of fixed ranges of posts, from 1 on: those that are full.
    fn archives(&self) -> u64 {
        (self.posts.len() / self.per_page) as u64
    }

    fn count(&self, doc: &mut Doc, first: u64) {
        doc.metadata.paging = Paging {
            total_items: Some(self.posts.len() as u64),
            first_index: Some(first),
            page_items: None,
        };
    }

    fn page(&self, posts: &[u32], number: u64) -> Option<Doc> {
        let from = (usize::try_from(number).unwrap().checked_sub(1)?) * self.per_page;
        let shown: Vec<u32> = posts
            .iter()
            .skip(from)
            .take(self.per_page)
            .copied()
            .collect();
        (!shown.is_empty()).then(|| doc(shown))
    }

    /// The answer of a publisher without faults.
    fn answer(&self, ask: &Ask<'_>) -> Doc {
        if ask.url == FEED {
            return self.live();
        }
        let missing = || status(404);
        match self.kind {
            Kind::Paged if ask.url.contains("orderby=") => {
                self.page(&self.edited, ask.page).unwrap_or_else(missing)
            }
            Kind::Paged | Kind::PagedOnly => {
                self.page(&self.posts, ask.page).unwrap_or_else(missing)
            }
            Kind::Ghost => {
                let last = (self.posts.len().div_ceil(self.per_page)) as u64;
                let number = ask.page.min(last);
                let landed = if number == 1 {
                    FEED.to_owned()
                } else {
                    format!("http://blog.example/rss/{number}/")
                };
                Doc {
                    landed: Some(landed),
                    ..self.page(&self.posts, number).unwrap()
                }
            }
            Kind::Counted => {
                let from = usize::try_from(ask.page).unwrap() - 1;
                let mut doc = doc(self.posts.iter().skip(from).take(self.per_page).copied());
                self.count(&mut doc, ask.page);
                doc
            }
            Kind::Next => {
                let Some(mut doc) = self.page(&self.posts, ask.page) else {
                    return missing();
                };
                if self.page(&self.posts, ask.page + 1).is_some() {
                    link(
                        &mut doc,
                        "next",
                        &format!("http://blog.example/rss?page={}", ask.page + 1),
                    );
                }
                doc
            }
            Kind::Chain => {
                if ask.page == 0 || ask.page > self.archives() {
                    return missing();
                }
                let first = u32::try_from(ask.page - 1).unwrap() * PER_PAGE as u32 + 1;
                let mut doc = doc((first..first + PER_PAGE as u32)
                    .rev()
                    .filter(|id| self.posts.contains(id)));
                doc.metadata.history.archive = true;
                if ask.page > 1 {
                    link(
                        &mut doc,
                        "prev-archive",
                        &format!("http://blog.example/a{}", ask.page - 1),
                    );
                }
                if ask.page < self.archives() {
                    link(
                        &mut doc,
                        "next-archive",
                        &format!("http://blog.example/a{}", ask.page + 1),
                    );
                }
                doc
            }
            Kind::All if ask.url.ends_with("all=1") => doc(self.posts.iter().rev().copied()),
            Kind::All => missing(),
        }
    }

    fn profile(&self) -> &'static str {
        match self.kind {
            Kind::Paged | Kind::PagedOnly => "wordpress",
            Kind::Ghost => "ghost",
            Kind::All => "serendipity",
            Kind::Counted | Kind::Next | Kind::Chain => "none",
        }
    }
}

fn link(doc: &mut Doc, rel: &str, href: &str) {
    doc.metadata.links.push(Link {
        href: href.into(),
        rel: rel.into(),
        ..Link::default()
    });
}

/// The number in an address: of the page, the first entry or the archive.
fn number(url: &str) -> u64 {
    let query = ["paged=", "startIndex=", "page=", "/rss/", "/a"];
    let behind = query
        .iter()
        .find_map(|name| url.split_once(name))
        .map_or("", |(_, behind)| behind);
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// Plays a world to its end; the walk, the posts that it could have found, the blog at the end and
/// the requests.
fn play(name: &str, mut blog: Blog, fault: Fault) -> (ArchiveWalk, Blog, Vec<String>) {
    let start: Vec<u32> = blog.posts.clone();
    let mut walk = begin_blog(&blog);
    let mut asked: Vec<String> = Vec::new();
    let mut now = NOW;
    for _ in 0..3000 {
        if walk.history() == History::Complete {
            let lost: Vec<u32> = start
                .iter()
                .filter(|post| blog.posts.contains(post) && !walk.has_shown(&keys(&[**post])[0]))
                .copied()
                .collect();
            assert!(
                lost.is_empty(),
                "{name}: complete without {lost:?}; asked {asked:?}"
            );
        }
        let url = match walk.next(now) {
            WalkStep::Done => break,
            WalkStep::Wait(until) if until > NOW.plus_secs(DAYS * 86_400) => break,
            WalkStep::Wait(until) => {
                now = until;
                continue;
            }
            WalkStep::Fetch(url) => url,
        };
        let times = asked.iter().filter(|other| **other == url).count();
        let (nth, secs) = (asked.len(), now.secs_since(NOW));
        let ask = Ask {
            url: &url,
            page: number(&url),
            nth,
            times,
            secs,
        };
        asked.push(url.clone());
        let found = fault(&mut blog, &ask).unwrap_or_else(|| blog.answer(&ask));
        reply(&mut walk, &url, &found, &rules(), now);
    }
    (walk, blog, asked)
}

#[track_caller]
fn world(name: &str, blog: Blog, fault: Fault, end: End) {
    let (walk, now, asked) = play(name, blog.clone(), fault);
    let shown = |post: &&u32| walk.has_shown(&keys(&[**post])[0]);
    let lost = blog
        .posts
        .iter()
        .filter(|post| now.posts.contains(post) && !shown(post))
        .count();
    let told = format!(
        "{name}: {}, {lost} of {} lost, {} requests",
        walk.history(),
        blog.posts.len(),
        asked.len()
    );
    match end {
        End::Complete => assert!(
            walk.history() == History::Complete && lost == 0,
            "{told}: {asked:?}"
        ),
        End::Lacks(count) => {
            assert!(
                walk.history() != History::Complete && lost == count,
                "{told}: {asked:?}"
            );
        }
        End::NotComplete => assert!(
            walk.history() != History::Complete && lost > 0,
            "{told}: {asked:?}"
        ),
    }
    // Each page twice on two ways, and what the faults cost.
    let pages = blog.posts.len() / blog.per_page + 1;
    assert!(asked.len() <= 4 * pages + 60, "{told}: {asked:?}");
}

const NO_FAULT: Fault = |_, _| None;

#[test]
fn truthful_archives_are_complete() {
    for kind in [
        Kind::Paged,
        Kind::PagedOnly,
        Kind::Ghost,
        Kind::Counted,
        Kind::Next,
        Kind::Chain,
        Kind::All,
    ] {
        for count in [500, 501, 499, 25, 21, 20] {
            // A server that gives no more than so many pages looks the same as one whose last page
            // is full.
            let is_capped = matches!(kind, Kind::PagedOnly | Kind::Ghost) && count % 10 == 0;
            let end = if is_capped {
                End::Lacks(0)
            } else {
                End::Complete
            };
            world(
                &format!("truthful {kind:?} {count}"),
                Blog::new(kind, count),
                NO_FAULT,
                end,
            );
        }
    }
    let small = |kind, count| Blog::new(kind, count);
    world(
        "a blog of one page",
        small(Kind::Paged, 6),
        NO_FAULT,
        End::Complete,
    );
    world(
        "a blog of one full page",
        small(Kind::PagedOnly, 10),
        NO_FAULT,
        End::Lacks(0),
    );
    let wide = Blog {
        window: 25,
        ..Blog::new(Kind::PagedOnly, 125)
    };
    world(
        "the live document is longer than a page",
        wide,
        NO_FAULT,
        End::Complete,
    );
    let narrow = Blog {
        window: 4,
        ..Blog::new(Kind::PagedOnly, 125)
    };
    world(
        "the live document is shorter than a page",
        narrow,
        NO_FAULT,
        End::Complete,
    );
    let narrow = Blog {
        window: 4,
        ..Blog::new(Kind::Paged, 120)
    };
    world(
        "the same in the order of edits",
        narrow,
        NO_FAULT,
        End::Complete,
    );
    // An empty page ends them.
    let empty: Fault = |blog, ask| {
        let from = usize::try_from(ask.page).unwrap().saturating_sub(1) * PER_PAGE;
        (ask.page > 1 && from >= blog.posts.len()).then(|| doc([]))
    };
    world(
        "an empty page is the end",
        Blog::new(Kind::PagedOnly, 505),
        empty,
        End::Complete,
    );
    world(
        "an empty page is the end, not full",
        Blog::new(Kind::PagedOnly, 77),
        empty,
        End::Complete,
    );
}

#[test]
fn a_fault_that_passes_ends_nothing() {
    let faults: [(&str, Fault); 11] = [
        ("one 404", |_, ask| {
            (ask.page == 8 && ask.times == 0).then(|| status(404))
        }),
        ("one 410", |_, ask| {
            (ask.page == 8 && ask.times == 0).then(|| status(410))
        }),
        ("one 403", |_, ask| {
            (ask.page == 8 && ask.times == 0).then(|| status(403))
        }),
        ("one empty page", |_, ask| {
            (ask.page == 8 && ask.times == 0).then(|| doc([]))
        }),
        ("one web page", |_, ask| {
            (ask.page == 8 && ask.times == 0).then(|| status(299))
        }),
        ("one redirect to the feed", |blog, ask| {
            let live = blog.live();
            (ask.page == 8 && ask.times == 0).then(|| Doc {
                landed: Some(FEED.into()),
                ..live
            })
        }),
        ("one page that repeats", |blog, ask| {
            let before = Ask {
                url: ask.url,
                page: 7,
                nth: 0,
                times: 0,
                secs: 0,
            };
            (ask.page == 8 && ask.times == 0).then(|| blog.answer(&before))
        }),
        ("the first request for each page fails", |_, ask| {
            (ask.url != FEED && ask.times == 0 && ask.page > 3).then(|| status(500))
        }),
        ("two pages are missing for a minute", |_, ask| {
            (matches!(ask.page, 8 | 9) && ask.times == 0).then(|| status(404))
        }),
        ("an hour of 429", |_, ask| {
            (ask.page >= 8 && ask.secs < 3600).then(|| status(429))
        }),
        ("two days of 500", |_, ask| {
            (ask.page >= 8 && ask.secs < 2 * 86_400).then(|| status(500))
        }),
    ];
    for (name, fault) in faults {
        for kind in [Kind::Paged, Kind::PagedOnly, Kind::Next, Kind::Ghost] {
            // What a publisher links to and calls gone is not asked for again by the same walk.
            let is_final = name == "one 410" && kind == Kind::Next;
            let end = if is_final {
                End::NotComplete
            } else {
                End::Complete
            };
            world(
                &format!("{name}, {kind:?}"),
                Blog::new(kind, 505),
                fault,
                end,
            );
        }
    }
    let chain: [(&str, Fault); 9] = [
        ("a missing archive", |_, ask| {
            (ask.page == 8 && ask.times < 3).then(|| status(404))
        }),
        ("archives missing for two days", |_, ask| {
            (ask.page == 8 && ask.secs < 200_000).then(|| status(404))
        }),
        ("an empty archive", |_, ask| {
            (ask.page == 8 && ask.times == 0).then(|| doc([]))
        }),
        ("a web page", |_, ask| {
            (ask.page == 8 && ask.times == 0).then(|| status(299))
        }),
        ("a redirect to the feed", |blog, ask| {
            (ask.page == 8 && ask.times == 0).then(|| Doc {
                landed: Some(FEED.into()),
                ..blog.live()
            })
        }),
        ("a truncated archive", |blog, ask| {
            (ask.page == 8 && ask.times == 0).then(|| Doc {
                damaged: true,
                ..doc(blog.answer(ask).ids)
            })
        }),
        ("an archive of another feed", |_, ask| {
            (ask.page == 8 && ask.times == 0)
                .then(|| of_feed(doc([9000]), "", "Other", "http://other.example/"))
        }),
        ("an archive without its link", |blog, ask| {
            let mut doc = blog.answer(ask);
            doc.metadata.links.retain(|link| link.rel != "prev-archive");
            (ask.page == 8 && ask.times == 0).then_some(doc)
        }),
        ("an hour of 503", |_, ask| {
            (ask.page <= 8 && ask.secs < 3600 && ask.page > 0).then(|| status(503))
        }),
    ];
    for (name, fault) in chain {
        world(
            &format!("{name}, chain"),
            Blog::new(Kind::Chain, 500),
            fault,
            End::Complete,
        );
    }
    let counted: [(&str, Fault); 5] = [
        ("one 404", |_, ask| {
            (ask.page > 60 && ask.nth == 8).then(|| status(404))
        }),
        ("one empty page", |blog, ask| {
            let mut empty = doc([]);
            blog.count(&mut empty, ask.page);
            (ask.nth == 8).then_some(empty)
        }),
        ("one page with a lower total", |blog, ask| {
            let mut doc = blog.answer(ask);
            doc.metadata.paging.total_items = Some(70);
            (ask.nth == 8).then_some(doc)
        }),
        ("every page has a lower total", |blog, ask| {
            let mut doc = blog.answer(ask);
            doc.metadata.paging.total_items = Some(70);
            (ask.url != FEED).then_some(doc)
        }),
        ("one feed", |blog, ask| (ask.nth == 8).then(|| blog.live())),
    ];
    for (name, fault) in counted {
        world(
            &format!("{name}, counted"),
            Blog::new(Kind::Counted, 500),
            fault,
            End::Complete,
        );
    }
}

#[test]
fn a_fault_that_stays_is_never_complete_and_what_is_behind_it_is_read() {
    let faults: [(&str, Fault, End); 14] = [
        (
            "three pages are always missing",
            |_, ask| (8..11).contains(&ask.page).then(|| status(404)),
            End::Lacks(30),
        ),
        (
            "a page is always missing",
            |_, ask| (ask.page == 8).then(|| status(404)),
            End::Lacks(10),
        ),
        (
            "a page is always empty",
            |_, ask| (ask.page == 8).then(|| doc([])),
            End::Lacks(10),
        ),
        (
            "a page always fails",
            |_, ask| (ask.page == 8).then(|| status(500)),
            End::Lacks(10),
        ),
        (
            "a page is always forbidden",
            |_, ask| (ask.page >= 8).then(|| status(403)),
            End::NotComplete,
        ),
        (
            "from a page on the feed",
            |blog, ask| (ask.page >= 8).then(|| blog.live()),
            End::NotComplete,
        ),
        (
            "from a page on a redirect to the feed",
            |blog, ask| {
                (ask.page >= 8).then(|| Doc {
                    landed: Some(FEED.into()),
                    ..blog.live()
                })
            },
            End::NotComplete,
        ),
        (
            "from a page on the front page",
            |_, ask| (ask.page >= 8).then(|| status(299)),
            End::NotComplete,
        ),
        (
            "every query is missing",
            |_, ask| (ask.url != FEED).then(|| status(404)),
            End::NotComplete,
        ),
        (
            "every query is an older copy of the feed",
            |blog, ask| (ask.url != FEED).then(|| doc(blog.posts.iter().skip(1).take(10).copied())),
            End::NotComplete,
        ),
        (
            "every query fails",
            |_, ask| (ask.url != FEED).then(|| status(500)),
            End::NotComplete,
        ),
        (
            "every query is the feed",
            |blog, ask| (ask.url != FEED).then(|| blog.live()),
            End::NotComplete,
        ),
        (
            "every query leads to the feed",
            |blog, ask| {
                (ask.url != FEED).then(|| Doc {
                    landed: Some(FEED.into()),
                    ..blog.live()
                })
            },
            End::NotComplete,
        ),
        (
            "from a page on an outage",
            |_, ask| (ask.page >= 8).then(|| status(503)),
            End::NotComplete,
        ),
    ];
    for (name, fault, end) in faults {
        world(
            &format!("{name}, paged"),
            Blog::new(Kind::PagedOnly, 500),
            fault,
            end,
        );
    }
    let first: Fault = |_, ask| (ask.page == 1).then(|| status(404));
    world(
        "page 1 is missing",
        Blog::new(Kind::PagedOnly, 500),
        first,
        End::Lacks(0),
    );
    // From the seventh page on there is nothing more in the order of edits: it does not meet the
    // live document.
    let cut: Fault = |_, ask| (ask.page >= 8 && ask.url.contains("orderby")).then(|| status(404));
    world(
        "the order of edits ends early",
        Blog::new(Kind::Paged, 505),
        cut,
        End::Complete,
    );
    // A server that gives three pages, whatever follows.
    let capped: [(&str, Fault); 3] = [
        ("pages are missing", |_, ask| {
            (ask.page > 3).then(|| status(404))
        }),
        ("pages are empty", |_, ask| (ask.page > 3).then(|| doc([]))),
        ("the last page repeats", |blog, ask| {
            let last = Ask {
                url: ask.url,
                page: 3,
                nth: 0,
                times: 0,
                secs: 0,
            };
            (ask.page > 3).then(|| blog.answer(&last))
        }),
    ];
    for (name, fault) in capped {
        world(
            &format!("after three {name}"),
            Blog::new(Kind::PagedOnly, 57),
            fault,
            End::NotComplete,
        );
    }
    let counted: [(&str, Fault); 2] = [
        ("nothing", |_, ask| (ask.page >= 25).then(|| doc([]))),
        ("404", |_, ask| (ask.page >= 25).then(|| status(404))),
    ];
    for (name, fault) in counted {
        world(
            &format!("from an entry on {name}"),
            Blog::new(Kind::Counted, 57),
            fault,
            End::NotComplete,
        );
    }
    let emptied: Fault = |blog, ask| {
        let mut doc = blog.answer(ask);
        doc.metadata.links.retain(|link| link.rel != "prev-archive");
        link(&mut doc, "prev-archive", ask.url);
        (ask.page == 40).then_some(doc)
    };
    world(
        "an archive that names itself",
        Blog::new(Kind::Chain, 500),
        emptied,
        End::NotComplete,
    );
    let chain: [(&str, Fault, End); 10] = [
        (
            "a missing archive",
            |_, ask| (ask.page == 8).then(|| status(404)),
            End::NotComplete,
        ),
        (
            "an archive gone for good",
            |_, ask| (ask.page == 8).then(|| status(410)),
            End::NotComplete,
        ),
        (
            "an empty archive",
            |_, ask| (ask.page == 8).then(|| doc([])),
            End::NotComplete,
        ),
        (
            "an empty archive that names the one before it",
            |blog, ask| {
                (ask.page == 8).then(|| Doc {
                    ids: Vec::new(),
                    ..blog.answer(ask)
                })
            },
            End::Lacks(10),
        ),
        (
            "a loop",
            |blog, ask| {
                let mut doc = blog.answer(ask);
                doc.metadata.links.clear();
                link(&mut doc, "prev-archive", "http://blog.example/a12");
                (ask.page == 8).then_some(doc)
            },
            End::NotComplete,
        ),
        (
            "a redirect to the feed",
            |blog, ask| {
                (ask.page == 8).then(|| Doc {
                    landed: Some(FEED.into()),
                    ..blog.live()
                })
            },
            End::NotComplete,
        ),
        (
            "a redirect to the archive before",
            |blog, ask| {
                let before = Ask {
                    url: "http://blog.example/a7",
                    page: 7,
                    nth: 0,
                    times: 0,
                    secs: 0,
                };
                let landed = Some("http://blog.example/a7".to_owned());
                (ask.page == 8).then(|| Doc {
                    landed,
                    ..blog.answer(&before)
                })
            },
            End::Lacks(10),
        ),
        (
            "an archive of another feed",
            |_, ask| {
                (ask.page == 8).then(|| of_feed(doc([9000]), "", "Other", "http://other.example/"))
            },
            End::NotComplete,
        ),
        (
            "a truncated archive",
            |blog, ask| {
                (ask.page == 8).then(|| Doc {
                    damaged: true,
                    ..doc(blog.answer(ask).ids.into_iter().take(4))
                })
            },
            End::NotComplete,
        ),
        (
            "an error page that is a feed and no archive",
            |_, ask| (ask.page <= 8 && ask.page > 0).then(|| doc([9000])),
            End::NotComplete,
        ),
    ];
    for (name, fault, end) in chain {
        world(
            &format!("{name}, chain"),
            Blog::new(Kind::Chain, 500),
            fault,
            end,
        );
    }
    let lower: Fault = |blog, ask| {
        let mut doc = blog.answer(ask);
        doc.metadata.links.retain(|link| link.rel != "next");
        (ask.page == 8).then_some(doc)
    };
    let unlinked = |kind| Blog {
        unlinked: 3,
        ..Blog::new(kind, 500)
    };
    world(
        "archives that the live document passes over",
        unlinked(Kind::Chain),
        NO_FAULT,
        End::Complete,
    );
    let backwards: Fault = |blog, ask| {
        let mut doc = blog.answer(ask);
        doc.metadata.links.retain(|link| link.rel != "next-archive");
        Some(doc)
    };
    world(
        "the same without links to newer ones",
        unlinked(Kind::Chain),
        backwards,
        End::Complete,
    );
    let narrow = Blog {
        window: 4,
        ..Blog::new(Kind::Next, 125)
    };
    world(
        "a live document shorter than a page, with links",
        narrow,
        NO_FAULT,
        End::Complete,
    );
    let jump: Fault = |blog, ask| {
        let mut doc = blog.answer(ask);
        doc.metadata.links.clear();
        link(&mut doc, "next", "http://blog.example/rss?page=10");
        (ask.page == 8).then_some(doc)
    };
    world(
        "a link that passes a page over",
        Blog::new(Kind::Next, 500),
        jump,
        End::Complete,
    );
    world(
        "a page without its link",
        Blog::new(Kind::Next, 500),
        lower,
        End::Complete,
    );
    let gap: Fault = |blog, ask| {
        let mut doc = blog.answer(ask);
        doc.metadata.links.retain(|link| link.rel != "prev-archive");
        link(&mut doc, "prev-archive", "http://blog.example/a7");
        (ask.page == 9).then_some(doc)
    };
    world(
        "an archive that its successor passes over",
        Blog::new(Kind::Chain, 500),
        gap,
        End::Complete,
    );
    let part: Fault = |blog, ask| {
        (ask.url.ends_with("all=1")).then(|| doc(blog.posts.iter().rev().take(70).copied()))
    };
    world(
        "one document without the newest posts",
        Blog::new(Kind::All, 500),
        part,
        End::NotComplete,
    );
}

#[test]
fn nothing_is_lost_when_posts_come_change_and_go_during_a_walk() {
    for kind in [
        Kind::Paged,
        Kind::PagedOnly,
        Kind::Next,
        Kind::Ghost,
        Kind::Counted,
    ] {
        // After so many requests, a post that is new, in the middle, or old is taken out.
        for (name, fault) in [
            (
                "one of the newest is deleted early",
                (|blog, ask| {
                    if ask.nth == 4 {
                        blog.delete(498);
                    }
                    None
                }) as Fault,
            ),
            (
                "one in the middle is deleted behind the walk",
                |blog, ask| {
                    if ask.nth == 20 {
                        blog.delete(380);
                    }
                    None
                },
            ),
            (
                "one of the last page is deleted behind the walk",
                |blog, ask| {
                    if ask.nth == 20 {
                        blog.delete(330);
                        blog.delete(170);
                    }
                    None
                },
            ),
            ("many are deleted, one with every page", |blog, ask| {
                if ask.nth % 3 == 0 && ask.nth < 40 {
                    let post = blog.posts[ask.nth / 2];
                    blog.delete(post);
                    let post = blog.edited[ask.nth];
                    blog.delete(post);
                }
                None
            }),
            ("posts are published meanwhile", |blog, ask| {
                if ask.nth % 9 == 5 && ask.nth < 60 {
                    blog.publish();
                }
                None
            }),
            ("old posts are edited meanwhile", |blog, ask| {
                if ask.nth % 4 == 1 && ask.nth < 45 {
                    let post = blog.edited[ask.nth * 2];
                    blog.edit(post);
                }
                None
            }),
            ("posts are published and deleted meanwhile", |blog, ask| {
                if ask.nth == 12 {
                    blog.publish();
                    blog.delete(455);
                }
                None
            }),
        ] {
            let (walk, now, asked) = play(name, Blog::new(kind, 505), fault);
            let lost = |post: &u32| *post <= 505 && !walk.has_shown(&keys(&[*post])[0]);
            let lost: Vec<u32> = now.posts.iter().copied().filter(lost).collect();
            let told = format!(
                "{name}, {kind:?}: {}, {} requests",
                walk.history(),
                asked.len()
            );
            assert!(lost.is_empty(), "{told}: lost {lost:?}");
            assert_eq!(walk.history(), History::Complete, "{told}");
        }
    }
}

#[test]
fn a_walk_that_waits_says_why_and_until_when() {
    let blog = Blog::new(Kind::PagedOnly, 105);
    let (mut walk, mut now, mut asked) = (begin_blog(&blog), NOW, 0);
    let mut met = std::collections::BTreeSet::new();
    while let WalkStep::Wait(_) | WalkStep::Fetch(_) = walk.next(now) {
        now = now.max(walk.next_at());
        let WalkStep::Fetch(url) = walk.next(now) else {
            unreachable!("its time has come")
        };
        let ask = Ask {
            url: &url,
            page: number(&url),
            nth: asked,
            times: 0,
            secs: 0,
        };
        asked += 1;
        let found = if asked == 3 {
            status(500)
        } else {
            blog.answer(&ask)
        };
        reply(&mut walk, &url, &found, &rules(), now);
        met.insert(
            format!("{:?}", walk.delay())
                .split('(')
                .next()
                .unwrap()
                .to_owned(),
        );
    }
    assert_eq!(
        Vec::from_iter(met),
        ["ConfirmsEnd", "Pace", "ReadsAgain", "Retry"]
    );
    assert_eq!(walk.proof(), Some(&EndProof::LastPage));
}

fn begin_blog(blog: &Blog) -> ArchiveWalk {
    let live = blog.live();
    let seen = WalkedDocument {
        asked: FEED,
        landed: FEED,
        body: body(FEED, &live),
        bytes: 1000,
        keys: &keys(&live.ids),
        metadata: &live.metadata,
        is_built: false,
        damaged: false,
        mixed: false,
    };
    let profile = Platforms::embedded()
        .get(blog.profile())
        .map(|profile| &**profile);
    ArchiveWalk::begin(&Url::parse(FEED).unwrap(), &seen, profile, &rules(), NOW).unwrap()
}
