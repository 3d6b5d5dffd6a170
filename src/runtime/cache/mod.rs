//! What is compiled only once: a cache in memory, which every process has, and on request one on disk
//! ([`Cache`]), which processes share.
//!
//! The key of the cache in memory is everything that can change the bytes (the kernel's
//! structure and constraints, symbol values, options, target; with line information also where the kernel was
//! written, and with an author's schedule the tags that it speaks of) and nothing else; the compiler's
//! version is that of the process. A report that names lines or tags belongs to the kernel that has them: an
//! equal kernel from another place gets an entry of its own.
//!
//! It is bounded by the bytes that executables and keys take: [`DEFAULT_LIMIT`], or the limit given to
//! [`set_limit`]. When it is full, a policy of admission (S3-FIFO, of the crate `quick_cache`) decides:
//! entries that were used again stay, and those that were used once leave first. So a program that cycles
//! through more kernels than fit still finds many of them: half of them, if one and a half times as many as
//! fit.
//!
//! ```
//! use groundswell::cache;
//! cache::set_limit(16 << 20);
//! assert_eq!(cache::usage().limit, 16 << 20);
//! cache::clear();
//! assert_eq!((cache::usage().entries, cache::usage().bytes), (0, 0));
//! ```
//!
//! What is not in memory is looked for on disk, if the process has such a cache: [`set_directory`] gives it
//! one, or the environment variable `GROUNDSWELL_CACHE` with the name of a directory. One that cannot be
//! written is read.
//!
//! - `directory`: a directory of entries and its use; `entry`: the file of one; `files`: its size,
//!   and what dead processes left; `upkeep`, `archive`: listing, pruning, copying

mod archive;
mod directory;
mod entry;
mod files;
mod upkeep;

use std::hash::BuildHasherDefault;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use quick_cache::sync::{Cache as MemoryCache, DefaultLifecycle};
use quick_cache::{Equivalent, OptionsBuilder, Weighter};
use rustc_hash::FxHasher;

pub use archive::Transferred;
pub use directory::{Cache, CacheCounts, DEFAULT_DISK_LIMIT};
pub use files::Pruned;
pub use upkeep::{CachedContent, CachedKernel, Stale};

use super::compile::compile_uncached;
use super::executable::Executable;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::{Identity, Kernel, Sources};
use crate::ir::text::Detail;
use crate::passes::options::{BoundsChecking, DebugInfo, Options};
use crate::passes::workspace::Verify;

/// The most bytes of the cache unless another limit is set: about 5,000 kernels of ordinary size.
pub const DEFAULT_LIMIT: u64 = 128 << 20;

/// Bytes of an entry of ordinary size, from which the number of entries is estimated.
const ORDINARY: u64 = 24 << 10;

#[derive(Clone, PartialEq, Eq, Hash)]
struct CacheKey {
    kernel: Identity,
    /// None where the object does not depend on them.
    sources: Option<Arc<Sources>>,
    /// The text with tags, where a schedule looks nodes up by them.
    tagged: Option<Identity>,
    options: Options,
}

/// A key that is only looked up: it hashes as [`CacheKey`] does, field by field, and copies nothing.
#[derive(Copy, Clone, Hash)]
struct WantedCompilation<'a> {
    kernel: &'a Identity,
    sources: Option<&'a Arc<Sources>>,
    tagged: Option<&'a Identity>,
    options: &'a Options,
}

impl Equivalent<CacheKey> for WantedCompilation<'_> {
    fn equivalent(&self, key: &CacheKey) -> bool {
        *self.kernel == key.kernel
            && self.sources == key.sources.as_ref()
            && self.tagged == key.tagged.as_ref()
            && *self.options == key.options
    }
}

impl WantedCompilation<'_> {
    /// The entry, if the cache has it.
    fn found(&self) -> Option<CacheEntry> {
        CACHE.read().ok()?.cache.get(self)
    }

    fn key(&self) -> CacheKey {
        CacheKey {
            kernel: self.kernel.clone(),
            sources: self.sources.cloned(),
            tagged: self.tagged.cloned(),
            options: self.options.clone(),
        }
    }
}

impl CacheKey {
    /// The approximate number of bytes that it keeps. Parts shared with other keys count for each of them.
    fn bytes(&self) -> usize {
        size_of::<CacheKey>()
            + self.kernel.bytes()
            + self.tagged.as_ref().map_or(0, Identity::bytes)
            + self.sources.as_ref().map_or(0, |sources| sources.bytes())
    }
}

/// An executable, and the bytes that it and its key take.
#[derive(Clone)]
struct CacheEntry {
    executable: Executable,
    bytes: u64,
    /// Whose lines and tags the report names, if it names any and the key does not say it.
    told: Option<Arc<Sources>>,
}

impl CacheEntry {
    /// True if the report is that of `kernel`.
    fn is_of(&self, kernel: &Kernel) -> bool {
        self.told.as_ref().is_none_or(|told| told == kernel.shared_sources())
    }
}

#[derive(Clone)]
struct BytesWeighter;

impl Weighter<CacheKey, CacheEntry> for BytesWeighter {
    fn weight(&self, _: &CacheKey, entry: &CacheEntry) -> u64 {
        entry.bytes
    }
}

type Hash = BuildHasherDefault<FxHasher>;

