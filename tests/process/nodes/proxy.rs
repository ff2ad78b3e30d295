//! A proxy between one node and the database, which cuts, stalls and half opens its connections.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixStream},
    select,
    sync::watch,
    task::JoinHandle,
};

/// Bytes that are passed on at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The end of a transaction, as a statement without parameters sends it. What begins one names
/// READ COMMITTED.
const COMMIT: &[u8] = b"COMMIT\0";

/// State of the line between a node and the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All bytes pass.
    Open,
    /// No byte passes, and no connection ends. New ones are taken and lead nowhere.
    Stalled,
    /// The database sees its connections end. The node hears nothing of it before the line is open
    /// again.
    HalfOpen,
}

/// A proxy. It ends when it is dropped.
pub(crate) struct DatabaseProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    socket: PathBuf,
    line: watch::Sender<Line>,
    /// Times that all connections were cut.
    cuts: watch::Sender<usize>,
    /// COMMITs that are still cut. An odd one is passed on first.
    commits: AtomicUsize,
}

impl DatabaseProxy {
    /// Starts one before the server whose socket is in this folder.
    pub(crate) async fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            socket: folder.join(".s.PGSQL.5432"),
            line: watch::Sender::new(Line::Open),
            cuts: watch::Sender::new(0),
            commits: AtomicUsize::new(0),
        });
        let address = listener.local_addr().unwrap();
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                tokio::spawn(serve(node, serving.clone()));
            }
        });
        Self {
            address,
            shared,
            task,
        }
    }

    /// The URL of the database behind it.
    pub(crate) fn url(&self) -> String {
        format!("postgresql://everfeed@{}/postgres", self.address)
    }

    pub(crate) fn set(&self, line: Line) {
        self.shared.line.send_replace(line);
    }

    /// Resets all connections.
    pub(crate) fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Resets the connections on which the next transactions end, so many of them. Every other one
    /// has been committed by then.
    pub(crate) fn cut_commits(&self, commits: usize) {
        self.shared.commits.store(commits, Ordering::SeqCst);
    }
}

impl Drop for DatabaseProxy {
    fn drop(&mut self) {
        self.task.abort();
        self.cut();
    }
}

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Cut,
    HalfOpen,
}

async fn serve(mut node: TcpStream, shared: Arc<Shared>) {
    let mut cuts = shared.cuts.subscribe();
    let mut line = shared.line.subscribe();
    let end = select! {
        end = carry(&mut node, &shared) => end.unwrap_or(End::Closed),
        _ = cuts.changed() => End::Cut,
    };
    if end == End::HalfOpen {
        select! {
            _ = line.wait_for(|line| *line == Line::Open) => {}
            _ = cuts.changed() => {}
        }
    }
    if end != End::Closed {
        let _ = node.set_zero_linger();
    }
}

async fn carry(node: &mut TcpStream, shared: &Shared) -> io::Result<End> {
    let mut line = shared.line.subscribe();
    let state = *line.wait_for(|line| *line != Line::Stalled).await.unwrap();
    if state == Line::HalfOpen {
        return Ok(End::HalfOpen);
    }
    let mut database = UnixStream::connect(&shared.socket).await?;
    // As a server does: an answer in pieces waits for no acknowledgement.
    node.set_nodelay(true)?;
    let (from_node, to_node) = node.split();
    let (from_database, to_database) = database.split();
    select! {
        end = pass_on(from_node, to_database, shared, true) => end,
        end = pass_on(from_database, to_node, shared, false) => end,
        _ = line.wait_for(|line| *line == Line::HalfOpen) => Ok(End::HalfOpen),
    }
}

/// Passes bytes on in one direction.
async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    shared: &Shared,
    has_commits: bool,
) -> io::Result<End> {
    let mut line = shared.line.subscribe();
    let mut bytes = vec![0; PIECE_BYTES];
    loop {
        let length = from.read(&mut bytes).await?;
        if length == 0 {
            return Ok(End::Closed);
        }
        let piece = &bytes[..length];
        let _ = line.wait_for(|line| *line != Line::Stalled).await;
        let Some(left) = shared.cut_of(piece).filter(|_| has_commits) else {
            to.write_all(piece).await?;
            continue;
        };
        if left.is_multiple_of(2) {
            to.write_all(piece).await?;
        }
        return Ok(End::Cut);
    }
}

impl Shared {
    /// The number of cuts that are left, when this piece is to be cut.
    fn cut_of(&self, piece: &[u8]) -> Option<usize> {
        if !piece.windows(COMMIT.len()).any(|part| part == COMMIT) {
            return None;
        }
        let take = |left: usize| left.checked_sub(1);
        let before = self
            .commits
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        before.ok().map(|before| before - 1)
    }
}
