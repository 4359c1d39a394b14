//! Java's regular expressions in the words of the `regex` crate.
//!
//! Only what both write and mean otherwise is changed, and what Java alone writes. The rest stays: the crate says what is wrong with it.
//! *Source*: `java.util.regex.Pattern` of Java 17.

use std::borrow::Cow;
use std::str::Chars;

/// What is within a class for Java's `\h` and `\v`.
const HORIZONTAL: &str = r"\t\x20\xA0\u1680\u180E\u2000-\u200A\u202F\u205F\u3000";
const VERTICAL: &str = r"\n-\r\x85\u2028\u2029";
/// Java's `\R`, and `\Z`, which stands before the last line end too.
const LINE_END: &str = r"(?:\r\n|[\n-\r\x85\u2028\u2029])";
const LAST_LINE_END: &str = r"(?:(?:\r\n|[\n\r\x85\u2028\u2029])?\z)";

/// A Java pattern as the `regex` crate has to be given it. Patterns that Java refuses are given back in some form that the crate
/// refuses, most often.
///
/// *Bounds*: at most 40 times as long as `text`. *Cost*: linear.
///
/// ```
/// use basalt_schema::java_pattern;
///
/// assert_eq!(java_pattern(r"^web[0-9]+$"), r"^web[0-9]+$");
/// assert_eq!(java_pattern(r"\w\Q.\E"), r"[[:word:]]\u{2e}");
/// ```
pub fn java_pattern(text: &str) -> String {
    let text = unquoted(text);
    Translator { rest: text.chars(), out: String::with_capacity(text.len()), flags: String::new(), outer: Vec::new() }
        .translate()
}

/// Java's first step: what is between `\Q` and `\E`, or the end, is escaped sign by sign.
fn unquoted(text: &str) -> Cow<'_, str> {
    if !text.contains(r"\Q") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        if let Some(quote) = escape.strip_prefix('Q') {
            let (quoted, after) = quote.split_once(r"\E").unwrap_or((quote, ""));
            for c in quoted.chars() {
                match c {
                    // By its code, so that no number before it goes on.
                    '0'..='9' => out.extend(['\\', 'x', '3', c]),
                    _ if c.is_ascii_alphabetic() || !c.is_ascii() => out.push(c),
                    _ => out.extend(['\\', c]),
                }
            }
            rest = after;
        } else {
            let (escaped, after) = escape.split_at(escape.chars().next().map_or(0, char::len_utf8));
            out.push('\\');
            out.push_str(escaped);
            rest = after;
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What of `text` is before its end `rest`.
fn upto<'t>(text: &'t str, rest: &str) -> &'t str {
    text.strip_suffix(rest).unwrap_or(text)
}

struct Translator<'t> {
    rest: Chars<'t>,
    out: String,
    /// Those set here. `i` folds ASCII's letters, and with `u` or `U` all, as the crate does it; `U` makes classes
    /// Unicode's, as the crate's are; with `x` blanks do not count, within a class too.
    flags: String,
    /// Those set outside of each open group, from the outermost on: its end brings them back.
    outer: Vec<String>,
}

