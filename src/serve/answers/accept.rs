//! Content negotiation: the representation and the coding that a consumer prefers (RFC 9110 section
//! 12.5).

use crate::{
    edge::{
        accepted::{media_ranges, weighted},
        fields::list_value,
    },
    readers::Coding,
    render::{Audience, Negotiation, Representation, event_stream, jsonp},
};
use http::{
    header::{ACCEPT, ACCEPT_ENCODING},
    request::Parts,
};

/// Degree to which a media range names a type: the most specific range decides its quality (RFC
/// 9110 section 12.5.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Anything,
    Script,
    SameKind,
    Alias,
    Exact,
}

// Decides: Which representation answers an `Accept`?
/// The representation to send where the URL names none (SF-48): a page for whoever would rather
/// have one, Atom when nothing is asked, JSON under JSON-P, `None` when nothing that we have is
/// acceptable. Quality is in thousandths.
pub(crate) fn representation(accept: Option<&str>, jsonp: bool) -> Option<Representation> {
    if !jsonp && prefers_page(accept) {
        return Some(Representation::PAGE);
    }
    let is_offered = |form: &Representation| form.negotiation() != Negotiation::Never;
    let mut offered: Vec<Representation> = Representation::of(Audience::Full)
        .filter(is_offered)
        .collect();
    if jsonp {
        offered.sort_by_key(|representation| !jsonp::is_json(representation.media_type()));
    }
    let ranges = media_ranges(accept.unwrap_or_default());
    if ranges.is_empty() {
        return offered.first().copied();
    }
    let mut best: Option<((u16, bool), Representation)> = None;
    for representation in offered {
        let mut best_fit: Option<(Fit, u16)> = None;
        for (range, quality) in &ranges {
            if let Some(fit) = fit(representation, range, jsonp)
                && best_fit.is_none_or(|(other, _)| fit > other)
            {
                best_fit = Some((fit, *quality));
            }
        }
        // Of equally specific ranges the first counts.
        let Some((fit, quality)) = best_fit else {
            continue;
        };
        let rank = (quality, fit >= Fit::Alias);
        if quality > 0 && best.is_none_or(|(other, _)| rank > other) {
            best = Some((rank, representation));
        }
    }
    if best.is_none() && !jsonp && names_page_beside_feeds(&ranges) {
        return Some(Representation::ATOM);
    }
    best.map(|(_, representation)| representation)
}

/// True for a feed reader that names a page beside formats of feeds, of which we have others here.
fn names_page_beside_feeds(ranges: &[(String, u16)]) -> bool {
    let names = |is_wanted: fn(&str) -> bool| best_quality(ranges, is_wanted) > 0;
    names(|range| range == "text/html") && names(could_be_feed)
}

fn fit(representation: Representation, range: &str, jsonp: bool) -> Option<Fit> {
    let media_type = representation.media_type();
    let same_kind = |kind| {
        media_type
            .strip_prefix(kind)
            .is_some_and(|subtype| subtype.starts_with('/'))
    };
    if range == media_type {
        Some(Fit::Exact)
    } else if representation.aliases().contains(&range) {
        Some(Fit::Alias)
    } else if representation.negotiation() == Negotiation::Name {
        None
    } else if range.strip_suffix("/*").is_some_and(same_kind) {
        Some(Fit::SameKind)
    } else if jsonp && matches!(range, "application/javascript" | "text/javascript") {
        Some(Fit::Script)
    } else if range == "*/*" {
        Some(Fit::Anything)
    } else {
        None
    }
}

/// True for a browser: `text/html` is named, and ranks above all that could be a feed: its formats,
/// XML and JSON, by their names or by a range that includes them. A feed reader that names a page
/// beside its formats gets the feed.
pub(crate) fn prefers_page(accept: Option<&str>) -> bool {
    let ranges = media_ranges(accept.unwrap_or_default());
    let page = ranges.iter().find(|(range, _)| range == "text/html");
    page.is_some_and(|(_, quality)| *quality > best_quality(&ranges, could_be_feed))
}

/// True for a media range that includes a format of feeds. XHTML is a page, and SVG a picture.
fn could_be_feed(range: &str) -> bool {
    if matches!(range, "*/*" | "application/*" | "text/*") {
        return true;
    }
    let is_other = range == "application/xhtml+xml" || range.starts_with("image/");
    let mut markup = ["/xml", "+xml", "/json", "+json"].iter();
    if !is_other && markup.any(|end| range.ends_with(end)) {
        return true;
    }
    Representation::of(Audience::Full)
        .filter(|form| !form.is_page())
        .any(|form| range == form.media_type() || form.aliases().contains(&range))
}

