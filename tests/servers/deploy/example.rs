//! The example of the book with an old blog that nginx serves: its commands as they are printed, at
//! free ports.

use crate::EVERFEED;
use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::{Command, Output, Stdio},
    time::Instant,
};
use testkit::{
    place::{Place, Running, free_address},
    wait::{GLANCE, PATIENCE},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The example in a folder of its own, at addresses of its own.
struct Example {
    place: Place,
    blog: SocketAddr,
    serving: Option<Running>,
}

impl Example {
    fn copied() -> Self {
        let example = Self {
            place: Place::free(),
            blog: free_address(),
            serving: None,
        };
        example.copy(Path::new("examples/old-blog"));
        example
    }

    fn copy(&self, folder: &Path) {
        let to = self.place.folder().join(folder);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(Path::new(ROOT).join(folder)).unwrap() {
            let name = entry.as_ref().unwrap().file_name();
            if entry.unwrap().file_type().unwrap().is_dir() {
                // What a run beside the sources has left there is none of the example.
                if name != "tmp" {
                    self.copy(&folder.join(name));
                }
            } else if let Ok(text) = fs::read_to_string(Path::new(ROOT).join(folder).join(&name)) {
                fs::write(to.join(name), self.here(&text)).unwrap();
            }
        }
    }

    /// The text with the addresses of this example.
    fn here(&self, text: &str) -> String {
        text.replace("127.0.0.1:8081", &self.blog.to_string())
            .replace("127.0.0.1:8080", &self.place.consumers.to_string())
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        command
            .args(["-c", &self.here(line)])
            .current_dir(self.place.folder())
            .env("PATH", path);
        command
            .env("EVERFEED__SERVER__ADMIN_LISTEN", "127.0.0.1:0")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a line until its output holds all of this.
    fn until(&self, line: &str, expected: &[&str]) -> String {
        let began = Instant::now();
        loop {
            let output = String::from_utf8(self.run(line).stdout).unwrap();
            if expected
                .iter()
                .all(|part| output.contains(&self.here(part)))
            {
                return output;
            }
            assert!(began.elapsed() < PATIENCE, "{line}: {output}");
            std::thread::sleep(GLANCE);
        }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.run("nginx -p examples/old-blog/ -c nginx.conf -s stop");
    }
}

/// The commands of the block of the page that has this in it, without their comments.
fn printed(with: &str) -> Vec<String> {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/owners/ways.md")).unwrap();
    let block = page
        .split("```")
        .find(|block| block.starts_with("sh\n") && block.contains(with))
        .unwrap();
    let lines = block.lines().skip(1).filter(|line| !line.is_empty());
    lines
        .map(|line| line.split(" # ").next().unwrap().trim().to_owned())
        .collect()
}

#[test]
fn an_old_blog_of_nginx_has_its_feed_and_a_hub_as_the_book_prints_it() {
    // LEGACY section 5: the old address stays what it was, and leads to the hub.
    let [nginx, serve, ask] = printed("nginx -p").try_into().expect("three commands");
    let serve = serve.replace("cargo run --release --", &format!("exec {EVERFEED}"));
    assert!(serve.contains("exec "), "{serve}");

    let mut example = Example::copied();
    let started = example.run(&nginx);
    assert!(started.status.success(), "{started:?}");
    let mut command = example.command(&serve);
    example.serving = Some(example.place.start_group("log", &mut command));

    let old = example.until(
        &ask,
        &[
            "HTTP/1.1 200",
            "rel=\"hub\"",
            "<title>The kettle sings again</title>",
        ],
    );
    assert!(
        old.contains(&example.here("href=\"http://127.0.0.1:8080/hub\"")),
        "{old}"
    );
    let page = example.until(
        "curl -si http://127.0.0.1:8080/2004/quinces.html",
        &["HTTP/1.1 200"],
    );
    assert!(
        page.contains("Eleven pounds of them") && page.contains("nginx"),
        "{page}"
    );

    let feed = example.place.path("examples/old-blog/htdocs/rss.xml");
    let post = "<language>en</language>\n<item><guid>new</guid><title>A new letter</title></item>";
    let with_post = fs::read_to_string(&feed)
        .unwrap()
        .replace("<language>en</language>", post);
    fs::write(&feed, with_post).unwrap();
    example
        .run("curl -sd hub.mode=publish -d hub.url=http://127.0.0.1:8080/rss.xml http://127.0.0.1:8080/hub");
    let smart = "curl -s 'http://127.0.0.1:8080/rss.xml?since=&timeout=0'";
    example.until(
        smart,
        &["A new letter", "The kettle sings again", "fo:last_cursor"],
    );

    let stopped = example.run(&format!("{nginx} -s stop"));
    assert!(stopped.status.success(), "{stopped:?}");
    example.until(
        "curl -si http://127.0.0.1:8080/2004/quinces.html",
        &["HTTP/1.1 502"],
    );
    let kept = example.until(&ask, &["HTTP/1.1 200"]);
    assert!(kept.contains("A new letter"), "{kept}");
}
