//! Attributes: how facts that passes have found out about a node, or about the whole kernel, are written in
//! the text. An attribute is `!name` or `!name(...)` after its operation, and there is one row per component:
//! its name, how it is printed, how it is read, and how it is copied to another world. Texts have attributes
//! only when they say after which pass they stand.
//!
//! An expanded kernel has its logical nodes in a block `logical`, numbered by `!node(4)`, and its pieces say
//! which they are of: `!of(4, replica 1)`. Such a text is a kernel: `Workspace::load` takes it with its
//! facts, and `run` goes on after the pass that it names. Sizes stand in the text; options that later passes
//! look at are given anew. `ir/verifier/facts` judges what such a text says, because passes trust those
//! before them.
//!
//! ```text
//! attribute = "!" name ["(" what the row says ")"]
//! ```

mod access;
mod expansion;
mod geometry;
mod loops;
mod origins;
mod placement;

use bevy_ecs::prelude::*;
use bevy_ecs::world::EntityWorldMut;

use super::Detail;
use super::cursor::Parsed;
use super::lex::Token;
use super::parser::Parser;
use super::symbolic::write_symbol;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Expr;
use crate::ir::facts::*;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::node::{Pipelined, Placement, Trip, Unrolled};
use crate::ir::node_map::NodeMap;
use crate::spelling::closest;

pub(super) use origins::Given;

/// Where an attribute stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AttributePosition {
    /// At the end of the operation's line: short ones that many nodes have.
    After,
    /// On a line of its own after the operation.
    Below,
    /// On a line of its own in the kernel's `facts`.
    Kernel,
}

/// A node in its kernel, to be printed.
#[derive(Copy, Clone)]
pub(super) struct Printed<'w> {
    pub(super) world: &'w World,
    /// The kernel entity.
    pub(super) root: Entity,
    /// The node, or the kernel entity.
    pub(super) node: Entity,
    /// The numbers of logical nodes.
    pub(super) logical: &'w NodeMap<u32>,
    pub(super) detail: Detail,
}

