//! A certificate that everfeed gets and renews itself (ACME, RFC 8555): its settings, the things
//! that are kept of it, and the moments at which an authority is asked; not the connections on
//! which it is shown.

use crate::setting::{RefusedSetting, quoted};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use url::{Host, Url};

pub mod authority;

mod fault;

mod folder;

mod kept;

mod challenge;

pub mod held;

pub mod keeper;

mod order_limit;

mod protocol;

mod renewal;

mod transport;

pub mod validity;

pub use challenge::OpenChallenge;
pub use fault::{AcmeFault, OrderStep};
pub use folder::AcmeFolder;
pub use held::HeldCertificate;
pub use keeper::{CertificateKeeper, CertificateState, CertificateWatch};
pub use kept::{AcmeKept, AcmeRows};
pub use protocol::{AcmeAuthority, ProtocolParts};

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Names in one certificate at most, as Let's Encrypt has it.
const DOMAINS_MAX: usize = 100;

/// `[server.tls.acme]`: a certificate by an authority that speaks ACME, in place of files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AcmeSettings {
    /// Host names of the certificate. All of them lead to this machine.
    pub domains: Vec<String>,
    /// Address of e-mail at which the authority reaches the operator.
    pub contact: Option<String>,
    /// True where the operator has read the authority's terms and agrees to them; nothing is asked
    /// of it else.
    pub agree_to_terms: bool,
    /// URL of the authority's directory.
    pub directory: Url,
    /// File of a root certificate (PEM) that is trusted for the directory, beside those of the
    /// machine.
    pub root: Option<PathBuf>,
    /// Folder of the account, the certificate and their keys; `acme` beside the store by default. They
    /// are in the database where the store is one.
    pub folder: Option<PathBuf>,
}

impl Default for AcmeSettings {
    fn default() -> Self {
        Self {
            domains: Vec::new(),
            contact: None,
            agree_to_terms: false,
            directory: Url::parse(LETS_ENCRYPT).expect("a literal URL"),
            root: None,
            folder: None,
        }
    }
}

impl AcmeSettings {
    /// The host names as they stand in a certificate: lower case, other scripts as Punycode.
    pub fn names(&self) -> Vec<String> {
        self.domains
            .iter()
            .filter_map(|domain| host_name(domain))
            .collect()
    }

    /// The folder, for a store at this path.
    pub fn folder(&self, store: &Path) -> PathBuf {
        self.folder
            .clone()
            .unwrap_or_else(|| store.with_file_name("acme"))
    }

    /// True for the authority that is asked unless another one is configured.
    pub fn is_lets_encrypt(&self) -> bool {
        self.directory.as_str() == LETS_ENCRYPT
    }

    /// The certificates in the file of the root.
    pub fn roots(&self) -> Result<Vec<u8>, String> {
        let Some(file) = &self.root else {
            return Ok(Vec::new());
        };
        let pem = std::fs::read(file).map_err(|error| format!("it cannot be read: {error}"))?;
        match CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>() {
            Ok(found) if !found.is_empty() => Ok(pem),
            _ => Err("it holds no certificate in PEM form".to_owned()),
        }
    }

    /// Everything that cannot be meant, as far as can be told without reading files.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let mut found = Vec::new();
        let mut refuse = |key: &str, value: String, wanted: &str| {
            found.push(RefusedSetting::new(key, value, wanted));
        };
        if self.domains.is_empty() {
            refuse("domains", "no domain".to_owned(), DOMAINS_WANTED);
        }
        if self.domains.len() > DOMAINS_MAX {
            refuse(
                "domains",
                self.domains.len().to_string(),
                "give 100 domains at most",
            );
        }
        let mut met = BTreeSet::new();
        for domain in &self.domains {
            let wanted = match host_name(domain) {
                Some(name) if met.insert(name.clone()) => continue,
                Some(_) => "a domain is named once",
                None if domain.starts_with("*.") => {
                    "a wildcard needs an entry in the DNS, which everfeed cannot make; name each domain"
                }
                None if is_address(domain) => {
                    "certificates are for names; give the name under which this server is reached, such as \"blog.example.org\""
                }
                None => DOMAINS_WANTED,
            };
            refuse("domains", quoted(domain), wanted);
        }
        if let Some(contact) = self
            .contact
            .as_ref()
            .filter(|contact| !is_mail_address(contact))
        {
            refuse(
                "contact",
                quoted(contact),
                "give one address of e-mail, such as \"you@example.org\"",
            );
        }
        if !self.agree_to_terms {
            let wanted = "an account needs your consent: read the terms of the authority (of Let's Encrypt: \
                          https://letsencrypt.org/repository/) and give agree_to_terms = true";
            refuse("agree_to_terms", false.to_string(), wanted);
        }
        let directory = &self.directory;
        if directory.scheme() != "https"
            || !directory.username().is_empty()
            || directory.host().is_none()
        {
            refuse(
                "directory",
                quoted(directory.as_str()),
                "give the https URL of the authority's directory",
            );
        }
        found
    }
}

