//! Stanzas cut out of the bytes of a stream, each within its limits; not what they ask for. What is
//! too large is passed over, and its head is told: the stream goes on behind it.

use super::element::{Element, ElementNode};
use rxml::{Options, Parse as _, RawEvent, RawParser, RawQName, WithOptions, error::EndOrError};

/// Bytes of a stanza at most (XMPP-5): servers take no more from their clients.
pub(super) const STANZA_BYTES_MAX: usize = 256 << 10;
/// Levels of elements in a stanza at most.
pub(super) const STANZA_DEPTH_MAX: usize = 32;
/// Elements in a stanza at most.
pub(super) const STANZA_ELEMENTS_MAX: usize = 2_000;
/// Attributes of an element at most.
const ATTRIBUTES_MAX: usize = 100;
/// Bytes at most that are passed over for one stanza: no server sends one that is larger.
const PASSED_BYTES_MAX: usize = 8 << 20;
/// Bytes of one attribute or name at most. Servers limit whole stanzas to half of it.
const TOKEN_BYTES_MAX: usize = 1 << 20;

/// The next thing on a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The head of the stream.
    Open(Element),
    /// An element below it.
    Stanza(Element),
    /// An element below it that passes a limit: its head alone.
    TooLarge(Element),
    /// The end of the stream.
    Close,
}

/// Bytes that are no stream of XMPP.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadStream {
    /// They are not well-formed, or hold what XMPP forbids.
    #[error("what the server sent is no XML of XMPP: {0}")]
    Xml(String),
    /// A stanza never ends.
    #[error("the server sent a stanza of more than {PASSED_BYTES_MAX} bytes")]
    Endless,
}

/// Cuts a stream. Prefixes are resolved here, within the limits: rxml itself looks through all open
/// elements for each, which a stanza of a hundred thousand levels would make slow.
pub(super) struct FrameReader {
    parser: RawParser,
    /// The head that is being read.
    head: Option<Head>,
    /// Prefixes that the head of the stream binds.
    of_stream: Option<Vec<Binding>>,
    /// The elements that are open below the stream, outermost first.
    open: Vec<OpenElement>,
    bytes: usize,
    elements: usize,
    passing: Option<Passing>,
}

/// A prefix, empty for none, and its namespace.
type Binding = (String, String);

/// An element that is open, and the prefixes that it binds.
struct OpenElement {
    element: Element,
    bindings: Vec<Binding>,
}

/// The head of an element: its name, and its attributes so far.
struct Head {
    name: RawQName,
    attributes: Vec<(RawQName, String)>,
    /// True where not all of its attributes are kept.
    is_cut: bool,
}

/// A stanza that is passed over.
struct Passing {
    head: Element,
    /// Elements of it that are open.
    depth: usize,
}

impl FrameReader {
    /// The beginning of a stream.
    pub(super) fn new() -> Self {
        let options = Options {
            max_token_length: TOKEN_BYTES_MAX,
            ..Options::default()
        };
        Self {
            parser: <RawParser as WithOptions>::with_options(options),
            head: None,
            of_stream: None,
            open: Vec::new(),
            bytes: 0,
            elements: 0,
            passing: None,
        }
    }

