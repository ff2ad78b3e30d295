use super::*;
use SoftwareKind::Other;

fn check(user_agent: &str, name: &str, kind: SoftwareKind, claim: Claim) {
    let found = software(user_agent.as_bytes());
    let expect = Software {
        name: name.to_owned().into(),
        kind,
        claim,
    };
    assert_eq!(found, expect, "{user_agent}");
}

#[test]
fn services_are_named_with_the_readers_that_they_claim() {
    for (user_agent, name, readers) in [
        (
            "Feedly/1.0 (+http://www.feedly.com/fetcher.html; 120 subscribers; like FeedFetcher-Google)",
            "Feedly",
            120,
        ),
        (
            "FeedlyBot/1.0 (http://feedly.com; 1 subscribers)",
            "Feedly",
            1,
        ),
        (
            "Mozilla/5.0 (compatible; inoreader.com; 25 subscribers)",
            "Inoreader",
            25,
        ),
        (
            "NewsBlur Feed Fetcher - 12 subscribers - http://www.newsblur.com/site/6214/some-blog (Mozilla/5.0 (Macintosh; Intel Mac OS X 10_7_1) AppleWebKit/534.48.3 (KHTML, like Gecko) Version/5.1 Safari/534.48.3)",
            "NewsBlur",
            12,
        ),
        ("Feedbin feed-id:1234 - 5 subscribers", "Feedbin", 5),
        (
            "Mozilla/5.0 (compatible; theoldreader.com; 8 subscribers; feed-id=5f2b0c1d)",
            "The Old Reader",
            8,
        ),
        (
            "Mozilla/5.0 (compatible; Bloglovin/1.0; http://www.bloglovin.com; 7 subscribers)",
            "Bloglovin",
            7,
        ),
        (
            "NewsGatorOnline/2.0 (http://www.newsgator.com; 1,204 subscribers)",
            "NewsGator",
            1204,
        ),
        (
            "G2Reader-Bot/1.0 (+http://www.g2reader.com/; 2 subscribers)",
            "G2Reader",
            2,
        ),
        (
            "BazQux/2.4 (+https://bazqux.com/fetcher; 3 subscribers)",
            "BazQux",
            3,
        ),
        (
            "FeedHQ/0.1 (https://github.com/feedhq/feedhq; 4 subscribers; +https://github.com/feedhq/feedhq/wiki/fetcher; like FeedFetcher-Google)",
            "FeedHQ",
            4,
        ),
        (
            "Netvibes (http://www.netvibes.com; 9 subscribers; feedId: 4711)",
            "Netvibes",
            9,
        ),
        (
            "Bloglines/3.1 (http://www.bloglines.com; 1 subscriber)",
            "Bloglines",
            1,
        ),
        (
            "Feedfetcher-Google; (+http://www.google.com/feedfetcher.html; 31 subscribers; feed-id=1794595805790851116)",
            "Google Feedfetcher",
            31,
        ),
        (
            "YahooFeedSeeker/2.0 (compatible; Mozilla 4.0; MSIE 5.5; http://publisher.yahoo.com/rssguide; users 6; views 0)",
            "Yahoo",
            6,
        ),
        (
            "Feedspot/1.0 (+https://www.feedspot.com/fs/fetcher; 44 readers)",
            "Feedspot",
            44,
        ),
    ] {
        check(user_agent, name, Service, Claim::Readers(readers));
    }
}

