//! The settings of a configuration in force, each with the place that sets it; not what they mean.

use super::{
    ConfigError, ConfigSource,
    config_text::{ConfigText, SetBy},
    source,
};
use crate::{
    secret::{Secret, logged_text},
    setting::by_key,
};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::{
    fmt,
    path::{Path, PathBuf},
};
use url::Url;

/// A setting in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// The table in which it stands: `server`, `feed.blog`, `site[0]`.
    pub table: String,
    /// Its key in that table, dotted.
    pub key: String,
    /// Its value, without credentials; `null` where it has none.
    pub value: Value,
    /// The place that sets it.
    #[serde(flatten)]
    pub origin: Origin,
}

/// The place that sets a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "origin", rename_all = "lowercase")]
pub enum Origin {
    /// It is the default.
    Default,
    /// A line of a file.
    File {
        /// The file.
        #[serde(serialize_with = "shown_path")]
        file: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A `[[site]]`, which lists this feed.
    Site,
}

fn shown_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// `line 3`, `conf.d/blog.toml:3`, `EVERFEED__SERVER__LISTEN`, `default`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Environment { variable } => f.write_str(variable),
            Self::Site => f.write_str("its site"),
        }
    }
}

/// Every setting of a configuration, in the order of its tables: those of the next start or reload,
/// without the feeds of the registry.
pub fn settings_in_force(source: &ConfigSource) -> Result<Vec<Setting>, ConfigError> {
    let config = source.load()?;
    let file = &source.file;
    let text = source::read(file)?;
    let included = source::included(file, &text)?;
    let written = ConfigText::read_files(&text, &included, source.environment.clone());
    let mut settings = Settings {
        file,
        written,
        found: Vec::new(),
    };
    settings.add_table("server", &config.server);
    settings.add_table("store", &config.store);
    settings.add_table("upstream", &config.upstream);
    settings.add_table("hub", &config.hub);
    settings.add_table("xmpp", &config.xmpp);
    settings.add_table("push", &config.push);
    settings.add_table("search_engines", &config.search_engines);
    settings.add_table("platforms", &config.platforms);
    settings.add_list("site", &config.site, |_| None);
    settings.add_list("feed", &config.feed, |feed| Some(&feed.name));
    settings.add_list("group", &config.group, |group| Some(&group.name));
    settings.add_list("opml", &config.opml, |list| Some(&list.name));
    settings.add_list("webhook", &config.webhook, |_| None);
    settings.add_list("alert", &config.alert, |_| None);
    settings.add_list("credentials", &config.credentials, |_| None);
    Ok(settings.found)
}

struct Settings<'a> {
    file: &'a Path,
    written: ConfigText<'a>,
    found: Vec<Setting>,
}

impl Settings<'_> {
    fn add_table(&mut self, name: &str, table: &impl Serialize) {
        self.add(name, name, table, false);
    }

    /// Adds the tables of a list; `name` tells how people know one.
    fn add_list<T: Serialize>(
        &mut self,
        list: &str,
        tables: &[T],
        name: fn(&T) -> Option<&String>,
    ) {
        let of_files = self.written.tables_in(list);
        for (at, table) in tables.iter().enumerate() {
            let path = format!("{list}[{at}]");
            let shown = match name(table) {
                Some(name) => format!("{list}.{name}"),
                None => path.clone(),
            };
            self.add(&shown, &path, table, at >= of_files);
        }
    }

    fn add(&mut self, shown: &str, path: &str, table: &impl Serialize, is_of_site: bool) {
        for (key, value) in by_key(table) {
            let origin = match self.written.set_by(&format!("{path}.{key}")) {
                _ if is_of_site => Origin::Site,
                SetBy::Nothing => Origin::Default,
                SetBy::Line(file, line) => Origin::File {
                    file: file.unwrap_or_else(|| self.file.to_owned()),
                    line,
                },
                SetBy::Variable(variable) => Origin::Environment { variable },
            };
            let value = match &*key {
                "command" => program_alone(value),
                "url"
                    if ["alert[", "webhook["]
                        .iter()
                        .any(|list| path.starts_with(list)) =>
                {
                    host_alone(value)
                }
                _ => value,
            };
            self.found.push(Setting {
                table: shown.to_owned(),
                key,
                value: without_credentials(value),
                origin,
            });
        }
    }
}

