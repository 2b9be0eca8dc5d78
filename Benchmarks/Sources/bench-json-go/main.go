// bench-json-go measures encoding/json with the command line of bench-json:
//
//	bench-json-go SHAPE check FILE                          decodes, and prints what it encodes of that
//	bench-json-go SHAPE decode|encode FILE WARM-UP COUNT    prints the CPU time of a call, and its allocations
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"shapes"
)

var errUsage = errors.New("usage: bench-json-go SHAPE check FILE | decode|encode FILE WARM-UP COUNT")

type job struct {
	mode          string
	data          []byte
	warmUp, count int
	isPretty      bool
}

func main() {
	if err := start(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(words []string) error {
	if len(words) != 3 && len(words) != 5 {
		return errUsage
	}
	data, err := os.ReadFile(words[2])
	if err != nil {
		return err
	}
	j := job{mode: words[1], data: data, isPretty: words[0] == "pretty"}
	if len(words) == 5 {
		j.warmUp, _ = strconv.Atoi(words[3])
		j.count, _ = strconv.Atoi(words[4])
	}
	switch words[0] {
	case "user":
		return run[shapes.User](j)
	case "repository":
		return run[shapes.Repository](j)
	case "page30", "page300", "pretty":
		return run[[]shapes.Repository](j)
	case "doubles":
		return run[[]float64](j)
	case "dictionaries":
		return run[map[string]map[string]int](j)
	case "cjk":
		return run[[]shapes.Article](j)
	case "escapes":
		return run[[]string](j)
	case "sparse":
		return run[[]shapes.Sparse](j)
	case "dates":
		return run[[]time.Time](j)
	case "base64":
		return run[[][]byte](j)
	}
	return errUsage
}

// run uses the value or text of the last call after the measurement.
func run[Value any](j job) error {
	value, err := decoded[Value](j)
	if err != nil {
		return err
	}
	text, err := encoded(j, value)
	if err != nil {
		return err
	}
	switch j.mode {
	case "check":
		fmt.Println(string(text))
		return nil
	case "decode":
		return j.measure(func() (err error) {
			value, err = decoded[Value](j)
			return err
		}, func() int {
			text, _ = encoded(j, value)
			return len(text)
		})
	case "encode":
		return j.measure(func() (err error) {
			text, err = encoded(j, value)
			return err
		}, func() int { return len(text) })
	}
	return errUsage
}

func decoded[Value any](j job) (*Value, error) {
	value := new(Value)
	return value, json.Unmarshal(j.data, value)
}

func encoded[Value any](j job, value *Value) ([]byte, error) {
	if j.isPretty {
		return json.MarshalIndent(value, "", "  ")
	}
	return json.Marshal(value)
}

func (j job) measure(call func() error, size func() int) error {
	for i := 0; i < j.warmUp; i++ {
		if err := call(); err != nil {
			return err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processorTime()
	for i := 0; i < j.count; i++ {
		if err := call(); err != nil {
			return err
		}
	}
	seconds := processorTime() - start
	runtime.ReadMemStats(&after)
	count := float64(j.count)
	fmt.Printf("{\"cpu_us\":%g,\"bytes\":%d,\"mallocs\":%g}\n",
		seconds*1e6/count, size(), float64(after.Mallocs-before.Mallocs)/count)
	return nil
}

// processorTime is the processor time of this process, in seconds.
func processorTime() float64 {
	const ofProcess = 2 // CLOCK_PROCESS_CPUTIME_ID
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, ofProcess, uintptr(unsafe.Pointer(&t)), 0)
	return float64(t.Sec) + float64(t.Nsec)/1e9
}
