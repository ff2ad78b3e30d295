//! Every mistake names the file, the key, what was found and what would do.

use super::*;
use crate::secret::public_url;
use url::Url;

const GOOD: &str = "[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:8081/rss.xml\"\n";

fn error(text: &str) -> String {
    Config::parse("ever.toml", text).unwrap_err().to_string()
}

fn with(environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let pairs = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::from_text(Path::new("ever.toml"), GOOD, pairs)
}

#[test]
fn the_example_of_the_readme_is_good() {
    let readme = include_str!("../../README.md");
    let example =
        readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let config = Config::parse("README.md", example).unwrap();
    assert_eq!(config.feed[0].name, "blog");
    assert!(config.summary(Path::new("x")).contains("127.0.0.1:8081/rss.xml"));
}

#[test]
fn the_readme_lists_every_key_with_its_default() {
    let readme = include_str!("../../README.md");
    let listed =
        readme.split("```toml\n").nth(2).and_then(|rest| rest.split("```").next()).expect("the list");
    let config = Config::parse("README.md", listed).unwrap();
    let mut usual = Config::parse("x", GOOD).unwrap();
    usual.feed[0].url = config.feed[0].url.clone();
    assert_eq!(format!("{config:#?}"), format!("{usual:#?}"));
    let shown = format!("{usual:?}");
    let key = |word: &str| {
        word.strip_suffix(':')
            .filter(|key| key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
            .map(str::to_owned)
    };
    for key in shown.split([' ', '{', '(']).filter_map(key) {
        let inner = ["server", "store", "upstream", "hub", "platforms", "feed", "is_unsafe"];
        let of_url = [
            "scheme",
            "cannot_be_a_base",
            "username",
            "password",
            "host",
            "port",
            "path",
            "query",
            "fragment",
        ];
        let known = inner.contains(&&*key) || of_url.contains(&&*key) || listed.contains(&key);
        assert!(known, "`{key}` is not in the README");
    }
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
    check(&format!("[server]\nlisten = 80\n{GOOD}"), &["server.listen", "found 80"]);
    check(&format!("[server]\nlissten = \"127.0.0.1:1\"\n{GOOD}"), &["server", "lissten", "listen"]);
    check(&format!("[hub]\nlease_min_secs = \"x\"\n{GOOD}"), &["hub.lease_min_secs", "\"x\"", "seconds"]);
    check(&format!("[hub]\nlease_max_secs = 1\n{GOOD}"), &["hub.lease_max_secs", "found 1;"]);
    check(&format!("[sever]\n{GOOD}"), &["sever", "server"]);
    check("", &["feed", "at least one"]);
    check("[[feed]]\nname = \"blog\"\n", &["feed", "url"]);
    check("[[feed]]\nname = \"Blog\"\nurl = \"http://x/\"\n", &["feed.name", "\"Blog\"", "lower-case"]);
    check("[[feed]]\nname = \"blog\"\nurl = \"x\"\n", &["feed.blog.url", "\"x\"", "absolute URL"]);
    check("[[feed]]\nname = \"blog\"\nurl = \"ftp://x/\"\n", &["feed.blog.url", "\"ftp://x/\"", "http"]);
    check(&format!("{GOOD}aliases = [\"x\"]\n"), &["feed.blog.aliases", "\"x\"", "absolute URLs"]);
    check(&format!("{GOOD}aliases = [\"ftp://x/\"]\n"), &["feed.blog.aliases", "\"ftp://x/\"", "http"]);
    check(&format!("{GOOD}aliases = [\"https://u:hunter2@x/\"]\n"), &["feed.blog.aliases", "***@x"]);
    check(&format!("{GOOD}format = \"rss\"\n"), &["feed.blog.format", "\"rss\"", "resource"]);
    check(
        &format!("{GOOD}poll = {{ min_secs = 0 }}\n"),
        &["feed.blog.poll.min_secs", "found 0", "at least 1"],
    );
    check(&format!("{GOOD}poll = {{ min = 5 }}\n"), &["feed.blog.poll", "min_secs"]);
    check(
        &format!("{GOOD}record = {{ folder = \"x\", bodies = 0 }}\n"),
        &["feed.blog.record.bodies", "found 0", "leave `record` out"],
    );
    check(&format!("{GOOD}[feed.record]\nbodies = 5\n"), &["feed", "record", "folder"]);
    check(
        &format!("{GOOD}deletions = {{ confirmations = 1 }}\n"),
        &["feed.blog.deletions.confirmations", "unsafe"],
    );
    check(&format!("{GOOD}{GOOD}"), &["feed.name", "\"blog\"", "second"]);
    let twin = GOOD.replace("blog", "twin").replace("http:", "https:");
    check(&format!("{GOOD}{twin}"), &["feed.twin.url", "`blog`", "id_namespace"]);
    check(&format!("[server]\nprefix = \"/../x\"\n{GOOD}"), &["server.prefix", "\"/../x\""]);
    check(&format!("[server]\nprefix = \"//x\"\n{GOOD}"), &["server.prefix", "\"//x\""]);
    check(&format!("[server]\nlisten = \"0.0.0.0:8079\"\n{GOOD}"), &["server.admin_listen", "another"]);
    check(
        &format!("[upstream]\ncontact_url = \"https://u:hunter2@x/\"\n{GOOD}"),
        &["upstream.contact_url", "***@x"],
    );
    check("[[feed]\nname", &["line 1", "[[feed]"]);
    check(&format!("[server]\npublic_url = \"http://u:p@x/\"\n{GOOD}"), &["server.public_url", "***"]);
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
        let text = format!("{GOOD}platform = \"{platform}\"\n[platforms]\nfolder = {:?}\n", folder.path());
        Config::parse("ever.toml", &text).map_err(|error| error.to_string())
    };
    write("README.md", "no profile");
    let good =
        "title = \"Mine\"\nsources = [\"me\"]\n[[detect]]\ngenerator = \"^Mine\"\nwhy = \"it says so\"\n";
    write("mine.toml", good);
    let known = config("mine").unwrap().platforms.profiles();
    assert_eq!(known.get("mine").unwrap().title, "Mine");
    assert!(known.get("wordpress").is_some());
    let error = config("yours").unwrap_err();
    assert!(error.contains("feed.blog.platform") && error.contains("\"yours\""), "{error}");
    assert!(error.contains("auto, none") && error.contains("wordpress"), "{error}");

    write("wordpress.toml", &format!("colour = 1\n{good}"));
    let error = config("auto").unwrap_err();
    for part in ["ever.toml", "platforms.folder", "wordpress.toml", "colour", "window"] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    std::fs::remove_file(folder.path().join("wordpress.toml")).unwrap();
    write("wordpress.TOML", good);
    assert!(config("auto").unwrap_err().contains("name it after the platform"));
    let nowhere = Config::parse("ever.toml", &format!("{GOOD}[platforms]\nfolder = \"/nowhere\"\n"));
    assert!(nowhere.unwrap_err().to_string().contains("give a folder of profiles"));
}

