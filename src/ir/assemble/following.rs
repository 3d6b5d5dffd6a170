//! Dimensions that go with others: where a memory has one, accesses without coordinates take the place along
//! it that an expression over the dimensions of the value says. So a dimension of few heads goes with one of
//! many, and a dimension of experts with the tile of tokens. What is appended are accesses at coordinates,
//! and no later part of the compiler knows of it.

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::KernelAssembler;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::{SymExpr, SymNode, SymOp, Symbol};
use crate::ir::layout::Dim;
use crate::ir::mapping::{Mapping, check_expression, is_value, operand_number, operand_symbol};
use crate::ir::node::*;
use crate::ir::op::OpClass;

/// A dimension that goes with others.
pub(in crate::ir) struct FollowingDim {
    pub(in crate::ir) symbol: Symbol,
    /// The place along it; values in it are operand symbols.
    pub(in crate::ir) place: SymExpr,
    pub(in crate::ir) values: SmallVec<[Entity; 2]>,
    /// The dimensions that values have in place of it.
    pub(in crate::ir) dims: SmallVec<[Symbol; 2]>,
    pub(in crate::ir) origin: Origin,
}

/// What an access without coordinates of a memory becomes.
struct FollowedAccess {
    mapping: Mapping,
    values: SmallVec<[Entity; 2]>,
    /// Dimensions of the value.
    dims: SmallVec<[Symbol; 4]>,
}

impl KernelAssembler {
    /// From here on a dimension goes with others.
    ///
    /// # Errors
    /// It is a number, goes with others already, or with itself.
    pub(in crate::ir) fn follow(&mut self, following: FollowingDim) -> Result<(), Diagnostic> {
        let FollowingDim { symbol, ref place, ref values, ref dims, .. } = following;
        check_expression(place, values.len(), "the place along a dimension")?;
        self.dim(symbol)?;
        if symbol.value().is_some() {
            let text = format!("{symbol} is a number, and follows other dimensions");
            return Err(Diagnostic::invalid(text).help("give the dimension a name"));
        }
        if self.following(symbol).is_some() {
            let text = format!("{symbol} follows other dimensions twice");
            return Err(Diagnostic::invalid(text).help("keep one of the statements"));
        }
        let dims = self.dims(dims)?;
        let around = dims.iter().filter_map(|&dim| self.dims.0.get(dim).copied());
        let own = around.into_iter().chain(place_symbols(place));
        if let Some(other) = own.into_iter().find(|&other| other == symbol || self.following(other).is_some())
        {
            let text = format!("{symbol} follows {other}, which follows others itself");
            return Err(Diagnostic::invalid(text).help("name the dimensions that values have"));
        }
        self.following.push(following);
        Ok(())
    }

    /// How a dimension goes with others, if it does.
    pub(in crate::ir) fn following(&self, symbol: Symbol) -> Option<&FollowingDim> {
        self.following.iter().find(|following| following.symbol == symbol)
    }

    /// Appends an access without coordinates: `front` are the values that it writes or joins.
    ///
    /// # Errors
    /// It writes along a dimension that goes with others, where several elements would meet.
    pub(in crate::ir) fn access(
        &mut self,
        origin: Origin,
        op: Op,
        front: &[Entity],
        memory: Entity,
    ) -> Result<Entity, Diagnostic> {
        let Some(FollowedAccess { mapping, values, dims }) = self.followed(memory) else {
            let operands: SmallVec<[Entity; 4]> = front.iter().copied().chain([memory]).collect();
            return Ok(match self.lies_apart(memory) {
                false => self.push(origin, op, &operands, ValueType::unknown()),
                true => self.push_at_own_place(origin, op, &operands, memory),
            });
        };
        let ty = match op.loads() {
            true => ValueType { dims: self.dims(&dims)?, dtype: None },
            false => ValueType::unknown(),
        };
        if op.stores()
            && let Some((symbol, dim)) = self.meets(memory, &mapping)
        {
            let text = format!(
                "several elements along {dim} would be written to one place along {symbol}, which follows it"
            );
            return Err(Diagnostic::invalid(text)
                .note(format!("{symbol} follows {dim} here"), self.follows_at(symbol))
                .help(format!("write to a memory that has {dim}, or update this one atomically")));
        }
        let operands: SmallVec<[Entity; 4]> = front.iter().copied().chain(values).chain([memory]).collect();
        let node = self.push(origin, op, &operands, ty);
        self.map(node, mapping);
        Ok(node)
    }

    /// The coordinates of accesses to a memory that has dimensions which go with others.
    fn followed(&self, memory: Entity) -> Option<FollowedAccess> {
        if self.following.is_empty() {
            return None;
        }
        let own = self.dims_of(memory);
        own.iter().find_map(|&symbol| self.following(symbol))?;
        let mut access = FollowedAccess {
            mapping: Mapping(SmallVec::new()),
            values: SmallVec::new(),
            dims: SmallVec::new(),
        };
        for &symbol in &own {
            let Some(following) = self.following(symbol) else {
                access.mapping.0.push(symbol.into());
                if !access.dims.contains(&symbol) {
                    access.dims.push(symbol);
                }
                continue;
            };
            let numbers: SmallVec<[usize; 2]> = following
                .values
                .iter()
                .map(|value| {
                    access.values.iter().position(|known| known == value).unwrap_or_else(|| {
                        access.values.push(*value);
                        access.values.len() - 1
                    })
                })
                .collect();
            let renumbered = |symbol: Symbol| {
                let number = numbers.get(operand_number(symbol)?)?;
                Some(operand_symbol(*number).into())
            };
            access.mapping.0.push(following.place.replaced(&renumbered));
            let new =
                following.dims.iter().filter(|&&dim| !own.contains(&dim) && !access.dims.contains(&dim));
            let new: SmallVec<[Symbol; 2]> = new.copied().collect();
            access.dims.extend(new);
        }
        Some(access)
    }

