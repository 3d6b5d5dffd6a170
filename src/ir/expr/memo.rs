//! Results of the costly operations, so that asking again is one lookup. A new assumption clears them all,
//! since it may simplify what did not simplify before.
use super::handle::Expr;
use super::table::InternTable;
use cranelift_entity::{PrimaryMap, entity_impl};
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// An operation of two expressions that is worth remembering.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum MemoOperation {
    Mul,
    FloorDiv,
    Mod,
    Min,
    Max,
}

/// An operation and its operands.
pub(super) type MemoKey = (MemoOperation, Expr, Expr);

/// The number of a result.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct EntryId(u32);
entity_impl!(EntryId, "");

#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    entries: PrimaryMap<EntryId, (MemoKey, Expr)>,
    table: InternTable<EntryId>,
}

impl Memo {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.table.clear();
    }

    pub(super) fn hash((operation, a, b): MemoKey) -> u32 {
        let mut hasher = FxHasher::default();
        hasher.write_u64(u64::from(a.as_u32()) << 32 | u64::from(b.as_u32()));
        hasher.write_u8(operation as u8);
        hasher.finish() as u32
    }

    /// The result, if it is known; `hash` is that of the key.
    pub(super) fn get(&self, hash: u32, key: MemoKey) -> Option<Expr> {
        let at = self.table.find(hash, |at| self.entries[at].0 == key)?;
        Some(self.entries[at].1)
    }

    pub(super) fn insert(&mut self, hash: u32, key: MemoKey, result: Expr) {
        let at = self.entries.push((key, result));
        self.table.insert(hash, at);
    }
}
