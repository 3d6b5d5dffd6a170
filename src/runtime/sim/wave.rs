//! State of one wave, and how sources are read and results written.

use super::error::Stopped;
use super::program::{OperandPlace, Program};
use super::stats::Counts;
use crate::codegen::target;

/// Lanes of a wave.
pub(super) const LANES: usize = target::LANES as usize;

/// One vector register: 32 bits of every lane.
pub(super) type VectorRow = [u32; LANES];

/// Numbers of special scalar registers.
pub(super) const VCC: usize = 106;
pub(super) const M0: usize = 124;
/// SGPRs that relative moves reach.
pub(super) const SGPRS: usize = 102;
pub(super) const EXEC: usize = 126;

/// Upper half of the flat addresses that mean LDS. Which aperture the hardware uses is up to the driver;
/// kernels read it from `src_shared_base`.
pub(super) const SHARED_APERTURE: u32 = 0x0001_0000;
/// Upper half of the flat addresses that mean private memory.
pub(super) const PRIVATE_APERTURE: u32 = 0x0002_0000;

/// 1 / (2 pi) as f64, an inline constant that does not follow from either of its halves.
const INVERSE_TWO_PI: u64 = 0x3fc4_5f30_6dc9_c882;

/// The lanes of `mask` of one row, the others of another one.
#[inline(always)]
pub(super) fn select(mask: u64, yes: &VectorRow, no: &VectorRow) -> VectorRow {
    let mut row = [0; LANES];
    // As halves, whose bits fit into the elements of a row.
    for (first, mask) in [(0, mask as u32), (LANES / 2, (mask >> 32) as u32)] {
        for l in 0..LANES / 2 {
            // All ones or none.
            let chosen = (mask >> l & 1).wrapping_neg();
            row[first + l] = yes[first + l] & chosen | no[first + l] & !chosen;
        }
    }
    row
}

/// The state of a wave.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// It can execute.
    Running,
    /// It waits for the others.
    AtBarrier,
    /// It is done.
    Ended,
}

/// State of one wave. VGPRs and, after them, accumulation VGPRs are rows of 64 lanes.
#[derive(Clone, Debug)]
pub(super) struct Wave {
    /// SGPRs, VCC, M0, EXEC at their operand numbers.
    pub s: [u32; 128],
    /// Scalar condition code.
    pub scc: bool,
    /// Index of the next step.
    pub pc: usize,
    /// MODE register: round modes, denormal modes, DX10 clamp, IEEE.
    pub mode: u32,
    /// TRAPSTS register; only `s_setreg` sets anything in it.
    pub trap_status: u32,
    /// HW_ID register.
    pub hardware_id: u32,
    /// Vector registers.
    pub rows: Vec<VectorRow>,
    /// Private memory: the bytes of each lane, one lane after the other, as words.
    pub private: Vec<u32>,
    /// Words of private memory per lane.
    pub private_words: u32,
    /// What it does.
    pub progress: Progress,
    /// It waits at a barrier of the whole grid that so many have opened before.
    pub grid_barrier: Option<u64>,
    /// The allocation that it accessed last.
    pub hint: usize,
    /// Executed instructions.
    pub counts: Counts,
    /// Executed instructions, of all classes.
    pub executed: u64,
}

impl Wave {
    /// A wave without registers; [`reset`](Self::reset) makes it usable.
    pub(super) fn new() -> Wave {
        Wave {
            s: [0; 128],
            scc: false,
            pc: 0,
            mode: 0,
            trap_status: 0,
            hardware_id: 0,
            rows: Vec::new(),
            private: Vec::new(),
            private_words: 0,
            progress: Progress::Ended,
            grid_barrier: None,
            hint: 0,
            counts: Counts::default(),
            executed: 0,
        }
    }

    /// Everything zero, with the registers that the program uses. Keeps its memory.
    pub(super) fn reset(&mut self, program: &Program, private_bytes: u32) {
        self.rows.clear();
        self.rows.resize(program.rows(), [0; LANES]);
        self.reset_all_but_rows(private_bytes);
    }

    /// The same for a wave that uses only some of its rows: the others may be anything.
    pub(super) fn reset_rows(&mut self, program: &Program, private_bytes: u32, rows: &[usize]) {
        self.rows.resize(program.rows(), [0; LANES]);
        rows.iter().for_each(|&row| self.rows[row] = [0; LANES]);
        self.reset_all_but_rows(private_bytes);
    }

    fn reset_all_but_rows(&mut self, private_bytes: u32) {
        self.s = [0; 128];
        self.scc = false;
        self.trap_status = 0;
        self.private_words = private_bytes.div_ceil(4);
        self.private.clear();
        self.private.resize(self.private_words as usize * LANES, 0);
        self.progress = Progress::Running;
        self.grid_barrier = None;
        self.executed = 0;
    }

    /// EXEC.
    #[inline(always)]
    pub(super) fn exec(&self) -> u64 {
        self.pair(EXEC)
    }

    /// Two consecutive scalar registers. A 32-bit operand may be asked for its neighbour, so the number wraps
    /// after the last one.
    #[inline(always)]
    pub(super) fn pair(&self, first: usize) -> u64 {
        u64::from(self.s[first]) | u64::from(self.s[(first + 1) % 128]) << 32
    }

