//! The types of the shapes.

use serde::{Deserialize, Serialize};

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

#[derive(Deserialize, Serialize)]
pub struct Article {
    id: i64,
    title: String,
    author: String,
    body: String,
    tags: Vec<String>,
}

#[derive(Deserialize, Serialize)]
pub struct Sparse {
    id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text1: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text2: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text3: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text4: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text5: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text6: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count1: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count2: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count3: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count4: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count5: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count6: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio1: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio2: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio3: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio4: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio5: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio6: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag1: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag2: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag3: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag4: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag5: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag6: Option<bool>,
}
