//! Memory operations of one wave between issue and the wait that covers them, and the state that they need to
//! take effect late.
//!
//! An operation keeps the registers that it was issued with (the hardware reads them at issue), so that it
//! can be performed at any time until the wait, in the order of its class. Which waits cover what:
//! `s_waitcnt` leaves the given number of youngest operations of a counter in flight, if those in flight
//! complete in order; otherwise only a wait for zero says anything (LLVM, SIInsertWaitcnts.cpp).

use std::collections::VecDeque;

use crate::codegen::isa::{Counter, WaitCounts};

use super::super::error::Stopped;
use super::super::execute::{self, ExecutionContext};
use super::super::program::Step;
use super::super::register_bits::{RegisterBits, meet};
use super::super::wave::{EXEC, LANES, VectorRow, Wave};
use super::facts::{CompletionOrder, InstructionFacts, Table};
use super::finding::WaitCounter;

/// What vmcnt and lgkmcnt can count.
const LARGEST: [usize; 2] = [63, 15];
/// Operations that are remembered where the counters say nothing about order; more cannot be in flight.
const MOST_UNORDERED: usize = 96;
/// The number of recent operations whose steps are known.
const REMEMBERED: usize = 4096;

/// One memory operation.
pub(super) struct MemoryOperation {
    pub step: u32,
    /// Issue number among the wave's memory operations.
    pub number: u32,
    pub order: CompletionOrder,
    /// Still counted by vmcnt, by lgkmcnt.
    pub pending: [bool; 2],
    /// What it needs to be performed; none if it has been performed, or if there is nothing to do.
    captured: Option<Captured>,
    /// It touches device memory in the order of the first-level cache.
    in_device_order: bool,
    /// The lanes that it was issued for; all of them if its results are scalars.
    lanes: u64,
}

impl MemoryOperation {
    /// True if waits have covered it.
    fn is_over(&self) -> bool {
        self.pending == [false; 2]
    }
}

/// Sources of an operation as they were when it was issued.
#[derive(Default)]
struct Captured {
    rows: Vec<(u16, VectorRow)>,
    count: usize,
    scalars: Vec<(u8, u32)>,
    exec: u64,
}

/// All operations of a wave.
pub(super) struct Flight {
    operations: VecDeque<MemoryOperation>,
    /// Issued so far.
    pub issued: u32,
    /// All operations up to this number are over, by lgkmcnt and by vmcnt.
    pub done: [u32; 2],
    /// Registers that operations in flight will write.
    pub busy: RegisterBits,
    /// Steps of recent operations.
    steps: Vec<u32>,
    spare: Vec<Captured>,
}

/// Index of vmcnt in arrays by counter.
pub(super) const VM: usize = 0;
/// Index of lgkmcnt.
pub(super) const LGKM: usize = 1;

impl Flight {
    /// Nothing in flight.
    pub(super) fn new() -> Flight {
        Flight {
            operations: VecDeque::new(),
            issued: 0,
            done: [0; 2],
            busy: [0; 12],
            steps: vec![0; REMEMBERED],
            spare: Vec::new(),
        }
    }

    /// Resets it to nothing in flight.
    pub(super) fn reset(&mut self) {
        while let Some(operation) = self.operations.pop_front() {
            self.spare.extend(operation.captured);
        }
        (self.issued, self.done, self.busy) = (0, [0; 2], [0; 12]);
    }

    /// True if nothing is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Step of the operation with that number, if it is recent enough.
    pub(super) fn step_of(&self, number: u32) -> Option<u32> {
        let recent = number != 0 && self.issued.wrapping_sub(number) < REMEMBERED as u32;
        recent.then(|| self.steps[number as usize % REMEMBERED])
    }

    /// The number of the next operation.
    pub(super) fn next(&self) -> u32 {
        self.issued + 1
    }

    /// True if the operation of that number has taken effect.
    pub(super) fn is_performed(&self, number: u32) -> bool {
        number <= self.issued && !self.operations.iter().any(|o| o.number == number && o.captured.is_some())
    }

    /// True if a wait for that counter has covered the operation of that number. Flat ones are counted by
    /// both: by vmcnt as far as they access device memory, by lgkmcnt as far as they access LDS.
    pub(super) fn is_over(&self, number: u32, counter: usize) -> bool {
        number <= self.issued && !self.operations.iter().any(|o| o.number == number && o.pending[counter])
    }

