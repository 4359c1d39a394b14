//! Bytes of a script as tokens: the words, strings, numbers and signs of the dialect.
//!
//! Strings are Ruby's: in double quotes `\n`, `\x00`, `\u00e9` and their like are escapes and any byte can be written;
//! in single quotes only `\\` and `\'` are. A line goes on while a bracket or string is open, and after a comma, an
//! arrow or a backslash at its end.

mod text;

use bytes::Bytes;

use super::error::{Error, Place, Result};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A command, a constant, `true`, `nil`.
    Word(String),
    /// A string.
    Text(Bytes),
    /// A whole number.
    Integer(i64),
    /// `=>`
    Arrow,
    /// `,`
    Comma,
    /// `(`, `[` or `{`
    Open(u8),
    /// `)`, `]` or `}`
    Close(u8),
    /// The end of a statement: `;` or a line's end.
    End,
}

/// A token and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Spanned {
    pub(crate) token: Token,
    pub(crate) at: Place,
}

/// What a piece of script is.
#[derive(Debug)]
pub(crate) enum Lexed {
    /// Whole statements.
    Whole(Vec<Spanned>),
    /// The beginning of one that needs more lines; what is missing, and since where.
    Open(Error),
}

/// What was read of statements that are not whole yet, up to the end of a line. There no token is half read but a string.
#[derive(Debug)]
pub(crate) struct Begun {
    at: Place,
    tokens: Vec<Spanned>,
    /// Where the brackets that are open were opened.
    open: Vec<Place>,
    string: Option<OpenString>,
}

/// A string without its end.
#[derive(Debug)]
struct OpenString {
    at: Place,
    quote: u8,
    text: Vec<u8>,
}

impl Begun {
    /// Nothing yet; what comes first is on this line of the script.
    pub(crate) const fn at_line(line: u32) -> Self {
        Self { at: Place { line, column: 1 }, tokens: Vec::new(), open: Vec::new(), string: None }
    }

    /// Reads the lines that come next, each with its end; lines before them are not read again.
    ///
    /// # Errors
    ///
    /// A character that begins no token, a wrong escape, a number out of range. Nothing may be read after one.
    pub(crate) fn lex(&mut self, lines: &[u8]) -> Result<Lexed> {
        let mut lexer = Lexer { rest: lines, at: self.at, begun: self };
        let missing = lexer.run()?;
        self.at = lexer.at;
        Ok(match missing {
            Some(missing) => Lexed::Open(missing),
            None => Lexed::Whole(std::mem::take(&mut self.tokens)),
        })
    }
}

struct Lexer<'a> {
    rest: &'a [u8],
    at: Place,
    begun: &'a mut Begun,
}

