//! The result of a verb: the same facts for people and for scripts.

use serde_json::Value;

use super::exit::Exit;

/// The result of a verb that did its work.
pub struct Outcome {
    /// For people, or the bytes that were asked for.
    pub text: Vec<u8>,
    /// For scripts; none where the verb has written it.
    pub json: Option<Value>,
    /// Whether the check holds.
    pub exit: Exit,
}

impl Outcome {
    /// Work done, without a check.
    pub fn done(text: impl Into<Vec<u8>>, json: Value) -> Outcome {
        Outcome { text: text.into(), json: Some(json), exit: Exit::Worked }
    }

    /// Work done, and everything about it already written.
    pub fn written() -> Outcome {
        Outcome { text: Vec::new(), json: None, exit: Exit::Worked }
    }

    /// Work done, and a check that holds or not.
    pub fn checked(text: impl Into<Vec<u8>>, json: Value, holds: bool) -> Outcome {
        let exit = if holds { Exit::Worked } else { Exit::Failed };
        Outcome { exit, ..Outcome::done(text, json) }
    }
}
