//! What one node does in one wave.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::super::arithmetic;
use super::super::atomic;
use super::super::encoding;
use super::super::product::{Extents, multiply_add, multiply_add_scaled, unpacked};
use super::super::tensor::{Data, bits_of, data_of};
use super::fragment::{Fragment, index_of, places};
use super::mapped::ElementPlace;
use super::{LANES, Machine, PlacedWave, RunningGroup, bug};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::facts::{Expansion, FoldsMasked, PaddedFactors, TurnedUnits};
use crate::ir::layout::{Dim, Layout, Mma, Mode, Place, SCALED_BLOCK, Source};
use crate::ir::node::*;
use crate::ir::op::{
    AccessOp, AlongDimOp, ConstantOp, ContractionOp, DeclarationOp, ElementWiseOp, OpFamily,
};
use crate::ir::types::DType;
use smallvec::SmallVec;

impl Machine<'_> {
    /// The logical node that a node is a piece of; the node itself before expansion.
    pub(super) fn logical(&self, node: Entity) -> Entity {
        self.world.get::<Expansion>(node).map_or(node, |expansion| expansion.logical)
    }

    /// Which element each place of a node holds.
    pub(super) fn layout(&self, node: Entity) -> Layout {
        match self.fact::<Placement>(node) {
            Some(placement) => placement.0.clone(),
            None => self.whole_tile(node).unwrap_or_default(),
        }
    }

    /// The layout of a value that no pass has distributed yet, such as loads of tiles for LDS: each wave has
    /// the workgroup's whole tile.
    fn whole_tile(&self, node: Entity) -> Option<Layout> {
        let dims = |node: Entity| self.world.get::<ValueType>(node).map(|ty| ty.dims.clone());
        let memory = self.world.get::<Operands>(node).and_then(|operands| operands.0.last().copied());
        let is_write = self.world.get::<Op>(node).is_some_and(|op| op.is_write());
        let dims = if is_write { dims(memory?)? } else { dims(node)? };
        let extent = |&dim: &Dim| {
            let entry = self.geometry.dims.get(dim);
            Some((dim, entry?.workgroup_extent()?))
        };
        let tile = dims.iter().map(extent).collect::<Option<Vec<_>>>()?;
        let registers = || {
            let modes = tile.iter().rev().map(|&(dim, extent)| Mode::new(Source::Register, extent, dim, 1));
            Layout::new(modes).ok()
        };
        Layout::distribute(&tile, 1, LANES, 1).ok().or_else(registers)
    }

    /// The replicas that a node stands for: the first, and how many.
    pub(super) fn replicas(&self, node: Entity, layout: &Layout) -> (u32, u32) {
        match self.world.get::<Expansion>(node) {
            Some(expansion) => (expansion.replica, 1),
            None => (0, layout.extent(Source::Replica)),
        }
    }

    /// A fragment of a node whose elements are all undefined.
    pub(super) fn empty(&self, node: Entity, layout: &Layout) -> Result<Fragment, Diagnostic> {
        let dtype = self.get::<ValueType>(node)?.dtype.ok_or_else(|| bug("a value without dtype"))?;
        let (first, replicas) = self.replicas(node, layout);
        let registers = layout.extent(Source::Register);
        let count = u64::from(replicas) * u64::from(registers) * u64::from(LANES);
        if count > 1 << 24 {
            return Err(Diagnostic::new(Kind::Limit, format!("a wave holds {count} elements of one value")));
        }
        Ok(Fragment { dtype, registers, first, replicas, bits: Vec::new(), defined: Vec::new() })
    }

    pub(super) fn node(
        &mut self,
        node: Entity,
        frame: usize,
        wave: &mut PlacedWave,
        group: &mut RunningGroup,
    ) -> Result<(), Diagnostic> {
        let operands = &*self.get::<Operands>(node)?.0;
        let op = *self.get::<Op>(node)?;
        let value = match op.family() {
            OpFamily::Declaration(DeclarationOp::Memory | DeclarationOp::Allocate) | OpFamily::Order(_) => {
                return Ok(());
            }
            OpFamily::Declaration(DeclarationOp::Scalar) => {
                let scalar = self.by_node.get(node).and_then(|&at| self.memories[at].bits.first());
                self.splat(node, *scalar.ok_or_else(|| bug("a scalar without value"))?)?
            }
            OpFamily::Constant(op) => self.constant(node, op, frame, wave, group)?,
            OpFamily::Access(op) => match self.access(node, (op, operands), frame, wave, group)? {
                Some(value) => value,
                None => return Ok(()),
            },
            OpFamily::ElementWise(ElementWiseOp::Decode(decoding)) => {
                self.decode(node, (decoding, operands), frame, wave, group)?
            }
            OpFamily::ElementWise(op) => self.element_wise(node, op, operands, wave)?,
            OpFamily::Rearrangement(_) => self.rearrange(node, wave)?,
            OpFamily::Contraction(op) => self.product(node, (op, operands), frame, wave, group)?,
            OpFamily::AlongDim(AlongDimOp::Reduce(reduction)) => {
                self.reduce(node, reduction, wave.number, &[&*wave], (frame, group))?
            }
            OpFamily::AlongDim(AlongDimOp::Scan(scan)) => self.scan(node, scan, wave.number, &[&*wave])?,
            OpFamily::AlongDim(AlongDimOp::Sort(_)) | OpFamily::Region(_) | OpFamily::Carried(_) => {
                return Err(misfit());
            }
        };
        wave.values[node] = Some(Rc::new(value));
        Ok(())
    }

    fn constant(
        &self,
        node: Entity,
        op: ConstantOp,
        frame: usize,
        wave: &PlacedWave,
        group: &RunningGroup,
    ) -> Result<Fragment, Diagnostic> {
        let bits = match op {
            ConstantOp::Register(constant) => {
                let dtype = self.get::<ValueType>(node)?.dtype;
                constant.bits(dtype.ok_or_else(|| bug("a constant without dtype"))?)?
            }
            ConstantOp::SelfIndex(dim) => return self.self_index(node, dim, frame, wave, group),
            ConstantOp::Size(dim) => self.size(dim)? as u32 as u64,
            ConstantOp::WorkgroupId(axis) => group.id.get(axis as usize).copied().unwrap_or(0).into(),
            ConstantOp::Iteration(dim) => {
                let number = self.frames[frame].tile_of(dim, self.iteration_of(node));
                number.ok_or_else(|| bug("an iteration of no loop"))? as u32 as u64
            }
        };
        self.splat(node, bits)
    }

    /// The values that an access reads, if it has a result.
    fn access(
        &mut self,
        node: Entity,
        (op, operands): (AccessOp, &[Entity]),
        frame: usize,
        wave: &mut PlacedWave,
        group: &mut RunningGroup,
    ) -> Result<Option<Fragment>, Diagnostic> {
        match (op, operands) {
            (AccessOp::Read, &[memory]) if let Some(turned) = self.fact::<TurnedUnits>(node) => {
                self.read_turned(node, turned, memory, frame, wave, group).map(Some)
            }
            (AccessOp::Read, &[.., memory]) => self.read(node, memory, frame, wave, group).map(Some),
            (AccessOp::Write, &[value, .., memory]) => {
                self.write(node, value, memory, frame, wave, group).map(|()| None)
            }
            (AccessOp::Atomic(op), &[first, .., memory]) => {
                let last = operands.get(op.values() - 1).copied().unwrap_or(first);
                self.atomic(node, op, ([first, last], memory), frame, wave, group).map(Some)
            }
            (AccessOp::GlobalToShared, &[memory, buffer]) => {
                let loaded = self.read(node, memory, frame, wave, group)?;
                self.put(node, &loaded, buffer, frame, wave, group).map(|()| None)
            }
            _ => Err(misfit()),
        }
    }

    fn product(
        &self,
        node: Entity,
        (op, operands): (ContractionOp, &[Entity]),
        frame: usize,
        wave: &PlacedWave,
        group: &RunningGroup,
    ) -> Result<Fragment, Diagnostic> {
        let (factors, scales) = match *operands {
            [lhs, rhs, acc] => ([lhs, rhs, acc], None),
            [lhs, rhs, acc, lhs_scale, rhs_scale] => ([lhs, rhs, acc], Some([lhs_scale, rhs_scale])),
            _ => return Err(misfit()),
        };
        self.mma(node, op.choice(), factors, scales, wave, (frame, group))
    }

    fn decode(
        &self,
        node: Entity,
        (decoding, operands): (Decoding, &[Entity]),
        frame: usize,
        wave: &PlacedWave,
        group: &RunningGroup,
    ) -> Result<Fragment, Diagnostic> {
        let &[codes, scales] = operands else { return Err(misfit()) };
        let to = self.get::<ValueType>(node)?.dtype.ok_or_else(|| bug("numbers of no dtype"))?;
        let places = match decoding.along {
            Some(dim) => self.self_index(node, dim, frame, wave, group)?.bits,
            None => Vec::new(),
        };
        let [codes, scales] = self.pair(node, [codes, scales], wave)?;
        let [x, y] = [&codes, &scales].map(|f| data_of(f.dtype, &f.bits));
        let defined = both(&codes, &scales);
        let numbers = encoding::decode(decoding.form, &x, &y, &places, to);
        made(codes, numbers, defined)
    }

    fn element_wise(
        &self,
        node: Entity,
        op: ElementWiseOp,
        operands: &[Entity],
        wave: &PlacedWave,
    ) -> Result<Fragment, Diagnostic> {
        match (op, operands) {
            (ElementWiseOp::Broadcast, &[x]) => self.operand(node, x, wave),
            (ElementWiseOp::Unary(op), &[x]) => {
                let x = self.operand(node, x, wave)?;
                let data = arithmetic::unary(op, &data_of(x.dtype, &x.bits));
                made(x.clone(), data, x.defined)
            }
            (ElementWiseOp::Convert(op), &[x]) => {
                let to = self.get::<ValueType>(node)?.dtype.ok_or_else(|| bug("a cast to nothing"))?;
                let x = self.operand(node, x, wave)?;
                let data = arithmetic::convert(op, &data_of(x.dtype, &x.bits), to);
                made(x.clone(), data, x.defined)
            }
            (ElementWiseOp::Encode(dtype), &[x]) => {
                let x = self.operand(node, x, wave)?;
                let data = encoding::encode(&data_of(x.dtype, &x.bits), dtype);
                made(x.clone(), data, x.defined)
            }
            (ElementWiseOp::Binary(op), &[x, y]) => {
                let [x, y] = self.pair(node, [x, y], wave)?;
                let data = arithmetic::binary(op, &data_of(x.dtype, &x.bits), &data_of(y.dtype, &y.bits));
                let defined = both(&x, &y);
                made(x, data, defined)
            }
            (ElementWiseOp::Compare(predicate), &[x, y]) => {
                let [x, y] = self.pair(node, [x, y], wave)?;
                let (left, right) = (data_of(x.dtype, &x.bits), data_of(y.dtype, &y.bits));
                let defined = both(&x, &y);
                made(x, arithmetic::comparison(predicate, &left, &right), defined)
            }
            (ElementWiseOp::Ternary(op), &[x, y, z]) => self.ternary(node, op, [x, y, z], wave),
            (ElementWiseOp::Select, &[condition, yes, no]) => self.select(node, [condition, yes, no], wave),
            _ => Err(misfit()),
        }
    }

    fn ternary(
        &self,
        node: Entity,
        op: TernaryOp,
        [x, y, z]: [Entity; 3],
        wave: &PlacedWave,
    ) -> Result<Fragment, Diagnostic> {
        let [x, y] = self.pair(node, [x, y], wave)?;
        let z = self.operand(node, z, wave)?;
        let [a, b, c] = [&x, &y, &z].map(|f| data_of(f.dtype, &f.bits));
        let data = arithmetic::ternary(op, &a, &b, &c);
        let defined = both(&x, &y).into_iter().zip(&z.defined).map(|(xy, z)| xy && *z).collect();
        made(x, data, defined)
    }

    fn select(
        &self,
        node: Entity,
        [condition, yes, no]: [Entity; 3],
        wave: &PlacedWave,
    ) -> Result<Fragment, Diagnostic> {
        let condition = self.operand(node, condition, wave)?;
        let [yes, no] = self.pair(node, [yes, no], wave)?;
        let [c, y, n] = [&condition, &yes, &no].map(|f| data_of(f.dtype, &f.bits));
        let data = arithmetic::select(&c, &y, &n);
        let chosen = |at: usize| if condition.bits[at] != 0 { yes.defined[at] } else { no.defined[at] };
        let defined = (0..yes.len()).map(|at| condition.defined[at] && chosen(at)).collect();
        made(yes, data, defined)
    }

    /// Where in the whole tensor the elements of a wave are.
    fn self_index(
        &self,
        node: Entity,
        dim: Dim,
        frame: usize,
        wave: &PlacedWave,
        group: &RunningGroup,
    ) -> Result<Fragment, Diagnostic> {
        let layout = self.layout(node);
        let mut fragment = self.empty(node, &layout)?;
        let first = self.first_element(dim, &self.frames[frame], self.iteration_of(node), group)?;
        for place in places(fragment.first, fragment.replicas, fragment.registers, wave.number) {
            let at = i64::from(layout.coordinate(dim, place)) + first;
            fragment.bits.push(u64::from(at as u32));
            fragment.defined.push(true);
        }
        Ok(fragment)
    }

    fn splat(&self, node: Entity, bits: u64) -> Result<Fragment, Diagnostic> {
        let mut fragment = self.empty(node, &self.layout(node))?;
        fragment.bits = vec![bits; fragment.len()];
        fragment.defined = vec![true; fragment.len()];
        Ok(fragment)
    }

    pub(super) fn value(&self, node: Entity, wave: &PlacedWave) -> Result<Rc<Fragment>, Diagnostic> {
        let value = wave.values.get(node).and_then(Option::as_ref).cloned();
        value.ok_or_else(|| bug("a value is used before it is made").at(self.location(node)))
    }

    /// An operand as `node` sees it: its elements at the places of the node's own layout.
    pub(super) fn operand(
        &self,
        node: Entity,
        operand: Entity,
        wave: &PlacedWave,
    ) -> Result<Fragment, Diagnostic> {
        let (own, other) = (self.layout(node), self.layout(operand));
        let from = self.value(operand, wave)?;
        let (first, replicas) = self.replicas(node, &own);
        let registers = own.extent(Source::Register);
        if own == other && (first, replicas, registers) == (from.first, from.replicas, from.registers) {
            return Ok(Fragment::clone(&from));
        }
        let mut seen =
            Fragment { dtype: from.dtype, registers, first, replicas, bits: Vec::new(), defined: Vec::new() };
        let dims = other.dims();
        for place in places(first, replicas, registers, wave.number) {
            let coordinate = |dim: Dim| own.coordinate(dim, place);
            let (register, replica) = match own == other {
                true => (place.register, place.replica),
                false => (
                    index_of(&other, Source::Register, coordinate),
                    index_of(&other, Source::Replica, coordinate),
                ),
            };
            let at = from.at(replica, place.lane, register);
            let at = at.ok_or_else(|| bug("an operand does not hold what its user needs"))?;
            // The operand's layout must say that it holds exactly the element asked for.
            let held =
                Place { register, replica: if from.replicas == 1 { from.first } else { replica }, ..place };
            if dims.iter().any(|&dim| other.coordinate(dim, held) != coordinate(dim)) {
                return Err(bug("an operand holds other elements than its user needs"));
            }
            seen.bits.push(from.bits[at]);
            seen.defined.push(from.defined[at]);
        }
        Ok(seen)
    }

    fn pair(
        &self,
        node: Entity,
        [x, y]: [Entity; 2],
        wave: &PlacedWave,
    ) -> Result<[Fragment; 2], Diagnostic> {
        Ok([self.operand(node, x, wave)?, self.operand(node, y, wave)?])
    }

    fn read(
        &self,
        node: Entity,
        memory: Entity,
        frame: usize,
        wave: &PlacedWave,
        group: &mut RunningGroup,
    ) -> Result<Fragment, Diagnostic> {
        let (layout, frame) = (self.layout(node), &self.frames[frame]);
        let ty = self.get::<ValueType>(memory)?;
        let dtype = ty.dtype.ok_or_else(|| bug("a memory without dtype"))?;
        let (first, replicas) = self.replicas(node, &layout);
        let registers = layout.extent(Source::Register);
        let mut fragment =
            Fragment { dtype, registers, first, replicas, bits: Vec::new(), defined: Vec::new() };
        let path = self.access_path(node, memory, frame, wave, group)?;
        for at_place in places(first, replicas, registers, wave.number).enumerate() {
            let element = self.addressed(node, &path, &layout, at_place)?;
            let found = self.found(element, (memory, dtype), wave, group)?;
            fragment.bits.push(found.unwrap_or(0));
            fragment.defined.push(found.is_some());
        }
        Ok(fragment)
    }

    /// The bits of an element of a memory, or of LDS, if they are defined.
    pub(super) fn found(
        &self,
        element: ElementPlace,
        (memory, dtype): (Entity, DType),
        wave: &PlacedWave,
        group: &mut RunningGroup,
    ) -> Result<Option<u64>, Diagnostic> {
        Ok(match (element, self.by_node.get(memory)) {
            (ElementPlace::At(at), Some(&number)) => Some(self.memories[number].bits[at]),
            (ElementPlace::At(at), None) => {
                let at = group.lds.base(memory) + at as u32;
                group.lds.read(at, dtype.bytes(), wave.number)?
            }
            (ElementPlace::Masked, _) => Some(0),
            (ElementPlace::Undefined, _) => None,
        })
    }

    fn write(
        &mut self,
        node: Entity,
        value: Entity,
        memory: Entity,
        frame: usize,
        wave: &PlacedWave,
        group: &mut RunningGroup,
    ) -> Result<(), Diagnostic> {
        let value = self.operand(node, value, wave)?;
        let Some(&number) = self.by_node.get(memory) else {
            return self.put(node, &value, memory, frame, wave, group);
        };
        let layout = self.layout(node);
        let path = self.access_path(node, memory, &self.frames[frame], wave, group)?;
        let all = places(value.first, value.replicas, value.registers, wave.number);
        for (at, place) in all.enumerate() {
            match self.addressed(node, &path, &layout, (at, place))? {
                ElementPlace::At(to) if value.defined[at] => self.memories[number].bits[to] = value.bits[at],
                ElementPlace::At(_) => {
                    return Err(Diagnostic::invalid("an undefined element is stored").note(
                        "it was read outside of a tensor, or from LDS that had not been written",
                        None,
                    ));
                }
                ElementPlace::Masked => {}
                ElementPlace::Undefined => {
                    return Err(Diagnostic::invalid("an element is stored outside of its tensor"));
                }
            }
        }
        Ok(())
    }

    /// Updates elements of a memory, by the first of the lanes and waves that hold the same ones; the others
    /// do not learn what was there before.
    fn atomic(
        &mut self,
        node: Entity,
        op: AtomicOp,
        ([expected, value], memory): ([Entity; 2], Entity),
        frame: usize,
        wave: &PlacedWave,
        group: &mut RunningGroup,
    ) -> Result<Fragment, Diagnostic> {
        let expected = self.operand(node, expected, wave)?;
        let value = self.operand(node, value, wave)?;
        let number = self.by_node.get(memory).copied();
        let layout = self.layout(node);
        let path = self.access_path(node, memory, &self.frames[frame], wave, group)?;
        if number.is_none() && !path.is_mapped() {
            return Err(bug("an update of LDS without coordinates"));
        }
        let unknown = || bug("no such atomic update");
        let mut before = Fragment { bits: Vec::new(), defined: Vec::new(), ..value };
        for (at, place) in places(value.first, value.replicas, value.registers, wave.number).enumerate() {
            if !layout.is_first_copy(place) {
                before.bits.push(0);
                before.defined.push(false);
                continue;
            }
            let element = self.addressed(node, &path, &layout, (at, place))?;
            let joined =
                |old: u64| atomic::updated(op, value.dtype, old, [expected.bits[at], value.bits[at]]);
            let old = match (element, number) {
                (ElementPlace::At(_), _) if !value.defined[at] || !expected.defined[at] => {
                    return Err(Diagnostic::invalid("a memory is updated by an undefined element"));
                }
                (ElementPlace::At(to), Some(number)) => {
                    let old = self.memories[number].bits[to];
                    self.memories[number].bits[to] = joined(old).ok_or_else(unknown)?;
                    old
                }
                (ElementPlace::At(to), None) => {
                    let to = group.lds.base(memory) + to as u32;
                    let old = group.lds.update(to, value.dtype.bytes(), joined, wave.number)?;
                    old.ok_or_else(|| Diagnostic::invalid("an update of LDS that was not written"))?
                }
                (ElementPlace::Masked, _) => 0,
                (ElementPlace::Undefined, _) => {
                    return Err(Diagnostic::invalid("an element outside of its tensor is updated"));
                }
            };
            before.bits.push(old);
            before.defined.push(true);
        }
        Ok(before)
    }

    /// Writes to an LDS buffer.
    fn put(
        &self,
        node: Entity,
        value: &Fragment,
        buffer: Entity,
        frame: usize,
        wave: &PlacedWave,
        group: &mut RunningGroup,
    ) -> Result<(), Diagnostic> {
        let (layout, bytes, frame) = (self.layout(node), value.dtype.bytes(), &self.frames[frame]);
        let operands = &self.get::<Operands>(node)?.0;
        let path = self.access_path(node, buffer, frame, wave, group)?;
        // Of what an update gives back, the first copy alone is known.
        let of_update = path.is_mapped() && matches!(self.get::<Op>(operands[0])?, Op::Atomic(_));
        for (at, place) in places(value.first, value.replicas, value.registers, wave.number).enumerate() {
            if of_update && !layout.is_first_copy(place) {
                continue;
            }
            let element = self.addressed(node, &path, &layout, (at, place))?;
            let ElementPlace::At(to) = element else { continue };
            let to = group.lds.base(buffer) + to as u32;
            group.lds.write(to, bytes, value.defined[at].then_some(value.bits[at]), wave.number)?;
        }
        Ok(())
    }

    /// Of a product whose factors are padded, elements beyond the end of k take no part until a pass has put
    /// others in their place.
    fn mma(
        &self,
        node: Entity,
        choice: MmaChoice,
        [lhs, rhs, acc]: [Entity; 3],
        scales: Option<[Entity; 2]>,
        wave: &PlacedWave,
        (frame, group): (usize, &RunningGroup),
    ) -> Result<Fragment, Diagnostic> {
        if let (MmaChoice::Explicit(mma), Some(expansion)) = (choice, self.world.get::<Expansion>(node)) {
            return self.instruction(node, mma, expansion.slice, [lhs, rhs, acc], scales, wave);
        }
        let dims = |node: Entity| self.get::<ValueType>(node).map(|ty| ty.dims.clone());
        let (left, right, result) = (dims(lhs)?, dims(rhs)?, dims(acc)?);
        let &[ref batch @ .., m, n] = &result[..] else { return Err(bug("an mma without m and n")) };
        let summed =
            |dims: &Dims| -> Dims { dims.iter().copied().filter(|dim| !result.contains(dim)).collect() };
        let along = [summed(&left), summed(&right)];
        let (l, r, a) = (self.layout(lhs), self.layout(rhs), self.layout(node));
        let of_scales = scales.map(|scales| scales.map(|scale| self.layout(scale)));
        let extent = |dim: Dim| -> usize {
            let layouts = [&l, &r, &a].into_iter().chain(of_scales.iter().flatten());
            layouts.map(|layout| layout.tile_extent(dim)).max().unwrap_or(1) as usize
        };
        let order = |own: Dim, last: &[Dim]| {
            batch.iter().copied().chain([own]).chain(last.iter().copied()).collect::<Dims>()
        };
        let sized = |dims: &[Dim]| {
            dims.iter().map(|&dim| (dim, extent(dim))).collect::<SmallVec<[(Dim, usize); 4]>>()
        };
        let index = |layout: &Layout, sized: &[(Dim, usize)], place: Place| {
            sized.iter().fold(0, |at, &(dim, size)| at * size + layout.coordinate(dim, place) as usize)
        };
        let dense = |layout: &Layout, fragment: &Fragment, dims: &[Dim]| {
            let sized = sized(dims);
            let count = sized.iter().map(|of| of.1).product();
            let (mut bits, mut defined) = (vec![0u64; count], vec![false; count]);
            let all = places(fragment.first, fragment.replicas, fragment.registers, wave.number);
            for (at, place) in all.enumerate() {
                let to = index(layout, &sized, place);
                (bits[to], defined[to]) = (fragment.bits[at], fragment.defined[at]);
            }
            (data_of(fragment.dtype, &bits), defined)
        };
        let sum = self.operand(node, acc, wave)?;
        let inputs = match choice {
            MmaChoice::Explicit(mma) => mma.inputs().map(Some),
            MmaChoice::Kernel | MmaChoice::Shape(_) => [None; 2],
        };
        let factor = |layout: &Layout, value: Entity, own: Dim, at: usize| {
            let held = along[at].iter().map(|&dim| extent(dim)).collect::<SmallVec<[usize; 2]>>();
            let matrix = dense(layout, &*self.value(value, wave)?, &order(own, &along[at]));
            let held = [held.first().copied().unwrap_or(1), held.get(1).copied().unwrap_or(1)];
            Ok::<_, Diagnostic>(elements(matrix, inputs[at], held))
        };
        let (left, k) = factor(&l, lhs, m, 0)?;
        let (right, _) = factor(&r, rhs, n, 1)?;
        let before = dense(&a, &sum, &order(m, &[n]));
        let is_masked = self.world.get::<FoldsMasked>(self.root).is_some();
        let is_padded = !is_masked && self.fact::<PaddedFactors>(node).is_some();
        let taken = match along[0].first() {
            Some(&unit) if is_padded => {
                let of_k = self.geometry.loop_dim(unit);
                let first = self.first_element(of_k, &self.frames[frame], self.iteration_of(node), group)?;
                usize::try_from(self.size(of_k)? as i64 - first).unwrap_or(0).min(k)
            }
            _ => k,
        };
        let batches = batch.iter().map(|&dim| extent(dim)).product();
        let extents = Extents { batch: batches, m: extent(m), n: extent(n), k, taken };
        let scales = match (scales, &of_scales) {
            (Some([x, y]), Some([of_x, of_y])) => {
                let block = dims(x)?.iter().copied().find(|dim| !result.contains(dim));
                let block = block.ok_or_else(|| bug("scales of no blocks"))?;
                let x = dense(of_x, &*self.value(x, wave)?, &order(m, &[block]));
                let y = dense(of_y, &*self.value(y, wave)?, &order(n, &[block]));
                Some(([x, y], extent(block)))
            }
            _ => None,
        };
        let (after, defined) = multiply([left, right, before], scales, extents)?;
        let bits = bits_of(&after);
        let of_result = sized(&order(m, &[n]));
        let mut result = Fragment { bits: Vec::new(), defined: Vec::new(), ..sum };
        for place in places(result.first, result.replicas, result.registers, wave.number) {
            let at = index(&a, &of_result, place);
            result.bits.push(bits[at]);
            result.defined.push(defined[at]);
        }
        Ok(result)
    }

    /// One matrix instruction, by the layouts that AMD gives its operands.
    fn instruction(
        &self,
        node: Entity,
        mma: Mma,
        slice: u32,
        [lhs, rhs, acc]: [Entity; 3],
        scales: Option<[Entity; 2]>,
        wave: &PlacedWave,
    ) -> Result<Fragment, Diagnostic> {
        const ROW: Dim = Dim(0);
        const COLUMN: Dim = Dim(1);
        const WORD: Dim = Dim(2);
        let matrix = |fragment: &Fragment, layout: &Layout, first: u32, width: u32, height: u32| {
            let count = (width * height) as usize;
            let (mut bits, mut defined) = (vec![0u64; count], vec![false; count]);
            for place in places(0, 1, layout.extent(Source::Register), 0) {
                let at = fragment.at(fragment.first, place.lane, first + place.register);
                let at = at.ok_or_else(|| bug("a matrix operand with too few elements"))?;
                let to = layout.coordinate(ROW, place) * width + layout.coordinate(COLUMN, place);
                (bits[to as usize], defined[to as usize]) = (fragment.bits[at], fragment.defined[at]);
            }
            Ok::<_, Diagnostic>((data_of(fragment.dtype, &bits), defined))
        };
        // A product with scales takes a part of these.
        let (slice, scale) = if scales.is_some() { (0, slice) } else { (slice, 0) };
        let (m, n, k) = (mma.m(), mma.n(), mma.k());
        let sums = mma.c_layout(ROW, COLUMN);
        let factor = |value: Entity, at: usize, rows: u32| {
            // What the instruction takes: a value may have registers beside it.
            let (units, words) = (mma.held_k(at), mma.held(at).taken);
            let layout = mma.factor_layout(at, ROW, COLUMN, (words > 1).then_some((WORD, words)));
            // The words of a unit are columns of their own.
            let beside = |mode: &Mode| match mode.dim {
                Some(COLUMN) => Mode { stride: mode.stride * words, ..*mode },
                Some(WORD) => Mode { dim: Some(COLUMN), ..*mode },
                _ => *mode,
            };
            let layout =
                Layout::new(layout.modes().iter().map(beside)).map_err(|_| bug("a factor too large"))?;
            let matrix = matrix(&*self.value(value, wave)?, &layout, slice, units * words, rows)?;
            let (matrix, _) = elements(matrix, Some(mma.inputs()[at]), [units as usize, words as usize]);
            Ok::<_, Diagnostic>(matrix)
        };
        let (left, right) = (factor(lhs, 0, m)?, factor(rhs, 1, n)?);
        let before = matrix(&*self.value(acc, wave)?, &sums, 0, n, m)?;
        let [m_extent, n_extent, k_extent] = [m, n, k].map(|extent| extent as usize);
        let extents = Extents { batch: 1, m: m_extent, n: n_extent, k: k_extent, taken: k_extent };
        let scales = match scales {
            Some([x, y]) => {
                let (layout, blocks) = (mma.scale_layout(ROW, COLUMN), mma.k() / SCALED_BLOCK);
                let x = matrix(&*self.value(x, wave)?, &layout, scale, blocks, m)?;
                let y = matrix(&*self.value(y, wave)?, &layout, scale, blocks, n)?;
                Some(([x, y], blocks as usize))
            }
            None => None,
        };
        let (after, defined) = multiply([left, right, before], scales, extents)?;
        let bits = bits_of(&after);
        let mut result = self.empty(node, &self.layout(node))?;
        for place in places(0, 1, result.registers, 0) {
            let at = (sums.coordinate(ROW, place) * n + sums.coordinate(COLUMN, place)) as usize;
            result.bits.push(bits[at]);
            result.defined.push(defined[at]);
        }
        Ok(result)
    }
}

