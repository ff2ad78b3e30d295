//! JSON-P on the wire: good names are called, bad ones refused and never repeated.
//!
//! Rows: SF-41, SF-45..SF-47, SF-53; D-12, D-26.

use super::rig::Site;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

fn target(name: &str) -> String {
    format!(
        "/feeds/blog?max=1&callback={}",
        utf8_percent_encode(name, NON_ALPHANUMERIC)
    )
}

fn names(key: &str) -> Vec<String> {
    serde_json::from_value(testkit::data::vectors()["jsonp"][key].clone()).unwrap()
}

/// The argument that a script hands to the function.
fn argument<'a>(script: &'a str, name: &str) -> &'a str {
    let inside = script
        .strip_prefix(&format!("/**/{name}("))
        .and_then(|rest| rest.strip_suffix(");"));
    inside.unwrap_or_else(|| panic!("{script}"))
}

#[tokio::test(start_paused = true)]
async fn every_valid_name_of_the_vectors_is_called_with_the_page() {
    // SF-41, SF-45..SF-47; D-12; point 8 of the minimal list.
    let site = Site::of(1..=3).await;
    let json = site.page("max=1").await;
    let atom = site.get("/feeds/blog.atom?max=1").await;
    for name in names("valid_callbacks") {
        let script = site.get(&target(&name)).await;
        assert_eq!(
            (script.status, script.header("content-type")),
            (200, "application/javascript; charset=utf-8")
        );
        assert_eq!(script.header("x-content-type-options"), "nosniff");
        assert_eq!(
            (script.header("cache-control"), script.header("set-cookie")),
            ("no-store", "")
        );
        assert_eq!(
            serde_json::from_str::<Value>(argument(script.text(), &name)).unwrap(),
            json
        );
        assert!(
            !script.text().contains(['<', '>', '&', '\u{2028}']),
            "nothing in it can end a script element"
        );
        let script = site
            .get_with(&target(&name), &[("accept", "application/atom+xml")])
            .await;
        let document: String = serde_json::from_str(argument(script.text(), &name)).unwrap();
        assert_eq!(document, atom.text());
        let fixed = site
            .get(&target(&name).replace("blog?", "blog.atom?"))
            .await;
        assert_eq!(
            fixed.body, script.body,
            "a form in the path goes before Accept"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_invalid_name_of_the_vectors_is_refused_and_not_repeated() {
    let site = Site::of(1..=3).await;
    for name in names("invalid_callbacks") {
        for accept in ["*/*", "application/json"] {
            let answer = site.get_with(&target(&name), &[("accept", accept)]).await;
            if name.is_empty() {
                assert_eq!(answer.status, 200, "an empty name is none");
                continue;
            }
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (400, "text/plain; charset=utf-8"),
                "{name:?}"
            );
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            let told = answer.text();
            assert_eq!(told, "`callback` must be the name of a function\n");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_under_json_p_keeps_its_status_and_is_plain_text() {
    // D-12.
    let site = Site::of(1..=3).await;
    for (query, status) in [
        ("max=0", 400),
        ("since=junk", 400),
        ("order=created&since=id:x", 404),
    ] {
        for accept in ["*/*", "application/json"] {
            let target = format!("/feeds/blog.json?callback=evil&{query}");
            let answer = site.get_with(&target, &[("accept", accept)]).await;
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (status, "text/plain; charset=utf-8")
            );
            assert!(!answer.text().contains("evil"));
        }
    }
    let unread = Site::unread().await;
    let answer = unread
        .get_with(
            "/feeds/blog?callback=evil",
            &[("accept", "application/json")],
        )
        .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (503, "text/plain; charset=utf-8")
    );
}

#[tokio::test(start_paused = true)]
async fn a_script_is_for_one_page_and_next_does_not_name_its_function() {
    // SF-53; D-26.
    let site = Site::of(1..=3).await;
    let script = site.get("/feeds/blog.json?max=1&callback=cb&_=3").await;
    let page: Value = serde_json::from_str(argument(script.text(), "cb")).unwrap();
    assert!(!page["next"].as_str().unwrap().contains("cb"));
    assert_eq!(
        (script.header("etag"), script.header("last-modified")),
        ("", "")
    );
}

#[tokio::test(start_paused = true)]
async fn the_list_and_the_descriptions_are_handed_to_scripts_too() {
    // SF-41, D-12.
    let site = Site::of(1..=3).await;
    for target in ["/feeds", "/feeds/blog/about"] {
        let json = site.get(target).await.json();
        let script = site
            .get_with(
                &format!("{target}?callback=a.b"),
                &[("accept", "text/html")],
            )
            .await;
        assert_eq!(
            script.header("content-type"),
            "application/javascript; charset=utf-8"
        );
        assert_eq!(script.header("x-content-type-options"), "nosniff");
        assert_eq!(
            serde_json::from_str::<Value>(argument(script.text(), "a.b")).unwrap(),
            json
        );
        let bad = site.get(&format!("{target}?callback=alert(1)")).await;
        assert_eq!((bad.status, bad.text().contains("alert")), (400, false));
        assert_eq!(
            site.get(&format!("{target}?callback=a&callback=a"))
                .await
                .status,
            400
        );
        assert_eq!(site.get(&format!("{target}?callback=")).await.json(), json);
    }
    let every = ["json", "jsonfeed", "as2"];
    for suffix in every {
        let json = site
            .get(&format!("/feeds/blog.{suffix}?since=cursor:"))
            .await
            .json();
        let script = site
            .get(&format!("/feeds/blog.{suffix}?since=cursor:&callback=f"))
            .await;
        assert_eq!(
            serde_json::from_str::<Value>(argument(script.text(), "f")).unwrap(),
            json
        );
    }
}
