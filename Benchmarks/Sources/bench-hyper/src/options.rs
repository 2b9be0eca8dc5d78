//! The command line, the same for every peer.

pub const USAGE: &str = "usage: bench-hyper get|h2|body64k|download-file|download-stream|upload|user|page|post \
    --url URL --connections N --requests M [--file PATH] [--warm-up-url URL] [--warm-up N] [--size BYTES] \
    [--expect COUNT,SUM,SUM] [--field 'NAME: VALUE']...";

#[derive(Clone, Copy, PartialEq)]
pub enum Scenario {
    Get,
    H2,
    Body64k,
    DownloadFile,
    DownloadStream,
    Upload,
    User,
    Page,
    Post,
}

impl Scenario {
    fn named(name: &str) -> Option<Scenario> {
        Some(match name {
            "get" => Scenario::Get,
            "h2" => Scenario::H2,
            "body64k" => Scenario::Body64k,
            "download-file" => Scenario::DownloadFile,
            "download-stream" => Scenario::DownloadStream,
            "upload" => Scenario::Upload,
            "user" => Scenario::User,
            "page" => Scenario::Page,
            "post" => Scenario::Post,
            _ => return None,
        })
    }

    pub fn is_transfer(self) -> bool {
        matches!(self, Scenario::DownloadFile | Scenario::DownloadStream | Scenario::Upload)
    }

    pub fn is_typed(self) -> bool {
        matches!(self, Scenario::User | Scenario::Page | Scenario::Post)
    }
}

pub struct Options {
    pub scenario: Scenario,
    pub name: String,
    pub url: String,
    pub warm_up_url: Option<String>,
    pub file: String,
    pub connections: u64,
    pub requests: u64,
    pub fields: Vec<(String, String)>,
    /// The number of the values that are decoded, and the sums of two of their numbers.
    pub expected: Vec<i64>,
    pub size: Option<u64>,
    warm_up: Option<u64>,
}

impl Options {
    /// Reads `SCENARIO --url URL --connections N --requests M …`.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
        let name = arguments.next()?;
        let mut options = Options {
            scenario: Scenario::named(&name)?,
            name,
            url: String::new(),
            warm_up_url: None,
            file: String::new(),
            connections: 1,
            requests: 1,
            fields: Vec::new(),
            expected: Vec::new(),
            warm_up: None,
            size: None,
        };
        while let Some(key) = arguments.next() {
            let value = arguments.next()?;
            match key.as_str() {
                "--url" => options.url = value,
                "--warm-up-url" => options.warm_up_url = Some(value),
                "--file" => options.file = value,
                "--connections" => options.connections = value.parse().ok()?,
                "--requests" => options.requests = value.parse().ok()?,
                "--warm-up" => options.warm_up = Some(value.parse().ok()?),
                "--size" => options.size = Some(value.parse().ok()?),
                "--expect" => {
                    options.expected = value.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
                }
                "--field" => {
                    let (name, content) = value.split_once(':')?;
                    options.fields.push((name.to_string(), content.trim().to_string()));
                }
                _ => return None,
            }
        }
        let needs_file = matches!(options.scenario, Scenario::DownloadFile | Scenario::Upload | Scenario::Post);
        let is_complete = !options.url.is_empty() && (!needs_file || !options.file.is_empty());
        (is_complete && options.connections > 0 && options.requests > 0).then_some(options)
    }

    /// Returns whether the scenario expects a body of so many bytes.
    pub fn accepts(&self, bytes: u64) -> bool {
        match (self.size, self.scenario) {
            (Some(size), _) => bytes == size,
            (None, Scenario::Get | Scenario::H2) => (64..=100).contains(&bytes),
            (None, Scenario::Body64k) => bytes == 65_536,
            _ => bytes == 1 << 30,
        }
    }

    /// The number of requests before the clock starts.
    pub fn warm_up_count(&self) -> u64 {
        self.warm_up.unwrap_or_else(|| (self.requests / 10).min(2_000).max(2 * self.connections))
    }
}
