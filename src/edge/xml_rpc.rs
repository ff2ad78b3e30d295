//! XML-RPC, as far as pings and rssCloud need it: calls with the texts, numbers and lists among
//! their parameters, and answers; not what they mean.

use everfeed_adapters::text::entities::{self, Resolved};
use quick_xml::{Reader, escape::escape, events::Event};
use thiserror::Error;

/// Elements within each other.
const DEPTH_MAX: usize = 16;
/// Parameters of a call.
const PARAMETERS_MAX: usize = 16;

/// XML-RPC: no such method, or a call that cannot be read.
pub(crate) const NO_METHOD: i32 = -32601;
pub(crate) const NOT_WELL_FORMED: i32 = -32700;
/// Members of a list.
const MEMBERS_MAX: usize = 64;

/// A call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct XmlRpcCall {
    pub(crate) method: String,
    /// Texts of its parameters in their order; that of one which is no text is empty.
    pub(crate) parameters: Vec<String>,
    /// The number that each of them is, as it was spelt; empty for others.
    pub(crate) numbers: Vec<String>,
    /// The texts of each of them that is a list.
    pub(crate) lists: Vec<Vec<String>>,
}

/// A call that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum BadXmlRpc {
    #[error("this is no XML-RPC call")]
    NoCall,
    #[error("a call has no document type and declares no entities")]
    DocumentType,
    #[error(
        "a call has {PARAMETERS_MAX} parameters at most, in {DEPTH_MAX} elements within each other"
    )]
    TooLarge,
}

impl XmlRpcCall {
    /// Reads a call. Nothing in it refers to anything outside, and no entity is expanded but those
    /// of XML itself.
    pub(crate) fn read(body: &[u8]) -> Result<Self, BadXmlRpc> {
        let text = match std::str::from_utf8(body) {
            Ok(text) => text.to_owned(),
            // Old pings are in the encoding of their blog, whose addresses are ASCII.
            Err(_) => body.iter().copied().map(char::from).collect(),
        };
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        let mut call = Self::default();
        let mut path: Vec<String> = Vec::new();
        loop {
            match reader.read_event().map_err(|_| BadXmlRpc::NoCall)? {
                Event::Start(element) => {
                    if path.len() >= DEPTH_MAX {
                        return Err(BadXmlRpc::TooLarge);
                    }
                    path.push(element.local_name().as_ref().to_owned());
                    call.begin(&path)?;
                }
                Event::Empty(element) => {
                    path.push(element.local_name().as_ref().to_owned());
                    call.begin(&path)?;
                    path.pop();
                }
                Event::End(_) => {
                    path.pop();
                }
                Event::Text(text) => call.take(&path, &text.xml10_content()),
                Event::CData(text) => call.take(&path, &text.xml10_content()),
                Event::GeneralRef(reference) => match entities::resolve(&reference) {
                    Some(Resolved::Character(c)) => call.take(&path, c.encode_utf8(&mut [0; 4])),
                    Some(Resolved::Characters(characters)) => call.take(&path, characters),
                    Some(Resolved::Nothing) => {}
                    None => return Err(BadXmlRpc::DocumentType),
                },
                Event::DocType(_) => return Err(BadXmlRpc::DocumentType),
                Event::Eof => break,
                _ => {}
            }
        }
        call.method = call.method.trim().to_owned();
        let members = call.lists.iter_mut().flatten();
        for text in call
            .parameters
            .iter_mut()
            .chain(&mut call.numbers)
            .chain(members)
        {
            *text = text.trim().to_owned();
        }
        if call.method.is_empty() || !path.is_empty() {
            Err(BadXmlRpc::NoCall)
        } else {
            Ok(call)
        }
    }

    fn begin(&mut self, path: &[String]) -> Result<(), BadXmlRpc> {
        if is_at(path, &["methodCall", "params", "param"]) {
            if self.parameters.len() == PARAMETERS_MAX {
                return Err(BadXmlRpc::TooLarge);
            }
            self.parameters.push(String::new());
            self.numbers.push(String::new());
            self.lists.push(Vec::new());
        }
        if is_at(path, LISTED)
            && let Some(list) = self.lists.last_mut()
        {
            if list.len() == MEMBERS_MAX {
                return Err(BadXmlRpc::TooLarge);
            }
            list.push(String::new());
        }
        Ok(())
    }

