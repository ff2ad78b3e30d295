//! Whatever a configuration names outside of itself, tried: addresses to listen at, servers behind
//! sites, commands of alerts, and the rights of files with secrets.

use crate::{
    config::{Config, ConfigSource, Origin, settings_in_force},
    secret::public_url,
};
use futures_util::{StreamExt as _, stream};
use std::{
    collections::BTreeMap,
    fs, io,
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{net::TcpStream, time::timeout};
use url::Url;

/// Time for which a server may take to accept a connection.
const CONNECT_WAITS: Duration = Duration::from_secs(5);

/// Servers that are tried at once.
const AT_ONCE: usize = 16;

/// Rights of anybody to run a file.
const RUN_BY_ANY: u32 = 0o111;

/// Rights of everybody on the machine to read a file.
const READ_BY_ALL: u32 = 0o004;

/// Tries everything, and tells each fault in a sentence; else that there is none. `running` is not
/// empty where everfeed runs with this file: its listeners are its own.
pub(super) async fn all(config: &Config, file: &Path, running: &[String]) -> Vec<String> {
    let mut told = Vec::new();
    if running.is_empty() {
        let server = &config.server;
        let listeners = server.listen.tcp().chain(server.tls.redirect_from);
        let listeners = listeners.chain([server.admin_listen]);
        told.extend(listeners.filter_map(of_listener));
    }
    let origins = config.site.iter().map(|site| site.origin.clone());
    let mut origins: Vec<Url> = origins.collect();
    origins.sort_unstable();
    origins.dedup();
    let tried = stream::iter(origins).map(of_origin).buffered(AT_ONCE);
    told.extend(tried.collect::<Vec<_>>().await.into_iter().flatten());
    told.extend(
        config
            .alert
            .iter()
            .filter_map(|alert| of_command(&alert.command)),
    );
    told.extend(of_secrets(config, file));
    if told.is_empty() {
        told.push(
            "the listeners, the servers of sites, the commands of alerts and the rights of files: no fault".to_owned(),
        );
    }
    told
}

/// The fault of an address at which nobody can listen now.
fn of_listener(address: SocketAddr) -> Option<String> {
    let error = TcpListener::bind(address).err()?;
    let (why, remedy) = match error.kind() {
        io::ErrorKind::AddrInUse => (
            "another process listens there".to_owned(),
            "Stop it, or give another port",
        ),
        io::ErrorKind::AddrNotAvailable => (
            "this machine does not have the address".to_owned(),
            "Give one of its own, or 0.0.0.0",
        ),
        io::ErrorKind::PermissionDenied => (
            "this user may not listen there".to_owned(),
            "Give a port from 1024 on, socket activation, or the capability CAP_NET_BIND_SERVICE",
        ),
        _ => (error.to_string(), "Give another address"),
    };
    Some(format!("{address}: {why}. {remedy}"))
}

/// The fault of a server to which there is no connection.
async fn of_origin(origin: Url) -> Option<String> {
    let (host, port) = (origin.host_str()?, origin.port_or_known_default()?);
    // A connection takes an IPv6 address without its brackets.
    let host = host.trim_matches(['[', ']']);
    let why = match timeout(CONNECT_WAITS, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no connection within {} s", CONNECT_WAITS.as_secs()),
    };
    let origin = public_url(&origin);
    Some(format!(
        "{origin} of a site: {why}. Start that server, or give its address"
    ))
}

/// The fault of a command of an alert that cannot be run. It is not run for this. Whether this user may
/// run it says nothing of the user of the service, so any right to run it counts.
fn of_command(command: &[String]) -> Option<String> {
    let program = command.first()?;
    let (why, remedy) = match fs::metadata(program) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => (
            "there is no such file".to_owned(),
            "Give the whole path of a program".to_owned(),
        ),
        Err(error) => (
            error.to_string(),
            "Give a program that can be read".to_owned(),
        ),
        Ok(found) if !found.is_file() => (
            "this is no file".to_owned(),
            "Give the whole path of a program".to_owned(),
        ),
        Ok(found) if found.permissions().mode() & RUN_BY_ANY == 0 => (
            "nobody may run this file".to_owned(),
            format!("Run `chmod +x {program}`"),
        ),
        Ok(_) => return None,
    };
    Some(format!("{program} of an alert: {why}. {remedy}"))
}

