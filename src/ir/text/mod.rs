//! The text form of kernels: tests are written in it, listings show it, people mail it to each other, and
//! caches identify kernels by it. Printing and parsing give back the same kernel; kernels can be written in
//! it by hand.
//!
//! ```text
//! kernel gemm {
//!   workgroup M, BLOCK_M, 0
//!   workgroup N, BLOCK_N, 1
//!   tile K, BLOCK_K
//!   wave M, BLOCK_M // 2
//!   wave N, BLOCK_N // 2
//!   mma f32_16x16x16_f16
//!   assume K % 32 == 0
//!   assume K >= 64
//!   a = memory [M, K] shared f16
//!   b = memory [N, K] shared f16
//!   c = memory [M, N] global f32
//!   %zero = register [M, N] f32 0.0
//!   %sum = iterate K (%acc = %zero) @k_loop {   ; a comment
//!     %x = read a @read_a
//!     %y = read b
//!     %next = mma %x, %y, %acc
//!     yield %next
//!   }
//!   write %sum, c
//! }
//! ```
//!
//! # Grammar
//! A statement ends with its line, except that a line goes on after `,`, `=`, `(` and `[`. `;` starts a
//! comment. Braces `{x}` mean any number of `x`, brackets `[x]` one or none, quotes literal text.
//!
//! ```text
//! kernel     = "kernel" name ["after" pass] "{" {constraint | facts | node | logical} "}"
//! facts      = "facts" {attribute}             what passes found out about the kernel; after all constraints
//! logical    = "logical" "{" {node} "}"        what the nodes after it are pieces of; after the memories
//! attribute  = "!" name ["(" what its row in `attributes` says ")"]
//! constraint = "workgroup" expr "," expr "," axis | "tile" expr "," expr | "wave" expr "," expr | "mma" name
//!            | "iterations" expr "," expr "," expr | "persistent" expr | "emulate" dtype
//!            | "reorder" ("grouped" integer | "xcd" integer | "cached" | axis "," expr)
//!            | "assume" expr "%" integer "==" "0"
//!            | "assume" expr (">=" | "<=") integer
//! node       = name "=" "memory" shape space dtype [tag]
//!            | name "=" "debug_log" [shape [dtype]] [tag]     the slots; after passes, the dimensions
//!            | value "=" compute [tag]
//!            | value "," value {"," value "," value} "=" "topk" value "over" symbol
//!            | "set_symbol" symbol "," value              what the symbol is from here on
//!            | "write" value "," place {flag} [tag]
//!            | "global_to_shared" place "," place [tag]
//!            | ("barrier" | control) [tag]
//!            | [result {"," result} "="] region "(" [carried {"," carried}] ")" [tag]
//!              "{" {node} ["yield" value {"," value}] "}"     last of a "while": its next condition
//! region     = "iterate" symbol | "conditional" value | "while" value
//! control    = "workgroup_barrier" | "conditional_barrier" condition | "set_wave_priority" integer
//!            | "scheduling_barrier" | "interleave_by_cost" | "skip_unit_factors"
//!            | ("wait_for_loads" | "wait_for_shared") integer
//! condition  = predicate (integer | "waves" ["/" integer])   of a wave's number in its workgroup
//! flag       = "volatile" | "non_temporal"
//! compute    = "register" shape dtype number | "constant" number | "allocate" shape dtype
//!            | "read" place {flag} | "mma" [name] value "," value "," value
//!            | unary value | binary operand "," operand | "compare" predicate operand "," operand
//!            | "select" value "," value "," value | "cast" value dtype | "broadcast" value shape
//!            | "self_index" symbol | "size" symbol | "iteration" symbol | "workgroup_id" axis
//!            | scan value "over" symbol
//!            | "register" shape dtype "(" expr ")" | "apply_expr" expr
//!            | (reduction | "argmax" | "argmin" | "any" | "all" | "mean") value
//!              "over" (symbol | "[" symbol {"," symbol} "]")
//! carried    = result "=" value                what the body sees at first = the initial value
//! result     = value [tag] | "_"               "_": nothing uses it
//! operand    = value | number                  a number is short for a "constant" before the node
//! place      = name | value                    a memory, or what "allocate" gave
//! shape      = "[" [symbol {"," symbol}] "]"
//! value      = "%" (name | digits)             the two written together
//! tag        = "@" (name | quoted)
//! symbol     = name | quoted                   quoted: "..." with Rust's escapes
//! number     = ["-"] (integer | float | "inf" | "nan" ["(" bits ")"])
//! expr       = sums and products of symbols and integers: + - * // % (rounding down), brackets,
//!              min(), max(), ceildiv()
//! ```
//!
//! The names of operations are the words of their rows ([`Op::rows`](super::node::Op::rows)), and of
//! [`Predicate::word`](super::node::Predicate::word). A value is visible from its definition to the end of
//! the surrounding region; memories have a name space of their own. The names of values are not kept: they
//! print as numbers.
//!
//! # Stages
//! A text that says `after PASS` is a kernel as that pass left it. All facts that passes have found out are
//! in it as attributes, after the tag of a node and before the brace of a loop, so a compilation goes on from
//! there with the remaining passes. Options that later passes look at (target, schedule, ...) are given anew;
//! sizes are in the text.
//!
//! After the kernel a text may hold a [`schedule`] for it ([`parse_file`]).

