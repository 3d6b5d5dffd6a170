//! Results of the costly operations, so that asking again is one lookup. A new assumption clears them all,
//! since it may simplify what did not simplify before.
use super::table::InternTable;
use super::{Expr, ExprArena, ExprError};
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// An operation of two expressions that is worth remembering.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Mul,
    FloorDiv,
    Mod,
    Min,
    Max,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    entries: Vec<(Operation, Expr, Expr, Expr)>,
    table: InternTable,
}

impl Memo {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.table.clear();
    }
}

impl ExprArena {
    /// The result of an operation, computed the first time.
    pub(super) fn remembered(
        &mut self,
        operation: Operation,
        a: Expr,
        b: Expr,
        compute: impl FnOnce(&mut ExprArena) -> Result<Expr, ExprError>,
    ) -> Result<Expr, ExprError> {
        let mut hasher = FxHasher::default();
        hasher.write_u64(u64::from(a.0) << 32 | u64::from(b.0));
        hasher.write_u8(operation as u8);
        let hash = hasher.finish() as u32;
        let Memo { entries, table } = &self.memo;
        let same = |at: u32| {
            let (other, x, y, _) = entries[at as usize];
            (other, x, y) == (operation, a, b)
        };
        if let Some(at) = table.find(hash, same) {
            return Ok(entries[at as usize].3);
        }
        let result = compute(self)?;
        let at = self.memo.entries.len() as u32;
        self.memo.entries.push((operation, a, b, result));
        self.memo.table.insert(hash, at);
        Ok(result)
    }
}
