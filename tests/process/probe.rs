//! `everfeed probe` as an operator runs it: the binary, its output and its exit codes.

use crate::EVERFEED;
use serde_json::Value;
use std::{fs, ops::Deref, path::Path, process::Command};
use testkit::{
    place::{Told, free_address, run},
    publisher::{Publisher, ok, with_headers},
};

/// The result of a run of the program.
#[derive(Debug)]
struct CheckResult(Told);

impl Deref for CheckResult {
    type Target = Told;

    fn deref(&self) -> &Told {
        &self.0
    }
}

impl CheckResult {
    /// The text after a label, up to the next one.
    fn fact(&self, label: &str) -> String {
        let mut lines = self
            .out
            .lines()
            .skip_while(|line| line.split(' ').next() != Some(label));
        let first = lines
            .next()
            .and_then(|line| line.strip_prefix(label))
            .unwrap_or_default();
        let rest = lines.take_while(|line| line.starts_with(' '));
        std::iter::once(first)
            .chain(rest)
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn probe(arguments: &[&str], input: &[u8]) -> CheckResult {
    let mut command = Command::new(EVERFEED);
    command.arg("probe").args(arguments).env_remove("RUST_LOG");
    CheckResult(run(&mut command, input))
}

/// Probes a path of a publisher.
async fn probe_url(publisher: &Publisher, more: &'static [&'static str]) -> CheckResult {
    let url = publisher.url("/feed.xml");
    let run = move || probe(&[&[url.as_str()], more].concat(), b"");
    tokio::task::spawn_blocking(run).await.unwrap()
}

const RSS: &str = r#"<?xml version="1.0" encoding="ISO-8859-1"?>
<rss version="2.0" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:atom="http://www.w3.org/2005/Atom">
<channel><title>An old &lt;b&gt;blog&lt;/b&gt;</title><link>http://blog.example/</link><language>en</language>
<generator>Serendipity 1.0 - http://www.s9y.org/</generator><ttl>90</ttl>
<cloud domain="rpc.example" port="80" path="/RPC2" registerProcedure="notify" protocol="xml-rpc"/>
<fh:stateful>true</fh:stateful><fh:prev>/2004/01.xml</fh:prev><atom:link rel="hub" href="http://hub.example/"/>
<item><guid isPermaLink="false">tag:blog.example,2004:1</guid><title>First</title>
<pubDate>Thu, 01 Jan 2004 19:48:21 GMT</pubDate><description>twelve bytes</description></item>
<item><link>http://blog.example/second</link><title>日本語</title><pubDate>yesterday</pubDate></item>
<item><title>Untitled</title></item>
</channel></rss>"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_document_at_a_url_is_told_as_polling_would_see_it() {
    let publisher = Publisher::start().await;
    publisher.says(ok("text/xml; charset=utf-8", RSS.as_bytes()));
    let said = probe_url(&publisher, &[]).await;
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let first = said.out.lines().next().unwrap();
    let named = "3 entries, named 1 by guid, 1 by link, 1 by title (weak); a way to older ones is known; 1 oddity";
    assert_eq!(first, format!("RSS 2.0 by Serendipity: {named}"));
    let second: Vec<_> = said.out.lines().nth(1).unwrap().split(" · ").collect();
    let bytes = format!("{} bytes", RSS.len());
    assert_eq!(
        second,
        [
            &publisher.url("/feed.xml"),
            "text/xml; charset=utf-8",
            &bytes,
            "UTF-8"
        ]
    );
    assert_eq!(said.fact("title"), "An old blog");
    assert_eq!(said.fact("site"), "http://blog.example/");
    let platform = "Serendipity: the generator is Serendipity; a window of 15 entries by default";
    assert_eq!(said.fact("platform"), platform);
    assert_eq!(said.fact("rhythm"), "a copy is good for 90 min (ttl)");
    assert_eq!(
        said.fact("push"),
        format!(
            "hub http://hub.example/; asked to push {} rssCloud at rpc.example:80/RPC2 by xml-rpc notify; not asked \
             XML-RPC pings, if its owner lists us",
            publisher.url("/feed.xml")
        )
    );
    assert_eq!(
        said.fact("history"),
        format!(
            "fh:prev {} Serendipity: ?all=1 shows everything",
            publisher.url("/2004/01.xml")
        )
    );
    assert!(
        said.fact("absence").contains("fh:stateful is true"),
        "{said:?}"
    );
    assert!(
        said.fact("absence")
            .contains("never the deletion of an entry with a weak name: 1 of 3"),
        "{said:?}"
    );
    assert_eq!(
        said.fact("odd"),
        "entry 2: a date could not be understood: yesterday"
    );
    let table: Vec<&str> = said
        .out
        .lines()
        .skip_while(|line| !line.contains("from"))
        .collect();
    assert_eq!(
        table,
        [
            "   #  from          id                          published         bytes  title",
            "   1  guid          tag:blog.example,2004:1     2004-01-01 19:48     12  First",
            "!  2  link          http://blog.example/second  “yesterday”              日本語",
            "   3  title (weak)                                                       Untitled",
        ]
    );
    let requests = publisher.requests();
    assert_eq!(requests.len(), 1, "one GET, and no other: {requests:?}");
    let head = requests[0].to_ascii_lowercase();
    assert!(head.starts_with("get /feed.xml http/1.1\r\n"), "{head}");
    assert!(
        head.contains("user-agent: everfeed/") && head.contains("accept: application/atom+xml"),
        "{head}"
    );
    assert!(
        !head.contains("if-none-match") && !head.contains("if-modified-since"),
        "{head}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_is_recognised_by_the_headers_of_the_answer_too() {
    let publisher = Publisher::start().await;
    let item = "<item><link>http://e.example/1</link><title>one</title></item>";
    let plain = format!("<rss version='2.0'><channel><title>t</title>{item}</channel></rss>");
    publisher.says(with_headers(
        200,
        &[("content-type", "text/xml")],
        plain.as_bytes(),
    ));
    let said = probe_url(&publisher, &[]).await;
    assert_eq!(
        (
            said.fact("platform").as_str(),
            said.fact("history").as_str()
        ),
        NOTHING
    );
    let link = (
        "link",
        "<https://e.example/wp-json/>; rel=\"https://api.w.org/\"",
    );
    publisher.says(with_headers(
        200,
        &[("content-type", "text/xml"), link],
        plain.as_bytes(),
    ));
    let said = probe_url(&publisher, &[]).await;
    assert!(
        said.out
            .starts_with("RSS 2.0 by WordPress: 1 entry, named by its link; a way"),
        "{said:?}"
    );
    assert!(
        said.fact("history").contains("WordPress: ?paged=2"),
        "{said:?}"
    );
}

/// The report on the platform and the way to older entries when nothing is known.
const NOTHING: (&str, &str) = ("none is recognised", "no way to older entries is known");

#[tokio::test(flavor = "multi_thread")]
async fn redirects_and_credentials_are_those_of_polling() {
    let publisher = Publisher::start().await;
    publisher.says(with_headers(301, &[("location", "/feed.xml")], b""));
    let said = probe_url(&publisher, &[]).await;
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("it leads back to where it came from"),
        "{said:?}"
    );
    assert!(
        said.err.ends_with("the fault is the publisher's\n"),
        "{said:?}"
    );

