//! Which vocabulary a namespace means, with the spellings that feeds use for it; not what its elements mean.

use crate::text::markup::{XHTML, XML};

/// A vocabulary that the adapters understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vocabulary {
    /// RSS of any version, RSS 0.90 and 1.0 included.
    Rss,
    /// Atom 1.0, its drafts and 0.3.
    Atom,
    Rdf,
    /// The Channel Definition Format, which has no namespace.
    Cdf,
    DublinCore,
    DublinCoreTerms,
    Content,
    Syndication,
    FeedHistory,
    Tombstones,
    MediaRss,
    Itunes,
    FeedBurner,
    /// `admin:generatorAgent`, what RSS 1.0 has for a generator.
    Admin,
    Slash,
    Thread,
    Xhtml,
    Xml,
    /// Anything else: kept as it is.
    Foreign,
}

impl Vocabulary {
    /// The vocabulary of a namespace, whatever its case, scheme and last slash.
    pub(crate) fn of(namespace: &str) -> Self {
        // The usual spellings need no allocation.
        let usual = bare(namespace);
        if let Some((_, vocabulary)) = KNOWN.iter().find(|(known, _)| *known == usual) {
            return *vocabulary;
        }
        let lower = namespace.trim().to_ascii_lowercase();
        let bare = bare(&lower);
        if bare.starts_with("purl.org/atom/ns#draft-ietf-atompub") {
            return Self::Atom;
        }
        KNOWN.iter().find(|(known, _)| *known == bare).map_or(Self::Foreign, |(_, vocabulary)| *vocabulary)
    }
}

fn bare(namespace: &str) -> &str {
    let bare = namespace.strip_prefix("http://").or_else(|| namespace.strip_prefix("https://"));
    bare.unwrap_or(namespace).trim_end_matches(['/', '#'])
}

/// Namespaces in lower case, without scheme and last slash or hash. LEGACY H-15, L-10; PARSING section 0.2.
static KNOWN: &[(&str, Vocabulary)] = &[
    ("www.w3.org/2005/atom", Vocabulary::Atom),
    ("www.w3.org/2005/Atom", Vocabulary::Atom),
    ("purl.org/atom/ns", Vocabulary::Atom),
    ("purl.org/dc/elements/1.1", Vocabulary::DublinCore),
    ("purl.org/dc/elements/1.0", Vocabulary::DublinCore),
    ("purl.org/rss/1.0/modules/content", Vocabulary::Content),
    ("purl.org/rss/1.0", Vocabulary::Rss),
    ("my.netscape.com/rdf/simple/0.9", Vocabulary::Rss),
    ("channel.netscape.com/rdf/simple/0.9", Vocabulary::Rss),
    ("purl.org/net/rss1.1", Vocabulary::Rss),
    ("purl.org/rss/2.0", Vocabulary::Rss),
    ("backend.userland.com/rss", Vocabulary::Rss),
    ("backend.userland.com/rss2", Vocabulary::Rss),
    ("backend.userland.com/rss091", Vocabulary::Rss),
    ("backend.userland.com/rss092", Vocabulary::Rss),
    ("backend.userland.com/rss093", Vocabulary::Rss),
    ("backend.userland.com/rss094", Vocabulary::Rss),
    ("blogs.law.harvard.edu/tech/rss", Vocabulary::Rss),
    ("cyber.law.harvard.edu/rss/rss.html", Vocabulary::Rss),
    ("www.rssboard.org/rss-specification", Vocabulary::Rss),
    ("rssnamespace.org/feedburner/ext/1.0", Vocabulary::FeedBurner),
    ("webns.net/mvcb", Vocabulary::Admin),
    ("www.w3.org/1999/02/22-rdf-syntax-ns", Vocabulary::Rdf),
    ("purl.org/dc/terms", Vocabulary::DublinCoreTerms),
    ("purl.org/rss/1.0/modules/syndication", Vocabulary::Syndication),
    ("purl.org/rss/1.0/modules/slash", Vocabulary::Slash),
    ("purl.org/syndication/thread/1.0", Vocabulary::Thread),
    ("purl.org/syndication/history/1.0", Vocabulary::FeedHistory),
    ("[tbd]", Vocabulary::FeedHistory),
    ("[[tbd]]", Vocabulary::FeedHistory),
    ("purl.org/atompub/tombstones/1.0", Vocabulary::Tombstones),
    ("search.yahoo.com/mrss", Vocabulary::MediaRss),
    ("www.itunes.com/dtds/podcast-1.0.dtd", Vocabulary::Itunes),
    ("www.itunes.com/dtds/podcast-1.0", Vocabulary::Itunes),
    ("example.com/dtds/podcast-1.0.dtd", Vocabulary::Itunes),
    ("www.w3.org/1999/xhtml", Vocabulary::Xhtml),
    ("www.w3.org/xml/1998/namespace", Vocabulary::Xml),
    ("www.w3.org/XML/1998/namespace", Vocabulary::Xml),
];

