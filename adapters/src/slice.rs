//! Cuts a document into entries: which bytes are whose, and what each is called. What an entry says
//! is read later, alone.

mod containers;
mod cutter;
mod feed_part;
mod items;
mod keys;
mod leaf;
mod open_elements;
mod signs;

use crate::detect::{self, Root};
use crate::dispatch;
use crate::extensions::moved;
use crate::formats::resource::Resource;
use crate::formats::version;
use crate::note::Notes;
use crate::reading::Scope;
use crate::text::{doctype, encoding, present, uri};
use crate::{Format, Hints, NotAFeed, Note, RawEntry, SlicedDocument};
use cutter::CutMarkup;
use feed_part::FeedPart;
use items::CutItems;
use keys::assign_keys;

/// Cuts a document into entries: decoded, recognised, its metadata read, each entry with its key
/// and raw digest.
///
/// Content is never an error: what is odd becomes a note.
///
/// # Errors
/// Only when the bytes are no feed at all (a web page, other JSON, nothing), or when they hold
/// entries of which not one could be read in whole; then the publisher, or whatever stands before
/// it, is at fault. Never with [`Hints::resource`], for which any bytes will do.
pub fn slice(bytes: &[u8], hints: &Hints<'_>) -> Result<SlicedDocument, NotAFeed> {
    let base = hints.base_url.and_then(|url| uri::rebase(None, url));
    if let Some(url) = hints.resource {
        return Ok(SlicedDocument::of_resource(Resource::new(
            url, base, hints, bytes,
        )));
    }
    if let Some(binary) = detect::binary(bytes) {
        return Err(binary);
    }
    let decoded = encoding::decode(bytes, hints.content_type);
    let (text, unreplaced) = doctype::expand(&decoded.text);
    let is_wide = decoded.encoding.starts_with("UTF-16") || decoded.encoding.starts_with("UTF-32");
    let root = detect::recognise(&text).map_err(|error| match error {
        NotAFeed::Html { .. } | NotAFeed::OtherXml { .. } | NotAFeed::Text { .. }
            if !is_wide && detect::is_noise(bytes) =>
        {
            NotAFeed::Binary { kind: "binary" }
        }
        error => error,
    })?;
    // A response in several languages names none of its parts.
    let language = hints
        .content_language
        .filter(|languages| !languages.contains(','))
        .and_then(present);
    let scope = Scope {
        base,
        language,
        ..Scope::default()
    };
    let (mut sliced, mut notes, has_no_whole_entry) = match root.format {
        Format::JsonFeed => of_items(&root, &scope)?,
        _ => {
            // What stands before the root element is as long as the text is longer.
            let before = &text[..text.len() - root.text.len()];
            of_markup(&root, before, scope)?
        }
    };
    sliced.encoding = decoded.encoding;
    if root.preceded {
        notes.add_first(Note::Other(
            "something stands before the document".to_owned(),
        ));
    }
    if unreplaced {
        notes.add_first(Note::Other(
            "some entities that it declares are too many or too long to be replaced".to_owned(),
        ));
    }
    if let Some(note) = decoded.note {
        notes.add_first(note);
    }
    sliced.notes = notes.into_vec();
    if root.format != Format::JsonFeed {
        sliced.opening = opening(&decoded.text).into();
    }
    if sliced.entries.is_empty()
        && let Some(to) = moved::redirect(&sliced.metadata)
    {
        return Err(NotAFeed::Moved { to });
    }
    if has_no_whole_entry {
        let remains = (!sliced.entries.is_empty()).then(|| Box::new(sliced));
        return Err(NotAFeed::NoWholeEntry { remains });
    }
    Ok(sliced)
}

/// The document, the notes on it, and true when no entry of it is whole.
fn of_markup(
    root: &Root<'_>,
    before: &str,
    scope: Scope,
) -> Result<(SlicedDocument, Notes, bool), NotAFeed> {
    let cut = cutter::cut(root, scope)?;
    let CutMarkup {
        dialect,
        scope,
        feed,
        entries,
        mut notes,
        has_no_whole_entry,
    } = cut;
    let FeedPart {
        id,
        children,
        deletions,
        ..
    } = feed;
    let mut metadata = dispatch::metadata(children, &dialect, &scope, &mut notes);
    metadata.id = metadata.id.or(id);
    let mut entries = assign_keys(entries);
    RawEntry::tell_slash_order(&mut entries);
    let sliced = SlicedDocument {
        version: version::of(root.format, before, root.text),
        metadata,
        entries,
        deletions,
        ..SlicedDocument::empty(root.format)
    };
    Ok((sliced, notes, has_no_whole_entry))
}

fn of_items(root: &Root<'_>, scope: &Scope) -> Result<(SlicedDocument, Notes, bool), NotAFeed> {
    let CutItems {
        version,
        metadata,
        entries,
        notes,
        has_no_whole_entry,
    } = items::cut(root.text, scope)?;
    let sliced = SlicedDocument {
        version,
        metadata,
        entries: assign_keys(entries),
        ..SlicedDocument::empty(root.format)
    };
    Ok((sliced, notes, has_no_whole_entry))
}

/// Limit of a document's opening, bytes.
const OPENING_BYTES_MAX: usize = 16 * 1024;

/// The text before the first entry, as far as it is kept.
fn opening(text: &str) -> &str {
    let limit = text.len().min(OPENING_BYTES_MAX);
    let text = &text[..(0..=limit)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)];
    let starts = memchr::memchr_iter(b'<', text.as_bytes());
    let is_entry = |at: &usize| {
        let name = text.as_bytes()[at + 1..]
            .split(|b| !b.is_ascii_alphabetic())
            .next()
            .unwrap_or_default();
        name.eq_ignore_ascii_case(b"item") || name.eq_ignore_ascii_case(b"entry")
    };
    let end = starts.into_iter().find(is_entry).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests;
