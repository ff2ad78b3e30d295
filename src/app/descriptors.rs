//! Open files of the process: how many there may be, and how many of them consumers may have; not
//! who they are.

use crate::config::Config;

/// Files that the process has open besides connections: the store, listeners, logs, what the
/// runtime needs.
const OWN_FILES: u64 = 64;
/// Connections of the operator.
const OPERATOR_FILES: u64 = 64;
/// Connections that are sent to HTTPS.
const REDIRECT_FILES: u64 = 256;
/// Connections of a job in flight to publishers: one to its own host, and one to another that it was
/// sent to.
const FILES_PER_JOB: u64 = 2;
/// Jobs in flight to publishers besides polls.
const OTHER_JOBS: u64 = 52;
/// Part of the files that polls may have: one divided by this.
const POLLS_SHARE: u64 = 8;
/// Connections of consumers that there is room for at least, whatever else is short.
const CONSUMERS_MIN: u64 = 16;
/// Files from which on connections to publishers and callbacks are kept for the next request of the
/// same visit.
const IDLE_FILES_MIN: u64 = 8192;

/// Part of the connections that are kept for requests that are answered at once: one divided by
/// this.
const ANSWERED_SHARE: usize = 5;
/// Part of the connections that may wait for one client: one divided by this.
const CLIENT_SHARE: usize = 2;

/// Of so many connections those on which requests may wait: in all, and for one client.
pub(super) fn waiting_connections(connections_max: usize) -> (usize, usize) {
    let most = connections_max - connections_max / ANSWERED_SHARE;
    (most.max(1), (connections_max / CLIENT_SHARE).max(1))
}

/// Open files that the process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptors {
    files_max: u64,
}

impl Descriptors {
    /// Raises the limit to what the system allows.
    pub(super) fn raised() -> Self {
        let files_max = rlimit::increase_nofile_limit(u64::MAX).unwrap_or_else(|error| {
            tracing::warn!(error = %error, "The limit on open files could not be raised: {error}");
            rlimit::getrlimit(rlimit::Resource::NOFILE).map_or(1024, |(soft, _)| soft)
        });
        Self { files_max }
    }

    // Decides: How many polls are in flight at once?
    /// Polls in flight at most: those that are configured, or as many as an eighth of the files is
    /// enough for.
    pub(super) fn polls_in_flight_max(self, config: &Config) -> usize {
        let room = self.files_max / POLLS_SHARE / FILES_PER_JOB;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let wanted = config.upstream.polls_in_flight_max;
        if room < wanted {
            tracing::info!(
                files = self.files_max,
                polls = room,
                "upstream.polls_in_flight_max is {wanted}, but this process may have only {} open files: {room} polls \
                 are in flight at once",
                self.files_max
            );
        }
        room.clamp(1, wanted)
    }

    // Decides: How many connections may consumers have?
    /// Connections of consumers at once: those that are configured, or as many as leave room for
    /// the store, publishers, callbacks and the operator.
    pub(super) fn connections_max(self, config: &Config) -> usize {
        let callbacks = u64::try_from(config.hub.in_flight_max).unwrap_or(u64::MAX);
        let redirects = config
            .server
            .tls
            .redirect_from
            .map_or(0, |_| REDIRECT_FILES);
        let polls = u64::try_from(config.upstream.polls_in_flight_max).unwrap_or(u64::MAX);
        let publishers = FILES_PER_JOB.saturating_mul(polls.saturating_add(OTHER_JOBS));
        let reserved = (OWN_FILES + OPERATOR_FILES + redirects)
            .saturating_add(callbacks)
            .saturating_add(publishers);
        let room = self.files_max.saturating_sub(reserved).max(CONSUMERS_MIN);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let wanted = config.server.connections_max;
        if room < wanted {
            tracing::warn!(
                files = self.files_max,
                connections = room,
                "server.connections_max is {wanted}, but this process may have only {} open files: {room} connections \
                 will be served at once, and others wait; raise the limit (LimitNOFILE in systemd, ulimits in Docker)",
                self.files_max
            );
        }
        room.min(wanted)
    }

    /// Idle connections kept for each host of publishers and callbacks.
    pub(super) fn idle_per_host(self) -> usize {
        if self.files_max < IDLE_FILES_MIN {
            0
        } else {
            2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_wait_leave_connections_to_others() {
        assert_eq!(
            [25_000, 16, 1].map(waiting_connections),
            [(20_000, 12_500), (13, 8), (1, 1)]
        );
    }

    #[test]
    fn polls_take_an_eighth_of_the_files_at_most() {
        let config = Config::default();
        let polls = |files_max| Descriptors { files_max }.polls_in_flight_max(&config);
        assert_eq!([1_048_576, 1024, 8].map(polls), [600, 64, 1]);
    }

    #[test]
    fn consumers_get_what_the_others_leave() {
        let connections = |files_max| {
            let files = Descriptors { files_max };
            let mut config = Config::default();
            config.upstream.polls_in_flight_max = files.polls_in_flight_max(&config);
            files.connections_max(&config)
        };
        let config = Config::default();
        assert_eq!(connections(1_048_576), config.server.connections_max);
        assert_eq!(connections(1024), 1024 - 360 - config.hub.in_flight_max);
        assert_eq!(connections(100), 16);
        assert_eq!(
            [1024, 65_536].map(|files_max| Descriptors { files_max }.idle_per_host()),
            [0, 2]
        );
    }
}
