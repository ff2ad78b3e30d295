//! The header of the PROXY protocol, by which a proxy before us tells the address of its client,
//! and of its TLS; who is believed is decided in `listener`.

use ppp::{HeaderResult, v1, v2};
use std::{
    io::{Error, ErrorKind, Result},
    net::IpAddr,
};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The first bytes of version 2 (section 2.2 of the specification).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of version 2 before its addresses.
const FIXED_BYTES: usize = 16;
/// Bytes of addresses and other parts of version 2.
const PARTS_BYTES_MAX: usize = 4 << 10;
/// Bytes of version 1 (section 2.1).
const LINE_BYTES_MAX: usize = 107;
/// The part of version 2 that tells of TLS (section 2.2.6), and the bit of its first byte that says
/// that the client used it.
const TLS_PART: u8 = v2::Type::SSL as u8;
const CLIENT_USED_TLS: u8 = 0x01;

/// The client of a proxy, as its header tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProxiedClient {
    /// Its address; `None` where the proxy speaks for itself.
    pub(super) address: Option<IpAddr>,
    /// True where TLS of the client ended at the proxy.
    pub(super) is_over_tls: bool,
}

/// Reads the header, and nothing behind it.
pub(super) async fn read_proxy_header(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<ProxiedClient> {
    let mut header = vec![0; SIGNATURE.len()];
    stream.read_exact(&mut header).await?;
    if header == SIGNATURE {
        header.resize(FIXED_BYTES, 0);
        stream.read_exact(&mut header[SIGNATURE.len()..]).await?;
        let parts = usize::from(u16::from_be_bytes([header[14], header[15]]));
        if parts > PARTS_BYTES_MAX {
            return Err(no_header());
        }
        header.resize(FIXED_BYTES + parts, 0);
        stream.read_exact(&mut header[FIXED_BYTES..]).await?;
    } else if header.starts_with(b"PROXY ") {
        while !header.ends_with(b"\n") && header.len() < LINE_BYTES_MAX {
            header.push(stream.read_u8().await?);
        }
    }
    client(&header).ok_or_else(no_header)
}

/// The client in a whole header.
fn client(header: &[u8]) -> Option<ProxiedClient> {
    match HeaderResult::parse(header) {
        HeaderResult::V1(read) => {
            let address = match read.ok()?.addresses {
                v1::Addresses::Tcp4(ends) => Some(ends.source_address.into()),
                v1::Addresses::Tcp6(ends) => Some(ends.source_address.into()),
                v1::Addresses::Unknown => None,
            };
            // This version has no word for TLS.
            Some(ProxiedClient {
                address,
                is_over_tls: false,
            })
        }
        HeaderResult::V2(read) => {
            let read = read.ok()?;
            let address = match (read.command, read.addresses) {
                (v2::Command::Proxy, v2::Addresses::IPv4(ends)) => Some(ends.source_address.into()),
                (v2::Command::Proxy, v2::Addresses::IPv6(ends)) => Some(ends.source_address.into()),
                _ => None,
            };
            let says_tls = |part: v2::TypeLengthValue<'_>| {
                part.kind == TLS_PART
                    && part
                        .value
                        .first()
                        .is_some_and(|bits| bits & CLIENT_USED_TLS != 0)
            };
            let mut is_over_tls = false;
            // Where the proxy speaks for itself nothing of them counts (section 2.2).
            for part in read.tlvs().filter(|_| address.is_some()) {
                is_over_tls |= says_tls(part.ok()?);
            }
            Some(ProxiedClient {
                address,
                is_over_tls,
            })
        }
    }
}

