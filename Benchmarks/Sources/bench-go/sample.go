package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// sample is a point in time: wall clock and the processor time of this process in seconds.
type sample struct {
	wall time.Time
	cpu  float64
}

func now() sample {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return sample{wall: time.Now(), cpu: cpu.Seconds()}
}

// peakResidentMiB returns VmHWM: ru_maxrss would also count what the parent held when it forked.
func peakResidentMiB() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	_, _ = fmt.Sscan(rest, &kib)
	return kib / 1024
}
