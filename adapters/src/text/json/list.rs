//! The objects of a list in JSON that is broken: where one cannot be read, the list goes on at what
//! looks like the next. Of JSON that is sound it finds what a strict parser would; which JSON is
//! sound is its caller's business.

use super::{JsonValue, end_of, end_of_string, is_space, skip, skip_space};
use memchr::memmem;

/// Limit of the work, in lengths of the text, to find out whether objects of it are sound. An
/// object that is not may look so up to the end of the text, and so may the next one.
const LOOKS_MAX: usize = 4;

/// One piece of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// An object, readable, if not always as it was meant.
    Whole(JsonValue<'t>),
    /// Something that is none, up to where the next one begins.
    Lost,
    /// An object that the text ends in.
    Cut(JsonValue<'t>),
}

/// The pieces of a list, and how it ended.
#[derive(Debug)]
pub(crate) struct Objects<'t> {
    text: &'t str,
    at: usize,
    /// The text that every object of the list seems to begin with, as written, quotes included.
    name: Option<&'t str>,
    /// Bytes that may still be looked at.
    budget: usize,
    /// True when no other object begins behind a place that was looked at: then none begins behind
    /// a later one.
    is_last: bool,
    /// True when the end of the list was found.
    pub(crate) is_closed: bool,
}

impl<'t> Objects<'t> {
    /// The objects of the list whose bracket stands here in the text. It may go on behind what
    /// looks like its end.
    pub(crate) fn of(text: &'t str, bracket: usize) -> Self {
        let first = skip_space(text, bracket + 1);
        let budget = text.len().saturating_mul(LOOKS_MAX);
        let mut objects = Self {
            text,
            at: bracket + 1,
            name: None,
            budget,
            is_last: false,
            is_closed: false,
        };
        if text.as_bytes().get(first) == Some(&b'{') {
            objects.name = first_name(text, first);
        }
        objects
    }

    /// True when the text here begins as the objects of the list do.
    fn begins(&self, at: usize) -> bool {
        let name = self.name.unwrap_or("\"id\"");
        begins_with(self.text, at, name)
    }

    /// Start of the next object, after a comma or a bracket that closes something.
    fn next_start(&mut self, from: usize) -> Option<usize> {
        if self.is_last {
            return None;
        }
        let start = self.start_behind(from);
        self.is_last = start.is_none();
        start
    }

    fn start_behind(&self, from: usize) -> Option<usize> {
        let (text, name) = (self.text, self.name.unwrap_or("\"id\""));
        let hits = memmem::find_iter(text.as_bytes().get(from..)?, name.as_bytes());
        let mut starts = hits.filter_map(|hit| {
            let before = text[from..from + hit]
                .trim_end_matches(is_layout)
                .strip_suffix('{')?;
            let start = from + before.len();
            let follows = before
                .trim_end_matches(is_layout)
                .ends_with([',', '}', ']']);
            (follows && self.begins(start)).then_some(start)
        });
        starts.next()
    }

    /// The object that begins here, if it is sound.
    fn sound(&mut self, start: usize) -> Option<usize> {
        let limit = self.text.len().min(start.saturating_add(self.budget));
        let (end, seen) = sound_end(self.text, start, limit, self.name.unwrap_or("\"id\""));
        self.budget = self.budget.saturating_sub(seen - start);
        end
    }

    fn object(&mut self, start: usize) -> Piece<'t> {
        if let Some(end) = self.sound(start) {
            self.at = end;
            return Piece::Whole(JsonValue {
                text: &self.text[start..end],
                whole: true,
            });
        }
        let next = self.next_start(start + 1);
        let piece = &self.text[start..next.unwrap_or(self.text.len())];
        let readable = piece.trim_end_matches(|c| is_layout(c) || c == ',');
        match end_of(readable, 0) {
            Some(end) if next.is_none() || end == readable.len() => {
                self.at = start + end;
                Piece::Whole(JsonValue {
                    text: &readable[..end],
                    whole: true,
                })
            }
            _ if next.is_some() => {
                self.at = start + piece.len();
                Piece::Lost
            }
            _ => {
                self.at = self.text.len();
                Piece::Cut(JsonValue {
                    text: piece,
                    whole: false,
                })
            }
        }
    }
}

