//! Which vocabulary a namespace means, with the spellings that feeds use for it; not what its
//! elements mean.

/// The namespace that `xml:` always means.
pub const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// The namespace of XHTML.
pub const XHTML: &str = "http://www.w3.org/1999/xhtml";

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
    /// Well-Formed Web's CommentAPI, `wfw`.
    CommentApi,
    CreativeCommons,
    Trackback,
    GeoRss,
    Gml,
    /// W3C Basic Geo, `geo`.
    Geo,
    OpenSearch,
    Podcast,
    /// Podlove Simple Chapters, `psc`.
    Chapters,
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
        // Namespaces begin alike, so that they are told apart sooner from the end.
        let is_usual =
            |known: &str| known.len() == usual.len() && known.bytes().rev().eq(usual.bytes().rev());
        if let Some((_, vocabulary)) = KNOWN.iter().find(|(known, _)| is_usual(known)) {
            return *vocabulary;
        }
        let lower = namespace.trim().to_ascii_lowercase();
        if lower.is_empty() {
            return Self::Foreign;
        }
        let bare = bare(&lower);
        if bare.starts_with("purl.org/atom/ns#draft-ietf-atompub") {
            return Self::Atom;
        }
        // POLLING 3.1: the drafts never said which namespace it would be.
        if bare.ends_with("feed-history") {
            return Self::FeedHistory;
        }
        let known = KNOWN
            .iter()
            .find(|(known, _)| *known == bare)
            .map(|(_, vocabulary)| *vocabulary);
        known.or_else(|| misspelt(bare)).unwrap_or(Self::Foreign)
    }
}

/// Letters by which a namespace may differ from that of Atom and still be meant as it.
const ATOM_SLIPS_MAX: usize = 2;

/// The vocabulary that a namespace means which nobody ever defined: one of podcasts that moved or
/// grew a suffix, or Atom's with a slip of the pen, another year or another host.
fn misspelt(bare: &str) -> Option<Vocabulary> {
    const ATOM: &str = "www.w3.org/2005/atom";
    let site = bare.strip_prefix("www.").unwrap_or(bare);
    if site.starts_with("github.com/podcastindex-org/podcast-namespace")
        || site.starts_with("podcastindex.org/namespace/")
    {
        return Some(Vocabulary::Podcast);
    }
    if (site.starts_with("itunes.com/") || site.starts_with("itunes.apple.com/"))
        && site.contains("podcast")
    {
        return Some(Vocabulary::Itunes);
    }
    let is_of_w3c = bare.contains("w3.org/") || bare.contains("w3c.org/");
    let is_atom =
        || bare.len().abs_diff(ATOM.len()) <= ATOM_SLIPS_MAX && slips(bare, ATOM) <= ATOM_SLIPS_MAX;
    let ends_in_atom = || {
        bare.trim_end_matches(|c: char| !c.is_alphabetic())
            .ends_with("/atom")
    };
    (is_of_w3c && ends_in_atom() || is_atom()).then_some(Vocabulary::Atom)
}

/// Letters to add, to take away, or to change, that make one short text of another (Levenshtein).
fn slips(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, byte) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (place, other) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(byte != other);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[b.len()]
}

/// A namespace as it is compared.
pub(crate) fn bare(namespace: &str) -> &str {
    let bare = namespace
        .strip_prefix("http://")
        .or_else(|| namespace.strip_prefix("https://"));
    bare.unwrap_or(namespace).trim_end_matches(['/', '#'])
}

