//! What must hold of the facts in a kernel that was read as a pass left it: passes rely on what those before
//! them have found, and a text can say anything.

use bevy_ecs::prelude::*;

use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::facts::{
    Bounds, Expansion, Geometry, LdsBuffer, LogicalBody, OnDemand, PaddedFactors, RoundsPlainly,
    TransposingRead, TurnedUnits, UnitFactor, UnmaskedTiles,
};
use crate::ir::kernel::{DimTable, Locations};
use crate::ir::layout::{Layout, Source};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::op::OpClass;
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk;

/// The most elements of a tile, and bytes of a buffer: computations with them fit into 32 bits.
const MAX_TILE: u32 = 1 << 24;

/// The most elements of a unit.
const MAX_UNIT: u32 = 32;

/// Every fault of the facts about a kernel.
pub(crate) fn check(world: &World, root: Entity) -> Vec<Diagnostic> {
    let dims = world.get::<DimTable>(root).map_or(0, |dims| dims.0.len());
    let geometry = world.get::<Geometry>(root);
    if geometry.map_or(0, |geometry| geometry.dims.len()) != dims {
        let text = "the text says after which pass it stands, but not how each dimension is spread";
        let help = "the first pass finds it out: write `facts !geometry(...)` as `--emit ir` prints it, or leave `after` out";
        return vec![Diagnostic::invalid(text).help(help)];
    }
    let logical = world.get::<LogicalBody>(root);
    let mut checker = FactChecker { world, root, faults: Vec::new() };
    for node in walk::nodes(world, root) {
        checker.node(node);
        if logical.is_some() {
            checker.piece(node);
        }
    }
    for node in logical.map(|logical| walk::nodes_of_list(world, &logical.0)).unwrap_or_default() {
        checker.node(node);
    }
    checker.faults
}

struct FactChecker<'w> {
    world: &'w World,
    root: Entity,
    faults: Vec<Diagnostic>,
}

