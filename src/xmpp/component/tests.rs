//! The component against a scripted server over pipes in memory. Tests name the rows of the brief.

mod rig;

mod flooding;
mod operating;
mod proving;
mod pulling;
mod pushing;
mod refusing;
mod streaming;
mod subscribing;
