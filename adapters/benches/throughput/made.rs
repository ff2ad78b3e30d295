//! Documents like those of real feeds, the same in every run: five ways to carry the same posts.

use std::fmt::Write as _;

/// Format in which a document carries its posts.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// RSS as WordPress writes it: `content:encoded` in CDATA beside a short description.
    RssLiteral,
    /// RSS with its HTML escaped in the description.
    RssEscaped,
    /// Atom, content of type html, escaped.
    AtomHtml,
    /// Atom, content of type xhtml.
    AtomXhtml,
    /// RSS 1.0 with Dublin Core and `content:encoded`.
    Rdf,
}

impl Shape {
    pub(crate) const ALL: [Self; 5] = [
        Self::RssLiteral,
        Self::RssEscaped,
        Self::AtomHtml,
        Self::AtomXhtml,
        Self::Rdf,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RssLiteral => "RSS, content:encoded in CDATA",
            Self::RssEscaped => "RSS, escaped HTML",
            Self::AtomHtml => "Atom, escaped HTML",
            Self::AtomXhtml => "Atom, XHTML",
            Self::Rdf => "RSS 1.0, content:encoded in CDATA",
        }
    }
}

/// A document of about so many bytes.
pub(crate) fn document(shape: Shape, bytes: usize) -> String {
    let (head, tail) = frame(shape);
    let mut document = head.to_owned();
    let mut n = 0;
    while document.len() < bytes {
        entry(&mut document, shape, n);
        n += 1;
    }
    document.push_str(tail);
    document
}

fn frame(shape: Shape) -> (&'static str, &'static str) {
    match shape {
        Shape::RssLiteral | Shape::RssEscaped => (
            r#"<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"
	xmlns:content="http://purl.org/rss/1.0/modules/content/"
	xmlns:wfw="http://wellformedweb.org/CommentAPI/"
	xmlns:dc="http://purl.org/dc/elements/1.1/"
	xmlns:atom="http://www.w3.org/2005/Atom"
	xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"
	xmlns:slash="http://purl.org/rss/1.0/modules/slash/"
	>

<channel>
	<title>An old blog</title>
	<atom:link href="https://blog.example/feed/" rel="self" type="application/rss+xml" />
	<link>https://blog.example/</link>
	<description>Since 2003</description>
	<lastBuildDate>Sun, 01 Jan 2012 10:00:00 +0000</lastBuildDate>
	<language>en-US</language>
	<sy:updatePeriod>hourly</sy:updatePeriod>
	<sy:updateFrequency>1</sy:updateFrequency>
	<generator>https://wordpress.org/?v=3.2</generator>
"#,
            "</channel>\n</rss>\n",
        ),
        Shape::AtomHtml | Shape::AtomXhtml => (
            r#"<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:thr="http://purl.org/syndication/thread/1.0" xml:lang="en">
  <title>An old blog</title>
  <link rel="alternate" type="text/html" href="https://blog.example/"/>
  <link rel="self" type="application/atom+xml" href="https://blog.example/atom.xml"/>
  <id>tag:blog.example,2003:blog</id>
  <updated>2012-01-01T10:00:00Z</updated>
  <generator uri="http://www.sixapart.com/movabletype/" version="4.2">Movable Type</generator>
"#,
            "</feed>\n",
        ),
        Shape::Rdf => (
            r##"<?xml version="1.0" encoding="utf-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:content="http://purl.org/rss/1.0/modules/content/"
  xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="https://blog.example/">
<title>An old blog</title>
<link>https://blog.example/</link>
<description>Since 2003</description>
<dc:language>en</dc:language>
</channel>
"##,
            "</rdf:RDF>\n",
        ),
    }
}

