// Package pages shows in a browser what the API answers: one page a route, each with its first numbers in it, kept live by the
// stream. A page shows numbers and never makes any: all of them are answers of the API, asked for the visitor. Nothing on a page
// changes anything.
//
// A visitor has a session instead of a key: no script of a page ever holds one. Pages run under a policy that lets them load and
// run nothing but what this server brings along.
package pages
