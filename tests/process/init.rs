//! `everfeed init` and `everfeed add` as an owner runs them: the binary, a blog, and the file.

use crate::EVERFEED;
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
};
use testkit::{
    place::{Place, Running, Told, free_address, run},
    publisher::{Answer, Asked, Publisher, ok, rss, with_headers},
};

/// Runs a command at a place, in the folder of it.
async fn told(place: &Place, arguments: &[&str]) -> Told {
    let mut command = Command::new(EVERFEED);
    command
        .args(arguments)
        .current_dir(place.folder())
        .env_remove("RUST_LOG");
    tokio::task::spawn_blocking(move || run(&mut command, b""))
        .await
        .unwrap()
}

fn page(links: &str) -> Answer {
    ok(
        "text/html",
        format!("<!DOCTYPE html><html><head>{links}</head><body>Posts</body></html>"),
    )
}

fn link(path: &str) -> String {
    format!("<link rel='alternate' type='application/rss+xml' href='{path}'>")
}

/// A blog, the front page of which names these feeds.
async fn blog(paths: &[&str]) -> Publisher {
    let links: String = paths.iter().map(|path| link(path)).collect();
    Publisher::of(move |asked: &Asked| match asked.path() {
        "/" => page(&links),
        path if path.ends_with(".xml") => rss(2),
        _ => with_headers(404, &[], ""),
    })
    .await
}

