// Package supervise starts roles again when they fail, starts and stops them in stages, and knows how each of them fares.
package supervise
