//! `--authorization-always-allow-paths`.

/// Paths that need no authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths(Vec<String>);

impl Default for Paths {
    /// `/healthz,/readyz,/livez`: probes have no token.
    fn default() -> Self {
        Self::parse("/healthz,/readyz,/livez").unwrap_or(Self(Vec::new()))
    }
}

impl Paths {
    /// Without any path.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Parses a list with commas; a path that ends in `*` stands for all paths with that prefix.
    ///
    /// # Errors
    /// A path with a `*` elsewhere. Source: k8s.io/apiserver `authorizerfactory/path`.
    pub fn parse(list: &str) -> Result<Self, String> {
        let paths = list.split(',').map(str::trim).filter(|p| !p.is_empty());
        let paths: Vec<String> = paths
            .map(|path| path.strip_prefix('/').unwrap_or(path).to_owned())
            .collect();
        let wrong = |path: &&String| path.strip_suffix('*').unwrap_or(path).contains('*');
        match paths.iter().find(wrong) {
            Some(path) => Err(format!("only trailing * allowed in {path:?}")),
            None => Ok(Self(paths)),
        }
    }

    /// True if the list has this path.
    pub fn contain(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        self.0
            .iter()
            .any(|allowed| match allowed.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => path == allowed,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_whole_or_beginnings() {
        let cases = [
            ("/healthz,/readyz,/livez", "/livez", true),
            ("/healthz,/readyz,/livez", "/livez/ping", false),
            ("/healthz,/readyz,/livez", "/metrics", false),
            ("/livez*", "/livez/ping", true),
            ("livez", "/livez", true),
            ("/livez/*", "/livez", false),
            ("*", "/anything", true),
            ("", "/", false),
        ];
        for (list, path, allowed) in cases {
            let paths = Paths::parse(list).unwrap();
            assert_eq!(paths.contain(path), allowed, "{list} {path}");
        }
        assert!(Paths::default().contain("/healthz"));
        let error = Paths::parse("/a*/b").unwrap_err();
        assert_eq!(error, "only trailing * allowed in \"a*/b\"");
    }
}