/// Namespaces in lower case, without scheme and last slash or hash. LEGACY H-15, L-10; PARSING
/// section 0.2.
static KNOWN: &[(&str, Vocabulary)] = {
    use Vocabulary::*;
    &[
        ("www.w3.org/2005/atom", Atom),
        ("www.w3.org/2005/Atom", Atom),
        ("purl.org/atom/ns", Atom),
        ("purl.org/dc/elements/1.1", DublinCore),
        ("purl.org/dc/elements/1.0", DublinCore),
        ("purl.org/rss/1.0/modules/content", Content),
        ("purl.org/rss/1.0", Rss),
        ("my.netscape.com/rdf/simple/0.9", Rss),
        ("channel.netscape.com/rdf/simple/0.9", Rss),
        ("purl.org/net/rss1.1", Rss),
        ("purl.org/rss/2.0", Rss),
        ("backend.userland.com/rss", Rss),
        ("backend.userland.com/rss2", Rss),
        ("backend.userland.com/rss091", Rss),
        ("backend.userland.com/rss092", Rss),
        ("backend.userland.com/rss093", Rss),
        ("backend.userland.com/rss094", Rss),
        ("blogs.law.harvard.edu/tech/rss", Rss),
        ("cyber.law.harvard.edu/rss/rss.html", Rss),
        ("www.rssboard.org/rss-specification", Rss),
        ("rssnamespace.org/feedburner/ext/1.0", FeedBurner),
        ("webns.net/mvcb", Admin),
        ("www.w3.org/1999/02/22-rdf-syntax-ns", Rdf),
        ("purl.org/dc/terms", DublinCoreTerms),
        ("purl.org/rss/1.0/modules/syndication", Syndication),
        ("purl.org/rss/modules/syndication", Syndication),
        ("purl.org/rss/1.0/modules/slash", Slash),
        ("purl.org/rss/modules/slash", Slash),
        ("purl.org/syndication/thread/1.0", Thread),
        ("purl.org/syndication/history/1.0", FeedHistory),
        ("[tbd]", FeedHistory),
        ("[[tbd]]", FeedHistory),
        ("purl.org/atompub/tombstones/1.0", Tombstones),
        ("search.yahoo.com/mrss", MediaRss),
        ("tools.search.yahoo.com/mrss", MediaRss),
        ("video.search.yahoo.com/mrss", MediaRss),
        ("www.rssboard.org/media-rss", MediaRss),
        ("wellformedweb.org/commentapi", CommentApi),
        ("wellformedweb.org/CommentAPI", CommentApi),
        (
            "backend.userland.com/creativecommonsrssmodule",
            CreativeCommons,
        ),
        (
            "backend.userland.com/creativeCommonsRssModule",
            CreativeCommons,
        ),
        (
            "cyber.law.harvard.edu/rss/creativecommonsrssmodule.html",
            CreativeCommons,
        ),
        ("web.resource.org/cc", CreativeCommons),
        ("creativecommons.org/ns", CreativeCommons),
        ("creativecommons.org/ns#license", CreativeCommons),
        ("madskills.com/public/xml/rss/module/trackback", Trackback),
        ("www.georss.org/georss", GeoRss),
        ("www.georss.org/georss/10", GeoRss),
        ("www.opengis.net/gml", Gml),
        ("www.w3.org/2003/01/geo/wgs84_pos", Geo),
        ("a9.com/-/spec/opensearch/1.1", OpenSearch),
        ("a9.com/-/spec/opensearchrss/1.0", OpenSearch),
        ("podcastindex.org/namespace/1.0", Podcast),
        (
            "github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md",
            Podcast,
        ),
        ("podlove.org/simple-chapters", Chapters),
        ("www.itunes.com/dtds/podcast-1.0.dtd", Itunes),
        ("www.itunes.com/dtds/podcast-1.0", Itunes),
        ("example.com/dtds/podcast-1.0.dtd", Itunes),
        // Google took over Apple's names, and so do its readers.
        ("www.google.com/schemas/play-podcasts/1.0", Itunes),
        ("www.w3.org/1999/xhtml", Xhtml),
        ("www.w3.org/xml/1998/namespace", Xml),
        ("www.w3.org/XML/1998/namespace", Xml),
    ]
};

