//! The web servers: what Debian's configuration around ours would say, as small as it can be, and
//! how each is started.

use super::rig::Place;
use std::{fs, net::SocketAddr, path::Path, process::Command};

/// A web server of Debian.
pub(crate) struct WebServer {
    program: &'static str,
    package: &'static str,
    /// True where it speaks the PROXY protocol to everfeed.
    pub(crate) speaks_proxy_protocol: bool,
    /// True where a reader who goes away is noticed while everfeed holds the request.
    pub(crate) lets_readers_go: bool,
    prepare: fn(&Place, &mut Command),
}

pub(crate) const NGINX: WebServer = WebServer {
    program: "nginx",
    package: "nginx-light",
    speaks_proxy_protocol: false,
    lets_readers_go: true,
    prepare: nginx,
};

pub(crate) const CADDY: WebServer = WebServer {
    program: "caddy",
    package: "caddy",
    speaks_proxy_protocol: false,
    lets_readers_go: true,
    prepare: caddy,
};

pub(crate) const HAPROXY: WebServer = WebServer {
    program: "haproxy",
    package: "haproxy",
    speaks_proxy_protocol: true,
    lets_readers_go: true,
    prepare: haproxy,
};

pub(crate) const APACHE: WebServer = WebServer {
    program: "apache2",
    package: "apache2",
    speaks_proxy_protocol: false,
    lets_readers_go: false,
    prepare: apache,
};

impl WebServer {
    /// The command that runs it in the foreground.
    pub(crate) fn command(&self, place: &Place) -> Command {
        let mut command = self.program_alone();
        (self.prepare)(place, &mut command);
        command
    }

    /// The program, without arguments.
    pub(crate) fn program_alone(&self) -> Command {
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        let found = path
            .split(':')
            .map(|folder| format!("{folder}/{}", self.program));
        let found = found.into_iter().find(|file| fs::metadata(file).is_ok());
        let program = found.unwrap_or_else(|| {
            panic!(
                "{} is not installed: `tests/run` does that, or `apt-get install {}`",
                self.program, self.package
            )
        });
        Command::new(program)
    }
}

fn nginx(place: &Place, command: &mut Command) {
    let folder = place.folder();
    place.write(
        "blog.conf",
        &place.ours(
            "nginx.conf",
            &[("listen 443", &format!("listen {}", place.front))],
        ),
    );
    fs::create_dir(place.folder().join("snippets")).unwrap();
    place.write(
        "snippets/everfeed.conf",
        &place.ours("nginx-snippet.conf", &[]),
    );
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {}/{what};\n", folder.display()))
        .concat();
    let around = format!(
        "daemon off;\nmaster_process off;\npid {0}/nginx.pid;\nevents {{}}\n\
         http {{\naccess_log off;\n{temporary}include {0}/blog.conf;\n}}\n",
        folder.display()
    );
    place.write("nginx.conf", &around);
    command
        .arg("-e")
        .arg(folder.join("log"))
        .arg("-p")
        .arg(folder)
        .arg("-c")
        .arg("nginx.conf");
}

fn caddy(place: &Place, command: &mut Command) {
    let folder = place.folder();
    let with_tls = caddy_with_tls(folder, place.front);
    let ours = place.ours(
        "Caddyfile",
        &[("\nblog.example.org {\n", &format!("\n{with_tls}"))],
    );
    place.write("Caddyfile", &caddy_around(&ours));
    for folder_of in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
        command.env(folder_of, folder);
    }
    command
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(folder.join("Caddyfile"));
}

/// The first lines of a site at this address, with the certificate of this folder.
pub(crate) fn caddy_with_tls(folder: &Path, front: SocketAddr) -> String {
    format!(
        "https://{}:{} {{\n\tbind {}\n\ttls {} {}\n",
        super::rig::HOST,
        front.port(),
        front.ip(),
        folder.join("fullchain.pem").display(),
        folder.join("privkey.pem").display()
    )
}

/// These sites, without what a test has no use for.
pub(crate) fn caddy_around(sites: &str) -> String {
    format!("{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{sites}")
}

fn haproxy(place: &Place, command: &mut Command) {
    let folder = place.folder();
    let [chain, key] =
        ["fullchain.pem", "privkey.pem"].map(|file| fs::read_to_string(folder.join(file)).unwrap());
    place.write("both.pem", &(chain + &key));
    let both = folder.join("both.pem").display().to_string();
    let changes = [
        ("bind :443", format!("bind {}", place.front)),
        ("/etc/haproxy/certs/blog.example.org.pem", both),
    ];
    let changes = changes
        .each_ref()
        .map(|(ours, theirs)| (*ours, theirs.as_str()));
    place.write("haproxy.cfg", &place.ours("haproxy.cfg", &changes));
    // Connections at once, for which memory is taken at the start.
    command
        .args(["-db", "-n", "100", "-f"])
        .arg(folder.join("haproxy.cfg"));
}

fn apache(place: &Place, command: &mut Command) {
    let folder = place.folder();
    let host = format!("<VirtualHost *:{}>", place.front.port());
    place.write(
        "blog.conf",
        &place.ours("apache.conf", &[("<VirtualHost *:443>", &host)]),
    );
    let around = apache_around(folder, place.front);
    place.write("apache2.conf", &around);
    command
        .args(["-DFOREGROUND", "-f"])
        .arg(folder.join("apache2.conf"));
}

/// Debian's configuration around `blog.conf` of this folder.
pub(crate) fn apache_around(folder: &Path, front: SocketAddr) -> String {
    let modules: String = [
        "mpm_event",
        "authz_core",
        "ssl",
        "http2",
        "headers",
        "proxy",
        "proxy_http",
    ]
    .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
    .concat();
    format!(
        "{modules}ServerRoot {0}\nDefaultRuntimeDir {0}\nPidFile {0}/apache.pid\nErrorLog {0}/log\n\
         ServerName localhost\nUser www-data\nGroup www-data\nListen {1}\nInclude {0}/blog.conf\n",
        folder.display(),
        front
    )
}
