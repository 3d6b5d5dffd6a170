//! What a compilation is asked for, apart from the kernel: target, symbol values, schedule, and what the author refuses.

use smallvec::SmallVec;

use crate::codegen::target::Target;
use crate::ir::expr::Symbol;

/// What the author will not accept; the compilation fails with the place instead.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Deny {
    /// Registers spilled: vector registers to scratch memory, SGPRs to VGPRs.
    Spills,
    /// An LDS access with a bank conflict degree above one.
    BankConflicts,
}

/// How loops are scheduled.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Schedule {
    /// As written: loads, LDS, compute, one iteration after the other.
    #[default]
    None,
}

impl Schedule {
    /// Name in the program's arguments and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::None => "none",
        }
    }
}

/// Options of one compilation. Everything in here can change the code, so all of it is part of the cache key.
///
/// # Example
/// ```
/// use groundswell::prelude::*;
/// let [m, block_m] = symbols(["M", "BLOCK_M"]);
/// let options = Options::new(Target::GFX942).set(block_m, 128).dynamic(m).max_vgprs(128);
/// assert_eq!(options.target(), Target::GFX942);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    target: Target,
    bindings: SmallVec<[(Symbol, i64); 16]>,
    dynamic: SmallVec<[Symbol; 4]>,
    schedule: Schedule,
    deny: SmallVec<[Deny; 2]>,
    max_vgprs: Option<u32>,
}

impl Options {
    /// No symbol bound, no schedule, nothing denied.
    pub fn new(target: Target) -> Options {
        Options {
            target,
            bindings: SmallVec::new(),
            dynamic: SmallVec::new(),
            schedule: Schedule::None,
            deny: SmallVec::new(),
            max_vgprs: None,
        }
    }

    /// Gives a symbol its value. Binding a symbol twice with different values is an error at compilation.
    #[must_use]
    pub fn set(mut self, symbol: Symbol, value: i64) -> Options {
        if !self.bindings.contains(&(symbol, value)) {
            self.bindings.push((symbol, value));
        }
        self
    }

    /// Leaves a symbol open until launch: it becomes a kernel argument. Tile sizes cannot be dynamic.
    #[must_use]
    pub fn dynamic(mut self, symbol: Symbol) -> Options {
        if !self.dynamic.contains(&symbol) {
            self.dynamic.push(symbol);
        }
        self
    }

    /// Chooses a schedule.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Options {
        self.schedule = schedule;
        self
    }

    /// Refuses something that the compiler would otherwise do.
    #[must_use]
    pub fn deny(mut self, what: Deny) -> Options {
        if !self.deny.contains(&what) {
            self.deny.push(what);
            self.deny.sort_unstable();
        }
        self
    }

    /// Compiles for at most `count` vector registers (AGPRs included): more waves fit, and what does not fit is spilled. What
    /// no spilling can bring below the limit is an error; with [`Deny::Spills`] spilling is one too.
    #[must_use]
    pub fn max_vgprs(mut self, count: u32) -> Options {
        self.max_vgprs = Some(count);
        self
    }

    /// The target.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Symbol values in the order they were given.
    pub fn bindings(&self) -> &[(Symbol, i64)] {
        &self.bindings
    }

    /// Symbols left open until launch, in the order they were given.
    pub fn dynamic_symbols(&self) -> &[Symbol] {
        &self.dynamic
    }

    /// The schedule.
    pub fn requested_schedule(&self) -> Schedule {
        self.schedule
    }

    /// True if `what` is refused.
    pub fn denies(&self, what: Deny) -> bool {
        self.deny.contains(&what)
    }

    /// Most vector registers that the code may use.
    pub fn vgpr_limit(&self) -> Option<u32> {
        self.max_vgprs
    }

    /// Value of a symbol, if it is bound.
    pub fn value(&self, symbol: Symbol) -> Option<i64> {
        self.bindings.iter().find(|b| b.0 == symbol).map(|b| b.1)
    }
}
