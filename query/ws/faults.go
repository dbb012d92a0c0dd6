package ws

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// fault is what is wrong with one field of a message, or with the parameter of that name.
type fault struct {
	field, what string
	// alone means that what is a sentence without the field before it.
	alone bool
	// candidates are what may be meant, likeliest first, hint says so in words; nil and empty for none.
	candidates any
	hint       string
}

func faulty(field, format string, args ...any) *fault {
	return &fault{field: field, what: fmt.Sprintf(format, args...)}
}

func (f *fault) text() string {
	if f.alone {
		return f.what
	}
	return f.field + " " + f.what
}

// faults are all that is wrong with a request.
type faults []*fault

// note adds a fault; nil is none.
func (all *faults) note(f *fault) {
	if f != nil {
		*all = append(*all, f)
	}
}

// text is the message of all.
func (all faults) text() string {
	texts := make([]string, len(all))
	for i, f := range all {
		texts[i] = f.text()
	}
	return strings.Join(texts, "; ")
}

// refusal has them as every operation answers its faults: by field, with what may be meant.
func (all faults) refusal() *query.Error {
	e := query.Invalid(all[0].field, "%s", all[0].what)
	for i, f := range all {
		if i > 0 {
			e.Fields[f.field] = append(e.Fields[f.field], f.what)
		}
		if e.Hint == "" {
			e.Candidates, e.Hint = f.candidates, f.hint
		}
	}
	return e
}

// refuseFaults answers a message that has faults.
func (h *Hub) refuseFaults(s *subscriber, id string, all faults) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.refuseFaultsLocked(s, id, all)
}

// refuseFaultsLocked is refuseFaults for one who holds h.mu and s.mu.
func (h *Hub) refuseFaultsLocked(s *subscriber, id string, all faults) bool {
	shown := all.refusal()
	body, err := json.Marshal(Fault{Code: shown.Code, Message: all.text(), Errors: shown.Fields, Candidates: shown.Candidates, Hint: shown.Hint})
	if err != nil {
		panic(err) // strings, and names of coins and channels, always encode
	}
	b := append(appendID(open(nil, typeError), id), `,"error":`...)
	return s.reply(h.stamp(s).close(append(b, body...)))
}

// unknownCoins is the fault of names that no coin has; nil without such.
func unknownCoins(snapshot *views.Snapshot, names []string) *fault {
	if len(names) == 0 {
		return nil
	}
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	f := faulty("symbols", "no coin has the symbol or id %s", strings.Join(shown, ", "))
	f.alone = true
	// To look for what is near takes a look at every coin: for the first few names only.
	var near []views.Alternative
	for _, name := range names[:min(len(names), nearMost)] {
		near = append(near, snapshot.Near(name)...)
	}
	if len(near) > 0 {
		f.candidates, f.hint = near, "did you mean "+near[0].CoinID+"?"
	}
	return f
}

// nearMost is for how many unknown names of one request others are suggested.
const nearMost = 3

// unknownParams are the faults of names that are no parameters: with strict all of them, else those that one must be meant by.
func unknownParams(args *fasthttp.Args, strict bool) (all faults) {
	for key := range args.All() {
		name := string(key)
		if name == paramLastID || slices.Contains(connectParams, name) {
			continue
		}
		const no = "is not a parameter of this operation"
		shown := strings.ToValidUTF8(name[:min(len(name), longestName)], "\uFFFD")
		if i := slices.IndexFunc(connectParams, func(known string) bool { return query.Slipped(known, name) || strict && schemas.OneSlip(known, name) }); i >= 0 {
			f := faulty(shown, "%s: did you mean %s?", no, connectParams[i])
			f.candidates, f.hint = []string{connectParams[i]}, "did you mean "+connectParams[i]+"?"
			all = append(all, f)
		} else if strict {
			all = append(all, faulty(shown, "%s; it has %s", no, strings.Join(connectParams, ", ")))
		}
	}
	return all
}
