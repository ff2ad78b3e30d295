//! Commands whose output nobody reads to its end, as with `everfeed check | head`, or cannot be
//! written: none of them panics.

use crate::EVERFEED;
use std::{
    fs::OpenOptions,
    process::{Command, Stdio},
};
use testkit::place::Place;

/// Commands that print without a running everfeed, with their exit codes.
const COMMANDS: [(&[&str], i32); 9] = [
    (&["--help"], 0),
    (&["check"], 0),
    (&["config"], 0),
    (&["feeds", "list"], 0),
    (&["store", "report"], 0),
    (&["store", "verify"], 0),
    (&["user", "list"], 0),
    (&["status"], 1),
    (&["subscribers", "list"], 1),
];

/// A place with a store of one feed.
fn place() -> Place {
    let place = Place::free();
    let feed = "[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:9/rss.xml\"\n";
    place.configure("public_url = \"http://127.0.0.1:8080\"", feed);
    let made = place
        .command(EVERFEED, &["user", "add", "alice"])
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    place
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    if arguments == ["--help"] || arguments == ["config"] {
        let mut command = Command::new(EVERFEED);
        command.args(arguments);
        return command;
    }
    place.command(EVERFEED, arguments)
}

#[test]
fn a_command_whose_reader_has_gone_ends_without_a_word() {
    let place = place();
    for (arguments, _) in COMMANDS {
        let mut command = command(&place, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(!told.contains("panicked"), "{arguments:?}: {told}");
        assert!(
            ended.status.code().is_some(),
            "{arguments:?}: {:?}",
            ended.status
        );
    }
}

#[test]
fn a_command_that_cannot_print_says_so_and_fails() {
    let place = place();
    for (arguments, _) in &COMMANDS[1..3] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = command(&place, arguments);
        let ended = command
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(
            !told.contains("panicked") && told.contains("No space left"),
            "{arguments:?}: {told}"
        );
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn a_command_that_is_read_ends_as_ever() {
    let place = place();
    for (arguments, code) in COMMANDS {
        let ended = command(&place, arguments).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {told}");
    }
}
