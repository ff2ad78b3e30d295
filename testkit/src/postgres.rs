//! A server of PostgreSQL on a socket of its own. It ends with the process that started it, however
//! that ends, and takes its folder with it.

use std::{
    fs::{self, Permissions},
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};
use tempfile::TempDir;

mod small_disk;

use small_disk::SmallDisk;

/// Serves until its standard input ends. Nothing has to outlive a crash of the machine, so nothing
/// is synced. Its default isolation is the one that troubles transactions most.
const SERVED: &str = r#"
programs=$1 folder=$2 data=$3 log_mb=$4
shift 4
if [ ! -d "$data" ]; then
    "$programs/initdb" -D "$data" -U everfeed -A trust -E UTF8 --locale=C --no-sync \
        --wal-segsize="$log_mb" >"$folder/log" 2>&1
fi
"$programs/postgres" -D "$data" -k "$folder" -c listen_addresses= -c fsync=off -c full_page_writes=off \
    -c max_connections=400 -c shared_buffers=32MB \
    -c default_transaction_isolation=serializable "$@" >>"$folder/log" 2>&1 &
read -r _
kill -QUIT $! 2>/dev/null
wait
[ -e "$folder/keep" ] || rm -rf "$folder"
"#;

/// Files of its log at most that it keeps ready on a small disk.
const LOGS_MAX: usize = 40;

/// The line of the log by which it says that it takes connections; a standby says more of them.
const READY: &str = "database system is ready to accept";

/// A server of PostgreSQL.
pub struct PostgresServer {
    folder: PathBuf,
    /// Settings of its own.
    settings: Vec<String>,
    serving: Option<Child>,
    /// The disk of its data, if that is one of its own.
    disk: Option<SmallDisk>,
}

impl PostgresServer {
    /// Makes a database and serves it. Panics where PostgreSQL is not installed.
    pub fn start() -> Self {
        let mut server = Self::made();
        server.start_again();
        server
    }

    /// Likewise, with its data on a small disk of its own.
    pub fn start_on_small_disk() -> Self {
        let mut server = Self::made();
        server.disk = Some(SmallDisk::made(&server.folder));
        // It keeps few files of its log ready.
        let settings = ["min_wal_size=2MB", "max_wal_size=8MB"];
        server.settings = settings.map(str::to_owned).to_vec();
        server.start_again();
        server
    }

    /// Leaves no room on its disk: no table grows, and no further file of its log is begun.
    pub fn fill_disk(&self) {
        self.disk.as_ref().expect("a disk of its own").fill();
    }

    /// Makes room on its disk.
    pub fn empty_disk(&self) {
        self.disk.as_ref().expect("a disk of its own").empty();
    }

    /// Has it begin files of its log until there is no room for one, and it crashes.
    pub fn crash_on_full_disk(&self) {
        let begun = || self.try_ask("SELECT pg_switch_wal(), txid_current()");
        let crashed = (0..LOGS_MAX).any(|_| begun().is_none());
        assert!(crashed, "it still writes its log: {}", self.log());
    }

    /// Serves one at a port of 127.0.0.1, too, with this certificate and key. The answer is beside
    /// the port.
    pub fn start_with_tls(certificate: &str, key: &str) -> (Self, u16) {
        let mut server = Self::made();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut settings = vec![
            "ssl=on".to_owned(),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
        ];
        for (name, setting, text) in [
            ("certificate.pem", "ssl_cert_file", certificate),
            ("key.pem", "ssl_key_file", key),
        ] {
            let path = server.folder.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            give_to_user(&path);
            settings.push(format!("{setting}={}", path.display()));
        }
        server.settings = settings;
        server.start_again();
        (server, port)
    }

    /// A standby of a server that serves, which follows it from now on.
    pub fn standby_of(primary: &Self) -> Self {
        let mut server = Self::made();
        let mut command = as_user(&programs().join("pg_basebackup").display().to_string());
        let copied = command
            .args(["-R", "-X", "stream", "-c", "fast", "-U", "everfeed", "-h"])
            .arg(&primary.folder)
            .arg("-D")
            .arg(server.folder.join("data"))
            .current_dir(&server.folder)
            .output()
            .unwrap();
        assert!(copied.status.success(), "{copied:?}");
        // A standby refuses to be asked in the other one.
        let isolation = "default_transaction_isolation=read committed";
        server.settings = vec![isolation.to_owned()];
        server.start_again();
        server
    }

    /// The URL of the database of whichever of two servers takes changes.
    pub fn url_with(&self, other: &Self) -> String {
        let socket = |server: &Self| server.folder.display().to_string().replace('/', "%2F");
        let (one, two) = (socket(self), socket(other));
        format!("postgresql://everfeed@{one},{two}/postgres")
    }

    fn made() -> Self {
        let folder = TempDir::with_prefix("everfeed-pg").unwrap().keep();
        give_to_user(&folder);
        Self {
            folder,
            settings: Vec::new(),
            serving: None,
            disk: None,
        }
    }

