//! What is answered to a request: its route, and the parts of a response. Pure.

use hyper::body::Bytes;

use crate::report::page::POLICY;

/// What a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Page,
    Metrics,
    Status,
    History,
    /// The store answers.
    Health,
    /// This process answers.
    Alive,
}

/// Each path, and what it stands for. No path names a file.
pub(super) const ROUTES: [(&str, Route); 6] = [
    ("/", Route::Page),
    ("/metrics", Route::Metrics),
    ("/status.json", Route::Status),
    ("/history.json", Route::History),
    ("/healthz", Route::Health),
    ("/livez", Route::Alive),
];

/// A response, without what every response has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The type of the body.
    pub(super) kind: &'static str,
    pub(super) body: Bytes,
}

const TEXT: &str = "text/plain; charset=utf-8";

impl Answer {
    /// One line of text.
    pub(super) fn line(status: u16, text: &str) -> Self {
        Self {
            status,
            kind: TEXT,
            body: Bytes::from(format!("{text}\n")),
        }
    }

    /// What a store gave for this route.
    pub(super) fn of(route: Route, body: String) -> Self {
        let body = Bytes::from(body);
        let kind = match route {
            Route::Page => "text/html; charset=utf-8",
            Route::Metrics => "text/plain; version=0.0.4; charset=utf-8",
            Route::Status | Route::History => "application/json",
            Route::Health | Route::Alive => TEXT,
        };
        Self {
            status: 200,
            kind,
            body,
        }
    }

    /// The headers besides the length. Nothing is kept by a browser or a proxy: an old state must not be taken
    /// for the present one.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let allow = (self.status == 405).then_some(("allow", "GET, HEAD"));
        let retry = (self.status == 503).then_some(("retry-after", "10"));
        let all = [
            ("content-type", self.kind),
            ("cache-control", "no-store"),
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ];
        all.into_iter().chain(allow).chain(retry)
    }
}

/// The route of a request.
///
/// # Errors
/// The answer to a request that has none.
pub(super) fn route(method: &str, path: &str) -> Result<Route, Answer> {
    let Some((_, route)) = ROUTES.iter().find(|(known, _)| *known == path) else {
        let all = ROUTES.map(|(path, _)| path).join(" ");
        return Err(Answer::line(404, &format!("not found; there is {all}")));
    };
    match method {
        "GET" | "HEAD" => Ok(*route),
        _ => Err(Answer::line(
            405,
            "only GET and HEAD: nothing can be changed here",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_of_a_few_words() {
        for (path, expected) in ROUTES {
            assert_eq!(route("GET", path), Ok(expected));
            assert_eq!(route("HEAD", path), Ok(expected));
            assert_eq!(route("POST", path).unwrap_err().status, 405);
        }
        for path in [
            "",
            "//",
            "/etc/passwd",
            "/../etc/passwd",
            "/metrics/",
            "/%2e%2e/x",
            "*",
        ] {
            let answer = route("GET", path).unwrap_err();
            assert_eq!(answer.status, 404, "{path}");
            assert!(!String::from_utf8_lossy(&answer.body).contains("passwd"));
        }
    }

    #[test]
    fn a_response_is_never_kept() {
        for status in [200, 404, 405, 503] {
            let headers: Vec<_> = Answer::line(status, "x").headers().collect();
            assert!(headers.contains(&("cache-control", "no-store")), "{status}");
            assert_eq!(
                headers.iter().any(|(name, _)| *name == "allow"),
                status == 405
            );
        }
        assert!(
            Answer::of(Route::Metrics, String::new())
                .kind
                .contains("0.0.4")
        );
    }
}
