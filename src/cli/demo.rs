//! `everfeed demo`: a small legacy blog on loopback, everfeed before it with a store in a temporary
//! folder, and every change on the terminal as it arrives by long poll.

use super::ask::ask;
use crate::cli::output::outln;
use crate::{app::App, config::Config, locks::lock};
use anyhow::Context as _;
use blog::{Blog, Deed};
use clap::Args;
use serde_json::Value;
use std::{
    collections::HashMap,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub mod blog;

mod subscriber;

/// Options of the demo.
#[derive(Debug, Args)]
pub struct DemoOptions {
    /// Seconds between two changes of the blog.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Stop after this many changes. Without it, Ctrl-C stops the demo.
    #[arg(long)]
    changes: Option<u64>,
    /// Address of everfeed for consumers.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Address of everfeed for its operator.
    #[arg(long, default_value = "127.0.0.1:8079")]
    admin_listen: SocketAddr,
    /// Address of the blog.
    #[arg(long, default_value = "127.0.0.1:8081")]
    blog_listen: SocketAddr,
    /// Run everfeed as a reverse proxy in front of the blog. The blog is then at everfeed's address.
    #[arg(long)]
    sidecar: bool,
    /// Serve the feed over XMPP as feeds.localhost, by a server that takes components here.
    #[arg(long, requires = "xmpp_secret", value_name = "HOST:PORT")]
    xmpp_server: Option<String>,
    /// The secret that this server has for feeds.localhost.
    #[arg(long, requires = "xmpp_server", value_name = "SECRET")]
    xmpp_secret: Option<String>,
}

/// Runs the demo until `stop`.
pub async fn run(options: DemoOptions, stop: CancellationToken) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("everfeed-demo-")
        .tempdir()
        .context("no temporary folder")?;
    let listener = bind(options.blog_listen).await?;
    let origin = blog::origin(listener.local_addr()?);
    let listen = free(options.listen).await?;
    // Behind a proxy a blog knows itself by the address of that.
    let known_as = if options.sidecar {
        blog::origin(listen)
    } else {
        origin.clone()
    };
    let blog = Arc::new(Blog::new(known_as, rand::random(), SystemTime::now()));
    let tasks = TaskTracker::new();
    tasks.spawn(blog.clone().serve(listener, stop.clone()));
    let admin = free(options.admin_listen).await?;
    let store = folder.path().join("everfeed.redb");
    let site = if options.sidecar {
        site(&origin)
    } else {
        String::new()
    };
    let xmpp = xmpp(&options);
    let config = configuration(listen, admin, &store, &origin) + &site + &xmpp;
    let app = App::start(Config::parse("the demo's configuration", &config)?).await?;
    if options.sidecar {
        outln!("{}", sidecar_invitation(&origin, app.address()));
        let (feed, stop) = (format!("http://{}/rss.xml", app.address()), stop.clone());
        tasks.spawn(async move {
            if let Err(error) = subscriber::follow(feed, stop).await {
                outln!("The subscriber gave up: {error:#}");
            }
        });
    } else {
        outln!(
            "{}",
            invitation(&origin, app.address(), app.admin_address())
        );
    }
    let deeds = Arc::new(Deeds::default());
    let (told, every) = (deeds.clone(), Duration::from_secs(options.every));
    tasks.spawn(blog.live(every, stop.clone(), move |deed| told.note(deed)));
    let base = format!("http://{}/feeds/blog.json?order=modified", app.address());
    let shown = show(&base, options.changes, &deeds, &stop).await;
    stop.cancel();
    app.stop().await?;
    tasks.close();
    tasks.wait().await;
    outln!("\nStopped. The demo's store was temporary and is gone.");
    shown
}

