//! `include`: several files are read as one, and mistakes name the file that has them.

use super::*;
use std::fs;
use tempfile::TempDir;

/// A folder with these files; the first is the configuration.
fn folder(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let file = folder.path().join(files[0].0);
    (folder, file)
}

fn feed(name: &str) -> String {
    format!("[[feed]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:1/{name}\"\n")
}

fn names(config: &Config) -> Vec<&str> {
    config.feed.iter().map(|feed| feed.name.as_str()).collect()
}

#[test]
fn lists_go_on_from_one_file_to_the_next_and_tables_are_joined() {
    let main = format!(
        "include = [\"secrets.toml\", \"conf.d/*.toml\"]\n[hub]\ndeliver_secs = 9\n{}",
        feed("a")
    );
    let (_folder, file) = folder(&[
        ("ever.toml", &main),
        ("conf.d/2.toml", &feed("d")),
        ("conf.d/1.toml", &(feed("b") + &feed("c"))),
        ("conf.d/.hidden.toml", "nonsense"),
        ("conf.d/other.txt", "nonsense"),
        (
            "secrets.toml",
            "[server]\nadmin_token = \"0123456789abcdef\"\nadmin_listen = \"127.0.0.1:9\"\n",
        ),
    ]);
    let environment = [(
        "EVERFEED__FEED__c__URL".to_owned(),
        "http://127.0.0.1:2/".to_owned(),
    )];
    let config = Config::load(&file, environment).unwrap();
    assert_eq!(names(&config), ["a", "b", "c", "d"]);
    assert_eq!(
        config.feed[2].url.port(),
        Some(2),
        "the environment reaches every file"
    );
    assert_eq!(config.hub.deliver_secs, 9);
    assert!(config.server.admin_token.is_some());
    // Commands find the process by the same files.
    let (address, token) = Config::admin_contact(&file, []);
    assert!(address.port() == 9 && token.is_some());
    assert!(Config::names_admin_listen(&file, []));
}

#[test]
fn a_mistake_names_the_file_and_the_line_that_has_it() {
    let main = format!(
        "include = \"conf.d/*.toml\"\n[server]\nwaiters_max = 5\n{}",
        feed("a")
    );
    let check = |text: &str, expect: &str| {
        let (_folder, file) = folder(&[("ever.toml", &main), ("conf.d/x.toml", text)]);
        let told = Config::load(&file, []).unwrap_err().to_string();
        let told = told.replace(&file.with_file_name("").display().to_string(), "");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.starts_with(expect), "{told}");
    };
    check(
        "\n[[feed]]\nname = \"b\"\nurl = \"ftp://x/\"\n",
        "conf.d/x.toml: line 4: feed.b.url: ",
    );
    check(
        "[server]\nwaiters_max = 6\n",
        "conf.d/x.toml: line 2: server.waiters_max: found a value; another file",
    );
    check(
        "[hub]\ndeliver_sec = 6\n",
        "conf.d/x.toml: line 2: hub.deliver_sec: ",
    );
    check("x = [\n", "conf.d/x.toml: line 1: ");
    check("include = \"y.toml\"\n", "conf.d/x.toml: line 1: include: ");
    check(
        &feed("a").replace("1/a", "1/b"),
        "conf.d/x.toml: line 2: feed.name: found \"a\"",
    );
}

#[test]
fn files_that_are_not_there_and_values_that_are_no_paths_are_refused_and_a_pattern_may_find_none() {
    let told = |include: &str| {
        let main = format!("include = {include}\n{}", feed("a"));
        let (_folder, file) = folder(&[("ever.toml", &main), ("sub[1]/b.toml", &feed("b"))]);
        Config::load(&file, [])
            .map(|config| config.feed.len())
            .map_err(|error| error.to_string())
    };
    assert_eq!(told("\"conf.d/*.toml\""), Ok(1));
    assert_eq!(told("[]"), Ok(1));
    assert_eq!(told("\"sub*/b.toml\""), Ok(2));
    assert_eq!(
        told("[\"sub*/b.toml\", \"sub*/*.toml\"]"),
        Ok(2),
        "each once"
    );
    assert_eq!(told("\"ever.toml\""), Ok(1), "itself is there already");
    for include in ["\"none.toml\"", "5", "[\"*.toml\", 5]", "\"a***\""] {
        let refused = told(include).unwrap_err();
        assert!(refused.contains("include: found"), "{include}: {refused}");
    }
    let environment = [("EVERFEED__INCLUDE".to_owned(), "x".to_owned())];
    let (_folder, file) = folder(&[("ever.toml", &feed("a"))]);
    let refused = Config::load(&file, environment).unwrap_err();
    assert!(
        refused.to_string().contains("EVERFEED__INCLUDE"),
        "{refused}"
    );
}
