//! Our links in a publisher's JSON Feed: `feed_url`, which is also its topic, and a member of
//! `hubs` (JSON Feed 1.1); every other byte stays. Not documents of XML.

use super::{Edit, LegacyLinks};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};
use std::{fmt, ops::Range};

/// The protocol of our hub, as JSON Feed calls it.
const PROTOCOL: &str = "WebSub";

/// The edits that put links into a JSON Feed; `None` when it is no JSON in UTF-8 from its first
/// character to its last.
pub(super) fn edits(document: &[u8], links: &LegacyLinks) -> Option<Vec<Edit>> {
    let text = str::from_utf8(document).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let members: LinkMembers<'_> = serde_json::from_str(text).ok()?;
    let place = |value: &RawValue| -> Range<usize> {
        // A raw value is borrowed from the text, so its address is a place in it.
        let start = value.get().as_ptr().addr() - document.as_ptr().addr();
        start..start + value.get().len()
    };
    let own = Value::from(links.own.as_str());
    let hub = json!({ "type": PROTOCOL, "url": links.hub }).to_string();
    let mut edits = Vec::new();
    let mut missing = String::new();
    if members.feed_urls.is_empty() {
        missing.push_str(&format!(",\"feed_url\":{own}"));
    }
    // A document has one address: the one at which it is now.
    for known in members.feed_urls {
        if serde_json::from_str::<Value>(known.get()).ok().as_ref() != Some(&own) {
            edits.push(Edit {
                place: place(known),
                text: own.to_string(),
            });
        }
    }
    if members.hubs.is_empty() {
        missing.push_str(&format!(",\"hubs\":[{hub}]"));
    }
    // Of members with one name readers take the first or the last, so each gets what it lacks.
    // Anything but a list stays what it is; the headers name the hub, too.
    for known in members.hubs {
        if known.get() == "null" {
            edits.push(Edit {
                place: place(known),
                text: format!("[{hub}]"),
            });
        } else if let Ok(listed) = serde_json::from_str::<ListedHubs>(known.get())
            && !listed.urls.contains(&links.hub)
        {
            let first = place(known).start + 1;
            let text = if listed.is_empty {
                hub.clone()
            } else {
                format!("{hub},")
            };
            edits.push(Edit {
                place: first..first,
                text,
            });
        }
    }
    if !missing.is_empty() {
        // Behind the first member, which is usually the version.
        let behind = place(members.first?).end;
        edits.push(Edit {
            place: behind..behind,
            text: missing,
        });
    }
    Some(edits)
}

/// The values of the outermost object that decide where links go, where they stand.
#[derive(Default)]
struct LinkMembers<'t> {
    first: Option<&'t RawValue>,
    feed_urls: Vec<&'t RawValue>,
    hubs: Vec<&'t RawValue>,
}

impl<'de> Deserialize<'de> for LinkMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct MemberVisitor;

        impl<'de> Visitor<'de> for MemberVisitor {
            type Value = LinkMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON Feed")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = LinkMembers::default();
                while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.first.get_or_insert(value);
                    if is_named(name, "feed_url") {
                        members.feed_urls.push(value);
                    } else if is_named(name, "hubs") {
                        members.hubs.push(value);
                    }
                }
                Ok(members)
            }
        }

        input.deserialize_map(MemberVisitor)
    }
}

/// True for the name of a member, however its characters are escaped.
fn is_named(name: &RawValue, wanted: &str) -> bool {
    let written = name.get();
    if !written.contains('\\') {
        return written
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            == Some(wanted);
    }
    serde_json::from_str::<String>(written).is_ok_and(|name| name == wanted)
}

/// A hub, as it stands in a list.
#[derive(Deserialize)]
struct ListedHub {
    #[serde(rename = "type")]
    protocol: String,
    url: String,
}

/// A list of hubs: the addresses of those that speak our protocol.
#[derive(Default)]
struct ListedHubs {
    is_empty: bool,
    urls: Vec<String>,
}

impl<'de> Deserialize<'de> for ListedHubs {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct ListVisitor;

        impl<'de> Visitor<'de> for ListVisitor {
            type Value = ListedHubs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of hubs")
            }

            fn visit_seq<S: SeqAccess<'de>>(
                self,
                mut elements: S,
            ) -> Result<Self::Value, S::Error> {
                let mut hubs = ListedHubs {
                    is_empty: true,
                    urls: Vec::new(),
                };
                while let Some(element) = elements.next_element::<&RawValue>()? {
                    hubs.is_empty = false;
                    if let Ok(ListedHub { protocol, url }) = serde_json::from_str(element.get())
                        && protocol.eq_ignore_ascii_case(PROTOCOL)
                    {
                        hubs.urls.push(url);
                    }
                }
                Ok(hubs)
            }
        }

        input.deserialize_seq(ListVisitor)
    }
}

#[cfg(test)]
mod tests;
