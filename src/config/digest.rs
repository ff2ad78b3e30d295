//! The digest of what all nodes on one database have to agree on; not of what is a node's own, such
//! as its addresses and files.

use super::Config;
use sha2::{Digest as _, Sha256};
use std::io;

impl Config {
    // Decides: Which settings have to be the same on all nodes?
    /// Digest of the feeds, groups, sites, webhooks and lists of feeds, of the public URL, and of the settings of the
    /// hub and of push. Equal settings of one version of everfeed have the same.
    pub fn shared_digest(&self) -> String {
        let server = &self.server;
        let places = (
            &server.public_url,
            &server.prefix,
            &server.former_public_urls,
        );
        let lists = (
            &self.feed,
            &self.group,
            &self.site,
            &self.webhook,
            &self.opml,
        );
        let shared = (places, lists, &self.hub, &self.push);
        let mut digest = DigestWriter(Sha256::new());
        match serde_json::to_writer(&mut digest, &shared) {
            Ok(()) => hex::encode(digest.0.finalize()),
            // What cannot be written is compared with nothing.
            Err(_) => String::new(),
        }
    }
}

struct DigestWriter(Sha256);

impl io::Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_have_to_agree_on_counts_and_what_is_their_own_does_not() {
        let digest = |text: &str| Config::parse("test", text).unwrap().shared_digest();
        let file = |own: &str, shared: &str| {
            digest(&format!(
                "[server]\npublic_url = \"http://b.example\"\n{own}[store]\npath = \"x\"\n{shared}"
            ))
        };
        let feed = "[[feed]]\nname = \"blog\"\nurl = \"http://o.example/feed\"\n";
        let one = file("listen = \"127.0.0.1:8080\"\n", feed);
        assert_eq!(one.len(), 64);
        assert_eq!(one, file("listen = \"127.0.0.1:9090\"\n", feed));
        let group = "[[group]]\nname = \"all\"\nmembers = [\"blog\"]\n";
        for other in [
            file("", &feed.replace("blog", "other")),
            file("", &feed.replace("o.example", "p.example")),
            file("", &format!("{feed}{group}")),
            file("", &format!("[hub]\nlease_max_secs = 2000000\n{feed}")),
        ] {
            assert_ne!(one, other);
        }
    }
}
