//! `[xmpp]`: the server, our address there, the secret, and limits; not how they are used.

use crate::{
    auth::jid::is_bare_jid,
    secret::ComponentSecret,
    setting::{RefusedSetting, at_least_one},
};
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, Ipv6Addr},
    path::PathBuf,
};

/// `[xmpp]`: the connection to a server of XMPP, and limits. Without a server XMPP is off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host and port at which the server takes components.
    pub server: Option<String>,
    /// Our address: the name of the component at the server.
    pub jid: Option<String>,
    /// The secret that the server has for the component.
    pub secret: Option<ComponentSecret>,
    /// A file whose first line is that secret.
    pub secret_file: Option<PathBuf>,
    /// True to speak TLS from the beginning.
    pub tls: bool,
    /// The root certificates that the server is checked with, in a PEM file, instead of those of
    /// the machine.
    pub tls_root: Option<PathBuf>,
    /// True to allow a stream without TLS beyond this machine.
    pub plaintext: bool,
    /// Bytes of entries in one stanza at most, though never less than one.
    pub stanza_bytes_max: usize,
    /// Subscriptions at most.
    pub subscriptions_max: usize,
    /// Subscriptions of one bare address and its resources at most.
    pub subscriptions_per_jid_max: usize,
    /// Subscriptions of addresses at one registered domain and its subdomains at most.
    pub subscriptions_per_domain_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            server: None,
            jid: None,
            secret: None,
            secret_file: None,
            tls: false,
            tls_root: None,
            plaintext: false,
            stanza_bytes_max: 200_000,
            subscriptions_max: 20_000,
            subscriptions_per_jid_max: 100,
            subscriptions_per_domain_max: 10_000,
        }
    }
}

/// The bounds of `stanza_bytes_max`: the largest stanza that servers take between each other has
/// 512 KiB.
const STANZA_BYTES: std::ops::RangeInclusive<usize> = 10_000..=450_000;

impl Config {
    /// True where XMPP is served.
    pub fn is_on(&self) -> bool {
        self.server.is_some()
    }

    /// Host and port of the server.
    pub(super) fn host_and_port(&self) -> Option<(&str, u16)> {
        let (host, port) = self.server.as_deref()?.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let host = host
            .strip_prefix('[')
            .map_or(host, |rest| rest.strip_suffix(']').unwrap_or(rest));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        (!host.is_empty() && host.chars().all(is_plain)).then_some((host, port))
    }

