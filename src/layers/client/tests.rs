//! The stacks as a whole: composition over a service in place of the network, under a paused clock;
//! and the wire itself against a loopback listener that plays scripted answers.

mod composition;
mod sockets;