    publisher.says(ok("text/xml", RSS.as_bytes()));
    let url = publisher
        .url("/feed.xml")
        .replace("http://", "http://jo:secret@");
    let said = tokio::task::spawn_blocking(move || probe(&[&url], b""))
        .await
        .unwrap();
    assert!(
        said.out.contains("http://***@127.0.0.1") && !said.out.contains("secret"),
        "{said:?}"
    );
    assert!(
        publisher
            .requests()
            .last()
            .unwrap()
            .contains("authorization: Basic am86c2VjcmV0")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_says_whose_fault_it_is() {
    let publisher = Publisher::start().await;
    publisher.says(with_headers(404, &[], b"gone"));
    let said = probe_url(&publisher, &[]).await;
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    let expect = "the publisher answered 404 Not Found; the fault is the publisher's\n";
    assert_eq!(
        said.err,
        format!(
            "everfeed: no feed at {}: {expect}",
            publisher.url("/feed.xml")
        )
    );

    publisher.says(with_headers(401, &[], b""));
    let said = probe_url(&publisher, &[]).await;
    assert!(
        said.err
            .contains("wants credentials (401); give them in the URL"),
        "{said:?}"
    );

    publisher.says(ok(
        "text/html",
        b"<!DOCTYPE html><html><head><title>Parked</title></head><body>hi</body></html>",
    ));
    let said = probe_url(&publisher, &["--json"]).await;
    assert_eq!(said.code, 1);
    let expect = "the document is an HTML page, not a feed (its title is \"Parked\")";
    assert!(
        said.err.contains(expect) && said.err.contains("who answered with it as text/html"),
        "{said:?}"
    );
    let line: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&line["ok"], &line["error"]),
        (&false.into(), &expect.into())
    );

