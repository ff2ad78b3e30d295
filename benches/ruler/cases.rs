//! The paths that are measured, one after the other over the same application.

use crate::{
    client::{Client, get, header, post},
    documents::{ENTRIES, feed, page},
    figures::Figure,
    measure::{Measured, begin},
    origin::Origin,
};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use everfeed::{app::App, config::Config, store::POLLS_LATE_SECS};
use std::{collections::BTreeMap, net::SocketAddr, path::Path, time::Duration};
use tempfile::TempDir;
use tokio::time::sleep;

/// Posts that the blog has at first.
const POSTS: usize = 300;
/// Requests of one kind.
const ASKED: usize = 40;
/// Pages from the store.
const PAGES: usize = 10;
const SEARCHES: usize = 3;
/// Rounds of what has timers and other threads in it: the least of them is the figure.
const ROUNDS: usize = 3;
/// Waiters, streams and connections of one kind.
const CROWD: usize = 100;
/// Subscriptions that are made in a round.
const SUBSCRIBED: usize = 10;
/// All of them.
const SUBSCRIPTIONS: usize = ROUNDS * SUBSCRIBED;
/// Archive pages of [`ENTRIES`] posts that each of the walked feeds has.
const ARCHIVES: usize = 2;
/// Feeds of the application whose start is measured.
const FEEDS: usize = 1_000;
/// Time for what goes on behind an answer.
const REST: Duration = Duration::from_secs(1);
/// Time after which a poll that changed nothing is on disk: the next one does not pay for that.
const LATE_REST: Duration = Duration::from_secs(POLLS_LATE_SECS + 3);
/// Time in which all of a crowd are served under Valgrind, which takes a second on an ordinary machine.
const CROWD_REST: Duration = Duration::from_secs(4);
/// Time after which connections to callbacks are closed, which are kept for two seconds.
const IDLE_REST: Duration = Duration::from_secs(3);
const SITE: &str = "site.example";
/// The `Host` of requests to the operator's listener.
const OPERATOR: &str = "127.0.0.1";

/// Declares the paths that are measured: each with its name in the file of figures, the times that
/// it is done in a round, and its unit.
macro_rules! cases {
    ($($case:ident: $name:literal, $times:expr, $unit:ident;)*) => {
        /// A path that is measured.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Case {
            $($case,)*
        }

        impl Case {
            /// Its name in the file of figures.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$case => $name,)* }
            }

            pub(crate) fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$case),)* _ => None }
            }

            /// Times that it is done between the two points.
            pub(crate) const fn times(self) -> usize {
                match self { $(Self::$case => $times,)* }
            }

            pub(crate) const fn unit(self) -> Unit {
                match self { $(Self::$case => Unit::$unit,)* }
            }
        }
    };
}

/// The figures of a path that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Instructions and allocations.
    Work,
    /// Bytes that stay in memory.
    Memory,
}

cases! {
    HotPage: "hot page", ASKED, Work;
    NotModified: "not modified", ASKED, Work;
    SitePage: "page of a site", ASKED, Work;
    StorePage: "page from the store", PAGES, Work;
    Search: "search", SEARCHES, Work;
    PollUnchanged: "poll, unchanged", 1, Work;
    PollNew: "poll, one new entry", 1, Work;
    ArchivePage: "archive page of 50 posts", ARCHIVES, Work;
    IdleConnection: "idle connection", CROWD, Memory;
    HeldPoll: "held poll", CROWD, Memory;
    WakeUp: "wake-up of 100 waiters", 1, Work;
    Stream: "stream", CROWD, Memory;
    Subscription: "subscription", SUBSCRIBED, Memory;
    Push: "push", SUBSCRIPTIONS, Work;
    Start: "start with 1,000 feeds", 1, Work;
}

/// Figures for one page, poll, push and so on. A push and a wake-up are without the polls that
/// found the change.
pub(crate) fn by_unit(figures: &BTreeMap<Case, Figure>) -> BTreeMap<Case, Figure> {
    let poll = figures.get(&Case::PollNew).copied().unwrap_or_default();
    let one = |(&case, &all): (&Case, &Figure)| {
        let all = match case {
            Case::Push | Case::WakeUp => all.without(poll),
            _ => all,
        };
        (case, all.over(case.times()))
    };
    figures.iter().map(one).collect()
}

/// The application, its origin and a reader.
struct Stage {
    app: App,
    origin: Origin,
    reader: Client,
    operator: Client,
    /// Number of the newest post.
    newest: usize,
    measured: Vec<Measured>,
    folder: TempDir,
}

