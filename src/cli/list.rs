//! `groundswell list`: the ready kernels.

use std::fmt::Write;

use groundswell::kernels;
use serde_json::{Map, Value, json};

use super::arguments::List;
use super::failure::Failure;
use super::outcome::VerbOutcome;
use super::terminal::{Style, paint};

/// The verb.
pub fn list(_: &List) -> Result<VerbOutcome, Failure> {
    let mut text = String::new();
    let mut rows = Vec::new();
    for entry in kernels::list() {
        let defaults: Vec<String> = entry.symbols.iter().map(|s| format!("{}={}", s.name, s.value)).collect();
        let waves = entry.waves;
        let chosen = waves.map_or(String::new(), |waves| format!(" --waves M={},N={}", waves.m, waves.n));
        let _ =
            writeln!(text, "{}  {}", paint(Style::Bold, &format!("{:16}", entry.name)), entry.description);
        let also = format!("--dtype {}{chosen}", entry.dtype);
        let _ = writeln!(text, "{:18}{}", "", paint(Style::Dim, &format!("{}  {also}", defaults.join(" "))));
        let symbols: Map<String, Value> = entry
            .symbols
            .iter()
            .map(|s| (s.name.to_string(), json!({ "default": s.value, "meaning": s.meaning })))
            .collect();
        rows.push(json!({
            "name": entry.name,
            "description": entry.description,
            "symbols": symbols,
            "dtype": entry.dtype.name(),
            "waves": waves.map(|waves| json!({ "M": waves.m, "N": waves.n })),
        }));
    }
    Ok(VerbOutcome::done(text, json!({ "kernels": rows })))
}
