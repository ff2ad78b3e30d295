//! Commands of the operator on subscriptions, and their form as requests to the running process; not
//! what they do.

use http::Method;
use percent_encoding::percent_decode_str;
use url::form_urlencoded;

/// A command on subscriptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriberCommand {
    /// List them.
    List {
        /// Those to this feed.
        feed: Option<String>,
        /// Those whose callbacks are at this host.
        host: Option<String>,
        /// Those after this number.
        after: Option<u64>,
    },
    /// Try the one of this number now.
    Retry(u64),
    /// End the one of this number.
    End(u64),
    /// Forget all whose callbacks are at this host.
    Forget(String),
}

const SUBSCRIBERS: &str = "/subscribers";

/// The mistake in a request that names no command.
const WANTED: &str = "here are GET /subscribers?feed=FEED&host=HOST, POST /subscribers/NUMBER/retry, DELETE /subscribers/NUMBER and DELETE /subscribers?host=HOST";

impl SubscriberCommand {
    /// The request that carries the command: a method, and a path with its query.
    pub fn request(&self) -> (Method, String) {
        match self {
            Self::List { feed, host, after } => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                let after = after.map(|after| after.to_string());
                for (name, value) in [("feed", feed), ("host", host), ("after", &after)] {
                    if let Some(value) = value {
                        query.append_pair(name, value);
                    }
                }
                (Method::GET, format!("{SUBSCRIBERS}?{}", query.finish()))
            }
            Self::Retry(number) => (Method::POST, format!("{SUBSCRIBERS}/{number}/retry")),
            Self::End(number) => (Method::DELETE, format!("{SUBSCRIBERS}/{number}")),
            Self::Forget(host) => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                let query = query.append_pair("host", host).finish();
                (Method::DELETE, format!("{SUBSCRIBERS}?{query}"))
            }
        }
    }

    /// The command of a request; `None` where its path is not about subscriptions, and the mistake
    /// in one that is.
    pub fn read(method: &Method, path: &str, query: &str) -> Option<Result<Self, &'static str>> {
        let rest = path.strip_prefix(SUBSCRIBERS)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        let value = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            let value = pairs.find(|(name, _)| name == wanted)?.1;
            (!value.is_empty()).then(|| value.into_owned())
        };
        let rest = percent_decode_str(rest.trim_start_matches('/')).decode_utf8_lossy();
        let number = |text: &str| {
            text.parse().map_err(
                |_| "give the number of a subscription, as `everfeed subscribers list` prints it",
            )
        };
        Some(match (method.as_str(), &*rest) {
            ("GET" | "HEAD", "") => match value("after").map(|after| after.parse()).transpose() {
                Ok(after) => Ok(Self::List {
                    feed: value("feed"),
                    host: value("host"),
                    after,
                }),
                Err(_) => Err("`after` is the number of a subscription"),
            },
            ("DELETE", "") => match value("host") {
                Some(host) => Ok(Self::Forget(host)),
                None => Err("name the `host` of the subscriptions that are to be forgotten"),
            },
            ("DELETE", text) => number(text).map(Self::End),
            ("POST", text) => match text.strip_suffix("/retry") {
                Some(text) => number(text).map(Self::Retry),
                None => Err(WANTED),
            },
            _ => Err(WANTED),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_read_back_from_its_request() {
        let list = |feed: Option<&str>, host: Option<&str>, after| SubscriberCommand::List {
            feed: feed.map(str::to_owned),
            host: host.map(str::to_owned),
            after,
        };
        for command in [
            list(None, None, None),
            list(Some("a b&c"), Some("reader.example"), Some(7)),
            SubscriberCommand::Retry(17),
            SubscriberCommand::End(17),
            SubscriberCommand::Forget("reader.example".into()),
        ] {
            let (method, target) = command.request();
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
            let read = SubscriberCommand::read(&method, path, query);
            assert_eq!(read, Some(Ok(command)), "{target}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_and_other_paths_are_left_alone() {
        for (method, target, query) in [
            (Method::DELETE, "/subscribers", ""),
            (Method::DELETE, "/subscribers", "host="),
            (Method::DELETE, "/subscribers/x", ""),
            (Method::POST, "/subscribers/1", ""),
            (Method::POST, "/subscribers/x/retry", ""),
            (Method::GET, "/subscribers", "after=x"),
            (Method::PUT, "/subscribers/1", ""),
        ] {
            let read = SubscriberCommand::read(&method, target, query);
            assert!(matches!(read, Some(Err(_))), "{method} {target}?{query}");
        }
        assert_eq!(
            SubscriberCommand::read(&Method::GET, "/subscribersx", ""),
            None
        );
    }
}
