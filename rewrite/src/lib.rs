//! The row rewriter: an hour of points folded into one cell.
