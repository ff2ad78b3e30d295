//! `[[alert]]`: where events are sent, and when; not the sending.

use super::quiet_hours::QuietHours;
use crate::{secret::Secret, setting::RefusedSetting, standard_webhooks};
use lettre::message::Mailbox;
use serde::{Deserialize, Serialize};
use url::Url;

/// Alerts at most.
pub const ALERTS_MAX: usize = 20;
/// Receivers of a mail at most.
const RECEIVERS_MAX: usize = 20;
/// Arguments of a command at most, its program included.
const ARGUMENTS_MAX: usize = 50;
/// Seconds after which a cause is reported again at the earliest: a short time would be the flood
/// that it is to keep out.
const AGAIN_SECS_MIN: u64 = 60;

/// `[[alert]]`: a webhook, a mail or a command that gets the events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlertSettings {
    /// URL of a webhook. It may be at any address, as the operator names it.
    pub url: Option<Url>,
    /// The secret that signs what the webhook gets: `whsec_` and the base64 of its key.
    pub secret: Option<Secret>,
    /// Receivers of mails.
    pub to: Vec<String>,
    /// Sender of mails.
    pub from: Option<String>,
    /// The mail server: `smtps://HOST` (TLS), `smtp://HOST` (STARTTLS; without TLS on this machine).
    pub smtp: Option<Url>,
    /// Name for the mail server.
    pub user: Option<String>,
    /// Password for the mail server.
    pub password: Option<Secret>,
    /// A program and its arguments. It gets the event as JSON on its standard input.
    pub command: Vec<String>,
    /// Hours in which nothing is sent.
    pub quiet_hours: Option<String>,
    /// Seconds after which a cause is reported again at the earliest, and again while it lasts.
    pub again_after_secs: u64,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self {
            url: None,
            secret: None,
            to: Vec::new(),
            from: None,
            smtp: None,
            user: None,
            password: None,
            command: Vec::new(),
            quiet_hours: None,
            again_after_secs: 4 * 3600,
        }
    }
}

impl AlertSettings {
    /// The receiver, for logs and events: nothing of it is secret.
    pub fn receiver(&self) -> String {
        if let Some(url) = &self.url {
            return format!("the webhook at {}", url.host_str().unwrap_or_default());
        }
        match (self.to.first(), self.command.first()) {
            (Some(to), _) => format!("the mail to {to}"),
            (_, Some(program)) => format!("the command {program}"),
            _ => String::new(),
        }
    }

    /// True for alerts whose messages reach the same receiver.
    pub(super) fn is_to_receiver_of(&self, other: &Self) -> bool {
        let receiver = |it: &Self| (it.url.clone(), it.to.clone(), it.command.clone());
        receiver(self) == receiver(other)
    }

