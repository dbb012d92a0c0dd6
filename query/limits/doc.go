// Package limits admits requests within the limits of plans: so many in any span of 60 seconds, so many in a month. One process
// counts by itself; replicas that share a Redis lease parts of each limit from it, so that all together never admit more
// than the limit, and go on with what they hold while Redis is away. It also counts what was admitted, by budget and day, for
// the usage topic.
//
// A Limiter judges each request (limiter.go, window.go); leases.go keeps the leases of a replica, bucket.go those of one budget;
// lease_store.go is the protocol with Redis, whose two scripts are heartbeat.lua and bucket.lua.
package limits