/// Plays all cases.
pub(crate) async fn play(part: Part) -> Result<Vec<Measured>> {
    let mut stage = Stage::new().await?;
    match part {
        Part::Requests => {
            stage.fill().await.context("posts")?;
            stage.pages().await.context("pages")?;
            stage.unchanged_polls().await.context("unchanged polls")?;
            stage.new_posts().await.context("new posts")?;
            stage.app.stop().await?;
        }
        Part::Waiting => {
            stage.new_posts().await.context("new posts")?;
            stage.waiters().await.context("waiters")?;
            stage.subscriptions().await.context("subscriptions")?;
            stage.app.stop().await?;
        }
        Part::LongWork => {
            stage.archives().await.context("archives")?;
            stage.app.stop().await?;
            let starts = starts(&stage.origin, stage.folder.path()).await?;
            stage.measured.extend(starts);
        }
    }
    Ok(stage.measured)
}

/// Cases that one process plays. The parts take about the same time, and are counted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Pages and polls of a feed with all its posts.
    Requests,
    /// Whoever waits, and pushes, at a small feed.
    Waiting,
    /// Archives, and starts.
    LongWork,
}

impl Part {
    pub(crate) const ALL: [Self; 3] = [Self::Requests, Self::Waiting, Self::LongWork];

    /// Its name, for the process that plays it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Waiting => "waiting",
            Self::LongWork => "long-work",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

impl Stage {
    async fn new() -> Result<Self> {
        let origin = Origin::listen().await?;
        origin.says("/blog.xml", feed(ENTRIES, ENTRIES, None));
        origin.says("/site.xml", feed(ENTRIES, ENTRIES, None));
        origin.says("/page.html", page());
        let folder = tempfile::tempdir()?;
        let archives = (0..ROUNDS).map(archive);
        let feeds = ["blog".to_owned()].into_iter().chain(archives);
        let feeds: String = feeds
            .map(|name| {
                format!(
                    "[[feed]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:{}/{name}.xml\"\n\
                 poll = {{ max_secs = 86400 }}\n",
                    origin.port
                )
            })
            .collect();
        let site = format!(
            "[[site]]\nhost = \"{SITE}\"\norigin = \"http://127.0.0.1:{}\"\nfeeds = [\"/site.xml\"]\n",
            origin.port
        );
        let app = application(folder.path(), "stage", &(feeds + &site)).await?;
        let mut reader = Client::open(app.address()).await?;
        let operator = Client::open(app.admin_address()).await?;
        while reader.ask(&get(&target(""), "x", "")).await? != 200 {
            sleep(REST).await;
        }
        let mut stage = Self {
            app,
            origin,
            reader,
            operator,
            newest: ENTRIES,
            measured: Vec::new(),
            folder,
        };
        stage.poll("blog").await?;
        sleep(REST).await;
        Ok(stage)
    }

    /// Gives the feed all its posts.
    async fn fill(&mut self) -> Result<()> {
        // The document is a window of the last posts, as it is for most blogs.
        while self.newest < POSTS {
            self.newest = (self.newest + ENTRIES / 2).min(POSTS);
            let document = feed(self.newest, ENTRIES, None);
            self.take(document).await?;
        }
        sleep(REST).await;
        Ok(())
    }

    /// The document with one more post.
    fn next_document(&mut self) -> Bytes {
        self.newest += 1;
        feed(self.newest, ENTRIES, None)
    }

    /// The blog says this, and is polled.
    async fn take(&mut self, document: Bytes) -> Result<()> {
        self.origin.says("/blog.xml", document);
        let status = self.poll("blog").await?;
        ensure!(status == 200, "{status} for a poll");
        Ok(())
    }

    /// Polls a feed, whatever comes of it.
    async fn poll(&mut self, name: &str) -> Result<u16> {
        let request = post(&format!("/poll/{name}?now"), OPERATOR, "");
        self.operator.ask(&request).await
    }

    /// Asks again and again, after a few times that nobody counts.
    async fn ask_often(&mut self, case: Case, request: &[u8], expect: u16) -> Result<()> {
        for _ in 0..5 {
            let status = self.reader.ask(request).await?;
            ensure!(status == expect, "{status} where {expect} was expected");
        }
        let measuring = begin();
        for _ in 0..ASKED {
            self.reader.ask(request).await?;
        }
        self.measured.push(measuring.end(case));
        Ok(())
    }

