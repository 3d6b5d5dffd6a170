//! Symbols: named integers, interned by name for the whole process.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// A named integer. Two symbols with one name are the same symbol.
///
/// A symbol whose name is a decimal number, as `Symbol::from(64)` makes it, is that number: a dimension of
/// this size, which is never bound. One whose name is that of another symbol, a slash and a number, as
/// [`Symbol::scaled`] makes it, follows that other one.
///
/// The handle depends on which name came first in this process, so it never decides an order: symbols compare
/// by name.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Symbol(u32);

#[derive(Default)]
struct SymbolNames {
    by_name: FxHashMap<&'static str, u32>,
    names: Vec<&'static str>,
}

/// Names live as long as the process: a symbol is `Copy` and travels everywhere, and a program uses few
/// names.
static NAMES: RwLock<Option<SymbolNames>> = RwLock::new(None);

impl Symbol {
    /// The symbol with this name.
    pub fn new(name: &str) -> Symbol {
        {
            let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(&id) = names.as_ref().and_then(|names| names.by_name.get(name)) {
                return Symbol(id);
            }
        }
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        let names = names.get_or_insert_default();
        if let Some(&id) = names.by_name.get(name) {
            return Symbol(id);
        }
        let name: &'static str = Box::leak(name.into());
        let id = names.names.len() as u32;
        names.names.push(name);
        names.by_name.insert(name, id);
        Symbol(id)
    }

    /// The name it was made with.
    pub fn name(self) -> &'static str {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        names.as_ref().expect("a symbol exists, so the table does").names[self.0 as usize]
    }

    /// The number that it stands for, if its name is one.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// assert_eq!(Symbol::from(64).value(), Some(64));
    /// assert_eq!(Symbol::new("M").value(), None);
    /// ```
    pub fn value(self) -> Option<i64> {
        number(self.name())
    }

    /// The dimension that has an element for each block of `by` elements of this one, as the scales of block
    /// floats have: `K/32` of K. The last block may be a smaller one, so there are `K / by` of them, rounded
    /// up. It is spread over workgroups, loops and waves as its base is: constraints name the base.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let k = Symbol::new("K");
    /// assert_eq!(k.scaled(32).name(), "K/32");
    /// assert_eq!(k.scaled(2).scaled(16), k.scaled(32));
    /// assert_eq!(k.scaled(32).scaled_from(), Some((k, 32)));
    /// ```
    #[must_use]
    pub fn scaled(self, by: u32) -> Symbol {
        let (base, before) = self.scaled_from().unwrap_or((self, 1));
        match u64::from(before) * u64::from(by) {
            1 => base,
            all => Symbol::new(&format!("{}/{all}", base.name())),
        }
    }

    /// The dimension of whose blocks this one has an element each, and the elements of a block; nothing of
    /// other symbols.
    pub fn scaled_from(self) -> Option<(Symbol, u32)> {
        let name = self.name();
        // Every compilation asks this of every dimension; most names end with a letter.
        name.as_bytes().last().filter(|last| last.is_ascii_digit())?;
        let (base, by) = name.split_once('/')?;
        let by = number(by).and_then(|by| u32::try_from(by).ok()).filter(|&by| by > 1)?;
        Some((Symbol::new(base), by))
    }

    /// Its value: the number that it is, the blocks of another symbol, or what `bound` says.
    pub(crate) fn value_where(self, bound: &dyn Fn(Symbol) -> Option<i64>) -> Option<i64> {
        let blocks = || {
            let (base, by) = self.scaled_from()?;
            let size = base.value().or_else(|| bound(base))?;
            Some(-size.checked_neg()?.div_euclid(by.into()))
        };
        self.value().or_else(|| bound(self)).or_else(blocks)
    }

    /// A number for hashing; it differs from process to process and must not reach an output.
    pub(super) fn id(self) -> u32 {
        self.0
    }
}

/// The symbol with this name.
impl From<&str> for Symbol {
    fn from(name: &str) -> Symbol {
        Symbol::new(name)
    }
}

/// The dimension of this size.
impl From<u32> for Symbol {
    fn from(size: u32) -> Symbol {
        Symbol::new(&size.to_string())
    }
}

/// The number that a name stands for: decimal digits, without leading zeros.
fn number(name: &str) -> Option<i64> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    if digits { name.parse::<u32>().ok().map(i64::from) } else { None }
}

/// A symbol is stored by its name.
impl serde::Serialize for Symbol {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for Symbol {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Symbol, D::Error> {
        Ok(Symbol::new(<&str>::deserialize(deserializer)?))
    }
}

/// A name that lives as long as the process. As a type of its own name, it can be stored by [`lasting_name`].
pub(crate) type LastingName = &'static str;

/// Storing names that live as long as the process. A program uses few, so those that are read are kept where
/// symbols have theirs.
pub(crate) mod lasting_name {
    use super::Symbol;

    /// The name with this text.
    pub(crate) fn of(text: &str) -> &'static str {
        Symbol::new(text).name()
    }

    pub(crate) fn serialize<S: serde::Serializer>(
        name: &&'static str,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name)
    }

    pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<&'static str, D::Error> {
        <&str as serde::Deserialize>::deserialize(deserializer).map(of)
    }
}

/// Several symbols at once: `let [m, n] = symbols(["M", "N"]);`
pub fn symbols<const N: usize>(names: [&str; N]) -> [Symbol; N] {
    names.map(Symbol::new)
}

impl PartialOrd for Symbol {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Symbol {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.0 == other.0 { Ordering::Equal } else { self.name().cmp(other.name()) }
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol({})", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_one_symbol_and_order_is_by_name() {
        let [late, early] = symbols(["zz_late", "aa_early"]);
        assert_eq!(late, Symbol::new("zz_late"));
        assert_ne!(late, early);
        assert!(early < late);
        assert_eq!(late.name(), "zz_late");
    }

    #[test]
    fn a_scaled_symbol_is_the_blocks_of_its_base_rounded_up() {
        let k = Symbol::new("K");
        let of = |size: i64| move |symbol: Symbol| (symbol == Symbol::new("K")).then_some(size);
        for (size, blocks) in [(0, 0), (1, 1), (31, 1), (32, 1), (33, 2), (64, 2), (100, 4)] {
            assert_eq!(k.scaled(32).value_where(&of(size)), Some(blocks), "{size}");
        }
        assert_eq!(Symbol::from(100).scaled(32).value_where(&|_| None), Some(4), "which no shape has");
        assert_eq!(k.scaled(1), k);
        for name in ["K", "K/0", "K/1", "K/032", "K/2/16", "K/x", "K/"] {
            assert_eq!(Symbol::new(name).scaled_from(), None, "{name}");
        }
        assert_eq!(k.scaled(0), Symbol::new("K/0"));
    }

    #[test]
    fn a_name_of_digits_is_a_number() {
        for (name, value) in [("64", Some(64)), ("0", Some(0)), ("4294967295", Some(u32::MAX.into()))] {
            assert_eq!(Symbol::new(name).value(), value);
        }
        for name in ["", "064", "+64", "-64", "64 ", "4294967296", "0x40", "M64"] {
            assert_eq!(Symbol::new(name).value(), None, "{name}");
        }
        assert_eq!(Symbol::from(64), Symbol::new("64"));
    }
}
