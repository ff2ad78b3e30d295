//! Links in documents of XML: where they go, and that nothing else changes.

use super::*;
use everfeed_adapters::{Hints, parse};
use proptest::{collection::vec, prelude::*};

fn links() -> LegacyLinks {
    LegacyLinks {
        own: "http://b.example/f?a=1&b=2".to_owned(),
        hub: "http://b.example/hub".to_owned(),
        cloud: None,
    }
}

fn rewritten(document: impl AsRef<[u8]>, syntax: LegacySyntax) -> Option<String> {
    let out = with_links(document.as_ref(), syntax, &links())?;
    Some(String::from_utf8_lossy(&out).into_owned())
}

const RSS_LINKS: &str = "<atom:link xmlns:atom=\"http://www.w3.org/2005/Atom\" rel=\"self\" \
    href=\"http://b.example/f?a=1&amp;b=2\" type=\"application/rss+xml\"/>\
    <atom:link xmlns:atom=\"http://www.w3.org/2005/Atom\" rel=\"hub\" href=\"http://b.example/hub\"/>";
const ATOM_LINKS: &str = "<link rel=\"self\" href=\"http://b.example/f?a=1&amp;b=2\" type=\"application/atom+xml\"/>\
    <link rel=\"hub\" href=\"http://b.example/hub\"/>";

#[test]
fn links_come_first_in_the_head_and_nothing_else_changes() {
    let (rss, atom) = (LegacySyntax::Rss, LegacySyntax::Atom);
    let check = |syntax, links: &str, before: &str, after: &str| {
        let expect = format!("{before}{links}{after}");
        assert_eq!(
            rewritten(format!("{before}{after}"), syntax).as_deref(),
            Some(expect.as_str())
        );
    };
    check(
        rss,
        RSS_LINKS,
        "\u{feff}<?xml version='1.0'?>\r\n<!-- <channel> --><rss version=\"2.0\" >\n<channel a = '1' >",
        "<title>&nbsp; <![CDATA[<channel>]]></title>\t<item/></channel></rss>\n",
    );
    check(
        rss,
        RSS_LINKS,
        "<!DOCTYPE rss [<!ENTITY x \"<channel>\">]><rss><channel>",
        "<item><link rel='self'/></item>",
    );
    check(rss, RSS_LINKS, "<rss><channel>", "<item><title>broken");
    check(
        rss,
        RSS_LINKS,
        "<RSS VERSION=\"0.92\"><Channel>",
        "<TITLE>t</TITLE><ITEM/></Channel></RSS>",
    );
    check(
        atom,
        ATOM_LINKS,
        "<feed xmlns=\"http://www.w3.org/2005/Atom\">",
        "<link rel=\"alternate\" href=\"/\"/><entry><link rel=\"self\" href=\"/1\"/></entry></feed>",
    );
    let prefixed = ATOM_LINKS.replace("<link", "<a:link");
    check(
        atom,
        &prefixed,
        "<a:feed xmlns:a=\"http://www.w3.org/2005/Atom\">",
        "<a:title/></a:feed>",
    );
}

#[test]
fn another_address_of_the_document_gives_way_and_other_hubs_stay() {
    let head = "<rss xmlns:x=\"http://www.w3.org/2005/Atom\"><channel>";
    let hub = "<x:link rel=\"hub\" href=\"http://other.example/\"/>";
    let tail =
        "<item><x:link rel=\"self\" href=\"/1\"/></item><link rel=\"self\"/></channel></rss>";
    let document = format!(
        "{head}<title>t</title><x:link rel='self' href='/old'/>{hub}<x:link rel=\"self\">text</x:link>{tail}"
    );
    let expect = format!("{head}{RSS_LINKS}<title>t</title>{hub}{tail}");
    assert_eq!(
        rewritten(document, LegacySyntax::Rss).as_deref(),
        Some(expect.as_str())
    );
}

