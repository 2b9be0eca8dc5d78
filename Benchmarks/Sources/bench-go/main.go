// Command bench-go is the peer of Go's net/http: one Transport with the defaults of the language but for the limits of
// connections and the authority. It runs on all processors, as Go programs do.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"shapes"
)

type peer struct {
	options options
	client  http.Client
	fields  http.Header
	page    []shapes.Repository // the values that are posted
	failed  int64               // failures of the whole process, of which three are printed
}

func newPeer(o options) (*peer, error) {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		MaxIdleConnsPerHost: o.connections,
		DisableCompression:  true,
	}
	if o.scenario != "h2" {
		transport.MaxConnsPerHost = o.connections
		// An empty map switches HTTP/2 off.
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	if o.caFile != "" {
		pem, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, err
		}
		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate in %s", o.caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: authorities}
		transport.ForceAttemptHTTP2 = o.scenario == "h2"
	}
	return &peer{options: o, client: http.Client{Transport: transport}, fields: o.fields}, nil
}

// perform sends one request and returns the size of the body, or for an upload the size that the server counted.
func (p *peer) perform(scenario, url string) (int64, error) {
	switch scenario {
	case "user", "page", "post":
		return p.performTyped(url)
	}
	method, body, length := http.MethodGet, io.Reader(nil), int64(0)
	if scenario == "upload" {
		file, err := os.Open(p.options.file)
		if err != nil {
			return 0, err
		}
		information, err := file.Stat()
		if err != nil {
			file.Close()
			return 0, err
		}
		method, body, length = http.MethodPut, file, information.Size()
	}
	request, err := http.NewRequestWithContext(context.Background(), method, url, body)
	if err != nil {
		return 0, err
	}
	request.ContentLength = length
	for name, values := range p.fields {
		request.Header[name] = values
	}
	response, err := p.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d", response.StatusCode)
	}
	switch scenario {
	case "download-file":
		return p.save(response.Body)
	case "download-stream":
		return io.Copy(io.Discard, response.Body)
	}
	data, err := collect(response)
	if err != nil || scenario != "upload" {
		return int64(len(data)), err
	}
	return strconv.ParseInt(string(data), 10, 64)
}

// collect returns the body in memory, without growing the buffer where the length is known.
func collect(response *http.Response) ([]byte, error) {
	if response.ContentLength < 0 {
		return io.ReadAll(response.Body)
	}
	data := make([]byte, response.ContentLength)
	if _, err := io.ReadFull(response.Body, data); err != nil {
		return nil, err
	}
	// The read of the end frees the connection.
	_, err := io.Copy(io.Discard, response.Body)
	return data, err
}

func (p *peer) save(body io.Reader) (int64, error) {
	partial := p.options.file + ".partial"
	file, err := os.Create(partial)
	if err != nil {
		return 0, err
	}
	count, err := io.Copy(file, body)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(partial, p.options.file)
	}
	return count, err
}

// run shares the requests among as many goroutines as requests are under way at a time, each in a loop.
func (p *peer) run(requests int64, scenario, url string, accepts func(int64) bool) (moved, errors int64) {
	var workers sync.WaitGroup
	left := requests
	for i := int64(0); i < requests && i < int64(p.options.atOnce); i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for atomic.AddInt64(&left, -1) >= 0 {
				count, err := p.perform(scenario, url)
				atomic.AddInt64(&moved, count)
				if err == nil && !accepts(count) {
					err = fmt.Errorf("a body of %d bytes", count)
				}
				if err != nil {
					atomic.AddInt64(&errors, 1)
					if atomic.AddInt64(&p.failed, 1) <= 3 {
						fmt.Fprintln(os.Stderr, "bench-go:", err)
					}
				}
			}
		}()
	}
	workers.Wait()
	return moved, errors
}

func (p *peer) warmUp() {
	o := p.options
	if o.isTransfer() {
		if o.warmUpURL != "" {
			p.run(int64(o.connections), "get", o.warmUpURL, func(int64) bool { return true })
		}
		return
	}
	if o.scenario == "h2" {
		// The first request alone: requests at once would open a connection each.
		p.run(1, o.scenario, o.url, o.accepts)
	}
	p.run(o.warmUpCount(), o.scenario, o.url, o.accepts)
}

func main() {
	o, ok := parse(os.Args[1:])
	if !ok {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(64)
	}
	p, err := newPeer(o)
	if err == nil && o.usual {
		err = p.addUsual()
	}
	if err == nil {
		err = p.readPage()
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-go:", err)
		os.Exit(1)
	}
	p.warmUp()
	before := now()
	moved, errors := p.run(o.requests, o.scenario, o.url, o.accepts)
	after := now()
	seconds, cpu := after.wall.Sub(before.wall).Seconds(), after.cpu-before.cpu
	fmt.Printf(`{"client":"go","scenario":"%s","connections":%d,"requests":%d,"seconds":%.4f,"rps":%.1f,`+
		`"cpu_us_per_request":%.2f,"cpu_seconds":%.4f,"mb_per_s":%.1f,"peak_rss_mib":%.1f,"errors":%d}`+"\n",
		o.scenario, o.connections, o.requests, seconds, float64(o.requests)/seconds, cpu*1e6/float64(o.requests), cpu,
		float64(moved)/1e6/seconds, peakResidentMiB(), errors)
	if errors > 0 {
		os.Exit(1)
	}
}
