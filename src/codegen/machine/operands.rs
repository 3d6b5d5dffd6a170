//! Which registers every instruction of a body names: one walk, whose result all of allocation shares.

use super::access::{as_copy, width};
use super::allocation_error::AllocationError;
use super::body::{InstId, MachineBody, RegisterFile};
use super::occupancy::{EMPTY, Set, tuple};
use crate::codegen::isa::{Implicit, MAX_OPERANDS, Meaning, Operand, Role, VReg};
use crate::index::Neighbours;
use cranelift_entity::PrimaryMap;

/// A virtual register and some of its 32-bit parts, one bit each.
pub(super) type RegisterParts = (VReg, u32);

/// Where the operands of an instruction are: the reads, and after them the writes, up to the end.
#[derive(Copy, Clone)]
struct OperandSpan {
    reads: u32,
    writes: u32,
    end: u32,
}

/// Virtual operands by instruction, and what else the walk found.
#[derive(Default)]
pub(super) struct VirtualOperands {
    /// Operands of all instructions, reads before writes, and where those of each instruction are.
    list: Vec<RegisterParts>,
    spans: PrimaryMap<InstId, OperandSpan>,
    /// Instructions that connect two registers which may become one: copies and matrix instructions.
    pub connecting: Vec<InstId>,
    /// Instructions that write EXEC.
    pub exec_writes: Vec<InstId>,
    /// An instruction reads or writes VCC.
    pub vcc: bool,
    /// Registers named directly, by file.
    pub named: [Set; 3],
}

impl VirtualOperands {
    /// Walks over `body`.
    ///
    /// # Errors
    /// The first operand that does not lie in its virtual register or in its file.
    pub(super) fn collect(&mut self, body: &MachineBody) -> Result<(), AllocationError> {
        self.list.clear();
        self.spans.clear();
        // Most instructions name two or three registers.
        self.list.reserve(3 * body.insts.len());
        self.spans.reserve(body.insts.len());
        self.connecting.clear();
        self.exec_writes.clear();
        (self.vcc, self.named) = (false, [EMPTY; 3]);
        for (index, i) in body.insts.iter() {
            let inst = &i.inst;
            let info = inst.op.info();
            let implicit = |one| info.writes.contains(one);
            let mut writes_exec = implicit(Implicit::EXEC);
            self.vcc |= implicit(Implicit::VCC) || info.reads.contains(Implicit::VCC);
            // What an instruction does to its operands differs from what its row says only by modifiers.
            let by_row = !inst.modifiers.may_change_roles();
            let start = self.list.len() as u32;
            let (mut writes, mut count) = ([(VReg::from_u32(0), 0); MAX_OPERANDS], 0);
            for (operand, (spec, &o)) in info.operands.iter().zip(&inst.operands).enumerate() {
                if o.is_none() || o.is_constant() {
                    continue;
                }
                let bad = AllocationError::BadOperand { inst: index, operand: operand as u32 };
                let width = width(inst, operand, spec);
                let Some((id, first)) = o.as_virtual() else {
                    let writes = spec.role != Role::Use;
                    writes_exec |= writes && (o == Operand::EXEC || o == Operand::EXEC.offset(1));
                    self.name(o, width).ok_or(bad)?;
                    continue;
                };
                let register = body.registers.get(id);
                let inside = |own: u8| first + width <= u32::from(own) && own <= 32;
                if !register.is_some_and(|register| inside(register.width)) {
                    return Err(bad);
                }
                let parts = (id, (((1u64 << width) - 1) << first) as u32);
                let role = if by_row { spec.role } else { inst.role(operand) };
                if role != Role::Def {
                    self.list.push(parts);
                }
                if role != Role::Use {
                    // Several results in one register count as one write.
                    match writes[..count].iter_mut().find(|write| write.0 == id) {
                        Some(write) => write.1 |= parts.1,
                        None => {
                            writes[count] = parts;
                            count += 1;
                        }
                    }
                }
            }
            if writes_exec {
                self.exec_writes.push(index);
            }
            let reads_end = self.list.len() as u32;
            for &parts in &writes[..count] {
                self.list.push(parts);
            }
            self.spans.push(OperandSpan { reads: start, writes: reads_end, end: self.list.len() as u32 });
            let matrix = matches!(info.meaning, Meaning::Mfma(..) | Meaning::FormattedMfma(_));
            if inst.operands[0].is_virtual() && (matrix || as_copy(inst).is_some()) {
                self.connecting.push(index);
            }
        }
        Ok(())
    }

    /// Notes that a physical register is named, if it exists in its whole width.
    fn name(&mut self, o: Operand, width: u32) -> Option<()> {
        let Some((file, number)) = file_and_number(o) else { return Some(()) };
        self.vcc |= o == Operand::VCC || o == Operand::VCC.offset(1);
        let allocatable = if file == RegisterFile::Sgpr { 102 } else { 256 };
        if number + width <= allocatable {
            let named = &mut self.named[file as usize];
            named.iter_mut().zip(tuple(number, width)).for_each(|(word, more)| *word |= more);
        } else if number < allocatable {
            return None;
        }
        Some(())
    }

    /// Reads and writes of an instruction, each register at most once among the writes.
    pub(super) fn of(&self, index: InstId) -> (&[RegisterParts], &[RegisterParts]) {
        let OperandSpan { reads, writes, end } = self.spans[index];
        (&self.list[reads as usize..writes as usize], &self.list[writes as usize..end as usize])
    }

    /// Renumbers after instructions were removed that connect registers: instruction `i` is now number
    /// `numbers[i]`, which is that of the next one if it was removed. What single instructions name is
    /// unknown from then on.
    pub(super) fn renumber(&mut self, numbers: &PrimaryMap<InstId, InstId>) {
        self.list.clear();
        self.spans.clear();
        self.connecting.retain_mut(|index| {
            let (own, next) = (numbers[*index], numbers[index.next()]);
            *index = own;
            own != next
        });
    }
}

/// SGPR pairs are even and larger SGPR tuples at multiples of four; vector tuples are even (CDNA3 ISA guide,
/// "SGPR alignment"; LLVM `FeatureGFX90AInsts`, "RequiresAlignedVGPRs").
pub(super) fn alignment(file: RegisterFile, width: u32) -> u32 {
    match (file, width) {
        (_, 1) => 1,
        (RegisterFile::Sgpr, 3..) => 4,
        _ => 2,
    }
}

/// File of a physical register and its number there; special scalar registers count after the SGPRs.
pub(super) fn file_and_number(operand: Operand) -> Option<(RegisterFile, u32)> {
    let sgpr = || operand.number().filter(|_| operand.is_scalar_register()).map(|n| (RegisterFile::Sgpr, n));
    let agpr = || operand.as_agpr().map(|n| (RegisterFile::Agpr, n));
    operand.as_vgpr().map(|n| (RegisterFile::Vgpr, n)).or_else(agpr).or_else(sgpr)
}
