//! Check mode: it finds what is wrong, names it, and finds nothing else.

mod sim_check;
mod sim_check_kernels;
mod sim_descriptors;
mod sim_memory_model;
mod sim_mutation;
