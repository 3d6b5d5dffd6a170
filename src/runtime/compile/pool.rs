//! Memory of machine passes, reused between compilations.

use std::sync::Mutex;

use crate::codegen::machine::MachineBody;
use crate::codegen::machine::allocate::Allocator;
use crate::codegen::machine::branches::Code;
use crate::codegen::machine::hazards::HazardResolver;
use crate::codegen::machine::waits::WaitInserter;
use crate::codegen::target::Target;

/// A machine body, and the state of the passes over it.
pub(super) struct MachineWorkspace {
    /// The target that it makes code for.
    target: Target,
    pub(super) body: MachineBody,
    pub(super) allocator: Allocator,
    pub(super) waits: WaitInserter,
    pub(super) hazards: HazardResolver,
    pub(super) code: Code,
    /// The bytes of the code.
    pub(super) bytes: Vec<u8>,
}

impl MachineWorkspace {
    fn new(target: Target) -> MachineWorkspace {
        let newer = target.instruction_sets().iter().skip(1);
        MachineWorkspace {
            target,
            body: MachineBody::default(),
            allocator: Allocator::default(),
            waits: WaitInserter::new(target.arch),
            hazards: newer.fold(HazardResolver::new(target.arch), |all, &newer| all.also_for(newer)),
            code: Code::default(),
            bytes: Vec::new(),
        }
    }
}

/// A machine is ten kilobytes, so it is not moved in and out.
static POOL: Mutex<Vec<Box<MachineWorkspace>>> = Mutex::new(Vec::new());

/// Machines kept between compilations; if more threads need one at once, they make new ones.
const POOL_LIMIT: usize = 16;

/// Runs `body` with a machine for that target from the pool.
pub(super) fn with_machine<R>(target: Target, body: impl FnOnce(&mut MachineWorkspace) -> R) -> R {
    let pooled = POOL.lock().ok().and_then(|mut pool| {
        let at = pool.iter().rposition(|machine| machine.target == target)?;
        Some(pool.swap_remove(at))
    });
    let mut machine = pooled.unwrap_or_else(|| Box::new(MachineWorkspace::new(target)));
    let result = body(&mut machine);
    // A panic in `body` drops the machine instead: its buffers may be in any state.
    if let Ok(mut pool) = POOL.lock()
        && pool.len() < POOL_LIMIT
    {
        pool.push(machine);
    }
    result
}
