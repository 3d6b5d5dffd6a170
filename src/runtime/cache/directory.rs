//! The cache on disk: a directory with a file for each compilation, which many processes share.
//!
//! Files come into being whole: they are written under a name of their own, locked, and renamed. So a reader
//! sees an entry or none, and what a process leaves that dies while it writes is a file that nobody has
//! locked, which the next upkeep removes. Files are read into memory before they are judged: whatever
//! happens to them meanwhile, what is executed has the checksum that it was stored with.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::entry::{Entry, EntryKey, MOST_ENTRY_BYTES, entry_bytes};
use super::files::{PART, account, check_plain, open_lock};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::Kernel;
use crate::passes::options::Options;
use crate::passes::workspace::Verify;
use crate::runtime::compile::compile_uncached;
use crate::runtime::executable::Executable;
use crate::runtime::stored::BUILD;

/// The most bytes of a cache on disk unless another limit is set.
pub const DEFAULT_DISK_LIMIT: u64 = 1 << 30;

/// Names of its own that a file that is being written gets, until nothing is in its way.
const ATTEMPTS: usize = 4;

/// More bytes than most entries have.
const ORDINARY_BYTES: u64 = 1 << 20;

/// Numbers the files that this process has written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// A directory that keeps compilations between processes. Cheap to clone; clones are one cache.
///
/// The key of an entry is everything that can change the executable: the kernel's text, where it was written,
/// options, target id, and the build of the compiler. Several processes and threads may use one directory at
/// a time. Whoever may write to the directory decides what those who read from it execute: entries are
/// guarded against accidents, by checksums, and not against forgers.
///
/// # Example
/// ```
/// use groundswell::cache::Cache;
/// use groundswell::kernels::Gemm;
/// use groundswell::prelude::*;
/// # let directory = std::env::temp_dir().join(format!("groundswell-doc-{}", std::process::id()));
/// let cache = Cache::at(&directory)?.limit(64 << 20);
/// let gemm = Gemm::new(64, 64, 32);
/// let options = gemm.options(Target::GFX942);
/// let first = cache.compile(&gemm.kernel()?, &options)?;
/// let second = cache.compile(&gemm.kernel()?, &options)?;
/// assert_eq!(first.object(), second.object());
/// assert_eq!((cache.counts().hits, cache.counts().misses), (1, 1));
/// # std::fs::remove_dir_all(&directory).map_err(|error| Diagnostic::invalid(error.to_string()))?;
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cache {
    shared: Arc<CacheDirectory>,
}

#[derive(Debug)]
struct CacheDirectory {
    path: PathBuf,
    access: CacheAccess,
    limit: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    broken: AtomicU64,
    /// What last went wrong.
    problem: Mutex<Option<Diagnostic>>,
}

/// Whether entries are added.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum CacheAccess {
    ReadWrite,
    ReadOnly,
}

/// What a [`Cache`] has done since it was opened.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct CacheCounts {
    /// Compilations that were found.
    pub hits: u64,
    /// Compilations that were made, as none was found or what was found was broken.
    pub misses: u64,
    /// Entries that were torn, changed or not of this format, and were made again.
    pub broken: u64,
}

impl Cache {
    /// The cache in a directory, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be made, or nothing can be written to it: [`read_only`](Self::read_only) does without that.
    pub fn at(directory: impl Into<PathBuf>) -> Result<Cache, Diagnostic> {
        let path = absolute(directory.into());
        let unusable = |error: io::Error| {
            let text = format!("the cache {} cannot be used: {error}", path.display());
            Diagnostic::new(Kind::Unsupported, text)
                .help("name a directory that can be written; one that can be read is used as it is")
        };
        fs::create_dir_all(&path).map_err(unusable)?;
        // An empty file that stays: who has it locked changes what is there.
        open_lock(&path).map_err(unusable)?;
        Ok(Cache::of(path, CacheAccess::ReadWrite))
    }

