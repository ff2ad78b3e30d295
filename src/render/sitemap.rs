//! Sitemaps (sitemaps.org 0.9) of the posts of a site: one document, or numbered parts and their index
//! not which posts are in them.

use super::xml::push_text;
use crate::feed::moment::Moment;
use std::collections::HashMap;

/// The path of a sitemap at its site.
pub const SITEMAP_PATH: &str = "/sitemap.xml";
/// The media type of a sitemap.
pub const SITEMAP_TYPE: &str = "application/xml";

/// URLs of one document at most.
const DOCUMENT_URLS_MAX: usize = 50_000;
/// Bytes of one document at most.
const DOCUMENT_BYTES_MAX: usize = 50_000_000;
/// URLs of one site at most; the pages that changed last are in its sitemap.
const SITE_URLS_MAX: usize = 200_000;
/// Bytes of the entries of one site at most.
const SITE_BYTES_MAX: usize = 64 << 20;

const BEGIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n";
const END: &str = "</urlset>\n";
const INDEX_BEGIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n";
const INDEX_END: &str = "</sitemapindex>\n";

/// The path of a part of a sitemap, numbered from 1.
fn part_path(number: usize) -> String {
    format!("/everfeed-sitemap-{number}.xml")
}

/// The number of the document at a path, 0 for that of the site; `None` for any other path.
pub fn document_at(path: &str) -> Option<usize> {
    if path == SITEMAP_PATH {
        return Some(0);
    }
    let rest = path.strip_prefix("/everfeed-sitemap-")?;
    let number: usize = rest.strip_suffix(".xml")?.parse().ok()?;
    (path == part_path(number) && number > 0).then_some(number)
}

/// The pages of a site, gathered for its sitemap.
#[derive(Clone, Debug, Default)]
pub struct SitemapPages {
    pages: Vec<(String, Option<Moment>)>,
    by_url: HashMap<String, usize>,
    bytes: usize,
}

impl SitemapPages {
    /// Adds a page. Of several posts on a page the last change counts. False if there is no room for
    /// it.
    pub fn add(&mut self, url: String, last_change: Option<Moment>) -> bool {
        if let Some(at) = self.by_url.get(&url) {
            let known = &mut self.pages[*at].1;
            *known = (*known).max(last_change);
            return true;
        }
        let bytes = self.bytes + entry(&url, last_change).len();
        if self.pages.len() >= SITE_URLS_MAX || bytes > SITE_BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.by_url.insert(url.clone(), self.pages.len());
        self.pages.push((url, last_change));
        true
    }

    /// True without pages.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    // Decides: How is a sitemap divided?
    /// The documents, by the numbers of [`document_at`]: the whole sitemap as number 0, or an index
    /// and its parts. `root` is that of the site, with a slash at its end.
    pub fn documents(&self, root: &str) -> Vec<String> {
        self.divided(root, DOCUMENT_URLS_MAX, DOCUMENT_BYTES_MAX)
    }

    fn divided(&self, root: &str, urls_max: usize, bytes_max: usize) -> Vec<String> {
        let mut parts = vec![BEGIN.to_owned()];
        let mut urls = 0;
        for (url, last_change) in &self.pages {
            let entry = entry(url, *last_change);
            let bytes = parts.last().map_or(0, String::len) + entry.len() + END.len();
            if urls == urls_max || bytes > bytes_max {
                parts.push(BEGIN.to_owned());
                urls = 0;
            }
            if let Some(part) = parts.last_mut() {
                part.push_str(&entry);
            }
            urls += 1;
        }
        for part in &mut parts {
            part.push_str(END);
        }
        if parts.len() == 1 {
            return parts;
        }
        let root = root.trim_end_matches('/');
        let mut index = INDEX_BEGIN.to_owned();
        for number in 1..=parts.len() {
            index.push_str("<sitemap><loc>");
            push_text(&mut index, &format!("{root}{}", part_path(number)));
            index.push_str("</loc></sitemap>\n");
        }
        index.push_str(INDEX_END);
        parts.insert(0, index);
        parts
    }
}

