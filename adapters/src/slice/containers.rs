//! The elements that enclose the entries, and the declarations of theirs that are in force.

use std::borrow::Cow;
use std::sync::Arc;

use crate::note::Notes;
use crate::raw_entry::Inherited;
use crate::reading::{Dialect, Scope};
use crate::text::markup::split;
use crate::text::markup::tokens::attributes;
use crate::text::markup::tree::Bindings;
use crate::vocabulary::Vocabulary;
use crate::{Format, Note};

/// Limit of the containers that may declare something; what later ones declare is not in force.
/// Every entry of a container shares what that declares, but every container repeats what those
/// around it declared.
const CONTAINERS_MAX: usize = 64;

/// Longest language tag that is inherited, bytes. Those that exist have a few dozen at most.
const LANGUAGE_BYTES_MAX: usize = 256;

/// Open containers, outermost first: the root, the channel, RSS 1.1's `items`.
pub(super) struct Containers {
    open: Vec<Container>,
    /// Number of containers so far, closed ones included.
    count: usize,
    /// The declarations of the root.
    outermost: Arc<Inherited>,
}

struct Container {
    /// Its index among the open elements.
    depth: usize,
    inherited: Arc<Inherited>,
}

/// The start tag of a container.
pub(super) struct ContainerTag<'t> {
    pub(super) name: &'t str,
    /// The attributes as written.
    pub(super) raw: &'t str,
    pub(super) depth: usize,
}

impl ContainerTag<'_> {
    pub(super) fn is_channel(&self) -> bool {
        split(self.name).1.eq_ignore_ascii_case("channel")
    }
}

impl Containers {
    /// No container yet; the document itself gives this scope.
    pub(super) fn new(dialect: Dialect, scope: Scope) -> Self {
        let outermost = Arc::new(Inherited {
            dialect,
            bindings: Bindings::default(),
            scope,
        });
        Self {
            open: Vec::new(),
            count: 0,
            outermost,
        }
    }

    /// The declarations in force inside the innermost container.
    pub(super) fn inherited(&self) -> &Arc<Inherited> {
        self.open
            .last()
            .map_or(&self.outermost, |container| &container.inherited)
    }

    /// The declarations of the root.
    pub(super) fn outermost(&self) -> &Inherited {
        &self.outermost
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Depth of the innermost container.
    pub(super) fn depth(&self) -> Option<usize> {
        self.open.last().map(|container| container.depth)
    }

    /// Closes the innermost container if it is the element at this depth.
    pub(super) fn close_at(&mut self, depth: usize) {
        if self.depth() == Some(depth) {
            self.open.pop();
        }
    }

    /// Opens a container: its declarations are in force for everything in it. Returns them, or
    /// `None` when there are too many containers. A namespace that is new to the document's own
    /// elements is added to the dialect.
    pub(super) fn open(
        &mut self,
        tag: &ContainerTag<'_>,
        dialect: &mut Dialect,
        notes: &mut Notes,
    ) -> Option<Arc<Inherited>> {
        let outside = Arc::clone(self.inherited());
        self.count += 1;
        if self.count > CONTAINERS_MAX {
            notes.add(Note::Other(format!("more than {CONTAINERS_MAX} channels")));
            self.open.push(Container {
                depth: tag.depth,
                inherited: outside,
            });
            return None;
        }
        let bindings = declared(&outside.bindings, tag.raw).into_owned();
        let namespace = bindings.namespace(split(tag.name).0).into_owned();
        let mut scope = outside.scope.clone();
        for (attribute, value) in attributes(tag.raw) {
            match attribute {
                "xml:base" => scope.rebase(&value, notes),
                "xml:lang" => {
                    let tag = value.trim();
                    scope.language = (tag.len() <= LANGUAGE_BYTES_MAX).then(|| tag.to_owned());
                }
                _ if dialect.format == Format::Cdf && attribute.eq_ignore_ascii_case("base") => {
                    scope.rebase(&value, notes);
                }
                _ => {}
            }
        }
        // Whatever namespace the document puts its own elements into is the format's; RDF's is that
        // of the envelope.
        if Vocabulary::of(&namespace) != Vocabulary::Rdf && !dialect.own.contains(&namespace) {
            dialect.own.push(namespace);
        }
        let inherited = Arc::new(Inherited {
            dialect: dialect.clone(),
            bindings,
            scope,
        });
        if self.open.is_empty() {
            self.outermost = Arc::clone(&inherited);
        }
        self.open.push(Container {
            depth: tag.depth,
            inherited: Arc::clone(&inherited),
        });
        Some(inherited)
    }
}

/// The bindings with those that a start tag declares.
pub(super) fn declared<'b>(outside: &'b Bindings, raw: &str) -> Cow<'b, Bindings> {
    if !raw.contains("xmlns") {
        return Cow::Borrowed(outside);
    }
    let mut bindings = outside.clone();
    bindings.declare(attributes(raw));
    Cow::Owned(bindings)
}
