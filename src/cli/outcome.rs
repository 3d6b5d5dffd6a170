//! The result of a verb: the same facts for people and for scripts.

use serde_json::Value;

use super::exit::Exit;

/// The result of a verb that did its work.
pub struct VerbOutcome {
    /// For people, or the bytes that were asked for.
    pub text: Vec<u8>,
    /// For scripts; none where the verb has written it.
    pub json: Option<Value>,
    /// Whether the check holds.
    pub exit: Exit,
}

impl VerbOutcome {
    /// Work done, without a check.
    pub fn done(text: impl Into<Vec<u8>>, json: Value) -> VerbOutcome {
        VerbOutcome { text: text.into(), json: Some(json), exit: Exit::Worked }
    }

    /// Work done, and everything about it already written.
    pub fn written() -> VerbOutcome {
        VerbOutcome { text: Vec::new(), json: None, exit: Exit::Worked }
    }

    /// Work done, and a check that holds or not.
    pub fn checked(text: impl Into<Vec<u8>>, json: Value, holds: bool) -> VerbOutcome {
        let exit = if holds { Exit::Worked } else { Exit::Failed };
        VerbOutcome { exit, ..VerbOutcome::done(text, json) }
    }
}
