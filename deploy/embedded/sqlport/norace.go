//go:build !race

package sqlport

// memoryLimited states that the operating system bounds the memory of the SQL process.
const memoryLimited = true
