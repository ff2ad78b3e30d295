//! Every mistake names the file, the key, what was found and what would do.

use super::*;
use crate::secret::public_url;

mod included;

const GOOD: &str = "[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:8081/rss.xml\"\n";

fn error(text: &str) -> String {
    Config::parse("ever.toml", text).unwrap_err().to_string()
}

fn with(environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let pairs = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::from_text(Path::new("ever.toml"), GOOD, &[], pairs, |_| Vec::new())
}

/// The first block of TOML below a heading of a page.
fn toml_below<'page>(heading: &str, page: &'page str) -> &'page str {
    let (_, below) = page
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading:?}"));
    below
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap_or_else(|| panic!("no block of TOML below {heading:?}"))
}

#[test]
fn the_examples_of_readme_and_book_are_good() {
    let readme = include_str!("../../README.md");
    let example = toml_below("## Five lines to a running feed", readme);
    let config = Config::parse("README.md", example).unwrap();
    assert_eq!(config.feed[0].name, "blog");
    assert!(
        config
            .summary(Path::new("x"))
            .contains("127.0.0.1:8081/rss.xml")
    );
    let ways = include_str!("../../docs/owners/ways.md");
    for (heading, sites, feeds) in [
        ("## Below", 1, 1),
        ("## In front", 1, 0),
        ("## Beside", 0, 1),
    ] {
        let config = Config::parse("ways.md", toml_below(heading, ways)).unwrap();
        assert_eq!((config.site.len(), config.feed.len()), (sites, feeds));
        assert_eq!(config.warnings(), [""; 0], "{heading}");
    }
}

#[test]
fn the_configurations_for_deployment_are_good_and_without_a_warning() {
    let compose =
        Config::parse("everfeed.toml", include_str!("../../deploy/everfeed.toml")).unwrap();
    assert_eq!(compose.warnings(), [""; 0]);
    let behind = include_str!("../../deploy/behind/everfeed.toml");
    assert_eq!(
        Config::parse("everfeed.toml", behind).unwrap().warnings(),
        [""; 0]
    );
    let example = Config::parse(
        "everfeed.toml",
        include_str!("../../examples/everfeed.toml"),
    )
    .unwrap();
    assert_eq!(example.warnings(), [""; 0]);
}

#[test]
fn every_key_has_values_that_would_do_and_so_has_what_stands_below_it() {
    let check = |line: &str, parts: &[&str]| {
        let error = error(&format!("{GOOD}{line}\n"));
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
        assert!(!error.contains("another kind"), "{error}");
    };
    let rule = "{ access = \"public\", filter = \"\" }";
    check(
        &format!("show = [{}]", rule.replace("\"public\"", "\"bob\"")),
        &["show[0].access", "\"bob\"", "\"private\""],
    );
    check(
        &format!("show = [{rule}, {}]", rule.replace("\"\"", "5")),
        &["show[1].filter", "found 5", "a filter"],
    );
    check(
        &format!("show = [{}]", rule.replace("access", "acess")),
        &["show[0]", "access"],
    );
    check("show = [5]", &["show[0]", "found 5", "rules"]);
    check("show = 5", &["show", "found 5", "rules"]);
    check(
        "categories = [5]",
        &["categories[0]", "found 5", "a list of names"],
    );
    check("poll = { min_secs = \"x\" }", &["poll.min_secs", "seconds"]);
    check(
        "deletions = { confirmations = \"x\" }",
        &["deletions.confirmations", "a whole number"],
    );
}

#[test]
fn a_mistake_names_the_file_the_key_what_was_found_and_what_would_do() {
    let check = |text: &str, parts: &[&str]| {
        let error = error(text);
        for part in parts.iter().chain(&["ever.toml"]) {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    };
    check(
        &format!("[server]\nlisten = \"nonsense\"\n{GOOD}"),
        &["server.listen", "\"nonsense\"", "127.0.0.1:8080"],
    );
    check(
        &format!("[server]\nlisten = 80\n{GOOD}"),
        &["server.listen", "found 80"],
    );
    check(
        &format!("[server]\nlissten = \"127.0.0.1:1\"\n{GOOD}"),
        &["server", "lissten", "listen"],
    );
    check(
        &format!("[hub]\nlease_min_secs = \"x\"\n{GOOD}"),
        &["hub.lease_min_secs", "\"x\"", "seconds"],
    );
    check(
        &format!("[hub]\nlease_max_secs = 1\n{GOOD}"),
        &["hub.lease_max_secs", "found 1;"],
    );
    check(&format!("[sever]\n{GOOD}"), &["sever", "server"]);
    check("", &["feed", "at least one"]);
    check("[[feed]]\nname = \"blog\"\n", &["feed", "url"]);
    check(
        "[[feed]]\nname = \"Blog\"\nurl = \"http://x/\"\n",
        &["feed.name", "\"Blog\"", "lower-case"],
    );
    check(
        "[[feed]]\nname = \"blog\"\nurl = \"x\"\n",
        &["feed.blog.url", "\"x\"", "absolute URL"],
    );
    check(
        "[[feed]]\nname = \"blog\"\nurl = \"ftp://x/\"\n",
        &["feed.blog.url", "\"ftp://x/\"", "http"],
    );
    check(
        &format!("{GOOD}aliases = [\"x\"]\n"),
        &["feed.blog.aliases", "\"x\"", "absolute URLs"],
    );
    check(
        &format!("{GOOD}aliases = [\"ftp://x/\"]\n"),
        &["feed.blog.aliases", "\"ftp://x/\"", "http"],
    );
    check(
        &format!("{GOOD}aliases = [\"https://u:hunter2@x/\"]\n"),
        &["feed.blog.aliases", "***@x"],
    );
    check(
        &format!("{GOOD}format = \"rss\"\n"),
        &["feed.blog.format", "\"rss\"", "resource"],
    );
    check(
        &format!("{GOOD}access = \"secret\"\n"),
        &["feed.blog.access", "\"secret\"", "\"private\""],
    );
    check(
        &format!("{GOOD}access = true\n"),
        &["feed.blog.access", "found true", "\"private\""],
    );
    check(
        &format!("{GOOD}access = []\n"),
        &["feed.blog.access", "no user", "\"private\""],
    );
    check(
        &format!("{GOOD}access = [\"a b\"]\n"),
        &["feed.blog.access", "\"a b\"", "alice"],
    );
    check(
        &format!("{GOOD}poll = {{ min_secs = 0 }}\n"),
        &["feed.blog.poll.min_secs", "found 0", "at least 1"],
    );
    check(
        &format!("{GOOD}poll = {{ min = 5 }}\n"),
        &["feed.blog.poll", "min_secs"],
    );
    check(
        &format!("{GOOD}record = {{ folder = \"x\", bodies = 0 }}\n"),
        &["feed.blog.record.bodies", "found 0", "leave `record` out"],
    );
    check(
        &format!("{GOOD}[feed.record]\nbodies = 5\n"),
        &["feed", "record", "folder"],
    );
    check(
        &format!("{GOOD}deletions = {{ confirmations = 1 }}\n"),
        &["feed.blog.deletions.confirmations", "unsafe"],
    );
    check(
        &format!("{GOOD}{GOOD}"),
        &["feed.name", "\"blog\"", "second"],
    );
    let twin = GOOD.replace("blog", "twin").replace("http:", "https:");
    check(
        &format!("{GOOD}{twin}"),
        &["feed.twin.url", "`blog`", "id_namespace"],
    );
    let twin = GOOD
        .replace("blog", "twin")
        .replace("/rss.xml", "/other.xml");
    check(
        &format!("{GOOD}{twin}id_namespace = \"127.0.0.1:8081/rss.xml\"\n"),
        &["feed.twin.id_namespace", "`blog`", "give another, or none"],
    );
    check(
        &format!("[server]\nprefix = \"/../x\"\n{GOOD}"),
        &["server.prefix", "\"/../x\""],
    );
    check(
        &format!("[server]\nprefix = \"//x\"\n{GOOD}"),
        &["server.prefix", "\"//x\""],
    );
    check(
        &format!("[server]\nlisten = \"0.0.0.0:8079\"\n{GOOD}"),
        &["server.admin_listen", "another"],
    );
    check(
        &format!("[upstream]\ncontact_url = \"https://u:hunter2@x/\"\n{GOOD}"),
        &["upstream.contact_url", "***@x"],
    );
    check("[[feed]\nname", &["line 1", "[[feed]"]);
    check(
        &format!("[server]\npublic_url = \"http://u:p@x/\"\n{GOOD}"),
        &["server.public_url", "***"],
    );
    for former in [
        "ftp://x/",
        "http://x/?a",
        "http://u:hunter2@x/",
        "http://127.0.0.1:8080/",
    ] {
        let text = format!("[server]\nformer_public_urls = [\"{former}\"]\n{GOOD}");
        check(&text, &["server.former_public_urls", "at most 16"]);
        assert!(!error(&text).contains("hunter2"));
    }
    check(
        &format!("[server]\nadmin_listen = \"127.0.0.1:8080\"\n{GOOD}"),
        &["server.admin_listen", "another"],
    );
}

#[test]
fn a_folder_of_profiles_is_read_at_the_start_and_a_bad_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let config = |platform: &str| {
        let text = format!(
            "{GOOD}platform = \"{platform}\"\n[platforms]\nfolder = {:?}\n",
            folder.path()
        );
        Config::parse("ever.toml", &text).map_err(|error| error.to_string())
    };
    write("README.md", "no profile");
    let good = "title = \"Mine\"\nsources = [\"me\"]\n[[detect]]\ngenerator = \"^Mine\"\nwhy = \"it says so\"\n";
    write("mine.toml", good);
    let known = config("mine").unwrap().platforms.profiles();
    assert_eq!(known.get("mine").unwrap().title, "Mine");
    assert!(known.get("wordpress").is_some());
    let error = config("yours").unwrap_err();
    assert!(
        error.contains("feed.blog.platform") && error.contains("\"yours\""),
        "{error}"
    );
    assert!(
        error.contains("auto, none") && error.contains("wordpress"),
        "{error}"
    );

    write("wordpress.toml", &format!("colour = 1\n{good}"));
    let error = config("auto").unwrap_err();
    for part in [
        "ever.toml",
        "platforms.folder",
        "wordpress.toml",
        "colour",
        "window",
    ] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    std::fs::remove_file(folder.path().join("wordpress.toml")).unwrap();
    write("wordpress.TOML", good);
    assert!(
        config("auto")
            .unwrap_err()
            .contains("name it after the platform")
    );
    let nowhere = Config::parse(
        "ever.toml",
        &format!("{GOOD}[platforms]\nfolder = \"/nowhere\"\n"),
    );
    assert!(
        nowhere
            .unwrap_err()
            .to_string()
            .contains("give a folder of profiles")
    );
}

