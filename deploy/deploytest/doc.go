// Package deploytest has what tests of several packages of deploy need.
package deploytest
