//! The parts of an object about where it runs: processor, modes of its selectable features, object version.
//!
//! A *target id* is LLVM's and HIP's name for a processor with the modes of XNACK and SRAM-ECC:
//! `gfx942:sramecc+:xnack-`. A feature that is not named may be in any mode. Source: LLVM's "User Guide for
//! AMDGPU Backend", sections "Target ID" and "AMDGPU ELF Header" (`EF_AMDGPU_FEATURE_XNACK_V4`,
//! `EF_AMDGPU_FEATURE_SRAMECC_V4`).

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use super::triples::target_id;
use super::{Feature, Target};

/// The most workgroups along Y and along Z that HIP launches (ROCm 6.3 to 7; clr, hip_module.cpp).
pub(crate) const MOST_WORKGROUPS: u32 = 1 << 16;

/// The mode of a chip feature in which an object runs. The numbers are those of the fields in `e_flags`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FeatureSetting {
    /// The chip has no choice.
    Unsupported = 0,
    /// Runs in either mode.
    Any = 1,
    /// Runs with the feature off only.
    Off = 2,
    /// Runs with the feature on only.
    On = 3,
}

impl FeatureSetting {
    /// The setting in the low two bits.
    pub const fn from_bits(bits: u32) -> FeatureSetting {
        match bits & 3 {
            0 => FeatureSetting::Unsupported,
            1 => FeatureSetting::Any,
            2 => FeatureSetting::Off,
            _ => FeatureSetting::On,
        }
    }
}

/// Version of the code object format.
#[derive(
    Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize,
)]
pub enum ObjectVersion {
    /// Version 4, which hand-written kernels of older libraries ask for; nothing is compiled to it.
    V4,
    /// Version 5, which every runtime since ROCm 6 loads.
    #[default]
    V5,
    /// Version 6: as version 5, with room for the version of a generic target, which has no older objects.
    V6,
}

impl ObjectVersion {
    /// The number in assembler text.
    pub const fn number(self) -> u32 {
        match self {
            ObjectVersion::V4 => 4,
            ObjectVersion::V5 => 5,
            ObjectVersion::V6 => 6,
        }
    }

    /// `EI_ABIVERSION`.
    pub const fn abi_version(self) -> u8 {
        match self {
            ObjectVersion::V4 => 2,
            ObjectVersion::V5 => 3,
            ObjectVersion::V6 => 4,
        }
    }
}

/// A processor and the modes of its selectable features that an object is for. It dereferences to the
/// processor.
///
/// # Example
/// ```
/// use groundswell::target::{FeatureSetting, Target, TargetId};
/// let id: TargetId = "gfx942:sramecc+:xnack-".parse()?;
/// assert_eq!((id.target(), id.xnack()), (Target::GFX942, FeatureSetting::Off));
/// assert_eq!(id.to_string(), "gfx942:sramecc+:xnack-");
/// assert_eq!(TargetId::from(Target::GFX942).sramecc(), FeatureSetting::Any);
/// # Ok::<(), groundswell::target::TargetIdError>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TargetId {
    target: Target,
    sramecc: FeatureSetting,
    xnack: FeatureSetting,
}