#[test]
fn a_word_that_the_feed_has_moved_is_taken_out_unless_it_leads_to_us() {
    let head = "<rss xmlns:i='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel>";
    let item = "<item><guid>1</guid><i:new-feed-url>http://evil.example/</i:new-feed-url></item>";
    let tail = format!("<title>t</title>{item}</channel></rss>");
    let check = |said: &str, stays: bool| {
        let kept = if stays { said } else { "" };
        let expect = format!("{head}{RSS_LINKS}<i:x/>{kept}{tail}");
        let document = format!("{head}<i:x/>{said}{tail}");
        let out = rewritten(document, LegacySyntax::Rss);
        assert_eq!(out.as_deref(), Some(&*expect), "{said}");
    };
    for away in [
        "<i:new-feed-url>http://evil.example/</i:new-feed-url>",
        "<i:NEW-Feed-Url>\n http://evil.example/ </i:NEW-Feed-Url>",
        "<new-feed-url><![CDATA[https://evil.example/f]]></new-feed-url>",
        "<redirect><newLocation>http://evil.example/</newLocation></redirect>",
        "<i:new-feed-url>http://b.example.evil.example/</i:new-feed-url>",
        "<i:new-feed-url>http://b.example@evil.example/</i:new-feed-url>",
        "<i:new-feed-url>http://b.example:81/f</i:new-feed-url>",
        "<i:new-feed-url>http&#58;//b.example/f</i:new-feed-url>",
        "<i:new-feed-url/>",
    ] {
        check(away, false);
    }
    for here in [
        "<i:new-feed-url>http://b.example/f?a=1&amp;b=2</i:new-feed-url>",
        "<i:new-feed-url><![CDATA[https://B.example./feeds/blog.rss]]></i:new-feed-url>",
    ] {
        check(here, true);
    }
    // The same in other spellings of `self`.
    let document = format!(
        "{head}<a:link xmlns:a='http://www.w3.org/2005/Atom' rel=' Self ' href='/old'/>{tail}"
    );
    let out = rewritten(document, LegacySyntax::Rss);
    assert_eq!(out, Some(format!("{head}{RSS_LINKS}{tail}")));
}

#[test]
fn a_document_without_a_place_for_links_stays_as_it_is() {
    for document in [
        "",
        "<rss/>",
        "<rss><channel/></rss>",
        "not xml",
        "<feed><x>",
        "{\"version\": 1}",
    ] {
        assert_eq!(rewritten(document, LegacySyntax::Rss), None, "{document}");
    }
    assert_eq!(rewritten("<rss><channel>", LegacySyntax::Other), None);
    let wide: Vec<u8> = "<rss><channel></channel></rss>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(rewritten(wide, LegacySyntax::Rss), None);
    // A byte that is no UTF-8 is a letter of another encoding.
    let latin = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><rss><channel><title>caf\xe9</title></channel></rss>";
    let out = with_links(latin, LegacySyntax::Rss, &links()).unwrap();
    assert!(out.ends_with(b"<title>caf\xe9</title></channel></rss>"));
}

#[test]
fn links_in_rdf_stand_in_its_channel_with_their_namespace() {
    let links = RSS_LINKS.replace("application/rss+xml", "application/rdf+xml");
    let check = |before: &str, after: &str| {
        let out = rewritten(format!("{before}{after}"), LegacySyntax::Rdf);
        assert_eq!(out.as_deref(), Some(&*format!("{before}{links}{after}")));
    };
    let root = "<?xml version=\"1.0\"?><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\">";
    let item = "<item rdf:about='/1'><title>One</title><link>/1</link></item>";
    check(
        &format!("{root}<!-- <channel> --><channel rdf:about='/'>"),
        &format!("<title/><items><rdf:Seq/></items></channel>{item}</rdf:RDF>"),
    );
    // Items may come first, and the vocabulary may have a prefix.
    check(
        &format!("{root}{item}<r:channel xmlns:r='http://purl.org/rss/1.0/' rdf:about='/' >"),
        "</r:channel></rdf:RDF>",
    );
    let own = "<a:link xmlns:a='http://www.w3.org/2005/Atom' rel='self' href='/old'/>";
    let before = format!("{root}<channel>");
    let after = "<link>http://b.example/</link></channel></rdf:RDF>";
    assert_eq!(
        rewritten(format!("{before}{own}{after}"), LegacySyntax::Rdf),
        Some(format!("{before}{links}{after}"))
    );
}

