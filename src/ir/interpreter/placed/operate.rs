//! What one node does in one wave.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::super::arithmetic;
use super::super::atomic;
use super::super::encoding;
use super::super::tensor::{Data, bits_of, data_of};
use super::fragment::{Fragment, places};
use super::mapped::ElementPlace;
use super::{Machine, PlacedWave, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::TurnedUnits;
use crate::ir::layout::{Dim, Source};
use crate::ir::node::*;
use crate::ir::op::{AccessOp, AlongDimOp, ConstantOp, DataMovement, DeclarationOp, ElementWiseOp, OpFamily};
use crate::ir::types::DType;

impl Machine<'_> {
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
        match (op.movement(), operands) {
            (DataMovement::Load, &[memory]) if let Some(turned) = self.fact::<TurnedUnits>(node) => {
                self.read_turned(node, turned, memory, frame, wave, group).map(Some)
            }
            (DataMovement::Load, &[.., memory]) => self.read(node, memory, frame, wave, group).map(Some),
            (DataMovement::Store, &[value, .., memory]) => {
                self.write(node, value, memory, frame, wave, group).map(|()| None)
            }
            (DataMovement::Update(op), &[first, .., memory]) => {
                let last = operands.get(op.values() - 1).copied().unwrap_or(first);
                self.atomic(node, op, ([first, last], memory), frame, wave, group).map(Some)
            }
            (DataMovement::Copy, &[memory, buffer]) => {
                let loaded = self.read(node, memory, frame, wave, group)?;
                self.put(node, &loaded, buffer, frame, wave, group).map(|()| None)
            }
            _ => Err(misfit()),
        }
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
        for place in fragment.places(wave.number) {
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
        let all = value.places(wave.number);
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
        for (at, place) in value.places(wave.number).enumerate() {
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
        let of_update = path.is_mapped() && self.get::<Op>(operands[0])?.updates();
        for (at, place) in value.places(wave.number).enumerate() {
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
}

pub(super) fn misfit() -> Diagnostic {
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
