//! `groundswell cache`: what is in a cache on disk, whether it is sound, less of it, and copies of it.

use std::fmt::Write;
use std::time::SystemTime;

use groundswell::cache::{self, Cache, CachedKernel, Stale, Transferred};
use serde_json::{Value, json};

use super::arguments::{CacheChoice, CacheFile, CachePrune, CacheVerb, CacheWork};
use super::failure::Failure;
use super::outcome::VerbOutcome;
use super::terminal::{Style, paint};

/// The verb.
pub fn cache(arguments: &CacheVerb) -> Result<VerbOutcome, Failure> {
    match &arguments.what {
        CacheWork::List(directory) => list(&open_to_read(directory)?),
        CacheWork::Verify(directory) => verify(&open_to_read(directory)?),
        CacheWork::Prune(arguments) => prune(arguments),
        CacheWork::Export(CacheFile { file, directory }) => {
            let cache = open_to_read(directory)?;
            Ok(transferred(&cache, "exported", cache.export(file)?))
        }
        CacheWork::Import(CacheFile { file, directory }) => {
            let cache = open_to_write(directory)?;
            Ok(transferred(&cache, "imported", cache.import(file)?))
        }
    }
}

/// The cache that the arguments or the environment name, which is not written.
fn open_to_read(arguments: &CacheChoice) -> Result<Cache, Failure> {
    match &arguments.dir {
        Some(directory) => Ok(Cache::read_only(directory)?),
        None => of_environment(),
    }
}

fn open_to_write(arguments: &CacheChoice) -> Result<Cache, Failure> {
    match &arguments.dir {
        Some(directory) => Ok(Cache::at(directory)?),
        None => of_environment(),
    }
}

fn of_environment() -> Result<Cache, Failure> {
    cache::on_disk()?.ok_or_else(|| {
        Failure::arguments("which cache is meant is not said")
            .help("pass --dir DIR, or set GROUNDSWELL_CACHE")
    })
}

fn list(cache: &Cache) -> Result<VerbOutcome, Failure> {
    let entries = cache.entries()?;
    let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut text = String::new();
    for entry in &entries {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line(entry));
    }
    let _ = writeln!(text, "{} entries, {bytes} bytes in {}", entries.len(), cache.path().display());
    let rows: Vec<Value> = entries.iter().map(row).collect();
    let directory = cache.path().to_string_lossy();
    Ok(VerbOutcome::done(text, json!({ "directory": directory, "entries": rows, "bytes": bytes })))
}

fn verify(cache: &Cache) -> Result<VerbOutcome, Failure> {
    let entries = cache.entries()?;
    let broken: Vec<&CachedKernel> = entries.iter().filter(|entry| entry.content.is_err()).collect();
    let mut text = String::new();
    for entry in &broken {
        let _ = writeln!(text, "{}", line(entry));
    }
    let sound = entries.len() - broken.len();
    let verdict = match broken.len() {
        0 => paint(Style::Good, "sound"),
        count => paint(Style::Bad, &format!("{count} broken")),
    };
    let _ = writeln!(text, "{verdict}: {sound} of {} entries in {}", entries.len(), cache.path().display());
    if !broken.is_empty() {
        let _ = writeln!(text, "they are never executed; `groundswell cache prune --stale` removes them");
    }
    let rows: Vec<Value> = broken.iter().map(|entry| row(entry)).collect();
    let json = json!({
        "directory": cache.path().to_string_lossy(), "ok": broken.is_empty(), "entries": entries.len(), "broken": rows,
    });
    Ok(VerbOutcome::checked(text, json, broken.is_empty()))
}

fn prune(arguments: &CachePrune) -> Result<VerbOutcome, Failure> {
    // A directory that is not there has nothing to prune.
    open_to_read(&arguments.directory)?;
    let cache = open_to_write(&arguments.directory)?;
    let stale = if arguments.stale { Stale::Removed } else { Stale::Kept };
    let pruned = cache.prune(arguments.bytes.unwrap_or(u64::MAX), stale)?;
    let text = format!(
        "removed {} entries and {} unfinished files of {} bytes; {} bytes are left in {}\n",
        pruned.entries,
        pruned.parts,
        pruned.bytes,
        pruned.left,
        cache.path().display()
    );
    let json = json!({
        "directory": cache.path().to_string_lossy(), "entries": pruned.entries, "unfinished": pruned.parts,
        "bytes": pruned.bytes, "left": pruned.left,
    });
    Ok(VerbOutcome::done(text, json))
}

fn transferred(cache: &Cache, what: &str, done: Transferred) -> VerbOutcome {
    let Transferred { entries, bytes, broken } = done;
    let mut text = format!("{what} {entries} entries of {bytes} bytes");
    if broken > 0 {
        let _ = write!(text, "; {broken} are broken and were left out");
    }
    text.push('\n');
    let directory = cache.path().to_string_lossy();
    let json = json!({ "directory": directory, "entries": entries, "bytes": bytes, "broken": broken });
    VerbOutcome::done(text, json)
}

/// An entry for people.
fn line(entry: &CachedKernel) -> String {
    let name = entry.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    match &entry.content {
        Ok(content) if content.current => {
            format!("{name}  {:24} {:24} {:>8} bytes", content.kernel, content.target, entry.bytes)
        }
        Ok(content) => format!("{name}  of another compiler: {:>8} bytes, {}", entry.bytes, content.compiler),
        Err(why) => format!("{name}  {}: {why}", paint(Style::Bad, "broken")),
    }
}

/// An entry for scripts.
fn row(entry: &CachedKernel) -> Value {
    let used = entry.used.duration_since(SystemTime::UNIX_EPOCH).map(|time| time.as_secs()).unwrap_or(0);
    let file = entry.file.file_name().map(|name| name.to_string_lossy());
    match &entry.content {
        Ok(content) => json!({
            "file": file, "bytes": entry.bytes, "used": used, "kernel": content.kernel, "target": content.target,
            "object_bytes": content.object_bytes, "compiler": content.compiler, "current": content.current,
        }),
        Err(why) => json!({ "file": file, "bytes": entry.bytes, "used": used, "broken": why }),
    }
}
