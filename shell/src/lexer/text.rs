//! What stands between quotes, with its escapes resolved into bytes.

use super::Lexer;
use crate::error::{Error, Result};

/// Adds the bytes up to the closing `quote`; says whether there is one.
pub(super) fn quoted(lexer: &mut Lexer<'_>, quote: u8, text: &mut Vec<u8>) -> Result<bool> {
    loop {
        let at = lexer.at;
        match lexer.bump() {
            None => return Ok(false),
            Some(byte) if byte == quote => return Ok(true),
            Some(b'#') if quote == b'"' && lexer.rest.first() == Some(&b'{') => {
                return Err(Error::wrong(at, "`#{` would run Ruby here: write \\# for the sign"));
            }
            Some(b'\\') if quote == b'"' => match lexer.rest.first() {
                None => return Ok(false),
                Some(_) => escape(lexer, text)?,
            },
            Some(b'\\') => match lexer.rest.first() {
                Some(&byte) if byte == quote || byte == b'\\' => {
                    lexer.bump();
                    text.push(byte);
                }
                _ => text.push(b'\\'),
            },
            Some(byte) => text.push(byte),
        }
    }
}

/// What follows a backslash in double quotes.
fn escape(lexer: &mut Lexer<'_>, text: &mut Vec<u8>) -> Result<()> {
    let at = lexer.at;
    match lexer.bump().unwrap_or_default() {
        b'n' => text.push(b'\n'),
        b't' => text.push(b'\t'),
        b'r' => text.push(b'\r'),
        b'a' => text.push(0x07),
        b'b' => text.push(0x08),
        b'v' => text.push(0x0b),
        b'f' => text.push(0x0c),
        b'e' => text.push(0x1b),
        b's' => text.push(b' '),
        b'\n' => {}
        b'x' => {
            let value =
                digits(lexer, 16, 2).ok_or_else(|| Error::wrong(at, "\\x needs one or two hexadecimal digits"))?;
            text.push(value.to_le_bytes()[0]);
        }
        byte @ b'0'..=b'7' => {
            let mut value = u32::from(byte - b'0');
            for _ in 0..2 {
                let Some(digit) = digits(lexer, 8, 1) else { break };
                value = value * 8 + digit;
            }
            // `\777` is Ruby's 0xff: the ninth bit is cut.
            text.push(value.to_le_bytes()[0]);
        }
        b'u' => {
            let wrong = || Error::wrong(at, "\\u needs a Unicode character");
            let value = if lexer.rest.first() == Some(&b'{') {
                lexer.bump();
                let value = digits(lexer, 16, 6).ok_or_else(wrong)?;
                if lexer.bump() != Some(b'}') {
                    return Err(wrong());
                }
                value
            } else {
                digits(lexer, 16, 4).ok_or_else(wrong)?
            };
            let character = char::from_u32(value).ok_or_else(wrong)?;
            text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        other => text.push(other),
    }
    Ok(())
}

/// Up to `most` digits of base `radix`; `None` when there is not one.
fn digits(lexer: &mut Lexer<'_>, radix: u32, most: usize) -> Option<u32> {
    let mut value = None;
    for _ in 0..most {
        let Some(digit) = lexer.rest.first().and_then(|byte| char::from(*byte).to_digit(radix)) else { break };
        lexer.bump();
        value = Some(value.unwrap_or(0) * radix + digit);
    }
    value
}
