// Package roles runs what an instance consists of: producers, processors, query and engine, each on an opened instance, in stages.
package roles
