//! The address in `store.url`, read: which database, and how the connection to it is protected; not
//! the connection.

use super::tls::DatabaseTls;
use crate::store::database_url::DatabaseUrl;
use percent_encoding::percent_decode_str;
use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    str::FromStr as _,
    time::Duration,
};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// Time in which a connection to one host is made, or the next host is tried.
pub(in crate::store::postgres) const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Time after which a connection is given up whose other end confirms nothing.
const SILENT_TIME_MAX: Duration = Duration::from_secs(20);

/// Prepared statements of a connection at most that a URL may ask for. A plan takes some ten KB of the
/// server's memory.
const STATEMENT_CACHE_SIZE_MAX: usize = 1_000;

/// Reads a URL, and the file of certificates that it names.
pub(in crate::store::postgres) fn address(url: &DatabaseUrl) -> Result<DatabaseAddress, String> {
    if !DatabaseUrl::is_named_by(url.reveal()) {
        return Err("it begins with postgresql://".into());
    }
    let (base, query) = url.reveal().split_once('?').unwrap_or((url.reveal(), ""));
    let mut rest = Vec::new();
    let mut tls = WantedTls::default();
    let mut statement_cache_size = 0;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
        match name {
            "sslmode" => tls.mode = Some(value()),
            "sslrootcert" => tls.root = Some(PathBuf::from(value())),
            "statement_cache_size" => statement_cache_size = cache_size(&value())?,
            _ => rest.push(pair),
        }
    }
    let mut config = tokio_postgres::Config::from_str(&format!("{base}?{}", rest.join("&")))
        .map_err(|error| super::fault::words(&error))?;
    if config.get_user().is_none() {
        return Err("it names no user".into());
    }
    if config.get_dbname().is_none() {
        return Err("it names no database".into());
    }
    if config.get_hosts().is_empty() {
        return Err("it names no host".into());
    }
    let tls = tls.settled(config.get_hosts())?;
    config.ssl_mode(if tls.is_some() {
        SslMode::Require
    } else {
        SslMode::Disable
    });
    if config.get_hosts().len() > 1 {
        // A standby that still answers takes no changes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIME_MAX);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENT_TIME_MAX);
    }
    if config.get_application_name().is_none() {
        config.application_name("everfeed");
    }
    Ok(DatabaseAddress {
        config,
        tls,
        statement_cache_size,
    })
}

fn cache_size(written: &str) -> Result<usize, String> {
    let size = written.parse().ok();
    size.filter(|size| *size <= STATEMENT_CACHE_SIZE_MAX)
        .ok_or_else(|| {
            format!("its statement_cache_size is no number of at most {STATEMENT_CACHE_SIZE_MAX}")
        })
}

/// The address of a database, read.
pub(in crate::store::postgres) struct DatabaseAddress {
    pub(in crate::store::postgres) config: tokio_postgres::Config,
    /// `None` for a connection without TLS.
    pub(in crate::store::postgres) tls: Option<DatabaseTls>,
    /// Statements that a connection keeps prepared at most. 0 for poolers that give each transaction
    /// another connection, and where nothing is said: nobody tells that one stands between.
    pub(in crate::store::postgres) statement_cache_size: usize,
}

/// Protection that a URL asks for.
#[derive(Default)]
struct WantedTls {
    mode: Option<String>,
    root: Option<PathBuf>,
}

impl WantedTls {
    // Decides: When does a connection to the database have TLS?
    /// TLS with verified names, unless it is turned off or nobody else can listen.
    fn settled(self, hosts: &[Host]) -> Result<Option<DatabaseTls>, String> {
        let is_wanted = match self.mode.as_deref() {
            None => self.root.is_some() || !hosts.iter().all(is_here),
            Some("verify-full") => true,
            Some("disable") => false,
            Some(_) => {
                return Err(
                    "its sslmode is none of verify-full and disable: anything between would not verify the server"
                        .into(),
                );
            }
        };
        if !is_wanted {
            return Ok(None);
        }
        let tls = DatabaseTls::new(self.root.as_deref()).map_err(|error| error.to_string())?;
        Ok(Some(tls))
    }
}

/// True for a host on this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
            name == "localhost" || address.is_loopback()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expect: Result<bool, &str>) {
        let read = address(&DatabaseUrl::new(url));
        let read = read.map(|address| address.tls.is_some());
        match (read, expect) {
            (Ok(has_tls), Ok(expect)) => assert_eq!(has_tls, expect, "{url}"),
            (Err(told), Err(expect)) => assert!(told.contains(expect), "{url}: {told}"),
            (read, _) => panic!("{url}: {read:?}"),
        }
    }

    #[test]
    fn tls_verifies_the_server_unless_nobody_else_can_listen_or_it_is_turned_off() {
        check("postgresql://u:p@db.example/feeds", Ok(true));
        check("postgresql://u:p@10.0.0.7/feeds?sslmode=disable", Ok(false));
        check(
            "postgresql://u:p@a,b:5433/feeds?sslmode=verify-full",
            Ok(true),
        );
        check("postgresql://u:p@127.0.0.1:5433/feeds", Ok(false));
        check("postgresql://u@%2Frun%2Fpostgresql/feeds", Ok(false));
        check(
            "postgresql://u@localhost/feeds?sslmode=verify-full",
            Ok(true),
        );
        check(
            "postgresql://u@db.example/f?sslmode=require",
            Err("sslmode"),
        );
        check(
            "postgresql://u@db.example/f?sslrootcert=/none",
            Err("sslrootcert"),
        );
    }

    #[test]
    fn what_is_missing_in_a_url_is_said() {
        check("mysql://u:p@h/d", Err("postgresql://"));
        check("postgresql://h/feeds", Err("user"));
        check("postgresql://u@h", Err("database"));
        check("postgresql:///feeds?user=u", Err("host"));
        check("postgresql://u@h/d?colour=red", Err("colour"));
        for size in ["", "many", "-1", "1001"] {
            let url = format!("postgresql://u@localhost/d?statement_cache_size={size}");
            check(&url, Err("statement_cache_size"));
        }
        check(
            "postgresql://u@localhost/d?statement_cache_size=1000",
            Ok(false),
        );
    }
}
