//! The addresses at which consumers are served, as they are configured; not the sockets.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

/// An address at which consumers are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket in the file system: `unix:/run/everfeed/http.sock`.
    Unix(PathBuf),
    /// The sockets that systemd hands over: `systemd`.
    Systemd,
}

impl FromStr for ListenAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("unix:") {
            Some("") => Err("unix: has no path"),
            Some(path) => Ok(Self::Unix(path.into())),
            None if text == "systemd" => Ok(Self::Systemd),
            None => text
                .parse()
                .map(Self::Tcp)
                .map_err(|_| "no address and port"),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Systemd => f.write_str("systemd"),
        }
    }
}

/// The addresses of `server.listen`: one or several, written as a text or a list of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddresses(Vec<ListenAddress>);

impl ListenAddresses {
    /// Every address.
    pub fn iter(&self) -> impl Iterator<Item = &ListenAddress> {
        self.0.iter()
    }

    /// The addresses with a port.
    pub fn tcp(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().filter_map(|address| match address {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) | ListenAddress::Systemd => None,
        })
    }

    /// Makes paths relative to a folder.
    pub fn below(&mut self, folder: &Path) {
        for address in &mut self.0 {
            if let ListenAddress::Unix(path) = address {
                *path = folder.join(&*path);
            }
        }
    }
}

impl From<SocketAddr> for ListenAddresses {
    fn from(address: SocketAddr) -> Self {
        Self(vec![ListenAddress::Tcp(address)])
    }
}

impl fmt::Display for ListenAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(", "))
    }
}

impl Serialize for ListenAddresses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => serializer.collect_str(one),
            all => serializer.collect_seq(all.iter().map(ToString::to_string)),
        }
    }
}

impl<'de> Deserialize<'de> for ListenAddresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum WrittenAddresses {
            One(String),
            Several(Vec<String>),
        }
        let texts = match WrittenAddresses::deserialize(deserializer)? {
            WrittenAddresses::One(text) => vec![text],
            WrittenAddresses::Several(texts) => texts,
        };
        let addresses: Vec<ListenAddress> = texts
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()
            .map_err(D::Error::custom)?;
        if addresses.is_empty() {
            Err(D::Error::custom("no address"))
        } else {
            Ok(Self(addresses))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_a_text_and_several_are_a_list() {
        for text in [
            "\"127.0.0.1:80\"",
            "\"[::1]:80\"",
            "\"unix:/run/x.sock\"",
            "\"systemd\"",
            "[\"127.0.0.1:80\",\"unix:x\"]",
        ] {
            let addresses: ListenAddresses = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&addresses).unwrap(), text);
        }
        for text in [
            "\"here\"",
            "\"127.0.0.1\"",
            "\"unix:\"",
            "80",
            "[]",
            "[\"here\"]",
            "{}",
            "\"unix\"",
        ] {
            assert!(
                serde_json::from_str::<ListenAddresses>(text).is_err(),
                "{text}"
            );
        }
    }
}
