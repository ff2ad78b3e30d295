//! Reasons for which there is no new certificate, and whose fault each is; not what is done about
//! it.

use crate::{
    layers::{Fault, FetchError, TlsFault},
    one_line::one_line,
};
use instant_acme::{Error, Problem};
use std::time::Duration;

/// Characters at most of one reason that an authority gives.
const REASON_CHARS_MAX: usize = 300;
/// Characters at most of the name of a type of problem.
const KIND_CHARS_MAX: usize = 60;
/// Characters at most of all that is told of a failure: some names, each with its reason.
const TEXT_CHARS_MAX: usize = 1500;

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
    /// A fault of a party, in the part of an order that has no name of its own.
    fn of(whose: Fault, text: String) -> Self {
        Self {
            whose,
            text,
            wait: None,
            step: OrderStep::Certificate,
        }
    }

    /// A fault of this process or its machine.
    pub fn ours(text: impl Into<String>) -> Self {
        Self::of(Fault::Ours, text.into())
    }

    /// A fault of the authority.
    pub fn of_authority(text: impl Into<String>) -> Self {
        Self::of(Fault::Peer, text.into())
    }

    /// The same as the log and the status may have it: on one line, and not too long.
    #[must_use]
    pub fn told(self) -> Self {
        Self {
            text: one_line(&self.text, TEXT_CHARS_MAX),
            ..self
        }
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

/// An answer with an error status that is no problem document: a gateway before the authority, or
/// no authority at all.
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
            Error::Crypto | Error::KeyRejected => Self::ours(
                "the kept key of the account cannot be used; remove the folder to begin anew",
            ),
            error => Self::of_authority(format!("an answer that is not understood: {error}")),
        }
    }
}

impl From<rcgen::Error> for AcmeFault {
    fn from(error: rcgen::Error) -> Self {
        Self::ours(format!("a key or a request could not be made: {error}"))
    }
}

impl From<&FetchError> for AcmeFault {
    fn from(error: &FetchError) -> Self {
        let text = format!("the authority could not be asked: {error}");
        if matches!(error, FetchError::Tls(TlsFault::UnknownIssuer, _)) {
            let root = "give the root certificate of a private authority as server.tls.acme.root";
            return Self::of(Fault::Configuration, format!("{text}; {root}"));
        }
        Self::of(error.fault(), text)
    }
}

impl From<&Problem> for AcmeFault {
    fn from(problem: &Problem) -> Self {
        let kind = problem
            .r#type
            .as_deref()
            .map_or("", |kind| kind.rsplit(':').next().unwrap_or(kind));
        let kind = one_line(kind, KIND_CHARS_MAX);
        let reason = problem.detail.as_deref().unwrap_or("no reason was given");
        let mut text = one_line(reason, REASON_CHARS_MAX);
        for part in &problem.subproblems {
            if text.len() > TEXT_CHARS_MAX {
                break;
            }
            text = format!("{text}; {}", one_line(&part.to_string(), REASON_CHARS_MAX));
        }
        Self::of(whose(&kind), format!("{text} [{kind}]"))
    }
}

/// The party that has to act on a type of problem (RFC 8555, section 6.7).
fn whose(kind: &str) -> Fault {
    match kind {
        // The authority did not find us at the names, or may not.
        "caa" | "connection" | "dns" | "incorrectResponse" | "tls" | "unauthorized"
        | "rejectedIdentifier" | "unsupportedIdentifier"
        // The account lacks something.
        | "invalidContact" | "unsupportedContact" | "userActionRequired"
        | "externalAccountRequired" => Fault::Configuration,
        // We asked too often, or wrongly.
        "rateLimited" | "badCSR" | "badNonce" | "badPublicKey" | "badSignatureAlgorithm"
        | "malformed" => Fault::Ours,
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
    use crate::one_line::steers;

    #[test]
    fn a_reason_is_one_line_and_not_too_long() {
        let long = "x".repeat(10_000);
        let detail = format!("a\r\n2026 ERROR no\u{1b}[31m\u{202e}b\u{2028}c {long}");
        let kind = format!("urn:e:{long}\n");
        let part = serde_json::json!({ "type": kind, "detail": detail });
        let all =
            serde_json::json!({ "type": kind, "detail": detail, "subproblems": vec![part; 100] });
        let fault = AcmeFault::from(Error::Api(serde_json::from_value(all).unwrap()));
        assert!(
            fault.text.starts_with("a 2026 ERROR no [31m b c xxx"),
            "{fault}"
        );
        assert!(!fault.text.contains(steers), "{fault}");
        assert!(fault.text.chars().count() < 2 * TEXT_CHARS_MAX);
        let joined = AcmeFault {
            text: format!("{long}\n{}", fault.text),
            ..fault
        }
        .told();
        assert_eq!(
            joined.text.chars().count(),
            TEXT_CHARS_MAX + 1,
            "with its ellipsis"
        );
        assert_eq!(
            joined.clone().told().text.chars().count(),
            TEXT_CHARS_MAX + 1
        );
        assert_eq!(
            (one_line("\n ", 9), one_line(" a \t b ", 3)),
            (String::new(), "a b".to_owned())
        );
    }

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
            let text =
                format!(r#"{{"type":"urn:ietf:params:acme:error:{kind}","detail":"so it is"}}"#);
            let fault = AcmeFault::from(Error::Api(serde_json::from_str(&text).unwrap()));
            assert_eq!(fault.whose, whose, "{kind}");
            assert!(
                fault
                    .to_string()
                    .starts_with(&format!("so it is [{kind}] (")),
                "{fault}"
            );
        }
        let fault = AcmeFault::from(Error::Other(Box::new(FetchError::BadUrl)));
        assert_eq!(fault.whose, Fault::Configuration);
    }
}
