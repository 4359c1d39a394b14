//! A list of filters of which one must pass.

use super::node::Node;
use super::row::either;
use super::verdict::{Advance, CellVerdict, Kept, RowVerdict};
use crate::CellRef;

/// A list of filters of which one must pass.
#[derive(Debug)]
pub(super) struct One(Vec<Member>);

/// A filter of the list, and what it has done with.
#[derive(Debug)]
struct Member {
    node: Node,
    /// Where it wanted to go on from its last cell. The list goes on by the smallest step of all, and does not ask it
    /// about what it wanted to pass over.
    passes_over: Option<PassesOver>,
}

#[derive(Debug)]
struct PassesOver {
    family: Vec<u8>,
    /// `None`: all of the family.
    qualifier: Option<Vec<u8>>,
    advance: Advance,
}

impl One {
    pub(super) fn new(nodes: impl Iterator<Item = Node>) -> Self {
        Self(nodes.map(|node| Member { node, passes_over: None }).collect())
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.0.iter().map(|member| &member.node)
    }

    pub(super) fn reset(&mut self) {
        for member in &mut self.0 {
            member.node.reset();
            member.passes_over = None;
        }
    }

    pub(super) fn judge_row(&mut self, row: &[u8], reversed: bool) -> RowVerdict {
        // Each is asked, since each begins the row by it.
        let verdicts = self.0.iter_mut().map(|member| member.node.judge_row(row, reversed));
        verdicts.reduce(|any, one| either(any, one, reversed)).unwrap_or(RowVerdict::Pass)
    }

    pub(super) fn judge_cell(&mut self, cell: &CellRef<'_>) -> CellVerdict {
        if self.0.is_empty() {
            return CellVerdict::KEEP;
        }
        let asked = self.0.iter_mut().filter(|member| !member.node.is_done()).map(|member| member.judge(cell));
        let any = asked.reduce(|any, one| CellVerdict {
            kept: match (any.kept, one.kept) {
                (Kept::No, kept) | (kept, Kept::No) => kept,
                (a, b) => a.min(b),
            },
            advance: any.advance.min(one.advance),
        });
        any.unwrap_or(CellVerdict { kept: Kept::No, advance: Advance::NextCell })
    }

    /// Those after one that keeps the row are not asked.
    pub(super) fn rejects_row(&mut self) -> bool {
        !self.0.is_empty() && self.0.iter_mut().all(|member| member.node.rejects_row())
    }

    pub(super) fn is_done(&self) -> bool {
        !self.0.is_empty() && self.nodes().all(Node::is_done)
    }
}

impl Member {
    fn judge(&mut self, cell: &CellRef<'_>) -> CellVerdict {
        if let Some(over) = self.passes_over.as_ref().filter(|over| over.covers(cell)) {
            return CellVerdict { kept: Kept::No, advance: over.advance };
        }
        let verdict = self.node.judge_cell(cell);
        self.passes_over = (verdict.advance != Advance::NextCell).then(|| PassesOver {
            family: cell.family.to_vec(),
            qualifier: (verdict.advance == Advance::NextColumn).then(|| cell.qualifier.to_vec()),
            advance: verdict.advance,
        });
        verdict
    }
}

impl PassesOver {
    fn covers(&self, cell: &CellRef<'_>) -> bool {
        self.family == cell.family && self.qualifier.as_deref().is_none_or(|qualifier| qualifier == cell.qualifier)
    }
}
