//! Finding and opening `libamdhip64`.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::api::Api;
use crate::ir::diagnostic::{Diagnostic, Kind};

/// A path of the library, for those who have it elsewhere.
pub(super) const PATH_VARIABLE: &str = "GROUNDSWELL_HIP_LIBRARY";

/// The names under which the loader looks for it, the newest first. Their functions differ in few places,
/// which `architecture` knows.
const NAMES: [&str; 4] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];

/// Do not open a library, but find it if the process has opened it already (`dlopen(3)`).
const RTLD_NOLOAD: i32 = 4;

/// An opened library.
pub(super) struct OpenedLibrary {
    pub(super) path: PathBuf,
    pub(super) api: Api,
    /// HIP's threads run in its code until the process ends, so it is never closed.
    _library: ManuallyDrop<Library>,
}

/// The library of the process, opened when it is first asked for.
///
/// # Errors
/// There is none, or one that lacks functions.
pub(super) fn library() -> Result<&'static OpenedLibrary, Diagnostic> {
    static LIBRARY: OnceLock<Result<OpenedLibrary, Diagnostic>> = OnceLock::new();
    LIBRARY.get_or_init(|| open(env::var_os(PATH_VARIABLE))).as_ref().map_err(Clone::clone)
}

/// Opens the library: that of the path alone, if there is one.
pub(super) fn open(path: Option<OsString>) -> Result<OpenedLibrary, Diagnostic> {
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return open_at(&path, RTLD_NOW | RTLD_LOCAL)
            .and_then(|library| with_functions(path, library))
            .map_err(|reason| {
                Diagnostic::new(Kind::Unsupported, reason)
                    .help(format!("{PATH_VARIABLE} has to be the path of a libamdhip64 of HIP 5, 6 or 7"))
            });
    }
    // If the process has HIP already, through another library, it has to be the same one.
    for name in NAMES {
        let path = PathBuf::from(name);
        if let Ok(library) = open_at(&path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) {
            return with_functions(path, library).map_err(unsupported);
        }
    }
    let mut reasons = Vec::new();
    for path in candidates() {
        match open_at(&path, RTLD_NOW | RTLD_LOCAL).and_then(|library| with_functions(path, library)) {
            Ok(opened) => return Ok(opened),
            Err(reason) => reasons.push(reason),
        }
    }
    // The first name says most: others lack the file as a rule.
    let reason = reasons.into_iter().min_by_key(|reason| reason.contains("No such file"));
    Err(unsupported(reason.unwrap_or_default()))
}

fn unsupported(reason: String) -> Diagnostic {
    Diagnostic::new(Kind::Unsupported, format!("HIP cannot be used: {reason}")).help(format!(
        "install the ROCm runtime (package hip-runtime-amd, or libamdhip64-5 of Debian), or name its library in \
         {PATH_VARIABLE}"
    ))
}

/// Names for the loader's own search, then files in the places of ROCm.
fn candidates() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
    let roots = ["ROCM_PATH", "HIP_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let mut roots: Vec<PathBuf> = roots.chain([PathBuf::from("/opt/rocm")]).collect();
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/opt")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("rocm-"))
        .map(|entry| entry.path())
        .collect();
    versions.sort();
    roots.extend(versions.into_iter().rev());
    for root in roots {
        paths.extend(NAMES.iter().map(|name| root.join("lib").join(name)).filter(|path| path.exists()));
    }
    paths
}

fn open_at(path: &Path, flags: i32) -> Result<Library, String> {
    // SAFETY: opening runs the library's constructors. `libamdhip64` starts nothing before its first call; a
    // file that somebody puts in its place is trusted as any library that the loader finds.
    unsafe { Library::open(Some(path), flags) }.map_err(|error| {
        // The loader's own words are the cause of libloading's error.
        let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("{} cannot be opened: {cause}", path.display())
    })
}

fn with_functions(path: PathBuf, library: Library) -> Result<OpenedLibrary, String> {
    let library = ManuallyDrop::new(library);
    let api = Api::new(&library)
        .map_err(|missing| format!("{} has no {missing}: it is too old, or not HIP", path.display()))?;
    Ok(OpenedLibrary { path, api, _library: library })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_path_is_an_error_that_says_what_to_do() {
        for path in ["/nowhere/libamdhip64.so", "/proc/self/exe", "/dev/null"] {
            let error = open(Some(path.into())).err().expect("there is no HIP");
            assert_eq!(error.kind, Kind::Unsupported, "{error}");
            assert!(error.to_string().contains(path), "{error}");
            assert!(error.to_string().contains(PATH_VARIABLE), "{error}");
        }
    }

    #[test]
    fn a_library_that_is_not_hip_lacks_functions() {
        let error = open(Some("libc.so.6".into())).err().expect("it is the C library");
        assert!(error.to_string().contains("has no hipInit"), "{error}");
    }
}