    /// A value without a type is a text.
    fn take(&mut self, path: &[String], text: &str) {
        if is_at(path, &["methodCall", "methodName"]) {
            self.method.push_str(text);
        } else if let Some(last) = self.parameters.last_mut() {
            let is_typed = is_at(path, &["methodCall", "params", "param", "value", "string"]);
            let is_bare = is_at(path, &["methodCall", "params", "param", "value"]);
            if is_typed || (is_bare && !text.trim().is_empty()) {
                last.push_str(text);
            }
            let is_number = ["int", "i4"]
                .iter()
                .any(|name| is_at(path, &["methodCall", "params", "param", "value", name]));
            if is_number && let Some(number) = self.numbers.last_mut() {
                number.push_str(text);
            }
            let is_member = path.strip_suffix(&["string".to_owned()]).unwrap_or(path);
            if is_at(is_member, LISTED)
                && let Some(member) = self.lists.last_mut().and_then(|list| list.last_mut())
            {
                member.push_str(text);
            }
        }
    }
}

/// The place of the values of a list.
const LISTED: &[&str] = &[
    "methodCall",
    "params",
    "param",
    "value",
    "array",
    "data",
    "value",
];

fn is_at(path: &[String], names: &[&str]) -> bool {
    path.len() == names.len() && path.iter().zip(names).all(|(step, name)| step == name)
}

/// The answer of weblogUpdates: whether there was an error, and a line for people (LEGACY C-3).
pub(crate) fn ping_answer(is_error: bool, message: &str) -> String {
    let error = format!("<boolean>{}</boolean>", u8::from(is_error));
    let error = member("flerror", &error);
    let message = member("message", &string(message));
    format!(
        "<?xml version=\"1.0\"?>\n<methodResponse><params><param><value><struct>{error}{message}</struct></value></param></params></methodResponse>\n"
    )
}

/// The answer of a method that did what was asked.
pub(crate) fn done_answer() -> String {
    "<?xml version=\"1.0\"?>\n<methodResponse><params><param><value><boolean>1</boolean></value></param></params></methodResponse>\n".to_owned()
}

/// A call with one text.
pub(crate) fn call(method: &str, text: &str) -> String {
    let (method, text) = (escape(method), string(text));
    format!(
        "<?xml version=\"1.0\"?>\n<methodCall><methodName>{method}</methodName><params><param><value>{text}</value></param></params></methodCall>\n"
    )
}

// Decides: Which answer to a call is a yes?
/// True for the answer of a method that did what was asked: no fault, and not `false`.
pub(crate) fn is_done(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut path: Vec<String> = Vec::new();
    let (mut has_response, mut value) = (false, String::new());
    loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                path.push(element.local_name().as_ref().to_owned());
                has_response |= is_at(&path, &["methodResponse", "params", "param"]);
                if path.len() > DEPTH_MAX || is_at(&path, &["methodResponse", "fault"]) {
                    return false;
                }
            }
            Ok(Event::End(_)) => drop(path.pop()),
            Ok(Event::Text(text)) if path.last().is_some_and(|name| name == "boolean") => {
                value.push_str(&text.xml10_content());
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    has_response && path.is_empty() && value.trim() != "0"
}

fn member(name: &str, value: &str) -> String {
    format!("<member><name>{name}</name><value>{value}</value></member>")
}

fn string(text: &str) -> String {
    format!("<string>{}</string>", escape(text))
}

