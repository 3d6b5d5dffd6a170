//! The triple in front of a target id: `amdgcn-amd-amdhsa--gfx942:xnack-`.
//!
//! Its architecture is `amdgcn` for every processor, or, as newer compilers write it, `amdgpu` with the
//! number of the processor or of its family: `amdgpu9.42-amd-amdhsa-unknown-gfx942` (LLVM, Triple.cpp,
//! `parseSubArch`). A processor that is not of its architecture is refused; where the architecture names one,
//! it may be left out. The environment is empty, or `unknown`, which compilers write that were given it, and
//! newer ones always; or `amdgiz`, with an empty vendor, which XLA's compiler writes.

use super::Target;
use crate::codegen::arch::Generation;

/// Vendor and system, between the architecture and the environment.
const SYSTEMS: [&str; 2] = ["-amd-amdhsa-", "--amdhsa-"];
/// Environments, with what parts them from the target id.
const ENVIRONMENTS: [&str; 3] = ["-", "unknown-", "amdgiz-"];

/// The target id after a triple of code for HSA; none after another triple.
pub(super) fn target_id(text: &str) -> Option<&str> {
    let (architecture, rest) = SYSTEMS.into_iter().find_map(|system| text.split_once(system))?;
    let id = ENVIRONMENTS.into_iter().find_map(|environment| rest.strip_prefix(environment))?;
    let Some(wanted) = architecture.strip_prefix("amdgpu") else {
        return (architecture == "amdgcn").then_some(id);
    };
    if id.is_empty() {
        return Target::named()
            .map(|target| target.name)
            .find(|name| number(name).as_deref() == Some(wanted));
    }
    let name = id.split(':').next().unwrap_or_default();
    let families = Target::from_name(name).map_or(&[][..], families);
    (number(name).as_deref() == Some(wanted) || families.contains(&wanted)).then_some(id)
}

/// The number that a processor has in its architecture: `9.0a` of gfx90a, `9.4` of gfx9-4-generic.
fn number(processor: &str) -> Option<String> {
    let digits = processor.strip_prefix("gfx")?;
    if let Some(family) = digits.strip_suffix("-generic") {
        return Some(family.replace('-', "."));
    }
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    Some(format!("{major}.{rest}"))
}

/// The families of a processor (LLVM, Triple.cpp): gfx908 and gfx90a have none, and 9.5 is another name of
/// 9.4.
fn families(target: Target) -> &'static [&'static str] {
    match target.arch.generation() {
        Generation::Gcn5 => &["9"],
        Generation::Cdna1 | Generation::Cdna2 => &[],
        Generation::Cdna3 | Generation::Cdna4 => &["9.4", "9.5"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_are_of_one_architecture_or_of_one_for_each_processor() {
        for (text, id) in [
            ("amdgcn-amd-amdhsa--gfx942:xnack-", "gfx942:xnack-"),
            ("amdgcn-amd-amdhsa-unknown-gfx90a", "gfx90a"),
            ("amdgcn--amdhsa-amdgiz-gfx906", "gfx906"),
            ("amdgpu9.42-amd-amdhsa-unknown-gfx942:sramecc+", "gfx942:sramecc+"),
            ("amdgpu9.06-amd-amdhsa--gfx906", "gfx906"),
            ("amdgpu9.08-amd-amdhsa--gfx908", "gfx908"),
            ("amdgpu9.0a-amd-amdhsa-unknown-gfx90a:xnack+", "gfx90a:xnack+"),
            ("amdgpu9.50-amd-amdhsa-unknown-gfx950", "gfx950"),
            ("amdgpu9-amd-amdhsa-unknown-gfx906", "gfx906"),
            ("amdgpu9.4-amd-amdhsa--gfx950", "gfx950"),
            ("amdgpu9.5-amd-amdhsa--gfx942", "gfx942"),
            ("amdgpu9.4-amd-amdhsa--gfx9-4-generic", "gfx9-4-generic"),
            ("amdgpu9.50-amd-amdhsa--", "gfx950"),
            ("amdgpu9.4-amd-amdhsa-unknown-", "gfx9-4-generic"),
            // For somebody else to refuse by its name.
            ("amdgpu11.00-amd-amdhsa--gfx1100", "gfx1100"),
            ("amdgcn-amd-amdhsa--", ""),
        ] {
            assert_eq!(target_id(text), Some(id), "{text}");
        }
        for text in [
            "gfx942",
            "amdgcn-amd-amdpal--gfx942",
            "amdgcn-amd-amdhsa-gnu-gfx942",
            "nvptx-amd-amdhsa--gfx942",
            "amdgpu-amd-amdhsa--gfx942",
            "amdgpu9.50-amd-amdhsa--gfx942",
            "amdgpu9-amd-amdhsa--gfx90a",
            "amdgpu9.4-amd-amdhsa--gfx90a",
            "amdgpu11.00-amd-amdhsa--",
            "amdgpu9.42-amd-amdhsa--é",
        ] {
            assert_eq!(target_id(text), None, "{text}");
        }
    }
}
