//! Counting executed instructions by class.

use crate::codegen::isa::{Effect, OpInfo, Unit};

macro_rules! classes {
    ($($(#[doc = $doc:literal])* $variant:ident $field:ident,)*) => {
        /// Kinds of instructions that are counted separately.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub(super) enum InstructionClass {
            $($variant,)*
        }

        /// What a launch executed: instructions of all waves by class.
        #[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub struct LaunchStats {
            /// Waves that ran.
            pub waves: u64,
            /// All instructions.
            pub instructions: u64,
            /// Start and size of the first allocation past whose end something was accessed, in its last
            /// page: hardware does not stop at it.
            #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
            pub past_end: Option<(u64, u64)>,
            $($(#[doc = $doc])* pub $field: u64,)*
        }

        impl LaunchStats {
            pub(super) fn add(&mut self, counts: &Counts) {
                self.instructions += counts.0.iter().sum::<u64>();
                $(self.$field += counts.0[InstructionClass::$variant as usize];)*
            }

            pub(super) fn merge(&mut self, other: &LaunchStats) {
                self.waves += other.waves;
                self.instructions += other.instructions;
                $(self.$field += other.$field;)*
            }
        }

        const CLASSES: usize = [$(InstructionClass::$variant),*].len();
    };
}

classes! {
    /// Matrix instructions.
    Mfma mfma,
    /// Other vector instructions.
    Valu valu,
    /// Scalar instructions.
    Salu salu,
    /// Scalar loads.
    ScalarLoad scalar_load,
    /// LDS reads and lane permutations.
    LdsRead lds_read,
    /// LDS writes.
    LdsWrite lds_write,
    /// Loads from global memory (buffer, global, flat, scratch).
    GlobalLoad global_load,
    /// Stores to global memory.
    GlobalStore global_store,
    /// Atomic operations on global memory or LDS.
    Atomic atomic,
    /// Branches and ends.
    Branch branch,
    /// Waits for counters.
    Wait wait,
    /// Idle cycles.
    Nop nop,
    /// Workgroup barriers.
    Barrier barrier,
    /// Priorities, messages, caches.
    Other other,
}

impl InstructionClass {
    /// Class of a row of the table.
    pub(super) fn of(info: &OpInfo) -> InstructionClass {
        match info.unit {
            Unit::Mfma(_) => InstructionClass::Mfma,
            Unit::Valu | Unit::Trans => InstructionClass::Valu,
            Unit::Salu => InstructionClass::Salu,
            Unit::Smem | Unit::Lds | Unit::Vmem | Unit::Flat => match (info.meaning.effect(), info.unit) {
                (Effect::Atomic, _) => InstructionClass::Atomic,
                (Effect::Load, Unit::Smem) => InstructionClass::ScalarLoad,
                (Effect::Store | Effect::StoreFromLds, Unit::Lds) => InstructionClass::LdsWrite,
                // Lane permutations too.
                (_, Unit::Lds) => InstructionClass::LdsRead,
                (Effect::Load | Effect::LoadToLds, _) => InstructionClass::GlobalLoad,
                (Effect::Store | Effect::StoreFromLds, _) => InstructionClass::GlobalStore,
                (Effect::None, _) => InstructionClass::Other,
            },
            Unit::Branch => InstructionClass::Branch,
            Unit::Wait => InstructionClass::Wait,
            Unit::Nop => InstructionClass::Nop,
            Unit::Barrier => InstructionClass::Barrier,
            Unit::Other => InstructionClass::Other,
        }
    }
}

/// Counters of one wave.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Counts([u64; CLASSES]);

impl Counts {
    /// One more of this class.
    #[inline(always)]
    pub(super) fn count(&mut self, class: InstructionClass) {
        self.0[class as usize] += 1;
    }
}