/// The configuration of the demo: everything happens within seconds.
fn configuration(listen: SocketAddr, admin: SocketAddr, store: &Path, origin: &str) -> String {
    format!(
        "[server]\nlisten = \"{listen}\"\npublic_url = \"http://{listen}\"\nadmin_listen = \"{admin}\"\n\
         [store]\npath = {:?}\n[hub]\ncallbacks_private = true\n[upstream]\npermalink_check_gap_secs = 1\n\
         [[feed]]\nname = \"blog\"\nurl = \"{origin}/rss.xml\"\npoll = {{ min_secs = 1, max_secs = 1 }}\n\
         deletions = {{ apart_secs = 2, weak_secs = 4, audit_secs = 1 }}\n",
        store.display().to_string()
    )
}

/// The blog as a site before which everfeed stands; its feed is the one of the configuration.
fn site(origin: &str) -> String {
    format!("[[site]]\norigin = \"{origin}\"\nfeeds = [\"/rss.xml\"]\n")
}

/// The component of a server of XMPP, where one is given.
fn xmpp(options: &DemoOptions) -> String {
    let Some((server, secret)) = options
        .xmpp_server
        .as_ref()
        .zip(options.xmpp_secret.as_ref())
    else {
        return String::new();
    };
    format!("[xmpp]\nserver = {server:?}\njid = \"feeds.localhost\"\nsecret = {secret:?}\n")
}

/// Follows the feed by long poll, as any consumer would, and prints what arrives.
async fn show(
    base: &str,
    changes: Option<u64>,
    deeds: &Deeds,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let mut last = String::new();
    let mut arrived = 0;
    let mut first = true;
    // A tombstone names nothing but its id.
    let mut titles: HashMap<String, String> = HashMap::new();
    while changes.is_none_or(|enough| arrived < enough) {
        let url = format!("{base}&timeout=55&max=1000&since=cursor%3A{last}");
        let answer = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            answer = ask(http::Method::GET, &url, None) => answer?,
        };
        if answer.0 != http::StatusCode::OK {
            // Not read yet: the first poll is under way.
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(Duration::from_millis(200)) => continue,
            }
        }
        let page: Value =
            serde_json::from_str(&answer.1).context("everfeed sent a page that is no JSON")?;
        last = page["last_cursor"].as_str().unwrap_or_default().to_owned();
        let items = page["items"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let titled = items.iter().filter_map(|item| {
            Some((
                item["id"].as_str()?.to_owned(),
                item["object"]["displayName"].as_str()?.to_owned(),
            ))
        });
        titles.extend(titled);
        if first {
            outln!(
                "everfeed read {} posts from the blog's feed. Every change from now on:\n",
                items.len()
            );
            first = false;
            continue;
        }
        for item in items {
            outln!("{}", line(item, &page, &titles, deeds));
            arrived += 1;
        }
    }
    Ok(())
}

/// One change, as a line.
fn line(item: &Value, page: &Value, titles: &HashMap<String, String>, deeds: &Deeds) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let title = item["id"]
        .as_str()
        .and_then(|id| titles.get(id))
        .cloned()
        .unwrap_or_default();
    let what = match item["verb"].as_str() {
        Some("post") => "new    ",
        Some("delete") => "deleted",
        _ => "edited ",
    };
    let why = item["reason"]
        .as_str()
        .map(|reason| format!(", {reason}"))
        .unwrap_or_default();
    let after = deeds
        .ago(&title)
        .map(|ago| format!(", {:.1} s after the blog did it", ago.as_secs_f64()));
    let t = text(&item["updated"]);
    let (t, after, total) = (
        t.get(11..19).unwrap_or(&t),
        after.unwrap_or_default(),
        &page["totalItems"],
    );
    format!("{t}  {what}  “{title}”  ({total} items held{why}{after})")
}

/// The last act of the blog and its time, to tell how long a change took.
#[derive(Default)]
struct Deeds(Mutex<Vec<(String, Instant)>>);

/// Deeds remembered.
const DEEDS_MAX: usize = 64;