/// What is wrong with a target id.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum TargetIdError {
    /// No target has that name.
    #[error("{name} is not a known target")]
    Target { name: String },
    /// Something after a colon that is not a selectable feature with `+` or `-`.
    #[error("{text:?} is not a feature of a target id; sramecc+, sramecc-, xnack+ and xnack- are")]
    Feature { text: String },
    /// A feature twice.
    #[error("{feature} is set twice in {id:?}")]
    Twice { feature: &'static str, id: String },
    /// The target has no such feature.
    #[error("{target} has no {feature}, which {owners} have")]
    Lacks { target: Target, feature: &'static str, owners: String },
}

impl From<Target> for TargetId {
    /// The target with its selectable features in any mode.
    fn from(target: Target) -> TargetId {
        let any = |feature| match target.has(feature) {
            true => FeatureSetting::Any,
            false => FeatureSetting::Unsupported,
        };
        TargetId { target, sramecc: any(Feature::SramEcc), xnack: any(Feature::Xnack) }
    }
}

impl TargetId {
    /// The processor.
    pub fn target(self) -> Target {
        self.target
    }

    /// Retry of memory accesses after page faults.
    pub fn xnack(self) -> FeatureSetting {
        self.xnack
    }

    /// Error correction of on-chip memories.
    pub fn sramecc(self) -> FeatureSetting {
        self.sramecc
    }

    /// True if the object may run where page faults are retried: the XNACK mask takes SGPRs then.
    pub fn may_retry(self) -> bool {
        matches!(self.xnack, FeatureSetting::Any | FeatureSetting::On)
    }

    /// True if an object for this target loads on a device that is set up as `device` says: where the object
    /// is for one mode, the device must be in it (ROCr, `Isa::IsCompatible`). A feature that `device` leaves
    /// open may be in any mode. Objects for a generic target run on all of its chips.
    pub fn runs_on(self, device: TargetId) -> bool {
        use FeatureSetting::{Off, On};
        let fits = |wanted, is| !matches!((wanted, is), (On, Off) | (Off, On));
        let covers = self.target.covers(device.target);
        covers && fits(self.xnack, device.xnack) && fits(self.sramecc, device.sramecc)
    }

    /// True if objects for both cannot be told apart in one bundle: of one processor, one names the mode of a
    /// feature and the other leaves it open (Clang's "HIP Support", "Target ID"; its bundler refuses them).
    pub(crate) fn conflicts_with(self, other: TargetId) -> bool {
        let is_open = |id: TargetId| [id.xnack, id.sramecc].map(|setting| setting == FeatureSetting::Any);
        self.target == other.target && is_open(self) != is_open(other)
    }

    /// Of several things for targets, given with these, the first that is for the device's own processor and
    /// runs on it, or else the first that does. Where the device leaves XNACK open, one for XNACK comes after
    /// the others, because drivers have it off unless they are told otherwise (LLVM's "User Guide for AMDGPU
    /// Backend", "Target Features"; ROCr, `HSA_XNACK`).
    pub fn best_of<T>(self, all: impl Iterator<Item = (TargetId, T)>) -> Option<T> {
        let is_unusual = |id: TargetId| self.xnack == FeatureSetting::Any && id.xnack == FeatureSetting::On;
        let fitting = all.filter(|(id, _)| id.runs_on(self));
        fitting.min_by_key(|&(id, _)| (id.target != self.target, is_unusual(id))).map(|(_, found)| found)
    }

    /// The chip in the same modes; for a generic target its oldest one.
    #[must_use]
    pub fn chip(self) -> TargetId {
        TargetId { target: self.target.chips().next().unwrap_or(self.target), ..self }
    }

    /// The same processor with XNACK in the given mode.
    ///
    /// # Errors
    /// The target has no XNACK.
    pub fn with_xnack(self, setting: FeatureSetting) -> Result<TargetId, TargetIdError> {
        Ok(TargetId { xnack: self.checked(Feature::Xnack, setting)?, ..self })
    }

    /// The same processor with SRAM-ECC in the given mode.
    ///
    /// # Errors
    /// The target has no SRAM-ECC.
    pub fn with_sramecc(self, setting: FeatureSetting) -> Result<TargetId, TargetIdError> {
        Ok(TargetId { sramecc: self.checked(Feature::SramEcc, setting)?, ..self })
    }

    /// A setting that the target can have: a feature that it lacks stays unsupported, one that it has is at
    /// least "any".
    fn checked(self, feature: Feature, setting: FeatureSetting) -> Result<FeatureSetting, TargetIdError> {
        match (self.target.has(feature), setting) {
            (false, FeatureSetting::Unsupported | FeatureSetting::Any) => Ok(FeatureSetting::Unsupported),
            (false, FeatureSetting::Off | FeatureSetting::On) => Err(TargetIdError::Lacks {
                target: self.target,
                feature: feature.name(),
                owners: feature.owners(),
            }),
            (true, FeatureSetting::Unsupported) => Ok(FeatureSetting::Any),
            (true, setting) => Ok(setting),
        }
    }

    /// The `e_flags` of an object.
    pub fn elf_flags(self) -> u32 {
        let version = self.generic.map_or(0, |generic| u32::from(generic.version));
        self.elf_machine | (self.xnack as u32) << 8 | (self.sramecc as u32) << 10 | version << 24
    }

    /// The target id after a triple of code for HSA, of whichever architecture and environment compilers
    /// write; none after another triple.
    pub(crate) fn after_triple(text: &str) -> Option<&str> {
        target_id(text)
    }

    /// Triple and target id, as metadata and assembler text have it.
    pub fn with_triple(self) -> String {
        format!("amdgcn-amd-amdhsa--{self}")
    }
}

impl Deref for TargetId {
    type Target = Target;

    fn deref(&self) -> &Target {
        &self.target
    }
}

impl fmt::Display for TargetId {
    /// Features in alphabetical order, as LLVM wants them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.target.name)?;
        for (feature, setting) in [(Feature::SramEcc, self.sramecc), (Feature::Xnack, self.xnack)] {
            match setting {
                FeatureSetting::On => write!(f, ":{}+", feature.name())?,
                FeatureSetting::Off => write!(f, ":{}-", feature.name())?,
                FeatureSetting::Any | FeatureSetting::Unsupported => {}
            }
        }
        Ok(())
    }
}

