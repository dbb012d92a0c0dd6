//go:build !race

package sqlport

// memoryLimited means that the operating system bounds the memory of the SQL process.
const memoryLimited = true