    /// True if some operation has not taken effect yet.
    pub(super) fn waits(&self) -> bool {
        self.operations.iter().any(|o| o.captured.is_some())
    }

    /// True if an operation that was issued now may be performed at once: none of its class waits.
    pub(super) fn may_perform_now(&self, order: CompletionOrder) -> bool {
        order == CompletionOrder::Scalar
            || !self.operations.iter().any(|o| o.captured.is_some() && same_class(o.order, order))
    }

    /// Counts an operation that has been performed (or has nothing to perform), for the lanes `exec`.
    pub(super) fn issue(&mut self, index: u32, facts: &InstructionFacts, exec: u64) {
        self.push(index, facts, exec, None);
    }

    /// Counts an operation and keeps what it needs to be performed later, for the lanes `exec`.
    pub(super) fn defer(&mut self, index: u32, facts: &InstructionFacts, w: &Wave, vgprs: usize, exec: u64) {
        let mut captured = self.spare.pop().unwrap_or_default();
        captured.count = 0;
        captured.scalars.clear();
        captured.exec = exec;
        for &number in &facts.uses.sources {
            captured.keep(number.into(), w, vgprs);
        }
        self.push(index, facts, exec, Some(captured));
    }

    fn push(&mut self, index: u32, facts: &InstructionFacts, exec: u64, captured: Option<Captured>) {
        self.issued += 1;
        self.steps[self.issued as usize % REMEMBERED] = index;
        let pending = [
            matches!(facts.counter, Counter::Vm | Counter::VmAndLgkm),
            matches!(facts.counter, Counter::Lgkm | Counter::VmAndLgkm),
        ];
        let in_device_order =
            matches!(facts.order, CompletionOrder::Vector | CompletionOrder::Flat) && !facts.to_lds;
        self.operations.push_back(MemoryOperation {
            step: index,
            number: self.issued,
            order: facts.order,
            pending,
            captured,
            in_device_order,
            lanes: if facts.is_masked { exec } else { u64::MAX },
        });
        if facts.counter != Counter::None {
            for (busy, written) in self.busy.iter_mut().zip(&facts.uses.written) {
                *busy |= written;
            }
        }
    }

    /// True if the pending operations of a counter complete in order.
    fn in_order(&self, counter: usize) -> bool {
        let mut orders = self.operations.iter().filter(|o| o.pending[counter]).map(|o| o.order);
        let first = orders.next();
        !matches!(first, Some(CompletionOrder::Scalar | CompletionOrder::Flat))
            && orders.all(|order| Some(order) == first)
    }

    /// True if the next LDS instruction takes effect after all LDS accesses before it: only flat ones are in
    /// no order.
    pub(super) fn keeps_lds_order(&self) -> bool {
        !self.operations.iter().any(|o| o.order == CompletionOrder::Flat)
    }

    /// The hardware stalls rather than count further than it can, so the oldest operations are over.
    pub(super) fn overflow(
        &mut self,
        table: &Table,
        w: &mut Wave,
        context: &mut ExecutionContext<'_>,
    ) -> Result<(), Stopped> {
        if self.operations.len() <= LARGEST[LGKM] {
            return Ok(());
        }
        let mut changed = false;
        for counter in [VM, LGKM] {
            let count = self.operations.iter().filter(|o| o.pending[counter]).count();
            let most = if self.in_order(counter) { LARGEST[counter] } else { MOST_UNORDERED };
            changed |= self.leave(counter, count, most);
        }
        if changed { self.settle(table, w, context) } else { Ok(()) }
    }

    /// Ends all operations of a counter except the youngest `most`; true if there were any.
    fn leave(&mut self, counter: usize, count: usize, most: usize) -> bool {
        let over = count.saturating_sub(most);
        let pending = self.operations.iter_mut().filter(|o| o.pending[counter]);
        pending.take(over).for_each(|o| o.pending[counter] = false);
        over > 0
    }

