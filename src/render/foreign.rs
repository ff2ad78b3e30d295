//! Markup of other vocabularies in our documents: what of it is left out, and under which prefix it
//! stands. The writing is the adapters'.

use super::{harmless, namespaces as ns, target};
use everfeed_adapters::{
    Attribute, Element, Node, customary,
    text::markup::{can_be_written, write_element},
};
use std::borrow::Cow;

/// Attributes that lead somewhere in nearly every vocabulary that feeds carry.
const TARGETS: [&str; 4] = ["href", "src", "url", "resource"];

/// Beginnings of the namespaces of formats: Atom, its drafts, and RSS as its versions name
/// themselves.
const FEED_NAMESPACES: [&str; 8] = [
    ns::ATOM,
    "http://purl.org/atom/",
    "http://purl.org/rss/1.0/",
    "http://purl.org/rss/2.0",
    "http://purl.org/net/rss1.1",
    "http://my.netscape.com/",
    "http://channel.netscape.com/",
    "http://backend.userland.com/",
];

/// Elements that hold a post in them.
const POSTS: [&str; 2] = ["item", "entry"];

/// Elements, of any vocabulary, by which a feed says that it has moved. Players of podcasts follow
/// `itunes:new-feed-url` for good, and would take our readers along.
const MOVES: [&str; 2] = ["new-feed-url", "newlocation"];

/// Elements, of any vocabulary, by which directories and players are shown whose feed a document is,
/// or are told not to poll it. Ours belongs to somebody else, and nobody pings for it.
const CLAIMS: [&str; 4] = [
    "applepodcastsverify",
    "follow_challenge",
    "podping",
    "verify",
];

/// Writes an element. One whose tags some parser would refuse is left out with all that is in it:
/// its words alone would stand among ours and mean nothing.
pub(super) fn write(out: &mut String, element: &Element, declared: &[(&str, &str)]) {
    let Some(element) = safe(element) else { return };
    let element = without_posts(&element);
    if can_be_written(&element) {
        write_element(out, &prefixed(&well_spelt(&element)), declared);
    }
}

/// Without what readers would take for posts, tombstones and cursors of ours: many of them look for
/// these at any depth, and nobody's markup is to speak for the feed.
fn without_posts(element: &Element) -> Cow<'_, Element> {
    let is_post = |node: &Node| matches!(node, Node::Element(inner) if is_post(inner));
    mended(
        element,
        &|element| element.children.iter().any(is_post),
        &|element| element.children.retain(|node| !is_post(node)),
    )
}

fn is_post(element: &Element) -> bool {
    let is_of_feeds =
        element.ns.is_empty() || FEED_NAMESPACES.iter().any(|ns| element.ns.starts_with(ns));
    let is_named = || {
        POSTS
            .iter()
            .any(|name| element.name.eq_ignore_ascii_case(name))
    };
    [ns::SMART_FEED, ns::TOMBSTONES].contains(&element.ns.as_str()) || (is_of_feeds && is_named())
}

/// Elements of a default namespace of their own are given a prefix here, because readers that know
/// nothing of namespaces would take a `title` of somebody else's for that of the entry.
fn prefixed(element: &Element) -> Cow<'_, Element> {
    if element.ns.is_empty() || !element.prefix.is_empty() {
        return Cow::Borrowed(element);
    }
    let prefix = customary(&element.ns).map_or("ns1", |(prefix, _)| prefix);
    Cow::Owned(Element {
        prefix: prefix.to_owned(),
        ..element.clone()
    })
}

/// With namespaces as they are defined, where they are written with a slash too few or in another
/// case: many readers know no other spelling.
fn well_spelt(element: &Element) -> Cow<'_, Element> {
    let is_misspelt = |element: &Element| {
        customary(&element.ns).is_some_and(|(_, defined)| defined != element.ns)
    };
    mended(element, &is_misspelt, &|element| {
        if let Some((_, defined)) = customary(&element.ns) {
            defined.clone_into(&mut element.ns);
        }
    })
}

/// An element without what runs or leads astray; `None` when there is nothing else.
pub(super) fn safe(element: &Element) -> Option<Cow<'_, Element>> {
    if is_nothing_but_astray(element) || is_of_publisher(element) {
        return None;
    }
    match passable(element) {
        Cow::Borrowed(element) => harmless::element(element),
        Cow::Owned(element) => {
            harmless::element(&element).map(|element| Cow::Owned(element.into_owned()))
        }
    }
}

