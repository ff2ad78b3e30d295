//! Says while the tests are built if the large corpora stand beside the checkout, so that tests that
//! read them are counted as ignored where they do not.

use std::{env, path::Path};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(corpora)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CI");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folders =
        ["corpus", "sequences"].map(|name| Path::new(&here).join("../../shared").join(name));
    let are_there = folders.iter().all(|folder| folder.exists());
    // Limit: corpora that come later are seen when this file is touched; a path that is missing
    // would have everything built anew each time.
    if are_there {
        for folder in &folders {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
    }
    // Where everything must be tested, a test without its corpus fails.
    if are_there || env::var("CI").is_ok_and(|value| value == "true") {
        println!("cargo::rustc-cfg=corpora");
    }
}
