//! The most that is kept of what a document says of its feed: texts, links, tags, persons, foreign
//! markup, tombstones and notes; not of its entries.

use super::{
    item_cap::element_bytes,
    part_caps::{
        ID_BYTES_MAX, LINK_BYTES_MAX, NAME_BYTES_MAX, WORD_BYTES_MAX, cap_date, cap_generator,
        cap_person, cap_tag, cap_text, cut_name, cut_to, drop_long, link_fits,
    },
};
use everfeed_adapters::{Cloud, Image, Metadata, Note, Rhythm, SlicedDocument};

/// The most bytes of a description of a feed, or of its rights; what is longer is cut.
pub const DESCRIPTION_BYTES_MAX: usize = 16 << 10;

/// The most links of a feed; those after them are left out, and so it is with tags and persons.
pub const LIST_MAX: usize = 100;

/// The most bytes of the links of a feed together, and of each other list.
pub const LIST_BYTES_MAX: usize = 64 << 10;

/// The most bytes of one note on a document; what is longer is cut.
pub const NOTE_BYTES_MAX: usize = 512;

/// Leaves out of a document what is too long of its head, its tombstones and its notes, and notes
/// which parts of the head that were.
pub fn cap_head(document: &mut SlicedDocument) {
    for deletion in &mut document.deletions {
        cut_name(&mut deletion.comment);
        cap_date(&mut deletion.when);
    }
    for note in &mut document.notes {
        if let Note::Encoding(text)
        | Note::BadDate(text)
        | Note::EntryLost(text)
        | Note::Other(text) = note
        {
            cut_to(text, NOTE_BYTES_MAX);
        }
    }
    let short = within_caps(&document.metadata);
    let parts = differing(&document.metadata, &short);
    if parts.is_empty() {
        return;
    }
    document.metadata = short;
    document.notes.push(Note::Other(format!(
        "parts of what it says of the feed are too long or too many, and are cut or left out: {}",
        parts.join(", ")
    )));
}

fn within_caps(metadata: &Metadata) -> Metadata {
    let mut short = metadata.clone();
    drop_long(&mut short.id, ID_BYTES_MAX);
    cap_text(&mut short.title, NAME_BYTES_MAX);
    cap_text(&mut short.description, DESCRIPTION_BYTES_MAX);
    cap_text(&mut short.rights, DESCRIPTION_BYTES_MAX);
    short.links.retain_mut(link_fits);
    cap_list(&mut short.links, |link| {
        link.href.len() + link.title.as_ref().map_or(0, String::len)
    });
    for persons in [&mut short.authors, &mut short.contributors] {
        persons.iter_mut().for_each(cap_person);
        cap_list(persons, |person| {
            let parts = [&person.name, &person.uri, &person.email, &person.byline];
            parts.into_iter().flatten().map(String::len).sum()
        });
    }
    short.categories.iter_mut().for_each(cap_tag);
    cap_list(&mut short.categories, |tag| {
        let more = [&tag.scheme, &tag.label].into_iter().flatten();
        tag.term.len() + more.map(String::len).sum::<usize>()
    });
    drop_long(&mut short.language, WORD_BYTES_MAX);
    cap_generator(short.generator.as_mut());
    short.image = short.image.and_then(image_within_caps);
    drop_long(&mut short.icon, LINK_BYTES_MAX);
    cap_date(&mut short.updated);
    cap_date(&mut short.published);
    let Rhythm {
        skip_hours,
        skip_days,
        ..
    } = &mut short.rhythm;
    for times in [skip_hours, skip_days] {
        times.truncate(LIST_MAX);
    }
    drop_long(&mut short.history.prev, LINK_BYTES_MAX);
    short.cloud = short.cloud.filter(cloud_fits);
    cap_list(&mut short.foreign, element_bytes);
    short
}

/// Keeps the first of a list, as many as are few and short enough together.
fn cap_list<T>(list: &mut Vec<T>, bytes: impl Fn(&T) -> usize) {
    list.truncate(LIST_MAX);
    let mut room = LIST_BYTES_MAX;
    list.retain(|part| {
        let fits = bytes(part) <= room;
        if fits {
            room -= bytes(part);
        }
        fits
    });
}

fn image_within_caps(mut image: Image) -> Option<Image> {
    if image.url.len() > LINK_BYTES_MAX {
        return None;
    }
    cut_name(&mut image.title);
    cut_name(&mut image.description);
    drop_long(&mut image.link, LINK_BYTES_MAX);
    drop_long(&mut image.width, WORD_BYTES_MAX);
    drop_long(&mut image.height, WORD_BYTES_MAX);
    Some(image)
}

fn cloud_fits(cloud: &Cloud) -> bool {
    let more = [&cloud.path, &cloud.register_procedure, &cloud.protocol];
    let more = more.into_iter().flatten().map(String::len);
    more.sum::<usize>() + cloud.domain.len() <= LINK_BYTES_MAX
}

