//! Uses of names: values, memories and LDS buffers, and what is said of a name that stands for something else
//! or for nothing.

use bevy_ecs::prelude::Entity;

use super::cursor::Parsed;
use super::lex::Token;
use super::parser::Parser;
use super::scope::{Definition, NameMeaning};
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::spelling::closest;

impl Parser<'_> {
    /// The use of a value. An unknown one is reported here, and parsing goes on.
    pub(super) fn value(&mut self) -> Parsed<Entity> {
        let at = self.cursor.location();
        if let Token::Name(name) = *self.cursor.peek() {
            let known = self.scopes.get(name).map(|known| known.meaning);
            if let Some(NameMeaning::Scalar(node)) = known {
                self.cursor.bump();
                return Ok(node);
            }
            let fault = self.cursor.expected("a value like `%x`");
            let is_memory = known.is_some();
            let help =
                if is_memory { format!("read the memory first: `%x = read {name}`") } else { String::new() };
            return Err(if is_memory { fault.help(help) } else { fault });
        }
        let name = self.cursor.value_name()?;
        Ok(match self.visible(name, &at) {
            Some(NameMeaning::Value(node) | NameMeaning::Scalar(node)) => node,
            Some(NameMeaning::Place(_)) => {
                let fault =
                    Diagnostic::invalid(format!("`{name}` is an LDS buffer, and a value is expected"));
                self.fault_at(&at, fault.help(format!("read it first: `%x = read {name}`")));
                Entity::PLACEHOLDER
            }
            Some(NameMeaning::Unknown) | None => Entity::PLACEHOLDER,
        })
    }

    /// The use of a memory or an LDS buffer.
    pub(super) fn place(&mut self) -> Parsed<Entity> {
        let at = self.cursor.location();
        let name = match *self.cursor.peek() {
            Token::Name(name) => {
                self.cursor.bump();
                name
            }
            Token::Sign("%") => self.cursor.value_name()?,
            _ => return Err(self.cursor.expected("a memory")),
        };
        let meaning = self.visible(name, &at);
        Ok(self.place_of(meaning, name, &at))
    }

    /// The memory or the LDS buffer that a name stands for; it is a fault if it stands for a value.
    pub(super) fn place_of(&mut self, meaning: Option<NameMeaning>, name: &str, at: &Location) -> Entity {
        match meaning {
            Some(NameMeaning::Place(node)) => node,
            Some(NameMeaning::Value(_) | NameMeaning::Scalar(_)) => {
                let text = format!("`{name}` is a value, and a memory is expected");
                self.fault_at(at, Diagnostic::invalid(text));
                Entity::PLACEHOLDER
            }
            Some(NameMeaning::Unknown) | None => Entity::PLACEHOLDER,
        }
    }

    /// What is read: a memory, an LDS buffer or, at coordinates, a value.
    pub(super) fn read_operand(&mut self) -> Parsed<Entity> {
        if !self.cursor.at("%") {
            return self.place();
        }
        let at = self.cursor.location();
        let name = self.cursor.value_name()?;
        match self.visible(name, &at) {
            Some(NameMeaning::Value(node)) if self.cursor.at_word("at") => Ok(node),
            Some(NameMeaning::Value(_)) => {
                let text = format!("`{name}` is a value, and a memory is expected");
                let help = format!(
                    "use `{name}` as it is, or read it at coordinates: `read {name} at [M, 0] as [M]`"
                );
                self.fault_at(&at, Diagnostic::invalid(text).help(help));
                Ok(Entity::PLACEHOLDER)
            }
            meaning => Ok(self.place_of(meaning, name, &at)),
        }
    }

    /// What a name stands for here; a name that stands for nothing is reported.
    pub(super) fn visible(&mut self, name: &str, at: &Location) -> Option<NameMeaning> {
        let text = format!("`{name}` is not defined");
        match self.scopes.get(name) {
            Some(Definition { meaning, visible: true, .. }) => return Some(meaning),
            Some(Definition { origin, .. }) => {
                let place = self.nodes.location_of(origin);
                let fault = Diagnostic::invalid(text)
                    .note("this definition is inside a loop that ends before", place);
                self.fault_at(
                    at,
                    fault.help("carry it out of the loop: `%out = iterate K (%x = %init) { ... yield %x }`"),
                );
            }
            None => {
                let help = match closest(name, self.scopes.visible()) {
                    Some(close) => format!("did you mean `{close}`?"),
                    None => "a name is defined above its first use".to_owned(),
                };
                self.fault_at(at, Diagnostic::invalid(text).help(help));
            }
        }
        None
    }
}
