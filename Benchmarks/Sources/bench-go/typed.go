package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"shapes"
)

// decoded holds the number of decoded values, and the sums of two of their numbers.
type decoded struct{ count, first, second int }

// readPage reads the values that are posted.
func (p *peer) readPage() error {
	if p.options.scenario != "post" {
		return nil
	}
	data, err := os.ReadFile(p.options.file)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &p.page)
}

// newTypedRequest returns the request of a typed call.
func (p *peer) newTypedRequest(url string) (*http.Request, error) {
	if p.options.scenario != "post" {
		return http.NewRequest(http.MethodGet, url, nil)
	}
	data, err := json.Marshal(p.page)
	if err != nil {
		return nil, err
	}
	return http.NewRequest(http.MethodPost, url, bytes.NewReader(data))
}

// call performs a typed call, and returns the decoded user or repositories.
func (p *peer) call(url string) (*shapes.User, []shapes.Repository, error) {
	request, err := p.newTypedRequest(url)
	if err != nil {
		return nil, nil, err
	}
	for name, values := range p.fields {
		request.Header[name] = values
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, response.Body)
		return nil, nil, fmt.Errorf("status %d", response.StatusCode)
	}
	data, err := collect(response)
	if err != nil {
		return nil, nil, err
	}
	if p.options.scenario == "page" {
		var repositories []shapes.Repository
		err = json.Unmarshal(data, &repositories)
		return nil, repositories, err
	}
	one := new(shapes.User)
	err = json.Unmarshal(data, one)
	return one, nil, err
}

// performTyped performs a typed call, and returns the size of the JSON of the answer.
func (p *peer) performTyped(url string) (int64, error) {
	one, repositories, err := p.call(url)
	if err != nil {
		return 0, err
	}
	if one != nil && one.ID <= 0 || one == nil && len(repositories) != p.options.expected.count {
		return -1, nil
	}
	return p.options.size, nil
}

// check performs a typed call once, and fails if the values are not those of the command line.
func (p *peer) check() error {
	if !p.options.isTyped() {
		return nil
	}
	one, repositories, err := p.call(p.options.url)
	if err != nil {
		return err
	}
	found := decoded{count: len(repositories)}
	if one != nil {
		found = decoded{1, one.ID, one.Followers}
	}
	for _, repository := range repositories {
		found.first += repository.Stargazers
		found.second += repository.Size
	}
	if found != p.options.expected {
		return fmt.Errorf("decoded %v, not %v", found, p.options.expected)
	}
	return nil
}
