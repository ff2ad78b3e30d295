//! A component over readers in memory, and a server that does as it is told.

use crate::{
    auth::{AccessSettings, Accounts, testing::authenticator},
    catalog::{
        Catalog, CatalogSnapshot, FeedSettings, ReadGate, RegisteredFeed, ShowRule, testing::parted,
    },
    feed::{order::Order, page::Page, reconcile::Change},
    readers::testing::{NAME, ReaderRig},
    secret::Secret,
    store::{Subscriptions as _, subscriptions::Progress},
    telemetry::Metrics,
    xmpp::{
        Config, Parts,
        component::{
            Component,
            element::Element,
            frames::{Frame, FrameReader},
            ns,
            stream::AnyConnection,
            supervisor::Connect,
        },
    },
};
use sha1::{Digest as _, Sha1};
use std::{collections::VecDeque, io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use url::Url;

pub(super) const SERVICE: &str = "feeds.example.org";
pub(super) const ALICE: &str = "alice@example.net/1";
pub(super) const EVENT: &str = "http://jabber.org/protocol/pubsub#event";
const SECRET: &str = "hush";
/// Bytes that a pipe holds.
const PIPE_BYTES: usize = 64 << 10;

/// A component at work, and its server.
pub(super) struct Rig {
    pub(super) readers: ReaderRig,
    pub(super) gate: ReadGate,
    pub(super) component: Arc<Component>,
    pub(super) stop: CancellationToken,
    config: Config,
    run: Option<JoinHandle<()>>,
    connections: mpsc::UnboundedReceiver<DuplexStream>,
    /// The server's end of the stream.
    pub(super) server: Server,
    asked: u32,
}

pub(super) fn config() -> Config {
    toml::from_str(&format!(
        "server = \"127.0.0.1:5347\"\njid = \"{SERVICE}\"\nsecret = \"{SECRET}\""
    ))
    .unwrap()
}

fn feed(readers: &ReaderRig) -> RegisteredFeed {
    RegisteredFeed {
        no: readers.feed,
        settings: FeedSettings::new(NAME, Url::parse("http://old.example/rss.xml").unwrap()).into(),
    }
}

impl Rig {
    /// A component whose stream is open, for `blog` with the posts 1 to `last`.
    pub(super) async fn of(last: u32) -> Self {
        Self::with(config(), last).await
    }

    pub(super) async fn with(config: Config, last: u32) -> Self {
        let mut rig = Self::before_stream(config, ReaderRig::of(1..=last).await);
        rig.accept().await;
        rig
    }

    /// A component that begins to connect.
    pub(super) fn before_stream(config: Config, readers: ReaderRig) -> Self {
        let gate = ReadGate {
            catalog: Catalog::new(CatalogSnapshot::new([feed(&readers)], [])),
            auth: authenticator(&readers.clock),
        };
        Self::at_work(config, readers, gate)
    }

    fn at_work(config: Config, readers: ReaderRig, gate: ReadGate) -> Self {
        let (sender, connections) = mpsc::unbounded_channel();
        let connect: Connect = Arc::new(move || {
            let (ours, theirs) = duplex(PIPE_BYTES);
            let sent = sender.send(theirs).map_err(io::Error::other);
            Box::pin(async move {
                sent?;
                let connection: AnyConnection = Box::new(ours);
                Ok(connection)
            })
        });
        let parts = Parts {
            config: config.clone(),
            readers: readers.readers.clone(),
            store: readers.store.clone(),
            gate: gate.clone(),
            notify: readers.notify.clone(),
            clock: readers.clock.clone(),
            metrics: Metrics::default(),
        };
        let component = Arc::new(Component::over(parts, connect).unwrap());
        let stop = CancellationToken::new();
        let run = tokio::spawn(component.clone().run(stop.clone()));
        Self {
            readers,
            gate,
            component,
            stop,
            config,
            run: Some(run),
            connections,
            server: Server::nobody(),
            asked: 0,
        }
    }

    /// The server takes the next connection, and opens the stream.
    pub(super) async fn accept(&mut self) {
        self.server = self.connected().await;
        self.server.open().await;
        self.server.welcome().await;
    }

    /// The connection breaks, and the component connects anew.
    pub(super) async fn reconnect(&mut self) {
        self.server = Server::nobody();
        self.accept().await;
    }

    /// The server takes the next new connection, and opens the stream: those before were given up.
    pub(super) async fn newest(&mut self) {
        while self.connections.try_recv().is_ok() {}
        self.accept().await;
    }

    /// The server takes the next connection, and says nothing yet.
    pub(super) async fn connected(&mut self) -> Server {
        let waiting = timeout(Duration::from_secs(120), self.connections.recv());
        Server::of(waiting.await.expect("it connects in time").unwrap())
    }

    /// True when no connection comes within so many seconds.
    pub(super) async fn stays_away(&mut self, secs: u64) -> bool {
        let waiting = timeout(Duration::from_secs(secs), self.connections.recv());
        waiting.await.is_err()
    }

    /// Ends the process, and begins another on the same store.
    pub(super) async fn restart(mut self) -> Self {
        self.end().await;
        let mut rig = Self::at_work(self.config.clone(), self.readers, self.gate);
        rig.accept().await;
        rig
    }

    /// Kills the process, and begins another on the same store.
    pub(super) async fn restart_after_a_kill(mut self) -> Self {
        if let Some(run) = self.run.take() {
            run.abort();
            assert!(run.await.is_err());
        }
        self.stop.cancel();
        let mut rig = Self::at_work(self.config.clone(), self.readers, self.gate);
        rig.accept().await;
        rig
    }

    /// Stops, and waits for the end.
    pub(super) async fn end(&mut self) {
        self.stop.cancel();
        if let Some(run) = self.run.take() {
            run.await.unwrap();
        }
    }

    /// The answer to an iq of somebody.
    pub(super) async fn ask_as(&mut self, from: &str, kind: &str, asked: &str) -> Element {
        self.asked += 1;
        let id = format!("q{}", self.asked);
        let iq = format!("<iq type='{kind}' id='{id}' from='{from}' to='{SERVICE}'>{asked}</iq>");
        self.server.send(&iq).await;
        self.server.answer(&id).await
    }

    /// The answer to an iq of alice.
    pub(super) async fn get(&mut self, asked: &str) -> Element {
        self.ask_as(ALICE, "get", asked).await
    }

    pub(super) async fn set(&mut self, asked: &str) -> Element {
        self.ask_as(ALICE, "set", asked).await
    }

    /// The items of a node by a set, as its children are written.
    pub(super) async fn items(&mut self, node: &str, set: &str) -> Answer {
        let asked = format!(
            "<pubsub xmlns='{}'><items node='{node}'/><set xmlns='{}'>{set}</set></pubsub>",
            ns::PUBSUB,
            ns::RSM
        );
        Answer::of(self.get(&asked).await)
    }

    pub(super) async fn subscribe(&mut self, node: &str, jid: &str) -> Element {
        let asked = subscribe(node, jid);
        self.set(&asked).await
    }

    /// Commits changes and says so.
    pub(super) async fn change(&self, changes: Vec<Change>) {
        self.readers.change(changes).await;
    }

    /// Everything in an order.
    pub(super) async fn all(&self, order: Order) -> Page {
        self.readers.all(order).await
    }

    /// The configuration gives `blog` other readers.
    pub(super) fn protect(&self, access: AccessSettings) {
        let mut blog = feed(&self.readers);
        Arc::make_mut(&mut blog.settings).access = access;
        self.gate.catalog.publish(CatalogSnapshot::new([blog], []));
    }

    /// The configuration has nobody told what is gone of `blog`.
    pub(super) fn announce_nothing_gone(&self) {
        let mut blog = feed(&self.readers);
        Arc::make_mut(&mut blog.settings).announce_deletes = false;
        self.gate.catalog.publish(CatalogSnapshot::new([blog], []));
    }

    /// The configuration shows readers of `blog` parts of it.
    pub(super) fn show(&self, rules: &[ShowRule]) {
        let mut blog = feed(&self.readers);
        Arc::make_mut(&mut blog.settings).show = rules.to_vec();
        let catalog = CatalogSnapshot::new([blog], []);
        let (catalog, parts) = parted(&*self.readers.store, catalog);
        for part in parts {
            self.readers.notify.moved(part.no, part.head());
        }
        self.gate.catalog.publish(catalog);
    }

    /// The configuration loses `blog`.
    pub(super) fn withdraw(&self) {
        let kept = [(NAME.to_owned(), self.readers.feed)];
        self.gate.catalog.publish(CatalogSnapshot::new([], kept));
    }

    /// The operator changes users.
    pub(super) fn know(&self, accounts: Accounts) {
        self.gate.auth.publish(accounts);
    }

    /// The stored positions of all subscriptions.
    pub(super) async fn positions(&self) -> Vec<Option<String>> {
        let stored = self.readers.store.subscriptions(None, None, 100).await;
        let acked = |(_, progress): (_, Progress)| progress.acked;
        stored.unwrap().into_iter().map(acked).collect()
    }
}

pub(super) fn subscribe(node: &str, jid: &str) -> String {
    format!(
        "<pubsub xmlns='{}'><subscribe node='{node}' jid='{jid}'/></pubsub>",
        ns::PUBSUB
    )
}

/// The users alice and bob, with their addresses at jabber.example.
pub(super) fn accounts() -> Accounts {
    crate::auth::testing::accounts(&[])
}

/// The address that a message tells that its subscription is no more, and the node.
pub(super) fn told_end(message: &Element) -> (String, String) {
    let told = message.child(ns::PUBSUB, "pubsub").unwrap();
    let told = told.child(ns::PUBSUB, "subscription").unwrap();
    assert_eq!(told.attribute("subscription"), Some("none"));
    let of = |name: &str| told.attribute(name).unwrap().to_owned();
    assert_eq!(message.attribute("to"), Some(&*of("jid")));
    (of("jid"), of("node"))
}

/// The condition, type and detail of an error that answers an iq; of a result nothing.
pub(super) fn error(answer: &Element) -> String {
    let Some(error) = answer.child(ns::COMPONENT, "error") else {
        return String::new();
    };
    let mut words = vec![error.attribute("type").unwrap_or_default().to_owned()];
    for child in error.elements().filter(|child| child.name() != "text") {
        words.push(child.name().to_owned());
        words.extend(child.attribute("feature").map(str::to_owned));
    }
    words.join(" ")
}

/// An answer with items and a set.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) iq: Element,
}

