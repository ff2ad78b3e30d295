//! Test that a fragment is light enough for the parser of a browser, whose work grows with the
//! square of what is nested in it, and of the attributes of one tag. An estimate from the tags
//! alone: it catches what nests openly, and their number bounds the rest.

use std::collections::HashMap;

use crate::text::html::HtmlTag;

/// Limit of the tags and references of a fragment. Ordinary posts have hundreds, and one whose
/// nesting is hidden from the estimate needs four tags a level.
pub(super) const MARKS_MAX: usize = 20_000;

/// Limit of the elements that are open at once.
pub(super) const OPEN_MAX: usize = 256;

/// Limit of the attributes of one tag. Those of ordinary posts have a dozen.
const ATTRIBUTES_MAX: usize = 256;

/// Limit of the work to count attributes, in lengths of the fragment: what looks like a tag may
/// stand in the value of another, so that both go on to the same end.
const LOOKS_MAX: usize = 4;

/// Elements that never hold another of their kind, whose end tags posts leave out, or that have
/// none.
const FLAT: [&str; 25] = [
    "area", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "option",
    "p", "param", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr", "base",
];

/// True when it may be parsed.
pub(super) fn is_light(html: &str) -> bool {
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut depth = 0;
    let mut budget = html.len().saturating_mul(LOOKS_MAX);
    for (number, at) in memchr::memchr2_iter(b'<', b'&', html.as_bytes()).enumerate() {
        if number >= MARKS_MAX {
            return false;
        }
        if html.as_bytes()[at] == b'&' {
            continue;
        }
        let (is_end, rest) = match html[at + 1..].strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, &html[at + 1..]),
        };
        let length = rest
            .bytes()
            .take(NAME_BYTES_MAX)
            .take_while(|b| !matches!(b, b'>' | b'/' | b'<') && !b.is_ascii_whitespace());
        let length = length.count();
        let Some(name) = rest
            .get(..length)
            .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        else {
            continue;
        };
        let name_at = html.len() - rest.len();
        let Some(left) = after_attributes(html, name_at, budget) else {
            return false;
        };
        budget = left;
        let name = name.to_ascii_lowercase();
        if FLAT.contains(&name.as_str()) {
            continue;
        }
        let count = open.entry(name).or_default();
        if !is_end {
            *count += 1;
            depth += 1;
        } else if *count > 0 {
            *count -= 1;
            depth -= 1;
        }
        if depth > OPEN_MAX {
            return false;
        }
    }
    true
}

/// The rest of the budget when the attributes of the tag were counted whose name stands here;
/// `None` when they are too many, or when too much was looked at. It begins wherever a tag may
/// begin, because a parser that is inside of a script passes over what seems to be one.
fn after_attributes(html: &str, name_at: usize, budget: usize) -> Option<usize> {
    let mut tag = HtmlTag::of_name(html, name_at);
    let mut count = 0;
    while tag.attribute().is_some() {
        count += 1;
        if count > ATTRIBUTES_MAX || tag.place() - name_at > budget {
            return None;
        }
    }
    budget.checked_sub(tag.place() - name_at)
}

/// Names that differ only behind so many bytes are taken for one.
const NAME_BYTES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_are_light_and_towers_are_not() {
        for html in [
            "",
            "<p>a<p>b<br>".repeat(5000).as_str(),
            "<b>a</b><div>c</div>".repeat(4000).as_str(),
            "< <é </ <",
        ] {
            assert!(is_light(html));
        }
        assert!(!is_light(&"<div>".repeat(OPEN_MAX + 1)));
        assert!(!is_light(&"<b>x</p>".repeat(OPEN_MAX + 1)));
        assert!(!is_light(&"<p>".repeat(MARKS_MAX + 1)));
        assert!(!is_light(&"&amp;".repeat(MARKS_MAX + 1)));
        let attributes = |count: usize| (0..count).map(|n| format!("a{n} ")).collect::<String>();
        assert!(is_light(
            &format!("<a {}>", attributes(ATTRIBUTES_MAX)).repeat(9)
        ));
        assert!(!is_light(&format!(
            "<a {}>",
            attributes(ATTRIBUTES_MAX + 1)
        )));
        let hidden = format!(
            "<script><b x='</script><a {}>'>",
            attributes(ATTRIBUTES_MAX + 1)
        );
        assert!(!is_light(&hidden), "a tag in what looks like a value");
        assert!(
            !is_light(&("<a b='".repeat(5001) + "c")),
            "each goes on to the end"
        );
    }
}