    /// The next frame in these bytes, which are taken from their beginning; `None` when more are
    /// needed.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame>, BadStream> {
        loop {
            match self.parser.parse(bytes, false) {
                Ok(Some(event)) => {
                    if let Some(frame) = self.take(event)? {
                        return Ok(Some(frame));
                    }
                }
                Ok(None) => return Ok(Some(Frame::Close)),
                Err(EndOrError::NeedMoreData) => return Ok(None),
                Err(EndOrError::Error(error)) => return Err(BadStream::Xml(error.to_string())),
            }
        }
    }

    fn take(&mut self, event: RawEvent) -> Result<Option<Frame>, BadStream> {
        match event {
            RawEvent::ElementHeadOpen(metrics, name) => {
                self.count(metrics.len())?;
                self.head = Some(Head {
                    name,
                    attributes: Vec::new(),
                    is_cut: false,
                });
                Ok(None)
            }
            RawEvent::Attribute(metrics, name, value) => {
                self.count(metrics.len())?;
                let has_room =
                    self.bytes <= STANZA_BYTES_MAX || value.len() <= HEAD_VALUE_BYTES_MAX;
                if let Some(head) = &mut self.head {
                    if has_room && head.attributes.len() < ATTRIBUTES_MAX {
                        head.attributes.push((name, value));
                    } else {
                        head.is_cut = true;
                    }
                }
                Ok(None)
            }
            RawEvent::ElementHeadClose(metrics) => {
                self.count(metrics.len())?;
                match self.head.take() {
                    Some(head) => self.begin(head),
                    None => Ok(None),
                }
            }
            RawEvent::ElementFoot(metrics) => {
                self.count(metrics.len())?;
                Ok(self.end())
            }
            RawEvent::Text(metrics, text) => {
                // White space between stanzas keeps connections open.
                if !self.open.is_empty() || self.passing.is_some() {
                    self.count(metrics.len())?;
                    self.pass_if_large();
                }
                if let Some(innermost) = self.open.last_mut() {
                    innermost.element.push(ElementNode::Text(text));
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), BadStream> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > PASSED_BYTES_MAX {
            return Err(BadStream::Endless);
        }
        Ok(())
    }

    fn begin(&mut self, head: Head) -> Result<Option<Frame>, BadStream> {
        if let Some(passing) = &mut self.passing {
            passing.depth += 1;
            return Ok(None);
        }
        let is_cut = head.is_cut;
        let opened = self.resolved(head)?;
        if self.of_stream.is_none() {
            self.of_stream = Some(opened.bindings);
            self.begin_anew();
            return Ok(Some(Frame::Open(opened.element)));
        }
        self.elements += 1;
        self.open.push(opened);
        if is_cut {
            self.pass();
        }
        self.pass_if_large();
        Ok(None)
    }

    /// The element of a head, with the namespaces that its prefixes have.
    fn resolved(&self, head: Head) -> Result<OpenElement, BadStream> {
        let mut bindings = Vec::new();
        let mut attributes: Vec<(String, String)> = Vec::new();
        for ((prefix, name), value) in head.attributes {
            match (prefix.as_deref().map(|prefix| &**prefix), name.as_str()) {
                (None, "xmlns") => bindings.push((String::new(), value)),
                (Some("xmlns"), name) => bindings.push((name.to_owned(), value)),
                (None, name) if attributes.iter().any(|(known, _)| known == name) => {
                    let text = format!("the attribute {name} is given twice");
                    return Err(BadStream::Xml(text));
                }
                (None, name) => attributes.push((name.to_owned(), value)),
                // Of these we read none.
                (Some(_), _) => {}
            }
        }
        let (prefix, name) = head.name;
        let prefix = prefix.as_ref().map_or("", |prefix| prefix.as_str());
        let scopes = self.open.iter().map(|open| &open.bindings);
        let scopes = self.of_stream.iter().chain(scopes).rev();
        let mut bound = bindings.iter().chain(scopes.flatten());
        let namespace = match bound.find(|(known, _)| known == prefix) {
            Some((_, namespace)) => namespace.as_str(),
            None if prefix.is_empty() => "",
            None => {
                let text = format!("the prefix {prefix} has no namespace");
                return Err(BadStream::Xml(text));
            }
        };
        let mut element = Element::new(namespace, name.as_str());
        for (name, value) in attributes {
            element.set(&name, &value);
        }
        Ok(OpenElement { element, bindings })
    }

    // Decides: Which stanzas are too large?
    /// Passes over the rest of a stanza that passes a limit; what was read of it is let go.
    fn pass_if_large(&mut self) {
        let is_large = self.bytes > STANZA_BYTES_MAX
            || self.open.len() > STANZA_DEPTH_MAX
            || self.elements > STANZA_ELEMENTS_MAX;
        if is_large {
            self.pass();
        }
    }

    fn pass(&mut self) {
        let depth = self.open.len();
        if let Some(outermost) = self.open.first() {
            let head = head_of(&outermost.element);
            self.passing = Some(Passing { head, depth });
            self.open = Vec::new();
        }
    }

    fn end(&mut self) -> Option<Frame> {
        if let Some(passing) = &mut self.passing {
            passing.depth = passing.depth.saturating_sub(1);
            if passing.depth > 0 {
                return None;
            }
            let head = self.passing.take().map(|passing| passing.head);
            self.begin_anew();
            return head.map(Frame::TooLarge);
        }
        let Some(ended) = self.open.pop() else {
            return Some(Frame::Close);
        };
        match self.open.last_mut() {
            Some(parent) => {
                parent.element.push(ElementNode::Element(ended.element));
                None
            }
            None => {
                self.begin_anew();
                Some(Frame::Stanza(ended.element))
            }
        }
    }

    fn begin_anew(&mut self) {
        (self.bytes, self.elements) = (0, 0);
    }
}

/// Bytes of an attribute at most that is kept of a stanza that is passed over, other than its id,
/// by which it is answered.
const HEAD_VALUE_BYTES_MAX: usize = 3_071;

/// A stanza without what it holds, and without attributes that are too long.
fn head_of(element: &Element) -> Element {
    let mut head = Element::new(element.namespace(), element.name());
    for name in ["type", "id", "from", "to"] {
        if let Some(value) = element.attribute(name)
            && (name == "id" || value.len() <= HEAD_VALUE_BYTES_MAX)
        {
            head.set(name, value);
        }
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<?xml version='1.0'?><stream:stream xmlns='a' xmlns:stream='s' id='7'>";

    /// The frames of a text behind the head of a stream, which comes in pieces of so many bytes.
    fn frames(text: &str, piece: usize) -> Result<Vec<Frame>, BadStream> {
        let mut reader = FrameReader::new();
        let mut frames = Vec::new();
        for mut bytes in format!("{HEAD}{text}").as_bytes().chunks(piece) {
            while let Some(frame) = reader.next(&mut bytes)? {
                let is_end = frame == Frame::Close;
                frames.push(frame);
                if is_end {
                    break;
                }
            }
        }
        let open = frames.remove(0);
        assert!(matches!(open, Frame::Open(head) if head.attribute("id") == Some("7")));
        Ok(frames)
    }

    #[test]
    fn a_stream_is_cut_into_the_same_stanzas_however_its_bytes_come() {
        let text = " <iq id='1'><q xmlns='b'>x<!-- -->&amp;é</q></iq>\n<presence/></stream:stream>";
        let text = &text.replace("<!-- -->", "");
        let whole = frames(text, usize::MAX).unwrap();
        for piece in 1..40 {
            assert_eq!(frames(text, piece).unwrap(), whole, "{piece}");
        }
        let [Frame::Stanza(iq), Frame::Stanza(_), Frame::Close] = &whole[..] else {
            panic!("{whole:?}");
        };
        assert_eq!(iq.child("b", "q").unwrap().text(), "x&é");
    }

    #[test]
    fn what_is_too_large_is_passed_over_and_its_head_is_told() {
        // XMPP-5.
        let long = "x".repeat(STANZA_BYTES_MAX);
        let deep = format!("{}{}", "<d>".repeat(100_000), "</d>".repeat(100_000));
        let many = "<e/>".repeat(STANZA_ELEMENTS_MAX);
        for (case, large) in [
            ("text", format!("<iq id='1' to='x'>{long}</iq>")),
            ("attribute", format!("<iq id='1' to='x' q='{long}'/>")),
            (
                "inner attribute",
                format!("<iq id='1' to='x'><q a='{long}'><b/></q></iq>"),
            ),
            ("levels", format!("<iq id='1' to='x'>{deep}</iq>")),
            (
                "attributes",
                format!(
                    "<iq id='1' to='x'{}/>",
                    (0..200).map(|n| format!(" a{n}=''")).collect::<String>()
                ),
            ),
            ("elements", format!("<iq id='1' to='x'>{many}</iq>")),
            (
                "an id",
                format!("<iq id='1' to='x' from='{}'>{long}</iq>", "y".repeat(4_000)),
            ),
        ] {
            let found = frames(&format!("{large}<iq id='2'/>"), 8_192).unwrap();
            let [Frame::TooLarge(head), Frame::Stanza(next)] = &found[..] else {
                panic!("{case}: {} frames", found.len());
            };
            assert_eq!(head.attribute("id"), Some("1"), "{case}");
            assert_eq!(head.attribute("to"), Some("x"), "{case}");
            assert_eq!(
                (head.attribute("from"), head.attribute("q")),
                (None, None),
                "{case}"
            );
            assert_eq!(next.attribute("id"), Some("2"), "{case}");
        }
        let fits = format!("<iq>{}</iq>", &long[..STANZA_BYTES_MAX - 9]);
        assert!(matches!(
            &frames(&fits, 8_192).unwrap()[..],
            [Frame::Stanza(_)]
        ));
    }

    #[test]
    fn what_is_no_stream_is_an_error_and_nothing_grows_without_end() {
        for bad in [
            "<iq></message>",
            "<iq>&nbsp;</iq>",
            "<!-- comment -->",
            "<!DOCTYPE x>",
            "<?php ?>",
            "<iq>\u{1}</iq>",
            "<p:iq/>",
            "<iq a='1' a='2'/>",
        ] {
            assert!(matches!(frames(bad, 64), Err(BadStream::Xml(_))), "{bad}");
        }
        let endless = format!("<iq>{}", "x".repeat(PASSED_BYTES_MAX + (1 << 20)));
        assert_eq!(frames(&endless, 65_536), Err(BadStream::Endless));
        let attribute = format!("<iq a='{}'", "x".repeat(TOKEN_BYTES_MAX + 1));
        assert!(matches!(frames(&attribute, 65_536), Err(BadStream::Xml(_))));
    }
}
