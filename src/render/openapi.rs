//! The description of our HTTP side as an OpenAPI 3.1 document, made of the tables that the server
//! itself works by; not of the pages, which `about` has a schema for.

use super::{
    document::Audience,
    event_stream, jsonp, list,
    representation::Representation,
    urls::{ClassicQuery, LIST_WORDS_BYTES_MAX, Query, Site},
};
use crate::feed::{
    filter::{Filter, VALUE_BYTES_MAX},
    order::Order,
};
use serde_json::{Map, Value, json};

/// The media type of the document.
pub const CONTENT_TYPE: &str = "application/json; charset=utf-8";

/// The media types of an error: a line of text, or a problem (RFC 9457).
const ERRORS: [&str; 2] = ["text/plain; charset=utf-8", "application/problem+json"];

/// The document. It is the same for all feeds.
pub fn document(site: &Site) -> Vec<u8> {
    let mut paths = Map::new();
    paths.insert("/feeds".into(), feeds());
    paths.insert("/feeds.opml".into(), outline());
    paths.insert("/feeds/{name}".into(), negotiated());
    for representation in Representation::all() {
        let is_classic = representation.is_classic();
        let path = if is_classic {
            "/feeds/{name}/classic."
        } else {
            "/feeds/{name}."
        };
        let page = if is_classic {
            classic(representation)
        } else {
            page(representation)
        };
        paths.insert(format!("{path}{}", representation.suffix()), page);
        if is_classic {
            let path = format!(
                "/feeds/{{name}}/archive/{{archive}}.{}",
                representation.suffix()
            );
            paths.insert(path, archive(representation));
        }
    }
    paths.insert("/feeds/{name}.events".into(), events());
    paths.insert("/feeds/{name}.opml".into(), outline_of());
    paths.insert("/feeds/{name}/about".into(), about());
    paths.insert("/hub".into(), hub(&[]));
    paths.insert("/feeds/{name}/hub".into(), hub(&["name"]));
    paths.insert("/openapi.json".into(), own());
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "everfeed",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Feeds with a memory: pull, long poll, server-sent events and WebSub.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": site.root() }],
        "security": [{}, { "basic": [] }, { "bearer": [] }],
        "paths": paths,
        "components": {
            "parameters": parameters(),
            "responses": errors(),
            "schemas": { "Problem": problem() },
            "securitySchemes": {
                "basic": { "type": "http", "scheme": "basic" },
                "bearer": { "type": "http", "scheme": "bearer" },
            },
        },
    });
    serde_json::to_vec_pretty(&document).expect("strings and numbers always serialize into memory")
}

/// A position: a cursor is anything, since one that cannot be read is no mistake.
const POSITION: &str = r"^$|^cursor:|^id:.|^time:([0-9]{1,11}(\.[0-9]{1,6})?|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([Tt ].*)?)$";
/// The name of a function; words of the language are none, and an index has four digits at most.
const FUNCTION: &str = r"^$|^[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*|\[[0-9]{1,4}\])*$";
/// Text without control characters, and without the mark of bytes that were no text.
const TEXT: &str = r"^[^\x00-\x1f\x7f-\x9f\ufffd]*$";
/// A language range (RFC 4647 section 2.1).
const LANGUAGE: &str = "^$|^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$";

/// A description of a parameter of a query: its schema, and its meaning. `None` for one that is not
/// described.
fn query_parameter(name: &str) -> Option<(Value, &'static str)> {
    let orders: Vec<_> = Order::ALL.into_iter().map(Order::name).collect();
    // An empty value is none. Bytes are counted, which are as many as characters at least.
    let text = || json!({ "type": "string", "maxLength": VALUE_BYTES_MAX, "pattern": TEXT });
    let position = |example: &str| json!({ "type": "string", "pattern": POSITION, "examples": ["cursor:", example] });
    Some(match name {
        "since" => (
            position("time:2014-01-01"),
            "Items after this position; `cursor:` is the beginning; `id:` in the orders of first sight.",
        ),
        "until" => (position("time:2030-01-01"), "Items before this position."),
        "max" => (
            json!({ "type": "integer", "minimum": 1 }),
            "Items at most; larger numbers are clamped.",
        ),
        "order" => (
            json!({ "type": "string", "enum": orders }),
            "The order of the items.",
        ),
        "timeout" => (
            json!({ "type": "integer", "minimum": 0 }),
            "Seconds for which an empty answer is held until there is something.",
        ),
        "callback" => (
            json!({ "type": "string", "maxLength": 128, "pattern": FUNCTION }),
            "The name of a function: the answer is a script that calls it (JSON-P).",
        ),
        "q" => (
            text(),
            "Items with all of these words, or phrases in quotes, in title or text; a letter or a digit at least.",
        ),
        "author" => (text(), "Items of this author."),
        "category" => (text(), "Items of this category."),
        "deleted" => (
            json!({ "type": "string", "enum": ["", "no", "only"] }),
            "Without, or only, what is deleted.",
        ),
        "has" => (
            json!({ "type": "string", "enum": ["", "enclosure"] }),
            "Items with a file beside them.",
        ),
        "lang" => (
            json!({ "type": "string", "maxLength": 35, "pattern": LANGUAGE }),
            "Items in this language.",
        ),
        "after" => (
            json!({ "type": "string", "pattern": TEXT }),
            "Feeds behind this name.",
        ),
        _ => return None,
    })
}

