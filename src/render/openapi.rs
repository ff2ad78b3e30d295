//! The description of our HTTP side as an OpenAPI 3.1 document: a file, which the tests here hold
//! against the tables that the server works by, and those of `serve` against its answers; not of
//! the pages, which `about` has a schema for.

use super::urls::Site;
use serde_json::{Value, json};

/// The media type of the document.
pub const CONTENT_TYPE: &str = "application/json; charset=utf-8";

/// The document, but for our version and address.
const FILE: &str = include_str!("openapi.json");

/// The document. It is the same for all feeds.
pub fn document(site: &Site) -> Vec<u8> {
    let mut document: Value = serde_json::from_str(FILE).expect("tests read the file");
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    document["servers"] = json!([{ "url": site.root() }]);
    serde_json::to_vec_pretty(&document).expect("strings and numbers always serialize into memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        feed::{
            filter::{Filter, VALUE_BYTES_MAX},
            order::Order,
        },
        render::{
            document::Audience,
            event_stream, jsonp,
            representation::Representation,
            urls::{ClassicQuery, LIST_WORDS_BYTES_MAX, Query},
        },
    };
    use std::collections::BTreeSet;

    const VALIDATORS: [&str; 3] = ["if-none-match", "if-modified-since", "a-im"];

    fn file() -> Value {
        serde_json::from_str(FILE).unwrap()
    }

    fn keys(object: &Value) -> BTreeSet<&str> {
        let object = object.as_object().unwrap();
        object.keys().map(String::as_str).collect()
    }

    /// The names in references, such as those of parameters.
    fn referred(references: &Value) -> Vec<&str> {
        let references = references.as_array().unwrap().iter();
        references
            .filter_map(|one| one["$ref"].as_str()?.rsplit('/').next())
            .collect()
    }

    /// Reading a path takes these parameters and gives these media types, with HEAD as with GET.
    #[track_caller]
    fn check(path: &str, parameters: &[&str], media_types: &[&str]) {
        let file = file();
        let operations = &file["paths"][path];
        assert!(operations.is_object(), "{path} is not described");
        let (get, head) = (&operations["get"], &operations["head"]);
        assert_eq!(referred(&get["parameters"]), parameters, "{path}");
        let wanted: BTreeSet<&str> = media_types.iter().copied().collect();
        assert_eq!(keys(&get["responses"]["200"]["content"]), wanted, "{path}");
        let changed = &get["responses"]["226"]["content"];
        assert!(changed.is_null() || keys(changed) == wanted, "{path}");
        assert_eq!(
            (&get["parameters"], &get["responses"]),
            (&head["parameters"], &head["responses"]),
            "{path}"
        );
        let summary = format!("{} Its headers alone.", get["summary"].as_str().unwrap());
        assert_eq!(head["summary"], summary, "{path}");
    }

    #[test]
    fn every_form_is_described_with_its_parameters_and_media_types_and_no_other() {
        let mut paths: BTreeSet<String> = [
            "/feeds",
            "/feeds.opml",
            "/feeds/{name}",
            "/feeds/{name}.events",
            "/feeds/{name}.opml",
            "/feeds/{name}/about",
            "/feeds/{name}/hub",
            "/hub",
            "/openapi.json",
        ]
        .map(str::to_owned)
        .into();
        let query: Vec<_> = Query::names().collect();
        let page = [&["name"], &query[..], &VALIDATORS].concat();
        let own = ClassicQuery::names().map(|name| match name {
            "deleted" => "classic-deleted",
            name => name,
        });
        let own: Vec<_> = own.collect();
        let negotiated = [&["name"], &query[..], &["refresh"], &VALIDATORS].concat();
        let classic = [&["name"], &own[..], &VALIDATORS].concat();
        for representation in Representation::all() {
            let (suffix, media) = (representation.suffix(), representation.content_type());
            // With `callback` every form is a script.
            let media_types = [media, jsonp::CONTENT_TYPE];
            let path = if representation.is_classic() {
                let archive = format!("/feeds/{{name}}/archive/{{archive}}.{suffix}");
                check(&archive, &["name", "archive", "if-none-match"], &[media]);
                paths.insert(archive);
                let path = format!("/feeds/{{name}}/classic.{suffix}");
                check(&path, &classic, &media_types);
                path
            } else {
                let path = format!("/feeds/{{name}}.{suffix}");
                check(&path, &page, &media_types);
                path
            };
            let summary = file()["paths"][&path]["get"]["summary"].to_string();
            assert!(summary.contains(representation.syntax_title()), "{summary}");
            paths.insert(path);
        }
        let all = Representation::of(Audience::Full).map(Representation::content_type);
        let others = [jsonp::CONTENT_TYPE, event_stream::CONTENT_TYPE];
        let all: Vec<_> = all.chain(others).collect();
        check(
            "/feeds/{name}",
            &[&negotiated[..], &["last-event-id"]].concat(),
            &all,
        );
        let events = ["name", "since", "event-order", "timeout", "last-event-id"];
        let events: Vec<_> = events.into_iter().chain(Filter::names()).collect();
        check(
            "/feeds/{name}.events",
            &events,
            &[event_stream::CONTENT_TYPE],
        );
        assert_eq!(
            keys(&file()["paths"]),
            paths.iter().map(String::as_str).collect()
        );
    }

    #[test]
    fn orders_and_limits_are_those_of_the_code() {
        let file = file();
        let schema = |key: &str| &file["components"]["parameters"][key]["schema"];
        let orders = Order::ALL.map(Order::name);
        assert_eq!(schema("order")["enum"], json!(orders));
        let events = Order::ALL
            .into_iter()
            .filter(|order| order.is_to_sync_by() && !order.reverse);
        let events: Vec<_> = events.map(Order::name).collect();
        assert_eq!(schema("event-order")["enum"], json!(events));
        for key in ["q", "author", "category"] {
            assert_eq!(schema(key)["maxLength"], VALUE_BYTES_MAX, "{key}");
        }
        assert_eq!(schema("words")["maxLength"], LIST_WORDS_BYTES_MAX);
    }

    #[test]
    fn what_is_referred_to_is_there_and_what_is_there_is_referred_to() {
        let file = file();
        for kind in ["parameters", "responses", "schemas"] {
            for name in keys(&file["components"][kind]) {
                let reference = format!("\"#/components/{kind}/{name}\"");
                // The status of a method that is refused belongs to no operation.
                let is_used = FILE.contains(&reference) || name == "405";
                assert!(is_used, "{reference}");
            }
        }
        for reference in FILE.split("\"$ref\": \"#").skip(1) {
            let reference = reference.split('"').next().unwrap();
            assert!(file.pointer(reference).is_some(), "{reference}");
        }
    }

    #[test]
    fn a_document_has_our_version_and_the_address_of_its_site() {
        let site = Site::new(&"http://h.example/x".parse().unwrap(), "");
        let document: Value = serde_json::from_slice(&document(&site)).unwrap();
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(document["servers"], json!([{ "url": site.root() }]));
        assert_eq!(document["paths"], file()["paths"]);
    }
}