impl Lexer<'_> {
    /// Reads to the end; tells what is missing if the statement is not whole.
    fn run(&mut self) -> Result<Option<Error>> {
        if let Some(string) = self.begun.string.take() {
            self.string(string)?;
        }
        while let Some(&byte) = self.rest.first() {
            let at = self.at;
            match byte {
                b'\n' => {
                    self.bump();
                    if self.begun.open.is_empty() && !self.goes_on() {
                        self.push(at, Token::End);
                    }
                }
                b'\\' if self.rest.get(1) == Some(&b'\n') || self.rest.get(1..3) == Some(b"\r\n") => {
                    while self.bump() != Some(b'\n') {}
                }
                b' ' | b'\t' | b'\r' => {
                    self.bump();
                }
                b'#' => {
                    while self.rest.first().is_some_and(|byte| *byte != b'\n') {
                        self.bump();
                    }
                }
                b'"' | b'\'' => {
                    self.bump();
                    self.string(OpenString { at, quote: byte, text: Vec::new() })?;
                }
                _ => self.sign_or_word(byte)?,
            }
        }
        let Begun { string, open, tokens, .. } = &*self.begun;
        let missing = match (string, open.last(), self.goes_on(), tokens.last()) {
            (Some(string), ..) => Some(Error::wrong(string.at, "the string that begins here has no end")),
            (None, Some(&at), ..) => Some(Error::wrong(at, "the bracket that is opened here is not closed")),
            (None, None, true, Some(last)) => Some(Error::wrong(last.at, "something is missing after this")),
            _ => None,
        };
        Ok(missing)
    }

    /// Reads on in a string; kept where it has no end yet.
    fn string(&mut self, mut string: OpenString) -> Result<()> {
        if text::quoted(self, string.quote, &mut string.text)? {
            self.push(string.at, Token::Text(string.text.into()));
        } else {
            self.begun.string = Some(string);
        }
        Ok(())
    }

    /// Whether the statement cannot end after the last token.
    fn goes_on(&self) -> bool {
        self.begun.tokens.last().is_some_and(|last| matches!(last.token, Token::Comma | Token::Arrow))
    }

    fn sign_or_word(&mut self, byte: u8) -> Result<()> {
        let at = self.at;
        let token = match byte {
            b',' => self.sign(1, Token::Comma),
            b';' => self.sign(1, Token::End),
            b'(' | b'[' | b'{' => {
                self.begun.open.push(at);
                self.sign(1, Token::Open(byte))
            }
            b')' | b']' | b'}' => {
                self.begun.open.pop();
                self.sign(1, Token::Close(byte))
            }
            b'=' if self.rest.get(1) == Some(&b'>') => self.sign(2, Token::Arrow),
            b'=' => return Err(Error::wrong(at, "variables are not supported: call commands by table name")),
            b'0'..=b'9' => self.number()?,
            b'-' if self.rest.get(1).is_some_and(u8::is_ascii_digit) => self.number()?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word()?,
            _ => return Err(Error::wrong(at, format!("unexpected '{}'", byte.escape_ascii()))),
        };
        self.push(at, token);
        Ok(())
    }

    fn sign(&mut self, bytes: usize, token: Token) -> Token {
        for _ in 0..bytes {
            self.bump();
        }
        token
    }

    fn number(&mut self) -> Result<Token> {
        let at = self.at;
        let mut digits = String::new();
        while let Some(&byte) = self.rest.first() {
            match byte {
                b'-' if digits.is_empty() => digits.push('-'),
                b'0'..=b'9' => digits.push(char::from(byte)),
                b'_' => {}
                b'.' | b'a'..=b'z' | b'A'..=b'Z' => {
                    return Err(Error::wrong(self.at, "only whole decimal numbers are taken; quote what is text"));
                }
                _ => break,
            }
            self.bump();
        }
        let number = digits.parse().map_err(|_| Error::wrong(at, format!("{digits} does not fit into 64 bits")))?;
        Ok(Token::Integer(number))
    }

    fn word(&mut self) -> Result<Token> {
        let mut word = String::new();
        while let Some(&byte) = self.rest.first() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'?' | b'!' => word.push(char::from(byte)),
                b'.' | b':' => {
                    return Err(Error::wrong(
                        self.at,
                        "methods and Java classes cannot be called: call commands by table name, and write filters as strings",
                    ));
                }
                _ => break,
            }
            self.bump();
        }
        Ok(Token::Word(word))
    }

    fn push(&mut self, at: Place, token: Token) {
        self.begun.tokens.push(Spanned { token, at });
    }

    /// The next byte, which is thereby read.
    fn bump(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        if byte == b'\n' {
            self.at = Place { line: self.at.line.saturating_add(1), column: 1 };
        } else {
            self.at.column = self.at.column.saturating_add(1);
        }
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(source: &[u8], first_line: u32) -> Result<Lexed> {
        Begun::at_line(first_line).lex(source)
    }

    fn tokens(source: &[u8]) -> Vec<Token> {
        match lex(source, 1).unwrap() {
            Lexed::Whole(tokens) => tokens.into_iter().map(|spanned| spanned.token).collect(),
            Lexed::Open(missing) => panic!("{missing}"),
        }
    }

    fn check_text(source: &str, expected: &[u8]) {
        assert_eq!(tokens(source.as_bytes()), [Token::Text(Bytes::copy_from_slice(expected))], "{source}");
    }

    fn check_wrong(source: &str, expected: &str) {
        assert_eq!(lex(source.as_bytes(), 1).unwrap_err().to_string(), expected);
    }

    #[test]
    fn strings_are_rubys() {
        check_text(r#""\x00\xfF\x1z""#, b"\x00\xff\x01z");
        check_text(r#""\n\t\\\"\e\0\101\q""#, b"\n\t\\\"\x1b\0Aq");
        check_text(r#""\u00e9\u{1F600}""#, "é😀".as_bytes());
        check_text(r"'\x00 \\ \' \n'", br"\x00 \ ' \n");
        check_wrong(r#" "a\xg""#, "line 1, column 5: \\x needs one or two hexadecimal digits");
        check_wrong(r#""a#{b}""#, "line 1, column 3: `#{` would run Ruby here: write \\# for the sign");
        check_wrong(r#""\u{d800}""#, "line 1, column 3: \\u needs a Unicode character");
    }

    #[test]
    fn signs_numbers_and_comments() {
        use Token::{Arrow, Close, Comma, End, Integer, Open, Word};
        let word = |word: &str| Word(word.to_owned());
        let expected = [word("scan"), word("A"), Arrow, Integer(-5), Comma, Open(b'{'), Close(b'}'), End, word("b")];
        assert_eq!(tokens(b"scan A => -5, # no\n {}\nb"), expected);
        assert_eq!(tokens(b"1_000 \\\n 2"), [Integer(1000), Integer(2)]);
        check_wrong("99999999999999999999", "line 1, column 1: 99999999999999999999 does not fit into 64 bits");
        check_wrong("\nput 1.5", "line 2, column 6: only whole decimal numbers are taken; quote what is text");
    }

    #[test]
    fn what_is_open_asks_for_more() {
        for open in ["scan 't', {", "put 'a", "put 'a',", "A =>", "(["] {
            assert!(matches!(lex(open.as_bytes(), 1).unwrap(), Lexed::Open(_)), "{open}");
        }
    }

    #[test]
    fn lines_one_by_one_are_read_as_they_are_together() {
        for source in [
            "put 't',\n 'a\nb',\n [1,\n2] # (\n",
            "put \"a\\\n\\x41\n\\\"\", \\\n {A =>\n -5}\n",
            "'\\\n'\n",
            "'a\r\n\\\r\n' \\\r\n; b\n",
            "[(\n\n'\n\n'\n)\n]\n",
        ] {
            let mut begun = Begun::at_line(1);
            let mut whole = Vec::new();
            for line in source.as_bytes().split_inclusive(|byte| *byte == b'\n') {
                if let Lexed::Whole(tokens) = begun.lex(line).unwrap() {
                    whole.extend(tokens);
                }
            }
            let Lexed::Whole(expected) = lex(source.as_bytes(), 1).unwrap() else { panic!("{source}") };
            assert_eq!(format!("{whole:?}"), format!("{expected:?}"), "{source}");
        }
    }

    /// No input brings it down.
    #[test]
    fn any_byte_is_a_token_or_an_error() {
        for a in 0..=u8::MAX {
            for b in 0..=u8::MAX {
                drop(lex(&[a, b, b'\\', a], 1));
                drop(lex(&[b'"', b'\\', a, b, b'"'], 1));
            }
        }
    }
}
