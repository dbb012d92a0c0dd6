package query

import (
	"context"
	"sync/atomic"
)

// After lets endpoints answer 503 STARTING as long as one of the inputs that they read says what it waits for. A process
// that starts reads the ends of its topics, the oldest records first: answers from among them would be older than those that
// were given before the start.
func After(endpoints []Endpoint, waiting ...func() string) []Endpoint {
	for i := range endpoints {
		handle := endpoints[i].Handle
		endpoints[i].Handle = func(ctx context.Context, r *Request) (Answer, error) {
			for _, wait := range waiting {
				if why := wait(); why != "" {
					return Answer{}, Starting(why)
				}
			}
			return handle(ctx, r)
		}
	}
	return endpoints
}

// Settled is a wait for what is made of topics: until they were read, as waiting says, and then until what was read is
// visible to every reader. Settle is called at least once, and may be called again.
func Settled(settle func(), waiting ...func() string) func() string {
	var settled atomic.Bool
	return func() string {
		if settled.Load() {
			return ""
		}
		for _, wait := range waiting {
			if why := wait(); why != "" {
				return why
			}
		}
		settle()
		settled.Store(true)
		return ""
	}
}
