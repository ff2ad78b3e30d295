//! A small disk for the data of a server, which can be filled: a file system in memory where this
//! process may mount one, and else a library below the server under which no file grows.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Mounts a file system for itself and the processes that join it, and holds it until its standard
/// input ends.
const HELD: &str = "mount -t tmpfs -o size=64m,mode=777 tmpfs \"$1\" && echo mounted && read -r _";

/// The library, in C.
const PRETENDED: &str = include_str!("full_disk.c");

/// Bytes that are written at a time to fill a disk: a page of memory.
const FILLER_BYTES: usize = 4096;

/// A disk.
pub(super) enum SmallDisk {
    /// A file system, the process that holds it, and the folder where that sees it.
    Mounted(Child, PathBuf),
    /// The library, and the file that makes the disk full.
    Pretended(PathBuf, PathBuf),
}

impl SmallDisk {
    /// A disk in this folder. `EVERFEED_NO_MOUNT` has it pretended anywhere.
    pub(super) fn made(folder: &Path) -> Self {
        let may_mount = std::env::var_os("EVERFEED_NO_MOUNT").is_none();
        let mounted = may_mount.then(|| Self::mounted(folder)).flatten();
        mounted.unwrap_or_else(|| Self::pretended(folder))
    }

    fn mounted(folder: &Path) -> Option<Self> {
        let disk = folder.join("disk");
        fs::create_dir(&disk).unwrap();
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", HELD, "sh"])
            .arg(&disk)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut told = String::new();
        let read = BufReader::new(holder.stdout.take()?).read_line(&mut told);
        if read.is_ok() && told == "mounted\n" {
            return Some(Self::Mounted(holder, disk));
        }
        holder.wait().unwrap();
        None
    }

    fn pretended(folder: &Path) -> Self {
        let (source, library) = (folder.join("full_disk.c"), folder.join("full_disk.so"));
        let full = folder.join("full");
        fs::write(&source, PRETENDED).unwrap();
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC"])
            .arg(format!("-DFULL=\"{}\"", full.display()))
            .arg("-o")
            .args([&library, &source])
            .arg("-ldl")
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{compiled:?}");
        Self::Pretended(library, full)
    }

    /// The folder for the data of the server that has this folder.
    pub(super) fn data(&self, folder: &Path) -> PathBuf {
        match self {
            Self::Mounted(_, disk) => disk.join("data"),
            Self::Pretended(..) => folder.join("data"),
        }
    }

    /// The same command, on this disk.
    pub(super) fn command(&self, mut command: Command) -> Command {
        match self {
            Self::Mounted(holder, _) => {
                let mut entered = Command::new("nsenter");
                entered.args(["--mount", "--target", &holder.id().to_string()]);
                entered.arg(command.get_program()).args(command.get_args());
                entered
            }
            Self::Pretended(library, _) => {
                command.env("LD_PRELOAD", library);
                command
            }
        }
    }

    /// Leaves no room on it.
    pub(super) fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        if let Self::Mounted(..) = self {
            while filler.write_all(&[0; FILLER_BYTES]).is_ok() {}
        }
    }

    /// Makes room.
    pub(super) fn empty(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        match self {
            Self::Mounted(holder, disk) => {
                let seen = format!("/proc/{}/root{}", holder.id(), disk.display());
                Path::new(&seen).join("filler")
            }
            Self::Pretended(_, full) => full.clone(),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Self::Mounted(holder, _) = self {
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
    }
}
