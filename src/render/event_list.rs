//! Events for the operator as documents: a feed of Atom, a JSON Feed, and the JSON of one event; not
//! which they are.

use super::{
    generator::GENERATOR,
    xml::{Xml, push_text},
};
use crate::{
    events::{Event, Severity},
    feed::stamp::Stamp,
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

const ATOM: &str = "http://www.w3.org/2005/Atom";
const JSON_FEED: &str = "https://jsonfeed.org/version/1.1";

/// A list of events, newest first.
#[derive(Clone, Copy, Debug)]
pub struct EventList<'a> {
    /// The root of the URLs that consumers see: it tells one everfeed from another.
    pub public_url: &'a str,
    /// The URL of the list; `None` where nobody knows it.
    pub own_url: Option<&'a str>,
    /// Its events.
    pub events: &'a [Event],
    /// The time of its last change where it has no event.
    pub since: Stamp,
}

impl EventList<'_> {
    /// The list as a feed of Atom (RFC 4287).
    pub fn atom(&self) -> String {
        let mut xml = Xml::document(1024 * (self.events.len() + 1));
        xml.open("feed", &[("xmlns", Some(ATOM))]);
        xml.leaf("title", &[], &self.title());
        xml.leaf("id", &[], &id(self.public_url, "events"));
        xml.leaf("updated", &[], &self.updated().rfc3339());
        xml.open("author", &[]);
        xml.leaf("name", &[], GENERATOR.name);
        xml.close("author");
        if let Some(own_url) = self.own_url {
            let attributes = [("rel", Some("self")), ("href", Some(own_url))];
            xml.empty("link", &attributes);
        }
        let version = [("version", Some(GENERATOR.version))];
        xml.leaf("generator", &version, GENERATOR.name);
        for event in self.events {
            self.entry(&mut xml, event);
        }
        xml.close("feed");
        String::from_utf8(xml.finish()).expect("it was written as text")
    }

    fn entry(&self, xml: &mut Xml, event: &Event) {
        xml.open("entry", &[]);
        xml.leaf("title", &[], &event.headline());
        xml.leaf("id", &[], &event_id(self.public_url, event));
        xml.leaf("updated", &[], &event.updated().rfc3339());
        xml.leaf("published", &[], &event.at.rfc3339());
        xml.empty("category", &[("term", Some(event.cause.topic.name()))]);
        xml.empty("category", &[("term", Some(event.kind.name()))]);
        let html = html(event);
        xml.holding("content", &[("type", Some("html"))], |out| {
            push_text(out, &html);
        });
        xml.close("entry");
    }

    /// The list as a JSON Feed 1.1, in which each event has its facts as `_everfeed`.
    pub fn json(&self) -> String {
        let items = self.events.iter().map(|event| {
            json!({
                "id": event_id(self.public_url, event),
                "title": event.headline(),
                "content_text": event.lines(),
                "date_published": event.at.rfc3339(),
                "date_modified": event.updated().rfc3339(),
                "tags": [event.cause.topic.name(), event.kind.name()],
                "_everfeed": event_json(event),
            })
        });
        let mut feed = json!({
            "version": JSON_FEED,
            "title": self.title(),
            "items": items.collect::<Vec<Value>>(),
        });
        if let Some(own_url) = self.own_url {
            feed["feed_url"] = own_url.into();
        }
        format!("{feed:#}")
    }

    fn title(&self) -> String {
        format!("everfeed at {}: events", self.public_url)
    }

    fn updated(&self) -> Stamp {
        let last = self.events.iter().map(Event::updated).max();
        last.unwrap_or(self.since)
    }
}

/// The facts of an event, for programs.
pub fn event_json(event: &Event) -> Value {
    #[derive(Serialize)]
    struct EventFacts<'a> {
        at: String,
        kind: &'static str,
        topic: &'static str,
        cause: &'a str,
        severity: &'static str,
        whose: &'static str,
        owner: &'a str,
        since: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<String>,
        title: &'a str,
        text: &'a str,
        remedy: &'a str,
        feeds: &'a [String],
        feeds_total: u32,
    }
    let facts = EventFacts {
        at: event.at.rfc3339(),
        kind: event.kind.name(),
        topic: event.cause.topic.name(),
        cause: &event.cause.key,
        severity: match event.severity {
            Severity::Fault => "fault",
            Severity::Notice => "notice",
        },
        whose: event.whose.name(),
        owner: &event.owner,
        since: event.since.rfc3339(),
        until: event.ended_at().map(Stamp::rfc3339),
        title: &event.title,
        text: &event.text,
        remedy: &event.remedy,
        feeds: &event.feeds.names,
        feeds_total: event.feeds.total,
    };
    serde_json::to_value(facts).expect("texts and numbers can be written")
}

