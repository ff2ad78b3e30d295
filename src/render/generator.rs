//! The program as its documents name it.

/// Name and version of the program.
pub(super) struct Generator {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

/// This program.
pub(super) const GENERATOR: Generator = Generator {
    name: "everfeed",
    version: env!("CARGO_PKG_VERSION"),
};