#[test]
fn all_that_cannot_be_meant_is_told_at_once() {
    let text =
        "[hub]\npush_items_max = 0\n[server]\nwaiters_max = 0\n[[feed]]\nname = \"-\"\nurl = \"http://x/\"\n";
    assert_eq!(error(text).lines().count(), 3);
}

#[test]
fn a_file_that_is_not_there_is_said_to_be_missing() {
    let error = Config::load(Path::new("/nowhere/ever.toml"), []).unwrap_err().to_string();
    assert!(error.contains("/nowhere/ever.toml") && error.contains("--config"), "{error}");
}

#[test]
fn a_store_that_cannot_be_where_it_is_said_to_be_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let check = |path: &Path, part: &str| {
        let file = folder.path().join("ever.toml");
        std::fs::write(&file, format!("[store]\npath = {:?}\n{GOOD}", path.display().to_string())).unwrap();
        let error = Config::load(&file, []).unwrap_err().to_string();
        assert!(error.contains("store.path") && error.contains(part), "{error}");
    };
    check(&folder.path().join("missing/everfeed.redb"), "make the folder");
    check(folder.path(), "a folder");
}

#[test]
fn the_environment_overrides_the_file() {
    let config = with(&[
        ("EVERFEED__SERVER__LISTEN", "127.0.0.1:9"),
        ("EVERFEED__FEED__blog__URL", "http://example.org/feed"),
        ("EVERFEED__FEED__blog__POLL", "{ min_secs = 5, max_secs = 9 }"),
        ("EVERFEED__HUB__CALLBACKS_PRIVATE", "true"),
        ("PATH", "/bin"),
    ])
    .unwrap();
    assert_eq!(config.server.listen.port(), 9);
    assert_eq!(config.feed[0].url.as_str(), "http://example.org/feed");
    assert_eq!(config.feed[0].poll.policy().min_secs, Some(5));
    assert!(config.hub.callbacks_private);
    for name in ["EVERFEED__FEED__other__URL", "EVERFEED__SERVER__LISSTEN", "EVERFEED__FEED"] {
        assert!(with(&[(name, "x")]).is_err(), "{name}");
    }
}

