//! How one setting is written and read: text in, text out.
//!
//! All layers (file, environment, flags) hand over text, so that a setting means the same wherever
//! it stands, and `basalt config show` prints what a file could contain.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// A type that a setting can have.
pub(crate) trait Value: Sized {
    /// Reads `text`; on failure says what was expected, as in "a number from 0 to 65535".
    fn read(text: &str) -> Result<Self, String>;
    /// Writes the value so that [`Value::read`] gives it back.
    fn show(&self) -> String;
}

impl Value for bool {
    /// OpenTSDB takes `1`, `true` and `yes`, in any case, for true; anything else there is false,
    /// which hides slips, so here the false words must be written as well.
    fn read(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" => Ok(true),
            "0" | "false" | "no" => Ok(false),
            _ => Err("true or false".to_owned()),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! number {
    ($($kind:ty),*) => {$(
        impl Value for $kind {
            fn read(text: &str) -> Result<Self, String> {
                text.replace('_', "")
                    .parse()
                    .map_err(|_| format!("a whole number from 0 to {}", <$kind>::MAX))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
number!(u8, u16, u32, u64, usize);

/// Durations are written in milliseconds: the setting's name ends in `_ms`.
impl Value for Duration {
    fn read(text: &str) -> Result<Self, String> {
        u64::read(text).map(Self::from_millis).map_err(|_| "a whole number of milliseconds".to_owned())
    }

    fn show(&self) -> String {
        self.as_millis().to_string()
    }
}

impl Value for SocketAddr {
    fn read(text: &str) -> Result<Self, String> {
        text.replace("localhost", "127.0.0.1")
            .parse()
            .map_err(|_| "an address and port such as 127.0.0.1:4242 or [::1]:4242".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for IpAddr {
    fn read(text: &str) -> Result<Self, String> {
        text.replace("localhost", "127.0.0.1")
            .parse()
            .map_err(|_| "an IP address or localhost: other names are not looked up".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for PathBuf {
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("a path".to_owned()) } else { Ok(Self::from(text)) }
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Value for String {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

/// Gives an enum of unit variants its words, in both directions.
macro_rules! words {
    ($kind:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        impl crate::config::value::Value for $kind {
            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(["one of", $(concat!("`", $word, "`")),*].join(" ")),
                }
            }

            fn show(&self) -> String {
                match self { $(Self::$variant => $word.to_owned(),)* }
            }
        }
    };
}
pub(crate) use words;