/// An id that no other everfeed gives.
fn id(public_url: &str, name: &str) -> String {
    let name = format!("{public_url} {name}");
    Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes())
        .urn()
        .to_string()
}

/// The id of an event.
fn event_id(public_url: &str, event: &Event) -> String {
    id(public_url, &format!("event {}", event.at.micros()))
}

/// The facts of an event as markup.
fn html(event: &Event) -> String {
    let mut html = String::new();
    for (name, text) in event.facts() {
        html.push_str("<p><b>");
        push_text(&mut html, name);
        html.push_str(":</b> ");
        push_text(&mut html, &text);
        html.push_str("</p>");
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{AffectedFeeds, Cause, EventKind, EventTopic, FaultOwner};
    use everfeed_adapters::{Hints, parse};

    const AT: Stamp = Stamp::from_secs(1_700_000_000);

    fn event(text: &str, kind: EventKind) -> Event {
        Event {
            at: AT,
            kind,
            cause: Cause::new(EventTopic::Feeds, text),
            severity: Severity::Fault,
            whose: FaultOwner::Upstream,
            owner: "the publisher's".into(),
            since: Stamp::from_secs(1_699_990_000),
            title: text.into(),
            text: text.into(),
            remedy: text.into(),
            feeds: AffectedFeeds::one(text),
            joined_at: None,
        }
    }

    fn list(events: &[Event]) -> EventList<'_> {
        EventList {
            public_url: "https://feeds.example/",
            own_url: Some("http://localhost:8081/events.atom?a=1&b"),
            events,
            since: AT,
        }
    }

    /// Texts that would break a document that took them as they are.
    const ODD: &str = "</content>]]>&amp;<script>alert(1)</script>\u{0}\u{202e}\"'";

    #[test]
    fn an_event_that_a_feed_joined_is_updated_then_and_published_before() {
        let joined_at = Some(AT.plus_secs(60));
        let joined = Event {
            joined_at,
            ..event("500", EventKind::Began)
        };
        let later = Event {
            at: AT.plus_secs(9),
            ..event("other", EventKind::Began)
        };
        let events = [later, joined];
        let atom = list(&events).atom();
        let of_feed = "<updated>2023-11-14T22:14:20Z</updated>";
        // That of the feed, and that of the entry.
        assert_eq!(atom.matches(of_feed).count(), 2, "{atom}");
        assert!(
            atom.contains("<published>2023-11-14T22:13:20Z</published>"),
            "{atom}"
        );
        let json: Value = serde_json::from_str(&list(&events).json()).unwrap();
        let item = &json["items"][1];
        assert_eq!(item["date_modified"], "2023-11-14T22:14:20Z");
        assert_eq!(item["date_published"], "2023-11-14T22:13:20Z");
    }

    #[test]
    fn a_feed_reads_back_with_whose_fault_since_when_and_what_to_do() {
        let events = [event("500", EventKind::Began), event(ODD, EventKind::Ended)];
        let atom = list(&events).atom();
        let feed = parse(atom.as_bytes(), &Hints::default()).unwrap();
        assert_eq!(feed.entries.len(), 2, "{atom}");
        for words in [
            "What is wrong:&lt;/b&gt; 500",
            "the fault is the publisher's",
            "2023-11-14T19:26:40Z",
            "What to do:",
        ] {
            assert!(atom.contains(words), "no {words} in {atom}");
        }
        assert!(!atom.contains("<script") && !atom.contains("]]>"), "{atom}");
    }

    #[test]
    fn json_reads_back_and_a_list_without_events_is_one() {
        for events in [vec![], vec![event(ODD, EventKind::Happened)]] {
            let json = list(&events).json();
            let read: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(read["items"].as_array().unwrap().len(), events.len());
            let atom = list(&events).atom();
            let feed = parse(atom.as_bytes(), &Hints::default()).unwrap();
            assert_eq!(feed.entries.len(), events.len(), "{atom}");
        }
    }

    #[test]
    fn an_id_is_of_one_event_of_one_everfeed() {
        let (one, mut other) = (event("a", EventKind::Began), event("a", EventKind::Began));
        other.at = AT.next();
        let id = |url: &str, event: &Event| event_id(url, event);
        assert_eq!(id("https://a/", &one), id("https://a/", &one));
        assert_ne!(id("https://a/", &one), id("https://a/", &other));
        assert_ne!(id("https://a/", &one), id("https://b/", &one));
    }
}
