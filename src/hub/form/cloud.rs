//! A registration of rssCloud (`pleaseNotify`), from its form to a value (LEGACY C-4); not whether
//! its feeds are ours.

use super::{
    CALLBACK_BYTES_MAX, FORM_BYTES_MAX, Form, RefusedForm, TOPICS_MAX, absolute, bad, check_topic,
};
use crate::edge::{fields::media_type, xml_rpc::XmlRpcCall};
use std::net::{IpAddr, Ipv6Addr};
use url::Host;

/// A request to be told when feeds change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::hub) struct CloudRequest {
    /// The URL that is told.
    pub(in crate::hub) url: String,
    /// True where the request names the host, so that anybody's could be named.
    pub(in crate::hub) is_challenged: bool,
    /// The URLs of the feeds, as spelt.
    pub(in crate::hub) feeds: Vec<String>,
    /// The method that is called there; `None` for a form that is posted.
    pub(in crate::hub) procedure: Option<String>,
}

impl CloudRequest {
    /// Reads a form that came from an address. Without a domain that is the host of the listener.
    pub(in crate::hub) fn parse(
        content_type: Option<&str>,
        body: &[u8],
        client: Option<IpAddr>,
    ) -> Result<Self, RefusedForm> {
        let form = if is_call(content_type) {
            called(body)?
        } else {
            Form::read(content_type, body)?
        };
        let protocol = form
            .filled("protocol")?
            .ok_or(RefusedForm::Missing("protocol"))?;
        let scheme = match protocol {
            "http-post" | "xml-rpc" => "http",
            "https-post" => "https",
            _ => {
                return Err(bad(
                    "protocol",
                    "must be http-post, https-post or xml-rpc. This hub does not speak SOAP",
                ));
            }
        };
        let port = form.filled("port")?.ok_or(RefusedForm::Missing("port"))?;
        let port = port.parse::<u16>().ok().filter(|port| *port > 0);
        let port = port.ok_or(bad("port", "must be a number from 1 to 65535"))?;
        let path = form.filled("path")?.ok_or(RefusedForm::Missing("path"))?;
        let domain = form.filled("domain")?;
        let host = match (domain, client) {
            (Some(domain), _) => {
                host(domain).ok_or(bad("domain", "must be the name or address of a host"))?
            }
            (None, Some(client)) => match client.to_canonical() {
                IpAddr::V4(v4) => Host::Ipv4(v4),
                IpAddr::V6(v6) => Host::Ipv6(v6),
            },
            (None, None) => {
                return Err(bad(
                    "domain",
                    "is missing, and this hub does not see your address. Send `domain`",
                ));
            }
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let url = format!("{scheme}://{host}:{port}{slash}{path}");
        if url.len() > CALLBACK_BYTES_MAX {
            return Err(bad("path", "is too long. Its URL has 2048 bytes at most"));
        }
        absolute("path", &url)?;
        if url.parse::<http::Uri>().is_err() {
            return Err(bad("path", "contains characters that a URL cannot hold"));
        }
        let procedure = match form.filled("notifyProcedure")? {
            _ if protocol != "xml-rpc" => None,
            Some(name) if name.len() > PROCEDURE_BYTES_MAX => {
                return Err(bad("notifyProcedure", "is longer than 255 bytes"));
            }
            Some(name) => Some(name.to_owned()),
            None => return Err(RefusedForm::Missing("notifyProcedure")),
        };
        Ok(Self {
            url,
            // A method is called to try it, and says by its answer that it knows the call.
            is_challenged: domain.is_some() && procedure.is_none(),
            procedure,
            feeds: form.numbered_urls()?,
        })
    }
}

/// The longest name of a method that is called, bytes.
const PROCEDURE_BYTES_MAX: usize = 255;
/// The method that registers a listener.
const METHOD: &str = "rssCloud.pleaseNotify";

/// True for a registration by a call of XML-RPC.
pub(in crate::hub) fn is_call(content_type: Option<&str>) -> bool {
    let media_type = media_type(content_type.unwrap_or_default());
    ["text/xml", "application/xml"]
        .iter()
        .any(|xml| media_type.eq_ignore_ascii_case(xml))
}

/// The form that a call stands for: procedure, port, path, protocol, a list of URLs, and the domain.
fn called(body: &[u8]) -> Result<Form, RefusedForm> {
    if body.len() > FORM_BYTES_MAX {
        return Err(RefusedForm::TooLarge);
    }
    let call = XmlRpcCall::read(body).map_err(|error| RefusedForm::NoCall(error.to_string()))?;
    if call.method != METHOD {
        return Err(RefusedForm::NoCall(format!("call {METHOD}")));
    }
    let names = ["notifyProcedure", "port", "path", "protocol", "", "domain"];
    let mut pairs = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let text = call.parameters.get(at).filter(|text| !text.is_empty());
        let value = text.or(call.numbers.get(at)).cloned().unwrap_or_default();
        if name.is_empty() {
            let listed = call.lists.get(at).into_iter().flatten().cloned();
            let urls = text.cloned().into_iter().chain(listed);
            pairs.extend(
                urls.zip(1..)
                    .map(|(url, no): (_, u32)| (format!("url{no}"), url)),
            );
        } else if !value.is_empty() {
            pairs.push((name.to_owned(), value));
        }
    }
    Ok(Form(pairs))
}