#[test]
fn all_that_cannot_be_meant_is_told_at_once() {
    let text = "[hub]\npush_items_max = 0\n[server]\nwaiters_max = 0\n[[feed]]\nname = \"-\"\nurl = \"http://x/\"\n";
    assert_eq!(error(text).lines().count(), 3);
}

/// The beginnings of all lines of an error, without the file.
fn told(text: &str, begin: &[&str]) {
    let error = error(text);
    let lines: Vec<&str> = error
        .lines()
        .map(|line| line.strip_prefix("ever.toml: ").unwrap_or(line))
        .collect();
    assert_eq!(lines.len(), begin.len(), "{error}");
    for (line, begin) in lines.iter().zip(begin) {
        assert!(
            line.starts_with(begin),
            "`{line}` does not begin with `{begin}` in:\n{error}"
        );
    }
    let rust = [
        "u64",
        "u32",
        "i64",
        "usize",
        "u16",
        "bool",
        "SocketAddr",
        "struct",
        "field",
        "variant",
        "enum",
        "expected socket",
    ];
    for word in rust {
        assert!(!error.contains(word), "`{word}` is a word of Rust: {error}");
    }
}

#[test]
fn every_mistake_of_every_kind_is_told_at_once_with_its_line() {
    let text = r#"[server]
listen = 80
lissten = "127.0.0.1:1"
waiters_max = "many"
page_items_max = 0
shutdown_secs = -1

[hub]
lease_min_secs = "x"
push_items_max = 0
deliver_secs = 0
callbacks_private = "yes"

[sever]
listen = "x"

[[feed]]
name = "Blog"
url = "x"
aliases = ["https://good.example/", "bad", 5]
poll = { min = 5, max_secs = 0 }
deletions = { confirmations = 1, weak_confirmations = "two" }

[[feed]]
name = "b"
format = "rss"
pol = { min_secs = 1 }
record = { bodies = 0 }
"#;
    told(
        text,
        &[
            "line 2: server.listen: found 80; give an address",
            "line 3: server.lissten: found an unknown key; did you mean `listen`?",
            "line 4: server.waiters_max: found \"many\"; give a whole number",
            "line 5: server.page_items_max: found 0; give",
            "line 6: server.shutdown_secs: found -1; give a whole number of seconds",
            "line 9: hub.lease_min_secs: found \"x\"; give a whole number of seconds",
            "line 10: hub.push_items_max: found 0;",
            "line 11: hub.deliver_secs: found 0;",
            "line 12: hub.callbacks_private: found \"yes\"; give true or false",
            "line 14: sever: found an unknown key; did you mean `server`?",
            "line 18: feed.name: found \"Blog\"; give lower-case letters",
            "line 19: feed.Blog.url: found \"x\"; give an absolute URL",
            "line 20: feed.Blog.aliases[1]: found \"bad\"; give",
            "line 20: feed.Blog.aliases[2]: found 5; give",
            "line 21: feed.Blog.poll.min: found an unknown key; did you mean `min_secs`?",
            "line 21: feed.Blog.poll.max_secs: found 0; give",
            "line 22: feed.Blog.deletions.weak_confirmations: found \"two\"; give a whole number",
            "line 22: feed.Blog.deletions.confirmations: found 1, and fewer",
            "line 24: feed.b.url: found nothing; give an absolute URL",
            "line 26: feed.b.format: found \"rss\"; give \"auto\"",
            "line 27: feed.b.pol: found an unknown key; did you mean `poll`?",
            "line 28: feed.b.record.folder: found nothing; give the path",
            "line 28: feed.b.record.bodies: found 0; give",
        ],
    );
}

