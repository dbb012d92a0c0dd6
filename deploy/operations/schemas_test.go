package operations

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/marketlog/marketlog/schemas"
)

// With nothing but what an instance serves, the records of every topic can be decoded.
func TestSchemasOfTheLogAreServed(t *testing.T) {
	app := fiber.New()
	if err := MountSchemas(app); err != nil {
		t.Fatal(err)
	}
	get := func(path string) []byte {
		t.Helper()
		answer, err := app.Test(httptest.NewRequest("GET", path, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%s: got %d, %v", path, answer.StatusCode, err)
		}
		return body
	}
	var listed []TopicSchema
	if err := json.Unmarshal(get("/schemas"), &listed); err != nil || len(listed) != len(schemas.Topics) {
		t.Fatalf("got %d topics (%v), want all %d", len(listed), err, len(schemas.Topics))
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(get("/schemas/events.binpb"), set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range listed {
		if _, err := files.FindDescriptorByName(protoreflect.FullName(s.Message)); err != nil {
			t.Errorf("%s: %s is not in the descriptors: %v", s.Topic, s.Message, err)
		}
		name := s.Message[strings.LastIndex(s.Message, ".")+1:]
		if text := get("/schemas/" + s.File); !bytes.Contains(text, []byte("message "+name+" {")) {
			t.Errorf("%s: %s does not declare %s", s.Topic, s.File, name)
		}
	}
}
