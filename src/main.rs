//! The `everfeed` binary: everything is in the library.

use std::process::ExitCode;

/// The allocator of the program. Beside glibc's it wakes thousands of held requests in three
/// quarters of the time, and gives the memory of large documents and answers back.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    everfeed::cli::run()
}
