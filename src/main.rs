//! The `everfeed` binary: everything is in the library.

fn main() -> std::process::ExitCode {
    everfeed::cli::run()
}
