//! Sorts become networks of exchanges among the elements that a wave holds: a bitonic network (Batcher,
//! "Sorting networks and their applications", 1968) over the next power of two of elements.
//!
//! The place of an element is a number of binary digits, each a dimension of two elements. The row is read
//! along these, from its memory if it is a plain read of one that the kernel does not write, and otherwise by
//! way of LDS; an exchange is the least and the greatest element along a digit; and what is sorted is written
//! along the digits, if all that is done with it is to write it, and otherwise goes by way of LDS again.
//!
//! What is compared is an integer for each element, in the order of the elements: of a float its bits, with
//! those of the magnitude turned round where it is negative. NaNs have the greatest number but one, and what
//! fills the row up the greatest. Where places are asked for, they are the least significant bits of it.
//!
//! `Op::Sort` stands for itself only until this pass: neither the dimensions of a value nor the length of a
//! row are known when a kernel is traced, so that it can be no word of `ir/assemble/derived`. Later parts of
//! the compiler know no sorts.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::layout::Dim;
use crate::ir::mapping::{Mapping, operand_symbol};
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::Bug;
use crate::ir::types::DType;
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::analysis::counted_dims::counted_dim;
use crate::passes::analysis::read_sources::ReadSources;
use crate::passes::facts::{Geometry, Settings};
use crate::passes::kernel_editor::KernelEditor;

/// The most digits of a place: a row has at most 1024 elements.
const MAX_DIGITS: u32 = 10;

/// Registers that an exchange spills for each register of what is compared, where that fills half of the
/// registers or more: measured, of networks of 512 and 1024 elements.
const SPILLED: (u64, u64) = (7, 3);

/// Registers for which a work-item can have scratch: a wave has less than 2^13 units of 1024 bytes (LLVM
/// `GCNSubtarget::getMaxWaveScratchSize`).
const MOST_SPILLED: u64 = ((1 << 13) - 1) * 1024 / 64 / 4;

/// The pass itself; see the module.
pub(crate) fn sort_rows(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let sources = ReadSources::of(&editor)?;
    let mut uses: NodeMap<SmallVec<[Entity; 2]>> = NodeMap::default();
    for node in editor.nodes() {
        let yields = editor.get::<Yields>(node).map(|yields| &yields.0[..]).unwrap_or_default();
        for &used in editor.node(node)?.operands.0.iter().chain(yields) {
            if let Op::Sort(_) = editor.op(used)? {
                match uses.get_mut(used) {
                    Some(users) => users.push(node),
                    None => uses.insert(used, smallvec![node]),
                }
            }
        }
    }
    editor.rewrite(|editor, node| {
        let Op::Sort(sort) = editor.op(node)? else { return Ok(()) };
        let users = uses.get(node).map(|users| &users[..]).unwrap_or_default();
        let mut network = SortNetwork::new(editor, node, sort)?;
        let sorted = network.sorted(&sources)?;
        network.hand_on(node, sorted, users)
    })
}

/// What is compared in place of the elements.
struct SortKey {
    /// The dtype that the elements are cast to first.
    element: DType,
    /// Of floats: the integers of the same size.
    bits: Option<DType>,
    /// The dtype of what is compared.
    word: DType,
    /// What stands for a NaN.
    nan: i64,
    /// What fills a row up.
    filling: i64,
}

impl SortKey {
    /// The key of a dtype; none if its elements and places do not fit into 64 bits together.
    fn of(dtype: DType, with_places: bool) -> Option<SortKey> {
        let element = if dtype.is_float() && dtype.bits() == 8 { DType::F32 } else { dtype };
        let width = element.bits();
        let word = match (width, with_places) {
            (64, true) => return None,
            (64, false) | (32, true) => DType::I64,
            _ => DType::I32,
        };
        let bits = element.is_float().then_some(match width {
            16 => DType::I16,
            32 => DType::I32,
            _ => DType::I64,
        });
        let most = if word == DType::I64 { i64::MAX } else { i32::MAX.into() };
        let (nan, filling) = match word.bits() > width {
            true => (1 << width, (1 << width) + 1),
            false => (most - 1, most),
        };
        Some(SortKey { element, bits, word, nan, filling })
    }
}