impl Answer {
    pub(super) fn of(iq: Element) -> Self {
        Self { iq }
    }

    pub(super) fn error(&self) -> String {
        error(&self.iq)
    }

    fn pubsub(&self) -> &Element {
        let none = || panic!("{:?}", self.iq);
        self.iq.child(ns::PUBSUB, "pubsub").unwrap_or_else(none)
    }

    pub(super) fn items(&self) -> &Element {
        self.pubsub().child(ns::PUBSUB, "items").unwrap()
    }

    pub(super) fn ids(&self) -> Vec<String> {
        let items = self.items().elements();
        items
            .map(|item| item.attribute("id").unwrap().to_owned())
            .collect()
    }

    /// A value of the set.
    pub(super) fn told(&self, name: &str) -> Option<String> {
        let set = self.pubsub().child(ns::RSM, "set")?;
        Some(set.child(ns::RSM, name)?.text())
    }

    /// A header beside the set.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        header(self.pubsub().child(ns::SHIM, "headers")?, name)
    }

    pub(super) fn index(&self) -> Option<u64> {
        let set = self.pubsub().child(ns::RSM, "set")?;
        set.child(ns::RSM, "first")?
            .attribute("index")?
            .parse()
            .ok()
    }
}

/// The value of a header.
fn header(headers: &Element, name: &str) -> Option<String> {
    let mut all = headers.elements();
    let header = all.find(|header| header.attribute("name") == Some(name));
    header.map(Element::text)
}

