//! Reads a folder of platform profiles at the start; what a profile may say is the adapters'
//! business.

use crate::setting::RefusedSetting;
use everfeed_adapters::platforms::{PROFILE_BYTES_MAX, PROFILES_MAX, Platforms};
use std::path::Path;

/// The embedded profiles and those of a folder. Files whose name does not end in `.toml`, in
/// whatever case, are none.
pub(super) fn read(folder: &Path) -> Result<Platforms, RefusedSetting> {
    let shown = folder.display();
    let wanted = "give a folder of profiles NAME.toml, or leave it out";
    let unreadable =
        |error| RefusedSetting::new("platforms.folder", format!("\"{shown}\" ({error})"), wanted);
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = file.map_err(unreadable)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| name.to_ascii_lowercase().ends_with(".toml")) else {
            continue;
        };
        files.push((name.to_owned(), text(&path)?));
        if files.len() > PROFILES_MAX {
            let found = format!("\"{shown}\", more than {PROFILES_MAX} profiles");
            return Err(RefusedSetting::new(
                "platforms.folder",
                found,
                "leave some out",
            ));
        }
    }
    files.sort();
    Platforms::with(files).map_err(|bad| {
        let key = format!(
            "platforms.folder: {}: {}",
            folder.join(&bad.file).display(),
            bad.key
        );
        RefusedSetting::new(key, "a value that a profile cannot have", bad.problem)
    })
}

fn text(path: &Path) -> Result<String, RefusedSetting> {
    let problem = |found: String| {
        RefusedSetting::new(
            format!("platforms.folder: {}", path.display()),
            found,
            "give a profile, or remove the file",
        )
    };
    let bytes = std::fs::metadata(path)
        .map_err(|error| problem(format!("no readable file ({error})")))?
        .len();
    if bytes > PROFILE_BYTES_MAX as u64 {
        return Err(problem(format!(
            "{bytes} bytes, more than {PROFILE_BYTES_MAX}"
        )));
    }
    std::fs::read_to_string(path).map_err(|error| problem(format!("no readable file ({error})")))
}