/// Checks the file of a place by the command for that.
async fn check(place: &Place) {
    let said = told(place, &["check"]).await;
    assert_eq!(said.code, 0, "{said:?}\n{}", place.read("everfeed.toml"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blog_gets_a_configuration_with_which_everfeed_serves_its_feed() {
    let blog = blog(&["/posts.xml"]).await;
    let place = Place::free();
    let said = told(&place, &["init", &blog.url("/")]).await;
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert!(said.out.contains(&blog.url("/posts.xml")), "{said:?}");
    assert!(
        said.out.contains("everfeed check") && said.out.contains("everfeed serve"),
        "{said:?}"
    );
    check(&place).await;
    let text = place.read("everfeed.toml");
    assert!(text.contains("[[feed]]") && text.contains("# "), "{text}");
    // The usual addresses may be another's on this machine.
    let listen = place.consumers.to_string();
    let text = text.replace(
        "127.0.0.1:8080\"\n",
        &format!("{listen}\"\nadmin_listen = \"{}\"\n", place.operator),
    );
    place.write("everfeed.toml", &text);
    let mut serve = Command::new(EVERFEED);
    let _running: Running = place.start(serve.arg("serve").arg("--config").arg(place.file()));
    place.answers("/feeds/blog", 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_passes_the_check() {
    let blog = blog(&["/posts.xml", "/comments.xml"]).await;
    for way in ["below", "front", "beside"] {
        for url in [Some(blog.url("/")), Some(blog.url("/posts.xml")), None] {
            let place = Place::free();
            let arguments: Vec<&str> = ["init", "--way", way]
                .into_iter()
                .chain(url.as_deref())
                .collect();
            let said = told(&place, &arguments).await;
            assert_eq!(said.code, 0, "{said:?}");
            check(&place).await;
            let text = place.read("everfeed.toml");
            assert_eq!(text.contains("\n[[site]]"), way != "beside", "{text}");
            // The blog of this test does not say which server it is.
            let lines = if url.is_some() {
                "cannot tell which web server"
            } else {
                "snippets/everfeed.conf"
            };
            assert_eq!(said.out.contains(lines), way == "below", "{said:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blog_that_names_no_feed_is_looked_at_in_the_usual_places() {
    let blog = Publisher::of(|asked: &Asked| match asked.path() {
        "/" => page(""),
        "/atom.xml" => rss(1),
        _ => with_headers(404, &[], ""),
    })
    .await;
    let place = Place::free();
    let said = told(&place, &["init", &blog.url("/")]).await;
    assert!(
        said.code == 0 && place.read("everfeed.toml").contains("/atom.xml"),
        "{said:?}"
    );
    blog.says(page(""));
    let place = Place::free();
    let said = told(&place, &["init", &blog.url("/")]).await;
    assert!(said.code == 1 && said.err.contains("no feed"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blog_that_cannot_be_reached_leaves_no_file() {
    let place = Place::free();
    let away = free_address();
    for path in ["/", "/rss.xml"] {
        let said = told(&place, &["init", &format!("http://{away}{path}")]).await;
        assert!(said.code == 1 && said.err.contains("fault"), "{said:?}");
    }
    let blog = Publisher::of(|_: &Asked| with_headers(500, &[], "")).await;
    let said = told(&place, &["init", &blog.url("/")]).await;
    assert!(
        said.code == 1 && said.err.contains("publisher's"),
        "{said:?}"
    );
    let said = told(&place, &["init", "ftp://blog.example/"]).await;
    assert_eq!(said.code, 64, "{said:?}");
    assert_eq!(fs::read_dir(place.folder()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_never_overwritten() {
    let place = Place::free();
    place.write("everfeed.toml", "mine");
    let said = told(&place, &["init"]).await;
    assert!(
        said.code == 64 && said.err.contains("is there already"),
        "{said:?}"
    );
    assert_eq!(place.read("everfeed.toml"), "mine");
    // Nor what a link leads to, there or not.
    symlink(place.path("elsewhere"), place.path("linked.toml")).unwrap();
    let said = told(&place, &["init", "--config", "linked.toml"]).await;
    assert_eq!(said.code, 64, "{said:?}");
    assert!(!place.path("elsewhere").exists());
    let said = told(&place, &["init", "--config", "no/such/folder.toml"]).await;
    assert!(
        said.code == 1 && said.err.contains("cannot be written"),
        "{said:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_start_without_a_configuration_says_what_to_do() {
    let place = Place::free();
    let said = told(&place, &["serve"]).await;
    assert_eq!((said.code, said.err.lines().count()), (64, 3), "{said:?}");
    assert!(said.err.contains("everfeed init"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_is_added_and_comments_order_and_rights_stay() {
    let blog = blog(&["/posts.xml"]).await;
    let place = Place::free();
    let rest = "# Mine.\n[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:1/a.xml\"   # the first\n# Behind.\n";
    place.configure("# Ours.", rest);
    fs::set_permissions(place.file(), fs::Permissions::from_mode(0o600)).unwrap();
    let before = place.read("everfeed.toml");
    let said = told(&place, &["add", &blog.url("/")]).await;
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert!(said.out.contains("everfeed reload"), "{said:?}");
    let after = place.read("everfeed.toml");
    assert!(after.starts_with(&before), "{after}");
    assert!(
        after.contains(&format!("url = \"{}\"", blog.url("/posts.xml"))),
        "{after}"
    );
    let mode = fs::metadata(place.file()).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o600);
    check(&place).await;
    // A second time it is there already, whatever leads to it.
    for path in ["/", "/posts.xml"] {
        let said = told(&place, &["add", &blog.url(path)]).await;
        assert!(said.code == 64 && said.err.contains("already"), "{said:?}");
    }
    assert_eq!(place.read("everfeed.toml"), after);
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_are_added_at_once_are_all_kept_and_the_first_needs_none_before_it() {
    let blog = blog(&[]).await;
    let place = Place::free();
    place.configure("", "");
    let urls: Vec<String> = (0..6)
        .map(|n| blog.url(&format!("/posts.xml?cat={n}.xml")))
        .collect();
    let added = urls.iter().map(|url| ["add", url]);
    let added: Vec<_> = added
        .map(async |arguments| told(&place, &arguments).await)
        .collect();
    for said in futures_util::future::join_all(added).await {
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    }
    let after = place.read("everfeed.toml");
    for url in urls {
        assert!(after.contains(&format!("url = \"{url}\"")), "{after}");
    }
    check(&place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_added_changes_nothing() {
    let blog = blog(&["/posts.xml", "/comments.xml"]).await;
    let place = Place::free();
    place.configure(
        "",
        "[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:1/a.xml\"\n",
    );
    let before = place.read("everfeed.toml");
    let said = told(&place, &["add", &blog.url("/"), "--all", "--name", "x"]).await;
    assert!(said.code == 64 && said.err.contains("--name"), "{said:?}");
    let away = free_address();
    let said = told(&place, &["add", &format!("http://{away}/rss.xml")]).await;
    assert!(said.code == 1 && said.err.contains("fault"), "{said:?}");
    let said = told(&place, &["add", &blog.url("/posts.xml"), "--name", "blog"]).await;
    assert!(
        said.code == 64 && said.err.contains("another feed"),
        "{said:?}"
    );
    let said = told(
        &place,
        &["add", &blog.url("/posts.xml"), "--name", "No Name"],
    )
    .await;
    assert!(
        said.code == 64 && said.err.contains("everfeed.toml"),
        "{said:?}"
    );
    assert_eq!(place.read("everfeed.toml"), before);
    let names: Vec<_> = fs::read_dir(place.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["everfeed.toml"], "no temporary file is left");
}

/// The head of WordPress's front page, whose feeds are at a path each.
fn of_wordpress() -> Answer {
    page(
        "<title>Old Blog</title>\
         <link rel='alternate' type='application/rss+xml' title='Old Blog &raquo; Comments Feed' href='/comments/feed/'>\
         <link rel='alternate' type='application/rss+xml' title='Old Blog &raquo; Feed' href='/feed/'>\
         <link rel='alternate' type='application/atom+xml' title='Old Blog &raquo; Atom' href='/feed/atom/'>\
         <link rel='alternate' type='application/json' href='/wp-json/wp/v2/posts'>\
         <link rel='alternate' type='text/xml' title='Old Blog' href='/'>\
         <link rel='alternate' type='application/rss+xml' title='Broken' href='/broken'>",
    )
}

async fn wordpress() -> Publisher {
    Publisher::of(|asked: &Asked| match asked.path() {
        "/" => of_wordpress(),
        "/feed/" => ok(
            "application/rss+xml",
            "<rss version='2.0'><channel><title>Old Blog</title><item><title>One</title><link>https://old.example/1</link></item></channel></rss>",
        ),
        "/feed/atom/" => ok(
            "application/atom+xml",
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>Old Blog</title><entry><id>x</id><title>One</title><link href='https://old.example/1'/></entry></feed>",
        ),
        "/comments/feed/" => ok(
            "application/rss+xml",
            "<rss version='2.0'><channel><title>Comments for Old Blog</title><item><title>Re</title><link>https://old.example/1#c</link></item></channel></rss>",
        ),
        _ => with_headers(404, &[], ""),
    })
    .await
}

/// The lines of a configuration that name addresses of feeds.
fn urls(place: &Place) -> Vec<String> {
    let text = place.read("everfeed.toml");
    let lines = text.lines().filter_map(|line| line.strip_prefix("url = "));
    lines.map(|url| url.trim_matches('"').to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_front_page_the_first_feed_of_posts_is_taken_and_the_others_are_named() {
    let blog = wordpress().await;
    let of = |path: &str| blog.url(path);
    for command in ["add", "init"] {
        let place = Place::free();
        if command == "add" {
            place.configure("", "");
        }
        let said = told(&place, &[command, &blog.url("/")]).await;
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
        assert_eq!(urls(&place), [of("/feed/")], "{command}");
        for told in [
            format!(
                "{} “Comments for Old Blog”, comments: 1",
                of("/comments/feed/")
            ),
            format!("{} “Old Blog”, the same posts as Atom", of("/feed/atom/")),
            of("/broken"),
        ] {
            assert!(said.out.contains(&told), "{told} in {}", said.out);
        }
        check(&place).await;
    }
    assert!(!blog.paths().iter().any(|path| path.contains("wp-json")));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_feeds_of_a_page_are_taken_if_they_are_wanted() {
    let blog = wordpress().await;
    for command in ["add", "init"] {
        let place = Place::free();
        if command == "add" {
            place.configure(
                "",
                &format!("[[feed]]\nname = \"a\"\nurl = \"{}\"\n", blog.url("/feed")),
            );
        }
        let said = told(&place, &[command, &blog.url("/"), "--all"]).await;
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
        let mut found = urls(&place);
        found.sort();
        // The feed that is there already is there once, in its own spelling.
        let posts = if command == "add" { "/feed" } else { "/feed/" };
        let mut expect = ["/comments/feed/", posts, "/feed/atom/"].map(|path| blog.url(path));
        expect.sort();
        assert_eq!(found, expect, "{command}");
        check(&place).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_a_feed_of_posts_is_told_in_a_sentence_and_changes_nothing() {
    let comments = "<link rel='alternate' type='application/rss+xml' href='/comments.xml'>";
    let itself = "<link rel='alternate' type='application/rss+xml' href='/'>";
    let many: String = (0..500).map(|n| link(&format!("/none/{n}"))).collect();
    for (links, code, words) in [
        (comments, 64, "comments only"),
        (itself, 1, "names none"),
        ("", 1, "names none"),
        (&many, 1, "404"),
    ] {
        let links = links.to_owned();
        let blog = Publisher::of(move |asked: &Asked| match asked.path() {
            "/" => page(&links),
            "/comments.xml" => rss(2),
            _ => with_headers(404, &[], ""),
        })
        .await;
        for command in ["add", "init"] {
            let place = Place::free();
            if command == "add" {
                place.configure("", "");
            }
            let asked_before = blog.paths().len();
            let said = told(&place, &[command, &blog.url("/")]).await;
            assert!(
                said.code == code && said.err.contains(words),
                "{command}: {said:?}"
            );
            let asked = blog.paths().len() - asked_before;
            assert!(asked <= 9, "{asked} requests");
            let file = place.folder().join("everfeed.toml");
            assert_eq!(file.exists(), command == "add");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_cannot_lead_to_another_service_of_this_machine() {
    let inner = Publisher::of(|_: &Asked| rss(2)).await;
    let links = link(&inner.url("/secret.xml"));
    let blog = Publisher::of(move |_: &Asked| page(&links)).await;
    let place = Place::free();
    place.configure("", "");
    let said = told(&place, &["add", &blog.url("/")]).await;
    assert!(
        said.code == 1 && said.err.contains("not on the public internet"),
        "{said:?}"
    );
    assert!(inner.paths().is_empty());
    // Whoever gives the address himself is believed.
    let said = told(&place, &["add", &inner.url("/secret.xml")]).await;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!place.read("everfeed.toml").contains("public_hosts_only"));
}
