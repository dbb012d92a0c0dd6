package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/position"
	"github.com/marketlog/marketlog/schemas"
)

// In is where a parameter is given.
type In uint8

// Places of parameters.
const (
	Query In = iota
	Path
	// Field is a field of the JSON object that a POST carries.
	Field
)

// Kind is what a parameter's text must be.
type Kind uint8

// Kinds of parameters.
const (
	// Text is any text of 1 to MaxLength bytes.
	Text Kind = iota
	// Integer is between Min and Max. Above Max it is lowered to it, which the response shows in
	// meta.clamped; below Min, beyond 64 bits or no integer it is refused.
	Integer
	// Flag is true, false, 1 or 0.
	Flag
	// Time is ISO 8601 with a zone, or a date, which is its beginning in UTC, from 1970-01-01 to 2261-12-31.
	Time
	// List is one or more texts, separated by commas or by repeating the parameter; an array in a body.
	List
	// Number is a decimal above 0.
	Number
	// Hints are texts by name: a JSON object, name[key]=text for each, or one plain word for the key that Word names.
	Hints
)

// maxText bounds texts whose declaration does not.
const maxText = 128

// Times are bounded by what Unix nanoseconds and the tables' columns can hold: others would wrap around or be refused by the store.
var firstTime, endOfTime = time.Unix(0, 0), time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)

// Param declares one parameter.
type Param struct {
	Name string
	In   In
	Kind Kind
	// Doc reports what it means, in one sentence.
	Doc     string
	Example string
	// Required parameters have no default.
	Required bool
	// Rest means that a parameter in the path is all the rest of it, slashes too; it is the last one, and the only such.
	Rest bool
	// Essential parameters are refused by endpoints that do not declare them, where others are ignored: an answer
	// that leaves one out would be taken for another.
	Essential bool
	// Default is what an absent or empty one counts as; empty for none.
	Default string
	// ToolDefault takes the place of Default in calls of tools, whose answers a model has to read; empty for no other one.
	ToolDefault string
	// Min and Max bound an Integer.
	Min, Max int64
	// Past refuses a Time that is in the future.
	Past bool
	// Planned rejects a Time before the history that the caller's plan includes.
	Planned bool
	// Stored parameters ask for what a store holds: a request with one waits for it as others do, even where its endpoint is Hot.
	Stored bool
	// AgesOut means that the past asked for may not be kept any more (410).
	AgesOut bool
	// Positions lets a Time be the position of an answer too.
	Positions bool
	// NoTool parameters are not arguments of tools.
	NoTool bool
	// Class is what a request with the parameter costs, where it is more than its endpoint's.
	Class limits.Class
	// OrZero lets a Number be 0 too. Beyond Most it is lowered to it as an Integer is; 0 means no bound.
	OrZero bool
	Most   float64
	// MaxItems bounds a List; more are refused.
	MaxItems int
	// MaxLength bounds a Text in bytes; 0 for 128.
	MaxLength int
	// Allowed holds all values that a Text may have, in any letter case, or the keys of Hints.
	Allowed []string
	// Word is the key of Hints that a plain word means, Numbers are the keys whose texts are decimals above 0.
	Word    string
	Numbers []string
	// Check refuses further texts by saying what is wanted; empty accepts. Pattern is what it takes as a regular expression,
	// for documents alone; empty where that is no matter of form.
	Pattern string
	Check   func(string) string
}

// viewParam is understood by every endpoint.
var viewParam = Param{Name: "view", Kind: Text, Default: "reference", Allowed: []string{"reference", "tool"},
	Doc: "Response form, for endpoints that document two."}

// value is one parsed parameter.
type value struct {
	set  bool
	text string
	n    int64
	at   time.Time
	// replica is that of a position; empty for a time.
	replica string
	list    []string
	// number is a Number, hints are Hints.
	number float64
	hints  map[string]string
}

// compile checks the declaration and parses its default.
func (p *Param) compile() (value, error) {
	switch {
	case p.Name == "" || p.Doc == "":
		return value{}, fmt.Errorf("name and Doc are needed")
	case p.Kind == Integer && (p.Max < p.Min || p.Max == 0):
		return value{}, fmt.Errorf("an integer needs bounds")
	case p.Kind == List && p.MaxItems == 0:
		return value{}, fmt.Errorf("a list needs MaxItems")
	case p.Kind == Hints && !slices.Contains(p.Allowed, p.Word):
		return value{}, fmt.Errorf("hints need their keys in Allowed, and Word among them")
	case p.Rest && p.In != Path:
		return value{}, fmt.Errorf("only a path has a rest")
	case p.Required && p.Default != "":
		return value{}, fmt.Errorf("a required parameter has no default")
	}
	if p.ToolDefault != "" {
		if _, clamped, fault := p.parse([]string{p.ToolDefault}); fault != "" || clamped {
			return value{}, fmt.Errorf("its default for tools: %s", fault)
		}
	}
	if p.Default == "" {
		return value{}, nil
	}
	v, clamped, fault := p.parse([]string{p.Default})
	if fault != "" || clamped {
		return value{}, fmt.Errorf("its default: %s", fault)
	}
	return v, nil
}

