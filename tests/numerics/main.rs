//! Numbers: every dtype and function, what results are and how far they may be off.

mod elementwise;
mod float8;
mod functions;
mod gfx950;
mod integers;
mod numerics;
mod packed_f4;
mod packed_floats;
mod scaled_conversions;
mod sixty_four_bits;
mod small_floats;
