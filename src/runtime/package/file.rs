//! Reading a package.
//!
//! ```text
//! bytes  0..8   magic and version of the format
//!        8..16  bytes of the index
//!       16..32  checksum (XXH3, 128 bits) of everything after it
//!       32..    the index: for each kernel its name and, for each target, where its executable is
//!               executables, each of which is decoded when it is first launched
//! ```

use std::borrow::Cow;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::codegen::target::TargetId;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::runtime::device::Device;
use crate::runtime::executable::Executable;
use crate::runtime::stored::StoredExecutable;
use crate::spelling;

/// What files begin with; the last byte is the version of the format.
const MAGIC: [u8; 8] = *b"GSWPACK\x02";

/// The way out where an executable cannot be read.
const HELP: &str = if cfg!(feature = "compiler") {
    "build the package anew with this version, or take the crate with the feature `runtime` alone, which also \
     runs what other builds of the compiler have written"
} else {
    "build the package anew with the compiler of this version"
};

/// Bytes before the index.
const HEAD: usize = 32;

/// A kernel in the index.
#[derive(Serialize, Deserialize)]
pub(super) struct IndexEntry {
    pub(super) name: String,
    /// For each target, where the executable is after the index: the first byte, and bytes.
    pub(super) variants: Vec<(TargetId, u64, u64)>,
}

/// Kernels that were compiled ahead of time.
///
/// # Example
/// ```
/// # #[cfg(feature = "compiler")] {
/// use groundswell::kernels::{Waves, copy};
/// use groundswell::package::{KernelPackage, PackageBuilder};
/// use groundswell::prelude::*;
/// let sizes = [("M", 4), ("N", 64), ("BLOCK_M", 4), ("BLOCK_N", 64)];
/// let options = sizes.iter().fold(Options::new(Target::USUAL), |o, &(name, size)| o.set(name, size));
/// let builder = PackageBuilder::new([Target::GFX90A, Target::GFX942].map(Into::into));
/// let built = builder.kernel("copy_words", &copy(F32, Waves::new(1, 1))?, &options)?;
///
/// let package = KernelPackage::read(built.package()?)?;
/// let device = Device::open()?;
/// let words = package.executable("copy_words", &device)?;
/// let (a, b) = (device.upload(&[1f32; 256])?, device.upload(&[0f32; 256])?);
/// device.launch(words).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<f32>()?, [1.0; 256]);
/// # }
/// # Ok::<(), groundswell::diagnostic::Diagnostic>(())
/// ```
#[derive(Debug)]
pub struct KernelPackage {
    kernels: Vec<PackagedKernel>,
}

/// A kernel of a package, for several targets.
#[derive(Debug)]
pub struct PackagedKernel {
    name: String,
    variants: Vec<PackagedVariant>,
}

#[derive(Debug)]
struct PackagedVariant {
    target: TargetId,
    bytes: Cow<'static, [u8]>,
    executable: OnceLock<Result<Executable, Diagnostic>>,
}

impl KernelPackage {
    /// Reads a package: bytes that live as long as the program (`include_bytes!`), or a file's.
    ///
    /// # Errors
    /// It is no package, or one of another version, or it is damaged.
    pub fn read(bytes: impl Into<Cow<'static, [u8]>>) -> Result<KernelPackage, Diagnostic> {
        let bytes = bytes.into();
        let help = "build it anew with `groundswell build` of this version";
        if bytes.starts_with(&MAGIC[..7]) && bytes.get(7) != Some(&MAGIC[7]) {
            return Err(Diagnostic::invalid("the package has another version of the format").help(help));
        }
        let Some((index, first)) = index_of(&bytes) else {
            return Err(Diagnostic::invalid("this is no package of kernels, or it is damaged").help(help));
        };
        let damaged = || Diagnostic::invalid("the index of the package is damaged").help("build it anew");
        let mut kernels = Vec::with_capacity(index.len());
        for IndexEntry { name, variants } in index {
            let variants = variants.into_iter().map(|(target, at, length)| {
                let at = usize::try_from(at).ok()?.checked_add(first)?;
                let end = at.checked_add(usize::try_from(length).ok()?)?;
                let part = match &bytes {
                    Cow::Borrowed(all) => Cow::Borrowed(all.get(at..end)?),
                    Cow::Owned(all) => Cow::Owned(all.get(at..end)?.to_vec()),
                };
                Some(PackagedVariant { target, bytes: part, executable: OnceLock::new() })
            });
            let variants = variants.collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
            kernels.push(PackagedKernel { name, variants });
        }
        Ok(KernelPackage { kernels })
    }

