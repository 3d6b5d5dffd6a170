//! A wave on its way through instructions: it issues them in order, each as soon as its operands are there
//! and its unit takes it.

use super::cost::{IssueCost, IssueUnit};

/// A wave, and when the units of its SIMD are free.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct IssuingWave {
    /// When it may issue the next instruction.
    now: u64,
    matrix: u64,
    vector: u64,
    lds: u64,
    memory: u64,
    /// When accesses of memory may follow a matrix instruction.
    after_matrix: u64,
}

impl IssuingWave {
    /// Clk that have passed.
    pub(crate) fn clk(&self) -> u64 {
        self.now
    }

    /// When an instruction issues whose operands are there at `ready`, if it is the next one.
    #[inline]
    pub(crate) fn start(&self, cost: &IssueCost, ready: u64) -> u64 {
        let unit = match cost.unit {
            IssueUnit::Matrix => self.matrix,
            IssueUnit::Vector => self.vector,
            IssueUnit::Lds => self.lds.saturating_sub(cost.queued.into()).max(self.after_matrix),
            IssueUnit::Memory => self.memory.max(self.after_matrix),
            IssueUnit::Other => 0,
        };
        self.now.max(unit).max(ready)
    }

    /// Issues an instruction at `start`, and returns when its unit begins with it.
    #[inline]
    pub(crate) fn issue(&mut self, cost: &IssueCost, start: u64) -> u64 {
        let busy = u64::from(cost.busy);
        let mut begins = start;
        match cost.unit {
            IssueUnit::Matrix => {
                self.matrix = start + busy;
                self.vector = start + u64::from(cost.blocks[0]);
                self.after_matrix = start + u64::from(cost.blocks[1]);
            }
            IssueUnit::Vector => self.vector = start + busy,
            IssueUnit::Lds => {
                begins = self.lds.max(start);
                self.lds = begins + busy;
            }
            IssueUnit::Memory => self.memory = start + busy,
            IssueUnit::Other => {}
        }
        self.now = start + u64::from(cost.held);
        begins
    }
}
