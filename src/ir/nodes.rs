//! Nodes as passes see and make them: one view, one bundle, and the faults of nodes that lack something.
//!
//! A pass takes `Query<Node>` in its parameters and asks it for the nodes that it visits; a pass that has the
//! whole world calls [`node`]. Either way a node that lacks what every node has is a fault of the compiler,
//! never a default.

use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use bevy_ecs::query::{QueryData, QueryEntityError};

use super::diagnostic::Diagnostic;
use super::facts::Expansion;
use super::node::{Body, Op, Operands, Origin, ValueType, Yields};

/// The components of every node.
#[derive(QueryData)]
pub(crate) struct Node {
    /// What it does.
    pub op: &'static Op,
    /// Nodes that it uses.
    pub operands: &'static Operands,
    /// Type of its result.
    pub ty: &'static ValueType,
    /// Where the author wrote it.
    pub origin: &'static Origin,
}

impl NodeItem<'_, '_> {
    /// The operand at a position.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn operand(&self, at: usize) -> Result<Entity, Bug> {
        self.operands.at(at)
    }

    /// The memory that an access touches: its last operand.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn memory(&self) -> Result<Entity, Bug> {
        self.operands.last()
    }
}

impl Operands {
    /// The operand at a position.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn at(&self, at: usize) -> Result<Entity, Bug> {
        self.0.get(at).copied().ok_or(Bug::new("an operation lacks an operand"))
    }

    /// The last operand.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn last(&self) -> Result<Entity, Bug> {
        self.0.last().copied().ok_or(Bug::new("an operation lacks its operands"))
    }
}

impl Yields {
    /// The value that becomes the carried value of a number.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn at(&self, number: usize) -> Result<Entity, Bug> {
        self.0.get(number).copied().ok_or(Bug::new("a loop hands on fewer values than it carries"))
    }
}

impl Body {
    /// The node at a position.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn at(&self, at: usize) -> Result<Entity, Bug> {
        self.0.get(at).copied().ok_or(Bug::new("a loop does not begin with what it carries"))
    }

    /// Puts other nodes in.
    pub(crate) fn set(&mut self, nodes: &[Entity]) {
        self.0.clear();
        self.0.extend_from_slice(nodes);
    }
}

/// The components of an expanded node: everything that schedules and lowering ask of each node of a kernel,
/// found in one step where single components would take six.
#[derive(QueryData)]
#[query_data(derive(Copy, Clone))]
pub(crate) struct ExpandedNode {
    /// What it does.
    pub(crate) op: &'static Op,
    /// Nodes that it uses.
    pub(crate) operands: &'static Operands,
    /// Type of its result.
    pub(crate) ty: &'static ValueType,
    /// Where the author wrote it.
    pub(crate) origin: &'static Origin,
    /// What it is a piece of; memories and the like, which are not taken to pieces, have none.
    pub(crate) expansion: Option<&'static Expansion>,
    /// Its nodes, if it is a region.
    pub(crate) body: Option<&'static Body>,
}

/// All nodes of a kernel that was expanded.
pub(crate) type ExpandedNodes<'w, 's> = Query<'w, 's, ExpandedNode>;

impl ExpandedNodeItem<'_, '_> {
    /// A copy of the node's own parts.
    pub(crate) fn bundle(&self) -> NodeBundle {
        NodeBundle::of(self.op, self.operands, self.ty, self.origin)
    }

    /// What the node is a piece of.
    ///
    /// # Errors
    /// If it is not expanded.
    pub(crate) fn expansion(&self) -> Result<Expansion, Bug> {
        self.expansion.copied().ok_or(Bug::new("a node that was not expanded"))
    }

    /// The memory that an access touches: its last operand.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn memory(&self) -> Result<Entity, Bug> {
        self.operands.last()
    }
}

/// A broken promise of the compiler itself. Small, because every function that looks at a node may return it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Bug(&'static str);