/// The entry of a page. Neither `changefreq` nor `priority`: search engines pass them over.
fn entry(url: &str, last_change: Option<Moment>) -> String {
    let mut entry = "<url><loc>".to_owned();
    push_text(&mut entry, url);
    entry.push_str("</loc>");
    if let Some(at) = last_change {
        entry.push_str("<lastmod>");
        // Whole seconds: nobody reads more.
        let whole = Moment::from_micros(at.micros().div_euclid(1_000_000) * 1_000_000);
        push_text(&mut entry, &whole.rfc3339());
        entry.push_str("</lastmod>");
    }
    entry.push_str("</url>\n");
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use quick_xml::events::Event;

    const ROOT: &str = "https://blog.example/";

    fn pages(count: usize) -> SitemapPages {
        let mut pages = SitemapPages::default();
        for no in 0..count {
            assert!(pages.add(format!("{ROOT}{no}"), None));
        }
        pages
    }

    /// The URLs of a document, read back by a parser of XML.
    fn locs(document: &str) -> Vec<String> {
        let mut reader = quick_xml::Reader::from_str(document);
        let (mut locs, mut loc) = (Vec::new(), None::<String>);
        loop {
            match reader.read_event().unwrap() {
                Event::Start(tag) if tag.name().as_ref() == "loc" => loc = Some(String::new()),
                Event::End(tag) if tag.name().as_ref() == "loc" => locs.extend(loc.take()),
                Event::Text(text) => {
                    loc.as_mut().into_iter().for_each(|loc| loc.push_str(&text));
                }
                Event::GeneralRef(name) => {
                    let sign = match &*name {
                        "amp" => '&',
                        "lt" => '<',
                        "gt" => '>',
                        other => panic!("&{other}; is not of XML"),
                    };
                    loc.as_mut().into_iter().for_each(|loc| loc.push(sign));
                }
                Event::Eof => return locs,
                _ => {}
            }
        }
    }

    #[test]
    fn a_sitemap_has_the_urls_and_the_changes_that_are_known_r_10() {
        let mut pages = SitemapPages::default();
        let at = Moment::from_micros(1_800_000_000_123_456);
        pages.add("https://blog.example/a?b=c&d='e'".into(), Some(at));
        pages.add("https://blog.example/]]>".into(), None);
        pages.add("https://blog.example/]]>".into(), None);
        let documents = pages.documents(ROOT);
        let expect = format!(
            "{BEGIN}<url><loc>https://blog.example/a?b=c&amp;d='e'</loc><lastmod>2027-01-15T08:00:00Z</lastmod></url>\n\
             <url><loc>https://blog.example/]]&gt;</loc></url>\n{END}"
        );
        assert_eq!(documents, [expect]);
        assert_eq!(
            locs(&documents[0]),
            [
                "https://blog.example/a?b=c&d='e'",
                "https://blog.example/]]>"
            ]
        );
    }

    #[test]
    fn the_last_change_of_a_page_is_that_of_its_last_post_r_11() {
        let mut pages = SitemapPages::default();
        for at in [None, Some(5), Some(3)] {
            let at = at.map(|secs| Moment::from_micros(secs * 1_000_000));
            pages.add(ROOT.to_owned(), at);
        }
        assert!(pages.documents(ROOT)[0].contains("<lastmod>1970-01-01T00:00:05Z</lastmod>"));
    }

    #[test]
    fn fifty_thousand_urls_are_one_document_and_one_more_makes_an_index_r_10() {
        let documents = pages(50_000).documents(ROOT);
        assert_eq!(documents.len(), 1);
        assert_eq!(locs(&documents[0]).len(), 50_000);
        let documents = pages(50_001).documents(ROOT);
        assert_eq!(
            locs(&documents[0]),
            [
                "https://blog.example/everfeed-sitemap-1.xml",
                "https://blog.example/everfeed-sitemap-2.xml"
            ]
        );
        let counts: Vec<usize> = documents[1..].iter().map(|part| locs(part).len()).collect();
        assert_eq!(counts, [50_000, 1]);
    }

    #[test]
    fn a_document_is_divided_by_its_bytes_too_r_10() {
        let pages = pages(100);
        let documents = pages.divided(ROOT, 50_000, 1_000);
        assert!(documents.len() > 4);
        assert!(documents[1..].iter().all(|part| part.len() <= 1_000));
        let all: Vec<String> = documents[1..].iter().flat_map(|part| locs(part)).collect();
        assert_eq!(all.len(), 100);
    }

    #[test]
    fn a_site_has_a_bound() {
        let mut pages = pages(SITE_URLS_MAX);
        assert!(!pages.add(format!("{ROOT}more"), None));
        assert!(pages.add(format!("{ROOT}7"), None), "it is in already");
        assert_eq!(pages.documents(ROOT).len(), 1 + 4);
    }

    #[test]
    fn the_documents_have_paths() {
        assert_eq!(document_at("/sitemap.xml"), Some(0));
        assert_eq!(document_at(&part_path(12)), Some(12));
        for other in [
            "/",
            "/sitemap.xml/",
            "/everfeed-sitemap-0.xml",
            "/everfeed-sitemap-01.xml",
            "/everfeed-sitemap-.xml",
            "/everfeed-sitemap-+1.xml",
        ] {
            assert_eq!(document_at(other), None, "{other}");
        }
    }
}