/// A command without its arguments, which may be secrets.
fn program_alone(command: Value) -> Value {
    match command {
        Value::Array(mut parts) if parts.len() > 1 => {
            parts.truncate(1);
            parts.push(Value::from("***"));
            Value::Array(parts)
        }
        other => other,
    }
}

/// A URL without its path, which is the secret of many receivers of webhooks.
fn host_alone(url: Value) -> Value {
    let parsed = url.as_str().and_then(|text| Url::parse(text).ok());
    match parsed {
        Some(parsed) if parsed.path() != "/" || parsed.query().is_some() => {
            Value::from(format!("{}/***", parsed.origin().ascii_serialization()))
        }
        _ => url,
    }
}

/// A value without secrets, and without the credentials of URLs.
fn without_credentials(value: Value) -> Value {
    match value {
        Value::String(text) if Secret::is_serialized(&text) => Value::String("***".to_owned()),
        Value::String(text) => Value::String(logged_text(&text)),
        Value::Array(list) => list.into_iter().map(without_credentials).collect(),
        Value::Object(table) => table
            .into_iter()
            .map(|(key, value)| (key, without_credentials(value)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn origin_of<'a>(settings: &'a [Setting], table: &str, key: &str) -> &'a Setting {
        let mut settings = settings.iter();
        let found = settings.find(|setting| setting.table == table && setting.key == key);
        found.unwrap_or_else(|| panic!("{table}.{key}"))
    }

    #[test]
    fn each_setting_tells_where_it_was_set_and_no_secret_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("everfeed.toml");
        let included = folder.path().join("conf.d/blog.toml");
        fs::create_dir(folder.path().join("conf.d")).unwrap();
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        fs::write(
            &file,
            format!(
                "include = \"conf.d/*.toml\"\n[server]\nadmin_token = \"hunter2hunter2hunter2\"\n\
                 [[feed]]\nname = \"a\"\nurl = \"http://u:hunter2@x/a?key=hunter2\"\n\
                 [[alert]]\ncommand = [\"/bin/true\", \"hunter2\"]\n\
                 [[webhook]]\nurl = \"https://hooks.example/hunter2\"\nfeed = \"a\"\nsecret = \"{secret}\"\n"
            ),
        )
        .unwrap();
        fs::write(
            &included,
            "[[feed]]\nname = \"b\"\nurl = \"http://x/b\"\npoll = { max_secs = 7200 }\n\
             [[site]]\norigin = \"http://127.0.0.1:1\"\nhost = \"blog.example\"\nfeeds = [\"/rss.xml\"]\n",
        )
        .unwrap();
        let source = ConfigSource {
            file: file.clone(),
            environment: vec![("EVERFEED__SERVER__LISTEN".into(), "127.0.0.1:9".into())],
        };
        let settings = settings_in_force(&source).unwrap();
        let told = serde_json::to_string(&settings).unwrap();
        for shown in ["hunter2", "MfKQ9", "sha256:"] {
            assert!(!told.contains(shown), "{shown}: {told}");
        }
        let of_file = |file: &Path, line| Origin::File {
            file: file.to_owned(),
            line,
        };
        let check = |table: &str, key: &str, expect: Origin| {
            assert_eq!(
                origin_of(&settings, table, key).origin,
                expect,
                "{table}.{key}"
            );
        };
        check("server", "admin_token", of_file(&file, 3));
        check("server", "admin_listen", Origin::Default);
        let variable = "EVERFEED__SERVER__LISTEN".to_owned();
        check("server", "listen", Origin::Environment { variable });
        check("feed.a", "url", of_file(&file, 6));
        check("feed.b", "url", of_file(&included, 3));
        check("feed.b", "poll.max_secs", of_file(&included, 4));
        check("feed.b", "poll.min_secs", Origin::Default);
        check("site[0]", "origin", of_file(&included, 6));
        let of_site = settings
            .iter()
            .filter(|setting| setting.origin == Origin::Site);
        assert!(of_site.clone().count() > 3);
        assert!(
            of_site
                .clone()
                .all(|setting| setting.table.starts_with("feed."))
        );
        assert_eq!(
            origin_of(&settings, "server", "admin_token").value,
            Value::from("***")
        );
        assert_eq!(
            origin_of(&settings, "feed.a", "url").value,
            Value::from("http://***@x/a?key=***")
        );
    }
}