    async fn pages(&mut self) -> Result<()> {
        let hot = get(&target("max=50"), "x", "");
        self.ask_often(Case::HotPage, &hot, 200).await?;
        let etag = header(self.reader.text()?, "etag").context("an ETag")?;
        let again = get(
            &target("max=50"),
            "x",
            &format!("if-none-match: {etag}\r\n"),
        );
        self.ask_often(Case::NotModified, &again, 304).await?;
        let page = get("/page.html", SITE, "");
        self.ask_often(Case::SitePage, &page, 200).await?;
        let cursors = self.cursors().await?;
        let pages: Vec<Vec<u8>> = cursors
            .iter()
            .map(|cursor| get(&target(&format!("since=cursor:{cursor}&max=50")), "x", ""))
            .collect();
        let searches: Vec<Vec<u8>> = cursors
            .iter()
            .take(SEARCHES)
            .enumerate()
            .map(|(n, _)| {
                get(
                    &target(&format!("q=garden+number{}&max=50", 3 + n * 25)),
                    "x",
                    "",
                )
            })
            .collect();
        for (case, requests) in [(Case::StorePage, pages), (Case::Search, searches)] {
            let measuring = begin();
            for request in &requests {
                let status = self.reader.ask(request).await?;
                ensure!(
                    status == 200,
                    "{status} for {}",
                    String::from_utf8_lossy(request)
                );
            }
            self.measured.push(measuring.end(case));
        }
        Ok(())
    }

    /// Cursors at places of the feed, one for each page.
    async fn cursors(&mut self) -> Result<Vec<String>> {
        let mut cursors = vec![];
        let mut since = String::new();
        while cursors.len() < PAGES {
            let json = format!("/feeds/blog.json?order=modified&max=20{since}");
            ensure!(self.reader.ask(&get(&json, "x", "")).await? == 200);
            let cursor = last_cursor(self.reader.text()?)?;
            since = format!("&since=cursor:{cursor}");
            cursors.push(cursor);
        }
        Ok(cursors)
    }

    async fn unchanged_polls(&mut self) -> Result<()> {
        self.poll("blog").await?;
        for _ in 0..ROUNDS {
            sleep(LATE_REST).await;
            let measuring = begin();
            self.poll("blog").await?;
            self.measured.push(measuring.end(Case::PollUnchanged));
        }
        Ok(())
    }

    async fn new_posts(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            let document = self.next_document();
            sleep(REST).await;
            let measuring = begin();
            self.take(document).await?;
            self.measured.push(measuring.end(Case::PollNew));
        }
        sleep(REST).await;
        Ok(())
    }

    /// The archives of feeds that could not be polled until now.
    async fn archives(&mut self) -> Result<()> {
        let newest = ARCHIVES * ENTRIES;
        for name in (0..ROUNDS).map(archive) {
            let path = |n: usize| match n {
                0 => format!("/{name}.xml"),
                _ => format!("/{name}-{n}.xml"),
            };
            for n in 0..ARCHIVES {
                let older = (n + 1 < ARCHIVES).then(|| path(n + 1));
                let document = feed(newest - n * ENTRIES, ENTRIES, older.as_deref());
                self.origin.says(&path(n), document);
            }
            let all = format!("\"totalItems\":{newest}");
            let measuring = begin();
            self.poll(&name).await?;
            let page = format!("/feeds/{name}.json?order=modified&max=1");
            let page = get(&page, "x", "");
            loop {
                sleep(REST).await;
                self.reader.ask(&page).await?;
                if self.reader.text()?.contains(&all) {
                    break;
                }
            }
            self.measured.push(measuring.end(Case::ArchivePage));
            sleep(REST).await;
        }
        Ok(())
    }