/// Coordinates in the making, and the values that they speak of.
#[derive(Default)]
struct SortCoordinates {
    mapping: SmallVec<[SymExpr; 4]>,
    values: NodeList,
}

/// Makes the nodes of one sort.
struct SortNetwork<'e, 'w> {
    editor: &'e mut KernelEditor<'w>,
    sort: Sort,
    value: Entity,
    /// Of the value.
    ty: ValueType,
    dtype: DType,
    key: SortKey,
    /// Elements of a row.
    length: u32,
    /// The digits of a place, the least significant one first.
    digits: SmallVec<[(Dim, Symbol); 10]>,
    /// The dimensions of the value without the one that is sorted, then the digits.
    dims: Dims,
}

impl<'e, 'w> SortNetwork<'e, 'w> {
    fn new(
        editor: &'e mut KernelEditor<'w>,
        node: Entity,
        sort: Sort,
    ) -> Result<SortNetwork<'e, 'w>, Diagnostic> {
        let value = editor.node(node)?.operand(0)?;
        let ty = editor.node(value)?.ty.clone();
        let dtype = ty.dtype.ok_or(Bug::new("a sort of a value without dtype"))?;
        let at = editor.location(node);
        let length = row_length(editor.kernel()?, sort, at.clone())?;
        let key = SortKey::of(dtype, sort.op.gives_places()).ok_or_else(|| {
            let text = format!("`{}` of {dtype}", sort.op.row().word);
            Diagnostic::invalid(text).at(at.clone()).help("cast to a dtype of at most 32 bits first")
        })?;
        let count = length.next_power_of_two().ilog2().max(1);
        check_registers(editor, sort, &ty.dims, (&key, count), at)?;
        let mut digits: SmallVec<[(Dim, Symbol); 10]> = SmallVec::new();
        for number in 0..count {
            let name = format!("digit {number}");
            digits.push((counted_dim(editor, &name, 2, None)?, Symbol::new(&name)));
        }
        let mut dims: Dims = ty.dims.iter().copied().filter(|&dim| dim != sort.dim).collect();
        dims.extend(digits.iter().rev().map(|digit| digit.0));
        Ok(SortNetwork { editor, sort, value, ty, dtype, key, length, digits, dims })
    }

    fn spawn(&mut self, op: Op, operands: &[Entity], ty: ValueType) -> Entity {
        self.editor.add(op, operands, ty, ())
    }

    fn made(&mut self, op: Op, operands: &[Entity], dtype: DType) -> Entity {
        let ty = ValueType { dims: self.dims.clone(), dtype: Some(dtype) };
        self.spawn(op, operands, ty)
    }

    fn number(&mut self, constant: Constant, dtype: DType) -> Entity {
        let ty = ValueType { dims: Dims::new(), dtype: Some(dtype) };
        self.spawn(Op::Register(constant), &[], ty)
    }

    /// Arithmetic on words and a number.
    fn with(&mut self, op: BinaryOp, word: Entity, number: i64, dtype: DType) -> Entity {
        let number = self.number(Constant::Integer(number), dtype);
        self.made(Op::Binary(op), &[word, number], dtype)
    }

    fn compared(&mut self, predicate: Predicate, word: Entity, number: i64, dtype: DType) -> Entity {
        let number = self.number(Constant::Integer(number), dtype);
        self.made(Op::Compare(predicate), &[word, number], DType::I1)
    }

    fn cast(&mut self, value: Entity, from: DType, to: DType) -> Entity {
        match from == to {
            true => value,
            false => self.made(Op::Convert(Conversion::Cast), &[value], to),
        }
    }

    /// The places along a dimension, for all elements.
    fn index(&mut self, dim: Dim) -> Entity {
        let ty = ValueType { dims: smallvec![dim], dtype: Some(DType::I32) };
        let index = self.spawn(Op::SelfIndex(dim), &[], ty);
        self.made(Op::Broadcast, &[index], DType::I32)
    }

