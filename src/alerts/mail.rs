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
use std::time::{Duration, SystemTime};
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
        let host = self.server.host_str().unwrap_or_default();
        let is_tls = self.server.scheme() == "smtps";
        let (tls, usual_port) = if is_tls {
            (Tls::Wrapper(TlsParameters::new(host.to_owned())?), 465)
        } else if is_near(&self.server) {
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

/// True for a mail server on this machine.
fn is_near(server: &Url) -> bool {
    match server.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(v4)) => v4.is_loopback(),
        Some(url::Host::Ipv6(v6)) => v6.is_loopback(),
        None => false,
    }
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
