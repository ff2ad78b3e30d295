//! A certificate by ACME, from Debian's pebble: the whole program gets one, keeps it over a
//! restart, and renews it. Names are looked up by a name server of the test, so pebble connects to
//! everfeed and looks at its challenges.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use std::{
    fs,
    net::{SocketAddr, TcpListener, UdpSocket},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at something that is about to happen.
const GLANCE: Duration = Duration::from_millis(100);
const HOST: &str = "blog.example.org";

/// A port that is free now.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

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

/// A process; it is ended when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// pebble, and everfeed's place before it.
struct Rig {
    folder: TempDir,
    /// pebble's directory, and its own interface.
    directory: SocketAddr,
    management: SocketAddr,
    https: SocketAddr,
    http: SocketAddr,
    admin: SocketAddr,
    /// pebble's configuration.
    config: Value,
    pebble: Option<Running>,
}

impl Rig {
    /// Starts pebble, which looks for `tls-alpn-01` at this port (else at that of everfeed), and
    /// gives certificates for so many seconds.
    fn start(tls: Option<u16>, validity_secs: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [directory, management, https, http, admin] = [free(), free(), free(), free(), free()];
        let mut rig = Self {
            folder,
            directory,
            management,
            https,
            http,
            admin,
            config: Value::Null,
            pebble: None,
        };
        // The root of pebble's own HTTPS, which an operator of a private authority gives to
        // everfeed.
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        rig.write("authority.pem", &params.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        rig.write("pebble.pem", &own.signed_by(&key, &issuer).unwrap().pem());
        rig.write("pebble.key", &key.serialize_pem());
        let config = json!({ "pebble": {
            "listenAddress": directory.to_string(), "managementListenAddress": management.to_string(),
            "certificate": rig.path("pebble.pem"), "privateKey": rig.path("pebble.key"),
            "httpPort": http.port(), "tlsPort": tls.unwrap_or(https.port()),
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
        self.write("pebble.json", &self.config.to_string());
        let log = fs::File::create(self.path("pebble.log")).unwrap();
        let mut command = Command::new("pebble");
        command.arg("-config").arg(self.path("pebble.json"));
        command.args(["-dnsserver", &name_server().to_string(), "-strict"]);
        // Nonces are refused now and then, as an authority may, and proofs are asked for anew. The
        // third refusal in a row ends an order, which with one of five refused happens in many
        // runs, and with one of twenty in few.
        command
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "5")
            .env("PEBBLE_AUTHZREUSE", "0");
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.pebble = Some(Running(command.spawn().expect("pebble is installed")));
        until("pebble listens", || {
            std::net::TcpStream::connect(self.directory)
                .is_ok()
                .then_some(())
        });
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Writes the configuration, with further keys of `[server.tls]`.
    fn configure(&self, domains: &[&str], tls: &str) {
        let text = format!(
            "[server]\nlisten = \"{}\"\npublic_url = \"https://{HOST}/\"\nadmin_listen = \"{}\"\nshutdown_secs = 2\n\
             [server.tls]\n{tls}\n[server.tls.acme]\ndomains = {domains:?}\ncontact = \"you@example.org\"\n\
             agree_to_terms = true\ndirectory = \"https://{}/dir\"\nroot = \"authority.pem\"\n\
             [[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:1/\"\n",
            self.https, self.admin, self.directory
        );
        self.write("everfeed.toml", &text);
    }

    /// Starts everfeed, and waits until it is there.
    fn everfeed(&self) -> Running {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("everfeed.log"))
            .unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_everfeed"));
        command
            .args(["serve", "--config"])
            .arg(self.path("everfeed.toml"));
        command
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let running = Running(command.spawn().unwrap());
        until("everfeed is there", || self.status());
        running
    }

    fn command(&self, name: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everfeed"));
        command
            .arg(name)
            .arg("--config")
            .arg(self.path("everfeed.toml"))
            .output()
            .unwrap()
    }

    fn status(&self) -> Option<Value> {
        let answer = curl(&[&format!("http://{}/status", self.admin)]);
        serde_json::from_slice(&answer.stdout).ok()
    }

    /// The list of feeds by HTTPS, for a client that trusts pebble's root and nobody else.
    fn feeds(&self) -> Output {
        let root = curl(&["-k", &format!("https://{}/roots/0", self.management)]);
        fs::write(self.path("root.pem"), root.stdout).unwrap();
        let resolve = format!("{HOST}:{}:127.0.0.1", self.https.port());
        let root = self.path("root.pem").display().to_string();
        curl(&[
            "--cacert",
            &root,
            "--resolve",
            &resolve,
            &format!("https://{HOST}:{}/feeds", self.https.port()),
        ])
    }

    /// Waits until a client takes the certificate.
    fn certified(&self) {
        let began = Instant::now();
        while !self.feeds().status.success() {
            let log = || self.read("everfeed.log") + &self.read("pebble.log");
            assert!(
                began.elapsed() < PATIENCE,
                "no client takes the certificate:\n{}",
                log()
            );
            std::thread::sleep(GLANCE);
        }
    }

    /// Orders that pebble has been given since its start.
    fn orders(&self) -> usize {
        self.read("pebble.log").matches("Added order").count()
    }

    fn kept(&self) -> PathBuf {
        let folders: Vec<_> = fs::read_dir(self.path("acme"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(folders.len(), 1, "one authority");
        folders[0].clone()
    }
}

fn curl(arguments: &[&str]) -> Output {
    Command::new("curl")
        .args(["-sS", "-m", "20"])
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
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        checked.status.success()
            && told.contains("certificate blog.example.org, www.example.org, from"),
        "{told}"
    );
    let everfeed = rig.everfeed();
    rig.certified();
    let first = fs::read(rig.kept().join("certificate.pem")).unwrap();
    assert_eq!(
        rig.orders(),
        1,
        "{}{}",
        rig.read("everfeed.log"),
        rig.read("pebble.log")
    );
    assert!(is_private(&rig.kept()));
    for file in fs::read_dir(rig.kept()).unwrap() {
        assert!(is_private(&file.unwrap().path()));
    }
    let log = rig.read("everfeed.log");
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
        rig.read("everfeed.log")
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
    let rig = Rig::start(Some(free().port()), 86_400);
    rig.configure(&[HOST], &format!("redirect_from = \"{}\"", rig.http));
    let _everfeed = rig.everfeed();
    rig.certified();
    assert_eq!(rig.orders(), 2, "one in each way");
    // Everything else there leads to HTTPS, the path of a challenge that is closed too.
    let path = format!("http://{}/.well-known/acme-challenge/x", rig.http);
    let told =
        String::from_utf8(curl(&["-i", "-H", &format!("Host: {HOST}"), &path]).stdout).unwrap();
    assert!(told.starts_with("HTTP/1.1 308 "), "{told}");
    let metrics = curl(&[&format!("http://{}/metrics", rig.admin)]).stdout;
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
    let lines = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        !told.status.success() && lines.contains("there is none yet"),
        "{lines}"
    );
    let log = rig.read("everfeed.log");
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
    rig.write(
        "everfeed.toml",
        &rig.read("everfeed.toml")
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
    let rig = Rig::start(Some(free().port()), 86_400);
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