impl Form {
    /// The values of `url1`, `url2` and so on, in the order of their numbers.
    fn numbered_urls(&self) -> Result<Vec<String>, RefusedForm> {
        const NAME: &str = "url1";
        let numbered = self.0.iter().filter_map(|(name, value)| {
            let number = name.strip_prefix("url")?.parse::<u32>().ok()?;
            (!value.is_empty()).then_some((number, value))
        });
        let mut numbered: Vec<(u32, &String)> = numbered.collect();
        numbered.sort_by_key(|(number, _)| *number);
        if numbered.is_empty() {
            return Err(RefusedForm::Missing(NAME));
        }
        if numbered.len() > TOPICS_MAX {
            return Err(bad(NAME, "and the other urls are given more than 20 times"));
        }
        for (_, url) in &numbered {
            check_topic(NAME, url)?;
        }
        Ok(numbered.into_iter().map(|(_, url)| url.clone()).collect())
    }
}

/// The host that a domain names, with or without the brackets of an address of version 6.
fn host(domain: &str) -> Option<Host> {
    domain
        .parse::<Ipv6Addr>()
        .map(Host::Ipv6)
        .ok()
        .or_else(|| Host::parse(domain).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::form_urlencoded;

    const FORM: Option<&str> = Some("application/x-www-form-urlencoded");
    const USUAL: [(&str, &str); 5] = [
        ("domain", "r.example"),
        ("port", "5337"),
        ("path", "/cb?k=1"),
        ("protocol", "http-post"),
        ("url1", "http://b.example/f"),
    ];

    fn parsed(changed: &[(&str, &str)]) -> Result<CloudRequest, RefusedForm> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        if changed.iter().all(|(name, _)| *name != "notifyProcedure") {
            form.append_pair("notifyProcedure", "");
        }
        form.extend_pairs(
            USUAL
                .iter()
                .filter(|(name, _)| changed.iter().all(|(other, _)| other != name)),
        );
        form.extend_pairs(changed);
        CloudRequest::parse(FORM, form.finish().as_bytes(), Some([192, 0, 2, 7].into()))
    }

    #[test]
    fn a_listener_is_at_the_host_that_it_names_or_from_which_it_comes() {
        let url = |changed: &[(&str, &str)]| {
            parsed(changed).map(|asked| (asked.url, asked.is_challenged))
        };
        assert_eq!(
            url(&[]),
            Ok(("http://r.example:5337/cb?k=1".to_owned(), true))
        );
        assert_eq!(
            url(&[("domain", "")]),
            Ok(("http://192.0.2.7:5337/cb?k=1".to_owned(), false))
        );
        let secure = [
            ("protocol", "https-post"),
            ("path", "cb"),
            ("domain", "2001:db8::1"),
        ];
        assert_eq!(
            url(&secure),
            Ok(("https://[2001:db8::1]:5337/cb".to_owned(), true))
        );
        let nobody = CloudRequest::parse(
            FORM,
            b"protocol=http-post&port=80&path=/&url1=http://b/",
            None,
        );
        assert!(
            matches!(nobody, Err(RefusedForm::Bad { name: "domain", .. })),
            "{nobody:?}"
        );
    }

    #[test]
    fn feeds_are_taken_in_the_order_of_their_numbers() {
        let asked = parsed(&[
            ("url10", "http://b/10"),
            ("url2", "http://b/2"),
            ("urls", "x"),
            ("url3", ""),
        ]);
        assert_eq!(
            asked.unwrap().feeds,
            ["http://b.example/f", "http://b/2", "http://b/10"]
        );
        let numbered: Vec<(String, &str)> = (1..=21)
            .map(|no| (format!("url{no}"), "http://b/"))
            .collect();
        let many: Vec<(&str, &str)> = numbered.iter().map(|(name, url)| (&**name, *url)).collect();
        assert!(matches!(
            parsed(&many),
            Err(RefusedForm::Bad { name: "url1", .. })
        ));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        let check = |name: &'static str, value: &str| match parsed(&[(name, value)]) {
            Err(RefusedForm::Bad { name: told, .. } | RefusedForm::Missing(told)) => {
                assert_eq!(told, name)
            }
            other => panic!("{name}={value}: {other:?}"),
        };
        for value in ["", "xmlrpc", "soap", "HTTP-POST", "http-get"] {
            check("protocol", value);
        }
        for value in ["", "0", "65536", "-1", "80a"] {
            check("port", value);
        }
        for value in ["a b", "a/b", "u@h", "a:80", "[::1", "a#b", "a?b", "%00"] {
            check("domain", value);
        }
        for value in [
            "",
            "/a b",
            "/a#b",
            "/a\r\nX: y",
            &format!("/{}", "a".repeat(2048)),
        ] {
            check("path", value);
        }
        for value in ["", "b.example/f", "ftp://b/", "http://b/#x"] {
            check("url1", value);
        }
        let soap = parsed(&[("protocol", "soap")]).unwrap_err().to_string();
        assert!(soap.contains("does not speak SOAP"), "{soap}");
        let unnamed = parsed(&[("protocol", "xml-rpc")]);
        assert_eq!(unnamed, Err(RefusedForm::Missing("notifyProcedure")));
        let long = "a".repeat(256);
        let long = parsed(&[("protocol", "xml-rpc"), ("notifyProcedure", &long)]);
        assert!(matches!(
            long,
            Err(RefusedForm::Bad {
                name: "notifyProcedure",
                ..
            })
        ));
        for bad in [
            "<methodCall/>",
            "",
            "<methodCall><methodName>rssCloud.ping</methodName></methodCall>",
        ] {
            let call = CloudRequest::parse(Some("text/xml"), bad.as_bytes(), None);
            assert!(matches!(call, Err(RefusedForm::NoCall(_))), "{bad}");
        }
    }

    #[test]
    fn a_call_registers_as_a_form_does() {
        let text = |value: &str| format!("<param><value>{value}</value></param>");
        let list = "<array><data><value>http://b.example/f</value><value>http://b.example/g</value></data></array>";
        let params = [
            text("river.told"),
            text("<i4>5337</i4>"),
            text("/RPC2"),
            text("xml-rpc"),
            text(list),
            text("r.example"),
        ]
        .concat();
        let call = format!(
            "<methodCall><methodName>rssCloud.pleaseNotify</methodName><params>{params}</params></methodCall>"
        );
        let asked = CloudRequest::parse(Some("text/xml; charset=utf-8"), call.as_bytes(), None);
        assert_eq!(
            asked,
            Ok(CloudRequest {
                url: "http://r.example:5337/RPC2".into(),
                is_challenged: false,
                feeds: vec!["http://b.example/f".into(), "http://b.example/g".into()],
                procedure: Some("river.told".into()),
            })
        );
    }
}
