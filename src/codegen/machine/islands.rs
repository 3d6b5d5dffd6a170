//! Branches further than the immediate reaches go by way of islands: single branches in the middle of the
//! code, which control runs around otherwise. An island needs no register and changes none, not even SCC,
//! so it serves conditional branches as well.
//!
//! Few kernels are that long, so nothing is done before the encoder finds a branch that does not reach. Each
//! call brings all such branches one island nearer to their targets. Instructions that an island pushes apart
//! are not nearer to each other than before, and no waits or hazards are added.

use smallvec::SmallVec;

use super::body::{Block, BlockId, InstId, MachineBody, MachineInst};
use super::branches::{BRANCH_REACH, Code};
use crate::codegen::isa::{Inst, Meaning, Opcode};
use crate::index::Neighbours;
use cranelift_entity::{EntityRef, PrimaryMap, iter_entity_range};

/// Words that an island is nearer than a branch reaches: room for the islands that come in between.
const SLACK: i64 = 512;

/// An island that is to be made.
struct Island {
    /// The instruction in front of which it lies.
    at: InstId,
    /// The block that it leads to.
    target: BlockId,
    /// The node whose branch needs it.
    source: u32,
}

/// The new numbers of blocks: that of the first part of each block of before, and of the end.
pub(crate) type BlockNumbers = PrimaryMap<BlockId, BlockId>;

/// Where the instructions and blocks of encoded code are, in words.
struct CodePlaces<'a> {
    body: &'a MachineBody,
    code: &'a Code,
}

impl CodePlaces<'_> {
    fn of_inst(&self, inst: InstId) -> i64 {
        self.code.offsets.get(inst).map_or(i64::from(self.code.size()), |&at| i64::from(at)) / 4
    }

    fn of_block(&self, block: BlockId) -> i64 {
        self.code.blocks.get(block).map_or(i64::from(self.code.size()), |&at| i64::from(at)) / 4
    }

    /// Words that a branch would skip to go to a place.
    fn distance(&self, branch: InstId, to: i64) -> i64 {
        to - self.of_inst(branch) - 1
    }

    /// The last instruction that begins at a word or in front of it.
    fn inst_at(&self, word: i64) -> InstId {
        let after = self.code.offsets.as_values_slice().partition_point(|&at| i64::from(at) / 4 <= word);
        InstId::new(after.saturating_sub(1))
    }

    /// Of a branch that does not reach its target: a block that leads there and nowhere else, and is nearer.
    fn way_station(&self, branch: InstId, target: BlockId, known: &[BlockId]) -> Option<BlockId> {
        let whole = self.distance(branch, self.of_block(target));
        known.iter().copied().find(|&block| {
            let leads = matches!(self.body.block(block), [only] if only.inst.op == Opcode::SBranch
                && BlockId::from_u32(only.inst.imm) == target);
            let way = self.distance(branch, self.of_block(block));
            let is_itself = self.of_block(block) == self.of_inst(branch);
            let is_on_way = way.signum() == whole.signum() && way.abs() < whole.abs();
            leads && is_on_way && !is_itself && way.abs() <= BRANCH_REACH - SLACK
        })
    }
}

/// Brings branches of a body that do not reach their targets nearer to these; `code` is what the body was
/// encoded to. Returns the new numbers of its blocks.
pub(crate) fn add_islands(body: &mut MachineBody, code: &Code) -> BlockNumbers {
    let places = CodePlaces { body, code };
    let stations: Vec<BlockId> = body.blocks.keys().filter(|&block| body.block(block).len() == 1).collect();
    let mut islands: Vec<Island> = Vec::new();
    // Branches that go elsewhere: to a block that there is, or to an island.
    let mut to_blocks: Vec<(InstId, BlockId)> = Vec::new();
    let mut to_islands: Vec<(InstId, usize)> = Vec::new();
    for (index, inst) in body.insts.iter() {
        if !matches!(inst.inst.op.info().meaning, Meaning::Branch(_)) {
            continue;
        }
        let target = BlockId::from_u32(inst.inst.imm);
        let distance = places.distance(index, places.of_block(target));
        if distance.abs() <= BRANCH_REACH {
            continue;
        }
        if let Some(station) = places.way_station(index, target, &stations) {
            to_blocks.push((index, station));
            continue;
        }
        let reaches = |island: &Island| {
            let way = places.distance(index, places.of_inst(island.at));
            let is_on_way = way.signum() == distance.signum() && way.abs() < distance.abs();
            island.target == target && is_on_way && way.abs() <= BRANCH_REACH - SLACK
        };
        let number = islands.iter().position(reaches).unwrap_or_else(|| {
            let way = distance.signum() * (BRANCH_REACH - SLACK);
            let at = places.inst_at(places.of_inst(index) + 1 + way);
            islands.push(Island { at, target, source: inst.source });
            islands.len() - 1
        });
        to_islands.push((index, number));
    }
    let mut rebuild = Rebuild::default();
    rebuild.run(body, &islands);
    for (inst, station) in to_blocks {
        rebuild.redirect(body, inst, rebuild.numbers[station]);
    }
    for (inst, island) in to_islands {
        rebuild.redirect(body, inst, rebuild.islands[island]);
    }
    rebuild.numbers
}

