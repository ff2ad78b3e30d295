//! Question 12: pages and pushes over XMPP, through Prosody on the same machine: pages beside the
//! same by HTTP, and pushes beside a bare socket that writes the same messages to the same server.
//! Whoever asks, and whoever is subscribed, is a component of that server, too.

use crate::{
    content::added,
    house::{NAME, PollerRig},
    load::{Connection, get},
    report::{Aim, Report},
    rounds::{Spread, compare},
};
use anyhow::{Context as _, Result, ensure};
use everfeed::{
    catalog::{Catalog, CatalogSnapshot, FeedSettings, ReadGate, RegisteredFeed},
    clock::{Clock, System},
    feed::{
        filter::Filter,
        order::Order,
        page::PageQuery,
        reconcile::{Change, Put, PutKind},
        stamp::Stamp,
        view::View,
    },
    readers::ReadRequest,
    render::{Representation, xmpp_node_uri},
    store::{
        Commit, Subscription,
        subscriptions::{
            Intent, Lease, LeaseTerms, NewSubscription, Pending, Progress, Start, Target,
            XmppTarget,
        },
    },
    telemetry::Metrics,
    xmpp::{Component, Parts},
};
use memchr::memmem;
use sha1::{Digest as _, Sha1};
use std::{
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime::Handle,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

const SECRET: &str = "secret";
/// everfeed, and a socket without it: their names are of one length, and so are their messages.
const OURS: &str = "feeds.localhost";
const BARE: &str = "plain.localhost";
/// The one who asks, and those who are subscribed.
const ASKER: &str = "asker.localhost";
const CROWD: &str = "crowd.localhost";
/// Subscribers, and changes in one commit.
const CROWDS: [(usize, usize); 3] = [(1, 100), (100, 20), (1_000, 5)];
/// Subscriptions whose memory is told.
const MANY: usize = 10_000;
const ROUNDS: usize = 7;
/// Commits in a round.
const COMMITS: u32 = 100;
const PAGES: usize = 60;
const PAGE_ITEMS: usize = 50;
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) async fn ask(report: &Report, askers: &Handle) -> Result<()> {
    report.question(
        "(12) XMPP through Prosody, items of 2 KB",
        "pages one after the other / the same by HTTP; pushes / a bare socket with the same messages",
    );
    committed(report).await?;
    let mut server = Prosody::new().await?;
    server.start().await?;
    pulled(report, &server).await?;
    for (subscribers, changes) in CROWDS {
        let (mut house, _) = PollerRig::new(1_000).await?;
        subscribe(&house, subscribers).await?;
        let ours = Ours::start(&house, &server)?;
        let crowd = askers.spawn(Sink::open(server.components)).await??;
        ours.until_online().await?;
        let spread = pushed(&mut house, &crowd, &server, subscribers, changes).await?;
        let what = format!("pushes a second to {subscribers}, {changes} changes at once");
        report.ratio(what, spread.0, Aim::AtLeast(0.5));
        let rate = (subscribers * changes) as f64 * 1e3 / spread.1;
        report.figure("", format!("{rate:.0} a second"), "");
        if subscribers == 1_000 {
            restarted(report, &mut house, &mut server, askers).await?;
        }
        ours.end().await?;
    }
    remembered(report, &server).await
}

/// The price of the counts by which a page has an index: feeds of up to 512 items have none.
async fn committed(report: &Report) -> Result<()> {
    for edits in [1, 100] {
        let (mut counted, _) = PollerRig::new(520).await?;
        let (mut uncounted, _) = PollerRig::new(500).await?;
        let spread = compare(
            ROUNDS,
            async |round| edited(&mut counted, edits, round).await,
            async |round| edited(&mut uncounted, edits, round).await,
        )
        .await?;
        let what = format!("commits of {edits} edits a second, counted / not counted");
        report.ratio(what, spread, Aim::AtLeast(0.95));
    }
    Ok(())
}