    /// Those who wait: idle, for a change, on a stream.
    async fn waiters(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            let measuring = begin();
            let idle = self.crowd().await?;
            sleep(REST).await;
            self.measured.push(measuring.end(Case::IdleConnection));
            drop(idle);
            sleep(REST).await;
        }
        for _ in 0..ROUNDS {
            let held = get(&self.waiting("atom").await?, "x", "");
            let measuring = begin();
            let mut waiters = self.crowd().await?;
            for waiter in &mut waiters {
                waiter.send(&held).await?;
            }
            sleep(CROWD_REST).await;
            self.measured.push(measuring.end(Case::HeldPoll));
            let document = self.next_document();
            let measuring = begin();
            self.take(document).await?;
            for waiter in &mut waiters {
                ensure!(waiter.answer().await? == 200);
            }
            self.measured.push(measuring.end(Case::WakeUp));
            drop(waiters);
            sleep(REST).await;
        }
        for _ in 0..ROUNDS {
            let streamed = get(&self.waiting("events").await?, "x", "");
            let measuring = begin();
            let mut streams = self.crowd().await?;
            for stream in &mut streams {
                stream.send(&streamed).await?;
                stream.until(b"\r\n\r\n").await?;
                stream.forget();
            }
            sleep(CROWD_REST).await;
            self.measured.push(measuring.end(Case::Stream));
            drop(streams);
            sleep(REST).await;
        }
        Ok(())
    }

    /// Subscribers at callbacks, and a push to them.
    async fn subscriptions(&mut self) -> Result<()> {
        let topic = "http%3A%2F%2Fx%2Ffeeds%2Fblog.atom%3Forder%3Dmodified";
        let forms: Vec<Vec<u8>> = (0..SUBSCRIPTIONS)
            .map(|n| {
                let callback = self.origin.callback(n);
                post(
                    "/hub",
                    "x",
                    &format!(
                        "hub.mode=subscribe&hub.topic={topic}&hub.callback={callback}&hub.secret=of-a-subscriber"
                    ),
                )
            })
            .collect();
        for forms in forms.chunks(SUBSCRIBED) {
            let measuring = begin();
            for form in forms {
                let status = self.reader.ask(form).await?;
                ensure!(status == 202, "{status} for a subscription");
            }
            self.origin.called(SUBSCRIBED).await;
            sleep(REST).await;
            self.measured.push(measuring.end(Case::Subscription));
        }
        for _ in 0..ROUNDS {
            // Each push opens its connections: how many are still open from the last one depends on the machine.
            sleep(IDLE_REST).await;
            let measuring = begin();
            self.push().await?;
            self.measured.push(measuring.end(Case::Push));
        }
        Ok(())
    }

    /// A poll that finds a new post, until all subscribers have it.
    async fn push(&mut self) -> Result<()> {
        let document = self.next_document();
        self.take(document).await?;
        self.origin.called(SUBSCRIPTIONS).await;
        sleep(REST).await;
        Ok(())
    }

    /// The target of a request that waits at the head of the feed.
    async fn waiting(&mut self, format: &str) -> Result<String> {
        let newest = get("/feeds/blog.json?order=-modified&max=1", "x", "");
        ensure!(self.reader.ask(&newest).await? == 200);
        let head = last_cursor(self.reader.text()?)?;
        Ok(format!(
            "/feeds/blog.{format}?order=modified&since=cursor:{head}&timeout=300"
        ))
    }

    /// Connections that have asked for something.
    async fn crowd(&self) -> Result<Vec<Client>> {
        let request = get(&target("max=1"), "x", "");
        let mut crowd = Vec::with_capacity(CROWD);
        for _ in 0..CROWD {
            let mut client = Client::open(self.app.address()).await?;
            client.ask(&request).await?;
            client.forget();
            crowd.push(client);
        }
        Ok(crowd)
    }
}

/// Starts an application with many feeds, most often one that knows them already.
async fn starts(origin: &Origin, folder: &Path) -> Result<Vec<Measured>> {
    let feeds: String = (0..FEEDS)
        .map(|n| {
            format!(
                "[[feed]]\nname = \"quiet{n}\"\nurl = \"http://127.0.0.1:{}/quiet/{n}\"\n",
                origin.port
            )
        })
        .collect();
    let mut measured = Vec::new();
    start(folder, &feeds).await?.stop().await?;
    for _ in 0..ROUNDS {
        sleep(REST).await;
        let measuring = begin();
        let app = start(folder, &feeds).await?;
        measured.push(measuring.end(Case::Start));
        sleep(REST).await;
        app.stop().await?;
    }
    Ok(measured)
}

async fn start(folder: &Path, feeds: &str) -> Result<App> {
    let app = application(folder, "many", feeds).await?;
    ready(app.admin_address()).await?;
    Ok(app)
}

async fn ready(operator: SocketAddr) -> Result<()> {
    let mut operator = Client::open(operator).await?;
    while operator.ask(&get("/ready", OPERATOR, "")).await? != 200 {
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// An application with a store of this name.
async fn application(folder: &Path, name: &str, more: &str) -> Result<App> {
    let store = folder.join(format!("{name}.redb"));
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\npublic_url = \"http://x\"\n\
         [hub]\ncallbacks_private = true\n[store]\npath = {:?}\n{more}",
        store.display().to_string()
    );
    App::start(Config::parse("the ruler's configuration", &config)?).await
}

/// The name of a feed whose archive is walked.
fn archive(round: usize) -> String {
    format!("archive{round}")
}

/// The blog's page of this query.
fn target(query: &str) -> String {
    format!("/feeds/blog.atom?order=modified&{query}")
}

fn last_cursor(json: &str) -> Result<String> {
    let key = "\"last_cursor\":\"";
    let at = json.find(key).context("a cursor")? + key.len();
    let cursor = json[at..].split('"').next().context("its end")?;
    Ok(cursor.to_owned())
}
