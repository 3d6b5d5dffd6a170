//! The lexer: text to tokens with their places. It accepts every input; characters that it cannot read become
//! a token that the parser reports.

/// What a token is.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token<'a> {
    /// A word: keyword, name of a memory or symbol, dtype.
    Name(&'a str),
    /// Decimal digits, or `0x` and hexadecimal digits.
    Integer(&'a str),
    /// Decimal digits with a point, an exponent or both.
    Float(&'a str),
    /// The content of a quoted name, escapes resolved.
    Quoted(String),
    /// An operator or bracket.
    Sign(&'static str),
    /// End of a line that ends a statement.
    Newline,
    /// A character that starts no token.
    Unknown(char),
    /// A quoted name that does not end on its line, or has an unknown escape.
    BadQuote,
    /// End of the text.
    End,
}

/// A token and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Lexeme<'a> {
    pub(super) token: Token<'a>,
    /// Line, from 1.
    pub(super) line: u32,
    /// Column in characters, from 1.
    pub(super) column: u32,
    /// Byte offsets of its text.
    pub(super) start: usize,
    /// One past its last byte.
    pub(super) end: usize,
}

/// Longest first where one is a prefix of another.
const SIGNS: &[&str] = &[
    "//", "==", ">=", "<=", "{", "}", "[", "]", "(", ")", ",", "=", "@", "%", "+", "-", "*", "/", ".", "!",
    ":",
];

/// After these a statement cannot be complete, so a newline does not end it.
const CONTINUES: &[&str] = &["[", "(", ",", "="];

/// Reads a text token by token.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    column: u32,
    /// True if the last token cannot end a statement.
    continues: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, line: 1, column: 1, continues: false }
    }

    /// The next token; at the end of the text and after it [`Token::End`].
    pub(super) fn next(&mut self) -> Lexeme<'a> {
        loop {
            self.skip_blanks();
            let (line, column, start) = (self.line, self.column, self.at);
            let token = self.token();
            if token == Token::Newline && (self.continues || self.goes_on()) {
                continue;
            }
            self.continues = matches!(token, Token::Sign(sign) if CONTINUES.contains(&sign));
            return Lexeme { token, line, column, start, end: self.at };
        }
    }

    /// True if the next line begins with an attribute, which belongs to the statement before it.
    fn goes_on(&self) -> bool {
        self.rest().trim_start_matches([' ', '\t', '\r']).starts_with('!')
    }

    /// Leaves out the rest of the text.
    pub(super) fn stop(&mut self) {
        self.at = self.text.len();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        if c == '\n' {
            self.line = self.line.saturating_add(1);
            self.column = 1;
        } else {
            self.column = self.column.saturating_add(1);
        }
        Some(c)
    }

    fn skip_while(&mut self, test: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&test) {
            self.bump();
        }
    }

    /// Skips spaces and a comment; the newline after it stays.
    fn skip_blanks(&mut self) {
        self.skip_while(|c| matches!(c, ' ' | '\t' | '\r'));
        if self.peek() == Some(';') {
            self.skip_while(|c| c != '\n');
        }
    }

    fn token(&mut self) -> Token<'a> {
        let start = self.at;
        let Some(first) = self.peek() else { return Token::End };
        if first.is_ascii_alphabetic() || first == '_' {
            self.skip_while(|c| c.is_ascii_alphanumeric() || c == '_');
            return Token::Name(&self.text[start..self.at]);
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if let Some(sign) = SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
            for _ in 0..sign.len() {
                self.bump();
            }
            return Token::Sign(sign);
        }
        self.bump();
        match first {
            '\n' => Token::Newline,
            '"' => self.quoted(),
            other => Token::Unknown(other),
        }
    }

    fn number(&mut self) -> Token<'a> {
        let start = self.at;
        if self.rest().starts_with("0x") {
            self.bump();
            self.bump();
            self.skip_while(|c| c.is_ascii_hexdigit());
            return Token::Integer(&self.text[start..self.at]);
        }
        let digit = |c: char| c.is_ascii_digit();
        self.skip_while(digit);
        let mut float = false;
        if self.peek() == Some('.') {
            float = true;
            self.bump();
            self.skip_while(digit);
        }
        if let Some(exponent) = self.rest().strip_prefix(['e', 'E'])
            && exponent.strip_prefix(['+', '-']).unwrap_or(exponent).starts_with(digit)
        {
            float = true;
            self.bump();
            self.bump();
            self.skip_while(digit);
        }
        let text = &self.text[start..self.at];
        if float { Token::Float(text) } else { Token::Integer(text) }
    }

    fn quoted(&mut self) -> Token<'a> {
        let mut content = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => return Token::BadQuote,
                Some('"') => {
                    self.bump();
                    return Token::Quoted(content);
                }
                Some('\\') => match self.escape() {
                    Some(c) => content.push(c),
                    None => {
                        self.skip_while(|c| c != '\n');
                        return Token::BadQuote;
                    }
                },
                Some(c) => {
                    self.bump();
                    content.push(c);
                }
            }
        }
    }

    /// One escape, of those that [`char::escape_default`] writes.
    fn escape(&mut self) -> Option<char> {
        self.bump();
        let c = self.peek().filter(|c| *c != '\n')?;
        self.bump();
        match c {
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            '"' | '\'' | '\\' => Some(c),
            'u' if self.peek() == Some('{') => {
                self.bump();
                let start = self.at;
                self.skip_while(|c| c.is_ascii_hexdigit());
                let code = u32::from_str_radix(&self.text[start..self.at], 16).ok()?;
                (self.peek() == Some('}')).then(|| self.bump())?;
                char::from_u32(code)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> Vec<Lexeme<'_>> {
        let mut lexer = Lexer::new(text);
        let mut lexemes = vec![lexer.next()];
        while lexemes.last().is_some_and(|last| last.token != Token::End) {
            lexemes.push(lexer.next());
        }
        lexemes
    }

    fn tokens(text: &str) -> Vec<Token<'_>> {
        lex(text).into_iter().map(|lexeme| lexeme.token).collect()
    }

    #[test]
    fn numbers_are_split_from_names_and_signs() {
        let expected = [
            Token::Integer("12"),
            Token::Float("1.5"),
            Token::Float("2e-3"),
            Token::Integer("0xff"),
            Token::Integer("3"),
            Token::Name("e"),
            Token::Sign("-"),
            Token::Sign("//"),
            Token::End,
        ];
        assert_eq!(tokens("12 1.5 2e-3 0xff 3e- //"), expected);
    }

    #[test]
    fn newlines_end_statements_only_where_a_statement_can_end() {
        let kinds = tokens("a ; comment\nb,\nc\n");
        let expected = [
            Token::Name("a"),
            Token::Newline,
            Token::Name("b"),
            Token::Sign(","),
            Token::Name("c"),
            Token::Newline,
            Token::End,
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn quoted_names_read_back_what_escape_default_writes() {
        let name = "a \"b\"\\\n\té\u{1f600}";
        assert_eq!(tokens(&format!("\"{}\"", name.escape_default()))[0], Token::Quoted(name.into()));
        assert_eq!(tokens("\"open\nx")[0], Token::BadQuote);
        assert_eq!(tokens("\"\\q\"")[0], Token::BadQuote);
    }

    #[test]
    fn places_count_lines_and_characters() {
        let places: Vec<_> = lex("é a\n  b").iter().map(|l| (l.line, l.column)).collect();
        assert_eq!(places, [(1, 1), (1, 3), (1, 4), (2, 3), (2, 4)]);
    }
}
