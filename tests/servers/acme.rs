//! A certificate by ACME, from Debian's pebble: the whole program gets one, keeps it over a
//! restart, and renews it; and two nodes have one together. Names are looked up by a name server of the test, so pebble connects to
//! everfeed and looks at its challenges.

use crate::EVERFEED;
use nix::sys::signal::Signal;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Instant,
};
use testkit::{
    place::{Place, Running, Told, free_address},
    postgres::PostgresServer,
    wait::{GLANCE, PATIENCE},
};

const HOST: &str = "blog.example.org";

/// A name server for which every name leads to 127.0.0.1; it answers as long as the test runs.
fn name_server() -> SocketAddr {
    const A: [u8; 2] = [0, 1];
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((_, from)) = socket.recv_from(&mut packet) {
            // One question behind the head: labels, a zero, type and class.
            let mut end = 12;
            while packet[end] != 0 {
                end += usize::from(packet[end]) + 1;
            }
            let question = &packet[12..end + 5];
            let is_address = packet[end + 1..end + 3] == A;
            let head = [
                &packet[..2],
                &[0x81, 0x80, 0, 1, 0, u8::from(is_address), 0, 0, 0, 0],
            ]
            .concat();
            let answer: &[u8] = &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1];
            let answer = if is_address { answer } else { &[] };
            let _ = socket.send_to(&[&head, question, answer].concat(), from);
        }
    });
    address
}

/// pebble, and everfeed's place before it.
struct Rig {
    place: Place,
    /// pebble's directory, and its own interface.
    directory: SocketAddr,
    management: SocketAddr,
    http: SocketAddr,
    /// pebble's configuration.
    config: Value,
    pebble: Option<Running>,
}

impl Rig {
    /// Starts pebble, which looks for `tls-alpn-01` at this port (else at that of everfeed), and
    /// gives certificates for so many seconds.
    fn start(tls: Option<u16>, validity_secs: u64) -> Self {
        let [directory, management, http] = [(); 3].map(|()| free_address());
        let mut rig = Self {
            place: Place::free(),
            directory,
            management,
            http,
            config: Value::Null,
            pebble: None,
        };
        // The root of pebble's own HTTPS, which an operator of a private authority gives to
        // everfeed.
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        rig.place
            .write("authority.pem", &params.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        rig.place
            .write("pebble.pem", &own.signed_by(&key, &issuer).unwrap().pem());
        rig.place.write("pebble.key", &key.serialize_pem());
        let config = json!({ "pebble": {
            "listenAddress": directory.to_string(), "managementListenAddress": management.to_string(),
            "certificate": rig.place.path("pebble.pem"), "privateKey": rig.place.path("pebble.key"),
            "httpPort": http.port(), "tlsPort": tls.unwrap_or(rig.place.consumers.port()),
            "ocspResponderURL": "", "externalAccountBindingRequired": false,
            "domainBlocklist": ["blocked.example.org"],
        }});
        rig.config = config;
        rig.start_pebble(validity_secs);
        rig
    }

    /// Starts pebble anew, which then knows nothing of what was before, and gives certificates for
    /// so many seconds.
    fn start_pebble(&mut self, validity_secs: u64) {
        self.pebble = None;
        self.config["pebble"]["certificateValidityPeriod"] = validity_secs.into();
        self.place.write("pebble.json", &self.config.to_string());
        let _ = fs::remove_file(self.place.path("pebble.log"));
        let mut command = Command::new("pebble");
        command.arg("-config").arg(self.place.path("pebble.json"));
        command.args(["-dnsserver", &name_server().to_string(), "-strict"]);
        // Nonces are refused now and then, as an authority may, and proofs are asked for anew. The
        // third refusal in a row ends an order, which with one of five refused happens in many
        // runs, and with one of twenty in few.
        command
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "5")
            .env("PEBBLE_AUTHZREUSE", "0");
        command.stdin(Stdio::null());
        self.pebble = Some(self.place.start_logging("pebble.log", &mut command));
        until("pebble listens", || {
            std::net::TcpStream::connect(self.directory)
                .is_ok()
                .then_some(())
        });
    }

    /// Writes the configuration, with further keys of `[server.tls]`.
    fn configure(&self, domains: &[&str], tls: &str) {
        self.place.configure(&server(), &self.rest(domains, tls));
    }

    /// The configuration behind `[store]`.
    fn rest(&self, domains: &[&str], tls: &str) -> String {
        format!(
            "[server.tls]\n{tls}\n[server.tls.acme]\ndomains = {domains:?}\ncontact = \"you@example.org\"\n\
             agree_to_terms = true\ndirectory = \"https://{}/dir\"\nroot = {:?}\n\
             [[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:1/\"\n",
            self.directory,
            self.place.path("authority.pem")
        )
    }

    /// Writes the configuration of a node on a database, with a key to seal by.
    fn configure_node(&self, place: &Place, database: &PostgresServer, key: &str) {
        place.write("everfeed.key", &key.repeat(32));
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(place.path("everfeed.key"), private).unwrap();
        let rest = format!("key_file = \"everfeed.key\"\n{}", self.rest(&[HOST], ""));
        let text = place.database_text(&database.url(), &server(), &rest);
        place.write("everfeed.toml", &text);
    }

