//! Requests answered: plan, fan-out, spans, downsample, rate, group, aggregate.
