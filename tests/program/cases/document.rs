//! Documents as blog software writes them, with the media type that it sends; not what becomes of
//! them.

use chrono::DateTime;

/// A post.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Post {
    /// `guid`, `atom:id` or `rdf:about`.
    pub(crate) id: String,
    pub(crate) link: String,
    /// Its last word is what the tests call it.
    pub(crate) title: String,
    /// Seconds since 1970; `None`: it shows no date.
    pub(crate) published: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) text: String,
    /// Further elements, as markup.
    pub(crate) more: String,
}

/// Posts in document order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Posts(pub(crate) Vec<Post>);

/// A document as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) body: Vec<u8>,
    pub(crate) content_type: &'static str,
    /// As sent, and compared with; none: that of these very bytes.
    pub(crate) etag: Option<&'static str>,
    /// Status and body for a request with a validator that does not match.
    pub(crate) delta: Option<(u16, Vec<u8>)>,
}

/// 2026-01-01, the day of `a`. There is a day between two letters.
const FIRST_SECS: i64 = 1_767_225_600;
const DAY_SECS: i64 = 86_400;

impl Post {
    /// A post that was published on this day.
    pub(crate) fn of_day(name: &str, day: i64) -> Self {
        Self {
            id: format!("http://blog.example/?p={name}"),
            link: format!("http://blog.example/{name}.html"),
            title: format!("The post called {name}"),
            published: Some(FIRST_SECS + day * DAY_SECS),
            updated: None,
            text: format!("What there is to say of {name}."),
            more: String::new(),
        }
    }

    pub(crate) fn of(letter: char) -> Self {
        Self::of_day(
            &letter.to_string(),
            i64::from(u32::from(letter) - u32::from('a')),
        )
    }
}

impl From<&str> for Posts {
    fn from(letters: &str) -> Self {
        Self(letters.chars().map(Post::of).collect())
    }
}

impl Posts {
    /// The same, with one post changed.
    pub(crate) fn but(mut self, name: &str, change: impl Fn(&mut Post)) -> Self {
        let title = format!("The post called {name}");
        change(
            self.0
                .iter_mut()
                .find(|post| post.title == title)
                .expect("a post of this name"),
        );
        self
    }

    /// The same, with all of them changed.
    pub(crate) fn each(mut self, change: impl Fn(&mut Post)) -> Self {
        self.0.iter_mut().for_each(change);
        self
    }

    /// The first so many.
    pub(crate) fn first(mut self, posts: usize) -> Self {
        self.0.truncate(posts);
        self
    }
}

/// The day of a letter, for dates that are not the post's own.
pub(crate) fn day(letter: char) -> Option<i64> {
    Post::of(letter).published
}

impl Document {
    /// Text of this media type.
    pub(crate) fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            content_type,
            etag: None,
            delta: None,
        }
    }

    /// The same under this validator.
    pub(crate) fn tagged(self, etag: &'static str) -> Self {
        Self {
            etag: Some(etag),
            ..self
        }
    }

    /// The same, but who asks by an older validator gets that with this status.
    pub(crate) fn delta(self, status: u16, part: Self) -> Self {
        Self {
            delta: Some((status, part.body)),
            ..self
        }
    }

    /// The same with one text in place of another.
    pub(crate) fn with(self, from: &str, to: &str) -> Self {
        let text = String::from_utf8(self.body).unwrap();
        assert!(text.contains(from), "{from} is not in {text}");
        Self {
            body: text.replace(from, to).into_bytes(),
            ..self
        }
    }

    /// The same, which ends where this text begins.
    pub(crate) fn cut_at(mut self, text: &str) -> Self {
        let whole = String::from_utf8(self.body.clone()).unwrap();
        self.body
            .truncate(whole.find(text).expect("a text of the document"));
        self
    }
}

