package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A page in the notation of the specification: tables, forms in prose, answers in braces.
const page = "# Service\n\n## Resources and their fields\n\n### Loan entry (current)\n\n" +
	"| Field | Type | Required | Notes |\n|---|---|---|---|\n| lender | string | yes | |\n| coinId | string or null | yes | |\n| extra | object or null | no | |\n\n" +
	"### Loan history entry\n\n| Field | Type | Required |\n|---|---|---|\n| rate | number | yes |\n\n" +
	"### Summary\n\nTool-style form: `total`, `share` (0 to 100) required; `trend` number (last).\n\n" +
	"Reference form (`data`): `totals` {`all`, `new`}, `at` (integer). For others there is `never`.\n\n" +
	"## Endpoints\n\n| Method and path | Parameters | Response |\n|---|---|---|\n" +
	"| GET /loans | query: `lender` string, `limit` integer (default 10, max 50) | `data` {`loans` array of loan entries, `count` number} (no `page`) |\n" +
	"| GET /loans/{kind} | `kind`: `short`,`long`; `period`: `24h` (hourly), `7d`; default `24h` | {`loans`}; sorted |\n" +
	"| GET /old/{kind} | same kinds; one of `coin` or `chain` (string) required | not shown |\n" +
	"| POST /ask | JSON body: `names` string[] required (1 to 100 items), `how` object optional | tool-style {`answers`: map name to loan entry}; reference style summary |\n" +
	"| GET /loans/{id}/history | `how` (tool-style string; reference style object) | reference summary, `meta`, `history` array |\n\n" +
	"| Tool | Endpoint |\n|---|---|\n| loans | GET /loans |\n"

func TestThePageIsConverted(t *testing.T) {
	found, err := convert(page)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, o := range found.Operations {
		line(t, &got, o)
	}
	line(t, &got, found.Resources)
	line(t, &got, found.Tools)
	want := `
{"method":"GET","path":"/loans","parameters":[{"name":"lender","in":"query","type":"string"},{"name":"limit","in":"query","type":"integer","default":"10","most":50}],"response":[{"name":"data","type":"object","fields":[{"name":"loans","type":"array","resources":["Loan entry (current)"]},{"name":"count","type":"number"}]}]}
{"method":"GET","path":"/loans/{kind}","parameters":[{"name":"kind","in":"path","type":"string","required":true,"values":["short","long"]},{"name":"period","in":"query","type":"string","default":"24h","values":["24h","7d"]}],"response":[{"name":"loans","type":"array","resources":["Loan entry (current)"]}]}
{"method":"GET","path":"/old/{kind}","parameters":[{"name":"kind","in":"path","type":"string","required":true,"values":["short","long"]},{"name":"coin","in":"query"},{"name":"chain","in":"query","type":"string"}]}
{"method":"POST","path":"/ask","parameters":[{"name":"names","in":"body","type":"array","required":true,"most":100},{"name":"how","in":"body","type":"object"}],"response":[{"name":"answers","type":"map","resources":["Loan entry (current)"]}]}
{"method":"GET","path":"/loans/{id}/history","parameters":[{"name":"id","in":"path","type":"string","required":true},{"name":"how","in":"query"}],"response":[{"name":"meta"},{"name":"history","type":"array","resources":["Loan history entry"]},{"type":"object","resources":["Summary: Reference form"]}]}
{"Loan entry (current)":[{"name":"lender","type":"string","required":true},{"name":"coinId","type":"string","nullable":true,"required":true},{"name":"extra","type":"object","nullable":true}],"Loan history entry":[{"name":"rate","type":"number","required":true}],"Summary: Reference form":[{"name":"totals","type":"object","fields":[{"name":"all"},{"name":"new"}]},{"name":"at","type":"integer"}],"Summary: Tool-style form":[{"name":"total","required":true},{"name":"share","type":"number","required":true},{"name":"trend","type":"number"}]}
{"loans":"GET /loans"}
`
	if got.String() != want[1:] {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want[1:])
	}
}

func line(t *testing.T, w *strings.Builder, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(append(text, '\n'))
}

func TestAnotherPageIsRefused(t *testing.T) {
	if _, err := convert("# Recipes\n\n| Dish | Time |\n|---|---|\n| soup | 1 h |\n"); err == nil || !strings.Contains(err.Error(), "Method and path") {
		t.Errorf("got %v, want an error that names the table that is missing", err)
	}
}
