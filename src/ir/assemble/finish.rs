//! Assembled kernels made complete: as an author writes them, and as a pass left them.

use std::sync::Arc;

use bevy_ecs::prelude::{Component, Entity, World};

use super::KernelAssembler;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::facts::KernelStage;
use crate::ir::kernel::{Declaration, Identity, Kernel, KernelName, Locations};
use crate::ir::node::*;
use crate::ir::text;
use crate::ir::verifier::{self, buffer_coordinates, distribution, loop_symbols};

impl KernelAssembler {
    /// The complete kernel, which was written at `declaration`.
    ///
    /// # Errors
    /// Too many operations, or what its distribution does not allow, in program order.
    pub(crate) fn finish(mut self, name: &str, declaration: Location) -> Result<Kernel, Vec<Diagnostic>> {
        if let Some(excess) = self.excess() {
            return Err(vec![excess]);
        }
        let nodes = self.regions.pop().unwrap_or_default();
        self.check_following(&nodes).map_err(|fault| vec![fault])?;
        self.world.entity_mut(self.root).insert((
            KernelName(name.into()),
            Declaration(Some(declaration)),
            Body(nodes),
            self.dims,
            self.constraints,
            Locations(Arc::new(self.locations)),
        ));
        let mut faults = distribution::check(&self.world, self.root);
        faults.extend(buffer_coordinates::check(&self.world, self.root));
        faults.extend(loop_symbols::check(&self.world, self.root, &|symbol| self.symbols.contains(symbol)));
        if faults.is_empty() { Ok(Kernel::finish(self.world, self.root)) } else { Err(faults) }
    }
    /// The complete kernel as a pass left it. With `sources`, the location of a node is what its component
    /// `G` says, or none.
    ///
    /// # Errors
    /// Too many operations, or what the verifier finds.
    pub(crate) fn finish_stage<G: Component>(
        mut self,
        name: &str,
        declaration: Location,
        sources: Option<(Declaration, Locations)>,
        place: impl Fn(&G) -> u32,
    ) -> Result<Kernel, Vec<Diagnostic>> {
        if let Some(excess) = self.excess() {
            return Err(vec![excess]);
        }
        let nodes = self.regions.pop().unwrap_or_default();
        let given = sources.is_some();
        let own = (Declaration(Some(declaration)), Locations(Arc::new(self.locations)));
        if given {
            let mut all = self.world.query::<(&mut Origin, Option<&G>)>();
            for (mut origin, given) in all.iter_mut(&mut self.world) {
                origin.0 = given.map_or(u32::MAX, &place);
            }
        }
        let (declaration, locations) = sources.unwrap_or(own);
        self.world.entity_mut(self.root).insert((
            KernelName(name.into()),
            declaration,
            Body(nodes),
            self.dims,
            self.constraints,
            locations,
        ));
        let mut faults = verifier::verify(&self.world, self.root);
        if faults.is_empty() {
            faults = verifier::facts::check(&self.world, self.root);
        }
        if faults.is_empty() { Ok(Kernel::finish(self.world, self.root)) } else { Err(faults) }
    }
}

impl Kernel {
    /// Gives a complete world its identity.
    pub(crate) fn finish(world: World, root: Entity) -> Kernel {
        let staged = world.get::<KernelStage>(root).is_some();
        let detail = if staged { text::Detail::Stage } else { text::Detail::Identity };
        let identity = Identity::new(text::print(&world, root, detail));
        Kernel::new(world, root, identity)
    }
}