/// The faults of files with secrets that everybody on the machine can read.
fn of_secrets(config: &Config, file: &Path) -> Vec<String> {
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    let settings = settings_in_force(&ConfigSource::of(file)).unwrap_or_default();
    for setting in settings {
        if let Origin::File { file, .. } = &setting.origin
            && setting.value.to_string().contains("***")
        {
            let key = format!("{}.{}", setting.table, setting.key);
            files.entry(file.clone()).or_insert(key);
        }
    }
    let named = [
        (&config.server.tls.key, "server.tls.key"),
        (&config.store.key_file, "store.key_file"),
        (&config.xmpp.secret_file, "xmpp.secret_file"),
        (&config.upstream.identity, "upstream.identity"),
        (&config.upstream.identity_also, "upstream.identity_also"),
    ];
    for (path, key) in named {
        if let Some(path) = path {
            files.entry(path.clone()).or_insert_with(|| key.to_owned());
        }
    }
    let fault = |(path, key): (PathBuf, String)| {
        let mode = fs::metadata(&path).ok()?.permissions().mode();
        let path = path.display();
        (mode & READ_BY_ALL != 0).then(|| {
            format!(
                "{path}: every user of this machine can read the secret of {key}. Run `chmod o= {path}`"
            )
        })
    };
    files.into_iter().filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[tokio::test]
    async fn a_port_that_is_taken_a_server_that_is_down_and_a_secret_for_all_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("everfeed.toml");
        let [listening, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [taken, up] = [&listening, &other].map(|listener| listener.local_addr().unwrap());
        let down = {
            let gone = TcpListener::bind("127.0.0.1:0").unwrap();
            gone.local_addr().unwrap()
        };
        let text = |origin: SocketAddr| {
            format!(
                "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"{taken}\"\nadmin_token = \"0123456789abcdef\"\n\
                 [[site]]\norigin = \"http://{origin}\"\n"
            )
        };
        let tried = async |origin: SocketAddr, mode: u32, running: &[String]| {
            fs::write(&file, text(origin)).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let config = Config::load(&file, []).unwrap();
            all(&config, &file, running).await
        };
        let running = ["no feed changed".to_owned()];
        let told = tried(down, 0o644, &[]).await;
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(
            told[0].starts_with(&format!("{taken}: another process")),
            "{told:?}"
        );
        assert!(told[1].contains(&down.to_string()), "{told:?}");
        assert!(
            told[2].contains("server.admin_token. Run `chmod o= "),
            "{told:?}"
        );
        let told = tried(up, 0o640, &running).await;
        assert!(told.len() == 1 && told[0].ends_with("no fault"), "{told:?}");
        drop((listening, other));
    }

    #[test]
    fn a_command_of_an_alert_that_cannot_be_run_is_told_and_none_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let (program, mark) = (folder.path().join("notify"), folder.path().join("mark"));
        let script = format!("#!/bin/sh\ntouch {}\n", mark.display());
        let told = || of_command(&[program.display().to_string(), "--urgent".into()]);
        assert!(told().unwrap().contains("no such file"));
        fs::create_dir(&program).unwrap();
        assert!(told().unwrap().contains("no file"));
        fs::remove_dir(&program).unwrap();
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o644)).unwrap();
        assert!(told().unwrap().contains("chmod +x"));
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(told(), None);
        assert!(!mark.exists(), "it is not run");
        assert_eq!(of_command(&[]), None);
    }
}
