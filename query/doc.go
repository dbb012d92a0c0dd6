// Package query is the reading side's runtime. An endpoint is declared once, as an Endpoint: from
// that come its route, its checks, its place in the OpenAPI document and its cache rule, and no
// unit writes any of them by hand. Every request passes the same checks in the same order: route,
// key, plan, limit, validation. Whatever goes wrong is answered in one body, and nothing internal
// leaves the process.
//
// Current prices are held by the PriceCache, in memory and encoded once per change, so that a hot read
// never leaves the process.
package query