    /// The place in the row, for all elements.
    fn place(&mut self) -> Entity {
        let digits: SmallVec<[Dim; 10]> = self.digits.iter().map(|digit| digit.0).collect();
        let mut place = self.index(digits[0]);
        for (number, &digit) in digits.iter().enumerate().skip(1) {
            let index = self.index(digit);
            let part = self.with(BinaryOp::ShiftLeft, index, number as i64, DType::I32);
            place = self.made(Op::Binary(BinaryOp::Add), &[place, part], DType::I32);
        }
        place
    }

    /// The sorted elements or places, along the digits.
    fn sorted(&mut self, sources: &ReadSources) -> Result<Entity, Diagnostic> {
        let elements = self.elements(sources)?;
        let words = self.words(elements);
        let sorted = self.exchanged(words);
        Ok(match self.sort.op.gives_places() {
            true => {
                let place = self.with(BinaryOp::And, sorted, (1 << self.digits.len()) - 1, self.key.word);
                self.cast(place, self.key.word, DType::I32)
            }
            false => self.restored(sorted),
        })
    }

    /// The place in the row as a coordinate.
    fn place_of_digits(&self) -> SymExpr {
        let mut digits = self.digits.iter().rev().map(|digit| SymExpr::from(digit.1));
        let most = digits.next().unwrap_or_else(|| 0.into());
        digits.fold(most, |place, digit| place * 2 + digit)
    }

    /// The value along the digits; what is beyond the end of a row is zero.
    fn elements(&mut self, sources: &ReadSources) -> Result<Entity, Diagnostic> {
        let source = sources.source(self.editor, self.value)?;
        let place = self.place_of_digits();
        let mut coordinates = SortCoordinates::default();
        for dim in self.ty.dims.clone() {
            let coordinate = match dim == self.sort.dim {
                true => place.clone(),
                false => self.own_coordinate(dim, &mut coordinates)?,
            };
            coordinates.mapping.push(coordinate);
        }
        coordinates.values.push(source);
        let read = self.made(Op::Read, &coordinates.values, self.dtype);
        self.editor.attach(read, Mapping(coordinates.mapping));
        if source != self.value {
            self.editor.copy::<Tag>(self.value, read);
        }
        Ok(read)
    }

    /// The place along a dimension as a coordinate: its symbol, or of a number a value.
    fn own_coordinate(&mut self, dim: Dim, of: &mut SortCoordinates) -> Result<SymExpr, Bug> {
        let symbol = self.editor.kernel::<Geometry>()?.dim(dim).symbol;
        if symbol.value().is_none() {
            return Ok(symbol.into());
        }
        let ty = ValueType { dims: smallvec![dim], dtype: Some(DType::I32) };
        of.values.push(self.spawn(Op::SelfIndex(dim), &[], ty));
        Ok(operand_symbol(of.values.len() - 1).into())
    }

    /// What is compared.
    fn words(&mut self, elements: Entity) -> Entity {
        let SortKey { element, bits, word, nan, filling } = self.key;
        let elements = self.cast(elements, self.dtype, element);
        let mut words = match bits {
            None => self.cast(elements, element, word),
            Some(bits) => {
                let same = self.made(Op::Convert(Conversion::Bitcast), &[elements], bits);
                let wide = self.cast(same, bits, word);
                self.turned(wide)
            }
        };
        if self.sort.op.is_descending() {
            words = self.made(Op::Unary(UnaryOp::Not), &[words], word);
        }
        if bits.is_some() {
            let is_number = self.made(Op::Compare(Predicate::Eq), &[elements, elements], DType::I1);
            let nan = self.number(Constant::Integer(nan), word);
            words = self.made(Op::Select, &[is_number, words, nan], word);
        }
        let (places, count) = (self.sort.op.gives_places(), 1u32 << self.digits.len());
        let place = (places || self.length < count).then(|| self.place());
        if let Some(place) = place.filter(|_| self.length < count) {
            let is_inside = self.compared(Predicate::Lt, place, self.length.into(), DType::I32);
            let filling = self.number(Constant::Integer(filling), word);
            words = self.made(Op::Select, &[is_inside, words, filling], word);
        }
        if let Some(place) = place.filter(|_| places) {
            let shifted = self.with(BinaryOp::ShiftLeft, words, self.digits.len() as i64, word);
            let place = self.cast(place, DType::I32, word);
            words = self.made(Op::Binary(BinaryOp::Or), &[shifted, place], word);
        }
        words
    }

