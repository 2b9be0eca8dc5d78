//! Measures serde_json with the command line of bench-json:
//!
//!     bench-json-rust SHAPE check FILE                          decodes, and prints what it encodes of that
//!     bench-json-rust SHAPE decode|encode FILE WARM-UP COUNT    prints the CPU time of a call

#[path = "../../shapes-rust/shapes.rs"]
mod shapes;

use serde::{de::DeserializeOwned, Serialize};
use std::collections::HashMap;
use std::io::Write;

const USAGE: &str = "usage: bench-json-rust SHAPE check FILE | decode|encode FILE WARM-UP COUNT";

type Failure = Box<dyn std::error::Error>;

struct Job {
    mode: String,
    data: Vec<u8>,
    warm_up: u64,
    count: u64,
    is_pretty: bool,
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.len() != 3 && words.len() != 5 {
        return Err(USAGE.into());
    }
    let number = |index: usize| words.get(index).map_or(Ok(0), |word| word.parse::<u64>());
    let job = Job {
        mode: words[1].clone(),
        data: std::fs::read(&words[2])?,
        warm_up: number(3)?,
        count: number(4)?,
        is_pretty: words[0] == "pretty",
    };
    match words[0].as_str() {
        "user" => job.run::<shapes::User>(),
        "repository" => job.run::<shapes::Repository>(),
        "page30" | "page300" | "pretty" => job.run::<Vec<shapes::Repository>>(),
        "doubles" => job.run::<Vec<f64>>(),
        "dictionaries" => job.run::<HashMap<String, HashMap<String, i64>>>(),
        "cjk" => job.run::<Vec<shapes::Article>>(),
        "escapes" => job.run::<Vec<String>>(),
        "sparse" => job.run::<Vec<shapes::Sparse>>(),
        _ => Err(USAGE.into()),
    }
}

impl Job {
    /// The value or text of the last call is used after the measurement, so that no call is left out.
    fn run<Value: DeserializeOwned + Serialize>(&self) -> Result<(), Failure> {
        let mut value: Value = self.decode()?;
        match self.mode.as_str() {
            "check" => {
                let mut text = self.encode(&value)?;
                text.push(b'\n');
                std::io::stdout().write_all(&text)?;
            }
            "decode" => {
                for _ in 0..self.warm_up {
                    value = self.decode()?;
                }
                let start = processor_time();
                for _ in 0..self.count {
                    value = self.decode()?;
                }
                let seconds = processor_time() - start;
                self.report(seconds, self.encode(&value)?.len());
            }
            "encode" => {
                let mut text = self.encode(&value)?;
                for _ in 0..self.warm_up {
                    text = self.encode(&value)?;
                }
                let start = processor_time();
                for _ in 0..self.count {
                    text = self.encode(&value)?;
                }
                self.report(processor_time() - start, text.len());
            }
            _ => return Err(USAGE.into()),
        }
        Ok(())
    }

    #[inline(never)]
    fn decode<Value: DeserializeOwned>(&self) -> Result<Value, Failure> {
        Ok(serde_json::from_slice(&self.data)?)
    }

    #[inline(never)]
    fn encode<Value: Serialize>(&self, value: &Value) -> Result<Vec<u8>, Failure> {
        let text = if self.is_pretty { serde_json::to_vec_pretty(value)? } else { serde_json::to_vec(value)? };
        Ok(text)
    }

    fn report(&self, seconds: f64, bytes: usize) {
        let each = seconds * 1e6 / self.count.max(1) as f64;
        println!("{{\"cpu_us\":{each},\"bytes\":{bytes}}}");
    }
}

/// The processor time of this process, in seconds.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
