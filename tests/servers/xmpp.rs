//! A Smart Feed over XMPP through Debian's servers: the whole program as a component of Prosody, and
//! of ejabberd, and one client of slixmpp that passes the same suite at both.

use crate::EVERFEED;
use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use testkit::{
    place::{Place, Running, feed, free_address},
    publisher::{Answer, Publisher, ok},
    wait::{GLANCE, PATIENCE},
};

const SERVICE: &str = "feeds.localhost";
const SECRET: &str = "not a secret in a test";

/// The folder into which `tests/run` puts the client.
fn slixmpp() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target.expect("it is in the target folder").join("slixmpp")
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(GLANCE);
    }
}

fn listens(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

/// A server of XMPP with its two ports.
struct XmppServer {
    clients: SocketAddr,
    components: SocketAddr,
    _running: Running,
}

impl XmppServer {
    fn started(place: &Place, command: &mut Command, ports: [SocketAddr; 2]) -> Self {
        let [clients, components] = ports;
        let running = place.start_logging("server.log", command.stdin(Stdio::null()));
        until("the server listens", || {
            listens(clients) && listens(components)
        });
        Self {
            clients,
            components,
            _running: running,
        }
    }

    /// Debian's Prosody as a plain process.
    fn prosody(place: &Place) -> Self {
        let ports = [free_address(), free_address()];
        let [clients, components] = ports;
        let folder = place.folder().display();
        place.write(
            "prosody.cfg.lua",
            &format!(
                "run_as_root = true\ndaemonize = false\npidfile = \"{folder}/prosody.pid\"\ndata_path = \"{folder}\"\n\
                 modules_enabled = {{ \"roster\", \"saslauth\", \"disco\", \"ping\" }}\nmodules_disabled = {{ \"s2s\", \"tls\" }}\n\
                 c2s_require_encryption = false\nallow_unencrypted_plain_auth = true\nauthentication = \"internal_plain\"\n\
                 c2s_ports = {{ {} }}\nc2s_interfaces = {{ \"127.0.0.1\" }}\n\
                 component_ports = {{ {} }}\ncomponent_interfaces = {{ \"127.0.0.1\" }}\nlog = {{ info = \"*console\" }}\n\
                 VirtualHost \"localhost\"\nComponent \"{SERVICE}\"\ncomponent_secret = \"{SECRET}\"\n",
                clients.port(),
                components.port()
            ),
        );
        let config = place.path("prosody.cfg.lua");
        let mut register = Command::new("prosodyctl");
        register.arg("--root").arg("--config").arg(&config);
        let made = register
            .args(["register", "alice", "localhost", "pw"])
            .output();
        let made = made.expect("prosody is installed: tests/run installs it");
        assert!(made.status.success(), "{made:?}");
        let mut command = Command::new("prosody");
        command.arg("--root").arg("--config").arg(&config).arg("-F");
        Self::started(place, &mut command, ports)
    }

    /// Debian's ejabberd as a plain process, without a name in a network of Erlang.
    fn ejabberd(place: &Place) -> Self {
        let ports = [free_address(), free_address()];
        let [clients, components] = ports;
        place.write(
            "ejabberd.yml",
            &format!(
                "hosts: [localhost]\nloglevel: info\nauth_method: [anonymous]\nanonymous_protocol: login_anon\n\
                 allow_multiple_connections: true\nlisten:\n  -\n    port: {}\n    ip: \"127.0.0.1\"\n    module: ejabberd_c2s\n    access: all\n\
                 \x20 -\n    port: {}\n    ip: \"127.0.0.1\"\n    module: ejabberd_service\n    hosts:\n      \"{SERVICE}\":\n        password: \"{SECRET}\"\n\
                 modules:\n  mod_disco: {{}}\n  mod_ping: {{}}\n  mod_roster: {{}}\n",
                clients.port(),
                components.port()
            ),
        );
        let libraries = fs::read_dir("/usr/lib")
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut libraries = libraries.filter(|folder| folder.join("ejabberd-23.01").exists());
        let libraries = libraries
            .next()
            .expect("ejabberd is installed: tests/run installs it");
        let mut command = Command::new("erl");
        command.args(["-noinput", "-mnesia", "dir"]);
        command.arg(format!("{:?}", place.path("mnesia").display().to_string()));
        command.args(["-s", "ejabberd"]);
        command
            .env("ERL_LIBS", libraries)
            .env("HOME", place.folder())
            .env("ERL_CRASH_DUMP_BYTES", "0")
            .env("EJABBERD_CONFIG_PATH", place.path("ejabberd.yml"))
            .env("EJABBERD_LOG_PATH", place.path("ejabberd.log"));
        Self::started(place, &mut command, ports)
    }
}

/// A blog whose posts and deletions the client asks for.
async fn blog(posts: usize) -> Publisher {
    let (count, deleted) = (
        Arc::new(AtomicUsize::new(posts)),
        Arc::new(AtomicUsize::new(0)),
    );
    Publisher::of(move |asked| {
        if asked.is_post() {
            let wanted: i64 = asked.path().trim_start_matches('/').parse().unwrap();
            match usize::try_from(wanted) {
                Ok(more) => count.fetch_add(more, Ordering::SeqCst),
                Err(_) => deleted.swap(wanted.unsigned_abs() as usize, Ordering::SeqCst),
            };
            return ok("text/plain", "");
        }
        document(count.load(Ordering::SeqCst), deleted.load(Ordering::SeqCst))
    })
    .await
}

/// An Atom document of posts, the newest first, without the one that is deleted.
fn document(count: usize, deleted: usize) -> Answer {
    let mut text = "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:at=\"http://purl.org/atompub/tombstones/1.0\">\
                    <id>http://blog.example/</id><title>A blog &amp; more</title><updated>2026-06-01T00:00:00Z</updated>"
        .to_owned();
    if deleted > 0 {
        let _ = write!(
            text,
            "<at:deleted-entry ref=\"http://blog.example/{deleted}\" when=\"2026-06-02T00:00:00Z\"/>"
        );
    }
    for n in (1..=count).rev().filter(|n| *n != deleted) {
        let _ = write!(
            text,
            "<entry><id>http://blog.example/{n}</id><title>Post {n} &lt;&amp;</title><updated>2026-06-01T00:{:02}:00Z</updated>\
             <link href=\"http://blog.example/{n}\"/><content type=\"html\">&lt;p&gt;Text &amp;amp; markup &amp;nbsp; é {n}&lt;/p&gt;</content></entry>",
            n % 60
        );
    }
    text += "</feed>";
    ok("application/atom+xml", text)
}

fn configure(place: &Place, publisher: &Publisher, components: SocketAddr, secret: &str) {
    place.write("secret", &format!("{secret}\n"));
    let poll = "[feed.poll]\nmin_secs = 1\nmax_secs = 1";
    let rest = format!(
        "[xmpp]\nserver = \"{components}\"\njid = \"{SERVICE}\"\nsecret_file = \"secret\"\n{}",
        feed("blog", &publisher.url("/feed.xml"), poll)
    );
    place.configure("", &rest);
}

fn everfeed(place: &Place) -> Running {
    let mut serve = place.command(EVERFEED, &["serve"]);
    place.start(serve.env_remove("RUST_LOG"))
}

/// The client at a server.
fn client(server: &XmppServer, publisher: &Publisher) -> Child {
    let suite = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/xmpp/suite.py");
    let port = server.clients.port().to_string();
    let mut command = Command::new("python3");
    command
        .args([suite, "127.0.0.1", &port, SERVICE, "blog", "alice"])
        .arg(publisher.url("").trim_end_matches('/'))
        .env("PYTHONPATH", slixmpp())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command.spawn().unwrap()
}

/// Passes the suite at a server, with an outage of everfeed in its middle.
async fn passes(start: fn(&Place) -> XmppServer) {
    assert!(
        slixmpp().exists(),
        "tests/run installs slixmpp at {:?}",
        slixmpp()
    );
    let (place, publisher) = (Place::free(), blog(40).await);
    let server = start(&place);
    configure(&place, &publisher, server.components, SECRET);
    let mut running = everfeed(&place);
    place
        .until("the stream is open", async || {
            status(&place).await.contains("\"online\": true")
        })
        .await;
    let mut client = client(&server, &publisher);
    let mut input = client.stdin.take().unwrap();
    let lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let (mut checks, mut last) = (0, String::new());
    while let Some(line) = told.recv().await {
        println!("{line}");
        if line.starts_with("READY") {
            running.kill();
            running = everfeed(&place);
            place
                .until("the stream is open again", async || {
                    status(&place).await.contains("\"online\": true")
                })
                .await;
            input.write_all(b"\n").unwrap();
        }
        checks += usize::from(line.starts_with("ok "));
        last = line;
    }
    assert!(
        client.wait().unwrap().success(),
        "{last}\n{}",
        place.read("log")
    );
    assert!(
        last == "DONE" && checks > 30,
        "{checks} checks, then {last}"
    );
    drop(running);
}

async fn status(place: &Place) -> String {
    let answer = testkit::client::ask(place.operator, http::Method::GET, "/status", &[], "").await;
    answer.map(|answer| answer.text()).unwrap_or_default()
}

#[tokio::test]
async fn a_client_passes_the_suite_at_prosody() {
    passes(XmppServer::prosody).await;
}

#[tokio::test]
async fn a_client_passes_the_suite_at_ejabberd() {
    passes(XmppServer::ejabberd).await;
}

#[tokio::test]
async fn a_wrong_secret_is_said_in_plain_words() {
    // XMPP-3.
    let (place, publisher) = (Place::free(), blog(3).await);
    let server = XmppServer::prosody(&place);
    configure(&place, &publisher, server.components, "wrong");
    let _running = everfeed(&place);
    place
        .until("the fault is told", async || {
            status(&place)
                .await
                .contains("xmpp.secret is not the secret")
        })
        .await;
    assert_eq!(place.read("log").matches("XMPP is off").count(), 1);
    let told = place.run(EVERFEED, &["status"]);
    assert!(
        told.all().contains("xmpp.secret is not the secret"),
        "{}",
        told.all()
    );
}