/// Names of the parts in which the two differ.
fn differing(long: &Metadata, short: &Metadata) -> Vec<&'static str> {
    let parts = [
        ("id", long.id != short.id),
        ("title", long.title != short.title),
        ("description", long.description != short.description),
        ("links", long.links != short.links),
        ("authors", long.authors != short.authors),
        ("contributors", long.contributors != short.contributors),
        ("tags", long.categories != short.categories),
        ("language", long.language != short.language),
        ("rights", long.rights != short.rights),
        ("generator", long.generator != short.generator),
        ("image", long.image != short.image),
        ("icon", long.icon != short.icon),
        (
            "dates",
            (&long.updated, &long.published) != (&short.updated, &short.published),
        ),
        ("rhythm", long.rhythm != short.rhythm),
        ("history", long.history != short.history),
        ("cloud", long.cloud != short.cloud),
        ("foreign markup", long.foreign != short.foreign),
    ];
    parts
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use everfeed_adapters::{Hints, slice};

    fn capped(document: &str) -> SlicedDocument {
        let mut sliced = slice(document.as_bytes(), &Hints::default()).unwrap();
        cap_head(&mut sliced);
        sliced
    }

    /// An RSS document with this in its channel.
    fn rss(head: &str) -> String {
        format!(
            "<rss version=\"2.0\" xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\" \
             xmlns:at=\"http://purl.org/atompub/tombstones/1.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\" \
             xmlns:x=\"urn:x\"><channel>{head}<item><guid>1</guid><title>one</title></item></channel></rss>"
        )
    }

    fn long(bytes: usize) -> String {
        "\u{fc}".repeat(bytes / 2)
    }

    /// Bytes of a head in memory and in the store, about.
    fn weight(sliced: &SlicedDocument) -> usize {
        format!(
            "{:?} {:?} {:?}",
            sliced.metadata, sliced.deletions, sliced.notes
        )
        .len()
    }

    #[test]
    fn each_part_of_a_head_that_is_too_long_is_cut_or_left_out_and_named() {
        let url = format!("http://e.org/{}", "u".repeat(1 << 20));
        let text = long(1 << 20);
        let heads = [
            ("title", format!("<title>{text}</title>")),
            ("description", format!("<description>{text}</description>")),
            ("links", format!("<link>{url}</link>")),
            (
                "authors",
                format!("<managingEditor>{text}</managingEditor>"),
            ),
            (
                "tags",
                format!("<category domain=\"{url}\">{text}</category>"),
            ),
            ("language", format!("<language>{text}</language>")),
            ("rights", format!("<copyright>{text}</copyright>")),
            ("generator", format!("<generator>{text}</generator>")),
            (
                "image",
                format!("<image><url>{url}</url><title>{text}</title><link>{url}</link></image>"),
            ),
            ("dates", format!("<pubDate>{text}</pubDate>")),
            (
                "cloud",
                format!(
                    "<cloud domain=\"{text}\" port=\"80\" path=\"{text}\" protocol=\"http-post\"/>"
                ),
            ),
            ("foreign markup", format!("<x:y a=\"{text}\">{text}</x:y>")),
        ];
        for (part, head) in heads {
            let sliced = capped(&rss(&head));
            assert!(
                weight(&sliced) < 2 * LIST_BYTES_MAX,
                "{part}: {}",
                weight(&sliced)
            );
            let named = sliced
                .notes
                .iter()
                .any(|note| note.to_string().contains(part));
            assert!(named, "{part}: {:?}", sliced.notes);
            let before = sliced.metadata.clone();
            let mut again = sliced;
            cap_head(&mut again);
            assert_eq!(again.metadata, before, "{part}: it fits now");
        }
        let deleted = format!(
            "<at:deleted-entry ref=\"2\" when=\"{text}\"><at:comment>{text}</at:comment></at:deleted-entry>"
        );
        assert!(weight(&capped(&rss(&deleted))) < LIST_BYTES_MAX);
    }

    #[test]
    fn of_a_hundred_thousand_parts_the_first_are_kept() {
        let lists = [
            ("tags", "<category>tag N of many</category>"),
            (
                "links",
                "<atom:link rel=\"related\" href=\"http://e.org/N\"/>",
            ),
            ("authors", "<managingEditor>N@e.org (N)</managingEditor>"),
            ("foreign markup", "<x:y>N</x:y>"),
        ];
        for (part, one) in lists {
            let many: String = (0..100_000)
                .map(|n| one.replace('N', &n.to_string()))
                .collect();
            let sliced = capped(&rss(&many));
            assert!(
                weight(&sliced) < 4 * LIST_BYTES_MAX,
                "{part}: {}",
                weight(&sliced)
            );
            assert!(
                sliced
                    .notes
                    .iter()
                    .any(|note| note.to_string().contains(part)),
                "{part}: {:?}",
                sliced.notes
            );
        }
    }

    #[test]
    fn a_usual_head_stays_as_it_is() {
        let head = rss(
            "<title>t</title><link>http://e.org/</link><description>&lt;b&gt;d</description>\
             <category>c</category><ttl>60</ttl><skipHours><hour>1</hour></skipHours>",
        );
        let sliced = slice(head.as_bytes(), &Hints::default()).unwrap();
        assert_eq!(capped(&head), sliced);
    }
}