fn no_header() -> Error {
    Error::new(
        ErrorKind::InvalidData,
        "a trusted proxy sent no header of the PROXY protocol",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_versions_tell_the_client_and_nothing_behind_the_header_is_read() {
        let v2 = |command: u8, family: u8, parts: &[u8]| {
            let length = u16::try_from(parts.len()).unwrap().to_be_bytes();
            [&SIGNATURE[..], &[0x20 | command, family], &length, parts].concat()
        };
        let ipv4 = [198, 51, 100, 7, 127, 0, 0, 1, 0, 80, 0, 81];
        let ipv6 = [
            &[0x20, 1, 0xd, 0xb8][..],
            &[0; 11],
            &[7],
            &[0; 15],
            &[1],
            &[0, 80, 0, 81],
        ]
        .concat();
        // With a part that nobody needs, as HAProxy sends them.
        let parts = [&ipv4[..], &[4, 0, 3, 1, 2, 3]].concat();
        for (header, expect) in [
            (
                b"PROXY TCP4 198.51.100.7 127.0.0.1 80 81\r\n".to_vec(),
                Some(Some("198.51.100.7")),
            ),
            (
                b"PROXY TCP6 2001:db8::7 ::1 80 81\r\n".to_vec(),
                Some(Some("2001:db8::7")),
            ),
            (b"PROXY UNKNOWN\r\n".to_vec(), Some(None)),
            (v2(1, 0x11, &ipv4), Some(Some("198.51.100.7"))),
            (v2(1, 0x11, &parts), Some(Some("198.51.100.7"))),
            (v2(1, 0x21, &ipv6), Some(Some("2001:db8::7"))),
            (v2(0, 0x11, &ipv4), Some(None)),
            (v2(0, 0, &[]), Some(None)),
            (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(), None),
            (b"PROXY TCP4 198.51.100.7\r\n".to_vec(), None),
            (b"PROXY TCP4 here 127.0.0.1 80 81\r\n".to_vec(), None),
            ([&b"PROXY UNKNOWN "[..], &[b'x'; 200]].concat(), None),
            (v2(1, 0x11, &ipv4[..4]), None),
            (v2(1, 0x11, &[0; 5000]), None),
            (v2(3, 0x11, &ipv4), None),
            // Parts that end beyond the header, or have no length.
            (
                v2(1, 0x11, &[&ipv4[..], &[4, 0, 4, 1, 2, 3]].concat()),
                None,
            ),
            (
                v2(1, 0x21, &[&ipv6[..], &[4, 0, 0, 4, 0xff, 0xff]].concat()),
                None,
            ),
            (v2(1, 0x11, &[&ipv4[..], &[4, 0]].concat()), None),
            (
                v2(0, 0x11, &[&ipv4[..], &[4, 0, 4, 1]].concat()),
                Some(None),
            ),
        ] {
            let sent = [&header[..], b"GET /"].concat();
            let mut rest = &sent[..];
            let read = read_proxy_header(&mut rest).await.ok();
            let expect = expect.map(|client| client.map(|client| client.parse().unwrap()));
            assert_eq!(
                read.map(|client| client.address),
                expect,
                "{}",
                header.escape_ascii()
            );
            assert!(
                read.is_none() || rest == b"GET /",
                "{}",
                header.escape_ascii()
            );
        }
        // As HAProxy sends them with `send-proxy-v2-ssl`: bits, a verdict on the client's
        // certificate, and parts of the part.
        let tls = |bits: u8| [&ipv4[..], &[0x20, 0, 8, bits, 0, 0, 0, 1, 0x21, 0, 0]].concat();
        for (header, expect) in [
            (v2(1, 0x11, &tls(1)), true),
            (v2(1, 0x11, &tls(7)), true),
            (v2(1, 0x11, &tls(6)), false),
            (v2(1, 0x11, &ipv4), false),
            (v2(1, 0x11, &[&ipv4[..], &[0x20, 0, 0]].concat()), false),
            (v2(1, 0x11, &[&ipv4[..], &[4, 0, 1, 0x20]].concat()), false),
            // The proxy speaks for itself.
            (v2(0, 0x11, &tls(1)), false),
        ] {
            let read = read_proxy_header(&mut &header[..]).await.unwrap();
            assert_eq!(read.is_over_tls, expect, "{}", header.escape_ascii());
        }
        let cut = v2(1, 0x11, &ipv4);
        assert!(read_proxy_header(&mut &cut[..20]).await.is_err());
    }
}