// parse turns the texts of a parameter into its value, or says what is wrong with them.
func (p *Param) parse(texts []string) (v value, clamped bool, fault string) {
	v.set = true
	text := texts[0]
	switch p.Kind {
	case Integer:
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
			return v, false, "must be an integer"
		case n < p.Min:
			return v, false, fmt.Sprintf("must be at least %d", p.Min)
		case n > p.Max:
			v.n = p.Max
			return v, true, ""
		}
		v.n = n
	case Flag:
		switch strings.ToLower(text) {
		case "true", "1":
			v.n = 1
		case "false", "0":
		default:
			return v, false, "must be true or false"
		}
	case Time:
		if p.Positions && position.Is(text) {
			at, err := position.Parse(text)
			if err != nil {
				return v, false, "must be a position just as the header X-Position of an answer has it, or an ISO 8601 time with a zone"
			}
			v.at, v.replica = at.At, at.Replica
			break
		}
		if v.at, fault = ParseTime(text); fault != "" {
			return v, false, fault
		}
	case List:
		for _, t := range texts {
			for item := range strings.SplitSeq(t, ",") {
				if item = strings.TrimSpace(item); item != "" {
					v.list = append(v.list, strings.Clone(item))
				}
			}
		}
		return v, false, p.boundList(v.list)
	case Number:
		n, ok := decimal(text)
		if !ok || n == 0 && !p.OrZero {
			if p.OrZero {
				return v, false, "must be a number of at least 0"
			}
			return v, false, "must be a number above 0"
		}
		if v.number = n; p.Most > 0 && n > p.Most {
			v.number, v.n = p.Most, int64(p.Most)
			return v, true, ""
		}
	case Hints:
		return p.parseHints(texts)
	default:
		return p.parseText(text)
	}
	return v, false, ""
}

// decimal reads a finite number of at least 0.
func decimal(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && n >= 0 && !math.IsInf(n, 0)
}

// ParseTime reads the text of a Time, or says what is wrong with it.
func ParseTime(text string) (at time.Time, fault string) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		if at, err = time.Parse(time.DateOnly, text); err != nil {
			if strings.Contains(text, " ") { // what a + in a query means
				return at, "must be an ISO 8601 time with a zone, such as 2026-01-31T12:00:00Z, or a date; in a query the + of a zone is written %2B"
			}
			return at, "must be an ISO 8601 time with a zone, such as 2026-01-31T12:00:00Z, or a date"
		}
	}
	if at.Before(firstTime) || !at.Before(endOfTime) {
		return at, "must lie from 1970-01-01 to 2261-12-31"
	}
	return at, ""
}

func (p *Param) parseText(text string) (v value, clamped bool, fault string) {
	if len(p.Allowed) > 0 {
		for _, a := range p.Allowed {
			if strings.EqualFold(a, text) {
				return value{set: true, text: a}, false, ""
			}
		}
		return v, false, "must be one of " + strings.Join(p.Allowed, ", ")
	}
	limit := cmp.Or(p.MaxLength, maxText)
	if len(text) > limit {
		return v, false, fmt.Sprintf("must have at most %d bytes", limit)
	}
	if p.Check != nil {
		if fault = p.Check(text); fault != "" {
			return v, false, fault
		}
	}
	return value{set: true, text: text}, false, ""
}

// arguments are the unparsed parameters of a call, wherever it came from.
type arguments interface {
	path(name string) string
	// query returns the first text of a query parameter, empty where it is absent.
	query(name string) string
	queryAll(name string) []string
	// hints returns the values of name[key], for each of the keys with a value, as a JSON object; empty if there is none.
	hints(name string, keys []string) string
	// field returns a field of the body, nil where it is absent or null.
	field(name string) json.RawMessage
	// bare means that there are no query parameters at all.
	bare() bool
	// has reports whether a name was given that the endpoint may not declare.
	has(name string) bool
	// names calls f for each query parameter that was given.
	names(f func(name string))
}

