//! Alerts: events that are sent to the operator by webhook, by mail or to a command; not which
//! events there are.

mod settings;

mod quiet_hours;

mod message;

mod plan;

mod webhook;

mod mail;

mod command;

mod task;

#[cfg(test)]
mod testing;

pub use settings::{ALERTS_MAX, AlertSettings};
pub use task::{AlertParts, Alerts};