impl FactChecker<'_> {
    fn location(&self, node: Entity) -> Option<Location> {
        self.world.get::<Locations>(self.root)?.get(self.world.get::<Origin>(node)?.0)
    }

    fn fault(&mut self, node: Entity, text: impl Into<String>) {
        self.faults.push(Diagnostic::invalid(text.into()).at(self.location(node)));
    }

    /// Checks nodes with facts, wherever they are.
    fn node(&mut self, node: Entity) {
        let world = self.world;
        if let Some(Placement(layout)) = world.get::<Placement>(node) {
            let large = Source::ALL.into_iter().any(|source| layout.extent(source) > MAX_TILE);
            if large || layout.dims().into_iter().any(|dim| layout.tile_extent(dim) > MAX_TILE) {
                self.fault(node, "a layout of more elements than a tile has");
            }
        }
        if let Some(buffer) = world.get::<LdsBuffer>(node) {
            let elements =
                buffer.extents.iter().fold(buffer.element_bytes, |all, &extent| all.saturating_mul(extent));
            let rows =
                buffer.extents.iter().rev().skip(1).fold(1u32, |all, &extent| all.saturating_mul(extent));
            let all = u64::from(rows) * u64::from(buffer.pitch);
            let apart = buffer.spacing.map_or(0, |spacing| spacing.apart);
            let sizes = [elements, buffer.bytes, buffer.copies, buffer.pitch, buffer.offset, apart];
            if sizes.iter().any(|&size| size > MAX_TILE)
                || u64::from(buffer.all_bytes()) > MAX_TILE.into()
                || all > MAX_TILE.into()
            {
                self.fault(node, "a buffer of more bytes than LDS has");
            }
        }
        self.words_apart(node);
        if let Some(&transposing) = world.get::<TransposingRead>(node) {
            self.transposing(node, transposing);
        }
        if let Some(&turned) = world.get::<TurnedUnits>(node) {
            self.turned_units(node, turned);
        }
        if let Some(PaddedFactors(padded)) = world.get::<PaddedFactors>(node) {
            let is_product = world.get::<Op>(node).is_some_and(|op| op.product().is_some());
            if !is_product || padded.iter().any(|at| ![0, 1, 3, 4].contains(at)) {
                self.fault(node, "factors that no product has");
            }
        }
        self.arithmetic(node);
        if let Some(Unrolled(per_trip)) = world.get::<Unrolled>(node)
            && *per_trip > 1 << 16
        {
            self.fault(node, "a loop that is unrolled too often");
        }
    }

    /// Checks what is known of arithmetic.
    fn arithmetic(&mut self, node: Entity) {
        let world = self.world;
        if let Some(&UnitFactor(at)) = world.get::<UnitFactor>(node)
            && (at > 1 || world.get::<Op>(node) != Some(&Op::Binary(BinaryOp::Mul)))
        {
            self.fault(node, "a factor that no product of numbers has");
        }
        if world.get::<UnmaskedTiles>(node).is_some() && world.get::<Op>(node) != Some(&Op::Select) {
            self.fault(node, "tiles without masks of something that is no selection");
        }
        if world.get::<OnDemand>(node).is_some()
            && !world
                .get::<Op>(node)
                .is_some_and(|op| matches!(op, Op::SelfIndex(_)) || op.row().class == OpClass::ElementWise)
        {
            self.fault(node, "arithmetic on demand that is none");
        }
        if world.get::<RoundsPlainly>(node).is_some()
            && world.get::<Op>(node) != Some(&Op::Convert(Conversion::Cast))
        {
            self.fault(node, "a rounding of something that is no cast");
        }
    }

    /// Checks an access of a buffer whose words have room between them: they are written together, and reads
    /// that turn them find them so.
    fn words_apart(&mut self, node: Entity) {
        let world = self.world;
        let (Some(op), Some(Placement(layout)), Some(operands)) =
            (world.get::<Op>(node), world.get::<Placement>(node), world.get::<Operands>(node))
        else {
            return;
        };
        let buffer =
            operands.0.last().filter(|_| op.is_access()).and_then(|&memory| world.get::<LdsBuffer>(memory));
        let Some((buffer, spacing)) = buffer.and_then(|buffer| Some((buffer, buffer.spacing?))) else {
            return;
        };
        let is_written_together = || {
            let run = buffer.dims.last().map_or(0, |&inner| layout.contiguous_run(inner));
            let is_whole = [run, layout.extent(Source::Register)] == [spacing.together; 2];
            op.stores() && is_whole && buffer.places_in_rows(layout.clone()).is_some()
        };
        if world.get::<Mapping>(node).is_some()
            || world.get::<TransposingRead>(node).is_none() && !is_written_together()
        {
            self.fault(node, "an access of words of LDS that have room between them");
        }
    }

    /// Checks a read of LDS that turns what it loads.
    fn transposing(&mut self, node: Entity, transposing: TransposingRead) {
        let world = self.world;
        let memory = world.get::<Operands>(node).and_then(|operands| operands.0.last().copied());
        let holds = |memory: Entity| world.get::<Op>(memory) == Some(&Op::Allocate);
        if !world.get::<Op>(node).is_some_and(|op| op.loads()) || !memory.is_some_and(holds) {
            return self.fault(node, "only a read of LDS can turn what it loads");
        }
        let units = world.get::<TurnedUnits>(node);
        let dtype = world.get::<ValueType>(node).and_then(|ty| ty.dtype);
        let bits = units.map_or(dtype.map_or(0, DType::bits), |units| units.bits);
        // What lanes load is a part of a few units.
        let is_along = units
            .is_none_or(|units| units.stored.elements == transposing.along && units.elements <= MAX_UNIT);
        if ![4, 6, 8, 16].contains(&bits)
            || transposing.elements != TransposingRead::elements_of(bits)
            || !is_along
        {
            return self.fault(node, "elements that no read of LDS turns");
        }
        let layout = world.get::<Placement>(node).map(|placement| &placement.0);
        if layout.is_none_or(|layout| transposing.loaded(layout, units).is_none()) {
            return self.fault(node, "a layout that no read of LDS gives");
        }
        let row = units.map_or(transposing.along, |units| units.stored.words.unwrap_or(units.stored.units));
        let (width, spacing) = (transposing.width(units), transposing.spacing(units));
        let lies_wide = |buffer: &LdsBuffer| {
            // 12 bytes begin where 16 would.
            let aligned = width.next_power_of_two();
            let in_units = buffer.swizzle.is_none_or(|swizzle| swizzle.unit >= aligned);
            let in_rows = buffer.dims.last() == Some(&row) && buffer.spacing == spacing;
            in_rows && in_units && buffer.pitch.is_multiple_of(aligned)
        };
        if let Some(buffer) = memory.and_then(|memory| world.get::<LdsBuffer>(memory))
            && !lies_wide(buffer)
        {
            let text = format!(
                "a read that turns rows of {width} bytes, which do not lie side by side in the buffer"
            );
            self.fault(node, text);
        }
    }

    /// Checks a read of units that lie along another dimension than those of the memory. What reads LDS has
    /// an instruction for them.
    fn turned_units(&mut self, node: Entity, turned: TurnedUnits) {
        let world = self.world;
        let dtype = world.get::<ValueType>(node).and_then(|ty| ty.dtype);
        let symbol = |dim| world.get::<DimTable>(self.root)?.0.get(dim)?.value();
        let words = turned.stored.words.map_or(Some(1), symbol).and_then(|words| u32::try_from(words).ok());
        let bits = dtype.zip(words).and_then(|(dtype, words)| dtype.bits().checked_mul(words));
        let is_whole = bits.is_some() && turned.elements.checked_mul(turned.bits) == bits;
        let is_power = turned.elements.is_power_of_two() && [4, 6].contains(&turned.bits);
        if !world.get::<Op>(node).is_some_and(|op| op.loads()) || world.get::<Mapping>(node).is_some() {
            self.fault(node, "only a read without coordinates turns units");
        } else if !is_whole || !is_power {
            self.fault(node, "units that are not made of so many elements");
        }
        let Some(operands) = world.get::<Operands>(node) else { return };
        let memory = operands.0.last().copied();
        let is_volatile = world.get::<MemoryAccessFlags>(node).is_some_and(|flags| flags.volatile);
        let is_lds = |memory: Entity| {
            let is_shared = world.get::<Space>(memory) == Some(&Space(AddressSpace::Shared));
            is_shared || world.get::<Op>(memory) == Some(&Op::Allocate)
        };
        if is_volatile || !memory.is_some_and(is_lds) {
            self.fault(node, "units of a memory that does not go through LDS");
        } else if memory.is_some_and(|memory| world.get::<LdsBuffer>(memory).is_some())
            && world.get::<TransposingRead>(node).is_none()
        {
            self.fault(node, "units of LDS that no instruction turns");
        }
    }

    /// Checks a node that is a piece of another.
    fn piece(&mut self, node: Entity) {
        let world = self.world;
        let Some(&op) = world.get::<Op>(node) else { return };
        let is_whole = matches!(op, Op::Memory | Op::Scalar | Op::Allocate | Op::Barrier | Op::Control(_));
        if op == Op::Allocate && world.get::<LdsBuffer>(node).is_none() {
            self.fault(node, "an LDS buffer without its arrangement");
        }
        if op.walks().is_some() && world.get::<Trip>(node).is_none() {
            self.fault(node, "a loop without trip count");
        }
        if op.is_pipeline() && world.get::<Pipelined>(node).is_none() {
            self.fault(node, "a pipeline that does not say how far ahead it is");
        }
        if is_whole {
            return;
        }
        let Some(expansion) = world.get::<Expansion>(node) else {
            return self.fault(node, "a node of an expanded kernel that is not a piece of another");
        };
        let Some(of) = world.get::<Op>(expansion.logical) else {
            return self.fault(node, "a piece of something that is not a node");
        };
        // Carried values are pieces of the node that makes them, and a pipeline is one of its loop.
        let acts = op.is_access() || op.is_product() || op.repeats() || op.runs_under_condition();
        if acts && std::mem::discriminant(of) != std::mem::discriminant(&op) {
            return self.fault(node, "a piece whose operation differs from that of its node");
        }
        let layout = world.get::<Placement>(expansion.logical).map(|placement| &placement.0);
        let replicas = layout.map_or(1, |layout| layout.extent(Source::Replica));
        if expansion.replica >= replicas {
            self.fault(node, format!("replica {} of {replicas}", expansion.replica));
        }
        if expansion.iteration.ahead > 1 << 16 || expansion.copy > 1 << 16 {
            self.fault(node, "an iteration further ahead than any pipeline");
        }
        if op.is_access() {
            self.access(node, expansion.logical, layout.is_some());
        }
        if let Some(choice) = op.product() {
            self.product(node, choice, expansion.slice);
        }
    }

    fn access(&mut self, node: Entity, logical: Entity, placed: bool) {
        let operands = self.world.get::<Operands>(node).map(|operands| &operands.0[..]).unwrap_or_default();
        let is_memory = |node: &&Entity| self.world.get::<Op>(**node) == Some(&Op::Memory);
        if !placed {
            self.fault(node, "an access without layout");
        } else if operands.iter().any(|operand| is_memory(&operand))
            && self.world.get::<Bounds>(logical).is_none()
        {
            self.fault(node, "an access of global memory without bounds");
        }
    }

    /// Checks that a matrix instruction stays within its factors.
    fn product(&mut self, node: Entity, choice: MmaChoice, slice: u32) {
        let MmaChoice::Explicit(mma) = choice else {
            return self.fault(node, "a piece of a product without matrix instruction");
        };
        let operands = self.world.get::<Operands>(node).map(|operands| &operands.0[..]).unwrap_or_default();
        let held =
            |operand: Entity| self.layout_of(operand).map_or(1, |layout| layout.extent(Source::Register));
        // Of scales a product takes one, and the factors that come with them whole.
        let enough = operands.iter().enumerate().all(|(at, &operand)| {
            let first = if at < 2 && operands.len() > 3 { 0 } else { slice };
            let taken = [mma.taken_elements(0), mma.taken_elements(1), 0, 1, 1].get(at).copied().unwrap_or(1);
            at == 2 || first.checked_add(taken).is_some_and(|needed| needed <= held(operand))
        });
        if !enough {
            self.fault(node, "a matrix instruction that takes more than its factors hold");
        }
    }

    fn layout_of(&self, node: Entity) -> Option<&Layout> {
        let logical = self.world.get::<Expansion>(node).map_or(node, |expansion| expansion.logical);
        self.world.get::<Placement>(logical).map(|placement| &placement.0)
    }
}
