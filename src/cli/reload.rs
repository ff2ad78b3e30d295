//! `everfeed reload`: asks the running process to read its configuration again, and prints what
//! changed.

use super::ask::ask;
use crate::{
    app::status::Status,
    config::{self, Config},
};
use anyhow::{Context as _, anyhow};
use http::{Method, StatusCode};
use std::path::Path;

/// A configuration that the running process refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ReloadFailed(String);

/// Asks for a reload. The file is read here only for the address of the process: whether it is good
/// is for that to say.
pub(super) async fn run(file: &Path) -> anyhow::Result<()> {
    let (address, token) = Config::admin_contact(file, config::environment());
    if let Ok((StatusCode::OK, status)) = ask(
        Method::GET,
        &format!("http://{address}/status"),
        token.as_ref(),
    )
    .await
        && let Some(other) = other_file(&status, file)
    {
        let why =
            format!("nothing was reloaded: the everfeed at {address} was started with {other}");
        return Err(ReloadFailed(format!("{why}, not with {}", file.display())).into());
    }
    let answered = ask(
        Method::POST,
        &format!("http://{address}/reload"),
        token.as_ref(),
    )
    .await;
    // A file that cannot be read does not tell the address either, so its mistake comes first.
    if let (Err(_), Err(mistake)) = (&answered, Config::load(file, config::environment())) {
        let nobody = if Config::names_admin_listen(file, config::environment()) {
            format!("nothing was reloaded: no everfeed answers at {address}")
        } else {
            // The address may be one of its mistakes.
            "nothing was reloaded: a running everfeed goes on as it was, and is asked once the file can be read".to_owned()
        };
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
        _ => Err(anyhow!(
            "the running everfeed answered {status}: {}",
            text.trim()
        )),
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
    (full(Path::new(&theirs)) != full(file)).then_some(theirs)
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
            "",
            "[store]\npath = \"x\"\n",
        ];
        for text in broken {
            std::fs::write(&file, text).unwrap();
            let error = run(&file).await.unwrap_err();
            let told = error.to_string();
            assert!(
                error.is::<ReloadFailed>() && !told.contains("answers at"),
                "{text:?}: {told}"
            );
            assert!(
                told.contains("nothing was reloaded") && told.contains("everfeed.toml"),
                "{text:?}: {told}"
            );
        }
        let good = "[server]\nadmin_listen = \"127.0.0.1:1\"\n[[feed]]\nname = \"a\"\nurl = \"http://127.0.0.1:1/\"\n";
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
