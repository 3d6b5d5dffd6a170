//! The file of one compilation: a head with lengths and a checksum, the complete key, the executable.
//!
//! ```text
//! bytes  0..8   magic and version of the format
//!        8..16  bytes of the key
//!       16..24  bytes of the executable
//!       24..40  checksum (XXH3, 128 bits) of the two lengths, the key and the executable
//!       40..    the key, then the executable
//! ```
//!
//! An entry says how long it is, so entries one after the other are an archive.

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::files::ENTRY;
use crate::runtime::executable::Executable;
use crate::runtime::stored::{StoredError, StoredExecutable};

/// What files begin with; the last byte is the version of the format.
const MAGIC: [u8; 8] = *b"GSWCACH\x02";

/// Bytes before the key.
pub(super) const HEAD: usize = 40;

/// More bytes than an entry has: what says so is none.
pub(super) const MOST_ENTRY_BYTES: u64 = 1 << 30;

/// The complete key of a compilation, and what a file with it is called.
pub(super) struct EntryKey {
    text: String,
    hash: u128,
}

impl EntryKey {
    pub(super) fn new(text: String) -> EntryKey {
        let hash = xxh3_128(text.as_bytes());
        EntryKey { text, hash }
    }

    /// The name of its file.
    pub(super) fn file_name(&self) -> String {
        file_name(self.hash)
    }
}

/// The name of the file with the key of a hash.
fn file_name(hash: u128) -> String {
    format!("{hash:032x}.{ENTRY}")
}

/// Why a file is not the entry that it ought to be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum EntryError {
    #[error("it does not begin as an entry of this version does")]
    Magic,
    #[error("it has {found} bytes and says {said}")]
    Length { found: u64, said: u64 },
    #[error("its checksum is another one")]
    Checksum,
    #[error("it has the name of another entry")]
    Name,
    #[error("it is the entry of another compilation")]
    Key,
    #[error(transparent)]
    Stored(#[from] StoredError),
}

/// An entry whose checksum is right.
pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    executable: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Reads the entry that `bytes` are.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Entry<'a>, EntryError> {
        let length = said_length(bytes)?;
        if length != bytes.len() as u64 {
            return Err(EntryError::Length { found: bytes.len() as u64, said: length });
        }
        let key = number(bytes, 8) as usize;
        if checksum(bytes).to_le_bytes() != bytes[24..HEAD] {
            return Err(EntryError::Checksum);
        }
        let (key, executable) = bytes[HEAD..].split_at(key);
        let key = std::str::from_utf8(key).map_err(|_| EntryError::Key)?;
        Ok(Entry { key, executable })
    }

    /// The name of the file that it ought to be in.
    pub(super) fn file_name(&self) -> String {
        file_name(xxh3_128(self.key.as_bytes()))
    }

    /// The executable.
    pub(super) fn executable(&self) -> Result<Executable, EntryError> {
        Ok(StoredExecutable::read(self.executable)?.executable()?)
    }

    /// The executable, if the entry has this key.
    pub(super) fn executable_of(&self, key: &EntryKey) -> Result<Executable, EntryError> {
        if self.key != key.text {
            return Err(EntryError::Key);
        }
        self.executable()
    }
}

/// The bytes of an entry.
pub(super) fn entry_bytes(key: &EntryKey, executable: &Executable) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(HEAD + key.text.len() + executable.object().len() + 4096);
    bytes.extend_from_slice(&MAGIC);
    bytes.resize(HEAD, 0);
    bytes.extend_from_slice(key.text.as_bytes());
    let mut bytes = StoredExecutable::of(executable)?.write(bytes).ok()?;
    let key_bytes = key.text.len() as u64;
    let stored = bytes.len() as u64 - HEAD as u64 - key_bytes;
    bytes[8..16].copy_from_slice(&key_bytes.to_le_bytes());
    bytes[16..24].copy_from_slice(&stored.to_le_bytes());
    let sum = checksum(&bytes);
    bytes[24..HEAD].copy_from_slice(&sum.to_le_bytes());
    Some(bytes)
}

/// The bytes of the entry that begins here, as its head says.
pub(super) fn said_length(bytes: &[u8]) -> Result<u64, EntryError> {
    if bytes.len() < HEAD || bytes[..8] != MAGIC {
        return Err(EntryError::Magic);
    }
    let length = number(bytes, 8).checked_add(number(bytes, 16)).and_then(|n| n.checked_add(HEAD as u64));
    length.ok_or(EntryError::Magic)
}

/// The number at a byte of the head; `bytes` has a head.
fn number(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// The checksum of an entry with a head.
fn checksum(bytes: &[u8]) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(&bytes[8..24]);
    hasher.update(&bytes[HEAD..]);
    hasher.digest128()
}
