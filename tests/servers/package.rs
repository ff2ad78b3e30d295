//! The Debian package in a fresh Debian of its own: it is installed there by dpkg, used, upgraded,
//! removed and purged. `EVERFEED_PACKAGE` names a package to try, such as one of `deploy/dist`;
//! otherwise the program of the tests is put into one by `deploy/package`.

use crate::EVERFEED;
use nix::sys::signal::Signal;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt as _, chown, symlink},
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;
use testkit::{
    place::{Place, Running, Told, run},
    publisher::{Publisher, ok},
};

const SOURCE: &str = env!("CARGO_MANIFEST_DIR");
/// What outlives a run: the fresh Debian as an archive.
const CACHE: &str = env!("CARGO_TARGET_TMPDIR");
const HOST: &str = "blog.example.org";
const CONFIGURATION: &str = "etc/everfeed.toml";
const SNIPPET: &str = "etc/nginx/snippets/everfeed.conf";
const STORE: &str = "var/lib/everfeed/everfeed.redb";
/// The folder of the book and of the files that it names.
const BOOK: &str = "usr/share/doc/everfeed";
/// Commands of the book that build everfeed from its source.
const NEEDS_THE_SOURCE: [&str; 2] = ["deploy/dist", "deploy/package"];
/// A user without rights, as systemd makes them for `DynamicUser`.
const NOBODY: u32 = 61_184;
/// Programs that the package has no say in: it writes down what it is asked for.
const SYSTEMCTL: &str = "#!/bin/sh\necho \"$*\" >>/var/log/systemctl\n";

/// A command that must succeed.
fn done(command: &mut Command) -> Told {
    let told = run(command, b"");
    assert_eq!(told.code, 0, "{command:?}: {}", told.all());
    told
}

/// The release of this machine's Debian: the program of the tests asks for its libraries.
fn release() -> String {
    let told = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = told
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = name.expect("a fresh Debian needs a Debian or Ubuntu with a release's name here");
    name.trim_matches('"').to_owned()
}

/// The archive of a fresh Debian, made once.
fn archive() -> PathBuf {
    let archive = Path::new(CACHE).join(format!("fresh-{}.tar", release()));
    if !archive.exists() {
        let new = archive.with_extension(format!("{}.tar", std::process::id()));
        let mut make = Command::new("mmdebstrap");
        make.args(["--quiet", "--variant=essential"])
            .arg("--include=ca-certificates")
            .arg(release())
            .arg(&new);
        assert!(
            make.output().is_ok(),
            "mmdebstrap is missing; tests/run installs it"
        );
        fs::rename(&new, &archive).expect("mmdebstrap made a fresh Debian; it needs the network");
    }
    archive
}

/// A Debian in a folder.
struct Root(TempDir);

