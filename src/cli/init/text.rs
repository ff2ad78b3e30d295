//! The text of a new configuration, and the lines that come next; pure.

use super::super::probe::{
    blog::{BlogFeed, FeedKind},
    sheet::tame,
};
use crate::{app::feed_name::names as names_of, secret::masked};
use clap::ValueEnum;
use everfeed_adapters::Format;
use percent_encoding::percent_decode_str;
use std::{
    collections::{BTreeSet, HashSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};
use url::Url;

/// The place of everfeed towards a blog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Way {
    /// A web server passes on the feed alone.
    Below,
    /// Every request comes to everfeed.
    Front,
    /// everfeed has a host name of its own.
    Beside,
}

/// Web server in front of a blog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WebServer {
    Nginx,
    /// Apache, or LiteSpeed, which reads its files.
    Apache,
    Caddy,
    /// Another one, or a network that answers in the place of the server.
    Unknown,
}

impl WebServer {
    /// The server that names itself so in `Server`.
    pub(super) fn named(server: &str) -> Self {
        let server = server.to_ascii_lowercase();
        let is = |name: &str| server.contains(name);
        if is("nginx") || is("openresty") {
            Self::Nginx
        } else if is("apache") || is("litespeed") {
            Self::Apache
        } else if is("caddy") {
            Self::Caddy
        } else {
            Self::Unknown
        }
    }
}

/// The port of everfeed, and one for a blog that has it.
const PORTS: [u16; 2] = [8080, 8082];

/// A configuration that is to be written.
pub(super) struct Draft {
    pub(super) way: Way,
    /// Reason for the way.
    pub(super) why: String,
    /// The address of the blog.
    pub(super) site: Url,
    /// True for an address that only this machine or its network has.
    pub(super) is_near: bool,
    pub(super) software: Option<String>,
    /// The web server that answers for the blog.
    pub(super) server: WebServer,
    pub(super) feeds: Vec<BlogFeed>,
    /// The number of them that are written beside a blog, from the first on; the others are named.
    pub(super) taken: usize,
    /// The address at which this machine reaches the blog itself, if one is known.
    pub(super) origin: Option<Url>,
    pub(super) store: PathBuf,
    /// True where nothing is known, and everything is an example.
    pub(super) is_example: bool,
}

/// Path of a feed by which a web server can pass it on: one at the blog's own host, without a query.
pub(super) fn location<'f>(site: &Url, feed: &'f BlogFeed) -> Option<&'f str> {
    let is_own = feed.url.host() == site.host() && feed.url.port() == site.port();
    (is_own && feed.url.query().is_none()).then(|| feed.url.path())
}

impl Draft {
    /// A configuration for nobody's blog.
    pub(super) fn example(way: Way, store: PathBuf) -> Self {
        let parsed = |url: &str| Url::parse(url).expect("it is one");
        let feed = BlogFeed {
            url: parsed("https://blog.example.org/rss.xml"),
            kind: FeedKind::Posts,
            format: Format::Rss,
            links: HashSet::new(),
            title: None,
            entries: 0,
            hubs: Vec::new(),
            archives: Vec::new(),
            bytes: Vec::new(),
        };
        Self {
            way,
            why: "it needs nothing of the blog".to_owned(),
            site: parsed("https://blog.example.org/"),
            is_near: false,
            software: None,
            server: WebServer::Nginx,
            feeds: vec![feed],
            taken: 1,
            origin: None,
            store,
            is_example: true,
        }
    }

