//! A small legacy blog for the demo: an RSS 2.0 feed of its newest ten posts, as old software
//! served it, a page for each post, and a page that lists what it did. Not part of the product: it
//! stands in for the blog that you have.

use crate::locks::lock;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Posts in the feed: what most blogs of old showed (LEGACY L-7).
const WINDOW_POSTS: usize = 10;
/// Deeds on the page that lists them, and posts kept.
const DEEDS_MAX: usize = 100;
const POSTS_MAX: usize = 500;

/// A blog and what it did.
pub struct Blog {
    state: Mutex<State>,
    origin: String,
}

struct State {
    posts: VecDeque<Post>,
    deeds: VecDeque<String>,
    changed: SystemTime,
    version: u64,
    written: u64,
    chance: StdRng,
}

#[derive(Clone)]
struct Post {
    number: u64,
    title: String,
    text: String,
    date: SystemTime,
}

/// The last act of the blog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A new post.
    Published(String),
    /// An old one changed.
    Edited(String),
    /// One is gone.
    Deleted(String),
}

const THINGS: [&str; 16] = [
    "the garden gate",
    "my old bicycle",
    "a jar of plums",
    "the night train",
    "our dial-up modem",
    "a letter from Lisbon",
    "the attic",
    "a broken kettle",
    "Sunday bread",
    "the lighthouse",
    "a borrowed book",
    "the first frost",
    "a paper map",
    "the village choir",
    "an unfinished song",
    "the long way home",
];
const OPENINGS: [&str; 6] = [
    "Notes on",
    "About",
    "A word on",
    "Again:",
    "Thinking of",
    "In praise of",
];
const SENTENCES: [&str; 8] = [
    "It rained all morning, so there was time to write this down.",
    "No reader asked, but here it is anyway.",
    "I promised a longer post on this years ago.",
    "My neighbour disagrees, and he may have a point.",
    "There are <em>two</em> ways to look at it & both are fine.",
    "I still have the photograph somewhere.",
    "More on this when the weather turns.",
    "Comments are open, as they always were.",
];

