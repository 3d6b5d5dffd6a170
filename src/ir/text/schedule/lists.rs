//! Reading values of a schedule, and lists of them.

use super::parser::{ScheduleNameMeaning, ScheduleParser};
use super::{PARTS, RESERVED};
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::node::Control;
use crate::ir::schedule::{Directive, Group, Item, ValueId, ValueKind};
use crate::ir::text::controls::control;
use crate::ir::text::cursor::Parsed;
use crate::ir::text::lex::Token;
use crate::spelling::closest;

/// What a value is to be used as.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum WantedValue {
    /// A list of nodes.
    Nodes,
    /// A list of nodes or a cluster.
    Cluster,
    /// The same, where a directive is allowed, too.
    Item,
    /// A list of nodes or a part of a pipeline.
    Place,
    /// A part of a pipeline.
    Part,
}

impl WantedValue {
    fn text(self) -> &'static str {
        match self {
            WantedValue::Nodes => "a list of nodes",
            WantedValue::Cluster => "a cluster or a list of nodes",
            WantedValue::Item => "a list of nodes, a cluster or an operation to insert",
            WantedValue::Place => "a list of nodes or a part of a pipeline",
            WantedValue::Part => "a part of a pipeline like `loop.kernel`",
        }
    }

    fn takes(self, kind: ValueKind) -> bool {
        match kind {
            ValueKind::Nodes => self != WantedValue::Part,
            ValueKind::Cluster => matches!(self, WantedValue::Cluster | WantedValue::Item),
            ValueKind::Prologue | ValueKind::Kernel | ValueKind::Epilogue => {
                matches!(self, WantedValue::Place | WantedValue::Part)
            }
        }
    }
}

/// Stands for an unknown value.
const NOTHING: ValueId = ValueId(u32::MAX);

impl ScheduleParser<'_, '_> {
    /// The use of a value. A fault of it is reported here, and parsing goes on.
    pub(super) fn value(&mut self, wanted: WantedValue) -> Parsed<ValueId> {
        let at = self.cursor.location();
        let name = match *self.cursor.peek() {
            Token::Name(name) if !is_word(name) => name,
            Token::Sign("%") => {
                let fault = self.cursor.expected(wanted.text());
                return Err(fault.help("names of a schedule's values have no `%`"));
            }
            _ => return Err(self.cursor.expected(wanted.text())),
        };
        self.cursor.bump();
        let part = if self.cursor.take(".") { Some(self.part()?) } else { None };
        match self.resolve(name, part, wanted) {
            Ok(Some(value)) => return Ok(value),
            // Its definition has a fault, which was reported.
            Ok(None) => {}
            Err(fault) => self.fault(fault.at(Some(at))),
        }
        self.unknown = true;
        Ok(NOTHING)
    }

    /// The number of a pipeline's part.
    fn part(&mut self) -> Parsed<u32> {
        let Token::Name(word) = *self.cursor.peek() else {
            return Err(self.cursor.expected("`prologue`, `kernel` or `epilogue`"));
        };
        let Some(at) = PARTS.iter().position(|part| *part == word) else {
            let fault = Diagnostic::invalid(format!("a pipeline has no part `{word}`"));
            let help = match closest(word, PARTS) {
                Some(close) => format!("did you mean `{close}`?"),
                None => "the parts are `prologue`, `kernel` and `epilogue`".to_owned(),
            };
            return Err(self.cursor.fault(fault.help(help)));
        };
        self.cursor.bump();
        Ok(at as u32)
    }

