package poll

// ToldDigest is for tests of the sources' declarations, which this package cannot import.
var ToldDigest = toldDigest