/// A push, as its subscriber reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pushed {
    pub(super) to: String,
    pub(super) node: String,
    /// `item` or `retract`.
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) has_entry: bool,
    pub(super) total: Option<String>,
    pub(super) previous: Option<String>,
    pub(super) last: Option<String>,
    /// The word by which its reader begins anew.
    pub(super) anew: Option<String>,
    pub(super) generation: Option<String>,
}

impl Pushed {
    pub(super) fn of(message: &Element) -> Self {
        assert!(message.is(ns::COMPONENT, "message"), "{message:?}");
        assert_eq!(message.attribute("type"), Some("headline"));
        assert_eq!(message.attribute("from"), Some(SERVICE));
        let items = message.child(EVENT, "event").unwrap();
        let items = items.child(EVENT, "items").unwrap();
        let told: Vec<_> = items.elements().collect();
        assert_eq!(told.len(), 1, "one item a message");
        // The headers are the last child (XMPP-51).
        let headers = message.elements().last().unwrap();
        assert!(headers.is(ns::SHIM, "headers"), "{message:?}");
        let header = |name: &str| header(headers, name);
        Self {
            to: message.attribute("to").unwrap().to_owned(),
            node: items.attribute("node").unwrap().to_owned(),
            kind: told[0].name().to_owned(),
            id: told[0].attribute("id").unwrap().to_owned(),
            has_entry: told[0].elements().next().is_some(),
            total: header("TotalItems"),
            previous: header("PreviousCursor"),
            last: header("LastCursor"),
            anew: header("Smart-Feed-Cursor"),
            generation: header("Smart-Feed-Generation"),
        }
    }
}

