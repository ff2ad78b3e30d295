//! Sections and comments that nobody ended, so that they swallow the end of the entry that they
//! stand in; where they were meant to end. It takes a list of names, because only the tags of
//! entries can tell.

use crate::text::markup::split;

/// End of an entry in a text that began before it; `None` when none does, or another entry begins
/// first, as in a whole entry that somebody put into a comment.
pub(crate) fn entry_end(text: &str) -> Option<usize> {
    entry_tags(text)
        .next()
        .and_then(|(at, is_end)| is_end.then_some(at))
}

/// Start or end of the first entry in a text.
pub(crate) fn entry_tag(text: &str) -> Option<usize> {
    entry_tags(text).next().map(|(at, _)| at)
}

/// Positions of the tags of entries, and true for end tags.
fn entry_tags(text: &str) -> impl Iterator<Item = (usize, bool)> {
    memchr::memchr_iter(b'<', text.as_bytes()).filter_map(|at| {
        let tag = &text[at + 1..];
        let name = tag.strip_prefix('/').unwrap_or(tag);
        let name = name
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-')))
            .next()?;
        let (_, local) = split(name);
        let is_entry = local.eq_ignore_ascii_case("item") || local.eq_ignore_ascii_case("entry");
        is_entry.then_some((at, tag.starts_with('/')))
    })
}

/// Length of the inside of a CDATA section that runs over the end of its entry, and of the text
/// that belongs to the section: up to a misspelt end if there is one, else up to the end of the
/// entry.
pub(crate) fn section(inside: &str) -> Option<(usize, usize)> {
    let end = entry_end(inside)?;
    let inside = &inside[..end];
    let misspelt = memchr::memmem::find_iter(inside.as_bytes(), b"]]").find_map(|at| {
        let after = &inside[at + 2..];
        let behind = ["&gt;", ">"]
            .iter()
            .find_map(|bracket| after.trim_start().strip_prefix(bracket))?;
        Some((at, inside.len() - behind.len()))
    });
    Some(misspelt.unwrap_or((end, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_ends_unless_another_begins_first() {
        assert_eq!(entry_end("a</b></item>c"), Some(5));
        assert_eq!(entry_end("a</a:Entry >c"), Some(1));
        assert_eq!(entry_end("<item></item></item>"), None);
        assert_eq!(entry_end("<items></items></itemize>"), None);
        assert_eq!(entry_end("a < b"), None);
    }

    #[test]
    fn a_section_ends_where_its_writer_misspelt_the_end() {
        assert_eq!(section("<p>x</p>]] ></a></item>"), Some((8, 12)));
        assert_eq!(section("x]]&gt;</a></item>"), Some((1, 7)));
        assert_eq!(section("x]]y</a></item>"), Some((8, 8)));
        assert_eq!(section("x"), None);
    }
}
