//! A kernel compiled for several chips: one executable for each, and a file that holds all of their objects.

use super::device::Device;
use super::executable::Executable;
#[cfg(feature = "compression")]
use crate::codegen::object::compress_bundle;
use crate::codegen::object::{BundleEntry, write_bundle};
use crate::codegen::target::TargetId;
use crate::ir::diagnostic::Diagnostic;
#[cfg(feature = "compression")]
use crate::ir::diagnostic::Kind;
use crate::ir::kernel::Kernel;
use crate::passes::options::Options;

/// What [`Kernel::compile_for`] gives.
///
/// # Example
/// ```
/// use groundswell::compile::Bundle;
/// use groundswell::kernels::{Waves, copy};
/// use groundswell::prelude::*;
/// let kernel = copy(F32, Waves::new(4, 1))?;
/// let sizes = [("M", 64), ("N", 64), ("BLOCK_M", 16), ("BLOCK_N", 64)];
/// let options = sizes.iter().fold(Options::new(Target::USUAL), |o, &(name, size)| o.set(name, size));
/// let targets = [Target::GFX90A, Target::GFX942, Target::GFX950].map(Into::into);
/// let bundle: Bundle = kernel.compile_for(&options, &targets)?;
/// assert!(bundle.to_bytes().starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
/// let device = Device::simulator(Target::GFX950);
/// assert_eq!(device.pick(&bundle)?.target(), device.target());
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bundle {
    executables: Vec<Executable>,
}

impl Bundle {
    /// The executables in the order of the targets that were asked for.
    pub fn executables(&self) -> &[Executable] {
        &self.executables
    }

    /// Executables that were compiled one by one.
    ///
    /// # Errors
    /// There is none, there are two for one target, or two of one processor that name the modes of different
    /// features.
    pub fn of(executables: Vec<Executable>) -> Result<Bundle, Diagnostic> {
        check_targets(executables.iter().map(Executable::target_id))?;
        Ok(Bundle { executables })
    }

    /// An offload bundle of all objects, which `hipModuleLoad` and [`Simulator::load`] take in place of an
    /// object.
    ///
    /// [`Simulator::load`]: crate::simulator::Simulator::load
    pub fn to_bytes(&self) -> Vec<u8> {
        let entries = self.executables.iter();
        let entries = entries.map(|of| BundleEntry { target: of.target_id(), bytes: of.object() });
        write_bundle(&entries.collect::<Vec<_>>())
    }

    /// The same, compressed as `clang-offload-bundler --compress` of LLVM 19 does, which [`Simulator::load`]
    /// takes as well.
    ///
    /// # Errors
    /// All objects together are larger than what is read here.
    ///
    /// [`Simulator::load`]: crate::simulator::Simulator::load
    #[cfg(feature = "compression")]
    pub fn to_compressed_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        compress_bundle(&self.to_bytes()).map_err(|error| Diagnostic::new(Kind::Limit, error.to_string()))
    }
}

impl Kernel {
    /// Compiles for several targets with otherwise the same options, whose own target does not count.
    ///
    /// # Errors
    /// Those of [`Kernel::compile`] for any of them; no target, one twice, or two of one processor that name
    /// the modes of different features.
    pub fn compile_for(&self, options: &Options, targets: &[TargetId]) -> Result<Bundle, Diagnostic> {
        check_targets(targets.iter().copied())?;
        let compiled = targets.iter().map(|&target| self.compile(&options.clone().for_target(target)));
        Ok(Bundle { executables: compiled.collect::<Result<_, _>>()? })
    }
}

/// That each object of a bundle can be told from the others.
fn check_targets(targets: impl Iterator<Item = TargetId>) -> Result<(), Diagnostic> {
    let mut seen: Vec<TargetId> = Vec::new();
    for target in targets {
        if seen.contains(&target) {
            return Err(Diagnostic::invalid(format!("a bundle with {target} twice")));
        }
        if let Some(other) = seen.iter().find(|other| other.conflicts_with(target)) {
            let text = format!("a bundle with both {other} and {target}");
            return Err(Diagnostic::invalid(text)
                .help("of one processor, a mode is either named by all of them or by none"));
        }
        seen.push(target);
    }
    match seen.is_empty() {
        true => Err(Diagnostic::invalid("a bundle for no target").help("name at least one")),
        false => Ok(()),
    }
}

impl Device {
    /// The executable of a bundle that runs on this device: one for its own chip before one for a generic
    /// target, and of several, which a device whose modes are open has, the first.
    ///
    /// # Errors
    /// None of them does.
    pub fn pick<'a>(&self, bundle: &'a Bundle) -> Result<&'a Executable, Diagnostic> {
        let all = bundle.executables.iter().map(|of| (of.target_id(), of));
        self.target_id().best_of(all).ok_or_else(|| {
            let has: Vec<String> = bundle.executables.iter().map(|of| of.target_id().to_string()).collect();
            Diagnostic::invalid(format!("the bundle is for {}, not for {}", has.join(", "), self.target_id()))
                .help(format!("compile it for {}, too", self.target_id().target()))
        })
    }
}
