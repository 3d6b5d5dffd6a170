//! Accesses: mapped, strided, atomic, checked, at coordinates, and what they promise about order.

mod access_flags;
mod atomics;
mod bounds_check;
mod far_memories;
mod mapped;
mod memories;
mod memory_order;
mod plans;
mod strides;
mod tiles_of_values;
mod values_at_coordinates;