impl Root {
    fn fresh() -> Self {
        let user = fs::metadata("/proc/self").unwrap().uid();
        assert_eq!(
            user, 0,
            "a package is installed by root alone; run this test as root"
        );
        let root = Self(tempfile::tempdir_in(CACHE).unwrap());
        done(
            Command::new("tar")
                .arg("-xpf")
                .arg(archive())
                .arg("-C")
                .arg(root.0.path()),
        );
        // What systemd and nginx have on a machine, and keep when the package goes.
        for folder in [
            "etc/systemd/system/multi-user.target.wants",
            "etc/systemd/system/sockets.target.wants",
            "etc/nginx/sites-enabled",
            "var/lib/private",
        ] {
            fs::create_dir_all(root.path(folder)).unwrap();
        }
        let include = "location = /rss.xml { include snippets/everfeed.conf; }\n";
        fs::write(root.path("etc/nginx/sites-enabled/blog"), include).unwrap();
        root
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// The text of a file; empty where there is none.
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A command that runs inside, as this user.
    fn inside(&self, user: u32, line: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command
            .arg(format!("--userspec={user}:{user}"))
            .arg(self.0.path())
            .args(line)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn done(&self, line: &[&str]) -> Told {
        done(&mut self.inside(0, line))
    }

    /// From now on systemd runs here, and writes down what it is asked for.
    fn has_systemd(&self) {
        fs::create_dir_all(self.path("run/systemd/system")).unwrap();
        let systemctl = self.path("usr/local/bin/systemctl");
        fs::write(&systemctl, SYSTEMCTL).unwrap();
        done(Command::new("chmod").arg("0755").arg(systemctl));
    }

    /// What systemd has been asked for since the last time.
    fn asked(&self) -> Vec<String> {
        let asked = self.read("var/log/systemctl");
        let _ = fs::remove_file(self.path("var/log/systemctl"));
        asked.lines().map(str::to_owned).collect()
    }

    /// Everything that is there, but for dpkg's own files.
    fn files(&self) -> BTreeSet<String> {
        let mut find = Command::new("find");
        find.arg(self.0.path()).args(["-xdev", "-printf", "%P\n"]);
        let told = done(&mut find);
        let is_of_dpkg =
            |name: &&str| name.starts_with("var/lib/dpkg/") || *name == "var/log/dpkg.log";
        let files = told.out.lines().filter(|name| !is_of_dpkg(name));
        files.map(str::to_owned).collect()
    }
}

/// Puts the package into the root.
fn bring(root: &Root) {
    let package = if let Some(given) = std::env::var_os("EVERFEED_PACKAGE") {
        Path::new(SOURCE).join(given)
    } else {
        let made = tempfile::tempdir_in(CACHE).unwrap().keep();
        let mut package = Command::new(Path::new(SOURCE).join("deploy/package"));
        package.arg(EVERFEED).arg(&made);
        // What is thrown away in a moment is not worth a minute of compressing.
        package.env("DPKG_DEB_COMPRESSOR_TYPE", "none");
        let told = done(&mut package);
        fs::rename(told.out.trim(), root.path("everfeed.deb")).unwrap();
        return fs::remove_dir_all(made).unwrap();
    };
    fs::copy(package, root.path("everfeed.deb")).unwrap();
}

/// A blog with a feed and a page.
async fn blog() -> Publisher {
    Publisher::of(|asked| match asked.path() {
        "/rss.xml" => ok(
            "application/rss+xml",
            "<rss version=\"2.0\"><channel><title>b</title>\
             <item><guid>1</guid><title>The kettle</title></item></channel></rss>",
        ),
        _ => ok("text/html", "<p>A page of the blog"),
    })
    .await
}

/// The configuration of the book for everfeed behind a web server, at these addresses.
fn configuration(place: &Place, blog: &Publisher) -> String {
    let text = fs::read_to_string(Path::new(SOURCE).join("deploy/behind/everfeed.toml")).unwrap();
    let operator = format!("admin_listen = \"{}\"\n\n[store]", place.operator);
    text.replace("127.0.0.1:8080", &place.consumers.to_string())
        .replace("http://127.0.0.1:8081", blog.url("").trim_end_matches('/'))
        .replace("[store]", &operator)
}

/// Starts the service as systemd would: without rights, in a folder of its own.
fn serve(root: &Root, place: &Place) -> Running {
    let (public, private) = (
        root.path("var/lib/everfeed"),
        root.path("var/lib/private/everfeed"),
    );
    if !private.exists() {
        fs::rename(&public, &private).unwrap();
        symlink("private/everfeed", &public).unwrap();
    }
    chown(&private, Some(NOBODY), Some(NOBODY)).unwrap();
    let line = ["everfeed", "serve", "--config", "/etc/everfeed.toml"];
    place.start(&mut root.inside(NOBODY, &line))
}

/// Asks everfeed for a path of the blog, until the answer has this in it.
async fn answers(place: &Place, path: &str, expected: &str) {
    let url = format!("http://{}{path}", place.consumers);
    let host = format!("Host: {HOST}");
    place
        .until(&format!("{path} has {expected}"), async || {
            let mut curl = Command::new("curl");
            curl.args(["-si", "--max-time", "10", "-H", &host, &url]);
            run(&mut curl, b"").out.contains(expected)
        })
        .await;
}

fn is_as_the_book_says(root: &Root) {
    let version = root.done(&["everfeed", "--version"]).out;
    assert!(
        version.contains(env!("CARGO_PKG_VERSION")),
        "the package has another version: {version}"
    );
    let unit = root.read("usr/lib/systemd/system/everfeed.service");
    assert!(unit.contains("\nExecStart=/usr/bin/everfeed "), "{unit}");
    assert!(!unit.contains("/usr/local/"), "{unit}");
    assert!(root.has("usr/lib/systemd/system/everfeed.socket"));
    let ours = fs::read_to_string(Path::new(SOURCE).join("deploy/behind/nginx-snippet.conf"));
    assert_eq!(root.read(SNIPPET), ours.unwrap());
    for name in [
        "doc/everfeed/copyright",
        "doc/everfeed/examples/everfeed.toml",
        "doc/everfeed/docs/owners/ten-minutes.md",
        "doc/everfeed/deploy/behind/Caddyfile",
        "man/man1/everfeed.1.gz",
        "bash-completion/completions/everfeed",
        "zsh/vendor-completions/_everfeed",
        "fish/vendor_completions.d/everfeed.fish",
    ] {
        assert!(root.has(&format!("usr/share/{name}")), "{name}");
    }
    the_book_has_what_it_leads_to(root);
    the_book_has_what_its_commands_name(root);
    assert!(!root.has(CONFIGURATION), "it is the owner's");
    let changed = root.done(&["dpkg", "--verify", "everfeed"]).all();
    assert_eq!(changed, "");
}

/// The installed pages: where each lies, and its text.
fn pages(root: &Root) -> Vec<(PathBuf, String)> {
    let mut find = Command::new("find");
    find.arg(root.path(BOOK)).args(["-name", "*.md"]);
    let told = done(&mut find);
    let pages: Vec<_> = told.out.lines().map(PathBuf::from).collect();
    assert!(pages.len() > 50, "the book is missing: {pages:?}");
    let read = |page: PathBuf| {
        let text = fs::read_to_string(&page).unwrap();
        (page, text)
    };
    pages.into_iter().map(read).collect()
}

fn the_book_has_what_it_leads_to(root: &Root) {
    let mut dead = Vec::new();
    for (page, text) in pages(root) {
        let links = text.split("](").skip(1);
        for link in links.filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            let is_elsewhere = file.contains(':') || file.contains(char::is_whitespace);
            if !is_elsewhere && !page.parent().unwrap().join(file).exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links: {dead:#?}");
}

fn the_book_has_what_its_commands_name(root: &Root) {
    let mut named = BTreeSet::new();
    for (_, text) in pages(root) {
        for block in text.split("```sh\n").skip(1) {
            let commands = block.split("```").next().unwrap_or_default();
            let words = commands.split(|c: char| c.is_whitespace() || "'\"=;|()".contains(c));
            let of_ours = words.filter(|word| {
                ["deploy/", "examples/"]
                    .iter()
                    .any(|ours| word.starts_with(ours))
                    && Path::new(SOURCE).join(word).exists()
                    && !NEEDS_THE_SOURCE.contains(word)
            });
            named.extend(of_ours.map(str::to_owned));
        }
    }
    for file in ["examples/xmpp/follow.py", "deploy/nodes"] {
        assert!(named.contains(file), "{file} is not among {named:?}");
    }
    for name in named {
        let (ours, installed) = (Path::new(SOURCE).join(&name), root.path(BOOK).join(&name));
        let mode = |file: &Path| fs::metadata(file).map(|known| known.mode() & 0o111);
        assert!(installed.exists(), "a command names {name}");
        assert_eq!(
            mode(&installed).unwrap() != 0,
            mode(&ours).unwrap() != 0,
            "{name} can be run in the source alone, or in the package alone"
        );
    }
}

async fn serves(root: &Root, place: &Place) {
    let mut running = serve(root, place);
    answers(place, "/2004/kettle.html", "A page of the blog").await;
    answers(place, "/rss.xml", &format!("https://{HOST}/smart/hub")).await;
    answers(place, "/smart/feeds", "200 OK").await;
    running.signal(Signal::SIGTERM);
    let ended = running.wait();
    assert!(ended.success(), "{ended}: {}", place.read("log"));
    assert_eq!(fs::metadata(root.path(STORE)).unwrap().uid(), NOBODY);
}

/// The same package once more, while the service runs, as far as systemd knows.
fn is_upgraded(root: &Root) {
    let store = fs::read(root.path(STORE)).unwrap();
    let snippet = root.read(SNIPPET) + "# A line of the owner's.\n";
    fs::write(root.path(SNIPPET), &snippet).unwrap();
    root.done(&["dpkg", "-i", "/everfeed.deb"]);
    assert_eq!(
        root.asked(),
        [
            "--system daemon-reload",
            "--quiet is-active everfeed.service",
            "try-restart everfeed.service"
        ]
    );
    assert_eq!(root.read(SNIPPET), snippet);
    assert!(fs::read(root.path(STORE)).unwrap() == store);

    // A binary that refuses the configuration does not take the place of one that serves.
    let good = root.read(CONFIGURATION);
    fs::write(root.path(CONFIGURATION), good.clone() + "\n[sevrer]\n").unwrap();
    let told = root.done(&["dpkg", "-i", "/everfeed.deb"]).all();
    assert!(
        told.contains("sevrer") && told.contains("still runs"),
        "{told}"
    );
    let asked = root.asked();
    assert!(
        !asked.iter().any(|line| line.contains("start")),
        "{asked:?}"
    );
    fs::write(root.path(CONFIGURATION), good).unwrap();
}

fn is_removed(root: &Root) {
    let store = fs::read(root.path(STORE)).unwrap();
    root.done(&["dpkg", "--remove", "everfeed"]);
    assert_eq!(
        root.asked(),
        [
            "stop everfeed.socket everfeed.service",
            "--system daemon-reload"
        ]
    );
    assert!(!root.has("usr/bin/everfeed") && !root.has("usr/lib/systemd/system/everfeed.service"));
    assert!(!root.has("usr/share/doc/everfeed"));
    assert!(root.has(CONFIGURATION) && root.has(SNIPPET));
    assert!(fs::read(root.path(STORE)).unwrap() == store);
}

// The blog answers while a command is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn the_package_is_installed_used_upgraded_removed_and_purged_in_a_fresh_debian() {
    let root = Root::fresh();
    bring(&root);
    root.has_systemd();
    let before = root.files();
    fs::rename(root.path("run/systemd"), root.path("run/none")).unwrap();

    // A container has no systemd.
    root.done(&["dpkg", "-i", "/everfeed.deb"]);
    assert_eq!(root.asked(), Vec::<String>::new());
    is_as_the_book_says(&root);
    fs::rename(root.path("run/none"), root.path("run/systemd")).unwrap();

    let (place, blog) = (Place::free(), blog().await);
    fs::write(root.path(CONFIGURATION), configuration(&place, &blog)).unwrap();
    root.done(&["everfeed", "check", "--config", "/etc/everfeed.toml"]);
    serves(&root, &place).await;
    is_upgraded(&root);
    serves(&root, &place).await;

    // `systemctl enable` links like this.
    let enabled = root.path("etc/systemd/system/multi-user.target.wants/everfeed.service");
    symlink("/usr/lib/systemd/system/everfeed.service", enabled).unwrap();
    is_removed(&root);
    let told = root.done(&["dpkg", "--purge", "everfeed"]).all();
    assert!(told.contains("nginx still includes"), "{told}");
    assert_eq!(root.asked(), ["--system daemon-reload"]);
    let after = root.files();
    let left: Vec<_> = after.symmetric_difference(&before).collect();
    assert!(left.is_empty(), "{left:?}");

    // Nothing is started where there is systemd, either.
    root.done(&["dpkg", "-i", "/everfeed.deb"]);
    assert_eq!(root.asked(), ["--system daemon-reload"]);
}
