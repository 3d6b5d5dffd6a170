//! Control operations as authors write them: conditions on the number of a wave, and the ranges of numbers.
//!
//! ```
//! use groundswell::prelude::*;
//! let hardware = HardwareConstraint::default();
//! let second_half = hardware.wave_id.greater_equal(hardware.waves_per_block / 2);
//! assert_eq!(second_half.to_string(), "ge waves / 2");
//! ```

use std::fmt;
use std::ops::Div;

use super::diagnostic::Diagnostic;
use super::node::{Control, Op, Predicate, WaveBound, WaveCondition};

/// Highest priority of a wave (`s_setprio`, CDNA3 ISA, SOPP: two bits).
const MAX_PRIORITY: i64 = 3;

/// The most loads that a wait can leave under way (`s_waitcnt vmcnt`, CDNA3 ISA, SOPP: six bits, and all of
/// them set means no wait).
pub(crate) const MAX_LOADS: i64 = 62;

/// The most accesses of LDS that a wait can leave under way (`s_waitcnt lgkmcnt`, likewise with four bits).
const MAX_SHARED: i64 = 14;

/// What a kernel may say about its hardware before it runs.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct HardwareConstraint {
    /// Number of the wave in its workgroup.
    pub wave_id: WaveId,
    /// Waves of a workgroup.
    pub waves_per_block: WavesPerBlock,
}

/// Number of a wave in its workgroup, to compare with a bound.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct WaveId;

/// Waves of a workgroup: a bound, as it is or over a number.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct WavesPerBlock;

impl Div<u32> for WavesPerBlock {
    type Output = WaveBound;

    /// Rounded down. Division by zero gives a bound that control operations reject.
    fn div(self, divisor: u32) -> WaveBound {
        WaveBound::WavesOver(divisor)
    }
}

impl From<WavesPerBlock> for WaveBound {
    fn from(waves: WavesPerBlock) -> WaveBound {
        waves / 1
    }
}

impl From<u32> for WaveBound {
    fn from(wave: u32) -> WaveBound {
        WaveBound::Wave(wave)
    }
}

impl From<i32> for WaveBound {
    /// Waves have no negative numbers: such a bound is one that control operations reject.
    fn from(wave: i32) -> WaveBound {
        u32::try_from(wave).map_or(WaveBound::WavesOver(0), WaveBound::Wave)
    }
}

macro_rules! comparisons {
    ($($method:ident $predicate:ident $doc:literal;)*) => {
        impl WaveId {
            $(
                #[doc = $doc]
                #[must_use]
                pub fn $method(self, bound: impl Into<WaveBound>) -> WaveCondition {
                    WaveCondition { predicate: Predicate::$predicate, bound: bound.into() }
                }
            )*
        }
    };
}

comparisons! {
    equal Eq "The wave with this number.";
    not_equal Ne "All waves but the one with this number.";
    less Lt "Waves with a smaller number.";
    less_equal Le "Waves with this number or a smaller one.";
    greater Gt "Waves with a larger number.";
    greater_equal Ge "Waves with this number or a larger one.";
}

/// As the text form writes it.
impl fmt::Display for WaveCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.predicate.word();
        match self.bound {
            WaveBound::Wave(number) => write!(f, "{name} {number}"),
            WaveBound::WavesOver(divisor) => write!(f, "{name} waves / {divisor}"),
        }
    }
}

impl Control {
    /// The words of control operations in the text form.
    pub(in crate::ir) const WORDS: [&'static str; 8] = [
        "workgroup_barrier",
        "conditional_barrier",
        "set_wave_priority",
        "scheduling_barrier",
        "interleave_by_cost",
        "skip_unit_factors",
        "wait_for_loads",
        "wait_for_shared",
    ];

    /// Its word in the text form.
    pub(crate) fn word(self) -> &'static str {
        Op::Control(self).row().word
    }

    /// The change of priority to any number.
    pub(in crate::ir) fn priority(priority: i64) -> Result<Control, Diagnostic> {
        match u8::try_from(priority) {
            Ok(fits) if priority <= MAX_PRIORITY => Ok(Control::SetWavePriority(fits)),
            _ => Err(Diagnostic::invalid(format!("{priority} is not a priority of a wave"))
                .help(format!("priorities are 0 (as waves start) to {MAX_PRIORITY}"))),
        }
    }

    /// The wait for all but any number of loads.
    pub(in crate::ir) fn loads(count: i64) -> Result<Control, Diagnostic> {
        match u8::try_from(count) {
            Ok(fits) if count <= MAX_LOADS => Ok(Control::WaitForLoads(fits)),
            _ => Err(Diagnostic::invalid(format!("a wait cannot leave {count} loads under way"))
                .help(format!("0 to {MAX_LOADS} loads can be left; with more there is nothing to wait for"))),
        }
    }

    /// The wait for all but any number of accesses of LDS.
    pub(in crate::ir) fn shared(count: i64) -> Result<Control, Diagnostic> {
        match u8::try_from(count) {
            Ok(fits) if count <= MAX_SHARED => Ok(Control::WaitForShared(fits)),
            _ => Err(Diagnostic::invalid(format!("a wait cannot leave {count} accesses of LDS under way"))
                .help(format!(
                    "0 to {MAX_SHARED} accesses can be left; with more there is nothing to wait for"
                ))),
        }
    }

    /// The operation, if its numbers are in range.
    pub(in crate::ir) fn checked(self) -> Result<Control, Diagnostic> {
        match self {
            Control::SetWavePriority(priority) => Control::priority(priority.into()),
            Control::WaitForLoads(count) => Control::loads(count.into()),
            Control::WaitForShared(count) => Control::shared(count.into()),
            Control::ConditionalBarrier(WaveCondition { bound: WaveBound::WavesOver(0), .. }) => {
                Err(Diagnostic::invalid("no wave's number is compared with this")
                    .help("a bound is a number from 0, or the waves of a workgroup over a number from 1"))
            }
            _ => Ok(self),
        }
    }
}
