//! Tests that look inside the schedulers.
//!
//! - `growth`: work grows with the loop and not with its square
//! - `table`: tables written, edited and read back
//! - `trials`: known loops, random graphs against brute force, large graphs

mod growth;
mod table;
mod trials;