    let link = "<link rel=alternate type=application/rss+xml title='All\u{90}' href='/rss.xml'>";
    publisher.says(ok(
        "text/html",
        format!("<html><head>{link}</head></html>").as_bytes(),
    ));
    let said = probe_url(&publisher, &[]).await;
    let expect = format!(
        "; ask for one of the feeds that it names: {} (All\\u{{90}})\n",
        publisher.url("/rss.xml")
    );
    assert!(said.err.ends_with(&expect), "{said:?}");

    drop(publisher);
    let said = probe(&[&format!("http://{}/", free_address())], b"");
    assert_eq!(said.code, 1);
    assert!(said.err.contains("the connection was refused"), "{said:?}");
    assert!(said.err.contains("the network's on the way"), "{said:?}");
}

#[test]
fn a_command_that_cannot_be_meant_is_told_from_a_document_that_cannot_be_had() {
    for (arguments, code, expect) in [
        (
            &["ftp://e.example/rss"][..],
            64,
            "its scheme is ftp; give an http or https URL",
        ),
        (&["http://"][..], 64, "give an http or https URL"),
        (&[][..], 64, "Usage"),
        (
            &["no-such-file.xml"][..],
            1,
            "a URL begins with http:// or https://",
        ),
        (
            &["x.xml", "--config", "no-such.toml"][..],
            64,
            "no-such.toml",
        ),
    ] {
        let said = probe(arguments, b"");
        assert_eq!(said.code, code, "{arguments:?}: {said:?}");
        assert!(said.err.contains(expect), "{arguments:?}: {said:?}");
    }
}