impl Blog {
    /// A blog with a few posts, which will do the same deeds for the same seed.
    pub fn new(origin: String, seed: u64, now: SystemTime) -> Self {
        let state = State {
            posts: VecDeque::new(),
            deeds: VecDeque::new(),
            changed: now,
            version: 0,
            written: 0,
            chance: StdRng::seed_from_u64(seed),
        };
        let blog = Self {
            state: Mutex::new(state),
            origin,
        };
        for days in (1..=12).rev() {
            blog.state()
                .publish(now - Duration::from_secs(days * 86_400));
        }
        blog
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Does one thing: mostly publishes, sometimes edits or deletes one of the posts in the window.
    pub fn act(&self, now: SystemTime) -> Deed {
        let mut state = self.state();
        let deed = match state.chance.random_range(0..10) {
            0..6 => Deed::Published(state.publish(now)),
            6..9 => Deed::Edited(state.edit()),
            _ => Deed::Deleted(state.delete()),
        };
        state.note(&deed, now);
        deed
    }

    /// Serves the blog until `stop`, or until somebody says so by `POST /stop`.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        let stop = stop.child_token();
        let connections = tokio_util::task::TaskTracker::new();
        loop {
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(_) => continue,
                },
            };
            let (blog, stop) = (self.clone(), stop.clone());
            connections.spawn(async move {
                let answer = service_fn(|request: Request<Incoming>| {
                    if request.method() == Method::POST && request.uri().path() == "/stop" {
                        stop.cancel();
                    }
                    let response =
                        blog.answer(request.method(), request.uri().path(), request.headers());
                    async move { Ok::<_, Infallible>(response) }
                });
                let mut http = hyper::server::conn::http1::Builder::new();
                http.timer(TokioTimer::new())
                    .header_read_timeout(Duration::from_secs(30));
                let connection = http.serve_connection(TokioIo::new(stream), answer);
                tokio::select! {
                    () = stop.cancelled() => {}
                    _ = connection => {}
                }
            });
        }
        connections.close();
        connections.wait().await;
    }

    /// Does something every so often until `stop`, and tells of it.
    pub async fn live(
        self: Arc<Self>,
        every: Duration,
        stop: CancellationToken,
        told: impl Fn(Deed) + Send,
    ) {
        let mut beat = tokio::time::interval(every);
        beat.tick().await;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = beat.tick() => told(self.act(SystemTime::now())),
            }
        }
    }

    fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> Response<Full<Bytes>> {
        if *method == Method::POST && path == "/stop" {
            return page(StatusCode::OK, "<p>This blog stops.");
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return page(StatusCode::METHOD_NOT_ALLOWED, "<p>This blog is read only.");
        }
        match path {
            "/rss.xml" => self.feed(headers),
            "/" => page(StatusCode::OK, &self.diary()),
            _ => match path
                .strip_prefix("/posts/")
                .and_then(|number| number.parse().ok())
            {
                Some(number) => self.permalink(number),
                None => page(StatusCode::NOT_FOUND, "<p>There is nothing here."),
            },
        }
    }

    /// The feed, with an ETag and a Last-Modified, and 304 for whoever has it.
    fn feed(&self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let state = self.state();
        let etag = format!("\"v{}\"", state.version);
        let modified = httpdate::fmt_http_date(state.changed);
        let known = headers
            .get(header::IF_NONE_MATCH)
            .is_some_and(|tag| tag.as_bytes() == etag.as_bytes());
        let body = if known {
            String::new()
        } else {
            self.rss(&state)
        };
        let builder = Response::builder()
            .status(if known {
                StatusCode::NOT_MODIFIED
            } else {
                StatusCode::OK
            })
            .header(header::CONTENT_TYPE, "text/xml; charset=utf-8")
            .header(header::ETAG, etag)
            .header(header::LAST_MODIFIED, modified);
        builder
            .body(Full::from(body))
            .expect("these headers are well-formed")
    }

    fn rss(&self, state: &State) -> String {
        let mut out = String::from(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\">\n<channel>\n",
        );
        let _ = write!(
            out,
            "<title>The Old Blog</title>\n<link>{}/</link>\n",
            self.origin
        );
        out.push_str(
            "<description>Plain notes since 2003</description>\n<language>en</language>\n",
        );
        for post in state.posts.iter().take(WINDOW_POSTS) {
            let url = format!("{}/posts/{}", self.origin, post.number);
            let _ = writeln!(
                out,
                "<item><title>{}</title><link>{url}</link><guid>{url}</guid><pubDate>{}</pubDate>\
                 <description>{}</description></item>",
                escaped(&post.title),
                httpdate::fmt_http_date(post.date),
                escaped(&post.text),
            );
        }
        out.push_str("</channel>\n</rss>\n");
        out
    }

    fn diary(&self) -> String {
        let state = self.state();
        let mut out = String::from(
            "<h1>The Old Blog</h1><p>A legacy blog that only has <a href=\"/rss.xml\">an RSS feed of ten posts</a>. \
             What it did, newest first:<ol reversed>",
        );
        for deed in &state.deeds {
            let _ = write!(out, "<li>{}", escaped(deed));
        }
        out.push_str("</ol>");
        out
    }

    fn permalink(&self, number: u64) -> Response<Full<Bytes>> {
        let state = self.state();
        match state.posts.iter().find(|post| post.number == number) {
            Some(post) => page(
                StatusCode::OK,
                &format!("<h1>{}</h1>{}", escaped(&post.title), post.text),
            ),
            None => page(StatusCode::GONE, "<p>This post was deleted."),
        }
    }
}

impl State {
    fn publish(&mut self, now: SystemTime) -> String {
        self.written += 1;
        let title = format!("{} {}", self.pick(&OPENINGS), self.pick(&THINGS));
        let text = self.paragraphs();
        self.posts.push_front(Post {
            number: self.written,
            title: title.clone(),
            text,
            date: now,
        });
        self.posts.truncate(POSTS_MAX);
        self.touch(now);
        title
    }