/// Prefixes that everybody knows, each with the namespace as it is defined.
const CUSTOMARY: [(&str, &str); 51] = [
    ("xml", XML),
    ("xhtml", XHTML),
    ("atom", "http://www.w3.org/2005/Atom"),
    ("a10", "http://www.w3.org/2005/Atom"),
    ("atom10", "http://www.w3.org/2005/Atom"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rss", "http://purl.org/rss/1.0/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("content", "http://purl.org/rss/1.0/modules/content/"),
    ("sy", "http://purl.org/rss/1.0/modules/syndication/"),
    ("slash", "http://purl.org/rss/1.0/modules/slash/"),
    ("thr", "http://purl.org/syndication/thread/1.0"),
    ("fh", "http://purl.org/syndication/history/1.0"),
    ("history", "http://purl.org/syndication/history/1.0"),
    ("at", "http://purl.org/atompub/tombstones/1.0"),
    ("media", "http://search.yahoo.com/mrss/"),
    ("itunes", "http://www.itunes.com/dtds/podcast-1.0.dtd"),
    ("feedburner", "http://rssnamespace.org/feedburner/ext/1.0"),
    ("wfw", "http://wellformedweb.org/CommentAPI/"),
    ("georss", "http://www.georss.org/georss"),
    ("geo", "http://www.w3.org/2003/01/geo/wgs84_pos#"),
    ("cc", "http://web.resource.org/cc/"),
    (
        "creativecommons",
        "http://backend.userland.com/creativeCommonsRssModule",
    ),
    (
        "trackback",
        "http://madskills.com/public/xml/rss/module/trackback/",
    ),
    ("podcast", "https://podcastindex.org/namespace/1.0"),
    ("admin", "http://webns.net/mvcb/"),
    ("ag", "http://purl.org/rss/1.0/modules/aggregation/"),
    ("annotate", "http://purl.org/rss/1.0/modules/annotate/"),
    ("app", "http://www.w3.org/2007/app"),
    (
        "blogchannel",
        "http://backend.userland.com/blogChannelModule",
    ),
    ("co", "http://purl.org/rss/1.0/modules/company"),
    ("dcmitype", "http://purl.org/dc/dcmitype/"),
    ("ev", "http://purl.org/rss/1.0/modules/event/"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("gd", "http://schemas.google.com/g/2005"),
    ("gml", "http://www.opengis.net/gml"),
    (
        "googleplay",
        "http://www.google.com/schemas/play-podcasts/1.0",
    ),
    ("image", "http://purl.org/rss/1.0/modules/image/"),
    ("l", "http://purl.org/rss/1.0/modules/link/"),
    ("opensearch", "http://a9.com/-/spec/opensearch/1.1/"),
    (
        "pingback",
        "http://madskills.com/public/xml/rss/module/pingback/",
    ),
    ("prism", "http://prismstandard.org/namespaces/1.2/basic/"),
    ("psc", "http://podlove.org/simple-chapters"),
    ("rawvoice", "http://www.rawvoice.com/rawvoiceRssModule/"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("source", "http://source.scripting.com/"),
    ("taxo", "http://purl.org/rss/1.0/modules/taxonomy/"),
    ("wiki", "http://purl.org/rss/1.0/modules/wiki/"),
    ("xlink", "http://www.w3.org/1999/xlink"),
    ("yt", "http://www.youtube.com/xml/schemas/2015"),
];

/// The namespace that a prefix means when a document forgot to declare it.
pub(crate) fn conventional(prefix: &str) -> Option<&'static str> {
    let known = CUSTOMARY
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(prefix));
    known.map(|(_, namespace)| *namespace)
}

/// The prefix and the spelling that everybody uses for a namespace, which may be written with
/// another scheme, in another case, or with a slash too few or too many: many readers know the
/// defined spelling alone.
pub fn customary(namespace: &str) -> Option<(&'static str, &'static str)> {
    let usual = || {
        let usual = bare(namespace.trim());
        CUSTOMARY
            .iter()
            .find(|(_, known)| bare(known).eq_ignore_ascii_case(usual))
    };
    // Most are written as they are defined.
    CUSTOMARY
        .iter()
        .find(|(_, defined)| *defined == namespace)
        .or_else(usual)
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_one_customary_spelling_and_prefix() {
        let media = Some(("media", "http://search.yahoo.com/mrss/"));
        for spelling in [
            "http://search.yahoo.com/mrss",
            "https://search.yahoo.com/MRSS/",
            "http://search.yahoo.com/mrss/",
        ] {
            assert_eq!(customary(spelling), media, "{spelling}");
        }
        assert_eq!(customary("urn:x"), None);
        assert_eq!(customary(""), None);
        assert_eq!(conventional("Media"), media.map(|(_, namespace)| namespace));
    }

    #[test]
    fn spellings_of_a_namespace_are_one_vocabulary() {
        for (namespace, vocabulary) in [
            ("http://www.w3.org/2005/Atom", Vocabulary::Atom),
            ("HTTPS://www.w3.org/2005/ATOM/", Vocabulary::Atom),
            (
                "http://purl.org/atom/ns#draft-ietf-atompub-format-09",
                Vocabulary::Atom,
            ),
            ("http://purl.org/atom/ns#", Vocabulary::Atom),
            ("http://search.yahoo.com/mrss", Vocabulary::MediaRss),
            ("http://search.yahoo.com/mrss/", Vocabulary::MediaRss),
            ("http://blogs.law.harvard.edu/tech/rss", Vocabulary::Rss),
            ("[[TBD]]", Vocabulary::FeedHistory),
            (
                "http://purl.org/syndication/feed-history/",
                Vocabulary::FeedHistory,
            ),
            (
                "http://wellformedweb.org/commentAPI/",
                Vocabulary::CommentApi,
            ),
            (
                "http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html",
                Vocabulary::CreativeCommons,
            ),
            (
                "http://a9.com/-/spec/opensearchrss/1.0/",
                Vocabulary::OpenSearch,
            ),
            (
                "https://podcastindex.org/namespace/1.0",
                Vocabulary::Podcast,
            ),
            ("http://www.w3.org/2003/01/geo/wgs84_pos#", Vocabulary::Geo),
            (
                "http://www.itunes.com/DTDs/Podcast-1.0.dtd",
                Vocabulary::Itunes,
            ),
            ("http://www.w3.org/2006/Atom", Vocabulary::Atom),
            ("http://www.w3c.org/2005/Atom", Vocabulary::Atom),
            ("http://w3.org/2005/Atom", Vocabulary::Atom),
            ("http://www.w3.org/2005/Aotm", Vocabulary::Atom),
            ("http://www.w3.org/Atom/1.0", Vocabulary::Atom),
            ("http://www.w3.org/1999/xlink", Vocabulary::Foreign),
            ("http://www.w3.org/2005/Owl", Vocabulary::Foreign),
            (
                "https://github.com/Podcastindex-org/podcast-namespace/blob/master/docs/1.0.md",
                Vocabulary::Podcast,
            ),
            ("http://itunes.com/DTDs/Podcast-1.0.dtd", Vocabulary::Itunes),
            (
                "http://www.google.com/schemas/play-podcasts/1.0",
                Vocabulary::Itunes,
            ),
            ("http://example.org/", Vocabulary::Foreign),
            ("", Vocabulary::Foreign),
        ] {
            assert_eq!(Vocabulary::of(namespace), vocabulary, "{namespace}");
        }
    }

    #[test]
    fn every_known_prefix_means_a_namespace_that_names_something() {
        assert_eq!(
            conventional("DC").map(Vocabulary::of),
            Some(Vocabulary::DublinCore)
        );
        assert_eq!(conventional("nobody"), None);
    }
}