pub(in crate::ir) mod attributes;
mod constraints;
mod controls;
mod cursor;
mod decoding;
mod derived;
mod foreign;
mod lex;
mod mapped;
mod operations;
mod parse;
mod parser;
mod print;
mod printed_operations;
mod printer;
pub mod schedule;
mod scope;
mod stage;
mod symbolic;
mod uses;
mod words;

use std::fmt;

pub(crate) use attributes::copy_all as copy_attributes;
#[doc(hidden)]
pub use foreign::dtype as foreign_dtype;
pub use print::print;
pub(crate) use print::print_after;

use super::diagnostic::{Diagnostic, Diagnostics, Kind};
use super::kernel::Kernel;
use super::schedule::WaveSchedule;

/// How much of a kernel is printed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Detail {
    /// What makes two kernels the same for the compiler: no tags.
    Identity,
    /// What the author wrote.
    Source,
    /// The same. Facts that passes have added are in every text that says after which pass it stands.
    Full,
    /// And where the author wrote each part, so that a compilation which goes on from the text makes the same
    /// object.
    Stage,
}

/// Reads a kernel, and the schedule after it if there is one. `file` is the name that diagnostics give the
/// text.
///
/// # Errors
/// All mistakes found, in the order of the text, each with its line (at most twenty).
///
/// A text of more than [`MAX_KERNEL_BYTES`] is an error.
///
/// # Example
/// ```
/// use groundswell::text::parse_file;
/// let text = "kernel nothing {\n}\n\nschedule none {\n}\n";
/// let (kernel, schedule) = parse_file(text, "nothing.gsw").unwrap();
/// assert_eq!(kernel.name(), "nothing");
/// assert_eq!(schedule.unwrap().name(), "none");
/// ```
pub fn parse_file(text: &str, file: &str) -> Result<(Kernel, Option<WaveSchedule>), Diagnostics> {
    if text.len() > MAX_KERNEL_BYTES {
        let message = format!("the text has {} bytes, and a kernel may have {MAX_KERNEL_BYTES}", text.len());
        return Err(Diagnostics::of_text(vec![Diagnostic::new(Kind::Limit, message)], file, ""));
    }
    parse::parse(text, file)
}

/// The most bytes of the text of a kernel and its schedule. A kernel with as many operations as can be
/// compiled has fewer.
pub const MAX_KERNEL_BYTES: usize = 4 << 20;

impl Kernel {
    /// Reads the text form. A schedule after the kernel is read as well, and ignored. `file` is the name that
    /// diagnostics give the text.
    ///
    /// # Errors
    /// All mistakes found, in the order of the text, each with its line (at most twenty). With `?` they
    /// become one [`Diagnostic`], which a `main` that returns it prints with the lines of the text.
    ///
    /// [`Diagnostic`]: super::diagnostic::Diagnostic
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// fn main() -> Result<(), Diagnostic> {
    ///     let kernel = Kernel::parse("kernel nothing {\n}\n", "nothing.gsw")?;
    ///     assert_eq!(kernel.name(), "nothing");
    ///     let faults = Kernel::parse("kernel { ", "bad.gsw").err().unwrap();
    ///     assert!(faults[0].to_string().starts_with("error: expected the kernel's name, found `{`\n"));
    ///     Ok(())
    /// }
    /// ```
    pub fn parse(text: &str, file: &str) -> Result<Kernel, Diagnostics> {
        parse_file(text, file).map(|(kernel, _)| kernel)
    }

    /// The kernel's text.
    pub fn text(&self, detail: Detail) -> String {
        print(&self.world, self.root, detail)
    }
}

/// The text as its author wrote it, [`Detail::Source`].
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Detail::Source))
    }
}

/// The same text.
impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