    /// `s_waitcnt`.
    pub(super) fn wait(
        &mut self,
        counts: WaitCounts,
        table: &Table,
        w: &mut Wave,
        context: &mut ExecutionContext<'_>,
    ) -> Result<(), Stopped> {
        if self.operations.is_empty() {
            return Ok(());
        }
        let mut changed = false;
        let none = WaitCounts::NONE;
        for (counter, most, none) in [(VM, counts.vm, none.vm), (LGKM, counts.lgkm, none.lgkm)] {
            if most == 0 || most < none && self.in_order(counter) {
                let count = self.operations.iter().filter(|o| o.pending[counter]).count();
                changed |= self.leave(counter, count, most.into());
            }
        }
        if changed { self.settle(table, w, context) } else { Ok(()) }
    }

    /// Everything is over: the end of the wave.
    pub(super) fn finish(
        &mut self,
        table: &Table,
        w: &mut Wave,
        context: &mut ExecutionContext<'_>,
    ) -> Result<(), Stopped> {
        self.operations.iter_mut().for_each(|o| o.pending = [false; 2]);
        self.settle(table, w, context)
    }

    /// Performs and forgets the operations that are over.
    fn settle(
        &mut self,
        table: &Table,
        w: &mut Wave,
        context: &mut ExecutionContext<'_>,
    ) -> Result<(), Stopped> {
        for index in 0..self.operations.len() {
            let MemoryOperation { order, pending, .. } = self.operations[index];
            if pending == [false; 2] || order == CompletionOrder::Flat && pending != [true; 2] {
                self.perform_through(index, table, w, context)?;
            }
        }
        // Mostly the oldest ones are over.
        while let Some(oldest) = self.operations.front()
            && oldest.is_over()
        {
            self.operations.pop_front();
        }
        if self.operations.iter().any(MemoryOperation::is_over) {
            self.operations.retain(|o| !o.is_over());
        }
        self.busy = [0; 12];
        for operation in &self.operations {
            for (busy, written) in
                self.busy.iter_mut().zip(&table.facts[operation.step as usize].uses.written)
            {
                *busy |= written;
            }
        }
        for counter in [VM, LGKM] {
            let oldest = self.operations.iter().find(|o| o.pending[counter]);
            self.done[counter] = oldest.map_or(self.issued, |o| o.number - 1);
        }
        Ok(())
    }

    /// Performs an operation, after the older ones of its class.
    fn perform_through(
        &mut self,
        index: usize,
        table: &Table,
        w: &mut Wave,
        context: &mut ExecutionContext<'_>,
    ) -> Result<(), Stopped> {
        let order = self.operations[index].order;
        for at in 0..=index {
            let operation = &mut self.operations[at];
            let due = at == index || order != CompletionOrder::Scalar && same_class(operation.order, order);
            if due && let Some(mut captured) = operation.captured.take() {
                let step = operation.step as usize;
                captured.perform(&context.program.steps[step], &table.facts[step], w, context)?;
                self.spare.push(captured);
            }
        }
        Ok(())
    }

    /// Performs the oldest `count` of those that wait to be.
    pub(super) fn perform_some(
        &mut self,
        count: usize,
        table: &Table,
        w: &mut Wave,
        context: &mut ExecutionContext<'_>,
    ) -> Result<(), Stopped> {
        for _ in 0..count {
            let Some(index) = self.operations.iter().position(|o| o.captured.is_some()) else { break };
            self.perform_through(index, table, w, context)?;
        }
        Ok(())
    }

    /// Performs what other waves of the workgroup see after a barrier without a wait: accesses to device
    /// memory, which go through one cache in order.
    pub(super) fn perform_device(
        &mut self,
        table: &Table,
        w: &mut Wave,
        context: &mut ExecutionContext<'_>,
    ) -> Result<(), Stopped> {
        match self.operations.iter().rposition(|o| o.captured.is_some() && o.in_device_order) {
            Some(last) => self.perform_through(last, table, w, context),
            None => Ok(()),
        }
    }

