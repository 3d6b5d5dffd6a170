//! The resource models of the chips.
//!
//! A cycle is a turn of four clocks, in which a SIMD issues for a wave; the model is one wave on its SIMD while all four SIMDs of the
//! compute unit run the same loop. What they share is modelled by its share: an access occupies LDS or the path to global memory for
//! its bytes over a quarter of the compute unit's bytes per clock. Several waves on a SIMD stretch all busy times alike and
//! leave the delays, so that the model asks for more overlap than they need.
//!
//! A class has one cost, so accesses count as the widest ones, 16 bytes per lane, which is what tiles are made of. Transcendental
//! functions (four turns), and matrix instructions of f32 and f64, which run on the vector units, cost more than the table says.
//!
//! Sources: AMD's CDNA2, CDNA3 and CDNA4 instruction set guides and white papers (bytes per clock, passes), and published measurements as
//! named at each number. Where a chip has no measurement of its own, it has that of its nearest relative.

use super::resources::{CLASSES, Class, Cost, RESOURCES, ResourceModel};
use crate::codegen::target::Target;

/// Clocks of a turn.
const TURN: u32 = 4;
/// Bytes of one access: 64 lanes with 16 bytes each.
const ACCESS: u32 = 64 * 16;
/// Bytes of an access with one register per lane.
const DWORDS: u32 = 64 * 4;

/// Numbers of a chip, in clocks and bytes.
#[derive(Copy, Clone)]
struct Timing {
    /// Bytes per clock that the compute unit reads from LDS.
    shared_read_rate: u32,
    /// Bytes per clock that it writes to LDS.
    shared_write_rate: u32,
    /// Clocks from a read of 16 bytes per lane to its result.
    shared_read_delay: u32,
    /// Clocks from a move between lanes through LDS to its result.
    shuffle_delay: u32,
}

/// CDNA3. LDS 128 bytes per clock (ISA guide; MI308X measurements: a wave 64, two pairs of SIMDs 128). Reads of 16 bytes per lane 64 clocks, of one
/// register 52 (pointer chase on MI300X); moves between lanes take the way of reads of one register.
const CDNA3: Timing =
    Timing { shared_read_rate: 128, shared_write_rate: 128, shared_read_delay: 64, shuffle_delay: 52 };

/// Timing by chip.
const TIMINGS: [(Target, Timing); 5] = [
    (Target::GFX906, CDNA3),
    // Pointer chase on MI100: 50 clocks.
    (Target::GFX908, Timing { shared_read_delay: 62, shuffle_delay: 50, ..CDNA3 }),
    // Pointer chase on MI210: 50 clocks.
    (Target::GFX90A, Timing { shared_read_delay: 62, shuffle_delay: 50, ..CDNA3 }),
    (Target::GFX942, CDNA3),
    // Reads at 256 bytes per clock (CDNA4 white paper); 69 clocks for one register (Triton pull request 2507 of
    // facebookexperimental), 11 more for four of them as on CDNA3.
    (Target::GFX950, Timing { shared_read_rate: 256, shared_read_delay: 80, shuffle_delay: 69, ..CDNA3 }),
];

/// SIMDs that share LDS and the path to global memory.
const SIMDS: u32 = 4;

/// Bytes per clock from the vector L1 to the compute unit: 61 of 64 on all compute units of MI300X and MI325X (SC25 artifact
/// hibagus/SC25_AMD_CDNA3_Artifact). Stores have the same rate (MI308X: 16 clocks for 16 bytes per lane).
const GLOBAL_RATE: u32 = 64;

/// Clocks from a load of 16 bytes per lane to its result with memory under load: 500 to 800 on MI308X. An idle L2 gives 208, idle HBM 865;
/// between loads that wait and registers that wait, this is the middle.
const GLOBAL_DELAY: u32 = 500;

/// Clocks from a store to LDS until others see it: ten turns in the cycle model of AMD's hipBLASLt.
const SHARED_WRITE_DELAY: u32 = 40;

/// Turns that an access of so many bytes occupies a shared path.
fn share(bytes: u32, rate: u32) -> u16 {
    (bytes * SIMDS).div_ceil(rate * TURN) as u16
}

fn turns(clocks: u32) -> u16 {
    clocks.div_ceil(TURN) as u16
}

impl ResourceModel {
    /// The model of a chip for loops whose matrix instructions take that many passes; 0 if there are none.
    pub fn of_target(target: Target, mfma_passes: u16) -> ResourceModel {
        let timing = TIMINGS.iter().find(|row| row.0 == target).map_or(CDNA3, |row| row.1);
        let passes = mfma_passes.max(1);
        let direct = target.lds_load_widths.first().map_or(4, |&bytes| bytes) * 64;
        let cost = |class: Class| -> (u16, [u16; RESOURCES]) {
            match class {
                Class::ReadGlobal => (turns(GLOBAL_DELAY), [share(ACCESS, GLOBAL_RATE), 0, 0, 0, 0]),
                // Nothing waits for the data; the next access to the same place comes later anyway.
                Class::WriteGlobal => (1, [share(ACCESS, GLOBAL_RATE), 0, 0, 0, 0]),
                Class::ReadShared => {
                    (turns(timing.shared_read_delay), [0, share(ACCESS, timing.shared_read_rate), 0, 0, 0])
                }
                Class::WriteShared => {
                    (turns(SHARED_WRITE_DELAY), [0, share(ACCESS, timing.shared_write_rate), 0, 0, 0])
                }
                // 11 clocks per load of one register on the whole compute unit (MI308X, from HBM), so more than its bytes at the L1's
                // rate, which wider loads are assumed to have.
                Class::GlobalToShared => {
                    let loading = share(direct, GLOBAL_RATE).max(turns(11 * SIMDS));
                    let delay = turns(GLOBAL_DELAY + SHARED_WRITE_DELAY);
                    (delay, [loading, share(direct, timing.shared_write_rate), 0, 0, 0])
                }
                // A pass is a turn, and so is the way to the next instruction with the same accumulator (AMD matrix instruction calculator;
                // 16.0 clocks measured for four passes). Others wait 3 turns more, which is the business of the machine's waits. It takes the vector
                // unit's issue for one turn: three vector instructions hide behind four passes, the fourth does not (MI308X).
                Class::Mma => (passes, [0, 0, passes, 1, 0]),
                // Results are forwarded: dependent instructions follow turn by turn (SC25, MI300X).
                Class::Valu => (1, [0, 0, 0, 1, 0]),
                // Moves between lanes use the path of LDS without its banks: assumed to be reads of one register.
                Class::Shuffle => {
                    (turns(timing.shuffle_delay), [0, share(DWORDS, CDNA3.shared_read_rate), 0, 0, 1])
                }
                Class::Free => (0, [0; RESOURCES]),
            }
        };
        let mut costs = [Cost { delay: 0, busy: [0; RESOURCES] }; CLASSES];
        for (row, (class, _)) in costs.iter_mut().zip(Class::NAMES) {
            let (delay, busy) = cost(class);
            *row = Cost { delay, busy };
        }
        ResourceModel { name: target.name, units: [1; RESOURCES], costs }
    }
}
