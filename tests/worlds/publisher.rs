//! A publisher: its posts, the documents and pages that it shows of them, and its outages. It tells
//! the truth about what it shows.

use super::{
    chance::Chance,
    plan::{Category, FeedPlan},
};
use chrono::DateTime;
use std::{collections::BTreeMap, fmt::Write as _};

/// 2026-06-01, the beginning of every world, in seconds since 1970.
pub(crate) const START_SECS: u64 = 1_780_272_000;

/// Posts on one page of an archive.
const ARCHIVE_POSTS: usize = 5;

/// A publisher as it is now.
pub(crate) struct Publisher {
    pub(crate) plan: FeedPlan,
    pub(crate) posts: Vec<Post>,
    /// Time up to which it does not answer, in milliseconds.
    pub(crate) out_until_ms: u64,
    /// Times that its posts got other ids.
    renumbered: u32,
    chance: Chance,
}

/// A post as it is now.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    /// The blog on which it stands.
    pub(crate) blog: usize,
    pub(crate) no: u32,
    pub(crate) version: u32,
    pub(crate) category: Category,
    pub(crate) is_alive: bool,
    /// Times that its blog was reformatted.
    form: u32,
    /// Times that its blog gave its posts other ids.
    renumbered: u32,
    published_secs: u64,
}

/// An answer of a publisher.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) media_type: &'static str,
    pub(crate) body: String,
}

impl Publisher {
    pub(crate) fn new(plan: &FeedPlan, seed: u64) -> Self {
        let mut publisher = Self {
            plan: plan.clone(),
            posts: Vec::new(),
            out_until_ms: 0,
            renumbered: 0,
            chance: Chance::of(seed, &format!("publisher {}", plan.no)),
        };
        for post in 0..plan.posts {
            let days = u64::from(plan.posts - post);
            publisher.add(START_SECS - days * 86_400);
        }
        publisher
    }

    pub(crate) fn host(no: usize) -> String {
        format!("blog{no}.example")
    }

    pub(crate) fn add(&mut self, now_secs: u64) {
        let category = *self.chance.pick(&Category::ALL);
        self.posts.push(Post {
            blog: self.plan.no,
            no: self.posts.len() as u32,
            version: 0,
            category,
            is_alive: true,
            form: 0,
            renumbered: self.renumbered,
            published_secs: now_secs,
        });
    }

    /// Changes a post that is shown now.
    pub(crate) fn edit(&mut self) -> Option<u32> {
        let post = self.shown_post()?;
        self.posts[post].version += 1;
        Some(self.posts[post].no)
    }

    /// Moves a post that is shown now to the other category.
    pub(crate) fn move_post(&mut self) -> Option<u32> {
        let post = self.shown_post()?;
        let post = &mut self.posts[post];
        post.version += 1;
        post.category = match post.category {
            Category::News => Category::Notes,
            Category::Notes => Category::News,
        };
        Some(post.no)
    }

    /// True for one whose posts had other ids before. Which post is which cannot be known where it was
    /// edited meanwhile.
    pub(crate) fn has_renumbered(&self) -> bool {
        self.renumbered > 0
    }

    /// Gives all posts other ids.
    pub(crate) fn renumber(&mut self) {
        self.renumbered += 1;
        let times = self.renumbered;
        self.posts
            .iter_mut()
            .for_each(|post| post.renumbered = times);
    }

    /// Changes the text of all posts a little.
    pub(crate) fn reformat(&mut self) {
        self.posts.iter_mut().for_each(|post| post.form += 1);
    }

    pub(crate) fn delete(&mut self) -> Option<u32> {
        let post = self.shown_post()?;
        self.posts[post].is_alive = false;
        Some(self.posts[post].no)
    }

    /// Deletes all posts of a category that are shown.
    pub(crate) fn empty(&mut self, category: Category) -> usize {
        let going = self.shown().filter(|post| post.category == category);
        let going: Vec<u32> = going.map(|post| post.no).collect();
        for no in &going {
            self.posts[*no as usize].is_alive = false;
        }
        going.len()
    }

    /// Brings a deleted post back, if one has been deleted.
    pub(crate) fn revive(&mut self) -> Option<u32> {
        let gone: Vec<usize> = (0..self.posts.len())
            .filter(|at| !self.posts[*at].is_alive)
            .collect();
        if gone.is_empty() {
            return None;
        }
        let post = *self.chance.pick(&gone);
        self.posts[post].is_alive = true;
        Some(self.posts[post].no)
    }

    /// Posts of the document: its own, and copies of those of another blog where it copies.
    pub(crate) fn document<'p>(&'p self, all: &'p BTreeMap<usize, Self>) -> Vec<&'p Post> {
        let copied = self.plan.copies.and_then(|of| all.get(&of));
        let copied = copied.into_iter().flat_map(Self::shown);
        self.shown().chain(copied).collect()
    }