/// The namespace that a prefix means when a document forgot to declare it.
pub(crate) fn conventional(prefix: &str) -> Option<&'static str> {
    let namespace = match prefix.to_ascii_lowercase().as_str() {
        "xml" => XML,
        "xhtml" => XHTML,
        "atom" | "a10" | "atom10" => "http://www.w3.org/2005/Atom",
        "rdf" => "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "rss" => "http://purl.org/rss/1.0/",
        "dc" => "http://purl.org/dc/elements/1.1/",
        "dcterms" => "http://purl.org/dc/terms/",
        "content" => "http://purl.org/rss/1.0/modules/content/",
        "sy" => "http://purl.org/rss/1.0/modules/syndication/",
        "slash" => "http://purl.org/rss/1.0/modules/slash/",
        "thr" => "http://purl.org/syndication/thread/1.0",
        "fh" | "history" => "http://purl.org/syndication/history/1.0",
        "at" => "http://purl.org/atompub/tombstones/1.0",
        "media" => "http://search.yahoo.com/mrss/",
        "itunes" => "http://www.itunes.com/dtds/podcast-1.0.dtd",
        "feedburner" => "http://rssnamespace.org/feedburner/ext/1.0",
        "wfw" => "http://wellformedweb.org/CommentAPI/",
        "georss" => "http://www.georss.org/georss",
        "geo" => "http://www.w3.org/2003/01/geo/wgs84_pos#",
        "cc" => "http://web.resource.org/cc/",
        "creativecommons" => "http://backend.userland.com/creativeCommonsRssModule",
        "trackback" => "http://madskills.com/public/xml/rss/module/trackback/",
        "podcast" => "https://podcastindex.org/namespace/1.0",
        "admin" => "http://webns.net/mvcb/",
        _ => return None,
    };
    Some(namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_namespace_are_one_vocabulary() {
        for (namespace, vocabulary) in [
            ("http://www.w3.org/2005/Atom", Vocabulary::Atom),
            ("HTTPS://www.w3.org/2005/ATOM/", Vocabulary::Atom),
            ("http://purl.org/atom/ns#draft-ietf-atompub-format-09", Vocabulary::Atom),
            ("http://purl.org/atom/ns#", Vocabulary::Atom),
            ("http://search.yahoo.com/mrss", Vocabulary::MediaRss),
            ("http://search.yahoo.com/mrss/", Vocabulary::MediaRss),
            ("http://blogs.law.harvard.edu/tech/rss", Vocabulary::Rss),
            ("[[TBD]]", Vocabulary::FeedHistory),
            ("http://www.itunes.com/DTDs/Podcast-1.0.dtd", Vocabulary::Itunes),
            ("http://example.org/", Vocabulary::Foreign),
            ("", Vocabulary::Foreign),
        ] {
            assert_eq!(Vocabulary::of(namespace), vocabulary, "{namespace}");
        }
    }

    #[test]
    fn every_known_prefix_means_a_namespace_that_names_something() {
        assert_eq!(conventional("DC").map(Vocabulary::of), Some(Vocabulary::DublinCore));
        assert_eq!(conventional("nobody"), None);
    }
}
