//! Requests that wait to be answered: which one is next, and which one is refused where too many
//! wait; not what is answered.

use super::{
    pace::{Flow, Load},
    stanza::Request,
};
use jid::BareJid;
use tokio::time::Instant;

/// Requests that wait at most.
pub(super) const WAITING_MAX: usize = 32;

/// Requests that wait, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests(Vec<(BareJid, Request)>);

impl WaitingRequests {
    // Decides: Which request of XMPP is refused if too many wait?
    /// Adds a request of an address. If too many wait, one is given back: that of the client with
    /// the greatest load, and of several alike the oldest, for whose answer somebody has waited the
    /// longest.
    pub(super) fn add(
        &mut self,
        address: BareJid,
        request: Request,
        flow: &Flow,
        now: Instant,
    ) -> Option<(BareJid, Request)> {
        self.0.push((address, request));
        if self.0.len() <= WAITING_MAX {
            return None;
        }
        let mut most = self.at_load(0, flow, now);
        for at in 1..self.0.len() {
            let load = self.at_load(at, flow, now);
            if load.1 > most.1 {
                most = load;
            }
        }
        Some(self.0.remove(most.0))
    }

    // Decides: Which request of XMPP is answered next?
    /// Takes the next request: that of the client to whom the fewest bytes were sent lately, and of
    /// several alike the oldest.
    pub(super) fn take(&mut self, flow: &Flow, now: Instant) -> Option<(BareJid, Request)> {
        if self.0.is_empty() {
            return None;
        }
        let mut least = self.at_load(0, flow, now);
        for at in 1..self.0.len() {
            let load = self.at_load(at, flow, now);
            if load.1.bytes < least.1.bytes {
                least = load;
            }
        }
        Some(self.0.remove(least.0))
    }

    fn at_load(&self, at: usize, flow: &Flow, now: Instant) -> (usize, Load) {
        (at, flow.load(&self.0[at].0, now))
    }
}