#[test]
fn lines_that_are_no_toml_do_not_hide_the_other_mistakes() {
    let text = "[server]\nlisten = \npublic_url = \"nowhere\"\nlisten = \"127.0.0.1:1\"\n[hub\n\n\
                [[feed]]\nname = \"blog\"\nurl = \"ftp://x/\"\ncolour = 3\n";
    let error = error(text);
    for part in [
        "line 2: ",
        "line 3: server.public_url",
        "line 5: ",
        "line 9: feed.blog.url",
        "line 10: feed.blog.colour",
    ] {
        assert!(error.contains(part), "`{part}` is not in:\n{error}");
    }
    assert!(
        !error.contains("no feed") && !error.contains("found nothing"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 6, "no line is told twice:\n{error}");
}

#[test]
fn tables_in_the_wrong_shape_and_numbers_out_of_range_are_told() {
    told(
        "server = 3\n[feed]\nname = \"a\"\nurl = \"ftp://x/\"\n",
        &[
            "line 1: server: found 3; give a table",
            "line 2: feed: found a single table; write [[feed]]",
            "line 4: feed.a.url: found \"ftp://x/\"; give",
        ],
    );
    told("feed = 3\n", &["line 1: feed: found 3; give one [[feed]]"]);
    told(
        &format!("[hub]\nlease_max_secs = 99999999999999999999\n{GOOD}"),
        &["line 2: hub.lease_max_secs: found 99999999999999999999; "],
    );
    told(
        &format!("{GOOD}poll = 5\n"),
        &["line 4: feed.blog.poll: found 5; give a table"],
    );
    told(
        &format!("[server.listen]\nx = 1\n{GOOD}"),
        &["line 1: server.listen: found a table; give an address"],
    );
    told(
        &format!("[[server]]\nlisten = \"127.0.0.1:1\"\n{GOOD}"),
        &["line 1: server: found a list; give a table"],
    );
}

#[test]
fn a_value_is_not_judged_by_one_that_is_refused_itself() {
    told(
        &format!("[server]\nlisten = 1\nadmin_listen = \"127.0.0.1:8080\"\n{GOOD}"),
        &["line 2: server.listen"],
    );
    told(
        &format!("{GOOD}poll = {{ min_secs = 90000, max_secs = \"x\" }}\n"),
        &["line 4: feed.blog.poll.max_secs"],
    );
    told(
        "[[feed]]\nname = \"a\"\n[[feed]]\nname = \"b\"\n",
        &["line 1: feed.a.url", "line 3: feed.b.url"],
    );
}

#[test]
fn a_mistake_of_the_environment_names_the_variable() {
    let refused = with(&[
        ("EVERFEED__SERVER__LISTEN", "here"),
        ("EVERFEED__SERVER__PREFIKS", "/x"),
        ("EVERFEED__FEED__blog__POLL__MAX_SECS", "soon"),
        ("EVERFEED__FEED__other__URL", "http://x/"),
    ]);
    let error = refused.unwrap_err().to_string();
    for part in [
        "server.listen (by EVERFEED__SERVER__LISTEN): found \"here\"; give an address",
        "server.prefiks (by EVERFEED__SERVER__PREFIKS): found an unknown key; did you mean `prefix`?",
        "feed.blog.poll.max_secs (by EVERFEED__FEED__blog__POLL__MAX_SECS): found \"soon\"",
        "environment EVERFEED__FEED__other__URL: found a variable",
    ] {
        assert!(error.contains(part), "`{part}` is not in:\n{error}");
    }
    assert_eq!(error.lines().count(), 4);
}

#[test]
fn every_key_has_words_for_what_would_do() {
    for key in key_table::keys() {
        let remedy = key_table::give(key);
        assert!(!remedy.contains("another kind"), "{key}");
        assert!(!remedy.contains("give give"), "{remedy}");
    }
    assert_eq!(
        key_table::give("feed.access"),
        crate::auth::access::ACCESS_WANTED
    );
}

#[test]
fn a_server_in_front_that_is_not_told_is_warned_of_where_passwords_are_taken() {
    let is_warned = |server: &str, access: &str| {
        let text = format!(
            "[server]\npublic_url = \"https://feeds.example.org\"\n{server}\n[[feed]]\nname = \"a\"\nurl = \"http://x.example/\"\n\
             access = \"{access}\"\n"
        );
        let warnings = Config::parse("x", &text)
            .unwrap_or_else(|error| panic!("{error}"))
            .warnings();
        warnings.iter().any(|line| {
            line.starts_with("server.trusted_proxies: empty") && line.contains("127.0.0.1/32")
        })
    };
    for hidden in [
        "",
        "listen = \"[::1]:8080\"",
        "listen = [\"127.0.0.1:80\", \"unix:/run/x.sock\"]",
    ] {
        assert!(is_warned(hidden, "private"), "{hidden}");
        assert!(!is_warned(hidden, "public"), "{hidden}");
    }
    for told in [
        "trusted_proxies = [\"127.0.0.1/32\"]",
        "listen = \"0.0.0.0:8080\"",
        "listen = [\"127.0.0.1:80\", \"192.0.2.1:80\"]",
        "listen = \"systemd\"",
    ] {
        assert!(!is_warned(told, "private"), "{told}");
    }
}

#[test]
fn credentials_in_the_public_url_are_a_mistake_that_does_not_repeat_them() {
    for url in [
        "http://u:hunter2@x/",
        "http://:hunter2@x/",
        "https://hunter2@x/",
    ] {
        let error = error(&format!("[server]\npublic_url = \"{url}\"\n{GOOD}"));
        assert!(
            error.contains("line 2: server.public_url") && error.contains("credentials"),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

/// The warnings of a configuration.
fn warnings_of(text: &str) -> String {
    Config::parse("x", text).unwrap().warnings().join("\n")
}

#[test]
fn what_is_allowed_but_risky_is_warned_of() {
    let check = |text: &str, begin: &[&str]| {
        let warnings = Config::parse("x", text).unwrap().warnings();
        assert_eq!(warnings.len(), begin.len(), "{warnings:#?}");
        for (warning, begin) in warnings.iter().zip(begin) {
            assert!(
                warning.starts_with(begin),
                "`{warning}` does not begin with `{begin}`"
            );
        }
    };
    let feed =
        |url: &str, more: &str| format!("[[feed]]\nname = \"blog\"\nurl = \"{url}\"\n{more}");
    let far = feed("https://blog.example/rss", "");
    check(&far, &[]);
    for admin in ["0.0.0.0:9", "[::]:9", "192.168.1.5:9"] {
        check(
            &format!("[server]\nadmin_listen = \"{admin}\"\n{far}"),
            &["server.admin_listen: "],
        );
    }
    check(&format!("[server]\nadmin_listen = \"[::1]:9\"\n{far}"), &[]);
    let tiny = feed(
        "https://blog.example/rss",
        "poll = { min_secs = 10, max_secs = 899 }",
    );
    check(
        &tiny,
        &["feed.blog.poll.min_secs: ", "feed.blog.poll.max_secs: "],
    );
    check(
        &format!("{far}[upstream]\npermalink_check_gap_secs = 1\n"),
        &["upstream.permalink_check_gap_secs: "],
    );
    let shown = |rules: &str, access: &str| {
        warnings_of(&feed(
            "https://blog.example/rss",
            &format!("show = [{rules}]\naccess = {access}\n"),
        ))
    };
    let rule = |access: &str| format!("{{ access = {access}, filter = \"q=a\" }}");
    let [everybody, users, alice] = ["\"public\"", "\"private\"", "[\"alice\"]"].map(rule);
    assert_eq!(
        shown(
            &[alice.clone(), users.clone(), everybody.clone()].join(", "),
            "\"public\""
        ),
        ""
    );
    let told = shown(&[alice.clone(), everybody, users].join(", "), "\"public\"");
    assert!(
        told.starts_with(
            "feed.blog.show[2]: no reader gets to this rule, because feed.blog.show[1]"
        ),
        "{told}"
    );
    let told = shown(&alice, "[\"bob\"]");
    assert!(
        told.starts_with("feed.blog.show[0]: the readers of this rule may not read the feed"),
        "{told}"
    );
    let public = "[server]\npublic_url = \"https://feeds.example/smart\"\n";
    check(
        &format!("{public}prefix = \"/smart\"\n{far}"),
        &["server.prefix: "],
    );
    check(&format!("{public}prefix = \"/other\"\n{far}"), &[]);
    for us in [
        "https://feeds.example/smart/feeds/a.atom",
        "http://FEEDS.example./smart/feeds/a.atom",
        "http://127.0.0.1:8080/rss",
        "http://localhost:8080/feeds/a",
    ] {
        let text = format!("{public}{}", feed(us, ""));
        let refused = Config::parse("x", &text).unwrap_err().to_string();
        assert!(refused.contains("feed.blog.url: found"), "{refused}");
        assert!(
            refused.contains("everfeed itself answers there"),
            "{refused}"
        );
    }
    check(
        &format!("{public}{}", feed("https://feeds.example/feeds/a.atom", "")),
        &[],
    );
    let site = "[server]\npublic_url = \"https://blog.example/\"\n[[site]]\norigin = \"http://127.0.0.1:81/\"\n";
    for through_us in ["https://blog.example/rss", "https://blog.example./rss?x=1"] {
        check(
            &format!("{site}{}", feed(through_us, "")),
            &["feed.blog.url: https://blog.example/rss leads to everfeed itself"],
        );
    }
    check(
        &format!("{site}{}", feed("https://other.example/rss", "")),
        &[],
    );
    let sites = |access: &str, port: u16| {
        let one = format!(
            "[[site]]\nhost = \"one.example\"\norigin = \"http://127.0.0.1:81/\"\naccess = {access}\n"
        );
        format!("{one}[[site]]\nhost = \"two.example\"\norigin = \"http://127.0.0.1:{port}/\"\n")
    };
    check(&sites("\"public\"", 81), &[]);
    check(&sites("[\"alice\"]", 82), &[]);
    check(
        &sites("[\"alice\"]", 81),
        &["site[0].access: the site two.example has the same origin"],
    );
    for near in [
        "http://127.0.0.1:81/rss",
        "http://10.1.2.3/rss",
        "http://blog/rss",
        "http://[::1]/rss",
        "http://[fd00::1]/rss",
    ] {
        check(&feed(near, ""), &["feed.blog.aliases: missing"]);
        check(&feed(near, "aliases = [\"https://blog.example/rss\"]"), &[]);
    }
    let unsafe_one = feed("https://blog.example/rss", "deletions = { apart_secs = 5 }");
    check(&unsafe_one, &["feed.blog: `deletions.apart_secs` is 5"]);
}

#[test]
fn a_configuration_of_many_feeds_is_read_and_its_mistakes_are_found_in_good_time() {
    const FEEDS: usize = 20_000;
    let feed = |n: usize| format!("[[feed]]\nname = \"feed-{n}\"\nurl = \"http://x/{n}\"\n");
    let good: String = (0..FEEDS).map(feed).collect();
    assert_eq!(Config::parse("x", &good).unwrap().feed.len(), FEEDS);
    let bad = good.replace("http://", "ftp://");
    let refused = Config::parse("x", &bad).unwrap_err();
    assert_eq!(refused.problems.len(), FEEDS);
    let told = refused.to_string();
    assert!(told.lines().count() < 1100 && told.ends_with("and 19000 more mistakes"));
}

#[test]
fn a_file_that_is_not_there_is_said_to_be_missing() {
    let error = Config::load(Path::new("/nowhere/ever.toml"), [])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/nowhere/ever.toml") && error.contains("--config"),
        "{error}"
    );
}

#[test]
fn a_store_that_cannot_be_where_it_is_said_to_be_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let check = |path: &Path, part: &str| {
        let file = folder.path().join("ever.toml");
        std::fs::write(
            &file,
            format!("[store]\npath = {:?}\n{GOOD}", path.display().to_string()),
        )
        .unwrap();
        let error = Config::load(&file, []).unwrap_err().to_string();
        assert!(
            error.contains("store.path") && error.contains(part),
            "{error}"
        );
    };
    check(
        &folder.path().join("missing/everfeed.redb"),
        "Make the folder",
    );
    check(folder.path(), "a folder");
}

#[test]
fn the_environment_overrides_the_file() {
    let config = with(&[
        ("EVERFEED__SERVER__LISTEN", "127.0.0.1:9"),
        ("EVERFEED__FEED__blog__URL", "http://example.org/feed"),
        (
            "EVERFEED__FEED__blog__POLL",
            "{ min_secs = 5, max_secs = 9 }",
        ),
        ("EVERFEED__HUB__CALLBACKS_PRIVATE", "true"),
        ("PATH", "/bin"),
    ])
    .unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:9");
    assert_eq!(config.feed[0].url.as_str(), "http://example.org/feed");
    assert_eq!(config.feed[0].poll.policy().min_secs, Some(5));
    assert!(config.hub.callbacks_private);
    for name in [
        "EVERFEED__FEED__other__URL",
        "EVERFEED__SERVER__LISSTEN",
        "EVERFEED__FEED",
    ] {
        assert!(with(&[(name, "x")]).is_err(), "{name}");
    }
}

#[test]
fn credentials_are_never_shown() {
    let text = "[[feed]]\nname = \"blog\"\nurl = \"http://cal:hunter2@example.org/rss\"\n";
    let config = Config::parse("x", text).unwrap();
    let summary = config.summary(Path::new("x"));
    assert!(
        summary.contains("***@example.org") && !summary.contains("hunter2"),
        "{summary}"
    );
    for url in [
        "\"http://cal:hunter2@\"",
        "\"cal:hunter2@example.org/rss\"",
        "http://cal:hunter2@example.org/rss",
        "\"http://cal:hunter2@example.org/rss",
        "\"http://cal:hunter2\\@example.org/rss\"",
        "\"http://x/\"\nurl = \"http://cal:hunter2@example.org/\"",
    ] {
        let broken = error(&format!("[[feed]]\nname = \"blog\"\nurl = {url}\n"));
        assert!(!broken.contains("hunter2"), "{broken}");
    }
    assert_eq!(public_url(&config.feed[0].url), "http://example.org/rss");
    assert_eq!(
        public_url(&Url::parse("http://x/rss?token=t0ken").unwrap()),
        "http://x/rss"
    );
    assert_eq!(config.feed[0].namespace(), "example.org/rss");
}

#[test]
fn the_address_of_the_operator_is_found_in_a_file_that_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ever.toml");
    let address = |text: &str, environment: &[(&str, &str)]| {
        std::fs::write(&file, text).unwrap();
        let pairs = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::admin_contact(&file, pairs).0.to_string()
    };
    assert_eq!(
        address(
            "colour = 1\n[server]\nadmin_listen = \"127.0.0.1:9\"\nlisten = 3\n",
            &[]
        ),
        "127.0.0.1:9"
    );
    assert_eq!(address("[server\n", &[]), "127.0.0.1:8079");
    let by_environment = [
        ("EVERFEED__SERVER__ADMIN_LISTEN", "127.0.0.1:7"),
        ("EVERFEED__FEED__gone__URL", "http://x/"),
    ];
    assert_eq!(address("", &by_environment), "127.0.0.1:7");
    // And the token, with which it is asked.
    let token = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Config::admin_contact(&file, [])
            .1
            .map(|token| token.header())
    };
    for text in [
        "[server]\nadmin_token = \"0123456789abcdef\"\nx = [\n",
        "[server]\nadmin_token = '0123456789abcdef'",
    ] {
        assert_eq!(
            token(text).as_deref(),
            Some("Bearer 0123456789abcdef"),
            "{text}"
        );
    }
    assert_eq!(token("[server]\n"), None);
}

