//! The ways to publishers, and how a reload changes them; not what is asked.

use crate::{
    ingest::{self, Upstream},
    layers::{
        Client, ClientConfig, Governor, KnownNets, NotingResolver, Signer, client::upstream_via,
        public_address::SystemResolver,
    },
};
use std::sync::Arc;
use url::Url;

/// The parts that clients of publishers are made of, and that no reload changes.
#[derive(Clone)]
pub(super) struct UpstreamParts {
    /// The keys that sign our requests.
    pub(super) signer: Option<Signer>,
    /// Idle connections kept for each host.
    pub(super) idle_per_host: usize,
    /// The networks of publishers, as far as they were looked up.
    pub(super) nets: KnownNets,
}

/// A way to publishers, with a pace of its own.
pub(super) struct UpstreamWay {
    pub(super) upstream: Upstream,
    pub(super) pace: Governor,
}

/// The ways of a process that works.
pub(super) struct UpstreamWays {
    pub(super) parts: UpstreamParts,
    /// That of polls, walks and checks.
    pub(super) polls: UpstreamWay,
    /// That of looks for readers of old addresses.
    pub(super) looks: UpstreamWay,
}

impl UpstreamParts {
    /// A client with the limits of these settings.
    pub(super) fn client(&self, config: &ingest::Config, pace: Governor) -> anyhow::Result<Client> {
        let client = ClientConfig {
            idle_per_host: self.idle_per_host,
            signer: self.signer.clone(),
            ..config.client()
        };
        let resolver = NotingResolver {
            inner: Arc::new(SystemResolver),
            nets: self.nets.clone(),
        };
        Ok(upstream_via(&client, pace, Arc::new(resolver))?)
    }
}

impl UpstreamWays {
    /// Puts other settings in force for each request that begins from now on; those under way end as
    /// they began, and the pace at each host goes on. An error changes nothing.
    pub(super) fn reload(&self, config: &ingest::Config, contact: &Url) -> anyhow::Result<()> {
        let ways = [&self.polls, &self.looks];
        let mut clients = Vec::with_capacity(ways.len());
        for way in ways {
            clients.push(self.parts.client(config, way.pace.clone())?);
        }
        for (way, client) in ways.into_iter().zip(clients) {
            way.upstream.reload(client, contact.clone());
        }
        Ok(())
    }
}
