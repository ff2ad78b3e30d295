//! The head of a file of redb: whether the commit that it names is the newest one in the file. redb
//! believes what stands there; what else it holds is redb's own business.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
};

/// Bytes of the head: what is fixed, and two places for commits, of which one is in force.
const HEAD_BYTES: u64 = 320;
/// The first bytes of every file of redb.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";
/// The place of the flags.
const FLAGS: usize = MAGIC.len();
/// The flag of a file whose second commit is in force.
const SECOND: u8 = 1;
/// The flag of a file that is open, or was not closed.
const OPEN: u8 = 2;
/// The numbers of the two commits, eight bytes each, the lowest first.
const NUMBERS: [usize; 2] = [64 + 104, 192 + 104];

/// The commit that a head names, beside the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitOrder {
    /// It is the newest.
    Newest,
    /// The other one is newer, in a file that was not closed. It was under way when the process
    /// died, or the flag that names the newest one is damaged. Nothing in the file tells which.
    Unfinished,
    /// The other one is newer although the file was closed. Closing makes a commit, so the head is
    /// damaged.
    Older,
}

impl CommitOrder {
    /// The order in a file. What is no head of redb says nothing; redb refuses it.
    // Limit: of a file that was not closed, an older commit in force is told and not refused.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::in_head(&head_of(file)?))
    }

    fn in_head(head: &[u8]) -> Self {
        let number = |at: usize| Some(u64::from_le_bytes(*head.get(at..)?.first_chunk()?));
        let [Some(first), Some(second)] = NUMBERS.map(number) else {
            return Self::Newest;
        };
        let flags = head[FLAGS];
        let (named, other) = if flags & SECOND == 0 {
            (first, second)
        } else {
            (second, first)
        };
        match flags & OPEN == 0 {
            _ if !head.starts_with(MAGIC) || named >= other => Self::Newest,
            true => Self::Older,
            false => Self::Unfinished,
        }
    }
}

/// True for a file that is open, or was not closed.
pub(super) fn was_open(file: &File) -> io::Result<bool> {
    let head = head_of(file)?;
    let flags = head.get(FLAGS).copied().unwrap_or_default();
    Ok(head.starts_with(MAGIC) && flags & OPEN != 0)
}

fn head_of(mut file: &File) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(flags: u8, numbers: [u64; 2]) -> Vec<u8> {
        let mut head = vec![0; 320];
        head[..MAGIC.len()].copy_from_slice(MAGIC);
        head[FLAGS] = flags;
        for (at, number) in NUMBERS.into_iter().zip(numbers) {
            head[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        head
    }

    #[test]
    fn the_newest_commit_is_in_force_in_every_file_that_was_closed() {
        let check = |flags, numbers, expect| {
            assert_eq!(
                CommitOrder::in_head(&head(flags, numbers)),
                expect,
                "{flags} {numbers:?}"
            );
        };
        check(0, [7, 6], CommitOrder::Newest);
        check(SECOND, [6, 7], CommitOrder::Newest);
        check(0, [0, 0], CommitOrder::Newest);
        check(0, [6, 7], CommitOrder::Older);
        check(SECOND, [7, 6], CommitOrder::Older);
        check(SECOND | OPEN, [7, 6], CommitOrder::Unfinished);
        check(OPEN, [7, 6], CommitOrder::Newest);
        let short = &head(0, [6, 7])[..300];
        assert_eq!(CommitOrder::in_head(short), CommitOrder::Newest);
        let mut other = head(0, [6, 7]);
        other[0] ^= 1;
        assert_eq!(CommitOrder::in_head(&other), CommitOrder::Newest);
    }
}
