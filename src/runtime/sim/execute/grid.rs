//! The barrier of a whole grid, `ds_gws_barrier` (CDNA3 ISA guide, "Global Wave Sync"): its data are the
//! number of waves that open it, less one. LLVM has one wave of each workgroup execute it, between barriers
//! of the workgroup (ROCm device libraries, `ockl/src/cg.cl`).

use std::sync::{Mutex, PoisonError};

use super::super::memory::Rendezvous;
use super::super::program::Step;
use super::super::wave::Wave;

/// True if the wave may go on; otherwise it has to come back.
pub(super) fn opens(w: &mut Wave, s: &Step, rendezvous: &Mutex<Rendezvous>) -> bool {
    let lane = w.exec().trailing_zeros() as usize % 64;
    let count = w.lanes(s.operands[0])[lane].wrapping_add(1);
    // A poisoned lock guards numbers that are whole after each change.
    let mut rendezvous = rendezvous.lock().unwrap_or_else(PoisonError::into_inner);
    rendezvous.meet(&mut w.grid_barrier, count)
}
