//! RSS `cloud`: the rssCloud server that can be asked to tell of changes (LEGACY C-4); registering
//! there is not done here.

use crate::{Cloud, Element};

/// Reads a `cloud`; without a domain it says nothing.
pub(super) fn read(element: &Element) -> Option<Cloud> {
    let said = |name: &str| element.filled(name);
    Some(Cloud {
        domain: said("domain")?,
        port: said("port").and_then(|port| port.parse().ok()),
        path: said("path"),
        register_procedure: said("registerProcedure"),
        protocol: said("protocol").map(|protocol| protocol.to_ascii_lowercase()),
    })
}
