//! The ways to bring a value to another layout, and what they cost a wave: vector instructions and exchanges
//! between lanes where every wave keeps its elements, and a round trip through LDS otherwise. Costs are clk
//! from the table of the nearest device: what a wave takes of its SIMD, what it takes of LDS as often as
//! SIMDs share a port, and what it waits for.

use std::collections::BTreeSet;

use smallvec::{SmallVec, smallvec};

use super::element_layouts::MAX_ACCESS_BYTES;
use crate::codegen::target::{DeviceModel, DeviceParameter, LDS_PORTS, LaneMove, RowSwap, SIMDS};
use crate::ir::layout::within_wave::{Gathering, LaneMap};
use crate::ir::layout::{Dim, Layout, Mode, Source};
use crate::ir::node::ValueType;
use crate::ir::types::DType;
use crate::passes::facts::Geometry;

/// How a value gets to another layout.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum ConversionWay {
    /// Every lane has its elements already, in other registers.
    Renamed,
    /// Lanes take registers of other lanes of their wave.
    AcrossLanes,
    /// The value is written to LDS and read again.
    ThroughLds,
}

impl ConversionWay {
    /// The way as reports say it.
    pub fn text(self) -> &'static str {
        match self {
            ConversionWay::Renamed => "renamed",
            ConversionWay::AcrossLanes => "moved across lanes",
            ConversionWay::ThroughLds => "through LDS",
        }
    }
}

/// What a conversion takes a wave.
#[derive(Copy, Clone, Default, PartialEq, Debug)]
pub(crate) struct ConversionCost {
    /// Vector instructions.
    pub(crate) vector: u32,
    /// Instructions that LDS executes.
    pub(crate) lds: u32,
    /// clk: what it takes of the units, and what it waits for.
    pub(crate) clk: f64,
}

/// What a conversion is judged by.
pub(super) struct ConversionCosts {
    pub(super) device: &'static DeviceModel,
    /// WaveModes of a workgroup.
    waves: u32,
}

/// The way that costs least.
pub(super) struct BestWay {
    pub(super) way: ConversionWay,
    /// The layouts on the way, if the value stays in registers: the last one is that which is wanted.
    pub(super) steps: SmallVec<[Layout; 4]>,
    pub(super) cost: ConversionCost,
}

/// SIMDs that share a port of LDS.
const SHARING: f64 = (SIMDS / LDS_PORTS as usize) as f64;

/// The digits of the wave number in a layout.
type WaveModes = SmallVec<[Mode; 4]>;

impl ConversionCosts {
    pub(super) fn new(device: &'static DeviceModel, geometry: &Geometry) -> ConversionCosts {
        ConversionCosts { device, waves: geometry.wave_count() }
    }

    /// The best way for a value of some type.
    pub(super) fn best_way(&self, from: &Layout, to: &Layout, ty: &ValueType) -> BestWay {
        let bytes = ty.dtype.map_or(4, DType::bytes);
        if from.lanes_hold_alike(to) {
            let steps = smallvec![to.clone()];
            let cost = self.across_lanes(from, &steps, bytes);
            return BestWay { way: ConversionWay::Renamed, steps, cost };
        }
        let through_lds = self.through_lds(from, to, ty);
        if let Some(steps) = from.steps_within_wave(to)
            && self.least(from, to, &steps, bytes) <= through_lds.cost.clk
        {
            let cost = self.across_lanes(from, &steps, bytes);
            if cost.clk <= through_lds.cost.clk {
                return BestWay { way: ConversionWay::AcrossLanes, steps, cost };
            }
        }
        through_lds
    }

    /// What steps within a wave take at least: all but the last one an instruction for every register. Large
    /// tiles need not be looked at more closely.
    fn least(&self, from: &Layout, to: &Layout, steps: &[Layout], bytes: u32) -> f64 {
        let registers = [from, to].map(|layout| {
            layout.extent(Source::Replica) * (layout.extent(Source::Register) * bytes).div_ceil(4)
        });
        let exchanges = steps.len() as u32 - 1;
        f64::from(exchanges * registers[0].min(registers[1])) * self.get(DeviceParameter::Valu)
    }

    fn get(&self, parameter: DeviceParameter) -> f64 {
        self.device.get(parameter)
    }

    /// Elements of `bytes` that go from one layout to the next by [`Op::Rearrange`](crate::ir::node::Op).
    fn across_lanes(&self, from: &Layout, steps: &[Layout], bytes: u32) -> ConversionCost {
        let mut cost = ConversionCost::default();
        let mut before = from;
        for step in steps {
            let lds = cost.lds;
            self.add_step(before, step, bytes, &mut cost);
            if cost.lds > lds {
                cost.clk += self.get(DeviceParameter::LdsLatency);
            }
            before = step;
        }
        let port = 256.0 / self.get(DeviceParameter::LdsPortRead);
        cost.clk += f64::from(cost.vector) * self.get(DeviceParameter::Valu);
        cost.clk += SHARING * f64::from(cost.lds) * port.max(self.get(DeviceParameter::Turn));
        cost
    }

