//! Which version of its format a document is, under feedparser's names; for people and comparisons,
//! not for reading it.

use crate::Format;
use crate::text::markup::split;
use crate::text::markup::tokens::{Token, Tokens, attributes};
use crate::text::markup::tree::Bindings;

/// The version, given what stands before the root element and everything from it on.
pub(crate) fn of(format: Format, before: &str, text: &str) -> &'static str {
    match format {
        Format::Cdf => return "cdf",
        Format::JsonFeed => return json_feed(text),
        Format::Resource => return "",
        Format::Rss | Format::Rdf | Format::Atom => {}
    }
    let Some((
        Token::Start {
            name,
            attributes: raw,
            ..
        },
        _,
    )) = Tokens::new(text).next()
    else {
        return "";
    };
    let mut bindings = Bindings::default();
    bindings.declare(attributes(raw));
    let said = attributes(raw).find(|(name, _)| name.eq_ignore_ascii_case("version"));
    let said = said.as_ref().map_or("", |(_, value)| value.trim());
    match format {
        Format::Rss => rss(said, before),
        Format::Rdf => rdf(&bindings),
        Format::Atom => atom(said, &bindings.namespace(split(name).0)),
        Format::Cdf | Format::JsonFeed | Format::Resource => "",
    }
}

/// 0.91 had two authors, told apart by the DTD that one of them named.
fn rss(said: &str, before: &str) -> &'static str {
    match said {
        "0.90" | "0.9" => "rss090",
        "0.91" if names_netscape(before) => "rss091n",
        "0.91" => "rss091u",
        "0.92" => "rss092",
        "0.93" => "rss093",
        "0.94" => "rss094",
        _ if said == "2" || said.starts_with("2.") => "rss20",
        _ => "rss",
    }
}

/// `<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/publish/formats/rss-0.91.dtd">`
fn names_netscape(before: &str) -> bool {
    let Some(start) = memchr::memmem::find(before.as_bytes(), b"<!DOCTYPE") else {
        return false;
    };
    before[start..].to_ascii_lowercase().contains("netscape")
}

fn rdf(bindings: &Bindings) -> &'static str {
    let declares = |part: &str| {
        bindings
            .namespaces()
            .any(|namespace| namespace.contains(part))
    };
    if declares("purl.org/net/rss1.1") {
        "rss11"
    } else if declares("netscape.com/rdf/simple/0.9") {
        "rss090"
    } else {
        "rss10"
    }
}

fn atom(said: &str, namespace: &str) -> &'static str {
    match said {
        "0.1" => "atom01",
        "0.2" => "atom02",
        "0.3" => "atom03",
        _ if namespace.eq_ignore_ascii_case("http://www.w3.org/2005/Atom") => "atom10",
        _ if namespace
            .trim_end_matches(['#', '/'])
            .ends_with("purl.org/atom/ns") =>
        {
            "atom03"
        }
        _ => "atom",
    }
}

/// `"version": "https://jsonfeed.org/version/1.1"`, in which a writer may have escaped the slashes.
fn json_feed(text: &str) -> &'static str {
    const NAME: &str = "jsonfeed.org";
    let said =
        memchr::memmem::find(text.as_bytes(), NAME.as_bytes()).map(|at| &text[at + NAME.len()..]);
    let said = said.map(|said| {
        said.chars()
            .filter(|c| *c != '\\')
            .take("/version/1.1".len())
            .collect::<String>()
    });
    if said.is_some_and(|said| said == "/version/1.1") {
        "json11"
    } else {
        "json1"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_by_attribute_namespace_and_dtd() {
        let check = |format, document: &str, expect: &str| {
            let root = document
                .find("<r")
                .or_else(|| document.find("<f"))
                .unwrap_or(0);
            assert_eq!(
                of(format, &document[..root], &document[root..]),
                expect,
                "{document}"
            );
        };
        check(Format::Rss, "<rss version='2.0'>", "rss20");
        check(Format::Rss, "<rss version=' 2.01'>", "rss20");
        check(Format::Rss, "<rss version='0.92'>", "rss092");
        check(Format::Rss, "<rss version='0.91'>", "rss091u");
        check(
            Format::Rss,
            "<!DOCTYPE rss SYSTEM 'http://my.netscape.com/x.dtd'><rss version='0.91'>",
            "rss091n",
        );
        check(Format::Rss, "<rss>", "rss");
        check(Format::Rss, "<rss version='9'>", "rss");
        check(
            Format::Rdf,
            "<rdf:RDF xmlns='http://purl.org/rss/1.0/'>",
            "rss10",
        );
        check(
            Format::Rdf,
            "<rdf:RDF xmlns='http://my.netscape.com/rdf/simple/0.9/'>",
            "rss090",
        );
        check(
            Format::Rdf,
            "<rdf:RDF xmlns='http://purl.org/net/rss1.1#'>",
            "rss11",
        );
        check(
            Format::Atom,
            "<feed xmlns='http://www.w3.org/2005/Atom'>",
            "atom10",
        );
        check(
            Format::Atom,
            "<f:feed xmlns:f='http://purl.org/atom/ns#'>",
            "atom03",
        );
        check(Format::Atom, "<feed version='0.2'>", "atom02");
        check(Format::Atom, "<feed>", "atom");
        check(Format::Cdf, "<CHANNEL>", "cdf");
        check(
            Format::JsonFeed,
            "{\"version\": \"https://jsonfeed.org/version/1.1\"}",
            "json11",
        );
        check(
            Format::JsonFeed,
            "{\"version\": \"https:\\/\\/jsonfeed.org\\/version\\/1\"}",
            "json1",
        );
        check(
            Format::JsonFeed,
            "{\"version\": \"https:\\/\\/jsonfeed.org\\/version\\/1.1\"}",
            "json11",
        );
    }
}