    /// The file.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if self.is_example {
            text.push_str("# An everfeed for the blog at blog.example.org. Put your own addresses in their places.\n");
        } else {
            let _ = writeln!(text, "# everfeed for {}", tame(&masked(self.site.as_str())));
        }
        if let Some(software) = &self.software {
            let _ = writeln!(text, "# Software: {}", tame(software));
        }
        text.push_str("# `everfeed check` says what this file means. docs/reference/configuration.md has every key.\n\n");
        text.push_str(&self.server());
        let store = quoted(&self.store.display().to_string());
        let _ = write!(
            text,
            "\n[store]\npath = {store}    # everything that is kept\n\n"
        );
        text.push_str(
            "# [upstream]\n# contact_url = \"https://example.org/about\"    # publishers find you here, should they want to talk\n\n",
        );
        match self.way {
            Way::Below | Way::Front => text.push_str(&self.site_table()),
            Way::Beside => text.push_str(&self.feed_tables()),
        }
        text
    }

    fn server(&self) -> String {
        let port = self.port();
        let mut text = "[server]\n".to_owned();
        let public = self.public_url();
        match self.way {
            Way::Below => {
                let _ = writeln!(
                    text,
                    "listen = \"127.0.0.1:{port}\"    # your web server comes here"
                );
                let _ = writeln!(
                    text,
                    "public_url = {}    # the address of the blog, as readers know it",
                    quoted(&public)
                );
                let _ = writeln!(
                    text,
                    "prefix = {}    # everfeed's own pages: /feeds and the hub are below it",
                    quoted(self.prefix())
                );
                text.push_str("trusted_proxies = [\"127.0.0.1/32\"]    # only your web server is believed when it says who asks\n");
            }
            Way::Front => {
                let _ = writeln!(
                    text,
                    "listen = \"127.0.0.1:{port}\"    # for readers without a web server before: \"0.0.0.0:80\""
                );
                let _ = writeln!(
                    text,
                    "public_url = {}    # the address of the blog, as readers know it",
                    quoted(&public)
                );
                text.push_str("# HTTPS without another web server: docs/owners/https.md\n");
            }
            Way::Beside => {
                let _ = writeln!(text, "listen = \"127.0.0.1:{port}\"");
                let _ = writeln!(
                    text,
                    "public_url = {}    # the address that readers use, such as https://feeds.example.org",
                    quoted(&public)
                );
                text.push_str("# trusted_proxies = [\"127.0.0.1/32\"]    # once a web server stands before everfeed\n");
            }
        }
        if self.site.port() == Some(8079) {
            text.push_str("admin_listen = \"127.0.0.1:8078\"    # the usual 8079 is the blog's\n");
        }
        text
    }

    fn site_table(&self) -> String {
        let mut text = "[[site]]\n".to_owned();
        if self.is_near {
            text.push_str("# host = \"blog.example.org\"    # the host that readers ask for; without it, every one\n");
        } else {
            let host = self.site.host_str().unwrap_or_default();
            let _ = writeln!(
                text,
                "host = {}    # the host that readers ask for",
                quoted(host)
            );
        }
        let _ = writeln!(
            text,
            "origin = {}    # the blog itself, not the web server before it",
            quoted(&self.origin())
        );
        let paths: Vec<String> = self.own_paths().iter().map(|path| quoted(path)).collect();
        if paths.is_empty() || self.way == Way::Front {
            text.push_str("# Without `feeds`, everfeed takes those that the front page names.\n");
        }
        if !paths.is_empty() {
            let _ = writeln!(
                text,
                "feeds = [{}]    # their paths at the blog",
                paths.join(", ")
            );
        }
        text
    }

    /// The paths of the feeds at the blog that may stand in a `[[site]]`.
    fn own_paths(&self) -> Vec<String> {
        let own = self.feeds.iter().filter(|feed| {
            feed.url.host() == self.site.host() && feed.url.port() == self.site.port()
        });
        let own = own.filter(|feed| self.way == Way::Front || location(&self.site, feed).is_some());
        let path = |feed: &BlogFeed| {
            feed.url[url::Position::BeforePath..url::Position::AfterQuery].to_owned()
        };
        let mut seen = BTreeSet::new();
        own.map(path)
            .filter(|path| seen.insert(path.clone()))
            .collect()
    }

    fn feed_tables(&self) -> String {
        let mut text = String::new();
        let (taken, others) = self.feeds.split_at(self.taken.min(self.feeds.len()));
        let mut names = BTreeSet::new();
        for feed in taken {
            let mut free = names_of(&feed.url, feed.title.as_deref());
            let name = free
                .find(|name| names.insert(name.clone()))
                .expect("there are names without end");
            let title = feed
                .title
                .as_deref()
                .map(|title| format!("    # {}", tame(title)));
            if names.len() > 1 {
                text.push('\n');
            }
            let _ = write!(
                text,
                "[[feed]]\nname = {}{}\nurl = {}\n",
                quoted(&name),
                title.unwrap_or_default(),
                quoted(feed.url.as_str())
            );
            if feed.url.host() != self.site.host() {
                text.push_str("public_hosts_only = true    # the page names this host\n");
            }
            if self.is_near && names.len() == 1 {
                text.push_str("# aliases = [\"https://blog.example.org/rss.xml\"]    # its public address: links are resolved against it\n");
            }
        }
        for feed in others {
            let shown = masked(feed.url.as_str());
            let _ = writeln!(
                text,
                "\n# The blog names another feed, too: {feed}\n# To keep it: everfeed add {}",
                tame(&shown)
            );
        }
        text
    }

    /// The lines that say what was written and what comes next.
    pub(super) fn next(&self, file: &Path) -> String {
        let shown = file.display();
        let mut told = format!(
            "Wrote {shown}: everfeed {}, because {}.\n",
            self.way.words(),
            self.why
        );
        if self.is_example {
            told.push_str("Put your own addresses into it.\n");
        } else if self.is_near && self.way == Way::Below {
            told.push_str(
                "Put the public address of the blog into `public_url`, and its host into `host`.\n",
            );
        } else if self.way == Way::Beside && !self.is_near {
            told.push_str("Put the address that readers shall use into `public_url`.\n");
        }
        if self.way == Way::Below {
            told.push_str(&match self.server {
                WebServer::Nginx => self.nginx(),
                WebServer::Apache => self.apache(),
                WebServer::Caddy => self.caddy(),
                WebServer::Unknown => self.unknown_server(),
            });
        }
        let with = if file == Path::new(crate::cli::DEFAULT_CONFIG) {
            String::new()
        } else {
            format!(" --config {}", shell_word(&shown.to_string()))
        };
        let _ = write!(told, "\nNext:\n  everfeed check{with}\n");
        if file == Path::new("/etc/everfeed.toml") {
            told.push_str("  systemctl enable --now everfeed\n");
        } else {
            let _ = writeln!(told, "  everfeed serve{with}");
        }
        told
    }

    /// The lines for nginx, as in docs/owners/ten-minutes.md.
    fn nginx(&self) -> String {
        let host = self.host();
        let mut text = format!(
            "\n# In nginx, in the `server` of {host}: the feed and everfeed's own pages.\n"
        );
        for path in self.own_paths() {
            let _ = writeln!(
                text,
                "location = {} {{ include snippets/everfeed.conf; }}",
                nginx_word(&path)
            );
        }
        let _ = writeln!(
            text,
            "location ^~ {}/ {{ include snippets/everfeed.conf; }}",
            self.prefix()
        );
        if self.origin.is_none() {
            let _ = write!(
                text,
                "\n# A second `server`, which only this machine can reach. everfeed reads your feed here.\n\
                 server {{\n    listen 127.0.0.1:8081;\n    server_name {host};\n    root /var/www/blog;          # the same folder as today\n}}\n\
                 # A blog that is an application has the lines of its application here: docs/owners/nginx-application.md.\n"
            );
        }
        if self.port() != PORTS[0] {
            let _ = writeln!(
                text,
                "# snippets/everfeed.conf names port {}: write {} there.",
                PORTS[0],
                self.port()
            );
        }
        text
    }

    /// The lines for Apache, as in docs/owners/apache.md.
    fn apache(&self) -> String {
        let mut text = format!(
            "\n# In Apache, in the `VirtualHost` of {}: the feed and everfeed's own pages. It needs the modules proxy, proxy_http and headers.\n\
             ProxyPreserveHost On\n\
             RequestHeader set X-Forwarded-Proto \"expr=%{{REQUEST_SCHEME}}\"\n",
            self.host()
        );
        let port = self.port();
        for path in self.own_paths() {
            let _ = writeln!(
                text,
                "ProxyPassMatch \"^({})$\" \"http://127.0.0.1:{port}$1\" timeout=330 ttl=20",
                escaped(&path)
            );
        }
        let prefix = self.prefix();
        let _ = writeln!(
            text,
            "ProxyPass \"{prefix}/\" \"http://127.0.0.1:{port}{prefix}/\" timeout=330 ttl=20"
        );
        text.push_str(&self.second_server("apache-files.md"));
        text
    }

    /// The lines for Caddy, as in docs/owners/caddy.md.
    fn caddy(&self) -> String {
        let paths = self.own_paths().join(" ");
        let (prefix, port) = (self.prefix(), self.port());
        let mut text = format!(
            "\n# In Caddy, in the block of {}: the feed and everfeed's own pages.\n\
             @everfeed path {paths} {prefix}/*\n\
             handle @everfeed {{\n    reverse_proxy 127.0.0.1:{port} {{\n        header_up -Forwarded\n        header_up -X-Real-IP\n\
             \x20       transport http {{\n            keepalive 20s\n        }}\n    }}\n}}\n",
            self.host()
        );
        text.push_str(&self.second_server("caddy-files.md"));
        text
    }

    /// Words where nobody can tell which web server there is.
    fn unknown_server(&self) -> String {
        format!(
            "\neverfeed cannot tell which web server answers for {}. These pages have its lines: docs/owners/nginx-files.md,\n\
             nginx-application.md, apache-files.md, apache.md, caddy-files.md, caddy.md, haproxy.md and traefik.md. Pass on {} and {}/ to 127.0.0.1:{}.\n",
            self.host(),
            self.own_paths().join(", "),
            self.prefix(),
            self.port()
        )
    }

    /// The hint at the address by which everfeed reads the blog itself.
    fn second_server(&self, page: &str) -> String {
        if self.origin.is_some() {
            return String::new();
        }
        format!(
            "# everfeed reads your feed at an address that only this machine can reach: docs/owners/{page}.\n"
        )
    }

    /// The public host of the blog.
    fn host(&self) -> &str {
        if self.is_near {
            "blog.example.org"
        } else {
            self.site.host_str().unwrap_or_default()
        }
    }

    /// The port of everfeed: another one than the blog's.
    fn port(&self) -> u16 {
        let is_taken = self.is_near && self.site.port() == Some(PORTS[0]);
        PORTS[usize::from(is_taken)]
    }

    fn public_url(&self) -> String {
        let local = format!("http://127.0.0.1:{}", self.port());
        match self.way {
            Way::Beside => local,
            Way::Front if self.is_near => local,
            Way::Below if self.is_near => "https://blog.example.org".to_owned(),
            Way::Below | Way::Front => self.site.origin().ascii_serialization(),
        }
    }

    fn origin(&self) -> String {
        let origin = self.origin.as_ref();
        origin.map_or_else(
            || "http://127.0.0.1:8081".to_owned(),
            |url| url.origin().ascii_serialization(),
        )
    }

    /// The prefix: one below which the blog has no feed.
    fn prefix(&self) -> &'static str {
        let has = |prefix: &str| {
            self.feeds
                .iter()
                .any(|feed| feed.url.path().starts_with(prefix))
        };
        if has("/smart") { "/everfeed" } else { "/smart" }
    }
}