#[test]
fn a_listener_beyond_loopback_without_a_token_is_warned_of_and_a_short_token_refused() {
    let parse = |server: &str| Config::parse("ever.toml", &format!("[server]\n{server}\n{GOOD}"));
    let open = "admin_listen = \"0.0.0.0:8079\"";
    assert!(
        parse(open)
            .unwrap()
            .warnings()
            .iter()
            .any(|warning| warning.contains("server.admin_token"))
    );
    let guarded = parse(&format!("{open}\nadmin_token = \"0123456789abcdef\"")).unwrap();
    assert!(
        !guarded
            .warnings()
            .iter()
            .any(|warning| warning.contains("admin"))
    );
    assert!(
        !format!("{guarded:?} {}", guarded.summary(std::path::Path::new("x")))
            .contains("0123456789abcdef")
    );
    let refused = parse("admin_token = \"tell-nobody\"")
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("server.admin_token") && !refused.contains("tell-nobody"),
        "{refused}"
    );
}

#[test]
fn a_key_that_was_renamed_is_refused_and_the_new_name_is_given() {
    let text = "[upstream]\nprobe_gap_secs = 30\n\
                [[feed]]\nname = \"a\"\nurl = \"http://x/a\"\n\
                [[feed]]\nname = \"b\"\nurl = \"http://x/b\"\ndeletions = { probe = false }\n";
    let refused = Config::parse("ever.toml", text).unwrap_err();
    let keys: Vec<_> = refused
        .problems
        .iter()
        .map(|problem| problem.key.as_str())
        .collect();
    assert_eq!(
        keys,
        ["upstream.probe_gap_secs", "feed.b.deletions.probe"],
        "all of them at once, in the order of the file"
    );
    let told = refused.to_string();
    for part in [
        "ever.toml",
        "`permalink_checks`",
        "false",
        "`permalink_check_gap_secs`",
        "30",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    let new = text
        .replace("probe_gap_secs", "permalink_check_gap_secs")
        .replace("probe =", "permalink_checks =");
    let config = Config::parse("ever.toml", &new).unwrap();
    assert_eq!(config.upstream.permalink_check_gap_secs, 30);
    assert!(
        !config.feed[1].deletions.permalink_checks && config.feed[0].deletions.permalink_checks
    );
    // A variable of the environment is no way around it.
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("ever.toml");
    std::fs::write(&path, "[[feed]]\nname = \"a\"\nurl = \"http://x/a\"\n").unwrap();
    let old = (
        "EVERFEED__UPSTREAM__PROBE_GAP_SECS".to_owned(),
        "5".to_owned(),
    );
    let refused = Config::load(&path, [old]).unwrap_err().to_string();
    assert!(refused.contains("`permalink_check_gap_secs`"), "{refused}");
}

#[test]
fn a_site_without_a_host_has_no_feeds_at_the_address_of_another() {
    // Its feeds would be asked for by the name of the other one, whose readers may be few.
    let read = |public_host: &str, hosts: [&str; 2], feeds: &str| {
        let site =
            |line: &str| format!("[[site]]\n{line}\norigin = \"http://127.0.0.1:81\"\n{feeds}\n");
        let sites = hosts.map(|host| match host {
            "" => site(""),
            host => site(&format!("host = \"{host}\"\naccess = [\"alice\"]")),
        });
        let text = format!(
            "[server]\npublic_url = \"http://{public_host}/\"\n{}",
            sites.concat()
        );
        Config::parse("x", &text)
            .map(|_| ())
            .map_err(|refused| refused.to_string())
    };
    for hosts in [["one.example", ""], ["", "one.example"]] {
        for feeds in ["", "feeds = [\"/feed.xml\"]"] {
            let refused = read("one.example", hosts, feeds).unwrap_err();
            assert!(
                refused.contains(".host: found missing") && refused.contains("The site"),
                "{refused}"
            );
        }
        read("one.example", hosts, "feeds = []").unwrap();
        read("feeds.example", hosts, "").unwrap();
    }
}

/// A long configuration, with something before its last feed.
fn long(before_last: &str) -> String {
    let feed = |n: usize| {
        format!("[[feed]]\nname = \"f{n}\"\nurl = \"http://x/{n}\"\n[feed.poll]\nmax_secs = 7200\n")
    };
    let feeds: String = (1..2_500).map(feed).collect();
    format!(
        "[server]\nlisten = \"127.0.0.1:9\"\n{feeds}{before_last}{}",
        feed(2_500)
    )
}

#[test]
fn a_long_configuration_is_read_in_parts_and_its_mistakes_keep_their_lines() {
    let read = |text: &str| Config::parse("x", text);
    let config = read(&long("")).unwrap();
    assert_eq!(
        (config.feed.len(), config.server.listen.to_string().as_str()),
        (2_500, "127.0.0.1:9")
    );
    assert_eq!(config.feed[2_499].name, "f2500");
    assert!(config.feed.iter().all(|feed| feed.poll.max_secs == 7_200));
    let line = 2 + 5 * 2_499;
    let told = |text: &str| read(&long(text)).unwrap_err().problems;
    for (text, below) in [
        ("[[feed]]\nname = \"f7\"\nurl = \"http://x/other\"\n", 2),
        ("[[feed]]\nname = \"seven\"\nurl = \"http://x/7\"\n", 3),
        ("[[feed]]\nname = \"seven\"\nurl = 7\n", 3),
        ("[server]\nlisten = \"127.0.0.1:10\"\n", 1),
        (
            "[[feed]]\nname = \"seven\"\nurl = \"http://x/seven\"\nalias = 1\n",
            4,
        ),
    ] {
        let problems = told(text);
        assert_eq!(problems[0].line, Some(line + below), "{text}: {problems:?}");
    }
    // What stands after the feeds is read all the same.
    let config = read(&long("[upstream]\ntotal_secs = 7\n")).unwrap();
    assert_eq!((config.feed.len(), config.upstream.total_secs), (2_500, 7));
    // A text in several lines may look like a feed.
    let odd = "[[feed]]\nname = \"odd\"\nurl = \"http://x/odd\"\nid_namespace = \"\"\"\n";
    let odd = format!("{odd}{}\"\"\"\n", "[[feed]]\n".repeat(20_000));
    assert!(
        told(&odd)
            .iter()
            .all(|problem| problem.key == "feed.odd.id_namespace")
    );
    let name = "EVERFEED__FEED__f2499__POLL__MAX_SECS".to_owned();
    let overridden = Config::from_text(
        "x".as_ref(),
        &long(""),
        &[],
        [(name, "9000".to_owned())],
        |_| Vec::new(),
    )
    .unwrap();
    assert_eq!(overridden.feed[2_498].poll.max_secs, 9_000);
}

#[test]
fn doors_that_cannot_be_meant_are_refused() {
    let check = |text: &str, parts: &[&str]| {
        let error = Config::parse("ever.toml", text).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    };
    check(
        &format!("[server.tls]\ncertificate = \"c.pem\"\n{GOOD}"),
        &["server.tls.certificate", "two PEM files"],
    );
    check(
        &format!("[server.tls]\nkey = \"k.pem\"\n{GOOD}"),
        &["server.tls.key", "two PEM files"],
    );
    check(
        &format!("[server.tls]\nhsts_secs = 5\n{GOOD}"),
        &["server.tls", "no certificate"],
    );
    check(
        &format!("[server]\nproxy_protocol = true\n{GOOD}"),
        &["server.proxy_protocol", "trusted_proxies"],
    );
    check(
        &format!("[server]\nlisten = [\"127.0.0.1:1\", \"0.0.0.0:8079\"]\n{GOOD}"),
        &["server.admin_listen"],
    );
    check(
        &format!("[server]\nlisten = [\"127.0.0.1:1\", \"here\"]\n{GOOD}"),
        &["server.listen", "an address"],
    );
    check(
        &format!("[server]\nlisten = []\n{GOOD}"),
        &["server.listen", "an address"],
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ever.toml");
    let tls = "[server.tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
    std::fs::write(
        &file,
        format!("[server]\nlisten = \"unix:x.sock\"\n{tls}{GOOD}"),
    )
    .unwrap();
    let error = Config::load(&file, []).unwrap_err().to_string();
    let missing = folder.path().join("c.pem").display().to_string();
    assert!(
        error.contains("server.tls: found") && error.contains(&format!("{missing} cannot be read")),
        "{error}"
    );
}

#[test]
fn a_certificate_by_an_authority_is_checked_and_warned_of() {
    let text =
        |server: &str, acme: &str| format!("[server]\n{server}\n[server.tls.acme]\n{acme}\n{GOOD}");
    let good = "domains = [\"blog.example.org\"]\nagree_to_terms = true";
    let public = "public_url = \"https://blog.example.org\"\nlisten = \"0.0.0.0:443\"";
    let config = Config::parse("ever.toml", &text(public, good)).unwrap();
    // The feed has one of its own.
    let of_server = |config: &Config| {
        let warnings = config.warnings().into_iter();
        warnings
            .filter(|warning| warning.starts_with("server."))
            .collect::<Vec<_>>()
    };
    assert_eq!(of_server(&config), [""; 0]);
    let acme = config.server.tls.acme.unwrap();
    assert!(acme.is_lets_encrypt());
    assert_eq!(
        acme.folder(std::path::Path::new("/var/x.redb")),
        std::path::Path::new("/var/acme")
    );
    for (server, acme, part) in [
        (
            "",
            "agree_to_terms = true",
            "server.tls.acme.domains: found no domain",
        ),
        (
            "",
            "domains = [\"h.example\"]",
            "give agree_to_terms = true",
        ),
        (
            "",
            "domains = [\"10.0.0.1\"]\nagree_to_terms = true",
            "certificates are for names",
        ),
        ("", "domain = \"h.example\"", "did you mean `domains`"),
        (
            "",
            "domains = \"h.example\"\nagree_to_terms = true",
            "give a list of host names",
        ),
        (
            "tls.certificate = \"c.pem\"\ntls.key = \"k.pem\"",
            good,
            "found beside the file \"c.pem\"",
        ),
        (
            "listen = \"unix:x.sock\"",
            good,
            "speaks no TLS at Unix sockets",
        ),
    ] {
        let told = error(&text(server, acme));
        assert!(told.contains(part), "{part} is not in: {told}");
    }
    for (server, acme, part) in [
        (
            "public_url = \"https://h.example\"\nlisten = \"[::]:443\"",
            good,
            "h.example, the host of public_url, is missing",
        ),
        (
            "public_url = \"https://blog.example.org\"",
            good,
            "everfeed listens on neither",
        ),
        (
            "public_url = \"https://h.local\"\nlisten = \"systemd\"",
            "domains = [\"h.local\"]\nagree_to_terms = true",
            "h.local is not a public name",
        ),
        (
            "public_url = \"http://blog.example.org\"\nlisten = \"systemd\"",
            good,
            "Give the https URL",
        ),
    ] {
        let warnings = of_server(&Config::parse("ever.toml", &text(server, acme)).unwrap());
        assert!(
            warnings.len() == 1 && warnings[0].contains(part),
            "{part} is not in: {warnings:?}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ever.toml");
    std::fs::write(folder.path().join("root.pem"), "no certificate").unwrap();
    let more = "root = \"root.pem\"\nfolder = \"ever.toml\"";
    std::fs::write(&file, text(public, &format!("{good}\n{more}"))).unwrap();
    let told = Config::load(&file, []).unwrap_err().to_string();
    for part in [
        "it holds no certificate in PEM form",
        "this is not a folder",
    ] {
        assert!(told.contains(part), "{part} is not in: {told}");
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_certificate_in_a_database_needs_a_key_that_is_good() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ever.toml");
    let acme = "[server.tls.acme]\ndomains = [\"h.example\"]\nagree_to_terms = true\n";
    let load = |store: &str, acme: &str| {
        let store = format!("[store]\nurl = \"postgresql://e@localhost/e\"\n{store}\n");
        std::fs::write(&file, store + acme + GOOD).unwrap();
        Config::load(&file, [])
    };
    load("", "").unwrap();
    let told = load("", acme).unwrap_err().to_string();
    assert!(
        told.contains("store.key_file: found none;") && told.contains("set store.key_file to"),
        "{told}"
    );
    let key = folder.path().join("key");
    let named = "key_file = \"key\"";
    let told = load(named, acme).unwrap_err().to_string();
    assert!(told.contains("it cannot be read"), "{told}");
    std::fs::write(&key, "0f".repeat(32)).unwrap();
    let mode = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode));
    mode(0o644).unwrap();
    // Without a certificate, too.
    let told = load(named, "").unwrap_err().to_string();
    assert!(told.contains("chmod 600"), "{told}");
    mode(0o600).unwrap();
    let config = load(named, acme).unwrap();
    assert_eq!(config.store.key_file.as_deref(), Some(&*key));
    let summary = config.summary(&file);
    assert!(summary.contains("kept in the database"), "{summary}");
}

#[test]
fn no_listener_of_ours_is_the_origin_of_a_site() {
    let server = "[server]\nlisten = \"127.0.0.1:8080\"\nadmin_listen = \"127.0.0.1:8079\"\n";
    let read = |origin: &str| {
        Config::parse(
            "x",
            &format!("{server}[[site]]\norigin = \"http://{origin}\"\n"),
        )
    };
    for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::]"] {
        for port in [8079, 8080] {
            let refused = read(&format!("{host}:{port}")).unwrap_err().to_string();
            assert!(refused.contains("everfeed itself listens"), "{refused}");
            assert!(refused.contains("origin"), "{refused}");
        }
        read(&format!("{host}:8081")).unwrap();
    }
}

