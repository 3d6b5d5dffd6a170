//! Reading tables.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Checks, LAST_CYCLE, LoopTable, MOST_CYCLES, Request, TableRow};
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::node::Drain;
use crate::spelling::closest;

/// The most mistakes that are reported at once.
const MOST_FAULTS: usize = 20;

/// Names in front of a colon: those that decide something, and those that are skipped.
const NAMES: [&str; 7] = ["interval", "model", "checks", "buffers", "drain", "stages", "requested"];

/// Most copies of an LDS buffer: LDS has room for fewer of the smallest ones.
const MOST_COPIES: u32 = 1 << 12;

/// A piece of the text and where it begins.
#[derive(Copy, Clone)]
struct TextPiece<'t> {
    text: &'t str,
    line: u32,
    /// Bytes of its line in front of it.
    start: usize,
}

impl<'t> TextPiece<'t> {
    fn trimmed(self) -> TextPiece<'t> {
        let front = self.text.len() - self.text.trim_start().len();
        TextPiece { text: self.text.trim(), start: self.start + front, ..self }
    }

    /// The part from `from` to `to`, in bytes.
    fn part(self, from: usize, to: usize) -> TextPiece<'t> {
        let text = self.text.get(from..to).unwrap_or_default();
        TextPiece { text, start: self.start + from, ..self }.trimmed()
    }

    fn cells(self) -> Vec<TextPiece<'t>> {
        let mut from = 0;
        let mut cells = Vec::new();
        for cell in self.text.split('|') {
            cells.push(self.part(from, from + cell.len()));
            from += cell.len() + 1;
        }
        cells
    }
}

/// The table whose rows come next.
#[derive(Copy, Clone)]
enum Columns {
    /// None has begun.
    None,
    /// Units, which are for people.
    Units,
    /// Nodes: the columns of the key and of the cycle.
    Nodes(usize, usize),
}

struct TableReader<'t> {
    file: Arc<str>,
    lines: Vec<&'t str>,
    faults: Vec<Diagnostic>,
    loops: Vec<LoopTable>,
    /// Whether the current loop has said its interval.
    interval: bool,
    columns: Columns,
    /// Rows of the current loop by key.
    known: FxHashMap<&'t str, Location>,
}

/// The loops of a table.
pub(super) fn read(text: &str, file: &Arc<str>) -> Result<Vec<LoopTable>, Vec<Diagnostic>> {
    let mut reader = TableReader {
        file: file.clone(),
        lines: text.lines().collect(),
        faults: Vec::new(),
        loops: Vec::new(),
        interval: false,
        columns: Columns::None,
        known: FxHashMap::default(),
    };
    for (line, number) in text.lines().zip(1..) {
        let line = line.split(';').next().unwrap_or_default();
        let piece = TextPiece { text: line, line: number, start: 0 }.trimmed();
        if !piece.text.is_empty() && reader.faults.len() < MOST_FAULTS {
            reader.line(piece);
        }
    }
    reader.end_loop();
    if reader.loops.is_empty() && reader.faults.is_empty() {
        let start = TextPiece { text: "", line: 1, start: 0 };
        let fault = reader.fault("the table has no loop", start);
        reader.faults.push(fault.help("write `loop 0 over K` in front of its lines"));
    }
    match reader.faults.is_empty() {
        true => Ok(reader.loops),
        false => Err(reader.faults),
    }
}

impl<'t> TableReader<'t> {
    fn location(&self, piece: TextPiece) -> Location {
        let line = self.lines.get(piece.line as usize - 1).and_then(|line| line.get(..piece.start));
        let column = line.map_or(0, |front| front.chars().count()) as u32 + 1;
        Location { file: self.file.clone(), line: piece.line, column }
    }

    fn fault(&self, text: impl Into<String>, piece: TextPiece) -> Diagnostic {
        Diagnostic::invalid(text).at(Some(self.location(piece)))
    }

    fn line(&mut self, piece: TextPiece<'t>) {
        let result = if piece.text.contains('|') {
            self.row(piece)
        } else if let Some((name, value)) = piece.text.split_once(':') {
            let value = piece.part(name.len() + 1, name.len() + 1 + value.len());
            self.named(piece.part(0, name.len()), value)
        } else {
            match piece.text.split_whitespace().next() {
                Some("loop") => self.begin_loop(piece),
                Some("schedule") => Ok(()),
                _ => {
                    let fault = self.fault(format!("`{}` is not a line of a table", piece.text), piece);
                    Err(fault
                        .help("lines are `loop N over DIM`, `name: value` and rows of cells between `|`"))
                }
            }
        };
        if let Err(fault) = result {
            self.faults.push(fault);
        }
    }

    fn begin_loop(&mut self, piece: TextPiece<'t>) -> Result<(), Diagnostic> {
        self.end_loop();
        let words: Vec<&str> = piece.text.split_whitespace().collect();
        let location = self.location(piece);
        let number = words.get(1).and_then(|number| number.parse().ok());
        let (Some(number), Some(&"over"), Some(&dim), 4) = (number, words.get(2), words.get(3), words.len())
        else {
            return Err(self.fault("a loop is written `loop N over DIM`", piece));
        };
        if let Some(first) = self.loops.iter().find(|table| table.number == number) {
            let first = first.location.clone();
            let fault = self.fault(format!("loop {number} has two tables"), piece);
            return Err(fault.note("the first is here", Some(first)));
        }
        self.loops.push(LoopTable {
            number,
            dim: dim.into(),
            interval: 1,
            model: None,
            checks: Checks::Order,
            request: Request::default(),
            rows: Vec::new(),
            location,
        });
        Ok(())
    }