    /// The youngest operation in flight that will write a register of `bits` in one of these lanes, the
    /// counter to wait for, and the count that would be enough.
    pub(super) fn blocking(
        &self,
        bits: &RegisterBits,
        lanes: u64,
        table: &Table,
        in_queue_with: Option<CompletionOrder>,
    ) -> Option<Blocking> {
        let index = self.operations.iter().rposition(|o| {
            let ordered =
                in_queue_with == Some(CompletionOrder::Vector) && o.order == CompletionOrder::Vector;
            !ordered && o.lanes & lanes != 0 && meet(&table.facts[o.step as usize].uses.written, bits)
        })?;
        let operation = &self.operations[index];
        let counter = if operation.pending[VM] { VM } else { LGKM };
        let younger = self.operations.iter().skip(index + 1).filter(|o| o.pending[counter]).count();
        let at_most = if self.in_order(counter) { younger.min(LARGEST[counter] - 1) } else { 0 };
        let counter = if counter == VM { WaitCounter::Vmcnt } else { WaitCounter::Lgkmcnt };
        Some(Blocking { step: operation.step, counter, at_most: at_most as u8 })
    }
}

/// A missing wait.
pub(super) struct Blocking {
    pub step: u32,
    pub counter: WaitCounter,
    pub at_most: u8,
}

/// Operations that are performed in order: flat ones in the order of vector memory.
fn same_class(a: CompletionOrder, b: CompletionOrder) -> bool {
    let class = |order| if order == CompletionOrder::Flat { CompletionOrder::Vector } else { order };
    class(a) == class(b)
}

/// Row of a vector register.
pub(super) fn row_of(number: u32, vgprs: usize) -> Option<usize> {
    match number {
        256..512 => Some(number as usize - 256),
        512..768 => Some(number as usize - 512 + vgprs),
        _ => None,
    }
}

impl Captured {
    /// Keeps a register.
    fn keep(&mut self, number: u32, w: &Wave, vgprs: usize) {
        if number < 128 {
            self.scalars.push((number as u8, w.s[number as usize]));
        } else if let Some(row) = row_of(number, vgprs).filter(|&row| row < w.rows.len()) {
            if self.count == self.rows.len() {
                self.rows.push((0, [0; LANES]));
            }
            self.rows[self.count] = (row as u16, w.rows[row]);
            self.count += 1;
        }
    }

    /// True if the registers are as they were when it was issued.
    fn is_unchanged(&self, w: &Wave) -> bool {
        self.scalars.iter().all(|&(n, value)| w.s[usize::from(n)] == value)
            && self.rows[..self.count].iter().all(|(row, value)| w.rows[usize::from(*row)] == *value)
    }

    /// Executes the step with the registers that it was issued with; afterwards only its results have
    /// changed.
    fn perform(
        &mut self,
        step: &Step,
        facts: &InstructionFacts,
        w: &mut Wave,
        context: &mut ExecutionContext<'_>,
    ) -> Result<(), Stopped> {
        let exec = w.exec();
        if self.is_unchanged(w) {
            w.set_pair(EXEC, self.exec);
            let result = execute::one(w, context, step);
            w.set_pair(EXEC, exec);
            return result.map(|_| ());
        }
        let rows = &mut self.rows[..self.count];
        let swap = |w: &mut Wave, rows: &mut [(u16, VectorRow)], scalars: &mut [(u8, u32)]| {
            rows.iter_mut().for_each(|(row, value)| std::mem::swap(&mut w.rows[usize::from(*row)], value));
            scalars.iter_mut().for_each(|(n, value)| std::mem::swap(&mut w.s[usize::from(*n)], value));
        };
        swap(w, rows, &mut self.scalars);
        w.set_pair(EXEC, self.exec);
        let result = execute::one(w, context, step);
        let vgprs = context.program.vgprs();
        for (row, value) in rows.iter() {
            let row = usize::from(*row);
            let number = if row < vgprs { row as u32 + 256 } else { (row - vgprs) as u32 + 512 };
            let keep = if facts.writes(number) { self.exec } else { 0 };
            match keep {
                0 => w.rows[row] = *value,
                u64::MAX => {}
                _ => {
                    for (l, (now, before)) in w.rows[row].iter_mut().zip(value).enumerate() {
                        *now = if keep >> l & 1 != 0 { *now } else { *before };
                    }
                }
            }
        }
        for (n, value) in &self.scalars {
            if !facts.writes(u32::from(*n)) {
                w.s[usize::from(*n)] = *value;
            }
        }
        w.set_pair(EXEC, exec);
        result.map(|_| ())
    }
}
