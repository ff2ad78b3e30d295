//! Tests of the digest: which changes are edits.

use crate::{Entry, Hints, RawEntry, slice};

const NAMESPACES: &str = "xmlns:a='http://www.w3.org/2005/Atom' xmlns:slash='http://purl.org/rss/1.0/modules/slash/' \
    xmlns:thr='http://purl.org/syndication/thread/1.0' xmlns:media='http://search.yahoo.com/mrss/' xmlns:x='urn:x'";

const BASE: &str = "<guid>1</guid><title>t</title><link>http://e.org/1</link><description>d</description>\
    <pubDate>Fri, 30 May 2003 11:06:42 GMT</pubDate>";

fn raw(children: &str) -> RawEntry {
    let document = format!("<rss {NAMESPACES}><channel><item>{children}</item></channel></rss>");
    slice(document.as_bytes(), &Hints::default())
        .unwrap()
        .entries
        .remove(0)
}

fn entry(children: &str) -> Entry {
    raw(children).parse().0
}

fn with(more: &str) -> Entry {
    entry(&format!("{BASE}{more}"))
}

// POLLING 1.3.
#[test]
fn what_a_reader_would_call_an_edit_changes_the_digest() {
    let base = with("").digest();
    for (from, to) in [
        ("<title>t<", "<title>T<"),
        ("e.org/1<", "e.org/2<"),
        ("<description>d<", "<description>e<"),
        ("11:06:42", "11:06:43"),
    ] {
        assert_ne!(entry(&BASE.replace(from, to)).digest(), base, "{to}");
    }
    for more in [
        "<author>me</author>",
        "<category>c</category>",
        "<enclosure url='u'/>",
        "<a:rights>r</a:rights>",
        "<a:contributor><a:name>n</a:name></a:contributor>",
        "<a:link rel='via' href='http://e.org/v'/>",
        "<x:mood>m</x:mood>",
        "<media:thumbnail url='http://e.org/t'/>",
    ] {
        assert_ne!(with(more).digest(), base, "{more}");
    }
}

// POLLING 1.3.
#[test]
fn what_churns_by_itself_does_not() {
    let base = with("").digest();
    for more in [
        "<a:updated>2020-01-01T00:00:00Z</a:updated>",
        "<source url='http://e.org/s'>s</source>",
        "<slash:comments>5</slash:comments>",
        "<slash:hit_parade>1,2</slash:hit_parade>",
        "<thr:total>3</thr:total>",
        "<media:community><media:statistics views='1'/></media:community>",
        "<a:link rel='replies' href='http://e.org/r' thr:count='4'/>",
        "<a:link rel='self' href='http://e.org/self'/>",
        "<comments>http://e.org/1#c</comments>",
    ] {
        assert_eq!(with(more).digest(), base, "{more}");
    }
    assert_eq!(
        entry(&BASE.replace("<link>http:", "<link>https:")).digest(),
        base,
        "a move to TLS"
    );
    let spaced = BASE
        .replace("<title>t<", "<title> t\n<")
        .replace("><", ">\n  <");
    assert_eq!(
        entry(&spaced).digest(),
        base,
        "white space between and around"
    );
}

#[test]
fn the_order_of_attributes_says_nothing() {
    assert_eq!(
        with("<x:a b='1' c='2'/>").digest(),
        with("<x:a c='2' b='1'/>").digest()
    );
    assert_ne!(
        with("<x:a b='1' c='2'/>").digest(),
        with("<x:a b='2' c='1'/>").digest()
    );
    assert_eq!(
        with("<x:a/>").digest(),
        with("<y:a xmlns:y='urn:x'/>").digest(),
        "prefixes are names of names"
    );
}

#[test]
fn fields_cannot_flow_into_each_other() {
    assert_ne!(
        with("<category>ab</category>").digest(),
        with("<category>a</category><category>b</category>").digest()
    );
    assert_ne!(
        with("<x:a><x:b/></x:a>").digest(),
        with("<x:a/><x:b/>").digest()
    );
    let (title, description) = (
        "<guid>1</guid><title>x</title>",
        "<guid>1</guid><description>x</description>",
    );
    assert_ne!(entry(title).digest(), entry(description).digest());
}

#[test]
fn the_digest_of_a_known_entry_stays_what_it_is() {
    // A change of this value is a change of every digest that was ever stored: raise DIGEST_VERSION
    // with it.
    let entry = with(
        "<author>me@e.org (Me)</author><category domain='d'>c</category><enclosure url='u' length='1'/>\
        <a:rights>r</a:rights><x:mood level='1'>m</x:mood>",
    );
    assert_eq!(
        entry.digest().to_string(),
        "8e8494f7d6d3254aff30d39a78d96033"
    );
}