    /// Bits of floats and integers in their order, either from the other.
    fn turned(&mut self, words: Entity) -> Entity {
        let SortKey { element, word, .. } = self.key;
        let sign = self.with(BinaryOp::ShiftRight, words, (word.bits() - 1).into(), word);
        let magnitude = i64::MAX >> (64 - element.bits());
        let turned = self.with(BinaryOp::And, sign, magnitude, word);
        self.made(Op::Binary(BinaryOp::Xor), &[words, turned], word)
    }

    /// The words in ascending order.
    fn exchanged(&mut self, mut words: Entity) -> Entity {
        let word = self.key.word;
        let digits: SmallVec<[Dim; 10]> = self.digits.iter().map(|digit| digit.0).collect();
        for block in 1..=digits.len() {
            for exchanged in (0..block).rev() {
                let dim = digits[exchanged];
                let [least, greatest] = [ReductionOp::Min, ReductionOp::Max].map(|op| {
                    let mut dims = self.dims.clone();
                    dims.retain(|own| *own != dim);
                    let ty = ValueType { dims, dtype: Some(word) };
                    self.spawn(Op::Reduce(Reduction { op, dim, parts: None }), &[words], ty)
                });
                let own = self.index(dim);
                // Runs of each length are in turn ascending and descending; the last run is the row.
                let is_first = match digits.get(block) {
                    Some(&run) => {
                        let run = self.index(run);
                        self.made(Op::Compare(Predicate::Eq), &[own, run], DType::I1)
                    }
                    None => self.compared(Predicate::Eq, own, 0, DType::I32),
                };
                words = self.made(Op::Select, &[is_first, least, greatest], word);
            }
        }
        words
    }

    /// The elements of words.
    fn restored(&mut self, words: Entity) -> Entity {
        let SortKey { element, bits, word, nan, .. } = self.key;
        let own = match self.sort.op.is_descending() {
            true => self.made(Op::Unary(UnaryOp::Not), &[words], word),
            false => words,
        };
        let elements = match bits {
            None => self.cast(own, word, element),
            Some(bits) => {
                let turned = self.turned(own);
                let narrow = self.cast(turned, word, bits);
                let number = self.made(Op::Convert(Conversion::Bitcast), &[narrow], element);
                let is_nan = self.compared(Predicate::Eq, words, nan, word);
                let nan = self.number(Constant::Float(f64::NAN), element);
                self.made(Op::Select, &[is_nan, nan, number], element)
            }
        };
        self.cast(elements, element, self.dtype)
    }

