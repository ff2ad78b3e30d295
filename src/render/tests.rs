//! From the bytes of an upstream to the bytes of our documents: what its markup and its links come to.

use super::{
    representation::Representation,
    samples::{live, rendered},
};
use everfeed_adapters::{Hints, slice};

/// The only entry of a document, rendered in a representation.
fn through(document: &str, representation: Representation) -> String {
    let hints = Hints { base_url: Some("http://example.org/feed"), ..Hints::default() };
    let window = slice(document.as_bytes(), &hints).unwrap();
    let (entry, _) = window.entries[0].parse();
    rendered(representation, vec![live(1, entry)])
}

fn atom(inside: &str) -> String {
    format!("<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>urn:x:1</id>{inside}</entry></feed>")
}

#[track_caller]
fn check(inside: &str, representation: Representation, expect: &str) {
    let found = through(&atom(inside), representation);
    assert!(found.contains(expect), "no {expect} in\n{found}");
}

#[test]
fn a_value_of_xhtml_cannot_break_out_of_its_quotes() {
    // PARSING section 0.5.
    let content = r#"<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p title="x&quot; onmouseover=&quot;alert(1)">a</p></div></content>"#;
    let xhtml = r#"<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p title="x&quot; onmouseover=&quot;alert(1)">a</p></div></content>"#;
    check(content, Representation::ATOM, xhtml);
    check(content, Representation::CLASSIC_ATOM, xhtml);
    check(
        content,
        Representation::CLASSIC_RSS,
        r#"<description>&lt;p title="x&amp;quot; onmouseover=&amp;quot;alert(1)"&gt;a&lt;/p&gt;</description>"#,
    );
    check(
        content,
        Representation::JSON,
        r#""content":"<p title=\"x&quot; onmouseover=&quot;alert(1)\">a</p>""#,
    );
}

#[test]
fn xhtml_keeps_its_vocabularies_and_reads_the_same_as_html() {
    let content = "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><a name='n'/><br/>\
         <math xmlns='http://www.w3.org/1998/Math/MathML'><mi>&nbsp;<![CDATA[<]]></mi></math></div></content>";
    let inside = "<a name=\"n\"></a><br/><math xmlns=\"http://www.w3.org/1998/Math/MathML\"><mi>\u{a0}&lt;</mi></math>";
    check(
        content,
        Representation::ATOM,
        &format!("<div xmlns=\"http://www.w3.org/1999/xhtml\">{inside}</div>"),
    );
    check(
        content,
        Representation::CLASSIC_RSS,
        &inside.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
    );
}

#[test]
fn links_that_run_something_do_not_leave_the_house() {
    let atom = atom(
        "<link href='javascript:alert(1)'/><link href=' java&#10;script:alert(2)' rel='related'/>\
         <link rel='enclosure' href='vbscript:alert(3)'/><link rel='replies' href='JAVASCRIPT:alert(4)'/>\
         <link href='http://example.org/good'/><content src='javascript:alert(5)'/>\
         <author><name>Jo</name><uri>javascript:alert(6)</uri></author>\
         <source><title>s</title><link href='javascript:alert(7)'/></source>\
         <m:content xmlns:m='http://search.yahoo.com/mrss/' url='javascript:alert(8)' medium='x'/>",
    );
    let rss = "<rss version='2.0'><channel><item><title>t</title><link>javascript:alert(1)</link>\
         <comments>javascript:alert(2)</comments><enclosure url='data:text/html,alert(3)' type='text/html'/>\
         <source url='javascript:alert(4)'>s</source><guid>x</guid></item></channel></rss>";
    for representation in Representation::all() {
        for document in [atom.as_str(), rss] {
            let found = through(document, representation);
            assert!(!found.contains("alert("), "{found}");
        }
        assert!(through(&atom, representation).contains("http://example.org/good"), "the others stay");
    }
    let (entry, _) = slice(rss.as_bytes(), &Hints::default()).unwrap().entries[0].parse();
    assert_eq!(entry.permalink(), Some("javascript:alert(1)"), "the entry keeps what it had");
}

#[test]
fn html_is_passed_on_as_it_was() {
    let html = "<content type='html'>&lt;script>a()&lt;/script>&lt;b onclick=\"b()\">c</content>";
    check(html, Representation::JSON, r#""content":"<script>a()</script><b onclick=\"b()\">c""#);
}