#[test]
fn no_url_of_ours_is_a_webhook_or_an_alias_and_a_page_of_a_site_may_be() {
    let server = "[server]\nlisten = \"127.0.0.1:8080\"\nadmin_listen = \"127.0.0.1:8079\"\n\
                  public_url = \"https://feeds.example/\"\nformer_public_urls = [\"https://old.example/\"]\n";
    let blog = "[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:9000/rss\"\n";
    let site = "[[site]]\nhost = \"blog.example\"\norigin = \"http://127.0.0.1:9000\"\n";
    let read = |more: &str, alias: &str, hook: &str| {
        let text = format!(
            "{server}{blog}aliases = [{alias:?}]\n{more}[[webhook]]\nurl = {hook:?}\nfeed = \"blog\"\n\
             secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n"
        );
        Config::parse("x", &text).map_err(|error| error.to_string())
    };
    let (alias, hook) = ("https://blog.example/rss", "http://127.0.0.1:9000/hook");
    for more in ["", site] {
        read(more, alias, hook).unwrap();
        for ours in [
            "http://127.0.0.1:8079/",
            "http://localhost:8079/feeds/blog",
            "http://[::ffff:127.0.0.1]:8080/feeds/blog",
            "http://0.0.0.0:8080/hub",
            "https://feeds.example/feeds/blog.json",
            "https://FEEDS.example./hub",
            "http://old.example/feeds/blog",
        ] {
            let refused = read(more, alias, ours).unwrap_err();
            assert!(
                refused.contains("webhook[0].url: found a URL of our own"),
                "{refused}"
            );
            assert!(refused.contains("line "), "{refused}");
            let refused = read(more, ours, hook).unwrap_err();
            assert!(refused.contains("feed.blog.aliases: found"), "{refused}");
        }
    }
    // The old server behind us may take calls.
    let page = "http://127.0.0.1:8080/wp-json/hook";
    read(site, "http://blog.example/rss", page).unwrap();
    assert!(
        read("", alias, page)
            .unwrap_err()
            .contains("webhook[0].url")
    );
}

