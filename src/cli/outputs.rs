//! The files that a verb reads and writes: named before it works, so that a file that cannot be written, or
//! is named twice, is rejected before anything is computed.
//!
//! How an output is written depends on what its name stands for:
//!
//! - `-`, or the file that standard output is: it goes to standard output.
//! - A regular file, also through symbolic links, or a name without a file: the whole output is written next
//!   to it, then moved to its place (`partial`). The file has either the old content or the new, never a
//!   part; mode and owner are kept.
//! - A regular file with several names (hard links), or one next to which no file can be written: it is
//!   written in place, so that all names keep naming one file.
//! - A device, a FIFO, a descriptor (`/dev/fd/3`, a process substitution): it is opened and written, and
//!   remains what it is. Nothing that is already there is truncated.
//! - A file without write permission, or a directory: an error, for root as well.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use groundswell::prelude::Diagnostic;

use super::failure::Failure;
use super::partial::{self, directory_of};
use super::standard_input;

/// Where text for people goes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TextStream {
    /// To standard output.
    Standard,
    /// To standard error, because standard output carries an output.
    Error,
}

/// The reader of the program's output.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Audience {
    People,
    /// Standard output carries one JSON object.
    Scripts,
}

/// The files of one run of the program.
pub struct Files {
    inputs: Vec<(FileIdentity, String)>,
    outputs: Vec<(FileIdentity, String)>,
}

/// What a name stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum FileIdentity {
    Standard,
    /// Device and number of an existing file.
    Existing(u64, u64),
    /// A file that does not exist yet: its directory, and its name there.
    New((u64, u64), PathBuf),
}

/// A file to be written.
#[derive(Debug)]
pub struct OutputFile {
    name: String,
    way: WriteMethod,
}

/// How it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
enum WriteMethod {
    Standard,
    /// Next to the file or its place, then moved there.
    Replace(PathBuf),
    /// Over the content of the file.
    InPlace(PathBuf),
    /// After the content that is already there.
    Append(PathBuf),
}

impl Files {
    /// No file yet. For scripts, standard output is taken.
    pub fn new(audience: Audience) -> Files {
        let outputs = match audience {
            Audience::People => Vec::new(),
            Audience::Scripts => vec![(FileIdentity::Standard, "the JSON object".to_owned())],
        };
        Files { inputs: Vec::new(), outputs }
    }

    /// Names a file that is read. Whether it can be read shows only then.
    ///
    /// # Errors
    /// It is written, too.
    pub fn reads(&mut self, path: &Path) -> Result<(), Failure> {
        let metadata = match standard_input::is_named(path) {
            // A terminal or a pipe may be read and written.
            true => standard_input::file().and_then(|file| file.metadata()).ok().filter(Metadata::is_file),
            false => std::fs::metadata(path).ok(),
        };
        let identity = metadata.and_then(|metadata| existing(&metadata));
        let Some(identity) = identity else { return Ok(()) };
        let name = path.display().to_string();
        match self.outputs.iter().find(|(known, _)| *known == identity) {
            Some((_, output)) => Err(read_and_written(&name, output)),
            None => {
                self.inputs.push((identity, name));
                Ok(())
            }
        }
    }

    /// Names a file that is written, and may have been read for the same purpose.
    ///
    /// # Errors
    /// It cannot be written, or is read or written already.
    pub fn writes(&mut self, path: &Path) -> Result<OutputFile, Failure> {
        let name = path.display().to_string();
        let (way, identity) = judge(path, &name)?;
        if let Some(identity) = identity {
            let same = |(known, _): &&(FileIdentity, String)| *known == identity;
            if let Some((_, input)) = self.inputs.iter().find(same) {
                return Err(read_and_written(input, &name));
            }
            if let Some((_, other)) = self.outputs.iter().find(same) {
                let text = match &identity {
                    FileIdentity::Standard => format!("standard output cannot carry both {other} and {name}"),
                    _ if *other == name => format!("{name} would be written twice"),
                    _ => format!("{other} and {name} are one file, and it would be written twice"),
                };
                return Err(Failure::usage(Diagnostic::invalid(text).help(OWN_FILE)));
            }
            self.outputs.push((identity, name.clone()));
        }
        Ok(OutputFile { name, way })
    }

    /// Where text for people goes.
    pub fn text_stream(&self) -> TextStream {
        match self.outputs.iter().any(|(identity, _)| *identity == FileIdentity::Standard) {
            true => TextStream::Error,
            false => TextStream::Standard,
        }
    }
}

const OWN_FILE: &str = "give each output a file of its own";

fn read_and_written(input: &str, output: &str) -> Failure {
    let text = match input == output {
        true => format!("{input} would be read and written"),
        false => format!("{input} is read, and {output} is the same file"),
    };
    Failure::usage(Diagnostic::invalid(text).help(OWN_FILE))
}

