//! Where things are: the repository, and folders for what tests write.

use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_root = |folder: &&Path| folder.join("tests").is_dir();
    package.ancestors().find(is_root).expect("every package is in the repository")
}

/// Where cargo lets tests write; it tells only the test binaries themselves, which it puts into the same
/// directory.
pub fn scratch() -> PathBuf {
    let program = std::env::current_exe().expect("this is a program");
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    target.map_or_else(std::env::temp_dir, |target| target.join("tmp"))
}

/// A directory of this test, empty and gone afterwards.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = scratch().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the target directory can be written");
        Directory(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Names of what is in it, sorted.
    pub fn entries(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("it was created");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("it is readable").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
