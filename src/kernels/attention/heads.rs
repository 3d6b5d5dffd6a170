//! Heads: how many there are, their elements, and the dimensions that follow.

use crate::prelude::*;

/// Heads and their elements.
#[derive(Copy, Clone, Debug)]
pub(super) struct HeadSizes {
    /// Heads of queries, and elements of a head; none where they are symbols.
    known: Option<[u32; 2]>,
    shared: HeadSharing,
    value_dim: Option<u32>,
}

/// How many heads of queries have a head of keys and values in common.
#[derive(Copy, Clone, Debug)]
enum HeadSharing {
    /// One.
    Own,
    /// So many heads of keys and values for all.
    Heads(u32),
    /// As many as the symbol `GROUP` says.
    Any,
}

impl HeadSizes {
    pub(super) fn new(heads: u32, head_dim: u32) -> HeadSizes {
        HeadSizes { known: Some([heads, head_dim]), shared: HeadSharing::Own, value_dim: None }
    }

    pub(super) fn any() -> HeadSizes {
        HeadSizes { known: None, shared: HeadSharing::Own, value_dim: None }
    }

    pub(super) fn share(&mut self, kv_heads: u32) {
        self.shared = HeadSharing::Heads(kv_heads);
    }

    pub(super) fn share_any(&mut self) {
        self.shared = HeadSharing::Any;
    }

    pub(super) fn values(&mut self, value_dim: u32) {
        self.value_dim = Some(value_dim);
    }

    /// Elements of a head of values, if they are known.
    pub(super) fn value_dim(self) -> Option<u32> {
        self.value_dim.or(self.dim())
    }

    /// Elements of a head of keys, if they are known.
    pub(super) fn dim(self) -> Option<u32> {
        self.known.map(|[_, dim]| dim)
    }

    /// The larger of a head of keys and one of values.
    pub(super) fn largest_dim(self) -> u32 {
        self.dim().unwrap_or(128).max(self.value_dim().unwrap_or(0))
    }

    /// Heads of queries for each head of keys and values; none if each has its own.
    pub(super) fn group(self) -> Option<SymExpr> {
        match (self.shared, self.known) {
            (HeadSharing::Own, _) => None,
            (HeadSharing::Heads(kv_heads), Some([heads, _])) if heads == kv_heads => None,
            (HeadSharing::Heads(kv_heads), Some([heads, _])) => Some((heads / kv_heads.max(1)).into()),
            (HeadSharing::Heads(_), None) | (HeadSharing::Any, _) => Some(Symbol::new("GROUP").into()),
        }
    }

    /// Symbols with the sizes that are known.
    pub(super) fn bound(self) -> Vec<(&'static str, u32)> {
        let known = self.known.map(|[heads, dim]| [("H", heads), ("D", dim)]);
        let shared = match self.shared {
            HeadSharing::Heads(kv_heads) if self.group().is_some() => Some(("KV", kv_heads)),
            _ => None,
        };
        known.into_iter().flatten().chain(shared).chain(self.value_dim.map(|dim| ("DV", dim))).collect()
    }

    /// Fails where there are no heads, or heads that do not divide into groups, or too large ones.
    pub(super) fn check(self) -> Result<(), Diagnostic> {
        let Some([heads, dim]) = self.known else { return Ok(()) };
        if heads == 0 {
            return Err(Diagnostic::invalid("attention has no heads").help("use at least one head"));
        }
        if let HeadSharing::Heads(kv_heads) = self.shared
            && (kv_heads == 0 || !heads.is_multiple_of(kv_heads))
        {
            let text = format!("{heads} heads of queries do not divide among {kv_heads} heads of keys");
            let help = "use a number of heads of keys and values that divides that of queries";
            return Err(Diagnostic::invalid(text).help(help));
        }
        for (what, size) in [("a head", dim), ("a head of values", self.value_dim.unwrap_or(dim))] {
            if !(1..=256).contains(&size) {
                let text = format!("{what} of {size} elements is not kept in registers");
                return Err(Diagnostic::invalid(text).help("use heads of 1 to 256 elements"));
            }
        }
        Ok(())
    }
}

/// The dimensions of attention.
#[derive(Copy, Clone)]
pub(super) struct AttentionDims {
    pub(super) batch: Symbol,
    pub(super) heads: Symbol,
    pub(super) queries: Symbol,
    pub(super) keys: Symbol,
    pub(super) dim: Symbol,
    pub(super) value_dim: Symbol,
    /// Heads of keys and values, which follow those of queries.
    pub(super) kv_heads: Symbol,
}

impl AttentionDims {
    pub(super) fn of(heads: HeadSizes) -> AttentionDims {
        let [batch, all, queries, keys, dim] = symbols(["B", "H", "M", "N", "D"]);
        let value_dim = heads.value_dim.map_or(dim, |_| Symbol::new("DV"));
        let kv_heads = heads.group().map_or(all, |_| Symbol::new("KV"));
        AttentionDims { batch, heads: all, queries, keys, dim, value_dim, kv_heads }
    }

    /// The dimensions of a row of scores.
    pub(super) fn rows(self) -> [Symbol; 3] {
        [self.batch, self.heads, self.queries]
    }
}