    /// The posts of its own in the document, newest first.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Post> {
        self.living().take(self.plan.window)
    }

    /// All posts that are there, newest first.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Post> {
        self.posts.iter().rev().filter(|post| post.is_alive)
    }

    fn shown_post(&mut self) -> Option<usize> {
        let shown: Vec<usize> = self.shown().map(|post| post.no as usize).collect();
        if shown.is_empty() {
            return None;
        }
        Some(*self.chance.pick(&shown))
    }

    /// The answer to a path.
    pub(crate) fn answer(&self, path: &str, all: &BTreeMap<usize, Self>) -> Page {
        if path == "/feed" {
            return self.feed_page(self.document(all).into_iter(), self.older(0).map(|_| 1));
        }
        if let Some(page) = path
            .strip_prefix("/archive/")
            .and_then(|no| no.parse().ok())
        {
            let page: usize = page;
            return match page.checked_sub(1).and_then(|at| self.older(at)) {
                Some(posts) => {
                    self.feed_page(posts.iter().copied(), self.older(page).map(|_| page + 1))
                }
                None => not_found(404),
            };
        }
        match post_at(path).and_then(|no| self.posts.get(no as usize)) {
            Some(post) if post.is_alive || !self.plan.has_pages => Page {
                status: 200,
                media_type: "text/html",
                body: format!(
                    "<html><head><title>{}</title></head><body><h1>{}</h1><p>{}</p></body></html>",
                    post.title(),
                    post.title(),
                    post.text()
                ),
            },
            Some(_) => not_found(410),
            None => not_found(404),
        }
    }

    /// The posts of a page of the archives, behind those of the document.
    fn older(&self, page: usize) -> Option<Vec<&Post>> {
        if !self.plan.has_archives {
            return None;
        }
        let behind = self.living().skip(self.plan.window + page * ARCHIVE_POSTS);
        let posts: Vec<&Post> = behind.take(ARCHIVE_POSTS).collect();
        (!posts.is_empty()).then_some(posts)
    }

    fn feed_page<'p>(&self, posts: impl Iterator<Item = &'p Post>, older: Option<usize>) -> Page {
        let host = Self::host(self.plan.no);
        let older = older.map(|page| {
            format!("<atom:link rel=\"prev-archive\" href=\"http://{host}/archive/{page}\"/>")
        });
        let older = older.unwrap_or_default();
        let mut body = String::new();
        if self.plan.is_atom {
            let _ = write!(
                body,
                "<?xml version=\"1.0\"?><feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:atom=\"http://www.w3.org/2005/Atom\">\
                 <id>http://{host}/</id><title>Blog {}</title><updated>2026-06-01T00:00:00Z</updated>{older}",
                self.plan.no
            );
            for post in posts {
                let _ = write!(
                    body,
                    "<entry><id>{id}</id><title>{}</title><link href=\"http://blog{blog}.example/p/{no}\"/>\
                     <published>{at}</published><updated>{at}</updated><category term=\"{}\"/><content>{}</content></entry>",
                    post.title(),
                    post.category.name(),
                    post.text(),
                    id = post.id(),
                    blog = post.blog,
                    no = post.no,
                    at = date(post.published_secs).to_rfc3339(),
                );
            }
            body.push_str("</feed>");
        } else {
            let _ = write!(
                body,
                "<?xml version=\"1.0\"?><rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel>\
                 <title>Blog {}</title><link>http://{host}/</link><description>A blog</description>{older}",
                self.plan.no
            );
            for post in posts {
                let _ = write!(
                    body,
                    "<item><guid isPermaLink=\"false\">{id}</guid><title>{}</title><link>http://blog{blog}.example/p/{no}</link>\
                     <pubDate>{}</pubDate><category>{}</category><description>{}</description></item>",
                    post.title(),
                    date(post.published_secs).to_rfc2822(),
                    post.category.name(),
                    post.text(),
                    id = post.id(),
                    blog = post.blog,
                    no = post.no,
                );
            }
            body.push_str("</channel></rss>");
        }
        Page {
            status: 200,
            media_type: if self.plan.is_atom {
                "application/atom+xml"
            } else {
                "application/rss+xml"
            },
            body,
        }
    }
}

impl Post {
    /// Its title, which tells everything that may change.
    pub(crate) fn title(&self) -> String {
        let category = self.category.name();
        let (blog, no, version) = (self.blog, self.no, self.version);
        format!("Blog {blog} post {no} version {version} {category}")
    }

    /// Its text, which every reformatting changes a little.
    pub(crate) fn text(&self) -> String {
        let (no, version, form) = (self.no, self.version, self.form);
        format!(
            "Text of post {no} in version {version}, word{no}{version} and others. Form {form}."
        )
    }

    /// The id that its blog gives it.
    fn id(&self) -> String {
        let Self { blog, no, .. } = self;
        match self.renumbered {
            0 => format!("http://blog{blog}.example/p/{no}"),
            times => format!("urn:blog{blog}:{times}:{no}"),
        }
    }

    /// The key by which it is known wherever it stands.
    pub(crate) fn key(&self) -> PostKey {
        (self.blog, self.no)
    }
}

/// A blog and the number of a post on it.
pub(crate) type PostKey = (usize, u32);

/// The post at a link.
pub(crate) fn post_of(link: &str) -> Option<PostKey> {
    let host = link.strip_prefix("http://blog")?;
    let (blog, rest) = host.split_once('.')?;
    Some((blog.parse().ok()?, post_at(rest)?))
}

/// The number of a post at the end of a title, a link or a path.
pub(crate) fn post_at(url: &str) -> Option<u32> {
    url.rsplit_once("/p/")?.1.parse().ok()
}

fn date(secs: u64) -> DateTime<chrono::Utc> {
    DateTime::from_timestamp(secs as i64, 0).unwrap()
}

fn not_found(status: u16) -> Page {
    Page {
        status,
        media_type: "text/html",
        body: "<html><head><title>Not here</title></head><body>Nothing</body></html>".to_owned(),
    }
}
