//! The values that would do for each key, in the words of an error; not the checks.

/// The values that would do for `server.public_url`.
pub(super) const PUBLIC_URL: &str = "give the http or https URL by which consumers reach this server, without credentials, query and fragment: \
     for instance \"https://feeds.example.org\"";

/// The values that would do for `server.admin_token`.
pub(super) const ADMIN_TOKEN: &str = "give 16 characters or more without blanks, in quotes, such as what `openssl rand -hex 32` prints";

const ADDRESS: &str = "an address and a port, for instance \"127.0.0.1:8080\"";
const SECS: &str = "a whole number of seconds";
const COUNT: &str = "a whole number";
const BYTES: &str = "a whole number of bytes";

/// The values that would do for a key, found by its dotted name without indices.
pub(super) fn wanted(key: &str) -> Option<&'static str> {
    // A site lends these to its feeds.
    if let Some(lent) = key.strip_prefix("site.")
        && ["poll", "deletions", "import", "keep"]
            .contains(&lent.split('.').next().unwrap_or_default())
    {
        return wanted(&format!("feed.{lent}"));
    }
    Some(match key {
        "server.listen" => {
            "an address and a port, for instance \"127.0.0.1:8080\"; or \"unix:/run/everfeed/http.sock\", \"systemd\", or a \
             list of such addresses"
        }
        "server.admin_listen" | "server.tls.redirect_from" => ADDRESS,
        "server.tls.certificate" | "server.tls.key" | "server.tls.acme.root" => {
            "the path of a PEM file, in quotes"
        }
        "server.tls.acme" => {
            "a table, for instance { domains = [\"feeds.example.org\"], agree_to_terms = true }"
        }
        "server.tls.acme.domains" => "a list of host names, for instance [\"feeds.example.org\"]",
        "server.tls.acme.contact" => "an address of e-mail in quotes, such as \"you@example.org\"",
        "server.tls.acme.directory" => "the https URL of an authority's directory",
        "server.tls.acme.folder" => "the path of a folder, in quotes",
        "server.tls" => {
            "a table, for instance { certificate = \"fullchain.pem\", key = \"privkey.pem\" }"
        }
        "server.public_url" => "an absolute URL, for instance \"https://feeds.example.org\"",
        "server.admin_token" => ADMIN_TOKEN,
        "server.trusted_proxies" => {
            "a list of addresses or networks, for instance [\"127.0.0.1/32\", \"172.16.0.0/12\"]"
        }
        "server.prefix" => "a path such as \"/smart\", in quotes",
        "store.path" => "the path of a file, in quotes: for instance \"everfeed.redb\"",
        "upstream.contact_url" => "an absolute URL at which publishers reach you",
        "hub.on_behalf" => {
            "a list of URLs at which callbacks begin, for instance [\"https://reader.example/push/\"]"
        }
        "feed.name" => "a name in quotes, for instance \"blog\"",
        "feed.url" => "an absolute URL, for instance \"http://127.0.0.1:8081/rss.xml\"",
        "feed.aliases" => {
            "a list of absolute URLs, for instance [\"https://blog.example/rss.xml\"]"
        }
        "feed.id_namespace" => "a text in quotes",
        "feed.categories" => "a list of names, for instance [\"friends\"]",
        "group.name" => "a name in quotes, for instance \"planet\"",
        "group.members" => {
            "a list of names of feeds or categories, for instance [\"blog\", \"category:friends\"]"
        }
        "group.title" => "a text in quotes",
        "group" => "one [[group]] for each group, with at least name and members",
        "feed.format" => {
            "\"auto\", which takes any format of feed, or \"resource\", which takes any document as an item"
        }
        "feed.platform" => "\"auto\", \"none\", or the name of a profile such as \"wordpress\"",
        "platforms.folder" => "the path of a folder, in quotes",
        "feed.access" | "feed.show.access" | "group.access" | "site.access" => {
            crate::auth::access::ACCESS_WANTED
        }
        "feed.show" => crate::catalog::SHOW_WANTED,
        "feed.show.filter" => {
            "a filter as in URLs (q, author, category, deleted, has, lang), for instance \"category=news\"; \"\" shows the whole feed"
        }
        "feed.poll" => "a table, for instance { min_secs = 3600, max_secs = 86400 }",
        "feed.record" => "a table, for instance { folder = \"recordings\", bodies = 50 }",
        "feed.keep" => {
            "a table, for instance { item_bytes_max = 4194304, quota_bytes = 1073741824 }"
        }
        "feed.record.folder" => "the path of a folder, in quotes",
        "feed.record.bodies" => COUNT,
        "feed.deletions" => "a table, for instance { confirmations = 2, apart_secs = 3600 }",
        "feed.import" => {
            "a table, for instance { serve_after_secs = 60, pages_max = 1000, page_gap_secs = 1, again_secs = 2592000 }"
        }
        "feed.deletions.unsafe"
        | "feed.deletions.permalink_checks"
        | "feed.deletions.page_credentials"
        | "server.basic_over_http"
        | "server.proxy_protocol"
        | "server.tls.acme.agree_to_terms"
        | "hub.callbacks_private"
        | "hub.publish_hints"
        | "hub.rsscloud"
        | "site.pings" => "true or false",
        "site" => "one [[site]] for each old web site, with at least its origin",
        "site.host" => "a host name in quotes, for instance \"blog.example.org\"",
        "site.origin" => "the old server, for instance \"http://127.0.0.1:8081\"",
        "site.feeds" => {
            "\"auto\", or a list of paths: for instance [\"/feed.xml\", \"/comments/feed/\"]"
        }
        "site.serve_plain" => "\"rewritten\", \"untouched\" or \"origin\"",
        "feed" => "one [[feed]] for each feed, with at least name and url",
        "server" | "store" | "upstream" | "hub" | "platforms" => {
            "a table: the name in square brackets on a line of its own"
        }
        _ if key.ends_with("_secs") => SECS,
        _ if key.ends_with("_bytes") || key.ends_with("_bytes_max") => BYTES,
        _ if key.ends_with("_max") || key.ends_with("_items") || key.ends_with("confirmations") => {
            COUNT
        }
        _ => return None,
    })
}