    fn edit(&mut self) -> String {
        let at = self
            .chance
            .random_range(0..WINDOW_POSTS.min(self.posts.len()));
        let text = self.paragraphs();
        let post = &mut self.posts[at];
        post.text = format!("{text}<p><b>Update:</b> corrected, thanks to a reader.");
        let title = post.title.clone();
        self.touch(SystemTime::now());
        title
    }

    fn delete(&mut self) -> String {
        // Never the last in the window: a post that an older one takes the place of is the
        // interesting case.
        let at = self
            .chance
            .random_range(0..WINDOW_POSTS.min(self.posts.len()) - 1);
        let title = self
            .posts
            .remove(at)
            .map(|post| post.title)
            .unwrap_or_default();
        self.touch(SystemTime::now());
        title
    }

    fn touch(&mut self, now: SystemTime) {
        self.version += 1;
        self.changed = now;
    }

    fn paragraphs(&mut self) -> String {
        let count = self.chance.random_range(2..5);
        (0..count)
            .map(|_| format!("<p>{}", self.pick(&SENTENCES)))
            .collect()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.choose(&mut self.chance).copied().unwrap_or_default()
    }

    fn note(&mut self, deed: &Deed, now: SystemTime) {
        let (did, title) = match deed {
            Deed::Published(title) => ("published", title),
            Deed::Edited(title) => ("edited", title),
            Deed::Deleted(title) => ("deleted", title),
        };
        self.deeds
            .push_front(format!("{} {did} “{title}”", httpdate::fmt_http_date(now)));
        self.deeds.truncate(DEEDS_MAX);
    }
}

fn page(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    let html = format!(
        "<!doctype html><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>The Old Blog</title>\
         <link rel=alternate type=\"application/rss+xml\" href=\"/rss.xml\">\
         <style>body{{font:17px/1.5 Georgia,serif;max-width:38em;margin:2em auto;padding:0 1em}}</style>{body}\n"
    );
    let mut response = Response::new(Full::from(html));
    *response.status_mut() = status;
    let html = header::HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    response
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The address of a listener, as its URLs begin.
pub fn origin(address: SocketAddr) -> String {
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blog() -> Blog {
        Blog::new(
            "http://127.0.0.1:1".into(),
            7,
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        )
    }

    fn feed(blog: &Blog, known: Option<&str>) -> Response<Full<Bytes>> {
        let mut headers = HeaderMap::new();
        if let Some(tag) = known {
            headers.insert(header::IF_NONE_MATCH, tag.parse().unwrap());
        }
        blog.answer(&Method::GET, "/rss.xml", &headers)
    }

    #[test]
    fn the_feed_holds_ten_posts_and_answers_304_to_whoever_has_it() {
        let blog = blog();
        let first = feed(&blog, None);
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(
            blog.rss(&blog.state()).matches("<item>").count(),
            WINDOW_POSTS
        );
        assert_eq!(feed(&blog, Some(&tag)).status(), StatusCode::NOT_MODIFIED);
        blog.act(SystemTime::now());
        assert_eq!(feed(&blog, Some(&tag)).status(), StatusCode::OK);
    }

    #[test]
    fn it_publishes_edits_and_deletes_and_says_so() {
        let blog = blog();
        let deeds: Vec<_> = (0..60).map(|_| blog.act(SystemTime::now())).collect();
        let kinds = |kind: fn(&Deed) -> bool| deeds.iter().filter(|deed| kind(deed)).count();
        assert!(kinds(|deed| matches!(deed, Deed::Published(_))) > 20);
        assert!(kinds(|deed| matches!(deed, Deed::Edited(_))) > 5);
        assert!(kinds(|deed| matches!(deed, Deed::Deleted(_))) > 1);
        assert_eq!(blog.diary().matches("<li>").count(), 60);
    }
}
