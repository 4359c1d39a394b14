//! Floats as Java prints them (`Float.toString`): names of percentiles and of buckets show them.

/// A float as Java prints it.
pub(crate) fn float_text(value: f32) -> String {
    let size = value.abs();
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let with_point = |text: &str| if text.contains('.') { text.to_owned() } else { format!("{text}.0") };
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return with_point(&value.to_string());
    }
    let text = format!("{value:E}");
    let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
    format!("{}E{exponent}", with_point(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_histo_floats_are_javas() {
        for (value, text) in
            [(50.0, "50.0"), (99.9, "99.9"), (0.0, "0.0"), (1e7, "1.0E7"), (1.5e-4, "1.5E-4"), (-2.25, "-2.25")]
        {
            assert_eq!(float_text(value), text);
        }
    }
}
