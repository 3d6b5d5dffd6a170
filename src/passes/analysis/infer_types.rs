//! Type inference: one forward walk gives every value its dims and dtype, by the rules of types, and reports
//! operands that do not fit together.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::arrival;
use super::mapped_accesses::with_sizes;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::kernel::{DimTable, KernelName, Locations};
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::op::{CarriedOp, DTypes, NodeRole, OpClass, OpFamily, ResultType};
use crate::ir::type_rules::{TypeFault, TypeRules, TypedAccess, TypedNode, WrittenBy};
use crate::ir::types::DType;
use crate::ir::walk::{self, NodeList};
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, Settings};
use crate::passes::options::Deny;

type Types<'w, 's> = Query<'w, 's, &'static mut ValueType>;
type TypedNodes<'w, 's> = Query<'w, 's, (&'static Op, &'static Operands, &'static Origin)>;

/// The types so far, and what rules need beside them.
struct Inference<'w, 's, 'k> {
    nodes: TypedNodes<'w, 's>,
    types: Types<'w, 's>,
    mappings: Query<'w, 's, &'static mut Mapping>,
    rules: TypeRules<'k>,
    locations: &'k Locations,
    geometry: &'k Geometry,
    settings: &'k Settings,
}

/// The pass itself; see the module.
pub(crate) fn infer_types(
    kernel: Single<(&Body, &DimTable, &Locations, &Geometry, &Settings), With<KernelName>>,
    nodes: TypedNodes,
    bodies: Query<&Body>,
    yields: Query<&Yields>,
    types: Types,
    mappings: Query<&'static mut Mapping>,
) -> PassResult {
    let (body, dims, locations, geometry, settings) = *kernel;
    let mut order = NodeList::new();
    walk::preorder(body, &|node| bodies.get(node).ok(), &mut order);
    let rules = TypeRules { dims, written_by: WrittenBy::Author };
    let mut inference = Inference { nodes, types, mappings, rules, locations, geometry, settings };
    for &node in &order {
        let op = inference.op(node)?;
        if op.row().class == OpClass::Region {
            inference.region(node, bodies.get(node)?)?;
        } else if op.is_access() {
            inference.access(node)?;
        } else {
            inference.value(node)?;
        }
    }
    for &node in &order {
        if inference.op(node)?.row().class == OpClass::Region {
            inference.handed_on(node, yields.get(node)?)?;
        }
    }
    let Inference { nodes, types, mappings, .. } = &inference;
    if settings.0.denies(Deny::Nondeterministic) {
        arrival::judge(&order, nodes, types, &yields, &mappings.as_readonly(), locations)?;
    }
    match outside_of_loop(body, geometry, nodes, &bodies, types, &mut Vec::new())? {
        Some((node, dim)) => Err(inference.ambiguous(node, dim)?),
        None => Ok(()),
    }
}

impl<'k> Inference<'_, '_, 'k> {
    fn op(&self, node: Entity) -> Result<Op, Diagnostic> {
        Ok(*self.nodes.get(node)?.0)
    }

    fn at(&self, node: Entity) -> Option<Location> {
        self.locations.get(self.nodes.get(node).ok()?.2.0)
    }

    /// A fault with the place of its node.
    fn told<T>(&self, node: Entity, result: Result<T, TypeFault>) -> Result<T, Diagnostic> {
        result.map_err(|fault| fault.diagnostic.at(self.at(node)))
    }

    /// Judges the condition of a region. The values that it carries have the types of the initial ones, which
    /// are known by now.
    fn region(&mut self, node: Entity, body: &Body) -> PassResult {
        let (&op, operands, _) = self.nodes.get(node)?;
        if let Some(condition) = op.condition(&operands.0) {
            self.told(node, self.rules.condition(op, self.types.get(condition)?))?;
        }
        for &argument in &body.0 {
            if let OpFamily::Carried(CarriedOp::IterArg(number)) = self.op(argument)?.family() {
                let initial = self.types.get(self.nodes.get(node)?.1.at(number as usize)?)?;
                let ty = self.told(node, self.rules.carried(op, initial))?;
                *self.types.get_mut(argument)? = ty;
            }
        }
        Ok(())
    }

    /// Checks what a region hands on.
    fn handed_on(&self, node: Entity, yields: &Yields) -> PassResult {
        let (&op, operands, _) = self.nodes.get(node)?;
        let values = op.handed_on(&yields.0);
        if let Some(&again) = yields.0.get(values.len()) {
            self.told(node, self.rules.condition(op, self.types.get(again)?))?;
        }
        for (&initial, &next) in op.initial(&operands.0).iter().zip(values) {
            let (initial, next) = (self.types.get(initial)?, self.types.get(next)?);
            self.told(node, self.rules.handed_on(op, initial, next))?;
        }
        Ok(())
    }