/// The parameters, by name.
fn parameters() -> Map<String, Value> {
    let mut all = Map::new();
    let name = json!({
        "name": "name", "in": "path", "required": true, "description": "The name of the feed.",
        "schema": { "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$" },
    });
    all.insert("name".into(), name);
    let archive = json!({
        "name": "archive", "in": "path", "required": true,
        "description": "The name of an archive, as the document before it links to it.",
        "schema": { "type": "string", "pattern": "^[1-9][0-9]{0,19}-[0-9]{1,20}-[0-9]{1,20}$" },
    });
    all.insert("archive".into(), archive);
    let words = json!({
        "name": "q", "in": "query", "description": "Feeds whose name or title holds all of these words.",
        "schema": { "type": "string", "maxLength": LIST_WORDS_BYTES_MAX, "pattern": TEXT },
    });
    all.insert("words".into(), words);
    for key in Query::NAMES.into_iter().chain(["after"]) {
        if let Some((schema, description)) = query_parameter(key) {
            let parameter =
                json!({ "name": key, "in": "query", "description": description, "schema": schema });
            all.insert(key.into(), parameter);
        }
    }
    let live = json!({
        "name": "deleted", "in": "query", "description": "Classic views never show what is deleted.",
        "schema": { "type": "string", "enum": ["", "no"] },
    });
    all.insert("classic-deleted".into(), live);
    let orders = Order::ALL
        .into_iter()
        .filter(|order| order.is_to_sync_by() && !order.reverse);
    let orders: Vec<_> = orders.map(Order::name).collect();
    let event_order = json!({
        "name": "order", "in": "query", "description": "The order of the events: one in which nothing is missed.",
        "schema": { "type": "string", "enum": orders },
    });
    all.insert("event-order".into(), event_order);
    for (key, header, description) in [
        (
            "if-none-match",
            "If-None-Match",
            "Tags of copies that the consumer holds.",
        ),
        (
            "if-modified-since",
            "If-Modified-Since",
            "The date of the copy that the consumer holds.",
        ),
        (
            "a-im",
            "A-IM",
            "`feed`: the consumer takes changed items alone (RFC 3229).",
        ),
        (
            "last-event-id",
            "Last-Event-ID",
            "The cursor behind the last event that was seen; goes before `since`.",
        ),
    ] {
        let parameter = json!({
            "name": header, "in": "header", "description": description, "schema": { "type": "string" },
        });
        all.insert(key.into(), parameter);
    }
    all
}

/// The answers that are errors, by status.
const ERROR_ANSWERS: [(u16, &str); 15] = [
    (400, "The request is wrong; the answer says how."),
    (401, "Credentials are needed, or are not good."),
    (
        403,
        "A password over plain HTTP, or a private feed as a script.",
    ),
    (404, "There is no such feed, or no item of that id."),
    (
        405,
        "The method is not taken here; `Allow` names those that are.",
    ),
    (406, "Nothing that is offered is accepted."),
    (408, "The body of the request did not come in time."),
    (409, "The callback could not be verified."),
    (410, "The feed is not served any more."),
    (
        412,
        "What is here is not what `If-Match` or `If-Unmodified-Since` asks for.",
    ),
    (413, "The body of the request is too large."),
    (414, "The path with its query is too long."),
    (415, "The body of the request is no form."),
    (
        429,
        "Too many requests of one client; `Retry-After` says when to come again.",
    ),
    (503, "Not now; `Retry-After` says when to come again."),
];

fn errors() -> Map<String, Value> {
    let content: Map<String, Value> = ERRORS
        .into_iter()
        .map(|media| {
            let schema = if media.ends_with("json") {
                json!({ "$ref": "#/components/schemas/Problem" })
            } else {
                json!({ "type": "string" })
            };
            (media.to_owned(), json!({ "schema": schema }))
        })
        .collect();
    let answer = |(status, description): (u16, &str)| {
        (
            status.to_string(),
            json!({ "description": description, "content": content }),
        )
    };
    ERROR_ANSWERS.into_iter().map(answer).collect()
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": { "const": "about:blank" },
            "title": { "type": "string" },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "type": "string" },
        },
    })
}

