//! The scoring of the corpus: what each `op` of an expectation means. A port of the corpus's own
//! `score.py`, and to be changed only with it.

use everfeed_adapters::text::entities::unescape;
use serde_json::Value;

/// Result of a document's line of neutral form against its expectations, with the checks that
/// failed.
pub(crate) struct Verdict {
    pub(crate) met: bool,
    pub(crate) failed: Vec<String>,
}

/// Scores a line against the `.expect.json` of its document. A document that is broken on purpose
/// and of which nothing is expected may be refused.
pub(crate) fn score(line: &Value, expect: &Value) -> Verdict {
    let checks = expect["expect"]
        .as_array()
        .map_or(&[] as &[Value], Vec::as_slice);
    if line["ok"] != true {
        let excused = expect["wellformed"] != true && checks.is_empty();
        return Verdict {
            met: excused,
            failed: vec![line["error"].to_string()],
        };
    }
    let failed: Vec<_> = checks.iter().filter(|check| !holds(line, check)).collect();
    let told = |check: &&Value| {
        let (path, wanted) = (check["path"].as_str().unwrap(), &check["value"]);
        format!(
            "{path} is {} instead of {wanted}",
            at(line, path).unwrap_or(&Value::Null)
        )
    };
    Verdict {
        met: failed.is_empty(),
        failed: failed.iter().map(told).collect(),
    }
}

fn holds(line: &Value, check: &Value) -> bool {
    let found = at(line, check["path"].as_str().unwrap());
    let value = found.unwrap_or(&Value::Null);
    let wanted = &check["value"];
    match check["op"].as_str().unwrap() {
        "eq" => same(value, wanted),
        "eq_text" => plain(value) == plain(wanted),
        "eq_url" => url(value) == url(wanted),
        "anyof" => wanted
            .as_array()
            .unwrap()
            .iter()
            .any(|wanted| same(value, wanted)),
        "ne" => !same(value, wanted),
        "len" => wanted.as_u64() == Some(length(value)),
        "truthy" => is_truthy(value),
        "falsy" => !is_truthy(value),
        "absent" => found.is_none(),
        "present" => found.is_some(),
        op => panic!("an op that is not known: {op}"),
    }
}

/// The value at a path of keys and places, joined by dots.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Object(fields) => fields.get(step),
        _ => None,
    })
}

/// Equal once strings are trimmed and numbers are text; of an object only the wanted fields count.
fn same(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .filter(|(_, wanted)| !wanted.is_null())
            .all(|(name, wanted)| found.get(name).is_some_and(|found| same(found, wanted))),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(found, wanted)| same(found, wanted))
        }
        (_, Value::Null) => found.is_null(),
        (Value::Bool(_), _) | (_, Value::Bool(_)) => found == wanted,
        (Value::Null, wanted) => wanted
            .as_str()
            .is_some_and(|wanted| wanted.trim().is_empty()),
        (found, wanted) => scalar(found).is_some_and(|found| scalar(wanted) == Some(found)),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => format!("{float:.0}"),
            _ => number.to_string(),
        }),
        _ => None,
    }
}

fn string(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Without tags and references, white space collapsed.
fn plain(value: &Value) -> String {
    let text = string(value).unwrap_or_default();
    let unescaped = unescape(&text);
    let mut bare = String::new();
    let mut rest = unescaped.as_ref();
    while let Some((before, after)) = rest.split_once('<') {
        bare.push_str(before);
        match after.split_once('>') {
            Some((_, after)) => {
                bare.push(' ');
                rest = after;
            }
            // No tag starts here, nor behind it.
            None => {
                bare.push('<');
                rest = after;
            }
        }
    }
    bare.push_str(rest);
    unescape(&bare)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Percent-decoded; the slash that is the whole path is ignored.
fn url(value: &Value) -> Option<String> {
    let text = string(value)?;
    let text = text.trim().replace("&amp;", "&");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let decoded = rest
            .get(1..3)
            .filter(|_| *first == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &rest[3..] } else { after };
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(match text.strip_suffix('/') {
        Some(bare) if text.matches('/').count() == 3 => bare.to_owned(),
        _ => text,
    })
}

fn length(value: &Value) -> u64 {
    let length = match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::String(text) => text.chars().count(),
        _ => 0,
    };
    length as u64
}

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        other => length(other) > 0,
    }
}

#[test]
fn the_ops_mean_what_the_corpus_says() {
    use serde_json::json;
    let line = json!({
        "ok": true, "n": 5, "t": " a ", "none": null, "list": [{"x": 1, "y": 2}], "u": "http://e.org/%C3%A9?a&amp;b",
        "html": "<p>a &amp;lt; b</p>\n c", "root": "http://e.org/", "f": false,
    });
    let check = |op: &str, path: &str, value: Value| {
        holds(&line, &json!({ "op": op, "path": path, "value": value }))
    };
    assert!(
        check("eq", "n", json!("5"))
            && check("eq", "t", json!("a"))
            && check("eq", "list.0", json!({"y": "2"}))
    );
    assert!(check("eq", "missing", json!("")) && check("eq", "missing", Value::Null));
    assert!(
        !check("eq", "n", json!(6))
            && !check("eq", "list.0", json!({"z": 1}))
            && !check("eq", "t", json!(""))
    );
    assert!(check("eq_text", "html", json!("a < b c")) && check("eq_text", "missing", json!("")));
    assert!(
        check("eq_url", "u", json!("http://e.org/é?a&b"))
            && check("eq_url", "root", json!("http://e.org"))
    );
    assert!(check("len", "list", json!(1)) && check("len", "missing", json!(0)));
    assert!(check("anyof", "n", json!([4, 5])) && check("ne", "n", json!(4)));
    assert!(
        check("truthy", "n", Value::Null)
            && check("falsy", "f", Value::Null)
            && check("falsy", "x", Value::Null)
    );
    assert!(check("absent", "list.1", Value::Null) && check("present", "none", Value::Null));
}