/// An attribute that was read: it changes the node, once that exists.
pub(super) type Attach = Box<dyn FnOnce(&mut EntityWorldMut<'_>)>;

/// The attributes of a node that does not exist yet.
#[derive(Default)]
pub(super) struct Attributes {
    pub(super) attach: Vec<Attach>,
    /// Its number, if it is a logical node.
    pub(super) number: Option<u32>,
}

/// The node that stands for a node in a world that it is copied to.
type Renamed<'a> = &'a dyn Fn(Entity) -> Entity;

/// One kind of attribute.
pub(super) struct AttributeRow {
    name: &'static str,
    position: AttributePosition,
    /// Appends the text in the brackets; `None` if the node has no such attribute.
    print: fn(Printed<'_>, &mut String) -> Option<()>,
    read: fn(&mut Parser<'_>) -> Parsed<Attach>,
    /// Copies the component from one world to another.
    copy: fn(&World, Entity, &mut EntityWorldMut<'_>, Renamed<'_>),
}

/// All attributes, in the order in which they are printed. A component that passes add has its row here.
const ROWS: &[AttributeRow] = &[
    row("node", AttributePosition::After, expansion::print_number, expansion::read_number, nothing),
    row("of", AttributePosition::After, expansion::print, expansion::read, expansion::copy),
    row("type", AttributePosition::After, placement::print_type, placement::read_type, nothing),
    row(
        "packed",
        AttributePosition::After,
        placement::print_packed,
        placement::read_packed,
        same::<PackedElements>,
    ),
    row("at", AttributePosition::After, origins::print_origin, origins::read_origin, nothing),
    row("trip", AttributePosition::After, loops::print_trip, loops::read_trip, same::<Trip>),
    row("unrolled", AttributePosition::After, loops::print_unrolled, loops::read_unrolled, same::<Unrolled>),
    row(
        "pipelined",
        AttributePosition::After,
        loops::print_pipelined,
        loops::read_pipelined,
        same::<Pipelined>,
    ),
    row("remainder", AttributePosition::After, flag::<Remainder>, |_| attach(Remainder), same::<Remainder>),
    row(
        "masked_part",
        AttributePosition::After,
        flag::<MaskedPart>,
        |_| attach(MaskedPart),
        same::<MaskedPart>,
    ),
    row("rest", AttributePosition::After, flag::<Rest>, |_| attach(Rest), same::<Rest>),
    row(
        "staggered",
        AttributePosition::After,
        loops::print_staggered,
        loops::read_staggered,
        same::<Staggered>,
    ),
    row(
        "entered_in_order",
        AttributePosition::After,
        flag::<EnteredInOrder>,
        |_| attach(EnteredInOrder),
        same::<EnteredInOrder>,
    ),
    row(
        "entered_with_loads",
        AttributePosition::After,
        loops::print_entered_with_loads,
        loops::read_entered_with_loads,
        same::<EnteredWithLoads>,
    ),
    row("settled", AttributePosition::After, flag::<Settled>, |_| attach(Settled), same::<Settled>),
    row("placement", AttributePosition::Below, placement::print, placement::read, same::<Placement>),
    row("bounds", AttributePosition::Below, access::print_bounds, access::read_bounds, same::<Bounds>),
    row("split", AttributePosition::Below, access::print_split, access::read_split, same::<SplitAccess>),
    row("checks", AttributePosition::Below, access::print_checks, access::read_checks, same::<BoundsChecks>),
    row("padded", AttributePosition::After, access::print_padded, access::read_padded, same::<PaddedFactors>),
    row(
        "unit_factor",
        AttributePosition::After,
        access::print_unit_factor,
        access::read_unit_factor,
        same::<UnitFactor>,
    ),
    row(
        "unmasked",
        AttributePosition::After,
        loops::print_unmasked,
        loops::read_unmasked,
        same::<UnmaskedTiles>,
    ),
    row("on_demand", AttributePosition::After, flag::<OnDemand>, |_| attach(OnDemand), same::<OnDemand>),
    row(
        "rounds_plainly",
        AttributePosition::After,
        flag::<RoundsPlainly>,
        |_| attach(RoundsPlainly),
        same::<RoundsPlainly>,
    ),
    row("buffer", AttributePosition::Below, access::print_buffer, access::read_buffer, same::<LdsBuffer>),
    row(
        "turned_units",
        AttributePosition::After,
        access::print_turned,
        access::read_turned,
        same::<TurnedUnits>,
    ),
    row(
        "transposing",
        AttributePosition::After,
        access::print_transposing,
        access::read_transposing,
        same::<TransposingRead>,
    ),
    row(
        "conflicts",
        AttributePosition::After,
        access::print_conflicts,
        access::read_conflicts,
        same::<BankConflicts>,
    ),
    row(
        "converts",
        AttributePosition::After,
        expansion::print_conversion,
        expansion::read_conversion,
        same::<LayoutConversion>,
    ),
    row(
        "unshared",
        AttributePosition::After,
        access::print_unshared,
        access::read_unshared,
        same::<Unshared>,
    ),
    row(
        "of_schedule",
        AttributePosition::After,
        flag::<OfSchedule>,
        |_| attach(OfSchedule),
        same::<OfSchedule>,
    ),
    row(
        "orders",
        AttributePosition::After,
        expansion::print_orders,
        expansion::read_orders,
        expansion::copy_orders,
    ),
    row("sources", AttributePosition::Kernel, origins::print_sources, origins::read_sources, nothing),
    row("geometry", AttributePosition::Kernel, geometry::print, geometry::read, same::<Geometry>),
    row("lds", AttributePosition::Kernel, access::print_lds, access::read_lds, same::<LdsBytes>),
    row(
        "arguments",
        AttributePosition::Kernel,
        expansion::print_arguments,
        expansion::read_arguments,
        expansion::copy_arguments,
    ),
    row(
        "expanded",
        AttributePosition::Kernel,
        expansion::print_count,
        expansion::read_count,
        same::<ExpandedCount>,
    ),
    row(
        "folds_masked",
        AttributePosition::Kernel,
        flag::<FoldsMasked>,
        |_| attach(FoldsMasked),
        same::<FoldsMasked>,
    ),
    row(
        "synchronised",
        AttributePosition::Kernel,
        flag::<Synchronised>,
        |_| attach(Synchronised),
        same::<Synchronised>,
    ),
    row(
        "in_place",
        AttributePosition::Kernel,
        access::print_in_place,
        access::read_in_place,
        same::<InPlace>,
    ),
    row(
        "direct_loads",
        AttributePosition::Kernel,
        access::print_direct,
        access::read_direct,
        same::<DirectLoads>,
    ),
    row(
        "scheduled",
        AttributePosition::Kernel,
        loops::print_scheduled,
        loops::read_scheduled,
        same::<ScheduledLoops>,
    ),
];

const fn row(
    name: &'static str,
    position: AttributePosition,
    print: fn(Printed<'_>, &mut String) -> Option<()>,
    read: fn(&mut Parser<'_>) -> Parsed<Attach>,
    copy: fn(&World, Entity, &mut EntityWorldMut<'_>, Renamed<'_>),
) -> AttributeRow {
    AttributeRow { name, position, print, read, copy }
}

/// Appends to a string, which cannot fail.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($argument)*);
    }};
}
use put;

/// Copies a component that names no node.
fn same<C: Component + Clone>(from: &World, node: Entity, to: &mut EntityWorldMut<'_>, _: Renamed<'_>) {
    if let Some(component) = from.get::<C>(node) {
        to.insert(component.clone());
    }
}

/// For components that every node has, which are copied with the node.
fn nothing(_: &World, _: Entity, _: &mut EntityWorldMut<'_>, _: Renamed<'_>) {}

/// An attribute without brackets.
fn flag<C: Component>(place: Printed<'_>, _: &mut String) -> Option<()> {
    place.get::<C>().map(|_| ())
}

fn attach<B: Bundle>(bundle: B) -> Parsed<Attach> {
    Ok(Box::new(move |node| {
        node.insert(bundle);
    }))
}

/// Appends all attributes of a node that stand at `position`, each after `before`.
pub(super) fn print_all(place: Printed<'_>, position: AttributePosition, before: &str, out: &mut String) {
    let mut content = String::new();
    for row in ROWS.iter().filter(|row| row.position == position) {
        content.clear();
        if (row.print)(place, &mut content).is_some() {
            put!(out, "{before}!{}", row.name);
            if !content.is_empty() {
                put!(out, "({content})");
            }
        }
    }
}

/// Copies the facts that passes have found out about a node.
pub(crate) fn copy_all(
    from: &World,
    node: Entity,
    to: &mut EntityWorldMut<'_>,
    renamed: &dyn Fn(Entity) -> Entity,
) {
    ROWS.iter().for_each(|row| (row.copy)(from, node, to, renamed));
}

/// Reads the attributes that come next.
pub(super) fn read_all(parser: &mut Parser<'_>, of_kernel: Holder) -> Parsed<Vec<Attach>> {
    let mut all: Vec<Attach> = Vec::new();
    let mut names: Vec<&'static str> = Vec::new();
    while parser.cursor.at("!") {
        if parser.stage.is_none() {
            let fault = Diagnostic::invalid("an attribute in a kernel that no pass has seen");
            let help = "a text with attributes says after which pass it stands: `kernel gemm after expand {`";
            return Err(parser.cursor.fault(fault.help(help)));
        }
        parser.cursor.bump();
        let Token::Name(name) = *parser.cursor.peek() else {
            return Err(parser.cursor.expected("the attribute's name"));
        };
        let rows = || {
            ROWS.iter()
                .filter(|row| (row.position == AttributePosition::Kernel) == (of_kernel == Holder::Kernel))
        };
        let Some(row) = rows().find(|row| row.name == name) else {
            let fault = Diagnostic::invalid(format!("there is no attribute `{name}` here"));
            let fault = match closest(name, rows().map(|row| row.name)) {
                Some(close) => fault.help(format!("did you mean `{close}`?")),
                None => fault,
            };
            return Err(parser.cursor.fault(fault));
        };
        if names.contains(&row.name) {
            return Err(parser
                .cursor
                .fault(Diagnostic::invalid(format!("the attribute `{name}` stands twice"))));
        }
        names.push(row.name);
        parser.cursor.bump();
        let brackets = parser.cursor.take("(");
        all.push((row.read)(parser)?);
        if brackets {
            parser.cursor.expect(")")?;
        }
    }
    Ok(all)
}

/// What the attributes belong to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Holder {
    Node,
    Kernel,
}

impl<'w> Printed<'w> {
    fn get<C: Component>(self) -> Option<&'w C> {
        self.world.get::<C>(self.node)
    }

    /// Appends the name of a dimension.
    fn dim(self, dim: Dim, out: &mut String) {
        write_symbol(out, self.world.get::<DimTable>(self.root).map_or("?", |dims| dims.name(dim)));
    }

    /// Appends dimensions separated by spaces.
    fn dims(self, dims: &[Dim], out: &mut String) {
        for (at, &dim) in dims.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { " " });
            self.dim(dim, out);
        }
    }

    fn expr(self, expr: Expr, out: &mut String) {
        match self.world.get::<Expressions>(self.root) {
            Some(expressions) => put!(out, "{}", expressions.0.display(expr)),
            None => out.push('?'),
        }
    }
}

