package deploy

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/schemas/events"
)

// descriptorSet is the file of all schemas for programs.
const descriptorSet = "events.binpb"

// topicSchema says what the values of a topic are.
type topicSchema struct {
	Topic string `json:"topic"`
	// Message is the full name of the protobuf message of the values.
	Message string `json:"message"`
	// File declares it.
	File string `json:"file"`
}

func schemaOf(topic schemas.Topic) (topicSchema, error) {
	rec, err := schemas.NewRecord(topic.Name)
	if err != nil {
		return topicSchema{}, err
	}
	message, ok := rec.(proto.Message)
	if !ok {
		return topicSchema{}, fmt.Errorf("the record of topic %s is no protobuf message", topic.Name)
	}
	descriptor := message.ProtoReflect().Descriptor()
	return topicSchema{topic.Name, string(descriptor.FullName()), descriptor.ParentFile().Path()}, nil
}

// schemaFile is the text of a file that a schema names: events/v1/ticks.proto.
func schemaFile(name string) ([]byte, error) {
	return events.Files.ReadFile(strings.TrimPrefix(name, "events/"))
}

// topicSchemas are the schemas of all topics.
func topicSchemas() ([]topicSchema, error) {
	var all []topicSchema
	for _, topic := range schemas.Topics {
		schema, err := schemaOf(topic)
		if err != nil {
			return nil, err
		}
		all = append(all, schema)
	}
	return all, nil
}

// topicSchemaCommand prints schemas. It needs no instance.
func (a *App) topicSchemaCommand() *cobra.Command {
	var descriptors bool
	cmd := &cobra.Command{
		Use:   "schema [TOPIC]",
		Short: "Print the protobuf schema of a topic's records, or which message each topic has",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if descriptors {
				set, err := events.Files.ReadFile(descriptorSet)
				if err != nil {
					return err
				}
				_, err = a.Stdout.Write(set)
				return err
			}
			if len(args) == 0 {
				all, err := topicSchemas()
				if err != nil {
					return err
				}
				for _, s := range all {
					if _, err := fmt.Fprintf(a.Stdout, "%s\t%s\t%s\n", s.Topic, s.Message, s.File); err != nil {
						return err
					}
				}
				return nil
			}
			topic, err := schemas.TopicNamed(args[0])
			if err != nil {
				return fmt.Errorf("%w; `marketlog topics schema` lists them", err)
			}
			schema, err := schemaOf(topic)
			if err != nil {
				return err
			}
			text, err := schemaFile(schema.File)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Stdout, "// The values of %s are messages %s of %s:\n\n%s", schema.Topic, schema.Message, schema.File, bytes.TrimLeft(text, "\n"))
			return err
		},
	}
	cmd.Flags().BoolVar(&descriptors, "descriptors", false, "print the FileDescriptorSet of all schemas, for programs")
	return cmd
}

// mountSchemas serves the schemas of the log, which need no key: /schemas lists the topics, /schemas/events.binpb is the
// FileDescriptorSet of all, and /schemas/events/v1/ticks.proto one file.
func mountSchemas(router fiber.Router) error {
	all, err := topicSchemas()
	if err != nil {
		return err
	}
	set, err := events.Files.ReadFile(descriptorSet)
	if err != nil {
		return err
	}
	router.Get("/schemas", func(c *fiber.Ctx) error { return c.JSON(all) })
	router.Get("/schemas/"+descriptorSet, func(c *fiber.Ctx) error {
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