/// Every key of the reference that holds a URL, with a text around the URL.
#[test]
fn control_characters_in_a_url_are_refused_at_every_key_that_takes_one() {
    // A parser of URLs would take them out, or drop them at the ends.
    let controls = [
        "\\n", "\\r\\n", "\\t", "\\u0000", "\\u0001", "\\u001F", "\\u007F", "\\u0085",
    ];
    let tables = |key: &str, value: &str| -> Option<String> {
        let (table, name) = key.rsplit_once('.')?;
        let feed = "[[feed]]\nname = \"blog\"\n";
        Some(match table {
            "feed" if name == "url" => format!("{feed}url = {value}\n"),
            "feed" => format!("{feed}url = \"http://x.example/\"\n{name} = {value}\n"),
            "site" => format!("[[site]]\n{name} = {value}\n"),
            "webhook" => format!(
                "[[webhook]]\nfeed = \"blog\"\nsecret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n{name} = {value}\n{feed}url = \"http://x.example/\"\n"
            ),
            "alert" => format!(
                "[[alert]]\nto = [\"me@x.example\"]\nfrom = \"e@x.example\"\n{name} = {value}\n{feed}url = \"http://x.example/\"\n"
            ),
            "server" | "server.tls.acme" | "upstream" | "hub" => {
                format!("[{table}]\n{name} = {value}\n{feed}url = \"http://x.example/\"\n")
            }
            _ => return None,
        })
    };
    let keys = [
        ("server.public_url", false),
        ("server.former_public_urls", true),
        ("server.tls.acme.directory", false),
        ("upstream.contact_url", false),
        ("hub.on_behalf", true),
        ("feed.url", false),
        ("feed.aliases", true),
        ("site.origin", false),
        ("webhook.url", false),
        ("alert.url", false),
        ("alert.smtp", false),
    ];
    for (key, is_list) in keys {
        for control in controls {
            for url in [
                format!("{control}http://a.example/"),
                format!("http://a.exa{control}mple/"),
                format!("http://a.example/x{control}y"),
                format!("http://a.example/{control}"),
                format!("ht{control}tp://a.example/"),
            ] {
                let value = match is_list {
                    true => format!("[\"{url}\"]"),
                    false => format!("\"{url}\""),
                };
                let text = tables(key, &value).unwrap();
                let refused = Config::parse("x", &text).unwrap_err().to_string();
                assert!(
                    !refused.contains(|c: char| c.is_control() && c != '\n'),
                    "{refused:?}"
                );
                let name = key.rsplit('.').next().unwrap();
                assert!(refused.contains(name), "{key} {url}: {refused}");
            }
        }
    }
    // The environment is another door.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    std::fs::write(
        &file,
        "[[feed]]\nname = \"blog\"\nurl = \"http://a.example/\"\n",
    )
    .unwrap();
    let load = |value: &str| {
        let variable = ("EVERFEED__FEED__blog__URL".to_owned(), value.to_owned());
        Config::load(&file, [variable]).map_err(|error| error.to_string())
    };
    assert!(
        load("http://b.example/\n")
            .unwrap_err()
            .contains("control characters")
    );
    assert!(load("http://b.exam\tple/").is_err());
    load("http://b.example/").unwrap();
}

