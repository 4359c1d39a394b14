use proptest::prelude::*;

use super::*;

/// `a` is 7, `b` is -2, `z` is 0, `n` is not a number.
fn value(text: &str) -> Result<f64> {
    let program = Program::parse(text, false)?;
    let value = |name: &String| match name.as_str() {
        "a" => 7.0,
        "b" => -2.0,
        "z" => 0.0,
        _ => f64::NAN,
    };
    let values: Vec<f64> = program.variables().iter().map(value).collect();
    Ok(program.run(&values, &mut Vec::new()))
}

fn check(text: &str, expected: f64) {
    let found = value(text).unwrap();
    assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{text}: {found}");
}

/// `E-EXP`: each value as the real OpenTSDB gave it.
#[test]
fn arithmetic_is_that_of_jexl() {
    check("a + b * 2", 3.0);
    check("(a + b) * 2", 10.0);
    check("a - -b", 5.0);
    check("a--b", 5.0);
    check("a % 4", 3.0);
    check("a mod 4", 3.0);
    check("b div 4", -0.5);
    check("a / z", 0.0);
    check("a % z", 0.0);
    check("a * (1/2)", 0.0);
    check("a * 0.1", 7.0 * 0.1);
    check("a+1.5d", 8.5);
    check("a+0x10", 23.0);
    check("a+1L", 8.0);
    check("a + 010 + 0 + 00", 15.0);
    check("a + n", f64::NAN);
    check("9223372036854775807 + 1 + z", 9_223_372_036_854_775_808.0);
}

/// `E-EXP`
#[test]
fn comparisons_and_logic_are_one_or_zero() {
    check("a > 2", 1.0);
    check("a lt b or b gt 1", 0.0);
    check("a > 2 && b < 1", 1.0);
    check("a && z", 0.0);
    check("!z", 1.0);
    check("not a", 0.0);
    check("a == 7", 1.0);
    check("n == n", 1.0);
    check("n < b", 1.0);
    check("a != 7 || z", 0.0);
    check("a ? b : z", -2.0);
    check("z ?: b", -2.0);
    check("a ?: b", 7.0);
    check("a + true", 8.0);
    check("(a > 2) * b", -2.0);
    check("a > 2 ? 1 : 0", 1.0);
    check("z ? 1 : a ? 2 : 3", 2.0);
}

#[test]
fn a_short_fraction_has_the_precision_of_32_bits() {
    let program = Program::parse("a * 0.123456789", true).unwrap();
    assert_eq!(program.run(&[1.0], &mut Vec::new()).to_bits(), 0.123_456_79_f64.to_bits());
    check("0.123456789 + z", 0.123_456_789);
}

#[test]
fn what_is_no_expression_is_refused_and_where() {
    for (text, place) in [
        ("a +", 3),
        ("a**2", 2),
        ("", 0),
        ("a b", 2),
        ("(a", 2),
        ("a)", 1),
        ("a ? b", 5),
        ("a + .5", 4),
        ("a + 5.", 4),
        ("a+1f", 2),
        ("a+1e3", 2),
        ("a & b", 2),
        ("a; b", 1),
        ("a.b", 1),
        ("a < b < 10", 6),
        ("a == b != a", 7),
        ("a + 'x'", 4),
        ("é + §", 5),
    ] {
        match Program::parse(text, false) {
            Err(Error::Expression(ExpressionFault::Syntax { at, .. })) => assert_eq!(at, place, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_comparison_may_be_compared_with_another_kind() {
    check("a < b == b > a", 1.0);
    check("(a < b) < 10", 1.0);
}

/// A hostile depth or length is refused, not run into the stack's end.
#[test]
fn depth_and_length_are_bounded() {
    for open in ["(", "-", "!", "a?", "a?a:", "a?:"] {
        let refused = Program::parse(&open.repeat(3_000), false);
        assert!(matches!(refused, Err(Error::Expression(ExpressionFault::TooDeep { .. }))), "{open}");
    }
    assert!(Program::parse(&"a+".repeat(9_000), false).is_err());
    check(&format!("{}a", "a+".repeat(8_000)), 7.0 * 8_001.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_text_is_read_or_refused(text in "[ab01.()+*/%<>=!?:&| x-]{0,40}|\\PC{0,20}") {
        // What is read leaves one value, whatever it is.
        if let Ok(program) = Program::parse(&text, false) {
            let mut stack = Vec::new();
            program.run(&vec![1.0; program.variables().len()], &mut stack);
            prop_assert!(stack.is_empty());
        }
    }
}