    /// Gives the users of the sort what is sorted: the sort becomes a read of it, unless all users are
    /// writes, which then say where each element goes.
    fn hand_on(&mut self, sort: Entity, sorted: Entity, users: &[Entity]) -> PassResult {
        let is_write = |&user: &Entity| {
            self.editor.op(user) == Ok(Op::Write) && self.editor.get::<Mapping>(user).is_none()
        };
        if !users.is_empty() && users.iter().all(is_write) {
            for &user in users {
                let memory = self.editor.node(user)?.memory()?;
                let dims = self.editor.dims(memory)?;
                let place = self.place_of_digits();
                let mut coordinates = SortCoordinates::default();
                for dim in dims {
                    let coordinate = match dim == self.sort.dim {
                        true => place.clone(),
                        false => self.own_coordinate(dim, &mut coordinates)?,
                    };
                    coordinates.mapping.push(coordinate);
                }
                let mut operands = smallvec![sorted];
                operands.extend(coordinates.values);
                operands.push(memory);
                self.editor.attach(user, (Operands(operands), Mapping(coordinates.mapping)));
            }
            self.editor.remove();
            return Ok(());
        }
        let mut coordinates = SortCoordinates::default();
        let own = self.own_coordinate(self.sort.dim, &mut coordinates)?;
        let digits: SmallVec<[(Dim, u32); 10]> = self.digits.iter().map(|digit| digit.0).zip(0..).collect();
        for dim in self.dims.clone() {
            let coordinate = match digits.iter().find(|digit| digit.0 == dim) {
                Some(&(_, 0)) => own.clone() % 2,
                Some(&(_, number)) => own.clone() / (1i64 << number) % 2,
                None => self.own_coordinate(dim, &mut coordinates)?,
            };
            coordinates.mapping.push(coordinate);
        }
        coordinates.values.push(sorted);
        self.editor.turn_into(sort, Op::Read, &coordinates.values);
        self.editor.attach(sort, Mapping(coordinates.mapping));
        Ok(())
    }
}

/// The elements of a row, which a workgroup has as a whole.
fn row_length(geometry: &Geometry, sort: Sort, at: Option<Location>) -> Result<u32, Diagnostic> {
    let (entry, word) = (geometry.dim(sort.dim), sort.op.row().word);
    let name = entry.symbol;
    let most = 1u32 << MAX_DIGITS;
    match entry.static_size {
        _ if entry.tiling.is_some() => {
            let text = format!("`{word}` runs along {name}, of which an iteration has only a part");
            Err(Diagnostic::invalid(text).at(at).help(format!(
                "read the rows as a whole, along a dimension without a tile of at most {most}"
            )))
        }
        Some(length) if length <= most => Ok(length),
        length => {
            let length = length.map_or_else(|| "an open number of".to_owned(), |length| length.to_string());
            let text = format!("`{word}` runs along {name}, which has {length} elements");
            Err(Diagnostic::new(Kind::Limit, text)
                .at(at)
                .help(format!("a wave sorts rows of at most {most} elements: sort parts of a longer one")))
        }
    }
}

/// Refuses rows of which a wave has so many that their network cannot be compiled, before that is tried:
/// where what is compared fills half of the registers, every exchange spills all of it, each time to a new
/// place.
fn check_registers(
    editor: &KernelEditor<'_>,
    sort: Sort,
    dims: &Dims,
    (key, digits): (&SortKey, u32),
    at: Option<Location>,
) -> PassResult {
    let (geometry, target) = (editor.kernel::<Geometry>()?, editor.kernel::<Settings>()?.0.target());
    let rows = dims.iter().filter(|&&dim| dim != sort.dim).try_fold(1u64, |rows, &dim| {
        let own = geometry.dim(dim).wave_extent()?;
        rows.checked_mul(u64::from(own.next_power_of_two()))
    });
    let Some(rows) = rows else { return Ok(()) };
    let words = u64::from(key.word.bits() / 32);
    let registers = rows.saturating_mul(words << digits) / u64::from(target.wave_size);
    let exchanges = u64::from(digits * (digits + 1) / 2);
    let spilled = registers.saturating_mul(exchanges) * SPILLED.0 / SPILLED.1;
    if 2 * registers < u64::from(target.vgpr_file) || spilled <= MOST_SPILLED {
        return Ok(());
    }
    let (word, name) = (sort.op.row().word, geometry.dim(sort.dim).symbol.name());
    let text = format!(
        "`{word}` along {name} of {rows} rows in each wave takes {registers} registers for its elements"
    );
    Err(Diagnostic::new(Kind::Limit, text)
        .at(at)
        .note("every exchange of two elements would spill all of them, and scratch memory is too small", None)
        .help("give a wave fewer rows: smaller tiles of the other dimensions, or more waves"))
}