/// A matrix and which of its elements are defined.
type Matrix = (Data, Vec<bool>);

/// A factor with one element for each place along k, and how many these are in a row: of units of so many
/// words, those that the instruction takes. `held` counts the units of a row and the words of each.
fn elements((data, defined): Matrix, input: Option<DType>, held: [usize; 2]) -> (Matrix, usize) {
    let packing = input.and_then(DType::packing).filter(|packing| packing.word == data.dtype());
    let (Some(packing), Some(input)) = (packing, input) else { return ((data, defined), held[0]) };
    let (each, taken) = (packing.elements as usize, packing.words as usize);
    let k = held[0] * each;
    let whole = |unit: &[bool]| unit.iter().take(taken).all(|&defined| defined);
    let units = defined.chunks(held[1].max(1)).map(whole);
    let defined = units.flat_map(|defined| std::iter::repeat_n(defined, each)).collect();
    ((unpacked(&data, input, held, k).unwrap_or(data), defined), k)
}

/// `before + left . right`, with scales and how many a row has of them, if there are any; an element is
/// defined if everything that it is computed from is.
fn multiply(
    [left, right, before]: [Matrix; 3],
    scales: Option<([Matrix; 2], usize)>,
    extents: Extents,
) -> Result<Matrix, Diagnostic> {
    let after = match &scales {
        None => multiply_add(&left.0, &right.0, &before.0, extents),
        Some(([x, y], blocks)) => {
            multiply_add_scaled([(&left.0, &x.0), (&right.0, &y.0)], &before.0, extents, *blocks)
        }
    };
    let after = after.map_err(Diagnostic::invalid)?;
    let Extents { m, n, k, taken, .. } = extents;
    let whole = |defined: &[bool], width: usize, taken: usize| {
        let row = |row: &[bool]| row.iter().take(taken).all(|&d| d);
        defined.chunks(width.max(1)).map(row).collect::<Vec<_>>()
    };
    let (mut rows, mut columns) = (whole(&left.1, k, taken), whole(&right.1, k, taken));
    if let Some((of_factors, blocks)) = &scales {
        let taken = taken.div_ceil(SCALED_BLOCK as usize);
        for (rows, scales) in [&mut rows, &mut columns].into_iter().zip(of_factors) {
            rows.iter_mut().zip(whole(&scales.1, *blocks, taken)).for_each(|(row, scales)| *row &= scales);
        }
    }
    let is_defined = |at: usize| {
        let (batch, row, column) = (at / (m * n), at / n % m, at % n);
        before.1[at] && rows[batch * m + row] && columns[batch * n + column]
    };
    Ok((after, (0..before.1.len()).map(is_defined).collect()))
}

fn misfit() -> Diagnostic {
    bug("an operation with operands that it does not take")
}

/// A fragment with other elements.
fn made(like: Fragment, data: Result<Data, String>, defined: Vec<bool>) -> Result<Fragment, Diagnostic> {
    let data = data.map_err(Diagnostic::invalid)?;
    Ok(Fragment { dtype: data.dtype(), bits: bits_of(&data), defined, ..like })
}

fn both(x: &Fragment, y: &Fragment) -> Vec<bool> {
    x.defined.iter().zip(&y.defined).map(|(&x, &y)| x && y).collect()
}
