//! Writing files so that there is all of one or nothing.

use std::path::Path;

use super::failure::Failure;

/// Writes a file under a temporary name beside its place and moves it there.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::file("write", path, &error);
    let name = path.file_name().ok_or_else(|| fail(std::io::Error::other("this is no file name")))?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.partial", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let written = std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|error| {
        // It may not exist; the first error is the one to tell.
        let _ = std::fs::remove_file(&temporary);
        fail(error)
    })
}