#[test]
fn other_software_is_named_without_its_version() {
    for (user_agent, name, kind) in [
        ("Blogtrottr/2.1", "Blogtrottr", Service),
        (
            "Superfeedr bot/2.0 http://superfeedr.com - Make your feeds realtime: get in touch - feed-id:123",
            "Superfeedr",
            Service,
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15) Flipboard/4.2 FlipboardProxy/1.2",
            "Flipboard",
            Service,
        ),
        ("itms", "Apple Podcasts", Service),
        (
            "NetNewsWire (RSS Reader; https://netnewswire.com/)",
            "NetNewsWire",
            App,
        ),
        (
            "Tiny Tiny RSS/23.05 (https://tt-rss.org/)",
            "Tiny Tiny RSS",
            App,
        ),
        (
            "FreshRSS/1.23.1 (Linux; https://freshrss.org)",
            "FreshRSS",
            App,
        ),
        (
            "Mozilla/5.0 (compatible; Miniflux/2.0.51; +https://miniflux.app)",
            "Miniflux",
            App,
        ),
        (
            "Liferea/1.13.5 (Linux; https://lzone.de/liferea/) AppleWebKit (KHTML, like Gecko)",
            "Liferea",
            App,
        ),
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:102.0) Gecko/20100101 Thunderbird/102.4.0",
            "Thunderbird",
            App,
        ),
        ("Emacs Elfeed 3.4.1", "Elfeed", App),
        ("Newsboat/2.32 (Linux x86_64)", "Newsboat", App),
        ("WordPress/6.4.2; https://planet.example", "WordPress", App),
        ("curl/8.5.0", "curl", Library),
        ("python-requests/2.31.0", "python-requests", Library),
        (
            "UniversalFeedParser/5.2.1 +https://code.google.com/p/feedparser/",
            "feedparser",
            Library,
        ),
        ("Go-http-client/2.0", "Go-http-client", Library),
        (
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Googlebot",
            Robot,
        ),
        (
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.0; +https://openai.com/gptbot)",
            "GPTBot",
            Robot,
        ),
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0",
            "Firefox",
            Browser,
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
            "Chrome",
            Browser,
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 Edg/120.0",
            "Edge",
            Browser,
        ),
        (
            "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)",
            "Internet Explorer",
            Browser,
        ),
        (
            "Mozilla/5.0 (compatible; SomeReader/2.1; +http://x.example)",
            "SomeReader",
            Other,
        ),
        ("Foo-1.2.3 (http://foo.example)", "Foo", Other),
        ("my_feed_fetcher_v2", "my_feed_fetcher", Other),
        ("", NO_USER_AGENT, Other),
        ("  ", NO_USER_AGENT, Other),
        ("/// ((;", "(unnamed)", Other),
    ] {
        check(user_agent, name, kind, Claim::None);
    }
}

#[test]
fn a_number_that_is_no_claim_is_not_taken_for_one() {
    for user_agent in [
        "FeedReader 3.14 Reader",
        "G2Reader",
        "RSS Reader 12",
        "x 1.5 subscribers",
        "x subscribers",
        "x 0 subscribers",
        "x subscribers: 1.2",
        "x ,,, subscribers",
        "abc12 subscribers",
    ] {
        assert_eq!(
            software(user_agent.as_bytes()).claim,
            Claim::None,
            "{user_agent}"
        );
    }
}

#[test]
fn a_claim_is_capped_however_long_its_number_is() {
    for (count, expect) in [
        ("10000000", Claim::Readers(CLAIMED_READERS_MAX)),
        ("10,000,000", Claim::Readers(CLAIMED_READERS_MAX)),
        ("10000001", Claim::Absurd),
        ("1000000000000", Claim::Absurd),
        ("99999999999999999999999999999999", Claim::Absurd),
    ] {
        check(
            &format!("Feedly/1.0 ({count} subscribers)"),
            "Feedly",
            Service,
            expect,
        );
    }
    check(
        "x 5 readers 7 subscribers 6 users",
        "x",
        Other,
        Claim::Readers(7),
    );
    check(
        "x 5 readers 1000000000000 subscribers",
        "x",
        Other,
        Claim::Absurd,
    );
}

#[test]
fn a_name_holds_nothing_that_steers_a_page_or_a_terminal() {
    let long = "x".repeat(1 << 20);
    for (user_agent, name) in [
        ("<script>alert(1)</script>", "script"),
        ("\u{202e}evil\u{202c}\u{1b}[31m/1", "evil"),
        ("a&b\"c'd<e>/2", "ab"),
        ("Lect\u{e9}ur/1", "Lectur"),
        (&long, &long[..40]),
    ] {
        check(user_agent, name, Other, Claim::None);
    }
    assert_eq!(software(b"\xff\xfe\x80").name, "(unnamed)");
    // The end of what is looked at may lie within a character.
    let cut = format!("{}\u{20ac}", "y".repeat(USER_AGENT_BYTES_MAX - 1));
    assert_eq!(software(cut.as_bytes()).name, "y".repeat(40));
}