/// True where the consumer would rather have a page for people than JSON: `text/html` is named and
/// not outdone.
pub(crate) fn wants_html(accept: Option<&str>) -> bool {
    let ranges = media_ranges(accept.unwrap_or_default());
    let quality = |wanted: &[&str]| {
        ranges
            .iter()
            .find(|(range, _)| wanted.contains(&range.as_str()))
            .map(|(_, q)| *q)
    };
    let html = quality(&["text/html", "application/xhtml+xml"]).unwrap_or(0);
    html > 0 && html >= quality(&["application/json"]).unwrap_or(0)
}

/// True where JSON is named and preferred to every form of XML: plain readers of an old feed name
/// XML, or anything.
pub(crate) fn prefers_json(accept: Option<&str>) -> bool {
    const JSON: [&str; 2] = ["application/json", "application/stream+json"];
    let ranges = media_ranges(accept.unwrap_or_default());
    let json = best_quality(&ranges, |range| JSON.contains(&range));
    let xml = best_quality(&ranges, |range| {
        range.ends_with("xml") || matches!(range, "*/*" | "text/*" | "application/*")
    });
    json > xml
}

/// True where a stream of events is named, and preferred to all else that is named: a consumer that
/// also takes a document would wait for its end.
pub(crate) fn wants_events(request: &Parts) -> bool {
    let accept = list_value(&request.headers, &ACCEPT);
    let ranges = media_ranges(accept.as_deref().unwrap_or_default());
    let is_events = |range: &str| range == event_stream::CONTENT_TYPE;
    let events = ranges.iter().find(|(range, _)| is_events(range));
    let quality = events.map_or(0, |(_, quality)| *quality);
    if quality == 0 {
        return false;
    }
    ranges.iter().all(|(range, other)| {
        let is_wildcard = range.contains('*');
        is_events(range) || *other < quality || (is_wildcard && *other == quality)
    })
}

/// True where a list of validators names one, or any (weak comparison, RFC 9110 section 13.1.2).
pub(crate) fn names_tag(list: &str, own: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let own = opaque(own);
    list.split(',')
        .any(|tag| tag.trim() == "*" || opaque(tag) == own)
}

/// True where an error is better told in JSON: a form of it is named, and none of text or XML
/// preferred.
pub(super) fn wants_json(accept: Option<&str>) -> bool {
    let ranges = media_ranges(accept.unwrap_or_default());
    let is_json = |range: &str| range.ends_with("/json") || range.ends_with("+json");
    let best = best_quality(&ranges, is_json);
    best > 0
        && ranges
            .iter()
            .all(|(range, quality)| range.contains('*') || *quality <= best)
}

/// The codings on offer, best first where a consumer takes them equally: the later ones give larger
/// bodies.
pub(crate) const CODINGS: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// The content codings that a consumer names, with their quality in thousandths.
struct AcceptedCodings(Vec<(String, u16)>);

impl AcceptedCodings {
    fn parse(accept_encoding: &str) -> Self {
        Self(accept_encoding.split(',').map(weighted).collect())
    }

    fn named(&self, wanted: &str) -> Option<u16> {
        self.0
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, quality)| *quality)
    }

    /// The quality of a coding; 0 where it is not taken.
    fn quality(&self, coding: Coding) -> u16 {
        let token = coding.token().unwrap_or("identity");
        // An old name of gzip means it, too (RFC 9110 section 8.4.1.3).
        let old = if coding == Coding::Gzip {
            self.named("x-gzip")
        } else {
            None
        };
        self.named(token)
            .or(old)
            .or_else(|| self.named("*"))
            .unwrap_or(0)
    }
}

/// The content coding to send; none where the consumer would rather have none.
fn coding(accept_encoding: Option<&str>) -> Coding {
    let Some(accepted) = accept_encoding else {
        return Coding::Identity;
    };
    let accepted = AcceptedCodings::parse(accepted);
    let better = |best, next| {
        if accepted.quality(next) > accepted.quality(best) {
            next
        } else {
            best
        }
    };
    let best = CODINGS
        .into_iter()
        .reduce(better)
        .unwrap_or(Coding::Identity);
    let plain = accepted.named("identity").unwrap_or(0);
    let quality = accepted.quality(best);
    if quality > 0 && quality >= plain {
        best
    } else {
        Coding::Identity
    }
}

/// The content coding that a consumer prefers.
pub(crate) fn coding_for(request: &Parts) -> Coding {
    coding(list_value(&request.headers, &ACCEPT_ENCODING).as_deref())
}