impl<'t> Iterator for Objects<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let text = self.text;
        self.at = skip(text, self.at, |b| is_space(b) || b == b',');
        match *text.as_bytes().get(self.at)? {
            b'{' => Some(self.object(self.at)),
            b']' | b'}' => {
                // One bracket too many ends nothing, if objects of the list follow.
                let behind = skip(text, self.at, |b| {
                    is_space(b) || matches!(b, b',' | b']' | b'}')
                });
                if self.begins(behind) {
                    return Some(self.object(behind));
                }
                self.is_closed = true;
                self.at = text.len();
                None
            }
            _ => {
                let value = JsonValue::at(text, self.at);
                let behind = skip_space(text, self.at + value.text.len());
                self.at = match text.as_bytes().get(behind) {
                    Some(b',' | b']') if value.whole => behind,
                    // No element of a list, but rather the rest of a broken object.
                    _ => self.next_start(self.at).unwrap_or(text.len()),
                };
                Some(Piece::Lost)
            }
        }
    }
}

fn is_layout(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// The name of the first member of an object, as written.
fn first_name(text: &str, start: usize) -> Option<&str> {
    let name = skip_space(text, start + 1);
    let end = (text.as_bytes().get(name) == Some(&b'"'))
        .then(|| end_of_string(text, name))
        .flatten()?;
    (text.as_bytes().get(skip_space(text, end)) == Some(&b':')).then(|| &text[name..end])
}

fn begins_with(text: &str, at: usize, name: &str) -> bool {
    let bytes = text.as_bytes();
    let first = skip_space(text, at + 1);
    bytes.get(at) == Some(&b'{')
        && bytes
            .get(first..)
            .is_some_and(|rest| rest.starts_with(name.as_bytes()))
        && bytes.get(skip_space(text, first + name.len())) == Some(&b':')
}

/// State of the scan of a list or an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanState {
    /// A list; nothing but lists and objects so far.
    List,
    /// A list with something else in it.
    Scalars,
    /// An object, before a name.
    Name,
    /// Behind a name.
    Named,
    /// Behind a colon.
    JsonValue,
    /// Behind a value.
    Valued,
}