    /// Infers the type of the value of an access, and enters known sizes into its coordinates.
    fn access(&mut self, node: Entity) -> PassResult {
        let (&op, operands, origin) = self.nodes.get(node)?;
        let (origin, is_mapped) = (origin.0, self.mappings.contains(node));
        let ty = match self.is_log(operands)? {
            // The slot alone is written; `type_logs` checks the rest.
            true if op.stores() && is_mapped => self.types.get(operands.at(0)?)?.clone(),
            true if op.stores() => return Ok(()),
            true => {
                let fault = Diagnostic::invalid("a log is read or updated").at(self.at(node));
                return Err(fault.help("logs are written; keep a memory to read it again"));
            }
            false => match self.result(node)? {
                Some(ty) => ty,
                None => return Ok(()),
            },
        };
        if let Ok(mut mapping) = self.mappings.get_mut(node) {
            let known = with_sizes(&mapping, &ty.dims, self.geometry, &self.settings.0);
            *mapping = known.map_err(|fault| fault.at(self.locations.get(origin)))?;
        }
        if op.row().gives == NodeRole::Value {
            *self.types.get_mut(node)? = ty;
        }
        Ok(())
    }

    fn value(&mut self, node: Entity) -> PassResult {
        if let Some(ty) = self.result(node)? {
            *self.types.get_mut(node)? = ty;
        }
        Ok(())
    }

    /// True if an access is one of a log that has no type yet.
    fn is_log(&self, operands: &Operands) -> Result<bool, Diagnostic> {
        let memory = operands.last()?;
        Ok(self.types.get(memory)?.dtype.is_none() && self.op(memory)? == Op::Memory)
    }

    /// The type of what a node computes or accesses, after constants without a dtype among its operands have
    /// got one.
    fn result(&mut self, node: Entity) -> Result<Option<ValueType>, Diagnostic> {
        let (&op, operands, _) = self.nodes.get(node)?;
        let operands = NodeList::from_slice(&operands.0);
        self.settle(node, op, &operands)?;
        let mut types: SmallVec<[&ValueType; 5]> = SmallVec::new();
        if let OpFamily::Carried(carried) = op.family() {
            // The arguments of a region have got theirs from it.
            let CarriedOp::LoopResult(number) = carried else { return Ok(None) };
            let (_, initial, _) = self.nodes.get(operands[0])?;
            types.push(self.types.get(initial.at(number as usize)?)?);
        } else {
            for &operand in &operands {
                types.push(self.types.get(operand)?);
            }
        }
        let mapping = self.mappings.get(node).ok().filter(|_| op.is_access());
        let in_lds = match operands.last() {
            Some(&memory) if op.is_access() => self.op(memory)? == Op::Allocate,
            _ => false,
        };
        let access = TypedAccess { mapping, turned: None, in_lds };
        let stated = self.types.get(node)?;
        self.told(node, self.rules.result(&TypedNode { op, stated, operands: types, access }))
    }

    /// Gives constants without a dtype among the operands of a node the one that follows from the others.
    fn settle(&mut self, node: Entity, op: Op, operands: &[Entity]) -> PassResult {
        let row = op.row();
        if let ResultType::Joined | ResultType::Condition = row.result {
            self.settle_numbers(node, operands, row.operands)
        } else if let (ResultType::Chosen, [_, numbers @ ..]) = (row.result, operands) {
            self.settle_numbers(node, numbers, row.operands)
        } else if let (true, [values @ .., memory]) = (op.is_access(), operands) {
            let values = values.iter().take(op.values_in_front());
            values.copied().try_for_each(|value| self.adopt(node, value, *memory))
        } else {
            Ok(())
        }
    }

