//! XML-RPC, as far as pings need it: the method of a call with the texts among its parameters, and
//! answers; not what they mean.

use everfeed_adapters::text::entities::{self, Resolved};
use quick_xml::{Reader, escape::escape, events::Event};
use thiserror::Error;

/// Elements within each other.
const DEPTH_MAX: usize = 16;
/// Parameters of a call.
const PARAMETERS_MAX: usize = 16;

/// A call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct XmlRpcCall {
    pub(super) method: String,
    /// Texts of its parameters in their order; that of one which is no text is empty.
    pub(super) parameters: Vec<String>,
}

/// A call that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum BadXmlRpc {
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
    pub(super) fn read(body: &[u8]) -> Result<Self, BadXmlRpc> {
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
        for parameter in &mut call.parameters {
            *parameter = parameter.trim().to_owned();
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
        }
    }
}

fn is_at(path: &[String], names: &[&str]) -> bool {
    path.len() == names.len() && path.iter().zip(names).all(|(step, name)| step == name)
}

/// The answer of weblogUpdates: whether there was an error, and a line for people (LEGACY C-3).
pub(super) fn ping_answer(is_error: bool, message: &str) -> String {
    let error = format!("<boolean>{}</boolean>", u8::from(is_error));
    let error = member("flerror", &error);
    let message = member("message", &string(message));
    format!(
        "<?xml version=\"1.0\"?>\n<methodResponse><params><param><value><struct>{error}{message}</struct></value></param></params></methodResponse>\n"
    )
}

fn member(name: &str, value: &str) -> String {
    format!("<member><name>{name}</name><value>{value}</value></member>")
}

fn string(text: &str) -> String {
    format!("<string>{}</string>", escape(text))
}

/// The answer to a call that cannot be read, or whose method is not there.
pub(super) fn fault_answer(code: i32, message: &str) -> String {
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
}
