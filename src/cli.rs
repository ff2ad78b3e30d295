//! The command line: from arguments to a configuration, to the running application, to an exit
//! code.

use crate::cli::output::errln;
use crate::{
    app::App,
    config::{self, Config, ConfigError, ConfigSource},
    store::{StoreError, redb::begin_anew},
    telemetry::{self, LogForm},
    threads,
};
use clap::{Args, Parser, Subcommand};
use std::{
    future::Future,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

mod accept;
mod accounts;
mod add;
mod ask;
mod backup;
mod check;
pub mod clock;
mod config_file;
mod config_in_force;
pub mod demo;
mod edited_config;
pub mod explain;
mod export;
mod feeds;
mod forget;
mod health;
mod import;
mod init;
mod manual;
mod output;
#[cfg(test)]
mod page;
mod ping;
mod poll;
pub mod probe;
mod readers;
mod reload;
pub mod replay;
mod status;
mod store;
mod subscribers;

/// `EX_USAGE` of sysexits: the command or the configuration is wrong; nothing was started.
const USAGE: u8 = 64;

/// Gives an old feed a memory and a voice.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
struct Arguments {
    /// Write logs as JSON, one object a line.
    #[arg(long, global = true)]
    log_json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at a blog, write a configuration for it, and print the next commands.
    Init(init::InitOptions),
    /// Add a feed to a configuration. Its comments and its order stay.
    Add(add::AddOptions),
    /// Add the feeds of an OPML list to a configuration, with groups for its folders. What is there
    /// already stays as it is.
    Import(import::ImportOptions),
    /// Print the feeds of a configuration and its registry as OPML, by groups, without credentials.
    Export(WithConfig),
    /// Poll the configured feeds and serve them as Smart Feeds until SIGTERM or SIGINT.
    Serve(ServeOptions),
    /// Check a configuration: what it means, what is risky in it, and who may read which feed. It
    /// also lists stored feeds that the configuration lacks.
    Check(check::CheckOptions),
    /// Print every key of a configuration with its type, default, effect and meaning, as Markdown.
    /// With --config: print the settings of that file in force, and where each is set.
    Config(config_in_force::ConfigOptions),
    /// Run a small legacy blog with everfeed in front of it, and print every change as it arrives.
    Demo(demo::DemoOptions),
    /// Fetch or read a document once, and print what everfeed would keep of it.
    Probe(probe::ProbeOptions),
    /// Tell the hub of a feed that the feed has changed: one line for the deploy of a blog.
    /// Repeats that after 10 and 60 seconds, because some deploys take effect late. Exits with 1
    /// if the hub was not told.
    Ping(ping::PingOptions),
    /// Explain why an item is deleted, suspected or kept, and when a feed is polled.
    Explain(explain::ExplainOptions),
    /// Run recorded documents through the same decisions again, and print the result. Stores
    /// nothing.
    Replay(replay::ReplayOptions),
    /// Reload the configuration of the running everfeed, and print each feed and key that changed.
    Reload(WithConfig),
    /// Print the state of each feed of the running everfeed as a table. Exits with 1 if something
    /// is broken.
    Status(status::StatusOptions),
    /// Poll one feed now and print the result. Exits with 1 if the poll failed.
    Poll(PollOptions),
    /// Accept the changed url of a feed, although its document shares no post with the stored
    /// feed.
    Accept(accept::AcceptOptions),
    /// Exit with 0 if the running everfeed is alive and ready, else with 1. Meant for HEALTHCHECK.
    Health(WithConfig),
    /// Remove a feed that is no longer configured, with all its items; or remove one item for good.
    Forget(forget::ForgetOptions),
    /// Make, list and remove users. Users can read private feeds.
    User {
        #[command(subcommand)]
        command: accounts::UserCommand,
    },
    /// Make, list and revoke the tokens and secret URLs of users.
    Token {
        #[command(subcommand)]
        command: accounts::TokenCommand,
    },
    /// Register feeds beside the configuration file, while everfeed runs; list and remove them.
    Feeds {
        #[command(subcommand)]
        command: feeds::FeedsCommand,
    },
    /// List, try, end and forget the subscriptions to the hub of the running everfeed.
    Subscribers {
        #[command(subcommand)]
        command: subscribers::SubscribersCommand,
    },
    /// Print who reads each feed of the running everfeed: reader software, the readers that it
    /// claims, its requests, and software that misbehaves.
    Readers(readers::ReadersOptions),
    /// Copy the whole store into a file. everfeed may be running.
    Backup(backup::BackupOptions),
    /// Put a backup in the place of the store. Stop everfeed first. The former store is kept under
    /// another name.
    Restore(backup::RestoreOptions),
    /// Check, measure, shrink or copy the store file.
    Store {
        #[command(subcommand)]
        command: store::StoreCommand,
    },
    /// Confirm the machine's clock.
    Clock {
        #[command(subcommand)]
        command: ClockCommand,
    },
    /// Print the script that completes the arguments of everfeed in a shell.
    Completions(manual::CompletionOptions),
    /// Print the manual page of everfeed, or write one page for each command.
    Man(manual::ManOptions),
}

#[derive(Debug, Subcommand)]
enum ClockCommand {
    /// Confirm that the machine's clock is right, although it jumped far ahead.
    Accept(WithConfig),
}

#[derive(Debug, Args)]
struct PollOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The name of the feed.
    feed: String,
    /// Poll even within Retry-After and after 410, and ask for the whole document.
    #[arg(long)]
    now: bool,
}