/// The server's end of a connection.
pub(super) struct Server {
    pipe: DuplexStream,
    frames: FrameReader,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are read.
    read: usize,
    /// Bytes that were read before those of the buffer.
    passed: usize,
    came: VecDeque<Element>,
    /// False while pings for a proof stay unanswered, as where the server reads nothing.
    pub(super) proves: bool,
    /// The pings for a proof that came: time and id of each.
    pub(super) proofs: Vec<(Instant, String)>,
}

impl Server {
    fn of(pipe: DuplexStream) -> Self {
        Self {
            pipe,
            frames: FrameReader::new(),
            buffer: Vec::new(),
            read: 0,
            passed: 0,
            came: VecDeque::new(),
            proves: true,
            proofs: Vec::new(),
        }
    }

    pub(super) fn nobody() -> Self {
        Self::of(duplex(1).0)
    }

    /// Reads the head of the stream and answers it.
    pub(super) async fn open(&mut self) -> Element {
        let Frame::Open(head) = self.frame().await else {
            panic!("a stream begins with its head");
        };
        let head_of_ours = format!(
            "<?xml version='1.0'?><stream:stream xmlns='{}' xmlns:stream='{}' from='{SERVICE}' id='s1'>",
            ns::COMPONENT,
            ns::STREAM
        );
        self.send(&head_of_ours).await;
        head
    }

    /// Reads the handshake, which must be right, and takes it (XMPP-1).
    pub(super) async fn welcome(&mut self) {
        let handshake = self.next().await;
        assert!(handshake.is(ns::COMPONENT, "handshake"));
        let secret = Secret::new(SECRET);
        let expect = hex::encode(Sha1::digest(format!("s1{}", secret.reveal())));
        assert_eq!(handshake.text(), expect);
        self.send("<handshake/>").await;
    }

    pub(super) async fn send(&mut self, text: &str) {
        let sending = timeout(
            Duration::from_secs(60),
            self.pipe.write_all(text.as_bytes()),
        );
        sending.await.expect("the component reads").unwrap();
    }