#[test]
fn credentials_are_never_shown() {
    let text = "[[feed]]\nname = \"blog\"\nurl = \"http://cal:hunter2@example.org/rss\"\n";
    let config = Config::parse("x", text).unwrap();
    let summary = config.summary(Path::new("x"));
    assert!(summary.contains("***@example.org") && !summary.contains("hunter2"), "{summary}");
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
    assert_eq!(public_url(&Url::parse("http://x/rss?token=t0ken").unwrap()), "http://x/rss");
    assert_eq!(config.feed[0].namespace(), "example.org/rss");
}

#[test]
fn the_address_of_the_operator_is_found_in_a_file_that_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ever.toml");
    let address = |text: &str, environment: &[(&str, &str)]| {
        std::fs::write(&file, text).unwrap();
        let pairs = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::admin_contact(&file, pairs).0.to_string()
    };
    assert_eq!(
        address("colour = 1\n[server]\nadmin_listen = \"127.0.0.1:9\"\nlisten = 3\n", &[]),
        "127.0.0.1:9"
    );
    assert_eq!(address("[server\n", &[]), "127.0.0.1:8079");
    let by_environment =
        [("EVERFEED__SERVER__ADMIN_LISTEN", "127.0.0.1:7"), ("EVERFEED__FEED__gone__URL", "http://x/")];
    assert_eq!(address("", &by_environment), "127.0.0.1:7");
    // And the token, with which it is asked.
    let token = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Config::admin_contact(&file, []).1.map(|token| token.header())
    };
    for text in [
        "[server]\nadmin_token = \"0123456789abcdef\"\nx = [\n",
        "[server]\nadmin_token = '0123456789abcdef'",
    ] {
        assert_eq!(token(text).as_deref(), Some("Bearer 0123456789abcdef"), "{text}");
    }
    assert_eq!(token("[server]\n"), None);
}

#[test]
fn a_listener_beyond_loopback_without_a_token_is_warned_of_and_a_short_token_refused() {
    let parse = |server: &str| Config::parse("ever.toml", &format!("[server]\n{server}\n{GOOD}"));
    let open = "admin_listen = \"0.0.0.0:8079\"";
    assert!(parse(open).unwrap().warnings().iter().any(|warning| warning.contains("server.admin_token")));
    let guarded = parse(&format!("{open}\nadmin_token = \"0123456789abcdef\"")).unwrap();
    assert!(guarded.warnings().is_empty());
    assert!(
        !format!("{guarded:?} {}", guarded.summary(std::path::Path::new("x"))).contains("0123456789abcdef")
    );
    let refused = parse("admin_token = \"tell-nobody\"").unwrap_err().to_string();
    assert!(refused.contains("server.admin_token") && !refused.contains("tell-nobody"), "{refused}");
}

#[test]
fn a_key_that_was_renamed_is_refused_and_the_new_name_is_given() {
    let text = "[upstream]\nprobe_gap_secs = 30\n\
                [[feed]]\nname = \"a\"\nurl = \"http://x/a\"\n\
                [[feed]]\nname = \"b\"\nurl = \"http://x/b\"\ndeletions = { probe = false }\n";
    let refused = Config::parse("ever.toml", text).unwrap_err();
    let keys: Vec<_> = refused.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["feed.b.deletions.probe", "upstream.probe_gap_secs"], "all of them at once");
    let told = refused.to_string();
    for part in ["ever.toml", "`permalink_checks`", "false", "`permalink_check_gap_secs`", "30"] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    let new =
        text.replace("probe_gap_secs", "permalink_check_gap_secs").replace("probe =", "permalink_checks =");
    let config = Config::parse("ever.toml", &new).unwrap();
    assert_eq!(config.upstream.permalink_check_gap_secs, 30);
    assert!(!config.feed[1].deletions.permalink_checks && config.feed[0].deletions.permalink_checks);
    // A variable of the environment is no way around it.
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("ever.toml");
    std::fs::write(&path, "[[feed]]\nname = \"a\"\nurl = \"http://x/a\"\n").unwrap();
    let old = ("EVERFEED__UPSTREAM__PROBE_GAP_SECS".to_owned(), "5".to_owned());
    let refused = Config::load(&path, [old]).unwrap_err().to_string();
    assert!(refused.contains("`permalink_check_gap_secs`"), "{refused}");
}
