package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const usage = "usage: bench-go get|https|h2|body64k|download-file|download-stream|upload|user|page|post --url URL " +
	"--connections N --requests M [--cacert PEM] [--file PATH] [--warm-up-url URL] [--warm-up N] [--size BYTES] " +
	"[--at-once N] [--usual yes] [--expect COUNT,SUM,SUM] [--field 'NAME: VALUE']..."

// options is the command line, the same for every peer.
type options struct {
	scenario, url, warmUpURL, caFile, file string
	connections, atOnce                    int // atOnce: requests under way at a time
	requests                               int64
	warmUp, size                           int64 // -1: the scenario's own
	fields                                 http.Header
	usual                                  bool // with the additions of most programs
	expected                               decoded
}

// parse reads `SCENARIO --url URL --connections N --requests M …`.
func parse(arguments []string) (options, bool) {
	o := options{connections: 1, requests: 1, warmUp: -1, size: -1, fields: http.Header{}}
	if len(arguments)%2 == 0 {
		return o, false
	}
	o.scenario = arguments[0]
	for i := 1; i < len(arguments); i += 2 {
		value := arguments[i+1]
		number, _ := strconv.ParseInt(value, 10, 64)
		switch arguments[i] {
		case "--url":
			o.url = value
		case "--warm-up-url":
			o.warmUpURL = value
		case "--cacert":
			o.caFile = value
		case "--file":
			o.file = value
		case "--connections":
			o.connections = int(number)
		case "--usual":
			o.usual = value == "yes"
		case "--at-once":
			o.atOnce = int(number)
		case "--requests":
			o.requests = number
		case "--warm-up":
			o.warmUp = number
		case "--size":
			o.size = number
		case "--expect":
			e := &o.expected
			if _, err := fmt.Sscanf(value, "%d,%d,%d", &e.count, &e.first, &e.second); err != nil {
				return o, false
			}
		case "--field":
			name, content, _ := strings.Cut(value, ":")
			o.fields.Add(name, strings.TrimSpace(content))
		default:
			return o, false
		}
	}
	switch o.scenario {
	case "get", "https", "h2", "body64k", "download-stream", "user", "page":
	case "download-file", "upload", "post":
		if o.file == "" {
			return o, false
		}
	default:
		return o, false
	}
	if o.atOnce == 0 {
		o.atOnce = o.connections
	}
	return o, o.url != "" && o.connections > 0 && o.requests > 0
}

func (o options) isTransfer() bool {
	return o.scenario == "download-file" || o.scenario == "download-stream" || o.scenario == "upload"
}

func (o options) isTyped() bool {
	return o.scenario == "user" || o.scenario == "page" || o.scenario == "post"
}

// accepts reports whether the scenario expects a body of so many bytes.
func (o options) accepts(bytes int64) bool {
	switch {
	case o.size >= 0:
		return bytes == o.size
	case o.isTransfer():
		return bytes == 1<<30
	case o.scenario == "body64k":
		return bytes == 65536
	}
	return bytes >= 64 && bytes <= 100
}

// warmUpCount returns the number of requests before the clock starts.
func (o options) warmUpCount() int64 {
	if o.warmUp >= 0 {
		return o.warmUp
	}
	count, twice := o.requests/10, 2*int64(o.connections)
	if count > 2000 {
		count = 2000
	}
	if count < twice {
		count = twice
	}
	return count
}
