//! Standard output and standard error of commands. What reads them may close them at any time, as
//! `head` does; not what is printed.

use std::{
    fmt::Arguments,
    io::{self, ErrorKind, Write as _},
    process,
};

/// Prints to standard output, as `print!` does. If its reader has gone, the process ends: whoever
/// reads has seen enough. Any other fault ends it with exit code 1.
macro_rules! out {
    ($($text:tt)*) => { $crate::cli::output::print(format_args!($($text)*)) };
}

/// The same with the end of a line.
macro_rules! outln {
    () => { $crate::cli::output::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::cli::output::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints a line to standard error. A fault is passed over: there is nobody to tell.
macro_rules! errln {
    ($($text:tt)*) => { $crate::cli::output::complain(format_args!($($text)*)) };
}

pub(crate) use {errln, out, outln};

/// Prints a text to standard output.
pub(crate) fn print(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    let printed = out.write_fmt(text);
    let Err(error) = printed.and_then(|()| out.flush()) else {
        return;
    };
    if error.kind() == ErrorKind::BrokenPipe {
        process::exit(0);
    }
    complain(format_args!(
        "everfeed: cannot write to standard output: {error}"
    ));
    process::exit(1);
}

/// Prints a line to standard error.
pub(crate) fn complain(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}
