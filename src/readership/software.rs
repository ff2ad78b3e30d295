//! The software behind a `User-Agent`, and the readers that it claims; pure. Not how often it asks.

use serde::{Deserialize, Serialize};
use std::{borrow::Cow, ops::Range};

/// Bytes of a `User-Agent` that are looked at; the rest is left out.
pub const USER_AGENT_BYTES_MAX: usize = 512;

/// Readers that a `User-Agent` may claim at most. No feed has more readers in one service, and a
/// larger claim counts as none.
pub const CLAIMED_READERS_MAX: u32 = 10_000_000;

/// Characters of a name that is made from a `User-Agent`.
const NAME_CHARS_MAX: usize = 40;

/// Name of requests without a `User-Agent`.
pub(super) const NO_USER_AGENT: &str = "(no User-Agent)";

/// Name of a `User-Agent` that has no word in it.
const UNNAMED: &str = "(unnamed)";

/// Kind of software.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SoftwareKind {
    /// A service that reads for many people.
    Service,
    /// A reader that a person runs, or a server of a few people.
    App,
    /// A web browser.
    Browser,
    /// A library or a tool of the command line.
    Library,
    /// A crawler.
    Robot,
    /// Anything else.
    #[default]
    #[serde(other)]
    Other,
}

/// Claim of a `User-Agent` on the number of its readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Claim {
    /// It claims nothing.
    #[default]
    None,
    /// So many readers.
    Readers(u32),
    /// More than [`CLAIMED_READERS_MAX`], which counts as no claim.
    Absurd,
}

/// The software behind a `User-Agent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Software {
    /// Name of the product family, without a version: ASCII without controls, markup and quotes.
    pub name: Cow<'static, str>,
    /// Its kind.
    pub kind: SoftwareKind,
    /// The readers that it claims.
    pub claim: Claim,
}

use SoftwareKind::{App, Browser, Library, Robot, Service};

/// Known software: a text that begins a word of the `User-Agent` in lower case, its name, its kind.
/// The first row that fits counts.
const KNOWN: &[(&str, &str, SoftwareKind)] = &[
    // Services. Several of them say that they are like the fetcher of Google, which stands last.
    ("feedly", "Feedly", Service),
    ("inoreader", "Inoreader", Service),
    ("newsblur", "NewsBlur", Service),
    ("feedbin", "Feedbin", Service),
    ("theoldreader", "The Old Reader", Service),
    ("the old reader", "The Old Reader", Service),
    ("bloglovin", "Bloglovin", Service),
    ("newsgator", "NewsGator", Service),
    ("g2reader", "G2Reader", Service),
    ("bazqux", "BazQux", Service),
    ("feedwrangler", "Feed Wrangler", Service),
    ("feed wrangler", "Feed Wrangler", Service),
    ("feedhq", "FeedHQ", Service),
    ("feedspot", "Feedspot", Service),
    ("feeder.co", "Feeder", Service),
    ("netvibes", "Netvibes", Service),
    ("blogtrottr", "Blogtrottr", Service),
    ("bloglines", "Bloglines", Service),
    ("superfeedr", "Superfeedr", Service),
    ("feedburner", "FeedBurner", Service),
    ("feedblitz", "FeedBlitz", Service),
    ("feedpress", "FeedPress", Service),
    ("flipboard", "Flipboard", Service),
    ("ifttt", "IFTTT", Service),
    ("zapier", "Zapier", Service),
    ("mailchimp", "Mailchimp", Service),
    ("slackbot", "Slack", Service),
    ("discordbot", "Discord", Service),
    ("micro.blog", "Micro.blog", Service),
    ("overcast", "Overcast", Service),
    ("pocketcasts", "Pocket Casts", Service),
    ("pocket casts", "Pocket Casts", Service),
    ("itms", "Apple Podcasts", Service),
    ("spotify", "Spotify", Service),
    ("castbox", "Castbox", Service),
    ("yahoofeedseeker", "Yahoo", Service),
    ("feedfetcher-google", "Google Feedfetcher", Service),
    // Readers of people.
    ("everfeed", "everfeed", App),
    ("tiny tiny rss", "Tiny Tiny RSS", App),
    ("freshrss", "FreshRSS", App),
    ("miniflux", "Miniflux", App),
    ("commafeed", "CommaFeed", App),
    ("selfoss", "selfoss", App),
    ("nextcloud-news", "Nextcloud News", App),
    ("nextcloud news", "Nextcloud News", App),
    ("netnewswire", "NetNewsWire", App),
    ("reeder", "Reeder", App),
    ("readkit", "ReadKit", App),
    ("vienna", "Vienna", App),
    ("unread", "Unread", App),
    ("lire/", "lire", App),
    ("feeddemon", "FeedDemon", App),
    ("feedreader", "FeedReader", App),
    ("rssowl", "RSSOwl", App),
    ("quiterss", "QuiteRSS", App),
    ("rssguard", "RSS Guard", App),
    ("rss guard", "RSS Guard", App),
    ("liferea", "Liferea", App),
    ("akregator", "Akregator", App),
    ("newsboat", "Newsboat", App),
    ("newsbeuter", "Newsbeuter", App),
    ("newsflash", "NewsFlash", App),
    ("fluent reader", "Fluent Reader", App),
    ("elfeed", "Elfeed", App),
    ("thunderbird", "Thunderbird", App),
    ("antennapod", "AntennaPod", App),
    ("gpodder", "gPodder", App),
    ("rss2email", "rss2email", App),
    ("feed2imap", "feed2imap", App),
    ("rss-bridge", "RSS-Bridge", App),
    ("wordpress", "WordPress", App),
    ("drupal", "Drupal", App),
    ("planet venus", "Planet Venus", App),
    // Libraries and tools.
    ("feedparser", "feedparser", Library),
    ("universalfeedparser", "feedparser", Library),
    ("simplepie", "SimplePie", Library),
    ("magpierss", "MagpieRSS", Library),
    ("gofeed", "gofeed", Library),
    ("curl", "curl", Library),
    ("wget", "Wget", Library),
    ("python-requests", "python-requests", Library),
    ("python-urllib", "Python-urllib", Library),
    ("python-httpx", "python-httpx", Library),
    ("aiohttp", "aiohttp", Library),
    ("go-http-client", "Go-http-client", Library),
    ("okhttp", "okhttp", Library),
    ("apache-httpclient", "Apache-HttpClient", Library),
    ("java/", "Java", Library),
    ("libwww-perl", "libwww-perl", Library),
    ("guzzlehttp", "GuzzleHttp", Library),
    ("axios", "axios", Library),
    ("node-fetch", "node-fetch", Library),
    ("undici", "undici", Library),
    ("reqwest", "reqwest", Library),
    // Crawlers.
    ("googlebot", "Googlebot", Robot),
    ("bingbot", "Bingbot", Robot),
    ("applebot", "Applebot", Robot),
    ("yandexbot", "YandexBot", Robot),
    ("baiduspider", "Baiduspider", Robot),
    ("duckduckbot", "DuckDuckBot", Robot),
    ("ahrefsbot", "AhrefsBot", Robot),
    ("semrushbot", "SemrushBot", Robot),
    ("mj12bot", "MJ12bot", Robot),
    ("petalbot", "PetalBot", Robot),
    ("bytespider", "Bytespider", Robot),
    ("gptbot", "GPTBot", Robot),
    ("claudebot", "ClaudeBot", Robot),
    ("ccbot", "CCBot", Robot),
    ("amazonbot", "Amazonbot", Robot),
    ("facebookexternalhit", "Facebook", Robot),
    ("archive.org_bot", "Internet Archive", Robot),
];