    /// Has pebble stand still, or go on.
    fn signal_pebble(&self, signal: Signal) {
        self.pebble.as_ref().unwrap().signal(signal);
    }

    /// Starts everfeed, and waits until it is there.
    fn everfeed(&self) -> Running {
        everfeed_at(&self.place)
    }

    fn command(&self, name: &str) -> Told {
        self.place.run(EVERFEED, &[name])
    }

    fn status(&self) -> Option<Value> {
        status_of(&self.place)
    }

    /// The list of feeds by HTTPS, for a client that trusts pebble's root and nobody else.
    fn feeds(&self) -> Output {
        self.feeds_of(&self.place)
    }

    fn feeds_of(&self, place: &Place) -> Output {
        let root = curl(&["-k", &format!("https://{}/roots/0", self.management)]);
        fs::write(self.place.path("root.pem"), root.stdout).unwrap();
        let resolve = format!("{HOST}:{}:127.0.0.1", place.consumers.port());
        let root = self.place.path("root.pem").display().to_string();
        curl(&[
            "--cacert",
            &root,
            "--resolve",
            &resolve,
            &format!("https://{HOST}:{}/feeds", place.consumers.port()),
        ])
    }

    /// Waits until a client takes the certificate.
    fn certified(&self) {
        self.certified_at(&self.place);
    }

    fn certified_at(&self, place: &Place) {
        until("a client takes the certificate", || {
            self.feeds_of(place).status.success().then_some(())
        });
    }

    /// Orders that pebble has been given since its start.
    fn orders(&self) -> usize {
        self.place.read("pebble.log").matches("Added order").count()
    }

    fn kept(&self) -> PathBuf {
        let folders: Vec<_> = fs::read_dir(self.place.path("acme"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(folders.len(), 1, "one authority");
        folders[0].clone()
    }
}

/// Further lines of `[server]`.
fn server() -> String {
    format!("public_url = \"https://{HOST}/\"\nshutdown_secs = 2")
}

/// Starts everfeed at a place, and waits until it is there.
fn everfeed_at(place: &Place) -> Running {
    let mut serve = place.command(EVERFEED, &["serve"]);
    let running = place.start(serve.env_remove("RUST_LOG"));
    until("everfeed is there", || status_of(place));
    running
}

fn status_of(place: &Place) -> Option<Value> {
    let answer = curl(&[&format!("http://{}/status", place.operator)]);
    serde_json::from_slice(&answer.stdout).ok()
}

fn curl(arguments: &[&str]) -> Output {
    Command::new("curl")
        .args(["-sS", "-m", "120"])
        .args(arguments)
        .output()
        .expect("curl is installed")
}

fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::sleep(GLANCE);
    }
}

fn is_private(path: &Path) -> bool {
    fs::metadata(path).unwrap().permissions().mode() & 0o077 == 0
}

#[test]
fn a_certificate_is_got_by_tls_kept_over_a_restart_and_renewed_when_it_is_due() {
    let mut rig = Rig::start(None, 86_400);
    rig.configure(&[HOST, "www.example.org"], "");
    let checked = rig.command("check");
    assert!(
        checked.code == 0
            && checked
                .out
                .contains("certificate blog.example.org, www.example.org, from"),
        "{checked:?}"
    );
    let everfeed = rig.everfeed();
    rig.certified();
    let first = fs::read(rig.kept().join("certificate.pem")).unwrap();
    assert_eq!(
        rig.orders(),
        1,
        "{}{}",
        rig.place.read("log"),
        rig.place.read("pebble.log")
    );
    assert!(is_private(&rig.kept()));
    for file in fs::read_dir(rig.kept()).unwrap() {
        assert!(is_private(&file.unwrap().path()));
    }
    let log = rig.place.read("log");
    for part in [
        "There is no certificate yet: HTTPS connections fail until 127.0.0.1 has given one",
        "A new certificate for",
    ] {
        assert!(log.contains(part), "{part} is not in:\n{log}");
    }
    // Another start asks nobody.
    drop(everfeed);
    let everfeed = rig.everfeed();
    assert!(rig.feeds().status.success());
    assert_eq!(
        (
            rig.orders(),
            fs::read(rig.kept().join("certificate.pem")).unwrap()
        ),
        (1, first.clone())
    );
    assert!(
        rig.place
            .read("log")
            .contains("The kept certificate for blog.example.org, www.example.org is in use")
    );
    drop(everfeed);
    // One more name needs another certificate; by then the authority has forgotten the account, and
    // it gives less time.
    rig.configure(&[HOST, "www.example.org", "feeds.example.org"], "");
    rig.start_pebble(15);
    let everfeed = rig.everfeed();
    let changed = |before: &[u8]| {
        let now = fs::read(rig.kept().join("certificate.pem")).unwrap();
        (now != before).then_some(now)
    };
    let second = until("it is exchanged", || changed(&first));
    until("it is renewed", || changed(&second));
    rig.certified();
    let status = rig.status().unwrap();
    assert!(
        status["certificate"]["expires_at"].is_string() && status["certificate"]["fault"].is_null(),
        "{status}"
    );
    drop(everfeed);
}

