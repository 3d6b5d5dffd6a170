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
    /// `[TOTAL_M, H, D]`: the tokens of all sequences one after the other ([`Attention::packed`]).
    Packed,
}

/// Where elements of tensors with strides begin: all strides are multiples of so many elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Strides(pub(super) u32);

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

    /// Elements of a head of keys, if they are known.
    pub(super) fn dim(self) -> Option<u32> {
        self.known.map(|[_, dim]| dim)
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

/// One of queries, keys, values and output: its name, its rows, and its heads with their elements.
#[derive(Copy, Clone)]
struct RowsOfHeads {
    name: &'static str,
    /// Queries or keys.
    rows: Symbol,
    heads: Symbol,
    dim: Symbol,
}

impl RowsOfHeads {
    /// Declares it.
    fn declared(self, attention: &Attention, w: &Tracer, space: AddressSpace, dtype: DType) -> MemoryRef {
        let RowsOfHeads { name, rows, heads, dim } = self;
        let batch = Axes::of(attention.heads).batch;
        let shape = match attention.tensors.layout {
            AttentionLayout::Bhsd => [batch, heads, rows, dim],
            AttentionLayout::Bshd => [batch, rows, heads, dim],
            AttentionLayout::Packed => {
                let total = Symbol::new(&format!("TOTAL_{}", rows.name()));
                return w.memory(name, [total, heads, dim], space, dtype);
            }
        };
        let Some(Strides(multiple)) = attention.tensors.strides else {
            return w.memory(name, shape, space, dtype);
        };
        let outer = [shape[0], shape[1], shape[2]];
        // The heads of keys have the name of those of queries.
        let along = outer.map(|dim| if dim == heads { "H" } else { dim.name() });
        let strides = along.map(|along| Symbol::new(&format!("{}_{along}", name.to_uppercase())));
        w.distribute(strides.map(|stride| assume_divisible(stride, multiple)));
        w.memory_in(name, shape, &MemoryLayout::strides(strides), space, dtype)
    }
}

impl Attention {
    /// Queries, keys and values.
    pub(super) fn inputs_of(&self, w: &Tracer) -> [MemoryRef; 3] {
        let Axes { heads, queries, keys, dim, value_dim, kv_heads, .. } = Axes::of(self.heads);
        let of = |name, rows, heads, dim| RowsOfHeads { name, rows, heads, dim };
        [
            of("q", queries, heads, dim).declared(self, w, Global, self.tensors.inputs),
            of("k", keys, kv_heads, dim).declared(self, w, Shared, self.tensors.inputs),
            of("v", keys, kv_heads, value_dim).declared(self, w, Shared, self.tensors.inputs),
        ]
    }

    /// The output.
    pub(super) fn output_of(&self, w: &Tracer) -> MemoryRef {
        let Axes { heads, queries, value_dim, .. } = Axes::of(self.heads);
        let o = RowsOfHeads { name: "o", rows: queries, heads, dim: value_dim };
        o.declared(self, w, Global, self.output_dtype())
    }

    /// The logarithms of the sums, which have no strides.
    pub(super) fn log_sum_exp_of(&self, w: &Tracer) -> MemoryRef {
        let axes = Axes::of(self.heads);
        match self.tensors.layout {
            AttentionLayout::Packed => {
                w.memory("log_sum_exp", [axes.heads, Symbol::new("TOTAL_M")], Global, F32)
            }
            _ => w.memory("log_sum_exp", axes.rows(), Global, F32),
        }
    }

    /// The coordinates of an element of a tensor with sequences of one length: of a row, a head and a place
    /// in it.
    pub(super) fn place(&self, [row, head, element]: [SymExpr; 3]) -> [SymExpr; 4] {
        let batch = Axes::of(self.heads).batch.into();
        match self.tensors.layout {
            AttentionLayout::Bhsd => [batch, head, row, element],
            _ => [batch, row, head, element],
        }
    }

    /// The head of keys and values that belongs to a head of queries.
    pub(super) fn kv_head(&self) -> SymExpr {
        let heads = Axes::of(self.heads).heads;
        self.heads.group().map_or(heads.into(), |group| heads / group)
    }

    /// Element type of the output.
    pub(super) fn output_dtype(&self) -> DType {
        self.tensors.output.unwrap_or(match self.tensors.inputs {
            F16 => F16,
            _ => Bf16,
        })
    }
}
