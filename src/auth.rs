//! Who may do what, where an operator asks for it (`P-AUTH`): names, roles and the hashes of tokens in a file.
//!
//! ```text
//! # name      role           SHA-256 of the token
//! grafana     reader         5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8
//! collectd    putonly        …
//! ```
//!
//! A token is 256 random bits (`basalt token` makes one), so that its plain hash may be kept: there is nothing to guess
//! and nothing to salt. Whoever shows a token is looked up by its hash, so that no comparison tells how much of it was
//! right (`http::gate` has one, and says why it may). Roles are those of OpenTSDB's `Roles`, without the one that only makes
//! names. The file is read again as often as `server.auth_reload_ms` says; one that cannot be read later leaves the roles in
//! force as they are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use basalt_schema::{hex_decode, hex_lower};
use sha2::{Digest as _, Sha256};

/// Most names of a file.
const USERS_MAX: usize = 10_000;

/// What somebody asks to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Read points, names and the server's own figures.
    Read,
    /// Store points; change annotations, names, meta objects and trees.
    Write,
    /// What only an operator may: delete points, drop caches, read the log, use the store itself, end the server.
    Operate,
}

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing.
    Guest,
    /// Read.
    Reader,
    /// Store.
    PutOnly,
    /// Read and store.
    Writer,
    /// Everything; whoever comes where no file is named is one.
    Administrator,
}

impl Role {
    const ALL: [(&str, Self); 5] = [
        ("guest", Self::Guest),
        ("reader", Self::Reader),
        ("putonly", Self::PutOnly),
        ("writer", Self::Writer),
        ("administrator", Self::Administrator),
    ];

    /// The role of this name.
    ///
    /// # Errors
    ///
    /// The names there are.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, role)| *role).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("`{name}` is no role: {}", names.join(", "))
        })
    }

    /// Whether the role has this permission.
    pub(crate) const fn may(self, what: Permission) -> bool {
        match self {
            Self::Guest => false,
            Self::Reader => matches!(what, Permission::Read),
            Self::PutOnly => matches!(what, Permission::Write),
            Self::Writer => matches!(what, Permission::Read | Permission::Write),
            Self::Administrator => true,
        }
    }
}

type Hash = [u8; 32];

#[derive(Debug)]
struct User {
    name: String,
    role: Role,
}

/// The file's names, if there is a file.
#[derive(Debug, Default)]
pub(crate) struct Users {
    /// `None` where no file is named. Guards the list for one look-up or one change.
    known: RwLock<Option<HashMap<Hash, User>>>,
    /// How often a list was put in force. It grows under the lock of the list, so that nobody is told by a new list while others
    /// still go by the old number; released there and acquired by [`Users::generation`].
    generation: AtomicU64,
}

impl Users {
    /// Whether somebody has to say who they are.
    pub(crate) fn are_asked(&self) -> bool {
        self.generation() > 0
    }

    /// Which list is in force: another number is another list, and 0 is none. What was found out under a number holds while it
    /// stays; take it before the look.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The role of whoever shows this token, under this name if one is told.
    pub(crate) fn role(&self, name: Option<&str>, token: &str) -> Option<Role> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let user = known.as_ref()?.get(&hash(token))?;
        name.is_none_or(|name| name == user.name).then_some(user.role)
    }

    /// Puts a file's text in force; says how many names it has.
    ///
    /// # Errors
    ///
    /// The first line that is wrong, with its number; the roles in force stay.
    pub(crate) fn replace(&self, text: &str) -> Result<usize, String> {
        let users = parse(text)?;
        let count = users.len();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        self.generation.fetch_add(1, Ordering::Release);
        *known = Some(users);
        Ok(count)
    }
}

/// Looks at a file's text and says how many names it has.
///
/// # Errors
///
/// As [`Users::replace`].
pub(crate) fn check(text: &str) -> Result<usize, String> {
    parse(text).map(|users| users.len())
}

fn parse(text: &str) -> Result<HashMap<Hash, User>, String> {
    let mut users = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: &str| format!("line {}: {why}", number + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, role, digest] = words[..] else {
            return Err(wrong("expected a name, a role and the SHA-256 of a token in hex"));
        };
        let role = Role::named(role).map_err(|why| wrong(&why))?;
        let digest = hex_decode(digest).and_then(|bytes| bytes.try_into().ok());
        let digest: Hash = digest.ok_or_else(|| wrong("the third word is no SHA-256: 64 hex digits are expected"))?;
        if users.insert(digest, User { name: name.to_owned(), role }).is_some() {
            return Err(wrong("this token stands on a line before"));
        }
        if users.len() > USERS_MAX {
            return Err(wrong(&format!("more than {USERS_MAX} names")));
        }
    }
    Ok(users)
}

fn hash(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

/// The line of a file for this token.
pub(crate) fn line(name: &str, role: Role, token: &str) -> String {
    let word = Role::ALL.iter().find(|(_, known)| *known == role).map_or("", |(word, _)| word);
    format!("{name} {word} {}", hex_lower(&hash(token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_auth_a_token_has_the_role_of_its_line() {
        let users = Users::default();
        assert!(!users.are_asked());
        let text = format!("# people\n\n{}\n  {}\n", line("ann", Role::Reader, "t1"), line("bob", Role::Guest, "t2"));
        assert_eq!(users.replace(&text), Ok(2));
        assert!(users.are_asked());
        assert_eq!(users.role(None, "t1"), Some(Role::Reader));
        assert_eq!(users.role(Some("ann"), "t1"), Some(Role::Reader));
        assert_eq!(users.role(Some("bob"), "t1"), None);
        assert_eq!(users.role(None, "t2"), Some(Role::Guest));
        assert_eq!(users.role(None, "t3"), None);
        assert_eq!(users.role(None, ""), None);
    }

    #[test]
    fn p_auth_a_wrong_line_is_named_and_changes_nothing() {
        let users = Users::default();
        users.replace(&line("ann", Role::Writer, "t")).unwrap();
        for (text, expected) in [
            ("ann reader", "line 1: expected a name, a role and the SHA-256 of a token in hex"),
            ("\nann king 00", "line 2: `king` is no role: guest, reader, putonly, writer, administrator"),
            ("ann reader secret", "line 1: the third word is no SHA-256: 64 hex digits are expected"),
        ] {
            assert_eq!(users.replace(text).unwrap_err(), expected);
        }
        let twice = format!("{}\n{}", line("a", Role::Reader, "t"), line("b", Role::Writer, "t"));
        assert_eq!(users.replace(&twice).unwrap_err(), "line 2: this token stands on a line before");
        assert_eq!(users.role(None, "t"), Some(Role::Writer));
    }

    #[test]
    fn p_auth_roles_have_what_their_names_say() {
        use Permission::{Operate, Read, Write};
        for (name, expected) in [
            ("guest", [false, false, false]),
            ("reader", [true, false, false]),
            ("PUTONLY", [false, true, false]),
            ("writer", [true, true, false]),
            ("administrator", [true, true, true]),
        ] {
            let role = Role::named(name).unwrap();
            assert_eq!([Read, Write, Operate].map(|what| role.may(what)), expected, "{name}");
        }
    }
}