// Decides: Which words of a publisher about its own feed would be false in ours?
/// True for an element that says of the publisher's document where it is, or whose it is. In ours it
/// would move our readers away, or hand our address to somebody else.
fn is_of_publisher(element: &Element) -> bool {
    let is_one_of = |names: &[&str]| {
        let mut names = names.iter();
        names.any(|name| element.name.eq_ignore_ascii_case(name))
    };
    // `podcast:txt` holds the proof of an owner, too.
    let proves = |attribute: &Attribute| {
        attribute.name == "purpose" && attribute.value.to_ascii_lowercase().contains("verify")
    };
    let is_proof =
        element.name.eq_ignore_ascii_case("txt") && element.attributes.iter().any(proves);
    is_one_of(&MOVES) || is_one_of(&CLAIMS) || is_proof
}

/// Without the links that nobody should follow, without the elements inside of which these were all,
/// and without what the publisher says of its own document at any depth.
fn passable(element: &Element) -> Cow<'_, Element> {
    let is_out = |node: &Node| {
        let Node::Element(inner) = node else {
            return false;
        };
        is_nothing_but_astray(inner) || is_of_publisher(inner)
    };
    mended(
        element,
        &|element| element.attributes.iter().any(is_astray) || element.children.iter().any(is_out),
        &|element| {
            element.attributes.retain(|attribute| !is_astray(attribute));
            element.children.retain(|node| !is_out(node));
        },
    )
}

/// True for an element that only leads where nobody should go: nothing is left of it.
fn is_nothing_but_astray(element: &Element) -> bool {
    element.children.is_empty()
        && !element.attributes.is_empty()
        && element.attributes.iter().all(is_astray)
}

/// An element that is mended at every depth, if it has to be at any.
fn mended<'e>(
    element: &'e Element,
    is_wrong: &dyn Fn(&Element) -> bool,
    mend: &dyn Fn(&mut Element),
) -> Cow<'e, Element> {
    if !is_anywhere(element, is_wrong) {
        return Cow::Borrowed(element);
    }
    let mut element = element.clone();
    everywhere(&mut element, mend);
    Cow::Owned(element)
}

fn is_anywhere(element: &Element, is_so: &dyn Fn(&Element) -> bool) -> bool {
    let inside = |node: &Node| matches!(node, Node::Element(inner) if is_anywhere(inner, is_so));
    is_so(element) || element.children.iter().any(inside)
}

fn everywhere(element: &mut Element, act: &dyn Fn(&mut Element)) {
    act(element);
    for node in &mut element.children {
        if let Node::Element(inner) = node {
            everywhere(inner, act);
        }
    }
}

