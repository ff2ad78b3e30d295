//! The header of the PROXY protocol, by which a proxy before us tells the address of its client; who is believed is decided
//! in `listener`.

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

/// Reads the header, and nothing behind it: the address of the client, or `None` where the proxy speaks for itself.
pub(super) async fn read_proxy_header(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<IpAddr>> {
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

/// The address of the client in a whole header.
fn client(header: &[u8]) -> Option<Option<IpAddr>> {
    match HeaderResult::parse(header) {
        HeaderResult::V1(read) => Some(match read.ok()?.addresses {
            v1::Addresses::Tcp4(ends) => Some(ends.source_address.into()),
            v1::Addresses::Tcp6(ends) => Some(ends.source_address.into()),
            v1::Addresses::Unknown => None,
        }),
        HeaderResult::V2(read) => {
            let read = read.ok()?;
            Some(match (read.command, read.addresses) {
                (v2::Command::Proxy, v2::Addresses::IPv4(ends)) => Some(ends.source_address.into()),
                (v2::Command::Proxy, v2::Addresses::IPv6(ends)) => Some(ends.source_address.into()),
                _ => None,
            })
        }
    }
}

fn no_header() -> Error {
    Error::new(ErrorKind::InvalidData, "a trusted proxy sent no header of the PROXY protocol")
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
        let ipv6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[7], &[0; 15], &[1], &[0, 80, 0, 81]].concat();
        // With a part that nobody needs, as HAProxy sends them.
        let parts = [&ipv4[..], &[4, 0, 3, 1, 2, 3]].concat();
        for (header, expect) in [
            (b"PROXY TCP4 198.51.100.7 127.0.0.1 80 81\r\n".to_vec(), Some(Some("198.51.100.7"))),
            (b"PROXY TCP6 2001:db8::7 ::1 80 81\r\n".to_vec(), Some(Some("2001:db8::7"))),
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
        ] {
            let sent = [&header[..], b"GET /"].concat();
            let mut rest = &sent[..];
            let read = read_proxy_header(&mut rest).await.ok();
            let expect = expect.map(|client| client.map(|client| client.parse().unwrap()));
            assert_eq!(read, expect, "{}", header.escape_ascii());
            assert!(read.is_none() || rest == b"GET /", "{}", header.escape_ascii());
        }
        let cut = v2(1, 0x11, &ipv4);
        assert!(read_proxy_header(&mut &cut[..20]).await.is_err());
    }
}
