//! The files of the directory: its size within the limit, and no litter.
//!
//! The file `size` has the bytes of all entries as far as they are known, and who changes it holds its lock.
//! A process that dies between adding an entry and counting it leaves the number too small; looking at the
//! directory itself, which every removal does, sets it right.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The file with the bytes of all entries, which is locked by who changes it.
const SIZE: &str = "size";

/// The extension of files with an entry.
pub(super) const ENTRY: &str = "kernel";

/// The extension of files that are being written.
pub(super) const PART: &str = "part";

/// The bytes of that file: twenty digits and the end of the line.
const SIZE_BYTES: u64 = 21;

/// How often, a millisecond apart, somebody who adds an entry tries to lock it: a stopped process may hold
/// it.
const LOCK_ATTEMPTS: u32 = 20;

/// When entries have to leave, so many eighths of the limit remain, so that the next ones need not look.
const KEPT_EIGHTHS: u64 = 7;

/// What [`Cache::prune`](super::Cache::prune) has removed.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Pruned {
    /// Entries that were used least recently.
    pub entries: u64,
    /// Files of processes that died while they wrote.
    pub parts: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes of the entries that are left.
    pub left: u64,
}

/// The file with the size, made if it is not there: for all who may write to the directory.
pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    let size = path.join(SIZE);
    match File::options().read(true).write(true).create_new(true).open(&size) {
        Ok(file) => {
            share_with_writers(path, &file)?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            check_plain(&size)?;
            File::options().read(true).write(true).open(size)
        }
        Err(error) => Err(error),
    }
}

/// Lets everybody write a file who may write to its directory, whatever the mask of the process.
#[cfg(unix)]
fn share_with_writers(directory: &Path, file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let writers = fs::metadata(directory)?.permissions().mode() & 0o022;
    let own = file.metadata()?.permissions().mode();
    let shared = own | writers | writers << 1;
    if shared == own { Ok(()) } else { file.set_permissions(fs::Permissions::from_mode(shared)) }
}

#[cfg(not(unix))]
fn share_with_writers(_: &Path, _: &File) -> io::Result<()> {
    Ok(())
}

/// An error for what is no file of its own: opening a pipe would wait for ever, and a link leads elsewhere.
pub(super) fn check_plain(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no file", path.display()))),
    }
}

/// Counts an entry of `bytes` bytes that was added in place of one of `before`, and lets entries leave if all
/// are more than `limit`. Where somebody keeps the size locked for long, the entry stays uncounted, until
/// somebody looks at the directory.
pub(super) fn account(path: &Path, bytes: u64, before: u64, limit: u64) -> io::Result<()> {
    let mut size = open_lock(path)?;
    if !lock_soon(&size)? {
        return Ok(());
    }
    let mut text = Vec::with_capacity(SIZE_BYTES as usize + 1);
    (&size).take(SIZE_BYTES + 1).read_to_end(&mut text)?;
    match known_size(&text).map(|known| known.saturating_sub(before).saturating_add(bytes)) {
        Some(total) if total <= limit => write_size(&mut size, total),
        // What is no number is counted again.
        _ => keep(path, &mut size, limit, limit / 8 * KEPT_EIGHTHS).map(drop),
    }
}

/// Locks the file with the size, if that is possible in a short time.
fn lock_soon(size: &File) -> io::Result<bool> {
    for _ in 0..LOCK_ATTEMPTS {
        match size.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// What the file with the size says: it has a constant length, so that a part of it is no number.
fn known_size(text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"\n").filter(|_| text.len() as u64 == SIZE_BYTES)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn write_size(size: &mut File, total: u64) -> io::Result<()> {
    size.seek(SeekFrom::Start(0))?;
    size.write_all(format!("{total:020}\n").as_bytes())?;
    size.set_len(SIZE_BYTES)
}

/// A file with an entry.
pub(super) struct EntryFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) used: SystemTime,
}

/// The files with entries, in no order.
pub(super) fn entry_files(path: &Path) -> io::Result<Vec<EntryFile>> {
    let mut files = Vec::new();
    for file in fs::read_dir(path)? {
        let file = file?;
        let path = file.path();
        if path.extension().is_some_and(|extension| extension == ENTRY)
            && let Ok(found) = file.metadata()
            && found.is_file()
        {
            let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push(EntryFile { path, bytes: found.len(), used });
        }
    }
    Ok(files)
}

/// Removes litter and, if the entries have more than `limit` bytes, those that were used least recently,
/// until at most `goal` are left; notes the size. `size` is locked.
pub(super) fn keep(path: &Path, size: &mut File, limit: u64, goal: u64) -> io::Result<Pruned> {
    let mut pruned = remove_litter(path)?;
    let mut files = entry_files(path)?;
    pruned.left = files.iter().map(|file| file.bytes).sum();
    if pruned.left > limit {
        files.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        for file in files {
            if pruned.left <= goal {
                break;
            }
            match remove(&file.path) {
                Ok(()) => {
                    pruned.left -= file.bytes;
                    pruned.bytes += file.bytes;
                    pruned.entries += 1;
                }
                // Others' entries in a directory where only owners may remove files.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
    }
    write_size(size, pruned.left)?;
    Ok(pruned)
}

/// Removes what processes left that died while they wrote: files that nobody has locked.
fn remove_litter(path: &Path) -> io::Result<Pruned> {
    let mut pruned = Pruned::default();
    for file in fs::read_dir(path)? {
        let path = file?.path();
        if path.extension().is_none_or(|extension| extension != PART) {
            continue;
        }
        let Ok(part) = check_plain(&path).and_then(|()| File::open(&path)) else { continue };
        if part.try_lock().is_ok() {
            pruned.bytes += part.metadata().map_or(0, |found| found.len());
            pruned.parts += 1;
            remove(&path)?;
        }
    }
    Ok(pruned)
}

/// Removes a file that may be gone already.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
