//! `everfeed import` and `everfeed export` as an owner runs them: the binary, a list, and the file.

use crate::EVERFEED;
use nix::sys::signal::Signal;
use std::process::Command;
use testkit::{
    place::{Place, Told, feed, run},
    publisher::{Publisher, rss},
};

/// Runs a command at a place, in the folder of it.
fn told(place: &Place, arguments: &[&str], input: &str) -> Told {
    let mut command = Command::new(EVERFEED);
    command
        .args(arguments)
        .current_dir(place.folder())
        .env_remove("RUST_LOG");
    run(&mut command, input.as_bytes())
}

fn place() -> Place {
    let place = Place::free();
    let feed = "[[feed]]\nname = \"mine\"\nurl = \"https://mine.example/feed\" # first\n";
    place.configure("# Mine.", feed);
    place
}

fn import(place: &Place, list: &str, more: &[&str]) -> Told {
    let arguments = [&["import", "-"], more].concat();
    told(place, &arguments, list)
}

const LIST: &str = "<?xml version='1.0'?><opml version='2.0'><head><title>x</title></head><body>\
    <outline text='Friends &amp; more'>\
      <outline type='rss' text='Ann' xmlUrl='https://ann.example/feed/'/>\
      <outline text='Close'><outline title='Bob' XMLURL='feed://bob.example/rss?a=1&amp;b=2'/></outline>\
    </outline>\
    <outline text='Mine' xmlUrl='http://www.MINE.example/feed/'/>\
    <outline text='Again' xmlUrl='http://ann.example/feed'/>\
    <outline text='Inner' xmlUrl='http://127.0.0.1:8081/feed'/>\
    <outline text='Box' xmlUrl='http://printer.local/feed'/>\
    <outline text='Cloud' xmlUrl='http://[::ffff:169.254.169.254]/feed'/>\
    <outline text='Mail' xmlUrl='mailto:x@example.org'/>\
    <outline text='Secret' xmlUrl='https://me:hunter2@secret.example/feed'/>\
    <outline text='List' type='include' url='https://lists.example/l.opml'/>\
    </body></opml>";