    /// The same of numbers that have one dtype.
    fn settle_numbers(&mut self, node: Entity, operands: &[Entity], admit: DTypes) -> PassResult {
        let is_settled = |&operand: &Entity| {
            Ok::<bool, Diagnostic>(self.types.get(operand)?.dtype.is_some_and(|dtype| dtype != DType::I1))
        };
        if operands.iter().map(is_settled).collect::<Result<SmallVec<[bool; 4]>, _>>()?.iter().all(|&s| s) {
            return Ok(());
        }
        // A number takes the dtype of any of the others.
        for &scalar in operands {
            for &other in operands {
                self.adopt(node, scalar, other)?;
            }
        }
        for pair in operands.windows(2) {
            let &[a, b] = pair else { continue };
            self.adopt(node, b, a)?;
            for scalar in [a, b] {
                if self.types.get(scalar)?.dtype.is_none()
                    && let Some(constant) = self.op(scalar)?.constant()
                {
                    // Two bare numbers.
                    let dtype = constant.dtype_alone();
                    self.told(node, self.rules.holds(dtype, constant))?;
                    self.types.get_mut(scalar)?.dtype = Some(dtype);
                }
            }
            let is_condition = |ty: &ValueType| ty.dtype == Some(DType::I1);
            if admit.admit(DType::I1) && is_condition(self.types.get(a)?) && is_condition(self.types.get(b)?)
            {
                for scalar in [a, b] {
                    if let Some(constant) = self.op(scalar)?.constant() {
                        self.told(node, self.rules.holds(DType::I1, constant))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives the untyped scalar `scalar` the dtype of `other`.
    fn adopt(&mut self, node: Entity, scalar: Entity, other: Entity) -> PassResult {
        if self.types.get(scalar)?.dtype.is_none()
            && let Some(constant) = self.op(scalar)?.constant()
        {
            let ty = self.types.get(other)?;
            let dtype = ty.dtype;
            if let (Constant::Float(value), Some(dtype)) = (constant, dtype)
                && !dtype.is_float()
                && dtype != DType::I1
            {
                let text = format!("the constant {value:?} meets {}", self.rules.show(ty));
                let fault = Diagnostic::invalid(text).at(self.at(node));
                return Err(fault.help("use a constant without a fraction, or cast to a floating dtype"));
            }
            if let Some(dtype) = dtype.filter(|&dtype| dtype != DType::I1) {
                self.told(node, self.rules.holds(dtype, constant))?;
            }
            self.types.get_mut(scalar)?.dtype = dtype;
        }
        Ok(())
    }

    /// The fault of a node whose part of a dimension is no certain one; see [`outside_of_loop`].
    fn ambiguous(&self, node: Entity, dim: Dim) -> Result<Diagnostic, Diagnostic> {
        let name = self.rules.dims.name(dim);
        let op = self.op(node)?;
        let (text, help) = if op.row().class == OpClass::Region {
            let help = format!(
                "in there the part of {name} that a value has would be either loop's: give the inner one a \
                 dimension of its own, of the same size, and read at its places, `read a at [{name}2] as \
                 [{name}2]`"
            );
            (format!("a loop over {name} is inside a loop over {name}"), help)
        } else if let Op::Iteration(_) = op {
            let text = format!("the iteration of a loop over {name} outside of such a loop");
            (text, "use it inside of the loop".to_owned())
        } else {
            let text = format!("{name} has a loop tile, and this value has {name} outside of a loop over it");
            (text, "use it inside of a loop over the dimension, or remove the loop tile".to_owned())
        };
        Ok(Diagnostic::invalid(text).at(self.at(node)).help(help))
    }
}

/// The first value that has a tiled dimension where no loop walks along it, or the first loop over a
/// dimension that a loop around it already walks along: there it is ambiguous which tile is meant.
fn outside_of_loop(
    body: &Body,
    geometry: &Geometry,
    nodes: &TypedNodes,
    bodies: &Query<&Body>,
    types: &Types,
    loops: &mut Vec<Dim>,
) -> Result<Option<(Entity, Dim)>, Diagnostic> {
    for &node in &body.0 {
        let op = nodes.get(node)?.0;
        if op.runs_under_condition() {
            let found = outside_of_loop(bodies.get(node)?, geometry, nodes, bodies, types, loops)?;
            if found.is_some() {
                return Ok(found);
            }
        } else if let Some(axis) = op.over_tiles() {
            if loops.contains(&axis) {
                return Ok(Some((node, axis)));
            }
            loops.push(axis);
            let found = outside_of_loop(bodies.get(node)?, geometry, nodes, bodies, types, loops)?;
            loops.pop();
            if found.is_some() {
                return Ok(found);
            }
        } else if op.row().class != OpClass::Declaration {
            if let Op::Iteration(dim) = *op
                && !loops.contains(&dim)
            {
                return Ok(Some((node, dim)));
            }
            let outside =
                |d: &&Dim| geometry.dim(**d).tiling.is_some() && !loops.contains(&geometry.loop_dim(**d));
            if let Some(&dim) = types.get(node)?.dims.iter().find(outside) {
                return Ok(Some((node, dim)));
            }
        }
    }
    Ok(None)
}