    /// The cache in a directory to which nothing is written: what is not in it is compiled every time.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn read_only(directory: impl Into<PathBuf>) -> Result<Cache, Diagnostic> {
        let path = absolute(directory.into());
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Cache::of(path, CacheAccess::ReadOnly)),
            Ok(_) => Err(Diagnostic::new(
                Kind::Unsupported,
                format!("the cache {} is no directory", path.display()),
            )
            .help("name a directory")),
            Err(error) => Err(Diagnostic::new(
                Kind::Unsupported,
                format!("the cache {} cannot be read: {error}", path.display()),
            )
            .help("name a directory that is there")),
        }
    }

    fn of(path: PathBuf, access: CacheAccess) -> Cache {
        Cache {
            shared: Arc::new(CacheDirectory {
                path,
                access,
                limit: AtomicU64::new(DEFAULT_DISK_LIMIT),
                hits: AtomicU64::default(),
                misses: AtomicU64::default(),
                broken: AtomicU64::default(),
                problem: Mutex::default(),
            }),
        }
    }

    /// The same with another limit in bytes, for all clones. Entries that were used least recently leave
    /// when an entry is added that does not fit. With 0 nothing is added.
    #[must_use]
    pub fn limit(self, bytes: u64) -> Cache {
        self.shared.limit.store(bytes, Ordering::Relaxed);
        self
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// What it has done since it was opened.
    pub fn counts(&self) -> CacheCounts {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let shared = &*self.shared;
        CacheCounts {
            hits: count(&shared.hits),
            misses: count(&shared.misses),
            broken: count(&shared.broken),
        }
    }

    /// What went wrong when an entry was last added, if something did: a full disk, a directory that has
    /// become unwritable. Compilations go on without.
    pub fn problem(&self) -> Option<Diagnostic> {
        self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The compilation of a kernel: taken from the directory if it is there, else made and added. The cache
    /// in memory, which [`Kernel::compile`] looks into first, has no part in it.
    ///
    /// # Errors
    /// Those of the compilation. A cache that does not work is none: see [`problem`](Self::problem).
    pub fn compile(&self, kernel: &Kernel, options: &Options) -> Result<Executable, Diagnostic> {
        let key = key_of(kernel, options);
        if let Some(found) = self.find(&key) {
            return Ok(found);
        }
        let executable = compile_uncached(kernel, options, Verify::Off)?;
        self.add(&key, &executable);
        Ok(executable)
    }

    /// The executable of a key, if there is a sound entry.
    fn find(&self, key: &EntryKey) -> Option<Executable> {
        let shared = &*self.shared;
        let found = match read_entry(&shared.path.join(key.file_name()), shared.access) {
            Ok(bytes) => match Entry::read(&bytes).and_then(|entry| entry.executable_of(key)) {
                Ok(executable) => Some(executable),
                Err(_) => {
                    shared.broken.fetch_add(1, Ordering::Relaxed);
                    None
                }
            },
            Err(_) => None,
        };
        let count = if found.is_some() { &shared.hits } else { &shared.misses };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Adds an entry, or notes why it cannot.
    fn add(&self, key: &EntryKey, executable: &Executable) {
        let limit = self.shared.limit.load(Ordering::Relaxed);
        if self.shared.access == CacheAccess::ReadOnly {
            return;
        }
        let Some(bytes) = entry_bytes(key, executable).filter(|bytes| bytes.len() as u64 <= limit) else {
            return;
        };
        let added = self.shared.add_file(&key.file_name(), &bytes, limit);
        self.shared.note(added);
    }

    /// Adds the entry of an archive, unless it alone is more than the limit.
    pub(super) fn import_file(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.check_writable()?;
        let limit = self.shared.limit.load(Ordering::Relaxed);
        let fits = bytes.len() as u64 <= limit;
        if fits {
            self.shared.add_file(name, bytes, limit)?;
        }
        Ok(fits)
    }

    /// An error if the cache was opened to be read.
    pub(super) fn check_writable(&self) -> io::Result<()> {
        match self.shared.access {
            CacheAccess::ReadOnly => Err(io::ErrorKind::PermissionDenied.into()),
            CacheAccess::ReadWrite => Ok(()),
        }
    }
}

impl CacheDirectory {
    /// Notes what went wrong, if something did.
    fn note(&self, result: io::Result<()>) {
        let problem = result.err().map(|error| {
            let text = format!("nothing can be added to the cache {}: {error}", self.path.display());
            Diagnostic::new(Kind::Unsupported, text)
                .help("make room on the disk, or let the directory be written")
        });
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Puts a file into the directory, in place of one of that name, and keeps the limit.
    fn add_file(&self, name: &str, bytes: &[u8], limit: u64) -> io::Result<()> {
        let file = self.path.join(name);
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..ATTEMPTS {
            let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
            // Processes of different machines may have one number, so the time is in the name, too.
            let time =
                SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
            let part = self.path.join(format!("{}-{time:x}-{number}.{PART}", std::process::id()));
            match write_locked(&part, bytes).and_then(|written| {
                let before = fs::metadata(&file).map_or(0, |found| found.len());
                fs::rename(&part, &file)?;
                drop(written);
                Ok(before)
            }) {
                Ok(before) => return account(&self.path, bytes.len() as u64, before, limit),
                // Another process has such a number, or took the file for one that was left: once more.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
                    ) =>
                {
                    last = error;
                }
                Err(error) => {
                    // It may not be there.
                    let _ = fs::remove_file(&part);
                    return Err(error);
                }
            }
        }
        Err(last)
    }
}

/// The path from the root on, so that the cache stays where it is when the process goes elsewhere.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// A new file with these bytes, locked as long as the result lives.
fn write_locked(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.write_all(bytes)?;
    Ok(file)
}

/// The bytes of an entry's file, which is noted as used.
fn read_entry(path: &Path, access: CacheAccess) -> io::Result<Vec<u8>> {
    check_plain(path)?;
    let file = File::open(path)?;
    let mut bytes = Vec::with_capacity(file.metadata()?.len().min(ORDINARY_BYTES) as usize + 1);
    (&file).take(MOST_ENTRY_BYTES).read_to_end(&mut bytes)?;
    if access == CacheAccess::ReadWrite {
        // If this fails, the entry leaves earlier than it might.
        let _ = file.set_modified(SystemTime::now());
    }
    Ok(bytes)
}

/// The key of a compilation.
fn key_of(kernel: &Kernel, options: &Options) -> EntryKey {
    let mut key = String::with_capacity(4096);
    key.push_str(BUILD);
    key.push('\n');
    kernel.identity().write_key(&mut key);
    kernel.sources().write_key(&mut key);
    options.write_key(&mut key);
    EntryKey::new(key)
}