/// Browsers, the ones that name others first.
const BROWSERS: &[(&str, &str)] = &[
    ("edg/", "Edge"),
    ("edga/", "Edge"),
    ("edgios/", "Edge"),
    ("opr/", "Opera"),
    ("vivaldi/", "Vivaldi"),
    ("samsungbrowser/", "Samsung Internet"),
    ("firefox/", "Firefox"),
    ("fxios/", "Firefox"),
    ("chrome/", "Chrome"),
    ("crios/", "Chrome"),
    ("safari/", "Safari"),
    ("trident/", "Internet Explorer"),
    ("msie ", "Internet Explorer"),
];

/// Words behind the number of claimed readers, or before it.
const READER_WORDS: [&str; 3] = ["subscriber", "reader", "user"];

// Decides: Which software sends a User-Agent, and how many readers does it claim?
/// The software behind a `User-Agent`, of which the first [`USER_AGENT_BYTES_MAX`] bytes count.
///
/// Known software is found by a word that it uses, whatever stands around it. A browser begins with
/// `Mozilla/` and names itself. Anything else has the name of its first product, or of the product
/// behind `compatible;`, without its version.
///
/// A claim is a whole number before `subscribers`, `readers` or `users`, or behind such a word. The
/// greatest of them counts. One beyond [`CLAIMED_READERS_MAX`] counts as none.
pub(super) fn software(user_agent: &[u8]) -> Software {
    let cut = &user_agent[..user_agent.len().min(USER_AGENT_BYTES_MAX)];
    let text = String::from_utf8_lossy(cut);
    let lower = text.to_ascii_lowercase();
    let named = |name, kind| (Cow::Borrowed(name), kind);
    let known = KNOWN.iter().find(|(word, ..)| begins_word(&lower, word));
    let (name, kind) = match known {
        _ if lower.trim().is_empty() => named(NO_USER_AGENT, SoftwareKind::Other),
        Some((_, name, kind)) => named(*name, *kind),
        None => match browser(&lower) {
            Some(name) => named(name, Browser),
            None => (product(&text), SoftwareKind::Other),
        },
    };
    Software {
        name,
        kind,
        claim: claim(&lower),
    }
}