fn entry(out: &mut String, shape: Shape, n: usize) {
    let html = post(n);
    let excerpt = SENTENCES[n % SENTENCES.len()];
    let (year, month, day) = (2003 + n % 9, 1 + n % 12, 1 + n % 28);
    // A string never refuses to be written to.
    let _ = match shape {
        Shape::RssLiteral => write!(
            out,
            r#"	<item>
		<title>Post number {n}: what I did &#038; why</title>
		<link>https://blog.example/{year}/{month:02}/post-{n}/</link>
		<comments>https://blog.example/{year}/{month:02}/post-{n}/#comments</comments>
		<pubDate>Thu, {day:02} May {year} 09:15:00 +0000</pubDate>
		<dc:creator><![CDATA[Jo Doe]]></dc:creator>
		<category><![CDATA[Notes]]></category>
		<category><![CDATA[Garden]]></category>
		<guid isPermaLink="false">https://blog.example/?p={n}</guid>
		<description><![CDATA[{excerpt} [&#8230;]]]></description>
		<content:encoded><![CDATA[{html}]]></content:encoded>
		<wfw:commentRss>https://blog.example/{year}/{month:02}/post-{n}/feed/</wfw:commentRss>
		<slash:comments>{}</slash:comments>
	</item>
"#,
            n % 40,
        ),
        Shape::RssEscaped => write!(
            out,
            r#"<item>
<title>Post number {n}: what I did &amp; why</title>
<link>https://blog.example/{year}/{month:02}/post-{n}/</link>
<guid>https://blog.example/{year}/{month:02}/post-{n}/</guid>
<pubDate>Thu, {day:02} May {year} 09:15:00 GMT</pubDate>
<author>jo@blog.example (Jo Doe)</author>
<category domain="https://blog.example/tags/">Notes</category>
<description>{}</description>
</item>
"#,
            escaped(&html),
        ),
        Shape::AtomHtml | Shape::AtomXhtml => {
            let content = match shape {
                Shape::AtomHtml => format!(r#"<content type="html">{}</content>"#, escaped(&html)),
                _ => format!(
                    r#"<content type="xhtml" xml:base="https://blog.example/"><div xmlns="http://www.w3.org/1999/xhtml">{html}</div></content>"#
                ),
            };
            write!(
                out,
                r#"  <entry>
    <title>Post number {n}: what I did &amp; why</title>
    <link rel="alternate" type="text/html" href="https://blog.example/{year}/{month:02}/post-{n}.html"/>
    <link rel="replies" type="application/atom+xml" href="https://blog.example/{n}/comments.xml" thr:count="{}"/>
    <id>tag:blog.example,{year}:post-{n}</id>
    <published>{year}-{month:02}-{day:02}T09:15:00Z</published>
    <updated>{year}-{month:02}-{day:02}T10:15:00+01:00</updated>
    <author><name>Jo Doe</name><uri>https://blog.example/jo</uri></author>
    <category term="notes" scheme="https://blog.example/tags/" label="Notes"/>
    <summary>{excerpt}</summary>
    {content}
  </entry>
"#,
                n % 40,
            )
        }
        Shape::Rdf => write!(
            out,
            r#"<item rdf:about="https://blog.example/archives/{n:06}.html">
<title>Post number {n}: what I did &amp; why</title>
<link>https://blog.example/archives/{n:06}.html</link>
<description>{excerpt}</description>
<content:encoded><![CDATA[{html}]]></content:encoded>
<dc:subject>Notes</dc:subject>
<dc:creator>Jo Doe</dc:creator>
<dc:date>{year}-{month:02}-{day:02}T09:15:00+01:00</dc:date>
</item>
"#,
        ),
    };
}

fn escaped(html: &str) -> String {
    html.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

const SENTENCES: [&str; 5] = [
    "It rained again, so the bench in the garden stayed empty and I finally wrote down what had waited for weeks.",
    "Whoever kept a weblog in 2003 knows that the archive page was the only thing that anybody ever found later on.",
    "Das ist übrigens nicht das erste Mal, dass hier etwas auf Deutsch steht – und sicher nicht das letzte Mal.",
    "There are three kinds of broken links: those that never worked, those that moved, and those that you broke yourself.",
    "The new template is smaller than the old one, and it has no table left in it, which took most of Saturday.",
];

/// A post of some paragraphs of well-formed HTML; every third has a picture with a relative URL.
fn post(n: usize) -> String {
    let mut html = String::new();
    for paragraph in 0..2 + n % 9 {
        let [first, second, third] =
            [0, 1, 2].map(|k| SENTENCES[(n + paragraph * 2 + k) % SENTENCES.len()]);
        let _ = writeln!(
            html,
            r#"<p>{first} {second} See <a href="https://other.example/{n}/{paragraph}" title="there">what others say</a> of it. <em>{third}</em></p>"#
        );
    }
    if n.is_multiple_of(3) {
        let _ = write!(
            html,
            r#"<p><img src="/images/{n}.jpg" width="400" height="300" alt="A picture" /><br />
<strong>Above:</strong> what it looked like &amp; how.</p>
<ul>
<li>one</li>
<li>two</li>
</ul>
"#
        );
    }
    html
}
