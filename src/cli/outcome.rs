//! What a verb hands back: the same facts for people and for scripts.

use serde_json::Value;

/// The result of a verb that did its work.
pub struct Outcome {
    /// For people, or the bytes that were asked for.
    pub text: Vec<u8>,
    /// For scripts.
    pub json: Value,
    /// Whether what was checked holds.
    pub success: bool,
}

impl Outcome {
    /// Work done, nothing left to hold.
    pub fn done(text: impl Into<Vec<u8>>, json: Value) -> Outcome {
        Outcome { text: text.into(), json, success: true }
    }
}
