//! The parts of a long configuration: read one after another, they take the memory of their
//! settings and not that of all their pieces; not what is written in them.

/// A part is cut off as soon as it has so many bytes.
const PART_BYTES: usize = 64 << 10;

/// The line with which a part begins, all but the first.
const FEED: &str = "\n[[feed]]";

/// The parts of a text, each of which is whole. A cut through a text in several lines, or through a
/// list, leaves a part that cannot be read.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(end) = text
        .as_bytes()
        .get(from + PART_BYTES..)
        .and_then(|_| next_feed(text, from + PART_BYTES))
    {
        parts.push(&text[from..end]);
        from = end;
    }
    parts.push(&text[from..]);
    if parts[1..].iter().any(|part| has_other_tables(part)) {
        return vec![text];
    }
    parts
}

/// True for a part with a table that is of no feed and no group: those are read in the first part
/// alone.
fn has_other_tables(part: &str) -> bool {
    let of_lists = ["[[feed]]", "[feed.", "[[group]]", "[group."];
    part.lines()
        .filter(|line| line.trim_start().starts_with('['))
        .any(|line| !of_lists.iter().any(|of_list| line.starts_with(of_list)))
}

/// Offset of the next line from `at` on that begins a feed.
fn next_feed(text: &str, at: usize) -> Option<usize> {
    let at = (at..text.len()).find(|at| text.is_char_boundary(*at))?;
    text[at..].find(FEED).map(|found| at + found + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_text_and_each_further_one_begins_with_a_feed() {
        let feed = |n: usize| format!("[[feed]]\nname = \"f{n}\"\nurl = \"http://x/ä{n}\"\n");
        let text = "[server]\n".to_owned() + &(0..5_000).map(feed).collect::<String>();
        let parts = parts(&text);
        assert_eq!(parts.concat(), text);
        assert!(parts.len() > 2 && parts[1..].iter().all(|part| part.starts_with("[[feed]]\n")));
        assert!(parts.iter().all(|part| part.len() < PART_BYTES + 100));
        assert_eq!(super::parts("a = 1"), ["a = 1"]);
        // A table behind the feeds is not lost.
        for behind in ["[[webhook]]\n", "[server]\n", " [hub]\n"] {
            assert_eq!(super::parts(&format!("{text}{behind}")).len(), 1);
        }
        let groups = format!("{text}[[group]]\n[[feed]]\n[feed.poll]\n");
        assert!(super::parts(&groups).len() > 2);
        assert_eq!(super::parts(""), [""]);
    }
}
