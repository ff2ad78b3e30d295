//! Reasons for which there is no new certificate, and whose fault each is; not what is done about it.

use crate::layers::{Fault, FetchError, TlsFault};
use instant_acme::{Error, Problem};
use std::time::Duration;

/// A reason for which there is no new certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeFault {
    /// The party that has to act.
    pub whose: Fault,
    /// The event, in words.
    pub text: String,
    /// Time for which the authority wants to be left alone.
    pub wait: Option<Duration>,
    /// The part of an order that failed.
    pub step: OrderStep,
}

/// A part of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStep {
    /// Everything before the authority is asked for a certificate: no order was placed.
    Account,
    /// The proof of the names, which another way may give.
    Proof,
    /// Everything else.
    Certificate,
}

impl AcmeFault {
    /// A fault of this process or its machine.
    pub fn ours(text: impl Into<String>) -> Self {
        Self { whose: Fault::Ours, text: text.into(), wait: None, step: OrderStep::Certificate }
    }

    /// A fault of the authority.
    pub fn of_authority(text: impl Into<String>) -> Self {
        Self { whose: Fault::Peer, text: text.into(), wait: None, step: OrderStep::Certificate }
    }

    /// The party in words, for the operator.
    pub fn whose_words(&self) -> &'static str {
        match self.whose {
            Fault::Peer => "the authority's fault",
            Fault::Network => "the network's or a name server's fault",
            Fault::Configuration => "for you to mend: the name, the ports or the configuration",
            Fault::Ours => "our own fault",
        }
    }
}

impl std::fmt::Display for AcmeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.text, self.whose_words())
    }
}

/// An answer with an error status that is no problem document: a gateway before the authority, or no authority at all.
#[derive(Debug, thiserror::Error)]
#[error("the authority answered {0}, and not in the words of ACME")]
pub(super) struct NoProblemDocument(pub(super) http::StatusCode);

impl From<Error> for AcmeFault {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) => Self::from(&problem),
            Error::Other(other) => match other.downcast::<FetchError>() {
                Ok(fetch) => Self::from(&*fetch),
                Err(other) => Self::of_authority(other.to_string()),
            },
            Error::Crypto | Error::KeyRejected => {
                Self::ours("the kept key of the account cannot be used; remove the folder to begin anew")
            }
            error => Self::of_authority(format!("an answer that is not understood: {error}")),
        }
    }
}

impl From<&FetchError> for AcmeFault {
    fn from(error: &FetchError) -> Self {
        let text = format!("the authority could not be asked: {error}");
        let (whose, text) = match error {
            FetchError::Tls(TlsFault::UnknownIssuer, _) => (
                Fault::Configuration,
                format!("{text}; give the root certificate of a private authority as server.tls.acme.root"),
            ),
            _ => (error.fault(), text),
        };
        Self { whose, text, wait: None, step: OrderStep::Certificate }
    }
}

impl From<&Problem> for AcmeFault {
    fn from(problem: &Problem) -> Self {
        let kind = problem.r#type.as_deref().map_or("", |kind| kind.rsplit(':').next().unwrap_or(kind));
        let mut text = problem.detail.clone().unwrap_or_else(|| "no reason was given".to_owned());
        for part in &problem.subproblems {
            text = format!("{text}; {part}");
        }
        Self {
            whose: whose(kind),
            text: format!("{text} [{kind}]"),
            wait: None,
            step: OrderStep::Certificate,
        }
    }
}

/// The party that has to act on a type of problem (RFC 8555, section 6.7).
fn whose(kind: &str) -> Fault {
    match kind {
        // The authority did not find us at the names, or may not.
        "caa" | "connection" | "dns" | "incorrectResponse" | "tls" | "unauthorized" => Fault::Configuration,
        "rejectedIdentifier" | "unsupportedIdentifier" => Fault::Configuration,
        "invalidContact" | "unsupportedContact" | "userActionRequired" | "externalAccountRequired" => {
            Fault::Configuration
        }
        // We asked too often.
        "rateLimited" => Fault::Ours,
        "badCSR" | "badNonce" | "badPublicKey" | "badSignatureAlgorithm" | "malformed" => Fault::Ours,
        _ => Fault::Peer,
    }
}

/// True for an account that the authority does not know, or not any more.
pub(super) fn is_account_unknown(error: &Error) -> bool {
    matches!(error, Error::Api(Problem { r#type: Some(kind), .. }) if kind.ends_with(":accountDoesNotExist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_an_owner() {
        for (kind, whose) in [
            ("dns", Fault::Configuration),
            ("unauthorized", Fault::Configuration),
            ("rejectedIdentifier", Fault::Configuration),
            ("rateLimited", Fault::Ours),
            ("serverInternal", Fault::Peer),
            ("somethingNew", Fault::Peer),
        ] {
            let text = format!(r#"{{"type":"urn:ietf:params:acme:error:{kind}","detail":"so it is"}}"#);
            let fault = AcmeFault::from(Error::Api(serde_json::from_str(&text).unwrap()));
            assert_eq!(fault.whose, whose, "{kind}");
            assert!(fault.to_string().starts_with(&format!("so it is [{kind}] (")), "{fault}");
        }
        let fault = AcmeFault::from(Error::Other(Box::new(FetchError::BadUrl)));
        assert_eq!(fault.whose, Fault::Configuration);
    }
}