    /// Sends while it reads, as a server does; what came by then is kept.
    pub(super) async fn send_reading(&mut self, text: &str) {
        let (mut reader, mut writer) = tokio::io::split(&mut self.pipe);
        let sending = writer.write_all(text.as_bytes());
        tokio::pin!(sending);
        let mut bytes = vec![0; 64 << 10];
        loop {
            tokio::select! {
                sent = &mut sending => return sent.unwrap(),
                read = reader.read(&mut bytes) => {
                    self.buffer.extend_from_slice(&bytes[..read.unwrap()]);
                }
            }
        }
    }

    async fn frame(&mut self) -> Frame {
        loop {
            let mut unread = &self.buffer[self.read..];
            let frame = self.frames.next(&mut unread).expect("well-formed stanzas");
            let left = unread.len();
            self.read = self.buffer.len() - left;
            if left == 0 {
                self.passed += self.read;
                self.buffer.clear();
                self.read = 0;
            }
            if let Some(frame) = frame {
                return frame;
            }
            let mut bytes = vec![0; 8_192];
            let reading = timeout(Duration::from_secs(200), self.pipe.read(&mut bytes));
            let read = reading
                .await
                .expect("the component says something")
                .unwrap();
            if read == 0 {
                return Frame::Close;
            }
            self.buffer.extend_from_slice(&bytes[..read]);
        }
    }

    /// The next stanza of the component. Each says who it is from and to, and every iq has an id
    /// (XMPP-2).
    pub(super) async fn next(&mut self) -> Element {
        if let Some(came) = self.came.pop_front() {
            return came;
        }
        self.next_new().await
    }

    /// The next stanza that came now. Those by which the component asks for a proof are led back,
    /// as their address is its own.
    async fn next_new(&mut self) -> Element {
        loop {
            let stanza = self.next_of_all().await;
            let id = stanza.attribute("id").unwrap_or_default();
            if !id.starts_with("proof-") {
                return stanza;
            }
            assert_eq!(stanza.attribute("to"), Some(SERVICE), "{stanza:?}");
            if stanza.attribute("type") == Some("get") {
                self.proofs.push((Instant::now(), id.to_owned()));
            }
            if self.proves {
                let back = stanza.written(ns::COMPONENT);
                self.send(std::str::from_utf8(&back).unwrap()).await;
            }
        }
    }

    async fn next_of_all(&mut self) -> Element {
        let stanza = match self.frame().await {
            Frame::Stanza(stanza) => stanza,
            other => panic!("no stanza: {other:?}"),
        };
        if stanza.name() != "handshake" {
            assert_eq!(stanza.attribute("from"), Some(SERVICE), "{stanza:?}");
            assert!(stanza.attribute("to").is_some(), "{stanza:?}");
            assert!(stanza.name() != "iq" || stanza.attribute("id").is_some());
        }
        stanza
    }

    /// The answer with an id; what comes before it is kept.
    pub(super) async fn answer(&mut self, id: &str) -> Element {
        loop {
            let stanza = self.next_new().await;
            if stanza.name() == "iq" && stanza.attribute("id") == Some(id) {
                assert!(matches!(stanza.attribute("type"), Some("result" | "error")));
                return stanza;
            }
            self.came.push_back(stanza);
        }
    }

    /// The next push.
    pub(super) async fn pushed(&mut self) -> Pushed {
        let message = self.next().await;
        Pushed::of(&message)
    }

    /// True when nothing comes within a second.
    pub(super) async fn is_quiet(&mut self) -> bool {
        self.came.is_empty()
            && timeout(Duration::from_secs(1), self.next_new())
                .await
                .is_err()
    }

    /// Bytes that came, and how many of them are read.
    pub(super) fn came_and_read(&self) -> (usize, usize) {
        (self.passed + self.buffer.len(), self.passed + self.read)
    }

    /// The end of the stream, as the component says it.
    pub(super) async fn ended(&mut self) -> bool {
        loop {
            match self.frame().await {
                Frame::Close => return true,
                Frame::Stanza(_) => {}
                _ => return false,
            }
        }
    }
}
