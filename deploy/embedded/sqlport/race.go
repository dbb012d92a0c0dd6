//go:build race

package sqlport

// memoryLimited is false: the race detector's own tables count as memory, and exceed every limit.
const memoryLimited = false
