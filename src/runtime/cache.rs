//! The in-memory cache of compilations. Its key is everything that can change the bytes (the kernel's structure and constraints, symbol
//! values, options, target; with line information also where the kernel was written, and with an author's schedule the tags that it speaks of) and
//! nothing else; the compiler's version is that of the process.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{LazyLock, RwLock};

use rustc_hash::FxHasher;

use super::compile::compile_uncached;
use super::executable::Executable;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::{Identity, Kernel, Sources};
use crate::ir::text::Detail;
use crate::passes::options::{DebugInfo, Options};
use crate::passes::workspace::Verify;

#[derive(PartialEq, Eq, Hash)]
struct Key {
    kernel: Identity,
    /// None where the object does not depend on them.
    sources: Option<Sources>,
    /// The text with tags, where a schedule looks nodes up by them.
    tagged: Option<Identity>,
    options: Options,
}

type Entries = HashMap<Key, Executable, BuildHasherDefault<FxHasher>>;

static CACHE: LazyLock<RwLock<Entries>> = LazyLock::new(|| RwLock::new(Entries::default()));

/// Executables kept; when there are more, the cache starts afresh.
const LIMIT: usize = 4096;

impl Kernel {
    /// Compiles for the given options, or returns what an equal compilation gave before.
    ///
    /// # Errors
    /// What is wrong with the kernel or the options, or more than the target has.
    pub fn compile(&self, options: &Options) -> Result<Executable, Diagnostic> {
        let sources = match options.requested_debug_info() {
            DebugInfo::Lines => Some(self.sources().clone()),
            DebugInfo::None => None,
        };
        let tagged = options.requested_wave_schedule().map(|_| Identity::new(self.text(Detail::Source)));
        let key = Key { kernel: self.identity().clone(), sources, tagged, options: options.clone() };
        if let Ok(cache) = CACHE.read()
            && let Some(found) = cache.get(&key)
        {
            return Ok(found.clone());
        }
        let executable = compile_uncached(self, options, Verify::Off)?;
        if let Ok(mut cache) = CACHE.write() {
            if cache.len() >= LIMIT {
                cache.clear();
            }
            cache.insert(key, executable.clone());
        }
        Ok(executable)
    }
}

/// Forgets all cached compilations.
pub fn clear() {
    if let Ok(mut cache) = CACHE.write() {
        cache.clear();
    }
}
