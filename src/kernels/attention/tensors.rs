//! Queries, keys, values and output in memory.

use super::builder::Attention;
use crate::prelude::*;

/// How the tensors of attention lie in memory. Sequences are outermost and the elements of a head innermost
/// in each.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum AttentionLayout {
    /// `[B, H, M, D]`: the tokens of a head side by side.
    #[default]
    Bhsd,
    /// `[B, M, H, D]`: the heads of a token side by side.
    Bshd,
}

/// Heads and their elements.
#[derive(Copy, Clone, Debug)]
pub(super) struct HeadSizes {
    /// Heads of queries, and elements of a head; none where they are symbols.
    known: Option<[u32; 2]>,
    shared: Sharing,
    value_dim: Option<u32>,
}

/// How many heads of queries have a head of keys and values in common.
#[derive(Copy, Clone, Debug)]
enum Sharing {
    /// One.
    Own,
    /// So many heads of keys and values for all.
    Heads(u32),
    /// As many as the symbol `GROUP` says.
    Any,
}

impl HeadSizes {
    pub(super) fn new(heads: u32, head_dim: u32) -> HeadSizes {
        HeadSizes { known: Some([heads, head_dim]), shared: Sharing::Own, value_dim: None }
    }

    pub(super) fn any() -> HeadSizes {
        HeadSizes { known: None, shared: Sharing::Own, value_dim: None }
    }

    pub(super) fn share(&mut self, kv_heads: u32) {
        self.shared = Sharing::Heads(kv_heads);
    }

    pub(super) fn share_any(&mut self) {
        self.shared = Sharing::Any;
    }

    pub(super) fn values(&mut self, value_dim: u32) {
        self.value_dim = Some(value_dim);
    }

    /// Elements of a head of values, if they are known.
    pub(super) fn value_dim(self) -> u32 {
        self.value_dim.or(self.known.map(|[_, dim]| dim)).unwrap_or(0)
    }

    /// The larger of a head of keys and one of values.
    pub(super) fn largest_dim(self) -> u32 {
        self.known.map_or(128, |[_, dim]| dim).max(self.value_dim())
    }

    /// Heads of queries for each head of keys and values; none if each has its own.
    pub(super) fn group(self) -> Option<SymExpr> {
        match (self.shared, self.known) {
            (Sharing::Own, _) => None,
            (Sharing::Heads(kv_heads), Some([heads, _])) if heads == kv_heads => None,
            (Sharing::Heads(kv_heads), Some([heads, _])) => Some((heads / kv_heads.max(1)).into()),
            (Sharing::Heads(_), None) | (Sharing::Any, _) => Some(Symbol::new("GROUP").into()),
        }
    }

    /// Symbols with the sizes that are known.
    pub(super) fn bound(self) -> Vec<(&'static str, u32)> {
        let known = self.known.map(|[heads, dim]| [("H", heads), ("D", dim)]);
        let shared = match self.shared {
            Sharing::Heads(kv_heads) if self.group().is_some() => Some(("KV", kv_heads)),
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
        if let Sharing::Heads(kv_heads) = self.shared
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
pub(super) struct Axes {
    pub(super) batch: Symbol,
    pub(super) heads: Symbol,
    pub(super) queries: Symbol,
    pub(super) keys: Symbol,
    pub(super) dim: Symbol,
    pub(super) value_dim: Symbol,
    /// Heads of keys and values, which follow those of queries.
    pub(super) kv_heads: Symbol,
}

impl Axes {
    pub(super) fn of(heads: HeadSizes) -> Axes {
        let [batch, all, queries, keys, dim] = symbols(["B", "H", "M", "N", "D"]);
        let value_dim = heads.value_dim.map_or(dim, |_| Symbol::new("DV"));
        let kv_heads = heads.group().map_or(all, |_| Symbol::new("KV"));
        Axes { batch, heads: all, queries, keys, dim, value_dim, kv_heads }
    }

    /// The dimensions of a row of scores.
    pub(super) fn rows(self) -> [Symbol; 3] {
        [self.batch, self.heads, self.queries]
    }
}

impl Attention {
    /// A tensor of rows of heads.
    fn tensor(
        &self,
        w: &Tracer,
        name: &str,
        [rows, heads, dim]: [Symbol; 3],
        space: AddressSpace,
    ) -> MemoryRef {
        let batch = Axes::of(self.heads).batch;
        let dtype = if name == "o" { self.output.unwrap_or(self.inputs) } else { self.inputs };
        match self.layout {
            AttentionLayout::Bhsd => w.memory(name, [batch, heads, rows, dim], space, dtype),
            AttentionLayout::Bshd => w.memory(name, [batch, rows, heads, dim], space, dtype),
        }
    }

    /// Queries, keys and values.
    pub(super) fn inputs_of(&self, w: &Tracer) -> [MemoryRef; 3] {
        let Axes { heads, queries, keys, dim, value_dim, kv_heads, .. } = Axes::of(self.heads);
        [
            self.tensor(w, "q", [queries, heads, dim], Global),
            self.tensor(w, "k", [keys, kv_heads, dim], Shared),
            self.tensor(w, "v", [keys, kv_heads, value_dim], Shared),
        ]
    }

    /// The output, to which `values` is written.
    pub(super) fn write_output(&self, w: &Tracer, values: Value) {
        let Axes { heads, queries, value_dim, .. } = Axes::of(self.heads);
        let o = self.tensor(w, "o", [queries, heads, value_dim], Global);
        w.write(values.cast(self.output.unwrap_or(self.inputs)), o);
    }
}
