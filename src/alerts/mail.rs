//! An alert by mail: one message by SMTP, over a connection of its own.

use super::{message::AlertMessage, settings::AlertSettings};
use crate::secret::Secret;
use lettre::{
    AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor,
    message::{
        Mailbox, SinglePart,
        header::{ContentType, HeaderName, HeaderValue},
    },
    transport::smtp::{
        authentication::Credentials,
        client::{Tls, TlsParameters},
        extension::ClientId,
    },
};
use std::{
    net::IpAddr,
    time::{Duration, SystemTime},
};
use url::Url;

/// Seconds for each step of a conversation with the mail server.
const STEP_SECS: u64 = 10;

/// The way by mail.
pub(super) struct AlertMail {
    to: Vec<Mailbox>,
    from: Mailbox,
    server: Url,
    credentials: Option<(String, Secret)>,
    public_url: String,
}

impl AlertMail {
    /// The way of these settings; `None` for those of another way.
    pub(super) fn of(settings: &AlertSettings, public_url: &str) -> Option<Self> {
        let to = settings.to.iter().map(|to| to.parse().ok());
        Some(Self {
            to: to.collect::<Option<Vec<Mailbox>>>()?,
            from: settings.from.as_ref()?.parse().ok()?,
            server: settings.smtp.clone()?,
            credentials: settings.user.clone().zip(settings.password.clone()),
            public_url: public_url.to_owned(),
        })
    }

    /// Sends a message. The error is the reason for which it was not accepted.
    pub(super) async fn send(&self, message: &AlertMessage) -> Result<(), String> {
        let mail = self.mail(message)?;
        let transport = self.transport().map_err(|error| error.to_string())?;
        let sent = transport.send(mail).await;
        sent.map(drop).map_err(|error| in_words(&error))
    }

    fn transport(
        &self,
    ) -> Result<AsyncSmtpTransport<Tokio1Executor>, lettre::transport::smtp::Error> {
        let host = host(&self.server);
        let is_tls = self.server.scheme() == "smtps";
        let (tls, usual_port) = if is_tls {
            (Tls::Wrapper(TlsParameters::new(host.to_owned())?), 465)
        } else if is_near(host) {
            (Tls::None, 25)
        } else {
            // A password, and what is wrong here, go over no open line.
            (Tls::Required(TlsParameters::new(host.to_owned())?), 587)
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(self.server.port().unwrap_or(usual_port))
            .tls(tls)
            .hello_name(ClientId::Domain(self.from.email.domain().to_owned()))
            .timeout(Some(Duration::from_secs(STEP_SECS)));
        if let Some((user, password)) = &self.credentials {
            let password = password.reveal().to_owned();
            builder = builder.credentials(Credentials::new(user.clone(), password));
        }
        Ok(builder.build())
    }

    fn mail(&self, message: &AlertMessage) -> Result<lettre::Message, String> {
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(message.at.micros());
        let domain = self.from.email.domain();
        let mut mail = lettre::Message::builder()
            .from(self.from.clone())
            .subject(message.subject())
            .date(at)
            .message_id(Some(format!("<{}.everfeed@{domain}>", message.id)));
        for to in &self.to {
            mail = mail.to(to.clone());
        }
        let body = SinglePart::builder()
            .header(ContentType::TEXT_PLAIN)
            .body(message.text(&self.public_url));
        let mut mail = mail.singlepart(body).map_err(|error| error.to_string())?;
        // RFC 3834: nobody's holiday is to answer.
        let name = HeaderName::new_from_ascii_str("Auto-Submitted");
        mail.headers_mut()
            .insert_raw(HeaderValue::new(name, "auto-generated".to_owned()));
        Ok(mail)
    }
}

/// The host of a mail server, without the brackets of an address.
fn host(server: &Url) -> &str {
    let host = server.host_str().unwrap_or_default();
    let address = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    address.unwrap_or(host)
}

/// True for a mail server on this machine. The library of URLs takes the host of `smtp` for a name,
/// whatever it is.
fn is_near(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// An error with the causes behind it, of which the library shows the first alone.
fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(behind) = cause {
        let more = behind.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = behind.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::testing::message;

    fn mail(smtp: &str) -> AlertMail {
        let settings = AlertSettings {
            to: vec!["Me <me@example.org>".into(), "you@example.org".into()],
            from: Some("everfeed@example.org".into()),
            smtp: Some(Url::parse(smtp).unwrap()),
            ..AlertSettings::default()
        };
        AlertMail::of(&settings, "https://feeds.example/").unwrap()
    }

    #[test]
    fn a_server_on_this_machine_needs_no_tls_and_any_other_does() {
        let check = |smtp: &str, near: bool, expect: &str| {
            let mail = mail(smtp);
            let host = host(&mail.server);
            assert_eq!((is_near(host), host), (near, expect), "{smtp}");
        };
        check("smtp://localhost", true, "localhost");
        check("smtp://127.0.0.1:2525", true, "127.0.0.1");
        check("smtp://[::1]:25", true, "::1");
        check("smtp://mail.example.org:587", false, "mail.example.org");
        check("smtp://10.0.0.1", false, "10.0.0.1");
        check("smtps://mail.example.org", false, "mail.example.org");
    }

    #[test]
    fn no_text_of_others_becomes_a_header_of_its_own() {
        let odd = "x\r\nBcc: evil@example.org\r\n\r\n<b>\u{202e}".to_owned() + &"y".repeat(5000);
        let made = mail("smtp://localhost").mail(&message(&odd)).unwrap();
        let text = String::from_utf8(made.formatted()).unwrap();
        let (head, _) = text.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("\r\nBcc:"), "{head}");
        assert!(head.contains("Auto-Submitted: auto-generated"), "{head}");
        assert!(
            head.contains("Message-ID: <event_1.everfeed@example.org>"),
            "{head}"
        );
        assert!(head.lines().all(|line| line.len() < 1000), "{head}");
    }
}
