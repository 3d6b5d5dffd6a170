//! Tables of figures in the pages of `docs`, kept by the tests that compute them. Such a table comes after a
//! line `<!-- figures NAME -->`, and a row is found by its first cell. With `GROUNDSWELL_FIGURES=all`, or
//! with names of tables and commas between them, the tests write the other cells; without it a page that has
//! other ones is a fault.

use std::fs;
use std::sync::{Mutex, PoisonError};

use crate::places::root;

/// True if the figures of a table are to be written, and so are those that take long.
pub fn are_written(table: &str) -> bool {
    let asked = std::env::var("GROUNDSWELL_FIGURES").unwrap_or_default();
    asked == "all" || asked.split(',').any(|name| name == table)
}

/// A row of a table: page, table and the first cell.
#[derive(Copy, Clone)]
pub struct Row<'a> {
    pub page: &'a str,
    pub table: &'a str,
    pub first: &'a str,
}

/// Pages are read and written by one test at a time.
static PAGES: Mutex<()> = Mutex::new(());

impl Row<'_> {
    /// The number of the row's line in the lines of its page.
    fn find(self, lines: &[String]) -> Result<usize, String> {
        let Row { page, table, first } = self;
        let marker = format!("<!-- figures {table} -->");
        let begin =
            lines.iter().position(|line| *line == marker).ok_or(format!("docs/{page} lacks {marker}"))?;
        let rows =
            lines[begin + 1..].iter().skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
        let found = rows.into_iter().position(|line| cells(line).first().is_some_and(|cell| *cell == first));
        let blank = lines[begin + 1..].iter().take_while(|line| line.is_empty()).count();
        Ok(begin
            + 1
            + blank
            + found.ok_or(format!("docs/{page}, {table}: no row begins with \"{first}\""))?)
    }

    /// Writes the cells after the first one, or compares them with what stands there: the fault, if any.
    pub fn holds(self, rest: &[String]) -> Result<(), String> {
        let _alone = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
        let path = root().join("docs").join(self.page);
        let text = fs::read_to_string(&path).expect("the page is there");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let at = self.find(&lines)?;
        if cells(&lines[at])[1..] == *rest {
            return Ok(());
        }
        if !are_written(self.table) {
            return Err(format!("docs/{}: {} is now {rest:?}; {HOW}", self.page, lines[at]));
        }
        lines[at] = format!("| {} | {} |", self.first, rest.join(" | "));
        fs::write(&path, lines.join("\n") + "\n").expect("the page can be written");
        Ok(())
    }

    /// The fault if the page has no such row.
    pub fn is_there(self) -> Result<(), String> {
        let path = root().join("docs").join(self.page);
        let text = fs::read_to_string(path).expect("the page is there");
        self.find(&text.lines().map(str::to_owned).collect::<Vec<String>>()).map(|_| ())
    }
}

/// How a page gets its figures.
const HOW: &str =
    "GROUNDSWELL_FIGURES=all cargo test --release --workspace --test cli --test sim_time writes it";

/// The cells of a row.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map_or(Vec::new(), |inner| inner.split('|').map(str::trim).collect())
}

/// Fails with all faults.
#[track_caller]
pub fn none_is_wrong(faults: Vec<String>) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