#[derive(Debug, Args)]
struct ServeOptions {
    #[command(flatten)]
    with: WithConfig,
    /// Make a new, empty store if the old one is missing or empty.
    #[arg(long)]
    new_store: bool,
}

#[derive(Debug, Args)]
struct WithConfig {
    /// The configuration file. Without it: `everfeed.toml`, else `/etc/everfeed.toml`.
    #[arg(long, short, value_name = "FILE", default_value_os_t = usual_config(), hide_default_value = true)]
    config: PathBuf,
}

/// A list, of the running process or of its store.
#[derive(Debug, Args)]
struct ListOptions {
    #[command(flatten)]
    with: WithConfig,
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
}

/// The configuration where none is named.
const DEFAULT_CONFIG: &str = "everfeed.toml";

/// The configuration of the whole machine, which the units of the package name.
const MACHINE_CONFIG: &str = "/etc/everfeed.toml";

/// The configuration where none is named: that of this folder, else that of the machine.
fn usual_config() -> PathBuf {
    first_there(&[DEFAULT_CONFIG, MACHINE_CONFIG])
}

/// The first of these files that is there, else the first.
fn first_there(files: &[&str]) -> PathBuf {
    let there = files.iter().find(|file| Path::new(file).exists());
    PathBuf::from(there.unwrap_or(&files[0]))
}

impl WithConfig {
    fn load(&self) -> Result<Config, ConfigError> {
        Config::load(&self.config, config::environment())
    }
}

/// The configuration of a file that need not be named.
fn load_if_named(file: Option<&Path>) -> Result<Option<Config>, ConfigError> {
    file.map(|file| Config::load(file, config::environment()))
        .transpose()
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let form = if arguments.log_json {
        LogForm::Json
    } else {
        LogForm::Plain
    };
    match obey(arguments.command, form) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<ConfigError>() => {
            errln!("{error}");
            ExitCode::from(USAGE)
        }
        // Whoever reads what is printed, `head` for instance, has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            errln!("everfeed: {error:#}");
            ExitCode::from(if is_misconfigured(&error) { USAGE } else { 1 })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    error.root_cause().downcast_ref().is_some_and(broken)
}

fn obey(command: Command, form: LogForm) -> anyhow::Result<()> {
    // Loads a configuration, and logs no more than warnings from then on.
    let load = |with: &WithConfig| {
        let config = with.load()?;
        telemetry::log(form, "warn");
        Ok::<_, ConfigError>(config)
    };
    match command {
        Command::Check(options) => block_on(check::run(options.with.load()?, &options)),
        Command::Config(options) => config_in_force::run(&options),
        Command::Completions(options) => manual::complete(&options),
        Command::Man(options) => manual::write(&options),
        Command::Serve(options) => {
            let file = &options.with.config;
            if file == Path::new(DEFAULT_CONFIG) && !file.exists() {
                return Err(init::NoConfiguration.into());
            }
            let source = ConfigSource::of(file);
            let config = source.load()?;
            if options.new_store {
                anyhow::ensure!(
                    config.store.url.is_none(),
                    "--new-store is for a file; name a new database in store.url"
                );
                begin_anew(&config.store.path)?;
                if std::fs::metadata(&config.store.path).is_ok_and(|found| found.len() > 0) {
                    let path = config.store.path.display();
                    errln!(
                        "--new-store changes nothing: everfeed uses the store that is at {path}"
                    );
                }
            }
            telemetry::log(form, "info");
            run_to_end(serve(config, source))
        }
        Command::Demo(options) => {
            telemetry::log(form, "error");
            run_to_end(async { demo::run(options, stop_on_signal()).await })
        }
        Command::Probe(options) => {
            telemetry::log(form, "error");
            probe::run(&options)
        }
        Command::Init(options) => {
            telemetry::log(form, "error");
            init::run(&options)
        }
        Command::Add(options) => {
            telemetry::log(form, "error");
            add::run(&options)
        }
        Command::Import(options) => {
            telemetry::log(form, "error");
            import::run(&options)
        }
        Command::Export(with) => {
            telemetry::log(form, "error");
            export::run(&with)
        }
        Command::Ping(options) => {
            telemetry::log(form, "error");
            ping::run(&options)
        }
        Command::Explain(options) => block_on(explain::run(&options, &load(&options.with)?)),
        Command::Replay(options) => {
            telemetry::log(form, "error");
            block_on(replay::run(&options))
        }
        Command::Reload(with) => {
            telemetry::log(form, "warn");
            block_on(reload::run(&with.config))
        }
        Command::Status(options) => block_on(status::run(&options)),
        Command::Poll(options) => block_on(poll::run(&options)),
        Command::Accept(options) => block_on(accept::run(&options, &load(&options.with)?)),
        Command::Health(with) => block_on(health::run(&with.config)),
        Command::Forget(options) => block_on(forget::run(&options, &load(&options.with)?)),
        Command::User { command } => block_on(accounts::run_user(&command, &load(command.with())?)),
        Command::Token { command } => {
            block_on(accounts::run_token(&command, &load(command.with())?))
        }
        Command::Feeds { command } => block_on(feeds::run(&command, &load(command.with())?)),
        Command::Subscribers { command } => block_on(subscribers::run(&command)),
        Command::Readers(options) => block_on(readers::run(&options)),
        Command::Backup(options) => block_on(backup::run(&options, &load(&options.with)?)),
        Command::Restore(options) => block_on(backup::run_restore(&options, &load(&options.with)?)),
        Command::Store { command } => {
            telemetry::log(form, "warn");
            store::run(command)
        }
        Command::Clock {
            command: ClockCommand::Accept(with),
        } => block_on(clock::accept(&load(&with)?)),
    }
}

fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    runtime()?.block_on(work)
}

/// True when the command cannot be meant, when a reload is refused, or when the store says that the
/// configuration points at the wrong file or gives a feed another namespace.
fn is_misconfigured(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(
            StoreError::Schema(_)
                | StoreError::Missing(_)
                | StoreError::Namespace { .. }
                | StoreError::NamespaceHeld { .. }
        )
    ) || error.is::<reload::ReloadFailed>()
        || error.is::<feeds::FeedsRefused>()
        || error.is::<ask::Unanswered>()
        || error.is::<check::CheckRefused>()
        || error.is::<init::NoConfiguration>()
        || error
            .downcast_ref::<probe::Trouble>()
            .is_some_and(|trouble| trouble.is_misused)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    threads::build(tokio::runtime::Builder::new_multi_thread())
}

/// Time for which the end of the process waits for work on other threads, such as the reading of a
/// document that no job waits for any more. The store is closed by then.
const LEFT_WORK_WAITS: Duration = Duration::from_secs(1);

/// Runs to the end what may leave work behind, which is not waited for.
fn run_to_end(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let ended = runtime.block_on(work);
    runtime.shutdown_timeout(LEFT_WORK_WAITS);
    ended
}

/// The number of SIGXFSZ on Linux and on systems of BSD's kind.
const SIGNAL_OF_FILE_SIZE: i32 = 25;

async fn serve(config: Config, source: ConfigSource) -> anyhow::Result<()> {
    let stop = stop_on_signal();
    // Before the start: until then, the signal would end the process.
    let mut hangup = signal(SignalKind::hangup())?;
    // A limit on the size of files is a fault of the storage like a full disk, and no reason to end
    // without a word. Once it is caught, the signal stays caught.
    drop(signal(SignalKind::from_raw(SIGNAL_OF_FILE_SIZE)));
    let app = App::start_with(config, Some(source)).await?;
    loop {
        tokio::select! {
            () = stop.cancelled() => return app.stop().await,
            // What came of it is in the log and in the status.
            Some(()) = hangup.recv() => drop(app.reload().await),
            cause = app.needs_restart() => {
                tracing::error!("Stopping, so that the supervisor starts a new process: {cause}");
                // What the store refuses now it refuses in the end, too.
                let _ = app.stop().await;
                anyhow::bail!("the store cannot be used: {cause}");
            }
            () = app.feed_watchdog() => {}
        }
    }
}

/// A token that the first SIGTERM or SIGINT cancels. A second one ends the process at once: whoever
/// sends it means it.
fn stop_on_signal() -> CancellationToken {
    let stop = CancellationToken::new();
    let cancel = stop.clone();
    tokio::spawn(async move {
        let (Ok(mut terminate), Ok(mut interrupt)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::interrupt()),
        ) else {
            tracing::error!("everfeed cannot catch signals. Only SIGKILL stops it");
            return;
        };
        for patience in [true, false] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if patience {
                cancel.cancel();
            } else {
                std::process::exit(1);
            }
        }
    });
    stop
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_configuration_of_the_folder_comes_before_that_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let [own, machine] = ["own.toml", "machine.toml"].map(|name| folder.path().join(name));
        let names = [own.to_str().unwrap(), machine.to_str().unwrap()];
        assert_eq!(first_there(&names), own, "the error names it");
        std::fs::write(&machine, "").unwrap();
        assert_eq!(first_there(&names), machine);
        std::fs::write(&own, "").unwrap();
        assert_eq!(first_there(&names), own);
    }

    #[test]
    fn the_end_does_not_wait_for_work_that_was_left() {
        let (go_on, waits) = mpsc::channel::<()>();
        let ended = run_to_end(async move {
            tokio::task::spawn_blocking(move || waits.recv());
            Ok(())
        });
        assert!(ended.is_ok());
        drop(go_on);
    }
}
