//! An alert to a command: a program that gets the message as JSON on its standard input. Nothing of
//! an event is among its arguments, and there is no shell.

use super::message::AlertMessage;
use std::{process::Stdio, time::Duration};
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

/// Seconds that a command may take.
const COMMAND_SECS: u64 = 30;
/// Folders in which a command finds its programs; of our environment it gets nothing else.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The way to a command.
pub(super) struct AlertCommand {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    pub(super) public_url: String,
}

impl AlertCommand {
    /// Runs the command with a message. The error is the reason for which it failed. One that takes
    /// too long is killed.
    // Limit: programs that it has started go on.
    pub(super) async fn send(&self, message: &AlertMessage) -> Result<(), String> {
        let (program, arguments) = self.command.split_first().ok_or("there is no command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", PATH)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("it cannot be run: {error}"))?;
        let input = message.json(&self.public_url).to_string() + "\n";
        let stdin = child.stdin.take();
        let write = async move {
            if let Some(mut stdin) = stdin {
                // One that reads nothing may end well.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let run = async { tokio::join!(write, child.wait()).1 };
        match timeout(Duration::from_secs(COMMAND_SECS), run).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("it ended with {status}")),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it was killed after {COMMAND_SECS} s")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::testing::message;
    use std::fs;

    /// What comes of a command, and the text of `file`, which its arguments may name.
    async fn check(command: &[&str], is_good: bool, words: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("told").display().to_string();
        let command = command.iter().map(|part| part.replace("FILE", &file));
        let way = AlertCommand {
            command: command.collect(),
            public_url: "https://feeds.example/".into(),
        };
        let sent = way.send(&message("$(touch x); <b>\u{202e}")).await;
        assert_eq!(sent.is_ok(), is_good, "{sent:?}");
        let why = sent.err().unwrap_or_default();
        assert!(why.contains(words), "{why}");
        fs::read_to_string(file).unwrap_or_default()
    }

    #[tokio::test]
    async fn a_command_gets_the_event_on_its_standard_input_alone() {
        let told = check(&["/usr/bin/tee", "FILE"], true, "").await;
        let read: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(read["data"]["text"], "$(touch x); <b>\u{202e}");
        let seen = check(&["/bin/sh", "-c", "env >FILE; echo $# >>FILE"], true, "").await;
        assert!(!seen.contains("touch") && seen.ends_with("0\n"), "{seen}");
        // One that reads nothing may end well.
        check(&["/bin/true"], true, "").await;
    }

    #[tokio::test]
    async fn a_command_that_fails_says_how() {
        check(&["/bin/false"], false, "exit status: 1").await;
        check(&["/not/there"], false, "cannot be run").await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_hangs_is_killed() {
        check(&["/bin/sleep", "1000"], false, "killed after 30 s").await;
    }
}
