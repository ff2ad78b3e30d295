//! Podcasts in the neutral form: iTunes and Podlove's chapters.

use serde_json::{Value, json};

use super::{Fields, find, text_of};
use crate::Element;
use crate::text::{present, trim};
use crate::vocabulary::Vocabulary;

/// Adds what iTunes says of a feed or an entry.
pub(super) fn both(foreign: &[Element], fields: &mut Fields) {
    let said = |name: &str| Some(find(foreign, Vocabulary::Itunes, name)?.text());
    // Apple compares with "Yes" and "true" in whatever case today, and blocks on "Yes" only.
    fields.put(
        "itunes_block",
        said("block").map(|text| u8::from(trim(&text).eq_ignore_ascii_case("yes"))),
    );
    if let Some(explicit) = said("explicit") {
        let explicit = match trim(&explicit).to_ascii_lowercase().as_str() {
            "yes" | "true" | "explicit" => Some(true),
            "no" | "false" | "clean" => Some(false),
            _ => None,
        };
        fields
            .0
            .insert("itunes_explicit".to_owned(), explicit.into());
    }
    fields.put(
        "itunes_duration",
        text_of(foreign, Vocabulary::Itunes, "duration"),
    );
    fields.put(
        "itunes_episode",
        text_of(foreign, Vocabulary::Itunes, "episode"),
    );
    fields.put(
        "itunes_season",
        text_of(foreign, Vocabulary::Itunes, "season"),
    );
    let image =
        find(foreign, Vocabulary::Itunes, "image").and_then(|image| image.attribute("href"));
    if let Some(image) = image.and_then(present) {
        fields
            .0
            .entry("image")
            .or_insert_with(|| json!({ "href": image }));
    }
}

/// `psc:chapters`, with the start of each as written and in seconds.
pub(super) fn chapters(foreign: &[Element]) -> Option<Value> {
    let element = find(foreign, Vocabulary::Chapters, "chapters")?;
    let chapters = element
        .elements()
        .filter(|child| child.name == "chapter")
        .map(|chapter| {
            let mut fields = Fields::default();
            for name in ["start", "title", "href", "image"] {
                fields.put(name, chapter.attribute(name));
            }
            fields.put("start_epoch", chapter.attribute("start").and_then(seconds));
            Value::from(fields)
        });
    let mut fields = Fields::default();
    fields.put("version", element.attribute("version"));
    fields.put("chapters", Some(chapters.collect::<Value>()));
    Some(fields.into())
}

/// Normal Play Time (RFC 2326 section 3.6): `hours:minutes:seconds.fraction`, hours or both left
/// out.
fn seconds(text: &str) -> Option<f64> {
    let mut total = 0.0;
    for part in trim(text).split(':') {
        total = total * 60.0 + part.parse::<f64>().ok().filter(|part| *part >= 0.0)?;
    }
    total.is_finite().then_some(total)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn the_start_of_a_chapter_is_read_in_every_customary_form() {
        assert_eq!(seconds("00:03:07.250"), Some(187.25));
        assert_eq!(seconds(" 08:26 "), Some(506.0));
        assert_eq!(seconds("7"), Some(7.0));
        assert_eq!(seconds("-1"), None);
        assert_eq!(seconds("one"), None);
        assert_eq!(seconds(""), None);
    }
}