    fn add_step(&self, from: &Layout, to: &Layout, bytes: u32, cost: &mut ConversionCost) {
        let gathering = Gathering::new(to, from);
        let choices: SmallVec<[u32; 2]> = gathering.choices().collect();
        let selections = choices.len() as u32 - 1;
        let (beside, dwords) = ((4 / bytes).max(1), bytes.div_ceil(4));
        let registers = to.extent(Source::Register);
        // One register, or the narrow elements of one, stands for all: the others take as many moves.
        let mut sources: BTreeSet<(u32, u32, LaneMove)> = BTreeSet::default();
        let (mut vector, mut lds, mut whole) = (0, 0, true);
        let mut first: SmallVec<[LaneMap; 2]> = SmallVec::new();
        let mut apart = false;
        for register in 0..registers.min(beside) {
            let place = gathering.place(0, register);
            for &choice in &choices {
                let (at, lanes) = (gathering.chosen(place, choice), gathering.lanes(place, choice));
                let lanes = if bytes < 4 { lanes.of_all_lanes() } else { lanes };
                let way = LaneMove::of(&lanes);
                whole &= at.register % beside == register % beside;
                if register == 0 {
                    first.push(lanes);
                    apart |= at.replica != place.replica;
                }
                if sources.insert((at.replica, at.register * bytes / 4, way)) {
                    let count = if way.waits_for_lds() { &mut lds } else { &mut vector };
                    *count += dwords * way.instructions();
                }
            }
        }
        let count = to.extent(Source::Replica) * registers.div_ceil(beside);
        let packs = beside > 1 && !(whole && sources.len() == choices.len());
        // Two copies change rows, and both have what is wanted: of one piece, unless pieces change rows.
        if !packs && RowSwap::of(self.device.target, gathering.choosing(), &first).is_some() {
            let instructions = 3 * count * dwords;
            cost.vector += if apart { instructions } else { instructions.div_ceil(2) };
            return;
        }
        vector += match (packs, selections) {
            (false, _) => dwords * selections,
            (true, 1) if sources.len() <= 2 => 1,
            (true, _) => (beside - 1) * (selections + 1) + selections,
        };
        cost.vector += count * vector;
        cost.lds += count * lds;
    }

    /// clk of the port of LDS for a read of so many dwords by each lane.
    fn lds_read(&self, dwords: f64) -> f64 {
        self.get(DeviceParameter::Turn).max(256.0 * dwords / self.get(DeviceParameter::LdsPortRead))
    }

    /// What reads of a value take of LDS that is read in some layout, from a buffer in which its elements
    /// along `inner` are side by side.
    pub(super) fn lds_reads(&self, layout: &Layout, inner: Dim, bytes: u32) -> f64 {
        let (reads, dwords) = lds_accesses(layout, Some(inner), bytes);
        SHARING * f64::from(reads) * self.lds_read(dwords)
    }

    /// A value of some type that is written to LDS in one layout and read in another one.
    pub(super) fn through_lds(&self, from: &Layout, to: &Layout, ty: &ValueType) -> BestWay {
        let bytes = ty.dtype.map_or(4, DType::bytes);
        let waves =
            |layout: &Layout| layout.canonical().of_source(Source::Wave).copied().collect::<WaveModes>();
        let shares = |layout: &Layout| layout.is_replicated(Source::Wave);
        let keeps_waves = waves(from) == waves(to) && !shares(from);
        // As `arrange_lds` will choose it.
        let inner = ty.dims.iter().copied().max_by_key(|&dim| to.contiguous_run(dim));
        let accesses = |layout: &Layout| lds_accesses(layout, inner, bytes);
        let ((writes, written), (reads, read)) = (accesses(from), accesses(to));
        let issue = self.get(DeviceParameter::LdsWriteIssue) + 4.0 * written;
        let write = issue.max(256.0 * written / self.get(DeviceParameter::LdsPortWrite));
        let read = self.lds_read(read);
        // A wave's own accesses of LDS are executed in order; those of others have to be waited for.
        let waits = match self.waves == 1 || keeps_waves {
            true => 0.0,
            false => self.get(DeviceParameter::LdsWriteLatency) + self.get(DeviceParameter::BarrierRelease),
        };
        let busy = SHARING * (f64::from(writes) * write + f64::from(reads) * read);
        let clk = busy + waits + self.get(DeviceParameter::LdsLatencyWide);
        let cost = ConversionCost { vector: 0, lds: writes + reads, clk };
        BestWay { way: ConversionWay::ThroughLds, steps: SmallVec::new(), cost }
    }
}

/// Accesses of LDS by each lane, and the dwords of one, where elements of `bytes` along `inner` are side by
/// side.
fn lds_accesses(layout: &Layout, inner: Option<Dim>, bytes: u32) -> (u32, f64) {
    let run = inner.map_or(1, |inner| layout.contiguous_run(inner));
    let width = (run * bytes).min(MAX_ACCESS_BYTES);
    let count = (layout.extent(Source::Register) * bytes).div_ceil(width);
    (layout.extent(Source::Replica) * count, f64::from(width.div_ceil(4)))
}
