//! A product on whole tensors.

use bevy_ecs::prelude::*;

use super::Interpreter;
use super::product::{self, Extents};
use super::tensor::Tensor;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::op::ContractionOp;

impl Interpreter<'_> {
    pub(super) fn mma(
        &self,
        op: ContractionOp,
        [lhs, rhs, acc]: [Entity; 3],
        scales: Option<[Entity; 2]>,
    ) -> Result<(Dims, Tensor), Diagnostic> {
        let [lhs, rhs, acc] = [self.value(lhs)?, self.value(rhs)?, self.value(acc)?];
        let shapes = || {
            let [l, r, a] = [lhs, rhs, acc].map(|v| self.names(&v.dims));
            Diagnostic::invalid(format!("mma of {l} and {r} into {a}"))
                .help("mma takes m and k, n and k into [.., m, n], and all of them the same other dimensions")
        };
        let &[ref batch @ .., m, n] = &*acc.dims else { return Err(shapes()) };
        let (k, [left, right]) = self.factor_dims([&lhs.dims, &rhs.dims, &acc.dims]).ok_or_else(shapes)?;
        let l = self.align(&lhs.dims, self.tensor(lhs)?, &left)?;
        let r = self.align(&rhs.dims, self.tensor(rhs)?, &right)?;
        let a = self.tensor(acc)?;
        let extents = Extents {
            batch: a.shape()[..batch.len()].iter().product(),
            m: self.extent(m)?,
            n: self.extent(n)?,
            k: self.extent(k)?,
            taken: self.existing(k)?,
        };
        let inputs = match op.choice() {
            MmaChoice::Explicit(mma) => mma.inputs(),
            MmaChoice::Kernel | MmaChoice::Shape(_) => [l.dtype(), r.dtype()],
        };
        let unpacked = |factor: &Tensor, at: usize| {
            let own = &factor.shape()[batch.len() + 1..];
            let held = [own.first().copied().unwrap_or(1), own.get(1).copied().unwrap_or(1)];
            product::unpacked(factor.data(), inputs[at], held, extents.k)
        };
        let [unpacked_l, unpacked_r] = [unpacked(&l, 0), unpacked(&r, 1)];
        let (l, r) = (unpacked_l.as_ref().unwrap_or(l.data()), unpacked_r.as_ref().unwrap_or(r.data()));
        if (l.len(), r.len())
            != (extents.batch * extents.m * extents.k, extents.batch * extents.n * extents.k)
        {
            return Err(shapes());
        }
        let scales = match scales {
            None => None,
            Some([lhs_scale, rhs_scale]) => {
                let [x, y] = [self.value(lhs_scale)?, self.value(rhs_scale)?];
                let block =
                    x.dims.iter().copied().find(|dim| y.dims.contains(dim) && !acc.dims.contains(dim));
                let block = block.ok_or_else(shapes)?;
                let [left, right] =
                    [m, n].map(|own| batch.iter().copied().chain([own, block]).collect::<Dims>());
                let x = self.align(&x.dims, self.tensor(x)?, &left)?;
                let y = self.align(&y.dims, self.tensor(y)?, &right)?;
                Some(([x, y], self.extent(block)?))
            }
        };
        let scales = scales.as_ref().map(|([x, y], blocks)| ([x.data(), y.data()], *blocks));
        let data = product::contracted(op, [l, r, a.data()], scales, extents);
        let data = data.map_err(Diagnostic::invalid)?;
        Ok((acc.dims.clone(), Tensor::filled(a.shape().to_vec(), data)))
    }

    /// The contracted dimension of a product, and the order of the dimensions of its factors; nothing if they
    /// do not go together.
    fn factor_dims(&self, [lhs, rhs, acc]: [&Dims; 3]) -> Option<(Dim, [Dims; 2])> {
        let &[ref batch @ .., m, n] = &**acc else { return None };
        // The contracted dimension is the one that both factors have and the sum lacks, or what their units
        // lie along; their dims may be in any order.
        let [along_left, along_right] =
            [lhs, rhs].map(|dims| dims.iter().copied().filter(|dim| !acc.contains(dim)).collect::<Dims>());
        let base = |dims: &Dims| {
            let units = dims.first()?;
            Some(self.scaled.iter().find(|scaled| scaled.dim == *units).map_or(*units, |scaled| scaled.base))
        };
        let k = base(&along_left).filter(|k| base(&along_right) == Some(*k))?;
        let [left, right] = [(m, along_left), (n, along_right)]
            .map(|(own, along)| batch.iter().copied().chain([own]).chain(along).collect::<Dims>());
        let same = |a: &Dims, b: &Dims| a.len() == b.len() && a.iter().all(|d| b.contains(d));
        (m != n && same(lhs, &left) && same(rhs, &right)).then_some((k, [left, right]))
    }
}