const DOMAINS_WANTED: &str = "give the host names of the certificate, for instance [\"feeds.example.org\"]; all of them lead to this machine";

/// A host name in the spelling of certificates; `None` for anything else.
fn host_name(domain: &str) -> Option<String> {
    let Ok(Host::Domain(name)) = Host::parse(domain) else {
        return None;
    };
    let is_label = |label: &str| {
        let plain = label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        plain && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    (name.len() <= 253 && name.split('.').all(is_label)).then_some(name)
}

fn is_address(domain: &str) -> bool {
    let address = domain.trim_start_matches('[').trim_end_matches(']');
    address.parse::<std::net::IpAddr>().is_ok() || matches!(Host::parse(domain), Ok(Host::Ipv4(_)))
}

/// True for what can be an address of e-mail: a part before and behind one `@`, and nothing that
/// would make two of it.
fn is_mail_address(text: &str) -> bool {
    let parts = text.split_once('@');
    let plain = text
        .chars()
        .all(|c| !c.is_whitespace() && !c.is_control() && !",;:?&%<>\"".contains(c));
    plain && parts.is_some_and(|(name, host)| !name.is_empty() && host_name(host).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(settings: &AcmeSettings) -> Vec<String> {
        settings
            .problems()
            .into_iter()
            .map(|problem| problem.to_string())
            .collect()
    }

    #[test]
    fn mistakes_are_told_with_what_would_do() {
        let good = AcmeSettings {
            domains: vec!["Blog.Example.org".into(), "b\u{fc}cher.example".into()],
            contact: Some("you@example.org".into()),
            agree_to_terms: true,
            ..AcmeSettings::default()
        };
        assert_eq!(refused(&good), [""; 0]);
        assert_eq!(good.names(), ["blog.example.org", "xn--bcher-kva.example"]);
        for (domain, part) in [
            ("*.example.org", "a wildcard needs an entry in the DNS"),
            ("192.168.0.1", "certificates are for names"),
            ("[::1]", "certificates are for names"),
            ("2001:db8::1", "certificates are for names"),
            ("https://blog.example.org", "give the host names"),
            ("blog.example.org.", "give the host names"),
            ("under_score.example", "give the host names"),
            ("", "give the host names"),
            ("BLOG.example.org", "a domain is named once"),
        ] {
            let settings = AcmeSettings {
                domains: vec!["blog.example.org".into(), domain.into()],
                ..good.clone()
            };
            let found = refused(&settings);
            assert!(
                found.len() == 1 && found[0].contains(part),
                "{domain}: {found:?}"
            );
        }
        for contact in [
            "",
            "you",
            "mailto:you@example.org",
            "a@b,c@d",
            "a@b@c",
            "a b@c",
        ] {
            let found = refused(&AcmeSettings {
                contact: Some(contact.into()),
                ..good.clone()
            });
            assert!(
                found.len() == 1 && found[0].contains("contact: "),
                "{contact}: {found:?}"
            );
        }
        let directory = Url::parse("http://127.0.0.1/dir").unwrap();
        let found = refused(&AcmeSettings {
            directory,
            ..AcmeSettings::default()
        });
        let parts = [
            "domains: found no domain",
            "agree_to_terms = true",
            "the https URL of the authority",
        ];
        assert_eq!(found.len(), parts.len(), "{found:?}");
        assert!(
            found
                .iter()
                .zip(parts)
                .all(|(found, part)| found.contains(part)),
            "{found:?}"
        );
    }
}
