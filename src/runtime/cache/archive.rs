//! Entries of a cache on disk in one file, and back: for machines that start with a full cache.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use super::directory::Cache;
use super::entry::{Entry, HEAD, MOST_ENTRY_BYTES, said_length};
use super::files::{PART, check_plain};
use crate::ir::diagnostic::{Diagnostic, Kind};

/// What [`Cache::export`] and [`Cache::import`] have done.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Transferred {
    /// Entries that were copied.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries that are broken and were left out.
    pub broken: u64,
}

impl Cache {
    /// Writes all sound entries into one file, in the order of their names, which depend on their keys only.
    /// The file takes the place of one of its name when it is complete.
    ///
    /// # Errors
    /// The directory cannot be read or the file not written, or there is something of its name that is no
    /// file.
    pub fn export(&self, file: &Path) -> Result<Transferred, Diagnostic> {
        let mut done = Transferred::default();
        let entries = self.entries()?;
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.{PART}", std::process::id()));
        let partial = file.with_file_name(name);
        let is_free = match check_plain(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        let created = is_free.and_then(|()| File::options().write(true).create_new(true).open(&partial));
        let mut is_ours = false;
        let written = created.and_then(|out| {
            is_ours = true;
            let mut out = BufWriter::new(out);
            for entry in entries {
                // It may have left since.
                let Ok(bytes) = fs::read(&entry.file) else { continue };
                if entry.content.is_err() || Entry::read(&bytes).is_err() {
                    done.broken += 1;
                    continue;
                }
                out.write_all(&bytes)?;
                done.entries += 1;
                done.bytes += bytes.len() as u64;
            }
            out.flush()?;
            fs::rename(&partial, file)
        });
        written.map_err(|error| {
            if is_ours {
                let _ = fs::remove_file(&partial);
            }
            let text = format!("cannot write {}: {error}", file.display());
            Diagnostic::new(Kind::Unsupported, text).help("name a file that can be written")
        })?;
        Ok(done)
    }

    /// Adds the entries of a file that [`export`](Self::export) has written. Broken ones are left out.
    ///
    /// # Errors
    /// The file cannot be read or is none of these, an entry is cut off, or nothing can be added.
    pub fn import(&self, file: &Path) -> Result<Transferred, Diagnostic> {
        let mut done = Transferred::default();
        let reader = File::open(file).map_err(|error| unreadable_file(file, &error))?;
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        while read_entry(&mut reader, &mut bytes).map_err(|error| unreadable_file(file, &error))? {
            let Ok(entry) = Entry::read(&bytes) else {
                done.broken += 1;
                continue;
            };
            let added = self.import_file(&entry.file_name(), &bytes);
            let added = added.map_err(|error| {
                let text = format!("nothing can be added to the cache {}: {error}", self.path().display());
                let text = format!("{text}; {} entries were added before", done.entries);
                Diagnostic::new(Kind::Unsupported, text)
                    .help("make room on the disk, or let the directory be written")
            })?;
            if added {
                done.entries += 1;
                done.bytes += bytes.len() as u64;
            }
        }
        Ok(done)
    }
}

fn unreadable_file(file: &Path, error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::invalid(format!("cannot read {}: {error}", file.display()))
        .help("name a file that `groundswell cache export` has written")
}

/// Reads the next entry; false at the end.
fn read_entry(reader: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<bool> {
    bytes.clear();
    reader.by_ref().take(HEAD as u64).read_to_end(bytes)?;
    if bytes.is_empty() {
        return Ok(false);
    }
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let length = said_length(bytes).map_err(|error| invalid(error.to_string()))?;
    if length > MOST_ENTRY_BYTES {
        return Err(invalid("no entry is so long".to_owned()));
    }
    reader.by_ref().take(length - HEAD as u64).read_to_end(bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(true),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