// parse fills the request from its arguments. It is the only reader of parameters, so hot and cold
// endpoints and tools refuse the same bad input alike; all faults are reported at once.
func (c *compiled) parse(args arguments, r *Request) error {
	r.values = append(r.values[:0], c.defaults...)
	var faults map[string][]string
	fault := func(name, what string) {
		if faults == nil {
			faults = map[string][]string{}
		}
		faults[name] = append(faults[name], what)
	}
	bare := args.bare()
	if !bare {
		for _, refused := range c.refused {
			if args.has(refused.name) {
				fault(refused.name, refused.why)
			}
		}
		args.names(func(name string) {
			if meant := c.slipped(args, name); meant != "" {
				fault(name, "is not a parameter of this operation: did you mean "+meant+"?")
			}
		})
	}
	for i := range c.Params {
		p := &c.Params[i]
		var single [1]string
		texts := single[:]
		switch {
		case p.In == Field:
			raw := args.field(p.Name)
			if raw == nil {
				if p.Required {
					fault(p.Name, "is required")
				}
				continue
			}
			v, clamped, wrong := p.parseField(raw)
			if wrong == "" && !v.set && p.Required {
				wrong = "is required"
			}
			if wrong != "" {
				fault(p.Name, wrong)
				continue
			}
			r.take(i, v, clamped)
			continue
		case p.In == Path:
			text := args.path(p.Name)
			if strings.IndexByte(text, '%') >= 0 {
				unescaped, err := url.PathUnescape(text)
				if err != nil {
					fault(p.Name, "is not well escaped")
					continue
				}
				text = unescaped
			}
			single[0] = text
		case bare:
		case p.Kind == List:
			texts = args.queryAll(p.Name)
		case p.Kind == Hints:
			if single[0] = args.query(p.Name); single[0] == "" {
				single[0] = args.hints(p.Name, p.Allowed)
			}
		default:
			single[0] = args.query(p.Name)
		}
		if !slices.ContainsFunc(texts, func(t string) bool { return t != "" }) {
			if p.Required {
				fault(p.Name, "is required")
			}
			continue
		}
		v, clamped, wrong := p.parse(texts)
		if wrong == "" && p.Past && v.at.After(r.Now) {
			wrong = "must not lie in the future: it is " + FormatTime(r.Now.UnixNano()) + " here"
		}
		if wrong != "" {
			fault(p.Name, wrong)
			continue
		}
		r.take(i, v, clamped)
	}
	if faults != nil {
		return &Error{Status: 400, Code: CodeValidation, Message: "the request has invalid parameters", Fields: faults}
	}
	r.View = Reference
	if r.values[len(r.values)-1].text == "tool" {
		r.View = Tool
	}
	return nil
}

// slipFrom is how long a name is at least, in letters, so that one slip away from it cannot be a name of its own.
const slipFrom = 4

// Slipped reports whether a name must mean a known one: the same in other letters, with underscores, or one slip away.
func Slipped(known, name string) bool {
	return strings.EqualFold(known, name) || strings.EqualFold(known, strings.ReplaceAll(name, "_", "")) || len(known) >= slipFrom && schemas.OneSlip(known, name)
}

// slipped returns the parameter that the name of another must have meant: one slip away from it, or the same in other letters, and
// not given itself; empty where there is none. What is like no parameter is ignored, as proxies and browsers add some.
func (c *compiled) slipped(args arguments, name string) (meant string) {
	for _, i := range c.query {
		switch known := c.Params[i].Name; {
		case known == name:
			return ""
		case Slipped(known, name):
			if !args.has(known) {
				meant = known
			}
		}
	}
	return meant
}

// maxCursor is the length of two numbers of 64 bits and what is between them.
const maxCursor = 40

// CursorParam is the parameter of a list of records of the log, the last one first, that goes on after a page before.
func CursorParam() Param {
	check := func(text string) string {
		if _, _, ok := ParseCursor(text); !ok {
			return "must be meta.next of an answer"
		}
		return ""
	}
	return Param{Name: "cursor", Kind: Text, MaxLength: maxCursor, Check: check, Doc: "meta.next of the page before."}
}

// FormatCursor names a record by when it was and its offset.
func FormatCursor(at time.Time, offset int64) string {
	return fmt.Sprintf("%d-%d", at.UnixNano(), offset)
}

// ParseCursor is the record that a cursor names, false for a text that FormatCursor does not make.
func ParseCursor(text string) (at time.Time, offset int64, ok bool) {
	var ns int64
	n, err := fmt.Sscanf(text, "%d-%d", &ns, &offset)
	at = time.Unix(0, ns)
	return at, offset, err == nil && n == 2 && ns > 0 && offset >= 0 && FormatCursor(at, offset) == text
}

// CheckCountry is the Check of a two-letter country code.
func CheckCountry(text string) string {
	letter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	if len(text) == 2 && letter(text[0]) && letter(text[1]) {
		return ""
	}
	return "must be a two-letter country code"
}

// Country writes a code as the providers' lists do. UK is what many write for GB.
func Country(code string) string {
	if code = strings.ToUpper(code); code == "UK" {
		return "GB"
	}
	return code
}