    fn resolve(
        &self,
        name: &str,
        part: Option<u32>,
        wanted: WantedValue,
    ) -> Result<Option<ValueId>, Diagnostic> {
        let Some(named) = self.names.get(name) else {
            let fault = Diagnostic::invalid(format!("`{name}` is not defined"));
            let words = if wanted == WantedValue::Item { &Control::WORDS[..] } else { &[] };
            return Err(match closest(name, self.names.keys().chain(words).copied()) {
                Some(close) => fault.help(format!("did you mean `{close}`?")),
                None => fault.help("a name is defined above its first use"),
            });
        };
        let (value, shown) = match (named.meaning, part) {
            (ScheduleNameMeaning::Unknown, _) => return Ok(None),
            (ScheduleNameMeaning::Value(value), None) => (value, format!("`{name}`")),
            (ScheduleNameMeaning::Pipeline(first), Some(part)) => {
                (ValueId(first.0 + part), format!("`{name}.{}`", PARTS[part as usize]))
            }
            (ScheduleNameMeaning::Value(_), Some(_)) => {
                let fault = Diagnostic::invalid(format!("`{name}` is not a pipeline and has no parts"));
                let fault = fault.note("it is defined here", Some(named.at.clone()));
                return Err(fault.help("a part is named `loop.kernel` after `loop = pipeline ...`"));
            }
            (ScheduleNameMeaning::Pipeline(_), None) => {
                let parts = PARTS.map(|part| format!("`{name}.{part}`"));
                let fault = Diagnostic::invalid(format!("`{name}` is a whole pipeline"));
                return Err(fault.help(format!("name a part of it: {}", parts.join(", "))));
            }
        };
        let Some(kind) = self.recorder.kind(value) else { return Ok(None) };
        if wanted.takes(kind) {
            return Ok(Some(value));
        }
        let (is, help) = match kind {
            ValueKind::Nodes => {
                ("a list of nodes", "`loop = pipeline ...` gives `loop.kernel` and the other parts")
            }
            ValueKind::Cluster => ("a cluster", "name the lists that it was made of"),
            _ => ("a part of a pipeline", "`filter_nodes` with `stage` gives the nodes of a part"),
        };
        let fault = Diagnostic::invalid(format!("{shown} is {is}, and {} is expected", wanted.text()));
        Err(fault.help(help))
    }

    /// `[a, b]`, `(a, b)`: any number of items between brackets.
    pub(super) fn bracketed<T>(
        &mut self,
        [open, close]: [&str; 2],
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        self.cursor.expect(open)?;
        if self.cursor.take(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.cursor.take(",") {
                self.cursor.expect(close)?;
                return Ok(items);
            }
        }
    }

    /// `(a, b)`
    pub(super) fn tuple(&mut self) -> Parsed<Vec<ValueId>> {
        self.bracketed(["(", ")"], |parser| parser.value(WantedValue::Nodes))
    }

    /// `a`, `(a, b)`
    pub(super) fn lists(&mut self) -> Parsed<Vec<ValueId>> {
        if self.cursor.at("(") { self.tuple() } else { Ok(vec![self.value(WantedValue::Nodes)?]) }
    }

    /// A part of a cluster.
    pub(super) fn item(&mut self) -> Parsed<Item> {
        match *self.cursor.peek() {
            Token::Name(word) if is_word(word) && word != "_" => Ok(Item::Directive(self.directive()?)),
            _ => Ok(Item::Value(self.value(WantedValue::Item)?)),
        }
    }

    /// An operation to insert.
    pub(super) fn directive(&mut self) -> Parsed<Directive> {
        if self.cursor.take_word("barrier") {
            return Ok(Directive::SharedMemoryBarrier);
        }
        if let Some(control) = control(self.cursor)? {
            return Ok(Directive::Control(control));
        }
        let fault = self.cursor.expected("an operation to insert");
        let words = || Control::WORDS.into_iter().chain(["barrier"]);
        let close = match *self.cursor.peek() {
            Token::Name(word) => closest(word, words()),
            _ => None,
        };
        Err(match close {
            Some(close) => fault.help(format!("did you mean `{close}`?")),
            None => fault.help(format!("there are {}", words().collect::<Vec<_>>().join(", "))),
        })
    }

    /// Nodes to interleave, and how.
    pub(super) fn group(&mut self) -> Parsed<Group> {
        let lists = self.lists()?;
        let mut group = Group { lists, interval: 1, start_offset: 0, start_after_groups: Vec::new() };
        if self.cursor.take_word("interval") {
            group.interval = self.number()?.0;
        }
        if self.cursor.take_word("start_offset") {
            group.start_offset = self.number()?.0;
        }
        if self.cursor.take_word("start_after_groups") {
            group.start_after_groups = self.bracketed(["[", "]"], |parser| Ok(parser.number()?.0))?;
        }
        Ok(group)
    }

    /// A number of 32 bits, and where it stands.
    pub(super) fn number(&mut self) -> Parsed<(u32, Location)> {
        let at = self.cursor.location();
        let number = self.cursor.signed_integer()?;
        match u32::try_from(number) {
            Ok(number) => Ok((number, at)),
            Err(_) => {
                let fault = Diagnostic::invalid(format!("{number} is out of range"));
                Err(fault.at(Some(at)).help(format!("numbers in schedules are 0 to {}", u32::MAX)))
            }
        }
    }
}

/// True for a word that cannot name a value.
pub(super) fn is_word(name: &str) -> bool {
    RESERVED.contains(&name) || Control::WORDS.contains(&name)
}
