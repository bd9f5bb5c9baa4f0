//! What strew's processes tell over HTTPS, as whoever scrapes them sees it.

use http::{Request, Uri};
use kube::{Client, Config};

/// A client of one process' pages; it does not look at the certificate, which the process has just made.
pub(crate) struct Pages {
    client: Client,
}

impl Pages {
    /// Of a port here, as whoever has this token.
    pub(crate) fn at(port: u16, token: Option<&str>) -> anyhow::Result<Self> {
        let uri = Uri::try_from(format!("https://127.0.0.1:{port}"))?;
        let mut config = Config::new(uri);
        config.accept_invalid_certs = true;
        config.auth_info.token = token.map(|token| token.to_owned().into());
        let client = Client::try_from(config)?;
        Ok(Self { client })
    }

    /// A page.
    ///
    /// # Errors
    /// With the status code, or without an answer.
    pub(crate) async fn read(&self, path: &str) -> Result<String, kube::Error> {
        let request = Request::get(path)
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await
    }

    /// The status code of a page; `None`: nobody answers.
    pub(crate) async fn code(&self, path: &str) -> Option<u16> {
        match self.read(path).await {
            Ok(_) => Some(200),
            Err(kube::Error::Api(status)) => Some(status.code),
            Err(_) => None,
        }
    }
}
