//! The names of the elements that are open while a document is cut, and which of them an end tag
//! closes; not what they are.

use std::collections::HashMap;

/// Open elements, outermost first.
#[derive(Debug, Default)]
pub(super) struct OpenElements<'t> {
    names: Vec<&'t str>,
    /// Number of open elements of each name, so that a stray end tag costs one look. Counted from
    /// the first end tag on that closes something else than the innermost element: in a sound
    /// document there is none.
    counts: Option<HashMap<&'t str, u32>>,
}

impl<'t> OpenElements<'t> {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn innermost(&self) -> Option<&'t str> {
        self.names.last().copied()
    }

    pub(super) fn name_at(&self, depth: usize) -> Option<&'t str> {
        self.names.get(depth).copied()
    }

    pub(super) fn push(&mut self, name: &'t str) {
        self.names.push(name);
        if let Some(counts) = &mut self.counts {
            *counts.entry(name).or_default() += 1;
        }
    }

    pub(super) fn pop(&mut self) -> Option<&'t str> {
        let name = self.names.pop()?;
        if let Some(count) = self.counts.as_mut().and_then(|counts| counts.get_mut(name)) {
            *count -= 1;
        }
        Some(name)
    }

    /// The place of the innermost element of this name.
    pub(super) fn place_of(&mut self, name: &str) -> Option<usize> {
        if self
            .names
            .last()
            .is_some_and(|innermost| *innermost == name)
        {
            return Some(self.names.len() - 1);
        }
        let counts = self.counts.get_or_insert_with(|| {
            let mut counts = HashMap::new();
            self.names
                .iter()
                .for_each(|name| *counts.entry(*name).or_default() += 1);
            counts
        });
        counts.get(name).filter(|count| **count > 0)?;
        self.names.iter().rposition(|open| *open == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_tag_closes_the_innermost_element_of_its_name() {
        let mut open = OpenElements::default();
        for name in ["a", "b", "a", "c"] {
            open.push(name);
        }
        assert_eq!(open.place_of("c"), Some(3));
        assert_eq!(open.place_of("x"), None);
        assert_eq!(open.place_of("a"), Some(2));
        assert_eq!([open.pop(), open.pop()], [Some("c"), Some("a")]);
        assert_eq!(open.place_of("c"), None);
        assert_eq!(open.place_of("a"), Some(0));
        open.push("c");
        open.push("d");
        assert_eq!(open.place_of("c"), Some(2));
        assert_eq!(open.len(), 4);
    }
}