/// What rows use for reading.
impl Parser<'_> {
    /// A number of 32 bits.
    pub(super) fn number(&mut self) -> Parsed<u32> {
        let at = self.cursor.location();
        let value = self.cursor.integer(1)?;
        u32::try_from(value)
            .map_err(|_| Diagnostic::invalid(format!("`{value}` does not fit in 32 bits")).at(Some(at)))
    }

    /// `word` and a number, if the word comes next; a comma before it is skipped.
    pub(super) fn labelled(&mut self, word: &str) -> Parsed<Option<u32>> {
        self.cursor.take_word(word).then(|| self.number()).transpose()
    }

    /// A dimension.
    pub(super) fn dimension(&mut self) -> Parsed<Dim> {
        let at = self.cursor.location();
        let symbol = super::symbolic::dimension(&mut self.cursor, "a dimension")?;
        self.nodes.dim(symbol).map_err(|fault| fault.at(Some(at)))
    }

    /// Dimensions separated by spaces.
    pub(super) fn dimensions(&mut self) -> Parsed<smallvec::SmallVec<[Dim; 4]>> {
        let mut dims = smallvec::SmallVec::new();
        while matches!(self.cursor.peek(), Token::Name(_) | Token::Quoted(_) | Token::Integer(_)) {
            dims.push(self.dimension()?);
        }
        Ok(dims)
    }

    /// An expression, as [`crate::ir::expr::ExprArena::display`] writes it.
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        let (at, text) = (self.cursor.location(), self.cursor.expression());
        self.expressions
            .parse(text)
            .map_err(|error| Diagnostic::invalid(format!("`{text}` is no expression: {error}")).at(Some(at)))
    }
}
