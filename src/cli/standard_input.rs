//! Standard input in the place of a file: what `-` stands for among inputs.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use groundswell::prelude::Diagnostic;

use super::failure::Failure;

/// Its name on the command line.
const NAME: &str = "-";

/// Its name in reports and faults.
const TITLE: &str = "<stdin>";

/// Whether it was read: it has nothing more for a second reader.
static READ: AtomicBool = AtomicBool::new(false);

/// Whether a path stands for it.
pub fn is_named(path: &Path) -> bool {
    path.as_os_str() == NAME
}

/// How reports and faults call the file of this name.
pub fn title(name: &str) -> &str {
    if name == NAME { TITLE } else { name }
}

/// It as a file, to look at.
///
/// # Errors
/// It is closed.
pub fn file() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// It as a file, to be read by the caller alone.
///
/// # Errors
/// It is closed, or is read already.
pub fn open() -> Result<File, Failure> {
    if READ.swap(true, Ordering::Relaxed) {
        let fault = Diagnostic::invalid("`-` is standard input, which can be read once");
        return Err(Failure::usage(fault.help("give each other input a file of its own")));
    }
    file().map_err(|error| Failure::file("read", Path::new(TITLE), &error))
}