    /// Writes two consecutive scalar registers.
    #[inline(always)]
    pub(super) fn set_pair(&mut self, first: usize, value: u64) {
        self.s[first] = value as u32;
        self.s[(first + 1) % 128] = (value >> 32) as u32;
    }

    /// 32 bits of a source that is the same in every lane.
    #[inline(always)]
    pub(super) fn scalar(&self, place: OperandPlace) -> u32 {
        match place {
            OperandPlace::Scalar(n) => self.s[n as usize],
            OperandPlace::Low(bits) | OperandPlace::Signed(bits) | OperandPlace::High(bits) => bits,
            OperandPlace::InverseTwoPi => INVERSE_TWO_PI as u32,
            OperandPlace::Scc => self.scc.into(),
            OperandPlace::VccZero => (self.pair(VCC) == 0).into(),
            OperandPlace::ExecZero => (self.exec() == 0).into(),
            OperandPlace::Row(_) | OperandPlace::None => 0,
        }
    }

    /// 64 bits of a source that is the same in every lane.
    #[inline(always)]
    pub(super) fn scalar_wide(&self, place: OperandPlace) -> u64 {
        match place {
            OperandPlace::Scalar(n) => self.pair(n as usize),
            OperandPlace::Signed(bits) => i64::from(bits as i32) as u64,
            OperandPlace::High(bits) => u64::from(bits) << 32,
            OperandPlace::InverseTwoPi => INVERSE_TWO_PI,
            _ => u64::from(self.scalar(place)),
        }
    }

    /// Writes a scalar register; any other place is ignored.
    #[inline(always)]
    pub(super) fn set_scalar(&mut self, place: OperandPlace, value: u32) {
        if let OperandPlace::Scalar(n) = place {
            self.s[n as usize] = value;
        }
    }

    /// Writes a pair of scalar registers; any other place is ignored.
    #[inline(always)]
    pub(super) fn set_scalar_wide(&mut self, place: OperandPlace, value: u64) {
        if let OperandPlace::Scalar(n) = place {
            self.set_pair(n as usize, value);
        }
    }

    /// All lanes of a 32-bit source.
    #[inline(always)]
    pub(super) fn lanes(&self, place: OperandPlace) -> VectorRow {
        match place {
            OperandPlace::Row(n) => self.rows[n as usize],
            _ => [self.scalar(place); LANES],
        }
    }

    /// All lanes of a 64-bit source.
    #[inline(always)]
    pub(super) fn lanes_wide(&self, place: OperandPlace) -> [u64; LANES] {
        match place {
            OperandPlace::Row(n) => {
                let [low, high] = [&self.rows[n as usize], &self.rows[n as usize + 1]];
                std::array::from_fn(|l| u64::from(low[l]) | u64::from(high[l]) << 32)
            }
            _ => [self.scalar_wide(place); LANES],
        }
    }

    /// Writes the active lanes of a row.
    #[inline(always)]
    pub(super) fn set_lanes(&mut self, place: OperandPlace, values: &VectorRow) {
        let OperandPlace::Row(n) = place else { return };
        let exec = self.exec();
        let row = &mut self.rows[n as usize];
        if exec == u64::MAX {
            *row = *values;
        } else {
            *row = select(exec, values, row);
        }
    }

    /// Writes the active lanes of a pair of rows.
    #[inline(always)]
    pub(super) fn set_lanes_wide(&mut self, place: OperandPlace, values: &[u64; LANES]) {
        self.set_lanes(place, &values.map(|v| v as u32));
        self.set_lanes(place.offset(1), &values.map(|v| (v >> 32) as u32));
    }

    /// Calls `f` for every active lane.
    #[inline(always)]
    pub(super) fn each_lane(
        &mut self,
        mut f: impl FnMut(&mut Wave, usize) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let mut left = self.exec();
        while left != 0 {
            f(self, left.trailing_zeros() as usize)?;
            left &= left - 1;
        }
        Ok(())
    }

    /// True if denormal f32 sources count as zero (FP_DENORM, CDNA3 ISA guide, "MODE register").
    #[inline(always)]
    pub(super) fn flushes_sources(&self) -> bool {
        self.mode & 0x10 == 0
    }

    /// True if denormal f32 results become zero.
    #[inline(always)]
    pub(super) fn flushes_results(&self) -> bool {
        self.mode & 0x20 == 0
    }

    /// True if denormal f16 and f64 sources count as zero.
    #[inline(always)]
    pub(super) fn flushes_wide_sources(&self) -> bool {
        self.mode & 0x40 == 0
    }

    /// True if denormal f16 and f64 results become zero.
    #[inline(always)]
    pub(super) fn flushes_wide_results(&self) -> bool {
        self.mode & 0x80 == 0
    }

    /// IEEE: signalling NaNs are quieted and returned by minimum and maximum, and output modifiers are
    /// ignored.
    #[inline(always)]
    pub(super) fn is_ieee(&self) -> bool {
        self.mode & 0x200 != 0
    }

    /// DX10_CLAMP: clamping turns NaN into zero.
    #[inline(always)]
    pub(super) fn clamps_nan(&self) -> bool {
        self.mode & 0x100 != 0
    }
}