/// A GET, and the HEAD beside it.
fn reading(
    summary: &str,
    parameters: &[&str],
    answers: Map<String, Value>,
    errors: &[u16],
) -> Value {
    let responses = with_errors(answers, errors);
    let operation = |summary: String| json!({ "summary": summary, "parameters": references(parameters), "responses": responses });
    json!({ "get": operation(summary.to_owned()), "head": operation(format!("{summary} Its headers alone.")) })
}

fn references(parameters: &[&str]) -> Vec<Value> {
    parameters
        .iter()
        .map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }))
        .collect()
}

fn with_errors(mut answers: Map<String, Value>, errors: &[u16]) -> Map<String, Value> {
    for status in errors {
        answers.insert(
            status.to_string(),
            json!({ "$ref": format!("#/components/responses/{status}") }),
        );
    }
    answers
}

/// A good answer in any of these media types.
fn good<'a>(
    description: &str,
    media_types: impl IntoIterator<Item = &'a str>,
) -> Map<String, Value> {
    let content: Map<String, Value> = media_types
        .into_iter()
        .map(|media| (media.to_owned(), json!({})))
        .collect();
    let answer = json!({ "description": description, "content": content });
    [("200".to_owned(), answer)].into_iter().collect()
}

/// A page with validators.
fn validated<'a>(
    description: &str,
    media_types: impl IntoIterator<Item = &'a str> + Clone,
) -> Map<String, Value> {
    let mut answers = good(description, media_types.clone());
    answers.insert(
        "304".into(),
        json!({ "description": "The consumer holds it already." }),
    );
    let changed = good(
        "The items that have changed since the state of the consumer (RFC 3229).",
        media_types,
    );
    answers.extend(
        changed
            .into_iter()
            .map(|(_, answer)| ("226".to_owned(), answer)),
    );
    answers
}

const FEED_ERRORS: &[u16] = &[400, 401, 403, 404, 410, 412, 414, 429, 503];
const VALIDATORS: [&str; 3] = ["if-none-match", "if-modified-since", "a-im"];

fn page_parameters() -> Vec<&'static str> {
    ["name"]
        .into_iter()
        .chain(Query::NAMES)
        .chain(VALIDATORS)
        .collect()
}

fn page(representation: Representation) -> Value {
    // With `callback` every form is a script.
    let media = [representation.content_type(), jsonp::CONTENT_TYPE];
    let summary = format!("A page of a feed as {}.", representation.syntax_title());
    reading(
        &summary,
        &page_parameters(),
        validated("A page.", media),
        FEED_ERRORS,
    )
}

fn negotiated() -> Value {
    let media = Representation::of(Audience::Full).map(Representation::content_type);
    let media: Vec<_> = media
        .chain([jsonp::CONTENT_TYPE, event_stream::CONTENT_TYPE])
        .collect();
    let errors: Vec<u16> = FEED_ERRORS.iter().copied().chain([406]).collect();
    let parameters: Vec<_> = page_parameters()
        .into_iter()
        .chain(["last-event-id"])
        .collect();
    reading(
        "A page of a feed, in the form that is accepted.",
        &parameters,
        validated("A page.", media),
        &errors,
    )
}

fn classic(representation: Representation) -> Value {
    let summary = format!(
        "The newest posts, for ordinary readers, as {}.",
        representation.syntax_title()
    );
    let own = ClassicQuery::NAMES.map(|name| {
        if name == "deleted" {
            "classic-deleted"
        } else {
            name
        }
    });
    let parameters: Vec<_> = ["name"].into_iter().chain(own).chain(VALIDATORS).collect();
    let media = [representation.content_type(), jsonp::CONTENT_TYPE];
    reading(
        &summary,
        &parameters,
        validated("The newest posts.", media),
        FEED_ERRORS,
    )
}

/// An archive, which may be kept for ever: it has no delta.
fn archive(representation: Representation) -> Value {
    let summary = format!(
        "Older posts, for ordinary readers, as {}.",
        representation.syntax_title()
    );
    let mut answers = good(
        "Up to a hundred posts (RFC 5005).",
        [representation.content_type()],
    );
    answers.insert(
        "304".into(),
        json!({ "description": "The consumer holds it already." }),
    );
    answers.insert(
        "307".into(),
        json!({ "description": "The present version is at `Location`." }),
    );
    reading(
        &summary,
        &["name", "archive", "if-none-match"],
        answers,
        FEED_ERRORS,
    )
}

