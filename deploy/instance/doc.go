// Package instance opens the parts of one installation (broker, engine, cache, stores) for whoever asks first, and holds what roles
// and operations share: its clock, its disk guard, its sources and its metrics.
package instance