    fn end_loop(&mut self) {
        if let Some(table) = self.loops.last()
            && !self.interval
            && self.faults.is_empty()
        {
            let fault = Diagnostic::invalid(format!("loop {} has no interval", table.number));
            let fault = fault.at(Some(table.location.clone())).help("write `interval: N` after it");
            self.faults.push(fault);
        }
        self.interval = false;
        self.columns = Columns::None;
        self.known.clear();
    }

    fn named(&mut self, name: TextPiece<'t>, value: TextPiece<'t>) -> Result<(), Diagnostic> {
        if !NAMES.contains(&name.text) {
            let fault = self.fault(format!("`{}` is not the name of a line", name.text), name);
            return Err(match closest(name.text, NAMES) {
                Some(close) => fault.help(format!("did you mean `{close}`?")),
                None => fault.help(format!("the names are {}", NAMES.join(", "))),
            });
        }
        let location = self.location(value);
        let fault = |text: String| Diagnostic::invalid(text).at(Some(location.clone()));
        let word = value.text;
        if matches!(name.text, "stages" | "requested") {
            return Ok(());
        }
        let Some(table) = self.loops.last_mut() else {
            let text = format!("`{}` belongs to a loop, and none has begun", name.text);
            return Err(fault(text).help("write `loop 0 over K` in front of it"));
        };
        match name.text {
            "interval" => match word.parse::<u32>() {
                Ok(cycles) if (1..=MOST_CYCLES).contains(&cycles) => {
                    table.interval = cycles;
                    self.interval = true;
                }
                _ => {
                    let text = format!("`{word}` is not an interval");
                    return Err(fault(text).help(format!("intervals are 1 to {MOST_CYCLES} cycles")));
                }
            },
            "model" => table.model = Some((word.into(), location)),
            "checks" => match word {
                "order" => table.checks = Checks::Order,
                "machine" => table.checks = Checks::Machine,
                _ => {
                    return Err(
                        fault(format!("`{word}` is not something to check")).help("`order` or `machine`")
                    );
                }
            },
            "buffers" => match word.parse::<u32>() {
                _ if word == "fitting" => table.request.copies = None,
                Ok(copies) if (1..=MOST_COPIES).contains(&copies) => table.request.copies = Some(copies),
                _ => {
                    let text = format!("`{word}` is not a number of LDS buffers");
                    return Err(fault(text).help(format!("`fitting`, or 1 to {MOST_COPIES}")));
                }
            },
            _ => match word {
                "epilogue" => table.request.drain = Drain::Epilogue,
                "loop" => table.request.drain = Drain::Loop,
                _ => {
                    let text = format!("`{word}` is not where a loop ends");
                    return Err(fault(text).help("`epilogue` or `loop`"));
                }
            },
        }
        Ok(())
    }

    fn row(&mut self, piece: TextPiece<'t>) -> Result<(), Diagnostic> {
        if self.loops.is_empty() {
            let fault = self.fault("a row belongs to a loop, and none has begun", piece);
            return Err(fault.help("write `loop 0 over K` in front of it"));
        }
        let cells = piece.cells();
        match cells.first().map(|cell| cell.text) {
            Some("slot") => {
                self.columns = Columns::Units;
                return Ok(());
            }
            Some("node") => {
                let cycle = cells.iter().position(|cell| cell.text == "cycle");
                let cycle = cycle.ok_or_else(|| self.fault("nodes need a column `cycle`", piece))?;
                self.columns = Columns::Nodes(0, cycle);
                return Ok(());
            }
            _ => {}
        }
        let (key, cycle) = match self.columns {
            Columns::Units => return Ok(()),
            Columns::None => {
                let fault = self.fault("a row without a table", piece);
                return Err(fault.help("tables begin with their columns: `node | cycle`"));
            }
            Columns::Nodes(key, cycle) => (cells[key], cells.get(cycle)),
        };
        let Some(&cycle) = cycle else {
            return Err(self.fault(format!("the node {} has no cycle", key.text), key));
        };
        let location = self.location(key);
        if let Some(first) = self.known.insert(key.text, location.clone()) {
            let fault = self.fault(format!("the node {} stands here twice", key.text), key);
            return Err(fault.note("it has a cycle here", Some(first)));
        }
        let number = cycle.text.parse::<u32>().ok().filter(|&number| i64::from(number) <= LAST_CYCLE);
        let Some(number) = number else {
            let fault = self.fault(format!("`{}` is not a cycle", cycle.text), cycle);
            return Err(fault.help(format!("cycles are 0 to {LAST_CYCLE}")));
        };
        if let Some(table) = self.loops.last_mut() {
            table.rows.push(TableRow { key: key.text.into(), cycle: number, location });
        }
        Ok(())
    }
}
