//! The peer of Rust's hyper 0.14: its pooled client with the defaults of the crate, on a runtime of one thread. The
//! typed calls decode and encode with serde_json.
//!
//! It has no TLS: `h2` runs over plain text with prior knowledge of HTTP/2.

mod options;
mod sample;
#[path = "../../shapes-rust/shapes.rs"]
mod shapes;
mod typed;

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::rc::Rc;

use hyper::body::{Bytes, HttpBody};
use hyper::client::{Client, HttpConnector};
use hyper::header::CONTENT_LENGTH;
use hyper::{Body, Method, Request, StatusCode, Uri};
use options::{Options, Scenario};
use sample::Sample;

type Failure = Box<dyn std::error::Error>;

/// Bytes of one read of the file that is uploaded, as the C loop reads it.
const CHUNK: usize = 256 * 1024;

struct Peer {
    options: Options,
    client: Client<HttpConnector>,
    /// The values that are posted.
    page: Vec<shapes::Repository>,
    complaints: Cell<u32>,
}

impl Peer {
    fn new(options: Options) -> Result<Peer, Failure> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let mut builder = Client::builder();
        if options.scenario == Scenario::H2 {
            builder.http2_only(true);
        }
        let client = builder.build(connector);
        let page = match options.scenario {
            Scenario::Post => serde_json::from_slice(&fs::read(&options.file)?)?,
            _ => Vec::new(),
        };
        Ok(Peer { options, client, page, complaints: Cell::new(0) })
    }

    /// Sends one request and returns the size of the body, or for an upload the size that the server counted.
    async fn perform(&self, scenario: Scenario, uri: &Uri) -> Result<u64, Failure> {
        if scenario.is_typed() {
            return self.perform_typed(uri).await;
        }
        let mut request = Request::builder().uri(uri.clone());
        for (name, value) in &self.options.fields {
            request = request.header(name, value);
        }
        let request = if scenario == Scenario::Upload {
            let file = File::open(&self.options.file)?;
            let length = file.metadata()?.len();
            request.method(Method::PUT).header(CONTENT_LENGTH, length).body(body(file))?
        } else {
            request.body(Body::empty())?
        };
        let mut response = self.client.request(request).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("status {}", response.status()).into());
        }
        match scenario {
            Scenario::DownloadFile => self.save(response.body_mut()).await,
            Scenario::DownloadStream => {
                let mut count = 0;
                while let Some(chunk) = response.body_mut().data().await {
                    count += chunk?.len() as u64;
                }
                Ok(count)
            }
            Scenario::Upload => {
                let answer = hyper::body::to_bytes(response.into_body()).await?;
                Ok(std::str::from_utf8(&answer)?.parse()?)
            }
            _ => Ok(hyper::body::to_bytes(response.into_body()).await?.len() as u64),
        }
    }

    async fn save(&self, body: &mut Body) -> Result<u64, Failure> {
        let partial = format!("{}.partial", self.options.file);
        let mut file = File::create(&partial)?;
        let mut count = 0;
        while let Some(chunk) = body.data().await {
            let chunk = chunk?;
            file.write_all(&chunk)?;
            count += chunk.len() as u64;
        }
        drop(file);
        fs::rename(partial, &self.options.file)?;
        Ok(count)
    }

    fn complain(&self, failure: &str) {
        if self.complaints.get() < 3 {
            self.complaints.set(self.complaints.get() + 1);
            eprintln!("bench-hyper: {failure}");
        }
    }
}

/// A body that is read from the file as the connection takes it.
fn body(mut file: File) -> Body {
    let (mut sender, body) = Body::channel();
    tokio::task::spawn_local(async move {
        loop {
            let mut chunk = vec![0; CHUNK];
            match file.read(&mut chunk) {
                Ok(0) => return,
                Ok(count) => {
                    chunk.truncate(count);
                    if sender.send_data(Bytes::from(chunk)).await.is_err() {
                        return;
                    }
                }
                Err(_) => return sender.abort(),
            }
        }
    });
    body
}

#[derive(Default)]
struct Outcome {
    moved: u64,
    errors: u64,
}

/// Shares the requests among as many tasks as there are connections, each in a loop.
async fn run(peer: &Rc<Peer>, requests: u64, scenario: Scenario, url: &str, checks: bool) -> Result<Outcome, Failure> {
    let uri: Uri = url.parse()?;
    let left = Rc::new(Cell::new(requests));
    let mut workers = Vec::new();
    for _ in 0..requests.min(peer.options.connections) {
        let (peer, left, uri) = (peer.clone(), left.clone(), uri.clone());
        workers.push(tokio::task::spawn_local(async move {
            let mut outcome = Outcome::default();
            while left.get() > 0 {
                left.set(left.get() - 1);
                match peer.perform(scenario, &uri).await {
                    Ok(count) => {
                        outcome.moved += count;
                        if checks && !peer.options.accepts(count) {
                            outcome.errors += 1;
                            peer.complain(&format!("a body of {count} bytes"));
                        }
                    }
                    Err(failure) => {
                        outcome.errors += 1;
                        peer.complain(&failure.to_string());
                    }
                }
            }
            outcome
        }));
    }
    let mut sum = Outcome::default();
    for worker in workers {
        let outcome = worker.await?;
        sum.moved += outcome.moved;
        sum.errors += outcome.errors;
    }
    Ok(sum)
}

async fn measure(peer: Rc<Peer>) -> Result<u64, Failure> {
    let o = &peer.options;
    if o.scenario.is_typed() {
        peer.check().await?;
    }
    if !o.scenario.is_transfer() {
        if o.scenario == Scenario::H2 {
            // The first request alone: requests at once would open a connection each.
            run(&peer, 1, o.scenario, &o.url, true).await?;
        }
        run(&peer, o.warm_up_count(), o.scenario, &o.url, true).await?;
    } else if let Some(url) = &o.warm_up_url {
        run(&peer, o.connections, Scenario::Get, url, false).await?;
    }
    let before = Sample::now();
    let outcome = run(&peer, o.requests, o.scenario, &o.url, true).await?;
    let after = Sample::now();
    let (seconds, cpu, count) = (after.wall - before.wall, after.cpu - before.cpu, o.requests as f64);
    println!(
        "{{\"client\":\"hyper\",\"scenario\":\"{}\",\"connections\":{},\"requests\":{},\"seconds\":{:.4},\
         \"rps\":{:.1},\"cpu_us_per_request\":{:.2},\"cpu_seconds\":{:.4},\"mb_per_s\":{:.1},\
         \"peak_rss_mib\":{:.1},\"errors\":{}}}",
        o.name, o.connections, o.requests, seconds, count / seconds, cpu * 1e6 / count, cpu,
        outcome.moved as f64 / 1e6 / seconds, sample::peak_resident_mib(), outcome.errors
    );
    Ok(outcome.errors)
}

fn main() {
    let options = Options::parse(std::env::args().skip(1)).unwrap_or_else(|| {
        eprintln!("{}", options::USAGE);
        std::process::exit(64);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tasks = tokio::task::LocalSet::new();
    match tasks.block_on(&runtime, async { measure(Rc::new(Peer::new(options)?)).await }) {
        Ok(0) => {}
        Ok(_) => std::process::exit(1),
        Err(failure) => {
            eprintln!("bench-hyper: {failure}");
            std::process::exit(1);
        }
    }
}
