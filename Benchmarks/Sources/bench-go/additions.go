package main

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
)

// addUsual gives the client what most programs add: a cookie jar with one cookie, and a transport that adds an
// authorization and sends a request again that failed.
func (p *peer) addUsual() error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	address, err := url.Parse(p.options.url)
	if err != nil {
		return err
	}
	jar.SetCookies(address, []*http.Cookie{{Name: "id", Value: "a3fWa", Path: "/"}})
	p.client.Jar = jar
	p.client.Transport = authorized{retrying{p.client.Transport}}
	return nil
}

// authorized adds an authorization to each request.
type authorized struct{ next http.RoundTripper }

func (a authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	// A RoundTripper must not change the request of its caller.
	changed := request.Clone(request.Context())
	changed.Header.Set("Authorization", "Bearer mF_9.B5f-4.1JqM")
	return a.next.RoundTrip(changed)
}

// retrying sends a request without a body again, twice at most, if the connection fails or the server has no time.
type retrying struct{ next http.RoundTripper }

func (r retrying) RoundTrip(request *http.Request) (*http.Response, error) {
	for tries := 0; ; tries++ {
		response, err := r.next.RoundTrip(request)
		isTransient := err != nil || response.StatusCode == http.StatusServiceUnavailable
		if !isTransient || tries == 2 || request.Body != nil {
			return response, err
		}
		if response != nil {
			response.Body.Close()
		}
	}
}
