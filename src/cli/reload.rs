//! `everfeed reload`: asks the running process to read its configuration again, and prints what
//! changed.

use super::ask::{Running, Unanswered, unanswered};
use crate::app::status::Status;
use crate::cli::output::out;
use anyhow::{anyhow, bail};
use http::{Method, StatusCode};
use std::path::Path;

/// A configuration that the running process refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ReloadFailed(String);

/// Asks for a reload. The file is read here only for the address of the process: whether it is good
/// is for that to say.
pub(super) async fn run(file: &Path) -> anyhow::Result<()> {
    let running = Running::in_file(file);
    let address = running.address;
    if let Ok((StatusCode::OK, status)) = running.ask(Method::GET, "/status").await
        && let Some(other) = other_file(&status, file)
    {
        let why =
            format!("nothing was reloaded: the everfeed at {address} was started with {other}");
        return Err(ReloadFailed(format!("{why}, not with {}", file.display())).into());
    }
    let answered = running.ask(Method::POST, "/reload").await;
    let (status, text) = answered.map_err(|error| {
        let error = unanswered(file, &address, &error);
        if error.is::<Unanswered>() {
            ReloadFailed(format!("{error}; nothing was reloaded")).into()
        } else {
            anyhow!("{error}. If you changed server.admin_listen, send SIGHUP instead")
        }
    })?;
    match status {
        StatusCode::OK => {
            out!("{text}");
            Ok(())
        }
        StatusCode::UNPROCESSABLE_ENTITY => Err(ReloadFailed(text.trim_end().to_owned()).into()),
        _ => bail!("the running everfeed answered {status}: {}", text.trim()),
    }
}

/// The file that the running process was started with, by its status, if it is another one than
/// this.
pub(super) fn other_file(status: &str, file: &Path) -> Option<String> {
    let theirs = serde_json::from_str::<Status>(status).ok()?.config.file?;
    // A file that is gone is still known by its name.
    let full = |file: &Path| {
        file.canonicalize()
            .or_else(|_| std::path::absolute(file))
            .ok()
    };
    if full(Path::new(&theirs)) == full(file) {
        return None;
    }
    Some(theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_mistake_of_a_file_is_told_although_nobody_answers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("everfeed.toml");
        std::fs::write(
            &file,
            "[server]\nadmin_listen = \"127.0.0.1:1\"\nwaiters = 3\n",
        )
        .unwrap();
        let error = run(&file).await.unwrap_err();
        assert!(
            error.is::<ReloadFailed>() && error.to_string().contains("waiters"),
            "{error}"
        );
        // A file that cannot be parsed may have a mistake in the address, too: nothing is said of
        // any.
        let broken = [
            "[server]\nadmin_listen = '127.0.0.1:1' # here\nx = [\n",
            "x = [\n",
            "[server]\nadmin_listen = \n",
            "[server]\nadmin_listen = \"127.0.0.1:1",
            "\0\0",
            "[store]\npath = 1\n",
        ];
        for text in broken {
            std::fs::write(&file, text).unwrap();
            let error = run(&file).await.unwrap_err();
            let told = error.to_string();
            assert!(
                error.is::<ReloadFailed>() && !told.contains("is not running"),
                "{text:?}: {told}"
            );
            assert!(
                told.contains("nothing was reloaded") && told.contains("everfeed.toml"),
                "{text:?}: {told}"
            );
        }
        let good = "[server]\nadmin_listen = \"127.0.0.1:1\"\n[[feed]]\nname = \"a\"\nurl = \"http://127.0.0.1:2/\"\n";
        std::fs::write(&file, good).unwrap();
        let error = run(&file).await.unwrap_err();
        assert!(
            !error.is::<ReloadFailed>() && error.to_string().contains("127.0.0.1:1"),
            "{error}"
        );
    }

    #[test]
    fn a_process_that_runs_with_another_file_is_not_asked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("everfeed.toml");
        std::fs::write(&file, "").unwrap();
        let status = |file: &Path| {
            format!(
                "{{\"config\":{{\"file\":{:?}}}}}",
                file.display().to_string()
            )
        };
        assert_eq!(other_file(&status(&file), &file), None);
        assert_eq!(
            other_file(&status(&folder.path().join("./everfeed.toml")), &file),
            None
        );
        let other = folder.path().join("other.toml");
        assert_eq!(
            other_file(&status(&other), &file),
            Some(other.display().to_string())
        );
        assert_eq!(other_file("{}", &file), None);
    }
}