fn events() -> Value {
    let answers = good(
        "A stream of events, one an item.",
        [event_stream::CONTENT_TYPE],
    );
    let parameters: Vec<_> = ["name", "since", "event-order", "timeout", "last-event-id"]
        .into_iter()
        .chain(Filter::NAMES)
        .collect();
    reading(
        "The changes of a feed, as they happen.",
        &parameters,
        answers,
        FEED_ERRORS,
    )
}

/// For people, for programs, and for scripts of pages elsewhere.
const DESCRIPTIONS: [&str; 3] = [
    "application/json; charset=utf-8",
    super::html::CONTENT_TYPE,
    jsonp::CONTENT_TYPE,
];

fn feeds() -> Value {
    let mut answers = good(
        "Some of the feeds; `next` leads to those behind them.",
        DESCRIPTIONS,
    );
    answers.insert(
        "304".into(),
        json!({ "description": "The consumer holds it already." }),
    );
    let parameters = [
        "after",
        "max",
        "words",
        "callback",
        "if-none-match",
        "if-modified-since",
    ];
    reading(
        "The feeds.",
        &parameters,
        answers,
        &[400, 401, 403, 412, 414, 429, 503],
    )
}

fn outline() -> Value {
    let mut answers = good("Some of the feeds as OPML 2.0.", [list::OPML_TYPE]);
    answers.insert(
        "304".into(),
        json!({ "description": "The consumer holds it already." }),
    );
    let parameters = [
        "after",
        "max",
        "words",
        "if-none-match",
        "if-modified-since",
    ];
    reading(
        "The feeds, for the import of readers.",
        &parameters,
        answers,
        &[400, 401, 403, 412, 414, 429, 503],
    )
}

fn outline_of() -> Value {
    let mut answers = good(
        "The members of a group as OPML 2.0; of a feed that is none, itself.",
        [list::OPML_TYPE],
    );
    answers.insert(
        "304".into(),
        json!({ "description": "The consumer holds it already." }),
    );
    reading(
        "The feeds of a group, for the import of readers.",
        &["name", "if-none-match"],
        answers,
        FEED_ERRORS,
    )
}

fn about() -> Value {
    let mut answers = good("What the feed is, and how to read it.", DESCRIPTIONS);
    answers.insert(
        "304".into(),
        json!({ "description": "The consumer holds it already." }),
    );
    let parameters = ["name", "callback", "if-none-match", "if-modified-since"];
    reading(
        "The description of a feed.",
        &parameters,
        answers,
        FEED_ERRORS,
    )
}

fn own() -> Value {
    let mut answers = good("This document.", [CONTENT_TYPE]);
    answers.insert(
        "304".into(),
        json!({ "description": "The consumer holds it already." }),
    );
    reading(
        "This document.",
        &["if-none-match", "if-modified-since"],
        answers,
        &[401, 403, 412, 414, 429, 503],
    )
}

fn hub(parameters: &[&str]) -> Value {
    const TEXT: &str = ERRORS[0];
    let told = |status: &str, description: &str| {
        (
            status.to_owned(),
            json!({ "description": description, "content": { TEXT: {} } }),
        )
    };
    let nothing = |status: &str, description: &str| {
        (status.to_owned(), json!({ "description": description }))
    };
    // There is a hub for all feeds, and one for each that there is.
    let of_feed: &[u16] = if parameters.is_empty() {
        &[]
    } else {
        &[404, 410]
    };
    let errors = [&[400, 401, 403, 414, 429, 503], of_feed].concat();
    let mut hub = reading(
        "What the hub is.",
        parameters,
        good("How to subscribe.", [TEXT]),
        &errors,
    );
    let answers = [
        told(
            "202",
            "The request is taken: the callback is asked, or a hint is not needed.",
        ),
        nothing("204", "The feed is looked at."),
    ];
    let errors = [400, 401, 403, 404, 408, 409, 410, 413, 414, 415, 429, 503];
    let form = json!({
        "type": "object",
        "required": ["hub.mode"],
        "properties": {
            "hub.mode": { "type": "string", "enum": ["subscribe", "unsubscribe", "publish"] },
            "hub.topic": { "type": "string", "minLength": 1 },
            "hub.callback": { "type": "string", "minLength": 1 },
            "hub.lease_seconds": { "type": "string" },
            "hub.secret": { "type": "string" },
            "hub.url": { "type": "string", "minLength": 1 },
        },
    });
    hub["post"] = json!({
        "summary": "Subscribes, unsubscribes, or says that a feed has changed (WebSub).",
        "parameters": references(parameters),
        "requestBody": { "required": true, "content": { "application/x-www-form-urlencoded": { "schema": form } } },
        "responses": with_errors(answers.into_iter().collect(), &errors),
    });
    hub
}