/// Seconds for commits that each edit so many items here and there.
async fn edited(house: &mut PollerRig, edits: u32, round: usize) -> Result<f64> {
    let total = u32::try_from(house.record.items.total)?;
    let start = Instant::now();
    for commit in 0..COMMITS {
        let first = u32::try_from(round * 7_919)? + commit * 31;
        let edited = (0..edits).map(|n| (first + n * 3) % total).map(|n| {
            let Change::Put(put) = added(n) else {
                unreachable!("a post is put");
            };
            Change::Put(Put {
                kind: PutKind::Edited,
                ..put
            })
        });
        let commit = Commit {
            changes: edited.collect(),
            ..Commit::nothing(&house.record)
        };
        house.record = house.store.commit(commit).await?.feed;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Pages of one client.
async fn pulled(report: &Report, server: &Prosody) -> Result<()> {
    let (house, _) = PollerRig::new(10_000).await?;
    let ours = Ours::start(&house, server)?;
    ours.until_online().await?;
    let served = house.serve().await?;
    let mut asker = Asker::join(server.components).await?;
    let requests = requests(&house).await?;
    let mut secs = Vec::new();
    let spread = compare(
        ROUNDS,
        async |round| {
            let took = asker.pull(round).await?;
            secs.push(took);
            Ok(took)
        },
        async |_| by_http(served.address, &requests).await,
    )
    .await?;
    report.ratio("items pulled a second / by HTTP", spread, Aim::None);
    let rate = (PAGES * PAGE_ITEMS) as f64 / Spread::of(secs).median;
    report.figure("", format!("{rate:.0} items a second over XMPP"), "");
    ours.end().await
}

/// Requests by HTTP for the pages that are asked for over XMPP.
async fn requests(house: &PollerRig) -> Result<Vec<Vec<u8>>> {
    let readers = house.readers()?;
    let (mut cursor, mut requests) = (String::new(), Vec::with_capacity(PAGES));
    for _ in 0..PAGES {
        let target = format!("/feeds/{NAME}.atom?max={PAGE_ITEMS}&since=cursor:{cursor}");
        requests.push(get(&target, ""));
        let view = View::all(house.feed(), Order::MODIFIED);
        let since = format!("cursor:{cursor}");
        let page = ReadRequest::page(view, Representation::ATOM, &since, "", PAGE_ITEMS)?;
        cursor.clone_from(&readers.read(&page).await?.last_cursor);
    }
    Ok(requests)
}

async fn by_http(server: SocketAddr, requests: &[Vec<u8>]) -> Result<f64> {
    let mut connection = Connection::open(server, 1 << 20).await?;
    let start = Instant::now();
    for request in requests {
        let answer = connection.ask(request).await?;
        ensure!(answer.status == 200, "{}", answer.status);
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Somebody who reads page after page.
struct Asker {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
}

impl Asker {
    async fn join(server: SocketAddr) -> Result<Self> {
        let (read, write) = join(server, ASKER).await?;
        Ok(Self { read, write })
    }

    /// Seconds for all pages. Another address asks in each round: each has its own pace.
    async fn pull(&mut self, round: usize) -> Result<f64> {
        let start = Instant::now();
        let mut after = String::new();
        for page in 0..PAGES {
            let iq = format!(
                "<iq type='get' id='{page}' from='u{round}@{ASKER}' to='{OURS}'><pubsub xmlns='http://jabber.org/protocol/pubsub'>\
                 <items node='{NAME}'/><set xmlns='http://jabber.org/protocol/rsm'><max>{PAGE_ITEMS}</max>{after}</set></pubsub></iq>"
            );
            self.write.write_all(iq.as_bytes()).await?;
            let answer = until_end(&mut self.read, b"</iq>").await?;
            let last = between(&answer, "<last>", "</last>").context("a page has an end")?;
            after = format!("<after>{last}</after>");
        }
        Ok(start.elapsed().as_secs_f64())
    }
}

/// The ratio of pushes to those of a bare socket, and milliseconds of ours.
async fn pushed(
    house: &mut PollerRig,
    crowd: &Sink,
    server: &Prosody,
    subscribers: usize,
    changes: usize,
) -> Result<(Spread, f64)> {
    let all = subscribers * changes;
    // One message, for its words.
    push(house, crowd, 1, subscribers).await?;
    let (mut read, mut write) = join(server.components, BARE).await?;
    tokio::spawn(async move {
        let mut bytes = vec![0; 4096];
        while read.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    });
    let message = crowd.message().context("a message came")?;
    let message = message.replace(OURS, BARE);
    let to = between(&message, " to='", "'").context("it has a recipient")?;
    let (before, behind) = message
        .split_once(&format!(" to='{to}'"))
        .context("it has one")?;
    let mut text = String::with_capacity(all * (message.len() + 16));
    for n in 0..all {
        let jid = address(n % subscribers);
        text += &format!("{before} to='{jid}'{behind}");
    }
    let mut times = Vec::new();
    let spread = compare(
        ROUNDS,
        async |_| {
            let took = push(house, crowd, changes, all).await?;
            times.push(took);
            Ok(took)
        },
        async |_| {
            crowd.forget();
            let start = Instant::now();
            write.write_all(text.as_bytes()).await?;
            crowd.until(all).await?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        },
    )
    .await?;
    Ok((spread, Spread::of(times).median))
}

/// Milliseconds from the wake-up after a commit of so many changes to the last message of all.
async fn push(house: &mut PollerRig, crowd: &Sink, changes: usize, messages: usize) -> Result<f64> {
    house.add(changes).await?;
    crowd.forget();
    let start = Instant::now();
    house.notify.moved(house.feed(), house.record.head());
    crowd.until(messages).await?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    // Positions are kept, too, before anything else is measured.
    sleep(Duration::from_millis(300)).await;
    Ok(took)
}

/// The time until all are equal again after the server was away.
async fn restarted(
    report: &Report,
    house: &mut PollerRig,
    server: &mut Prosody,
    askers: &Handle,
) -> Result<()> {
    server.stop();
    house.add(1).await?;
    house.notify.moved(house.feed(), house.record.head());
    sleep(Duration::from_secs(3)).await;
    server.start().await?;
    let start = Instant::now();
    let crowd = askers.spawn(Sink::open(server.components)).await??;
    crowd.until(1_000).await?;
    report.figure(
        "1,000 subscribers equal again after a restart of the server",
        format!("{:.1} s after it listens", start.elapsed().as_secs_f64()),
        "",
    );
    Ok(())
}

/// Memory of many subscriptions.
async fn remembered(report: &Report, server: &Prosody) -> Result<()> {
    let (house, _) = PollerRig::new(1_000).await?;
    subscribe(&house, MANY).await?;
    let before = resident_bytes()?;
    let ours = Ours::start(&house, server)?;
    ours.until_online().await?;
    ensure!(
        ours.component.counts().values().sum::<usize>() == MANY,
        "all are taken up"
    );
    let bytes = resident_bytes()?.saturating_sub(before);
    report.figure(
        format!("memory of {MANY} subscriptions"),
        format!("{:.2} KB each", bytes as f64 / MANY as f64 / 1e3),
        "",
    );
    Ok(())
}

fn address(n: usize) -> String {
    format!("u{n}@{CROWD}")
}

/// Stores subscriptions as everfeed leaves them.
async fn subscribe(house: &PollerRig, subscribers: usize) -> Result<()> {
    let last = PageQuery::last(house.feed(), Order::MODIFIED, Filter::All);
    let last = house.store.page(last).await?.last_cursor;
    let now = Stamp::from_micros(System.now_us());
    let lease = LeaseTerms {
        secs: 86_400,
        auto_refresh: true,
    };
    for n in 0..subscribers {
        let target = Target::Xmpp(XmppTarget::new(&address(n), NAME));
        let made = house
            .store
            .subscribe(NewSubscription {
                view: View::all(house.feed(), Order::MODIFIED),
                representation: Representation::ATOM.name(),
                topic: xmpp_node_uri(OURS, &format!("{NAME}?order=modified")),
                target: target.clone(),
                pending: Pending {
                    intent: Intent::Subscribe {
                        target: target.clone(),
                        lease,
                    },
                    attempts: 0,
                    next_try: now,
                    give_up_at: now,
                    start: Start::Head(Some(last.clone())),
                    principal: None,
                    scanned: None,
                },
            })
            .await?;
        let active = Subscription {
            target,
            lease: Some(Lease {
                until: now.plus_secs(lease.secs),
                terms: lease,
            }),
            pending: None,
            ..made
        };
        let progress = Progress {
            acked: Some(last.clone()),
            ..Progress::default()
        };
        house
            .store
            .change_subscription(active, Some(progress))
            .await?;
    }
    Ok(())
}

/// everfeed's component at work; it ends when this is dropped.
struct Ours {
    component: Arc<Component>,
    task: JoinHandle<()>,
    stop: DropGuard,
}

impl Ours {
    fn start(house: &PollerRig, server: &Prosody) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(System);
        let settings = FeedSettings::new(NAME, Url::parse("https://blog.example/feed")?);
        let feed = RegisteredFeed::new(house.feed(), settings);
        let config = format!(
            "server = \"{}\"\njid = \"{OURS}\"\nsecret = \"{SECRET}\"",
            server.components
        );
        let component = Component::new(Parts {
            config: toml::from_str(&config)?,
            readers: Arc::new(house.readers()?),
            store: house.store.clone(),
            gate: ReadGate::without_users(
                Catalog::new(CatalogSnapshot::new([feed], [])),
                clock.clone(),
            ),
            notify: house.notify.clone(),
            clock,
            metrics: Metrics::default(),
        })?;
        let component = Arc::new(component.context("XMPP is on")?);
        let stop = CancellationToken::new();
        let task = tokio::spawn(component.clone().run(stop.clone()));
        Ok(Self {
            component,
            task,
            stop: stop.drop_guard(),
        })
    }

    /// Stops, and waits until the server knows.
    async fn end(self) -> Result<()> {
        drop(self.stop);
        self.task.await?;
        sleep(Duration::from_millis(300)).await;
        Ok(())
    }

    async fn until_online(&self) -> Result<()> {
        let waiting = async {
            while !self.component.state().is_online {
                ensure!(!self.task.is_finished(), "the component has ended");
                sleep(Duration::from_millis(5)).await;
            }
            Ok(())
        };
        timeout(PATIENCE, waiting).await?
    }
}

/// The server.
struct Prosody {
    folder: TempDir,
    components: SocketAddr,
    child: Option<Child>,
}

impl Prosody {
    async fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let free = TcpListener::bind("127.0.0.1:0").await?;
        let components = free.local_addr()?;
        let path = folder.path().display();
        let parts: String = [OURS, BARE, ASKER, CROWD]
            .map(|name| format!("Component \"{name}\"\ncomponent_secret = \"{SECRET}\"\n"))
            .concat();
        let config = format!(
            "run_as_root = true\npidfile = \"{path}/pid\"\ndata_path = \"{path}\"\nmodules_disabled = {{ \"s2s\", \"tls\" }}\n\
             c2s_ports = {{}}\ncomponent_ports = {{ {} }}\ncomponent_interfaces = {{ \"127.0.0.1\" }}\nlog = {{ error = \"*console\" }}\n\
             VirtualHost \"localhost\"\n{parts}",
            components.port()
        );
        std::fs::write(folder.path().join("prosody.cfg.lua"), config)?;
        Ok(Self {
            folder,
            components,
            child: None,
        })
    }

    async fn start(&mut self) -> Result<()> {
        let mut command = Command::new("prosody");
        command.arg("--root").arg("--config");
        command
            .arg(self.folder.path().join("prosody.cfg.lua"))
            .arg("-F");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(
            command
                .spawn()
                .context("prosody, which tests/run installs")?,
        );
        let listening = async {
            while TcpStream::connect(self.components).await.is_err() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        Ok(timeout(PATIENCE, listening).await?)
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Prosody {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Joins the server as a component.
async fn join(server: SocketAddr, name: &str) -> Result<(OwnedReadHalf, OwnedWriteHalf)> {
    let stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    let (mut read, mut write) = stream.into_split();
    let head = format!(
        "<?xml version='1.0'?><stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='{name}'>"
    );
    write.write_all(head.as_bytes()).await?;
    let head = until_end(&mut read, b"id=").await?;
    let head = match between(&head, " id='", "'") {
        Some(_) => head,
        None => head + &until_end(&mut read, b">").await?,
    };
    let id = between(&head, " id='", "'").context("a stream has an id")?;
    let proof = hex::encode(Sha1::digest(format!("{id}{SECRET}")));
    let proof = format!("<handshake>{proof}</handshake>");
    write.write_all(proof.as_bytes()).await?;
    let answer = until_end(&mut read, b"handshake").await?;
    ensure!(answer.contains("handshake"), "{answer}");
    Ok((read, write))
}

/// Reads until bytes with this part have come.
async fn until_end(read: &mut OwnedReadHalf, part: &[u8]) -> Result<String> {
    let mut all = Vec::new();
    let mut bytes = vec![0; 64 << 10];
    let finder = memmem::Finder::new(part);
    loop {
        let from = all.len().saturating_sub(part.len());
        let count = timeout(PATIENCE, read.read(&mut bytes)).await??;
        ensure!(count > 0, "the server has ended the stream");
        all.extend_from_slice(&bytes[..count]);
        if finder.find(&all[from..]).is_some() {
            return Ok(String::from_utf8(all)?);
        }
    }
}

fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(behind)?.0)
}

/// All subscribers: it counts messages, and keeps the first.
#[derive(Clone)]
struct Sink {
    messages: Arc<AtomicUsize>,
    first: Arc<Mutex<Option<String>>>,
    /// The server ends the stream when this is dropped.
    _write: Option<Arc<OwnedWriteHalf>>,
}

const END: &[u8] = b"</message>";

impl Sink {
    /// Joins the server, on the present runtime.
    async fn open(server: SocketAddr) -> Result<Self> {
        let (read, write) = join(server, CROWD).await?;
        let sink = Self {
            messages: Arc::default(),
            first: Arc::default(),
            _write: None,
        };
        tokio::spawn(sink.clone().count(read));
        Ok(Self {
            _write: Some(Arc::new(write)),
            ..sink
        })
    }

    async fn count(self, mut read: OwnedReadHalf) {
        let mut held = Vec::new();
        let mut bytes = vec![0; 256 << 10];
        let finder = memmem::Finder::new(END);
        while let Ok(count) = read.read(&mut bytes).await {
            if count == 0 {
                return;
            }
            held.extend_from_slice(&bytes[..count]);
            let mut last = 0;
            for at in finder.find_iter(&held) {
                let end = at + END.len();
                let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
                if first.is_none() {
                    let text = String::from_utf8_lossy(&held[last..end]);
                    *first = text.find("<message").map(|at| text[at..].to_owned());
                }
                self.messages.fetch_add(1, Ordering::Relaxed);
                last = end;
            }
            held.drain(..last);
        }
    }

    fn forget(&self) {
        self.messages.store(0, Ordering::Relaxed);
    }

    /// The first message.
    fn message(&self) -> Option<String> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.clone()
    }

    /// Waits until so many messages have come.
    async fn until(&self, messages: usize) -> Result<()> {
        let waiting = async {
            while self.messages.load(Ordering::Relaxed) < messages {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, waiting)
            .await
            .with_context(|| format!("{} of {messages}", self.messages.load(Ordering::Relaxed)))
    }
}

/// Bytes of memory that the process has.
fn resident_bytes() -> Result<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split(' ').nth(1).context("statm")?.parse()?;
    Ok(pages * 4096)
}
