//! The feed server: routing, pulling, long polling; not the connections (`edge`), nor what a page
//! holds.

use crate::{
    edge::{listen_address::ListenAddresses, tls::TlsSettings},
    readers,
    secret::AdminToken,
    setting::{RefusedSetting, all_at_least_one},
};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use url::Url;

pub mod own_addresses;
pub mod own_mounts;
pub mod routing;

pub mod answers;
pub mod feeds;

pub mod hub_forms;

pub mod key_directory;

pub mod push_inlet;

pub mod sites;

pub mod reader_sheets;

pub mod admin;

#[cfg(test)]
mod tests;

/// `[server]`: where everfeed listens and what one request may cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Addresses for consumers: an address and port, `unix:` and a path, `systemd`, or a list of
    /// those.
    pub listen: ListenAddresses,
    /// The URL by which consumers reach us from outside: the root of every URL that we print.
    pub public_url: Url,
    /// The roots of the URLs that were printed before: each a `public_url` with its `prefix`.
    /// Requests there are led to the present ones.
    pub former_public_urls: Vec<Url>,
    /// Address and port for the operator: `/live`, `/ready`, `/metrics`, `/status`. Keep it off the
    /// internet.
    pub admin_listen: SocketAddr,
    /// The token of the operator's requests (`Authorization: Bearer`); needed where `admin_listen`
    /// is beyond loopback. At least 16 characters.
    pub admin_token: Option<AdminToken>,
    /// Addresses and networks of proxies before us whose `X-Forwarded-For` is believed, so that the
    /// limits of the hub count their clients one by one.
    pub trusted_proxies: Vec<IpNet>,
    /// True to take passwords (`Authorization: Basic`) over plain HTTP from other machines, too.
    /// They can be read on the way.
    pub basic_over_http: bool,
    /// True when those proxies begin each connection with a header of the PROXY protocol, version 1
    /// or 2.
    pub proxy_protocol: bool,
    /// HTTPS.
    pub tls: TlsSettings,
    /// Path below which our own paths live; empty for none.
    pub prefix: String,
    /// Requests held and streams of events at once at most; for one more another may give way, else
    /// it gets 503.
    pub waiters_max: usize,
    /// Of these those of one client address at most, or of one network of version 6; one more gets
    /// 429. Those of this machine are counted in all only.
    pub waiters_per_client_max: usize,
    /// Connections at once at most; one more waits to be accepted.
    pub connections_max: usize,
    /// The longest `timeout` of a long poll, seconds.
    pub timeout_max_secs: u64,
    /// Seconds that a shutdown may take at most.
    pub shutdown_secs: u64,
    /// Bounds on what one read may cost, whose keys stand beside these.
    #[serde(flatten, skip_deserializing)]
    pub readers: readers::Config,
}

impl Default for Config {
    fn default() -> Self {
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self {
            listen: local(8080).into(),
            public_url: Url::parse("http://127.0.0.1:8080/").expect("a literal URL"),
            former_public_urls: Vec::new(),
            admin_listen: local(8079),
            admin_token: None,
            trusted_proxies: Vec::new(),
            basic_over_http: false,
            proxy_protocol: false,
            tls: TlsSettings::default(),
            prefix: String::new(),
            waiters_max: 20_000,
            waiters_per_client_max: 1_000,
            connections_max: 25_000,
            timeout_max_secs: 300,
            shutdown_secs: 10,
            readers: readers::Config::default(),
        }
    }
}

impl Config {
    /// Refuses numbers that cannot work.
    pub fn check(&self) -> Result<(), RefusedSetting> {
        let counts = [
            ("waiters_max", self.waiters_max as u64),
            ("waiters_per_client_max", self.waiters_per_client_max as u64),
            ("connections_max", self.connections_max as u64),
            ("shutdown_secs", self.shutdown_secs),
        ];
        all_at_least_one(counts, "give at least 1")
    }
}
