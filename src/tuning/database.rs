//! Winners as text: a line for each template, task, device and clock, which people read, review and merge.
//!
//! ```text
//! groundswell tuning 1
//! matmul f16,f16:abt:64x64x64 MI300X 1350 MHz model 1: 4.125 us tile=32x32x64 schedule=prefetch
//! ```
//!
//! Lines are sorted by key, so that the text does not depend on the order of work; of two records with one
//! key the faster one stays, and of two as fast ones the one whose choices come first. So merging is
//! associative and commutative. Files are written beside the old one and renamed, so that a reader sees one
//! or the other.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::str::FromStr;

use super::point::Point;
use crate::ir::diagnostic::{Diagnostic, Kind};

/// The first line of a file.
const HEADER: &str = "groundswell tuning 1";
/// The number of the time model: estimates of another one are not compared.
const MODEL: u32 = 1;

/// Bytes of a file: some million records.
const MOST_BYTES: u64 = 1 << 28;

/// The search that a winner belongs to: template, task, device, clock and model.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WinnerKey {
    template: String,
    task: String,
    device: String,
    megahertz: u32,
    model: u32,
}

impl WinnerKey {
    /// The key of a template's task on a device at a clock, by the time model of this version.
    pub fn new(template: &str, task: &str, device: &str, megahertz: f64) -> WinnerKey {
        let word = |text: &str| text.split_whitespace().collect::<Vec<_>>().join("_");
        WinnerKey {
            template: word(template),
            task: word(task),
            device: word(device),
            megahertz: megahertz.round() as u32,
            model: MODEL,
        }
    }

    /// Name of the template.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// The task.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// The name that the device is sold under.
    pub fn device(&self) -> &str {
        &self.device
    }
}

impl fmt::Display for WinnerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WinnerKey { template, task, device, megahertz, model } = self;
        write!(f, "{template} {task} {device} {megahertz} MHz model {model}")
    }
}

/// A winner.
#[derive(Clone, PartialEq, Debug)]
pub struct WinnerRecord {
    /// The search that it has won.
    pub key: WinnerKey,
    /// Microseconds that it is estimated to take.
    pub microseconds: f64,
    /// Its choices.
    pub point: Point,
}

impl fmt::Display for WinnerRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:.3} us {}", self.key, self.microseconds, self.point)
    }
}

impl FromStr for WinnerRecord {
    type Err = Diagnostic;

    fn from_str(line: &str) -> Result<WinnerRecord, Diagnostic> {
        let fault = || {
            Diagnostic::invalid(format!("`{line}` is no record of a winner"))
                .help("write TEMPLATE TASK DEVICE CLOCK MHz model N: TIME us CHOICE=VALUE ...")
        };
        let (key, winner) = line.split_once(": ").ok_or_else(fault)?;
        let words: Vec<&str> = key.split(' ').collect();
        let &[template, task, device, megahertz, "MHz", "model", model] = words.as_slice() else {
            return Err(fault());
        };
        let (microseconds, point) = winner.split_once(" us").ok_or_else(fault)?;
        let microseconds: f64 = microseconds.parse().map_err(|_| fault())?;
        if !(microseconds.is_finite() && microseconds >= 0.0) {
            return Err(fault());
        }
        let key = WinnerKey {
            megahertz: megahertz.parse().map_err(|_| fault())?,
            model: model.parse().map_err(|_| fault())?,
            ..WinnerKey::new(template, task, device, 0.0)
        };
        Ok(WinnerRecord { key, microseconds, point: point.parse()? })
    }
}

/// The winners of many searches.
///
/// # Example
/// ```
/// use groundswell::tuning::Database;
///
/// let key = "matmul f16:64x64x64 MI300X 1350 MHz model 1";
/// let [one, another] = [format!("{key}: 12.5 us tile=64x64"), format!("{key}: 11.75 us tile=32x64")]
///     .map(|line| format!("groundswell tuning 1\n{line}\n").parse::<Database>());
/// let mut merged = one?;
/// merged.merge(another?);
/// assert_eq!(merged.to_string(), format!("groundswell tuning 1\n{key}: 11.750 us tile=32x64\n"));
/// # Ok::<(), groundswell::prelude::Diagnostic>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Database {
    winners: BTreeMap<WinnerKey, (f64, Point)>,
}

