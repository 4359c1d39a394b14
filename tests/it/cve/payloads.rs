//! What was sent to OpenTSDB, and the spellings by which filters against it were passed.

/// Markup of the payloads as a page would have it if it repeated them, in lower case.
pub(super) const MARKUP: [&str; 5] =
    ["<script>mark", "<img src=x", "<svg onload", "<iframe src=", "\"onmouseover=mark"];

/// Text for a parameter.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) text: String,
}

impl Payload {
    /// Every byte escaped, so that each arrives.
    pub(super) fn escaped(&self) -> String {
        escaped(&self.text)
    }
}

/// Every byte of a text as a percent escape.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat()
}

/// All payloads; those that run a command make the file `canary`.
pub(super) fn all(canary: &str) -> Vec<Payload> {
    let touch = format!("touch {canary}");
    let texts = [
        // CVE-2018-12972 and the report #953.
        format!("`{touch}`"),
        format!("o=`{touch}`"),
        format!("$({touch})"),
        format!("; {touch};"),
        format!("| {touch} |"),
        // CVE-2020-35476.
        format!("[33:system('{touch}')]"),
        format!("[0:system('{touch}')]"),
        format!("[33:exec('{touch}')]"),
        "[0:`id`]".to_owned(),
        // CVE-2023-25826 and CVE-2023-36812: a line end passes a filter made of one line.
        format!("out right top\nsystem \"{touch}\""),
        format!("%0asystem('{touch}')"),
        format!("a\"\n!{touch}\n\""),
        format!("'.system('{touch}').'"),
        format!("\"; set output '|{touch}'; plot \"x"),
        format!("\";set print '{canary}';print 1;\""),
        // Files that gnuplot or a template would read or write.
        "load '/etc/passwd'".to_owned(),
        "/etc/passwd".to_owned(),
        "../../../../../../etc/passwd".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://127.0.0.1:1/".to_owned(),
        "${jndi:ldap://127.0.0.1:1/a}".to_owned(),
        "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>".to_owned(),
        // CVE-2018-13003, CVE-2018-12973, CVE-2023-25827.
        "<script>mark(1)</script>".to_owned(),
        "\"><img src=x onerror=mark(1)>".to_owned(),
        "'><svg onload=mark(1)>".to_owned(),
        "\"onmouseover=mark(1) a=\"".to_owned(),
        "</title><iframe src=javascript:mark(1)>".to_owned(),
        "javascript:mark(1)".to_owned(),
        // Heads of answers and of log lines.
        "a\r\nSet-Cookie: a=b\r\n\r\n<script>mark(1)</script>".to_owned(),
        "\u{1b}[2J\u{0}\u{7f}\u{202e}".to_owned(),
        "%s%n%x%d{{7*7}}#{7*7}".to_owned(),
    ];
    texts.into_iter().map(|text| Payload { text }).collect()
}

/// `count` paths below `/s`, each another spelling of a way out of the folder.
pub(super) fn traversals(count: usize) -> Vec<String> {
    const DOTS: [&str; 14] = [
        "..",
        "%2e%2e",
        "%2E%2e",
        ".%2e",
        "%2e.",
        "%252e%252e",
        "%25252e%25252e",
        "..;",
        "...",
        "%c0%ae%c0%ae",
        "%e0%80%ae.",
        "..%00",
        "%uff0e%uff0e",
        "....",
    ];
    const SLASHES: [&str; 12] =
        ["/", "%2f", "%2F", "%252f", "%5c", "%255c", "%c0%af", "%c1%9c", "//", "/./", "%e2%88%95", "%00/"];
    const HEADS: [&str; 8] = ["/s/", "/s//", "/S/", "/s/./", "/s/gwt/", "/s/%2e/", "/s/a/b/", "/s/queryui.nocache.js/"];
    const TARGETS: [&str; 9] = [
        "etc/passwd",
        "etc%2fpasswd",
        "proc/self/environ",
        "basalt-data/MANIFEST",
        "Cargo.toml",
        "etc/passwd%00.js",
        "etc/passwd?a=b",
        "windows%5cwin.ini",
        "",
    ];
    let spelled = (1..12).flat_map(|depth| {
        let steps = DOTS.iter().flat_map(|dots| SLASHES.iter().map(move |slash| format!("{dots}{slash}")));
        steps.map(move |step| step.repeat(depth))
    });
    let paths = spelled.flat_map(|steps| {
        HEADS.iter().flat_map(move |head| {
            let steps = steps.clone();
            TARGETS.iter().map(move |target| format!("{head}{steps}{target}"))
        })
    });
    paths.take(count).collect()
}
