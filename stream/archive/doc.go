// Package archive keeps the records of the log for ever, or for as long as there is room: immutable segments, each of
// which is a Parquet file of one partition with a sidecar that says what is in it.
//
// A segment is committed by its sidecar alone, which is written after the file was read back and found whole. What is
// archived is found by listing the sidecars; nothing else is kept about it that could disagree. Segments of a partition
// are contiguous and chained by their digests, so that one that is missing, changed or of another log is found by name.
//
// Where a segment ends is a function of its records (Cut), and what its digest covers is independent of Parquet: two
// archivers that begin at the same offset make the same segment, and the slower one finds the other's.
package archive