/// True if a text stands at the beginning of a word.
fn begins_word(text: &str, word: &str) -> bool {
    let mut found = text.match_indices(word);
    found.any(|(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric()))
}

/// The browser of a `User-Agent` in lower case; `None` for software that calls itself compatible.
fn browser(lower: &str) -> Option<&'static str> {
    if !lower.starts_with("mozilla/") || named_compatible(lower).is_some() {
        return None;
    }
    let known = BROWSERS.iter().find(|(word, _)| lower.contains(word));
    Some(known.map_or("another browser", |(_, name)| name))
}

/// The text behind `compatible;`, unless that is a browser of old.
fn named_compatible(text: &str) -> Option<&str> {
    let at = text.to_ascii_lowercase().find("compatible;")?;
    let rest = text[at + "compatible;".len()..].trim_start();
    let is_browser = rest
        .get(..4)
        .is_some_and(|it| it.eq_ignore_ascii_case("msie"));
    (!is_browser && !rest.is_empty()).then_some(rest)
}

/// The name of the first product of a `User-Agent`, cleaned and cut.
fn product(text: &str) -> Cow<'static, str> {
    let text = named_compatible(text).unwrap_or(text).trim_start();
    let is_end = |c: char| c.is_whitespace() || "/();,[]{}<>\"'".contains(c);
    let words = text.split(is_end).map(cleaned);
    let first = words.map(|word| without_version(&word).to_owned());
    match first.into_iter().find(|word| !word.is_empty()) {
        Some(word) => Cow::Owned(word),
        None => Cow::Borrowed(UNNAMED),
    }
}

/// The characters of a word that stand in the name of a product, up to [`NAME_CHARS_MAX`].
fn cleaned(word: &str) -> String {
    let is_kept = |c: &char| c.is_ascii_alphanumeric() || "-_.+!".contains(*c);
    let kept = word.chars().filter(is_kept).take(NAME_CHARS_MAX);
    let kept: String = kept.collect();
    kept.trim_matches(['-', '_', '.', '+', '!']).to_owned()
}

/// A name without a version at its end: `Foo` of `Foo-1.2` and of `Foo_v3`.
fn without_version(name: &str) -> &str {
    let Some(at) = name.rfind(['-', '_']) else {
        return name;
    };
    let version = name[at + 1..].trim_start_matches(['v', 'V']);
    let is_version = version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_version { &name[..at] } else { name }
}

/// The greatest claim in a `User-Agent` in lower case.
fn claim(lower: &str) -> Claim {
    let words = READER_WORDS
        .iter()
        .flat_map(|word| lower.match_indices(word));
    let numbers = words.filter_map(|(at, word)| {
        let before = number_before(lower, at);
        before.or_else(|| number_behind(lower, at + word.len()))
    });
    let mut claim = Claim::None;
    for digits in numbers {
        let digits = &lower[digits];
        let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
        let count = digits.parse::<u64>().unwrap_or(u64::MAX);
        claim = match (claim, u32::try_from(count)) {
            (Claim::Absurd, _) | (_, Err(_)) => Claim::Absurd,
            (_, Ok(count)) if count > CLAIMED_READERS_MAX => Claim::Absurd,
            (Claim::Readers(known), Ok(count)) => Claim::Readers(known.max(count)),
            (Claim::None, Ok(0)) => Claim::None,
            (Claim::None, Ok(count)) => Claim::Readers(count),
        };
    }
    claim
}

/// The number that stands before a place, with blanks between them: `1,234` of `1,234 readers`.
fn number_before(text: &str, at: usize) -> Option<Range<usize>> {
    let before = text[..at].trim_end_matches([' ', '+']);
    if before.len() == at {
        return None;
    }
    let is_digit = |c: char| c.is_ascii_digit() || c == ',';
    let start = before.trim_end_matches(is_digit).len();
    let start = start + before[start..].find(|c: char| c != ',').unwrap_or(0);
    // The end of a version, or of a name.
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let is_number =
        before.ends_with(|c: char| c.is_ascii_digit()) && !text[..start].ends_with(is_part);
    is_number.then_some(start..before.len())
}

/// The number that stands behind a place: `12` of `subscribers: 12` and of `users 12`, and none of
/// `reader 12`, which may be a version.
fn number_behind(text: &str, at: usize) -> Option<Range<usize>> {
    let plural = text[at..].strip_prefix('s');
    let rest = plural.unwrap_or(&text[at..]);
    let value = rest.trim_start_matches([' ', ':', '=']);
    let between = &rest[..rest.len() - value.len()];
    if between.is_empty() || (plural.is_none() && between.trim().is_empty()) {
        return None;
    }
    let start = text.len() - value.len();
    let end = value.find(|c: char| !c.is_ascii_digit() && c != ',');
    let end = start + end.unwrap_or(value.len());
    let is_number = value.starts_with(|c: char| c.is_ascii_digit());
    let is_part = text[end..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
    (is_number && !is_part).then_some(start..end)
}

#[cfg(test)]
mod tests;
