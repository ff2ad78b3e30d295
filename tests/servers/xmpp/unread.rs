//! Pushes that everfeed has written and Prosody has not read when their connection ends: a component
//! of Prosody, with one subscriber, gets them by the next stream.

use super::{SECRET, SERVICE, XmppServer, configure, everfeed, status};
use nix::sys::signal::Signal;
use sha1::{Digest as _, Sha1};
use std::net::SocketAddr;
use testkit::{
    client,
    place::{Place, Running},
    publisher::{Publisher, rss},
    wait::PATIENCE,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

const READERS: &str = "reader.localhost";
const ANN: &str = "ann@reader.localhost";

/// A component whose address is the subscriber.
struct Reader {
    stream: TcpStream,
    told: String,
}

impl Reader {
    async fn connected(components: SocketAddr) -> Self {
        let stream = TcpStream::connect(components).await.unwrap();
        let mut reader = Self {
            stream,
            told: String::new(),
        };
        let head = format!(
            "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='{READERS}'>"
        );
        reader.say(&head).await;
        let id = reader.hears_so("an id", id_of).await;
        let proof = hex::encode(Sha1::digest(format!("{id}{SECRET}")));
        reader.say(&format!("<handshake>{proof}</handshake>")).await;
        reader.hears("<handshake").await;
        reader
    }

    async fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until it was told this.
    async fn hears(&mut self, text: &str) {
        self.hears_so(text, |told| told.contains(text).then_some(()))
            .await;
    }

    async fn hears_so<T>(&mut self, what: &str, found: impl Fn(&str) -> Option<T>) -> T {
        let mut bytes = vec![0; 8 << 10];
        loop {
            if let Some(found) = found(&self.told) {
                return found;
            }
            let read = timeout(PATIENCE, self.stream.read(&mut bytes)).await;
            let read = read.unwrap_or_else(|_| panic!("no {what} in {}", self.told));
            let read = read.unwrap();
            assert!(read > 0, "no {what}, and the end after {}", self.told);
            self.told += std::str::from_utf8(&bytes[..read]).unwrap();
        }
    }

    async fn subscribes(&mut self) {
        let asked = format!(
            "<iq type='set' id='s' from='{ANN}' to='{SERVICE}'><pubsub xmlns='http://jabber.org/protocol/pubsub'>\
             <subscribe node='blog' jid='{ANN}'/></pubsub></iq>"
        );
        self.say(&asked).await;
        self.hears("subscribed").await;
    }
}

/// The id in the head of a stream.
fn id_of(told: &str) -> Option<String> {
    let (_, id) = told.split_once(" id=")?;
    let (head, _) = id.split_once('>')?;
    Some(head[1..].split(['\'', '"']).next()?.to_owned())
}

/// A connection of everfeed that is led to Prosody.
struct Led {
    stop: oneshot::Sender<()>,
    leading: JoinHandle<[TcpStream; 2]>,
}

impl Led {
    /// The next one, led until it is stopped or one of its ends closes.
    async fn next(listener: &TcpListener, components: SocketAddr) -> Self {
        let (mut ours, _) = listener.accept().await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let leading = tokio::spawn(async move {
            let mut theirs = TcpStream::connect(components).await.unwrap();
            tokio::select! {
                _ = copy_bidirectional(&mut ours, &mut theirs) => {}
                Ok(()) = stopped => {}
            }
            [ours, theirs]
        });
        Self { stop, leading }
    }

    /// Stops leading: what everfeed writes from now on is read by nobody.
    async fn stopped(self) -> [TcpStream; 2] {
        let _ = self.stop.send(());
        self.leading.await.unwrap()
    }
}

/// Leads every connection from now on.
fn lead_all(listener: TcpListener, components: SocketAddr) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut all = Vec::new();
        loop {
            all.push(Led::next(&listener, components).await);
        }
    })
}

/// Prosody, everfeed behind a relay, and a subscriber to a blog of one post.
struct Scene {
    place: Place,
    publisher: Publisher,
    server: XmppServer,
    listener: TcpListener,
    reader: Reader,
    _running: Running,
}

impl Scene {
    async fn set() -> (Self, Led) {
        let (place, publisher) = (Place::free(), Publisher::start().await);
        publisher.says(rss(1));
        let component = format!("Component \"{READERS}\"\ncomponent_secret = \"{SECRET}\"\n");
        let server = XmppServer::prosody_with(&place, &component);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        configure(&place, &publisher, listener.local_addr().unwrap(), "");
        let running = everfeed(&place);
        let led = Led::next(&listener, server.components).await;
        let mut reader = Reader::connected(server.components).await;
        place
            .until("the stream is open, and the blog is served", async || {
                let status = status(&place).await;
                let blog = place.ask("/feeds/blog").await;
                status.contains("\"online\": true") && blog.is_some_and(|it| it.status == 200)
            })
            .await;
        reader.subscribes().await;
        publisher.says(rss(2));
        reader.hears("Post 2").await;
        let scene = Self {
            place,
            publisher,
            server,
            listener,
            reader,
            _running: running,
        };
        let place = &scene.place;
        place
            .until("the push is taken", async || {
                last_answer(place).await == "taken"
            })
            .await;
        (scene, led)
    }
}

async fn of_operator(place: &Place, path: &str) -> client::Answer {
    let answer = client::ask(place.operator, http::Method::GET, path, &[], "").await;
    answer.expect("everfeed runs")
}

/// The last answer to the subscriber, as the operator sees it.
async fn last_answer(place: &Place) -> String {
    let list = of_operator(place, "/subscribers").await.json();
    let answer = &list["subscribers"][0]["last_answer"];
    answer.as_str().unwrap_or_default().to_owned()
}

/// Post 3 comes into the blog, and its push is written; the answer that the operator sees then.
async fn writes_a_push(scene: &Scene) -> String {
    let place = &scene.place;
    scene.publisher.says(rss(3));
    place
        .until("the push is written", async || {
            let metrics = of_operator(place, "/metrics").await.text();
            metrics.contains("everfeed_xmpp_pushes_total{outcome=\"written\"} 2")
        })
        .await;
    last_answer(place).await
}

const UNANSWERED: &str = "written, not answered yet";

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_prosody_had_not_read_when_it_was_killed_comes_after_its_start() {
    let (mut scene, led) = Scene::set().await;
    // The end of Prosody ends it.
    drop(led);
    scene.server.running.signal(Signal::SIGSTOP);
    let answer = writes_a_push(&scene).await;
    scene.server.running.kill();
    let ports = [scene.server.clients, scene.server.components];
    scene.server = XmppServer::prosody_at(&scene.place, ports);
    // The subscriber is there before everfeed is.
    scene.reader = Reader::connected(scene.server.components).await;
    let leading = lead_all(scene.listener, scene.server.components);
    scene.reader.hears("Post 3").await;
    leading.abort();
    assert_eq!(answer, UNANSWERED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_a_cut_took_comes_once_prosody_gives_up_the_former_connection() {
    let (scene, led) = Scene::set().await;
    let [ours, theirs] = led.stopped().await;
    let answer = writes_a_push(&scene).await;
    drop(ours);
    let leading = lead_all(scene.listener, scene.server.components);
    let place = &scene.place;
    place
        .until("the former connection is held", async || {
            status(place).await.contains("may still hold our former")
        })
        .await;
    assert!(!place.read("log").contains("another xmpp.jid"));
    drop(theirs);
    let mut reader = scene.reader;
    reader.hears("Post 3").await;
    leading.abort();
    assert_eq!(answer, UNANSWERED);
}