/// What a backslash begins.
enum Escape<'t> {
    Char(char),
    /// A class that has this within, or has not.
    Set(&'static str, bool),
    /// What stands behind the backslash is left to the crate.
    Same(&'t str),
}

impl<'t> Translator<'t> {
    fn translate(mut self) -> String {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => match self.escape() {
                    Escape::Char(c) if c.is_alphanumeric() => self.sign(c),
                    Escape::Char(c) => self.out.extend(c.escape_unicode()),
                    Escape::Set(set, negated) if self.has('i') => {
                        self.out.push_str("(?-i:");
                        // These are one, and the others fold into themselves.
                        self.set(if matches!(set, "[:lower:]" | "[:upper:]") { "[:alpha:]" } else { set }, negated);
                        self.out.push(')');
                    }
                    Escape::Set(set, negated) => self.set(set, negated),
                    Escape::Same("R") => self.out.push_str(LINE_END),
                    Escape::Same("Z") => self.out.push_str(LAST_LINE_END),
                    Escape::Same(text) => self.same(text),
                },
                '[' => self.class(),
                '(' => self.group(),
                ')' => {
                    self.out.push(')');
                    self.flags = self.outer.pop().unwrap_or_default();
                }
                '#' if self.has('x') => self.comment(),
                '*' | '+' | '?' => self.quantifier(c),
                '{' => self.count(),
                _ => self.sign(c),
            }
        }
        self.out
    }

    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    /// What is behind a `#` among flags that allow comments, with its line's end.
    fn comment(&mut self) {
        let text = self.rest.as_str();
        let (comment, after) = text.split_at(text.find('\n').map_or(text.len(), |end| end + 1));
        self.out.push('#');
        self.out.push_str(comment);
        self.rest = after.chars();
    }

    /// A sign outside of classes, as it stands; a letter so that it folds as Java's do.
    fn sign(&mut self, c: char) {
        let flag = match c {
            _ if !self.has('i') || self.flags.contains(['u', 'U']) => None,
            // Unicode's folding knows others of these: the Kelvin sign and the long s.
            'k' | 'K' | 's' | 'S' => Some('u'),
            _ => (!c.is_ascii()).then_some('i'),
        };
        match flag {
            None => self.out.push(c),
            Some(flag) => self.out.extend(['(', '?', '-', flag, ':', c, ')']),
        }
    }

    /// What repeats. One that gives nothing back (`a++`, Java's `(?>a+)`) is refused as that is: the crate would take it for another.
    fn quantifier(&mut self, end: char) {
        self.out.push(end);
        if let Some(after) = self.rest.as_str().strip_prefix('+') {
            self.out.push_str("(?>)");
            self.rest = after.chars();
        } else if let Some(after) = self.rest.as_str().strip_prefix('?') {
            self.out.push('?');
            self.rest = after.chars();
        }
    }

    /// What is behind a `{`.
    fn count(&mut self) {
        let text = self.rest.as_str();
        let (count, after) = text.split_at(text.find(|c: char| !matches!(c, '0'..='9' | ',')).unwrap_or(text.len()));
        self.out.push('{');
        self.out.push_str(count);
        self.rest = after.chars();
        if let Some(after) = after.strip_prefix('}') {
            self.rest = after.chars();
            self.quantifier('}');
        }
    }

    fn set(&mut self, set: &str, negated: bool) {
        self.out.push_str(if negated { "[^" } else { "[" });
        self.out.push_str(set);
        self.out.push(']');
    }

    fn same(&mut self, text: &str) {
        self.out.push('\\');
        self.out.push_str(text);
    }

    /// What is behind a `(`: a name as it stands, and flags without those that the crate has otherwise or needs not.
    fn group(&mut self) {
        self.out.push('(');
        self.outer.push(self.flags.clone());
        let Some(text) = self.rest.as_str().strip_prefix('?') else { return };
        self.out.push('?');
        let end = |text: &str, is_part: fn(char) -> bool| text.find(|c| !is_part(c)).unwrap_or(text.len());
        let (flags, after) = text.split_at(end(text, |c| c.is_ascii_alphabetic() || c == '-'));
        if !after.starts_with([':', ')']) {
            let (name, after) = text.split_at(end(text, |c| c.is_ascii_alphanumeric() || matches!(c, '<' | '_')));
            self.out.push_str(name);
            self.rest = after.chars();
            return;
        }
        self.rest = after.chars();
        let (on, off) = flags.split_once('-').unwrap_or((flags, ""));
        // To the end of the group around them.
        let holds_on = after.starts_with(')');
        for flag in on.chars() {
            if !self.has(flag) {
                self.flags.push(flag);
            }
        }
        // `U` takes `u` with it.
        self.flags.retain(|flag| !(off.contains(flag) || flag == 'u' && off.contains('U')));
        // `d` is what the crate does; its own `u` and `U` are others.
        let [on, off] = [on, off].map(|flags| flags.replace(['d', 'u', 'U'], ""));
        self.out.push_str(&on);
        if !off.is_empty() {
            self.out.push('-');
            self.out.push_str(&off);
        } else if on.is_empty() && holds_on {
            self.out.push(':');
        }
        if holds_on {
            self.out.push(')');
            self.rest.next();
            self.outer.pop();
        }
    }

    /// A class, with those within it, after its first bracket. Signs are written by their codes, as more of them mean something to the crate.
    fn class(&mut self) {
        let mut depth = 0_usize;
        let mut is_empty = true;
        let mut next = Some('[');
        while let Some(c) = next {
            match c {
                '[' => {
                    depth += 1;
                    is_empty = true;
                    self.out.push('[');
                    if let Some(after) = self.rest.as_str().strip_prefix('^') {
                        self.rest = after.chars();
                        self.out.push('^');
                    }
                }
                ']' if !is_empty => {
                    depth -= 1;
                    self.out.push(']');
                    if depth == 0 {
                        return;
                    }
                }
                '&' if self.rest.as_str().starts_with('&') => {
                    self.rest.next();
                    // With nothing on a side it says nothing.
                    if !is_empty && !self.rest.as_str().starts_with(['&', ']']) {
                        self.out.push_str("&&");
                    }
                }
                _ if self.has('x') && c.is_ascii_whitespace() => self.out.push(c),
                _ => {
                    self.class_item(c);
                    is_empty = false;
                }
            }
            next = self.rest.next();
        }
    }

    /// A sign of a class, a range from it, or what a backslash begins.
    fn class_item(&mut self, first: char) {
        match if first == '\\' { self.escape() } else { Escape::Char(first) } {
            Escape::Char(c) => {
                self.class_sign(c);
                let Some(end) = self.rest.as_str().strip_prefix('-') else { return };
                if end.is_empty() || end.starts_with(['[', ']']) {
                    return;
                }
                self.out.push('-');
                self.rest = end.chars();
                match self.rest.next() {
                    Some('\\') => match self.escape() {
                        Escape::Char(c) => self.class_sign(c),
                        // No end of a range, which the crate then says.
                        _ => self.same("w"),
                    },
                    Some(c) => self.class_sign(c),
                    None => {}
                }
            }
            Escape::Set(set, negated) => self.set(set, negated),
            Escape::Same(text) => self.same(text),
        }
    }

    fn class_sign(&mut self, c: char) {
        if c.is_alphanumeric() { self.out.push(c) } else { self.out.extend(c.escape_unicode()) }
    }

    /// Reads on after a backslash.
    fn escape(&mut self) -> Escape<'t> {
        let text = self.rest.as_str();
        let Some(c) = self.rest.next() else { return Escape::Same("") };
        let same = Escape::Same(upto(text, self.rest.as_str()));
        match c {
            'd' | 'D' if !self.has('U') => Escape::Set("[:digit:]", c == 'D'),
            's' | 'S' if !self.has('U') => Escape::Set("[:space:]", c == 'S'),
            'w' | 'W' if !self.has('U') => Escape::Set("[:word:]", c == 'W'),
            'h' | 'H' => Escape::Set(HORIZONTAL, c == 'H'),
            'v' | 'V' => Escape::Set(VERTICAL, c == 'V'),
            'p' | 'P' => self.property(text, c == 'P'),
            'a' => Escape::Char('\x07'),
            'e' => Escape::Char('\x1B'),
            'f' => Escape::Char('\x0C'),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            't' => Escape::Char('\t'),
            'c' => self.rest.next().and_then(|c| char::from_u32(u32::from(c) ^ 64)).map_or(same, Escape::Char),
            '0' => self.code(c).map_or(same, Escape::Char),
            // Refused, whatever follows.
            'x' | 'u' => self.code(c).map_or(Escape::Same("x{}"), Escape::Char),
            _ if c.is_ascii_alphanumeric() => same,
            _ => Escape::Char(c),
        }
    }

    /// The character of `\x41`, `\x{41}`, `\u0041` or `\0101`, after its letter; the crate's `\u{41}` is taken too.
    fn code(&mut self, kind: char) -> Option<char> {
        let text = self.rest.as_str();
        let braced = text.strip_prefix('{').filter(|_| kind != '0').and_then(|text| text.split_once('}'));
        let (digits, after) = match (kind, braced) {
            (_, Some(parts)) => parts,
            ('0', _) => {
                let most = if text.starts_with(['0', '1', '2', '3']) { 3 } else { 2 };
                text.split_at(text.bytes().take(most).take_while(|b| matches!(b, b'0'..=b'7')).count())
            }
            _ => text.split_at_checked(if kind == 'x' { 2 } else { 4 })?,
        };
        let radix = if kind == '0' { 8 } else { 16 };
        let code = digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, radix).ok())??;
        let found = char::from_u32(code)?;
        self.rest = after.chars();
        Some(found)
    }

    /// A class by its name, after the `p` with which `text` starts.
    fn property(&mut self, text: &'t str, negated: bool) -> Escape<'t> {
        let Some((name, after)) = self.rest.as_str().strip_prefix('{').and_then(|text| text.split_once('}')) else {
            self.rest.next();
            return Escape::Same(upto(text, self.rest.as_str()));
        };
        self.rest = after.chars();
        let set = match name {
            "ASCII" => "[:ascii:]",
            "L1" => r"\x00-\xFF",
            _ if self.has('U') => "",
            "Alnum" => "[:alnum:]",
            "Alpha" => "[:alpha:]",
            "Blank" => "[:blank:]",
            "Cntrl" => "[:cntrl:]",
            "Digit" => "[:digit:]",
            "Graph" => "[:graph:]",
            "Lower" => "[:lower:]",
            "Print" => "[:print:]",
            "Punct" => "[:punct:]",
            "Space" => "[:space:]",
            "Upper" => "[:upper:]",
            "XDigit" => "[:xdigit:]",
            _ => "",
        };
        if set.is_empty() { Escape::Same(upto(text, after)) } else { Escape::Set(set, negated) }
    }
}

#[cfg(test)]
mod tests;
