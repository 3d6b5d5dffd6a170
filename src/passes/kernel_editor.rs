//! The one way in which a pass rewrites nodes: an editor that goes through the regions of the kernel with a
//! step for each node.
//!
//! A pass that only reads states its data as queries. A step that makes nodes and looks at them again cannot,
//! and gets an editor in place of the world, the kernel entity, and the list of what it has made so far:
//! - it sees a node by one view ([`KernelEditor::node`]), and what the kernel has as a whole by its type
//!   ([`KernelEditor::kernel`]);
//! - what it adds has the origin of the node at hand and comes in front of it, or after it once the step has
//!   put that down ([`KernelEditor::put_down`]);
//! - LDS buffers come in front of everything else when the rewriting is over.
//!
//! Methods fail where a node or the kernel lacks what it has to have. Why there is an editor:
//! docs/decisions/046-kernel-editor.md.

use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::facts::{Expressions, Geometry, Settings};
use super::{PassResult, kernel_entity};
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::ExprArena;
use crate::ir::kernel::{Constraints, DimTable, Locations};
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{self, Bug, NodeBundle, NodeItem};
use crate::ir::types::AddressSpace;
use crate::ir::walk::{self, NodeList};

/// A component of the kernel entity that no kernel lacks once its sizes are bound.
pub(crate) trait KernelFact: Component {
    /// The fault of a kernel without it.
    const MISSING: &'static str;
}

macro_rules! kernel_facts {
    ($($fact:ident $missing:literal;)*) => {
        $(impl KernelFact for $fact { const MISSING: &'static str = $missing; })*
    };
}

kernel_facts! {
    Body "a kernel without body";
    Constraints "a kernel without constraints";
    DimTable "a kernel without dimensions";
    Expressions "a kernel without expressions";
    Geometry "a kernel without geometry";
    Locations "a kernel without locations";
    Settings "a kernel without options";
}

/// A kernel that is being rewritten; see the module.
pub(crate) struct KernelEditor<'w> {
    world: &'w mut World,
    root: Entity,
    /// That of new nodes.
    origin: Origin,
    /// The node at hand, until it is put down.
    at_hand: Option<Entity>,
    /// The region at hand, as far as it is rewritten.
    written: NodeList,
    /// LDS buffers that come in front of everything else.
    buffers: NodeList,
}

impl<'w> KernelEditor<'w> {
    /// An editor of the kernel of a world.
    pub(crate) fn new(world: &'w mut World) -> Result<KernelEditor<'w>, Diagnostic> {
        let root = kernel_entity(world)?;
        let (written, buffers) = (NodeList::new(), NodeList::new());
        Ok(KernelEditor { world, root, origin: Origin(u32::MAX), at_hand: None, written, buffers })
    }

    /// Rewrites all regions by a step for each node.
    pub(crate) fn rewrite(&mut self, mut step: impl FnMut(&mut Self, Entity) -> PassResult) -> PassResult {
        for region in self.regions() {
            self.rewrite_region(region, &mut step)?;
        }
        self.place_buffers()
    }

    /// Rewrites one region by a step for each of its nodes; a step may rewrite another region.
    pub(crate) fn rewrite_region(
        &mut self,
        region: Entity,
        step: &mut impl FnMut(&mut Self, Entity) -> PassResult,
    ) -> PassResult {
        let outer = (std::mem::take(&mut self.written), self.at_hand, self.origin);
        for node in walk::body(self.world, region) {
            self.model_on(node)?;
            self.at_hand = Some(node);
            step(self, node)?;
            self.put_down();
        }
        walk::set_body(self.world, region, &self.written);
        (self.written, self.at_hand, self.origin) = outer;
        Ok(())
    }

    /// Puts the node at hand into its region: what is added from now on comes after it.
    pub(crate) fn put_down(&mut self) {
        self.written.extend(self.at_hand.take());
    }

    /// Takes the node at hand out of the kernel.
    pub(crate) fn remove(&mut self) {
        if let Some(node) = self.at_hand.take() {
            self.world.despawn(node);
        }
    }

    /// The nodes of the region at hand that are written so far, to be rearranged.
    pub(crate) fn written(&mut self) -> &mut NodeList {
        &mut self.written
    }

    /// Puts the buffers that were made in front of all other nodes of the kernel.
    pub(crate) fn place_buffers(&mut self) -> PassResult {
        let buffers = std::mem::take(&mut self.buffers);
        if !buffers.is_empty() {
            self.kernel_mut::<Body>()?.0.splice(0..0, buffers);
        }
        Ok(())
    }
}

/// Questions of a pass.
impl KernelEditor<'_> {
    /// The nodes in program order.
    pub(crate) fn nodes(&self) -> NodeList {
        walk::nodes(self.world, self.root)
    }

    /// The kernel and its loops in program order.
    pub(crate) fn regions(&self) -> SmallVec<[Entity; 8]> {
        walk::regions(self.world, self.root)
    }

    /// The nodes of one region, or of the kernel itself.
    pub(crate) fn body(&self, region: Entity) -> NodeList {
        walk::body(self.world, region)
    }

    /// The kernel entity, which is a region, too.
    pub(crate) fn root(&self) -> Entity {
        self.root
    }

    /// Number of times that each node is used.
    pub(crate) fn use_counts(&self) -> Result<NodeMap<u32>, Bug> {
        walk::use_counts(self.world, self.root)
    }

    /// A node.
    pub(crate) fn node(&self, node: Entity) -> Result<NodeItem<'_, 'static>, Bug> {
        nodes::node(self.world, node)
    }

    /// The operation of a node, where nothing else of it is of interest.
    pub(crate) fn op(&self, node: Entity) -> Result<Op, Bug> {
        nodes::op(self.world, node)
    }

    /// The dimensions of a node's value.
    pub(crate) fn dims(&self, node: Entity) -> Result<Dims, Bug> {
        Ok(self.node(node)?.ty.dims.clone())
    }

    /// A fact that some nodes have.
    pub(crate) fn get<C: Component>(&self, node: Entity) -> Option<&C> {
        self.world.get(node)
    }

    /// A fact that a node must have at this point; `what` is the fault of one without it.
    pub(crate) fn fact<C: Component>(&self, node: Entity, what: &'static str) -> Result<&C, Bug> {
        nodes::fact(self.world, node, what)
    }

    /// The same, to be changed.
    pub(crate) fn fact_mut<C: Component<Mutability = Mutable>>(
        &mut self,
        node: Entity,
        what: &'static str,
    ) -> Result<Mut<'_, C>, Bug> {
        nodes::fact_mut(self.world, node, what)
    }

    /// A fact of the kernel as a whole.
    pub(crate) fn kernel<C: KernelFact>(&self) -> Result<&C, Bug> {
        nodes::fact(self.world, self.root, C::MISSING)
    }

    /// The same, to be changed.
    pub(crate) fn kernel_mut<C: KernelFact + Component<Mutability = Mutable>>(
        &mut self,
    ) -> Result<Mut<'_, C>, Bug> {
        nodes::fact_mut(self.world, self.root, C::MISSING)
    }

    /// Lets `body` ask the kernel's expressions while it looks at the kernel, whose part they are.
    pub(crate) fn with_expressions<R>(
        &mut self,
        body: impl FnOnce(&mut Self, &mut ExprArena) -> R,
    ) -> Result<R, Bug> {
        let mut arena = std::mem::take(&mut self.kernel_mut::<Expressions>()?.0);
        let result = body(self, &mut arena);
        self.kernel_mut::<Expressions>()?.0 = arena;
        Ok(result)
    }

    /// The place where the author wrote a node.
    pub(crate) fn location(&self, node: Entity) -> Option<Location> {
        self.kernel::<Locations>().ok()?.get(self.get::<Origin>(node)?.0)
    }
}