fn is_astray(attribute: &Attribute) -> bool {
    TARGETS.contains(&attribute.name.as_str()) && !target::may_be_named(&attribute.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(element: &Element, expect: &str) {
        let mut out = String::new();
        write(&mut out, element, &[("", "urn:atom"), ("fo", "urn:fo")]);
        assert_eq!(out, expect);
    }

    fn element(ns: &str, prefix: &str, name: &str) -> Element {
        Element {
            ns: ns.into(),
            prefix: prefix.into(),
            name: name.into(),
            ..Element::default()
        }
    }

    #[test]
    fn a_default_namespace_of_its_own_becomes_a_prefix() {
        let mut outer = element("urn:m", "", "group");
        outer.children = vec![
            Node::Element(element("urn:m", "", "title")),
            Node::Element(element("", "", "x")),
        ];
        check(
            &outer,
            r#"<ns1:group xmlns:ns1="urn:m"><ns1:title/><x xmlns=""/></ns1:group>"#,
        );
        check(&element("urn:atom", "", "a"), "<a/>");
        check(
            &element("urn:m", "fo", "a"),
            r#"<ns1:a xmlns:ns1="urn:m"/>"#,
        );
    }

    #[test]
    fn namespaces_are_written_as_they_are_defined() {
        let mut group = element("http://search.yahoo.com/mrss", "", "group");
        group.children = vec![Node::Element(element(
            "https://search.yahoo.com/MRSS/",
            "m",
            "title",
        ))];
        check(
            &group,
            r#"<media:group xmlns:media="http://search.yahoo.com/mrss/"><media:title/></media:group>"#,
        );
        check(&element("urn:x", "", "a"), r#"<ns1:a xmlns:ns1="urn:x"/>"#);
    }

    #[test]
    fn posts_and_cursors_inside_are_left_out_at_any_depth() {
        let mut inner = element("urn:m", "m", "conflict");
        let posts = [
            ("", "item"),
            (ns::ATOM, "entry"),
            (ns::TOMBSTONES, "deleted-entry"),
        ];
        let posts = posts
            .into_iter()
            .chain([(ns::SMART_FEED, "last_cursor"), ("", "Item")]);
        inner.children = posts
            .map(|(ns, name)| Node::Element(element(ns, "p", name)))
            .collect();
        inner
            .children
            .push(Node::Element(element("urn:m", "m", "item")));
        let mut outer = element("urn:m", "m", "conflicts");
        outer.children = vec![Node::Element(inner), Node::Text("x".into())];
        check(
            &outer,
            r#"<m:conflicts xmlns:m="urn:m"><m:conflict><m:item/></m:conflict>x</m:conflicts>"#,
        );
    }

    #[test]
    fn nothing_moves_or_claims_a_feed_at_any_depth_and_in_any_spelling() {
        let itunes = "http://www.itunes.com/dtds/podcast-1.0.dtd";
        let said = |ns: &str, name: &str, text: &str| Element {
            children: vec![Node::Text(text.into())],
            ..element(ns, "p", name)
        };
        let proof = |purpose: &str| Element {
            attributes: vec![Attribute {
                name: "purpose".into(),
                value: purpose.into(),
                ..Attribute::default()
            }],
            ..said("urn:podcast", "txt", "x")
        };
        let attacks = [
            said(itunes, "new-feed-url", "http://evil.example/"),
            said(itunes, "New-Feed-URL", "http://evil.example/"),
            said("urn:other", "new-feed-url", "http://evil.example/"),
            said("", "newLocation", "http://evil.example/"),
            said(itunes, "applepodcastsverify", "code"),
            said("", "follow_challenge", "feed"),
            said("urn:fyyd", "verify", "code"),
            element("urn:podcast", "p", "podping"),
            proof("verify"),
            proof("ApplePodcastsVerify"),
        ];
        let honest = [
            said(itunes, "owner", "Jo"),
            said("urn:podcast", "guid", "1"),
            proof("license"),
        ];
        for attack in &attacks {
            check(attack, "");
            assert!(safe(attack).is_none(), "{attack:?}");
        }
        for one in &honest {
            assert!(safe(one).is_some(), "{one:?}");
        }
        let mut outer = element("urn:m", "m", "deep");
        let mut inner = outer.clone();
        inner.children = attacks.iter().cloned().map(Node::Element).collect();
        inner.children.push(Node::Element(honest[1].clone()));
        outer.children = vec![Node::Element(inner)];
        let expect = "<m:deep xmlns:m=\"urn:m\"><m:deep><p:guid xmlns:p=\"urn:podcast\">1</p:guid></m:deep></m:deep>";
        check(&outer, expect);
    }

    #[test]
    fn what_cannot_be_written_is_left_out_with_all_that_is_in_it() {
        let mut refused = element("urn:m", "m", "a b");
        refused.children = vec![Node::Text("x".into())];
        check(&refused, "");
    }

    #[test]
    fn links_that_run_something_are_left_out() {
        let link = |value: &str| Attribute {
            name: "url".into(),
            value: value.into(),
            ..Attribute::default()
        };
        let mut outer = element("urn:m", "m", "content");
        outer.attributes = vec![link("https://e.org/")];
        let mut inner = element("urn:m", "m", "thumbnail");
        inner.attributes = vec![link(" java\nscript:alert(1)")];
        outer.children = vec![Node::Element(inner.clone())];
        check(
            &outer,
            r#"<m:content xmlns:m="urn:m" url="https://e.org/"/>"#,
        );
        check(&inner, "");
        inner.attributes.push(Attribute {
            name: "width".into(),
            value: "1".into(),
            ..Attribute::default()
        });
        check(&inner, r#"<m:thumbnail xmlns:m="urn:m" width="1"/>"#);
    }
}
