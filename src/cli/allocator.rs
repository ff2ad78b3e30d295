//! The settings of the system's allocator, which reads them from the environment when a process starts; not what is allocated.

use std::{env, os::unix::process::CommandExt as _, process::Command};

/// Names the size from which on glibc gives a block back to the system as soon as it is free.
const THRESHOLD_KEY: &str = "MALLOC_MMAP_THRESHOLD_";

/// That size, bytes. Left to itself glibc raises it to the largest block that was freed, 32 MiB at most, and keeps what large
/// documents and answers needed.
const THRESHOLD_BYTES: &str = "1048576";

/// Starts the program anew in the same process with these settings, unless they, or others, are in the environment. Of another
/// system than Linux with glibc nothing is asked, and where it cannot be done the program goes on as it is.
pub(super) fn settle() {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) || env::var_os(THRESHOLD_KEY).is_some() {
        return;
    }
    let Ok(program) = env::current_exe() else { return };
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| program.clone().into());
    let error = Command::new(program).arg0(name).args(arguments).env(THRESHOLD_KEY, THRESHOLD_BYTES).exec();
    eprintln!("everfeed: the allocator keeps its own settings: {error}");
}
