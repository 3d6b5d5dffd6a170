//! stub
use bevy_ecs::prelude::*; use super::diagnostic::Diagnostic; pub fn verify(_:&World,_:Entity)->Vec<Diagnostic>{Vec::new()}