/// How a name is to be written, and the identity that must not be named again; character devices such as
/// `/dev/null` may be.
fn judge(path: &Path, name: &str) -> Result<(WriteMethod, Option<FileIdentity>), Failure> {
    let fail = |error: io::Error| Failure::unwritable(&name, &error);
    if path.as_os_str() == "-" {
        return Ok((WriteMethod::Standard, Some(FileIdentity::Standard)));
    }
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let place = end_of_links(path).map_err(fail)?;
            let identity = new(&place).map_err(fail)?;
            return Ok((WriteMethod::Replace(place), Some(identity)));
        }
        Err(error) => return Err(fail(error)),
    };
    let kind = metadata.file_type();
    let identity = existing(&metadata);
    if kind.is_dir() {
        return Err(Failure::unwritable(&name, &"it is a directory"));
    }
    if is_standard_output(&metadata, kind) {
        return Ok((WriteMethod::Standard, Some(FileIdentity::Standard)));
    }
    if !kind.is_file() {
        let identity = identity.filter(|_| !kind.is_char_device());
        return Ok((WriteMethod::Append(path.to_owned()), identity));
    }
    // Root may write to any file, but permissions show what is intended.
    if metadata.permissions().readonly() {
        let failure = Failure::unwritable(&name, &"the file is read-only");
        return Err(failure.help("make it writable with chmod u+w, or name another file"));
    }
    OpenOptions::new().write(true).open(path).map_err(fail)?;
    let way = match real_place(path, &metadata) {
        None => WriteMethod::Append(path.to_owned()),
        Some(place) if metadata.nlink() > 1 => WriteMethod::InPlace(place),
        Some(place) => WriteMethod::Replace(place),
    };
    Ok((way, identity))
}

/// The identity of an existing file.
fn existing(metadata: &Metadata) -> Option<FileIdentity> {
    (!metadata.is_dir()).then(|| FileIdentity::Existing(metadata.dev(), metadata.ino()))
}

/// The identity of a file that does not exist yet.
fn new(place: &Path) -> io::Result<FileIdentity> {
    let file_name = place.file_name().ok_or_else(|| io::Error::other("this is not a file name"))?;
    let directory = std::fs::metadata(directory_of(place))?;
    Ok(FileIdentity::New((directory.dev(), directory.ino()), file_name.into()))
}

/// True if it is the same as standard output: a name for it such as `/dev/stdout`, or the file that it was
/// redirected to. Outputs to a device need no order among each other, unless it is a terminal.
fn is_standard_output(metadata: &Metadata, kind: FileType) -> bool {
    let duplicate = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let Ok(standard) = duplicate.and_then(|file| file.metadata()) else { return false };
    (standard.dev(), standard.ino()) == (metadata.dev(), metadata.ino())
        && (!kind.is_char_device() || io::stdout().is_terminal())
}

/// The most links that may lead to one another.
const MOST_LINKS: usize = 40;

/// The place that a name without a file stands for: its own, or the end of its symbolic links.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&place) {
            Ok(target) => place = directory_of(&place).join(target),
            Err(_) => return Ok(place),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The real path of a regular file. None if the name is one of an open file: then others are writing there as
/// well, and will go on.
fn real_place(path: &Path, metadata: &Metadata) -> Option<PathBuf> {
    let mut link = path.to_owned();
    for _ in 0..MOST_LINKS {
        let directory = std::fs::canonicalize(directory_of(&link)).ok()?;
        if directory.starts_with("/proc") {
            return None;
        }
        match std::fs::read_link(&link) {
            Ok(target) => link = directory.join(target),
            Err(_) => break,
        }
    }
    let place = std::fs::canonicalize(path).ok()?;
    let found = std::fs::symlink_metadata(&place).ok()?;
    ((found.dev(), found.ino()) == (metadata.dev(), metadata.ino())).then_some(place)
}

impl OutputFile {
    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, content: &[u8]) -> Result<(), Failure> {
        self.write_with(|to| to.write_all(content))
    }

    /// Writes it piece by piece.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_with(&self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let mut options = OpenOptions::new();
        let written = match &self.way {
            WriteMethod::Standard => to_standard_output(content),
            WriteMethod::Replace(place) => partial::replace(place, content),
            WriteMethod::InPlace(place) => {
                options.write(true).truncate(true).open(place).and_then(|mut file| content(&mut file))
            }
            WriteMethod::Append(path) => {
                options.append(true).open(path).and_then(|mut file| content(&mut file))
            }
        };
        written.map_err(|error| Failure::unwritable(&self.name, &error))
    }
}

/// Writes to standard output. If the reader has closed the pipe, the rest is dropped.
pub fn to_standard_output(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match content(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