impl Way {
    fn words(self) -> &'static str {
        match self {
            Self::Below => "stands below your web server",
            Self::Front => "stands in front of the blog",
            Self::Beside => "stands beside the blog",
        }
    }
}

/// A text as a value of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A word of a shell.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A path as a regular expression.
fn escaped(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for c in path.chars() {
        if !c.is_ascii_alphanumeric() && !matches!(c, '/' | '-' | '_' | '%' | '~') && c.is_ascii() {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A path as a word of nginx, which compares decoded ones.
fn nginx_word(path: &str) -> String {
    let path = percent_decode_str(path).decode_utf8_lossy();
    let path = tame(&path);
    let is_plain = |c: char| c.is_alphanumeric() || "/._-~+=@".contains(c);
    if path.chars().all(is_plain) {
        path
    } else {
        format!("\"{}\"", path.replace('\\', r"\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn draft(way: Way, site: &str, feeds: &[&str]) -> Draft {
        let site = Url::parse(site).unwrap();
        let feeds = feeds.iter().map(|path| BlogFeed {
            url: site.join(path).unwrap(),
            title: Some("A \"blog\"\u{7}".to_owned()),
            ..Draft::example(way, PathBuf::new()).feeds[0].clone()
        });
        Draft {
            feeds: feeds.collect(),
            is_near: crate::app::ping::is_near(&site),
            origin: None,
            site,
            is_example: false,
            ..Draft::example(way, PathBuf::from("everfeed.redb"))
        }
    }

    #[test]
    fn every_way_writes_a_configuration_that_can_be_meant() {
        for way in [Way::Below, Way::Front, Way::Beside] {
            for site in [
                "https://blog.example.org/",
                "http://e.org:8000/blog/",
                "http://127.0.0.1:8080/",
                "http://[::1]:8079/",
            ] {
                for feeds in [
                    &["/rss.xml"][..],
                    &["/a b.xml", "/?feed=rss2", "/smart/x", "/ä\"{}.xml"],
                    &["https://other.example/f"],
                ] {
                    let mut draft = draft(way, site, feeds);
                    draft.origin = draft.is_near.then(|| draft.site.join("/").unwrap());
                    let text = draft.text();
                    let read = Config::parse("x", &text);
                    assert!(read.is_ok(), "{text}\n{read:?}");
                }
            }
            let text = Draft::example(way, PathBuf::from("everfeed.redb")).text();
            assert!(Config::parse("x", &text).is_ok(), "{text}");
        }
    }

    #[test]
    fn below_has_the_lines_of_the_web_server_that_answers() {
        let told = |server: &str| {
            let draft = Draft {
                server: WebServer::named(server),
                ..Draft::example(Way::Below, PathBuf::from("everfeed.redb"))
            };
            draft.next(Path::new("everfeed.toml"))
        };
        assert!(told("nginx/1.22.1").contains("location = /rss.xml {"));
        let apache = told("Apache/2.4.57 (Debian)");
        assert_eq!(told("LiteSpeed"), apache, "it reads Apache's files");
        for line in [
            r#"ProxyPassMatch "^(/rss\.xml)$" "http://127.0.0.1:8080$1" timeout=330 ttl=20"#,
            "ProxyPreserveHost On",
        ] {
            assert!(apache.contains(line), "{line} in {apache}");
        }
        let caddy = told("Caddy");
        assert!(
            caddy.contains("@everfeed path /rss.xml")
                && caddy.contains("reverse_proxy 127.0.0.1:8080 {")
        );
        for server in ["cloudflare", "", "Microsoft-IIS/10.0"] {
            let told = told(server);
            assert!(
                told.contains("cannot tell which web server") && !told.contains("location ="),
                "{server}"
            );
        }
    }

    #[test]
    fn below_has_the_lines_for_nginx_of_the_book() {
        let draft = draft(
            Way::Below,
            "https://blog.example.org/",
            &["/rss.xml", "/rss.xml", "/a%20b", "/?feed=rss2"],
        );
        let told = draft.next(Path::new("/etc/everfeed.toml"));
        let book = include_str!("../../../docs/owners/ten-minutes.md");
        for line in book
            .split("```nginx\n")
            .skip(1)
            .flat_map(|block| block.split("\n```").next().unwrap().lines())
        {
            assert!(
                told.contains(line.trim_start_matches("# In the ")),
                "{line}\n{told}"
            );
        }
        assert!(
            told.contains("location = \"/a b\" {") && !told.contains("feed=rss2"),
            "{told}"
        );
        assert_eq!(told.matches("location = /rss.xml").count(), 1);
        assert!(
            draft.text().contains("feeds = [\"/rss.xml\", \"/a%20b\"]"),
            "{}",
            draft.text()
        );
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them() {
        assert_eq!(shell_word("/etc/everfeed.toml"), "/etc/everfeed.toml");
        assert_eq!(shell_word("my file's"), r"'my file'\''s'");
    }
}
