//! The hub as a whole, over the store in memory, with callbacks in the same process and a paused
//! clock.

mod chain;
mod cloud;
mod delivering;
mod fairness;
mod flooding;
mod operating;
mod parts;
mod private;
mod quiet;
mod resources;
mod resting;
mod rig;
mod staying;
mod strangers;
mod subscribing;
mod translating;
mod webhooks;
mod withdrawing;
