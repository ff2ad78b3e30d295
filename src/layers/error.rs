//! Failures of an exchange, in terms of whose fault it is and whether it may pass. Not for HTTP
//! statuses: an answer with status 500 is an answer, and its meaning is the caller's business.

use std::time::Duration;

use thiserror::Error;

/// The source of an error, for the log and not for the other side.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The party that has to act before the same call can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The other side: the upstream of a poll, the consumer behind a callback.
    Peer,
    /// The network between, the name servers included.
    Network,
    /// The configuration: a limit, or what it lacks.
    Configuration,
    /// This process or its machine.
    Ours,
}

/// Reason why no usable answer came back.
///
/// `Display` is the public text: no URL, no path, no query string, no credentials, no resolved
/// address. The `source` chain is internal.
#[derive(Debug, Error)]
pub enum FetchError {
    #[error("the address is not an absolute http or https URL")]
    BadUrl,
    #[error("{0}")]
    Resolve(NameFault, #[source] BoxError),
    #[error("{0}")]
    Connect(ConnectFault, #[source] BoxError),
    #[error("{0}")]
    Tls(TlsFault, #[source] BoxError),
    #[error("no {awaited} within {} s", .after.as_secs_f32())]
    Timeout { after: Duration, awaited: Awaited },
    #[error("refused to connect: {0}")]
    Refused(#[from] Refused),
    #[error("more than {redirects_max} redirects")]
    TooManyRedirects { redirects_max: usize },
    #[error("a redirect that cannot be followed: {0}")]
    BadRedirect(#[from] BadRedirect),
    #[error("the body is larger than {bytes_max} bytes {size}")]
    TooLarge { bytes_max: u64, size: Size },
    #[error("{0}")]
    Inflate(InflateFault, #[source] BoxError),
    #[error("{0}")]
    Cut(CutFault, #[source] BoxError),
    #[error("{0}")]
    Protocol(ProtocolFault, #[source] BoxError),
    #[error("held back: this host was asked often enough, room in {} s", .wait.as_secs_f32())]
    Throttled { wait: Duration },
    #[error("other large documents are being read, and there was no memory left for this one")]
    Crowded,
    #[error(
        "the address leads back to this everfeed itself, which takes no deliveries. Subscribe with an address of \
         the subscriber's own"
    )]
    LeadsBack,
    #[error("the request could not be sent from here")]
    Local(#[source] BoxError),
}

impl FetchError {
    // Decides: Which fault is a failed request?
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Throttled { .. } | Self::Crowded | Self::Local(_) => Fault::Ours,
            Self::BadUrl | Self::LeadsBack => Fault::Configuration,
            Self::Resolve(NameFault::Unanswered, _)
            // A host that is down answers or refuses as a rule; packets get lost on the way.
            | Self::Connect(
                ConnectFault::Unreachable | ConnectFault::TimedOut | ConnectFault::Other,
                _,
            ) => Fault::Network,
            Self::Resolve(NameFault::Unknown, _)
            | Self::Connect(ConnectFault::Refused | ConnectFault::Closed, _)
            | Self::Tls(..)
            | Self::Timeout { .. }
            | Self::Refused(_)
            | Self::TooManyRedirects { .. }
            | Self::BadRedirect(_)
            | Self::TooLarge { .. }
            | Self::Inflate(..)
            | Self::Cut(..)
            | Self::Protocol(..) => Fault::Peer,
        }
    }

    /// True when the same call may succeed later with nobody changing anything on purpose.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Resolve(..)
            | Self::Connect(..)
            | Self::Tls(..)
            | Self::Timeout { .. }
            | Self::Inflate(..)
            | Self::Cut(..)
            | Self::Protocol(..)
            | Self::Throttled { .. }
            | Self::Crowded
            | Self::Local(_) => true,
            Self::BadUrl
            | Self::LeadsBack
            | Self::Refused(_)
            | Self::TooManyRedirects { .. }
            | Self::BadRedirect(_)
            | Self::TooLarge { .. } => false,
        }
    }

    /// Time to wait at least before the same call, when we know. Only our own governor says so
    /// here; what the peer asks for stands in its `Retry-After`.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::Throttled { wait } => Some(*wait),
            _ => None,
        }
    }

    /// One word for metrics and stored poll states. Stable.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadUrl => "bad-url",
            Self::Resolve(..) => "resolve",
            Self::Connect(..) => "connect",
            Self::Tls(..) => "tls",
            Self::Timeout { .. } => "timeout",
            Self::Refused(_) => "refused",
            Self::TooManyRedirects { .. } => "too-many-redirects",
            Self::BadRedirect(_) => "bad-redirect",
            Self::TooLarge { .. } => "too-large",
            Self::Inflate(..) => "inflate",
            Self::Cut(..) => "cut",
            Self::Protocol(..) => "protocol",
            Self::Throttled { .. } => "throttled",
            Self::Crowded => "crowded",
            Self::LeadsBack => "leads-back",
            Self::Local(_) => "local",
        }
    }

    /// Restores an error that passed through a layer which boxes, such as tower's timeout.
    pub(super) fn from_boxed(after: Duration) -> impl Fn(BoxError) -> Self + Clone {
        move |boxed| match boxed.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) if other.is::<tower::timeout::error::Elapsed>() => Self::Timeout {
                after,
                awaited: Awaited::Head,
            },
            Err(other) => Self::Local(other),
        }
    }
}