/// The entries and the most bytes that they may take.
struct Entries {
    cache: MemoryCache<CacheKey, CacheEntry, BytesWeighter, Hash>,
    limit: u64,
}

impl Entries {
    fn new(limit: u64) -> Entries {
        let count = (limit / ORDINARY).clamp(64, 1 << 16) as usize;
        // One shard: several would each have a part of the bytes, too few for large kernels.
        let sized =
            OptionsBuilder::new().estimated_items_capacity(count).weight_capacity(limit).shards(1).build();
        let cache = match sized {
            Ok(options) => MemoryCache::with_options(
                options,
                BytesWeighter,
                Hash::default(),
                DefaultLifecycle::default(),
            ),
            // Both sizes are given, so this is not reached; it would be the same cache with other
            // proportions.
            Err(_) => {
                MemoryCache::with(count, limit, BytesWeighter, Hash::default(), DefaultLifecycle::default())
            }
        };
        Entries { cache, limit }
    }
}

static CACHE: LazyLock<RwLock<Entries>> = LazyLock::new(|| RwLock::new(Entries::new(DEFAULT_LIMIT)));

/// The variable with the directory of the process's cache on disk.
const DIRECTORY_VARIABLE: &str = "GROUNDSWELL_CACHE";

/// The cache on disk that [`Kernel::compile`] looks into, or why there is none although one is asked for.
static ON_DISK: LazyLock<RwLock<Result<Option<Cache>, Diagnostic>>> = LazyLock::new(|| {
    let asked = std::env::var_os(DIRECTORY_VARIABLE).filter(|name| !name.is_empty());
    RwLock::new(asked.map(|name| Cache::at(&name).or_else(|_| Cache::read_only(&name))).transpose())
});

/// Chooses the cache on disk that [`Kernel::compile`] looks into where the one in memory has nothing; none
/// for `None`. It takes the place of the one that the environment variable `GROUNDSWELL_CACHE` names.
pub fn set_directory(cache: Option<Cache>) {
    *ON_DISK.write().unwrap_or_else(PoisonError::into_inner) = Ok(cache);
}

/// The cache on disk of this process.
///
/// # Errors
/// The environment variable `GROUNDSWELL_CACHE` names a directory that can be neither made nor read.
/// Compilations go on without.
pub fn on_disk() -> Result<Option<Cache>, Diagnostic> {
    let chosen = ON_DISK.read().unwrap_or_else(PoisonError::into_inner).clone();
    chosen.map_err(|error| error.note(format!("{DIRECTORY_VARIABLE} names it"), None))
}

impl Kernel {
    /// Compiles for the given options, or returns what an equal compilation gave before.
    ///
    /// # Errors
    /// What is wrong with the kernel or the options, or more than the target has.
    pub fn compile(&self, options: &Options) -> Result<Executable, Diagnostic> {
        let sources = match (options.requested_debug_info(), options.requested_bounds_checks()) {
            (DebugInfo::Lines, _) | (_, BoundsChecking::Coordinates) => Some(self.shared_sources()),
            (DebugInfo::None, BoundsChecking::Off) => None,
        };
        let tagged = options.requested_wave_schedule().map(|_| Identity::new(self.text(Detail::Source)));
        let mut wanted =
            WantedCompilation { kernel: self.identity(), sources, tagged: tagged.as_ref(), options };
        if let Some(found) = wanted.found() {
            if found.is_of(self) {
                return Ok(found.executable);
            }
            wanted.sources = Some(self.shared_sources());
            if let Some(found) = wanted.found() {
                return Ok(found.executable);
            }
        }
        let executable = match on_disk() {
            Ok(Some(cache)) => cache.compile(self, options)?,
            Ok(None) | Err(_) => compile_uncached(self, options, Verify::Off)?,
        };
        if let Ok(entries) = CACHE.read() {
            let key = wanted.key();
            let is_told = key.sources.is_none() && executable.report().names_sources();
            let told = is_told.then(|| self.shared_sources().clone());
            let kept = told.as_ref().map_or(0, |told| size_of::<Sources>() + told.bytes());
            let bytes = (size_of::<CacheEntry>() + key.bytes() + kept + executable.bytes()) as u64;
            entries.cache.insert(key, CacheEntry { executable: executable.clone(), bytes, told });
        }
        Ok(executable)
    }
}

/// The contents of the cache.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Compilations.
    pub entries: usize,
    /// The approximate number of bytes that they take, which never exceeds the limit.
    pub bytes: u64,
    /// The most bytes that they may take.
    pub limit: u64,
}

/// What the cache holds at the moment.
pub fn usage() -> Usage {
    match CACHE.read() {
        Ok(entries) => {
            Usage { entries: entries.cache.len(), bytes: entries.cache.weight(), limit: entries.limit }
        }
        Err(_) => Usage { entries: 0, bytes: 0, limit: 0 },
    }
}

/// Limits the cache to this many bytes, and clears it. Executables in use remain valid. With 0 nothing is
/// kept.
pub fn set_limit(bytes: u64) {
    if let Ok(mut entries) = CACHE.write() {
        *entries = Entries::new(bytes);
    }
}

/// Forgets all cached compilations and gives their memory back.
pub fn clear() {
    if let Ok(mut entries) = CACHE.write() {
        *entries = Entries::new(entries.limit);
    }
}