/// A target id is stored as its text.
impl serde::Serialize for TargetId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for TargetId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<TargetId, D::Error> {
        <&str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for TargetId {
    type Err = TargetIdError;

    /// `gfx942`, `gfx942:xnack-`, `gfx942:sramecc+:xnack-`; features in any order, each once.
    fn from_str(text: &str) -> Result<TargetId, TargetIdError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let unknown = || TargetIdError::Target { name: name.to_owned() };
        let mut id = TargetId::from(Target::from_name(name).ok_or_else(unknown)?);
        let mut seen = Vec::new();
        for part in parts {
            let unknown = || TargetIdError::Feature { text: part.to_owned() };
            let (name, setting) = match (part.strip_suffix('+'), part.strip_suffix('-')) {
                (Some(name), _) => (name, FeatureSetting::On),
                (_, Some(name)) => (name, FeatureSetting::Off),
                _ => return Err(unknown()),
            };
            let known = [Feature::SramEcc, Feature::Xnack].into_iter().find(|known| known.name() == name);
            let feature = known.ok_or_else(unknown)?;
            if seen.contains(&feature) {
                return Err(TargetIdError::Twice { feature: feature.name(), id: text.to_owned() });
            }
            seen.push(feature);
            id = match feature {
                Feature::Xnack => id.with_xnack(setting)?,
                _ => id.with_sramecc(setting)?,
            };
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::TargetInfo;
    use super::*;

    #[test]
    fn flags_hold_processor_and_modes() {
        let flags = |text: &str| text.parse::<TargetId>().unwrap().elf_flags();
        for (text, expected) in [
            ("gfx906", 0x52f),
            ("gfx908", 0x530),
            ("gfx90a", 0x53f),
            ("gfx942", 0x54c),
            ("gfx950", 0x54f),
            ("gfx942:xnack-", 0x64c),
            ("gfx942:xnack+", 0x74c),
            ("gfx942:sramecc+", 0xd4c),
            ("gfx942:sramecc-", 0x94c),
            ("gfx942:sramecc+:xnack+", 0xf4c),
            ("gfx942:sramecc-:xnack-", 0xa4c),
            ("gfx9-4-generic", 0x0100_055f),
            ("gfx9-4-generic:sramecc+:xnack-", 0x0100_0e5f),
        ] {
            assert_eq!(flags(text), expected, "{text}");
        }
    }

    #[test]
    fn text_is_read_in_any_order_and_written_in_one() {
        for text in ["gfx942", "gfx90a:xnack+", "gfx950:sramecc-", "gfx908:sramecc-:xnack-"] {
            assert_eq!(text.parse::<TargetId>().unwrap().to_string(), text);
        }
        let turned: TargetId = "gfx942:xnack-:sramecc+".parse().unwrap();
        assert_eq!(turned.to_string(), "gfx942:sramecc+:xnack-");
        assert_eq!(turned.with_triple(), "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-");
    }

    #[test]
    fn faults_say_what_there_is() {
        let fault = |text: &str| text.parse::<TargetId>().unwrap_err().to_string();
        assert_eq!(fault("gfx1100:xnack+"), "gfx1100 is not a known target");
        let features = "is not a feature of a target id; sramecc+, sramecc-, xnack+ and xnack- are";
        for feature in ["xnack", "", "+", "wavefrontsize64+", "xnack +"] {
            assert_eq!(fault(&format!("gfx942:{feature}")), format!("{feature:?} {features}"));
        }
        assert_eq!(fault("gfx942:xnack+:xnack-"), "xnack is set twice in \"gfx942:xnack+:xnack-\"");
    }

    #[test]
    fn objects_run_where_their_modes_are() {
        let runs = |object: &str, device: &str| {
            let [object, device] = [object, device].map(|id| id.parse::<TargetId>().unwrap());
            object.runs_on(device)
        };
        let device = "gfx942:sramecc+:xnack-";
        for fitting in ["gfx942", "gfx942:xnack-", "gfx942:sramecc+", "gfx942:sramecc+:xnack-"] {
            assert!(runs(fitting, device), "{fitting}");
        }
        for other in ["gfx942:xnack+", "gfx942:sramecc-", "gfx942:sramecc+:xnack+", "gfx950", "gfx90a"] {
            assert!(!runs(other, device), "{other}");
        }
        assert!(runs("gfx942:sramecc-:xnack+", "gfx942"), "in any mode");
        assert!(runs("gfx9-4-generic", device) && runs("gfx9-4-generic:xnack-", "gfx950:xnack-"));
        for other in ["gfx90a", "gfx942:xnack+", "gfx9-4-generic:xnack+"] {
            assert!(!runs("gfx9-4-generic:xnack-", other), "{other}");
        }
        assert!(!runs("gfx942", "gfx9-4-generic"));
    }

    #[test]
    fn of_several_objects_the_usual_one_is_taken() {
        let best = |device: &str, all: &[&'static str]| {
            let device: TargetId = device.parse().unwrap();
            device.best_of(all.iter().map(|&id| (id.parse().unwrap(), id)))
        };
        let both = ["gfx90a:xnack+", "gfx90a:xnack-"];
        assert_eq!(best("gfx90a", &both), Some(both[1]));
        assert_eq!(best("gfx90a:xnack+", &both), Some(both[0]));
        assert_eq!(best("gfx90a", &both[..1]), Some(both[0]));
        assert_eq!(best("gfx90a:xnack-", &both[..1]), None);
        let generic = ["gfx9-4-generic", "gfx942:xnack+", "gfx942:xnack-"];
        assert_eq!(best("gfx942", &generic), Some(generic[2]));
        assert_eq!(best("gfx942", &generic[..2]), Some(generic[1]));
        assert_eq!(best("gfx950", &generic), Some(generic[0]));
    }

    #[test]
    fn a_feature_that_the_target_lacks_is_refused() {
        static BARE: TargetInfo = TargetInfo { name: "bare", features: &[], ..super::super::chips::GFX906 };
        let id = TargetId::from(Target(&BARE));
        assert_eq!((id.xnack(), id.elf_flags()), (FeatureSetting::Unsupported, 0x2f));
        assert_eq!(id.with_xnack(FeatureSetting::Any), Ok(id));
        assert_eq!(
            id.with_sramecc(FeatureSetting::On).unwrap_err().to_string(),
            "bare has no sramecc, which gfx906, gfx908, gfx90a, gfx942, gfx950 have"
        );
    }
}
