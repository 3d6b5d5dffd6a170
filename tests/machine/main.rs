//! Machine code between lowering and the object: what the machine passes make of it, and the figures that it
//! keeps.

mod code_quality;
mod machine_filetests;
mod machine_random;
mod machine_random_chips;
mod reasons;
mod spills;
