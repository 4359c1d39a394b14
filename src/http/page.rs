//! The few pages for people: the start page and errors outside of `/api`.
//!
//! Everything that came from a request passes [`escape`] before it stands in a page.

use crate::version::VERSION;

/// The start page: a query and its graph, and where else to look.
pub(crate) fn home() -> String {
    format!(
        "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Basalt</title>\
         <link rel=stylesheet href=\"/s/graph.css\"></head><body>\
         <h1>Basalt {VERSION}</h1>\
         <form id=form>\
         <label for=start>From</label><input id=start placeholder=\"1h-ago, 2013/01/01-00:00, 1356998400\">\
         <label for=end>To</label><input id=end placeholder=now>\
         <label for=m>Queries, one a line</label>\
         <textarea id=m rows=3 placeholder=\"sum:1m-avg:sys.cpu.user{{host=*}}\"></textarea>\
         <span></span><button>Draw</button></form>\
         <p id=said role=status></p><img id=graph alt=\"the graph\" hidden>\
         <ul>\
         <li>Names: <a href=\"/api/suggest?type=metrics\">metrics</a>, \
         <a href=\"/api/suggest?type=tagk\">tag keys</a>, <a href=\"/api/suggest?type=tagv\">tag values</a></li>\
         <li>About the server: <a href=\"/api/version\">version</a>, <a href=\"/api/config\">settings</a>, \
         <a href=\"/stats\">numbers</a>, <a href=\"/api/stats/query\">queries</a>, <a href=\"/logs\">log</a>, \
         <a href=\"/api/aggregators\">aggregators</a>, <a href=\"/api/config/filters\">filters</a></li>\
         <li>For operators: <a href=\"/healthz\">/healthz</a>, <a href=\"/readyz\">/readyz</a>, \
         <a href=\"/metrics\">/metrics</a></li>\
         <li>Write: POST <code>/api/put</code>, or telnet <code>put metric time value tag=value</code></li>\
         </ul><script src=\"/s/graph.js\"></script></body></html>"
    )
}

/// After `/diediedie`.
pub(crate) fn killed() -> String {
    "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>TSD Exiting</title></head><body>\
     <h1>You killed me</h1><p>Cleaning up and exiting now.</p></body></html>"
        .to_owned()
}

/// An error page.
pub(crate) fn error(code: u16, message: &str) -> String {
    format!(
        "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Error {code}</title></head><body>\
         <h1>Error {code}</h1><p>{}</p><p><a href=\"/\">Basalt {VERSION}</a></p></body></html>",
        escape(message)
    )
}

/// Text that cannot be markup.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            plain => safe.push(plain),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_message_cannot_become_markup() {
        let page = super::error(400, "<script>alert('1')</script>");
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
    }
}
