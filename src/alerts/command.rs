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
