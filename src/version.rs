//! Who this program says it is, on the command line, over HTTP and over telnet.

use std::collections::BTreeMap;

/// This program's own version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The OpenTSDB version whose interface is spoken; clients choose their requests by it.
pub(crate) const SPOKEN: &str = "2.4.1";

/// The members of OpenTSDB's `/api/version`, all texts, as far as they mean something here.
pub(crate) fn members() -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("version", SPOKEN.to_owned()),
        ("short_revision", format!("basalt-{VERSION}")),
        ("full_revision", format!("basalt-{VERSION}")),
        ("timestamp", "0".to_owned()),
        ("repo_status", "MINT".to_owned()),
        ("user", "basalt".to_owned()),
        ("host", "basalt".to_owned()),
        ("repo", "basalt-tsdb".to_owned()),
        ("branch", "main".to_owned()),
    ])
}

/// OpenTSDB's two lines for people, each ended. Its first word is what collectors look for.
pub(crate) fn lines() -> String {
    format!(
        "net.opentsdb.tools {SPOKEN} built at revision basalt-{VERSION} (MINT)\n\
         Built on 1970/01/01 00:00:00 +0000 by basalt@basalt:basalt-tsdb\n"
    )
}
