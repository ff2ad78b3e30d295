//! The publishers' own feeds as OPML, for another reader or another everfeed; not the list of what
//! is served.

use super::xml::Xml;

/// The feeds that are polled, by the groups that hold them.
#[derive(Clone, Debug, Default)]
pub struct SourceList {
    /// Title of the list.
    pub title: String,
    /// The groups, each with its feeds.
    pub folders: Vec<(String, Vec<PolledSource>)>,
    /// Feeds that are in no group.
    pub alone: Vec<PolledSource>,
}

/// A feed that is polled.
#[derive(Clone, Debug)]
pub struct PolledSource {
    /// Its name.
    pub name: String,
    /// Its address, without credentials.
    pub url: String,
}

/// The list as OPML 2.0.
pub fn opml(list: &SourceList) -> Vec<u8> {
    let mut xml = Xml::document(4096);
    xml.open("opml", &[("version", Some("2.0"))]);
    xml.open("head", &[]);
    xml.leaf("title", &[], &list.title);
    xml.close("head");
    xml.open("body", &[]);
    for (folder, sources) in &list.folders {
        xml.open(
            "outline",
            &[("text", Some(folder)), ("title", Some(folder))],
        );
        sources.iter().for_each(|source| outline(&mut xml, source));
        xml.close("outline");
    }
    list.alone
        .iter()
        .for_each(|source| outline(&mut xml, source));
    if list.folders.is_empty() && list.alone.is_empty() {
        // The body needs one.
        let comment = [
            ("text", Some("No feed is configured yet.")),
            ("isComment", Some("true")),
        ];
        xml.empty("outline", &comment);
    }
    xml.close("body");
    xml.close("opml");
    xml.finish()
}

fn outline(xml: &mut Xml, source: &PolledSource) {
    let attributes = [
        ("type", Some("rss")),
        ("text", Some(source.name.as_str())),
        ("title", Some(source.name.as_str())),
        ("xmlUrl", Some(source.url.as_str())),
    ];
    xml.empty("outline", &attributes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_written_is_read_again() {
        let source = |name: &str| PolledSource {
            name: name.to_owned(),
            url: format!("https://{name}.example/?a=1&b=\"2\""),
        };
        let list = SourceList {
            title: "Feeds <of> x".to_owned(),
            folders: vec![("Tech & more".to_owned(), vec![source("a"), source("b")])],
            alone: vec![source("c")],
        };
        let read = everfeed_adapters::opml(&opml(&list)).unwrap();
        let found = read
            .feeds
            .iter()
            .map(|feed| (feed.url.clone(), feed.folders.clone()));
        let expect = [("a", true), ("b", true), ("c", false)].map(|(name, is_in)| {
            let folders = if is_in {
                vec!["Tech & more".to_owned()]
            } else {
                Vec::new()
            };
            (source(name).url, folders)
        });
        assert_eq!(found.collect::<Vec<_>>(), expect);
        let empty = everfeed_adapters::opml(&opml(&SourceList::default())).unwrap();
        assert!(empty.feeds.is_empty() && !empty.is_cut);
    }
}
