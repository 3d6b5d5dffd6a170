//! How wide a wave is.

/// Lanes of a wave, on every chip: its registers are spread over so many.
pub(crate) const LANES: u32 = 64;
