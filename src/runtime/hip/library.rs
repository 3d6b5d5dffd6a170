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
const NAMES: [&str; 5] =
    ["libamdhip64.so.8", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];

/// The package that brings ROCm's libraries to Python (pip, from ROCm 7 on).
const PYTHON_PACKAGE: &str = "_rocm_sdk_core";

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
                    .help(format!("{PATH_VARIABLE} has to be the path of a libamdhip64 of HIP 5 to 8"))
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
    for path in RocmPlaces::of_this_machine().candidates() {
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

/// The places where ROCm may be installed.
struct RocmPlaces {
    /// Its roots, as variables name them.
    named: Vec<PathBuf>,
    /// The directory that AMD's packages choose.
    opt: PathBuf,
    /// Directories with `pythonX.Y` in them: those of environments come first.
    python: Vec<PathBuf>,
}

impl RocmPlaces {
    fn of_this_machine() -> RocmPlaces {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable);
        let home = variable("HOME").map(|home| home.join(".local"));
        let python = environments.chain(home).chain(["/usr/local".into(), "/usr".into()]);
        RocmPlaces {
            named: ["ROCM_PATH", "HIP_PATH"].into_iter().filter_map(variable).collect(),
            opt: "/opt".into(),
            python: python.map(|root| root.join("lib")).collect(),
        }
    }

    /// Names for the loader's own search, then files that are there.
    fn candidates(&self) -> Vec<PathBuf> {
        let rocm = self.opt.join("rocm");
        let mut roots = self.named.clone();
        roots.extend([rocm.clone(), rocm.join("core")]);
        roots.extend(newest_first(&rocm, "core-"));
        roots.extend(newest_first(&self.opt, "rocm-"));
        for python in self.python.iter().flat_map(|directory| newest_first(directory, "python")) {
            let packages = ["site-packages", "dist-packages"].map(|name| python.join(name));
            roots.extend(packages.map(|directory| directory.join(PYTHON_PACKAGE)));
        }
        let names = NAMES.iter().map(PathBuf::from);
        let files = roots.iter().flat_map(|root| NAMES.map(|name| root.join("lib").join(name)));
        names.chain(files.filter(|path| path.exists())).collect()
    }
}

/// The entries of a directory whose names begin so, those with the largest numbers after it first: 7.10 comes
/// before 7.9.
fn newest_first(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix(prefix)?;
            let numbers = version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
            Some((numbers.collect(), entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
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
    fn all_installations_of_rocm_are_found() {
        let root = env::temp_dir().join(format!("groundswell-rocm-{}", std::process::id()));
        let files = [
            "named/lib/libamdhip64.so.5",
            "opt/rocm/lib/libamdhip64.so",
            "opt/rocm/core/lib/libamdhip64.so.7",
            "opt/rocm/core-7.10/lib/libamdhip64.so.8",
            "opt/rocm/core-7.10/lib/libamdhip64.so.7",
            "opt/rocm/core-7.9/lib/libamdhip64.so.7",
            "opt/rocm-6.4.1/lib/libamdhip64.so.6",
            "python/python3.12/site-packages/_rocm_sdk_core/lib/libamdhip64.so.7",
            "python/python3.9/dist-packages/_rocm_sdk_core/lib/libamdhip64.so.7",
        ]
        .map(|file| root.join(file));
        for file in &files {
            std::fs::create_dir_all(file.parent().expect("it has one")).expect("it can be made");
            std::fs::write(file, "").expect("it can be written");
        }
        let [named, opt, python] = ["named", "opt", "python"].map(|name| root.join(name));
        let found = RocmPlaces { named: vec![named], opt, python: vec![python] }.candidates();
        std::fs::remove_dir_all(&root).expect("it can be removed");
        assert_eq!(found[..NAMES.len()], NAMES.map(PathBuf::from));
        assert_eq!(found[NAMES.len()..], files);
    }

    #[test]
    fn a_library_that_is_not_hip_lacks_functions() {
        let error = open(Some("libc.so.6".into())).err().expect("it is the C library");
        assert!(error.to_string().contains("has no hipInit"), "{error}");
    }
}
