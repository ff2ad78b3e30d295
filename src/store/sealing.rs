//! Seals values that nobody may read or exchange who has the database alone: AES-256-GCM, with a key
//! of the operator. Not the place where they are kept.

use super::StoreError;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest as _, Sha256};
use std::{
    fmt, fs,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::Arc,
};
use thiserror::Error;

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Bytes of the file of a key that are read at most: its digits, and some ends of lines.
const KEY_FILE_BYTES_MAX: u64 = 100;

/// Bytes of the mark by which it is seen that another key sealed a value.
const MARK_BYTES: usize = 8;

/// Bytes of a value at most, before it is sealed.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// The first byte of each sealed value: the form of what stands behind it.
const FORM: u8 = 1;

/// Bytes before the value: form, mark and nonce.
const HEAD_BYTES: usize = 1 + MARK_BYTES + NONCE_LEN;

/// The key of `store.key_file`. Cheap to clone; `Debug` does not show it.
#[derive(Clone)]
pub struct SealKey {
    key: Arc<LessSafeKey>,
    mark: [u8; MARK_BYTES],
}

/// A file that holds no key that may be used.
#[derive(Debug, Error)]
pub enum BadKeyFile {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unread(#[from] io::Error),
    /// Others than its owner and its group may read or write it.
    #[error("any user of this machine may read or change it (its mode is {0:03o}): chmod 600 it")]
    IsOpen(u32),
    /// Its text is no key.
    #[error("it does not hold 64 hex digits, as `openssl rand -hex 32` writes them")]
    Malformed,
}

impl SealKey {
    /// Reads it from its file: 32 random bytes, as 64 hex digits.
    pub fn read(file: &Path) -> Result<Self, BadKeyFile> {
        let file = fs::File::open(file)?;
        let mode = file.metadata()?.permissions().mode() & 0o777;
        if mode & 0o007 != 0 {
            return Err(BadKeyFile::IsOpen(mode));
        }
        let mut text = Vec::new();
        file.take(KEY_FILE_BYTES_MAX).read_to_end(&mut text)?;
        let mut bytes = [0; KEY_BYTES];
        hex::decode_to_slice(text.trim_ascii(), &mut bytes).map_err(|_| BadKeyFile::Malformed)?;
        Self::new(&bytes).ok_or(BadKeyFile::Malformed)
    }

    fn new(bytes: &[u8; KEY_BYTES]) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, bytes).ok()?;
        let digest = Sha256::new_with_prefix(b"everfeed: the mark of a key\n")
            .chain_update(bytes)
            .finalize();
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(&digest[..MARK_BYTES]);
        Some(Self {
            key: Arc::new(LessSafeKey::new(key)),
            mark,
        })
    }

    /// Seals a value for the row of this name: nowhere else it can be opened. `Failed` for one that
    /// is too long.
    pub(super) fn seal(&self, name: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        let too_long =
            || StoreError::Failed(format!("{name} has more than {VALUE_BYTES_MAX} bytes"));
        if value.len() > VALUE_BYTES_MAX {
            return Err(too_long());
        }
        // A key seals few values, so random nonces do not meet.
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut sealed = value.to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name),
                &mut sealed,
            )
            .map_err(|_| too_long())?;
        Ok([&[FORM][..], &self.mark, &nonce, &sealed].concat())
    }

    /// Opens the value of the row of this name. `Schema` where another key sealed it, `Damaged`
    /// where it was changed or stood in another row.
    pub(super) fn open(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        let damaged =
            || StoreError::Damaged(format!("{name} was changed, or stood in another row"));
        let (head, value) = sealed.split_at_checked(HEAD_BYTES).ok_or_else(damaged)?;
        let (mark, nonce) = head[1..].split_at(MARK_BYTES);
        if head[0] != FORM {
            return Err(damaged());
        }
        if mark != self.mark {
            return Err(StoreError::Schema(format!(
                "{name} is sealed with another key than store.key_file names. Give the key that the other nodes have"
            )));
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
        let mut value = value.to_vec();
        let opened = self.key.open_in_place(nonce, Aad::from(name), &mut value);
        let length = opened.map_err(|_| damaged())?.len();
        value.truncate(length);
        Ok(value)
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SealKey {
        SealKey::new(&[byte; KEY_BYTES]).unwrap()
    }

    #[test]
    fn a_value_is_opened_with_its_key_in_its_row_and_unchanged_alone() {
        let sealed = key(1).seal("row", b"the secret").unwrap();
        assert_eq!(key(1).open("row", &sealed).unwrap(), b"the secret");
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        // The same value is sealed otherwise each time.
        assert_ne!(key(1).seal("row", b"the secret").unwrap(), sealed);
        let other = key(2).open("row", &sealed).unwrap_err();
        assert!(
            matches!(&other, StoreError::Schema(why) if why.contains("another key")),
            "{other}"
        );
        let swapped = key(1).open("other row", &sealed).unwrap_err();
        assert!(matches!(swapped, StoreError::Damaged(_)), "{swapped}");
        for at in 0..sealed.len() {
            let mut tampered = sealed.clone();
            tampered[at] ^= 1;
            assert!(key(1).open("row", &tampered).is_err(), "byte {at}");
            assert!(key(1).open("row", &sealed[..at]).is_err(), "cut at {at}");
        }
        assert_eq!(
            key(1).open("", &key(1).seal("", b"").unwrap()).unwrap(),
            b""
        );
        assert!(key(1).seal("row", &vec![0; VALUE_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn a_key_is_64_hex_digits_in_a_file_that_is_not_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let told = |text: &str, mode: u32| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            SealKey::read(&file).err().map(|error| error.to_string())
        };
        let digits = "0f".repeat(KEY_BYTES);
        for (text, mode) in [
            (format!("{digits}\n"), 0o600),
            (digits.to_uppercase(), 0o440),
        ] {
            assert_eq!(told(&text, mode), None);
        }
        for (text, mode, part) in [
            (digits.clone(), 0o644, "chmod 600"),
            (digits.clone(), 0o602, "its mode is 602"),
            (format!("{digits}0f"), 0o600, "64 hex digits"),
            (digits[1..].to_owned(), 0o600, "64 hex digits"),
            ("x".repeat(64), 0o600, "64 hex digits"),
            (String::new(), 0o600, "openssl rand -hex 32"),
        ] {
            let told = told(&text, mode).expect("it is refused");
            assert!(told.contains(part), "{told}");
        }
        fs::remove_file(&file).unwrap();
        let missing = SealKey::read(&file).unwrap_err().to_string();
        assert!(missing.contains("cannot be read"), "{missing}");
        assert_eq!(format!("{:?}", key(1)), "SealKey(***)");
    }
}
