//! The typed calls.

use hyper::header::CONTENT_LENGTH;
use hyper::{Body, Method, Request, StatusCode, Uri};

use crate::options::Scenario;
use crate::shapes::{Repository, User};
use crate::{Failure, Peer};

/// The decoded body of an answer.
enum Value {
    User(User),
    Page(Vec<Repository>),
}

impl Peer {
    /// Performs a typed call, and returns the decoded value.
    async fn call(&self, uri: &Uri) -> Result<Value, Failure> {
        let mut request = Request::builder().uri(uri.clone());
        for (name, value) in &self.options.fields {
            request = request.header(name, value);
        }
        let request = if self.options.scenario == Scenario::Post {
            let text = serde_json::to_vec(&self.page)?;
            request.method(Method::POST).header(CONTENT_LENGTH, text.len()).body(Body::from(text))?
        } else {
            request.body(Body::empty())?
        };
        let response = self.client.request(request).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("status {}", response.status()).into());
        }
        let text = hyper::body::to_bytes(response.into_body()).await?;
        Ok(match self.options.scenario {
            Scenario::Page => Value::Page(serde_json::from_slice(&text)?),
            _ => Value::User(serde_json::from_slice(&text)?),
        })
    }

    /// Performs a typed call, and returns the size of the JSON of the answer.
    pub async fn perform_typed(&self, uri: &Uri) -> Result<u64, Failure> {
        let is_right = match self.call(uri).await? {
            Value::User(user) => user.id > 0,
            Value::Page(page) => Some(&(page.len() as i64)) == self.options.expected.first(),
        };
        if is_right { Ok(self.options.size.unwrap_or(0)) } else { Err("other values".into()) }
    }

    /// Performs a typed call once, and fails if the values are not those of the command line.
    pub async fn check(&self) -> Result<(), Failure> {
        let found = match self.call(&self.options.url.parse()?).await? {
            Value::User(user) => vec![1, user.id, user.followers],
            Value::Page(page) => vec![
                page.len() as i64,
                page.iter().map(|one| one.stargazers_count).sum(),
                page.iter().map(|one| one.size).sum(),
            ],
        };
        if found == self.options.expected {
            Ok(())
        } else {
            Err(format!("decoded {found:?}, not {:?}", self.options.expected).into())
        }
    }
}
