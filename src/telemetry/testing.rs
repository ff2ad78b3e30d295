//! Lines that are logged, for tests; not how they are written elsewhere.

use std::{
    io,
    sync::{Arc, LazyLock, Mutex},
};
use tracing::{Dispatch, subscriber::DefaultGuard};
use tracing_subscriber::{EnvFilter, filter::LevelFilter, fmt, prelude::*};

/// Everything that this thread logs of ours, at every level.
pub struct Logged {
    bytes: Arc<Mutex<Vec<u8>>>,
    _guard: DefaultGuard,
}

/// A second dispatcher, which takes nothing. While there is only one, `tracing` asks the thread that meets a line first whether
/// anybody wants it, and remembers the answer for all threads: that of another test would be no.
static SECOND: LazyLock<Dispatch> =
    LazyLock::new(|| tracing_subscriber::registry().with(LevelFilter::OFF).into());

impl Logged {
    /// Logged lines from now on.
    pub fn begin() -> Self {
        LazyLock::force(&SECOND);
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let written = bytes.clone();
        let layer = fmt::layer()
            .with_ansi(false)
            .with_writer(move || Written(written.clone()));
        // The layer of requests has a target of its own.
        let filter = EnvFilter::new("everfeed=trace,tower_http=trace");
        let guard = tracing_subscriber::registry()
            .with(filter)
            .with(layer)
            .set_default();
        Self {
            bytes,
            _guard: guard,
        }
    }

    /// The lines so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }
}

struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
