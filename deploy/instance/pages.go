package instance

import "github.com/marketlog/marketlog/query/pages"

// Pages is where people find the pages of this process.
type Pages struct {
	// Address is that of the prices, as http://HOST:PORT/.
	Address string
	// Links begin a session each.
	Links *pages.Links
}

// Link makes a one-time link that signs in whoever opens it.
func (p *Pages) Link() string { return p.Address + p.Links.New()[1:] }
