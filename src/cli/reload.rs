//! `everfeed reload`: asks the running process to read its configuration again, and prints what changed.

use super::ask::ask;
use crate::config::{self, Config};
use anyhow::{Context as _, anyhow};
use http::{Method, StatusCode};
use std::path::Path;

/// A configuration that the running process refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ReloadFailed(String);

/// Asks for a reload. The file is read here only for the address of the process: whether it is good is for that to say.
pub(super) async fn run(file: &Path) -> anyhow::Result<()> {
    let address = Config::admin_address(file, config::environment());
    let answered = ask(Method::POST, &format!("http://{address}/reload")).await;
    // A file that cannot be read does not tell the address either, so its mistake comes first.
    if let (Err(_), Err(mistake)) = (&answered, Config::load(file, config::environment())) {
        let nobody = format!("nothing was reloaded: no everfeed answers at {address}");
        return Err(ReloadFailed(format!("{mistake}\n{nobody}")).into());
    }
    let (status, text) = answered.with_context(|| {
        format!("no everfeed answers at {address}; if server.admin_listen was changed, send SIGHUP instead")
    })?;
    match status {
        StatusCode::OK => {
            print!("{text}");
            Ok(())
        }
        StatusCode::UNPROCESSABLE_ENTITY => Err(ReloadFailed(text.trim_end().to_owned()).into()),
        _ => Err(anyhow!("the running everfeed answered {status}: {}", text.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_mistake_of_a_file_is_told_although_nobody_answers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("everfeed.toml");
        std::fs::write(&file, "[server]\nadmin_listen = \"127.0.0.1:1\"\nwaiters = 3\n").unwrap();
        let error = run(&file).await.unwrap_err();
        assert!(error.is::<ReloadFailed>() && error.to_string().contains("waiters"), "{error}");
        let good = "[server]\nadmin_listen = \"127.0.0.1:1\"\n[[feed]]\nname = \"a\"\nurl = \"http://127.0.0.1:1/\"\n";
        std::fs::write(&file, good).unwrap();
        let error = run(&file).await.unwrap_err();
        assert!(!error.is::<ReloadFailed>() && error.to_string().contains("127.0.0.1:1"), "{error}");
    }
}