    /// The URL of its database.
    pub fn url(&self) -> String {
        let socket = self.folder.display().to_string().replace('/', "%2F");
        format!("postgresql://everfeed@{socket}/postgres")
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Serves what it held before.
    pub fn start_again(&mut self) {
        let _ = fs::remove_file(self.folder.join("keep"));
        let times_ready = self.times_ready();
        let mut command = as_user("sh");
        command.args(["-c", SERVED, "sh"]).arg(programs());
        command.arg(&self.folder);
        command = match &self.disk {
            Some(disk) => {
                command.arg(disk.data(&self.folder)).arg("1");
                disk.command(command)
            }
            None => {
                command.arg(self.folder.join("data")).arg("16");
                command
            }
        };
        let child = command
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]))
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .spawn();
        self.serving = Some(child.unwrap());
        for _ in 0..1200 {
            if self.times_ready() > times_ready {
                return;
            }
            thread::sleep(Duration::from_millis(25));
        }
        panic!("PostgreSQL does not start: {}", self.log());
    }

    /// Ends it at once, as a crash would. What it holds stays.
    pub fn end(&mut self) {
        fs::write(self.folder.join("keep"), "").unwrap();
        if let Some(mut serving) = self.serving.take() {
            drop(serving.stdin.take());
            serving.wait().unwrap();
        }
    }

    /// The first column of the first row that a statement answers with.
    pub fn ask(&self, sql: &str) -> String {
        let answer = self.try_ask(sql);
        answer.unwrap_or_else(|| panic!("{sql}: {}", self.log()))
    }

    /// The same; `None` where it fails.
    pub fn try_ask(&self, sql: &str) -> Option<String> {
        let output = Command::new(programs().join("psql"))
            .args(["-X", "-A", "-t", "-U", "everfeed", "-d", "postgres", "-h"])
            .arg(&self.folder)
            .args(["-c", sql])
            .output()
            .unwrap();
        let answer = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| answer.trim().to_owned())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn times_ready(&self) -> usize {
        self.log().matches(READY).count()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A program, run as the user of PostgreSQL, which refuses root.
fn as_user(program: &str) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(program);
    command
}

/// A pgbouncer before a server, which parts its connections at the end of each transaction.
pub struct Pooler {
    folder: TempDir,
    serving: Child,
}

/// The settings of one; `%` is the folder of the server, `@` its own.
const POOLED: &str = "[databases]
postgres = host=% port=5432 user=everfeed dbname=postgres
[pgbouncer]
listen_port = 6432
unix_socket_dir = @
auth_type = any
pool_mode = transaction
max_client_conn = 300
default_pool_size = 60
ignore_startup_parameters = extra_float_digits
logfile = @/log
pidfile = @/pid
";

impl Pooler {
    /// Serves before a server. Panics where pgbouncer is not installed.
    pub fn before(server: &PostgresServer) -> Self {
        let folder = TempDir::with_prefix("everfeed-pooler").unwrap();
        give_to_user(folder.path());
        let settings = POOLED
            .replace('%', &server.folder.display().to_string())
            .replace('@', &folder.path().display().to_string());
        let path = folder.path().join("pgbouncer.ini");
        fs::write(&path, settings).unwrap();
        give_to_user(&path);
        let serving = as_user("pgbouncer")
            .args(["-q".as_ref(), path.as_os_str()])
            .current_dir(&folder)
            .spawn()
            .expect("pgbouncer is not installed: tests/run installs it");
        let pooler = Self { folder, serving };
        for _ in 0..400 {
            if pooler.folder.path().join(".s.PGSQL.6432").exists() {
                return pooler;
            }
            thread::sleep(Duration::from_millis(25));
        }
        panic!("pgbouncer does not start");
    }

    /// The URL of the database behind it.
    pub fn url(&self) -> String {
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgresql://everfeed@{socket}:6432/postgres")
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.serving.kill();
        let _ = self.serving.wait();
    }
}

/// Gives a file or a folder to the user that PostgreSQL runs as.
fn give_to_user(path: &Path) {
    if is_root() {
        let (user, group) = user_of("postgres");
        chown(path, Some(user), Some(group)).unwrap();
    }
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// The numbers of a user and of its group.
fn user_of(name: &str) -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users
        .lines()
        .find(|line| line.split(':').next() == Some(name));
    let line = line.expect("the user `postgres` comes with PostgreSQL: tests/run installs it");
    let number = |at| line.split(':').nth(at).unwrap().parse().unwrap();
    (number(2), number(3))
}

/// The folder of the programs of the newest PostgreSQL.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let folders = versions.map(|version| version.unwrap().path().join("bin"));
    let installed = folders.filter(|folder: &PathBuf| Path::new(folder).join("initdb").exists());
    let newest = installed.max();
    newest.expect("PostgreSQL is not installed: tests/run installs it")
}