    /// A dimension that goes with another one along which several elements of a value have the same place in
    /// a memory, and that one: it is no coordinate itself, nor one that a number was added to.
    fn meets(&self, memory: Entity, mapping: &Mapping) -> Option<(Symbol, Symbol)> {
        let following = self.dims_of(memory).into_iter().filter_map(|symbol| self.following(symbol));
        let mut pairs =
            following.flat_map(|following| following.dims.iter().map(|&dim| (following.symbol, dim)));
        pairs.find(|&(_, dim)| !mapping.0.iter().any(|coordinate| is_shift_of(coordinate, dim)))
    }

    /// Checks what a kernel does with dimensions that go with others: values do not have them.
    pub(super) fn check_following(&self, nodes: &[Entity]) -> Result<(), Diagnostic> {
        if self.following.is_empty() {
            return Ok(());
        }
        for (constraint, origin) in &self.constraints.0 {
            if let Some(symbol) = constraint.constrained().and_then(SymExpr::as_dimension)
                && self.following(symbol).is_some()
            {
                return Err(self.of_values(symbol, "has a constraint of its own", Origin(*origin)));
            }
        }
        for &node in nodes {
            self.check_node(node)?;
            if let Some(Body(inner)) = self.world.get::<Body>(node) {
                self.check_following(inner)?;
            }
        }
        Ok(())
    }

    fn check_node(&self, node: Entity) -> Result<(), Diagnostic> {
        let (Some(&op), Some(&origin)) = (self.world.get::<Op>(node), self.world.get::<Origin>(node)) else {
            return Ok(());
        };
        let symbol = |dim: &Dim| self.dims.0.get(*dim).copied();
        let follows =
            |dims: &[Dim]| dims.iter().filter_map(symbol).find(|&symbol| self.following(symbol).is_some());
        if op.is_access() && self.world.get::<Mapping>(node).is_none() {
            let memory = self.world.get::<Operands>(node).and_then(|operands| operands.0.last().copied());
            let dims = memory.and_then(|memory| self.world.get::<ValueType>(memory));
            if let Some(symbol) = dims.and_then(|ty| follows(&ty.dims)) {
                let fault = self.of_values(symbol, "is accessed before it follows others", origin);
                return Err(
                    fault.help("state `follow` above the accesses of memories that have the dimension")
                );
            }
        }
        let own: SmallVec<[Dim; 4]> = match op {
            Op::Iterate(dim) | Op::SelfIndex(dim) => SmallVec::from_slice(&[dim]),
            Op::Reduce(reduction) => SmallVec::from_slice(&[reduction.dim]),
            Op::Scan(scan) => SmallVec::from_slice(&[scan.dim]),
            _ if op.row().class == OpClass::Declaration => SmallVec::new(),
            _ => self
                .world
                .get::<ValueType>(node)
                .map(|ty| ty.dims.iter().copied().collect())
                .unwrap_or_default(),
        };
        match follows(&own) {
            Some(symbol) => Err(self.of_values(symbol, "is a dimension of a value", origin)),
            None => Ok(()),
        }
    }

    fn of_values(&self, symbol: Symbol, what: &str, origin: Origin) -> Diagnostic {
        let dims = self.following(symbol).map(|following| following.dims.iter().map(|dim| dim.to_string()));
        let dims = dims.into_iter().flatten().collect::<Vec<_>>().join(", ");
        Diagnostic::invalid(format!("{symbol} {what}"))
            .at(self.location_of(origin))
            .note(format!("it follows [{dims}] here"), self.follows_at(symbol))
            .help(format!("memories alone have {symbol}: use [{dims}] in place of it"))
    }

    fn follows_at(&self, symbol: Symbol) -> Option<Location> {
        self.location_of(self.following(symbol)?.origin)
    }
}

/// The symbols of an expression that are not values.
fn place_symbols(place: &SymExpr) -> SmallVec<[Symbol; 4]> {
    let mut found = SmallVec::new();
    place.visit(&mut |symbol| {
        if !is_value(symbol) {
            found.push(symbol);
        }
    });
    found
}

/// Whether an expression is a dimension, or one that a number was added to or subtracted from.
fn is_shift_of(e: &SymExpr, dim: Symbol) -> bool {
    match e.node() {
        SymNode::Symbol(symbol) => *symbol == dim,
        SymNode::Operation(SymOp::Add, a, b) => {
            (is_shift_of(a, dim) && b.as_integer().is_some())
                || (a.as_integer().is_some() && is_shift_of(b, dim))
        }
        SymNode::Operation(SymOp::Sub, a, b) => is_shift_of(a, dim) && b.as_integer().is_some(),
        _ => false,
    }
}
