// Package examples holds, for each operation of the API, how it is asked in several languages, and an answer that a server on the simulator
// gave, for the documents that show them.
package examples

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

// answers.json is written by `go test ./deploy/e2e -run TestDemoAnswersAsTheDocumentShows -update`: bodies of successes by the name of
// their operation, with the first elements of long lists only, and texts by the name of their operation and their media type. samples.json is written by `make clients`: by operation, then by language.
var (
	//go:embed answers.json
	answersFile []byte
	//go:embed samples.json
	samplesFile []byte

	answers = sync.OnceValue(func() map[string]json.RawMessage { return read[json.RawMessage](answersFile) })
	samples = sync.OnceValue(func() map[string]map[string]string { return read[map[string]string](samplesFile) })
)

func read[T any](file []byte) map[string]T {
	var all map[string]T
	if err := json.Unmarshal(file, &all); err != nil {
		panic(fmt.Sprintf("examples: %v", err)) // they are a part of the program
	}
	return all
}

// Answer is the JSON of an operation's example, nil where it has none. Safe for concurrent use; the caller must not change it.
func Answer(operation string) json.RawMessage { return answers()[operation] }

// Text is an operation's example in a media type that is text, such as lines of JSON; empty where it has none. Safe for concurrent use.
func Text(operation, media string) string {
	encoded, ok := answers()[operation+" "+media]
	if !ok {
		return ""
	}
	var text string
	if err := json.Unmarshal(encoded, &text); err != nil {
		panic(fmt.Sprintf("examples: %s in %s: %v", operation, media, err)) // they are a part of the program
	}
	return text
}

// Sample is how an operation is asked in one language, as x-codeSamples of OpenAPI documents have it.
type Sample struct {
	Lang   string `json:"lang"`
	Label  string `json:"label"`
	Source string `json:"source"`
}

// Samples are those of an operation, in one order for all; nil where it has none. Safe for concurrent use.
func Samples(operation string) []Sample {
	of := samples()[operation]
	if of == nil {
		return nil
	}
	return []Sample{
		{"Shell", "curl", of["curl"]}, {"Python", "Python", of["python"]}, {"TypeScript", "TypeScript", of["typescript"]}, {"Go", "Go", of["go"]},
	}
}
