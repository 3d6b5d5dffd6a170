//! The simulator: runs any AMDHSA code object, knows nothing of the IR.