impl Deeds {
    fn note(&self, deed: Deed) {
        let (Deed::Published(title) | Deed::Edited(title) | Deed::Deleted(title)) = deed;
        let mut held = lock(&self.0);
        held.push((title, Instant::now()));
        let surplus = held.len().saturating_sub(DEEDS_MAX);
        held.drain(..surplus);
    }

    fn ago(&self, title: &str) -> Option<Duration> {
        let held = lock(&self.0);
        held.iter()
            .rev()
            .find(|(known, _)| known == title)
            .map(|(_, at)| at.elapsed())
    }
}

/// The wanted address, or any free port of the same host when somebody has it.
async fn bind(wanted: SocketAddr) -> anyhow::Result<TcpListener> {
    match TcpListener::bind(wanted).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            outln!("{wanted} is taken; the demo takes another port.");
            TcpListener::bind(SocketAddr::new(wanted.ip(), 0))
                .await
                .context("no free port")
        }
        Err(error) => Err(error).with_context(|| format!("cannot listen on {wanted}")),
    }
}

/// Likewise, for one that is bound later: found by binding and letting go.
async fn free(wanted: SocketAddr) -> anyhow::Result<SocketAddr> {
    Ok(bind(wanted).await?.local_addr()?)
}

fn invitation(origin: &str, address: SocketAddr, admin: SocketAddr) -> String {
    format!(
        r#"Everything that happens  http://{address}/feeds/blog?refresh=2    (open it in a browser)

The old blog            {origin}/            (what it did)
  its legacy feed       {origin}/rss.xml     (ten posts, no memory)
everfeed                http://{address}/feeds
  the Smart Feed        http://{address}/feeds/blog.atom  and  .json
  for ordinary readers  http://{address}/feeds/blog/classic.rss
  the operator's view   http://{admin}/status

Try, in another terminal:
  curl -s 'http://{address}/feeds/blog.json?max=3'
  curl -s 'http://{address}/feeds/blog.atom?since=time:2014-01-01&max=2'
  # the newest item, then the next change as it happens:
  L=$(curl -s 'http://{address}/feeds/blog.json?order=-modified&max=1' | grep -o '"last_cursor":"[^"]*' | cut -d'"' -f4)
  curl -s "http://{address}/feeds/blog.json?since=cursor:$L"
everfeed asks the page of a missing post, and so tells a deletion from a post that rolled off. Ctrl-C stops the demo.
"#
    )
}

fn sidecar_invitation(origin: &str, address: SocketAddr) -> String {
    format!(
        r#"Everything that happens  http://{address}/feeds/blog?refresh=2    (open it in a browser)

The old blog            http://{address}/            (it runs at {origin}, and notices nothing)
  its legacy feed       http://{address}/rss.xml     (the same document, with links to the hub)
  the Smart Feed        http://{address}/rss.xml?since=

Try, in another terminal:
  curl -si http://{address}/rss.xml | head -20
  curl -s 'http://{address}/rss.xml?since=&max=3'
  # stop the blog: its pages are gone, and its feed still answers
  curl -s -X POST {origin}/stop
  curl -si http://{address}/ ; curl -si http://{address}/rss.xml | head -20
Ctrl-C stops it.
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_has_a_configuration_without_a_mistake() {
        let [listen, admin] =
            ["127.0.0.1:8080", "127.0.0.1:8079"].map(|address| address.parse().unwrap());
        let config = configuration(
            listen,
            admin,
            Path::new("demo.redb"),
            "http://127.0.0.1:8081",
        );
        Config::parse("the demo's configuration", &config).unwrap();
        let before = config + &site("http://127.0.0.1:8081");
        let before = Config::parse("the demo's configuration", &before).unwrap();
        let place = before.feed[0].legacy.as_ref().unwrap();
        assert_eq!(
            (before.feed.len(), place.url.as_str()),
            (1, "http://127.0.0.1:8080/rss.xml")
        );
    }
}
