package operations

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/gofiber/fiber/v2"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/schemas/events"
)

// DescriptorSet is the file of all schemas for programs.
const DescriptorSet = "events.binpb"

// TopicSchema reports what the values of a topic are.
type TopicSchema struct {
	Topic string `json:"topic"`
	// Message is the full name of the protobuf message of the values.
	Message string `json:"message"`
	// File declares it.
	File string `json:"file"`
}

// SchemaOf describes the messages of a topic.
func SchemaOf(topic schemas.Topic) (TopicSchema, error) {
	message, ok := topic.New().(proto.Message)
	if !ok {
		return TopicSchema{}, fmt.Errorf("the record of topic %s is not a protobuf message", topic.Name)
	}
	descriptor := message.ProtoReflect().Descriptor()
	return TopicSchema{topic.Name, string(descriptor.FullName()), descriptor.ParentFile().Path()}, nil
}

// SchemaFile is the text of a file that a schema names: events/v1/ticks.proto.
func SchemaFile(name string) ([]byte, error) {
	return events.Files.ReadFile(strings.TrimPrefix(name, "events/"))
}

// TopicSchemas are the schemas of all topics.
func TopicSchemas() ([]TopicSchema, error) {
	var all []TopicSchema
	for _, topic := range schemas.Topics {
		schema, err := SchemaOf(topic)
		if err != nil {
			return nil, err
		}
		all = append(all, schema)
	}
	return all, nil
}

// MountSchemas serves the schemas of the log, which need no key: /schemas lists the topics, /schemas/events.binpb is the
// FileDescriptorSet of all, and /schemas/events/v1/ticks.proto one file.
func MountSchemas(router fiber.Router) error {
	all, err := TopicSchemas()
	if err != nil {
		return err
	}
	set, err := events.Files.ReadFile(DescriptorSet)
	if err != nil {
		return err
	}
	router.Get("/schemas", func(c *fiber.Ctx) error { return c.JSON(all) })
	router.Get("/schemas/"+DescriptorSet, func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, "application/x-protobuf")
		return c.Send(set)
	})
	files, err := fs.Glob(events.Files, "v1/*.proto")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := events.Files.ReadFile(file)
		if err != nil {
			return err
		}
		router.Get("/schemas/events/"+file, func(c *fiber.Ctx) error {
			c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
			return c.Send(text)
		})
	}
	return nil
}
