//! The types of the values that the benchmarks decode and encode, for every program in Rust.

// No program uses all of them.
#![allow(dead_code)]

use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
pub struct User {
    pub id: i64,
    pub login: String,
    pub name: String,
    pub email: String,
    pub avatar_url: String,
    pub followers: i64,
    pub site_admin: bool,
    pub score: f64,
}

#[derive(Deserialize, Serialize)]
pub struct Owner {
    pub login: String,
    pub id: i64,
    pub avatar_url: String,
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Deserialize, Serialize)]
pub struct License {
    pub key: String,
    pub name: String,
}

#[derive(Deserialize, Serialize)]
pub struct Repository {
    pub id: i64,
    pub name: String,
    pub full_name: String,
    pub private: bool,
    pub owner: Owner,
    pub html_url: String,
    pub description: String,
    pub fork: bool,
    pub created_at: String,
    pub pushed_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    pub size: i64,
    pub stargazers_count: i64,
    pub watchers_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    pub forks_count: i64,
    pub open_issues_count: i64,
    pub default_branch: String,
    pub topics: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<License>,
    pub score: f64,
}

#[derive(Deserialize, Serialize)]
pub struct Article {
    pub id: i64,
    pub title: String,
    pub author: String,
    pub body: String,
    pub tags: Vec<String>,
}

#[derive(Deserialize, Serialize)]
pub struct Sparse {
    pub id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text1: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text2: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text3: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text4: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text5: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text6: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count1: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count2: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count3: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count4: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count5: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count6: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio1: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio2: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio3: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio4: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio5: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio6: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag1: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag2: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag3: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag4: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag5: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag6: Option<bool>,
}
