//! A Smart Feed over XMPP through Debian's servers: the whole program as a component of Prosody, and
//! of ejabberd, one client of slixmpp that passes the same suite at both, and the page of the book.

mod unread;

use crate::EVERFEED;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::{
    collections::BTreeSet,
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

/// Rows of the brief that a client checks from outside.
const ROWS: [u32; 34] = [
    1, 2, 5, 6, 10, 11, 12, 13, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 40, 41, 42,
    43, 44, 46, 50, 51, 52, 53, 54, 56,
];

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
    running: Running,
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
            running,
        }
    }

    /// Debian's Prosody as a plain process.
    fn prosody(place: &Place) -> Self {
        Self::prosody_with(place, "")
    }

    /// Likewise, with more lines in its configuration.
    fn prosody_with(place: &Place, more: &str) -> Self {
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
                 VirtualHost \"localhost\"\nComponent \"{SERVICE}\"\ncomponent_secret = \"{SECRET}\"\n{more}",
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
        Self::prosody_at(place, ports)
    }

    /// Prosody with the configuration that it has already.
    fn prosody_at(place: &Place, ports: [SocketAddr; 2]) -> Self {
        let config = place.path("prosody.cfg.lua");
        let mut command = Command::new("prosody");
        command.arg("--root").arg("--config").arg(&config).arg("-F");
        Self::started(place, &mut command, ports)
    }

    /// Debian's ejabberd as a plain process, without a name in a network of Erlang.
    fn ejabberd(place: &Place) -> Self {
        Self::ejabberd_with(place, "")
    }

    /// Likewise, with its component port in TLS, by a certificate of an authority of its own in
    /// `root.pem`.
    fn ejabberd_with_tls(place: &Place) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        place.write("root.pem", &params.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let names = ["127.0.0.1", "localhost", SERVICE].map(str::to_owned);
        let own = CertificateParams::new(names).unwrap();
        let own = own.signed_by(&key, &issuer).unwrap().pem();
        place.write("ejabberd.pem", &(own + &key.serialize_pem()));
        let file = place.path("ejabberd.pem").display().to_string();
        Self::ejabberd_with(place, &format!("    tls: true\n    certfile: \"{file}\"\n"))
    }

    /// Likewise, with more lines in the part of the component port.
    fn ejabberd_with(place: &Place, of_components: &str) -> Self {
        let ports = [free_address(), free_address()];
        let [clients, components] = ports;
        place.write(
            "ejabberd.yml",
            &format!(
                "hosts: [localhost]\nloglevel: info\nauth_method: [anonymous]\nanonymous_protocol: login_anon\n\
                 allow_multiple_connections: true\nlisten:\n  -\n    port: {}\n    ip: \"127.0.0.1\"\n    module: ejabberd_c2s\n    access: all\n\
                 \x20 -\n    port: {}\n    ip: \"127.0.0.1\"\n    module: ejabberd_service\n{of_components}    hosts:\n      \"{SERVICE}\":\n        password: \"{SECRET}\"\n\
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
        let posts = if asked.path() == "/empty.xml" {
            0
        } else {
            count.load(Ordering::SeqCst)
        };
        document(posts, deleted.load(Ordering::SeqCst))
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

/// The configuration of a feed, and of an empty one; further lines of `[xmpp]`.
fn configure(place: &Place, publisher: &Publisher, components: SocketAddr, more: &str) {
    if !place.path("secret").exists() {
        place.write("secret", SECRET);
    }
    let poll = "[feed.poll]\nmin_secs = 1\nmax_secs = 1";
    let rest = format!(
        "[xmpp]\nserver = \"{components}\"\njid = \"{SERVICE}\"\nsecret_file = \"secret\"\n\
         subscriptions_per_jid_max = 5\n{more}\n{}{}",
        feed("blog", &publisher.url("/feed.xml"), poll),
        feed("empty", &publisher.url("/empty.xml"), "")
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
    configure(&place, &publisher, server.components, "");
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
    let (mut rows, mut last) = (BTreeSet::new(), String::new());
    while let Some(line) = told.recv().await {
        println!("{line}");
        if line.starts_with("READY") {
            is_listed(&place);
            running.kill();
            running = everfeed(&place);
            place
                .until("the stream is open again", async || {
                    status(&place).await.contains("\"online\": true")
                })
                .await;
            input.write_all(b"\n").unwrap();
        }
        let row = line.strip_prefix("ok   XMPP-");
        rows.extend(row.and_then(|row| row.split(' ').next()?.parse::<u32>().ok()));
        last = line;
    }
    assert!(
        client.wait().unwrap().success(),
        "{last}\n{}",
        place.read("log")
    );
    assert_eq!(last, "DONE");
    let missing: Vec<_> = ROWS.iter().filter(|row| !rows.contains(row)).collect();
    assert!(missing.is_empty(), "rows without a check: {missing:?}");
    drop(running);
}

/// The operator sees the subscriptions, retries one, and ends one.
fn is_listed(place: &Place) {
    let told = |arguments: &[&str]| place.run(EVERFEED, &[&["subscribers"], arguments].concat());
    let list = told(&["list", "--host", "localhost"]).all();
    let of_blog = list.lines().find(|line| line.contains(" blog ")).unwrap();
    assert!(of_blog.contains("XMPP"), "{list}");
    until("the server has answered for the pushes", || {
        told(&["list", "--host", "localhost"])
            .all()
            .contains("taken")
    });
    let number = of_blog.split_whitespace().next().unwrap();
    assert!(told(&["retry", number]).all().contains("is tried now"));
    assert_eq!(told(&["end", "999"]).code, 1);
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
    place.write("secret", "wrong\n");
    configure(&place, &publisher, server.components, "");
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

#[tokio::test]
async fn an_unknown_host_is_said_in_plain_words() {
    // XMPP-3.
    let (place, publisher) = (Place::free(), blog(3).await);
    let server = XmppServer::prosody(&place);
    configure(&place, &publisher, server.components, "");
    let text = fs::read_to_string(place.file()).unwrap();
    let other = text.replace(SERVICE, "other.localhost");
    fs::write(place.file(), other).unwrap();
    let _running = everfeed(&place);
    place
        .until("the fault is told", async || {
            status(&place)
                .await
                .contains("the server knows no component of this name")
        })
        .await;
    assert_eq!(place.read("log").matches("XMPP is off").count(), 1);
}

#[tokio::test]
async fn the_stream_to_ejabberd_is_in_tls_by_an_authority_of_ones_own() {
    // Section 2 of the brief: ejabberd has TLS at its component port.
    let (place, publisher) = (Place::free(), blog(3).await);
    let server = XmppServer::ejabberd_with_tls(&place);
    let tls = |root: &str| format!("tls = true\ntls_root = \"{root}\"");
    configure(&place, &publisher, server.components, &tls("root.pem"));
    let running = everfeed(&place);
    place
        .until("the stream is open", async || {
            status(&place).await.contains("\"online\": true")
        })
        .await;
    drop(running);
    // Of another authority, and without TLS.
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    place.write("other.pem", &params.self_signed(&key).unwrap().pem());
    for (more, fault) in [(tls("other.pem"), "certificate"), (String::new(), "")] {
        configure(&place, &publisher, server.components, &more);
        let _running = everfeed(&place);
        place
            .until("the fault is told", async || {
                let status = status(&place).await;
                status.contains("\"online\": false")
                    && status.contains("\"fault\"")
                    && status.contains(fault)
            })
            .await;
    }
}

/// The commands of the page that are run here, in its order.
fn commands_of_the_page() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operators/xmpp.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1);
    let run = blocks.filter_map(|part| {
        let (commands, behind) = part.split_once("\n```")?;
        let is_run = behind.trim_start().starts_with("<!-- run: prosody -->");
        is_run.then(|| commands.to_owned())
    });
    run.collect()
}

#[tokio::test]
async fn the_page_of_the_book_leads_to_a_push_and_to_a_retract() {
    // XMPP-50, XMPP-54.
    let place = Place::free();
    let ports = [free_address(), free_address()];
    let [clients, components] = ports;
    let folder = place.folder().display().to_string();
    // Debian's own configuration, in a folder and at ports of its own.
    let usual = fs::read_to_string("/etc/prosody/prosody.cfg.lua").unwrap();
    let usual = usual
        .replace("/run/prosody", &folder)
        .replace("/var/log/prosody", &folder);
    place.write(
        "prosody.cfg.lua",
        &format!(
            "run_as_root = true\ndata_path = \"{folder}\"\ns2s_ports = {{}}\n\
             c2s_ports = {{ {} }}\nc2s_interfaces = {{ \"127.0.0.1\" }}\n\
             component_ports = {{ {} }}\n{usual}",
            clients.port(),
            components.port()
        ),
    );
    fs::create_dir(place.path("conf.d")).unwrap();
    let commands = commands_of_the_page();
    let [setting, demo, follow] = &commands[..] else {
        panic!("{commands:?}");
    };
    let put_in = |text: &str| {
        text.replace("/etc/prosody", &folder)
            .replace("127.0.0.1:5347", &components.to_string())
            .replace("127.0.0.1:5222", &clients.to_string())
            .replace("venv/bin/python", "exec python3")
            .replace(
                "everfeed demo",
                "exec everfeed demo --every 1 --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --blog-listen 127.0.0.1:0",
            )
    };
    // The server is started beside, not by systemd, and not as a user of its own.
    let around = format!(
        "sudo() {{ \"$@\"; }}\nsystemctl() {{ :; }}\n\
         prosodyctl() {{ command prosodyctl --root --config {folder}/prosody.cfg.lua \"$@\"; }}\n"
    );
    let bash = |text: &str| {
        let mut bash = Command::new("bash");
        let programs = Path::new(EVERFEED).parent().unwrap().display().to_string();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
        bash.args([
            "-euo",
            "pipefail",
            "-c",
            &format!("{around}{}", put_in(text)),
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("PATH", path)
        .env("PYTHONPATH", slixmpp());
        bash
    };
    let set = bash(setting).output().unwrap();
    assert!(set.status.success(), "{set:?}");
    let mut prosody = Command::new("prosody");
    prosody.arg("--root").arg("--config");
    prosody.arg(place.path("prosody.cfg.lua")).arg("-F");
    let _server = XmppServer::started(&place, &mut prosody, ports);
    let _demo = place.start_logging("demo.log", &mut bash(demo));
    place
        .until("the demo serves over XMPP", async || {
            place.read("demo.log").contains("Every change from now on")
        })
        .await;
    let _follow = place.start_logging("follow.log", &mut bash(follow));
    place
        .until("a push and a retract", async || {
            let told = place.read("follow.log");
            told.contains("blog is subscribed to")
                && ["new     ", "deleted "].iter().all(|it| told.contains(it))
        })
        .await;
}
