//! HAProxy before three nodes on one PostgreSQL, as the files of `deploy/nodes` have it: the node
//! that works dies under a reader.

use crate::EVERFEED;
use http::Method;
use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use testkit::{
    client,
    place::{Place, Running, free_address},
    postgres::PostgresServer,
    publisher::{Publisher, rss},
    wait::until,
};

fn deployed(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy/nodes")
        .join(name);
    fs::read_to_string(file).unwrap()
}

/// A text with changes. Whatever is to be changed is there.
fn changed(mut text: String, changes: &[(&str, String)]) -> String {
    for (from, to) in changes {
        assert!(text.contains(from), "{from:?} is no more in {text}");
        text = text.replace(from, to);
    }
    text
}

fn node(place: &Place, database: &PostgresServer, blog: &Publisher) -> Running {
    let polled = format!(
        "{}\"\npoll = {{ min_secs = 1, max_secs = 1 }}",
        blog.url("/rss.xml")
    );
    let own = format!(
        "listen = \"{}\"\nadmin_listen = \"{}\"",
        place.consumers, place.operator
    );
    let text = changed(
        deployed("everfeed.toml"),
        &[
            ("listen = \"0.0.0.0:8080\"", own),
            ("172.16.0.0/12", "127.0.0.0/8".to_owned()),
            (
                "postgresql://everfeed@database/everfeed?sslmode=disable",
                database.url(),
            ),
            ("https://blog.example.org/rss.xml\"", polled),
        ],
    );
    place.write("everfeed.toml", &text);
    place.start(&mut place.command(EVERFEED, &["serve"]))
}

fn front(place: &Place, at: SocketAddr, nodes: &[Place; 3]) -> Running {
    let text = changed(
        deployed("haproxy.cfg"),
        &[
            ("bind :8080", format!("bind {at}")),
            (" init-addr last,libc,none resolvers names", String::new()),
            ("one:8080", nodes[0].consumers.to_string()),
            ("two:8080", nodes[1].consumers.to_string()),
            ("three:8080", nodes[2].consumers.to_string()),
        ],
    );
    place.write("haproxy.cfg", &text);
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("haproxy");
    command
        .env("PATH", format!("{path}:/usr/sbin"))
        .args(["-db", "-f"])
        .arg(place.path("haproxy.cfg"));
    place.start_logging("haproxy.log", &mut command)
}

/// A reader that follows the cursor, whoever answers.
#[derive(Default)]
struct Reader {
    cursor: String,
    posts: BTreeSet<String>,
}

impl Reader {
    /// Asks once. What breaks off, or is answered by HAProxy alone, is asked again later.
    async fn ask(&mut self, at: SocketAddr) {
        let since = match &*self.cursor {
            "" => String::new(),
            cursor => format!("&since=cursor:{cursor}"),
        };
        let target = format!("/feeds/blog.json?max=10{since}");
        let answer = client::ask(at, Method::GET, &target, &[], "").await;
        let Some(answer) = answer.filter(|answer| answer.status == 200) else {
            return;
        };
        let told = answer.header("smart-feed-cursor");
        assert!(told.is_empty(), "the cursor is {told} at another node");
        let page = answer.json();
        let time = |cursor: &str| cursor.split('_').next().unwrap_or_default().to_owned();
        let last = page["last_cursor"].as_str().unwrap_or_default();
        if !last.is_empty() {
            assert!(time(last) >= time(&self.cursor), "it goes back: {last}");
            last.clone_into(&mut self.cursor);
        }
        for item in page["items"].as_array().into_iter().flatten() {
            self.posts.insert(item["id"].to_string());
        }
    }
}

#[tokio::test]
async fn a_reader_behind_haproxy_gets_every_post_while_the_node_that_works_dies() {
    let database = PostgresServer::start();
    let count = Arc::new(AtomicUsize::new(3));
    let shown = Arc::clone(&count);
    let blog = Publisher::of(move |_| rss(shown.load(Ordering::SeqCst))).await;
    let places = [Place::free(), Place::free(), Place::free()];
    let mut nodes = Vec::new();
    for place in &places {
        nodes.push(node(place, &database, &blog));
        place
            .until("it is ready", async || place.is_ready().await)
            .await;
    }
    let at = free_address();
    let _front = front(&places[0], at, &places);
    let mut reader = Reader::default();
    for (turn, posts) in [3, 4, 5].into_iter().enumerate() {
        count.store(posts, Ordering::SeqCst);
        if turn == 1 {
            // The first one works.
            nodes[0].kill();
        }
        for _ in 0..600 {
            if reader.posts.len() == posts {
                break;
            }
            reader.ask(at).await;
            tokio::time::sleep(testkit::wait::GLANCE).await;
        }
        assert_eq!(reader.posts.len(), posts, "after {turn} turns");
    }
    until("another one works", async || {
        let ready = places[1].read("log") + &places[2].read("log");
        ready.contains("This everfeed works from now on")
    })
    .await;
}