/// End of the object that begins here, if brackets close what they opened, colons stand behind
/// names only, and no list of words goes on with an object that looks like the next one; and how
/// far that was looked at. A missing quote, brace or bracket shows by one of them, mostly soon.
fn sound_end(text: &str, start: usize, limit: usize, name: &str) -> (Option<usize>, usize) {
    let bytes = text.as_bytes();
    // One byte a level, on the heap: nesting costs no more than the text that it takes.
    let mut open: Vec<ScanState> = Vec::new();
    let mut at = start;
    while at < limit {
        let inside = open.last().copied();
        let (next, to) = match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'{' | b'[' => {
                let is_odd = match inside {
                    None | Some(ScanState::List | ScanState::JsonValue) => false,
                    Some(ScanState::Scalars) => begins_with(text, at, name),
                    Some(ScanState::Name | ScanState::Named | ScanState::Valued) => true,
                };
                if is_odd {
                    return (None, at);
                }
                open.push(if bytes[at] == b'{' {
                    ScanState::Name
                } else {
                    ScanState::List
                });
                at += 1;
                continue;
            }
            b'}' | b']' => {
                let is_list = matches!(inside, Some(ScanState::List | ScanState::Scalars));
                if is_list != (bytes[at] == b']') {
                    return (None, at);
                }
                open.pop();
                match open.last() {
                    None => return (Some(at + 1), at + 1),
                    Some(ScanState::JsonValue) => (at + 1, ScanState::Valued),
                    Some(outside) => (at + 1, *outside),
                }
            }
            b':' if inside == Some(ScanState::Named) => (at + 1, ScanState::JsonValue),
            b':' => return (None, at),
            b',' => match inside {
                Some(list @ (ScanState::List | ScanState::Scalars)) => (at + 1, list),
                _ => (at + 1, ScanState::Name),
            },
            _ => {
                let Some(end) = end_of(text, at) else {
                    return (None, limit);
                };
                match inside {
                    Some(ScanState::List | ScanState::Scalars) => (end, ScanState::Scalars),
                    Some(ScanState::JsonValue) => (end, ScanState::Valued),
                    _ => (end, ScanState::Named),
                }
            }
        };
        if let Some(top) = open.last_mut() {
            *top = to;
        }
        at = next;
    }
    (None, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, expect: &[&str], is_closed: bool) {
        let mut objects = Objects::of(list, 0);
        let found: Vec<_> = objects
            .by_ref()
            .map(|piece| match piece {
                Piece::Whole(value) => value.text,
                Piece::Lost => "lost",
                Piece::Cut(_) => "cut",
            })
            .collect();
        assert_eq!(
            (found.as_slice(), objects.is_closed),
            (expect, is_closed),
            "{list}"
        );
    }

    #[test]
    fn a_sound_list_is_read_as_it_stands() {
        check("[]", &[], true);
        let nested = r#"{"id":1,"x":[{"id":"},{"},{"id":[]}],"t":["a","b"]}"#;
        check(
            &format!("[{nested}, {{\"id\" :2}} ]"),
            &[nested, "{\"id\" :2}"],
            true,
        );
    }

    #[test]
    fn one_broken_object_costs_itself_alone() {
        let rest = ["{\"id\":4}", "{\"id\":5}"];
        let broken = |first: &str, expect: &str| {
            let list = format!("[{first},{}]}}", rest.join(", "));
            check(&list, &[&[expect], rest.as_slice()].concat(), true);
        };
        broken(r#"{"id":3,"t":"x"}}"#, r#"{"id":3,"t":"x"}"#);
        broken(r#"{"id":3,"t":["x"]]}"#, "lost");
        broken(r#"{"id":3,"t":["x""#, "lost");
        broken(r#"{"id":3,"t":"x""#, "lost");
        broken(r#"{"id":3,"t":"x}"#, "lost");
        broken(r#"{"id":3,"by":{"name":"x","t":"y"}"#, "lost");
        check(
            r#"[{"id":3},"t":"y"},{"id":4}]"#,
            &["{\"id\":3}", "lost", "{\"id\":4}"],
            true,
        );
    }

    #[test]
    fn what_is_readable_though_odd_is_kept() {
        let odd = r#"{"id":3,"t":"x,"url":"y","z":"w"}"#;
        check(&format!("[{odd},{{\"id\":4}}]"), &[odd, "{\"id\":4}"], true);
        let odd = "{\"id\":3,\"t\":\"he said \"no\" twice\",}";
        check(
            &format!("[{odd}, 7, {{\"id\":4}}]"),
            &[odd, "lost", "{\"id\":4}"],
            true,
        );
    }

    #[test]
    fn a_cut_is_told_from_an_end() {
        check(r#"[{"id":3},{"id":4,"t":"#, &["{\"id\":3}", "cut"], false);
        check(r#"[{"id":3},"#, &["{\"id\":3}"], false);
    }

    #[test]
    fn many_broken_objects_cost_no_more_than_their_length() {
        // Hours, if each were looked at up to the end.
        for odd in [
            r#"{"id":[0,"#,
            r#"{"id":[{"x":"#,
            r#"{"id":{"a":"b},"#,
            r#"{"id":"#,
            "{\"id\":3}},",
            "7 ",
        ] {
            let list = format!("[{}", odd.repeat(200_000));
            assert!(Objects::of(&list, 0).count() <= 200_001);
        }
    }
}
