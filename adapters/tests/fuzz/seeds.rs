//! The documents that are damaged: our fixtures, the large corpora where they are at hand, and
//! small documents of every format.

use std::path::{Path, PathBuf};
use testkit::data::{beside, vendored};

/// Larger documents cost time and show nothing more.
const BYTES_MAX: u64 = 60_000;

/// Written here, so that every format is there whatever is at hand.
const OWN: &[&str] = &[
    r#"{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[{"id":"1","content_html":"<p>a&eacute;</p>","url":"http://e.org/1","attachments":[{"url":"a.mp3","mime_type":"audio/mpeg","size_in_bytes":1}]},{"id":2,"content_text":"\u00e9\ud83d\ude00","tags":["x","y"],"authors":[{"name":"z"}]}]}"#,
    "<CHANNEL HREF='http://e.org/'><TITLE>t</TITLE><ITEM HREF='http://e.org/1'><TITLE>a</TITLE><ABSTRACT>b</ABSTRACT></ITEM><ITEM HREF='2'/></CHANNEL>",
    "<?xml version='1.0'?><!DOCTYPE rss [<!ENTITY a 'b'><!ENTITY c '&a;&a;'>]><rss version='2.0'><channel><title>&a;</title><item><guid>1</guid><title>&c;</title></item><item><guid>2</guid><title>&a;</title></item></channel></rss>",
    "<rss xmlns:media='http://search.yahoo.com/mrss/' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel><item><guid>1</guid><media:group><media:content url='http://e.org/a.jpg' type='image/jpeg' fileSize='12' duration='3'><media:title type='plain'>t</media:title><media:thumbnail url='b.png' time='12:05:01.123'/><media:credit role='x'>c</media:credit></media:content></media:group><itunes:duration>1:02:03</itunes:duration></item></channel></rss>",
    "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://e.org/'><id>f</id><entry><id>1</id><updated>2004-01-01T00:00:00Z</updated><content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p>x<br/><img src='a' alt='b'/></p></div></content></entry><entry><id>2</id><link href='a'/><content type='html'>&lt;p>x</content></entry></feed>",
];

/// Every document, in the same order on every machine that has the same files.
pub(crate) fn documents() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents: Vec<Vec<u8>> = OWN
        .iter()
        .map(|document| document.as_bytes().to_vec())
        .collect();
    gather(&root.join("tests/fixtures"), &mut documents);
    // The odd documents are part of the corpus.
    gather(
        &beside("corpus").unwrap_or_else(|| vendored("corpus")),
        &mut documents,
    );
    if let Some(sequences) = beside("sequences") {
        gather(&sequences, &mut documents);
    }
    documents
}

fn gather(folder: &Path, documents: &mut Vec<Vec<u8>>) {
    let Ok(found) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.to_string_lossy();
        if path.is_dir() {
            gather(&path, documents);
        } else if [".xml", ".json", ".rdf", ".rss", ".atom"]
            .iter()
            .any(|end| name.ends_with(end))
            && ![".expect.json", "manifest.json", "dates.json"]
                .iter()
                .any(|end| name.ends_with(end))
            && path.metadata().unwrap().len() <= BYTES_MAX
        {
            documents.push(std::fs::read(&path).unwrap());
        }
    }
}