/// Part of an answer that did not come in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Awaited {
    /// Its head.
    #[error("answer")]
    Head,
    /// All of it.
    #[error("complete answer")]
    Whole,
}

/// Fault of a host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NameFault {
    #[error("the host name does not exist")]
    Unknown,
    #[error("the host name could not be looked up: no name server answered")]
    Unanswered,
}

/// Fault of a connection that was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectFault {
    #[error("the connection was refused: nothing listens there")]
    Refused,
    #[error("the server cannot be reached from here: there is no route to it")]
    Unreachable,
    #[error("the server did not take the connection in time")]
    TimedOut,
    #[error("the server closed the connection while it was made")]
    Closed,
    #[error("no connection could be made")]
    Other,
}

/// Fault of a TLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TlsFault {
    #[error("the server's TLS certificate has expired")]
    Expired,
    #[error("the server's TLS certificate is not valid yet")]
    NotYetValid,
    #[error("the server's TLS certificate is for another host")]
    WrongName,
    #[error("the issuer of the server's TLS certificate is not trusted by this machine")]
    UnknownIssuer,
    #[error("the server's TLS certificate was revoked")]
    Revoked,
    #[error(
        "the server's TLS certificate is self-signed, or is an authority's own, and this machine does not trust it"
    )]
    OfIssuer,
    #[error("the server's TLS certificate was not made for a server")]
    NotForServers,
    #[error("the server's TLS certificate is not valid")]
    BadCertificate,
    #[error("the server does not speak TLS at this port; is the address meant to begin with http?")]
    NotTls,
    #[error("the TLS handshake failed")]
    Other,
}

/// Fault of an answer that broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CutFault {
    #[error("the answer was cut short before it began: the server closed the connection")]
    Unanswered,
    #[error(
        "the answer was cut short before it began: the server closed the connection; is the address meant to begin with https?"
    )]
    UnansweredInPlain,
    #[error("the answer was cut short")]
    Body,
}

/// Fault of an answer that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolFault {
    #[error("the answer was not valid HTTP")]
    Malformed,
    #[error("the head of the answer is larger than a head may be: 100 lines, 400 KiB")]
    LargeHead,
}

/// Fault of a body that is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InflateFault {
    #[error("the body could not be inflated as its Content-Encoding says")]
    Damaged,
    #[error(
        "the body could not be inflated: its Content-Encoding is none that was asked for (gzip, deflate, br, zstd)"
    )]
    UnknownCoding,
}

/// Reason why the guard would not let a connection be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    #[error("the host is not on the public internet, and no configuration names it")]
    Address,
    #[error(
        "the host name led to public addresses and now leads to private ones; a restart accepts that"
    )]
    Rebound,
    #[error("port {0} is neither 80, 443 nor above 1023")]
    Port(u16),
    #[error("the address is one of everfeed itself, and never a callback")]
    Own,
}

/// The fault of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadRedirect {
    #[error("it has no Location")]
    NoLocation,
    #[error("its Location is not an http or https URL")]
    Unreadable,
    #[error("it leads from https back to http")]
    Downgrade,
    #[error("it leads back to where it came from")]
    Loop,
    #[error("it leads to another host")]
    Elsewhere,
}

/// Which of a body's two sizes was over its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Size {
    /// As sent.
    #[error("on the wire")]
    Wire,
    /// After its Content-Encoding was undone.
    #[error("once inflated")]
    Inflated,
}
