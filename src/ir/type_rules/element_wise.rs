//! Element-wise operations: one operand has all dimensions of the others, and the result has these; operands
//! have the dtypes that the row of the operation admits, and the result has the one that follows from its
//! [`ResultType`].

use super::{TypeFault, TypeRules, TypedNode, WrittenBy};
use crate::ir::node::*;
use crate::ir::op::{ElementWiseOp, OpRow, ResultType};
use crate::ir::types::DType;

impl TypeRules<'_> {
    pub(super) fn element_wise(&self, op: ElementWiseOp, node: &TypedNode) -> Result<ValueType, TypeFault> {
        match op {
            ElementWiseOp::Unary(_)
            | ElementWiseOp::Binary(_)
            | ElementWiseOp::Ternary(_)
            | ElementWiseOp::Compare(_)
            | ElementWiseOp::Select
            | ElementWiseOp::Broadcast => self.by_row(node),
            ElementWiseOp::Convert(conversion) => self.converted(conversion, node),
            ElementWiseOp::Decode(decoding) => self.decoded(decoding, node),
            ElementWiseOp::Encode(dtype) => self.encoded(dtype, node),
        }
    }

    fn by_row(&self, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let row = node.op.row();
        match row.result {
            ResultType::Joined | ResultType::OfOperand(_) => self.joined(node.op, &node.operands),
            ResultType::Condition => {
                let joined = self.joined(node.op, &node.operands)?;
                Ok(ValueType { dtype: Some(DType::I1), ..joined })
            }
            ResultType::Chosen => self.chosen(node),
            ResultType::Repeated => self.repeated(node),
            // These rules do not occur in rows of arithmetic.
            ResultType::None
            | ResultType::Declared
            | ResultType::Converted(_)
            | ResultType::Reduced
            | ResultType::Carried => Err(TypeFault::operands()),
        }
    }

    /// The type of numbers of one dtype together.
    fn joined(&self, op: Op, operands: &[&ValueType]) -> Result<ValueType, TypeFault> {
        let &[first, ..] = operands else { return Err(TypeFault::operands()) };
        for pair in operands.windows(2) {
            self.of_one_dtype(op.row(), [pair[0], pair[1]])?;
        }
        self.admitted(op, first)?;
        self.neighbours_fit(operands)?;
        Ok(ValueType { dims: self.widest(operands)?, dtype: first.dtype })
    }

    /// Rejects an author's operands of which neighbours have no common shape; passes may reorder them.
    fn neighbours_fit(&self, operands: &[&ValueType]) -> Result<(), TypeFault> {
        match self.written_by {
            WrittenBy::Author => operands.windows(2).try_for_each(|pair| self.widest(pair).map(|_| ())),
            WrittenBy::Passes => Ok(()),
        }
    }

    /// Rejects operands of different dtypes, and conditions where the row wants numbers.
    fn of_one_dtype(&self, row: &OpRow, [left, right]: [&ValueType; 2]) -> Result<(), TypeFault> {
        let admits_conditions = row.operands.admit(DType::I1);
        let conditions = [left, right].iter().filter(|ty| ty.dtype == Some(DType::I1)).count();
        if left.dtype == right.dtype && (conditions < 2 || admits_conditions) {
            return Ok(());
        }
        let text = format!("the operands are {} and {}", self.show(left), self.show(right));
        let help = match (conditions > 0, admits_conditions) {
            (true, true) => "compare the other one, or cast the condition",
            (true, false) => "conditions have no arithmetic: use select",
            (false, _) => "arithmetic wants equal dtypes: cast one of them",
        };
        Err(TypeFault::dtypes(text, help))
    }

    /// The dimensions of the operand that has all of the others'.
    fn widest(&self, operands: &[&ValueType]) -> Result<Dims, TypeFault> {
        let contains =
            |wide: &ValueType, other: &ValueType| other.dims.iter().all(|&dim| self.repeats(dim, &wide.dims));
        let mut widest = operands.iter().filter(|wide| operands.iter().all(|other| contains(wide, other)));
        if let Some(widest) = widest.next() {
            return Ok(widest.dims.clone());
        }
        let mut pairs =
            operands.iter().enumerate().flat_map(|(at, a)| operands[at + 1..].iter().map(move |b| (a, b)));
        let pair = pairs.find(|(a, b)| !contains(a, b) && !contains(b, a));
        let Some((a, b)) = pair else { return Err(TypeFault::operands()) };
        let text = format!("{} and {} have no common shape", self.show(a), self.show(b));
        let mut dims = a.dims.clone();
        dims.extend(b.dims.iter().filter(|dim| !a.dims.contains(dim)).copied());
        let help = format!("one operand must have all dimensions of the other: {}", self.widen(&dims));
        Err(TypeFault::dims(text, help))
    }

    /// The type of one of two values, by a condition.
    fn chosen(&self, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let &[condition, yes, no] = &node.operands[..] else { return Err(TypeFault::operands()) };
        if condition.dtype != Some(DType::I1) {
            let text = format!("the condition of select is {}, and has to be i1", self.show(condition));
            return Err(TypeFault::dtypes(text, "compare it with something: `compare gt %x, %y`"));
        }
        self.of_one_dtype(node.op.row(), [yes, no])?;
        self.neighbours_fit(&[yes, no])?;
        Ok(ValueType { dims: self.widest(&[condition, yes, no])?, dtype: yes.dtype })
    }

    /// The type of a value with the dimensions that its node states.
    fn repeated(&self, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let &[operand] = &node.operands[..] else { return Err(TypeFault::operands()) };
        self.admitted(node.op, operand)?;
        let dims = &node.stated.dims;
        if let Some(&missing) = operand.dims.iter().find(|&&dim| !self.repeats(dim, dims)) {
            let text = format!(
                "a value {} is repeated to dimensions without {}",
                self.show(operand),
                self.dims.name(missing)
            );
            return Err(TypeFault::dims(text, "name all dimensions that the value has, in any order"));
        }
        Ok(ValueType { dims: dims.clone(), dtype: operand.dtype })
    }

    /// The type of a value in the dtype that its node states.
    fn converted(&self, conversion: Conversion, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let &[from] = &node.operands[..] else { return Err(TypeFault::operands()) };
        let (row, to) = (node.op.row(), node.stated.dtype);
        if to == Some(DType::I1) {
            let text = format!("`{}` does not turn {} into i1", row.word, self.show(from));
            return Err(TypeFault::dtypes(text, "compare with zero instead"));
        }
        self.admitted(node.op, from)?;
        if let (ResultType::Converted(sizes), Some(old), Some(new)) = (row.result, from.dtype, to)
            && !sizes.admit(old, new)
        {
            let text = format!("`{}` does not turn {} into {new}", row.word, self.show(from));
            return Err(TypeFault::dtypes(text, "choose a dtype of the same size, or cast"));
        }
        let dims = to.and_then(|to| self.dims.converted(conversion, from, to)).ok_or_else(|| {
            let to = to.map_or("?", DType::name);
            let text = format!("`{}` makes {to} of {}", row.word, self.show(from));
            let help = "elements of f4e2m1 along K are two in a byte along K/2, the last dimension";
            TypeFault::dims(text, help)
        })?;
        Ok(ValueType { dims, dtype: to })
    }

    /// The type of numbers that are made of codes and scales: what the node states. Passes make them.
    fn decoded(&self, decoding: Decoding, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let (&[codes, scales], to) = (&node.operands[..], node.stated) else {
            return Err(TypeFault::operands());
        };
        let holds = match decoding.form {
            CodeForm::Elements => codes.dtype.is_some_and(|dtype| dtype.is_float() && dtype.bits() <= 8),
            CodeForm::Integers(dtype) => {
                dtype.packing().is_some() && matches!(codes.dtype, Some(DType::I8 | DType::I32))
            }
            CodeForm::Bytes => codes.dtype == Some(DType::I8) && decoding.along.is_some(),
        };
        let gives = matches!(to.dtype, Some(DType::F32 | DType::F16 | DType::Bf16));
        let operands = [codes, scales];
        let fits = operands.iter().all(|ty| ty.dims.iter().all(|&dim| self.repeats(dim, &to.dims)))
            && operands.iter().any(|ty| ty.dims.len() == to.dims.len())
            && decoding.along.is_none_or(|dim| to.dims.contains(&dim));
        if !holds || !gives || !fits || scales.dtype != Some(DType::F8E8M0) {
            let text =
                format!("{} is decoded by {} into {}", self.show(codes), self.show(scales), self.show(to));
            return Err(TypeFault::dtypes(text, "codes have scales of f8e8m0, and become f32, f16 or bf16"));
        }
        Ok(to.clone())
    }

    /// The type of codes that are made of numbers.
    fn encoded(&self, dtype: DType, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let &[from] = &node.operands[..] else { return Err(TypeFault::operands()) };
        if dtype.packing().is_none() || from.dtype != Some(DType::F32) {
            let text = format!("{} is encoded as {dtype}", self.show(from));
            return Err(TypeFault::dtypes(text, "f32 has codes of 4 and 6 bits"));
        }
        Ok(ValueType { dims: from.dims.clone(), dtype: Some(DType::I8) })
    }

    /// The type of a value in other places: that of all its pieces.
    pub(super) fn rearranged(&self, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let Some((&first, others)) = node.operands.split_first() else { return Err(TypeFault::operands()) };
        if let Some(other) = others.iter().find(|other| **other != first) {
            let text = format!("{} and {} are pieces of one value", self.show(first), self.show(other));
            return Err(TypeFault::dtypes(text, "pieces have one type"));
        }
        Ok(first.clone())
    }
}
