//! Sockets at which connections arrive: TCP, Unix, and those that systemd hands over; not what is
//! spoken on them.

use super::listen_address::ListenAddress;
use listenfd::ListenFd;
use std::{
    fs,
    io::{Error, ErrorKind, Result},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixSocket, UnixStream};
use tokio_util::either::Either;

/// Permissions of the file of a Unix socket: its folder decides who may connect.
const UNIX_SOCKET_MODE: u32 = 0o666;
/// Connections that may wait to be accepted: a crowd that comes at once, as after a push, all finds
/// room. A client that finds none tries again after a second. The system takes `net.core.somaxconn`
/// for it where that is less.
const BACKLOG: u32 = 4096;
/// The peer of a Unix socket is on this machine.
const UNIX_PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A connection as it arrives.
pub(super) type RawStream = Either<TcpStream, UnixStream>;

/// A connection between two runtimes: the one that accepted it, and the one that serves it.
pub(super) enum MovedStream {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl MovedStream {
    /// Takes a connection from the runtime that has accepted it.
    pub(super) fn take(stream: RawStream) -> Result<Self> {
        match stream {
            Either::Left(stream) => stream.into_std().map(Self::Tcp),
            Either::Right(stream) => stream.into_std().map(Self::Unix),
        }
    }

    /// Gives the connection to the present runtime.
    pub(super) fn settle(self) -> Result<RawStream> {
        match self {
            Self::Tcp(stream) => TcpStream::from_std(stream).map(Either::Left),
            Self::Unix(stream) => UnixStream::from_std(stream).map(Either::Right),
        }
    }
}

/// A socket at which connections arrive.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// Removed at the end, if we made it.
        _file: Option<SocketFile>,
    },
}

/// The file of a Unix socket; removed when it is dropped.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Socket {
    /// Opens the sockets of an address; systemd may hand over several.
    pub(super) async fn open(address: &ListenAddress) -> Result<Vec<Self>> {
        match address {
            ListenAddress::Tcp(address) => Ok(vec![Self::Tcp(listen_tcp(*address)?)]),
            ListenAddress::Unix(path) => Ok(vec![open_unix(path).await?]),
            ListenAddress::Systemd => handed_over(),
        }
    }

    /// The next connection, and the address of its other end.
    pub(super) async fn accept(&self) -> Result<(RawStream, IpAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are small and written whole: waiting for more to send would only delay
                // them.
                let _ = stream.set_nodelay(true);
                Ok((Either::Left(stream), peer.ip()))
            }
            Self::Unix { listener, .. } => {
                Ok((Either::Right(listener.accept().await?.0), UNIX_PEER))
            }
        }
    }

    /// Its address and port, if it has one.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix { .. } => None,
        }
    }
}

/// Listens at an address and port, with room for many who connect at once.
pub fn listen_tcp(address: SocketAddr) -> Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // Connections of a former process do not keep the next one from its port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Makes a socket in the file system. A file that a former process left behind is replaced, one
/// that is in use is not.
async fn open_unix(path: &Path) -> Result<Socket> {
    if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            _ => {
                return Err(Error::new(
                    ErrorKind::AddrInUse,
                    "another process listens there",
                ));
            }
        }
    }
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    let listener = socket.listen(BACKLOG)?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, fs::Permissions::from_mode(UNIX_SOCKET_MODE))?;
    Ok(Socket::Unix {
        listener,
        _file: Some(file),
    })
}

/// The sockets that systemd handed over.
fn handed_over() -> Result<Vec<Socket>> {
    let mut from_systemd = ListenFd::from_env();
    let mut sockets = Vec::new();
    for index in 0..from_systemd.len() {
        if let Ok(Some(listener)) = from_systemd.take_tcp_listener(index) {
            listener.set_nonblocking(true)?;
            sockets.push(Socket::Tcp(TcpListener::from_std(listener)?));
        } else if let Some(listener) = from_systemd.take_unix_listener(index)? {
            listener.set_nonblocking(true)?;
            let listener = UnixListener::from_std(listener)?;
            sockets.push(Socket::Unix {
                listener,
                _file: None,
            });
        }
    }
    if sockets.is_empty() {
        let why = "systemd handed over no socket: the service is to be started by its .socket unit";
        return Err(Error::new(ErrorKind::NotFound, why));
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections that come at once: more than the 128 of the library.
    const CROWD: usize = 250;

    #[tokio::test]
    async fn a_crowd_connects_at_once_before_anybody_is_accepted() {
        let most = fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        assert!(
            most.trim().parse::<usize>().unwrap() > CROWD,
            "the system of this test gives no room"
        );
        let address = "127.0.0.1:0".parse().unwrap();
        let opened = Socket::open(&ListenAddress::Tcp(address)).await.unwrap();
        let address = opened[0].address().unwrap();
        let crowd = (0..CROWD).map(|_| TcpStream::connect(address));
        // Without room, a connection waits until the system gives it up.
        futures_util::future::try_join_all(crowd).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("http.sock");
        let _opened = Socket::open(&ListenAddress::Unix(path.clone()))
            .await
            .unwrap();
        // Without room, a connection to a Unix socket that does not wait is refused.
        futures_util::future::try_join_all((0..CROWD).map(|_| UnixStream::connect(&path)))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("http.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "left behind");
        let address = ListenAddress::Unix(path.clone());
        let first = Socket::open(&address).await.unwrap();
        let second = Socket::open(&address).await.unwrap_err();
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            UNIX_SOCKET_MODE
        );
        drop(first);
        assert!(!path.exists());
        fs::write(&path, "no socket").unwrap();
        assert!(Socket::open(&address).await.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "no socket");
    }
}
