//! The secret of the component, as the configuration has it or from its file; not what it is for.

use crate::{secret::Secret, xmpp::Config};
use std::{fs, io};

/// The secret, from here or from its file.
pub(super) fn secret(config: &Config) -> io::Result<Secret> {
    if let Some(secret) = &config.secret {
        return Ok(secret.secret().clone());
    }
    let Some(file) = &config.secret_file else {
        return Err(io::Error::other("there is no xmpp.secret"));
    };
    let text = fs::read_to_string(file)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    match text.lines().next().map(str::trim) {
        Some(secret) if !secret.is_empty() => Ok(Secret::new(secret)),
        _ => {
            let text = format!("{}: its first line is empty", file.display());
            Err(io::Error::other(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xmpp::problem_with_files;

    #[test]
    fn a_secret_is_the_first_line_of_its_file_and_is_never_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let of_file = Config {
            secret_file: Some(file.path().to_owned()),
            ..Config::default()
        };
        assert!(secret(&of_file).unwrap_err().to_string().contains("empty"));
        fs::write(file.path(), "hunter2 \nrest").unwrap();
        assert_eq!(secret(&of_file).unwrap().reveal(), "hunter2");
        let given: Config = toml::from_str("secret = \"hunter2\"").unwrap();
        assert!(!format!("{given:?}").contains("hunter2"));
        assert!(!toml::to_string(&given).unwrap().contains("hunter2"));
    }

    #[test]
    fn files_that_are_not_there_are_told() {
        let problem = |text: &str| {
            let config: Config = toml::from_str(text).unwrap();
            problem_with_files(&config).map(|it| it.to_string())
        };
        assert_eq!(problem("secret = \"s\""), None);
        let secret = problem("secret_file = \"/nowhere/s\"").unwrap();
        assert!(
            secret.starts_with("secret_file: found \"/nowhere/s\""),
            "{secret}"
        );
        let root = problem("secret = \"s\"\ntls_root = \"/nowhere/r\"").unwrap();
        assert!(root.starts_with("tls_root: found \"/nowhere/r\""), "{root}");
    }
}