#[test]
fn what_a_site_lends_its_feeds_is_refused_once() {
    let own = "[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:8081/rss.xml\"\n";
    for lent in [
        "poll = { min_secs = 7200, max_secs = 60 }",
        "deletions = { confirmations = 0 }",
        "keep = { items_max = 0 }",
    ] {
        let site = format!(
            "[[site]]\norigin = \"http://127.0.0.1:8081\"\nfeeds = [\"/rss.xml\"]\n{lent}\n"
        );
        for text in [site.clone(), format!("{site}{own}")] {
            let told = error(&text);
            assert_eq!(told.lines().count(), 1, "{told}");
            assert!(told.contains("site[0]."), "{told}");
        }
        // A feed's own mistake is its own.
        let told = error(&format!("{}{own}{lent}\n", site.replace(lent, "")));
        assert!(told.contains("feed.blog."), "{told}");
    }
}

#[test]
fn a_feed_of_a_site_is_private_only_where_nobody_gets_it_from_the_old_server() {
    let text = |path: &str, more: &str| {
        format!(
            "[[site]]\norigin = \"http://127.0.0.1:8081\"\nfeeds = [\"{path}\"]\n{more}\n[[feed]]\nname = \"blog\"\n\
             url = \"http://127.0.0.1:8081{path}\"\naccess = \"private\"\n"
        )
    };
    for more in ["", "serve_plain = \"untouched\"", "access = [\"alice\"]"] {
        assert!(
            Config::parse("ever.toml", &text("/rss.xml", more)).is_ok(),
            "{more}"
        );
    }
    let told = error(&text("/?feed=rss2", ""));
    assert!(
        told.contains("feed.blog.access") && told.contains("Take it out of site.feeds"),
        "{told}"
    );
    let told = error(&text("/?feed=rss2", "access = \"private\""));
    assert!(
        told.contains("site[0].feeds") && told.contains("without a query"),
        "{told}"
    );
    let told = error(&text("/rss.xml", "serve_plain = \"origin\""));
    assert!(
        told.contains("feed.blog.access") && told.contains("serve_plain"),
        "{told}"
    );
    let open = text("/?feed=rss2", "").replace("access = \"private\"", "");
    assert!(Config::parse("ever.toml", &open).is_ok());
}

