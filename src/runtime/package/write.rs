//! Writing packages: kernels are compiled for every target, and written with sources that launch them.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::built_kernel::BuiltKernel;
use super::expression_source::name_source;
use super::file::{IndexEntry, package_bytes};
use super::{c_source, rust_source};
use crate::codegen::object::{BundleEntry, write_bundle};
use crate::codegen::target::TargetId;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::Kernel;
use crate::passes::options::Options;
use crate::runtime::compiled::link_named;
use crate::runtime::executable::Executable;
use crate::runtime::stored::StoredExecutable;

/// Puts kernels into a package.
///
/// # Example
/// In the `build.rs` of a crate whose `[build-dependencies]` have `groundswell` with the feature `compiler`,
/// and whose `[dependencies]` have it with `runtime` alone:
/// ```
/// use groundswell::kernels::Gemm;
/// use groundswell::package::PackageBuilder;
/// use groundswell::prelude::*;
/// # let out = std::env::temp_dir().join(format!("groundswell-doc-package-{}", std::process::id()));
/// // let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
/// let gemm = Gemm::new(128, 128, 64);
/// let built = PackageBuilder::new([Target::GFX942, Target::GFX950].map(Into::into))
///     .kernel("gemm", &gemm.kernel()?, &gemm.options(Target::GFX942))?
///     .write(&out, "kernels")?;
/// assert!(built.rust_module.ends_with("kernels.rs"));
/// // In the crate: mod kernels { include!(concat!(env!("OUT_DIR"), "/kernels.rs")); }
/// # std::fs::remove_dir_all(&out).map_err(|error| Diagnostic::invalid(error.to_string()))?;
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone, Debug)]
pub struct PackageBuilder {
    targets: Vec<TargetId>,
    kernels: Vec<BuiltKernel>,
}

/// The files of a package.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuiltFiles {
    /// All executables with their index, for [`KernelPackage`](super::KernelPackage).
    pub package: PathBuf,
    /// The Rust module with a function for each kernel; it includes the package.
    pub rust_module: PathBuf,
    /// An offload bundle with one code object for each target, for `hipModuleLoad`.
    pub bundle: PathBuf,
    /// The header for C and C++, with a struct of arguments and a function for each kernel of the bundle.
    pub header: PathBuf,
}

impl BuiltFiles {
    /// All of them.
    pub fn all(&self) -> [&Path; 4] {
        [&self.package, &self.rust_module, &self.bundle, &self.header]
    }
}

impl PackageBuilder {
    /// An empty package for these targets.
    pub fn new(targets: impl IntoIterator<Item = TargetId>) -> PackageBuilder {
        PackageBuilder { targets: targets.into_iter().collect(), kernels: Vec::new() }
    }

    /// Adds a kernel under a name of the package: a function of that name launches it. The target of the
    /// options does not count.
    ///
    /// # Errors
    /// Those of its compilation for any of the targets; a name that is no lower-case identifier of Rust and
    /// C, or is there already; no target, or several that cannot be told apart; arguments or a launch that
    /// differ between targets.
    pub fn kernel(mut self, name: &str, kernel: &Kernel, options: &Options) -> Result<Self, Diagnostic> {
        if name_source(name) != name || name.len() > 64 {
            let text = format!("`{name}` cannot be the name of a function");
            return Err(Diagnostic::invalid(text).help(
                "give it a name of the package: small letters, digits and `_`, and no word of Rust or C",
            ));
        }
        // Each kernel has functions and types whose names begin with its own.
        let is_part = |of: &str, name: &str| {
            ["_grid", "_launch", "_arguments", "_block"]
                .iter()
                .any(|part| name.strip_suffix(part) == Some(of))
        };
        let meets = |known: &str| known == name || is_part(known, name) || is_part(name, known);
        if let Some(known) = self.kernels.iter().find(|known| meets(&known.name)) {
            let text = match known.name == name {
                true => format!("the package has two kernels `{name}`"),
                false => format!("`{name}` and `{}` have functions of one name", known.name),
            };
            return Err(Diagnostic::invalid(text).help("give each a name of its own"));
        }
        let executables = kernel.compile_for(options, &self.targets)?.executables().to_vec();
        let (first, others) = executables.split_first().ok_or_else(|| Diagnostic::bug("no target"))?;
        for other in others {
            if !first.launches_like(other) {
                let text = format!(
                    "`{name}` has other arguments or another grid for {} than for {}",
                    other.target_id(),
                    first.target_id()
                );
                return Err(
                    Diagnostic::new(Kind::Unsupported, text).help("put it into packages of their own")
                );
            }
        }
        self.kernels.push(BuiltKernel { name: name.to_owned(), executables });
        Ok(self)
    }