    /// Its kernels, in the order in which they were added.
    pub fn kernels(&self) -> &[PackagedKernel] {
        &self.kernels
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// There is none; with those that there are.
    pub fn kernel(&self, name: &str) -> Result<&PackagedKernel, Diagnostic> {
        self.kernels.iter().find(|kernel| kernel.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.kernels.iter().map(|kernel| &*kernel.name).collect();
            let help = match spelling::closest(name, names.iter().copied()) {
                Some(meant) => format!("is `{meant}` meant?"),
                None => format!("it has {}", names.join(", ")),
            };
            Diagnostic::invalid(format!("the package has no kernel `{name}`")).help(help)
        })
    }

    /// The executable of a kernel that runs on a device.
    ///
    /// # Errors
    /// The package has no such kernel, or not for the device's target, or the executable is damaged.
    pub fn executable(&self, name: &str, device: &Device) -> Result<&Executable, Diagnostic> {
        self.kernel(name)?.for_target(device.target_id())
    }
}

impl PackagedKernel {
    /// Its name in the package.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The targets that it is there for.
    pub fn targets(&self) -> impl Iterator<Item = TargetId> {
        self.variants.iter().map(|variant| variant.target)
    }

    /// The executable that runs on a chip in its modes: one for its own processor before one for a generic
    /// target.
    ///
    /// # Errors
    /// There is none, or it is damaged, or this program has a compiler and another build of it wrote the
    /// package: reports are of one build.
    pub fn for_target(&self, chip: TargetId) -> Result<&Executable, Diagnostic> {
        let all = self.variants.iter().map(|variant| (variant.target, variant));
        let variant = chip.best_of(all).ok_or_else(|| {
            let has: Vec<String> = self.targets().map(|target| target.to_string()).collect();
            let text = format!("`{}` was built for {}, and the device is {chip}", self.name, has.join(", "));
            Diagnostic::new(Kind::Unsupported, text).help("build the package for this target, too")
        })?;
        let executable = variant.executable.get_or_init(|| {
            let stored = StoredExecutable::read(&variant.bytes).and_then(StoredExecutable::executable);
            stored.map_err(|error| {
                let text = format!("`{}` for {} cannot be used: {error}", self.name, variant.target);
                Diagnostic::invalid(text).help(HELP)
            })
        });
        executable.as_ref().map_err(Diagnostic::clone)
    }
}

/// The index of a package, and where what it speaks of begins.
fn index_of(bytes: &[u8]) -> Option<(Vec<IndexEntry>, usize)> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (length, sum) = (head[8..16].try_into().ok()?, head[16..HEAD].try_into().ok()?);
    if head[..8] != MAGIC || xxh3_128(rest) != u128::from_le_bytes(sum) {
        return None;
    }
    let length = usize::try_from(u64::from_le_bytes(length)).ok()?;
    let index = postcard::from_bytes(rest.get(..length)?).ok()?;
    Some((index, HEAD + length))
}

/// The bytes of a package.
#[cfg(feature = "compiler")]
pub(super) fn package_bytes(index: &[IndexEntry], executables: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let index = postcard::to_allocvec(index)
        .map_err(|error| Diagnostic::bug(format!("the index of a package cannot be written: {error}")))?;
    let mut bytes = Vec::with_capacity(HEAD + index.len() + executables.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&(index.len() as u64).to_le_bytes());
    bytes.resize(HEAD, 0);
    bytes.extend_from_slice(&index);
    bytes.extend_from_slice(executables);
    let sum = xxh3_128(&bytes[HEAD..]);
    bytes[16..HEAD].copy_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}
