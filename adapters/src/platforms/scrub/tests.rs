use super::*;
use crate::{Element, Link};

fn scrubs(toml: &str) -> Vec<Scrub> {
    #[derive(Deserialize)]
    struct File {
        scrub: Vec<Scrub>,
    }
    toml::from_str::<File>(toml).unwrap().scrub
}

/// The rest of a content, with this `[[scrub]]`.
fn check(rule: &str, content: &str, expect: &str) {
    let entry = Entry {
        content: Some(Body {
            text: Text::html(content),
            ..Body::default()
        }),
        ..Entry::default()
    };
    let left = scrub(
        &scrubs(&format!("[[scrub]]\nwhy = \"test\"\n{rule}")),
        &entry,
    );
    assert_eq!(left.content.as_ref().unwrap().text.value, expect, "{rule}");
    assert_eq!(
        matches!(left, Cow::Borrowed(_)),
        content == expect,
        "nothing is copied for nothing: {rule}"
    );
}

#[test]
fn what_churns_is_cut_and_the_rest_stays() {
    check(r"cut = '\[\d+\]'", "a [1] b [22]", "a  b");
    check(r"cut = '\[\d+\]'", "a [x]", "a [x]");
    check(
        "images = '//t\\.example/'",
        "a <img src=\"http://t.example/1.gif?x=1\"/> b",
        "a  b",
    );
    check(
        "anchors = '/share'",
        "a <a href=\"/share?p=1\"><b>share</b></a>",
        "a",
    );
    check(
        "blocks = 'class=\"flare\"'",
        "a <div class=\"flare\"><div>x</div></div>b",
        "a b",
    );
}

#[test]
fn a_title_is_cut_only_when_it_is_named() {
    let entry = Entry {
        title: Some(Text::plain("News [3]")),
        ..Entry::default()
    };
    let title = |rule: &str| {
        let left = scrub(
            &scrubs(&format!("[[scrub]]\nwhy = \"test\"\n{rule}")),
            &entry,
        );
        left.title.clone().unwrap().value
    };
    assert_eq!(title(r"cut = '\[\d+\]'"), "News [3]");
    assert_eq!(title("cut = '\\[\\d+\\]'\nin = [\"title\"]"), "News");
}

#[test]
fn foreign_elements_and_parameters_go() {
    let element = |name: &str| Element {
        ns: "https://x.example/ns/".into(),
        name: name.into(),
        ..Element::default()
    };
    let link = Link {
        href: "http://e/1?utm_source=a&id=1&utm_medium=b#x".into(),
        rel: "alternate".into(),
        ..Link::default()
    };
    let entry = Entry {
        foreign: vec![element("count"), element("mood")],
        links: vec![link],
        ..Entry::default()
    };
    let rules = "[[scrub]]\nwhy='x'\nelement = { ns = \"http://x.example/ns#\", name = \"count\" }\n[[scrub]]\nwhy='x'\nparameters = [\"utm_*\"]";
    let left = scrub(&scrubs(rules), &entry);
    assert_eq!(left.foreign, [element("mood")]);
    assert_eq!(left.links[0].href, "http://e/1?id=1#x");
}

#[test]
fn the_version_follows_the_rules_and_not_their_reasons() {
    let of = |rule: &str| version(&scrubs(&format!("[[scrub]]\n{rule}")));
    assert_eq!(of("why='a'\nimages='x'"), of("why='b'\nimages='x'"));
    assert_ne!(of("why='a'\nimages='x'"), of("why='a'\nimages='y'"));
    assert_ne!(of("why='a'\nimages='x'"), of("why='a'\nanchors='x'"));
}

#[test]
fn a_text_that_is_too_long_is_compared_as_it_is() {
    let long = "[1]".repeat(TEXT_BYTES_MAX / 3 + 1);
    check(r"cut = '\[\d+\]'", &long, &long);
}