    /// True where what is said on the stream leaves this machine in plain text.
    pub fn is_overheard(&self) -> bool {
        let Some((host, _)) = self.host_and_port() else {
            return false;
        };
        let is_loopback = match host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback() || address == Ipv6Addr::LOCALHOST,
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        };
        !self.tls && !is_loopback
    }

    /// Keys that mean nothing, because there is no server.
    pub fn idle_keys(&self) -> Vec<&'static str> {
        let keys = [
            ("xmpp.jid", self.jid.is_some()),
            ("xmpp.secret", self.secret.is_some()),
            ("xmpp.secret_file", self.secret_file.is_some()),
        ];
        let given = keys
            .iter()
            .filter(|(_, is_given)| *is_given && !self.is_on());
        given.map(|(key, _)| *key).collect()
    }

    /// Refuses values that cannot work.
    pub fn check(&self) -> Result<(), RefusedSetting> {
        let refuse = |key: &str, found: &str, wanted: &str| {
            Err(RefusedSetting::new(key, found.to_owned(), wanted))
        };
        let quoted = |text: &str| format!("\"{text}\"");
        if let Some(jid) = &self.jid
            && !is_bare_jid(&format!("x@{jid}"))
        {
            let wanted = "give a host name in lower case, such as \"feeds.example.org\"";
            return refuse("jid", &quoted(jid), wanted);
        }
        if self.secret.as_ref().is_some_and(|secret| !secret.is_good()) {
            return refuse("secret", "***", "give one line of text that is not empty");
        }
        if !STANZA_BYTES.contains(&self.stanza_bytes_max) {
            let (low, high) = (STANZA_BYTES.start(), STANZA_BYTES.end());
            let wanted = format!("use {low} to {high}");
            return refuse(
                "stanza_bytes_max",
                &self.stanza_bytes_max.to_string(),
                &wanted,
            );
        }
        for (key, found) in [
            ("subscriptions_max", self.subscriptions_max),
            ("subscriptions_per_jid_max", self.subscriptions_per_jid_max),
            (
                "subscriptions_per_domain_max",
                self.subscriptions_per_domain_max,
            ),
        ] {
            at_least_one(key, found as u64, "use 1 or more")?;
        }
        let Some(server) = &self.server else {
            return Ok(());
        };
        if !cfg!(feature = "xmpp") {
            let wanted = "this everfeed was built without the feature `xmpp`; leave it out";
            return refuse("server", &quoted(server), wanted);
        }
        if self.host_and_port().is_none() {
            let wanted = "give a host and the port for components, such as \"127.0.0.1:5347\"";
            return refuse("server", &quoted(server), wanted);
        }
        if self.jid.is_none() {
            let wanted = "give the name that the server has for the component, such as \"feeds.example.org\"";
            return refuse("jid", "nothing beside xmpp.server", wanted);
        }
        match (&self.secret, &self.secret_file) {
            (None, None) => refuse(
                "secret_file",
                "neither this nor xmpp.secret",
                "give the secret that the server has for the component, in a file or here",
            ),
            (Some(_), Some(_)) => refuse(
                "secret_file",
                "both this and xmpp.secret",
                "leave one of them out",
            ),
            _ if self.is_overheard() && !self.plaintext => refuse(
                "server",
                &format!("{}, to which the stream goes in plain text", quoted(server)),
                "set xmpp.tls, or xmpp.plaintext where the network between is yours",
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).unwrap();
        match config.check() {
            Ok(()) => Ok(config),
            Err(refused) => Err(refused.to_string()),
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_remedy() {
        let whole = |rest: &str| {
            format!(
                "server = \"127.0.0.1:5347\"\njid = \"feeds.example.org\"\nsecret = \"s\"\n{rest}"
            )
        };
        assert!(!checked("").unwrap().is_on());
        if cfg!(not(feature = "xmpp")) {
            assert!(
                checked(&whole(""))
                    .unwrap_err()
                    .contains("without the feature")
            );
            return;
        }
        assert!(checked(&whole("")).unwrap().is_on());
        for (text, part) in [
            (
                whole("").replace("feeds.", "me@feeds."),
                "\"me@feeds.example.org\"; give a host name",
            ),
            (whole("").replace("feeds.", "Feeds."), "lower case"),
            (whole("").replace(":5347", ""), "a host and the port"),
            (whole("").replace(":5347", ":0"), "a host and the port"),
            (whole("").replace("\"s\"", "\"\""), "not empty"),
            (whole("").replace("secret = \"s\"", ""), "neither"),
            (
                whole("").replace("jid = \"feeds.example.org\"", ""),
                "jid: found nothing",
            ),
            (whole("secret_file = \"x\""), "leave one of them out"),
            (whole("stanza_bytes_max = 1"), "10000"),
            (whole("").replace("127.0.0.1", "10.0.0.1"), "plain text"),
            (
                whole("").replace("127.0.0.1", "xmpp.example"),
                "xmpp.plaintext",
            ),
        ] {
            let refused = checked(&text).unwrap_err();
            assert!(refused.contains(part), "{text}: {refused}");
        }
        for good in [
            whole("").replace("127.0.0.1", "[::1]"),
            whole("").replace("127.0.0.1", "localhost"),
            whole("tls = true").replace("127.0.0.1", "xmpp.example"),
            whole("plaintext = true").replace("127.0.0.1", "xmpp.example"),
        ] {
            assert!(checked(&good).is_ok(), "{good}");
        }
    }

    #[test]
    fn keys_without_a_server_are_idle() {
        let idle: Config = toml::from_str("jid = \"x\"\nsecret = \"s\"").unwrap();
        assert_eq!(idle.idle_keys(), ["xmpp.jid", "xmpp.secret"]);
    }
}