/// RSS 2.0.
pub(crate) fn rss(posts: impl Into<Posts>) -> Document {
    let item = |post: &Post| {
        let Post {
            id,
            link,
            title,
            text,
            more,
            ..
        } = post;
        let date = post
            .published
            .map(|at| format!("<pubDate>{}</pubDate>", rfc2822(at)))
            .unwrap_or_default();
        format!(
            "<item><title>{title}</title><link>{link}</link><guid isPermaLink=\"false\">{id}</guid>{date}\
             <description>{text}</description>{more}</item>\n"
        )
    };
    let items: String = posts.into().0.iter().map(item).collect();
    Document::new(
        "application/rss+xml; charset=UTF-8",
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\"><channel><title>A blog</title>\
             <link>http://blog.example/</link><description>Of letters</description>\n{items}</channel></rss>"
        ),
    )
}

/// Atom 1.0, with `atom:updated` as late as the posts say.
pub(crate) fn atom(posts: impl Into<Posts>) -> Document {
    let entry = |post: &Post| {
        let Post {
            id,
            link,
            title,
            text,
            more,
            ..
        } = post;
        let published = post.published.unwrap_or_default();
        let updated = rfc3339(post.updated.unwrap_or(published));
        format!(
            "<entry><id>{id}</id><title>{title}</title><link rel=\"alternate\" href=\"{link}\"/>\
             <published>{}</published><updated>{updated}</updated><content type=\"html\">{text}</content>{more}</entry>\n",
            rfc3339(published)
        )
    };
    let posts = posts.into().0;
    let newest = posts
        .iter()
        .filter_map(|post| post.updated.or(post.published))
        .max()
        .unwrap_or_default();
    let entries: String = posts.iter().map(entry).collect();
    Document::new(
        "application/atom+xml",
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>http://blog.example/</id>\
             <title>A blog</title><link href=\"http://blog.example/\"/><updated>{}</updated>\n{entries}</feed>",
            rfc3339(newest)
        ),
    )
}

/// RSS 1.0.
pub(crate) fn rdf(posts: impl Into<Posts>) -> Document {
    let posts = posts.into().0;
    let item = |post: &Post| {
        let Post {
            id,
            link,
            title,
            text,
            ..
        } = post;
        let date = rfc3339(post.published.unwrap_or_default());
        format!(
            "<item rdf:about=\"{id}\"><title>{title}</title><link>{link}</link><description>{text}</description>\
             <dc:date>{date}</dc:date></item>\n"
        )
    };
    let list: String = posts
        .iter()
        .map(|post| format!("<rdf:li rdf:resource=\"{}\"/>", post.id))
        .collect();
    let items: String = posts.iter().map(item).collect();
    Document::new(
        "application/rdf+xml",
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rdf:RDF xmlns=\"http://purl.org/rss/1.0/\" \
             xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\
             <channel rdf:about=\"http://blog.example/\"><title>A blog</title><link>http://blog.example/</link>\
             <description>Of letters</description><items><rdf:Seq>{list}</rdf:Seq></items></channel>\n{items}</rdf:RDF>"
        ),
    )
}

/// Atom 0.3, which Blogger, Movable Type and LiveJournal wrote until 2006.
pub(crate) fn atom03(posts: impl Into<Posts>) -> Document {
    let entry = |post: &Post| {
        let Post {
            id,
            link,
            title,
            text,
            ..
        } = post;
        let issued = rfc3339(post.published.unwrap_or_default());
        let modified = rfc3339(post.updated.or(post.published).unwrap_or_default());
        format!(
            "<entry><title mode=\"escaped\">{title}</title><link rel=\"alternate\" type=\"text/html\" href=\"{link}\"/>\
             <id>{id}</id><issued>{issued}</issued><modified>{modified}</modified>\
             <content type=\"text/html\" mode=\"escaped\">{text}</content></entry>\n"
        )
    };
    let entries: String = posts.into().0.iter().map(entry).collect();
    Document::new(
        "application/atom+xml",
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed version=\"0.3\" xmlns=\"http://purl.org/atom/ns#\">\
             <title>A blog</title><link rel=\"alternate\" type=\"text/html\" href=\"http://blog.example/\"/>\n{entries}</feed>"
        ),
    )
}

pub(crate) fn rfc3339(secs: i64) -> String {
    DateTime::from_timestamp(secs, 0)
        .unwrap()
        .format("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

pub(crate) fn rfc2822(secs: i64) -> String {
    DateTime::from_timestamp(secs, 0)
        .unwrap()
        .format("%a, %d %b %Y %H:%M:%S GMT")
        .to_string()
}