#[test]
fn names_are_proven_by_http_where_nobody_reaches_the_port_of_https() {
    let rig = Rig::start(Some(free_address().port()), 86_400);
    rig.configure(&[HOST], &format!("redirect_from = \"{}\"", rig.http));
    let _everfeed = rig.everfeed();
    rig.certified();
    assert_eq!(rig.orders(), 2, "one in each way");
    // Everything else there leads to HTTPS, the path of a challenge that is closed too.
    let path = format!("http://{}/.well-known/acme-challenge/x", rig.http);
    let told =
        String::from_utf8(curl(&["-i", "-H", &format!("Host: {HOST}"), &path]).stdout).unwrap();
    assert!(told.starts_with("HTTP/1.1 308 "), "{told}");
    let metrics = curl(&[&format!("http://{}/metrics", rig.place.operator)]).stdout;
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(
        metrics.contains("everfeed_certificate_failed_orders 0"),
        "{metrics}"
    );
}

#[test]
fn a_failure_says_whose_fault_it_is_and_is_not_repeated_at_once() {
    let rig = Rig::start(None, 86_400);
    rig.configure(&[HOST, "blocked.example.org"], "");
    let everfeed = rig.everfeed();
    let fault = until("it fails", || {
        rig.status()?["certificate"]["fault"]
            .as_str()
            .map(str::to_owned)
    });
    assert!(
        fault.contains("[rejectedIdentifier] (for you to mend"),
        "{fault}"
    );
    assert!(!rig.feeds().status.success());
    let told = rig.command("status");
    assert!(told.code != 0 && told.out.contains("none yet"), "{told:?}");
    let log = rig.place.read("log");
    assert!(
        log.contains(
            "ERROR No certificate for blog.example.org, blocked.example.org from 127.0.0.1:"
        ),
        "{log}"
    );
    assert!(
        log.contains("the next try is in") && log.contains("until then HTTPS connections fail"),
        "{log}"
    );
    drop(everfeed);
    // The operator mends it, and has another address by now.
    rig.configure(&[HOST], "");
    rig.place.write(
        "everfeed.toml",
        &rig.place
            .read("everfeed.toml")
            .replace("you@example.org", "me@example.org"),
    );
    let everfeed = rig.everfeed();
    rig.certified();
    assert!(
        fs::read_to_string(rig.kept().join("account.json"))
            .unwrap()
            .contains("mailto:me@example.org")
    );
    drop(everfeed);
    // Nobody is at the port of the proof.
    let rig = Rig::start(Some(free_address().port()), 86_400);
    rig.configure(&[HOST], "");
    let _everfeed = rig.everfeed();
    let fault = until("it fails", || {
        rig.status()?["certificate"]["fault"]
            .as_str()
            .map(str::to_owned)
    });
    assert!(
        fault.contains("blog.example.org was not proven by tls-alpn-01 (port 443)"),
        "{fault}"
    );
    assert!(fault.contains("[unauthorized] (for you to mend"), "{fault}");
    assert_eq!(rig.orders(), 1);
}

#[test]
fn of_two_nodes_one_orders_and_the_authority_comes_to_the_other() {
    let (database, other) = (PostgresServer::start(), Place::free());
    let rig = Rig::start(Some(other.consumers.port()), 86_400);
    for place in [&rig.place, &other] {
        rig.configure_node(place, &database, "0f");
    }
    // The order waits for the authority until both nodes are there.
    rig.signal_pebble(Signal::SIGSTOP);
    let worker = rig.everfeed();
    let follower = everfeed_at(&other);
    assert!(
        other
            .read("log")
            .contains("another everfeed polls and pushes")
    );
    rig.signal_pebble(Signal::SIGCONT);
    rig.certified_at(&other);
    rig.certified();
    assert_eq!(rig.orders(), 1);
    for (place, gets_it) in [(&rig.place, true), (&other, false)] {
        let log = place.read("log");
        assert_eq!(log.contains("A new certificate for"), gets_it, "{log}");
        assert!(!place.path("acme").exists());
    }
    // What is kept is sealed, and the challenge is closed.
    let kept = database.ask("SELECT count(*) || ' ' || count(*) FILTER (WHERE value LIKE '%PRIVATE%'::bytea OR name LIKE '%challenges%') FROM sealed");
    assert_eq!(kept.trim(), "3 0");
    drop(worker);
    until("the other one works", || {
        let log = other.read("log");
        log.contains("The kept certificate for blog.example.org is in use")
            .then_some(())
    });
    rig.certified_at(&other);
    assert_eq!(rig.orders(), 1);
    drop(follower);
    rig.configure_node(&other, &database, "f0");
    let refused = other.run(EVERFEED, &["serve"]);
    assert!(
        refused.code != 0
            && refused
                .all()
                .contains("sealed with another key than store.key_file names"),
        "{refused:?}"
    );
}
