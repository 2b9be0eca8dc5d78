//! Wall clock, processor time and memory of this process.

use std::time::Instant;

/// A point in time, in seconds.
pub struct Sample {
    pub wall: f64,
    pub cpu: f64,
}

impl Sample {
    pub fn now() -> Sample {
        thread_local!(static START: Instant = Instant::now());
        // SAFETY: a zeroed rusage is a valid one, and getrusage writes nothing else.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Sample {
            wall: START.with(|start| start.elapsed().as_secs_f64()),
            cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        }
    }
}

/// The most memory this process held: VmHWM, as `ru_maxrss` would also count what the parent held when it forked.
pub fn peak_resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}