    /// Everything in it that cannot be meant.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let mut problems = Vec::new();
        let mut refuse = |key: &str, found: String, wanted: &str| {
            problems.push(RefusedSetting::new(key, found, wanted));
        };
        let ways = [
            self.url.is_some(),
            !self.to.is_empty(),
            !self.command.is_empty(),
        ];
        if ways.into_iter().filter(|is_there| *is_there).count() != 1 {
            let wanted =
                "give one of `url` (a webhook), `to` (mail) and `command`, for each [[alert]]";
            refuse("url", "none of three receivers, or several".into(), wanted);
            return problems;
        }
        if let Some(url) = &self.url {
            let is_bare =
                url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
            if !matches!(url.scheme(), "http" | "https") || !is_bare {
                let wanted = "give an http or https URL without a password and without `#`";
                refuse("url", "another URL".into(), wanted);
            }
        }
        let has_key = |secret: &Secret| standard_webhooks::key(secret).is_some();
        if self.url.is_some() && !self.secret.as_ref().is_some_and(has_key) {
            refuse("secret", "***".into(), standard_webhooks::SECRET_WANTED);
        }
        if !self.to.is_empty() {
            self.mail_problems(&mut refuse);
        }
        if let Some(program) = self.command.first()
            && (!program.starts_with('/') || self.command.iter().any(|part| part.contains('\0')))
        {
            let wanted = "give the program by its whole path, and its arguments behind it: command = [\"/usr/local/bin/notify\", \"--urgent\"]. There is no shell";
            refuse("command", format!("{program:?}"), wanted);
        }
        if self.command.len() > ARGUMENTS_MAX {
            let wanted = format!("give {ARGUMENTS_MAX} arguments at most");
            refuse("command", self.command.len().to_string(), &wanted);
        }
        if let Some(text) = &self.quiet_hours
            && QuietHours::parse(text).is_none()
        {
            let wanted =
                "give hours as \"22:00-07:00\" (UTC), or with an offset as \"22:00-07:00 +01:00\"";
            refuse("quiet_hours", format!("{text:?}"), wanted);
        }
        if self.again_after_secs < AGAIN_SECS_MIN {
            let wanted = format!("give at least {AGAIN_SECS_MIN} seconds");
            refuse(
                "again_after_secs",
                self.again_after_secs.to_string(),
                &wanted,
            );
        }
        problems
    }

    fn mail_problems(&self, refuse: &mut impl FnMut(&str, String, &str)) {
        let is_address = |text: &str| text.parse::<Mailbox>().is_ok();
        for to in self.to.iter().filter(|to| !is_address(to)) {
            let wanted = "give addresses of mail in quotes, for instance [\"me@example.org\"]";
            refuse("to", format!("{to:?}"), wanted);
        }
        if self.to.len() > RECEIVERS_MAX {
            let wanted = format!("give {RECEIVERS_MAX} addresses at most");
            refuse("to", self.to.len().to_string(), &wanted);
        }
        match &self.from {
            Some(from) if is_address(from) => {}
            from => {
                let found = from
                    .as_ref()
                    .map_or("nothing".to_owned(), |from| format!("{from:?}"));
                refuse(
                    "from",
                    found,
                    "give the address of the sender, for instance \"everfeed@example.org\"",
                );
            }
        }
        let is_server = |url: &&Url| {
            matches!(url.scheme(), "smtp" | "smtps")
                && url.host_str().is_some_and(|host| !host.is_empty())
                && url.username().is_empty()
                && url.password().is_none()
                && matches!(url.path(), "" | "/")
        };
        if self.smtp.as_ref().filter(is_server).is_none() {
            let wanted = "give the mail server as \"smtps://mail.example.org\", \"smtp://mail.example.org:587\" (with STARTTLS) or \"smtp://localhost\"; user and password have keys of their own";
            let found = self
                .smtp
                .as_ref()
                .map_or("nothing".to_owned(), ToString::to_string);
            refuse("smtp", found, wanted);
        }
        if self.user.is_some() != self.password.is_some() {
            refuse(
                "user",
                "one of `user` and `password`".into(),
                "give both, or none",
            );
        }
    }

    pub(super) fn quiet(&self) -> Option<QuietHours> {
        self.quiet_hours.as_deref().and_then(QuietHours::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n";
    const MAIL: &str = "to = [\"me@example.org\"]\nfrom = \"e@example.org\"\n";

    fn check(text: &str, expect: &[&str]) {
        let settings: AlertSettings = toml::from_str(text).unwrap();
        let problems = settings.problems();
        let keys: Vec<&str> = problems.iter().map(|problem| &*problem.key).collect();
        assert_eq!(keys, expect, "{text}: {problems:?}");
    }

    #[test]
    fn an_alert_has_one_receiver() {
        check("", &["url"]);
        check(
            &format!("url = \"http://a/\"\ncommand = [\"/x\"]\n{SECRET}"),
            &["url"],
        );
        check(&format!("url = \"http://a/\"\n{SECRET}"), &[]);
        check("url = \"http://a/\"\n", &["secret"]);
        check(
            "url = \"ftp://u:p@a/\"\nsecret = \"short\"\n",
            &["url", "secret"],
        );
        check("command = [\"/usr/bin/notify\", \"a b\"]\n", &[]);
        check("command = [\"notify\"]\n", &["command"]);
        check(&format!("{MAIL}smtp = \"smtp://localhost:25\"\n"), &[]);
        check(&format!("{MAIL}smtp = \"smtps://u:p@mail/\"\n"), &["smtp"]);
        check(
            &format!("{MAIL}smtp = \"http://mail/\"\nuser = \"u\"\n"),
            &["smtp", "user"],
        );
        check(
            "to = [\"nobody\"]\nsmtp = \"smtp://localhost\"\n",
            &["to", "from"],
        );
    }

    #[test]
    fn hours_and_times_that_cannot_be_meant_are_refused() {
        let command = "command = [\"/x\"]\n";
        check(
            &format!("{command}quiet_hours = \"22:00-07:00 +01:00\"\nagain_after_secs = 60\n"),
            &[],
        );
        check(
            &format!("{command}quiet_hours = \"at night\"\nagain_after_secs = 0\n"),
            &["quiet_hours", "again_after_secs"],
        );
    }

    #[test]
    fn no_secret_is_shown() {
        let text =
            format!("{MAIL}smtp = \"smtp://localhost\"\nuser = \"u\"\npassword = \"hush\"\n");
        let settings: AlertSettings = toml::from_str(&text).unwrap();
        let shown = format!(
            "{settings:?} {} {}",
            serde_json::to_string(&settings).unwrap(),
            settings.receiver()
        );
        assert!(!shown.contains("hush"), "{shown}");
    }

    #[test]
    fn another_time_or_secret_makes_no_other_receiver() {
        let read = |text: &str| toml::from_str::<AlertSettings>(text).unwrap();
        let one = read(&format!("url = \"http://a/\"\n{SECRET}"));
        let same =
            read("url = \"http://a/\"\nagain_after_secs = 60\nquiet_hours = \"22:00-07:00\"\n");
        assert!(one.is_to_receiver_of(&same));
        for other in ["url = \"http://b/\"\n", "command = [\"/x\"]\n", MAIL] {
            assert!(!one.is_to_receiver_of(&read(other)), "{other}");
        }
    }
}