/// The answer to a call that cannot be read, or whose method is not there.
pub(crate) fn fault_answer(code: i32, message: &str) -> String {
    let code = member("faultCode", &format!("<int>{code}</int>"));
    let message = member("faultString", &string(message));
    format!(
        "<?xml version=\"1.0\"?>\n<methodResponse><fault><value><struct>{code}{message}</struct></value></fault></methodResponse>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: &str) -> Result<Vec<String>, BadXmlRpc> {
        let text = format!(
            "<?xml version=\"1.0\"?><methodCall>\n<methodName> weblogUpdates.ping </methodName>\n<params>{params}</params></methodCall>"
        );
        XmlRpcCall::read(text.as_bytes()).map(|call| {
            assert_eq!(call.method, "weblogUpdates.ping");
            call.parameters
        })
    }

    #[test]
    fn texts_of_parameters_are_read_typed_or_not() {
        let params = "<param><value>Joe &amp; I &#233;</value></param> <param>\n <value>\n<string>http://x/?a=1&amp;b=2</string></value></param>\
                      <param><value><i4>7</i4></value></param><param><value><![CDATA[<a>]]></value></param><param/>";
        assert_eq!(
            read(params).unwrap(),
            ["Joe & I \u{e9}", "http://x/?a=1&b=2", "", "<a>", ""]
        );
        assert_eq!(read("").unwrap(), [""; 0]);
        let latin = b"<methodCall><methodName>m</methodName><params><param><value>caf\xe9</value></param></params></methodCall>";
        assert_eq!(XmlRpcCall::read(latin).unwrap().parameters, ["caf\u{e9}"]);
    }

    #[test]
    fn nothing_is_expanded_and_everything_has_a_limit() {
        let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><methodCall><methodName>&b;</methodName></methodCall>";
        assert_eq!(
            XmlRpcCall::read(bomb.as_bytes()),
            Err(BadXmlRpc::DocumentType)
        );
        assert_eq!(
            read("<param><value>&file;</value></param>"),
            Err(BadXmlRpc::DocumentType)
        );
        assert_eq!(
            read(&"<param><value/></param>".repeat(17)),
            Err(BadXmlRpc::TooLarge)
        );
        assert_eq!(read(&"<a>".repeat(1000)), Err(BadXmlRpc::TooLarge));
        for bad in [
            "",
            "x",
            "<methodCall/>",
            "<methodCall><methodName>x",
            "<a></b>",
            "{}",
        ] {
            assert_eq!(
                XmlRpcCall::read(bad.as_bytes()),
                Err(BadXmlRpc::NoCall),
                "{bad}"
            );
        }
    }

    #[test]
    fn answers_are_read_back_as_they_were_meant() {
        assert!(
            ping_answer(false, "a < b").contains("<boolean>0</boolean>")
                && ping_answer(true, "<").contains("&lt;")
        );
        assert!(fault_answer(-32601, "no").contains("<int>-32601</int>"));
    }

    #[test]
    fn numbers_and_lists_are_read_beside_the_texts() {
        let params = "<param><value>notify</value></param><param><value><i4>5337</i4></value></param><param><value><array><data>\
                      <value>http://x/1</value><value><string>http://x/2</string></value></data></array></value></param>";
        let text =
            format!("<methodCall><methodName>m</methodName><params>{params}</params></methodCall>");
        let call = XmlRpcCall::read(text.as_bytes()).unwrap();
        assert_eq!(call.parameters, ["notify", "", ""]);
        assert_eq!(call.numbers, ["", "5337", ""]);
        assert_eq!(call.lists[2], ["http://x/1", "http://x/2"]);
        let many = "<value>a</value>".repeat(65);
        let text = format!(
            "<methodCall><methodName>m</methodName><params><param><value><array><data>{many}</data></array></value></param></params></methodCall>"
        );
        assert_eq!(XmlRpcCall::read(text.as_bytes()), Err(BadXmlRpc::TooLarge));
    }

    #[test]
    fn a_yes_is_an_answer_without_a_fault_that_is_not_false() {
        let value = |value: &str| {
            format!(
                "<methodResponse><params><param><value>{value}</value></param></params></methodResponse>"
            )
        };
        for yes in [
            done_answer(),
            value("<boolean>1</boolean>"),
            value("ok"),
            value(""),
        ] {
            assert!(is_done(yes.as_bytes()), "{yes}");
        }
        for no in [
            fault_answer(4, "no"),
            value("<boolean>0</boolean>"),
            call("m", "x"),
            "<methodResponse><params><param>".to_owned(),
            "ok".to_owned(),
            String::new(),
        ] {
            assert!(!is_done(no.as_bytes()), "{no}");
        }
        let told = call("a<b", "http://x/?a=1&b=2");
        let read = XmlRpcCall::read(told.as_bytes()).unwrap();
        assert_eq!(
            (&*read.method, &*read.parameters[0]),
            ("a<b", "http://x/?a=1&b=2")
        );
    }
}
