//! `basalt token`: a new token, and the line of the file of tokens that lets its bearer in.

use std::fs::File;
use std::io::Read as _;

use basalt_schema::hex_lower;
use clap::Args;

use super::print;
use crate::auth::{Role, line};
use crate::exit::{Exit, Failure};

/// Random bytes of a token; more than can be guessed.
const TOKEN_BYTES: usize = 32;

/// `basalt token`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints two lines: the token, which is shown only here, and the line for the file that
`server.auth_file` names. The file holds no token, only hashes. Roles: guest (nothing), reader
(reads), putonly (stores), writer (both), administrator (all, also deletes and the log).

A client shows its token as `Authorization: Bearer TOKEN`, or as the password of its name (Grafana,
Telegraf, curl --user); telnet by `auth NAME TOKEN` as the first line; basalt's own tools with --url
by BASALT_TOKEN. There is no TLS here: beyond this machine, put a proxy that has it before the port.

Example:
  basalt token grafana reader | tee /dev/stderr | tail -1 >> /etc/basalt/tokens
  BASALT_SERVER__AUTH_FILE=/etc/basalt/tokens basalt serve --listen 0.0.0.0:4242

Exit codes: 0 done, 2 a name or a role that is none.")]
pub(super) struct Token {
    /// Who is to have it
    name: String,
    /// guest, reader, putonly, writer or administrator
    #[arg(value_parser = Role::named)]
    role: Role,
}

impl Token {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.name.is_empty() || self.name.contains(|c: char| c.is_whitespace() || c == ':' || c == '#') {
            return Err(Failure::new(Exit::Usage, "a name has no blanks, no `:` and no `#`"));
        }
        let mut random = [0; TOKEN_BYTES];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut random))
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot read /dev/urandom: {cause}")))?;
        let token = hex_lower(&random);
        print(&format!("{token}\n{}\n", line(&self.name, self.role, &token)))
    }
}