impl Database {
    /// Adds a record, unless there is a better one with its key.
    pub fn add(&mut self, record: WinnerRecord) {
        // What is kept is what is read back.
        let microseconds = (record.microseconds * 1000.0).round() / 1000.0;
        let new = (microseconds, record.point);
        let entry = self.winners.entry(record.key).or_insert_with(|| new.clone());
        if new.0.total_cmp(&entry.0).then_with(|| new.1.cmp(&entry.1)).is_lt() {
            *entry = new;
        }
    }

    /// Adds all records of another one.
    pub fn merge(&mut self, other: Database) {
        let records = other.winners.into_iter();
        records.for_each(|(key, (microseconds, point))| self.add(WinnerRecord { key, microseconds, point }));
    }

    /// The winner of a key.
    pub fn winner(&self, key: &WinnerKey) -> Option<WinnerRecord> {
        let (microseconds, point) = self.winners.get(key)?.clone();
        Some(WinnerRecord { key: key.clone(), microseconds, point })
    }

    /// All winners in the order of their keys.
    pub fn records(&self) -> impl Iterator<Item = WinnerRecord> + '_ {
        self.winners.iter().map(|(key, (microseconds, point))| WinnerRecord {
            key: key.clone(),
            microseconds: *microseconds,
            point: point.clone(),
        })
    }

    /// Reads a file; one that does not exist has no winners.
    ///
    /// # Errors
    /// It cannot be read, or is no database.
    pub fn read(path: &Path) -> Result<Database, Diagnostic> {
        let mut text = String::new();
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Database::default()),
            file => file.map_err(|error| unusable(path, "read", &error))?,
        };
        file.take(MOST_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(|error| unusable(path, "read", &error))?;
        if text.len() as u64 > MOST_BYTES {
            let text =
                format!("{} has more than {MOST_BYTES} bytes, as many as a database may", path.display());
            return Err(Diagnostic::new(Kind::Limit, text).help("divide the records among several files"));
        }
        text.parse()
            .map_err(|fault: Diagnostic| fault.note(format!("it is the database {}", path.display()), None))
    }

    /// Adds the records to those of a file, which is there or not. Other processes may do the same at the
    /// same time: one after the other reads the file, adds to it and writes it anew.
    ///
    /// # Errors
    /// The file is no database, or it cannot be written. It is as it was then.
    pub fn add_to(&self, path: &Path) -> Result<Database, Diagnostic> {
        let failed = |error: io::Error| unusable(path, "write", &error);
        let beside = |suffix: &str| {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(suffix);
            path.with_file_name(name)
        };
        // It is a file of its own, as the database itself is replaced.
        let lock = File::create(beside(".lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut merged = Database::read(path)?;
        merged.merge(self.clone());
        let new = beside(&format!(".{}.new", std::process::id()));
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(merged.to_string().as_bytes())?;
            // The name is not given to a file whose bytes might still be lost.
            file.sync_all()?;
            fs::rename(&new, path)
        });
        written.map_err(|error| {
            // What is left of it is of no use, and a second fault would say nothing new.
            let _ = fs::remove_file(&new);
            failed(error)
        })?;
        Ok(merged)
    }
}

fn unusable(path: &Path, what: &str, error: &io::Error) -> Diagnostic {
    Diagnostic::new(Kind::Unsupported, format!("cannot {what} {}: {error}", path.display()))
        .help("name a file in a directory that can be written to")
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from(HEADER);
        text.push('\n');
        for record in self.records() {
            writeln!(text, "{record}")?;
        }
        f.write_str(&text)
    }
}

impl FromStr for Database {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Database, Diagnostic> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        if first != HEADER {
            let text = format!("the first line is `{first}`, not `{HEADER}`");
            return Err(Diagnostic::invalid(text).help("name a file that `groundswell tune` has written"));
        }
        if !text.ends_with('\n') {
            return Err(Diagnostic::invalid("the last line has no end: the file is torn")
                .help("take the file out of a copy, or remove its last line"));
        }
        let mut database = Database::default();
        for line in lines.filter(|line| !line.is_empty()) {
            database.add(line.parse()?);
        }
        Ok(database)
    }
}
