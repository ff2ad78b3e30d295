//! The address of an outline of a list of feeds (OPML): whether it can be that of a feed; not what is
//! there.

use crate::{layers::is_private_host, setting::holds_controls};
use thiserror::Error;
use url::Url;

/// Length of an address at most, bytes.
const ADDRESS_BYTES_MAX: usize = 2048;

/// An address that is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RefusedAddress {
    /// It is too long.
    #[error("its address is longer than {ADDRESS_BYTES_MAX} bytes")]
    TooLong,
    /// A parser of URLs would take characters out of it.
    #[error("control characters stand in its address")]
    Controls,
    /// It is of another kind.
    #[error("its address is no http or https URL")]
    NoUrl,
    /// Its host is on this machine or its network.
    #[error("its host is on this machine or its network, and no address of a list leads there")]
    Private,
}

// Decides: Which addresses of a list are those of feeds?
/// The address that an outline names.
pub fn outline_address(text: &str, takes_private: bool) -> Result<Url, RefusedAddress> {
    let text = text.trim();
    if text.len() > ADDRESS_BYTES_MAX {
        return Err(RefusedAddress::TooLong);
    }
    if holds_controls(text) {
        return Err(RefusedAddress::Controls);
    }
    // `feed:https://…` and `feed://…` are addresses for programs.
    let bare = match text.split_at_checked(5) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("feed:") => {
            match rest.strip_prefix("//") {
                Some(rest) => format!("http://{rest}"),
                None => rest.to_owned(),
            }
        }
        _ => text.to_owned(),
    };
    let url = Url::parse(&bare).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let mut url = url.ok_or(RefusedAddress::NoUrl)?;
    url.set_fragment(None);
    if !takes_private && is_private_host(&url) {
        return Err(RefusedAddress::Private);
    }
    Ok(url)
}
