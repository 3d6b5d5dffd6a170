//! AMD's published table of matrix instructions: `tests/data/mfma.csv` lists every one of gfx908, gfx90a and
//! gfx942, as AMD's matrix instruction calculator prints them.

const CSV: &str = include_str!("../data/mfma.csv");

/// What a row of the table says.
pub struct Record {
    columns: Vec<&'static str>,
    values: Vec<&'static str>,
}

impl Record {
    /// The text in a column.
    pub fn get(&self, column: &str) -> &'static str {
        let index = self.columns.iter().position(|name| *name == column);
        self.values[index.unwrap_or_else(|| panic!("no column {column}"))]
    }

    /// The number in a column, in either notation.
    pub fn number(&self, column: &str) -> u32 {
        let text = self.get(column);
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => text.parse(),
        };
        parsed.unwrap_or_else(|_| panic!("{column} of {} is not a number", self.get("mnemonic")))
    }
}

/// All rows.
pub fn records() -> Vec<Record> {
    let mut lines = CSV.lines();
    let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
    lines.map(|line| Record { columns: columns.clone(), values: line.split(',').collect() }).collect()
}