#[test]
fn every_syntax_that_gets_links_is_pushed_and_no_other() {
    for syntax in [
        LegacySyntax::Rss,
        LegacySyntax::Rdf,
        LegacySyntax::Atom,
        LegacySyntax::JsonFeed,
    ] {
        assert!(
            pushed(syntax).is_some_and(Representation::is_classic),
            "{syntax:?}"
        );
    }
    assert_eq!(pushed(LegacySyntax::Other), None);
    let cdf = "<CHANNEL HREF=\"http://b/\"><TITLE>b</TITLE><ITEM HREF=\"http://b/1\"/></CHANNEL>";
    assert_eq!(rewritten(cdf, LegacySyntax::Other), None);
}

/// Things that may stand in the head of a document or in an item.
fn markup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<title>T &amp; t</title>".to_owned()),
        Just("<description><![CDATA[</channel><link rel='self'/>]]></description>".to_owned()),
        Just("<!-- <channel><feed> -->".to_owned()),
        Just("<?pi <channel> ?>".to_owned()),
        Just("<x a='>' b = \"1\"\t/>".to_owned()),
        Just("<x><channel><link rel='self'>deep</link></channel></x>".to_owned()),
        Just("<link>http://b/</link>".to_owned()),
        "[a-zé \r\n\t]{0,5}",
    ];
    vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn an_insertion_changes_nothing_else(
        mark in prop_oneof![Just(""), Just("\u{feff}")],
        declaration in prop_oneof![Just(""), Just("<?xml version=\"1.0\"?>\r\n<!-- <rss> -->")],
        (before, after, one, two) in (markup(), markup(), markup(), markup()),
        which in 0..3_usize,
    ) {
        let (syntax, root, head, item, end) = [
            (LegacySyntax::Rss, "<rss version='2.0'>", "<channel >", "item", "</channel></rss>"),
            (
                LegacySyntax::Rdf,
                "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\">",
                "<channel>", "item", "</channel></rdf:RDF>",
            ),
            (LegacySyntax::Atom, "", "<feed xmlns='http://www.w3.org/2005/Atom'>", "entry", "</feed>"),
        ][which];
        let items = format!("<{item}><id>1</id><guid>1</guid>{one}</{item}><{item}><id>2</id><guid>2</guid>{two}</{item}>");
        let start = format!("{mark}{declaration}{root}{head}");
        let rest = format!("{before}{items}{after}{end}");
        let document = format!("{start}{rest}");
        let out = rewritten(&document, syntax).unwrap();
        let ours = out.strip_prefix(&start).and_then(|out| out.strip_suffix(&rest)).map(str::to_owned);
        prop_assert!(ours.is_some_and(|ours| ours.matches("rel=").count() == 2), "{}", out);
        let read = |document: &str| parse(document.as_bytes(), &Hints::default()).unwrap();
        let (was, is) = (read(&document), read(&out));
        prop_assert_eq!(was.entries.len(), 2);
        prop_assert_eq!(was.entries, is.entries);
        let hubs: Vec<_> = is.metadata.hubs().collect();
        prop_assert_eq!(hubs, ["http://b.example/hub"]);
    }
}

#[test]
fn a_cloud_stands_in_rss_alone_and_there_is_never_a_second() {
    let place = CloudEndpoint {
        domain: "b.example".to_owned(),
        port: 8080,
        path: "/a&b/pleaseNotify".to_owned(),
    };
    let links = LegacyLinks {
        cloud: Some(place),
        ..links()
    };
    let out = |document: &str, syntax| {
        String::from_utf8(with_links(document.as_bytes(), syntax, &links).unwrap()).unwrap()
    };
    let element = "<cloud domain=\"b.example\" port=\"8080\" path=\"/a&amp;b/pleaseNotify\" registerProcedure=\"\" protocol=\"http-post\"/>";
    for own in [
        "",
        "<cloud domain='x'/>",
        "<cloud domain='x'>\n</cloud>",
        "<cloud/><cloud></cloud>",
    ] {
        let tail = "<x:cloud xmlns:x='urn:x'/><item><cloud/></item></channel></rss>";
        let document = format!("<rss><channel><title>t</title>{own}{tail}");
        let expect = format!("<rss><channel>{RSS_LINKS}{element}<title>t</title>{tail}");
        assert_eq!(out(&document, LegacySyntax::Rss), expect);
    }
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><cloud/></feed>";
    assert!(out(atom, LegacySyntax::Atom).ends_with("<cloud/></feed>"));
    assert!(!out("<r><channel></channel></r>", LegacySyntax::Rdf).contains("<cloud"));
}