#[test]
fn members_of_a_group_and_feeds_of_webhooks_are_judged_one_by_one() {
    let feeds = "[[feed]]\nname = \"a\"\nurl = \"http://x/a\"\naccess = \"private\"\n\
                 [[feed]]\nname = \"b\"\nurl = \"http://x/b\"\n";
    let check = |tables: &str, expect: &[&str]| {
        let told = error(&format!("{feeds}{tables}"));
        assert_eq!(told.lines().count(), expect.len(), "{told}");
        for words in expect {
            assert!(told.contains(words), "{words} in {told}");
        }
    };
    let webhook = |feed: &str| {
        let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
        format!("[[webhook]]\nurl = \"http://y/\"\nfeed = \"{feed}\"\nsecret = \"{secret}\"\n")
    };
    check(
        &(webhook("a") + &webhook("b") + &webhook("b")),
        &[
            "webhook[0].feed: found \"a\"; this feed is private",
            "webhook[2].feed: found \"b\"; this URL has this feed already",
        ],
    );
    let group = |name: &str, members: &str| {
        format!("[[group]]\nname = \"{name}\"\nmembers = [{members}]\n")
    };
    check(
        &(group("g", "\"b\", \"b\", \"a\", \"h\"") + &group("h", "\"b\"")),
        &[
            "group.g.members[1]: found \"b\"; name each member once",
            "group.g.members[2]: found \"a\"; feed `a` is private",
            "group.g.members[3]: found \"h\"; this is a group",
        ],
    );
    let many: String = (0..17)
        .map(|no| group(&format!("g{no}"), "\"b\""))
        .collect();
    check(&many, &["group.g16.members: found one more group of `b`"]);
    check(
        &("id_namespace = \"group:g\"\n".to_owned() + &group("g", "\"b\"")),
        &["feed.b.id_namespace: found \"group:g\"; the ids of a group"],
    );
}

#[test]
fn a_feed_of_a_site_has_the_name_that_it_is_given_and_its_own() {
    let site = |feeds: &str| {
        format!(
            "[[site]]\nhost = \"blog.example\"\norigin = \"http://127.0.0.1:8081\"\nfeeds = [{feeds}]\n"
        )
    };
    let names = |text: &str| {
        let config = Config::parse("ever.toml", text).unwrap_or_else(|error| panic!("{error}"));
        let names = config.feed.iter().map(|feed| feed.name.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    let named = "{ path = \"/new.xml\", name = \"blog-rss-xml\" }";
    assert_eq!(
        names(&site("\"/a.xml\", { path = \"/b.xml\" }")),
        "blog-a-xml blog-b-xml"
    );
    assert_eq!(names(&site(named)), "blog-rss-xml");
    // The same feed as a table of its own.
    let table = "[[feed]]\nname = \"blog-rss-xml\"\nurl = \"http://127.0.0.1:8081/new.xml\"\n";
    assert_eq!(names(&(site(named) + table)), "blog-rss-xml");

    let check = |text: String, parts: &[&str]| {
        let told = error(&text);
        for part in parts {
            assert!(told.contains(part), "{part} is not in {told}");
        }
    };
    for wrong in [
        "{ path = \"/a\", nme = \"x\" }",
        "{ name = \"x\" }",
        "{ path = \"/a\", name = 5 }",
        "{ path = \"a\", name = \"x\" }",
        "5",
    ] {
        check(site(wrong), &["site[0].feeds", "name = "]);
    }
    for name in ["", "Blog", "-x", "a/b", "a b"] {
        let feeds = format!("{{ path = \"/a\", name = \"{name}\" }}");
        check(site(&feeds), &["site[0].feeds.name", "lower-case"]);
    }
    let second = "the second feed with this name";
    let twice = "{ path = \"/a\", name = \"x\" }, { path = \"/b\", name = \"x\" }";
    check(site(twice), &[second, "site[0].feeds"]);
    check(site(&format!("\"/rss.xml\", {named}")), &[second]);
    check(
        site(&format!("{named}, \"/rss.xml\"")),
        &["another feed has its name", "name = \"NAME\""],
    );
    let elsewhere = table.replace("8081/new.xml", "9/other.xml");
    check(site(named) + &elsewhere, &[second]);
    check(
        site(named) + &table.replace("blog-rss-xml", "other"),
        &["`other`", "Leave `name` out"],
    );
    let group = "[[group]]\nname = \"blog-rss-xml\"\nmembers = [\"blog-rss-xml\"]\n";
    check(site(named) + group, &["group.blog-rss-xml"]);
    check(
        site("\"/a\", { path = \"/a\", name = \"x\" }"),
        &["listed twice"],
    );

    let former = |addresses: &str| {
        site(&format!(
            "{{ path = \"/a\", name = \"x\", former = [{addresses}] }}, \"/b\""
        ))
    };
    assert_eq!(
        names(&former("\"/c\", \"https://old.example/d?e=1\"")),
        "x blog-b"
    );
    let many = vec!["\"/c\""; 17].join(", ");
    for wrong in [
        "\"c\"",
        "\"/a\"",
        "\"/b\"",
        "\"ftp://x/\"",
        "\"https://u:p@x/\"",
        "\"https://x/#y\"",
        &many,
    ] {
        check(former(wrong), &["site[0].feeds", "former = "]);
    }
    let both = "{ path = \"/a\", former = [\"/c\"] }, { path = \"/b\", former = [\"/c\"] }";
    check(site(both), &["two feeds cannot have had one address"]);
    let private = former("\"/?feed=rss2\"") + "access = \"private\"\n";
    check(
        private,
        &["site[0].feeds", "a feed at a query cannot be private"],
    );
}

#[test]
fn two_sites_with_one_readers_secret_are_refused_and_it_is_not_repeated() {
    const SECRET: &str = "b6f1c1a9d2e04c7f8a35";
    let site = |port: u16, secret: &str| {
        format!(
            "[[site]]\nhost = \"h{port}.example\"\norigin = \"http://127.0.0.1:{port}\"\nfeeds = [\"/a.xml\"]\nreaders_secret = \"{secret}\"\n"
        )
    };
    let told = error(&(site(1, SECRET) + &site(2, SECRET)));
    assert!(
        told.contains("site[1].readers_secret") && told.contains("another site"),
        "{told}"
    );
    assert!(
        !told.contains("site[0]") && !told.contains(SECRET),
        "{told}"
    );
    let other = site(1, SECRET) + &site(2, "00112233445566778899");
    Config::parse("ever.toml", &other).unwrap();
}
