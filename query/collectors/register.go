// Package collectors registers metrics of roles that may begin again within their process.
package collectors

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register goes on with the collector of a server before, when a role begins again in its process: a
// counter that began again would look as a restart does.
func Register[C prometheus.Collector](registry prometheus.Registerer, c C) (C, error) {
	err := registry.Register(c)
	var before prometheus.AlreadyRegisteredError
	if errors.As(err, &before) {
		if held, ok := before.ExistingCollector.(C); ok {
			return held, nil
		}
	}
	return c, err
}