    /// The names of its kernels, each with the executable for the first target.
    pub fn kernels(&self) -> impl Iterator<Item = (&str, &Executable)> {
        self.kernels.iter().map(|kernel| (&*kernel.name, kernel.first()))
    }

    /// The bytes of the package.
    ///
    /// # Errors
    /// None that a user can cause.
    pub fn package(&self) -> Result<Vec<u8>, Diagnostic> {
        let mut executables = Vec::new();
        let mut index = Vec::new();
        for kernel in &self.kernels {
            let mut variants = Vec::new();
            for executable in &kernel.executables {
                let at = executables.len();
                let stored = StoredExecutable::of(executable)
                    .ok_or_else(|| Diagnostic::bug("an object without its code"))?;
                executables =
                    stored.write(executables).map_err(|error| Diagnostic::bug(error.to_string()))?;
                variants.push((executable.target_id(), at as u64, (executables.len() - at) as u64));
            }
            index.push(IndexEntry { name: kernel.name.clone(), variants });
        }
        package_bytes(&index, &executables)
    }

    /// The Rust module, which includes the package from the file of that name beside it.
    pub fn rust_module(&self, package_file: &str) -> String {
        rust_source::module(&self.kernels, package_file)
    }

    /// The header for C and C++.
    pub fn c_header(&self, name: &str) -> String {
        c_source::header(&self.kernels, name)
    }

    /// The bundle that the header speaks of: for each target one object with all kernels.
    ///
    /// # Errors
    /// No kernel.
    pub fn c_bundle(&self) -> Result<Vec<u8>, Diagnostic> {
        if self.kernels.is_empty() {
            return Err(Diagnostic::invalid("a package needs at least one kernel"));
        }
        let mut objects = Vec::new();
        for (at, &target) in self.targets.iter().enumerate() {
            let named = self.kernels.iter().map(|kernel| (&*kernel.name, &kernel.executables[at]));
            objects.push((target, link_named(&named.collect::<Vec<_>>())?));
        }
        let entries = objects.iter().map(|(target, bytes)| BundleEntry { target: *target, bytes });
        Ok(write_bundle(&entries.collect::<Vec<_>>()))
    }

    /// Writes all files into a directory, which is made if it is not there: `NAME.gswpack`, `NAME.rs`,
    /// `NAME.co` and `NAME.h`.
    ///
    /// # Errors
    /// The package has no kernel, the name is no identifier, or a file cannot be written.
    pub fn write(&self, directory: &Path, name: &str) -> Result<BuiltFiles, Diagnostic> {
        if name_source(name) != name {
            let text = format!("`{name}` cannot be the name of a package");
            return Err(Diagnostic::invalid(text)
                .help("take small letters, digits and `_`, and no word of Rust or C"));
        }
        let file = |extension: &str| directory.join(format!("{name}.{extension}"));
        let files = BuiltFiles {
            package: file("gswpack"),
            rust_module: file("rs"),
            bundle: file("co"),
            header: file("h"),
        };
        let bundle = self.c_bundle()?;
        let unwritable = |path: &Path, error: std::io::Error| {
            let text = format!("cannot write {}: {error}", path.display());
            Diagnostic::new(Kind::Unsupported, text).help("name a directory that can be written")
        };
        fs::create_dir_all(directory).map_err(|error| unwritable(directory, error))?;
        let contents = [
            (&files.package, self.package()?),
            (&files.rust_module, self.rust_module(&format!("{name}.gswpack")).into_bytes()),
            (&files.bundle, bundle),
            (&files.header, self.c_header(name).into_bytes()),
        ];
        // A header of one build does not fit the bundle of another: all is written before one is replaced.
        let partial = |path: &Path| path.with_added_extension(format!("{}.part", std::process::id()));
        let written = contents.iter().try_for_each(|(path, content)| {
            if path.is_dir() {
                return Err(unwritable(path, io::ErrorKind::IsADirectory.into()));
            }
            fs::write(partial(path), content).map_err(|error| unwritable(path, error))
        });
        let renamed = written.and_then(|()| {
            let each = contents.iter();
            each.map(|(path, _)| path)
                .try_for_each(|path| fs::rename(partial(path), path).map_err(|error| unwritable(path, error)))
        });
        if renamed.is_err() {
            // Those that are there.
            files.all().into_iter().for_each(|path| drop(fs::remove_file(partial(path))));
        }
        renamed.map(|()| files)
    }
}
