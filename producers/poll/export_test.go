package poll

// ValuesDigest is for tests of the sources' declarations, which this package cannot import.
var ValuesDigest = valuesDigest
