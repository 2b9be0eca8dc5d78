//! The typed calls, and their types.

use hyper::header::CONTENT_LENGTH;
use hyper::{Body, Method, Request, StatusCode, Uri};
use serde::{Deserialize, Serialize};

use crate::options::Scenario;
use crate::{Failure, Peer};

#[derive(Deserialize, Serialize)]
pub struct User {
    id: i64,
    login: String,
    name: String,
    email: String,
    avatar_url: String,
    followers: i64,
    site_admin: bool,
    score: f64,
}

#[derive(Deserialize, Serialize)]
pub struct Owner {
    login: String,
    id: i64,
    avatar_url: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize, Serialize)]
pub struct License {
    key: String,
    name: String,
}

#[derive(Deserialize, Serialize)]
pub struct Repository {
    id: i64,
    name: String,
    full_name: String,
    private: bool,
    owner: Owner,
    html_url: String,
    description: String,
    fork: bool,
    created_at: String,
    pushed_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    size: i64,
    stargazers_count: i64,
    watchers_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    forks_count: i64,
    open_issues_count: i64,
    default_branch: String,
    topics: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<License>,
    score: f64,
}

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
