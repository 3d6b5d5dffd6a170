//! Packed factors of products whose memory has the product's other dimension innermost, `[K, N]` of 4-bit or
//! 6-bit floats, where the chip's reads of LDS turn such elements: a read whose value has its units along K.
//!
//! The layout of such a factor is what an instruction wants of neighbouring columns (`FactorOrder` in
//! `store_columns`), which is what the reads give; so `distribute_loads` finds them for every such factor.
//!
//! After `pack_small_floats` the least element of a 4-bit factor is a byte: the memory has `[K, N/2]` and
//! the product takes `[K/2, N]`. A read with `TurnedUnits` makes the one of the other: its value has
//! dimensions of its own, as that of a mapped read has, and the interpreters make each byte of the halves of
//! two. The layout goes to elements (`Layout::in_elements`), through `before_transposing`, and back to bytes
//! along N/2 (`in_units`); from there on it is that of a plain read of the buffer. If both factors are
//! turned no memory has `K/2`, and the pass makes that dimension (`counted_dims::block_dim`). Sixteen lanes
//! read 8 bytes of sixteen rows, so 32 lanes that multiply 16 columns find the same half of each 16 bytes in
//! which tiles are written: two lanes share a bank as long as these stay together. Those of 32 columns find
//! both halves.
//!
//! 6-bit floats take the same way, from the words `[K, N/32, 6]` to `[K/32, N, 6]`: `UnitDims` has a
//! dimension for the words of a unit, and a word of the value is made of parts of elements
//! (`TurnedUnits::parts`). A lane loads sixteen elements of a row, three words, that have to begin at a
//! multiple of 16 bytes, so every three words of such a buffer have the room of four (`LdsBuffer::spacing`).
//! Padding and swizzles know nothing of it, because `arrange_lds` and lowering take places in rows for
//! elements (`Layout::spaced`) before they look at an access. Lanes load three words each from memory and
//! write them at once; loads straight to LDS would leave no room, so such tiles go through registers, and
//! products of them with scales do not take turns. Two reads make the six registers of a unit, and the
//! second begins at an odd one, which this read alone may.

use bevy_ecs::prelude::*;

use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, UnitDims};
use crate::ir::node::*;
use crate::ir::types::{AddressSpace, PackedUnit};
use crate::passes::analysis::counted_dims::block_dim;
use crate::passes::facts::{Settings, TurnedUnits};
use crate::passes::kernel_editor::KernelEditor;

/// A factor that does not lie along the dimension that its product sums over.
pub(super) struct UnturnedFactor<'a> {
    /// The read of its units, as they lie in the memory.
    pub(super) read: Entity,
    /// Dimensions of the elements.
    pub(super) dims: &'a Dims,
    /// The one that is summed over.
    pub(super) k: Dim,
    /// Dimensions of the sum.
    pub(super) sum_dims: &'a Dims,
    pub(super) packing: PackedUnit,
}

/// The read of a factor with its units along the summed dimension, which has no place in a region yet. None
/// if no read of LDS turns it.
pub(super) fn turned_read(
    editor: &mut KernelEditor<'_>,
    factor: &UnturnedFactor<'_>,
) -> Result<Option<Entity>, Diagnostic> {
    let &UnturnedFactor { read, dims, k, sum_dims, packing } = factor;
    let (seen, bits) = (editor.node(read)?, packing.bits());
    let mut ty = seen.ty.clone();
    let is_shared = editor.get::<Space>(seen.memory()?).is_some_and(|space| space.0 == AddressSpace::Shared);
    let is_volatile = editor.get::<MemoryAccessFlags>(read).is_some_and(|flags| flags.volatile);
    // Such reads are of LDS: of a tile that goes through it.
    let target = editor.kernel::<Settings>()?.0.target();
    if target.transposing_read(bits).is_none() || !is_shared || is_volatile {
        return Ok(None);
    }
    // Lanes take neighbouring columns or rows of the product.
    let &[.., m, n] = &sum_dims[..] else { return Ok(None) };
    let Some(&along) = dims.last().filter(|dim| [m, n].contains(dim)) else { return Ok(None) };
    let Some((stored, words)) = editor.kernel::<DimTable>()?.packed(along, packing) else { return Ok(None) };
    let Some(held) = block_dim(editor, k, packing.elements)? else { return Ok(None) };
    for dim in &mut ty.dims {
        if *dim == stored {
            *dim = along;
        } else if *dim == k {
            *dim = held;
        }
    }
    let turned = TurnedUnits {
        stored: UnitDims { elements: along, units: stored, words },
        held: UnitDims { elements: k, units: held, words },
        elements: packing.elements,
        bits,
    };
    let node = editor.make_like(read)?;
    editor.attach(node, (ty, turned));
    editor.copy::<MemoryAccessFlags>(read, node);
    editor.copy::<Tag>(read, node);
    Ok(Some(node))
}