#[test]
fn feeds_of_a_list_are_added_once_with_groups_for_their_folders() {
    let place = place();
    let before = place.read("everfeed.toml");
    let tried = import(&place, LIST, &["--dry-run"]);
    assert_eq!((tried.code, tried.err.as_str()), (0, ""), "{tried:?}");
    assert!(tried.out.contains("Would add `ann`"), "{tried:?}");
    assert_eq!(place.read("everfeed.toml"), before);

    let said = import(&place, LIST, &[]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let after = place.read("everfeed.toml");
    assert!(after.starts_with(&before), "{after}");
    for table in [
        "[[feed]]\nname = \"ann\"\nurl = \"https://ann.example/feed/\"\ncategories = [\"friends-more\"]\npublic_hosts_only = true\n",
        "[[feed]]\nname = \"bob\"\nurl = \"http://bob.example/rss?a=1&b=2\"\ncategories = [\"friends-more\", \"friends-more-close\"]\n",
        "[[feed]]\nname = \"secret\"\nurl = \"https://me:hunter2@secret.example/feed\"\n",
        "[[group]]\nname = \"friends-more\"\ntitle = \"Friends & more\"\nmembers = [\"category:friends-more\"]\n",
        "[[group]]\nname = \"friends-more-close\"\ntitle = \"Friends & more / Close\"\n",
    ] {
        assert!(after.contains(table), "{table} in {after}");
    }
    assert_eq!(after.matches("[[feed]]").count(), 4, "{after}");
    for line in [
        "“Mine” (http://www.MINE.example/feed/): is there already, under the name `mine`",
        "“Again” (http://ann.example/feed): the list names it before, and it is added as `ann`",
        "“Inner” (http://127.0.0.1:8081/feed): its host is on this machine",
        "“Box” (http://printer.local/feed): its host is on this machine",
        "“Cloud” (http://[::ffff:169.254.169.254]/feed): its host is on this machine",
        "“Mail” (mailto:x@example.org): its address is no http or https URL",
        "“List” (https://lists.example/l.opml): is another list",
        "feeds 3, groups 2; skipped: 7.",
        "everfeed reload",
        "chmod o-r",
    ] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    assert!(!said.out.contains("hunter2"), "{}", said.out);
    let checked = told(&place, &["check"], "");
    assert_eq!(checked.code, 0, "{checked:?}");

    let again = import(&place, LIST, &[]);
    assert!(
        again.code == 0 && again.out.contains("Nothing to add"),
        "{again:?}"
    );
    assert_eq!(place.read("everfeed.toml"), after);
}

#[test]
fn a_list_that_is_written_is_the_same_feeds_elsewhere() {
    let place = place();
    assert_eq!(import(&place, LIST, &[]).code, 0);
    let exported = told(&place, &["export"], "");
    assert_eq!(exported.code, 0, "{exported:?}");
    assert!(!exported.out.contains("hunter2"), "{exported:?}");
    assert!(
        exported.err.contains("need a password: secret"),
        "{exported:?}"
    );

    let other = Place::free();
    other.configure("", "");
    other.write("feeds.opml", &exported.out);
    let said = told(&other, &["import", "feeds.opml"], "");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let text = other.read("everfeed.toml");
    for part in [
        "url = \"https://mine.example/feed\"",
        "name = \"bob\"",
        "title = \"Friends & more / Close\"",
        "url = \"https://secret.example/feed\"",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_list_that_cannot_be_meant_changes_nothing_and_says_why() {
    let place = place();
    let before = place.read("everfeed.toml");
    let many = "<outline xmlUrl='https://a.example/'/>".repeat(100_000);
    for (list, words) in [
        ("<rss/>", "its root element is `rss`"),
        ("", "no OPML"),
        (
            "<!DOCTYPE opml [<!ENTITY a 'x'>]><opml><outline xmlUrl='http://&a;/'/></opml>",
            "document type",
        ),
        (&format!("<opml>{many}</opml>"), "more than 20000 outlines"),
    ] {
        let said = import(&place, list, &[]);
        assert!(said.code == 1 && said.err.contains(words), "{said:?}");
        assert_eq!(said.err.lines().count(), 1, "{said:?}");
    }
    let said = import(&place, "<opml><body/></opml>", &[]);
    assert!(
        said.code == 0 && said.out.contains("Nothing to add"),
        "{said:?}"
    );
    for list in ["absent.opml", "https://me:hunter2@lists.example/l.opml"] {
        let said = told(&place, &["import", list], "");
        assert!(said.code != 0 && !said.err.contains("hunter2"), "{said:?}");
    }
    assert_eq!(place.read("everfeed.toml"), before);
}

#[test]
fn addresses_of_this_machine_are_taken_if_the_operator_says_so() {
    let place = place();
    let list = "<opml><outline text='In' xmlUrl='http://127.0.0.1:8081/feed'/></opml>";
    assert!(import(&place, list, &[]).out.contains("skipped: 1"));
    let said = import(&place, list, &["--private-hosts", "--no-groups"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let text = place.read("everfeed.toml");
    assert!(
        text.contains("127.0.0.1:8081") && !text.contains("public_hosts_only"),
        "{text}"
    );
}

#[test]
fn a_feed_that_is_a_list_says_so() {
    let place = place();
    place.write("feeds.opml", LIST);
    let said = told(&place, &["probe", "feeds.opml"], "");
    assert!(
        said.code == 1 && said.err.contains("everfeed import"),
        "{said:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_of_the_registry_are_known_to_import_add_and_export() {
    let publisher = Publisher::start().await;
    publisher.says(rss(3));
    let place = Place::free();
    let url = |path: &str| publisher.url(path);
    place.configure("", &feed("mine", &url("/mine.xml"), ""));
    let registered = feed("one", &url("/one.xml"), "categories = [\"friends\"]")
        + &feed("two", &url("/rss?token=hunter2"), "");
    place.write("more.toml", &registered);
    let applied = told(&place, &["feeds", "apply", "more.toml"], "");
    assert_eq!(applied.code, 0, "{applied:?}");
    let before = place.read("everfeed.toml");
    let list = format!(
        "<opml><body><outline text='One' xmlUrl='{}/'/><outline text='Two' xmlUrl='{}'/>\
         <outline text='Other' xmlUrl='{}'/></body></opml>",
        url("/one.xml"),
        url("/rss?token=hunter2"),
        url("/rss?token=hunter3"),
    );
    let check = || {
        let said = import(&place, &list, &["--private-hosts", "--dry-run"]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
        for line in [
            "is in the registry already, under the name `one`",
            "is in the registry already, under the name `two`",
            "feeds 1, groups 0; skipped: 2.",
        ] {
            assert!(said.out.contains(line), "{line} in {}", said.out);
        }
        let said = told(&place, &["add", &url("/one.xml")], "");
        let refused = "has this feed already, under the name `one`";
        assert!(said.code == 64 && said.err.contains(refused), "{said:?}");
        assert!(said.err.contains("registry"), "{said:?}");
        let said = told(&place, &["add", &url("/new.xml"), "--name", "two"], "");
        let refused = "another feed is named `two`";
        assert!(said.code == 64 && said.err.contains(refused), "{said:?}");
        assert_eq!(place.read("everfeed.toml"), before);
        let exported = told(&place, &["export"], "");
        assert_eq!(exported.code, 0, "{exported:?}");
        for path in ["/mine.xml", "/one.xml"] {
            let part = format!("xmlUrl=\"{}\"", url(path));
            assert!(exported.out.contains(&part), "{part} in {exported:?}");
        }
        exported
    };

    // On a store that nobody serves, all of a URL is known.
    let exported = check();
    assert!(exported.out.contains("/rss?token=hunter2"), "{exported:?}");
    assert_eq!(exported.err, "");
    // A running process shows no query.
    let mut running = place.start(place.command(EVERFEED, &["serve"]).env("RUST_LOG", "error"));
    place.answers("/feeds/one.json", 200).await;
    let exported = check();
    assert!(!exported.out.contains("hunter2"), "{exported:?}");
    assert!(
        exported.err.contains("lacks these feeds of the registry"),
        "{exported:?}"
    );
    assert!(exported.err.contains(": two."), "{exported:?}");

    // A group of the file has its members of the registry.
    running.signal(Signal::SIGTERM);
    let ended = tokio::task::spawn_blocking(move || running.wait());
    assert!(ended.await.unwrap().success());
    let group =
        "[[group]]\nname = \"friends\"\ntitle = \"Friends\"\nmembers = [\"category:friends\"]\n";
    place.configure("", &(feed("mine", &url("/mine.xml"), "") + group));
    let exported = told(&place, &["export"], "");
    let folder = exported
        .out
        .split_once("Friends")
        .map(|(_, rest)| rest.to_owned());
    assert!(
        folder.is_some_and(|rest| rest.contains("/one.xml")),
        "{exported:?}"
    );
}