/// True where a consumer takes a coding, be it that it would rather have another one.
pub(crate) fn takes_coding(accept_encoding: &str, coding: Coding) -> bool {
    AcceptedCodings::parse(accept_encoding).quality(coding) > 0
}

/// The end of the ETag of a body in a coding: a cache picks one of its copies by the tag of a 304,
/// so no two have the same (RFC 9111 section 4.3.4).
pub(crate) fn coding_tag(coding: Coding) -> String {
    coding
        .token()
        .map(|token| format!("-{token}"))
        .unwrap_or_default()
}

/// The highest quality of the ranges that are wanted; 0 without any.
fn best_quality(ranges: &[(String, u16)], is_wanted: impl Fn(&str) -> bool) -> u16 {
    let wanted = ranges.iter().filter(|(range, _)| is_wanted(range));
    wanted.map(|(_, quality)| *quality).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accept_header_of_the_vectors_selects_the_expected_form() {
        // SF-47, SF-48.
        for case in testkit::data::section("accept") {
            let accept = case["accept"].as_str();
            let form = representation(accept, case["callback"].as_bool().unwrap());
            // The vectors know no page for people, which browsers get since there is one.
            let expect = match accept {
                Some(BROWSER | "text/html") => Some("text/html"),
                _ => case["expect"].as_str(),
            };
            assert_eq!(form.map(Representation::media_type), expect, "{case}");
        }
    }

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    #[test]
    fn browsers_get_the_page_of_a_feed_and_feed_readers_the_feed() {
        for browser in [
            BROWSER,
            // Chrome and Edge, Firefox (old and new), Safari, Opera, lynx, a text browser, jQuery.
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8",
            "text/html, application/xml;q=0.9, application/xhtml+xml, image/png, image/webp, image/jpeg, image/gif, image/x-xbitmap, */*;q=0.1",
            "text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01",
            "text/html",
            "text/html, */*; q=0.01",
            "TEXT/HTML;charset=utf-8, application/json;q=0.5",
            "application/atom+xml;q=0.8, text/html;q=0.9",
        ] {
            assert!(prefers_page(Some(browser)), "{browser}");
            assert_eq!(
                representation(Some(browser), false),
                Some(Representation::PAGE)
            );
            assert_ne!(
                representation(Some(browser), true),
                Some(Representation::PAGE)
            );
        }
        for reader in [
            // feedparser, Miniflux, FreshRSS (SimplePie), Tiny Tiny RSS, NetNewsWire, Feedly, NewsBlur,
            // Liferea, Inoreader, Thunderbird, Newsboat, RSS Guard, Akregator, ROME (Java).
            "application/atom+xml,application/rdf+xml,application/rss+xml,application/x-netcdf,application/xml;q=0.9,text/xml;q=0.2,*/*;q=0.1",
            "application/xml, application/atom+xml, application/rss+xml, application/rdf+xml, application/feed+json, text/html, */*;q=0.9",
            "application/atom+xml, application/rss+xml, application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, text/html;q=0.7, unknown/unknown;q=0.1, application/unknown;q=0.1, */*;q=0.1",
            "*/*",
            "application/rss+xml, application/xml;q=0.9, text/html;q=0.8",
            "application/atom+xml, application/rss+xml, application/xml;q=0.8, text/xml;q=0.6, */*;q=0.2",
            "application/atom+xml,application/xml;q=0.8,text/html;q=0.6,*/*;q=0.2",
            "text/html, application/xml, text/xml, */*",
            "application/feed+json;q=1, text/html;q=1",
            "text/html, application/atom+xml",
            "text/html, text/csv",
            "text/html, application/*",
            "text/html;q=0.5, text/*",
            "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
            "text/html;q=0",
            "application/xhtml+xml",
            "text/*,image/*,*/*;q=0.2",
            "garbage",
            "",
        ] {
            assert!(!prefers_page(Some(reader)), "{reader}");
            assert_ne!(
                representation(Some(reader), false),
                Some(Representation::PAGE)
            );
        }
        assert!(!prefers_page(None));
    }

    #[test]
    fn other_forms_are_chosen_by_their_names_alone() {
        let chosen = |accept| representation(Some(accept), false).map(Representation::suffix);
        for (accept, suffix) in [
            ("application/feed+json", "jsonfeed"),
            ("application/activity+json", "as2"),
            (
                r#"application/ld+json; profile="https://www.w3.org/ns/activitystreams""#,
                "as2",
            ),
            ("application/x-ndjson", "jsonl"),
            ("application/jsonl, */*;q=0.1", "jsonl"),
            ("text/csv, text/plain;q=0.5", "csv"),
            ("text/tab-separated-values", "tsv"),
            // Whoever takes more than that gets what it always got.
            ("application/feed+json, application/json", "json"),
            ("application/feed+json, */*", "jsonfeed"),
            ("application/*", "atom"),
            ("application/feed+json;q=0, application/*", "atom"),
        ] {
            assert_eq!(chosen(accept), Some(suffix), "{accept}");
        }
        for accept in ["text/*", "application/rdf+xml"] {
            assert_eq!(chosen(accept), None, "{accept}");
        }
        for reader in [
            "text/html, application/rss+xml",
            "application/rss+xml, text/html;q=0.9",
            "application/rdf+xml;q=0.9, text/html;q=0.5",
        ] {
            assert_eq!(chosen(reader), Some("atom"), "{reader}");
        }
        assert_eq!(chosen("text/html;q=0, application/rss+xml"), None);
        assert!(wants_json(Some("application/feed+json")));
    }

    #[test]
    fn browsers_get_pages_and_scripts_get_json() {
        assert!(wants_html(Some(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        )));
        for accept in [
            None,
            Some("*/*"),
            Some("application/json"),
            Some("application/json, text/html;q=0.5"),
            Some("text/html;q=0"),
        ] {
            assert!(!wants_html(accept), "{accept:?}");
        }
        for accept in [
            "application/json",
            "application/problem+json, */*",
            "application/json, text/plain, */*",
            "application/atom+xml;q=0.5, application/activity+json;q=0.6",
        ] {
            assert!(wants_json(Some(accept)), "{accept}");
        }
        for accept in [
            "*/*",
            "text/html, application/json;q=0.9",
            "application/json;q=0",
            "application/jsonp",
        ] {
            assert!(!wants_json(Some(accept)), "{accept}");
        }
        assert!(!wants_json(None));
    }

    #[test]
    fn readers_of_old_feeds_get_json_only_where_they_prefer_it() {
        for accept in [
            "application/json",
            "application/json, */*;q=0.1",
            "application/stream+json, text/xml;q=0.9",
        ] {
            assert!(prefers_json(Some(accept)), "{accept}");
        }
        for accept in [
            "*/*",
            "application/rss+xml, application/json;q=0.9",
            "application/json, application/xml",
            "application/json, */*",
            "application/feed+json, application/rss+xml;q=0.5",
            "application/json;q=0",
        ] {
            assert!(!prefers_json(Some(accept)), "{accept}");
        }
        assert!(!prefers_json(None));
    }

    #[test]
    fn codings_are_chosen_by_quality_and_refused_by_zero() {
        assert_eq!(coding(None), Coding::Identity);
        assert_eq!(coding(Some("")), Coding::Identity);
        assert_eq!(coding(Some("gzip, deflate, br")), Coding::Brotli);
        assert_eq!(coding(Some("gzip;q=1.0, br;q=0.5")), Coding::Gzip);
        assert_eq!(coding(Some("br;q=0, gzip")), Coding::Gzip);
        assert_eq!(coding(Some("identity")), Coding::Identity);
        assert_eq!(coding(Some("*")), Coding::Brotli);
        assert_eq!(coding(Some("gzip, zstd")), Coding::Zstd);
        assert_eq!(coding(Some("gzip, deflate, br, zstd")), Coding::Brotli);
        assert_eq!(coding(Some("zstd;q=0.9, br;q=0.8, *;q=0.1")), Coding::Zstd);
        assert_eq!(coding(Some("br;q=0, *")), Coding::Zstd);
        assert_eq!(coding(Some("zstd;q=0, br;q=0, *;q=0.5")), Coding::Gzip);
        assert_eq!(coding(Some("x-gzip")), Coding::Gzip);
        assert_eq!(coding(Some("ZSTD")), Coding::Zstd);
        assert_eq!(coding(Some("zstdx")), Coding::Identity);
        assert_eq!(coding(Some("gzip;q=0")), Coding::Identity);
        assert_eq!(coding(Some("identity, gzip;q=0.5")), Coding::Identity);
        assert_eq!(coding(Some("identity;q=0.5, gzip")), Coding::Gzip);
    }

    #[test]
    fn a_coding_is_taken_unless_its_quality_is_zero() {
        for accept in [
            "gzip",
            "GZIP;Q=0.001",
            "br, gzip;q=0.1",
            "x-gzip",
            "*",
            "identity, *;q=0.1",
        ] {
            assert!(takes_coding(accept, Coding::Gzip), "{accept}");
        }
        for accept in [
            "",
            "gzip;q=0",
            "gzip; q=0.000, *",
            "br",
            "*;q=0",
            "gzipped",
            "identity",
        ] {
            assert!(!takes_coding(accept, Coding::Gzip), "{accept}");
        }
    }
}
