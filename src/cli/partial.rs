//! Files that are written next to their place and moved there when they are complete. Nothing of them remains
//! after a failure, or after a signal that ends the program (except SIGKILL, which cannot be handled).

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Replaces a file, or makes a new one. Mode and owner of the file are kept; extended attributes are not. If
/// no file can be written next to it, or not under its owner, the file is written in place.
///
/// # Errors
/// It cannot be written; unless it was written in place, the old content is still there.
pub fn replace(place: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let before = match std::fs::symlink_metadata(place) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match Partial::beside(place, before.as_ref()) {
        Ok(mut partial) => {
            content(&mut partial.file)?;
            partial.move_to(place, before.as_ref())
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && before.is_some() => {
            content(&mut OpenOptions::new().write(true).truncate(true).open(place)?)
        }
        Err(error) => Err(error),
    }
}

/// The file that is being written and has to be removed if a signal ends the program. Locked while files
/// appear and disappear.
static CURRENT: Mutex<Option<PathBuf>> = Mutex::new(None);

fn current() -> MutexGuard<'static, Option<PathBuf>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is removed when it is dropped.
struct Partial {
    file: File,
}

impl Partial {
    /// An empty one in the same directory, with the owner of the existing file.
    fn beside(place: &Path, before: Option<&Metadata>) -> io::Result<Partial> {
        const MOST_TRIES: u32 = 100;
        /// No other user can read a part of something that may be secret.
        const PRIVATE: u32 = 0o600;
        const USUAL: u32 = 0o666;
        remove_on_signals();
        let mode = if before.is_some() { PRIVATE } else { USUAL };
        let mut current = current();
        let mut tries = 0;
        let file = loop {
            let name = format!(".groundswell-{}-{tries}.partial", std::process::id());
            let path = directory_of(place).join(name);
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => {
                    *current = Some(path);
                    break file;
                }
                // It belongs to another process, or was left by a program that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MOST_TRIES => {
                    tries += 1
                }
                Err(error) => return Err(error),
            }
        };
        drop(current);
        let partial = Partial { file };
        if let Some(before) = before {
            let now = partial.file.metadata()?;
            if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
                fchown(&partial.file, Some(before.uid()), Some(before.gid()))?;
            }
        }
        Ok(partial)
    }

    fn move_to(self, place: &Path, before: Option<&Metadata>) -> io::Result<()> {
        if let Some(before) = before {
            self.file.set_permissions(before.permissions())?;
        }
        let mut current = current();
        if let Some(partial) = current.as_deref() {
            std::fs::rename(partial, place)?;
        }
        *current = None;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        remove(&mut current());
    }
}

fn remove(current: &mut Option<PathBuf>) {
    if let Some(path) = current.take() {
        // There is no way left to report this.
        let _ = std::fs::remove_file(path);
    }
}

/// From now on, signals that end the program also remove the file that is being written. Those that were
/// ignored when the program began, as with `nohup`, remain ignored.
fn remove_on_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let ignored = ignored_signals();
        let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter();
        let Ok(mut signals) = Signals::new(wanted.filter(|signal| ignored >> (signal - 1) & 1 == 0)) else {
            // Then signals end the program as before, and files may remain.
            return;
        };
        std::thread::spawn(move || {
            for signal in signals.forever() {
                // It stays locked, so that no other file appears before the end.
                let mut current = current();
                remove(&mut current);
                let _ = emulate_default_handler(signal);
            }
        });
    });
}

/// The signals that this process ignores, the first one in bit 0; none where the system does not say
/// (proc(5), `SigIgn`).
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The directory that a name is in.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
