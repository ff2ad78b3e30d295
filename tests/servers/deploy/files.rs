//! A blog that is a folder of files, with the lines of the book's pages as they are printed: the
//! web server serves the folder, and hands the feed to everfeed.

use super::{
    rig::{HOST, READER},
    servers::{APACHE, CADDY, WebServer, apache_around, caddy_around, caddy_with_tls},
};
use crate::EVERFEED;
use std::{
    fs, net::SocketAddr, os::unix::fs::PermissionsExt as _, path::Path, process::Command,
    time::Instant,
};
use testkit::{
    place::{Place, free_address, run},
    wait::{GLANCE, PATIENCE},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A folder of files, and the addresses of the web server and of what only this machine can reach.
struct Files {
    place: Place,
    front: SocketAddr,
    blog: SocketAddr,
}

impl Files {
    fn new() -> Self {
        let files = Self {
            place: Place::free(),
            front: free_address(),
            blog: free_address(),
        };
        // Apache reads the folder with the rights of another user.
        let all_may_read = fs::Permissions::from_mode(0o755);
        fs::set_permissions(files.place.folder(), all_may_read).unwrap();
        let pair = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
        files.place.write("fullchain.pem", &pair.cert.pem());
        files
            .place
            .write("privkey.pem", &pair.signing_key.serialize_pem());
        fs::create_dir(files.place.path("blog")).unwrap();
        files.place.write("blog/kettle.html", "A page of the blog");
        files.place.write(
            "blog/rss.xml",
            "<rss version=\"2.0\"><channel><title>b</title>\
             <item><guid>1</guid><title>The kettle</title></item></channel></rss>",
        );
        files
    }

    /// A text of ours with the addresses and the folders of this place.
    fn here(&self, text: &str) -> String {
        let folder = self.place.folder().display().to_string();
        let blog = format!("{folder}/blog");
        text.replace("127.0.0.1:8081", &self.blog.to_string())
            .replace("http://:8081", &format!("http://:{}", self.blog.port()))
            .replace("127.0.0.1:8080", &self.place.consumers.to_string())
            .replace("/etc/letsencrypt/live/blog.example.org", &folder)
            .replace("/var/www/blog", &blog)
    }

    /// The configuration that a page of the book prints, with a change. What is changed is there.
    fn printed(&self, page: &str, language: &str, from: &str, to: &str) -> String {
        let text = fs::read_to_string(Path::new(ROOT).join("docs/owners").join(page)).unwrap();
        let begin = format!("```{language}\n");
        let block = text.split(&begin).nth(1).expect("a configuration");
        let block = block.split("```").next().unwrap();
        assert!(block.contains(from), "{from:?} is no more in {page}");
        self.here(&block.replace(from, to))
    }

    /// Asks the web server for a path, until the answer has all of this.
    fn until(&self, path: &str, expected: &[&str]) -> String {
        let began = Instant::now();
        loop {
            let port = self.front.port();
            let mut curl = Command::new("curl");
            curl.args(["-si", "-m", "10", "--interface", READER, "--resolve"])
                .arg(format!("{HOST}:{port}:127.0.0.1"))
                .arg("--cacert")
                .arg(self.place.path("fullchain.pem"))
                .arg(format!("https://{HOST}:{port}{path}"));
            let told = run(&mut curl, b"").out;
            if expected.iter().all(|part| told.contains(part)) {
                return told;
            }
            let log = self.place.read("web.log") + &self.place.read("log");
            assert!(began.elapsed() < PATIENCE, "{path}: {told}; {log}");
            std::thread::sleep(GLANCE);
        }
    }

    /// Starts the web server and everfeed, and asks for a page, the feed and everfeed's own paths.
    fn check(&self, server: &WebServer, prepare: impl FnOnce(&mut Command)) {
        let mut web = server.program_alone();
        prepare(&mut web);
        let _web = self.place.start_group("web.log", &mut web);
        self.until("/kettle.html", &[" 200", "A page of the blog"]);

        let ours = fs::read_to_string(Path::new(ROOT).join("deploy/behind/everfeed.toml")).unwrap();
        let store = self.place.file().display().to_string();
        let operator = format!("admin_listen = \"{}\"\n\n[store]", self.place.operator);
        let public = format!("https://{HOST}:{}", self.front.port());
        let ours = self
            .here(&ours)
            .replace("/var/lib/everfeed/everfeed.redb", &store)
            .replace("[store]", &operator)
            .replace("https://blog.example.org", &public);
        self.place.write("behind.toml", &ours);
        let mut everfeed = Command::new(EVERFEED);
        everfeed
            .args(["serve", "--config", "behind.toml"])
            .current_dir(self.place.folder());
        let _everfeed = self.place.start(&mut everfeed);

        let hub = format!("{public}/smart/hub");
        self.until("/rss.xml", &[" 200", "The kettle", &hub]);
        self.until("/smart/feeds", &[" 200", "blog-rss-xml"]);
        let page = self.until("/kettle.html", &[" 200", "A page of the blog"]);
        assert!(!page.contains("everfeed"), "{page}");
        // The feed stays while the file is gone.
        fs::remove_file(self.place.path("blog/rss.xml")).unwrap();
        self.until("/rss.xml", &[" 200", "The kettle", &hub]);
    }
}

#[test]
fn apache_serves_a_folder_of_files_and_hands_the_feed_to_everfeed_as_the_book_prints_it() {
    let files = Files::new();
    let host = format!("<VirtualHost *:{}>", files.front.port());
    let ours = files.printed("apache-files.md", "apache", "<VirtualHost *:443>", &host);
    files.place.write("blog.conf", &ours);
    let around = apache_around(files.place.folder(), files.front);
    files.place.write("apache2.conf", &around);
    let main = files.place.path("apache2.conf");
    files.check(&APACHE, |web| {
        web.args(["-DFOREGROUND", "-f"]).arg(main);
    });
}

#[test]
fn caddy_serves_a_folder_of_files_and_hands_the_feed_to_everfeed_as_the_book_prints_it() {
    let files = Files::new();
    let with_tls = caddy_with_tls(files.place.folder(), files.front);
    let ours = files.printed("caddy-files.md", "caddy", "blog.example.org {\n", &with_tls);
    files.place.write("Caddyfile", &caddy_around(&ours));
    let (main, home) = (files.place.path("Caddyfile"), files.place.path(""));
    files.check(&CADDY, |web| {
        for folder_of in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
            web.env(folder_of, &home);
        }
        web.args(["run", "--adapter", "caddyfile", "--config"])
            .arg(main);
    });
}
