//! What people ask of a directory: what is in it and whether it is sound, and that there be less of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::directory::Cache;
use super::entry::{Entry, EntryError, MOST_ENTRY_BYTES};
use super::files::{EntryFile, Pruned, entry_files, keep, open_lock, remove};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::runtime::stored::BUILD;

/// An entry of a cache on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CachedKernel {
    /// Its file.
    pub file: PathBuf,
    /// Bytes of the file.
    pub bytes: u64,
    /// When it was last used.
    pub used: SystemTime,
    /// What is in it, or why it is broken.
    pub content: Result<CachedContent, String>,
}

/// What an entry holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CachedContent {
    /// The kernel's name.
    pub kernel: String,
    /// The target that it was compiled for.
    pub target: String,
    /// Bytes of its code object.
    pub object_bytes: u64,
    /// The compiler that made it: its version and a hash of its sources.
    pub compiler: String,
    /// Whether that is this compiler. Others' entries are never taken, and leave in time.
    pub current: bool,
}

/// Which entries [`Cache::prune`] removes in any case.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Stale {
    /// None.
    #[default]
    Kept,
    /// Those of other builds of the compiler, and broken ones.
    Removed,
}

impl Cache {
    /// All entries, by file name, each read and judged.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn entries(&self) -> Result<Vec<CachedKernel>, Diagnostic> {
        let path = self.path();
        let mut files = entry_files(path).map_err(|error| unreadable(path, &error))?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let looked_at = files.into_iter().map(|EntryFile { path, bytes, used }| {
            let content = content_of(&path);
            CachedKernel { file: path, bytes, used, content }
        });
        Ok(looked_at.collect())
    }

    /// Removes entries, those first that were used least recently, until all others together have at most
    /// `bytes` bytes; before that, stale ones if `stale` says so; and what processes left that died while
    /// they wrote.
    ///
    /// # Errors
    /// The directory cannot be read or changed.
    pub fn prune(&self, bytes: u64, stale: Stale) -> Result<Pruned, Diagnostic> {
        let path = self.path();
        let pruned = self.check_writable().and_then(|()| {
            // Judged before the lock is taken, because others wait for it.
            let mut stale_files = Vec::new();
            if stale == Stale::Removed {
                stale_files = entry_files(path)?;
                stale_files.retain(|file| is_stale(&file.path));
            }
            let mut size = open_lock(path)?;
            size.lock()?;
            let mut gone = Pruned::default();
            for file in stale_files {
                remove(&file.path)?;
                gone.entries += 1;
                gone.bytes += file.bytes;
            }
            let rest = keep(path, &mut size, bytes, bytes)?;
            Ok(Pruned { entries: gone.entries + rest.entries, bytes: gone.bytes + rest.bytes, ..rest })
        });
        pruned.map_err(|error| {
            let text = format!("the cache {} cannot be pruned: {error}", path.display());
            Diagnostic::new(Kind::Unsupported, text).help("let the directory be written")
        })
    }
}

/// The fault of a directory that cannot be read.
pub(super) fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Diagnostic {
    let text = format!("the cache {} cannot be read: {error}", path.display());
    Diagnostic::new(Kind::Unsupported, text).help("name a directory that is there and can be read")
}

/// Whether an entry is broken or another build's. One that cannot be read, because it is another user's, is
/// not known to be either.
fn is_stale(path: &Path) -> bool {
    read_bytes(path).is_ok_and(|bytes| !content_in(path, &bytes).is_ok_and(|content| content.current))
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_ENTRY_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a file holds, or why it is broken.
fn content_of(path: &Path) -> Result<CachedContent, String> {
    let bytes = read_bytes(path).map_err(|error| error.to_string())?;
    content_in(path, &bytes)
}

/// The same of a file whose bytes are known.
fn content_in(path: &Path, bytes: &[u8]) -> Result<CachedContent, String> {
    let entry = Entry::read(bytes).map_err(|error| error.to_string())?;
    if path.file_name().is_none_or(|name| *name != *entry.file_name()) {
        return Err(EntryError::Name.to_string());
    }
    let compiler = entry.key.lines().next().unwrap_or_default();
    let current = compiler == BUILD;
    // Of another compiler's entry the executable may have another form.
    match entry.executable() {
        Ok(executable) => Ok(CachedContent {
            kernel: executable.name().to_owned(),
            target: executable.target_id().to_string(),
            object_bytes: executable.object().len() as u64,
            compiler: compiler.to_owned(),
            current,
        }),
        Err(_) if !current => Ok(CachedContent {
            kernel: String::new(),
            target: String::new(),
            object_bytes: 0,
            compiler: compiler.to_owned(),
            current,
        }),
        Err(error) => Err(error.to_string()),
    }
}