/// A body with islands, in the making.
#[derive(Default)]
struct Rebuild {
    blocks: PrimaryMap<BlockId, Block>,
    numbers: BlockNumbers,
    /// The new numbers of instructions.
    moved: PrimaryMap<InstId, InstId>,
    /// The block of each island.
    islands: Vec<BlockId>,
    /// Parts of blocks that end in front of islands.
    parts: Vec<BlockId>,
    /// Branches around islands: the block of the branch, and where it goes.
    around: Vec<(BlockId, BlockId)>,
}

impl Rebuild {
    fn run(&mut self, body: &mut MachineBody, islands: &[Island]) {
        let mut order: SmallVec<[usize; 8]> = (0..islands.len()).collect();
        order.sort_by_key(|&number| islands[number].at);
        self.islands.resize(islands.len(), BlockId::new(0));
        let mut left = &order[..];
        body.spare.clear();
        for number in body.blocks.keys() {
            let Block { start: first, end, successors } = body.blocks[number];
            self.numbers.push(self.blocks.next_key());
            let mut start = body.spare.next_key();
            for inst in iter_entity_range(first..end) {
                let count = left.iter().take_while(|&&island| islands[island].at == inst).count();
                let (here, others) = left.split_at(count);
                left = others;
                if let Some(&one) = here.first() {
                    let end = body.spare.next_key();
                    self.parts.push(self.blocks.push(Block { start, end, successors: [None; 2] }));
                    let around = self.branch(body, number, islands[one].source);
                    for &island in here {
                        let Island { target, source, .. } = islands[island];
                        self.islands[island] = self.branch(body, target, source);
                    }
                    self.around.push((around, self.blocks.next_key()));
                    start = body.spare.next_key();
                }
                self.moved.push(body.spare.push(body.insts[inst]));
            }
            self.blocks.push(Block { start, end: body.spare.next_key(), successors });
        }
        self.numbers.push(self.blocks.next_key());
        self.renumber(body);
    }

    /// Appends a block of one branch, to a block by its old number.
    fn branch(&mut self, body: &mut MachineBody, target: BlockId, source: u32) -> BlockId {
        let inst = Inst::new(Opcode::SBranch, &[]).imm(target.as_u32());
        let start = body.spare.push(MachineInst { inst, source });
        self.blocks.push(Block { start, end: start.next(), successors: [None, Some(target)] })
    }

    /// Gives branches and blocks the new numbers, and the body what was made.
    fn renumber(&mut self, body: &mut MachineBody) {
        for inst in body.spare.values_mut() {
            if matches!(inst.inst.op.info().meaning, Meaning::Branch(_)) {
                inst.inst.imm = self.numbers[BlockId::from_u32(inst.inst.imm)].as_u32();
            }
        }
        for block in self.blocks.values_mut() {
            block.successors = block.successors.map(|next| next.map(|next| self.numbers[next]));
        }
        for &part in &self.parts {
            self.blocks[part].successors = [Some(part.next()), None];
        }
        std::mem::swap(&mut body.insts, &mut body.spare);
        std::mem::swap(&mut body.blocks, &mut self.blocks);
        for &(from, to) in &self.around {
            point(body, from, to);
        }
    }

    /// Points a branch, which has its old number, to a block.
    fn redirect(&self, body: &mut MachineBody, branch: InstId, to: BlockId) {
        let last = self.moved[branch].next();
        let ends = |(_, block): &(BlockId, &Block)| block.end == last && block.start < last;
        if let Some((from, _)) = body.blocks.iter().find(ends) {
            point(body, from, to);
        }
    }
}

/// Points the branch at the end of a block to another block.
fn point(body: &mut MachineBody, from: BlockId, to: BlockId) {
    let block = &mut body.blocks[from];
    block.successors[1] = Some(to);
    if let Some(branch) = block.end.before() {
        body.insts[branch].inst.imm = to.as_u32();
    }
}
