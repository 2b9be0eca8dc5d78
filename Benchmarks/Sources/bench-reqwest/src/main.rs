//! The peer of Rust's reqwest 0.11, as a program uses it: a cookie store with one cookie, an authorization, a request
//! that failed is sent again, and the answer is decoded to a value. On a runtime of one thread.

#[path = "../../bench-hyper/src/sample.rs"]
mod sample;
#[path = "../../shapes-rust/shapes.rs"]
#[allow(dead_code)]
mod shapes;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use reqwest::cookie::Jar;
use reqwest::{Client, StatusCode, Url};
use sample::Sample;
use shapes::User;

type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "usage: bench-reqwest user --url URL --connections N --requests M";
/// The number of times that a request is sent again.
const RETRIES: u32 = 2;

struct Options {
    url: Url,
    connections: u64,
    requests: u64,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
        if arguments.next()? != "user" {
            return None;
        }
        let (mut url, mut connections, mut requests) = (None, 1, 1);
        while let Some(key) = arguments.next() {
            let value = arguments.next()?;
            match key.as_str() {
                "--url" => url = Url::parse(&value).ok(),
                "--connections" => connections = value.parse().ok()?,
                "--requests" => requests = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(Options { url: url?, connections, requests })
    }
}

/// Sends one request, and again if the connection fails or the server has no time.
async fn user(client: &Client, url: &Url) -> Result<User, Failure> {
    let mut retries = 0;
    loop {
        let answer = client.get(url.clone()).header("Authorization", "Bearer mF_9.B5f-4.1JqM").send().await;
        let is_transient = match &answer {
            Ok(response) => response.status() == StatusCode::SERVICE_UNAVAILABLE,
            Err(error) => error.is_connect(),
        };
        if is_transient && retries < RETRIES {
            retries += 1;
            continue;
        }
        return Ok(answer?.error_for_status()?.json().await?);
    }
}

/// Shares the requests among as many tasks as there are connections. Returns the number of failures.
async fn run(client: &Client, url: &Url, connections: u64, requests: u64) -> Result<u64, Failure> {
    let left = Rc::new(Cell::new(requests));
    let mut workers = Vec::new();
    for _ in 0..requests.min(connections) {
        let (client, left, url) = (client.clone(), left.clone(), url.clone());
        workers.push(tokio::task::spawn_local(async move {
            let mut errors = 0;
            while left.get() > 0 {
                left.set(left.get() - 1);
                match user(&client, &url).await {
                    Ok(user) if user.id > 0 && user.followers > 0 => {}
                    Ok(_) => errors += 1,
                    Err(failure) => {
                        errors += 1;
                        eprintln!("bench-reqwest: {failure}");
                    }
                }
            }
            errors
        }));
    }
    let mut errors = 0;
    for worker in workers {
        errors += worker.await?;
    }
    Ok(errors)
}

async fn measure(options: Options) -> Result<u64, Failure> {
    let jar = Jar::default();
    jar.add_cookie_str("id=a3fWa; Path=/", &options.url);
    let client = Client::builder().cookie_provider(Arc::new(jar)).build()?;
    run(&client, &options.url, options.connections, 2_000).await?;
    let before = Sample::now();
    let errors = run(&client, &options.url, options.connections, options.requests).await?;
    let after = Sample::now();
    println!(
        "{{\"client\":\"reqwest\",\"requests\":{},\"seconds\":{:.4},\"cpu_seconds\":{:.4},\"peak_rss_mib\":{:.1},\
         \"errors\":{}}}",
        options.requests, after.wall - before.wall, after.cpu - before.cpu, sample::peak_resident_mib(), errors
    );
    Ok(errors)
}

fn main() {
    let options = Options::parse(std::env::args().skip(1)).unwrap_or_else(|| {
        eprintln!("{USAGE}");
        std::process::exit(64);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match tokio::task::LocalSet::new().block_on(&runtime, measure(options)) {
        Ok(0) => {}
        Ok(_) => std::process::exit(1),
        Err(failure) => {
            eprintln!("bench-reqwest: {failure}");
            std::process::exit(1);
        }
    }
}
