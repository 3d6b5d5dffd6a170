//! Results of single operations on whole tensors: a function for each family.

use std::rc::Rc;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::tensor::Tensor;
use super::{InterpretedValue, Interpreter, ValueContent, arithmetic, encoding, malformed, reduce};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::TurnedUnits;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::op::{
    AccessOp, AlongDimOp, ConstantOp, ContractionOp, DataMovement, DeclarationOp, ElementWiseOp,
};

/// The dimensions and the elements of a value.
type Computed = Result<(Dims, Tensor), Diagnostic>;

impl Interpreter<'_> {
    /// Enters the value of a node.
    pub(super) fn set_value(&mut self, node: Entity, dims: Dims, content: ValueContent) {
        let depth = self.loops.len();
        self.values.insert(node, InterpretedValue { dims, content, depth });
    }

    pub(super) fn set_tensor(&mut self, node: Entity, computed: (Dims, Tensor)) -> Result<(), Diagnostic> {
        let (dims, tensor) = computed;
        self.set_value(node, dims, ValueContent::Tensor(Rc::new(tensor)));
        Ok(())
    }

    /// A value as it is, under another node.
    pub(super) fn hand_on(
        &mut self,
        node: Entity,
        value: Option<InterpretedValue>,
    ) -> Result<(), Diagnostic> {
        self.values.insert(node, value.ok_or_else(malformed)?);
        Ok(())
    }

    pub(super) fn declaration(&mut self, node: Entity, op: DeclarationOp) -> Result<(), Diagnostic> {
        match op {
            DeclarationOp::Memory if self.memories.contains_key(&node) || self.is_untyped_log(node) => Ok(()),
            DeclarationOp::Memory => Err(Diagnostic::invalid("a memory is declared inside a loop")
                .help("declare the kernel's memories before its loops")),
            DeclarationOp::Scalar if self.values.contains_key(&node) => Ok(()),
            DeclarationOp::Scalar => Err(malformed()),
            DeclarationOp::Allocate => self.allocate(node),
        }
    }

    pub(super) fn constant_value(&mut self, node: Entity, op: ConstantOp) -> Result<(), Diagnostic> {
        let number = match op {
            ConstantOp::Register(constant) => {
                let ty = self.get::<ValueType>(node)?;
                let Some(dtype) = ty.dtype else {
                    self.set_value(node, ty.dims.clone(), ValueContent::Untyped(constant));
                    return Ok(());
                };
                let tensor = Tensor::splat(&self.shape(&ty.dims)?, dtype, constant)?;
                return self.set_tensor(node, (ty.dims.clone(), tensor));
            }
            ConstantOp::SelfIndex(dim) => {
                let places = self.places_along(dim)?;
                return self.set_tensor(node, (SmallVec::from_slice(&[dim]), places));
            }
            ConstantOp::Size(dim) => self.size(dim)? as i32,
            ConstantOp::WorkgroupId(axis) => self.workgroup.along(axis) as i32,
            ConstantOp::Iteration(dim) => {
                let within = self.loops.iter().find(|l| l.dim == dim).ok_or_else(malformed)?;
                (within.start / within.tile) as i32
            }
        };
        self.set_tensor(node, (Dims::new(), Tensor::scalar(number)))
    }

    pub(super) fn access(
        &mut self,
        node: Entity,
        op: AccessOp,
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let mapping = self.world.get::<Mapping>(node);
        match (op.movement(), operands) {
            (DataMovement::Load, [values @ .., memory]) if let Some(mapping) = mapping => {
                self.read_mapped(node, mapping, values, *memory)
            }
            (DataMovement::Load, &[memory]) => match self.world.get::<TurnedUnits>(node) {
                Some(turned) => self.read_turned(node, turned, memory),
                None => self.read(node, memory),
            },
            (DataMovement::Store, &[value, ref values @ .., log]) if self.is_untyped_log(log) => {
                self.log(mapping, value, values, log)
            }
            (DataMovement::Store, &[value, ref values @ .., memory]) if let Some(mapping) = mapping => {
                self.write_mapped(mapping, value, values, memory)
            }
            (DataMovement::Store, &[value, memory]) => self.write(value, memory),
            (DataMovement::Update(op), [values @ .., memory]) => self.atomic(node, op, values, *memory),
            // Passes make it of nodes that have places.
            (DataMovement::Load | DataMovement::Store | DataMovement::Update(_) | DataMovement::Copy, _) => {
                Err(malformed())
            }
        }
    }

    pub(super) fn element_wise(
        &mut self,
        node: Entity,
        op: ElementWiseOp,
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let computed = match (op, operands) {
            (ElementWiseOp::Broadcast, &[x]) => {
                let dims = self.get::<ValueType>(node)?.dims.clone();
                let value = self.value(x)?;
                let tensor = self.align(&value.dims, self.tensor(value)?, &dims)?;
                self.set_value(node, dims, ValueContent::Tensor(tensor));
                return Ok(());
            }
            (ElementWiseOp::Decode(decoding), &[codes, scales]) => {
                self.decode(node, decoding, codes, scales)?
            }
            (ElementWiseOp::Convert(op), &[x]) => self.converted(node, op, x)?,
            _ => self.arithmetic(op, operands)?,
        };
        self.set_tensor(node, computed)
    }

    fn converted(&self, node: Entity, op: Conversion, x: Entity) -> Computed {
        let to = self.get::<ValueType>(node)?.dtype.ok_or_else(malformed)?;
        if op == Conversion::Bitcast
            && let Some(repacked) = self.repacked(x, to)?
        {
            return Ok(repacked);
        }
        let (dims, [x]) = self.broadcast([x], 0)?;
        Ok((dims, x.map(|x| arithmetic::convert(op, x, to))?))
    }

    fn arithmetic(&self, op: ElementWiseOp, operands: &[Entity]) -> Computed {
        match (op, operands) {
            (ElementWiseOp::Unary(op), &[x]) => {
                let (dims, [x]) = self.broadcast([x], 0)?;
                Ok((dims, x.map(|x| arithmetic::unary(op, x))?))
            }
            (ElementWiseOp::Encode(dtype), &[x]) => {
                let (dims, [x]) = self.broadcast([x], 0)?;
                Ok((dims, x.map(|x| encoding::encode(x, dtype))?))
            }
            (ElementWiseOp::Binary(op), &[x, y]) => {
                let (dims, [x, y]) = self.broadcast([x, y], 0)?;
                Ok((dims, x.map(|x| arithmetic::binary(op, x, y.data()))?))
            }
            (ElementWiseOp::Ternary(op), &[x, y, z]) => {
                let (dims, [x, y, z]) = self.broadcast([x, y, z], 0)?;
                Ok((dims, x.map(|x| arithmetic::ternary(op, x, y.data(), z.data()))?))
            }
            (ElementWiseOp::Compare(predicate), &[x, y]) => {
                let (dims, [x, y]) = self.broadcast([x, y], 0)?;
                Ok((dims, x.map(|x| arithmetic::comparison(predicate, x, y.data()))?))
            }
            (ElementWiseOp::Select, &[condition, yes, no]) => {
                // The condition has a dtype of its own, which literals among the others do not take.
                let (dims, [condition, yes, no]) = self.broadcast([condition, yes, no], 1)?;
                Ok((dims, condition.map(|c| arithmetic::select(c, yes.data(), no.data()))?))
            }
            _ => Err(malformed()),
        }
    }

    /// A product, with scales if there are operands for them.
    pub(super) fn product(&self, op: ContractionOp, operands: &[Entity]) -> Computed {
        match *operands {
            [lhs, rhs, acc] => self.mma(op, [lhs, rhs, acc], None),
            [lhs, rhs, acc, lhs_scale, rhs_scale] => {
                self.mma(op, [lhs, rhs, acc], Some([lhs_scale, rhs_scale]))
            }
            _ => Err(malformed()),
        }
    }

    pub(super) fn along_dim(&self, op: AlongDimOp, operands: &[Entity]) -> Computed {
        let &[x] = operands else { return Err(malformed()) };
        match op {
            AlongDimOp::Reduce(reduction) => self.reduce(reduction, x),
            AlongDimOp::Scan(scan) => self.scan(scan, x),
            AlongDimOp::Sort(sort) => self.sort(sort, x),
        }
    }

    /// Folds a value along a dimension; elements beyond the end of the dimension take no part.
    fn reduce(&self, reduction: Reduction, value: Entity) -> Result<(Dims, Tensor), Diagnostic> {
        let value = self.value(value)?;
        let tensor = self.tensor(value)?;
        let at = value.dims.iter().position(|&dim| dim == reduction.dim).ok_or_else(|| {
            let (word, dims) = (reduction.op.row().word, self.names(&value.dims));
            Diagnostic::invalid(format!("{word} along {} of a value {dims}", self.name(reduction.dim)))
                .help("reduce along a dimension that the value has")
        })?;
        let (mut dims, mut shape) = (value.dims.clone(), tensor.shape().to_vec());
        let extent = shape[at];
        let taken = self.existing(reduction.dim)?;
        let outer = shape[..at].iter().product();
        let inner = shape[at + 1..].iter().product();
        dims.remove(at);
        shape.remove(at);
        let fold = reduce::Fold { outer, extent, taken, inner };
        let data = reduce::reduce(reduction.op, tensor.data(), fold).map_err(Diagnostic::invalid)?;
        Ok((dims, Tensor::filled(shape, data)))
    }
}