/// Changes that a pass makes.
impl KernelEditor<'_> {
    /// Gives a node, or the kernel entity, facts.
    pub(crate) fn attach(&mut self, node: Entity, facts: impl Bundle) {
        self.world.entity_mut(node).insert(facts);
    }

    /// Takes a fact from a node.
    pub(crate) fn take<C: Component>(&mut self, node: Entity) -> Option<C> {
        self.world.entity_mut(node).take()
    }

    /// Gives a node a fact that another one may have.
    pub(crate) fn copy<C: Component + Clone>(&mut self, from: Entity, to: Entity) {
        if let Some(fact) = self.get::<C>(from).cloned() {
            self.attach(to, fact);
        }
    }

    /// Lets a node do something else; its type and its facts stay.
    pub(crate) fn turn_into(&mut self, node: Entity, op: Op, operands: &[Entity]) {
        self.attach(node, (op, Operands(SmallVec::from_slice(operands))));
    }

    /// Gives a node another operand.
    pub(crate) fn set_operand(&mut self, node: Entity, at: usize, operand: Entity) -> Result<(), Bug> {
        let mut operands = nodes::fact_mut::<Operands>(self.world, node, "a node without operands")?;
        *operands.0.get_mut(at).ok_or(Bug::new("an operation lacks an operand"))? = operand;
        Ok(())
    }

    /// Puts other values in place of those that a node uses and, if it is a loop, hands on.
    pub(crate) fn rename(&mut self, node: Entity, replace: impl Fn(&mut Entity)) {
        if let Some(mut operands) = self.world.get_mut::<Operands>(node) {
            operands.0.iter_mut().for_each(&replace);
        }
        if let Some(mut yields) = self.world.get_mut::<Yields>(node) {
            yields.0.iter_mut().for_each(&replace);
        }
    }

    /// Replaces the nodes of a region.
    pub(crate) fn set_body(&mut self, region: Entity, nodes: &[Entity]) {
        walk::set_body(self.world, region, nodes);
    }

    /// Nodes that are made from now on have the origin of this one.
    pub(crate) fn model_on(&mut self, node: Entity) -> Result<(), Bug> {
        self.origin = *nodes::fact(self.world, node, "a node without origin")?;
        Ok(())
    }

    /// The origin of nodes that are made now.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// A new node that is in no region yet.
    pub(crate) fn make(&mut self, op: Op, operands: &[Entity], ty: ValueType, facts: impl Bundle) -> Entity {
        let operands = Operands(SmallVec::from_slice(operands));
        NodeBundle { op, operands, ty, origin: self.origin }.spawn(self.world, facts)
    }

    /// A copy of what every node has, in no region yet.
    pub(crate) fn make_like(&mut self, node: Entity) -> Result<Entity, Bug> {
        Ok(self.node(node)?.bundle().spawn(self.world, ()))
    }

    /// A new node at this place of the region at hand.
    pub(crate) fn add(&mut self, op: Op, operands: &[Entity], ty: ValueType, facts: impl Bundle) -> Entity {
        let made = self.make(op, operands, ty, facts);
        self.written.push(made);
        made
    }

    /// A new LDS buffer for values of a type.
    pub(crate) fn add_buffer(&mut self, ty: ValueType) -> Entity {
        let buffer = self.make(Op::Allocate, &[], ty, Space(AddressSpace::Shared));
        self.buffers.push(buffer);
        buffer
    }
}