#[test]
fn standard_input_is_a_document_too() {
    let said = probe(&["-"], RSS.as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("\nstandard input · "), "{said:?}");
    let said = probe(&["-", "--json"], RSS.as_bytes());
    let line: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&line["ok"], &line["version"]),
        (&true.into(), &"rss20".into())
    );
    assert_eq!(line["entries"][0]["id"], "tag:blog.example,2004:1");
    assert_eq!(line["entries"][1].get("id"), None, "no id is made up");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_document_is_a_resource_when_it_is_asked_for_as_one() {
    let publisher = Publisher::start().await;
    publisher.says(ok("image/png", b"\x89PNG\r\n\x1A\n"));
    let said = probe_url(&publisher, &["--resource"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out
            .starts_with("A resource: 1 entry, named by its url\n"),
        "{said:?}"
    );
    assert_eq!(
        said.fact("absence"),
        "never: the document is the only entry"
    );
    assert!(said.out.ends_with("8  feed.xml\n"), "{said:?}");
    assert!(publisher.requests()[0].contains("accept: */*\r\n"));
}

#[test]
fn formats_without_markup_are_told_alike() {
    let json = r#"{"version": "https://jsonfeed.org/version/1.1", "title": "J", "items": [{"id": 7, "content_text": "x"}]}"#;
    let said = probe(&["-"], json.as_bytes());
    assert!(
        said.out
            .starts_with("JSON Feed 1.1: 1 entry, named by its id\n"),
        "{said:?}"
    );
    let cdf = r#"<CHANNEL HREF="http://e.example/"><TITLE>C</TITLE><ITEM HREF="/1"><TITLE>One</TITLE></ITEM></CHANNEL>"#;
    let said = probe(&["-"], cdf.as_bytes());
    assert!(
        said.out.starts_with("CDF: 1 entry, named by its href\n"),
        "{said:?}"
    );
}

#[test]
fn nothing_that_an_upstream_wrote_can_steer_the_terminal() {
    // What XML can hold of it, in every place that is shown.
    let evil = "\u{90}31m\u{7F}\u{202E}&#x9b;2J&#127;";
    let rss = format!(
        "<rss version=\"2.0\"><channel><title>{evil}</title><link>http://e.example/{evil}</link>\
         <generator>{evil}</generator><language>{evil}</language><cloud domain=\"{evil}\"/>\
         <pubDate>{evil}</pubDate><x{evil}/>\
         <item><guid>{evil}</guid><title>{evil}<![CDATA[&#27;[31m]]></title><pubDate>{evil}</pubDate></item>\
         </channel></rss>"
    );
    let json = "{\"error\": \"\u{1B}]0;owned\u{7}\u{90}\"}";
    let page = format!("<html><head><title>{evil}\u{1B}[2J</title></head></html>");
    for document in [
        rss.as_str(),
        json,
        &page,
        &format!("<a{evil}/>"),
        "\u{1B}[2Jhello \u{90}",
    ] {
        for arguments in [&["-"][..], &["-", "--json"]] {
            let said = probe(arguments, document.as_bytes());
            let shown = said.all();
            let steers = |c: &char| {
                (c.is_control() && *c != '\n') || *c == '\u{202E}' && arguments.len() == 1
            };
            assert_eq!(
                shown.chars().find(steers),
                None,
                "{shown:?} of {document:?}"
            );
            assert!(!shown.is_empty());
        }
    }
}

#[test]
fn titles_are_cut_and_long_tables_too() {
    let item = |n: usize| {
        format!(
            "<item><guid>{n}</guid><title>{}</title></item>",
            "長い title ".repeat(60)
        )
    };
    let items: String = (0..50).map(item).collect();
    let document = format!("<rss version='2.0'><channel><title>t</title>{items}</channel></rss>");
    let said = probe(&["-"], document.as_bytes());
    assert!(
        said.out.ends_with("and 30 more; --all shows them\n"),
        "{}",
        said.out
    );
    // A character of Japanese takes two columns, so a line has fewer characters than columns.
    assert!(
        said.out.lines().all(|line| line.chars().count() < 100),
        "{}",
        said.out
    );
    assert_eq!(
        probe(&["-", "--all"], document.as_bytes())
            .out
            .matches("長い title")
            .count()
            / 50,
        7
    );
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn what_a_document_leaves_open_is_not_made_up_and_what_it_contradicts_is_said() {
    let feed = |head: &str| {
        format!(
            "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:o='http://a9.com/-/spec/opensearch/1.1/' \
             xmlns:fh='http://purl.org/syndication/history/1.0'><title>t</title>{head}<entry><id>a</id></entry></feed>"
        )
    };
    let history = |head: &str| probe(&["-"], feed(head).as_bytes()).fact("history");
    let total = "<o:totalResults>42</o:totalResults>";
    assert_eq!(history(total), "opensearch: 42 entries in all");
    let start = format!("{total}<o:startIndex>3</o:startIndex>");
    assert_eq!(
        history(&start),
        "opensearch: 42 entries in all, this one begins with number 3"
    );
    let page = format!("{start}<o:itemsPerPage>1</o:itemsPerPage>");
    assert_eq!(
        history(&page),
        "opensearch: 42 entries in all, 1 on a page, this one begins with number 3"
    );

    let complete = "<fh:complete/><link rel='prev-archive' href='http://e.org/1'/>";
    let said = probe(&["-"], feed(complete).as_bytes());
    assert!(
        said.fact("odd")
            .contains("it contradicts itself: fh:complete says"),
        "{said:?}"
    );
    assert!(
        said.fact("absence")
            .contains("this is the whole feed (fh:complete)"),
        "{said:?}"
    );
    assert!(
        !probe(&["-"], feed("<fh:complete/>").as_bytes())
            .out
            .contains("contradicts")
    );
}

#[test]
fn a_configuration_brings_its_platforms() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "title = \"Mine\"\nsources = [\"me\"]\n[[detect]]\ngenerator = \"^Serendipity\"\nwhy = \"it says so\"\n";
    write(folder.path(), "profiles/serendipity.toml", profile);
    let config = "[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1/\"\n[platforms]\nfolder = ";
    write(
        folder.path(),
        "everfeed.toml",
        &format!("{config}{:?}\n", folder.path().join("profiles")),
    );
    let config = folder.path().join("everfeed.toml");
    let said = probe(&["-", "-c", config.to_str().unwrap()], RSS.as_bytes());
    assert_eq!(said.fact("platform"), "Mine: it says so", "{said:?}");
    assert!(
        probe(&["-"], RSS.as_bytes())
            .fact("platform")
            .starts_with("Serendipity: ")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_feed_has_the_platform_that_it_is_given() {
    let publisher = Publisher::start().await;
    for (platform, expect) in [
        ("wordpress", "WordPress: the configuration says so"),
        ("none", "none: the configuration says so"),
    ] {
        publisher.says(ok("text/xml", RSS.as_bytes()));
        let folder = tempfile::tempdir().unwrap();
        let url = publisher.url("/feed.xml");
        let text = format!("[[feed]]\nname = \"blog\"\nurl = {url:?}\nplatform = {platform:?}\n");
        write(folder.path(), "everfeed.toml", &text);
        let config = folder
            .path()
            .join("everfeed.toml")
            .to_str()
            .unwrap()
            .to_owned();
        let run = move || probe(&[&url, "-c", &config], b"");
        let said = tokio::task::spawn_blocking(run).await.unwrap();
        assert!(said.fact("platform").starts_with(expect), "{said:?}");
    }
}

#[test]
fn a_date_that_cannot_be_meant_is_marked() {
    let zero = RSS.replace("yesterday", "Mon, 01 Jan 0001 00:00:00 GMT");
    let said = probe(&["-"], zero.as_bytes());
    assert!(said.out.contains(" 0001-01-01 00:00? "), "{said:?}");
    assert!(
        said.fact("odd").contains("1 entry has an impossible date"),
        "{said:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_file_may_have_any_name() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder
        .path()
        .join(std::ffi::OsStr::from_bytes(b"odd\xFF.xml"));
    fs::write(&path, RSS).unwrap();
    let told = run(Command::new(EVERFEED).arg("probe").arg(&path), b"");
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.out.contains("odd\u{FFFD}.xml"));
}

#[test]
fn the_book_shows_what_comes_out() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operators/look.md");
    let page = fs::read_to_string(page).unwrap();
    let said = probe(&["adapters/tests/platforms/wordpress-com.xml"], b"");
    assert!(
        page.contains(&format!("```\n{}```\n", said.out)),
        "{}",
        said.out
    );
}
