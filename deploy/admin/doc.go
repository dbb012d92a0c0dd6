// Package admin gives a data directory one owner and lets commands ask that owner for work: short verbs, and long jobs that go on
// when whoever started them has left.
package admin