impl Bug {
    /// A promise that does not hold.
    pub const fn new(what: &'static str) -> Bug {
        Bug(what)
    }
}

impl From<Bug> for Diagnostic {
    fn from(bug: Bug) -> Diagnostic {
        Diagnostic::bug(bug.0)
    }
}

impl From<QueryEntityError> for Diagnostic {
    fn from(error: QueryEntityError) -> Diagnostic {
        Diagnostic::bug(format!("a pass lost a node: {error}"))
    }
}

/// The components of a new node. Passes make every node by [`NodeBundle::spawn`], many at once by
/// [`NodeBundle::spawn_all`], or by commands from such a bundle.
#[derive(Bundle, Clone)]
pub(crate) struct NodeBundle {
    /// What it does.
    pub op: Op,
    /// Nodes that it uses.
    pub operands: Operands,
    /// Type of its result.
    pub ty: ValueType,
    /// Where the author wrote it, or the operation that it was made for.
    pub origin: Origin,
}

impl NodeBundle {
    /// A copy of a node's own parts.
    fn of(&op: &Op, operands: &Operands, ty: &ValueType, &origin: &Origin) -> NodeBundle {
        NodeBundle { op, operands: operands.clone(), ty: ty.clone(), origin }
    }

    /// A node that uses no values and has none.
    pub(crate) fn effect(op: Op, origin: Origin) -> NodeBundle {
        NodeBundle { op, operands: Operands::default(), ty: ValueType::unknown(), origin }
    }

    /// Spawns the node, with further facts; it is in no body yet.
    pub(crate) fn spawn(self, world: &mut World, facts: impl Bundle) -> Entity {
        world.spawn((self, facts)).id()
    }

    /// Makes many nodes with one further fact each, which costs a third of making them one by one.
    pub(crate) fn spawn_all<C: Component, I>(
        world: &mut World,
        nodes: I,
    ) -> impl Iterator<Item = Entity> + use<'_, C, I>
    where
        I: ExactSizeIterator<Item = (NodeBundle, C)>,
    {
        world.spawn_batch(nodes)
    }
}

impl NodeItem<'_, '_> {
    /// A copy of the node's own parts.
    pub(crate) fn bundle(&self) -> NodeBundle {
        NodeBundle::of(self.op, self.operands, self.ty, self.origin)
    }
}

/// A node of a world.
///
/// # Errors
/// If it is not a node.
pub(crate) fn node(world: &World, node: Entity) -> Result<NodeItem<'_, 'static>, Bug> {
    let node = world.get_entity(node).map_err(|_| Bug::new("a pass lost a node"))?;
    node.get_components::<Node>().map_err(|_| Bug::new("a node lacks what every node has"))
}

/// What a node does.
///
/// # Errors
/// If it is not a node.
pub(crate) fn op(world: &World, node: Entity) -> Result<Op, Bug> {
    world.get::<Op>(node).copied().ok_or(Bug::new("a node without operation"))
}

/// A component that a node, or the kernel entity, must have at this point.
///
/// # Errors
/// If it is missing: `what` says so.
pub(crate) fn fact<'w, C: Component>(
    world: &'w World,
    node: Entity,
    what: &'static str,
) -> Result<&'w C, Bug> {
    world.get::<C>(node).ok_or(Bug::new(what))
}

/// The same, to be changed.
///
/// # Errors
/// If it is missing: `what` says so.
pub(crate) fn fact_mut<'w, C: Component<Mutability = Mutable>>(
    world: &'w mut World,
    node: Entity,
    what: &'static str,
) -> Result<Mut<'w, C>, Bug> {
    world.get_mut::<C>(node).ok_or(Bug::new(what))
}

/// The nodes of a region.
///
/// # Errors
/// If it is not a region.
pub(crate) fn body<'w>(bodies: &'w Query<&Body>, region: Entity) -> Result<&'w [Entity], Bug> {
    bodies.get(region).map(|body| &body.0[..]).map_err(|_| Bug::new("a region without body"))
}
